#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# What bench.sh runs in the guest: soft-RoCE on the loopback device, then the
# benchmark. Only results go to stdout as they are; the rest starts with "# ".

# If rdma is not there, the machine is used without soft-RoCE
if [ -x /host/rdma ]; then
	/host/rdma link add rxe0 type rxe netdev lo || echo "# no soft-RoCE device"
fi
/host/hamlyn-perf "$@" 2>/tmp/bench-errors
status=$?
sed 's/^/# /' /tmp/bench-errors
[ ! -x /host/rdma ] || /host/rdma link delete rxe0
exit "$status"
