#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The catalogue of attacks, Documentation/threat-model.rst, and what it names:
# functions, tests and mutations must exist.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
	cat <<'EOT'
Usage: selftests/threat.sh [--check]

Without an option: how many attacks, tests and mutations the catalogue names.
  --check   see that all of them exist, that the tests are run, that no mutation is
            missing in it, and that its tables have five columns; ends with "N passed, N failed"
EOT
}

CATALOGUE=Documentation/threat-model.rst

# attack|adversary|check|test|mutation, without blanks around them
rows() {
	sed -n 's/^   \(.*|.*|.*|.*|.*\)$/\1/p' "$CATALOGUE" | sed 's/ *| */|/g'
}

# One a line: what is in a column, at commas.
column() { # NUMBER
	rows | cut -d'|' -f"$1" | sed 's/, */\n/g' | grep -v '^-$' | sort -u
}

MUTATIONS=$(selftests/mutate.sh --list | cut -d' ' -f1 | sort)

# The programs that the Makefile runs, one a line
programs() {
	local list
	for list in TESTS_BOTH TESTS_SHM TESTS_KERNEL TESTS_DEBUG UNITS; do
		make --no-print-directory -s "print-$list"
	done | tr ' ' '\n' | sed 's|.*/||' | sort
}

SOURCES=$(find selftests/{kernel,low,upper,embedded} -name '*.c')
source_of() { # PROGRAM
	grep -e "/$1\.c$" <<<"$SOURCES"
}

PROGRAMS=
program_is_run() { # PROGRAM
	[ -n "$PROGRAMS" ] || PROGRAMS=$(programs)
	grep -qxF -e "$1" <<<"$PROGRAMS"
}

# Names of its tests, of which some have variables in them
of_hamlynctl_test() { # NAME
	# shellcheck disable=SC2016 # the $ is the other script's
	local pattern variable='\$(\{[^}]*\}|[a-z_]+)'
	while IFS= read -r pattern; do
		# shellcheck disable=SC2053 # a pattern is what it is to be
		[[ $1 != $pattern ]] || return 0
	done < <(sed -nE 's/^\s*(check|prints|lacks|json|refuses) "([^"]*)".*/\2/p' \
		selftests/tools/hamlynctl-test.sh | sed -E "s/$variable/*/g")
	return 1
}

# "program: test" of program.c in its folder, or of selftests/unit/unit_*.c
test_exists() { # TEST
	local program=${1%%: *} name=${1#*: }
	[[ $1 == *": "* ]] || return 1
	case $program in
	hamlynctl-test) of_hamlynctl_test "$name" ;;
	unit_*) program_is_run "$program" && grep -qE "TEST\($name\)" "selftests/unit/$program.c" ;;
	*) program_is_run "$program" &&
		grep -qE "^TEST(_F(_TIMEOUT)?)?\\(([a-z_]+, )?$name(, [0-9]+)?\\)" "$(source_of "$program")" ;;
	esac
}

# "LINE: good", or what is wrong with the table that begins there
tables() {
	awk '
		function told() {
			if (table)
				print table ": " (fault ? fault : "good")
			table = 0
		}
		/^\.\. csv-table::/ { told(); table = NR; fault = "no \":delim: |\""; next }
		!table { next }
		/^[^ ]/ { told(); next }
		/^   :delim: \|$/ { fault = ""; next }
		/^   :/ || NF == 0 { next }
		!/^   [^ ]/ || gsub(/\|/, "|") != 4 { fault = fault " not five columns in line " NR }
		END { told() }' "$CATALOGUE"
}

table_is_good() { # LINE: WHAT
	[ "${1#*: }" = good ]
}

# "file: function", or what is not ours
function_exists() { # CHECK
	[ "$1" != "the kernel's own" ] || return 0
	[ -f "${1%%: *}" ] && grep -qw "${1#*: }" "${1%%: *}"
}

mutation_exists() { # NAME
	grep -qxF -e "$1" <<<"$MUTATIONS"
}

NAMED=$(column 5)

# Those of Active Messages are about a protocol between processes that trust each other
mutation_is_named() { # NAME
	[ "${1#am-}" != "$1" ] || grep -qxF -e "$1" <<<"$NAMED"
}

passed=0
failed=0

all() { # WHAT PREDICATE: names come from the standard input
	local name bad=0 good=0
	while IFS= read -r name; do
		if "$2" "$name"; then
			good=$((good + 1))
		else
			echo "# $1: $name"
			bad=$((bad + 1))
		fi
	done
	if [ "$bad" = 0 ] && [ "$good" != 0 ]; then
		echo "ok - $1: $good"
		passed=$((passed + 1))
	else
		echo "not ok - $1: $bad of $((good + bad)) do not"
		failed=$((failed + 1))
	fi
}

check() {
	all "tables have five columns" table_is_good < <(tables)
	all "functions exist" function_exists < <(column 3)
	all "tests exist" test_exists < <(column 4)
	all "mutations exist" mutation_exists < <(column 5)
	all "mutations are in the catalogue" mutation_is_named <<<"$MUTATIONS"
	echo "$passed passed, $failed failed"
	[ "$failed" = 0 ]
}

case ${1:-} in
-h | --help) usage ;;
--check) check ;;
'')
	echo "attacks    $(rows | wc -l)"
	echo "functions  $(column 3 | wc -l)"
	echo "tests      $(column 4 | wc -l)"
	echo "mutations  $(column 5 | wc -l), $(wc -l <<<"$MUTATIONS") in mutate.sh"
	echo "without a mutation  $(rows | grep -c '|-$')"
	;;
*) usage >&2; exit 2 ;;
esac
