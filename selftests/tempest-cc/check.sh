#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# hamlyn-tempest-cc, without the library: its tables against the processor, and programs that
# have to do the same with checks, with their data in the segment, whatever tags say.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2
ME=check.sh
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. selftests/lib/lib.sh

usage() {
	echo "Usage: selftests/tempest-cc/check.sh [--brief] [BUILD-FOLDER]  (default: build)"
	echo "--brief: a program at fewer levels of optimization"
	echo "HAMLYN_CSMITH=N compiles N random programs, too, if csmith is there."
}

LEVELS=(-O0 -O1 -O2 -O3 -Os "-O2 -g -pipe" "-O3 -mavx2 -mbmi2" "-O2 -fno-omit-frame-pointer")
CLANG_LEVELS=(-O0 -O2)
if [ "${1:-}" = --brief ]; then
	LEVELS=(-O0 -Os "-O3 -mavx2 -mbmi2")
	CLANG_LEVELS=(-O2)
	shift
fi
only_help "$@"

BUILD=$(realpath "${1:-build}") || exit 2
CC=$BUILD/tempest-cc/hamlyn-tempest-cc
CXX=$BUILD/tempest-cc/hamlyn-tempest-c++
HERE=selftests/tempest-cc
LIMIT=$((60 * ${HAMLYN_TEST_SCALE:-1}))
BASE=0x100000000000

[ -x "$CC" ] || die "$CC is missing; run: make"
if [ "$(uname -m)" != x86_64 ]; then
	skip "hamlyn-tempest-cc" "it is for x86-64"
	total
	exit
fi
unset HAMLYN_TEMPEST_REPORT
work_folder tempest-cc
COMPILERS=(gcc)
command -v clang >/dev/null && COMPILERS+=(clang)

# ---- the command line ----

says() { # PATTERN COMMAND...: exits with 2, and says that
	local status=0
	"${@:2}" >"$work/out" 2>"$work/err" || status=$?
	[ "$status" = 2 ] && grep -q -e "$1" "$work/err"
}

versions() {
	"$CC" --version >"$work/out" && grep -q '^hamlyn-tempest-cc [0-9]' "$work/out" &&
		grep -q '^gcc' "$work/out"
}

help() {
	"$CC" --help >"$work/out" && grep -q -e '--report' "$work/out" &&
		! "$CC" --help >/dev/full 2>"$work/err"
}

no_compiler() {
	! "$CC" --compiler "$work/nothing" -c x.c 2>"$work/err" && grep -q nothing "$work/err"
}

check "--help" help
check "--version is ours, and the compiler's" versions
check "nothing to compile" says "nothing to compile.*--help" "$CC"
check "--report without a file" says "needs a value" "$CC" -c x.c --report
check "a compiler that is not there" no_compiler

# ---- the tables ----

forms() {
	python3 $HERE/forms.py "$BUILD/tempest-cc/as" tools/tempest-cc/insn.c "$work/forms.s" &&
		gcc -w -O1 -fno-pie -no-pie $HERE/forms.c "$work/forms.s" -o "$work/forms" &&
		timeout "$LIMIT" "$work/forms"
}

sources_but() { # NOUN
	find tools/tempest-cc -name '*.c' ! -name "$1.c"
}

# Taken for what they are not, they are found.
forms_can_fail() {
	local rest
	mapfile -t rest < <(sources_but insn)
	sed 's/ cmp test imul / cmp test imul inc /; s/ inc dec neg/ dec neg/; s/movss movd ", STORE, W_FIXED, 4/movss movd ", STORE, W_FIXED, 8/' \
		tools/tempest-cc/insn.c >"$work/insn.c" &&
		mkdir -p "$work/bad" &&
		gcc -w -D_GNU_SOURCE -Itools/tempest-cc -Ilibhamlyn/tempest/src \
			-I"$BUILD/obj/tempest-cc" \
			"${rest[@]}" "$work/insn.c" -o "$work/bad/as" || return 1
	python3 $HERE/forms.py "$work/bad/as" "$work/insn.c" "$work/bad.s" &&
		gcc -w -O1 -fno-pie -no-pie $HERE/forms.c "$work/bad.s" \
			-o "$work/bad/forms" || return 1
	! timeout "$LIMIT" "$work/bad/forms" >"$work/out" &&
		grep -q 'inc.*: writes' "$work/out" && grep -q 'movss.*reaches 4' "$work/out"
}

check "each form reaches and writes what it is taken to" forms
check "a wrong size, or a store taken for a load, is found by that" forms_can_fail

# ---- programs ----

stub() { # COMPILER
	[ -f "$work/stub.o" ] ||
		gcc -D_GNU_SOURCE -O2 -fno-pie -mcmodel=large -Ilibhamlyn/tempest/src \
			-c $HERE/stub.c -o "$work/stub.o"
}

# In the segment, and the same for all tags; with all blocks writable, checks trap nowhere.
in_segment() { # OBJECT REFERENCE
	stub && gcc -no-pie "$1" "$work/stub.o" -Wl,--section-start=tpdata=$BASE -lm \
		-o "$work/in" || return 1
	for mode in writable invalid loops chaos; do
		echo "# $mode"
		CC_STUB=$mode timeout "$LIMIT" "$work/in" >"$work/out" 2>"$work/err" || return 1
		cmp "$2" "$work/out" || return 1
		eval "$mode=$(sed -n 's/^traps: //p' "$work/err")"
		switches=$(sed -n 's/^switches: //p' "$work/err")
	done
	# shellcheck disable=SC2154 # set by eval
	echo "traps: $writable writable, $invalid invalid, $loops loops, $chaos chaos; $switches switches"
	[ "$invalid" -gt 100 ]
}

# Optimized loops over addresses in even steps, in pages that are not what they took them for
loops_switch() { # OPTION...
	program gcc "$@" && [ "$switches" -gt 0 ]
}

program() { # COMPILER OPTION...
	local compiler=$1
	shift
	"$compiler" -w -fno-pie -mcmodel=large "$@" -c $HERE/program.c -o "$work/ref.o" &&
		stub && gcc -no-pie "$work/ref.o" "$work/stub.o" -lm -o "$work/ref" &&
		"$work/ref" >"$work/ref.out" || return 1
	rm -f "$work/report"
	"$CC" --compiler "$compiler" --report "$work/report" -w -mcmodel=large "$@" \
		-c $HERE/program.c -o "$work/t.o" || return 1
	sed -n 1p "$work/report"
	in_segment "$work/t.o" "$work/ref.out"
}

for options in "${LEVELS[@]}"; do
	# shellcheck disable=SC2086 # several words
	check "a program by gcc $options" program gcc $options
done
if command -v clang >/dev/null; then
	for options in "${CLANG_LEVELS[@]}"; do
		# shellcheck disable=SC2086 # several words
		check "a program by clang $options" program clang $options
	done
else
	skip "a program by clang" "clang is not installed"
fi

# What the memory model of C lets be checked is: nearly all.
coverage() {
	rm -f "$work/report"
	"$CC" --report "$work/report" -g -O2 -mcmodel=large -c $HERE/program.c -o "$work/t.o" &&
		awk -F'[: ,]+' 'NR == 1 { exit !($2 > 60 && $4 * 20 < $2) }' "$work/report" &&
		grep -q 'program.c:[1-9][0-9]*: plain: assembly of the program' "$work/report"
}

calls() {
	echo 'struct o { int (*f)(int), (*g)(int); }; int c(struct o *o) { return o->f(1) + o->g(2); }' \
		>"$work/calls.c"
	rm -f "$work/report"
	"$CC" --report "$work/report" -O2 -c "$work/calls.c" -o "$work/calls.o" &&
		grep -q ': 2 checked, 0 left plain' "$work/report"
}

plain() {
	"$CC" --plain -O2 -w -mcmodel=large -c $HERE/program.c -o "$work/t.o" &&
		! nm "$work/t.o" | grep __tempest_rseq_cs >/dev/null
}

cxx() {
	rm -f "$work/report"
	"$CXX" --report "$work/report" -O2 -g -ffunction-sections -Wl,--gc-sections \
		$HERE/program.cc -o "$work/cxx" &&
		grep -q ': [1-9][0-9]* checked' "$work/report" &&
		[ "$("$work/cxx")" = "thirteen 90 10.0" ]
}

lto() {
	"$CC" -O2 -w -flto $HERE/program.c --report "$work/lto" -o "$work/t" &&
		"$work/t" >"$work/out" && cmp "$work/ref.out" "$work/out" &&
		nm "$work/t" | grep __tempest_rseq_cs >/dev/null
}

shared() {
	rm -f "$work/report"
	"$CC" --report "$work/report" -O2 -w -fPIC -shared $HERE/program.c -o "$work/t.so" &&
		grep -q 'nothing checked: part of a shared library' "$work/report"
}

by_hand() {
	printf '\t.globl f\nf:\tmovq (%%rdi), %%rax\n\tret\n' >"$work/f.S"
	rm -f "$work/report"
	"$CC" --report "$work/report" -c "$work/f.S" -o "$work/f.o" &&
		grep -q 'nothing checked: not written by gcc' "$work/report"
}

their_error() {
	echo 'int f(int *p) { __asm__("nonsense %eax"); return *p; }' >"$work/bad.c"
	! "$CC" -c "$work/bad.c" -o "$work/bad.o" 2>"$work/err" &&
		grep -q "no such instruction: .nonsense" "$work/err"
}

report_full() {
	! "$CC" --report "$work/no/report" -O2 -c $HERE/program.c -o "$work/t.o" 2>"$work/err" &&
		grep -q "report.*No such file" "$work/err"
}

check "a loop that was wrong about its pages goes on with checks" loops_switch -O2
check "nearly all is checked, and the report says what is not" coverage
check "calls of what an object holds" calls
check "--plain checks nothing" plain
check "C++: merged templates, exceptions" cxx
check "-flto" lto
check "of a shared library nothing is checked, and that is said" shared
check "of what somebody wrote by hand nothing is checked" by_hand
check "an error in the program's own assembly is told as ever" their_error
check "a report that cannot be written" report_full

# ---- what compilers tell the assembler ----

reported() { # PATTERN COMPILER-OPTION...
	rm -f "$work/report"
	"$CC" --report "$work/report" "${@:2}" 2>"$work/err" && grep -q "$1" "$work/report"
}

# What has nothing in the segment needs no library.
link() { # NAME
	gcc -no-pie "$work/$1.o" -Wl,--defsym=__tempest_rseq_cs_1=0,--defsym=__tempest_loop_1=0 -o "$work/$1"
}

link_alone() { # NAME: what has no main()
	gcc -no-pie -nostdlib -Wl,-e,f,--defsym=__tempest_rseq_cs_1=0,--defsym=__tempest_loop_1=0 "$work/$1.o" -o "$work/$1"
}

# Some hand it to the assembler as two words, so A=B might be taken for a file.
prefix_map() {
	local c
	echo 'int f(int *p) { return *p; }' >"$work/f.c"
	for c in "${COMPILERS[@]}"; do
		reported ': 1 checked' --compiler "$c" -g -O2 -ffile-prefix-map=a=b \
			-fdebug-prefix-map=c=d -c "$work/f.c" -o "$work/f.o" || return 1
	done
	reported ': 1 checked' -O2 -Wa,--debug-prefix-map,a=b,--listing-lhs-width,2 \
		-c "$work/f.c" -o "$work/f.o"
}

two_files() {
	printf '\tnop\n' >"$work/nop.s"
	reported 'nothing checked: several files' -O2 "-Wa,$work/nop.s" -c "$work/f.c" \
		-o "$work/f.o" && grep -q 'several files for the assembler' "$work/err"
}

# Whose registers nobody kept free; also in an @FILE, by a pipe, and through cpp.
given_assembly() {
	local why='nothing checked: not compiled here'
	gcc -O2 -g -S "$work/f.c" -o "$work/given.s" && cp "$work/given.s" "$work/given.S" &&
		cp "$work/given.s" "$work/given" && echo "'$work/given.s' -c" >"$work/at" &&
		reported "$why" -c "$work/given.s" -o "$work/f.o" &&
		reported "$why" -c "$work/given.S" -o "$work/f.o" &&
		reported "$why" -c -x assembler "$work/given" -o "$work/f.o" &&
		reported "$why" "@$work/at" -o "$work/f.o" &&
		reported "$why" -c -x assembler - -o "$work/f.o" <"$work/given.s" &&
		reported ': 1 checked' -O2 -pipe -c "$work/f.c" -o "$work/f.o" &&
		(cd "$work" && reported ': 1 checked' -O2 -save-temps -c f.c -o f.o)
}

# In another's file, too: -fipa-ra keeps values in %r10 across calls of who leaves it alone.
only_r11() {
	cat >"$work/r11.c" <<-EOF
		void use(char *);
		int g(int *p) { char b[100000]; use(b); return *p + b[3]; }
		long h(long *p)
		{
			register long x __asm__("r11") = *p;
			__asm__ volatile("" : "+r"(x));
			return x;
		}
	EOF
	reported ': 1 checked, 1 left plain' -O2 -fstack-clash-protection -c "$work/r11.c" \
		-o "$work/r11.o" && grep -q 'plain: no register to spare' "$work/report" &&
		! objdump -d "$work/r11.o" | grep -e '%r10'
}

# A clobbered end of the frame would be missed, and so the whole stack be touched.
large_frame() {
	cat >"$work/frame.c" <<-EOF
		__attribute__((noinline)) int g(int *p, char *q)
		{ volatile char b[100000]; b[3] = *q; return *p + b[3]; }
		int main(void) { int x = 40; char c = 2; return g(&x, &c) == 42 ? 0 : 1; }
	EOF
	reported ': 2 checked, 0 left plain' -O2 -fstack-clash-protection -c "$work/frame.c" \
		-o "$work/frame.o" && link frame && "$work/frame"
}

file_scope() {
	printf '%s\n' '__asm__(".type g, @function\ng:\nmovl (%rdi), %eax\nret\n.size g, .-g");' \
		'int f(int *p) { return *p; }' >"$work/scope.c"
	local c
	for c in "${COMPILERS[@]}"; do
		reported ': 1 checked, 1 left plain' --compiler "$c" -O2 -fno-verbose-asm \
			-c "$work/scope.c" -o "$work/f.o" &&
			grep -q "assembly of the program's own: movl" "$work/report" || return 1
	done
}

# Of a program and of a library
in_a_file() {
	echo '-fPIC "-shared"' >"$work/inner" && echo "-O2 @$work/inner" >"$work/at" &&
		reported 'nothing checked: part of a shared library' "@$work/at" "$work/f.c" \
			-o "$work/f.so" &&
		echo '-O2 -c -D"A=1 2" '"'-DB=\"'" >"$work/at" &&
		reported ': 1 checked' "@$work/at" "$work/f.c" -o "$work/f.o"
}

long_operand() {
	local name
	name=$(printf 'n%.0s' {1..300})
	echo "char ${name}[1 << 20]; int main(int c, char **v) { long i; int s = 0;
		for (i = c; i < 1 << 20; i += ${name}[i] + 1) s++; return s != (1 << 20) - 1; }" \
		>"$work/long.c"
	reported ': [1-9][0-9]* checked' -O2 -c "$work/long.c" -o "$work/long.o" &&
		[ ! -s "$work/err" ] && link long && "$work/long"
}

# Of two loops one is elsewhere, and has its callers there: an entry of its own says so.
two_loops() {
	local at first end
	echo 'long f(long *p, long n) { long i, s = 0; for (i = 0; i < n; i++) s += p[i]; return s; }' \
		>"$work/loop.c"
	reported ': 1 checked' -O2 -fno-tree-vectorize -fasynchronous-unwind-tables -Wa,-L \
		-c "$work/loop.c" -o "$work/loop.o" && link_alone loop || return 1
	at=$(nm "$work/loop" | sed -n 's/ . \.Ltp[0-9]*_inside$//p')
	[ -n "$at" ] && readelf --debug-dump=frames "$work/loop" >"$work/out" || return 1
	while IFS=. read -r first end; do
		(( 0x$at >= 0x$first && 0x$at < 0x${end#.} )) && return
	done < <(sed -n 's/.* FDE .*pc=//p' "$work/out")
	return 1
}

# Errors, and what debuggers are told, name the file.
names_the_file() {
	printf '\tnonsense\n' >"$work/bad.s"
	! "$CC" -c "$work/bad.s" -o "$work/f.o" 2>"$work/err" &&
		grep -q 'bad.s:1: Error' "$work/err" || return 1
	printf '\t.globl f\nf:\tret\n' >"$work/hand.s"
	"$CC" -c -g "$work/hand.s" -o "$work/f.o" &&
		readelf --debug-dump=info "$work/f.o" | grep 'DW_AT_name.*hand.s' >"$work/out"
}

# The descriptor of one function's check keeps no other.
unused_functions() {
	local c
	echo 'long used(long *p) { return *p; } long unused(long *p) { return *p; }
		int main(void) { long x = 0; return used(&x); }' >"$work/gc.c"
	for c in "${COMPILERS[@]}"; do
		reported ': 2 checked' --compiler "$c" -O1 -fno-inline -ffunction-sections \
			-c "$work/gc.c" -o "$work/gc.o" &&
			gcc -no-pie -Wl,--gc-sections,--defsym=__tempest_rseq_cs_1=0,--defsym=__tempest_loop_1=0 "$work/gc.o" \
				-o "$work/gc" && "$work/gc" && nm "$work/gc" >"$work/out" &&
			grep -qw used "$work/out" && ! grep -w unused "$work/out" || return 1
	done
}

check "options of the assembler with a value: -ffile-prefix-map" prefix_map
check "several files for the assembler: that is said" two_files
check "assembly that is given is left plain, whoever made it" given_assembly
check "of gcc's functions none is checked by %r10" only_r11
check "the probes of a large frame, and its function is checked" large_frame
check "asm outside of functions is left plain" file_scope
check "options in a file are the command line's" in_a_file
check "a loop over what has a long name" long_operand
check "a loop is there twice, and in its copy callers are found" two_loops
check "--gc-sections leaves unused functions out" unused_functions
check "hand-written assembly keeps its name" names_the_file

# ---- random programs ----

random_program() { # SEED OPTION...
	local seed=$1
	shift
	# It leaves a file where it runs.
	(cd "$work" && csmith --seed "$seed" --max-funcs 6 --no-volatiles --no-bitfields >p.c) || return 1
	set -- -w -I/usr/include/csmith -mcmodel=large -fno-zero-initialized-in-bss -fno-common "$@"
	gcc "$@" -fno-pie -no-pie "$work/p.c" -o "$work/p" || return 1
	# Some never end.
	timeout 5 "$work/p" >"$work/p.out" || return 0
	"$CC" "$@" -c "$work/p.c" -o "$work/p.o" &&
		objcopy --rename-section .data=tpdata --rename-section .ldata=tpdata "$work/p.o" &&
		in_segment "$work/p.o" "$work/p.out"
	# Few accesses are few traps.
	[ -s "$work/out" ] && cmp "$work/p.out" "$work/out"
}

random_programs() {
	local seed
	for ((seed = 1; seed <= HAMLYN_CSMITH; seed++)); do
		for options in -O1 "-O3 -mavx2"; do
			# shellcheck disable=SC2086 # several words
			random_program "$seed" $options >/dev/null ||
				{ echo "seed $seed, $options"; return 1; }
		done
	done
}

if [ -n "${HAMLYN_CSMITH:-}" ]; then
	if command -v csmith >/dev/null; then
		check "$HAMLYN_CSMITH random programs" random_programs
	else
		skip "random programs" "csmith is not installed"
	fi
fi
total
