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
  --check   see that all of them exist, and that no mutation is missing in it;
            ends with "N passed, N failed"
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

mutations() { selftests/mutate.sh --list | cut -d' ' -f1 | sort; }

# "program: test" of selftests/program.c, or of selftests/unit/unit_*.c
test_exists() { # TEST
	local program=${1%%: *} name=${1#*: }
	case $program in
	hamlynctl-test) return 0 ;;
	unit_*) grep -qE "TEST\($name\)" "selftests/unit/$program.c" ;;
	*) grep -qE "^TEST(_F)?\(([a-z_]+, )?$name\)" "selftests/$program.c" ;;
	esac
}

# "file: function", or what is not ours
function_exists() { # CHECK
	[ "$1" != "the kernel's own" ] || return 0
	[ -f "${1%%: *}" ] && grep -qw "${1#*: }" "${1%%: *}"
}

mutation_exists() { # NAME
	mutations | grep -qxF "$1"
}

# Those of Active Messages are about a protocol between processes that trust each other
mutation_is_named() { # NAME
	[ "${1#am-}" != "$1" ] || column 5 | grep -qxF "$1"
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
	all "functions exist" function_exists < <(column 3)
	all "tests exist" test_exists < <(column 4)
	all "mutations exist" mutation_exists < <(column 5)
	all "mutations are in the catalogue" mutation_is_named < <(mutations)
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
	echo "mutations  $(column 5 | wc -l), $(mutations | wc -l) in mutate.sh"
	echo "without a mutation  $(rows | grep -c '|-$')"
	;;
*) usage >&2; exit 2 ;;
esac
