# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# How trials of packages tell what came of them. Sourced: also in the system or the machine in which
# they are tried, where it is beside the script.

passed=0
failed=0

# What was said is in $SAID.
check() { # NAME COMMAND...
	local name=$1
	shift
	if "$@" >"${SAID:=/tmp/said}" 2>&1; then
		echo "ok - $name"
		passed=$((passed + 1))
	else
		echo "not ok - $name"
		tail -n 40 "$SAID" | sed 's/^/# | /'
		failed=$((failed + 1))
	fi
}

# The last line, and the status
results() {
	echo "$passed passed, $failed failed"
	[ "$failed" = 0 ]
}
