#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The examples out of the tree, as users build: with CMake, Meson and plain make, against an
# installation in a scratch folder, and nothing else of us.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

ME=outside-test.sh
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. selftests/lib/lib.sh

usage() {
	echo "Usage: selftests/tools/outside-test.sh [BUILD-FOLDER]  (default: build)"
}

only_help "$@"

BUILD=${1:-build}
work_folder outside-test
root=$work/root
# MAJOR.MINOR, as the examples ask for
series=$(awk '/define H_VERSION_(MAJOR|MINOR)/ { v = v d $3; d = "." } END { print v }' \
	libhamlyn/include/hamlyn.h)

install_to() { # FOLDER VARIABLE...
	make -s "BUILD=$BUILD" install "DESTDIR=$1" "${@:2}"
}

examples() { # FOLDER: a copy of them there
	mkdir -p "$1"
	cp libhamlyn/examples/*.[ch] libhamlyn/examples/{CMakeLists.txt,meson.build,Makefile} "$1/"
}

staged() { # COMMAND...
	env "PKG_CONFIG_SYSROOT_DIR=$root" "PKG_CONFIG_PATH=$root/usr/lib/pkgconfig" "$@"
}

has_all() { # FOLDER: with a program for each source
	local source name
	for source in libhamlyn/examples/*.c; do
		name=$(basename "$source" .c)
		[ -x "$1/$name" ] || { echo "there is no $name"; return 1; }
		# Of an installation, and not of this tree
		[[ $(LD_LIBRARY_PATH=$root/usr/lib ldd "$1/$name") == *"$root/usr/lib/libhamlyn.so.0"* ]] || {
			echo "$name is linked with another library"
			return 1
		}
	done
}

runs() { # FOLDER
	local name
	for name in hello requests; do
		LD_LIBRARY_PATH=$root/usr/lib HAMLYN_DEVICE=shm:outside-$$ timeout $((60 * ${HAMLYN_TEST_SCALE:-1})) \
			"$1/$name" || return
	done
}

with_cmake() {
	cmake -S "$work/cmake" -B "$work/cmake/out" "-DCMAKE_PREFIX_PATH=$root/usr" -Wno-dev &&
		cmake --build "$work/cmake/out" -j 2
}

with_meson() {
	staged meson setup "$work/meson/out" "$work/meson" && ninja -C "$work/meson/out" -j 2
}

with_make() {
	staged make -C "$work/make" -j2
}

# cmake_finds ROOT TEXT: a project with that in it is configured and built
cmake_finds() {
	rm -rf "$work/project"
	mkdir "$work/project"
	printf 'cmake_minimum_required(VERSION 3.16)\nproject(test C CXX)\n%s\n' "$2" >"$work/project/CMakeLists.txt"
	cp "$work"/*.c "$work/project/"
	cmake -S "$work/project" -B "$work/project/out" "-DCMAKE_PREFIX_PATH=$1" -Wno-dev &&
		cmake --build "$work/project/out"
}

cmake_refuses() { # TEXT EXPECTED-MESSAGE
	! cmake_finds "$root/usr" "$1" >"$work/said" 2>&1 && grep -q "$2" "$work/said"
}

all_components() {
	cat >"$work/am.c" <<-'EOT'
		#include <gam.h>
		int main(void) { return am_poll == 0; }
	EOT
	cat >"$work/stache.c" <<-'EOT'
		#include <stache.h>
		#include <unistd.h>

		int main(void)
		{
			char *word;

			stache_init(0);
			word = (char *)stache_malloc(64);
			word[0] = 'x';
			/* A closed page: one of the calls that are wrapped */
			return write(STDOUT_FILENO, word, 1) != 1;
		}
	EOT
	cmake_finds "$root/usr" "
		find_package(hamlyn $series REQUIRED COMPONENTS am tempest stache)
		add_executable(am am.c)
		target_link_libraries(am hamlyn::am)
		add_executable(stache stache.c)
		target_link_libraries(stache hamlyn::stache)
		add_executable(archive hello.c)
		target_compile_definitions(archive PRIVATE _GNU_SOURCE)
		target_link_libraries(archive hamlyn::hamlyn_static)" &&
		HAMLYN_DEVICE=shm:outside-$$ "$work/project/out/archive" && [ "$(LD_LIBRARY_PATH=$root/usr/lib \
			HAMLYN_DEVICE=shm:outside-$$ "$work/project/out/stache")" = x ]
}

check "an installation in a scratch folder" install_to "$root" PREFIX=/usr
for way in cmake meson make; do
	examples "$work/$way"
	folder=$work/$way/out
	[ "$way" != make ] || folder=$work/make
	check "$way builds the examples" "with_$way"
	check "all of them, with what is installed" has_all "$folder"
	check "and they run" runs "$folder"
done
cp libhamlyn/examples/{hello.c,example.h} "$work/"
check "CMake has all components, and the archive" all_components
check "a component that is not there is told" \
	cmake_refuses 'find_package(hamlyn REQUIRED COMPONENTS none)' 'hamlyn::none is not in'
check "so is a later version" cmake_refuses 'find_package(hamlyn 0.99 REQUIRED)' "version: $series"
check "and another series" cmake_refuses 'find_package(hamlyn 0.0 REQUIRED)' "version: $series"
check "an installation with other folders" install_to "$work/debian" PREFIX=/usr \
	LIBDIR=/usr/lib/x86_64-linux-gnu
check "is found too" cmake_finds "$work/debian/usr" "
	find_package(hamlyn REQUIRED)
	set(CMAKE_C_FLAGS -D_GNU_SOURCE)
	add_executable(hello hello.c)
	target_link_libraries(hello hamlyn::hamlyn)"

total
