#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Does each analyser run, and is it heard? Plants one mistake for each in a copy of the
# tree, and looks whether check.sh names it.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=../vm/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../vm/lib.sh"

COPY=

# CHECK FILE ID: what the check has to say of the file, at least
PLANTED=(
	"in-tree driver/stats.c context imbalance in 'planted_lock'"
	"in-tree driver/stats.c -Wunused-but-set-variable"
	"gcc-analyzer-module driver/stats.c [analyzer-null-dereference]"
	"coccinelle driver/stats.c [kfree] ERROR"
	"cppcheck libhamlyn/src/manager/seed.c [memleak]"
	"gcc-analyzer libhamlyn/src/manager/seed.c [analyzer-malloc-leak]"
	"clang-analyzer libhamlyn/src/manager/seed.c [unix.Malloc]"
	"refuses-32-bit library"
)

usage() {
	cat <<EOF
Usage: selftests/static/prove.sh [CHECK]...

Plants mistakes in a copy of the source tree and runs the checks of check.sh that
follow code, or those named, on it; prints TAP and "N passed, N failed". A check
passes here when it fails there and names the mistake.
EOF
}

# shellcheck disable=SC2317 # called by the trap
clean_up() { [ -z "$COPY" ] || rm -rf "$COPY"; }

copy_tree() {
	trap clean_up EXIT
	COPY=$(mktemp -d "${TMPDIR:-/tmp}/hamlyn-prove.XXXXXX")
	rsync -a --exclude=/build --exclude=/.cache --exclude=/.git "$REPO_DIR/" "$COPY/"
}

plant() {
	cat >>"$COPY/driver/stats.c" <<'EOF'

#include <linux/slab.h>

extern int planted_lock(spinlock_t *lock, int fails);
int planted_lock(spinlock_t *lock, int fails)
{
	spin_lock(lock);
	if (fails)
		return -EINVAL;
	spin_unlock(lock);
	return 0;
}

extern int planted_null(int *value);
int planted_null(int *value)
{
	int unused;

	unused = 1;
	return value ? 0 : *value;
}

extern int planted_free(int *value);
int planted_free(int *value)
{
	kfree(value);
	return *value;
}
EOF
	cat >>"$COPY/libhamlyn/src/manager/seed.c" <<'EOF'

#include <stdlib.h>

int planted_leak(int n);
int planted_leak(int n)
{
	char *p = malloc((size_t)n);

	if (!p)
		return -1;
	p[0] = 1;
	return p[0];
}
EOF
	sed -i '/^#error/d' "$COPY/libhamlyn/include/hamlyn.h"
}

is_wanted() { # CHECK NAME...
	local check=$1
	shift
	[ $# -eq 0 ] || [[ " $* " == *" $check "* ]]
}

prove() { # CHECK FILE TEXT: of one line of the answer
	local said
	if said=$("$COPY/selftests/static/check.sh" "$1" 2>&1); then
		return 1
	fi
	grep -F -e "$2" <<<"$said" | grep -qF -e "$3" && return 0
	printf '%s\n' "$said" | sed 's/^/# /'
	return 1
}

main() {
	local record check file text number=0 failed=0
	case ${1-} in
	-h | --help) usage && exit 0 ;;
	esac
	export HAMLYN_CACHE=$CACHE
	copy_tree
	plant
	for record in "${PLANTED[@]}"; do
		read -r check file text <<<"$record"
		is_wanted "$check" "$@" || continue
		number=$((number + 1))
		if prove "$check" "$file" "$text"; then
			printf 'ok %d - %s notices\n' "$number" "$check"
		else
			printf 'not ok %d - %s notices what is planted in %s\n' "$number" "$check" "$file"
			failed=$((failed + 1))
		fi
	done
	[ "$number" != 0 ] || die 2 "no such check; see --help"
	printf '%d passed, %d failed\n' $((number - failed)) "$failed"
	[ "$failed" = 0 ]
}

main "$@"
