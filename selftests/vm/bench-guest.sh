#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# What bench.sh runs in the guest: soft-RoCE on the loopback device, or two hosts, then the
# benchmark. Only results go to stdout as they are; the rest starts with "# ".

# If rdma is not there, the machine is used without soft-RoCE
if [ -x /host/rdma ]; then
	/host/rdma link add rxe0 type rxe netdev lo || echo "# no soft-RoCE device"
fi

# /dev/hamlyn7 is host 1, /dev/hamlyn8 is host 2, in network namespace "far".
nic() { # HOST SUBNET WORD...: how it is secured
	host=$1
	subnet=$2
	shift 2
	in=near
	[ "$host" = 1 ] || in=far
	on $in /host/hamlynctl nic add index $((6 + host)) fabric tcp host "$host" \
		address "$subnet.$host" "$@" &&
		on $in /host/hamlynctl peer add "hamlyn$((6 + host))" host $((3 - host)) \
			address "$subnet.$((3 - host))"
}

on() { # near|far COMMAND...
	at=$1
	shift
	if [ "$at" = near ]; then "$@"; else /host/ip netns exec far "$@"; fi
}

is_up() {
	/host/hamlynctl peer show hamlyn7 | grep -q 'state up'
}

cable() {
	mkdir -p /var/run/netns
	/host/ip netns add far && /host/ip link set lo up &&
		/host/ip link add near type veth peer name far netns far &&
		/host/ip addr add 10.9.0.1/24 dev near && /host/ip link set near up &&
		/host/ip -n far addr add 10.9.0.2/24 dev far && /host/ip -n far link set far up
}

tunnel_end() { # NUMBER near|far
	other=$((3 - $1))
	on "$2" /host/ip link add wg0 type wireguard &&
		on "$2" /host/ip addr add "10.8.0.$1/24" dev wg0 &&
		on "$2" /host/wg set wg0 listen-port 51820 private-key "/tmp/key.$1" \
			peer "$(cat "/tmp/public.$other")" allowed-ips "10.8.0.$other/32" \
			endpoint "10.9.0.$other:51820" &&
		on "$2" /host/ip link set wg0 up
}

tunnel() {
	umask 077
	for n in 1 2; do
		/host/wg genkey >/tmp/key.$n && /host/wg pubkey </tmp/key.$n >/tmp/public.$n || return
	done
	tunnel_end 1 near && tunnel_end 2 far
}

measure() { # WORD...
	/host/hamlyn-perf "$@" 2>/tmp/bench-errors || status=$?
	sed 's/^/# /' /tmp/bench-errors
}

between_hosts() { # SUBNET "how it is secured" WORD...: of hamlyn-perf
	net=$1
	secured=$2
	shift 2
	# shellcheck disable=SC2086 # several words
	nic 1 "$net" $secured && nic 2 "$net" $secured || exit 1
	tries=0
	until is_up; do
		[ $((tries += 1)) -lt 300 ] || exit 1
		sleep 0.1
	done
	HAMLYN_DEVICE=/dev/hamlyn7 measure --peer-device /dev/hamlyn8 --peer-netns far \
		--peer-address "$net.2" "$@"
	on near /host/hamlynctl nic del hamlyn7 && on far /host/hamlynctl nic del hamlyn8
}

status=0
case ${HAMLYN_HOSTS:-} in
'') measure "$@" ;;
*)
	cable || exit 1
	between_hosts 10.9.0 "security clear" "$@"
	if [ "$HAMLYN_HOSTS" = wireguard ]; then
		tunnel || exit 1
		echo "# the same through WireGuard"
		between_hosts 10.8.0 "device wg0" "$@"
	fi
	/host/ip netns del far
	;;
esac
[ ! -x /host/rdma ] || /host/rdma link delete rxe0
exit "$status"
