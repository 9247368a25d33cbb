#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest, on a kernel with gcov and a module made with GCOV_PROFILE=y: runs the
# script that the kernel command line names (hamlyn.coverage=SCRIPT,SECONDS), for so long at
# most, unloads the module, so that this is counted too, and puts the counts behind the
# script's output: a compressed archive in base64 between two lines with "coverage".
set -u

GCOV=/sys/kernel/debug/gcov
UNLOAD_TRIES=20

words=$(sed -n 's/.*hamlyn\.coverage=\([^ ]*,[0-9]*\).*/\1/p' /proc/cmdline)
script=${words%,*}
if [ -z "$script" ] || [ ! -e "./$script" ]; then
	echo "coverage-guest.sh: hamlyn.coverage=\"$words\" names no script beside it" >&2
	exit 2
fi
[ -d "$GCOV" ] || {
	echo "coverage-guest.sh: this kernel has no gcov" >&2
	exit 2
}

# What failed tests left behind is released soon after.
unload() {
	tries=0
	while [ -d /sys/module/hamlyn ] && ! rmmod hamlyn 2>/dev/null; do
		tries=$((tries + 1))
		[ "$tries" -lt "$UNLOAD_TRIES" ] || return 1
		sleep 1
	done
}

# The files of debugfs have no size; tar would take nothing.
copy() { # FOLDER
	mkdir -p "$1"
	find "$GCOV" -name '*.gcda' | while IFS= read -r file; do
		to=$1${file#"$GCOV"}
		mkdir -p "${to%/*}"
		cat "$file" >"$to"
	done
}

timeout -k 10 "${words#*,}" sh "./$script"
status=$?
# Out of time: its children are still at it
[ "$status" -lt 124 ] || kill -9 -1
unload || echo "# the module was not unloaded; that is not counted"
copy /tmp/coverage
echo "begin coverage"
tar -C /tmp/coverage -cz . | base64
echo "end coverage"
exit "$status"
