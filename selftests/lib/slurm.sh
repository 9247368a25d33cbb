# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154 # work is the caller's
#
# What the clusters of slurm in tests have in common. Sourced; they live in $work.

# Keys, folders and the settings of all, to which the caller adds its ports and nodes.
slurm_configure() { # CONTROLLER ADDRESS NODE...
	local controller=$1 address=$2 user node
	shift 2
	user=$(id -un)
	mkdir -m 700 "$work"/{munge,state} || return 1
	for node; do
		mkdir -m 700 "$work/spool-$node" "$work/tmp-$node" || return 1
	done
	head -c 1024 /dev/urandom >"$work/munge/key" || return 1
	chmod 600 "$work/munge/key"
	cat >"$work/slurm.conf" <<-CONF
		ClusterName=hamlyn
		SlurmctldHost=$controller($address)
		SlurmUser=$user
		SlurmdUser=$user
		AuthType=auth/munge
		AuthInfo=socket=$work/munge/socket
		CryptoType=crypto/munge
		StateSaveLocation=$work/state
		SlurmdSpoolDir=$work/spool-%n
		TmpFS=$work/tmp-%n
		SlurmctldPidFile=$work/slurmctld.pid
		SlurmdPidFile=$work/slurmd-%n.pid
		SlurmctldLogFile=$work/slurmctld.log
		SlurmdLogFile=$work/slurmd-%n.log
		ProctrackType=proctrack/linuxproc
		TaskPlugin=task/none
		JobAcctGatherType=jobacct_gather/none
		AccountingStorageType=accounting_storage/none
		SelectType=select/cons_tres
		SelectTypeParameters=CR_Core
		SlurmdParameters=config_overrides
		MpiDefault=none
		ReturnToService=2
		KillWait=2
		MessageTimeout=60
	CONF
	export SLURM_CONF=$work/slurm.conf
}

# Instead of the shell that calls it
slurm_munged() {
	exec munged --foreground --force --key-file="$work/munge/key" \
		--socket="$work/munge/socket" --pid-file="$work/munge/pid" \
		--log-file="$work/munge/log" --seed-file="$work/munge/seed" --num-threads=2
}
