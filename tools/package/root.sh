#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The files of a Debian system of a release, as a tar file in the cache: made once.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
CACHE=${HAMLYN_CACHE:-$PWD/.cache}

usage() {
	cat <<EOF
Usage: tools/package/root.sh machine RELEASE
       tools/package/root.sh minimal RELEASE
       tools/package/root.sh build RELEASE [ARCHITECTURE]

Prints the name of a tar file, which it makes with mmdebstrap, as root, if it is not there;
that takes some minutes. It is older than the mirror then: remove it to have a new one.

  machine  all that hamlyn's packages and their tests depend on, with a kernel and its headers
  minimal  nothing but what every system has
  build    all that it takes to build them and look at them, for ARCHITECTURE by its cross
           compiler
  RELEASE  bookworm, trixie or sid
EOF
}

case ${1-} in
-h | --help) usage && exit ;;
machine | minimal | build) ;;
*) usage >&2 && exit 2 ;;
esac
case ${2-} in
bookworm | trixie | sid) ;;
*) usage >&2 && exit 2 ;;
esac
what=$1
release=$2
arch=${3-}
host=$(dpkg --print-architecture)
[ "$arch" != "$host" ] || arch=

options=(--mode=root --variant=minbase)
# A mirror of sid may be older than its signature says it may get
options+=(--aptopt='Acquire::Check-Valid-Until "false"')
# Unpacked once, into a tar file: whoever loses power begins anew
options+=(--dpkgopt=force-unsafe-io)
case $what in
machine)
	tar=$CACHE/release-$release.tar
	packages=systemd,systemd-sysv,udev,dbus,kmod,passwd,login,procps,apt,python3,dkms,gcc,libc6-dev
	packages+=,pkgconf,openssl,mokutil,autopkgtest,libfabric1,libjson-c5,libncursesw6,libnl-3-200,libnl-genl-3-200
	packages+=,podman,crun,uidmap,iproute2,linux-image-cloud-$host,linux-headers-cloud-$host
	;;
minimal)
	tar=$CACHE/minimal-$release.tar
	packages=
	;;
build)
	tar=$CACHE/build-$release${arch:+-$arch}.tar
	packages=build-essential,fakeroot,debhelper,dh-dkms,dh-python,lintian,locales,pkgconf,python3
	for library in libfabric-dev libjson-c-dev libncurses-dev libnl-3-dev libnl-genl-3-dev \
		libpmix-dev libxxhash-dev; do
		packages+=,$library${arch:+:$arch}
	done
	[ -z "$arch" ] || {
		packages+=,crossbuild-essential-$arch,pkgconf:$arch
		options+=(--architectures="$host,$arch")
	}
	;;
esac

# Another list, another system
tar=${tar%.tar}-$(echo "$packages" | cksum | cut -d' ' -f1).tar
if [ ! -e "$tar" ]; then
	[ "$(id -u)" = 0 ] || {
		echo "root.sh: the files of a system belong to its root: call it as root" >&2
		exit 1
	}
	command -v mmdebstrap >/dev/null || {
		echo "root.sh: mmdebstrap is not here; run: selftests/setup.sh packages package" >&2
		exit 1
	}
	mirror=$(cat /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null |
		sed -n 's/^URIs: *//p; s/^deb \(\[[^]]*\] \)\?\(http[^ ]*\).*/\2/p' | head -n 1) || true
	[ -n "$mirror" ] || {
		echo "root.sh: apt's sources name no mirror" >&2
		exit 1
	}
	echo "# root.sh: making ${tar##*/}; this takes some minutes" >&2
	mkdir -p "$CACHE"
	mmdebstrap "${options[@]}" ${packages:+--include="$packages"} "$release" "${tar%.tar}.part.tar" "$mirror" \
		>"$tar.log" 2>&1 || {
		echo "root.sh: mmdebstrap has failed: $tar.log" >&2
		exit 1
	}
	mv "${tar%.tar}.part.tar" "$tar"
fi
echo "$tar"
