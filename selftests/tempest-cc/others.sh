# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154 # work and CC are of those who source it
#
# Lua and bzip2, from Debian's sources: as they are, and with their heap in the segment
# (heap.c). Sourced by chaos.sh and speed.sh.

LUA=$CACHE/sources/lua5.4/src
BZIP2=$CACHE/sources/bzip2

lua_files() {
	find "$LUA" -name 'l*.c' ! -name 'luac.c' | sort
}

bzip2_files() {
	printf '%s\n' "$BZIP2"/{blocksort,bzip2,bzlib,compress,crctable,decompress,huffman,randtable}.c
}

# The order of Lua's tables depends on addresses otherwise.
build() { # SUFFIX COMPILER...
	local suffix=$1 files
	shift
	mapfile -t files < <(lua_files)
	"$@" -O2 -w -DLUA_USE_POSIX '-Dluai_makeseed(l)=7' "${files[@]}" -lm -o "$work/lua.$suffix" ||
		return
	mapfile -t files < <(bzip2_files)
	"$@" -O2 -w "${files[@]}" -o "$work/bzip2.$suffix"
}

build_in_segment() { # SUFFIX OPTION...
	local suffix=$1
	shift
	"$CC" "$@" -O2 -Ilibhamlyn/tempest/src -c selftests/tempest-cc/heap.c \
		-o "$work/heap.$suffix.o" &&
		build "$suffix" "$CC" "$@" "$work/heap.$suffix.o" \
			-include "$PWD/selftests/tempest-cc/heap.h"
}
