#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs parts of the test suite and adds up what they report.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
ME=check.sh
# shellcheck source-path=SCRIPTDIR source=lib/lib.sh
. selftests/lib/lib.sh
# shellcheck source-path=SCRIPTDIR source=vm/vm-run.sh
. selftests/vm/vm-run.sh

usage() {
	cat <<EOT
Usage: selftests/check.sh native | static | vm KERNEL | asan | tsan | plain
       selftests/check.sh all [--minutes N] KERNEL...
       selftests/check.sh part native | tools | languages | search | static | package |
                               PART-OF-VM KERNEL
       selftests/check.sh places

  native  unit tests of the core, the selftests on the embedded device, builds
          with gcc and clang, installation; Tempest; models, litmus tests, fuzzing
  static  checkpatch, sparse, W=1 builds, kernel-doc, shellcheck and others
  vm      the selftests on the kernel device, in a VM with that kernel
  storm   in one boot: 10 000 processes killed or stopped in traffic, in ten storms, with
          the module unloaded and loaded in between; \$HAMLYN_STORM=PROCESSES,STORMS
  all     native, static and vm; debug and kcsan, which are built from source, are built meanwhile.
          With --minutes each program runs in guests only where selftests/places.conf says,
          and what is slow or hardly changes is left out: models, most of the fuzzing, the
          second compiler of C++, Active Messages and administration on all but the first
          kernel, storms, leaks and faults on debug; a kernel that is not built $SLOW_TAKES
          minutes before the N are over is skipped
  asan    the selftests on the embedded device, and the library, with the address and
          undefined behaviour sanitizers
  tsan    and with the thread sanitizer
  plain   native, tempest and static, as in a plain container: user, mount and network namespaces
          are refused, and root has what Docker leaves it
  part    one part of those, with what was built before: native, tools (what is installed, started
          or read), languages (C++, Python, libfabric), tempest, search (models, litmus tests,
          fuzzing), static, package (as a release has it), and of a VM:
            poll    the selftests with the polling engine
            inline  those with doorbells only
            am      Active Messages, and Tempest
            preempt what may be stopped anywhere (preempt=full, or a kernel with PREEMPT_RT):
                    who loses the processor stops nobody
            admin   administration with tracing, files on a disk, places of engines
            storm   processes killed in traffic, and what is left of them
            leak    what is left of objects that came and went (kernel debug)
            faults  faults at every allocation, random calls for \$HAMLYN_FUZZ_SECONDS
                    (300) (kernel debug)
            races   what can be taken away in traffic, watched closely (kernel kcsan)

Sets up what it needs. Ends with one line "N passed, N failed" and fails if
anything failed or did not report. Logs go to \$BUILD/logs (default build/logs).
  places  where --minutes runs each program; fails if one has no place

All but asan and tsan run \$HAMLYN_LANES parts at a time (4).
EOT
}

RACE_TESTS="race race_kernel threads hostile_watch hostile_ticket"
# What is about who stops whom, where everything can be preempted; 7.2 has less of it, and
# PREEMPT_RT, where locks are others, more
PREEMPT_TESTS="hostile_freeze hostile_watch hostile_share hostile_time hostile_guess limits"
PREEMPT_BRIEF="hostile_freeze hostile_watch"
PREEMPT_RT_MORE="lifecycle protection nq poll_wait hostile_wake hostile_pause share race"
# Minutes that their selftests take at most
SLOW_TAKES=25
# Building one takes 8, on an idle machine.
BUILD_MINUTES=120
MINUTES=0
BUILD=${BUILD:-build}
LOGS=$BUILD/logs
MAKE_QUIET=(make --no-print-directory -s "-j$(nproc)" "BUILD=$BUILD")
failures=""

note() {
	printf '\n# ---- %s (%(%H:%M:%S)T)\n' "$*" -1
}

# What failed is told again at the end, with the last that was said of it before.
failure() { # PART WHAT
	failures+="$1: $2"$'\n'
}

failures_of() { # PART LOG
	failures+=$(awk -v part="$1" '
		{ sub(/\r$/, "") }
		/^not ok/ {
			print part ": " $0
			for (i = said > 5 ? said - 5 : 0; i < said; i++)
				print "  " line[i]
		}
		/^(not )?ok/ { said = 0 }
		/^#/ && !/^# *RUN / { line[said++] = $0 }' "$2")$'\n'
}

# What this shell's commands have used of the processors, in seconds, to $used: beside other work
# that tells what a part costs, and not how long it took. A subshell would count its own.
used=0
processor_seconds() {
	local user system
	times >"$LOGS/times-$$"
	{ read -r _ && read -r user system; } <"$LOGS/times-$$"
	rm "$LOGS/times-$$"
	used=$(awk -v times="$user $system" \
		'BEGIN { gsub(/[ms]/, " ", times); split(times, t); printf "%d", (t[1] + t[3]) * 60 + t[2] + t[4] }')
}

# A command that ends with a total.
part() { # NAME COMMAND...
	local name=$1 log before=$failed begun=$SECONDS before_used
	shift
	note "$name"
	processor_seconds
	before_used=$used
	log=$LOGS/${name//[^a-zA-Z0-9.]/-}
	totals "$name" "$log" "$@"
	[ "$failed" = "$before" ] || failures_of "$name" "$log"
	[ -z "$why" ] || failure "$name" "$why"
	processor_seconds
	printf '# %s: %d s, %d of the processors\n' "$name" $((SECONDS - begun)) $((used - before_used))
}

# One check by its exit status.
one() { # NAME COMMAND...
	local name=$1 log
	shift
	log=$LOGS/${name//[^a-zA-Z0-9.]/-}
	if "$@" >"$log" 2>&1; then
		good "$name"
	else
		bad "$name" "$(excerpt "$log")"
		failure "$name" "see above"
	fi
}

finish() {
	[ "$failed" = 0 ] || printf '\n# ---- what failed\n%s\n' "$(sed '/^$/d; s/^/# /' <<<"$failures")"
	echo
	total && [ "$passed" != 0 ]
}

# Which words of places.conf hold for a program: the first line that fits
places_of() { # PATH within selftests, without .c
	local pattern words
	while read -r pattern words; do
		# shellcheck disable=SC2053 # a pattern is what it is to be
		if [[ $pattern != "#"* && -n $pattern && $1 == $pattern ]]; then
			echo "$words"
			return
		fi
	done <selftests/places.conf
	return 1
}

# "PROGRAM: WORD..." of all that run on the kernel device
places() {
	local test source words status=0
	for test in $(names TESTS_BOTH) $(names TESTS_KERNEL); do
		source=$(find selftests/{kernel,low,upper} -name "${test##*/}.c")
		source=${source#selftests/}
		if words=$(places_of "${source%.c}"); then
			echo "${test##*/}: $words"
		else
			echo "${test##*/}: selftests/places.conf has no place for it"
			status=1
		fi
	done
	return "$status"
}

brief_tests() { # WORD: the programs that run there, and behind a colon variants that do not
	places | awk -v word="$1" -v to="$BUILD/selftests/" '{
		without = found = ""
		for (i = 2; i <= NF; i++) {
			if ($i == word)
				found = 1
			if (sub(/^without=/, "", $i))
				without = ":" $i
		}
		sub(/:$/, "", $1)
		if (found)
			print to $1 without
	}'
}

names() { # MAKE-VARIABLE: the test programs it lists
	make --no-print-directory -s "BUILD=$BUILD" "print-$1"
}

# Some tests guess keys by the thousand, others are about what comes of it. To make the memory
# of a segment is most of what a short test takes: half of the default does where it is not about
# what a segment has room for, nor makes one itself.
embedded_parts() { # WHERE
	local tests=() roomy=() guessing=() test
	for test in $(names TESTS_BOTH); do
		case $test in
		*/conformance*) guessing+=("$test") ;;
		*/fork_kill | */capacity | */many | */rendezvous | */server | */huge) roomy+=("$test") ;;
		*) tests+=("$test") ;;
		esac
	done
	for test in $(names TESTS_SHM); do
		roomy+=("$test")
	done
	part "selftests on $1" \
		selftests/run-tests.sh --device "shm:check-$$,size=16M,guesses=0" "${tests[@]}"
	part "selftests on $1, 32 MiB" \
		selftests/run-tests.sh --device "shm:check-$$,guesses=0" "${roomy[@]}"
	part "conformance on $1" \
		selftests/run-tests.sh --device "shm:conform-$$" "${guessing[@]}"
}

build_native() {
	selftests/setup.sh packages native
	# Not everywhere: what is not there is not tested, and ofi_parts says so.
	selftests/setup.sh packages ofi || true
	selftests/setup.sh kselftest
	selftests/setup.sh herd
	selftests/setup.sh promtool
	note "builds"
	one "library, tools and examples build with gcc without warnings" \
		"${MAKE_QUIET[@]}" all CFLAGS='-O2 -g -Werror'
	one "library, tools and examples build with clang without warnings" \
		"${MAKE_QUIET[@]}" "BUILD=$BUILD/clang" all CC=clang CFLAGS='-O0 -g0 -Werror'
	one "unit tests build" "${MAKE_QUIET[@]}" units
	one "selftests build" "${MAKE_QUIET[@]}" selftests am-tests tempest-tests stache-tests \
		languages-test
	one "fuzz targets build" "${MAKE_QUIET[@]}" fuzz
}

native_parts() {
	part "unit tests of the core and of hamlynctl (ASan, UBSan)" \
		selftests/unit/run.sh "$BUILD/unit"
	embedded_parts "the embedded device"
	part "Active Messages on the embedded device" selftests/am/am-test.sh "$BUILD/am"
	part "engine of Active Messages on the embedded device" \
		selftests/am/am-engine-test.sh "$BUILD/am"
}

tools_parts() {
	part "hamlynctl on the host" tools/hamlynctl/test/check.sh "$BUILD/hamlynctl"
	part "exporter of metrics" tools/hamlynctl/test/exporter.py "$BUILD/hamlynctl"
	part "documentation and manual" selftests/tools/doc-test.sh "$BUILD"
	part "dissector for Wireshark" selftests/wireshark/wireshark-test.sh "$BUILD"
	part "hamlyn-perf on the embedded device" selftests/tools/perf-test.sh "$BUILD/hamlyn-perf"
	part "hamlyn-cat" selftests/tools/cat-test.sh "$BUILD"
	part "hamlyn-run and start-up" selftests/tools/run-test.sh "$BUILD"
	part "hamlyn-run over several hosts" selftests/tools/run-hosts-test.sh "$BUILD"
	part "jobs over network namespaces" selftests/tools/netns-test.sh "$BUILD"
	part "installation" selftests/tools/install-test.sh "$BUILD"
	part "built out of the tree" selftests/tools/outside-test.sh "$BUILD"
	part "examples that serve" selftests/tools/examples-test.sh "$BUILD"
	part "event loops" selftests/tools/loops-test.sh "$BUILD"
	part "users' sanitizers" selftests/tools/sanitizer-test.sh "$BUILD"
}

languages_parts() {
	local cxx=()
	! is_short || cxx=(--one-compiler)
	part "C++ wrapper" selftests/bindings/cxx/cxx-test.sh "${cxx[@]}" "$BUILD"
	part "Python package" selftests/bindings/python/python-test.sh "$BUILD"
	part "C++ and Python between hosts" selftests/bindings/languages/languages-test.sh "$BUILD"
	ofi_parts
}

tempest_parts() {
	local brief=() seconds=()
	# What is to be caught by chance is so in one second, or in many runs.
	! is_short || brief=(--brief) seconds=(env HAMLYN_TEST_SECONDS=1)
	part "Tempest" "${seconds[@]}" selftests/tempest/tempest-test.sh "$BUILD"
	part "Tempest on several nodes" "${seconds[@]}" \
		selftests/tempest/nodes-test.sh "$BUILD/hamlyn-run" "$BUILD/tempest"
	part "Tempest beside intruders" selftests/tempest/intruders-test.sh "$BUILD/hamlyn-run" "$BUILD/tempest"
	part "Tempest by hamlyn-run, mpirun and srun" selftests/tempest/launchers-test.sh "$BUILD"
	part "code of hamlyn-tempest-cc" selftests/tempest-cc/check.sh "${brief[@]}" "$BUILD"
	part "programs by hamlyn-tempest-cc" selftests/tempest-cc/programs.sh "${brief[@]}" "$BUILD"
	is_short || part "Lua and bzip2 by hamlyn-tempest-cc" selftests/tempest-cc/chaos.sh "$BUILD"
	part "Stache" selftests/stache/stache-test.sh "$BUILD"
}

ofi_parts() {
	local long=(--long)
	! is_short || long=()
	if pkg-config --exists libfabric; then
		one "tests of the libfabric provider build" "${MAKE_QUIET[@]}" ofi-tests
		part "libfabric provider" selftests/ofi/ofi-test.sh "${long[@]}" "$BUILD"
		part "libfabric provider between hosts" selftests/ofi/hosts-test.sh "$BUILD"
		part "MPI by srun" selftests/tools/slurm-test.sh --mpi "$BUILD"
		is_short || part "MPICH over the libfabric provider" selftests/ofi/mpich.sh "$BUILD"
	else
		skip "libfabric provider" "libfabric-dev cannot be installed"
	fi
}

# What a release is made of: minutes to build, and a machine for each to be tried in
package_parts() {
	local release
	one "what packages and the site need is installed" selftests/setup.sh packages package
	one "the same of the site" selftests/setup.sh packages site
	one "Debian packages, and lintian has nothing to say" "${MAKE_QUIET[@]}" deb
	one "the site" "${MAKE_QUIET[@]}" html
	if [ "$(id -u)" = 0 ]; then
		part "packages in a fresh machine, bookworm" \
			selftests/package/trial.sh --debs "$BUILD/deb" bookworm
		one "packages leave nothing, bookworm" selftests/package/purge.sh --debs "$BUILD/deb" bookworm
		part "what the packages' pages say, bookworm" \
			selftests/package/pages.sh --debs "$BUILD/deb" bookworm
		part "containers, bookworm" selftests/package/podman.sh --debs "$BUILD/deb" bookworm
		one "packages of the last release" released_packages
		part "an upgrade from them while in use, bookworm" selftests/package/upgrade.sh \
			--from "$BUILD/released/build/deb" --debs "$BUILD/deb" bookworm
		part "the provider with libfabric of bookworm" \
			selftests/package/libfabric.sh --debs "$BUILD/deb" bookworm
		for release in trixie sid; do
			one "Debian packages, and lintian has nothing to say, $release" \
				"${MAKE_QUIET[@]}" deb "RELEASE=$release"
			one "the same bytes when they are built elsewhere, $release" \
				selftests/package/twice.sh --debs "$BUILD/deb-$release" "$release"
			part "packages in a fresh machine, $release" selftests/package/trial.sh --quick \
				--debs "$BUILD/deb-$release" "$release"
			one "packages leave nothing, $release" selftests/package/purge.sh \
				--debs "$BUILD/deb-$release" "$release"
			part "what the packages' pages say, $release" selftests/package/pages.sh \
				--debs "$BUILD/deb-$release" "$release"
			part "containers, $release" selftests/package/podman.sh \
				--debs "$BUILD/deb-$release" "$release"
			part "the provider with libfabric of $release" selftests/package/libfabric.sh \
				--debs "$BUILD/deb-$release" "$release"
		done
		arm64_packages
	else
		skip "packages in a fresh machine, bookworm, trixie, sid, arm64" "its files belong to root"
	fi
}

# By its own sources and tools
released_packages() {
	local tag tree=$BUILD/released
	tag=$(git describe --tags --abbrev=0 --match 'v*') || return
	rm -rf "$tree"
	git clone -q . "$tree" && git -C "$tree" checkout -q "$tag" &&
		"$tree/tools/package/deb.sh" --version "${tag#v}" --no-lintian
}

arm64_packages() {
	one "what arm64 needs is there" selftests/setup.sh packages arm64
	one "its guests" selftests/setup.sh arm64
	one "its kernel" selftests/setup.sh kernel 6.1-arm64
	one "Debian packages for arm64, and lintian has nothing to say" \
		"${MAKE_QUIET[@]}" deb RELEASE=bookworm ARCH=arm64
	part "packages on an emulated arm64" selftests/package/arm64.sh --debs "$BUILD/deb-bookworm-arm64"
}

# What looks for what nobody has thought of.
search_parts() {
	local fuzz=120
	# A model changes when somebody changes it, and not with the code.
	if is_short; then fuzz=45; else part "models" selftests/model/check.sh; fi
	part "litmus tests" selftests/litmus/check.sh
	is_short || part "litmus tests on Stache" selftests/stache/stache-test.sh "$BUILD" 100000
	part "fuzzing, $fuzz seconds" env "BUILD=$BUILD" selftests/fuzz/run.sh quick "$fuzz"
	is_short || part "a first message" env "BUILD=$BUILD" HAMLYN_TEST_SCALE=2 \
		selftests/vm/first-message.sh
	is_short || part "two hosts" env "BUILD=$BUILD" HAMLYN_TEST_SCALE=2 selftests/vm/two-hosts.sh
	is_short || part "frames by brute force" env "BUILD=$BUILD" selftests/fuzz/run.sh brute 300000000
}

# The selftests on the embedded device under sanitizers. A report ends a program with a
# status that no test has, and is in its output. Some tests are about SIGSEGV.
check_sanitized() { # FLAGS
	selftests/setup.sh packages native
	selftests/setup.sh kselftest
	note "builds"
	one "selftests build with $1" "${MAKE_QUIET[@]}" selftests \
		TEST_LINK= CFLAGS="-O1 -g -fno-omit-frame-pointer $1"
	export ASAN_OPTIONS=exitcode=99:handle_segv=0:handle_sigbus=0
	export UBSAN_OPTIONS=halt_on_error=1:exitcode=99
	export TSAN_OPTIONS=exitcode=99:halt_on_error=1:die_after_fork=0:handle_segv=0
	export HAMLYN_TEST_SCALE=${HAMLYN_TEST_SCALE:-4}
	embedded_parts "the embedded device, $1"
	[ "$1" != -fsanitize=thread ] || tempest_sanitized "$1"
	pkg-config --exists libfabric || return 0
	one "tests of the libfabric provider build with $1" "${MAKE_QUIET[@]}" ofi-tests \
		CFLAGS="-O1 -g -fno-omit-frame-pointer $1" OFI_LIB="$BUILD/libhamlyn.a" OFI_LINK=
	part "libfabric provider, $1" env "FI_PROVIDER_PATH=$BUILD/libfabric" selftests/run-tests.sh \
		--device "shm:ofi-$$,size=256M" "$BUILD"/ofi/ofi_*
}

# The runtime's segment is where the sanitizer has nothing; see abi.h of Tempest. The launcher is
# a program like others.
tempest_sanitized() { # FLAGS
	case $("${CC:-gcc}" -dumpmachine) in x86_64-*) ;; *) return 0 ;; esac
	one "hamlyn-run builds" "${MAKE_QUIET[@]}" "$BUILD/hamlyn-run"
	one "tests of Tempest and Stache build with $1" "${MAKE_QUIET[@]}" sanitized-tests \
		TEST_LINK= CPPFLAGS=-DTEMPEST_LOW_SEGMENT CFLAGS="-O1 -g -fno-omit-frame-pointer $1 -Wno-tsan"
	part "Tempest and Stache, $1" selftests/tempest/sanitized-test.sh "$BUILD"
}

setup_static() {
	selftests/setup.sh packages static
	selftests/setup.sh packages vm
	selftests/setup.sh kernel all
	selftests/setup.sh kselftest
}

# In a short run the module that is tested on 7.2 is built with all warnings.
static_parts() {
	local without=()
	! is_short || without=(--without w1-6.1 --without w1-7.2)
	part "static checks" selftests/static/check.sh "${without[@]}"
}

# Where namespaces are refused, as in a plain container, the compiler of some cannot be entered.
module_may_be_built() { # KERNEL
	selftests/vm/build-module.sh --may "$1" && return
	skip "selftests on the kernel device, Linux $1" \
		"mount namespaces are refused here, and the compiler of this kernel needs one"
	return 1
}

build_vm() { # KERNEL
	local kernel=$1 warnings=()
	selftests/setup.sh packages native
	selftests/setup.sh packages vm
	# Not everywhere: what is not there is not tested, and ofi_part says so.
	selftests/setup.sh packages ofi || true
	selftests/setup.sh qemu
	selftests/setup.sh kernel "$kernel"
	selftests/setup.sh kselftest
	one "library, examples and selftests build" \
		"${MAKE_QUIET[@]}" lib examples selftests hamlynctl-test am-tests tempest-tests stache \
		languages-test
	! pkg-config --exists libfabric || one "tests of the libfabric provider build" \
		"${MAKE_QUIET[@]}" ofi-tests
	# As w1-7.2 of the static checks, which is left out there
	[ "$kernel" != 7.2 ] || ! is_short || warnings=("KBUILD_ARGS=W=1 KCFLAGS=-Werror")
	one "module builds for $kernel" module_builds "KERNEL=$kernel" "${warnings[@]}"
}

module_builds() { # MAKE-ARGUMENT...
	local said status=0
	said=$("${MAKE_QUIET[@]}" modules "$@" 2>&1) || status=$?
	printf '%s\n' "$said"
	# The compiler's: make has some of its own
	[ "$status" = 0 ] && ! grep -qE '\.[chS]:[0-9]+.* warning: ' <<<"$said"
}

# The polling engine on two processors, doorbells only on one.
poll_part() { # KERNEL
	vm_part "$1" "engine=poll engines=2 nics=2 max_slots=4096" 2
	ofi_part "$1" engine=poll
}

# And the module as a kernel tree builds it, without fsync() for a doorbell; where minutes are counted
# that it builds is in the static checks.
inline_part() { # KERNEL
	local kick=()
	if ! is_short; then
		one "module without fsync() builds for $1" selftests/vm/build-module.sh "$1" . \
			"$BUILD/k$1-kick" HAMLYN_FSYNC_DOORBELL=n
		kick=("$BUILD/k$1-kick/hamlyn.ko:/host/hamlyn-kick.ko")
	fi
	vm_part "$1" "engine=inline nics=2 max_slots=4096" 1 "${kick[@]}"
	ofi_part "$1" engine=inline
}

preempt_part() { # KERNEL
	local kernel=$1 files=() test list=$PREEMPT_BRIEF more="preempt=full "
	case $kernel in
	# No huge pages there, which limits is about in part
	*-rt) list="${PREEMPT_TESTS% limits} $PREEMPT_RT_MORE" more="" ;;
	6.1) list=$PREEMPT_TESTS ;;
	esac
	! is_short || list=$(brief_tests preempt | sed 's|.*/||' | paste -sd' ')
	for test in $list; do
		files+=(--file "$BUILD/selftests/$test")
	done
	part "preempted anywhere, Linux $kernel" \
		vm_run "$LOGS/vm-$kernel-preempt" "$kernel" --smp 2 --timeout 900 \
		--module "$BUILD/k$kernel/hamlyn.ko" --file "$BUILD/k$kernel/hamlyn.ko" \
		--module-args "engine=poll engines=2 nics=2 max_slots=4096" "${files[@]}" \
		--file selftests/run-tests.sh --script selftests/kernel/guest.sh \
		--append "${more}HAMLYN_TEST_SCALE=2 hamlyn.tests=${list// /,}"
}

# The libfabric provider. To the kernel it is a program like others, so not where watching costs most.
ofi_part() { # KERNEL ENGINE
	local files=() test tests=()
	! is_built "$1" || return 0
	if ! pkg-config --exists libfabric || ! command -v fi_pingpong >/dev/null; then
		skip "libfabric provider on the kernel device, Linux $1, $2" "libfabric is not installed"
		return 0
	fi
	for test in "$BUILD"/ofi/ofi_*; do
		files+=(--file "$test")
		tests+=("${test##*/}")
	done
	# That pieces and threads work does not depend on the device, and little on its engine.
	if is_short; then
		tests=(ofi_cq ofi_hostile)
		[ "$2" = engine=inline ] || tests+=(ofi_cm:busy+stopped_first ofi_race
			ofi_msg:pieces+auto_progress+thread_domain ofi_rma:pieces+given_keys)
	fi
	part "libfabric provider on the kernel device, Linux $1, $2" \
		vm_run "$LOGS/vm-$1-ofi-$2" "$1" --smp 2 --timeout 400 \
		--module "$BUILD/k$1/hamlyn.ko" --module-args "$2 nics=1 max_slots=4096" \
		--file "$BUILD/libfabric/libhamlyn-fi.so:/host/libfabric/libhamlyn-fi.so" \
		--file "$(command -v fi_pingpong)" --file "$(command -v fi_info)" \
		--file "$BUILD/ofi/traffic" --file "$BUILD/hamlynctl" "${files[@]}" \
		--file selftests/run-tests.sh --script selftests/ofi/ofi-guest.sh --append "hamlyn.tests=$(IFS=,; echo "${tests[*]}")"
}

# Active Messages, over the adversary of the kernel's fabric, too; and Tempest.
am_part() { # KERNEL
	local kernel=$1 files=() file scale="" timeout=600
	if is_built "$kernel"; then
		scale=HAMLYN_TEST_SCALE=4
		timeout=3600
	fi
	for file in "$BUILD"/am/* "$BUILD/hamlynctl" selftests/am/am-test.sh \
		selftests/am/am-engine-test.sh selftests/tempest/nodes-test.sh selftests/lib/lib.sh \
		"$BUILD"/tempest/{contended,stranger,intruder} \
		"$BUILD/stache-examples/queue:/host/stache-queue"; do
		files+=(--file "$file")
	done
	part "Active Messages on the kernel device, Linux $kernel" \
		vm_run "$LOGS/vm-$kernel-am" "$kernel" --smp 2 --timeout "$timeout" --append "$scale" \
		--module "$BUILD/k$kernel/hamlyn.ko" \
		--module-args "engine=poll engines=1 nics=1 guesses=0" \
		"${files[@]}" --script selftests/am/am-guest.sh
	# What rejects them is the same for all
	[ "$kernel" != 6.1 ] || intruders_part "$kernel"
}

intruders_part() { # KERNEL
	part "Tempest beside intruders, Linux $1" vm_run "$LOGS/vm-$1-intruders" "$1" --smp 2 \
		--timeout 900 --module "$BUILD/k$1/hamlyn.ko" --module-args "engine=poll engines=1 nics=1" \
		--file "$BUILD/hamlyn-run" --file "$BUILD/tempest/stranger" --file "$BUILD/tempest/intruder" \
		--file selftests/tempest/intruders-test.sh --file selftests/lib/lib.sh \
		--cmd "./intruders-test.sh ./hamlyn-run . --device /dev/hamlyn0"
}

# Administration and sight: hamlynctl, netlink, tracepoints.
admin_part() { # KERNEL
	local kernel=$1 out=$LOGS/vm-$1-hamlynctl wireguard=()
	# The kernels that are built here have no modules of their own.
	is_built "$kernel" || wireguard=(--kmod wireguard --append HAMLYN_WIREGUARD=yes)
	part "hamlynctl, Linux $kernel" vm_run "$out" "$kernel" --timeout 400 "${wireguard[@]}" \
		--module "$BUILD/k$kernel/hamlyn.ko" --file "$BUILD/k$kernel/hamlyn.ko" \
		--file "$BUILD/hamlynctl" --file "$BUILD/hamlynctl-peer" \
		--file "$BUILD/hamlynctl-pty" \
		--file /lib/terminfo/v/vt100:/lib/terminfo/v/vt100 \
		--script selftests/tools/hamlynctl-test.sh
	part "JSON of hamlynctl, Linux $kernel" \
		tools/hamlynctl/test/schema.py "$out/tap"
	part "metrics of hamlynctl, Linux $kernel" \
		tools/hamlynctl/test/metrics.py "$out/tap"
	tracing_part "$kernel"
	# The kernels that are built here have neither cables, nor disks, nor several nodes.
	is_built "$kernel" || cable_part "$kernel"
	is_built "$kernel" || disk_part "$kernel"
	is_built "$kernel" || placement_part "$kernel"
}

# Hosts in network namespaces, a cable between them, and WireGuard through it.
cable_part() { # KERNEL
	local kernel=$1
	part "cables and tunnels between hosts, Linux $kernel" vm_run "$LOGS/vm-$kernel-cable" \
		"$kernel" --timeout 400 --kmod veth --kmod wireguard \
		--module "$BUILD/k$kernel/hamlyn.ko" --module-args nics=1 --file "$BUILD/k$kernel/hamlyn.ko" \
		--file "$(command -v ip)" --file "$(command -v wg)" --file "$BUILD/hamlynctl" \
		--file "$BUILD/echo" --file "$BUILD/hamlyn-run" --file "$BUILD/am/exactly_once" \
		--file "$BUILD/languages" --file "$BUILD/python:/host/python" \
		--file "$BUILD/libhamlyn.so" --file selftests/bindings/languages/languages.py \
		--script selftests/kernel/cable-test.sh
	is_short || part "ten thousand reconnections, Linux $kernel" \
		vm_run "$LOGS/vm-$kernel-reconnect" "$kernel" --timeout 3600 \
		--module "$BUILD/k$kernel/hamlyn.ko" --file "$BUILD/selftests/hosts" \
		--file selftests/run-tests.sh --append HAMLYN_TEST_RECONNECTS=10000 \
		--cmd "sh ./run-tests.sh --timeout 3600 --device /dev/hamlyn0 hosts"
	is_short || part "four hosts, each to each, for ten minutes, Linux $kernel" \
		vm_run "$LOGS/vm-$kernel-all-to-all" "$kernel" --timeout 3600 \
		--module "$BUILD/k$kernel/hamlyn.ko" --file "$BUILD/selftests/all_to_all" \
		--file selftests/run-tests.sh --append HAMLYN_TEST_SECONDS=600 \
		--cmd "sh ./run-tests.sh --timeout 3600 --device /dev/hamlyn0 all_to_all"
}

placement_part() { # KERNEL
	local kernel=$1
	part "places of engines, Linux $kernel" vm_run "$LOGS/vm-$kernel-placement" "$kernel" \
		--smp 4 --nodes 2 --timeout 200 --module "$BUILD/k$kernel/hamlyn.ko" \
		--file "$BUILD/k$kernel/hamlyn.ko" --file "$BUILD/hamlyn-perf" \
		--script selftests/kernel/placement-test.sh
}

disk_part() { # KERNEL
	local kernel=$1 disk=$LOGS/vm-$1-disk.img
	rm -f "$disk"
	mkfs.ext4 -q "$disk" 4M
	part "files on a disk, Linux $kernel" vm_run "$LOGS/vm-$kernel-disk" "$kernel" --timeout 100 \
		--kmod loop --module "$BUILD/k$kernel/hamlyn.ko" --file "$disk:/host/disk.img" \
		--file "$BUILD/selftests/on_disk" --file selftests/run-tests.sh \
		--cmd "mkdir /mnt && mount -t ext4 -o loop disk.img /mnt && HAMLYN_TEST_DISK=/mnt sh ./run-tests.sh --device /dev/hamlyn0 on_disk; umount /mnt"
}

tracing_part() { # KERNEL
	local kernel=$1 files=() file brief=()
	for file in "$BUILD"/{hello,receive_file,guess_keys,hamlynctl,hamlyn-cat} \
		"$BUILD"/selftests/{lifecycle,nq,poll_wait,limits,hostile_watch,hostile_ticket,hosts} \
		Documentation/tracing.rst "$(command -v perf)" "$(command -v trace-cmd)"; do
		[ -z "$file" ] || files+=(--file "$file")
	done
	! is_short || brief=(--append HAMLYN_TEST_BRIEF=1)
	part "tracepoints, Linux $kernel" vm_run "$LOGS/vm-$kernel-tracing" "$kernel" \
		--timeout 400 "${brief[@]}" --module "$BUILD/k$kernel/hamlyn.ko" \
		--module-args max_slots=4096 "${files[@]}" --script selftests/kernel/tracing-test.sh
}

# Processes die in traffic, and the module is unloaded behind them: as a part of others a
# small storm of each kind.
storm_part() { # KERNEL [PROCESSES,STORMS [SECONDS]]
	local kernel=$1 storm=200,2 figures="" timeout=${3:-400}
	if is_built "$kernel"; then
		storm=64,1
		figures=HAMLYN_TEST_SCALE=4
	fi
	storm=${2:-$storm}
	part "kill storms, Linux $kernel" vm_run "$LOGS/vm-$kernel-storm" "$kernel" --timeout "$timeout" \
		--module "$BUILD/k$kernel/hamlyn.ko" --file "$BUILD/k$kernel/hamlyn.ko" \
		--file "$BUILD/selftests/storm" --append "hamlyn.storm=$storm $figures" \
		--script selftests/kernel/storm-guest.sh
}

# Is anything left of objects? The detectors of the debug kernel tell.
leak_part() { # KERNEL
	local kernel=$1
	part "what is left of objects, Linux $kernel" \
		vm_run "$LOGS/vm-$kernel-leak" "$kernel" --timeout 600 \
		--module "$BUILD/k$kernel/hamlyn.ko" --file "$BUILD/k$kernel/hamlyn.ko" \
		--file "$BUILD/selftests/leak" --file "$BUILD/hamlynctl" --mem 1024 \
		--file selftests/kernel/leak-lib.sh:/vm/leak-lib.sh \
		--append "kmemleak=on page_owner=on hamlyn.leak=3 HAMLYN_TEST_SCALE=4" \
		--script selftests/kernel/leak-guest.sh
}

# Each allocation fails once, or all from one on, also while the module is loaded; then
# random calls. Each of the first two takes minutes.
faults_part() { # KERNEL
	local kernel=$1
	part "faults and random calls, Linux $kernel" \
		vm_run "$LOGS/vm-$kernel-faults" "$kernel" --smp 2 --timeout 3600 \
		--module "$BUILD/k$kernel/hamlyn.ko" --file "$BUILD/k$kernel/hamlyn.ko" \
		--module-args "engine=poll engines=2 nics=2 max_slots=4096" \
		--file "$BUILD/selftests/fail_nth" --file "$BUILD/selftests/fuzz_calls" \
		--append "HAMLYN_TEST_SCALE=4 HAMLYN_FUZZ_SECONDS=${HAMLYN_FUZZ_SECONDS:-300}" \
		--script selftests/kernel/debug-guest.sh
	part "a million frames of a host that lies, Linux $kernel" \
		vm_run "$LOGS/vm-$kernel-frames" "$kernel" --timeout 3600 \
		--module "$BUILD/k$kernel/hamlyn.ko" --module-args "engine=poll nics=1 max_slots=4096" \
		--file "$BUILD/k$kernel/hamlyn.ko" --file "$BUILD/selftests/hostile_frames" \
		--file selftests/run-tests.sh --script selftests/kernel/guest.sh \
		--file selftests/kernel/leak-lib.sh:/vm/leak-lib.sh \
		--append "kmemleak=on HAMLYN_TEST_SCALE=4 HAMLYN_TEST_FRAMES=1000000 hamlyn.tests=hostile_frames"
}

# A watch for one access in 100, where others have one in 1000: it stops who has it for a while.
races_part() { # KERNEL
	local kernel=$1 files=() test
	for test in $RACE_TESTS; do
		files+=(--file "$BUILD/selftests/$test")
	done
	part "races, watched closely, Linux $kernel" \
		vm_run "$LOGS/vm-$kernel-races" "$kernel" --timeout 900 \
		--module "$BUILD/k$kernel/hamlyn.ko" --module-args "engine=poll engines=2 nics=2 guesses=0" \
		--file "$BUILD/k$kernel/hamlyn.ko" "${files[@]}" \
		--file selftests/run-tests.sh --script selftests/kernel/guest.sh \
		--append "kcsan.skip_watch=100 HAMLYN_TEST_SCALE=4 hamlyn.tests=${RACE_TESTS// /,}"
}

# What over_tcp runs, wherever else that runs
over_tcp_programs() {
	sed -n 's/^\t{ "\([a-z_]*\)".*/\1/p' selftests/kernel/fabric/over_tcp.c | sort -u
}

vm_part() { # KERNEL MODULE-ARGS PROCESSORS [FILE]...
	local kernel=$1 args=$2 smp=$3 base=() files=() tests test more="" timeout=900 word
	tests="$(names TESTS_BOTH) $(names TESTS_KERNEL)"
	for word in "${@:4}"; do
		files+=(--file "$word")
	done
	if is_short; then
		word=${args%% *}
		word=${word#engine=}
		! is_built "$kernel" || word=debug
		tests=$(brief_tests "$word")
	fi
	if is_built "$kernel"; then
		more=" HAMLYN_TEST_SCALE=4"
		timeout=3600
	fi
	! is_short || more+=" HAMLYN_TEST_BRIEF=1"
	for test in $tests; do
		base+=("${test##*/}")
		files+=(--file "${test%%:*}")
	done
	[[ " ${base[*]} " != *" over_tcp"[\ :]* ]] || for test in $(over_tcp_programs); do
		[[ " ${base[*]} " == *" $test"[\ :]* ]] || files+=(--file "$BUILD/selftests/$test")
	done
	part "selftests on the kernel device, Linux $kernel, $args" \
		vm_run "$LOGS/vm-$kernel-${args%% *}" "$kernel" --smp "$smp" --timeout "$timeout" \
		--module "$BUILD/k$kernel/hamlyn.ko" --module-args "$args" \
		--file "$BUILD/k$kernel/hamlyn.ko" "${files[@]}" \
		--file selftests/run-tests.sh --script selftests/kernel/guest.sh \
		--append "hamlyn.tests=$(IFS=,; echo "${base[*]}")$more"
}

# ---- lanes ----

# Most of what runs waits for something most of the time, the native part three times as long as it
# computes: four at a time keep two processors busy. Each is a run of this script, with its own count;
# what it says comes at once, behind its name.
LANES=${HAMLYN_LANES:-4}
[[ $LANES =~ ^[1-9][0-9]?$ ]] || die "HAMLYN_LANES is \"$LANES\"; allowed: 1 to 99"
# Guests have two processors each: with more of them their clocks run away from what they do.
MOST_GUESTS=$((LANES > 3 ? LANES - 1 : LANES))
declare -A lane_name=() lane_begun=()
lanes_in=()

guests() { # how many lanes have a KERNEL
	local name count=0
	for name in "${lane_name[@]}"; do
		[[ $name != *" "* ]] || count=$((count + 1))
	done
	echo "$count"
}

lane() { # PART [KERNEL]
	local name=$*
	while [ "${#lane_name[@]}" -ge "$LANES" ] || { [ $# = 2 ] && [ "$(guests)" -ge $MOST_GUESTS ]; }; do
		lane_done
	done
	set -m			# a process group each, to be stopped as one
	{
		# Three machines of two processors each may be on two processors.
		BUILD=$BUILD HAMLYN_TIMEOUT_SCALE=${HAMLYN_TIMEOUT_SCALE:-3} \
			HAMLYN_TEST_SCALE=${HAMLYN_TEST_SCALE:-2} HAMLYN_MINUTES=$MINUTES \
			"${lanes_in[@]}" selftests/check.sh part "$@" 2>&1 </dev/null |
			tee "$LOGS/lane-${name// /-}" |
			sed -u "/^[0-9]* passed, [0-9]* failed/s/^/# /; /^\$/d; s/^/$name: /"
	} &
	set +m
	lane_name[$!]=$name
	lane_begun[$!]=$SECONDS
}

lane_done() {
	local pid name log before=$((passed + failed))
	wait -n -p pid "${!lane_name[@]}" || true
	name=${lane_name[$pid]}
	unset "lane_name[$pid]"
	note "$name ended after $((SECONDS - lane_begun[$pid])) s"
	log=$LOGS/lane-${name// /-}
	if add_total "$(tail -n 1 "$log")" && [ $((passed + failed)) != "$before" ]; then
		failures+=$(sed -n '/^# ---- what failed/,$ { /^# ----/d; /^# /!d; s/^# //p }' "$log" |
			sed "s/^[^ ]/$name: &/")$'\n'
	else
		failed=$((failed + 1))
		failure "$name" "ended without a result line"
	fi
}

lanes_end() {
	while [ "${#lane_name[@]}" != 0 ]; do
		lane_done
	done
}

# Of this run's lanes
slowest() {
	printf '\n# ---- the ten slowest programs, in seconds\n'
	grep -HoE '^# [a-z0-9_]+ took [0-9]+ s' "$LOGS"/lane-* |
		sed -E 's|.*/lane-([^:]*):# ([a-z0-9_]+) took ([0-9]+) s|\3 \2 (\1)|' |
		sort -rn | sed -n '1,10s/^/# /p' || true # nothing has told its time
}

lanes_kill() {
	local pid
	trap - INT TERM EXIT
	for pid in "${!lane_name[@]}" "${kernel_pid[@]}"; do
		kill -- "-$pid" 2>/dev/null || true
	done
	exit "${1:-1}"
}

# ---- kernels from source ----

declare -A kernel_pid=()

kernel_begin() { # KERNEL
	set -m
	selftests/setup.sh kernel "$1" >"$LOGS/kernel-$1" 2>&1 </dev/null &
	set +m
	kernel_pid[$1]=$!
}

# Is it there? Time that is over is no failure, but nothing has passed either.
kernel_await() { # KERNEL
	local kernel=$1 pid=${kernel_pid[$1]} told=$SECONDS until=$((SECONDS + BUILD_MINUTES * 60))
	[ "$MINUTES" = 0 ] || until=$(((MINUTES - SLOW_TAKES) * 60))
	while kill -0 "$pid" 2>/dev/null; do
		if [ $SECONDS -ge "$until" ]; then
			kill -- "-$pid" 2>/dev/null || true
			unset "kernel_pid[$kernel]"
			skip "selftests on the kernel device, Linux $kernel" \
				"not built in time; selftests/setup.sh kernel $kernel goes on with it"
			return 1
		fi
		if [ $((SECONDS - told)) -ge 60 ]; then
			note "kernel $kernel: $(tail -n 1 "$LOGS/kernel-$kernel")"
			told=$SECONDS
		fi
		sleep 2
	done
	unset "kernel_pid[$kernel]"
	wait "$pid" && return 0
	bad "kernel $kernel builds" "$(excerpt "$LOGS/kernel-$kernel")"
	failure "kernel $kernel builds" "see above"
	return 1
}

# From source, and not in a package
is_built() { # KERNEL
	[ "$1" = debug ] || [ "$1" = kcsan ]
}

# Minutes are counted: "make check", and not check-all.
is_short() {
	[ "$MINUTES" != 0 ] || [ "${HAMLYN_MINUTES:-0}" != 0 ]
}

# Where minutes are counted the first kernel has the polling engines and all that one kernel is enough
# for, the others the inline one. These take longest, so they begin first.
long_lanes() { # KERNEL...
	local kernel
	for kernel in "$@"; do
		if is_built "$kernel" || [ "$kernel" = "$1" ]; then lane poll "$kernel"; else lane inline "$kernel"; fi
	done
	[ $# != 1 ] || is_built "$1" || lane inline "$1"
}

# What takes long first, and guests beside what needs none
short_lanes() { # KERNEL...
	local part with
	long_lanes "$@"
	lane native
	lane languages
	built_lanes
	for part in tools/admin tempest/am static/preempt; do
		with=${part#*/}
		lane "${part%/*}"
		[ $# = 0 ] || lane "$with" "$1"
	done
	[ $# = 0 ] || lane storm "$1"
}

# One that was there already is found so in seconds.
kernel_is_there() { # KERNEL
	local tries
	for ((tries = 0; tries < 10; tries++)); do
		kill -0 "${kernel_pid[$1]}" 2>/dev/null || return 0
		sleep 0.5
	done
	return 1
}

# Their tests take long, too, so not behind all others
built_lanes() {
	local kernel
	for kernel in "${!kernel_pid[@]}"; do
		if kernel_is_there "$kernel" && kernel_await "$kernel"; then
			built_lanes_of "$kernel"
		fi
	done
}

built_lanes_of() { # KERNEL
	build_vm "$1"
	if is_short; then long_lanes "$1"; else vm_lanes "$1"; fi
}

# Storms and leaks are about what every kernel does alike: one of several is enough.
vm_lanes() { # KERNEL [KERNEL-FOR-STORMS]
	local part parts="poll inline am admin preempt"
	case $1 in
	*-rt) parts=preempt ;;
	debug) parts="faults leak storm poll inline" ;;
	kcsan) parts="races poll inline am storm" ;;
	6.12) parts="poll inline am admin" ;;
	"${2:-$1}") parts+=" storm" ;;
	esac
	for part in $parts; do
		lane "$part" "$1"
	done
}

native_lanes() {
	lane native
	lane languages
	lane tools
	lane tempest
}

check_all() { # KERNEL...
	local kernel plain=()
	setup_static
	build_native
	for kernel in "$@"; do
		if is_built "$kernel"; then
			kernel_begin "$kernel"
		elif module_may_be_built "$kernel"; then
			build_vm "$kernel"
			plain+=("$kernel")
		fi
	done
	if is_short; then
		short_lanes "${plain[@]}"
	else
		native_lanes
		lane static
		for kernel in "${plain[@]}"; do
			vm_lanes "$kernel" "$1"
		done
	fi
	lane search
	is_short || lane package
	for kernel in "$@"; do
		if [ -n "${kernel_pid[$kernel]:-}" ] && kernel_await "$kernel"; then
			built_lanes_of "$kernel"
		fi
	done
	lanes_end
	slowest
}

# all [--minutes N] KERNEL...
all() {
	if [ "${1:-}" = --minutes ]; then
		number --minutes "${2:-}"
		[ "$2" -gt "$SLOW_TAKES" ] || die "--minutes takes more than $SLOW_TAKES"
		MINUTES=$2
		shift 2
	fi
	[ $# != 0 ] || die "all takes at least one kernel; see --help"
	check_all "$@"
}

run_part() { # PART [KERNEL]
	case $1${2+ KERNEL} in
	native | tools | languages | tempest | static | search | package) "$1_parts" ;;
	"poll KERNEL" | "inline KERNEL" | "am KERNEL" | "preempt KERNEL" | "admin KERNEL" | \
		"storm KERNEL" | "leak KERNEL" | "races KERNEL" | "faults KERNEL")
		"$1_part" "$2"
		;;
	*) usage >&2; exit 2 ;;
	esac
}

main() {
	case ${1:-} in
	native | static | asan | tsan | plain) [ $# = 1 ] || { usage >&2; exit 2; } ;;
	vm | storm) [ $# = 2 ] || { usage >&2; exit 2; } ;;
	part) [ $# = 2 ] || [ $# = 3 ] || { usage >&2; exit 2; } ;;
	all) ;;
	places) places; exit ;;
	-h | --help) usage; exit 0 ;;
	*) usage >&2; exit 2 ;;
	esac
	case $1 in
	asan | tsan)
		BUILD=$BUILD/$1
		LOGS=$BUILD/logs
		MAKE_QUIET+=("BUILD=$BUILD")
		;;
	esac
	mkdir -p "$LOGS"
	[ "$1" = part ] || rm -f "$LOGS"/lane-*
	trap lanes_kill INT TERM
	trap 'lanes_kill "$?"' EXIT # a build that fails ends it with lanes under way
	case $1 in
	native)
		build_native
		native_lanes
		lane search
		lanes_end
		;;
	static)
		setup_static
		static_parts
		;;
	plain)
		setup_static
		build_native
		one "what refuses namespaces builds" "${MAKE_QUIET[@]}" "$BUILD/plain"
		lanes_in=("$BUILD/plain")
		native_lanes
		lane static
		lanes_end
		;;
	vm)
		selftests/setup.sh kernel "$2"
		if module_may_be_built "$2"; then
			build_vm "$2"
			vm_lanes "$2"
			lanes_end
		fi
		;;
	storm)
		build_vm "$2"
		storm_part "$2" "${HAMLYN_STORM:-1000,10}" 7200
		;;
	asan) check_sanitized "-fsanitize=address,undefined -fno-sanitize-recover=all" ;;
	tsan) check_sanitized -fsanitize=thread ;;
	part)
		shift
		run_part "$@"
		;;
	all)
		shift
		all "$@"
		;;
	esac
	finish
}

main "$@"
