#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest, as root, with the module loaded and one NIC: every verb of
# hamlynctl, with its effects. JSON goes to the output as lines
# "# json SCHEMA TEXT", which tools/hamlynctl/test/schema.py checks on the host.
set -u

passed=0
failed=0
peer=
monitor=
scale=${HAMLYN_TEST_SCALE:-1} # of all that is waited for

pass() {
	echo "ok - $1"
	passed=$((passed + 1))
}

fail() { # NAME FILE...: what the files say is shown
	echo "not ok - $1"
	failed=$((failed + 1))
	shift
	sed 's/^/# | /' "$@"
}

check() { # NAME COMMAND...
	name=$1
	shift
	if "$@" >/tmp/out 2>/tmp/err; then
		pass "$name"
	else
		fail "$name" /tmp/out /tmp/err
	fi
}

# prints NAME PATTERN COMMAND...: it succeeds, and what it prints matches
prints() {
	name=$1 pattern=$2
	shift 2
	if "$@" >/tmp/out 2>/tmp/err && tr -s '\n ' ' ' </tmp/out | grep -qE -e "$pattern"; then
		pass "$name"
	else
		fail "$name" /tmp/out /tmp/err
	fi
}

lacks() { # NAME PATTERN COMMAND...: it succeeds, and nothing in its output matches
	name=$1 pattern=$2
	shift 2
	if "$@" >/tmp/out 2>/tmp/err && ! grep -qE -e "$pattern" /tmp/out; then
		pass "$name"
	else
		fail "$name" /tmp/out /tmp/err
	fi
}

# json NAME SCHEMA PATTERN COMMAND...: the same, of JSON that the host is to check
json() {
	name=$1 schema=$2 pattern=$3
	shift 3
	if "$@" >/tmp/out 2>/tmp/err && grep -qE -e "$pattern" /tmp/out; then
		pass "$name"
		sed "s/^/# json $schema /" /tmp/out
	else
		fail "$name" /tmp/out /tmp/err
	fi
}

# refuses NAME STATUS PATTERN COMMAND...: it fails so, and says something that matches
refuses() {
	name=$1 want=$2 pattern=$3
	shift 3
	"$@" >/tmp/out 2>/tmp/err
	status=$?
	if [ "$status" = "$want" ] && grep -qE -e "^hamlynctl: $pattern" /tmp/err; then
		pass "$name"
	else
		echo "status $status" >>/tmp/err
		fail "$name" /tmp/out /tmp/err
	fi
}

# Waits up to 10 seconds, and longer where all takes longer.
eventually() { # COMMAND...
	tries=0
	until "$@" >/dev/null 2>&1; do
		tries=$((tries + 1))
		[ "$tries" -le $((100 * scale)) ] || return 1
		sleep 0.1
	done
}

ended() { # PID: who has started it may not have waited for it yet
	ended_state=$(sed 's/.*) //; s/ .*//' "/proc/$1/stat" 2>/dev/null)
	[ "${ended_state:-Z}" = Z ] || [ "$ended_state" = X ]
}

# SIGINT alone ends it, and it has succeeded.
interrupted() { # PID
	kill -INT "$1"
	eventually ended "$1" || {
		echo "it goes on"
		kill -KILL "$1"
		return 1
	}
	wait "$1"
}

as() { # USER COMMAND...
	user=$1
	shift
	su "$user" -c "PATH=$PATH; $*"
}

start_peer() { # USER DEVICE GOOD BAD [PERIOD_US]: sets peer, slot
	user=$1
	shift
	: >/tmp/ready
	su "$user" -c "exec hamlynctl-peer $*" >/tmp/ready 2>&1 &
	peer=$!
	eventually grep -q ready /tmp/ready || {
		fail "the peer of $user is ready" /tmp/ready
		return
	}
	slot=$(sed -n 's/^ready //p' /tmp/ready)
}

# A user who is not allowed what the peer needs; what it says
refused_peer() { # USER
	! timeout $((10 * scale)) su "$1" -c "hamlynctl-peer /dev/hamlyn0 0 0" 2>&1
}

stop_peer() {
	kill "$peer" 2>/dev/null
	wait "$peer" 2>/dev/null
	peer=
}

state_is() { # STATE NIC
	hamlynctl nic show "$2" | grep -q "state $1 "
}

parameter() { # NAME
	cat "/sys/module/hamlyn/parameters/$1"
}

ctl=hamlynctl
module_args=$(for file in /sys/module/hamlyn/parameters/*; do
	printf '%s=%s ' "${file##*/}" "$(cat "$file")"
done)

# ---- without a kernel's answer ----

prints "--version" '^hamlynctl [0-9]' $ctl --version
prints "--help lists the objects" 'nic .*terminus .*monitor' $ctl --help
prints "--help of an object lists its verbs" 'show .*add .*feed' $ctl nic --help
prints "--help of a verb lists its keywords" 'watchdog-ms MS' $ctl nic set --help
refuses "an unknown object" 2 'object "x" is unknown; allowed: nic' $ctl x
refuses "an ambiguous object" 2 'object "n" is ambiguous: nic, nq' $ctl n
refuses "an unknown verb" 2 'verb "x" is unknown; allowed: show' $ctl nic x
refuses "an unknown keyword" 2 'keyword "x" is unknown; allowed: up' $ctl nic set 0 x
refuses "a word too much" 2 '"x" is too much' $ctl nic show 0 x
refuses "a value out of range" 2 'watchdog-ms takes a number from 0 to 86400000' \
	$ctl nic set 0 watchdog-ms 86400001
refuses "a rate without a unit" 2 'drop takes a rate' $ctl nic set 0 adversary drop 1
refuses "an unknown user" 2 'there is no user "nobody9"' $ctl limit set 0 uid nobody9 user-slots 1

# ---- NICs ----

prints "nic show" '^hamlyn0: host .* state up' $ctl nic show
prints "objects and verbs can be abbreviated" '^hamlyn0:' $ctl ni sh /dev/hamlyn0
json "nic show in JSON" nic-show '"name":"hamlyn0".*"state":"up"' $ctl -j nic show
json "nic show tells the fabric" nic-show '"fabric_id":"[0-9a-f]{32}"' $ctl -j nic show
prints "nic show in pretty JSON" '^\[ +\{ +"nic": 0,' $ctl -j -p nic show 0
prints "nic add tells which" '^hamlyn[1-9]' $ctl nic add
check "and there is a device" eventually test -c /dev/hamlyn1
json "nic add with everything, in JSON" nic-add '"nic":7' $ctl -j nic add index 7 host 70 \
	engine inline packet-size 4K max-slots 1K down watchdog-ms 0 idle-us 20 kick-window-us 30 \
	guesses 99 limits kernel-memory 32M user-slots 10 adversary drop 1% seed 0x10
prints "and it is as asked" \
	'host 70 state down .* engine inline .* packet-size 4K max-slots 1K guesses 99 .*drop 1% .*seed 16 .*kernel-memory 32M .* user-slots 10' \
	$ctl nic show 7
one_fabric() { # of two NICs at least
	$ctl -j nic show >/tmp/nics
	[ "$(grep -o '"fabric_id":"[0-9a-f]\{32\}"' /tmp/nics | wc -l)" -ge 2 ] &&
		[ "$(grep -o '"fabric_id":"[0-9a-f]*"' /tmp/nics | sort -u | wc -l)" = 1 ]
}
check "all NICs are on one fabric" one_fabric
json "nic show of one NIC in JSON" nic-show '"drop":10000' $ctl -j nic show hamlyn7
refuses "nic add of an index that is taken" 1 'new NIC: hamlyn7 exists already|new NIC: there is such' \
	$ctl nic add index 7
refuses "nic show of a NIC that is not there" 1 'hamlyn9: no such NIC.*\(No such device\)' $ctl nic show 9
check "nic set up" $ctl nic set 7 up
check "and it is up" state_is up 7
check "nic set down" $ctl nic set hamlyn7 down
check "and it is down" state_is down 7
check "nic set of several values" $ctl nic set 7 up idle-us 100 kick-window-us 200 guesses 5
prints "and they are set" 'state up .* idle-us 100 kick-window-us 200 .* guesses 5' $ctl nic show 7
lacks "no other NIC's" 'guesses 5$|guesses 5 ' $ctl nic show 0
check "another NIC begins with the parameters" $ctl nic add index 8
prints "whatever was set of the first" "idle-us $(parameter idle_us) kick-window-us $(parameter \
	kick_window_us) .* guesses $(parameter guesses | sed 's/000$/(K|000)/')" $ctl nic show 8
check "nic del of that" $ctl nic del 8
check "nic set adversary" $ctl nic set 7 adversary drop 0.5% duplicate 1% corrupt 2ppm reorder 3% \
	delay-us 40 stall 4% seed 9
prints "and it is set" \
	'adversary: drop 0.5% duplicate 1% corrupt 0.0002% reorder 3% delay-us 40 stall 4% seed 9' $ctl nic show 7
check "nic set adversary off" $ctl nic set 7 adv off
prints "and it is off" 'drop 0% duplicate 0% corrupt 0% reorder 0% delay-us 0 stall 0%' $ctl nic show 7

# ---- the watchdog ----

# As long as it takes to start two programs on a busy machine.
watchdog=$((2 * scale))
check "nic set watchdog" $ctl nic set 7 watchdog $((watchdog * 1000))
check "who is not fed goes down" eventually state_is unfed 7
check "nic feed" $ctl nic feed 7 count 1
check "and it is up" state_is up 7
$ctl nic feed 7 &
feeder=$!
sleep $((watchdog + scale)) # what it was fed at first does not last so long
check "nic feed goes on, in time" state_is up 7
check "and ends with success when interrupted" interrupted $feeder
check "then the NIC goes down again" eventually state_is unfed 7
check "nic set watchdog 0" $ctl nic set 7 watchdog 0
refuses "nic feed without a period, of a NIC without a watchdog" 1 'hamlyn7: has no watchdog' \
	$ctl nic feed 7
check "but every MS does" $ctl nic feed 7 every 1 count 2

# ---- removing NICs, other namespaces ----

exec 9<>/dev/hamlyn7
refuses "nic del of a NIC that is open" 1 'hamlyn7: .*open.*\(.*busy\)' $ctl nic del 7
exec 9<&-
check "nic del" $ctl nic del 7
refuses "and it is gone" 1 'hamlyn7: no such NIC' $ctl nic show 7
unshare -n sleep 1000 &
sleeper=$!
other() {
	nsenter -t $sleeper -n "$@"
}
own_netns=$(readlink /proc/self/ns/net)
eventually sh -c "[ \"\$(readlink /proc/$sleeper/ns/net)\" != '$own_netns' ]"
check "nic set netns" $ctl nic set 1 netns $sleeper
refuses "the NIC has left" 1 'hamlyn1: no such NIC' $ctl nic show 1
prints "and is in the other namespace" '^hamlyn1:' other $ctl nic show
refuses "netns comes alone" 1 'hamlyn0: netns-fd comes alone' $ctl nic set 0 netns $sleeper up
prints "nic add in another namespace" '^hamlyn' $ctl nic add netns $sleeper index 8
check "nic del there" other $ctl nic del 8
check "nic del there, too" other $ctl nic del 1
kill $sleeper
wait $sleeper 2>/dev/null

# ---- fabrics between hosts ----

fabric='fabric tcp host 1 security clear address 127.0.0.1'
add_tcp() { # WORD...
	# shellcheck disable=SC2086 # several words
	$ctl nic add "$@" $fabric
}
prints "nic show tells a loop" 'fabric: kind loop' $ctl nic show 0
refuses "a fabric between hosts needs a host" 2 'host is needed' $ctl nic add fabric tcp address 127.0.0.1
refuses "and an address" 2 'address is needed' $ctl nic add fabric tcp host 1
refuses "which is one" 2 'address takes an IPv4 or IPv6 address' $ctl nic add fabric tcp host 1 address 10.9
refuses "and of one host" 1 'new NIC: address must be that of one host' \
	$ctl nic add fabric tcp host 1 security clear address 224.0.0.1
refuses "and a device, or clear text" 1 'new NIC: device is needed, one of WireGuard; or clear' \
	$ctl nic add fabric tcp host 1 address 127.0.0.1
refuses "a device that does not encrypt" 1 'new NIC: .*does not encrypt: one of WireGuard is needed' \
	$ctl nic add fabric tcp host 1 address 127.0.0.1 device lo
refuses "a device that is not there" 1 "new NIC: no .*device .*in the NIC's network namespace" \
	add_tcp device wg9
refuses "an id of another length" 2 'id takes 32 hexadecimal digits' add_tcp id 12
refuses "an id and a name for it" 2 '"id-from" contradicts "id"' \
	add_tcp id 000102030405060708090a0b0c0d0e0f id-from blue
refuses "a port out of range" 2 'port takes a number from 1 to 65535' add_tcp port 65536
refuses "an unknown fabric" 2 'fabric "eth" is unknown; allowed: loop, tcp' $ctl nic add fabric eth
refuses "a loop with an address" 1 'new NIC: the loop fabric has nothing to set' \
	$ctl nic add fabric loop address 127.0.0.1
prints "nic add fabric tcp" '^hamlyn3' add_tcp index 3 id-from blue port 7001 dead-ms 2000
json "nic show tells the fabric between hosts" nic-show \
	'"host":1,.*"kind":"tcp","id":"[0-9a-f]{32}","address":"127.0.0.1","port":7001,"clear":true,"dead_ms":2000,"stall_ms":1000' \
	$ctl -j nic show 3
prints "in text, too" 'fabric: kind tcp id [0-9a-f]+ address 127.0.0.1 port 7001 clear yes dead-ms 2000' $ctl nic show 3
lacks "users are not told the address" '127.0.0.1' as bob $ctl nic show 3
prints "a host id is taken on its own fabric only" '^hamlyn4' add_tcp index 4 port 7002
check "and that NIC goes again" $ctl nic del 4
refuses "it stays in its namespace" 1 'hamlyn3: .*stays where it was made' $ctl nic set 3 netns $$

lacks "no peers at first" . $ctl peer show
check "peer add" $ctl peer add 3 host 2 address 127.0.0.2 port 7002
check "peer add, another one" $ctl peer add hamlyn3 host 4294967294 address 127.0.0.3
prints "peer show" '^hamlyn3: host 2 address 127.0.0.2 port 7002 users none state .*hamlyn3: host 4294967294 address 127.0.0.3 port 927' \
	$ctl peer show
json "peer show in JSON" peer-show \
	'^\[.*"nic":3,"name":"hamlyn3","host":2,"address":"127.0.0.2","port":7002,"users":"none","state":.*"refused":[0-9]+' \
	$ctl -j peer show 3
lacks "peer show of one peer" 'host 2 ' $ctl peer show 3 host 4294967294
refuses "a host is of one NIC" 2 "host is an id of one NIC's peers" $ctl peer show host 2
prints "top shows peers" 'hamlyn3 2 +[a-z]+ +[0-9]+ .*hamlyn3 4294967294 ' $ctl top -b -n 1 -d 0.2
json "and in JSON" top '"peers":\[\{"nic":3,"name":"hamlyn3","host":2,"state":.*"refused_per_s":[0-9]+' \
	$ctl -j top -n 1 -d 0.2
lacks "but not to users" 'PEER' as bob "$ctl top -b -n 1 -d 0.2"
refuses "peer show of one that is not there" 1 'hamlyn3: no such peer.*\(No such file' $ctl peer show 3 host 3
refuses "peer add of one that is there" 1 'hamlyn3: .*\(File exists' $ctl peer add 3 host 2 address 127.0.0.2
refuses "peer add of the NIC itself" 1 "hamlyn3: .*own|host 1 is hamlyn3 itself" $ctl peer add 3 host 1 address 127.0.0.2
refuses "peer add with another kind of address" 1 'hamlyn3: address must be as the NIC.s own: both IPv4' \
	$ctl peer add 3 host 5 address fd00::1
check "peer add with a map of users" $ctl peer add 3 host 7 address 127.0.0.7 users 1000:2000,3000-3999:5000
prints "peer show of it" 'host 7 .*users map user-map 1000:2000,3000-3999:5000 ' $ctl peer show 3 host 7
json "and in JSON" peer-show '"users":"map","user_map":' $ctl -j peer show 3 host 7
refuses "peer add with two ranges for one user" 1 'hamlyn3: .*in common' \
	$ctl peer add 3 host 8 address 127.0.0.8 users 1-5:10,5:20
refuses "peer add with a range that ends before it begins" 2 '.*users' \
	$ctl peer add 3 host 8 address 127.0.0.8 users 5-4:10
check "peer del of it" $ctl peer del 3 host 7
refuses "peer add with no address" 2 'where is the peer' $ctl peer add 3 host 5
refuses "peer add with no host" 2 'which peer' $ctl peer add 3 address 127.0.0.2
refuses "peer add to a loop" 1 'hamlyn0: .*loop of this kernel.*\(Operation not supported' \
	$ctl peer add 0 host 2 address 127.0.0.2
refuses "a user may not: peer add" 1 '.*Operation not permitted' as bob "$ctl peer add 3 host 6 address 127.0.0.6"
refuses "a user may not: peer del" 1 '.*Operation not permitted' as bob "$ctl peer del 3 host 2"
refuses "a user may not: peer show" 1 '.*Operation not permitted' as bob "$ctl peer show 3"
check "peer del" $ctl peer del 3 host 2
refuses "and it is gone" 1 'hamlyn3: no such peer' $ctl peer del 3 host 2
check "nic del with peers" $ctl nic del 3

unshare -n sleep 1000 &
sleeper=$!
eventually sh -c "[ \"\$(readlink /proc/$sleeper/ns/net)\" != '$own_netns' ]"
other ip link set lo name hml-own
other ip link set hml-own up
refuses "a device of another namespace" 1 "new NIC: no .*device .*in the NIC's network namespace" \
	add_tcp index 3 device hml-own
prints "nic add fabric tcp in another namespace" '^hamlyn3' \
	add_tcp index 3 device hml-own netns $sleeper
refuses "peers are of a NIC's namespace" 1 'hamlyn3: no such NIC' $ctl peer add 3 host 2 address 127.0.0.2
check "peer add netns" $ctl peer add 3 host 2 address 127.0.0.2 netns $sleeper
prints "peer show netns" 'host 2 ' $ctl peer show netns $sleeper
check "peer del netns" $ctl peer del 3 host 2 netns $sleeper
check "nic del there, of that fabric" other $ctl nic del 3
if [ "${HAMLYN_WIREGUARD:-no}" = yes ]; then
	check "there is WireGuard" ip link add hml-wg type wireguard
	ip addr add 10.9.0.1/24 dev hml-wg
	ip link set hml-wg up
	prints "nic add device of WireGuard" '^hamlyn3' \
		$ctl nic add index 3 fabric tcp host 1 address 10.9.0.1 device hml-wg
	prints "and nothing is clear" 'device hml-wg dead-ms' $ctl nic show 3
	$ctl nic del 3
	ip link del hml-wg
fi

# ---- apply ----

mkdir -p /tmp/fabric.d
cat >/tmp/fabric.d/10-nics.conf <<EOF
# What is behind a # is not read
nic add index 3 $fabric port 7001 limits user-slots 10   # not this either

nic add fabric tcp id-from green host 9 security clear address 127.0.0.9
EOF
echo "peer add hamlyn3 host 2 address 127.0.0.2" >/tmp/fabric.d/20-peers.conf
echo "nonsense" >/tmp/fabric.d/30-peers.conf.dpkg-old
prints "apply" 'conf:2: hamlyn3 added .*conf:4: hamlyn[0-9]+ added .*conf:1: hamlyn3: peer 2 added' \
	$ctl apply /tmp/fabric.d
prints "and all is there" 'hamlyn3: host 2 address 127.0.0.2 port 927' $ctl peer show
lacks "apply again does nothing" . $ctl apply /tmp/fabric.d
refuses "apply of another value" 1 '.*other.conf:1: hamlyn3 has peer 2 already, with another address' \
	sh -c "echo 'peer add 3 host 2 address 127.0.0.3' >/tmp/other.conf; $ctl apply /tmp/other.conf"
refuses "apply of another port" 1 '.*other.conf:2: hamlyn3 is there already, with another port' \
	sh -c "(echo; echo 'nic add index 3 $fabric port 7002') >/tmp/other.conf; $ctl apply /tmp/other.conf"
refuses "apply without clear" 1 '.*other.conf:1: hamlyn3 is there already, with another security' \
	sh -c "echo 'nic add index 3 fabric tcp host 1 address 127.0.0.1' >/tmp/other.conf; $ctl apply /tmp/other.conf"
refuses "apply of a wrong line does nothing" 2 '.*other.conf:2: keyword "hots" is unknown; allowed: host, address' \
	sh -c "(echo 'peer add 3 host 7 address 127.0.0.7'; echo 'peer add 3 hots 8') >/tmp/other.conf; $ctl apply /tmp/other.conf"
refuses "nothing at all" 1 'hamlyn3: no such peer' $ctl peer show 3 host 7
refuses "apply of a line that the kernel refuses" 1 '.*other.conf:1: hamlyn0: .*loop of this kernel' \
	sh -c "echo 'peer add 0 host 7 address 127.0.0.7' >/tmp/other.conf; $ctl apply /tmp/other.conf"
refuses "apply of what only a person would say" 2 '.*other.conf:1: verb "del" is unknown; allowed: add' \
	sh -c "echo 'nic del 0' >/tmp/other.conf; $ctl apply /tmp/other.conf"
refuses "apply of what is not there" 1 'cannot open /tmp/no.conf' $ctl apply /tmp/no.conf
echo "nic add index 5 $fabric netns $sleeper
peer add 5 host 2 address 127.0.0.2 netns $sleeper" >/tmp/other.conf
prints "apply in another namespace" 'conf:1: hamlyn5 added .*conf:2: hamlyn5: peer 2 added' $ctl apply /tmp/other.conf
lacks "apply there again does nothing" . $ctl apply /tmp/other.conf
other $ctl nic del 5
kill $sleeper
wait $sleeper 2>/dev/null
for nic in $($ctl -j nic show | grep -o '"nic":[0-9]*' | grep -v ':0$'); do
	$ctl nic del "${nic#*:}"
done

# ---- objects of a context ----

start_peer alice /dev/hamlyn0 10 3
prints "context show" 'hamlyn0 .* hamlynctl-peer +alice +1 +1 +1 +1' $ctl context show
json "context show in JSON" context-show '"comm":"hamlynctl-peer","uid":1001,"user":"alice"' \
	$ctl -j context show 0
context=$($ctl -j context show | sed -n 's/.*"context":\([0-9]*\),.*/\1/p')
prints "area show" 'hamlyn0 .* 8K +no +yes' $ctl area show
json "area show in JSON" area-show '"length":8192,"readonly":false,"allocated":true' $ctl -j area show
prints "slot show" "hamlyn0 .* $slot +normal .* key:3" $ctl slot show hamlyn0
json "slot show in JSON" slot-show "\"slot\":$slot,.*\"key\":3" $ctl -j slot show 0 context "$context"
prints "nq show" 'hamlyn0 .* 16 +10 ' $ctl nq show
json "nq show in JSON" nq-show '"entries":16,"used":10,"lost":0,"slots":1' $ctl -j nq show 0 c "$context"
prints "terminus show" 'hamlyn0 .* normal +1 .* 13 +13 +1300 +0' $ctl terminus show
json "terminus show in JSON" terminus-show '"messages":13,"packets":13,"bytes":1300,"failed":0' \
	$ctl -j terminus show 0 context "$context"
terminus=$($ctl -j terminus show | sed -n 's/.*"id":\([0-9]*\),.*/\1/p')
check "terminus set" $ctl terminus set 0 "$context" "$terminus" priority high weight 7
json "and it is set" terminus-show '"priority":"high","weight":7' $ctl -j terminus show
refuses "terminus set of one that is not there" 1 'hamlyn0: no such terminus.*\(No such file' \
	$ctl terminus set 0 "$context" 99 weight 1
refuses "a weight out of range" 2 'weight takes a number from 1 to 64' \
	$ctl terminus set 0 "$context" "$terminus" weight 65
refuses "objects of a context that is not there" 1 'hamlyn0: .*no such context' \
	$ctl area show 0 context 99

# ---- names ----

prints "name show" "hamlyn0 +slot.$slot +alice +[0-9]+ +0 +0 " $ctl name show
json "name show in JSON" name-show "\"called_name\":\"slot.$slot\",\"uid\":1001,\"user\":\"alice\"" \
	$ctl -j name show hamlyn0
prints "users are shown their own names" "slot.$slot +alice" as alice $ctl name show
lacks "and no others" alice as bob $ctl name show
refuses "name show of a NIC that is not there" 1 'hamlyn9: no such NIC' $ctl name show 9

# ---- counters, rejected packets ----

prints "stats show" '^hamlyn0: messages 13 packets 13 bytes 1300 .*rejects: slot 0 key 3 ' $ctl stats show
json "stats show in JSON" stats-show '"messages":13,.*"key":3' $ctl -j stats show hamlyn0
prints "audit show" "hamlyn0 .* key +[0-9]+ +$slot .* alice" $ctl audit show
json "audit show in JSON" audit-show '"reason":"key",' $ctl -j audit show 0
json "audit show of a context" audit-show "\"context\":$context}" $ctl -j audit show 0 context "$context"

# ---- users and limits ----

prints "user show" 'hamlyn0 +alice +1 +1 +1 ' $ctl user show
json "user show in JSON" user-show '"uid":1001,"user":"alice","contexts":1,"slots":1' $ctl -j user show 0
check "limit set of a user" $ctl limit set 0 uid alice user-slots 1 user-kernel-memory 1M \
	user-wired-memory unlimited user-termini 5
prints "and it is set" \
	'alice .*user-kernel-memory:1M,user-wired-memory:unlimited,user-slots:1,user-termini:5' $ctl user show
json "in JSON, too" user-show '"user_kernel_memory":1048576,"user_wired_memory":null,"user_slots":1' \
	$ctl -j user show
stop_peer
check "limit set to nothing" $ctl limit set 0 uid 1001 user-slots 0
prints "and it is told" 'alice .*user-slots:0,' $ctl user show
prints "what is not allowed any more is refused" 'slot: Disk quota' \
	refused_peer alice
check "limit reset" $ctl limit reset 0 uid alice
lacks "and the user has no limits of his own" 'alice .*user-slots' $ctl user show
check "limit set of the NIC" $ctl limit set 0 kernel-memory 16M user-slots 100
prints "and it is set" 'kernel-memory 16M .* user-slots 100 ' $ctl nic show
check "limit set to unlimited" $ctl limit set 0 kernel-memory unlimited
json "and there is none" nic-show '"kernel_memory":null' $ctl -j nic show
refuses "a limit that is no user's" 1 'hamlyn0: kernel-bytes is for all users' \
	$ctl limit set 0 uid alice kernel-memory 1M

# ---- events ----

# What happens before a monitor listens it does not tell.
monitors_listen() {
	$ctl nic add index 6 && $ctl nic del 6
	grep -q nic-new /tmp/events && grep -q nic-new /tmp/events.json
}

all_told() {
	grep -q quota /tmp/events && grep -q quota /tmp/events.json
}

$ctl monitor >/tmp/events 2>&1 &
monitor=$!
$ctl -j monitor >/tmp/events.json 2>&1 &
monitor_json=$!
check "monitors listen" eventually monitors_listen
$ctl nic add index 5 >/dev/null
$ctl nic set 5 down
$ctl nic set 5 up
$ctl nic del 5
add_tcp index 5 port 7001 >/dev/null
$ctl nic add index 4 fabric tcp host 2 security clear address 127.0.0.2 port 7002 >/dev/null
$ctl peer add 5 host 2 address 127.0.0.2 port 7002
$ctl peer add 4 host 1 address 127.0.0.1 port 7001
eventually grep -q peer-up /tmp/events
$ctl peer del 5 host 2
$ctl nic del 5
$ctl nic del 4
# At the default rate nobody is paused by a few.
$ctl nic set 0 guesses 5
start_peer bob /dev/hamlyn0 0 8
stop_peer
$ctl nic set 0 guesses 10000
$ctl limit set 0 uid bob user-slots 0
refused_peer bob >/dev/null
$ctl limit reset 0 uid bob
eventually all_told
for event in 'nic-new nic hamlyn5' 'nic-down nic hamlyn5' 'nic-up nic hamlyn5' 'nic-del nic hamlyn5' \
	'context-open nic hamlyn0 context .* pid .* uid bob' 'context-close nic hamlyn0 .* uid bob' \
	'peer-up nic hamlyn5 peer 2' 'peer-down nic hamlyn5 peer 2 reason down' \
	'terminus-paused nic hamlyn0 .* paused-ms' 'quota nic hamlyn0 .* uid bob slots '; do
	prints "monitor: ${event%% *}" "$event" cat /tmp/events
done
json "monitor in JSON" monitor '"event":"nic-new","nic":5' cat /tmp/events.json
check "monitor ends with success when interrupted" interrupted $monitor
check "monitor in JSON does, too" interrupted $monitor_json

# ---- top ----

start_peer alice /dev/hamlyn0 1 0 5000
prints "top in batch mode shows the busy NIC" 'hamlyn0 up 1 1 [1-9]' $ctl top -b -d 0.5 -n 2
cp /tmp/out /tmp/top
prints "and who keeps it busy" 'hamlyn0 [0-9]+/[0-9]+ [1-9].* alice hamlynctl-peer' cat /tmp/top
TERM=vt100
export TERM
check "top on a terminal: keys s, p, a smaller window, q" hamlynctl-pty '..ss.p..pR..q' $ctl top -d 0.3
cp /tmp/out /tmp/top
for word in 'by messages' packets bytes paused hamlynctl-peer; do
	prints "it shows $word" "$word" cat /tmp/top
done
check "top on a terminal ends after -n pictures" hamlynctl-pty . $ctl top -n 2 -d 0.2
check "and with success on Ctrl-C" hamlynctl-pty ..C $ctl top
TERM=none
prints "top on an unknown terminal is in batch mode" 'no live screen: .TERM is "none".*batch mode instead.*q ends it.*NIC +STATE' \
	hamlynctl-pty . $ctl top -n 1 -d 0.2
check "and hears q" timeout $((20 * scale)) hamlynctl-pty ....q $ctl top -d 0.3
TERM=vt100
for columns in 80 200; do
	HAMLYN_COLUMNS=$columns hamlynctl-pty .. $ctl top -n 2 -d 0.3 | base64 | sed "s/^/# screen top-$columns /"
	HAMLYN_COLUMNS=$columns hamlynctl-pty . $ctl audit show | base64 | sed "s/^/# screen audit-$columns /"
done
narrow() {
	HAMLYN_COLUMNS=80 hamlynctl-pty . "$@" | tr -d '\r' >/tmp/out
	! grep -E '.{81}' /tmp/out
}
for object in context area slot nq terminus user audit; do
	check "$object show on 80 columns" narrow $ctl $object show
done
json "top in JSON" top '"comm":"hamlynctl-peer"' $ctl -j top -d 0.3 -n 1
stop_peer

# ---- other users ----

start_peer alice /dev/hamlyn0 1 1
alice=$peer
start_peer bob /dev/hamlyn0 1 1
prints "root sees all contexts" 'alice .*bob ' $ctl context show
prints "a user sees its own context" 'alice ' as alice $ctl context show
lacks "and no other" 'bob' as alice $ctl context show
for object in area slot nq terminus audit; do
	lacks "a user sees nothing of root's or others': $object" '"nic":.*"nic":' as bob $ctl -j $object show
	json "but his own: $object" $object-show '"nic":0' as bob $ctl -j $object show
done
prints "a user sees what he has" 'bob' as bob $ctl user show
lacks "and not what others have" 'alice' as bob $ctl user show
json "nic show does not tell users of the adversary" nic-show '"limits"' as bob $ctl -j nic show
lacks "it does not" 'adversary' as bob $ctl nic show
prints "top works for users" 'bob +hamlynctl-peer' as bob $ctl top -b -n 1 -d 0.2
json "top in JSON without counters" top '"nics"' as bob $ctl -j top -n 1 -d 0.2
for line in 'nic add' 'nic del 0' 'nic set 0 down' 'nic feed 0 every 1' 'stats show' 'stats show 0' \
	'limit set 0 user-slots 1' 'terminus set 0 0 0 weight 2'; do
	refuses "a user may not: $line" 1 '.*Operation not permitted' as bob "$ctl $line"
done
prints "doctor" 'ok +module +loaded.*ok +device +/dev/hamlyn0.*ok +version' $ctl doctor
json "doctor in JSON" doctor '"what":"device","condition":"ok"' $ctl -j doctor
prints "doctor of a user" 'ok +device +/dev/hamlyn0 may be opened' as bob $ctl doctor
chmod 600 /dev/hamlyn0
finds_a_fault() { # USER PATTERN
	said=$(as "$1" $ctl doctor)
	[ $? = 1 ] && echo "$said" && echo "$said" | tr -s '\n ' ' ' | grep -qE -e "$2"
}
check "doctor of a user who may not open it" finds_a_fault bob \
	'FAULT device /dev/hamlyn0: Permission denied -> chmod 666 /dev/hamlyn0'
chgrp alice /dev/hamlyn0 && chmod 660 /dev/hamlyn0
check "doctor of who is not in its group" finds_a_fault bob \
	'FAULT device /dev/hamlyn0: Permission denied -> adduser bob alice'
chgrp root /dev/hamlyn0 && chmod 666 /dev/hamlyn0
$ctl nic set hamlyn0 down
check "doctor of a NIC that is down" finds_a_fault root 'FAULT state /dev/hamlyn0 is down -> hamlynctl nic set hamlyn0'
$ctl nic set hamlyn0 up
refuses "a user may not listen to events" 1 'cannot listen to events' as bob $ctl monitor
stop_peer
peer=$alice
stop_peer

# ---- metrics ----

# metrics FORMAT NAME PATTERN COMMAND...: text that the host is to check
metrics() {
	format=$1 name=$2 pattern=$3
	shift 3
	if "$@" >/tmp/out 2>/tmp/err && tr '\n' ' ' </tmp/out | grep -qE -e "$pattern"; then
		pass "$name"
		sed "s/^/# $format /" /tmp/out
		echo "# $format"
	else
		fail "$name" /tmp/out /tmp/err
	fi
}

written() {
	hamlynctl metrics write /tmp/hamlyn.prom && cat /tmp/hamlyn.prom
}

rejected() { # REASON: so many packets were, of hamlyn0
	hamlynctl metrics | sed -n "s/^hamlyn_nic_rejected_packets_total{nic=\"hamlyn0\",reason=\"$1\"} //p"
}

lines() {
	hamlynctl metrics | wc -l
}

add_tcp index 3 id-from green port 7003 >/dev/null
$ctl peer add 3 host 2 address 127.0.0.2 port 7002
before=$(rejected key)
start_peer alice /dev/hamlyn0 5 2 1000
metrics open "metrics" 'hamlyn_nic_messages_total\{nic="hamlyn0"\} [1-9].*hamlyn_peer_up\{nic="hamlyn3",peer="2"\} 0 ' \
	$ctl metrics
metrics text "metrics of the textfile collector" '# TYPE hamlyn_nic_messages_total counter hamlyn_nic_messages' written
grows() {
	[ "$(rejected key)" -ge $((before + 2)) ]
}
check "guesses are counted" eventually grows
alone=$(lines)
first=$peer
for user in bob alice bob alice; do
	su "$user" -c "exec hamlynctl-peer /dev/hamlyn0 5 0" >/tmp/ready 2>&1 &
	others="${others:-} $!"
	eventually grep -q ready /tmp/ready
done
same_lines() {
	[ "$(lines)" = "$alone" ]
}
check "what users make adds no series" same_lines
for peer in $others $first; do
	stop_peer
done
metrics open "users are told no counters, and that is no failure" 'hamlyn_up 1 .*hamlyn_nic_contexts\{nic="hamlyn0"\}' \
	as bob "$ctl metrics"
lacks "of messages or peers" 'messages|rejected|peer' as bob "$ctl metrics"
$ctl nic del 3

# ---- without the module ----

check "the module goes" rmmod hamlyn
refuses "without the module" 1 'the hamlyn module is not loaded \(no netlink family "hamlyn"\)' $ctl nic show
metrics open "without the module, metrics" 'hamlyn_up 0 ' $ctl metrics
prints "without the module, doctor" 'note +module +there is none' $ctl doctor
refuses "without the module, top" 1 'the hamlyn module is not loaded' $ctl top
# shellcheck disable=SC2086 # several words
check "the module comes back" insmod ./hamlyn.ko $module_args

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
