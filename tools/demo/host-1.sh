# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=sh disable=SC2154,SC2086 # behind host.sh
# Host 1 of the demo: alice receives. Then host 2 becomes hostile, and its cable is pulled.

say "this is host 1, Linux $(uname -r); it knows host 2, over a cable between two machines"
hamlynctl peer show hamlyn9 | head -n 1

say "alice offers a message area, and gives a ticket for it to bob on host 2"
mkdir -m 700 /tmp/out
chown $ALICE /tmp/out
: >/tmp/receiver.log
as_user $ALICE receive_file -q -d $DEVICE -o /tmp/out/file -t /tmp/out/ticket >/tmp/receiver.log 2>&1 &
receiver=$!
eventually grep -q '^waiting in slot' /tmp/receiver.log || die "receive_file did not get ready"
sed -n 's/^waiting in slot /she waits in slot (host:slot) /p' /tmp/receiver.log
offer 0 </tmp/out/ticket
wait $receiver || {
	cat /tmp/receiver.log
	die "receive_file failed"
}
grep -v '^waiting' /tmp/receiver.log
echo "the file that alice has, by sha256sum: $(sha256sum /tmp/out/file | cut -d' ' -f1)"
echo "@ received $(sed -n 's/^sha256 //p' /tmp/receiver.log)"
echo "@ bytes $(sed -n 's/^bytes //p' /tmp/receiver.log)"

say "host 2 becomes hostile"
hamlynctl monitor >>/tmp/events 2>&1 &
monitor=$!
offer 1 </dev/null
eventually peer_tells 'reason other-host' || die "a host with another id was not refused"
echo "one that says to be host 3, from host 2's address:"
echo $peer | grep -o 'state.*reason [a-z-]*'
offer 2 </dev/null
eventually peer_tells 'reason nonsense' || die "nonsense was not refused"
echo "one that answers with random bytes, where host 2 should be:"
echo $peer | grep -o 'state.*reason [a-z-]*'
refused=$(echo $peer | sed -n 's/.*refused \([0-9]*\).*/\1/p')
echo "connections refused: $refused"
echo "@ refused $refused"
offer 3 </dev/null

say "host 2 is itself again, and its cable is pulled"
eventually peer_tells 'state up' || die "host 2 did not come back"
: >/tmp/events
is_told() { # REASON
	grep -q "peer-down.*$1" /tmp/events
}
offer 4 </dev/null
begin=$(date +%s)
eventually is_told dead || die "nobody was told of the cable"
told=$(($(date +%s) - begin))
echo "told after $told s:"
echo "@ told $told"
grep peer-down /tmp/events
eventually grep -q peer-up /tmp/events || die "host 2 did not come back with its cable"
echo "and when the cable is in again:"
grep peer-up /tmp/events
kill $monitor
offer 5 </dev/null
