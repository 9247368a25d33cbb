#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# A fresh machine, and somebody at its keyboard: first-message.sh puts HOST and OTHER in front of
# this, and behind it what is typed. Beside the fabric the hosts' administrators tell each other
# their keys.
# shellcheck disable=SC2154,SC2317
set -u

passed=0
failed=0

check() { # WHAT COMMAND...
	what=$1
	shift
	if "$@" >/tmp/said 2>&1; then
		echo "ok - host $HOST: $what"
		passed=$((passed + 1))
	else
		echo "not ok - host $HOST: $what"
		failed=$((failed + 1))
	fi
	sed 's/^/# /' /tmp/said
}

eventually() { # COMMAND...
	tries=0
	until "$@"; do
		tries=$((tries + 1))
		[ "$tries" -le $((300 * ${HAMLYN_TEST_SCALE:-1})) ] || return 1
		sleep 0.1
	done
}

fetch() { # ADDRESS PORT FILE
	nc "$1" "$2" </dev/null >"$3" 2>/dev/null && [ -s "$3" ]
}

# There is no udev, and no ssh.
modprobe() { # MODULE
	insmod "/host/$1.ko"
}

scp() { # HOST:FILE .
	eventually fetch "${1%%:*}" 7001 "${1#*:}"
}

peer_is_up() {
	hamlynctl peer show hamlyn1 | grep 'state up'
}

# Once both have typed the first one they know each other's key; who looks for "up" looks again.
type_in() { # LINE
	case $1 in
	*'peer show'*) eventually peer_is_up >/dev/null ;;
	esac
	check "$1" eval "$1"
	case $1 in
	'wg genkey'*)
		cp /tmp/said /tmp/key
		(while :; do nc -l -p 7000 </tmp/key >/dev/null; done) &
		eventually fetch "192.0.2.$OTHER" 7000 /tmp/key.other
		;;
	*'peer show'*) check "its state is up" peer_is_up ;;
	esac
}

letter_came() {
	[ "$(cat letter)" = "a first message" ]
}

tunnel_was_used() {
	wg show wg0 transfer | awk '{ print } $2 > 1000 && $3 > 1000 { ok = 1 } END { exit !ok }'
}

end_well() {
	if [ "$HOST" = 1 ]; then
		check "the letter has come" letter_came
		check "through the tunnel" tunnel_was_used
	fi
	# The other one may not have heard all of it.
	sleep 2
	check "the end" hamlynctl nic del hamlyn1
	rmmod hamlyn
	echo "$passed passed, $failed failed"
	[ "$failed" = 0 ]
}

ip link set lo up
ip link set eth0 up
ip addr add "192.0.2.$HOST/24" dev eth0
mkdir -p /etc/wireguard
cd /tmp || exit 1
if [ "$HOST" = 1 ]; then
	# Whoever asks for the ticket gets it when it is there.
	(
		until [ -s ticket ]; do sleep 0.1; done
		nc -l -p 7001 <ticket >/dev/null
	) &
else
	echo "a first message" >letter
fi
