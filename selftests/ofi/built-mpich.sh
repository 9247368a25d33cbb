# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# MPICH for libfabric (ch4:ofi), built from Debian's source: Debian builds it for UCX.
# Sourced by setup.sh, never run.

# Raise it when the way of building changes
MPICH_RECIPE=1

# Files that are compiled, near enough to show how far it is
MPICH_STEPS=900

# No shared memory of its own: all that processes of one host say goes over the provider.
# Its checks for errors stay, they are on if nothing is said.
MPICH_OPTIONS=(
	--with-device=ch4:ofi --with-libfabric=/usr --without-ch4-shmmods --with-hwloc=/usr
	--without-ucx --with-pm=hydra --with-datatype-engine=dataloop
	--disable-fortran --disable-cxx --disable-romio --disable-doc
	--enable-shared --disable-static CFLAGS=-O2
)

mpich_stamp() {
	printf 'recipe %s\n%s\n' "$MPICH_RECIPE" "${MPICH_OPTIONS[*]}"
	stamp_text mpich
	dpkg-query -W libfabric-dev libhwloc-dev
}

# MPICH links what a static libfabric would need, and those libraries are not needed here
mpich_pkg_config() { # FOLDER
	local from
	from=$(pkg-config --variable=pcfiledir libfabric) || die 1 "mpich: libfabric-dev is missing"
	mkdir -p "$1"
	sed '/^Libs.private/d' "$from/libfabric.pc" >"$1/libfabric.pc"
}

show_mpich_progress() {
	awk -v me="$ME" -v all="$MPICH_STEPS" '
		/^  (CC|MOD) / && ++n % 100 == 0 {
			printf "# %s: mpich: %d of about %d files\n", me, n, all
			fflush()
		}' >&2
}

# Its paths are in its programs: built where it stays
build_mpich() { # FOLDER
	rm -rf "$1"
	mkdir -p "$1/src" "$1/build"
	say "mpich: unpacking the source"
	nice -n 5 tar -x -C "$1/src" --strip-components=1 --no-same-owner \
		-f "$(find "$CACHE/debs/mpich" -name '*.orig.tar.*' ! -name '*.asc')"
	mpich_pkg_config "$1/pkgconfig"
	say "mpich: configuring, a minute or two; the log is $1/log"
	(cd "$1/build" && PKG_CONFIG_PATH=$1/pkgconfig nice -n 10 ../src/configure --prefix="$1/inst" \
		"${MPICH_OPTIONS[@]}") >"$1/log" 2>&1 || die 1 "mpich: it cannot be configured; see $1/log"
	say "mpich: building, some minutes"
	nice -n 10 make -C "$1/build" -j2 2>&1 | tee -a "$1/log" | show_mpich_progress ||
		die 1 "mpich: the build failed; see $1/log"
	nice -n 10 make -C "$1/build" install >>"$1/log" 2>&1 ||
		die 1 "mpich: it cannot be installed; see $1/log"
	mpich_stamp >"$1/stamp"
}

cmd_mpich() {
	local dir=$CACHE/mpich
	set_sources mpich
	lock_cache mpich-lock 7200
	if [ ! -e "$dir/stamp" ] || [ "$(cat "$dir/stamp")" != "$(mpich_stamp)" ]; then
		build_mpich "$dir"
	fi
	say "mpich: ready ($(cat "$CACHE/debs/mpich/have"))"
}
