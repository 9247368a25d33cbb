#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Installs the library into a scratch folder, then builds and runs a program
# in C and in C++, shared and static, against nothing but that.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

case ${1:-} in
-h | --help)
	echo "Usage: selftests/tools/install-test.sh [BUILD-FOLDER]"
	exit 0
	;;
esac

BUILD=${1:-build}
TOP=$PWD
passed=0
failed=0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

check() { # NAME COMMAND...
	local name=$1
	shift
	if "$@" >"$work/log" 2>&1; then
		echo "ok - $name"
		passed=$((passed + 1))
	else
		echo "not ok - $name"
		sed 's/^/# /' "$work/log"
		failed=$((failed + 1))
	fi
}

root=$work/root
export PKG_CONFIG_SYSROOT_DIR=$root
export PKG_CONFIG_LIBDIR=$root/usr/lib/pkgconfig

# What it builds anew must not see what we set: it would be without PMIx, and stay in the
# build folder.
install_to() { # FOLDER PREFIX
	env -u PKG_CONFIG_SYSROOT_DIR -u PKG_CONFIG_LIBDIR \
		make -s "BUILD=$BUILD" install "DESTDIR=$1" "PREFIX=$2"
}

build() { # COMPILER SOURCE OUTPUT pkg-config options
	local cc=$1 source=$2 output=$3
	shift 3
	# shellcheck disable=SC2046 # several words
	"$cc" -Wall -Wextra -Wpedantic -Werror $(pkg-config --cflags libhamlyn) "$work/$source" \
		$(pkg-config "$@" --libs libhamlyn) -o "$work/$output"
}

run_shared() {
	LD_LIBRARY_PATH=$root/usr/lib HAMLYN_DEVICE=shm:install-$$ "$1"
}

static_build() {
	# shellcheck disable=SC2046 # several words
	gcc $(pkg-config --cflags libhamlyn) "$work/program.c" "$root/usr/lib/libhamlyn.a" \
		-lpthread -o "$work/static"
}

only_ours() {
	local others
	others=$(nm -D --defined-only "$root/usr/lib/libhamlyn.so" | awk '{ print $3 }' |
		grep -v -e '^h_' -e '^h__' -e '^HAMLYN_' || true)
	[ -z "$others" ] || { echo "exported: $others"; return 1; }
}

compiles_alone() { # HEADER LANGUAGE
	echo "#include <$1>" | gcc -x "$2" -Wall -Wextra -Wpedantic -Werror -fsyntax-only \
		-I"$root/usr/include" -
}

# With the warnings that users may have, also where macros of it are used
no_warnings() { # HEADER
	g++ -x c++ -std=c++20 -Wall -Wextra -Wpedantic -Wshadow -Wold-style-cast -Wuseless-cast \
		-Wcast-qual -Wconversion -Wsign-conversion -Wzero-as-null-pointer-constant -Werror \
		-fsyntax-only -I"$root/usr/include" - <<-EOT
			#include <$1>
			#ifdef HAMLYN_GAM_H
			static void wait_for(const bool &flag) { am_wait_for(flag); }
			void (*used)(const bool &) = wait_for;
			#endif
		EOT
}

# A closed page of the segment, also for a system call that pkg-config's flags wrap
tempest_runs() {
	cat >"$work/tempest.c" <<-'EOT'
		#include <tempest.h>
		#include <unistd.h>

		int main(void)
		{
			char *page = TPPI_SEG_BASE;

			if (!TPPI_alloc_and_map(page, 0, TPPI_Blk_Writable, 0, (void *)0))
				return 1;
			TPPI_change_blk_acc(page + 64, 32, TPPI_Blk_Invalidate);
			page[0] = 'x';
			return write(STDOUT_FILENO, page, 1) != 1;
		}
	EOT
	# shellcheck disable=SC2046 # several words
	gcc -Wall -Wextra -Wpedantic -Werror $(pkg-config --cflags libhamlyn-tempest) \
		"$work/tempest.c" $(pkg-config --libs libhamlyn-tempest libhamlyn) \
		-o "$work/tempest" &&
		[ "$(LD_LIBRARY_PATH=$root/usr/lib "$work/tempest")" = x ]
}

# By the compiler of its own, which knows where all of it is, also below a DESTDIR
tempest_compiles() { # OPTION...
	[ -s "$root/usr/share/man/man1/hamlyn-tempest-cc.1" ] &&
		[ -e "$root/usr/share/man/man1/hamlyn-tempest-c++.1" ] &&
		"$root/usr/bin/hamlyn-tempest-cc" "$@" -O2 -Wall -Werror "$work/tempest.c" \
			-o "$work/tempest-cc" &&
		[ "$(LD_LIBRARY_PATH=$root/usr/lib "$work/tempest-cc")" = x ]
}

tempest_names_what_is_missing() {
	mkdir "$work/without" &&
		cp -r --parents "$root"/usr/bin/hamlyn-tempest-cc "$root/usr/lib/hamlyn/tempest" \
			"$work/without" &&
		! "$work/without$root/usr/bin/hamlyn-tempest-cc" "$work/tempest.c" \
			-o "$work/nothing" 2>"$work/err" &&
		grep -q 'libhamlyn-tempest is not in .*: is it installed' "$work/err"
}

# What pkg-config says of Stache is all that a program needs
stache_runs() {
	cat >"$work/stache.c" <<-'EOT'
		#include <stache.h>

		static int name;

		int main(void)
		{
			int *shared;

			stache_init(0);
			stache_publish(&name, stache_malloc(sizeof(int)));
			shared = (int *)stache_find(&name);
			stache_lock(shared);
			++*shared;
			stache_unlock(shared);
			return *shared != 1;
		}
	EOT
	# shellcheck disable=SC2046 # several words
	gcc -Wall -Wextra -Wpedantic -Werror $(pkg-config --cflags libhamlyn-stache) \
		"$work/stache.c" $(pkg-config --libs libhamlyn-stache libhamlyn) -o "$work/stache" &&
		LD_LIBRARY_PATH=$root/usr/lib "$work/stache"
}

# m4, a compiler, and what is installed
stache_macros() {
	cat >"$work/macros.C" <<-'EOT'
		MAIN_ENV

		static int *sum, before;

		static void add(void)
		{
			LOCK(*sum)
			*sum += before;
			UNLOCK(*sum)
		}

		int main(void)
		{
			MAIN_INITENV
			sum = (int *)G_MALLOC(sizeof(*sum));
			before = 21;
			CREATE(add)
			add();
			WAIT_FOR_END(1)
			return *sum != 42;
		}
	EOT
	# shellcheck disable=SC2046 # several words
	m4 "$root/usr/share/hamlyn/c.m4.stache" "$work/macros.C" >"$work/macros.c" &&
		gcc -Wall -Wextra $(pkg-config --cflags libhamlyn-stache) "$work/macros.c" \
			$(pkg-config --libs libhamlyn-stache libhamlyn) -o "$work/macros" &&
		LD_LIBRARY_PATH=$root/usr/lib "$BUILD/hamlyn-run" -n 2 "$work/macros"
}

# A soname changes with what is not compatible any more: see Documentation/abi.rst
one_version() {
	local version major so lib
	cat >"$work/version.c" <<-'EOT'
		#include <hamlyn.h>
		#include <stdio.h>

		int main(void)
		{
			unsigned int v = h_version();

			printf("%u.%u.%u\n", v >> 16, v >> 8 & 255, v & 255);
			return v != H_VERSION;
		}
	EOT
	build gcc version.c version || return
	version=$(LD_LIBRARY_PATH=$root/usr/lib "$work/version") || return
	major=${version%%.*}
	for lib in libhamlyn libhamlyn-am; do
		pkg-config "--exact-version=$version" "$lib" || return
		so=$root/usr/lib/$lib.so
		[ "$(readlink -f "$so")" = "$so.$version" ] || return
		readelf -d "$so" | grep -q "SONAME.*\[$lib\.so\.$major\]" || return
	done
	grep -q "^version = \"$version\"" libhamlyn/python/pyproject.toml
}

# Nothing is written but there
into_a_folder_with_a_blank() {
	local before
	before=$(git status --porcelain 2>/dev/null)
	install_to "$work/a folder" /usr && [ -s "$work/a folder/usr/lib/libhamlyn.a" ] &&
		[ -s "$work/a folder/usr/lib/pkgconfig/libhamlyn-am.pc" ] && [ ! -e folder ] &&
		[ ! -e "$work/a" ] && [ "$(git status --porcelain 2>/dev/null)" = "$before" ]
}

hamlynctl_installed() {
	"$root/usr/sbin/hamlynctl" --version && [ -s "$root/usr/share/man/man8/hamlynctl.8" ] &&
		[ -s "$root/usr/share/bash-completion/completions/hamlynctl" ]
}

perf_installed() {
	"$root/usr/bin/hamlyn-perf" --version && [ -s "$root/usr/share/man/man1/hamlyn-perf.1" ]
}

bridge_installed() {
	"$root/usr/bin/hamlyn-bridge" --version && [ -s "$root/usr/share/man/man1/hamlyn-bridge.1" ] &&
		[ -s "$root/usr/share/bash-completion/completions/hamlyn-bridge" ]
}

# What Debian's packages are to hold: folders are with all that is in them, and libraries below a
# folder of the machine
each_is_packaged() {
	local file pattern patterns known
	mapfile -t patterns < <(grep -hv '^#' tools/package/debian/*.install | awk '{ print $1 }')
	(cd "$root" && find . \( -type f -o -type l \) -printf '%P\n') |
		sed -e 's#^usr/lib/hamlyn/tempest/#usr/libexec/hamlyn/#' \
			-e 's#^usr/lib/\(libhamlyn\|pkgconfig\|cmake\|libfabric\)#usr/lib/machine/\1#' |
		while read -r file; do
			known=
			for pattern in "${patterns[@]}"; do
				# shellcheck disable=SC2053 # a pattern
				[[ $file == $pattern || $file == $pattern/* ]] && known=yes && break
			done
			[ -n "$known" ] || echo "$file: in no file of tools/package/debian/*.install"
		done >"$work/unpackaged"
	cat "$work/unpackaged"
	[ ! -s "$work/unpackaged" ]
}

run_installed() {
	"$root/usr/bin/hamlyn-run" --version && [ -s "$root/usr/share/man/man1/hamlyn-run.1" ] &&
		[ -s "$root/usr/share/bash-completion/completions/hamlyn-run" ]
}

cat_installed() {
	"$root/usr/bin/hamlyn-cat" --version && [ -s "$root/usr/share/man/man1/hamlyn-cat.1" ] &&
		[ -s "$root/usr/share/bash-completion/completions/hamlyn-cat" ]
}

udev_rule_installed() {
	grep -q '^#SUBSYSTEM=="hamlyn", .*MODE="0660"$' "$root/usr/lib/udev/rules.d/60-hamlyn.rules"
}

systemd_unit_installed() {
	local unit=$root/usr/lib/systemd/system/hamlyn-fabric.service
	grep -q '^ExecStart=/usr/sbin/hamlynctl apply /etc/hamlyn/fabric.d$' "$unit" &&
		! grep -q '@[A-Z]*@' "$unit" || return 1
	! command -v systemd-analyze >/dev/null || systemd_accepts "$unit"
}

# It reads what strangers send
metrics_units_installed() {
	local units=$root/usr/lib/systemd/system
	grep -q '^ListenStream=127.0.0.1:9927$' "$units/hamlyn-metrics.socket" &&
		grep -q '^ExecStart=/usr/sbin/hamlynctl metrics serve' "$units/hamlyn-metrics.service" &&
		[ -s "$root/usr/share/hamlyn/prometheus/hamlyn.rules.yml" ] &&
		[ -s "$root/usr/share/hamlyn/prometheus/grafana-dashboard.json" ] || return 1
	command -v systemd-analyze >/dev/null || return 0
	systemd_accepts "$units/hamlyn-metrics.service" "$units/hamlyn-metrics.socket" || return 1
	systemd-analyze security --offline=true --threshold=20 "$units/hamlyn-metrics.service" \
		>"$work/security" || { tail -n 3 "$work/security"; return 1; }
}

# The programs that it names are not on this machine.
systemd_accepts() { # UNIT...
	local said unit copies=()
	for unit in "$@"; do
		copies+=("$work/${unit##*/}")
		sed -E 's|^(Exec[A-Za-z]*=)[^ ]*|\1/bin/true|' "$unit" >"${copies[-1]}"
	done
	said=$(systemd-analyze verify --man=no "${copies[@]}" 2>&1 | grep -F hamlyn-) || return 0
	printf '%s\n' "$said"
	return 1
}

# Where the system's python3 looks, whether the folder is there already or not
python_finds() {
	local local=$work/local PATH=/usr/bin:$PATH
	install_to "$local" /usr/local || return
	python3 - "$local" <<'EOT'
import os, site, sys

places = [folder for folder in sys.path + site.getsitepackages() if folder]
sys.exit(not any(os.path.exists(sys.argv[1] + folder + "/hamlyn/__init__.py") for folder in places))
EOT
}

# Of this run: another one's number may begin with ours
nothing_left() {
	! find /dev/shm -name '*install-*' | grep -E "install-$$([^0-9]|\$)"
}

manual_installed() {
	[ -s "$root/usr/share/man/man3/h_send_msg.3" ] &&
		[ -s "$root/usr/share/man/man7/hamlyn.7" ]
}

cp "$TOP/libhamlyn/examples/hello.c" "$work/program.c"
cat >"$work/program.cc" <<'EOT'
#include <hamlyn.h>
#include <cstdio>
#include <cstring>
#include <type_traits>

static_assert(std::is_trivially_copyable<h_ticket>::value, "a ticket is a plain value");

int main()
{
	h_dev *dev;
	h_area *area;
	h_nq *nq;
	h_slot *slot;
	h_terminus *terminus;
	h_ticket ticket;
	hamlyn_nq_entry entry;
	h_slot_attr attr = {};

	if (h_open(nullptr, &dev) || h_area_alloc(dev, 4096, &area) || h_nq_create(dev, 8, &nq))
		return 1;
	attr.area = area;
	attr.nq = nq;
	if (h_slot_create(dev, &attr, &slot) || h_slot_ticket(slot, 0, 0, 0, &ticket) ||
	    h_terminus_create(dev, nullptr, &terminus))
		return 2;
	if (h_send_msg(terminus, &ticket, "hello", 6, nullptr, 0) < 0)
		return 3;
	if (h_recv_block(nq, &entry, 1000000000))
		return 4;
	if (std::strcmp(static_cast<char *>(h_area_addr(area)), "hello"))
		return 5;
	h_close(dev);
	return 0;
}
EOT

check "make install DESTDIR= PREFIX=/usr" install_to "$root" /usr
check "make install DESTDIR= with a blank in it" into_a_folder_with_a_blank
check "hamlyn.h compiles alone in C" compiles_alone hamlyn.h c
check "hamlyn.h compiles alone in C++" compiles_alone hamlyn.h c++
check "hamlyn/uapi.h compiles alone in C" compiles_alone hamlyn/uapi.h c
check "hamlyn/uapi.h compiles alone in C++" compiles_alone hamlyn/uapi.h c++
check "hamlyn/uapi_netlink.h compiles alone in C" compiles_alone hamlyn/uapi_netlink.h c
check "hamlyn/uapi_netlink.h compiles alone in C++" compiles_alone hamlyn/uapi_netlink.h c++
check "hamlynctl is installed, with man page and completion" hamlynctl_installed
check "hamlyn-perf is installed, with man page" perf_installed
check "hamlyn-bridge is installed, with man page and completion" bridge_installed
check "hamlyn-cat is installed, with man page and completion" cat_installed
check "hamlyn-run is installed, with man page and completion" run_installed
check "Debian's packages have each file" each_is_packaged
check "the udev rule is installed" udev_rule_installed
check "the systemd unit is installed" systemd_unit_installed
check "those of metrics are, and are hardened" metrics_units_installed
for header in manager stream datagram tagged group gather barrier rendezvous channel; do
	check "hamlyn/$header.h compiles alone in C" compiles_alone "hamlyn/$header.h" c
	check "hamlyn/$header.h compiles alone in C++" compiles_alone "hamlyn/$header.h" c++
done
check "hamlyn/hamlyn.hpp compiles alone in C++17" compiles_alone hamlyn/hamlyn.hpp c++
for header in hamlyn.h hamlyn/hamlyn.hpp gam.h hpam.h tempest.h tempest.hpp stache.h \
	hamlyn/uapi_netlink.h; do
	check "$header has no warnings that users may have switched on" no_warnings "$header"
done
check "tempest.h compiles alone in C" compiles_alone tempest.h c
check "stache.h compiles alone in C" compiles_alone stache.h c
check "a program of Stache builds against it, and runs" stache_runs
check "a program with PARMACS macros builds, and runs" stache_macros
check "a program of Tempest builds against it, and runs" tempest_runs
if [ -x "$root/usr/bin/hamlyn-tempest-cc" ]; then
	check "hamlyn-tempest-cc builds it, and it runs" tempest_compiles
	check "hamlyn-tempest-cc -static" tempest_compiles -static
	check "hamlyn-tempest-cc --plain" tempest_compiles --plain
	check "hamlyn-tempest-cc names a library that is missing" tempest_names_what_is_missing
fi
check "the manual is installed" manual_installed
check "the kernel's include folder is left alone" [ ! -e "$root/usr/include/linux" ]
check "uapi.h is the kernel's" cmp uapi/linux/hamlyn.h "$root/usr/include/hamlyn/uapi.h"
check "header, library, pkg-config, sonames and Python have one version" one_version
check "Python finds its package in /usr/local" python_finds
check "the library exports h_* only" only_ours
check "the README's program builds against it in C" build gcc program.c shared
check "and runs" run_shared "$work/shared"
check "it builds statically" static_build
check "and runs" env "HAMLYN_DEVICE=shm:install-$$" "$work/static"
check "a C++ program builds against it" build g++ program.cc shared-cc
check "and runs" run_shared "$work/shared-cc"
check "nothing is left in /dev/shm" nothing_left

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
