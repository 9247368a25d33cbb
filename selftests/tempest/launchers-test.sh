#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Tempest by hamlyn-run and by Open MPI's mpirun, and by Slurm's srun in a cluster of one node.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2
ME=launchers-test.sh
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. selftests/lib/lib.sh

usage() {
	cat <<'USAGE'
Usage: selftests/tempest/launchers-test.sh [BUILD-FOLDER]  (default: build)

mpirun of Open MPI (openmpi-bin) and srun (slurmd, slurmctld, slurm-client, munge) are left out,
and that is said, where they are not installed.
USAGE
}

only_help "$@"
BUILD=$(realpath "${1:-build}") || exit 2
for program in hamlyn-run tempest/nodes tempest-examples/migrate tempest/contended stache/litmus libhamlyn-tempest.so; do
	[ -x "$BUILD/$program" ] || die "$BUILD/$program is missing; run: make all tempest-tests stache-tests"
done
unset PMI_FD PMI_PORT PMI_RANK PMI_SIZE PMI_ID PMIX_NAMESPACE PMIX_RANK HAMLYN_DEVICE
# Open MPI's launcher refuses root otherwise
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
work_folder launchers
# shellcheck source-path=SCRIPTDIR source=../lib/tempest-jobs.sh
. selftests/lib/tempest-jobs.sh

OPENMPI=$(command -v mpirun.openmpi || true)

# Was it built with PMIx? Else it says so when it looks as if PMIx had started it
has_pmix() {
	[[ $(PMIX_NAMESPACE=none "$BUILD/boot_peer" 2>&1) != *"was built without it"* ]]
}

tempest_jobs hamlyn-run "$BUILD/tempest/nodes" "$BUILD/tempest-examples/migrate" "$BUILD/hamlyn-run"
check "hamlyn-run: Tempest, nodes that are killed at any time, and nobody ends the others" \
	selftests/tempest/kills.py "$BUILD"
if [ -n "$OPENMPI" ] && has_pmix; then
	check "programs that can load libpmix" tempest_link
	tempest_jobs mpirun "$work/nodes" "$work/migrate" "$OPENMPI" --oversubscribe
else
	skip "Tempest by mpirun" "no mpirun of Open MPI, or built without libpmix-dev"
fi
totals slurm-test.sh "$work/slurm" selftests/tools/slurm-test.sh --tempest "$BUILD"

total
