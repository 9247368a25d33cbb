#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What install.rst says of containers, with podman: for guest.sh, in a machine, and podman.sh, in none.
# Who sources it has as().

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

# A few files, where there is no image yet: to take in a whole system takes podman a quarter of an
# hour where the machine is emulated, and a user's own longer.
small_image() {
	local tree=/tmp/small file files=(/bin/{cat,ls,sh} /usr/bin/{id,timeout,hamlyn-cat})
	! $engine image exists localhost/speaks || return 0
	rm -rf $tree && mkdir -p $tree/{dev,meet,proc,sys,tmp} /srv/meet && chmod 1777 /srv/meet || return
	for file in "${files[@]}" $(ldd "${files[@]}" | grep -o '/[^ :]*\.so[^ :]*' | sort -u); do
		install -D "$file" "$tree$file" || return
	done
	tar -c -C $tree -f $tree.tar . && rm -r $tree && PATIENCE=1200 $engine import -q $tree.tar localhost/speaks
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

# Its users are others than the host's: one of them is given a NIC. Its node comes in by a mount: with
# --device podman has another one made, for the host's number of its owner, which means nobody inside.
mapped() {
	local node=/dev/hamlyn8 how
	hamlynctl nic add index 8 && udevadm settle && chown 301000 $node || return
	how=(--uidmap 0:300000:65536 --user 1000 --network host -v "$node:$node" \
		--device-cgroup-rule "c $(stat -c %Hr:%Lr $node) rw")
	hears_from "from a mapping" "-a 301000" "${how[@]}" -e HAMLYN_DEVICE=$node && return
	ls -ln $node
	box "${how[@]}" localhost/speaks sh -c "cat /proc/self/uid_map /proc/self/mountinfo; id; ls -ln $node"
	return 1
}

# The node is there for nobody of the mapping but the one who has it
mapped_other() {
	! box --uidmap 0:300000:65536 --user 1001 --network host -v /dev/hamlyn8:/dev/hamlyn8 \
		--device-cgroup-rule "c $(stat -c %Hr:%Lr /dev/hamlyn8) rw" localhost/speaks \
		hamlyn-cat -d /dev/hamlyn8 -T 1 /nowhere 2>/tmp/box.err && grep -q "Permission denied" /tmp/box.err
}

# ---- containers of a user, without root ----

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
	hers system reset -f && rm -rf /tmp/small.tar /dev/shm/boxes
}

no_container_left() {
	timeout 600 podman system reset -f || return
	[ ! -e /dev/hamlyn8 ] || hamlynctl nic del hamlyn8 || return
	[ ! -e /dev/hamlyn7 ] || { ip netns exec blue hamlynctl nic del hamlyn7 && ip netns del blue; } || return
	rm -rf /srv/meet /tmp/image /tmp/small.tar /dev/shm/boxes
}
