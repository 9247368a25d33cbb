#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs one command in User-Mode Linux, with hamlyn.ko loaded: Linux as processes
# of this machine. Programs and kernel threads run at native speed, only system
# calls are slow (20 us), so it tells how fast the polled path is where there is
# no hardware to virtualise. It is no place for tests: see README.md.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

EXIT_TIMEOUT=124
EXIT_RIG=125

usage() {
	cat <<EOF
Usage: selftests/vm/uml.sh [option]... --cmd "LINE"

  --cmd LINE            shell command line to run
  --kernel NAME         uml (default), or uml-lockdep, uml-leak: of selftests/setup.sh uml lockdep, uml leak
  --build DIR           where hamlyn-perf is and hamlyn.ko is built (build)
  --module-args "A=B"   parameters of hamlyn.ko (idle_us=20000)
  --no-module           do not load it
  --file HOST[:GUEST]   a program or file to put in, by default as /host/NAME; /host is in
                        PATH. hamlyn-perf is put in always.
  --ncpus N             processors (2)
  --mem M               memory in MiB (512)
  --append TEXT         more of the kernel's command line
  --timeout S           seconds until it is stopped (120); multiplied by \$HAMLYN_TIMEOUT_SCALE
  --out DIR             keeps console and tap there; otherwise only if the run fails

Exit status: that of the command; $EXIT_TIMEOUT when the time was up, $EXIT_RIG when the
machinery failed, 2 for a wrong call. The output of the command comes on standard output.
EOF
}

COMMAND='' KERNEL=uml BUILD=build MODULE_ARGS=idle_us=20000 NCPUS=2 MEM=512 APPEND='' TIMEOUT=120 OUT='' WORK=''
MODULE=yes FILES=() PID=''

take_option() { # OPTION VALUE
	case $1 in
	--cmd) COMMAND=$2 ;;
	--kernel) KERNEL=$2 ;;
	--build) BUILD=$2 ;;
	--module-args) MODULE_ARGS=$2 ;;
	--file) FILES+=("$2") ;;
	--ncpus) NCPUS=$2 ;;
	--mem) MEM=$2 ;;
	--append) APPEND=$2 ;;
	--timeout) TIMEOUT=$2 ;;
	--out) OUT=$2 ;;
	esac
}

take_word() {
	case $1 in
	--no-module) MODULE=no ;;
	*) die 2 "option \"$1\" is unknown; see --help" ;;
	esac
}

check_options() {
	[ -n "$COMMAND" ] || die 2 "--cmd is needed; see --help"
	need_number --ncpus "$NCPUS" 1 4
	need_number --mem "$MEM" 128 8192
	need_number --timeout "$TIMEOUT" 1 86400
	need_number HAMLYN_TIMEOUT_SCALE "${HAMLYN_TIMEOUT_SCALE:-1}" 1 100
	TIMEOUT=$((TIMEOUT * ${HAMLYN_TIMEOUT_SCALE:-1}))
}

build_module() {
	[ "$MODULE" = yes ] || return 0
	nice "$VM_DIR/build-module.sh" "$CACHE/$KERNEL/build" "$REPO_DIR" "$BUILD/$KERNEL" ARCH=um \
		"KCFLAGS=-include $VM_DIR/uml-barriers.h" >"$WORK/module.log" 2>&1 && return 0
	cat "$WORK/module.log" >&2
	die $EXIT_RIG "hamlyn.ko could not be built for UML"
}

# add_program ROOT HOST GUEST: a program with the libraries that it needs
add_program() {
	local name path
	mkdir -p "$1$(dirname "$3")"
	cp -L "$2" "$1$3"
	while read -r name path; do
		[ "$path" != missing ] || die $EXIT_RIG "$2 needs $name, which is not there"
		mkdir -p "$1$(dirname "$path")"
		[ -e "$1$path" ] || cp -L "$path" "$1$path"
	done < <(ldd "$2" 2>/dev/null |
		awk '/=> not found/ { print $1, "missing"; next } /=>/ { print $1, $3; next }
			$1 ~ /^\// { print $1, $1 }' || true)
}

guest_init() {
	cat <<EOF
#!/bin/sh
# Standard output is the console. What the command says goes to a file of the host.
export PATH=/host:/bin HOME=/tmp
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/shm
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t tmpfs -o mode=1777 tmpfs /tmp
cd /tmp
rc=0
EOF
	[ "$MODULE" = no ] || printf 'insmod /vm/hamlyn.ko %s || rc=1\n' "$MODULE_ARGS"
	# What polls stays where it is woken, beside the process: give engines the last processor
	printf 'mask=%x\n' $((1 << (NCPUS - 1)))
	cat <<'EOF'
for thread in /proc/[0-9]*; do
	read -r name <"$thread/comm"
	case $name in
	hamlyn[0-9]*) taskset -p $mask "${thread#/proc/}" >/dev/null ;;
	esac
done
if [ $rc = 0 ]; then
	sh /vm/run </dev/null >/out/tap 2>&1
	rc=$?
else
	echo "hamlyn.ko was not loaded" >/out/tap
fi
echo $rc >/out/rc
sync
poweroff -f
EOF
}

fill_root() { # ROOT
	local root=$1 busybox applet file guest
	busybox=$(command -v busybox) || die $EXIT_RIG "busybox is missing; run: selftests/setup.sh packages vm"
	mkdir -p "$root"/{bin,dev,proc,sys,tmp,etc,vm,host,out}
	cp "$busybox" "$root/bin/busybox"
	while read -r applet; do
		[ "$applet" = busybox ] || ln -s busybox "$root/bin/$applet"
	done < <("$busybox" --list)
	guest_users >"$root/etc/passwd"
	guest_groups >"$root/etc/group"
	[ "$MODULE" = no ] || cp "$BUILD/$KERNEL/hamlyn.ko" "$root/vm/hamlyn.ko"
	printf '%s\n' "$COMMAND" >"$root/vm/run"
	guest_init >"$root/vm/init"
	chmod 755 "$root/vm/init"
	for file in "$BUILD/hamlyn-perf" "${FILES[@]}"; do
		guest=/host/$(basename "${file%%:*}")
		[[ $file != *:* ]] || guest=${file#*:}
		[ -e "${file%%:*}" ] || die 2 "there is no ${file%%:*}"
		add_program "$root" "${file%%:*}" "$guest"
	done
}

# Its processes are a group of their own, so that they can be ended together
boot() {
	local linux=$CACHE/$KERNEL/build/linux
	# The memory is a file; one in /dev/shm stays in memory
	# shellcheck disable=SC2086 # several words
	TMPDIR=/dev/shm setsid timeout --foreground -k 5 "$TIMEOUT" "$linux" \
		"mem=${MEM}M" "ncpus=$NCPUS" seccomp=on "umid=hamlyn-$$" "uml_dir=$WORK/" \
		root=none rootfstype=hostfs "rootflags=$WORK/root" rw init=/vm/init \
		con0=null,fd:1 con=null panic=-1 ignore_loglevel $APPEND \
		</dev/null >"$OUT/console" 2>&1 &
	PID=$!
	STATUS=0
	end_when_down "$PID" &
	wait "$PID" || STATUS=$?
	end_group
	PID=''
}

# Sometimes it goes on, busy, behind its last words
end_when_down() { # PID
	while kill -0 "$1" 2>/dev/null; do
		sleep 0.5
		if grep -q 'reboot: Power down' "$OUT/console" 2>/dev/null; then
			sleep 2
			PID=$1
			end_group
			return 0
		fi
	done
}

# It makes itself a group of its own: ending that of timeout leaves it running
end_group() {
	local linux
	[ -n "$PID" ] || return 0
	linux=$(pgrep -P "$PID") || true
	kill -KILL -- "-$PID" ${linux:+"-$linux"} 2>/dev/null || true
}

judge() {
	local root=$WORK/root
	cp "$root/out/tap" "$OUT/tap" 2>/dev/null || : >"$OUT/tap"
	cat "$OUT/tap"
	if [ -s "$root/out/rc" ]; then
		STATUS=$(cat "$root/out/rc")
		return 0
	fi
	tail -n 20 "$OUT/console" | sed 's/^/# | /' >&2
	if [ "$STATUS" = 124 ] || [ "$STATUS" = 137 ]; then
		STATUS=$EXIT_TIMEOUT
		say "stopped after $TIMEOUT s"
	else
		STATUS=$EXIT_RIG
		say "it ended without a verdict"
	fi
}

# shellcheck disable=SC2317 # called by the trap
clean_up() {
	local status=$?
	end_group
	end_run "$status" "console and tap"
}

main() {
	parse_words "--cmd --kernel --build --module-args --file --ncpus --mem --append --timeout --out" "$@"
	check_options
	[ -e "$CACHE/$KERNEL/stamp" ] ||
		die $EXIT_RIG "$KERNEL is not in the cache; run: selftests/setup.sh ${KERNEL/-/ }"
	[ -x "$BUILD/hamlyn-perf" ] || die $EXIT_RIG "there is no $BUILD/hamlyn-perf; run: make BUILD=$BUILD tools"
	begin_run uml
	build_module
	fill_root "$WORK/root"
	boot
	judge
	exit "$STATUS"
}

main "$@"
