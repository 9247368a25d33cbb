# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=sh disable=SC2154,SC2086 # behind host.sh
# Host 2 of the demo: bob sends; then it is whatever a hostile host may be.

mkdir -m 700 /tmp/in
chown $BOB /tmp/in
as_user $BOB dd if=/dev/urandom of=/tmp/in/file bs=1048576 count="$MIB" 2>/dev/null
got_ticket() {
	fetch 0 >/tmp/in/ticket && [ -s /tmp/in/ticket ]
}
eventually got_ticket || die "no ticket came"
chown $BOB /tmp/in/ticket
say "bob on host 2 has the ticket, and sends $MIB MiB of random bytes"
as_user $BOB send_file -q -d $DEVICE -t /tmp/in/ticket /tmp/in/file || die "send_file failed"
sum=$(sha256sum /tmp/in/file | cut -d' ' -f1)
echo "the original, by sha256sum: $sum"
echo "@ original $sum"

say "root of host 2 tries what a hostile host can"
eventually fetch 1
echo "to be host 3, which host 1 does not know"
hamlynctl nic del hamlyn9
hamlynctl nic add index 9 fabric tcp host 3 address 10.77.0.2 security clear >/dev/null
hamlynctl peer add hamlyn9 host 1 address 10.77.0.1
eventually fetch 2
echo "to send random bytes"
hamlynctl nic del hamlyn9
nonsense() {
	head -c 4096 /dev/urandom | timeout 5 nc -l -p 927 >/dev/null || :
	fetch 3
}
eventually nonsense
hamlynctl nic add index 9 fabric tcp host 2 address 10.77.0.2 security clear >/dev/null
hamlynctl peer add hamlyn9 host 1 address 10.77.0.1
eventually fetch 4
ip link set eth0 down
sleep 4
ip link set eth0 up
# Host 1 has seen it all.
eventually fetch 5
