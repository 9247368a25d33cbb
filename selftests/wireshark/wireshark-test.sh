#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The dissector for Wireshark, by tshark: on a capture that the code of the fabric makes, it
# shows what that code says, and what that code refuses.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2

usage() {
	cat <<'EOT'
Usage: selftests/wireshark/wireshark-test.sh [BUILD-FOLDER [CAPTURE]]  (default: build)

With CAPTURE, one of real hosts, it is looked at in place of a made one: all frames are known,
and none is refused.
EOT
}

case ${1:-} in
-h | --help) usage && exit 0 ;;
esac

BUILD=${1:-build}
OUT=$BUILD/wireshark
LUA=tools/wireshark/hamlyn.lua
SEED=${HAMLYN_TEST_SEED:-7}
passed=0
failed=0

mkdir -p "$OUT" || exit 2

check() { # NAME COMMAND...
	local name=$1
	shift
	if "$@" >"$OUT/log" 2>&1; then
		echo "ok - $name"
		passed=$((passed + 1))
	else
		echo "not ok - $name"
		sed 's/^/# | /' "$OUT/log" | head -n 40
		failed=$((failed + 1))
	fi
}

# What it says of itself as root is no complaint of the dissector.
look() { # ARGUMENT...
	timeout -k 5 200 tshark -X "lua_script:$LUA" -n "$@" 2>"$OUT/stderr" || return 1
	! grep -v '^Running as user "root"' "$OUT/stderr" >&2
}

makes_capture() {
	"${CC:-gcc}" -D_GNU_SOURCE -Iuapi -iquotedriver/core -Ilibhamlyn/src/embedded -Ilibhamlyn/src \
		-Ilibhamlyn/include -std=gnu11 -O1 -g -Wall -Wextra -Werror \
		selftests/wireshark/capture.c driver/core/wire.c -o "$OUT/capture" &&
		"$OUT/capture" "$CAPTURE" 100 "$SEED" >"$OUT/expected"
}

expected() { # WORD
	sed -n "s/^$1 //p" "$OUT/expected"
}

# Two passes, as the window of Wireshark does: what is said must not depend on the first.
refusals() { # OPTION...
	look -r "$CAPTURE" "$@" -Y hamlyn.refused -T fields -e tcp.stream -e hamlyn.refused |
		tr '\t' ' ' | sort -n
}

refuses_the_same() { # OPTION...
	local n
	expected refused | sort -n >"$OUT/refused"
	n=$(wc -l <"$OUT/refused")
	echo "$n connections, seed $SEED"
	[ "$n" -gt 100 ] && refusals "$@" | diff "$OUT/refused" -
}

# Many verdicts are among them; what only an administrator's word makes wrong is not.
verdicts_are_many() {
	expected refused | awk '{ verdict[$2] } END { for (v in verdict) print v }' | sort -n |
		paste -sd' ' | diff <(echo "2 3 4 5 6 7 8 9 10 11 12 13 15 16") -
}

shows_values() {
	local names
	expected value | sort -u >"$OUT/values"
	names=$(cut -d' ' -f1 "$OUT/values" | uniq | paste -sd' ')
	# shellcheck disable=SC2046,SC2086 # an option for each
	look -r "$CAPTURE" -Y 'hamlyn && tcp.stream < 4' -T fields $(printf -- '-e %s ' $names) |
		awk -F'\t' -v names="$names" '
			BEGIN { split(names, name, " ") }
			{
				for (i = 1; i <= NF; i++)
					for (j = split($i, value, ","); j > 0; j--)
						print name[i] " " value[j]
			}' | sort -u | diff "$OUT/values" -
}

# However they were cut into segments, and at whatever port
sees_frames() { # STREAM
	look -r "$CAPTURE" -Y "tcp.stream == $1 && hamlyn" -T fields -e hamlyn.type |
		tr ',' '\n' | sort | uniq -c | awk '{ print $2 ":" $1 }' | paste -sd' ' |
		diff <(echo "1:2 10:2 11:1 2:33 3:1 4:1 5:1 6:1 7:1 8:2 9:1") -
}

shows_payload() {
	look -r "$CAPTURE" -Y 'tcp.stream == 3 && hamlyn.payload_bytes == 4096' -T fields \
		-e hamlyn.payload -e hamlyn.data.metadata >"$OUT/payload" || return 1
	[ "$(wc -l <"$OUT/payload")" = 1 ] &&
		diff <(printf '%s\t%s\n' "$(printf 'd7%.0s' $(seq 4096))" "$(printf 'a1%.0s' $(seq 60))") \
			"$OUT/payload"
}

knows_all() {
	local n text types
	types=$(expected types)
	n=$(grep -cE '^	\[([0-9]+|HELLO|BYE)\] = \{ "[A-Z]+", \{' "$LUA")
	[ "$n" = "$types" ] || { echo "$n types of frames, $types in wire.h"; return 1; }
	while read -r n text; do
		grep -qF "\"$text\"," "$LUA" || { echo "$n: $text"; return 1; }
	done < <(expected text)
}

experts() {
	look -r "$CAPTURE" -q -z 'expert,tcp.stream == 0' >"$OUT/expert" || return 1
	cat "$OUT/expert"
	grep -q 'Security .*A key in clear text' "$OUT/expert" &&
		grep -q 'closes the connection: nothing was heard for too long' "$OUT/expert" &&
		! grep -q Refused "$OUT/expert"
}

# For where the heuristic is not asked
by_preference() {
	local only=(-r "$CAPTURE" --disable-heuristic hamlyn_tcp -Y 'tcp.stream == 0 && hamlyn')
	look "${only[@]}" >"$OUT/frames" || return 1
	diff /dev/null "$OUT/frames" || return 1
	look "${only[@]}" -o hamlyn.ports:927,7500 >"$OUT/frames" && [ -s "$OUT/frames" ]
}

filters() {
	local n
	n=$(look -r "$CAPTURE" -Y 'hamlyn.watch.flags.claim == 1 && tcp.stream < 4' | wc -l)
	[ "$n" = 4 ]
}

no_frame_is_refused() {
	look -r "$CAPTURE" -Y 'hamlyn.refused || hamlyn.expert.no_hello' | diff /dev/null -
}

hosts_talk() {
	look -r "$CAPTURE" -Y hamlyn -T fields -e hamlyn.type | tr ',' '\n' | sort | uniq -c |
		awk '{ print; type[$2] } END { exit !((1 in type) && (2 in type) && (5 in type)) }'
}

command -v tshark >/dev/null || {
	echo "not ok - there is tshark: selftests/setup.sh packages native"
	echo "0 passed, 1 failed"
	exit 1
}
if [ -n "${2:-}" ]; then
	CAPTURE=$2
	check "hosts talk to each other" hosts_talk
	check "and no frame is refused" no_frame_is_refused
else
	CAPTURE=$OUT/made.pcap
	check "a capture is made by the code that packs frames" makes_capture
	for stream in 0 1 2 3; do
		check "all frames of connection $stream are seen" sees_frames $stream
	done
	check "members are what was packed" shows_values
	check "payload and metadata" shows_payload
	check "it knows all frames and verdicts" knows_all
	check "many verdicts are among what is refused" verdicts_are_many
	check "it refuses what the receiver refuses" refuses_the_same
	check "and so in two passes" refuses_the_same -2
	check "expert infos" experts
	check "ports are a preference" by_preference
	check "frames can be filtered by their members" filters
fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
