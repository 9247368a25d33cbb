#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Makes Documentation/conformance.rst from the names of the conformance tests.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
	cat <<'EOT'
Usage: selftests/conformance.sh [--check]

Writes Documentation/conformance.rst; with --check, compares it instead.

Every TEST of conformance*.c, in whichever folder of selftests/, is a row. Its name begins with its section
of the paper, h2_5_, or with beyond_; the one-line comment directly above it is
the row's text. Where it runs is in the Makefile's lists of tests. Texts of SKIP
that begin with "kernel: ", "embedded: " or "tcp: " tell why, or when, it does not. In a
program for the kernel device only, a comment "embedded: REASON" holds for the
tests behind it. A comment that begins with a section, "H 3.3: ", says more than the name.
Any other TEST is a row as well if it has such a comment directly above it. Scripts conformance_*.sh that run in the guest have
lines "# ROW name: text", and "# embedded: REASON" in front of them. Between two hosts
a row runs if its program is in the list of over_tcp.c.

Tests of Active Messages, selftests/am, have such comments above a check() or, in a
script, above the command that has the test's name. There may be several of them: each is
a row. What is not kept is said by a comment "not kept: REASON" after it; the test
is then of what there is instead. "kernel: " and "embedded: " after it are for these columns. P is the paper on HPAM, L on HP-LAM.
EOT
}

OUT=Documentation/conformance.rst

die() {
	echo "conformance.sh: $*" >&2
	exit 1
}

# programs LIST: names of the conformance programs in a list of the Makefile
programs() {
	local word
	for word in $(make --no-print-directory -s "print-$1"); do
		word=${word##*/}
		[[ $word != conformance* ]] || echo "$word"
	done
}

# Between two hosts: "yes" if over_tcp runs all of the program, else "-", as awk takes it
over_tcp() { # PROGRAM
	if grep -q "^	{ \"$1\" }," selftests/kernel/fabric/over_tcp.c; then echo yes; else printf '%s\n' '\\-'; fi
}

# rows_of FILE KERNEL EMBEDDED: lines "section|text|program: test|kernel|embedded|tcp"
rows_of() {
	local program
	program=$(basename "${1%.*}")
	awk -v program="$program" -v kernel="$2" -v embedded="$3" -v tcp="$(over_tcp "$program")" '
	function fail(what) {
		print FILENAME ":" FNR ": " what > "/dev/stderr"
		failed = 1
		exit 1
	}
	function flush() {
		if (name == "")
			return
		section = section_of(name)
		if (match(text, /^([HLP] [0-9.]+|SP AM): /)) {
			section = substr(text, 1, RLENGTH - 2)
			text = substr(text, RLENGTH + 1)
		}
		print section "|" text "|" program ": " name "|" on_kernel "|" on_embedded "|" \
			over_tcp
		name = ""
	}
	function section_of(n,	part) {
		if (n ~ /^beyond_/)
			return "beyond"
		if (n !~ /^h[0-9]_[0-9]_/)
			fail(n ": begins with no section, and not with beyond_")
		split(substr(n, 2), part, "_")
		return "H " part[1] "." part[2]
	}
	function begin(n, t) {
		flush()
		if (t == "")
			fail(n ": no one-line comment directly above it")
		if (n in seen)
			fail(n ": there are two of that name")
		seen[n] = 1
		name = n
		text = t
		on_kernel = kernel
		over_tcp = tcp
		on_embedded = embedded == "no" && reason != "" ? "no: " reason : embedded
		if (on_embedded == "no")
			fail(n ": why not on the embedded device?")
	}
	/^#define [A-Z_]+[ \t]+"(kernel|embedded|tcp): / {
		value = $0
		sub(/^[^"]*"/, "", value)
		sub(/".*/, "", value)
		macros[$2] = value
	}
	/^(\/\*|#) embedded: / {
		reason = $0
		sub(/^(\/\*|#) embedded: /, "", reason)
		sub(/ \*\/$/, "", reason)
	}
	/^# ROW [a-z0-9_]+: / {
		line = $0
		sub(/^# ROW [a-z0-9_]+: /, "", line)
		sub(/:$/, "", $3)
		begin($3, line)
	}
	/^TEST(_F)?\(/ {
		line = $0
		sub(/^TEST(_F)?\(([a-z_]+, *)?/, "", line)
		sub(/\).*/, "", line)
		begin(line, comment)
	}
	/SKIP\(return, / {
		line = $0
		sub(/.*SKIP\(return, "?/, "", line)
		sub(/"?\);.*/, "", line)
		if (line in macros)
			line = macros[line]
		if (line ~ /^kernel: /)
			on_kernel = substr(line, 9)
		else if (line ~ /^embedded: /)
			on_embedded = "no: " substr(line, 11)
		else if (line ~ /^tcp: /)
			over_tcp = tcp == "yes" ? "no: " substr(line, 6) : tcp
		else
			fail("SKIP for no device")
	}
	{
		comment = ""
		if ($0 ~ /^\/\* .* \*\/$/) {
			comment = $0
			sub(/^\/\* /, "", comment)
			sub(/ \*\/$/, "", comment)
		}
	}
	END {
		if (!failed)
			flush()
	}' "$1"
}

# tagged FILE KERNEL EMBEDDED: the same of the tests of another program that have a tag
tagged() {
	local program
	program=$(basename "${1%.*}")
	awk -v program="$program" -v kernel="$2" -v embedded="$3" -v tcp="$(over_tcp "$program")" '
	function fail(what) {
		print FILENAME ":" FNR ": " what > "/dev/stderr"
		exit 1
	}
	# The first string of a script, the last one of C, and of what is told of a run before
	function string(s, first,	part, n) {
		n = split(s, part, "\"")
		return part[first ? 2 : n - 1]
	}
	function name_of(s) {
		if (s ~ /^TEST(_F)?\(/) {
			sub(/^TEST(_F)?\(([a-z_]+, *)?/, "", s)
			sub(/\).*/, "", s)
			return s
		}
		return string(s, s ~ /^(check|tests_of) /)
	}
	function begins(s) { return s ~ /^(TEST(_F)?\(|check\(|(check|tests_of|says) )/ }
	function ends(s) { return s ~ /^TEST/ || (s ~ /^check\(/ ? s ~ /;$/ : s !~ /\\$/) }
	{
		line = $0
		sub(/^[ \t]+/, "", line)
		comment = line
		if (!sub(/^# /, "", comment) && !(sub(/^\/\* /, "", comment) && sub(/ \*\/$/, "", comment)))
			comment = ""
	}
	test == "" && match(comment, /^([HLP] [0-9]+(\.[0-9]+)*|SP AM): /) {
		section[++tags] = substr(comment, 1, RLENGTH - 2)
		text[tags] = substr(comment, RLENGTH + 1)
		next
	}
	tags && test == "" && sub(/^not kept: /, "", comment) {
		text[tags] = text[tags] " Not kept: " comment "."
		next
	}
	tags && test == "" && sub(/^kernel: /, "", comment) {
		on_kernel = comment
		next
	}
	tags && test == "" && sub(/^embedded: /, "", comment) {
		on_embedded = "no: " comment
		next
	}
	tags {
		if (test == "" && !begins(line))
			fail("a tag is directly above its test")
		test = test line
		if (!ends(test))
			next
		name = name_of(test)
		if (name == "" || name ~ /[$%|]/)
			fail("a test with a tag has a name that stays the same")
		for (i = 1; i <= tags; i++)
			print section[i] "|" text[i] "|" program ": " name "|" \
				(on_kernel ? on_kernel : kernel) "|" \
				(on_embedded ? on_embedded : embedded) "|" tcp
		tags = 0
		test = on_kernel = on_embedded = ""
	}' "$1"
}

# others LIST: the programs of a list whose tests are rows by tags only
others() {
	local word
	for word in $(make --no-print-directory -s "print-$1"); do
		word=${word##*/}
		[[ $word == conformance* ]] || echo "$word"
	done
}

source_of() { # PROGRAM
	find selftests/{kernel,low,upper,embedded} -name "$1.c"
}

all_rows() {
	local program file
	for program in $(programs TESTS_BOTH); do
		rows_of "$(source_of "$program")" yes yes || return 1
	done
	for program in $(programs TESTS_KERNEL); do
		rows_of "$(source_of "$program")" yes no || return 1
	done
	for program in $(programs TESTS_SHM); do
		rows_of "$(source_of "$program")" "no" yes || return 1
	done
	for program in $(others TESTS_BOTH); do
		tagged "$(source_of "$program")" yes yes || return 1
	done
	for program in $(others TESTS_SHM); do
		tagged "$(source_of "$program")" "no" yes || return 1
	done
	for file in selftests/am/*.c selftests/am/*-test.sh; do
		tagged "$file" yes yes || return 1
	done
	for file in selftests/kernel/conformance_*.sh; do
		[ ! -e "$file" ] || rows_of "$file" yes no || return 1
	done
}

page() {
	local rows total
	rows=$(all_rows) || return 1
	[ -n "$rows" ] || die "there are no tests"
	total=$(wc -l <<<"$rows")
	cat <<EOT
.. SPDX-License-Identifier: GPL-2.0-only
.. Made by selftests/conformance.sh. Do not edit.

===========
Conformance
===========

What the papers promise that a program can observe, and what there is beyond it: H is the paper on
Hamlyn, sections 2, 3 and 6; P that on HPAM, 4 to 6; L that on HP-LAM, 3; SP AM is what SP AM says of
sending and receiving. P 5.1 and 6.2 are about hardware. $total rows, and for each of them a test of that name; where a promise is not kept
the row says so and why, and the test is of what there is instead. \`\`make check\`\` runs them on
both devices, and those of the last column again between two hosts, whose NICs TCP joins
(\`\`over_tcp\`\`; "-": not among them). "With ..." names the module's parameters that a row needs; without
them its test is skipped.

.. list-table::
   :header-rows: 1
   :widths: 40 8 26 9 9 8

   * - row
     - paper
     - test
     - kernel device
     - embedded device
     - over TCP
EOT
	# Capital H sorts before small b: the paper first.
	LC_ALL=C sort -s -t'|' -k1,1 <<<"$rows" |
		awk -F'|' '{
			printf "   * - %s\n     - %s\n     - ``%s``\n     - %s\n     - %s\n     - %s\n",
				$2, $1, $3, $4, $5, $6
		}'
}

main() {
	local text
	case ${1:-} in
	-h | --help) usage && return ;;
	"" | --check) ;;
	*) usage >&2 && exit 2 ;;
	esac
	text=$(page)
	if [ "${1:-}" = --check ]; then
		diff -u "$OUT" - <<<"$text" || die "$OUT is out of date; run selftests/conformance.sh"
	else
		printf '%s\n' "$text" >"$OUT"
	fi
}

main "$@"
