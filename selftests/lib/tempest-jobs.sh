# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154 # work and BUILD are the caller's
#
# What is tried with Tempest under each launcher. Sourced, after lib.sh.

TEMPEST_NODES=64 # there is a time of each in a file of beats, and one of the death
TEMPEST_PATIENCE=$((100 * ${HAMLYN_TEST_SCALE:-1})) # seconds; a bound, no measure

# Static programs cannot load libpmix: nodes, linked anew, and an example with the shared library.
tempest_link() {
	"${CC:-cc}" -D_GNU_SOURCE -DTEMPEST_TEST_CONTROLS -Iuapi -Ilibhamlyn/include -Ilibhamlyn/am \
		-Ilibhamlyn/tempest/src -Ilibhamlyn/tempest/include -Iselftests/lib -I"$BUILD/include" \
		-O2 -fno-pie -no-pie selftests/tempest/{nodes,test}.c selftests/tempest/checked.S \
		selftests/lib/tempest/check.c "$BUILD"/obj/tempest-test/*/*.o \
		"$BUILD"/obj/am/{boot*,address,error}.o "$BUILD/libhamlyn.a" -ldl -lpthread \
		-o "$work/nodes" &&
		"${CC:-cc}" -Ilibhamlyn/tempest/include -I"$BUILD/include" -O2 -fno-pie -no-pie \
			libhamlyn/tempest/examples/migrate.c -L"$BUILD" -Wl,--no-as-needed,-rpath,"$BUILD" \
			-lhamlyn-tempest -lhamlyn -lpthread -o "$work/migrate"
}

tempest_run() { # COMMAND...
	timeout -k 5 "$TEMPEST_PATIENCE" "$@" >"$work/out" 2>"$work/err" </dev/null
}

tempest_example() { # NUMBER COMMAND...
	local number=$1
	shift
	tempest_run "$@" && [ "$(cat "$work/out")" = "$((1000 * number)) counts by $number nodes" ]
}

# All end, not well and not by our patience. Of what is killed the status may be that of timeout's.
tempest_ends() { # COMMAND...
	local status=0 began=$SECONDS
	tempest_run "$@" || status=$?
	[ "$status" != 0 ] && [ "$status" != 124 ] && [ $((SECONDS - began)) -lt "$TEMPEST_PATIENCE" ]
}

# The last of them does, the others are seen no more soon after, and it took so long.
tempest_dies() { # COMMAND...
	head -c $((8 * (TEMPEST_NODES + 1))) /dev/zero >"$work/beats"
	export HAMLYN_TEST_BEATS=$work/beats
	tempest_ends "$@" || return 1
	unset HAMLYN_TEST_BEATS
	od -An -v -t d8 -w8 "$work/beats" | awk -v dead=$((TEMPEST_NODES + 1)) '
		NR < dead && $1 > last { last = $1 }
		NR == dead { died = $1 }
		END { if (!died || !last) exit 1; printf "%.0f\n", (last - died) / 1e6 }' >"$work/took"
}

# Somebody says which one it was: a node, or the launcher.
tempest_dies_by_name() { # NUMBER COMMAND...
	local last=$(($1 - 1))
	shift
	tempest_dies "$@" &&
		grep -qE "node $last is gone|rank $last |task $last:|process $last " "$work/err" "$work/out"
}

# In place of the rest, the last one: by what the launcher calls its rank
tempest_other_program() { # NODES OTHER COMMAND... -n 2
	local nodes=$1 other=$2
	shift 2
	# shellcheck disable=SC2016 # for the shell inside
	tempest_ends "$@" sh -c '[ "${SLURM_PROCID:-${PMIX_RANK:-$PMI_RANK}}" = 0 ] || exec "$1" barriers
		exec "$0" barriers' "$nodes" "$other" &&
		grep -q "runs another program, or another build of it" "$work/out" "$work/err"
}

# tempest_jobs NAME NODES MIGRATE COMMAND...: the programs, of those names, by a launcher
tempest_jobs() {
	local name=$1 nodes=$2 migrate=$3 n
	shift 3
	for n in 1 2 4; do
		check "$name: Tempest, the example migrate, $n nodes" tempest_example "$n" \
			"$@" -n "$n" "$migrate"
	done
	check "$name: Tempest, messages in order, 4 nodes" tempest_run "$@" -n 4 "$nodes" in-order
	check "$name: Tempest, barriers, 3 nodes" tempest_run "$@" -n 3 "$nodes" barriers
	check "$name: Tempest, a node that is killed ends the others" \
		tempest_dies_by_name 4 "$@" -n 4 "$nodes" one-dies
	[ ! -s "$work/took" ] || echo "# the last one, $(cat "$work/took") ms later"
	check "$name: Tempest, a node that exits as it must not ends the others" \
		tempest_dies "$@" -n 3 "$nodes" one-exits
	check "$name: Tempest, another program" tempest_other_program "$nodes" "$migrate" "$@" -n 2
}
