#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# In the files of a system of a release, as root: podman.sh puts it there.
set -uo pipefail
cd /srv/trial || exit 2

# shellcheck source-path=SCRIPTDIR source=result.sh
. ./result.sh

as() { # USER COMMAND...
	local user=$1
	shift
	runuser -u "$user" -- timeout "${PATIENCE:-120}" "$@"
}

# shellcheck source-path=SCRIPTDIR source=containers.sh
. ./containers.sh

# opens NODE BOX-ARGUMENT...: in the place of a NIC's node is one like /dev/null. What of it is
# redirected says whose it is inside.
opens() {
	local node=$1
	shift
	box "$@" localhost/speaks sh -c "id; ls -ln $node; : <>$node" 2>&1 | tee /tmp/opened
	[ "${PIPESTATUS[0]}" = 0 ]
}

refused() { # NODE BOX-ARGUMENT...
	! opens "$@" && grep -q "Permission denied" /tmp/opened
}

hers_opens() {
	local engine=hers
	"$@"
}

# As there is no systemd here; podman's own storage of layers wants a file system that it can stack on
{
	printf '[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n'
	printf '[containers]\ncgroups = "disabled"\n'
} >/etc/containers/containers.conf
printf '[storage]\ndriver = "vfs"\nrunroot = "/run/containers/storage"\ngraphroot = "/var/lib/containers/storage"\n' \
	>/etc/containers/storage.conf
groupadd -f hamlyn
useradd -m -G hamlyn alice
useradd -m -G hamlyn bob
mknod -m 660 /dev/hamlyn0 c 1 3
chgrp hamlyn /dev/hamlyn0
mknod -m 660 /dev/hamlyn8 c 1 3
chown 301000:hamlyn /dev/hamlyn8

echo "# $(. /etc/os-release && echo "$PRETTY_NAME"), $(podman --version), $(crun --version | head -n 1)"
check "an image of a few files" small_image
check "two containers, one segment, no device" segment
check "two containers, two segments" segments
mapping=(--uidmap 0:300000:65536 --network host -v /dev/hamlyn8:/dev/hamlyn8)
check "a node for a user of a mapping" opens /dev/hamlyn8 --user 1000 "${mapping[@]}"
check "and for no other user of it" refused /dev/hamlyn8 --user 1001 "${mapping[@]}"
rm /etc/containers/storage.conf
engine=hers check "a user's own image" small_image
check "her container opens the node, as she" hers_opens opens /dev/hamlyn0 "${her_box[@]}"
check "and as a subordinate number" hers_opens opens /dev/hamlyn0 --user 1000 "${her_box[@]}"
check "without the node's group it does not" hers_opens refused /dev/hamlyn0 --network host --device /dev/hamlyn0
check "two of her containers, one segment" her_segment
check "her containers go" her_containers_go
results
