#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Prepares a Debian 12 machine for the selftests: the packages of the host, and
# a cache with QEMU, the kernels and the kernel's own test and style helpers.
# The cache is filled through an apt state of its own, so apt checks signatures
# and checksums, no root is needed and the host's apt is left as it is.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=vm/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/vm/lib.sh"
# shellcheck source-path=SCRIPTDIR source=vm/built-kernel.sh
. "$VM_DIR/built-kernel.sh"
# shellcheck source-path=SCRIPTDIR source=ofi/built-mpich.sh
. "$(dirname "${BASH_SOURCE[0]}")/ofi/built-mpich.sh"

# Raise it when the way of unpacking changes: what older versions unpacked is done again
RECIPE=1

APT_UPDATED=no
# What apt chooses from: all suites, or one that nothing else is to come from
APT_SOURCES=sources.list
# Of the set at hand: its records in kernels.conf, and what was taken for them
WANT=
HAVE=

usage() {
	cat <<EOF
Usage: selftests/setup.sh packages [native|vm|static|bench|arm64|package|site|all]
       selftests/setup.sh kernel $(known_kernels)|all
       selftests/setup.sh qemu
       selftests/setup.sh kselftest
       selftests/setup.sh herd
       selftests/setup.sh promtool
       selftests/setup.sh sources
       selftests/setup.sh mpich
       selftests/setup.sh arm64
       selftests/setup.sh uml [lockdep|leak]
       selftests/setup.sh all
       selftests/setup.sh list

  packages   checks the host's Debian packages; installs what is missing when
             run by root, else prints the command that does (default: all, which
             leaves out bench: what hamlyn-perf compares with and bench.sh needs,
             arm64: the compiler for it, package: what "make deb" needs, and
             site: "make html")
  kernel     kernel image, modules and headers, and the compiler when the host's is too old;
             all: $(standard_series | paste -sd' '); debug and kcsan are built from source
  qemu       QEMU 10
  kselftest  kselftest headers, checkpatch.pl, kernel-doc and the netlink generator
  herd       herd7 and the kernel's memory model, for selftests/litmus
  promtool   reads metrics and alerts as Prometheus does
  sources    Lua and bzip2, to be compiled by hamlyn-tempest-cc (for tempest-cc/chaos.sh)
  mpich      MPICH for libfabric, built from its source (for ofi/mpich.sh; takes some minutes)
  arm64      QEMU for arm64 guests, and their busybox and libraries; the kernel is 6.1-arm64
  uml        User-Mode Linux, built from its source (for vm/uml.sh; takes some minutes);
             lockdep: one that watches locks, for selftests/mutants/run.py --lockdep;
             leak: one that sees what is left of objects, for --leaks
  all        every part above but herd, promtool, sources, mpich, arm64 and uml, packages first
  list       what the cache holds, with versions

The cache is \$HAMLYN_CACHE, else .cache at the top of the source tree; several
source trees can share one. Once filled it needs no network.
\$HAMLYN_DEBIAN_MIRROR and \$HAMLYN_DEBIAN_SECURITY_MIRROR replace the mirrors
that the machine's own apt configuration names.
EOF
}

# ---- host packages ----

NATIVE_PACKAGES=(
	gcc g++ make pkg-config libc6-dev clang libclang-rt-14-dev llvm
	valgrind strace gdb gnuplot-nox python3
	nettle-dev libnl-3-dev libnl-genl-3-dev libjson-c-dev libncurses-dev libcmocka-dev
	mandoc python3-jsonschema libxxhash-dev libpmix-dev libuv1-dev libglib2.0-dev spin
	openmpi-bin mpich slurmd slurmctld slurm-client munge m4 tshark
	mypy python3-setuptools python3-wheel cmake meson ninja-build
)
# The libraries are those QEMU is linked with; it is unpacked, not installed.
VM_PACKAGES=(
	gcc gcc-12 make libc6-dev cpio busybox-static xz-utils zstd libelf-dev flex bison bc
	dwarves e2fsprogs kmod rsync util-linux iproute2 wireguard-tools trace-cmd linux-perf
	libaio1 libbpf1 libcapstone4 libfdt1 libfuse3-3 libglib2.0-0 libgmp10 libgnutls30
	libhogweed6 libibverbs1 libjpeg62-turbo libnettle8 libnuma1 libpixman-1-0 libpmem1
	libpng16-16 librdmacm1 libsasl2-2 libseccomp2 libslirp0 libudev1 liburing2
	libvdeplug2 libzstd1 zlib1g
)
# Other people's messaging, to compare with: nothing else needs them
BENCH_PACKAGES=(
	ucx-utils libucx-dev libfabric-bin openmpi-bin libopenmpi-dev mpich libmpich-dev
	perftest ibverbs-providers iproute2
	libzmq3-dev libnng-dev libsystemd-dev dbus strace
)
# The libfabric provider, and what runs over it; without them it is not built
OFI_PACKAGES=(
	libfabric-dev libfabric-bin openmpi-bin libopenmpi-dev netpipe-openmpi hpcc python3-mpi4py
	libhwloc-dev
)
# To build for arm64; the library's tests on it are run by QEMU
ARM64_PACKAGES=(gcc-12-aarch64-linux-gnu libc6-dev-arm64-cross)
# "make deb": the build dependencies in tools/package/debian/control, and who looks at the result
PACKAGE_PACKAGES=(
	dpkg-dev debhelper dh-dkms dh-python fakeroot git lintian mmdebstrap piuparts python3 xz-utils
	libfabric-dev libjson-c-dev libncurses-dev libnl-3-dev libnl-genl-3-dev libpmix-dev libxxhash-dev
	pkgconf
)
# "make html"
SITE_PACKAGES=(python3 python3-sphinx furo graphviz mandoc)
STATIC_PACKAGES=(
	abigail-tools gcc gcc-12 make sparse cppcheck coccinelle clang shellcheck clang-format codespell perl
	python3 rsync
	python3-yaml python3-jsonschema
)

# missing_packages PACKAGE...: prints those that are not installed
missing_packages() {
	local -A installed=()
	local status name
	# An unknown name makes dpkg-query fail; it is missing then, which is what we ask.
	while read -r status name; do
		[ "$status" = ii ] && installed[$name]=1
	done < <(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' "$@" 2>/dev/null || true)
	for name in "$@"; do
		[ -n "${installed[$name]-}" ] || printf '%s\n' "$name"
	done
}

install_packages() {
	local try
	export DEBIAN_FRONTEND=noninteractive
	for try in 1 2 3; do
		if apt-get update -q && apt-get install -y -q --no-install-recommends "$@"; then
			return 0
		fi
		say "apt-get failed, attempt $try of 3"
		sleep $((try * 2))
	done
	die 1 "apt-get could not install: $*"
}

cmd_packages() {
	local wanted=() missing=()
	case ${1-all} in
	native) wanted=("${NATIVE_PACKAGES[@]}") ;;
	vm) wanted=("${VM_PACKAGES[@]}") ;;
	static) wanted=("${STATIC_PACKAGES[@]}") ;;
	bench) wanted=("${BENCH_PACKAGES[@]}") ;;
	ofi) wanted=("${OFI_PACKAGES[@]}") ;;
	arm64) wanted=("${ARM64_PACKAGES[@]}") ;;
	package) wanted=("${PACKAGE_PACKAGES[@]}") ;;
	site) wanted=("${SITE_PACKAGES[@]}") ;;
	all) wanted=("${NATIVE_PACKAGES[@]}" "${VM_PACKAGES[@]}" "${STATIC_PACKAGES[@]}") ;;
	*) die 2 "packages: \"$1\" is unknown; allowed: native, vm, static, bench, ofi, arm64, package, site, all" ;;
	esac
	command -v dpkg-query >/dev/null || die 1 "this machine has no dpkg; Debian 12 is needed"
	mapfile -t missing < <(missing_packages "${wanted[@]}" | sort -u)
	if [ ${#missing[@]} -eq 0 ]; then
		say "packages: nothing is missing"
		return 0
	fi
	[ "$(id -u)" = 0 ] ||
		die 1 "packages are missing; run: sudo apt-get install --no-install-recommends ${missing[*]}"
	say "packages: installing ${missing[*]}"
	install_packages "${missing[@]}"
}

# ---- apt with a state of its own ----

# host_mirror RELEASE LABEL: where the host's own apt gets that release
host_mirror() {
	# shellcheck disable=SC2016 # the $ are apt's
	apt-get indextargets --format '$(ORIGIN)|$(LABEL)|$(RELEASE)|$(REPO_URI)' 2>/dev/null |
		awk -F'|' -v release="$1" -v label="$2" '
			$3 != release { next }
			$1 == "Debian" && $2 == label { print $4; found = 1; exit }
			guess == "" { guess = $4 }	# lists never fetched: origin is not known
			END { if (!found && guess != "") print guess }'
}

apt_write_sources() {
	local codename mirror security signed
	# shellcheck disable=SC1091 # a file of the host
	codename=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME-}")
	mirror=${HAMLYN_DEBIAN_MIRROR:-$(host_mirror "$codename" Debian)}
	[ -n "$mirror" ] ||
		die 1 "the apt configuration names no Debian mirror; set HAMLYN_DEBIAN_MIRROR to its address"
	security=${HAMLYN_DEBIAN_SECURITY_MIRROR:-$(host_mirror "$codename-security" Debian-Security)}
	[ -n "$security" ] || security=${mirror%/}-security
	signed='[arch=amd64 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]'
	{
		printf "deb $signed %s %s main\n" \
			"$mirror" bookworm "$mirror" bookworm-backports "$security" bookworm-security \
			"$mirror" trixie "$mirror" trixie-backports
	} >"$CACHE/apt/sources.list"
	# Kernel and libraries of arm64 guests
	sed -i -E '/ bookworm(-security)? main$/s/arch=amd64/arch=amd64,arm64/' "$CACHE/apt/sources.list"
	# To resolve what the toolchain depends on, nothing of another suite may be chosen
	grep ' trixie main$' "$CACHE/apt/sources.list" >"$CACHE/apt/trixie.list"
	# Testing is signed for a week at a time; a machine's clock may be ahead of its mirror
	printf "deb ${signed/]/ check-valid-until=no]} %s forky main\n" "$mirror" >"$CACHE/apt/forky.list"
	# Other people's programs, to be compiled by ours
	sed -n '/ bookworm main$/s/^deb /deb-src /p' "$CACHE/apt/sources.list" |
		sed 's/arch=[^ ]* //' >"$CACHE/apt/src.list"
}

apt_write_config() {
	cat >"$CACHE/apt/apt.conf" <<EOF
Dir "/";
Dir::State "$CACHE/apt/state";
Dir::State::status "$CACHE/apt/state/status";
Dir::Cache "$CACHE/apt/cache";
Dir::Etc::sourcelist "$CACHE/apt/$APT_SOURCES";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
APT::Architecture "amd64";
APT::Architectures { "amd64"; "arm64"; };
APT::Sandbox::User "";
APT::Get::List-Cleanup "false";
APT::Update::Post-Invoke-Success {};
Acquire::Languages "none";
Acquire::Retries "3";
Acquire::http::Timeout "60";
EOF
}

# The apt programs, told to use nothing but the state in the cache
private_apt() { # PROGRAM ARGUMENT...
	APT_CONFIG=$CACHE/apt/apt.conf nice -n 5 "$@"
}

# Fetches the package lists, at most once in a run and only when something is not cached
apt_prepare() {
	[ "$APT_UPDATED" = no ] || return 0
	[ -e /usr/share/keyrings/debian-archive-keyring.gpg ] ||
		die 1 "the archive keys are missing; run: sudo apt-get install debian-archive-keyring"
	mkdir -p "$CACHE/apt/state/lists/partial" "$CACHE/apt/cache/archives/partial"
	touch "$CACHE/apt/state/status"
	apt_write_sources
	apt_write_config
	say "fetching package lists"
	private_apt apt-get update -qq ||
		die 1 "apt-get update failed (see above); is the mirror reachable?"
	APT_UPDATED=yes
}

# has_version PACKAGE VERSION
has_version() {
	private_apt apt-cache madison "$1" 2>/dev/null |
		awk -F' *[|] *' -v want="$2" '{ sub(/ +$/, "", $2); sub(/^ +/, "", $2)
			if ($2 == want) found = 1 } END { exit !found }'
}

# fetch_debs SET PACKAGE=VERSION...: into debs/SET, recorded with their checksums
fetch_debs() {
	local set=$1 dir=$CACHE/debs/$1 tmp=$CACHE/debs/$1.tmp
	shift
	rm -rf "$tmp"
	mkdir -p "$tmp"
	say "$set: downloading $# packages"
	(cd "$tmp" && private_apt apt-get download -qq "$@") ||
		die 1 "$set: download failed (see above)"
	[ "$(find "$tmp" -name '*.deb' | wc -l)" = $# ] ||
		die 1 "$set: apt-get downloaded fewer packages than the $# asked for"
	(cd "$tmp" && sha256sum -- *.deb >SHA256SUMS)
	printf '%s\n' "$WANT" >"$tmp/want"
	printf '%s\n' "$HAVE" >"$tmp/have"
	rm -rf "$dir"
	mv -T "$tmp" "$dir"
}

# debs_are_good SET: the packages are there, are those wanted and are unchanged
debs_are_good() {
	local dir=$CACHE/debs/$1
	[ -e "$dir/want" ] && [ "$(cat "$dir/want")" = "$WANT" ] || return 1
	if ! (cd "$dir" && sha256sum --check --quiet --strict SHA256SUMS) >&2; then
		say "$1: packages in the cache do not have their recorded SHA-256; fetching them again"
		return 1
	fi
}

# is_unpacked DIR SET: the folder is complete and made from just these packages
is_unpacked() {
	[ -e "$1/stamp" ] && [ "$(cat "$1/stamp")" = "$(stamp_text "$2")" ]
}

stamp_text() {
	printf 'recipe %s\n' "$RECIPE"
	cat "$CACHE/debs/$1/SHA256SUMS"
}

# publish TMP DIR SET: the stamp is the last thing written, the rename the last thing done
publish() {
	stamp_text "$3" >"$1/stamp"
	rm -rf "$2"
	mv -T "$1" "$2"
}

# unpack_debs SET ROOT: base-files goes first, it brings the links bin -> usr/bin and so on
unpack_debs() {
	local set=$1 root=$2 list
	mkdir -p "$root"
	mapfile -t list < <(find "$CACHE/debs/$set" -name 'base-files_*.deb')
	[ ${#list[@]} -eq 0 ] || dpkg -x "${list[0]}" "$root"
	find "$CACHE/debs/$set" -name '*.deb' ! -name 'base-files_*' -print0 |
		xargs -0 -r -P 2 -I{} nice -n 5 dpkg -x {} "$root"
}

# ---- kernels ----

# The flavour is the end of the names of a kernel's packages
kernel_flavour() { conf kernel "$1" | awk '{ print $6 == "" ? "cloud-amd64" : $6 }'; }

# Those that the tests need; another flavour is there for the benchmark
standard_series() { conf kernel | awk 'NF == 5 { print $1 }'; }

kernel_packages() { conf deb "$1" | cut -d' ' -f2 | sed "s/@ABI@/$2/"; }

# kernel_on_mirror SERIES ABI VERSION: every package of the set can be had
kernel_on_mirror() {
	local package
	while read -r package; do
		has_version "$package" "$3" || return 1
	done < <(kernel_packages "$1" "$2")
}

# newest_kernel SERIES PATTERN: prints ABI and VERSION of the newest complete set
newest_kernel() {
	local abi version flavour
	flavour=$(kernel_flavour "$1")
	while read -r abi; do
		while read -r version; do
			if kernel_on_mirror "$1" "$abi" "$version"; then
				printf '%s %s\n' "$abi" "$version"
				return 0
			fi
		done < <(private_apt apt-cache madison "linux-headers-$abi-$flavour" |
			awk -F' *[|] *' '{ print $2 }')
	done < <(private_apt apt-cache search --names-only "^linux-headers-$2-$flavour\$" |
		sed "s/^linux-headers-//; s/-$flavour .*//" | sort -rV | head -n 20)
	return 1
}

# toolchain_packages SERIES: PACKAGE=VERSION of the toolchain and all it depends on
toolchain_packages() {
	local packages=()
	mapfile -t packages < <(conf toolchain "$1" | cut -d' ' -f3- | tr ' ' '\n')
	[ ${#packages[@]} -gt 0 ] || return 0
	private_apt apt-get -o Dir::Etc::sourcelist="$CACHE/apt/trixie.list" \
		--simulate --no-install-recommends install "${packages[@]}" |
		sed -n 's/^Inst \([^ ]*\) (\([^ ]*\) .*/\1=\2/p'
}

fetch_kernel() { # SERIES ABI VERSION PATTERN
	local series=$1 abi=$2 version=$3 list=() found tools
	apt_prepare
	if ! kernel_on_mirror "$series" "$abi" "$version"; then
		found=$(newest_kernel "$series" "$4") ||
			die 1 "kernel $series: the mirror has neither $version nor another of its series"
		say "kernel $series: $version is no longer on the mirror, using ${found#* } (${found% *})"
		abi=${found% *} version=${found#* }
	fi
	HAVE="$abi $version"
	# Not in a pipe: without its toolchain a kernel is of no use, and would be kept
	tools=$(toolchain_packages "$series") ||
		die 1 "kernel $series: what its toolchain needs cannot be found out"
	mapfile -t list < <(kernel_packages "$series" "$abi" | sed "s/\$/=$version/")
	[ -z "$tools" ] || mapfile -t -O "${#list[@]}" list <<<"$tools"
	fetch_debs "kernel-$series" "${list[@]}"
}

# The headers' Makefile includes /usr/src/...; let it look beside itself instead, so that
# nothing is installed into the host and the cache can be moved.
fix_header_paths() { # ROOT
	local makefile
	for makefile in "$1"/usr/src/linux-headers-*-{amd64,arm64}/Makefile; do
		[ -e "$makefile" ] || continue
		# shellcheck disable=SC2016 # the $ are make's
		sed -i -E 's#/usr/src/#$(dir $(abspath $(lastword $(MAKEFILE_LIST))))../#' "$makefile"
	done
}

# A toolchain is unpacked, not installed: do by hand what its packages' scripts would have done
finish_toolchain() { # ROOT
	local root=$1
	mkdir -p "$root"/{proc,tmp,src,dev}
	[ -e "$root/usr/bin/awk" ] || ln -s mawk "$root/usr/bin/awk"
	[ -e "$root/usr/bin/sh" ] || ln -s dash "$root/usr/bin/sh"
}

unpack_kernel() { # SERIES ABI BUILD
	local series=$1 abi=$2 dir=$CACHE/kernel-$1 tmp=$CACHE/kernel-$1.tmp release image
	release=$abi-$(kernel_flavour "$series")
	say "kernel $series: unpacking $release"
	rm -rf "$tmp"
	unpack_debs "kernel-$series" "$tmp/root"
	image=root/boot/vmlinuz-$release
	[ -e "$tmp/$image" ] || image=root/usr/lib/modules/$release/vmlinuz
	[ -e "$tmp/$image" ] || die 1 "kernel $series: the packages hold no kernel image"
	ln -s "$image" "$tmp/vmlinuz"
	ln -s "root/usr/src/linux-headers-$release" "$tmp/kdir"
	printf '%s\n' "$release" >"$tmp/release"
	printf '%s\n' "$3" >"$tmp/build"
	# modprobe and depmod look for lib/modules
	[ -e "$tmp/root/lib/modules" ] || ln -sT usr/lib "$tmp/root/lib"
	PATH=$PATH:/sbin:/usr/sbin depmod -b "$tmp/root" "$release" ||
		die 1 "kernel $series: depmod failed"
	case $3 in
	host) fix_header_paths "$tmp/root" ;;
	chroot) finish_toolchain "$tmp/root" ;;
	*) die 1 "kernels.conf: BUILD of $series is \"$3\"; allowed: host, chroot" ;;
	esac
	publish "$tmp" "$dir" "kernel-$series"
}

setup_kernel() { # SERIES
	local series=$1 record abi version pattern build
	record=$(conf kernel "$series")
	read -r _ abi version pattern build _ <<<"$record"
	if [ "$build" = source ]; then
		setup_built_kernel "$series" "$abi" "$version" "$pattern"
		return 0
	fi
	WANT="$record $(conf deb "$series" | tr '\n' ' ')$(conf toolchain "$series" | tr '\n' ' ')"
	debs_are_good "kernel-$series" || fetch_kernel "$series" "$abi" "$version" "$pattern"
	if ! is_unpacked "$CACHE/kernel-$series" "kernel-$series"; then
		read -r abi version <"$CACHE/debs/kernel-$series/have"
		unpack_kernel "$series" "$abi" "$build"
	fi
	say "kernel $series: ready ($(cat "$CACHE/kernel-$series/release"))"
}

cmd_kernel() {
	local series
	[ $# -eq 1 ] || die 2 "kernel needs one argument; allowed: $(known_kernels), all"
	if [ "$1" = all ]; then
		while read -r series; do
			setup_kernel "$series"
		done < <(standard_series)
		return 0
	fi
	kernel_is_known "$1" || die 2 "kernel \"$1\" is unknown; allowed: $(known_kernels), all"
	setup_kernel "$1"
}

# ---- QEMU and the kernel's helpers ----

# pick_tool PACKAGE VERSION PATTERN: prints PACKAGE=VERSION, the pinned one when it can be had
pick_tool() {
	local version
	if has_version "$1" "$2"; then
		printf '%s=%s\n' "$1" "$2"
		return 0
	fi
	version=$(private_apt apt-cache madison "$1" | awk -F' *[|] *' '{ print $2 }' |
		grep -xE "$3" | sort -rV | head -n 1) || true
	[ -n "$version" ] || die 1 "$1: the mirror has neither $2 nor another of its series"
	say "$1: $2 is no longer on the mirror, using $version"
	printf '%s=%s\n' "$1" "$version"
}

# pick_source PACKAGE VERSION PATTERN: the same of a source package
pick_source() {
	local found
	found=$(private_apt apt-cache showsrc "$1" | awk -v name="$1" -v want="$2" '
		$1 == "Package:" { package = $2 }
		$1 == "Version:" && package == name { print ($2 == want ? 0 : 1), $2 }' |
		awk -v pattern="^($3)\$" '$1 == 0 || $2 ~ pattern' | sort -k1,1n -k2,2rV |
		awk 'NR == 1 { print $2 }')
	[ -n "$found" ] || die 1 "$1: the mirror has neither the source of $2 nor of another of its series"
	printf '%s=%s\n' "$1" "$found"
}

# tool_debs SET: makes sure that debs/SET is there
tool_debs() {
	local set=$1 list=() package version pattern picked
	WANT=$(conf tool "$set")
	debs_are_good "$set" && return 0
	apt_prepare
	while read -r _ package version pattern; do
		picked=$(pick_tool "$package" "$version" "$pattern")
		list+=("$picked")
	done <<<"$WANT"
	HAVE=${list[*]}
	fetch_debs "$set" "${list[@]}"
}

cmd_qemu() {
	local dir=$CACHE/qemu tmp=$CACHE/qemu.tmp missing
	tool_debs qemu
	if ! is_unpacked "$dir" qemu; then
		say "qemu: unpacking"
		rm -rf "$tmp"
		unpack_debs qemu "$tmp"
		missing=$(ldd "$tmp/usr/bin/qemu-system-x86_64" | awk '/not found/ { print $1 }' | paste -sd' ')
		[ -z "$missing" ] ||
			die 1 "qemu: the host lacks $missing; run: selftests/setup.sh packages vm"
		publish "$tmp" "$dir" qemu
	fi
	say "qemu: ready ($(sed 's/ .*//; s/.*=//' "$CACHE/debs/qemu/have"))"
}

KSELFTEST_FILES=(
	tools/testing/selftests/kselftest.h tools/testing/selftests/kselftest_harness.h
	scripts/checkpatch.pl scripts/spelling.txt scripts/const_structs.checkpatch scripts/kernel-doc
)

# The generator of netlink code; it looks for its modules and schemas at these places
YNL_FILES=(
	tools/net/ynl/ynl-gen-c.py tools/net/ynl/lib/__init__.py tools/net/ynl/lib/nlspec.py
	tools/net/ynl/lib/ynl.py Documentation/netlink/genetlink-legacy.yaml
)

# What runs the tests of a kernel, ours among them
SELFTESTS_FILES=(
	tools/testing/selftests/Makefile tools/testing/selftests/lib.mk tools/testing/selftests/kselftest
	tools/testing/selftests/kselftest.h tools/testing/selftests/kselftest_harness.h
	scripts/subarch.include
)

# pick_source_files TMP FILE...: out of the kernel source, with their folders
pick_source_files() {
	local tmp=$1 deb top files=()
	shift
	say "kselftest: picking $# files out of the kernel source"
	rm -rf "$tmp"
	mkdir -p "$tmp"
	deb=$(find "$CACHE/debs/kselftest" -name 'linux-source-*.deb')
	top=$(basename "$deb")
	top=${top%%_*}
	files=("${@/#/$top/}")
	# The archive has one big tar inside; nothing but the named files touches the disk
	dpkg-deb --fsys-tarfile "$deb" | tar -xO "./usr/src/$top.tar.xz" |
		nice -n 5 xz -dc | tar -x -C "$tmp" --strip-components=1 --no-same-owner "${files[@]}"
}

cmd_kselftest() {
	local dir=$CACHE/kselftest tmp=$CACHE/kselftest.tmp
	tool_debs kselftest
	if ! is_unpacked "$dir" kselftest; then
		pick_source_files "$tmp" "${KSELFTEST_FILES[@]}"
		find "$tmp" -type f -exec mv -t "$tmp" {} +
		find "$tmp" -mindepth 1 -type d -empty -delete
		publish "$tmp" "$dir" kselftest
	fi
	if ! is_unpacked "$CACHE/coccinelle" kselftest; then
		pick_source_files "$CACHE/coccinelle.tmp" scripts/coccinelle
		publish "$CACHE/coccinelle.tmp" "$CACHE/coccinelle" kselftest
	fi
	if ! is_unpacked "$CACHE/ynl" kselftest; then
		pick_source_files "$CACHE/ynl.tmp" "${YNL_FILES[@]}"
		publish "$CACHE/ynl.tmp" "$CACHE/ynl" kselftest
	fi
	if ! is_unpacked "$CACHE/selftests" kselftest; then
		pick_source_files "$CACHE/selftests.tmp" "${SELFTESTS_FILES[@]}"
		publish "$CACHE/selftests.tmp" "$CACHE/selftests" kselftest
	fi
	say "kselftest: ready ($(cut -d= -f2 "$CACHE/debs/kselftest/have"))"
}

# ---- the memory model ----

# Unpacked, with the C library that it was linked with: run by that one's loader
cmd_herd() {
	local dir=$CACHE/herd tmp=$CACHE/herd.tmp model=tools/memory-model/linux-kernel
	APT_SOURCES=forky.list
	tool_debs herd
	# Of the other suites they must be fetched again, if anything is
	APT_SOURCES=sources.list
	APT_UPDATED=no
	tool_debs kselftest
	if ! is_unpacked "$dir" herd; then
		say "herd: unpacking"
		rm -rf "$tmp"
		unpack_debs herd "$tmp"
		publish "$tmp" "$dir" herd
	fi
	if ! is_unpacked "$CACHE/memory-model" kselftest; then
		pick_source_files "$CACHE/memory-model.tmp" tools/memory-model/lock.cat \
			"$model.bell" "$model.cat" "$model.cfg" "$model.def"
		publish "$CACHE/memory-model.tmp" "$CACHE/memory-model" kselftest
	fi
	say "herd: ready ($(sed 's/ .*//; s/.*=//' "$CACHE/debs/herd/have"))"
}

cmd_promtool() {
	local dir=$CACHE/promtool tmp=$CACHE/promtool.tmp
	tool_debs promtool
	if ! is_unpacked "$dir" promtool; then
		say "promtool: unpacking"
		rm -rf "$tmp" "$tmp.all"
		unpack_debs promtool "$tmp.all"
		mkdir -p "$tmp"
		mv "$tmp.all/usr/bin/promtool" "$tmp/"
		rm -rf "$tmp.all"
		publish "$tmp" "$dir" promtool
	fi
	say "promtool: ready ($(sed 's/ .*//; s/.*=//' "$CACHE/debs/promtool/have"))"
}

# ---- other people's programs ----

# fetch_sources SET PACKAGE=VERSION...: into debs/SET, recorded with their checksums; apt has
# looked at those of their .dsc
fetch_sources() {
	local set=$1 dir=$CACHE/debs/$1 tmp=$CACHE/debs/$1.tmp
	shift
	rm -rf "$tmp"
	mkdir -p "$tmp"
	say "$set: downloading the source of $# packages"
	(cd "$tmp" && private_apt apt-get source -qq --download-only "$@") ||
		die 1 "$set: download failed (see above)"
	[ "$(find "$tmp" -name '*.dsc' | wc -l)" = $# ] ||
		die 1 "$set: apt-get downloaded fewer packages than the $# asked for"
	(cd "$tmp" && sha256sum -- * >SHA256SUMS)
	printf '%s\n' "$WANT" >"$tmp/want"
	printf '%s\n' "$HAVE" >"$tmp/have"
	rm -rf "$dir"
	mv -T "$tmp" "$dir"
}

# As their authors have released them
unpack_sources() { # ROOT
	local file name
	for file in "$CACHE"/debs/sources/*.orig.tar.*; do
		[[ $file != *.asc ]] || continue
		name=$(basename "$file")
		mkdir -p "$1/${name%%_*}"
		tar -x -C "$1/${name%%_*}" --strip-components=1 --no-same-owner -f "$file"
	done
}

# set_sources SET: makes sure that debs/SET is there
set_sources() {
	local list=() package version pattern picked
	APT_SOURCES=src.list
	WANT=$(conf source "$1" | cut -d' ' -f2-)
	if ! debs_are_good "$1"; then
		apt_prepare
		while read -r package version pattern; do
			picked=$(pick_source "$package" "$version" "$pattern")
			list+=("$picked")
		done <<<"$WANT"
		HAVE=${list[*]}
		fetch_sources "$1" "${list[@]}"
	fi
	# Of the other suites they must be fetched again, if anything is
	APT_SOURCES=sources.list
	APT_UPDATED=no
}

cmd_sources() {
	local dir=$CACHE/sources tmp=$CACHE/sources.tmp
	set_sources sources
	if ! is_unpacked "$dir" sources; then
		say "sources: unpacking"
		rm -rf "$tmp"
		unpack_sources "$tmp"
		publish "$tmp" "$dir" sources
	fi
	say "sources: ready ($(cat "$CACHE/debs/sources/have"))"
}

# ---- guests with another processor ----

cmd_arm64() {
	local dir=$CACHE/arm64 tmp=$CACHE/arm64.tmp missing
	cmd_qemu # whose data files serve both
	tool_debs arm64
	if ! is_unpacked "$dir" arm64; then
		say "arm64: unpacking"
		rm -rf "$tmp"
		unpack_debs arm64 "$tmp"
		missing=$(ldd "$tmp/usr/bin/qemu-system-aarch64" | awk '/not found/ { print $1 }' | paste -sd' ')
		[ -z "$missing" ] ||
			die 1 "arm64: the host lacks $missing; run: selftests/setup.sh packages vm"
		publish "$tmp" "$dir" arm64
	fi
	say "arm64: ready ($(sed 's/ .*//; s/.*=//' "$CACHE/debs/arm64/have"))"
}

# ---- User-Mode Linux ----

# Not to be configured: 100. Grace periods of RCU take ticks here, and programs make and end
# thousands of objects a minute.
UML_TICK='/^config HZ$/,/default/s/default 100$/default 1000/'

uml_config() { # NAME
	local more=$VM_DIR/$1.config
	cat "$VM_DIR/uml.config"
	[ "$1" = uml ] || cat "$more"
}

uml_stamp() { # NAME
	stamp_text uml
	{ uml_config "$1"; echo "$UML_TICK"; } | sha256sum
}

# check_config WANTED FILE: make takes no offence at lines that it does not follow
check_config() {
	local missing
	missing=$(grep '^CONFIG_' "$1" | grep -vxFf "$2" | paste -sd' ') || true
	[ -z "$missing" ] || die 1 "uml: the kernel does not take $missing"
}

# Of the source a module build needs the headers, the scripts and the Makefiles
thin_out() { # SOURCE BUILD
	find "$1" -mindepth 1 -maxdepth 1 \( -name Documentation -o -name samples -o -name sound \
		-o -name crypto -o -name net -o -name fs -o -name mm -o -name drivers \) -exec rm -rf {} +
	find "$1/arch" -mindepth 1 -maxdepth 1 -type d ! -name um ! -name x86 -exec rm -rf {} +
	find "$2" -path "$2/scripts" -prune -o -type f \( -name '*.o' -o -name '*.a' -o -name '.*.cmd' \) \
		-exec rm -f {} +
}

# Its paths are in the Makefiles of the build folder: built where it stays
build_uml() { # NAME
	local dir=$CACHE/$1 deb
	rm -rf "$dir"
	mkdir -p "$dir/src"
	uml_config "$1" >"$dir/config"
	deb=$(find "$CACHE/debs/uml" -name 'linux-source-*.deb')
	say "$1: unpacking the source"
	dpkg-deb --fsys-tarfile "$deb" | tar -xO --wildcards './usr/src/linux-source-*.tar.xz' |
		nice -n 5 xz -dc | tar -x -C "$dir/src" --strip-components=1 --no-same-owner
	sed -i "$UML_TICK" "$dir/src/arch/um/Kconfig"
	say "$1: building; the log is $dir/log"
	{
		make -C "$dir/src" O="$dir/build" ARCH=um "KCONFIG_ALLCONFIG=$dir/config" allnoconfig &&
			check_config "$dir/config" "$dir/build/.config" &&
			nice -n 10 make -C "$dir/src" O="$dir/build" ARCH=um -j2 linux modules
	} >"$dir/log" 2>&1 || die 1 "$1: the build failed; see $dir/log"
	thin_out "$dir/src" "$dir/build"
	uml_stamp "$1" >"$dir/stamp"
}

cmd_uml() { # [lockdep|leak]
	local name=uml${1:+-$1}
	[ -e "$VM_DIR/$name.config" ] || die 2 "uml \"$1\" is unknown; allowed: lockdep, leak"
	tool_debs uml
	# It takes minutes, and nobody else needs to wait for it
	lock_cache uml-lock
	if [ ! -e "$CACHE/$name/stamp" ] || [ "$(cat "$CACHE/$name/stamp")" != "$(uml_stamp "$name")" ]; then
		build_uml "$name"
	fi
	say "$name: ready ($(cut -d= -f2 "$CACHE/debs/uml/have"))"
}

cmd_list() {
	local dir
	for dir in "$CACHE"/debs/*/; do
		[[ $dir != *.tmp/ ]] || continue # being filled, or left by who was killed
		[ -e "$dir/have" ] || die 1 "the cache $CACHE is empty; run: selftests/setup.sh all"
		printf '%s\t%s\t%s\n' "$(basename "$dir")" "$(du -sh "$dir" | cut -f1)" "$(cat "$dir/have")"
	done
}

# One setup at a time: source trees can share a cache. Taking another lock gives up the last
lock_cache() { # [NAME [SECONDS]]
	mkdir -p "$CACHE" || die 1 "cannot create the cache folder $CACHE"
	exec 9>"$CACHE/${1-lock}"
	flock -n 9 && return 0
	say "another setup.sh is filling the cache, waiting"
	flock -w "${2-1200}" 9 ||
		die 1 "another setup.sh has held $CACHE/${1-lock} for ${2-1200} seconds"
}

main() {
	local command=${1-}
	[ $# -eq 0 ] || shift
	case $command in
	-h | --help) usage ;;
	packages) cmd_packages "$@" ;;
	kernel | qemu | kselftest | herd | promtool | sources | mpich | arm64 | uml)
		[ "$(uname -m)" = x86_64 ] || die 1 "this machine is $(uname -m); only x86_64 is supported"
		lock_cache
		"cmd_$command" "$@"
		;;
	all)
		cmd_packages all
		lock_cache
		cmd_qemu
		cmd_kernel all
		cmd_kselftest
		;;
	list) cmd_list ;;
	"") usage >&2 && die 2 "a command is needed" ;;
	*) die 2 "command \"$command\" is unknown; allowed: packages, kernel, qemu, kselftest, herd, promtool, sources, mpich, arm64, uml, all, list" ;;
	esac
}

main "$@"
