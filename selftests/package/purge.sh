#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The packages of "make deb" are installed, removed and purged by piuparts in a system that has
# nothing else: nothing is left, and nothing that was there is changed.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=../vm/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../vm/lib.sh"
# shellcheck source-path=SCRIPTDIR source=system.sh
. "$REPO_DIR/selftests/package/system.sh"

usage() {
	cat <<EOF
Usage: selftests/package/purge.sh [--debs FOLDER] RELEASE

  RELEASE        bookworm, trixie or sid: a system of it is made, as root, once, and kept in
                 \$HAMLYN_CACHE (tools/package/root.sh); what the packages depend on comes from
                 the mirror
  --debs FOLDER  packages built for that release (build/deb-RELEASE, or build/deb)
EOF
}

system_options "--debs" "$@"
command -v piuparts >/dev/null || die 1 "piuparts is not here; run: selftests/setup.sh packages package"
mapfile -t debs < <(find "$DEBS" -maxdepth 1 -name '*.deb' ! -name '*-dbgsym_*' | sort)
[ ${#debs[@]} -gt 0 ] || die 1 "there are no packages in $DEBS: make deb RELEASE=$RELEASE"

system_unpack minimal purge
mirror=$(sed -n 's/^deb \(\[[^]]*\] \)\?\(http[^ ]*\).*/\2/p' "$system/etc/apt/sources.list" | head -n 1)

# There is no version in the archive to upgrade from. systemd, which is there for systemd-sysusers,
# makes folders of its own, and newer ones links in /etc; debconf has a folder for what it unpacks.
ignored='^/(root/\.ssh|etc/vconsole\.conf|etc/default/locale|var/(cache|lib|log)/private|var/cache/debconf/tmp\.ci|var/lib/systemd)(/.*)?$'
status=0
piuparts --existing-chroot="$system" -d "$RELEASE" -m "$mirror main" --tmpdir="$work" \
	--ignore-regex="$ignored" --no-eatmydata --no-check-valid-until --no-upgrade-test \
	"${debs[@]}" >"$work/log" 2>&1 || status=$?
if [ $status != 0 ]; then
	grep -E 'ERROR|WARN|FAIL' -A 12 "$work/log" | tail -n 60
	echo "not ok - piuparts, $RELEASE"
	exit 1
fi
grep -E 'INFO: PASS|WARN' "$work/log" | sed 's/^/# /'
echo "ok - piuparts, $RELEASE: ${#debs[@]} packages installed, removed and purged"
