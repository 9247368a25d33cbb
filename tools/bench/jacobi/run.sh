#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Jacobi's method on two nodes: each system and each shape several times, in turns; prints the
# medians in microseconds per step.
set -u

case ${1:-} in
'' | -h | --help)
	echo "Usage: tools/bench/jacobi/run.sh BUILD-FOLDER [TIMES]   (default: 7)"
	exit 0
	;;
esac
build=$1
times=${2:-7}

list=$(mktemp) || exit 2
trap 'rm -f "$list"' EXIT
trap 'exit 130' INT TERM

i=0
while [ "$i" -lt "$times" ]; do
	for shape in aligned columns plates turns; do
		# Without checks each access to a page of several blocks traps: minutes
		for system in stache $([ $shape != aligned ] || echo stache-plain) pages messages; do
			line=$("$build/hamlyn-run" -n 2 --timeout 300 \
				"$build/jacobi/jacobi-$system" "$shape" </dev/null) || exit 1
			echo "$line" | sed "s/^[a-z]*/$system/" >>"$list"
		done
	done
	i=$((i + 1))
done
sort -k1,2 -k3n "$list" | awk '
	{ key = $1 " " $2; if (key != last) { n = 0; last = key }; value[key, ++n] = $3; count[key] = n }
	END { for (key in count) printf "%-22s %8.1f\n", key, value[key, int((count[key] + 1) / 2)] }
' | sort -k2,2 -k3n
