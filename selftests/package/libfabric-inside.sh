#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# In a system of a release, as root: libfabric.sh puts it there, with packages in /srv/debs.
set -uo pipefail
cd /srv || exit 2

limit=$((100 * ${HAMLYN_TEST_SCALE:-1}))
# shellcheck source-path=SCRIPTDIR source=result.sh
. ./result.sh
export HAMLYN_DEVICE=shm:libfabric-$$,size=256M

installs() {
	# A mirror of sid may be older than its signature says it may get
	apt-get -q -o Acquire::Check-Valid-Until=false update &&
		apt-get -q -y --no-install-recommends install libfabric-bin ./debs/*.deb
}

# Found where the package has put it, without a word in the environment
lists() { # PROVIDER PATTERN
	timeout "$limit" fi_info -p "$1" >/tmp/list && grep -q "$2" /tmp/list
}

listens() { # PORT
	grep -qiE ":$(printf %04x "$1") [0-9A-F]+:0000 0A " /proc/net/tcp /proc/net/tcp6
}

# It has no other way than the provider that is named.
pingpong() { # PROVIDER TYPE OPTION...
	local provider=$1 type=$2 port=$((20000 + RANDOM % 10000)) server status
	shift 2
	timeout "$limit" fi_pingpong -p "$provider" -e "$type" -B $port "$@" &
	server=$!
	until listens $port || [ ! -e "/proc/$server" ]; do sleep 0.1; done
	timeout "$limit" fi_pingpong -p "$provider" -e "$type" -P $port "$@" 127.0.0.1
	status=$?
	wait "$server" && [ "$status" = 0 ]
}

# libfabric offers ofi_rxm first.
natively() { # COMMAND...
	FI_PROVIDER=^ofi_rxm "$@"
}

check "apt installs" installs
echo "# $(fi_info --version | sed -n 's/^libfabric: /libfabric /p')," \
	"$(. /etc/os-release && echo "$PRETTY_NAME")"
check "fi_info lists it" lists hamlyn FI_EP_MSG
check "fi_info lists it below ofi_rxm" lists "hamlyn;ofi_rxm" FI_PROTO_RXM
check "fi_pingpong, FI_EP_MSG" pingpong hamlyn msg -I 20 -c
check "fi_pingpong, FI_EP_RDM" natively pingpong hamlyn rdm -I 20 -c
check "fi_pingpong, FI_EP_RDM, tagged" natively pingpong hamlyn rdm -I 20 -c -m tagged
check "fi_pingpong, ofi_rxm" pingpong "hamlyn;ofi_rxm" rdm -I 20 -c
check "fi_pingpong, ofi_rxm, tagged" pingpong "hamlyn;ofi_rxm" rdm -I 20 -c -m tagged
FI_HAMLYN_CMA=0 check "fi_pingpong, ofi_rxm, in pieces" pingpong "hamlyn;ofi_rxm" rdm -I 20 -c
FI_OFI_RXM_USE_RNDV_WRITE=1 check "fi_pingpong, ofi_rxm, rendezvous by writes" \
	pingpong "hamlyn;ofi_rxm" rdm -I 20 -c

results
