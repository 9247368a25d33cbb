#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Compiles and runs the programs that the documentation shows, on the embedded
# device, and checks the manual pages.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# So many of the calls that most of our programs make show how
EXAMPLES=30

usage() {
	cat <<EOT
Usage: selftests/tools/doc-test.sh [--list] [BUILD-FOLDER]
       selftests/tools/doc-test.sh --installed

Takes the blocks of code out of README.md, Documentation/*.rst,
libhamlyn/man/*.7 and the EXAMPLES of section 3, compiles and runs them, compares
what they print; then checks that the manual pages are well-formed, that every function
has one, and that those of the $EXAMPLES most used calls have an example. Prints
"ok - NAME" or "not ok - NAME" for each, and "N passed, N failed".

  --list       prints what it finds, as KIND NAME FILE:LINE ARGUMENTS
  --installed  the pages that Debian's packages have brought, with nothing but what
               they have installed

Every block of C, and of section 7 every literal block, has a marker before it,
which is a comment there (".. ", "<!-- -->", or .\"):

  hamlyn-run: NAME [ARGUMENT]...  a program: compile it, run it
  hamlyn-build: NAME              a program that a hamlyn-shell block runs
  hamlyn-file: NAME               a file that later programs include; NAME.c, one
                                  that a hamlyn-shell block compiles
  hamlyn-fragment                 no program
  hamlyn-shell: NAME              of sh: run it where the programs are
  hamlyn-same: NAME               hamlyn-run: NAME once more, on another page
  hamlyn-output: NAME             what NAME, of the last kind or hamlyn-run, prints
EOT
}

LIST=no
INSTALLED=no
BUILD=build
while [ $# -gt 0 ]; do
	case $1 in
	-h | --help) usage; exit 0 ;;
	--list) LIST=yes ;;
	--installed) INSTALLED=yes ;;
	-*) usage >&2; exit 2 ;;
	*) BUILD=$1 ;;
	esac
	shift
done

TOP=$PWD
PATIENCE=$((30 * ${HAMLYN_TEST_SCALE:-1}))
passed=0
failed=0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/run" "$work/blocks"

result() { # NAME STATUS; the log is in $work/log
	if [ "$2" = 0 ]; then
		echo "ok - $1"
		passed=$((passed + 1))
	else
		echo "not ok - $1"
		head -n 40 "$work/log" | sed 's/^/# /'
		failed=$((failed + 1))
	fi
}

check() { # NAME COMMAND...
	local name=$1 status=0
	shift
	"$@" >"$work/log" 2>&1 || status=$?
	result "$name" "$status"
}

# ---- blocks of the documentation ----

PAGES=$work/man

# Writes each block to blocks/NUMBER and a line for it: number, kind, name,
# file:line, arguments, with tabs between. Fails if one has no marker.
extract() { # FILE...
	python3 - "$work/blocks" "$PAGES/" "$@" <<'EOT'
import re
import sys
from pathlib import Path

KINDS = {"run", "build", "file", "fragment", "shell", "same", "output"}
MARKER = re.compile(r'^\s*(?:\.\. |<!-- |\.\\" )hamlyn-(\w+)(?::\s*(.*?))?(?: -->)?\s*$')
status = 0


def complain(place, text):
    global status
    print(f"{place}: {text}", file=sys.stderr)
    status = 1


def indent_of(line):
    return len(line) - len(line.lstrip())


def rst(lines, at):
    """After a code-block directive at @at: language, block, where it ends."""
    match = re.match(r"(\s*)\.\. (?:code-block|code|sourcecode)::\s*(\w*)", lines[at])
    if not match:
        return None
    end = at + 1
    while end < len(lines) and (not lines[end].strip() or indent_of(lines[end]) > len(match[1])):
        end += 1
    body = lines[at + 1:end]
    while body and re.match(r"\s+:\w+:", body[0]):      # options
        body.pop(0)
    depth = min((indent_of(line) for line in body if line.strip()), default=0)
    return match[2], [line[depth:] for line in body], end


def markdown(lines, at):
    match = re.match(r"```(\w*)\s*$", lines[at])
    if not match:
        return None
    end = lines.index("```", at + 1)
    return match[1] or "none", lines[at + 1:end], end + 1


def mdoc(lines, at):
    if not lines[at].startswith(".Bd -literal"):
        return None
    end = lines.index(".Ed", at)
    escapes = {r"\e": "\\", r"\&": "", r"\(dq": '"', r"\(aq": "'", r"\-": "-"}
    return "c", [re.sub(r"\\(?:e|&|\(dq|\(aq|-)", lambda m: escapes[m[0]], line)
                 for line in lines[at + 1:end]], end + 1


def section3(lines, at):
    """Definitions need no marker there."""
    block = mdoc(lines, at)
    return block and ("none", *block[1:])


def blocks(path):
    lines = Path(path).read_text().split("\n")
    reader = {".rst": rst, ".md": markdown, ".3": section3}.get(Path(path).suffix, mdoc)
    marker = None
    at = 0
    while at < len(lines):
        place = f"{path}:{at + 1}".removeprefix(shorten)
        found = MARKER.match(lines[at])
        block = None if found else reader(lines, at)
        if found:
            if marker:
                complain(place, "two markers and no block between them")
            if found[1] not in KINDS or (found[1] == "fragment") == bool(found[2]):
                complain(place, "marker is not understood: see selftests/tools/doc-test.sh --help")
            marker = (found[1], *((found[2] or "").split(None, 1) + ["", ""])[:2])
        elif block:
            language, body, at = block
            if marker:
                yield place, *marker, "\n".join(body).strip("\n") + "\n"
            elif language == "c":
                complain(place, "a block of C without a marker: see selftests/tools/doc-test.sh --help")
            marker = None
            continue
        elif marker and lines[at].strip():
            complain(place, "a marker that is not followed by a block")
            marker = None
        at += 1
    if marker:
        complain(path, "a marker at the end")


folder, shorten, files = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
number = 0
names = set()
for path in files:
    for place, kind, name, arguments, text in blocks(path):
        if kind not in ("fragment", "same", "output"):
            if (kind, name) in names:
                complain(place, f"hamlyn-{kind}: {name} is there twice")
            names.add((kind, name))
        if kind == "output" and not names & {("run", name), ("shell", name)}:
            complain(place, f"the output of {name}, which does not run before")
        number += 1
        (folder / str(number)).write_text(text)
        print(number, kind, name or "-", place, arguments, sep="\t")
sys.exit(status)
EOT
}

compiler() { # ARGUMENT...
	# shellcheck disable=SC2046 # several words
	[ "$INSTALLED" = no ] || {
		gcc -O1 -Wall -Wextra -Werror -I"$work/run" $(pkg-config --cflags libhamlyn) "$@"
		return
	}
	gcc -O1 -Wall -Wextra -Werror -I"$TOP/uapi" -I"$TOP/libhamlyn/include" \
		-I"$TOP/libhamlyn/am/include" -I"$work/run" "$@"
}

compile() { # NUMBER NAME
	cp "$work/blocks/$1" "$work/run/$2.c"
	# shellcheck disable=SC2046 # several words
	compiler "$work/run/$2.c" $(libraries) -o "$work/run/$2"
}

libraries() {
	if [ "$INSTALLED" = yes ]; then pkg-config --libs libhamlyn; else echo "$BUILD/libhamlyn.a" -lpthread; fi
}

file() { # NUMBER NAME
	cp "$work/blocks/$1" "$work/run/$2"
	if [[ $2 = *.c ]]; then compiler -fsyntax-only "$work/run/$2"; fi
}

# As if hamlyn were installed, or as it is
installed() { # COMMAND...
	[ "$INSTALLED" = no ] || PATH=$work/run:$PATH HAMLYN_DEVICE=shm:doc-$$ exec "$@"
	PATH=$work/run:$BUILD:$PATH LIBRARY_PATH=$BUILD LD_LIBRARY_PATH=$BUILD \
		CPATH=$TOP/uapi:$TOP/libhamlyn/include:$TOP/libhamlyn/am/include \
		PYTHONPATH=$TOP/libhamlyn/python PYTHONDONTWRITEBYTECODE=1 \
		HAMLYN_DEVICE=shm:doc-$$ exec "$@"
}

# The output is kept for hamlyn-output, errors go to the log
run() { # NAME COMMAND...
	local name=$1 status=0
	shift
	(cd "$work/run" && installed timeout -k 5 "$PATIENCE" "$@") \
		>"$work/run/$name.out" </dev/null || status=$?
	[ "$status" = 0 ] || { echo "exit status $status"; cat "$work/run/$name.out"; }
	return "$status"
}

same_program() { diff -u "$work/run/$2.c" "$work/blocks/$1"; }

same_output() { diff -u --label documented --label printed "$work/blocks/$1" "$work/run/$2.out"; }

do_block() { # NUMBER KIND NAME PLACE ARGUMENTS
	local arguments
	read -ra arguments <<<"$5"
	case $2 in
	file) check "$4: $3 is good" file "$1" "$3" ;;
	build) check "$4: $3 compiles" compile "$1" "$3" ;;
	run)
		check "$4: $3 compiles" compile "$1" "$3"
		check "$4: $3 runs" run "$3" "./$3" "${arguments[@]}"
		;;
	shell) check "$4: $3 runs" run "$3" bash -eu -o pipefail "$work/blocks/$1" ;;
	same) check "$4: $3 is the same" same_program "$1" "$3" ;;
	output) check "$4: $3 prints that" same_output "$1" "$3" ;;
	esac
}

do_blocks() {
	local number kind name place arguments
	while IFS=$'\t' read -r number kind name place arguments; do
		do_block "$number" "$kind" "$name" "$place" "$arguments"
	done < <(awk -F'\t' '$2 != "same"' "$work/list"; awk -F'\t' '$2 == "same"' "$work/list")
}

# Of this run: another one's number may begin with ours
nothing_left() {
	! find /dev/shm -name '*doc-*' | grep -E "doc-$$([^0-9]|\$)"
}

# ---- manual pages ----

NAMES="(h_[a-z]|l?am_|HPAM_|TPPI_|stache_[a-z])\\w*"
VARIABLES="HPAM_self_address
HPAM_partition_size
HPAM_reply_dest
TPPI_num_nodes
TPPI_self_address
TPPI_seg_size"

generate() { # [OPTION]... FOLDER
	libhamlyn/man/gen.py --date 2026-01-01 "$@"
}

quiet() {
	local output status=0
	output=$("$@" 2>&1) || status=$?
	[ -z "$output" ] || printf '%s\n' "$output"
	[ "$status" = 0 ] && [ -z "$output" ]
}

# What the compiler sees, not what the generator sees
public_functions() { # FOLDER
	local header
	for header in "$1"/*.h "$1"/hamlyn/*.h "$1"/stache/*.h; do
		gcc -Iuapi -Ilibhamlyn/include -Ilibhamlyn/tempest/include -Ilibhamlyn/stache/include -I"$BUILD/include" \
			-fsyntax-only -aux-info "$work/aux" -x c "$header"
		grep -F "/* $1/" "$work/aux"
	done | sed -nE "s/^[^;]*[ *(]($NAMES) \\(.*/\\1/p" | sort -u
}

every_function_has_a_page() { # FOLDER MAP
	local functions name symbols status=0
	functions=$(public_functions "$1")
	symbols=$(sed -nE "s/^\\s*($NAMES);$/\\1/p" "$2")
	# Those that are no functions, which the compiler does not tell of
	symbols=$(grep -vxF "$VARIABLES" <<<"$symbols")
	[ "$(wc -l <<<"$functions")" -ge "$(wc -l <<<"$symbols")" ] ||
		{ echo "the compiler tells of fewer functions than are exported"; return 1; }
	for name in $functions $symbols $VARIABLES; do
		grep -qxE "\.Nm $name( ,)?" "$PAGES/man3/$name.3" 2>/dev/null && continue
		echo "$name has no page"
		status=1
	done
	return "$status"
}

# References to pages of ours; those of the system may not be installed
references_lead_somewhere() {
	local page name section status=0
	local ours='(h_|l?am_|HPAM_|handler_|gam|hpam|hamlyn|libhamlyn)[A-Za-z0-9_-]*'
	while read -r page name section; do
		[ -e "$PAGES/man$section/$name.$section" ] || compgen -G "tools/*/$name.$section" >/dev/null || {
			echo "$page: there is no $name($section)"
			status=1
		}
	done < <(grep -HoE "^\.(It )?Xr $ours [1-8]" "$PAGES"/man*/* |
		sed -E "s|^$PAGES/man./([^:]*):\.(It )?Xr|\1|" | sort -u)
	return "$status"
}

# A copy of the headers with a mistake must be refused, and the place be told
refused() { # EXPECTED-MESSAGE SED-SCRIPT FILE
	rm -rf "$work/broken"
	mkdir "$work/broken"
	cp -r libhamlyn/include "$work/broken/include"
	cp -r libhamlyn/am/include "$work/broken/am"
	cp libhamlyn/libhamlyn.map libhamlyn/am/libhamlyn-am.map "$work/broken/"
	sed -i -E "$2" "$work/broken/$3"
	if generate --include "$work/broken/include" --map "$work/broken/libhamlyn.map" \
		--am-include "$work/broken/am" --am-map "$work/broken/libhamlyn-am.map" "$work/none"; then
		echo "was not refused"
		return 1
	fi 2>"$work/error"
	grep -E "broken/$3:[0-9]+: .*$1" "$work/error" || { cat "$work/error"; return 1; }
}

# In how many sources is each called, those in which it is called most often first?
most_called() {
	find tools libhamlyn/examples selftests -name '*.[ch]' -exec sh -c '
		for file; do grep -ohE "\bh_[a-z][a-z0-9_]*\(" "$file" | sort -u; done' sh {} + |
		tr -d '(' | sort | uniq -c | sort -k1,1nr -k2 | awk '{ print $2 }' |
		grep -xF "$(public_functions libhamlyn/include)"
}

most_called_have_examples() {
	local name names status=0
	mapfile -t names < <(most_called | sed -n "1,${EXAMPLES}p")
	[ ${#names[@]} = "$EXAMPLES" ] || { echo "there are only ${#names[@]}"; return 1; }
	for name in "${names[@]}"; do
		grep -qxF '.Sh EXAMPLES' "$PAGES/man3/$name.3" && continue
		echo "$name() is among the $EXAMPLES most used calls and has no example"
		status=1
	done
	return "$status"
}

# A copy of the examples with a mistake
example_refused() { # EXPECTED-MESSAGE SED-SCRIPT
	rm -rf "$work/examples"
	cp -r libhamlyn/man/examples "$work/examples"
	sed -i -E "$2" "$work/examples/device.c"
	if generate --examples "$work/examples" "$work/none" 2>"$work/error"; then
		echo "was not refused"
		return 1
	fi
	grep -E "examples/device.c:[0-9]+: .*$1" "$work/error" || { cat "$work/error"; return 1; }
}

# One that does not compile, one that prints something else, and a page that has it otherwise
broken_example_fails() {
	local number kind name place arguments bad=0
	rm -rf "$work/examples"
	cp -r libhamlyn/man/examples "$work/examples"
	sed -i 's/h_open(NULL, &dev)/h_open(\&dev)/' "$work/examples/message.c"
	sed -i 's/\* embedded device,/* kernel device,/' "$work/examples/device.c"
	generate --examples "$work/examples" "$work/broken-man" || return
	sed -i 's/no device/none/' "$work/broken-man/man3/h_close.3"
	extract "$work"/broken-man/man3/h_{area_alloc,area_addr,open,explain,close}.3 \
		>"$work/broken-list" || return
	while IFS=$'\t' read -r number kind name place arguments; do
		bad=$((bad + $(do_block "$number" "$kind" "$name" "$place" "$arguments" | grep -c '^not ok')))
	done <"$work/broken-list"
	[ "$bad" = 3 ] || { echo "$bad were seen"; return 1; }
}

check_manual() {
	check "they are well-formed" quiet mandoc -Tlint -Wwarning "$PAGES"/man*/*
	check "every function has a page" every_function_has_a_page libhamlyn/include \
		libhamlyn/libhamlyn.map
	check "every function of Active Messages has a page" every_function_has_a_page \
		libhamlyn/am/include libhamlyn/am/libhamlyn-am.map
	check "every function of Tempest has a page" every_function_has_a_page \
		libhamlyn/tempest/include libhamlyn/tempest/libhamlyn-tempest.map
	check "every function of Stache has a page" every_function_has_a_page \
		libhamlyn/stache/include libhamlyn/stache/libhamlyn-stache.map
	check "every reference leads to a page" references_lead_somewhere
	check "a broken example on a page fails" broken_example_fails
	check "the $EXAMPLES most used calls have an example" most_called_have_examples
	check "an example of a call that is not there is refused" \
		example_refused 'h_nothing\(\) is named' 's/^ \* h_open,/ * h_nothing,/'
	check "an example that does not say what it prints is refused" \
		example_refused 'must be: comment' 's/ It prints:/ It runs:/'
	check "two examples of one call are refused" \
		example_refused 'has an example already' \
		's/^ \* h_open,/ * h_manager_alloc,/'
	check "a public function without kernel-doc is refused" \
		refused 'h_close\(\) is public and has no kernel-doc' \
		'/^int h_open/,/^void h_close/s|^/\*\*$|/*|' include/hamlyn.h
	check "a title that is not understood is refused" \
		refused 'kernel-doc is not understood' 's/^( \* h_close\(\)) - /\1: /' include/hamlyn.h
	check "an argument that is not described is refused" \
		refused 'h_query: "@query" is not described' '/^ \* @query: /d' include/hamlyn.h
	check "an argument that is not there is refused" \
		refused '"@nothing" is described but not there' 's/^( \* @query: .*)/\1\n * @nothing: x/' include/hamlyn.h
	check "a missing Return is refused" \
		refused 'h_cork\(\): what it returns is not described' \
		's/^(static inline) void h_cork/\1 int h_cork/' include/hamlyn.h
	check "a reference to a function that is not there is refused" \
		refused 'h_nothing\(\) is mentioned' 's/h_area_alloc\(\)\./h_nothing()./' include/hamlyn.h
	check "an exported symbol without a page is refused" \
		refused 'h_nothing is exported and has no page' 's/^(\s*)h_open;/\1h_nothing;/' libhamlyn.map
	check "the same of libhamlyn-am" refused 'am_nothing is exported and has no page' \
		's/^(\s*)am_poll;/\1am_nothing;/' libhamlyn-am.map
	check "a function after a family that is not of it is refused" \
		refused 'am_request_x\(\) is public and has no kernel-doc' \
		's/^int am_request_5/int am_request_x/' am/gam.h
	check "words of a family that are not described are refused" \
		refused '"@arg0" of am_reply_5 is not described' \
		'/am_reply_0\(\) -/,/ \*\// s/@arg0 to @arg4/They/' am/gam.h
	check "a variable without kernel-doc is refused" \
		refused 'HPAM_reply_dest is public and has no kernel-doc' \
		's/, HPAM_reply_dest - / - /;/^ \* @HPAM_reply_dest: /d' am/hpam.h
	check "a variable that is not declared is refused" \
		refused 'HPAM_none is described but not declared' \
		's/, HPAM_reply_dest - /, HPAM_none - /' am/hpam.h
	check "a reference to a variable that is not there is refused" \
		refused 'HPAM_nobody is mentioned' 's/but HPAM_reply_dest is/but HPAM_nobody is/' am/hpam.h
}

has_calls() {
	local page missing=0
	for page in "$BUILD"/man/man3/*.3; do
		page=man/${page##*/}.html
		grep -qF "$page" "$BUILD/html/calls.html" && [ -s "$BUILD/html/$page" ] && continue
		echo "$page"
		missing=1
	done
	return "$missing"
}

result_line() {
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" = 0 ]
}

# A page has one file, and a link for each other name
unpack_installed() {
	dpkg -L libhamlyn-dev | grep -E '^/usr/share/man/man[37]/' | python3 -c '
import gzip, sys
from pathlib import Path
for page in map(Path, sys.stdin.read().split()):
    if page.suffix == ".gz" and not page.is_symlink():
        (Path(sys.argv[1]) / page.parent.name / page.stem).write_bytes(gzip.open(page).read())' "$PAGES"
}

check_installed() {
	local documents=(/usr/share/doc/hamlyn-doc/README.md /usr/share/doc/hamlyn-doc/*.rst) extracted=0
	mkdir -p "$PAGES/man7" "$PAGES/man3"
	check "the manual is there" unpack_installed
	documents+=("$PAGES"/man7/* "$PAGES"/man3/*)
	extract "${documents[@]}" >"$work/list" 2>"$work/log" || extracted=$?
	result "every block of code says what it is" "$extracted"
	check "there are programs" [ "$(cut -f 2 "$work/list" | grep -cx run)" -gt 20 ]
	do_blocks
	check "nothing is left in /dev/shm" nothing_left
}

# ---- all of it ----

shopt -s nullglob
skipped=0
if [ "$INSTALLED" = yes ]; then
	check_installed
	result_line
	exit
fi
generated=0
generate "$PAGES" 2>"$work/generated" || generated=$?
documents=(README.md Documentation/*.rst libhamlyn/man/*.[1-8])
# Its own page, not that of another name of it
for page in "$PAGES"/man3/*.3; do [ -L "$page" ] || documents+=("$page"); done
extracted=0
extract "${documents[@]}" >"$work/list" 2>"$work/log" || extracted=$?
if [ "$LIST" = yes ]; then
	cut -f 2- "$work/list"
	cat "$work/log" >&2
	exit "$extracted"
fi
result "every block of code says what it is" "$extracted"
mv "$work/generated" "$work/log"
result "the manual pages are generated" "$generated"
check "the libraries build" make --no-print-directory -s "BUILD=$BUILD" lib tempest stache \
	"$BUILD/libhamlyn-am.so" "$BUILD/hamlyn-run"
BUILD=$(realpath "$BUILD")
do_blocks
check "nothing is left in /dev/shm" nothing_left
check_manual
# "make html" installs it; "make check" does not
if command -v sphinx-build >/dev/null && command -v dot >/dev/null; then
	check "the site is made without a warning" \
		make --no-print-directory -s "BUILD=$BUILD" html
	check "and has a page for each call" has_calls
else
	echo "ok - the site is made without a warning # SKIP sphinx is not installed"
	skipped=1
fi

result_line
