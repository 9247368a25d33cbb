#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# In a fresh machine of a release, as root: installs the packages in /srv/trial/debs, uses, upgrades,
# removes and purges them. trial.sh puts it there; /srv/trial/next has packages of a later version,
# /srv/trial/parts says what is tried after the installation.
set -uo pipefail
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin
cd /srv/trial || exit 2

passed=0
failed=0
begin=$(date +%s)

check() { # NAME COMMAND...
	local name=$1
	shift
	if "$@" >/tmp/said 2>&1; then
		echo "ok - $name"
		passed=$((passed + 1))
	else
		echo "not ok - $name"
		tail -n 40 /tmp/said | sed 's/^/# | /'
		failed=$((failed + 1))
	fi
}

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
	useradd -m -G hamlyn alice && useradd -m -G hamlyn bob && useradd -m carol
}

is_built() {
	modinfo hamlyn && dkms status hamlyn | grep -q installed
}

is_there() {
	udevadm settle && [ -c /dev/hamlyn0 ] &&
		[ "$(stat -c %G:%a /dev/hamlyn0)" = hamlyn:660 ]
}

# What the page says to type: one line for each of two users
two_commands() {
	as alice hamlyn-cat -l -m 666 /tmp/hello >/tmp/heard &
	echo "hello" | as bob hamlyn-cat -w /tmp/hello && wait $! && [ "$(cat /tmp/heard)" = hello ]
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

# ---- containers, as install.rst has them ----

roots() { # PODMAN-ARGUMENT...
	timeout 300 podman "$@"
}

# As after a login, which makes the folder
hers() { # PODMAN-ARGUMENT...
	local folder
	folder=/run/user/$(id -u alice)
	[ -d "$folder" ] || install -d -m 700 -o alice -g alice "$folder"
	PATIENCE=${PATIENCE:-600} as alice env -C /home/alice HOME=/home/alice XDG_RUNTIME_DIR="$folder" podman "$@"
}

# Whose containers, and who hears them on the host, unless the caller says so
engine=roots
hearer=alice

box() { # PODMAN-RUN-ARGUMENT...
	$engine run --rm "$@"
}

# What every system has, with the library's package; without a network
image() {
	local file=/tmp/image
	mkdir -p "$file" /srv/meet && chmod 1777 /srv/meet &&
		cp debs/libhamlyn0_*.deb /usr/bin/hamlyn-cat "$file/" &&
		printf '%s\n' "FROM localhost/minimal" "COPY libhamlyn0_*.deb /tmp/" "COPY hamlyn-cat /usr/bin/" \
			"RUN dpkg -i /tmp/libhamlyn0_*.deb" >"$file/Containerfile" &&
		timeout 1200 podman import -q minimal.tar localhost/minimal &&
		timeout 1200 podman build --network none -t localhost/speaks "$file"
}

group_of_node() {
	getent group hamlyn | cut -d: -f3
}

hears_from() { # WORDS CAT-ARGUMENTS BOX-ARGUMENT...
	local words=$1 listen=$2 status=0
	shift 2
	rm -f /srv/meet/hello
	# shellcheck disable=SC2086 # words
	PATIENCE=500 as $hearer hamlyn-cat -l -m 666 -T 400 $listen /srv/meet/hello >/tmp/heard.box &
	box -v /srv/meet:/meet "$@" localhost/speaks \
		sh -c "echo $words | hamlyn-cat -w -T 300 /meet/hello" 2>/tmp/box.err || status=$?
	cat /tmp/box.err
	[ $status = 0 ] || kill $!
	wait $! && [ "$(cat /tmp/heard.box)" = "$words" ]
}

host_to_box() {
	hears_from "from a container" "-a bob" --network host --device /dev/hamlyn0 \
		--user "$(id -u bob):$(group_of_node)"
}

without_the_device() {
	! box --network host localhost/speaks hamlyn-cat -d /dev/hamlyn0 -T 1 /nowhere 2>/tmp/box.err &&
		grep -q "No such file" /tmp/box.err
}

# A NIC belongs to a network namespace, whoever is given its node
other_network() {
	! box --network none --device /dev/hamlyn0 localhost/speaks \
		hamlyn-cat -d /dev/hamlyn0 -T 1 /nowhere 2>/tmp/box.err &&
		grep -q "belongs to another namespace" /tmp/box.err
}

nic_for_it() {
	ip netns add blue && hamlynctl nic add index 7 netns blue && [ -c /dev/hamlyn7 ] &&
		hears_from "from a network of its own" "" --network ns:/run/netns/blue \
			--device /dev/hamlyn7 -e HAMLYN_DEVICE=/dev/hamlyn7
}

# The timeout of coreutils 9.10 ends at once where it is process 1.
# shellcheck disable=SC2016 # the shell's inside
bounded=(sh -c '"$@"; exit $?' - timeout 300)

# The embedded device of two containers is a folder of memory that both have at /dev/shm
segment() {
	local name box=(--network none --user 1000 -v /dev/shm/boxes:/dev/shm localhost/speaks)
	rm -rf /dev/shm/boxes && mkdir -m 1777 /dev/shm/boxes &&
		name=$($engine run -d "${box[@]}" "${bounded[@]}" hamlyn-cat -d shm:both -l /dev/shm/hello) &&
		echo "by memory" | box -i "${box[@]}" hamlyn-cat -d shm:both -w -T 100 /dev/shm/hello &&
		$engine wait "$name" && [ "$($engine logs "$name")" = "by memory" ] && return
	$engine ps -a
	$engine logs "$name"
	return 1
}

segments() { # of two containers are two, where they share nothing
	rm -f /srv/meet/apart
	$engine run -d --network none --user 1000 -v /srv/meet:/meet localhost/speaks \
		"${bounded[@]}" hamlyn-cat -d shm:both -l /meet/apart &&
		! box -i --network none --user 1000 -v /srv/meet:/meet localhost/speaks \
			hamlyn-cat -d shm:both -w -T 100 /meet/apart </dev/null 2>/tmp/box.err &&
		grep -q "the server is on another device" /tmp/box.err
}

# Its users are others than the host's: one of them is given a NIC. Not among what is tried by
# default, as podman gives the container a node with the host's number of its owner.
mapped() {
	local how=(--uidmap 0:300000:65536 --user 1000 --network host --device /dev/hamlyn8)
	hamlynctl nic add index 8 && udevadm settle && chown 301000 /dev/hamlyn8 &&
		hears_from "from a mapping" "-a 301000" "${how[@]}" -e HAMLYN_DEVICE=/dev/hamlyn8 && return
	ls -ln /dev/hamlyn8
	box "${how[@]}" localhost/speaks sh -c "cat /proc/self/uid_map; id; ls -ln /dev/hamlyn8; grep hamlyn8 /proc/self/mountinfo"
	return 1
}

# ---- containers of a user, without root ----

her_image() {
	local file=/tmp/speaks.tar
	rm -f $file
	roots save -q -o $file localhost/speaks && chmod 644 $file &&
		PATIENCE=3000 hers load -q -i $file
}

# Root inside is she outside. The group of the node is kept, which the mapping has no number for.
her_box=(--network host --group-add keep-groups --device /dev/hamlyn0)
hers_to_host() {
	local engine=hers hearer=bob
	hears_from "from hers" "-a alice" "${her_box[@]}"
}

another_inside() {
	local engine=hers hearer=bob first
	first=$(sed -n 's/^alice:\([0-9]*\):.*/\1/p' /etc/subuid)
	hears_from "from another" "-a $((first + 999))" --user 1000 "${her_box[@]}"
}

without_the_group() {
	! hers run --rm --network host --device /dev/hamlyn0 localhost/speaks \
		hamlyn-cat -d /dev/hamlyn0 -T 1 /nowhere 2>/tmp/box.err && grep -q "Permission denied" /tmp/box.err
}

her_segment() {
	local engine=hers
	segment
}

her_containers_go() {
	hers system reset -f && rm -rf /tmp/speaks.tar /dev/shm/boxes
}

no_container_left() {
	timeout 600 podman system reset -f || return
	[ ! -e /dev/hamlyn8 ] || hamlynctl nic del hamlyn8 || return
	[ ! -e /dev/hamlyn7 ] || { ip netns exec blue hamlynctl nic del hamlyn7 && ip netns del blue; } || return
	rm -rf /srv/meet /tmp/image /dev/shm/boxes
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

part_device() {
	check "a container speaks to the host's user" host_to_box
	check "without --device it does not" without_the_device
	check "nor from a network that has no NIC" other_network
	check "a NIC for the container's network" nic_for_it
}

part_segment() {
	check "two containers, one segment, no device" segment
	check "two containers, two segments" segments
}

part_mapping() {
	check "a NIC for a user of a mapping" mapped
}

part_rootless() {
	check "a user's own image" her_image
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

echo "$passed passed, $failed failed"
