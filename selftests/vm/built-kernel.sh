# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Kernels that are built here, from Debian's kernel source: those whose BUILD in
# kernels.conf is "source". Sourced by setup.sh, never run.

# Raise it when the way of building changes
BUILD_RECIPE=1

# Steps of a whole build, near enough to show how far it is
BUILD_STEPS=1650

# What else the source has: nothing of it is compiled, and it is two thirds of the files
UNPACK_EXCEPT=(
	'*/Documentation/*/*' '*/sound/*.[ch]' '*/samples/*.[ch]' '*/drivers/gpu/*.[ch]'
	'*/drivers/media/*.[ch]' '*/drivers/net/ethernet/*.[ch]' '*/drivers/net/wireless/*.[ch]'
	'*/drivers/staging/*.[ch]' '*/drivers/infiniband/*.[ch]' '*/drivers/scsi/*.[ch]'
	'*.dts' '*.dtsi' '*/tools/testing/*' '*/tools/perf/*'
)

# What does not change with the machine that builds, or with who calls make
BUILD_ENV=(
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u MAKEOVERRIDES -u ARCH -u CROSS_COMPILE -u CC -u CFLAGS
	LC_ALL=C KBUILD_BUILD_USER=hamlyn KBUILD_BUILD_HOST=selftests
	"KBUILD_BUILD_TIMESTAMP=Thu Jan  1 00:00:00 UTC 1970"
)
BUILD_TOOLS=(CC=gcc-12 HOSTCC=gcc-12)

# Modules are built without it, and are instrumented. The folders whose code orders
# memory for its callers have to tell KCSAN about that all the same.
# shellcheck disable=SC2034 # by its name in built_env
BUILD_ENV_kcsan=(KCSAN_SANITIZE=n)
KCSAN_BARRIERS_IN=(kernel kernel/locking kernel/rcu kernel/sched kernel/time lib mm fs drivers/base)

built_config() { cat "$VM_DIR/built.config" "$VM_DIR/$1.config"; } # SERIES

# The version that is wanted and the configuration: what was made from the same is good
built_stamp() { # SERIES
	printf 'recipe %s\n%s\n' "$BUILD_RECIPE" "$(conf kernel "$1")"
	built_config "$1" | grep -E '^(# )?CONFIG_' | sha256sum
}

# One set for all kernels that are built from that package
source_debs() { # PACKAGE VERSION PATTERN
	# shellcheck disable=SC2034 # of setup.sh
	WANT="$1 $2 $3"
	debs_are_good "$1" && return 0
	apt_prepare
	HAVE=$(pick_tool "$1" "$2" "$3")
	fetch_debs "$1" "$HAVE"
}

unpack_source() { # PACKAGE FOLDER
	local deb except=()
	except=("${UNPACK_EXCEPT[@]/#/--exclude=}")
	deb=$(find "$CACHE/debs/$1" -name 'linux-source-*.deb')
	rm -rf "$2"
	mkdir -p "$2"
	dpkg-deb --fsys-tarfile "$deb" | tar -xO --wildcards './usr/src/linux-source-*.tar.xz' |
		nice -n 5 xz -dc |
		tar -x -C "$2" --strip-components=1 --no-same-owner "${except[@]}"
}

# make takes no offence at lines that it does not follow: the last one on a setting counts
need_config() { # SERIES FOLDER
	local missing
	missing=$(built_config "$1" | awk -F'[= ]' '
		/^CONFIG_/ { line[$1] = $0 }
		/^# CONFIG_.* is not set$/ { line[$2] = $0 }
		END { for (name in line) print line[name] }' |
		grep -vxFf "$2/.config" | sort | paste -sd'|') || true
	[ -z "$missing" ] || die 1 "kernel $1: the source does not take these settings: $missing"
}

built_env() { # SERIES: into $BUILT_ENV
	local -n more=BUILD_ENV_$1
	BUILT_ENV=("${BUILD_ENV[@]}" "${more[@]}")
}

mark_barriers() { # FOLDER
	local dir
	for dir in "${KCSAN_BARRIERS_IN[@]}"; do
		printf '\nKCSAN_INSTRUMENT_BARRIERS := y\n' >>"$1/$dir/Makefile"
	done
}

configure_kernel() { # SERIES FOLDER
	built_config "$1" >"$2/hamlyn.config"
	"${BUILD_ENV[@]}" make -C "$2" "${BUILD_TOOLS[@]}" KCONFIG_ALLCONFIG=hamlyn.config allnoconfig \
		>"$2/log" 2>&1 || die 1 "kernel $1: it cannot be configured; see $2/log"
	need_config "$1" "$2"
}

# show_progress SERIES: make's messages in, some lines out. To the terminal and to logs alike.
show_progress() {
	awk -v me="$ME" -v series="$1" -v all="$BUILD_STEPS" '
		/^  [A-Z]+ / { n++ }
		/^  [A-Z]+ / && n % 100 == 0 {
			printf "# %s: kernel %s: %d of about %d steps\n", me, series, n, all
			fflush()
		}' >&2
}

compile_kernel() { # SERIES FOLDER
	say "kernel $1: building with $(nproc) processors, some minutes; the log is $2/log"
	built_env "$1"
	"${BUILT_ENV[@]}" nice -n 10 make -C "$2" "${BUILD_TOOLS[@]}" "-j$(nproc)" bzImage modules 2>&1 |
		tee -a "$2/log" | show_progress "$1" ||
		die 1 "kernel $1: the build failed; see $2/log"
}

# What building a module needs of a kernel that was built in its source
MODULE_BUILD_NEEDS=(
	Makefile .config Module.symvers System.map Kbuild scripts include arch/x86/include
	arch/x86/Makefile arch/x86/Makefile_32.cpu arch/x86/Kbuild tools/objtool/objtool
)

prune_kernel() { # FOLDER TREE
	local part
	for part in "${MODULE_BUILD_NEEDS[@]}"; do
		mkdir -p "$2/$(dirname "$part")"
		mv -T "$1/$part" "$2/$part"
	done
	find "$2/scripts" -type f \( -name '*.o' -o -name '.*.cmd' \) ! -name 'module.lds*' -delete
	rm -rf "$2"/scripts/{kconfig,dtc,coccinelle}
}

# Laid out like an unpacked package, so that all else takes it for one
assemble_kernel() { # SERIES FOLDER
	local dir=$CACHE/kernel-$1 tmp=$CACHE/kernel-$1.tmp release
	release=$(cat "$2/include/config/kernel.release")
	rm -rf "$tmp"
	mkdir -p "$tmp/root/usr/src" "$tmp/root/boot"
	"${BUILD_ENV[@]}" make -s -C "$2" "${BUILD_TOOLS[@]}" INSTALL_MOD_PATH="$tmp/root" \
		modules_install >>"$2/log" 2>&1 || die 1 "kernel $1: modules_install failed; see $2/log"
	rm -f "$tmp/root/lib/modules/$release"/{build,source}
	PATH=$PATH:/sbin:/usr/sbin depmod -b "$tmp/root" "$release" || die 1 "kernel $1: depmod failed"
	mv "$2/arch/x86/boot/bzImage" "$tmp/root/boot/vmlinuz-$release"
	prune_kernel "$2" "$tmp/root/usr/src/linux-headers-$release"
	ln -s "root/boot/vmlinuz-$release" "$tmp/vmlinuz"
	ln -s "root/usr/src/linux-headers-$release" "$tmp/kdir"
	printf '%s\n' "$release" >"$tmp/release"
	printf 'source\n' >"$tmp/build"
	built_stamp "$1" >"$tmp/stamp"
	rm -rf "$dir"
	mv -T "$tmp" "$dir"
	rm -rf "$2"
}

built_is_ready() { # SERIES
	[ -e "$CACHE/kernel-$1/stamp" ] &&
		[ "$(cat "$CACHE/kernel-$1/stamp")" = "$(built_stamp "$1")" ]
}

# A build that was stopped goes on where it was
setup_built_kernel() { # SERIES PACKAGE VERSION PATTERN
	local folder=$CACHE/build-$1
	if ! built_is_ready "$1"; then
		source_debs "$2" "$3" "$4"
		# It takes minutes, and nobody else needs to wait for it
		lock_cache "build-$1-lock" 7200
		built_is_ready "$1" || build_kernel "$1" "$2" "$folder"
	fi
	say "kernel $1: ready ($(cat "$CACHE/kernel-$1/release"))"
}

build_kernel() { # SERIES PACKAGE FOLDER
	if [ ! -e "$3/key" ] || [ "$(cat "$3/key")" != "$(built_stamp "$1")" ]; then
		say "kernel $1: unpacking the source"
		unpack_source "$2" "$3"
		[ "$1" != kcsan ] || mark_barriers "$3"
		configure_kernel "$1" "$3"
		built_stamp "$1" >"$3/key"
	fi
	compile_kernel "$1" "$3"
	assemble_kernel "$1" "$3"
}
