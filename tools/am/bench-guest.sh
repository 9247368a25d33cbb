#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: Active Messages on the kernel device, beside what else there is, and over
# the adversary. Usage: bench-guest.sh DEVICE; prints JSON lines.
set -u

device=$1
nic=${device##*/}

am() { # WORD...: of hamlyn-run
	./hamlyn-run --device "$device" --timeout 300 "$@" || exit
}

labelled() { # LABEL: into each line of JSON
	sed "s/^{/{\"fabric\":\"$1\",/"
}

am -n 2 ./ping_pong --json --count 5000
am -n 2 ./rate --json --count 50000
am -n 2 ./rate --json --count 100 --store 1M
hamlyn-perf --json --quiet --reps 1 --sizes 32 --systems hamlyn,unix-stream,tcp lat || exit
for faults in "" "drop 10%" "duplicate 10%" "reorder 10%" "corrupt 10%" \
	"drop 10% duplicate 10% reorder 10% corrupt 10%"; do
	# What is not named stays as it was
	./hamlynctl nic set "$nic" adversary off >&2 || exit
	# shellcheck disable=SC2086 # several words
	[ -z "$faults" ] || ./hamlynctl nic set "$nic" adversary $faults >&2 || exit
	am -n 2 ./exactly_once --json --messages 20000 | labelled "${faults:-good}"
done
./hamlynctl nic set "$nic" adversary off >&2
