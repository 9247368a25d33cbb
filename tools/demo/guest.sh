#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The demo's part inside the guest: three users who do not trust each other, the
# kernel device, and the steps that demo.sh put beside the programs. Run by
# selftests/vm/run.sh with /host as the working folder and in PATH.
set -eu

ALICE=1001 BOB=1002 MALLORY=1003

die()
{
	printf 'demo: %s\n' "$*" >&2
	exit 1
}

# The device node appears a moment after the module.
tries=0
until [ -c /dev/hamlyn0 ]; do
	tries=$((tries + 1))
	[ $tries -le 100 ] || die "the module made no /dev/hamlyn0"
	sleep 0.1
done

DEVICE=/dev/hamlyn0
WORK=/tmp/demo
mkdir -m 755 "$WORK"
mkdir -m 700 "$WORK/in" "$WORK/out"
# Alice lets bob look into the folder with her ticket, and nobody else.
mkdir -m 750 "$WORK/offer"
chown $ALICE "$WORK/out"
chown $BOB "$WORK/in"
chown $ALICE:$BOB "$WORK/offer"

AS_ALICE="as_user $ALICE"
AS_BOB="as_user $BOB"
AS_MALLORY="as_user $MALLORY"
# Times taken on emulated processors say nothing about real ones.
COMPARE=no
# Two processes and the engine would share two processors: one process, then.
SYSCALLS_OPTIONS=--self
IDLE_US=20000
export DEVICE WORK AS_ALICE AS_BOB AS_MALLORY COMPARE SYSCALLS_OPTIONS IDLE_US

echo "Linux $(uname -r), $DEVICE: $(stat -c '%A' $DEVICE)"
echo "alice is user $ALICE, bob user $BOB, mallory user $MALLORY"
exec sh /host/steps.sh
