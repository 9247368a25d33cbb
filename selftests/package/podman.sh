#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What install.rst says of containers with a release's podman, at this machine's speed and without the
# module: the embedded device, and whom podman lets open a node that a NIC would have.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=../vm/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../vm/lib.sh"
# shellcheck source-path=SCRIPTDIR source=system.sh
. "$REPO_DIR/selftests/package/system.sh"

usage() {
	cat <<EOT
Usage: selftests/package/podman.sh [--debs FOLDER] RELEASE

  RELEASE        bookworm, trixie or sid: a system of it is made, as root, once, and kept in
                 \$HAMLYN_CACHE (tools/package/root.sh)
  --debs FOLDER  packages built for that release (build/deb-RELEASE, or build/deb)
EOT
}

system_options "--debs" "$@"
ls "$DEBS"/hamlyn-tools_*.deb >/dev/null 2>&1 || die 1 "there are no packages in $DEBS: make deb RELEASE=$RELEASE"

# The kernel is this machine's
system_unpack machine podman --exclude ./boot --exclude ./usr/src --exclude ./usr/lib/modules
mkdir "$system/srv/trial" "$system/old"
dpkg-deb -x "$DEBS"/hamlyn-tools_*.deb "$work/tools"
cp "$work/tools/usr/bin/hamlyn-cat" "$system/usr/bin/"
cp "$REPO_DIR"/selftests/package/{containers,podman-inside,result}.sh "$system/srv/trial/"

# User namespaces are refused below chroot, so it becomes the root of its mounts.
# shellcheck disable=SC2016 # the inner shell's
timeout $((900 * ${HAMLYN_TEST_SCALE:-1})) unshare --mount --pid --fork --kill-child sh -euc '
	mount --make-rprivate /
	mount --bind "$1" "$1"
	cd "$1"
	mount -t proc proc proc
	mount -t sysfs sysfs sys
	mount -t cgroup2 cgroup2 sys/fs/cgroup
	mount -t tmpfs tmpfs run
	mount -t tmpfs -o mode=755 tmpfs dev
	for node in "null 1 3" "zero 1 5" "full 1 7" "random 1 8" "urandom 1 9" "tty 5 0" "fuse 10 229"; do
		set -- $node
		mknod -m 666 "dev/$1" c "$2" "$3"
	done
	mkdir -m 1777 dev/shm
	mkdir dev/pts dev/mqueue
	mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts
	ln -s pts/ptmx dev/ptmx
	ln -s /proc/self/fd dev/fd
	pivot_root . old
	cd /
	exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
		sh -c "umount -l /old && exec bash /srv/trial/podman-inside.sh"' - "$system"
