#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The packages of "make deb" in a fresh machine of a release of Debian: see guest.sh.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=../vm/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../vm/lib.sh"

MOST="speak image device segment clean autopkgtest upgrade remove"
FROM_MOST="speak upgrade speak remove"
ALL="$MOST rootless mapping"

usage() {
	cat <<EOF
Usage: selftests/package/trial.sh [--debs FOLDER] [--from FOLDER] [--minutes N] [--quick]
                                  [--parts "PART..."] RELEASE

  RELEASE        bookworm, trixie or sid: a machine of it is made, as root, once, and kept in
                 \$HAMLYN_CACHE (tools/package/root.sh)
  --debs FOLDER  packages built for that release (build/deb-RELEASE, or build/deb)
  --from FOLDER  those of an earlier version are installed, and upgraded to the others; else
                 the upgrade is to the same ones with a later number
  --minutes N    until the machine is stopped (120): where it is emulated, building the module
                 takes most of it
  --quick        the packages are installed, and the module is built, before the machine starts:
                 at this machine's speed. The upgrade's module is the same one, with no compiler
  --parts "..."  these after the installation, in this order, each as often as it is named, in
                 place of $MOST
                 (with --from: $FROM_MOST):
                 $ALL
EOF
}

PARTS=
DEBS=
FROM=
MINUTES=120
QUICK=no
RELEASE=
while [ $# -gt 0 ]; do
	case $1 in
	--debs) DEBS=$(realpath "${2:?--debs wants a folder}") && shift 2 ;;
	--from) FROM=$(realpath "${2:?--from wants a folder}") && shift 2 ;;
	--minutes) MINUTES=${2:?--minutes wants a number} && shift 2 ;;
	--quick) QUICK=yes && shift ;;
	--parts) PARTS=${2:?--parts wants some} && shift 2 ;;
	-h | --help) usage && exit ;;
	bookworm | trixie | sid) RELEASE=$1 && shift ;;
	*) usage >&2 && exit 2 ;;
	esac
done
[ -n "$RELEASE" ] || { usage >&2; exit 2; }
DEBS=${DEBS:-$REPO_DIR/build/deb-$RELEASE}
[ -d "$DEBS" ] || DEBS=$REPO_DIR/build/deb
PARTS=${PARTS:-${FROM:+$FROM_MOST}}
PARTS=${PARTS:-$MOST}
need_number --minutes "$MINUTES" 1 1000
for part in $PARTS; do
	[[ " $ALL " == *" $part "* ]] || die 2 "--parts: \"$part\" is unknown; allowed: $ALL"
done
[ "$(id -u)" = 0 ] || die 1 "a machine's files belong to its root: call it as root"
for folder in "$DEBS" ${FROM:+"$FROM"}; do
	ls "$folder"/hamlyn-dkms_*.deb >/dev/null 2>&1 ||
		die 1 "there are no packages in $folder: make deb RELEASE=$RELEASE"
done
[ -e "$CACHE/qemu/stamp" ] || die 1 "QEMU is not in the cache; run: selftests/setup.sh qemu"

base=$("$REPO_DIR/tools/package/root.sh" machine "$RELEASE")
minimal=$("$REPO_DIR/tools/package/root.sh" minimal "$RELEASE")

work=$(mktemp -d "${TMPDIR:-/var/tmp}/hamlyn-trial.XXXXXX")
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir "$root"
tar -x -C "$root" -f "$base"

# in_files COMMAND: by a shell in the machine's files, with none of its processes
in_files() {
	# shellcheck disable=SC2016 # the inner shell's
	unshare --mount --pid --fork --kill-child sh -c '
		mount --make-rprivate /
		mount -t proc proc "$1/proc"
		exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
			DEBIAN_FRONTEND=noninteractive chroot "$1" sh -c "$2"' - "$root" "$1" >"$work/install.log" 2>&1 ||
		no_module "the packages could not be installed, or a module not built"
}

no_module() { # WHY
	tail -n 40 "$work/install.log" >&2
	die 1 "$1"
}

install_here() {
	local module
	in_files "cd /srv/trial && apt-get -q -y --no-install-recommends install ./debs/*.deb"
	# As DKMS compresses it, or not
	module=$(find "$root/var/lib/dkms/hamlyn" -name 'hamlyn.ko*' | head -n 1)
	[ -n "$module" ] || no_module "the module was not built"
	case $module in
	*.xz) xz -dc "$module" ;;
	*.zst) zstd -q -dc "$module" ;;
	*) cat "$module" ;;
	esac >"$root/srv/trial/hamlyn.ko"
}

# As dkms.conf has it
build_here() { # SOURCE
	cp -r "$1" "$root/srv/trial/module"
	in_files 'make -j2 -C /lib/modules/*/build M=/srv/trial/module/driver HAMLYN_ADVERSARY=n modules'
	mv "$root/srv/trial/module/driver/hamlyn.ko" "$root/srv/trial/hamlyn.ko"
	rm -r "$root/srv/trial/module"
}

# only_copied SOURCE: what DKMS does with it, which has been built
only_copied() {
	sed -i 's|^MAKE\[0\]=.*|MAKE[0]="cp /srv/trial/hamlyn.ko driver/"|' "$1/dkms.conf"
}

# later_version FROM TO: the same, of a later version
later_version() {
	local deb old new tree
	old=$(dpkg-deb -f "$1"/hamlyn-dkms_*.deb Version)
	old=${old%-*}
	new=$old+next
	for deb in "$1"/*.deb; do
		tree=$work/tree
		dpkg-deb -R "$deb" "$tree"
		grep -rlIF -e "$old" "$tree" | tr '\n' '\0' | xargs -0 -r sed -i "s/${old//./\\.}/$new/g"
		[ ! -d "$tree/usr/src/hamlyn-$old" ] || mv "$tree/usr/src/hamlyn-$old" "$tree/usr/src/hamlyn-$new"
		sed -i "s|hamlyn-$old/|hamlyn-$new/|" "$tree/DEBIAN/md5sums"
		[ "$QUICK" = no ] || [ ! -e "$tree/usr/src/hamlyn-$new/dkms.conf" ] ||
			only_copied "$tree/usr/src/hamlyn-$new"
		dpkg-deb -b "$tree" "$2" >/dev/null
		rm -rf "$tree"
	done
	echo "$new-1" >"$2/version"
}

# real_version FROM TO: what was built
real_version() {
	local tree=$work/tree source
	copy_debs "$1" "$2"
	dpkg-deb -f "$2"/hamlyn-dkms_*.deb Version >"$2/version"
	[ "$QUICK" = yes ] || return 0
	dpkg-deb -R "$2"/hamlyn-dkms_*.deb "$tree"
	source=$(echo "$tree"/usr/src/hamlyn-*)
	build_here "$source"
	only_copied "$source"
	rm "$2"/hamlyn-dkms_*.deb
	dpkg-deb -b "$tree" "$2" >/dev/null
	rm -rf "$tree"
}

copy_debs() { # FROM TO
	local deb
	for deb in "$1"/*.deb; do
		[[ $deb == *-dbgsym_* ]] || cp "$deb" "$2/"
	done
}

mkdir -p "$root/srv/trial/debs" "$root/srv/trial/next" "$root/srv/trial/source"
cp "$DEBS"/hamlyn_*.dsc "$DEBS"/hamlyn_*.tar.* "$root/srv/trial/source/"
cp -r "$REPO_DIR/tools/package/debian/tests" "$root/srv/trial/tests"
cp "$minimal" "$root/srv/trial/minimal.tar"
copy_debs "${FROM:-$DEBS}" "$root/srv/trial/debs"
[ "$QUICK" = no ] || install_here
if [ -n "$FROM" ]; then
	real_version "$DEBS" "$root/srv/trial/next"
else
	later_version "$root/srv/trial/debs" "$root/srv/trial/next"
fi
install -m 755 "$REPO_DIR"/selftests/package/{guest,containers,result}.sh "$root/srv/trial/"
echo "$PARTS" >"$root/srv/trial/parts"
cat >"$root/etc/systemd/system/trial.service" <<'EOF'
[Unit]
After=multi-user.target
[Service]
Type=oneshot
StandardOutput=file:/dev/ttyS1
StandardError=inherit
TimeoutStartSec=infinity
ExecStart=/srv/trial/guest.sh
ExecStopPost=/bin/systemctl poweroff --no-block
EOF
mkdir -p "$root/etc/systemd/system/default.target.wants"
ln -sf ../trial.service "$root/etc/systemd/system/default.target.wants/trial.service"
# No login is waited for, and no disk is checked
ln -sf /dev/null "$root/etc/systemd/system/serial-getty@ttyS0.service"
echo "/dev/vda / ext4 defaults 0 0" >"$root/etc/fstab"
: >"$root/etc/machine-id"

image=$work/disk
truncate -s 6G "$image"
mke2fs -q -t ext4 -d "$root" "$image"
kernel=$(find "$root/boot" -name 'vmlinuz-*' | sort -V | tail -n 1)
[ -n "$kernel" ] || die 1 "the machine of $RELEASE has no kernel"
cp "$kernel" "$work/vmlinuz"
cp "${kernel/vmlinuz/initrd.img}" "$work/initrd"
rm -rf "$root"

load() {
	echo "# load of the machine that emulates: $(cut -d' ' -f1 /proc/loadavg) on $(nproc) processors, $1"
}

qemu=$CACHE/qemu/usr
status=0
load "at the start"
QEMU_MODULE_DIR=$qemu/lib/x86_64-linux-gnu/qemu timeout -k 10 $((MINUTES * 60)) \
	"$qemu/bin/qemu-system-x86_64" -L "$qemu/share/qemu" -L "$qemu/share/seabios" -L /usr/share/seabios \
	-accel tcg,thread=multi -cpu max -smp 2 -m 2048 -nodefaults -no-user-config -display none -no-reboot \
	-drive "file=$image,format=raw,if=virtio,cache=unsafe" \
	-chardev "file,id=console,path=$work/console" -serial chardev:console \
	-chardev "file,id=tap,path=$work/tap" -serial chardev:tap \
	-kernel "$work/vmlinuz" -initrd "$work/initrd" \
	-append "root=/dev/vda console=ttyS0 panic=-1 quiet systemd.show_status=0" || status=$?
tr -d '\r' <"$work/tap"
load "at the end"
if ! tail -n 1 "$work/tap" | grep -q 'passed, 0 failed'; then
	tail -n 30 "$work/console" | tr -d '\r' | sed 's/^/# console: /'
	[ "$status" != 124 ] || say "trial: the machine was stopped after $MINUTES minutes"
	exit 1
fi
