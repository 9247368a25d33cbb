#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Boots a kernel in QEMU with a one-shot initramfs, loads the module, runs one
# command and exits with its status. See README.md beside this file.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=arm64.sh
. "$VM_DIR/arm64.sh"

EXIT_TIMEOUT=124
EXIT_RIG=125

usage() {
	cat <<EOF
Usage: selftests/vm/run.sh $(known_kernels)|IMAGE [option]... --cmd "LINE" | --script FILE

  IMAGE                 instead of a kernel of the cache: a bzImage, with a / in its name
  --cmd LINE            shell command line to run in the guest
  --script FILE         shell script to run in the guest
  --module FILE.ko      module to load before and remove after; may be given again
  --module-args "A=B"   parameters of the module named last
  --kmod NAME           module of that kernel's own package to load first (veth, virtio_net)
  --file HOST[:GUEST]   file or folder to put in; GUEST is a path in the guest, by default
                        /host/NAME (/host is in PATH and the working folder). The libraries
                        that programs need are found with ldd and put in too. Again and again.
  --bin-dir DIR         every program in DIR or one level below it, to /host
  --timeout S           seconds until the guest is stopped (120); multiplied by
                        \$HAMLYN_TIMEOUT_SCALE (a whole number) for slow machines
                        KVM is used where a guest runs with it; not with HAMLYN_ACCEL=tcg
  --smp N               processors (2)
  --nodes N             of that many nodes of memory, with as many processors each (1)
  --mem M               memory in MiB (1024; debug: 2048, an eighth of it tells which bytes are valid)
  --icount              one instruction is one nanosecond of guest time; sets --smp 1
  --append "..."        more words for the kernel command line, after the usual ones
  --qemu "..."          more words for QEMU, split at blanks
  --allow ERE           kernel log lines that match are no failure; adds panic_on_warn=0
  --out DIR             keeps console, tap, verdict in DIR; without it a temporary folder
                        is used, and kept only when the run fails
  --interactive         a shell instead of a command (selftests/vm/shell.sh)

Exit status: that of the command; 1 when the command was fine but the kernel
log was not, or the module did not load or unload, or the guest died; $EXIT_TIMEOUT when the time was up;
$EXIT_RIG when the machinery and not the test failed: the guest did not get as far as its
first program, at the second attempt neither; 2 for a wrong call.
EOF
}

# What a healthy kernel never logs. "WARNING:" also covers lockdep's reports.
BAD_LOG='WARNING: |BUG: |kernel BUG at|Oops: |Oops\[|Kernel panic|KASAN: |KCSAN: |UBSAN: |KFENCE: '
BAD_LOG+='|general protection fault[,:]|double fault|unable to handle|nobody cared'
BAD_LOG+='|possible (recursive|circular|irq lock|deadlock)|inconsistent lock state|suspicious RCU'
BAD_LOG+='|INFO: task .* blocked for more|INFO: trying to register non-static key'
BAD_LOG+='|soft lockup|hard LOCKUP|detected stalls? on CPU|self-detected stall|expedited stalls'
BAD_LOG+='|scheduling while atomic|sleeping function called|DEBUG_LOCKS_WARN_ON|held lock freed'
BAD_LOG+='|refcount_t: |ODEBUG: |list_(add|del) corruption|Bad page|Objects remaining in'
BAD_LOG+='|new suspected memory leaks|workqueue lockup|cut here|page allocation failure'
# Files would be missing in the guest
BAD_LOG+='|Initramfs unpacking failed'
# A detector that gave up has found nothing since
BAD_LOG+='|locking correctness validator|ODEBUG disabled|kmemleak: .*(Memory pool empty|Cannot)'
# The kernel repeats its command line, where such words are settings
NOT_BAD='ommand line: '

KERNEL='' IMAGE='' OUT='' WORK='' COMMAND='' SCRIPT='' APPEND='' QEMU_WORDS='' ALLOW=''
TIMEOUT=120 SMP=2 NODES=1 MEM='' ICOUNT=no INTERACTIVE=no
MODULES=() MODULE_ARGS=() KMODS=() FILES=()

# The machine; arm64.sh has another. A copy by "rep movsb" is emulated byte by byte, and each level of
# page tables is one more to be walked: without them tests take 0.85 of the processors' time.
GUEST_CC=gcc BUSYBOX='' CONSOLE=ttyS0 LIBRARIES_OF=host_libraries
EMULATOR=$CACHE/qemu/usr/bin/qemu-system-x86_64
MACHINE=(-cpu "max,-erms,-fsrm,-la57")
VERDICT=(
	-device "isa-debugcon,iobase=0xe9,chardev=verdict" -device "isa-debug-exit,iobase=0xf4,iosize=0x04"
)

WITH_VALUE="--cmd --script --module --module-args --kmod --file --bin-dir --timeout --smp --nodes --mem \
--append --qemu --allow --out"

take_option() { # OPTION VALUE
	case $1 in
	--cmd) COMMAND=$2 ;;
	--script) SCRIPT=$2 ;;
	--module) MODULES+=("$2") MODULE_ARGS+=("") ;;
	--module-args)
		[ ${#MODULES[@]} -gt 0 ] || die 2 "--module-args must come after --module"
		MODULE_ARGS[-1]=$2
		;;
	--kmod) KMODS+=("$2") ;;
	--file) FILES+=("$2") ;;
	--bin-dir) add_bin_dir "$2" ;;
	--timeout) TIMEOUT=$2 ;;
	--smp) SMP=$2 ;;
	--nodes) NODES=$2 ;;
	--mem) MEM=$2 ;;
	--append) APPEND+=" $2" ;;
	--qemu) QEMU_WORDS+=" $2" ;;
	--allow) ALLOW=${ALLOW:+$ALLOW|}$2 APPEND+=" panic_on_warn=0" ;;
	--out) OUT=$2 ;;
	esac
}

take_word() {
	case $1 in
	--icount) ICOUNT=yes ;;
	--interactive) INTERACTIVE=yes ;;
	-*) die 2 "option \"$1\" is unknown; see --help" ;;
	*)
		[ -z "$KERNEL" ] || die 2 "one kernel, not \"$KERNEL\" and \"$1\""
		KERNEL=$1
		;;
	esac
}

add_bin_dir() {
	local file
	[ -d "$1" ] || die 2 "--bin-dir: $1 is no folder"
	while IFS= read -r -d '' file; do
		FILES+=("$file")
	done < <(find "$1" -maxdepth 2 -type f -executable ! -name '*.so*' -print0 | sort -z)
}

check_options() {
	local file
	[ -n "$KERNEL" ] || die 2 "which kernel? $(known_kernels), or the path of an image"
	if [ -z "$MEM" ]; then
		MEM=1024
		[ "$KERNEL" != debug ] || MEM=2048
	fi
	need_number --timeout "$TIMEOUT" 1 86400
	need_number --smp "$SMP" 1 64
	need_number --nodes "$NODES" 1 8
	[ $((SMP % NODES)) = 0 ] || die 2 "--smp $SMP: no as many processors for each of $NODES nodes"
	need_number --mem "${MEM%M}" 64 65536
	need_number HAMLYN_TIMEOUT_SCALE "${HAMLYN_TIMEOUT_SCALE:-1}" 1 100
	TIMEOUT=$((TIMEOUT * ${HAMLYN_TIMEOUT_SCALE:-1}))
	MEM=${MEM%M}
	[ "$ICOUNT" = no ] || SMP=1
	if [ "$INTERACTIVE" = no ]; then
		[ -n "$COMMAND" ] || [ -n "$SCRIPT" ] || die 2 "--cmd or --script is needed"
		[ -z "$COMMAND" ] || [ -z "$SCRIPT" ] || die 2 "--cmd and --script exclude each other"
	fi
	[ -z "$SCRIPT" ] || [ -f "$SCRIPT" ] || die 2 "--script: $SCRIPT is no file"
	for file in "${MODULES[@]}"; do
		[ -f "$file" ] || die 2 "--module: $file is no file"
	done
	for file in "${FILES[@]}"; do
		[ -e "${file%%:*}" ] || die 2 "--file: ${file%%:*} does not exist"
	done
	if [ -n "$ALLOW" ]; then
		# grep answers 2 to an expression that it cannot read
		printf '' | grep -qE -e "$ALLOW" || [ $? = 1 ] || die 2 "--allow: \"$ALLOW\" is no regular expression"
	fi
}

# KCSAN watches one access of so many. With only modules watched it can be more than the
# kernel's 4000, and has to be to see what happens a few times a second.
KCSAN_SKIP=1000

find_kernel() {
	local dir
	[ "$KERNEL" != kcsan ] || APPEND=" kcsan.skip_watch=$KCSAN_SKIP$APPEND"
	if kernel_is_known "$KERNEL"; then
		dir=$(kernel_dir "$KERNEL")
		IMAGE=$dir/vmlinuz
		! is_arm64 "$KERNEL" || use_arm64
	elif [[ $KERNEL == */* ]]; then
		[ -f "$KERNEL" ] || die 2 "there is no kernel image $KERNEL"
		[ ${#KMODS[@]} -eq 0 ] || die 2 "--kmod needs a kernel of the cache: $(known_kernels)"
		IMAGE=$KERNEL
	else
		die 2 "kernel \"$KERNEL\" is unknown; allowed: $(known_kernels), or a path with a /"
	fi
	[ -e "$CACHE/qemu/stamp" ] ||
		die $EXIT_RIG "QEMU is not in the cache; run: selftests/setup.sh qemu"
}

# ---- the initramfs: an archive that every run shares, and one of this run behind it ----

pack() { # FOLDER ARCHIVE
	(cd "$1" && find . -mindepth 1 -print0 | cpio --quiet -0 -o -H newc -R 0:0) >"$2"
}

fill_base() { # FOLDER
	local root=$1 applet
	mkdir -p "$root"/{bin,sbin,dev,proc,sys,tmp,run,etc,vm,host,usr/bin,usr/sbin} \
		"$root"/home/{alice,bob,mallory}
	"$GUEST_CC" -O2 -Wall -Wextra -Werror -static -s -o "$root/init" "$VM_DIR/init.c" ||
		die $EXIT_RIG "cannot build PID 1; run: selftests/setup.sh packages vm"
	cp "$BUSYBOX" "$root/bin/busybox"
	while read -r applet; do
		[ "$applet" = busybox ] || ln -s busybox "$root/bin/$applet"
	done < <(busybox --list) # the host's own: the guest's may be for another processor
	guest_users >"$root/etc/passwd"
	guest_groups >"$root/etc/group"
	printf '127.0.0.1 localhost\n' >"$root/etc/hosts"
	printf 'passwd: files\ngroup: files\nhosts: files\n' >"$root/etc/nsswitch.conf"
}

# Its name is the checksum of what it is made from, so it is made again when that changes
base_archive() {
	local sum dir tmp
	command -v busybox >/dev/null || die $EXIT_RIG "busybox is missing; run: selftests/setup.sh packages vm"
	[ -n "$BUSYBOX" ] || BUSYBOX=$(command -v busybox)
	command -v cpio >/dev/null || die $EXIT_RIG "cpio is missing; run: selftests/setup.sh packages vm"
	sum=$(cat "$VM_DIR/init.c" "$VM_DIR/lib.sh" "${BASH_SOURCE[0]}" "$BUSYBOX" | sha256sum | cut -c1-16)
	dir=$CACHE/guest
	BASE=$dir/base-$sum.cpio
	[ ! -e "$BASE" ] || return 0
	# A cache that belongs to somebody else can be used all the same
	if [ -w "$CACHE" ]; then
		mkdir -p "$dir"
		find "$dir" -name 'base-*' -mtime +30 -delete
	else
		BASE=$WORK/base-$sum.cpio
	fi
	tmp=$(mktemp -d "$WORK/base.XXXXXX")
	fill_base "$tmp"
	pack "$tmp" "$BASE.$$"
	mv "$BASE.$$" "$BASE"
}

is_program() { [ -f "$1" ] && [ "$(head -c 4 "$1" | tail -c 3)" = ELF ]; } 2>/dev/null

# Libraries go to the folders of the guest's dynamic linker, wherever the host has them,
# so that a program finds a library from the build folder too.
# shellcheck disable=SC2317 # called by its name in LIBRARIES_OF
host_libraries() { # ROOT PROGRAM
	local name arrow path
	while read -r name arrow path _; do
		case $name in
		/*) install -D -m 755 "$name" "$1$name" ;; # the dynamic linker itself
		*)
			[ "$arrow" = "=>" ] || continue
			[ "$path" != not ] || die 2 "--file $2: library $name was not found"
			mkdir -p "$1/lib/x86_64-linux-gnu"
			[ -e "$1/lib/x86_64-linux-gnu/$name" ] ||
				cp -L "$path" "$1/lib/x86_64-linux-gnu/$name"
			;;
		esac
	done < <(ldd "$2" 2>/dev/null || true)
}

add_file() { # ROOT HOST[:GUEST]
	local root=$1 host=${2%%:*} guest program
	guest=/host/$(basename "$host")
	[[ $2 != *:* ]] || guest=${2#*:}
	[[ $guest == /* ]] || die 2 "--file: \"$guest\" is no absolute path in the guest"
	mkdir -p "$root$(dirname "$guest")"
	cp -rL -T "$host" "$root$guest"
	# What debuggers read is more than half of a program, and all of it is in the guest's memory
	find "$root$guest" -type f -executable -exec strip --strip-debug {} + 2>/dev/null || true
	while IFS= read -r -d '' program; do
		if is_program "$program"; then
			"$LIBRARIES_OF" "$root" "$program"
		fi
	done < <(find -L "$host" -type f -executable -print0)
}

# add_kmods ROOT: modules of the kernel's package, with all they need, in order
add_kmods() {
	local dir release name file copy
	[ ${#KMODS[@]} -gt 0 ] || return 0
	dir=$(kernel_dir "$KERNEL")
	release=$(cat "$dir/release")
	mkdir -p "$1/vm/kmods"
	for name in "${KMODS[@]}"; do
		PATH=$PATH:/sbin:/usr/sbin modprobe -d "$dir/root" -S "$release" --show-depends "$name" \
			>"$WORK/depends" 2>/dev/null || die 2 "--kmod: kernel $KERNEL has no module $name"
		while read -r _ file _; do
			[[ $file == *.ko* ]] || continue # built in
			copy=/vm/kmods/$(basename "$file")
			copy=${copy%%.ko*}.ko
			[ ! -e "$1$copy" ] || continue
			case $file in
			*.xz) xz -dc "$file" >"$1$copy" ;;
			*.zst) zstd -qdc "$file" >"$1$copy" ;;
			*) cp "$file" "$1$copy" ;;
			esac
			printf '%s\n' "$copy" >>"$1/vm/modules"
		done <"$WORK/depends"
	done
}

run_archive() { # ARCHIVE
	local root=$WORK/root i name file
	mkdir -p "$root/vm" "$root/host"
	: >"$root/vm/modules"
	add_kmods "$root"
	for i in "${!MODULES[@]}"; do
		name=$(basename "${MODULES[i]}")
		cp "${MODULES[i]}" "$root/vm/$name"
		printf '%s %s\n' "/vm/$name" "${MODULE_ARGS[i]}" >>"$root/vm/modules"
	done
	for file in "${FILES[@]}"; do
		add_file "$root" "$file"
	done
	if [ "$INTERACTIVE" = yes ]; then
		: >"$root/vm/interactive"
	elif [ -n "$SCRIPT" ]; then
		cp "$SCRIPT" "$root/vm/run"
	else
		printf '%s\n' "$COMMAND" >"$root/vm/run"
	fi
	pack "$root" "$1"
	rm -rf "$root"
}

# ---- one boot ----

# node_words: in $NODE_WORDS; each node is a socket, so that its processors share a cache
node_words() {
	local each=$((SMP / NODES)) n
	NODE_WORDS=()
	[ "$NODES" != 1 ] || return 0
	NODE_WORDS=(-smp "sockets=$NODES,cores=$each,threads=1")
	for ((n = 0; n < NODES; n++)); do
		NODE_WORDS+=(
			-object "memory-backend-ram,id=memory$n,size=$((MEM / NODES))M"
			-numa "node,nodeid=$n,memdev=memory$n,cpus=$((n * each))-$((n * each + each - 1))"
		)
	done
}

# Does this kernel get as far as to miss its disk with KVM? That /dev/kvm can be opened does not say
# so where the host is a guest itself: a boot sector may run, and a kernel hang in its first
# instructions, or its processor stop at one that nobody emulates. One look for each start of the host.
kvm_runs() {
	local known=$CACHE/guest/kvm-$UID id
	[ -w /dev/kvm ] || return 1
	id=$(cat /proc/sys/kernel/random/boot_id)
	# A cache that belongs to somebody else can be used all the same
	[ -w "$CACHE/guest" ] || { kernel_runs_with_kvm; return; }
	(
		flock 9 # other guests want to know at the same time
		if ! grep -qs "^$id linux " "$known"; then
			if kernel_runs_with_kvm; then echo "$id linux yes"; else echo "$id linux no"; fi >"$known"
		fi
	) 9>"$known.lock"
	grep -q "^$id linux yes\$" "$known"
}

kernel_runs_with_kvm() {
	local qemu=$CACHE/qemu/usr
	timeout -k 5 15 "$EMULATOR" -L "$qemu/share/qemu" -L "$qemu/share/seabios" \
		-L /usr/share/seabios -nodefaults -no-user-config -no-reboot -display none -m 512 \
		-accel kvm "${MACHINE[@]}" -serial "file:$WORK/kvm" -kernel "$IMAGE" \
		-append "console=$CONSOLE panic=-1" </dev/null >/dev/null 2>&1 || true
	grep -qa "Kernel panic - not syncing: VFS" "$WORK/kvm" 2>/dev/null
}

# boot: QEMU's status in $QEMU_STATUS; fills $OUT/console, $OUT/tap and $OUT/verdict
boot() {
	local qemu=$CACHE/qemu/usr accel=tcg,thread=multi status=0 icount=() words=() tap=() machine=("${MACHINE[@]}")
	export QEMU_MODULE_DIR=$qemu/lib/x86_64-linux-gnu/qemu
	if [ "$ICOUNT" = yes ]; then
		accel=tcg icount=(-icount "shift=0,sleep=off")
		# As when the figures were counted that it is compared with
		is_arm64 "$KERNEL" || machine=(-cpu max)
	elif [ "${HAMLYN_ACCEL:-auto}" != tcg ] && ! is_arm64 "$KERNEL" && kvm_runs; then
		accel=kvm
	fi
	tap=(-chardev "file,id=tap,path=/dev/stdout")
	[ "$INTERACTIVE" = no ] || tap=(-chardev "stdio,id=tap,mux=on,signal=off")
	read -ra words <<<"$QEMU_WORDS"
	node_words
	# shellcheck disable=SC2054 # the commas are QEMU's
	local command=(
		timeout --foreground -k 5 "$TIMEOUT" "$EMULATOR"
		-L "$qemu/share/qemu" -L "$qemu/share/seabios" -L /usr/share/seabios
		-nodefaults -no-user-config -no-reboot -display none
		-accel "$accel" "${icount[@]}" "${machine[@]}" -smp "$SMP" -m "$MEM" "${NODE_WORDS[@]}"
		-chardev "file,id=console,path=$OUT/console" -serial chardev:console
		"${tap[@]}" -serial chardev:tap
		-chardev "file,id=verdict,path=$OUT/verdict" "${VERDICT[@]}"
		-kernel "$IMAGE" -initrd "$WORK/initrd"
		-append "console=$CONSOLE no_timer_check ignore_loglevel printk.devkmsg=on panic=-1 oops=panic panic_on_warn=1$APPEND"
		"${words[@]}"
	)
	: >"$OUT/console"
	: >"$OUT/verdict"
	QEMU_STATUS=0
	if [ "$INTERACTIVE" = yes ]; then
		"${command[@]}" || QEMU_STATUS=$?
		return 0
	fi
	# In the background, because bash runs no trap while it waits for a pipeline
	{
		"${command[@]}" -pidfile "$WORK/pid" </dev/null 2>"$OUT/qemu-errors" || status=$?
		echo "$status" >"$WORK/qemu-status"
	} | stdbuf -oL tr -d '\r' | tee "$OUT/tap" &
	wait $!
	QEMU_STATUS=$(cat "$WORK/qemu-status")
}

# shellcheck disable=SC2317 # called by the trap
stop_guest() {
	local pid
	[ -s "$WORK/pid" ] || return 0 # QEMU removes the file when it ends
	read -r pid <"$WORK/pid"
	kill "$pid" 2>/dev/null || true
	wait
}

bad_lines() {
	tr -d '\r' <"$OUT/console" | grep -aE -e "$BAD_LOG" | grep -avE -e "$NOT_BAD" |
		{ [ -z "$ALLOW" ] && cat || grep -avE -e "$ALLOW"; } || true
}

log_tail() {
	say "last lines of the kernel log:"
	tail -n 30 "$OUT/console" | tr -d '\r' | sed 's/^/# | /' >&2
	[ ! -s "$OUT/qemu-errors" ] || sed 's/^/# qemu: /' "$OUT/qemu-errors" >&2
}

# judge: sets STATUS from the three channels. Once a program runs, whatever ends the guest
# may be the module's doing: a triple fault, or a reset, leaves no line in the log.
judge() {
	local started bad rc
	started=$(grep -c '^VM-START' "$OUT/verdict" || true)
	rc=$(sed -n 's/^VM-RC \([0-9]*\)$/\1/p' "$OUT/verdict" | tail -n 1)
	bad=$(bad_lines)
	if [ "$started" = 0 ]; then
		STATUS=$EXIT_RIG
		say "the guest did not get as far as its first program (QEMU status $QEMU_STATUS)"
		log_tail
	elif [ -n "$bad" ]; then
		STATUS=${rc:-1}
		[ "$STATUS" != 0 ] || STATUS=1
		say "FAILED: the kernel log has lines that must not be there:"
		printf '%s\n' "$bad" | sed 's/^/# | /' >&2
	elif [ "$QEMU_STATUS" = 124 ] || [ "$QEMU_STATUS" = 137 ]; then
		STATUS=$EXIT_TIMEOUT
		say "FAILED: stopped after $TIMEOUT s"
		log_tail
	elif [ -z "$rc" ] && [ "$INTERACTIVE" = yes ]; then
		STATUS=0
		say "stopped by hand; the module was not removed"
	elif [ -z "$rc" ]; then
		STATUS=1
		say "FAILED: the guest started, and ended without a verdict (QEMU status $QEMU_STATUS)"
		log_tail
	elif ! grep -q 'hamlyn-vm: end of run' "$OUT/console"; then
		STATUS=$rc
		[ "$STATUS" != 0 ] || STATUS=1
		say "FAILED: the kernel log is cut short"
		log_tail
	else
		STATUS=$rc
	fi
}

keep_attempt() {
	mkdir -p "$OUT/attempt-1"
	mv -t "$OUT/attempt-1" "$OUT/console" "$OUT/verdict"
	[ ! -e "$OUT/tap" ] || mv -t "$OUT/attempt-1" "$OUT/tap"
}

run_and_judge() {
	boot
	judge
	if [ "$STATUS" = "$EXIT_RIG" ] && [ "$INTERACTIVE" = no ]; then
		say "the machinery failed, not the test; trying once more"
		keep_attempt
		boot
		judge
	fi
}

# shellcheck disable=SC2317 # called by the trap
clean_up() {
	local status=$?
	[ -z "$WORK" ] || stop_guest
	end_run "$status" "console, tap and verdict"
}

main() {
	parse_words "$WITH_VALUE" "$@"
	check_options
	find_kernel
	begin_run vm
	rm -rf "$OUT/attempt-1"
	base_archive
	run_archive "$WORK/run.cpio"
	cat "$BASE" "$WORK/run.cpio" >"$WORK/initrd"
	run_and_judge
	exit "$STATUS"
}

main "$@"
