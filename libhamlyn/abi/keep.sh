#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The libraries' binary interfaces as abidw writes them, and what has changed since.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage() {
	cat <<EOF
Usage: libhamlyn/abi/keep.sh [--build FOLDER] write|compare

  write    what the libraries in FOLDER (build) have goes to libhamlyn/abi: when a version is
           released, and before that whenever it gets something
  compare  prints what a program built against what is kept would not find again, or not where
           it was; the exit status is 0 if there is nothing
EOF
}

BUILD=build
while [ $# -gt 1 ]; do
	case $1 in
	--build) BUILD=${2:?--build wants a folder} && shift 2 ;;
	*) usage >&2 && exit 2 ;;
	esac
done
case ${1-} in
-h | --help) usage && exit ;;
write | compare) ;;
*) usage >&2 && exit 2 ;;
esac

# Structures that are described and that no public header defines: --drop-private-types keeps those
# of a header of ours that has the name of a public one, as manager/manager.h.
opaque() { # DESCRIPTION...
	comm -23 <(sed -n "s/.*<class-decl name='\([a-z_0-9]*\)'.*/\1/p" "$@" | sort -u) \
		<(grep -rhoE '^struct [a-z_0-9]+ \{' libhamlyn/include libhamlyn/*/include uapi |
			cut -d' ' -f2 | sort -u)
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
for library in "" -am -tempest -stache; do
	name=libhamlyn$library.abi
	# What is not in the headers is the library's own: that types of it change is not told.
	abidw --no-corpus-path --no-comp-dir-path --no-show-locs --no-architecture --no-elf-needed \
		--exported-interfaces-only --type-id-style hash --drop-private-types \
		--headers-dir "libhamlyn/${library#-}/include" \
		"$(realpath "$BUILD/libhamlyn$library.so")" >"$work/$name"
	if [ "$1" = write ]; then
		cp "$work/$name" "libhamlyn/abi/$name"
		continue
	fi
	names=$(opaque "libhamlyn/abi/$name" "$work/$name" | paste -sd'|')
	printf '[suppress_type]\n\ttype_kind = struct\n\tname_regexp = ^(%s)$\n' "${names:-none}" \
		>"$work/opaque.conf"
	if ! abidiff --no-added-syms --suppressions libhamlyn/abi/grows.conf \
		--suppressions "$work/opaque.conf" "libhamlyn/abi/$name" "$work/$name" >"$work/said"; then
		status=1
		echo "libhamlyn$library is not as libhamlyn/abi/$name says:"
		cat "$work/said"
	fi
done
exit $status
