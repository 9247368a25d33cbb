#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Endurance of Active Messages on the kernel device: many messages of all kinds over the
# fabric's adversary, each handled once, with its contents (tools/am/exactly_once). One
# machine for each kind of bad fabric, so that what is done is done.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
ME=am-long.sh
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. selftests/lib/lib.sh

FABRICS=(drop duplicate reorder corrupt all)

usage() {
	cat <<'EOT'
Usage: selftests/am/am-long.sh [--uml | --kernel SERIES] [option]...

  --uml            in User-Mode Linux, at native speed (selftests/setup.sh uml)
  --kernel SERIES  in QEMU with this kernel (default: 6.1)
  --messages N     of both processes together, over each fabric (default: 10000000)
  --fabric KIND    only this one: drop, duplicate, reorder, corrupt (10 % of all packets
                   each), all (these together); may be given again
  --seed N         of the adversary and of the messages (default: 1)
  --timeout S      seconds for each fabric (default: 2 ms a message, at least 300);
                   multiplied by $HAMLYN_TIMEOUT_SCALE
  --build DIR      where programs and modules are (default: build); made if need be
  --update         put the table into Documentation/active-messages.rst, and what was
                   measured into Documentation/bench; only if all went well

Results are kept in DIR/am-long, one file a machine and fabric; what has run with as many
messages and the same seed does not run again, so that it can be interrupted (delete the
folder to begin anew). 10 million messages over a fabric take about 11 minutes in
QEMU on two processors without other load.
EOT
}

MACHINE=6.1 MESSAGES=10000000 SEED=1 TIMEOUT='' BUILD=${BUILD:-build} UPDATE=no CHOSEN=()

options() {
	while [ $# -gt 0 ]; do
		case $1 in
		-h | --help) usage; exit 0 ;;
		--uml) MACHINE=uml ;;
		--update) UPDATE=yes ;;
		--kernel | --messages | --fabric | --seed | --timeout | --build)
			[ $# -gt 1 ] || die "$1 takes a value; see --help"
			option "$1" "$2"
			shift
			;;
		*) die "\"$1\" is no option; see --help" ;;
		esac
		shift
	done
	[ ${#CHOSEN[@]} != 0 ] || CHOSEN=("${FABRICS[@]}")
	[ -n "$TIMEOUT" ] || TIMEOUT=$((MESSAGES / 500 > 300 ? MESSAGES / 500 : 300))
}

option() { # NAME VALUE
	case $1 in
	--kernel) MACHINE=$2 ;;
	--build) BUILD=$2 ;;
	--messages) number "$1" "$2"; MESSAGES=$2 ;;
	--seed) number "$1" "$2"; SEED=$2 ;;
	--timeout) number "$1" "$2"; TIMEOUT=$2 ;;
	--fabric)
		[[ " ${FABRICS[*]} " == *" $2 "* ]] || die "--fabric takes one of ${FABRICS[*]}, not \"$2\""
		CHOSEN+=("$2")
		;;
	esac
}

make_all() {
	local programs=("$BUILD"/{am/exactly_once,am/hamlyn-run,hamlynctl})
	# uml.sh wants to put it in
	[ "$MACHINE" != uml ] || programs+=("$BUILD/hamlyn-perf")
	make -s BUILD="$BUILD" "${programs[@]}"
	[ "$MACHINE" = uml ] || selftests/vm/build-module.sh "$MACHINE" . "$BUILD/k$MACHINE" >/dev/null
}

adversary() { # FABRIC: what hamlynctl is told
	if [ "$1" = all ]; then
		echo "drop 10% duplicate 10% reorder 10% corrupt 10% seed $SEED"
	else
		echo "$1 10% seed $SEED"
	fi
}

# What is not named stays as it was, so it is set off first.
guest_line() { # FABRIC
	local set='hamlynctl nic set hamlyn0 adversary'
	echo "$set off >/dev/null && $set $(adversary "$1") >/dev/null &&" \
		"exec hamlyn-run --device /dev/hamlyn0 --timeout $((TIMEOUT * ${HAMLYN_TIMEOUT_SCALE:-1}))" \
		"-n 2 /host/exactly_once --json --messages $((MESSAGES / 2)) --seed $SEED"
}

guest() { # FABRIC
	local common=(--timeout $((TIMEOUT + 30)) --file "$BUILD/hamlynctl" --file "$BUILD/hamlyn-run"
		--file "$BUILD/am/exactly_once" --cmd "$(guest_line "$1")")
	if [ "$MACHINE" = uml ]; then
		selftests/vm/uml.sh --build "$BUILD" --module-args "idle_us=20000 guesses=0" \
			--ncpus 2 "${common[@]}"
	else
		selftests/vm/run.sh "$MACHINE" --smp 2 --module "$BUILD/k$MACHINE/hamlyn.ko" \
			--module-args "engine=poll engines=1 nics=1 guesses=0 idle_us=20000" "${common[@]}"
	fi
}

# On a busy host a machine may not even boot: status 125 of run.sh and uml.sh
tried() { # FABRIC
	local rc
	for _ in 1 2 3; do
		rc=0
		guest "$1" || rc=$?
		[ "$rc" = 125 ] || return "$rc"
	done
	return 125
}

# Its one line of JSON, without what depends on how fast this machine is.
row() { # FABRIC FILE
	python3 - "$1" "$2" "$MACHINE" "$SEED" <<'EOT'
import json, sys
fabric, path, machine, seed = sys.argv[1:]
lines = [line for line in open(path, encoding="utf8").read().splitlines() if line.startswith("{")]
r = json.loads(lines[-1])
what = "all of these" if fabric == "all" else fabric
kernel = "User-Mode Linux" if machine == "uml" else f"Linux {machine}"
print(json.dumps({"test": "am-long", "kernel": kernel, "seed": int(seed),
                  "fabric": f"{what}, 10 %: {r['messages']} messages",
                  "sent_again": r["am_retransmissions"], "reflected": r["am_reflections"],
                  "duplicates": r["am_duplicates"], "damaged": r["am_damaged"]}))
EOT
}

one() { # FABRIC
	local name out
	name="10 % of packets: $1, $MESSAGES messages, ${MACHINE/uml/User-Mode Linux}"
	out=$BUILD/am-long/$MACHINE-$1-$MESSAGES-$SEED
	if [ -s "$out.jsonl" ]; then
		good "$name: every message once (has run before)"
	elif tried "$1" >"$out.log" 2>&1 && row "$1" "$out.log" >"$out.new" 2>"$out.err"; then
		mv "$out.new" "$out.jsonl"
		good "$name: every message once"
	else
		rm -f "$out.new"
		bad "$name: every message once" "$(excerpt "$out.log" "$out.err")"
	fi
}

# All fabrics that have run, in the order of FABRICS
update() {
	local folder=$BUILD/am-long/report fabric
	rm -rf "$folder"
	mkdir -p "$folder"
	for fabric in "${FABRICS[@]}"; do
		cat "$BUILD/am-long/$MACHINE-$fabric-$MESSAGES-$SEED.jsonl" 2>/dev/null || true
	done >"$folder/am-long.jsonl"
	tools/bench/report.py "$folder" --update Documentation/active-messages.rst \
		--keep Documentation/bench
}

main() {
	local fabric
	options "$@"
	mkdir -p "$BUILD/am-long"
	export HAMLYN_CACHE=${HAMLYN_CACHE:-$PWD/.cache}
	make_all
	for fabric in "${CHOSEN[@]}"; do
		one "$fabric"
	done
	if [ "$UPDATE" = yes ] && [ "$failed" = 0 ]; then
		update
	fi
	total
}

main "$@"
