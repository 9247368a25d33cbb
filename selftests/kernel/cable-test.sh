#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest, as root: hosts in network namespaces, a cable between them, and a tunnel of
# WireGuard through it. What passes, what must not, and what happens to traffic when the cable,
# an end of it, the tunnel or a host goes.
#
# Beside it: ip of iproute2, wg, hamlynctl, echo, hamlyn-run, exactly_once; languages, languages.py and
# a Python; modules veth and wireguard are loaded.
set -u
# shellcheck disable=SC2015 # "A && B || C" is not an if here

passed=0
failed=0
scale=${HAMLYN_TEST_SCALE:-1}

check() { # NAME COMMAND...
	name=$1
	shift
	if "$@" >/tmp/check.log 2>&1; then
		echo "ok - $name"
		passed=$((passed + 1))
	else
		echo "not ok - $name"
		sed 's/^/# /' /tmp/check.log | head -n 40
		for n in 1 2; do
			host $n ./hamlynctl peer show 2>&1 | sed 's/^/# /'
		done
		failed=$((failed + 1))
	fi
}

host() { # N COMMAND...: on that host
	host=$1
	shift
	./ip netns exec "h$host" "$@"
}

# ---- two hosts ----

cable() {
	./ip link add cable netns h1 type veth peer name cable netns h2 || return 1
	for n in 1 2; do
		host $n ./ip addr add 192.168.77.$n/24 dev cable &&
			host $n ./ip link set cable up || return 1
	done
}

two_hosts() {
	for n in 1 2; do
		./ip netns add h$n && host $n ./ip link set lo up || return 1
	done
	cable
}

nics() { # SUBNET WORD...
	subnet=$1
	shift
	for n in 1 2; do
		host $n ./hamlynctl nic add index $n fabric tcp host $n address "$subnet.$n" \
			dead-ms $((2000 * scale)) stall-ms $((2000 * scale)) "$@" || return 1
	done
	host 1 ./hamlynctl peer add 1 host 2 address "$subnet.2" &&
		host 2 ./hamlynctl peer add 2 host 1 address "$subnet.1"
}

no_nics() {
	host 1 ./hamlynctl nic del 1 && host 2 ./hamlynctl nic del 2
}

peer_is() { # HOST WORDS
	tries=0
	until host "$1" ./hamlynctl peer show "$1" 2>&1 | grep -q "$2"; do
		tries=$((tries + 1))
		[ "$tries" -lt $((300 * scale)) ] || return 1
		sleep 0.1
	done
}

up() { peer_is 1 'state up' && peer_is 2 'state up'; }

down() { peer_is 1 'state \(idle\|connecting\)' && peer_is 2 'state \(idle\|connecting\)'; }

# ---- traffic ----

serve() { # CLIENTS
	rm -f /tmp/echo
	# No function: $! is to be the server itself
	./ip netns exec h2 ./echo -l -d /dev/hamlyn2 -c "$1" /tmp/echo >/tmp/server.log 2>&1 &
	server=$!
	tries=0
	until [ -e /tmp/echo ]; do
		tries=$((tries + 1))
		[ "$tries" -lt $((100 * scale)) ] || { cat /tmp/server.log; return 1; }
		sleep 0.1
	done
}

messages_pass() {
	up && serve 1 || return 1
	host 1 timeout $((60 * scale)) ./echo -d /dev/hamlyn1 -n 200 /tmp/echo
	status=$?
	kill "$server" 2>/dev/null
	wait "$server"
	return $status
}

# Two processes on each
a_job() {
	up && timeout $((100 * scale)) ./hamlyn-run -n 4 --host 1,2 --launch \
		'./ip netns exec h%h env HAMLYN_DEVICE=/dev/hamlyn%h' \
		./exactly_once --messages 200 --max-size 4000 >/tmp/job.log 2>&1 &&
		grep -q "all handled once, intact" /tmp/job.log && return 0
	cat /tmp/job.log
	return 1
}

# The program of a language, bounded, in place of this shell.
on_host() { # HOST LANGUAGE WORD...
	at=$1
	program=./languages
	[ "$2" = C++ ] || program="./python/bin/python3 -S ./languages.py"
	shift 2
	# shellcheck disable=SC2086 # several words
	exec ./ip netns exec "h$at" env "HAMLYN_DEVICE=/dev/hamlyn$at" PYTHONHOME=/host/python \
		HAMLYN_LIBRARY=/host/libhamlyn.so timeout $((100 * scale)) $program "$@"
}

speak() { # SERVER CLIENT: their languages
	up || return 1
	(on_host 2 "$1" serve "2/served-by-$1") >/tmp/server.log 2>&1 &
	server=$!
	tries=0
	until grep -q ready /tmp/server.log; do
		tries=$((tries + 1))
		[ "$tries" -lt $((600 * scale)) ] || break
		sleep 0.1
	done
	(on_host 1 "$2" talk "2/served-by-$1") >/tmp/client.log 2>&1
	status=$?
	wait "$server" || status=1
	grep -q '^200 messages and one of 300000 bytes$' /tmp/client.log || status=1
	[ "$status" = 0 ] || cat /tmp/server.log /tmp/client.log
	return "$status"
}

# Until it ends of itself
traffic() {
	up && serve 1 || return 1
	./ip netns exec h1 ./echo -d /dev/hamlyn1 -n 100000000 /tmp/echo >/tmp/client.log 2>&1 &
	client=$!
	before=$(sent)
	tries=0
	until [ "$(sent)" -gt $((before + 100)) ]; do
		tries=$((tries + 1))
		[ "$tries" -lt $((300 * scale)) ] || { cat /tmp/client.log; return 1; }
		sleep 0.1
	done
}

sent() { host 1 ./hamlynctl peer show 1 | sed -n 's/.*sent-packets \([0-9]*\).*/\1/p'; }

# Both ends are told: the client fails, and the server gives it up.
traffic_ends() {
	tries=0
	while kill -0 "$client" 2>/dev/null || kill -0 "$server" 2>/dev/null; do
		tries=$((tries + 1))
		[ "$tries" -lt $((300 * scale)) ] || {
			kill "$client" "$server"
			echo "it goes on"
			return 1
		}
		sleep 0.1
	done
	wait "$server"
	cat /tmp/client.log /tmp/server.log
	! wait "$client"
}

# ---- faults ----

clean_unload() {
	no_nics && rmmod hamlyn && insmod ./hamlyn.ko nics=1
}

unload_is_refused() {
	! rmmod hamlyn && [ -d /sys/module/hamlyn ] && kill -0 "$client"
}

# With who is in it, who has not been asked
namespace_goes() {
	./ip netns del h2 && ./ip netns add h2 && kill -9 "$server"
}

# ---- the tunnel ----

tunnel() {
	for n in 1 2; do
		./wg genkey >/tmp/key.$n && ./wg pubkey </tmp/key.$n >/tmp/public.$n || return 1
	done
	for n in 1 2; do
		other=$((3 - n))
		host $n ./ip link add wg0 type wireguard &&
			host $n ./ip addr add 10.9.0.$n/24 dev wg0 &&
			host $n ./wg set wg0 listen-port 51820 private-key /tmp/key.$n \
				peer "$(cat /tmp/public.$other)" allowed-ips 10.9.0.$other/32 \
				endpoint 192.168.77.$other:51820 &&
			host $n ./ip link set wg0 up || return 1
	done
}

tunnel_bytes() { host 1 ./wg show wg0 transfer | cut -f 3; }

through_the_tunnel() {
	before=$(tunnel_bytes)
	messages_pass || return 1
	after=$(tunnel_bytes)
	echo "$before bytes before, $after after"
	[ "$after" -gt $((before + 200 * 64)) ]
}

# The other host's address, on the cable, for whoever wants to be that host
without_the_tunnel() {
	host 2 ./ip link set wg0 down &&
		host 2 ./ip addr del 10.9.0.2/24 dev wg0 &&
		host 2 ./ip addr add 10.9.0.2/24 dev cable &&
		host 1 ./ip route add 10.9.0.2/32 dev cable || return 1
	host 1 ping -c 1 -W $((5 * scale)) 10.9.0.2
}

nothing_passes() {
	down || return 1
	sleep $((3 * scale))
	down
}

again_through_the_tunnel() {
	host 1 ./ip route del 10.9.0.2/32 dev cable &&
		host 2 ./ip addr del 10.9.0.2/24 dev cable &&
		host 2 ./ip link set wg0 up &&
		host 2 ./ip addr add 10.9.0.2/24 dev wg0 && messages_pass
}

# Who has the cable and the address, but another key
another_key() {
	./wg genkey >/tmp/key.3 && host 2 ./wg set wg0 private-key /tmp/key.3
}

right_key() {
	host 2 ./wg set wg0 private-key /tmp/key.2
}

# ---- all of it ----

mkdir -p /var/run/netns
check "two hosts, joined by a cable" two_hosts
check "their NICs on a fabric, in clear" nics 192.168.77 security clear
check "messages pass" messages_pass
check "a parallel program of both hosts" a_job
check "a server in C++, a client in Python" speak C++ Python
check "a server in Python, a client in C++" speak Python C++
check "traffic" traffic
check "unloading the module is refused meanwhile" unload_is_refused
check "an end of the cable is set down" host 2 ./ip link set cable down
check "who sends and who receives are told" traffic_ends
check "and the peers are not up" down
check "it is set up" host 2 ./ip link set cable up
check "messages pass again" messages_pass
check "traffic" traffic
check "the cable is deleted" host 1 ./ip link del cable
check "who sends and who receives are told" traffic_ends
check "another cable" cable
check "messages pass again" messages_pass
check "after traffic the module can be unloaded" clean_unload
check "a tunnel of WireGuard" tunnel
check "NICs on it, without clear" nics 10.9.0 device wg0
check "messages pass through the tunnel" through_the_tunnel
check "a parallel program through the tunnel" a_job
check "traffic" traffic
check "the tunnel is taken away, and its address is on the cable" without_the_tunnel
check "who sends and who receives are told" traffic_ends
check "nothing passes beside the tunnel" nothing_passes
check "the tunnel is back: messages pass" again_through_the_tunnel
check "a host gets another key" another_key
check "nothing passes" nothing_passes
check "it gets its own one" right_key
check "messages pass" messages_pass
check "traffic" traffic
check "a host goes: its namespace, and who is in it" namespace_goes
check "who sends is told" traffic_ends
check "the other host's NIC goes" host 1 ./hamlynctl nic del 1
for n in 1 2; do
	./ip netns del h$n
done
check "the module can be unloaded" rmmod hamlyn
check "and loaded" insmod ./hamlyn.ko
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
