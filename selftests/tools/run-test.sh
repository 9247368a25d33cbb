#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# hamlyn-run, and how Active Message programs start under it, under other
# launchers (Slurm: slurm-test.sh) and alone. Nothing waits for a time to pass;
# bounds are generous.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2
ME=run-test.sh
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. selftests/lib/lib.sh

usage() {
	echo "Usage: selftests/tools/run-test.sh [BUILD-FOLDER]  (default: build)"
}

only_help "$@"

BUILD=$(realpath "${1:-build}") || exit 2
RUN=$BUILD/hamlyn-run
PEER=$BUILD/boot_peer
HERE=tools/hamlyn-run

for program in "$RUN" "$PEER"; do
	[ -x "$program" ] || die "$program is missing; run: make"
done
# Launched ourselves, we would not be alone; and the device is nobody's here
unset PMI_FD PMI_PORT PMI_RANK PMI_SIZE PMI_ID PMIX_NAMESPACE PMIX_RANK HAMLYN_DEVICE
# Open MPI's launcher refuses root otherwise
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# Seconds for one command
SCALE=${HAMLYN_TEST_SCALE:-1}
LIMIT=$((100 * SCALE))
# A duration that no other process has
nap=100000.$$
launcher=

work_folder run-test

# Also when it is interrupted: what sleeps would stay for a day.
clean_up() {
	stop_launcher
	no_sleeper "$nap" 2>/dev/null
	rm -rf "$work"
}
trap clean_up EXIT

bounded() { # COMMAND...: in $work/out and $work/err
	timeout -k 5 "$LIMIT" "$@" >"$work/out" 2>"$work/err" </dev/null
}

run() { # ARGUMENT...
	bounded "$RUN" "$@"
}

# ends STATUS PATTERN ARGUMENT...: it exits so and says why
ends() {
	local want=$1 pattern=$2 status=0
	shift 2
	run "$@" || status=$?
	[ "$status" = "$want" ] && grep -qE -e "$pattern" "$work/err" && return 0
	echo "status $status, not $want, or does not say \"$pattern\"" >>"$work/err"
	return 1
}

refuses() { # PATTERN ARGUMENT...: a wrong command line
	local pattern=$1
	shift
	ends 2 "^hamlyn-run: .*$pattern" "$@" && [ ! -s "$work/out" ] &&
		grep -q -e "--help" "$work/err"
}

says() { # TEXT: all that was printed
	[ "$(cat "$work/out")" = "$1" ]
}

# ---- programs that find each other ----

# all_there N WAY: each process has printed its line, and all are of one job
all_there() {
	awk -v n="$1" -v way="$2" '
		$1 != "rank" || $4 != n || $6 != way || seen[$2]++ || $2 >= n { bad = 1; exit }
		NR > 1 && $8 != job { bad = 1; exit }
		{ job = $8 }
		END { exit bad || NR != n || job == "" }' "$work/out"
}

starts() { # N WAY COMMAND...
	local n=$1 way=$2
	shift 2
	bounded "$@" && all_there "$n" "$way"
}

jobs_differ() { # COMMAND...
	local first
	bounded "$@" && first=$(awk '{ print $8; exit }' "$work/out") && bounded "$@" &&
		[ -n "$first" ] && [ "$first" != "$(awk '{ print $8; exit }' "$work/out")" ]
}

HYDRA=$(command -v mpiexec.hydra || command -v mpirun.mpich || true)
OPENMPI=$(command -v mpirun.openmpi || true)

peers() {
	local n
	check "alone" starts 1 alone "$PEER"
	check "alone: texts that cannot be published" starts 1 alone "$PEER" bad
	check "alone: texts that are missing" starts 1 alone "$PEER" missing
	check "alone: each run has its own job" jobs_differ "$PEER"
	for n in 1 2 16 64; do
		check "hamlyn-run, $n processes" starts "$n" PMI-1 "$RUN" -n "$n" "$PEER"
	done
	check "hamlyn-run: texts that cannot be published" starts 2 PMI-1 "$RUN" -n 2 "$PEER" bad
	check "hamlyn-run: texts that are missing" starts 2 PMI-1 "$RUN" -n 2 "$PEER" missing
	check "hamlyn-run: each run has its own job" jobs_differ "$RUN" -n 1 "$PEER"
	check "hamlyn-run under another launcher" starts 2 PMI-1 env PMIX_NAMESPACE=other \
		PMI_PORT=nowhere:1 "$RUN" -n 2 "$PEER"
}

hydra() {
	local n name
	for name in "2 processes" "16 processes" "over TCP" "texts" "a process that gives up"; do
		[ -n "$HYDRA" ] || skip "Hydra: $name" "MPICH's mpiexec.hydra is not installed"
	done
	[ -n "$HYDRA" ] || return 0
	for n in 2 16; do
		check "Hydra: $n processes" starts "$n" PMI-1 "$HYDRA" -n "$n" "$PEER"
	done
	check "Hydra: over TCP" starts 3 PMI-1 "$HYDRA" -pmi-port -n 3 "$PEER"
	check "Hydra: texts" starts 2 PMI-1 "$HYDRA" -n 2 "$PEER" missing
	check "Hydra: a process that gives up" gives_up "$HYDRA" -n 3 "$PEER" fail 1
}

openmpi() {
	local n name
	if [ -z "$OPENMPI" ] || ! has_pmix; then
		for name in "2 processes" "16 processes" "texts" "texts that cannot be published" \
			"a process that gives up"; do
			skip "PMIx: $name" "no mpirun of Open MPI, or built without libpmix-dev"
		done
		return 0
	fi
	for n in 2 16; do
		check "PMIx: $n processes" starts "$n" PMIx "$OPENMPI" --oversubscribe -n "$n" \
			"$PEER"
	done
	check "PMIx: texts" starts 2 PMIx "$OPENMPI" --oversubscribe -n 2 "$PEER" missing
	check "PMIx: texts that cannot be published" starts 2 PMIx "$OPENMPI" --oversubscribe -n 2 \
		"$PEER" bad
	check "PMIx: a process that gives up" gives_up "$OPENMPI" --oversubscribe -n 3 \
		"$PEER" fail 1
}

# Was it built with PMIx? Else it says so when it looks as if PMIx had started it
has_pmix() {
	[[ $(PMIX_NAMESPACE=none "$PEER" 2>&1) != *"was built without it"* ]]
}

gives_up() { # COMMAND...: all of it ends, and not well
	local status=139
	# Open MPI's mpirun itself crashes now and then when it ends a job.
	for _ in 1 2 3; do
		[ "$status" = 139 ] || break
		status=0
		bounded "$@" 2>/dev/null || status=$?
	done
	[ "$status" != 0 ] && [ "$status" -lt 124 ] && ! grep -q "^rank" "$work/out" &&
		grep -q "I have failed" "$work/out" "$work/err"
}

no_pmix() { # what looks like PMIx and is not is an error, not a program of one process
	local status=0
	bounded env PMIX_NAMESPACE=none "$PEER" || status=$?
	[ "$status" = 1 ] && grep -q "PMIx" "$work/err" && [ ! -s "$work/out" ]
}

# ---- launchers that are none ----

# What a launcher says, line after line; the client must say why it does not go on
cat >"$work/launcher.py" <<'EOT'
import os, socket, subprocess, sys

INIT = b"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"
MAXES = b"cmd=maxes kvsname_max=64 keylen_max=64 vallen_max=1024\n"
NAME = b"cmd=my_kvsname kvsname=store\n"
PUT = b"cmd=put_result rc=0 msg=success\n"
OUT = b"cmd=barrier_out\n"
GOOD = [INIT, MAXES, NAME, PUT, OUT]
peer = sys.argv[1]
limit = 60 * int(os.environ.get("HAMLYN_TEST_SCALE") or 1)

def run(answers, env, drip):
    ours, theirs = socket.socketpair()
    env = dict(os.environ, PMI_FD=str(theirs.fileno()), PMI_RANK="0", PMI_SIZE="1", **env)
    child = subprocess.Popen([peer], env=env, pass_fds=[theirs.fileno()], text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    theirs.close()
    ours.settimeout(limit)
    requests = ours.makefile("rb")
    try:
        for answer in answers:
            if not requests.readline():
                break
            for piece in ([bytes([c]) for c in answer] if drip else [answer]):
                ours.sendall(piece)
    except (BrokenPipeError, ConnectionResetError):
        pass
    # Those that ask on are answered nothing any more
    ours.shutdown(socket.SHUT_WR)
    out, err = child.communicate(timeout=limit)
    return child.returncode, err

def fails(what, answers, text, env={}, drip=False):
    status, err = run(answers, env, drip)
    assert status == 1 and text in err, (what, status, err)

for n in range(len(GOOD)):
    fails("gone after %d" % n, GOOD[:n], "the launcher is gone")
    fails("another answer to %d" % n, GOOD[:n] + [b"cmd=other rc=0\n"], "the launcher should say")
    fails("nothing in answer to %d" % n, GOOD[:n] + [b"\n"], "the launcher should say")
    fails("a long line to %d" % n, GOOD[:n] + [b"a" * 100000], "a line of more than 2047 bytes")
    fails("a long line with an end to %d" % n, GOOD[:n] + [b"a" * 2048 + b"\n"], "a line of more")
    fails("no text to %d" % n, GOOD[:n] + [b"cmd=\0\xff\n"], "what is no text")
    fails("half a line to %d" % n, GOOD[:n] + [GOOD[n][:-1]], "the launcher is gone")
fails("drops", GOOD + [b"cmd=get_result rc=0 value=x\n"], 'got "x"', drip=True)
fails("refused", [INIT.replace(b"rc=0", b"rc=-1")], "refuses PMI 1.1")
fails("odd code", [INIT.replace(b"rc=0", b"rc=no")], "refuses PMI 1.1")
fails("no maxes", [INIT, b"cmd=maxes\n"], "keylen_max and vallen_max")
fails("odd maxes", [INIT, MAXES.replace(b"64", b"99999999999999999999")], "keylen_max")
fails("small keys", [INIT, MAXES.replace(b"keylen_max=64", b"keylen_max=9"), NAME],
      "keys of at most 8 bytes")
fails("small values", [INIT, MAXES.replace(b"1024", b"100"), NAME], "values of at most 99 bytes")
fails("no name", [INIT, MAXES, b"cmd=my_kvsname\n"], "kvsname")
fails("empty name", [INIT, MAXES, b"cmd=my_kvsname kvsname=\n"], "kvsname")
fails("long name", [INIT, MAXES, b"cmd=my_kvsname kvsname=" + b"n" * 256 + b"\n"],
      "more than 255 bytes")
fails("put refused", GOOD[:3] + [b"cmd=put_result rc=-1 msg=why\n"], "msg=why")
fails("bad fence", GOOD[:4] + [b"cmd=barrier_out rc=-1\n"], "barrier_out")
fails("no value", GOOD + [b"cmd=get_result rc=0\n"], "a value")
fails("long value", GOOD + [b"cmd=get_result rc=0 value=" + b"v" * 512 + b"\n"], "a value")
fails("not found", GOOD + [b"cmd=get_result rc=-1 value=x\n"], "has not published")
for name, values in (("PMI_FD", ("", "x", "-1", "99999999999")), ("PMI_RANK", ("", "1", "-1")),
                     ("PMI_SIZE", ("0", "x", "2147483648"))):
    for value in values:
        env = dict(os.environ, PMI_FD="0", PMI_RANK="0", PMI_SIZE="1")
        env[name] = value
        done = subprocess.run([peer], env=env, capture_output=True, text=True, timeout=limit)
        assert done.returncode == 1 and name in done.stderr, (name, value, done)
EOT

bad_launchers() { # it starts dozens of them, one by one
	local LIMIT=$((5 * LIMIT))
	bounded python3 "$work/launcher.py" "$PEER"
}

not_a_socket() { # a descriptor that a program in between has closed, or that is a file
	local status=0
	PMI_FD=0 PMI_RANK=0 PMI_SIZE=1 bounded "$PEER" || status=$?
	[ "$status" = 1 ] && grep -q "PMI_FD=0 is no open socket" "$work/err" || return 1
	status=0
	PMI_FD=99 PMI_RANK=0 PMI_SIZE=1 bounded "$PEER" || status=$?
	[ "$status" = 1 ] && grep -q "PMI_FD=99 is no open socket" "$work/err"
}

bad_port() { # PATTERN PORT
	local status=0
	PMI_PORT=$2 PMI_ID=0 bounded "$PEER" || status=$?
	[ "$status" = 1 ] && grep -q "$1" "$work/err"
}

# ---- processes that fail ----

# Processes that say to hamlyn-run what no library does
cat >"$work/client.py" <<'EOT'
import os, signal, socket, sys, time

rank = int(os.environ["PMI_RANK"])
launcher = socket.socket(fileno=int(os.environ["PMI_FD"]))
answers = launcher.makefile("rb")

def say(text):
    launcher.sendall(text + b"\n")

def hear(text):
    line = answers.readline()
    assert line == text + b"\n", line

def room():
    """How many answers there is room for."""
    ours, theirs = socket.socketpair()
    n = 0
    try:
        while True:
            ours.send(b"cmd=appnum appnum=0\n", socket.MSG_DONTWAIT)
            n += 1
    except BlockingIOError:
        theirs.close()
        return n

def join():
    say(b"cmd=init pmi_version=1 pmi_subversion=1")
    if sys.argv[1] != "deaf" or rank:
        hear(b"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0")

def leave(*_):
    say(b"cmd=finalize")
    os._exit(0)

def ask(text):
    say(text)
    return dict(field.split(b"=", 1) for field in answers.readline().split())

def store():
    return b" kvsname=" + ask(b"cmd=get_my_kvsname")[b"kvsname"] + b" key=pid"

def await_the_end_of_zero():
    """It has ended, and hamlyn-run has noticed."""
    value = b"unknown"
    while value == b"unknown":
        value = ask(b"cmd=get" + store())[b"value"]
    try:
        while True:
            os.kill(int(value), 0)
            time.sleep(0.01)
    except ProcessLookupError:
        pass

def see_the_end_of_zero():
    await_the_end_of_zero()
    wait_in_vain()

def fail_first():
    ask(b"cmd=put" + store() + b" value=%d" % os.getpid())
    os._exit(3)

def fail_too():
    await_the_end_of_zero()
    say(sys.argv[2].encode())
    while True:
        signal.pause()

def wait_in_vain():
    """For process 0, which has ended or soon will."""
    say(b"cmd=barrier_in")
    hear(b"cmd=barrier_out rc=-1")
    print("goes on", flush=True)
    leave()

def die_waiting():
    ask(b"cmd=put" + store() + b" value=%d" % os.getpid())
    say(b"cmd=barrier_in")
    os.kill(os.getpid(), signal.SIGKILL)

def be_deaf():
    """The answers just fit, that of the barrier does not."""
    for _ in range(room() - 1):
        say(b"cmd=get_appnum")
    say(b"cmd=barrier_in")
    signal.pause()

def leave_when_asked():
    signal.signal(signal.SIGTERM, leave)
    say(b"cmd=barrier_in")
    while True:
        signal.pause()

join()
{
    "deaf": (be_deaf, leave_when_asked),
    "dies": (die_waiting, see_the_end_of_zero),
    "fails": (fail_first, fail_too),
    "leaves": (leave, wait_in_vain),
}[sys.argv[1]][rank]()
EOT

deaf_and_waited_for() { # [WORD...]: before the command
	local status=0
	bounded "$@" "$RUN" -n 2 python3 "$work/client.py" deaf || status=$?
	[ "$status" = 1 ] && grep -q "process 0 .*does not read the answers" "$work/err"
}

# That it crashes then would be luck: valgrind sees more
deaf_and_watched() {
	local name="and valgrind sees nothing wrong in that"
	if valgrind -q "$RUN" --version >/dev/null 2>&1; then
		check "$name" deaf_and_waited_for valgrind -q --error-exitcode=99
	else
		skip "$name" "valgrind is not installed, or does not take this build"
	fi
}

goes_on() { # STATUS PATTERN HOW: without process 0
	ends "$1" "$2" --keep-going -n 2 python3 "$work/client.py" "$3" && says "goes on"
}

says_so_all_the_same() { # a process that ends without a word, and others that are left alone
	ends 1 "process 0 .* ended without taking leave of the others$" --keep-going -n 1 \
		"$PEER" leave
}

fails_first() { # STATUS PATTERN WORD OPTION...: process 0, with 3, and then 1, which says WORD
	local status=$1 pattern=$2 word=$3
	shift 3
	ends "$status" "$pattern" --keep-going "$@" -n 2 python3 "$work/client.py" fails "$word" &&
		grep -q "process 0 .* exited with status 3" "$work/err"
}

# takes_late yes|no SECONDS ARGUMENT...: who reads comes when --timeout is over, and all
# processes have ended in time; or does not come at all, which is a failure
takes_late() {
	local status=0 want=1 i came=$1 seconds=$2
	shift 2
	[ "$came" = no ] || want=0
	stop_launcher
	mkfifo "$work/late" || return 1
	exec 5<>"$work/late"
	"$RUN" --timeout $((seconds * SCALE)) --tag-output "$@" >"$work/late" 2>"$work/err" 5>&- \
		</dev/null &
	launcher=$!
	for ((i = 0; i < 10 * LIMIT; i++)); do
		! grep -qE "bytes of theirs wait|took more" "$work/err" || break
		sleep 0.1
	done
	: >"$work/out"
	if [ "$came" = yes ]; then
		timeout "$LIMIT" head -n 60000 <&5 | sed 's/^\[0\] //' >"$work/out"
	fi
	await_launcher || status=$?
	exec 5>&-
	rm "$work/late"
	[ "$status" = "$want" ] || echo "status $status, not $want" >>"$work/err"
	[ "$status" = "$want" ]
}

taken_late() {
	takes_late yes 1 -n 1 seq 60000 && seq 60000 | cmp - "$work/out" >>"$work/err" 2>&1 &&
		! grep -q "are lost" "$work/err" && return 0
	: >"$work/out"
	return 1
}

# tells BYTES TEXT: of so many at least
tells() {
	awk -v least="$1" -v text="$2" '
		index($0, text) { for (i = 1; i < NF; i++) if ($(i + 1) == "bytes") n = $i }
		END { exit n + 0 < least }' "$work/err" && return 0
	echo "does not tell of $1 bytes that $2" >>"$work/err"
	return 1
}

never_taken() { # neither what has been read, a megabyte, nor what the pipes hold
	takes_late no 4 -n 32 head -c 65536 /dev/zero &&
		tells $((31 * 65536)) "wait for who takes them" &&
		tells $((31 * 65536)) "are lost"
}

# Not a megabyte every two seconds, as it is read from the pipes
all_dropped_at_once() {
	local status=0 i begun
	stop_launcher
	mkfifo "$work/late" || return 1
	exec 5<>"$work/late"
	"$RUN" -v --tag-output -n 256 head -c 65536 /dev/zero >"$work/late" 2>"$work/err" 5>&- \
		</dev/null &
	launcher=$!
	for ((i = 0; i < 10 * LIMIT; i++)); do
		[ "$(grep -c "exited with status 0" "$work/err")" != 256 ] || break
		sleep 0.1
	done
	begun=$SECONDS
	kill -s TERM "$launcher"
	await_launcher || status=$?
	exec 5>&-
	rm "$work/late"
	grep -v "^hamlyn-run: process" "$work/err" >"$work/said"
	echo "status $status after $((SECONDS - begun)) s" >>"$work/said"
	mv "$work/said" "$work/err"
	[ "$status" = 143 ] && [ $((SECONDS - begun)) -lt $((10 * SCALE)) ] &&
		tells $((255 * 65536)) "are lost"
}

# nobody_takes OPTION... PROGRAM: what it and hamlyn-run write; it ends in time all the same
nobody_takes() {
	local status=0
	stop_launcher
	mkfifo "$work/full" || return 1
	exec 5<>"$work/full"
	exec 6>"$work/full"
	rm "$work/full"
	"$RUN" --timeout 2 -n 2 "$@" >&6 2>&6 5>&- 6>&- </dev/null &
	launcher=$!
	ended "$launcher" || kill -s KILL "$launcher"
	exec 5>&- 6>&-
	await_launcher || status=$?
	[ "$status" = 124 ] || echo "status $status, not 124" >>"$work/err"
	[ "$status" = 124 ]
}

signals_nobody() { # whose end it has seen: the number may be another process's
	local status=0
	bounded strace -qq -e trace=kill -o "$work/kills" "$RUN" -n 1 false || status=$?
	[ "$status" = 1 ] && [ -e "$work/kills" ] && ! grep -q "kill(" "$work/kills"
}

failures() {
	check "a process that exits with 7" ends 7 "process 1 .* exited with status 7; ending the" \
		-n 3 "$PEER" exit 1
	check "a process that is killed" ends 137 "process 2 .* was killed by signal 9" \
		-n 3 "$PEER" kill 2
	check "a process that gives up" ends 1 "process 1 gave up" -n 3 "$PEER" abort 1
	check "a process that fails may say why" ends 1 "I have failed" -n 3 "$PEER" fail 1
	check "a process that leaves without a word" ends 1 \
		"process 0 .* ended without taking leave" -n 3 "$PEER" leave
	check "a process that the others wait for in vain" ends 1 \
		"waits for all, and process 1 has ended" -n 3 "$PEER" part 1
	check "a process that never joins" ends 1 "waits for all, and process 0 has ended" -n 2 \
		sh -c "test \$PMI_RANK = 0 || exec '$PEER'"
	check "programs that know nothing of it" run -n 3 true
	# shellcheck disable=SC2016 # for the shell inside
	check "one of them fails" ends 3 "exited with status 3" -n 3 \
		sh -c 'exit $((PMI_RANK * 3 % 6))'
	check "garbage on the PMI descriptor" ends 1 'process 1 sent what is no request.*"hello' \
		-n 3 "$PEER" garbage 1
	check "no text on it" ends 1 "process 1 sent what is no request" -n 2 "$PEER" binary 1
	check "a line without an end on it" ends 1 "process 1 .*without an end" -n 2 \
		"$PEER" endless 1
	check "requests whose answers are not read" ends 1 "process 0 .*does not read the answers" \
		-n 2 "$PEER" flood
	check "the same, and others wait for it" deaf_and_waited_for
	deaf_and_watched
	check "--keep-going: a process that dies while it waits for the others" goes_on 137 \
		"process 0 .* was killed by signal 9" dies
	check "--keep-going: a process that waits for one that took leave" goes_on 1 \
		"process 1 waits for all, and process 0 has ended$" leaves
	check "--keep-going: a process that leaves without a word" says_so_all_the_same
	check "--keep-going: the first failure counts, not what is no request" fails_first 3 \
		"process 1 sent what is no request" "hello"
	check "--keep-going: nor that another gives up" fails_first 3 "process 1 gave up" \
		"cmd=abort exitcode=7"
	# Time for process 0 to begin and to end.
	check "--keep-going: but a timeout does" fails_first 124 \
		"took more than $((8 * SCALE)) s" "cmd=get_appnum" --timeout $((8 * SCALE))
	check "too many texts" ends 1 "too_many_keys_of_one_process" -n 2 "$PEER" many
	check "a process that joins twice" ends 1 "process 0 joined twice" -n 2 "$PEER" twice
	if strace -qq -o /dev/null "$RUN" --version >/dev/null 2>&1; then
		check "a process that has ended is not signalled" signals_nobody
	else
		skip "a process that has ended is not signalled" "strace does not work here, or not with this build"
	fi
	check "a timeout" ends 124 "took more than 1 s" -n 2 --timeout 1 "$PEER" hang
	check "processes that heed no SIGTERM" ends 124 "took more than 1 s" -n 2 --timeout 1 \
		sh -c 'trap "" TERM; exec sleep 1000'
	check "lines that are taken after the timeout" taken_late
	check "lines that nobody takes after it" never_taken
	check "lines of many that nobody takes after a signal" all_dropped_at_once
	check "a timeout, and nobody reads standard error" nobody_takes sh -c 'yes >&2'
	check "nor either of the two" nobody_takes --tag-output sh -c 'yes >&2 & exec yes'
	check "a program that is not there" ends 127 '"/nowhere/at-all" cannot be run: No such' \
		-n 2 /nowhere/at-all
	check "a program that is no program" ends 126 'cannot be run: Permission denied' -n 2 \
		"$work"
}

# ---- options ----

options() {
	check "no number of processes" refuses "how many processes" true
	check "no program" refuses "which program" -n 1
	check "no processes" refuses '-n takes a number from 1 to 1024, not "0"' -n 0 true
	check "too many processes" refuses "from 1 to 1024" -n 1025 true
	check "a number that is none" refuses 'not "4x"' -n 4x true
	check "a missing number" refuses "-n takes a value" -n
	check "an unknown option" refuses '"--fly"' -n 1 --fly true
	check "an unknown letter" refuses '"-x"' -n 1 --verbose -xv true
	check "a value too many" refuses "takes no value" -n 1 --tag-output=no true
	check "no device" refuses "takes /dev/hamlynN or shm:NAME" -n 1 --device "" true
	check "a timeout of nothing" refuses "--timeout takes a number from 1" -n 1 --timeout 0 true
	check "a reader that is not there" refuses "only 0 to 1" -n 2 --stdin 2 true
	check "a reader that is none" refuses "or none" -n 2 --stdin all true
	check "--version" prints "hamlyn-run [0-9u]" --version
	check "--help" prints "^usage: hamlyn-run" --help
	check "the manual and the completion have every option" is_told_everywhere
	check "the completion" completion
	check "--version that cannot be written" cannot_tell --version
	check "--help that cannot be written" cannot_tell --help
	check "options of the program are the program's" prints "^-n --fly$" -n 1 echo -n --fly
	check "--device" prints "^shm:mine$" -n 1 --device shm:mine printenv HAMLYN_DEVICE
	check "no --device" device_is_left
	check "--verbose" verbose
	check "--tag-output" tagged
	check "--tag-output: lines are whole" whole_lines
	check "--tag-output: lines are whole where both go to one place" whole_lines_of_both
	check "--tag-output: nobody reads" nobody_reads
	check "--tag-output: what is left behind writes without an end" endless_orphan
	check "--stdin" reads
	check "--same-addresses: other peculiarities stay" keeps_personality
	check "--same-addresses, where it is not allowed" refused_addresses
}

prints() { # PATTERN ARGUMENT...
	local pattern=$1
	shift
	# shellcheck disable=SC2016 # for the shell inside
	[ "$pattern" != "^-n --fly$" ] || set -- -n 1 sh -c 'printf "%s %s\n" "$@"' sh -n --fly
	run "$@" && grep -qE -e "$pattern" "$work/out"
}

# The manual and the completion know of each option
is_told_everywhere() {
	local option
	run --help || return 1
	while read -r option; do
		grep -qF -e "${option//-/\\-}" "$HERE/hamlyn-run.1" &&
			grep -qE -e "$option( |\"|\)|$)" "$HERE/hamlyn-run.bash-completion" && continue
		echo "$option" >>"$work/err"
		return 1
	done < <(grep -oE -e '^ +(-[a-z], )?--[a-z-]+' "$work/out" | grep -oE -e '--.*' | sort -u)
}

# completes WANTED WORD...: what bash is offered for the last of them, as it splits them
completes() {
	local wanted=$1
	shift
	(
		# shellcheck source-path=SCRIPTDIR source=../../tools/hamlyn-run/hamlyn-run.bash-completion
		. "$HERE/hamlyn-run.bash-completion"
		COMP_WORDS=(hamlyn-run "$@")
		COMP_CWORD=$#
		_hamlyn_run
		printf '%s\n' "${COMPREPLY[@]}"
	) >"$work/out"
	grep -qxF -e "$wanted" "$work/out" && return
	cp "$work/out" "$work/err"
	return 1
}

completion() {
	: >"$work/a-program"
	completes --same-addresses -n 2 --same && completes none -n 2 --stdin n &&
		completes none --processes = 2 --stdin = n && completes shm: --device s &&
		completes true --device shm : x -vn 2 --host a : 1,b tru &&
		completes "$work/a-program" -n 2 true "$work/a-pro" &&
		completes "$work/a-program" -n 2 --launch ssh true --device "$work/a-pro" &&
		completes '' -n '' && completes '' --host a :
}

device_is_left() {
	HAMLYN_DEVICE=shm:other run -n 1 printenv HAMLYN_DEVICE && says shm:other || return 1
	ends 1 "exited with status 1" -n 1 printenv HAMLYN_DEVICE
}

cannot_tell() { # OPTION
	local status=0
	"$RUN" "$1" >/dev/full 2>"$work/err" || status=$?
	[ "$status" = 1 ] && grep -q "^hamlyn-run: standard output cannot be written" "$work/err"
}

verbose() {
	run -v -n 2 true && [ "$(grep -c "exited with status 0" "$work/err")" = 2 ] &&
		[ "$(grep -c "has pid" "$work/err")" = 2 ]
}

tagged() { # standard output, error, and a line without an end
	run -n 3 --tag-output sh -c 'echo a b; echo to-err >&2; printf %s part' || return 1
	[ "$(sort "$work/out" | paste -sd,)" = \
		"[0] a b,[0] part,[1] a b,[1] part,[2] a b,[2] part" ] &&
		[ "$(sort "$work/err" | paste -sd,)" = "[0] to-err,[1] to-err,[2] to-err" ]
}

whole_lines() { # of 1 to 5000 bytes, in pieces, and many
	run -n 4 --tag-output awk 'BEGIN { for (i = 1; i <= 5000; i += 7) {
		for (j = 0; j < i; j++) printf "x"; printf "\n"; fflush() } }' || return 1
	awk '!/^\[[0-3]\] x+$/ { exit 1 } { n[$1 " " length($2)]++ }
		END { for (r = 0; r < 4; r++) for (i = 1; i <= 5000; i += 7)
			if (n["[" r "] " i] != 1) exit 1 }' "$work/out"
}

whole_lines_of_both() { # long ones of standard output, short ones of standard error
	timeout -k 5 "$LIMIT" "$RUN" -n 2 --tag-output python3 -c 'import os
for i in range(200):
    os.write(1, b"A" * 20000 + b"\n")
    os.write(2, b"E" * 50 + b"\n")' >"$work/out" 2>&1 </dev/null || return 1
	awk '!/^\[[01]\] (A+|E+)$/ { exit 1 } { n[substr($2, 1, 1) length($2)]++ }
		END { exit n["A20000"] != 400 || n["E50"] != 400 }' "$work/out" && return 0
	tr -s AE <"$work/out" | sort | uniq -c | head -n 5 >"$work/err"
	: >"$work/out"
	return 1
}

nobody_reads() { # and it ends all the same
	local status
	timeout -k 5 "$LIMIT" "$RUN" -n 2 --tag-output yes 2>"$work/err" | head -n 3 >"$work/out"
	status=${PIPESTATUS[0]}
	[ "$status" = 1 ] && grep -q "standard output cannot be written" "$work/err" &&
		[ "$(grep -c '^\[[01]\] y$' "$work/out")" = 3 ]
}

endless_orphan() { # faster than who reads, for whom lines wait in memory already
	local status
	timeout -k 5 "$LIMIT" "$RUN" --timeout 20 -n 1 --tag-output sh -c 'yes & sleep 1' \
		2>"$work/err" | python3 -c 'import os, time
while os.read(0, 16384):
    time.sleep(0.01)'
	status=${PIPESTATUS[0]}
	[ "$status" = 0 ]
}

keeps_personality() { # as "setarch" sets it: ADDR_COMPAT_LAYOUT, and ours
	bounded setarch "$(uname -m)" -L "$RUN" --same-addresses -n 1 cat /proc/self/personality &&
		says 00240000
}

refused_addresses() {
	cat >"$work/refuse.py" <<'EOT'
import ctypes, os, struct, sys

NUMBER = {"x86_64": 135, "aarch64": 92}[os.uname().machine]
LOAD, IF_EQUAL, RETURN, REFUSE, ALLOW = 0x20, 0x15, 0x06, 0x00050001, 0x7fff0000
code = [(LOAD, 0, 0, 0), (IF_EQUAL, 0, 1, NUMBER), (RETURN, 0, 0, REFUSE), (RETURN, 0, 0, ALLOW)]
filters = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *c) for c in code))
program = struct.pack("HxxxxxxP", len(code), ctypes.addressof(filters))
libc = ctypes.CDLL(None, use_errno=True)
assert not libc.prctl(38, 1, 0, 0, 0) and not libc.prctl(22, 2, program, 0, 0)
os.execv(sys.argv[1], sys.argv[1:])
EOT
	local status=0
	bounded python3 "$work/refuse.py" "$RUN" --same-addresses -n 1 true || status=$?
	[ "$status" = 126 ] && grep -q '"true" cannot be run: Operation not permitted' "$work/err"
}

reads() {
	local who
	# shellcheck disable=SC2016 # for the shell inside
	local program='echo "$PMI_RANK $(cat | wc -c)"'
	for who in 0 2 none; do
		printf 12345 >"$work/in"
		timeout -k 5 "$LIMIT" "$RUN" -n 3 --stdin "$who" sh -c "$program" <"$work/in" \
			>"$work/out" 2>"$work/err" || return 1
		[ "$(sort "$work/out" | awk '$2 == 5 { print $1 } END { exit NR != 3 }')" = \
			"${who/none/}" ] || return 1
	done
	timeout -k 5 "$LIMIT" "$RUN" -n 3 sh -c "$program" <"$work/in" >"$work/out" 2>"$work/err" &&
		grep -qx "0 5" "$work/out" && grep -qx "2 0" "$work/out"
}

# ---- signals ----

# Starts it with the words given; $launcher is its pid. Its processes print theirs.
launch() { # ARGUMENT...
	stop_launcher
	# A pipe, so that reading waits for what is printed. In the background of a shell, or
	# behind nohup, signals are ignored that this is about.
	exec 4< <(exec env --default-signal "$RUN" "$@" 2>"$work/err" </dev/null)
	launcher=$!
}

await_launcher() { # with its status; then the number may be another process's
	local status=0
	wait "$launcher" || status=$?
	launcher=
	return "$status"
}

# That of a test which has failed before its end; its processes end with it
stop_launcher() {
	[ -n "$launcher" ] || return 0
	kill -s KILL "$launcher" 2>/dev/null
	await_launcher 2>/dev/null
	return 0
}

next_line() { # VARIABLE
	read -r -t "$LIMIT" -u 4 "$1" || {
		echo "no line came" >>"$work/err"
		return 1
	}
}

# becomes PID STATES: it is in one of these, or gone if they say so ("-"); a bound, no measure
becomes() {
	local i state
	for ((i = 0; i < 10 * LIMIT; i++)); do
		state=$(sed 's/.*) //; s/ .*//' "/proc/$1/stat" 2>/dev/null)
		[[ $2 != *"${state:--}"* ]] || return 0
		sleep 0.1
	done
	echo "process $1 is still in state $state" >>"$work/err"
	return 1
}

# Also one that nobody has waited for yet
ended() { # PID
	becomes "$1" ZX-
}

passes_on() { # SIGNAL STATUS
	local one two status=0
	# shellcheck disable=SC2016 # for the shell inside
	launch -n 2 sh -c 'echo $$; exec sleep 1000'
	next_line one && next_line two || return 1
	kill -s "$1" "$launcher"
	await_launcher || status=$?
	[ "$status" = "$2" ] && ended "$one" && ended "$two"
}

# A terminal, whose user presses Ctrl-C once process 20 has started
cat >"$work/key.py" <<'EOT'
import os, pty, select, signal, sys, time

end = time.monotonic() + float(sys.argv[1])
pid, fd = pty.fork()
if not pid:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.execv(sys.argv[2], sys.argv[2:])
said, pressed = b"", False
try:
    while time.monotonic() < end:
        if select.select([fd], [], [], 1)[0]:
            said += os.read(fd, 65536)
        if not pressed and b"process 20 has pid" in said:
            os.write(fd, b"\x03")
            pressed = True
except OSError:
    pass  # all have closed the terminal
os.kill(pid, signal.SIGKILL)
print(said.decode(), end="")
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print("status", status)
sys.exit(status != 130)
EOT

# On a busy machine all may have been started before the terminal's reader is.
interrupted_early() { # those that start afterwards do not see what the terminal has sent
	local attempt status
	for attempt in 1 2 3 4 5 6 7 8; do
		status=0
		bounded python3 "$work/key.py" $((30 * SCALE)) \
			"$RUN" -v --keep-going -n 500 sleep "$nap" || status=$?
		sed -i '/has pid/d; /exited with/d; /was killed/d' "$work/out"
		no_sleeper "$nap" && [ "$status" = 0 ] || return 1
		grep -q "signal 2 (Interrupt) came while process [0-9]* was started" "$work/out" &&
			return
		echo "attempt $attempt: all had been started" >>"$work/out"
	done
	return 1
}

stopped() { # neither a failure, nor in the way of the end
	local line pid status=0
	launch -n 2 "$PEER" stop
	next_line line || return 1
	pid=${line#stopped }
	becomes "$pid" T && kill -0 "$launcher" || return 1
	kill -s CONT "$pid"
	await_launcher || status=$?
	[ "$status" = 0 ]
}

stopped_ends() {
	local line pid status=0
	launch -n 2 "$PEER" stop
	next_line line || return 1
	pid=${line#stopped }
	becomes "$pid" T || return 1
	kill -s TERM "$launcher"
	await_launcher || status=$?
	[ "$status" = 143 ] && ended "$pid"
}

nothing_left() { # after hamlyn-run was killed, even of what heeds no SIGTERM
	local one two
	# shellcheck disable=SC2016 # for the shell inside
	launch -n 2 sh -c 'trap "" TERM INT; echo $$; exec sleep 1000'
	next_line one && next_line two || return 1
	kill -s KILL "$launcher"
	await_launcher 2>/dev/null
	ended "$one" && ended "$two"
}

# The children of the processes have to be found by the kernel's list; of hamlyn-run's two
# processes either may be killed.
nothing_left_of_children() { # WHICH: 0, the one that was started, or 1, the one that it started
	local status=0 victim
	# shellcheck disable=SC2016 # for the shell inside
	launch -n 2 sh -c "trap '' TERM; sleep $nap & echo started; wait; wait"
	next_line line && next_line line || return 1
	victim=$launcher
	[ "$1" = 0 ] || victim=$(cat "/proc/$launcher/task/$launcher/children")
	# shellcheck disable=SC2086 # a number and a blank
	kill -s KILL $victim
	await_launcher 2>/dev/null || status=$?
	[ "$status" = 137 ] && becomes_no_sleeper "$nap"
}

becomes_no_sleeper() { # SECONDS: within a while; none is left after it
	local i
	for ((i = 0; i < 100 * SCALE; i++)); do
		[ -n "$(sleepers "$1")" ] || return 0
		sleep 0.1
	done
	no_sleeper "$1"
}

# sleepers SECONDS: the pids of "sleep SECONDS"
sleepers() {
	local file
	for file in /proc/[0-9]*/cmdline; do
		[ "$({ tr '\0' ' ' <"$file"; } 2>/dev/null)" != "sleep $1 " ] ||
			basename "$(dirname "$file")"
	done
}

# Without the kernel's list of children they cannot be found
lists_children() {
	[ -e "/proc/$$/task/$$/children" ]
}

no_sleeper() { # SECONDS: none is left; those that are get ended here
	local pids
	pids=$(sleepers "$1")
	[ -n "$pids" ] || return 0
	echo "left behind: ${pids//$'\n'/ }" >>"$work/err"
	# shellcheck disable=SC2086 # several words
	kill -s KILL $pids
	return 1
}

# so_many_sleep N SECONDS: also those that are only about to; then none does
so_many_sleep() {
	local i n=0
	for ((i = 0; i < 100 * SCALE && n != $1; i++)); do
		[ "$i" = 0 ] || sleep 0.1
		n=$(sleepers "$2" | wc -l)
	done
	no_sleeper "$2" 2>/dev/null
	[ "$n" = "$1" ] || echo "$n processes sleep, not $1" >>"$work/err"
	[ "$n" = "$1" ]
}

orphans_end() { # SHELL-COMMAND: what it leaves behind does not outlive a job that fails
	ends 124 "took more than 1 s" -n 2 --timeout 1 sh -c "$1"
	local status=$?
	no_sleeper "$nap" && [ "$status" = 0 ]
}

orphans_are_let_be() { # of a job that ends well
	local status=0
	run -n 2 sh -c "sleep $nap >&- 2>&- & :" || status=$?
	so_many_sleep 2 "$nap" && [ "$status" = 0 ]
}

inherited_children() { # of a job that fails, and of whoever became hamlyn-run
	local status=0
	bounded sh -c "sleep $nap & exec '$RUN' -n 2 false" || status=$?
	so_many_sleep 1 "$nap" && [ "$status" = 1 ]
}

few_descriptors() { # not enough for three of each process, which --tag-output only needs
	(ulimit -n 128 && run -n 50 true)
}

surroundings() { # limits and signals are those that hamlyn-run found
	local want
	# shellcheck disable=SC2016 # for the shell inside
	local program='ulimit -n; grep -E "^Sig(Blk|Ign)" /proc/$$/status'
	# As run does, for timeout changes what is ignored
	want=$(ulimit -Sn 200 && timeout -k 5 "$LIMIT" bash -c "$program" </dev/null) || return 1
	(ulimit -Sn 200 && run -n 100 --tag-output --stdin none bash -c "$program") || return 1
	[ "$(sed -n 's/^\[99\] //p' "$work/out")" = "$want" ]
}

closed_descriptors() { # the PMI descriptor does not become standard output
	timeout -k 5 "$LIMIT" "$RUN" -n 2 "$PEER" <&- >&- 2>&-
}

# ---- the manual ----

manual_is_clean() {
	mandoc -Tlint -W warning "$HERE/hamlyn-run.1" >"$work/out" 2>&1
}

manual_is_complete() {
	local word
	mandoc -Tascii "$HERE/hamlyn-run.1" | sed 's/.\x08//g' >"$work/manual"
	"$RUN" --help | grep -E '^ +-' | grep -oE -- '--?[a-z-]+' >"$work/words"
	while read -r word; do
		grep -qE -e "(^|[^a-z-])$word([^a-z-]|\$)" "$work/manual" || {
			echo "the manual does not tell of $word" >"$work/err"
			return 1
		}
	done <"$work/words"
	[ -s "$work/words" ]
}

# ---- all of it ----

peers
hydra
openmpi
totals slurm-test.sh "$work/slurm" selftests/tools/slurm-test.sh "$BUILD"
check "PMIx that is none" no_pmix
check "launchers that say what they should not" bad_launchers
check "a descriptor that is no socket" not_a_socket
check "a port without a host" bad_port "not HOST:PORT" 1234
check "a port that is none" bad_port "not HOST:PORT" localhost:99999
check "a port where nobody is" bad_port "PMI_PORT=127.0.0.1:1" 127.0.0.1:1
failures
options
check "SIGTERM is passed on" passes_on TERM 143
check "SIGINT is passed on" passes_on INT 130
check "Ctrl-C before all are started" interrupted_early
check "a process that is stopped, and goes on" stopped
check "a process that is stopped, and is to end" stopped_ends
check "nothing is left when hamlyn-run is killed" nothing_left
if lists_children; then
	check "nothing is left of what the processes of a job that fails have started" \
		orphans_end "sleep $nap; :"
	check "nor of what heeds no SIGTERM" orphans_end "(trap '' TERM; sleep $nap; :); :"
	check "nothing is left of what processes have started when hamlyn-run is killed" \
		nothing_left_of_children 0
	check "nor when the process of it that runs the job is" nothing_left_of_children 1
else
	skip "nothing is left of what processes have started when hamlyn-run is killed" \
		"this kernel lists no children"
	skip "nor when the process of it that runs the job is" "this kernel lists no children"
	skip "nothing is left of what the processes of a job that fails have started" \
		"this kernel lists no children"
	skip "nor of what heeds no SIGTERM" "this kernel lists no children"
fi
check "what a job that ends well has started is let be" orphans_are_let_be
check "children that are none of the job's are let be" inherited_children
check "few descriptors" few_descriptors
check "processes find what hamlyn-run has found" surroundings
check "standard descriptors that are closed" closed_descriptors
if command -v mandoc >/dev/null; then
	check "the manual is clean" manual_is_clean
	check "the manual tells of every option" manual_is_complete
else
	skip "the manual is clean" "mandoc is not installed"
	skip "the manual tells of every option" "mandoc is not installed"
fi

total
