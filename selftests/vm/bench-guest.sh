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
nic() { # HOST WORD...: "netns NAME" or nothing
	host=$1
	shift
	/host/hamlynctl nic add index $((6 + host)) fabric tcp host "$host" address "10.9.0.$host" \
		security clear "$@" &&
		/host/hamlynctl peer add "hamlyn$((6 + host))" host $((3 - host)) \
			address "10.9.0.$((3 - host))" "$@"
}

is_up() {
	/host/hamlynctl peer show hamlyn7 | grep -q 'state up'
}

two_hosts() {
	/host/ip netns add far && /host/ip link set lo up &&
		/host/ip link add near type veth peer name far netns far &&
		/host/ip addr add 10.9.0.1/24 dev near && /host/ip link set near up &&
		/host/ip -n far addr add 10.9.0.2/24 dev far && /host/ip -n far link set far up &&
		nic 1 && nic 2 netns far || return
	tries=0
	until is_up; do
		[ $((tries += 1)) -lt 300 ] || return
		sleep 0.1
	done
	export HAMLYN_DEVICE=/dev/hamlyn7
}

no_hosts() {
	/host/hamlynctl nic del hamlyn7
	/host/ip netns del far
}

if [ -n "${HAMLYN_HOSTS:-}" ]; then
	two_hosts || exit 1
	set -- --peer-device /dev/hamlyn8 --peer-netns far --peer-address 10.9.0.2 "$@"
fi
/host/hamlyn-perf "$@" 2>/tmp/bench-errors
status=$?
sed 's/^/# /' /tmp/bench-errors
[ ! -x /host/rdma ] || /host/rdma link delete rxe0
[ -z "${HAMLYN_HOSTS:-}" ] || no_hosts >/dev/null
exit "$status"
