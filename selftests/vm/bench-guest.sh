#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# What bench.sh runs in the guest: soft-RoCE on the loopback device, or two hosts, then the
# benchmark. Only results go to stdout as they are; the rest starts with "# ".

# If rdma is not there, the machine is used without soft-RoCE
if [ -x /host/rdma ]; then
	/host/rdma link add rxe0 type rxe netdev lo || echo "# no soft-RoCE device"
fi

# /dev/hamlyn7 is host 2, /dev/hamlyn8 is host 3, in network namespace "far".
nic() { # near|far SUBNET WORD...: how it is secured
	in=$1
	subnet=$2
	end=1
	[ "$in" = near ] || end=2
	shift 2
	on "$in" /host/hamlynctl nic add index $((6 + end)) fabric tcp host $((1 + end)) \
		address "$subnet.$end" "$@" >/dev/null &&
		on "$in" /host/hamlynctl peer add "hamlyn$((6 + end))" host $((4 - end)) \
			address "$subnet.$((3 - end))"
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

# Host 1 is none of ours, and it is the lower one of two that connects: a process in "mad".
mad() {
	/host/ip netns add mad && /host/ip link add near3 type veth peer name mad netns mad &&
		/host/ip addr add 10.9.1.1/24 dev near3 && /host/ip link set near3 up &&
		/host/ip -n mad addr add 10.9.1.3/24 dev mad && /host/ip -n mad link set mad up &&
		/host/ip -n mad route add 10.9.0.0/24 via 10.9.1.1
}

# Each line says beside what it was measured. How much host 1 got through goes to stderr.
beside_nonsense() { # WORD...: of hamlyn-perf
	/host/hamlynctl peer add hamlyn7 host 1 address 10.9.1.3 || exit 1
	id=$(/host/hamlynctl -j nic show hamlyn7 | sed -n 's/.*"fabric_id":"\([0-9a-f]*\)".*/\1/p')
	size=$(/host/hamlynctl -j nic show hamlyn7 | sed -n 's/.*"packet_size":\([0-9]*\).*/\1/p')
	for kind in nothing plain guesses bytes nothing; do
		speaker='' sink=''
		if [ "$kind" = plain ]; then
			/host/nonsense sink 10.9.1.3 10.9.0.1 &
			sink=$!
		fi
		if [ "$kind" != nothing ]; then
			/host/ip netns exec mad /host/nonsense "$kind" 10.9.1.3 10.9.0.1 "$id" "$size" &
			speaker=$!
		fi
		measure "$@" >/tmp/measured
		sed "s/^{/{\"beside\":\"$kind\",/" /tmp/measured
		# shellcheck disable=SC2086 # two processes, or one
		[ -z "$speaker$sink" ] || kill $speaker $sink
		/host/hamlynctl -j peer show hamlyn7 | sed -n 's/^.*"host":1,/# beside '"$kind"': /p'
		grep -E 'near3' /proc/net/dev | sed 's/^/# /'
	done
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
	nic near "$net" $secured && nic far "$net" $secured || exit 1
	tries=0
	until is_up; do
		[ $((tries += 1)) -lt 300 ] || exit 1
		sleep 0.1
	done
	export HAMLYN_DEVICE=/dev/hamlyn7
	set -- --peer-device /dev/hamlyn8 --peer-netns far --peer-address "$net.2" "$@"
	if [ "$HAMLYN_HOSTS" = nonsense ]; then beside_nonsense "$@"; else measure "$@"; fi
	on near /host/hamlynctl nic del hamlyn7 && on far /host/hamlynctl nic del hamlyn8
}

status=0
case ${HAMLYN_HOSTS:-} in
'') measure "$@" ;;
*)
	cable || exit 1
	[ "$HAMLYN_HOSTS" != nonsense ] || mad || exit 1
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
