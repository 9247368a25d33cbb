#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# What both hosts of the demo begin with: hosts.sh puts HOST, OTHER and MIB in front of it, and
# what the host does behind it. Lines with "@ " are figures, as in steps.sh.
# shellcheck disable=SC2034 # what the hosts use
set -eu

ALICE=1001 BOB=1002
DEVICE=/dev/hamlyn9
SAY=7000			# beside the fabric: hosts tell each other when to go on

say() {
	printf '\n--- %s\n' "$*"
}

die() {
	printf 'demo: %s\n' "$*" >&2
	exit 1
}

# eventually COMMAND...: within half a minute
eventually() {
	tries=0
	until "$@"; do
		tries=$((tries + 1))
		[ $tries -le 300 ] || return 1
		sleep 0.1
	done
}

# What it tells stays in $peer: the next connection may tell something else. It is of several lines.
peer_tells() { # WORDS
	peer=$(hamlynctl peer show hamlyn9)
	case $peer in *"$1"*) ;; *) return 1 ;; esac
}

# One connection at a time takes what comes on standard input, or gives it.
offer() { # N
	nc -l -p $((SAY + $1)) >/dev/null
}

fetch() { # N
	nc "10.77.0.$OTHER" $((SAY + $1)) </dev/null 2>/dev/null
}

ip link set lo up
ip link set eth0 up
ip addr add "10.77.0.$HOST/24" dev eth0
hamlynctl nic add index 9 fabric tcp host "$HOST" address "10.77.0.$HOST" security clear \
	dead-ms 2000 >/dev/null
hamlynctl peer add hamlyn9 host "$OTHER" address "10.77.0.$OTHER"
eventually peer_tells 'state up' || die "host $OTHER does not come up"
