#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# In a fresh machine of a release, as root: installs the packages in /srv/trial/debs, uses, upgrades,
# removes and purges them. trial.sh puts it there; /srv/trial/next has packages of a later version,
# /srv/trial/parts says what is tried after the installation.
set -uo pipefail
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin
cd /srv/trial || exit 2

# shellcheck source-path=SCRIPTDIR source=result.sh
. ./result.sh
begin=$(date +%s)

elapsed() { # WHAT
	echo "# $1: $(($(date +%s) - begin)) s after the first command"
}

as() { # USER COMMAND...
	local user=$1
	shift
	runuser -u "$user" -- timeout "${PATIENCE:-120}" "$@"
}

apt_() { # ARGUMENT...
	apt-get -q -y --no-install-recommends "$@"
}

are_installed() {
	[ "$(dpkg-query -W -f '${db:Status-Abbrev}\n' '*hamlyn*' | grep -c '^ii')" = \
		"$(find debs -name '*.deb' | wc -l)" ]
}

installs() { # FOLDER
	apt_ install "./$1"/*.deb
}

users() {
	useradd -m alice && useradd -m bob && useradd -m carol &&
		usermod -aG hamlyn alice && usermod -aG hamlyn bob
}

is_built() {
	modinfo hamlyn && dkms status hamlyn | grep -q installed
}

is_there() {
	udevadm settle && [ -c /dev/hamlyn0 ] &&
		[ "$(stat -c %G:%a /dev/hamlyn0)" = hamlyn:660 ]
}

# shellcheck source-path=SCRIPTDIR source=containers.sh
. ./containers.sh

# What the page says to type: one line for each of two users
two_commands() {
	local listener
	as alice hamlyn-cat -l -m 666 /tmp/hello >/tmp/heard &
	listener=$!
	until [ -S /tmp/hello ] || [ ! -e /proc/$listener ]; do sleep 0.1; done
	echo hello | as bob hamlyn-cat /tmp/hello && wait $listener && [ "$(cat /tmp/heard)" = hello ]
}

no_member() {
	! as carol hamlyn-cat -d /dev/hamlyn0 -l /tmp/carol 2>/tmp/carol.err &&
		grep -q "Permission denied" /tmp/carol.err
}

forged_key() {
	gcc -Wall -O2 -o /tmp/key tests/key.c -lhamlyn && as bob /tmp/key &&
		hamlynctl audit show hamlyn0 | grep -q "key.*bob"
}

python_speaks() {
	as bob python3 tests/speak.py /tmp/speak
}

# debian/tests, with what is installed. This is the machine that they want: newer ones do not take
# it for one.
autopkgtests() {
	autopkgtest --no-built-binaries --ignore-restrictions=isolation-machine source/*.dsc -- null
}

tempest_runs() { # x86-64 only
	cat >/tmp/t.c <<'EOT'
#include <stdio.h>
#include <stache.h>
int main(int argc, char **argv) { printf("node\n"); return argc < 1 || !argv; }
EOT
	(cd /tmp && hamlyn-tempest-cc -c t.c -o t.o) && [ -s /tmp/t.o ]
}

controls() {
	hamlynctl nic show && hamlynctl --version && systemctl restart systemd-modules-load
}

# A listener that was there before goes on, with what it has mapped
holds() {
	# Building the module takes its time where the machine is emulated
	PATIENCE=10000 as alice hamlyn-cat -l -m 666 /tmp/held >/tmp/heard.held &
	holder=$!
	until [ -S /tmp/held ] || [ ! -e "/proc/$holder" ]; do sleep 0.1; done
	[ -S /tmp/held ]
}

still_hears() { # with the tool that is there, or the one that was
	cp /usr/bin/hamlyn-cat /tmp/cat.before 2>/dev/null
	echo "$1" | as bob /tmp/cat.before /tmp/held && wait "$holder" &&
		[ "$(cat /tmp/heard.held)" = "$1" ]
}

reloads() {
	rmmod hamlyn && modprobe hamlyn && udevadm settle && is_there
}

is_new() {
	[ "$(dpkg-query -W -f '${Version}' hamlyn-dkms)" = "$(cat /srv/trial/next/version)" ] &&
		[ "$(dkms status hamlyn | wc -l)" = "$(find /lib/modules -maxdepth 1 -name '[0-9]*' | wc -l)" ]
}

removes() {
	apt_ remove hamlyn-dkms 2>&1 | tee /tmp/remove.log && grep -q "the module stays" /tmp/remove.log &&
		! modinfo hamlyn
}

purges() {
	# shellcheck disable=SC2046 # one word each
	apt_ purge $(dpkg-query -W -f '${Package}\n' '*hamlyn*')
}

# Logs and apt's own records tell that it was there, and the group stays, as groups do
nothing_left() {
	! find / -xdev \( -path /root -o -path /srv -o -path /tmp -o -path /proc -o -path /sys -o -path /var/log \
		-o -path /var/lib/apt -o -path /var/cache -o -path /run -o -path /var/tmp -o -path /home \) \
		-prune -o -name '*hamlyn*' -print | grep . && [ ! -d /sys/module/hamlyn ]
}

# ---- what is tried, and in what order ----

part_speak() {
	check "two users, two commands" two_commands
	elapsed "first message"
	check "who is no member may not" no_member
	check "a forged key is refused" forged_key
	check "Python" python_speaks
	[ "$(uname -m)" != x86_64 ] || check "hamlyn-tempest-cc compiles" tempest_runs
	check "hamlynctl, and the module is loaded again when the system starts" controls
}

part_image() {
	check "an image, with the library's package" image
}

# Where "image" was not among the parts
any_image() {
	$engine image exists localhost/speaks || check "an image of a few files" small_image
}

part_device() {
	any_image
	check "a container speaks to the host's user" host_to_box
	check "without --device it does not" without_the_device
	check "nor from a network that has no NIC" other_network
	check "a NIC for the container's network" nic_for_it
}

part_segment() {
	any_image
	check "two containers, one segment, no device" segment
	check "two containers, two segments" segments
}

part_mapping() {
	any_image
	check "a NIC for a user of a mapping" mapped
	check "and for no other user of it" mapped_other
}

part_rootless() {
	engine=hers check "a user's own image" small_image
	check "her container speaks to another user of the host, as she" hers_to_host
	check "and as a subordinate number" another_inside
	check "without the node's group it does not" without_the_group
	check "two of her containers, one segment" her_segment
	check "her containers go" her_containers_go
}

part_clean() {
	check "containers go" no_container_left
	elapsed "containers"
}

part_autopkgtest() {
	check "autopkgtest" autopkgtests
	grep -E '^[a-z-]+ +(PASS|FAIL|SKIP)' /tmp/said | sort -u | sed 's/^/# autopkgtest: /'
}

part_upgrade() {
	check "somebody uses it" holds
	check "upgraded while in use" installs next
	check "who used it goes on" still_hears upgraded
	check "the later version is there, and no other" is_new
	check "the later tools, with the module of before" two_commands
	check "and can be loaded" reloads
}

part_remove() {
	check "somebody uses it again" holds
	cp /usr/bin/hamlyn-cat /tmp/cat.before
	check "removed while in use, and says so" removes
	check "who used it goes on without it" still_hears removed
	check "the module can go" rmmod hamlyn
	check "purged" purges
	check "nothing is left" nothing_left
}

read -ra wanted <parts
echo "# $(. /etc/os-release && echo "$PRETTY_NAME"), Linux $(uname -r)"
begin=$(date +%s)
if [ -e hamlyn.ko ]; then
	check "apt has installed them before the machine was started" are_installed
else
	check "apt installs" installs debs
	elapsed "installed"
fi
check "the module was built for this kernel" is_built
check "the device is there, for members of the group" is_there
check "users" users
for part in "${wanted[@]}"; do
	"part_$part"
done
elapsed "end"

results
