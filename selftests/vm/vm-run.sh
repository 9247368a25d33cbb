# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# A test that runs in a guest, for callers that want its total. Sourced, never run; the
# caller is in the repository's folder and has set pipefail.

# Ends with the total of the guest's script, behind which run.sh may have had to talk. That
# there is none, and a kernel log that is not clean, is a failure of its own. Beside the
# script is lib.sh.
vm_run() { # OUT ARGUMENT...: of run.sh
	local out=$1 rc=0 total patience=()
	shift
	rm -f "$out/tap"
	[[ $* == *HAMLYN_TEST_SCALE=* ]] ||
		patience=(--append "HAMLYN_TEST_SCALE=${HAMLYN_TEST_SCALE:-1}")
	selftests/vm/run.sh "$@" "${patience[@]}" --file selftests/lib/lib.sh:/vm/lib.sh --out "$out" |
		sed -u 's/^[0-9]* passed, [0-9]* failed/# &/' || rc=$?
	total=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$out/tap" 2>/dev/null | tail -n 1) || true
	if [ -z "$total" ]; then
		echo "not ok - the machine ended without a total (status $rc)"
		total="0 passed, 1 failed"
	elif [ "$rc" != 0 ] && [[ $total == *" passed, 0 failed"* ]]; then
		echo "not ok - the kernel log, or the machine (status $rc)"
		total=${total/, 0 failed/, 1 failed}
	fi
	echo "$total"
	[[ $total == *" passed, 0 failed"* ]]
}
