# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034 # what it sets is the caller's
#
# What packages are tried in: the files of a system of a release, and the command line that says which.
# Sourced, behind lib.sh of selftests/vm; the caller has usage().

DEBS=
FROM=
RELEASE=

system_options() { # "OPTION..." [OPTION FOLDER]... RELEASE: those that are allowed, of --debs and --from
	local allowed=" $1 -h --help bookworm trixie sid "
	shift
	while [ $# -gt 0 ]; do
		[[ $allowed == *" $1 "* ]] || { usage >&2; exit 2; }
		case $1 in
		--debs) DEBS=$(realpath "${2:?--debs wants a folder}") && shift 2 ;;
		--from) FROM=$(realpath "${2:?--from wants a folder}") && shift 2 ;;
		-h | --help) usage; exit ;;
		*) RELEASE=$1 && shift ;;
		esac
	done
	[ -n "$RELEASE" ] || { usage >&2; exit 2; }
	DEBS=${DEBS:-$REPO_DIR/build/deb-$RELEASE}
	[ -d "$DEBS" ] || DEBS=$REPO_DIR/build/deb
	[ "$(id -u)" = 0 ] || die 1 "a system's files belong to its root: call it as root"
}

# To $system, in the folder $work that goes with the script
system_unpack() { # KIND-OF-SYSTEM NAME [OPTION OF TAR]...
	local base
	base=$("$REPO_DIR/tools/package/root.sh" "$1" "$RELEASE")
	work=$(mktemp -d "${TMPDIR:-/var/tmp}/hamlyn-$2.XXXXXX")
	trap 'rm -rf --one-file-system "$work"' EXIT
	system=$work/system
	mkdir "$system"
	tar -x -C "$system" "${@:3}" -f "$base"
	cp -L --remove-destination /etc/resolv.conf "$system/etc/"
}

# Its processes and its segments are its own.
system_run() { # USER:GROUP COMMAND...
	# shellcheck disable=SC2016 # the inner shell's
	timeout $((1200 * ${HAMLYN_TEST_SCALE:-1})) unshare --mount --pid --fork --kill-child sh -euc '
		root=$1 scale=$2 user=$3
		shift 3
		mount --make-rprivate /
		mount -t proc proc "$root/proc"
		mkdir -p "$root/dev/shm"
		mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
		exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LC_ALL=C.UTF-8 \
			DEBIAN_FRONTEND=noninteractive HAMLYN_TEST_SCALE="$scale" \
			chroot --userspec="$user" "$root" "$@"' - "$system" "${HAMLYN_TEST_SCALE:-1}" "$@"
}
