#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Documentation/barriers.rst, checked by herd7 against the kernel's memory model: with its
# barriers none of the tests can go wrong, and without any one of them it does. See README.md.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 2
ME=selftests/litmus/check.sh
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. ../lib/lib.sh

usage() {
	cat <<-END
		Usage: selftests/litmus/check.sh [WORD]

		Checks all litmus tests, or those whose name has WORD in it, and each again with
		every barrier that it marks taken away. Needs what "selftests/setup.sh herd" puts
		into the cache (\$HAMLYN_CACHE, else .cache).
		Exit status: 0 if all are as they should be, 1 if not, 2 if it could not run.
	END
}

only_help "$@"
only=${1:-}
SECONDS_ALL=120		# for all of herd7; it needs 2
TOP=$(cd ../.. && pwd)
CACHE=$(realpath -m "${HAMLYN_CACHE:-$TOP/.cache}")
USR=$CACHE/herd/usr
MODEL=$CACHE/memory-model/tools/memory-model

[ "$(uname -m)" = x86_64 ] || die "herd7 of the cache is for x86_64, this machine is $(uname -m)"
for part in herd memory-model; do
	[ -e "$CACHE/$part/stamp" ] ||
		die "$part is not in the cache $CACHE; run: selftests/setup.sh herd"
done

work_folder litmus

# variants FILE: the test, and for each marked line one where what the mark says has taken
# its place. Prints: name of the variant, what is expected, what was taken away.
variants() {
	local name=${1%.litmus}
	awk -v name="$name" -v dir="$work" '
		function put(n, expect, what, replaced,    i, file) {
			file = dir "/" name (n ? "+" n : "") ".litmus"
			for (i = 1; i <= NR; i++)
				print i == 1 ? "C " name (n ? "+" n : "") : i == n ? replaced : line[i] > file
			close(file)
			print name (n ? "+" n : "") "\t" expect "\t" what
		}
		{ line[NR] = $0 }
		/Expected: Sometimes/ { base = "Sometimes" }
		END {
			put(0, base ? base : "Never", "")
			for (n = 1; n <= NR; n++) {
				if (!match(line[n], /[ \t]*\/\/ (weak|spare):/))
					continue
				what = substr(line[n], 1, RSTART - 1)
				sub(/^[ \t]+/, "", what)
				mark = substr(line[n], RSTART, RLENGTH)
				put(n, mark ~ /weak/ ? "Sometimes" : "Never", what, \
				    "\t" substr(line[n], RSTART + RLENGTH))
			}
		}' "$1"
}

# All in one run: most of the time would go into starting
herd7() {
	(cd "$MODEL" && find "$work" -name '*.litmus' -print0 | sort -z | timeout "$SECONDS_ALL" \
		xargs -0 "$USR/lib64/ld-linux-x86-64.so.2" --library-path "$USR/lib/x86_64-linux-gnu" \
		"$USR/bin/herd7" -set-libdir "$USR/share/herdtools7/herd" -conf linux-kernel.cfg) \
		>"$work/out" 2>"$work/err"
}

# judge NAME EXPECTED WITHOUT
judge() {
	local said text=$1
	case $2,$3 in
	*,) ;;
	Sometimes,*) text="found: ${1%+*} without: $3" ;;
	Never,*) text="${1%+*} does without: $3" ;;
	esac
	said=$(awk -v name="$1" '$1 == "Observation" && $2 == name { print $3 }' "$work/out")
	if [ "$said" = "$2" ]; then
		good "$text"
	else
		bad "$text" "herd7 says \"${said:-nothing}\", not \"$2\" $(grep -F "$1.litmus" "$work/err" | head -n 1)"
	fi
}

# Between the paper and the code: every number has a test, and whoever is named exists
same_numbers() {
	local documented tested cited
	documented=$(sed -nE 's/^B([0-9]+) -- .*/\1/p' "$TOP/Documentation/barriers.rst" | sort -nu | paste -sd' ')
	tested=$(printf '%s\n' B*.litmus | sed -nE 's/^B0*([0-9]+)-.*/\1/p' | sort -nu | paste -sd' ')
	cited=$(grep -rhoE '\bB[0-9]+\b' --include='*.[ch]' "$TOP/driver" "$TOP/libhamlyn/src" "$TOP/libhamlyn/include" "$TOP/tools/hamlyn-bridge" |
		tr -d B | sort -nu | paste -sd' ')
	if [ "$documented" = "$tested" ] && [ "$documented" = "$cited" ] && [ -n "$tested" ]; then
		good "every barrier of barriers.rst is in the code, and has a test"
	else
		bad "every barrier of barriers.rst is in the code, and has a test" \
			"documented: $documented; tested: $tested; in the code: $cited"
	fi
}

same_names() {
	local name missing=""
	while read -r name; do
		grep -rqw --include='*.[ch]' "$name" "$TOP/driver" "$TOP/libhamlyn" "$TOP/tools/hamlyn-bridge" || missing+=" $name()"
	done < <(sed -n '/^(\*/,/^ \*)/p' ./*.litmus | grep -oE '\b[a-z_0-9]+\(' | tr -d '(' | sort -u)
	if [ -z "$missing" ]; then
		good "every function that a test names exists"
	else
		bad "every function that a test names exists" "not found:$missing"
	fi
}

for file in *.litmus; do
	[[ $file == *"$only"* ]] && variants "$file"
done >"$work/wanted"
[ -s "$work/wanted" ] || die "no test has \"$only\" in its name"
herd7
while IFS=$'\t' read -r name expected without; do
	judge "$name" "$expected" "$without"
done <"$work/wanted"
if [ -z "$only" ]; then
	same_numbers
	same_names
fi

total
