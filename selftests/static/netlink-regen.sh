#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Generates the netlink code from its specification, with the kernel's own generator
# (tools/net/ynl), and compares it with what is checked in.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=../vm/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../vm/lib.sh"

SPEC=Documentation/netlink/hamlyn.yaml
# FILE MODE KIND LICENCE
OUTPUTS=(
	"driver/netlink/netlink-gen.h kernel header GPL-2.0-only"
	"driver/netlink/netlink-gen.c kernel source GPL-2.0-only"
	"uapi/linux/hamlyn_netlink.h uapi header (GPL-2.0-only WITH Linux-syscall-note) OR MIT"
)
# The only licence that the generator accepts for a specification
YNL_LICENCE='((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause)'
TMP=

usage() {
	cat <<EOF
Usage: selftests/static/netlink-regen.sh [--write]

Generates from $SPEC and compares with
  driver/netlink/netlink-gen.h driver/netlink/netlink-gen.c uapi/linux/hamlyn_netlink.h
The differences are printed; the exit status is 0 when there is none, else 1.

  --write  writes the files instead

The generator comes from the cache: selftests/setup.sh kselftest.
EOF
}

check_tools() {
	[ -e "$CACHE/ynl/stamp" ] ||
		die 1 "the netlink generator is not in the cache; run: selftests/setup.sh kselftest"
	python3 -c 'import yaml, jsonschema' 2>/dev/null ||
		die 1 "the netlink generator needs Python modules; run: selftests/setup.sh packages static"
}

# The generator finds the top of the tree by MAINTAINERS, and the schema one folder above the
# specification's.
prepare() {
	TMP=$(mktemp -d)
	trap 'rm -rf "$TMP"' EXIT
	mkdir -p "$TMP/${SPEC%/*}"
	touch "$TMP/MAINTAINERS"
	cp "$CACHE/ynl/Documentation/netlink/genetlink-legacy.yaml" "$TMP/Documentation/"
	sed "1s/SPDX-License-Identifier: .*/SPDX-License-Identifier: $YNL_LICENCE/" \
		"$REPO_DIR/$SPEC" >"$TMP/$SPEC"
}

# What the generator has no option for: our licence; the folder of the uapi headers, which is not
# named uapi outside of a kernel tree; ranges that Linux 6.1 has no const for; groups for a family
# that is not generated as well, and what is asked of who joins one (uns-admin-perm).
adapt() { # FILE LICENCE
	sed -i \
		-e "1s/SPDX-License-Identifier: .*BSD-3-Clause)/SPDX-License-Identifier: $2/" \
		-e 's/#include <uapi\/linux\//#include <linux\//' \
		-e 's/^static const \(struct netlink_range_validation \)/static \1/' \
		-e 's/^static \(const struct genl_multicast_group \)/\1/' \
		-e 's/^\(\t\[HAMLYN_NLGRP_[A-Z]*\] = { "[a-z]*"\), }/\1, GENL_MCAST_CAP_NET_ADMIN }/' \
		-e '/^extern const struct genl_small_ops/a\
extern const struct genl_multicast_group hamlyn_nl_mcgrps[];' "$1"
}

generate() { # FILE MODE KIND LICENCE
	local out=$TMP/$1
	mkdir -p "${out%/*}"
	python3 -B "$CACHE/ynl/tools/net/ynl/ynl-gen-c.py" --spec "$TMP/$SPEC" --mode "$2" "--$3" \
		-o "$out" || die 1 "the generator failed on $SPEC (see above)"
	adapt "$out" "$4"
}

compare() { # FILE
	diff -u -N --label "$1" --label "$1, generated" "$REPO_DIR/$1" "$TMP/$1"
}

main() {
	local write=no status=0 file mode kind licence record
	while [ $# -gt 0 ]; do
		case $1 in
		-h | --help) usage && exit 0 ;;
		--write) write=yes ;;
		*) die 2 "\"$1\" is unknown; allowed: --write, --help" ;;
		esac
		shift
	done
	check_tools
	prepare
	for record in "${OUTPUTS[@]}"; do
		read -r file mode kind licence <<<"$record"
		generate "$file" "$mode" "$kind" "$licence"
		if [ "$write" = no ]; then
			compare "$file" || status=1
		elif ! cmp -s "$TMP/$file" "$REPO_DIR/$file"; then
			cp "$TMP/$file" "$REPO_DIR/$file"
			say "$file: written"
		fi
	done
	[ "$status" = 0 ] || say "run: selftests/static/netlink-regen.sh --write"
	exit "$status"
}

main "$@"
