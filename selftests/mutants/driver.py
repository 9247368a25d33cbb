# SPDX-License-Identifier: GPL-2.0-only
"""driver/: the kernel device, many mutants in a boot."""
import os
import re
import subprocess
import sys

from machine import SWITCH, copy_tree, losers, object_of, program_of, run, source_of, write_changed
from source import ROOT, SOURCES, Mutant

DRIVER = ['object/slot.c', 'object/terminus.c', 'object/tag.c', 'object/ticket.c', 'object/area.c',
          'object/mmap.c', 'engine/datapath.c', 'doorbell.c', 'user/user.c', 'user/charge.c',
          'user/account.c', 'user/pool.c', 'user/refusal.c', 'object/memory.c',
          'watch/watch.c', 'watch/tell.c', 'watch/known.c', 'chardev.c', 'context.c', 'object/nq.c', 'explain.c',
          'audit.c', 'netlink/family.c',
          'netlink/dump.c', 'netlink/event.c', 'netlink/fill.c', 'netlink/admin.c', 'nic.c',
          'engine/engine.c', 'engine/client.c', 'engine/stalled.c', 'engine/placement.c', 'stats.c']
# Programs that should notice a mutant of a file of the driver, likeliest first.
NOTICE = {
    'slot.c': 'uapi_size counts paranoid lifecycle protection hostile_ticket foreign limits hostile_watch '
              'fork_kill conformance_kernel',
    'terminus.c': 'uapi_size counts lifecycle foreign gather limits hostile_admin fork_kill send_errors hostile_pause',
    'tag.c': 'tags uapi_size lifecycle gather limits hostile_pause',
    'ticket.c': 'hostile_ticket tickets uapi_size lifecycle inherit hostile_pause',
    'area.c': 'uapi_size counts limits lifecycle foreign huge gather fork_kill',
    'mmap.c': 'hostile_mmap lifecycle huge inherit',
    'datapath.c': 'sendrecv gather lifecycle hostile_wq poll_wait threads hostile_pause',
    'doorbell.c': 'sendrecv gather lifecycle hostile_wq poll_wait threads hostile_pause engine nics',
    'user.c': 'counts nics hostile_pause limits hostile_container hostile_admin hostile_share netlink hostile_guess inherit lifecycle',
    'charge.c': 'counts nics limits hostile_container hostile_admin hostile_share names hostile_watch lifecycle',
    'account.c': 'counts limits hostile_share hostile_container nics lifecycle',
    'pool.c': 'hostile_share limits nics',
    'refusal.c': 'limits hostile_quota hostile_share hostile_admin',
    'memory.c': 'limits lifecycle hostile_mmap',
    'watch.c': 'hostile_pause hostile_watch uapi_size hostile_guess lifecycle foreign',
    'tell.c': 'hostile_watch hostile_pause uapi_size lifecycle foreign',
    'known.c': 'hostile_guess hostile_watch hosts',
    'context.c': 'hostile_open lifecycle foreign nics inherit limits hostile_admin',
    'chardev.c': 'hostile_open uapi_size counts lifecycle foreign poll_wait hostile_admin inherit nics hostile_pause',
    'nq.c': 'uapi_size counts nq poll_wait lifecycle foreign limits',
    'explain.c': 'limits uapi_size',
    'audit.c': 'hostile_audit uapi_size lifecycle',
    'client.c': 'hostile_share hostile_time threads lifecycle',
    'stalled.c': 'hosts pieces conformance_adversary hostile_slow',
    'engine.c': 'engine hostile_pause sendrecv poll_wait threads hostile_share nics lifecycle',
    'nic.c': 'nics hostile_uevent hostile_admin uapi_size lifecycle',
    'family.c': 'netlink nics counts hostile_admin lifecycle',
    'event.c': 'nics hostile_pause netlink hostile_container lifecycle',
    'dump.c': 'lists nics netlink counts hostile_admin hostile_container',
    'fill.c': 'lists nics netlink counts hostile_admin hostile_container',
    'admin.c': 'nics netlink counts hostile_admin hostile_container',
    'stats.c': 'foreign hostile_admin hostile_container counts uapi_size lifecycle',
    'placement.c': 'placement-test.sh',
}
NOTICE_ELSE = 'hostile_admin limits lifecycle'
# A program is stopped, and its mutant noticed, when it takes so many times as long as without
# one, and so many seconds, or --timeout; but not before LEAST times as long: others may be at work
SLOWER, SLACK, LEAST = 5, 10, 3
# A test that is a script: asked by --tests; hamlynctl's with --module-args max_slots=2048, for it
# has one NIC and guesses. What it takes along:
SCRIPTS = {'hamlynctl-test.sh': ['hamlynctl', 'hamlynctl-peer', 'hamlynctl-pty'],
           'placement-test.sh': ['hamlyn-perf']}
WHERE = {'hamlynctl-test.sh': 'selftests/tools/hamlynctl-test.sh',
         'placement-test.sh': 'selftests/kernel/placement-test.sh'}
# And what is not ours
OTHERS = {'hamlynctl-test.sh': ['/lib/terminfo/v/vt100:/lib/terminfo/v/vt100']}
# The machine that it wants
MACHINE = {'placement-test.sh': ['--smp', '4', '--nodes', '2']}
# Made for survivors: asked last, by all files of the driver. After a colon: the fixture.
NEW = ['objects:edge', 'objects:leak']


class Driver:
    """driver/: one module with all mutants, many of them in a boot."""
    PASSED = 'passed'	# the programs that pass without a mutant
    WHERE = ''		# said of what has survived
    # What it has left in the kernel's tables is in the way of the next
    UNLOAD = '''rmmod hamlyn || { echo "not ok 1 - the module unloads"; exit 1; }
insmod ./hamlyn.ko nics=1 && rmmod hamlyn || echo "not ok 1 - the module loads again"'''

    def __init__(self, work, options):
        self.work, self.options = work, options
        self.tree = os.path.join(work, 'driver')
        self.out = os.path.join(work, 'module')
        self.base = {}
        if options.kernel != '6.1':
            self.out += f'-{options.kernel}'
            self.PASSED += f'-{options.kernel}'
            self.WHERE = f'(on {options.kernel})'

    def build(self, sources):
        copy_tree(self.tree, [s.path for s in sources] + ['driver/core/mutant.h', 'driver/main.c'])
        write_changed(f'{self.tree}/driver/core/mutant.h', SWITCH)
        for source in sources:
            write_changed(f'{self.tree}/{source.path}', source.switched('core/mutant.h'))
        with open(f'{ROOT}/driver/main.c', encoding='utf-8') as f:
            write_changed(f'{self.tree}/driver/main.c', f.read() + '\nint hml_mutant;\n'
                          'module_param_named(mutant, hml_mutant, int, 0400);\n')
        log = f'{self.work}/module-build.log'
        if run(['selftests/vm/build-module.sh', *self.kernel()], log, cwd=ROOT):
            sys.exit(f'mutants/run.py: the module with switches does not build, see {log}')
        subprocess.run(['strip', '-d', '-o', f'{self.work}/hamlyn.ko', f'{self.out}/hamlyn.ko'], check=True)
        tests = sorted({t for s in sources for t in self.tests(s.path)})
        log = f'{self.work}/tests-build.log'
        self.bins = os.path.join(os.environ['BUILD'], 'selftests')
        if run(['make', '-s', f'BUILD={os.environ["BUILD"]}',
                *sorted({b for t in tests for b in self.needs(t)})], log, cwd=ROOT):
            sys.exit(f'mutants/run.py: the tests do not build, see {log}')

    def needs(self, test):
        """What make builds of it."""
        if test in SCRIPTS:
            return [f'{os.environ["BUILD"]}/{name}' for name in SCRIPTS[test]]
        return [f'{self.bins}/{program_of(test)}']

    def kernel(self):
        return [self.options.kernel, self.tree, self.out]

    def tests(self, path):
        names = NOTICE.get(os.path.basename(path), NOTICE_ELSE).split() + NEW
        if self.options.tests:
            names = self.options.tests.split(',')
        return [n for n in names if n in SCRIPTS or source_of(program_of(n))]

    def script(self, batch, tests=None):
        lines = ['cd /host']
        for m in batch:
            # Enough for what tests need; as mutate.sh. A program that fails is the last one.
            lines.append(f'''echo "MUTANT {m.number}"
insmod ./hamlyn.ko mutant={m.number} {self.options.module_args} || echo "not ok 1 - the module loads"
echo "# insmod $(cut -d. -f1 /proc/uptime)"
for test in {' '.join(f'{t}={self.limit(t)}' for t in tests or self.tests(m.path))}; do
	limit=${{test#*=}}
	test=${{test%=*}}
	only=
	[ "${{test#*:}}" = "$test" ] || only="-f ${{test#*:}}"
	lost=$( (HAMLYN_DEVICE=/dev/hamlyn0 timeout "$limit" ./${{test%:*}} $only 2>&1; echo "rc $?") |
		tr -d '\\r' | grep -m 1 -E '^not ok|^rc ([1-35-9]|[1-9][0-9])')
	echo "# $test $(cut -d. -f1 /proc/uptime)"
	[ -z "$lost" ] || {{ echo "not ok 1 - $test: ${{lost#not ok [0-9]* }}"; break; }}
done
{self.UNLOAD}
echo "END {m.number}"''')
        return '\n'.join(lines) + '\n'

    def limit(self, test):
        """Seconds: many times what it takes without a mutant, if that is known."""
        took = next((int(w.split('=')[1]) for w in self.words(self.PASSED)
                     if w.split('=')[0] == test), None)
        most = self.options.timeout
        return most if took is None else max(min(most, SLACK + SLOWER * took), LEAST * took)

    def boot(self, batch):
        """{number: noticed by or None}; a number is missing if it did not get its turn."""
        self.write(self.script(batch))
        return self.read(batch, *self.start(sorted({t for m in batch for t in self.tests(m.path)})))

    def write(self, script):
        with open(f'{self.work}/script', 'w', encoding='utf-8') as f:
            f.write(script)

    def files(self, tests):
        files = ['--file', f'{self.work}/hamlyn.ko']
        needed = {b for t in tests for b in self.needs(t)} | {PATHS[t] for t in tests if t in SCRIPTS}
        for name in sorted(needed) + [f for t in tests for f in OTHERS.get(t, [])]:
            files += ['--file', name]
        return files

    def boot_time(self):
        """Seconds: each program has its own limit, so a batch of one needs fewer of them."""
        return self.options.boot_time if self.options.batch > 1 else self.options.boot_time // 3

    def start(self, tests):
        """What was said in the guest, and the exit status."""
        limit = 60 + self.boot_time()
        log = f'{self.work}/boot.log'
        out = f'{self.work}/boot'
        machine = [w for t in tests for w in MACHINE.get(t, [])]
        patience = [] if self.options.kernel[0].isdigit() else ['--append', 'HAMLYN_TEST_SCALE=4']
        rc = run(['selftests/vm/run.sh', self.options.kernel, '--smp', str(self.options.smp), *machine, *patience,
                  '--timeout', str(limit), '--out', out, '--script', f'{self.work}/script', *self.files(tests)], log, cwd=ROOT)
        with open(log, encoding='utf-8', errors='replace') as f:
            return f.read().replace('\r', ''), rc

    def read(self, batch, text, rc):
        result, now, lost = {}, None, None
        for line in text.split('\n'):
            if line.startswith('MUTANT '):
                now, lost = int(line.split()[1]), None
            elif line.startswith('END ') and now is not None:
                result[now] = lost
                now = None
            elif now is not None and lost is None:
                lost = losers(line)
        if now is not None and rc != 125:
            slow = rc == 124
            if slow and not lost and now != batch[0].number:
                return result	# its turn comes again, with more time
            result[now] = lost or ('(time) the machine did not end' if slow else
                                   '(kernel) it did not survive that: ' + self.last_words())
        return result

    def last_words(self):
        try:
            with open(f'{self.work}/boot/console', encoding='utf-8', errors='replace') as f:
                found = re.findall(r'(BUG: .*|WARNING: .*|general protection.*|Oops.*|Kernel panic.*)', f.read())
            return found[0][:90].strip() if found else 'no word in the log'
        except OSError:
            return 'no log'

    def sound(self, mutants):
        """Without a mutant all tests pass."""
        tests = dict.fromkeys(t for m in mutants for t in self.tests(m.path))
        tests = [t for t in tests if t not in self.passed()]
        if not tests:
            return
        text = self.start_alone(tests)
        if 'END 0' not in text or 'not ok' in text:
            sys.exit('mutants/run.py: without a mutant not all tests pass:\n' + text[-2000:])
        self.add_words(self.PASSED, self.durations(text, tests))

    def passed(self):
        return [w.split('=')[0] for w in self.words(self.PASSED)]

    @staticmethod
    def durations(text, tests):
        """TEST=SECONDS of each, from the time of the guest when it began and behind each."""
        times = re.findall(r'^# (\S+) (\d+)$', text, re.MULTILINE)
        took = {name: int(after) - int(before)
                for (_, before), (name, after) in zip(times, times[1:])}
        return [f'{t}={took[t]}' for t in tests]

    def start_alone(self, tests):
        nobody = Mutant('', '', '', 0, '', '', [])
        nobody.number = 0
        self.write(self.script([nobody], tests))
        return self.start(tests)[0]

    def words(self, name):
        try:
            with open(f'{self.work}/{name}', encoding='utf-8') as f:
                return f.read().split()
        except OSError:
            return []

    def add_words(self, name, words):
        with open(f'{self.work}/{name}', 'a', encoding='utf-8') as f:
            f.write('\n'.join(words) + '\n')

    def all(self, mutants, note):
        todo = []
        for m in mutants:
            if m.rule in ('once', 'barrier', 'nospec') and self.alike(m):
                note(m, 'equivalent', '')
            elif m.rule == 'once':
                note(m, 'survived', '')
            else:
                todo.append(m)
        self.sound(todo)
        empty = 0
        while todo and empty < 3:
            batch = todo[:self.options.batch]
            result = self.boot(batch)
            empty = 0 if result else empty + 1
            dirty = False
            for m in batch:
                if m.number not in result:
                    continue
                lost = result[m.number]
                if lost and dirty:
                    # It may be what the one before it has done to the kernel
                    lost = self.boot([m]).get(m.number, lost)
                dirty = dirty or bool(lost)
                todo.remove(m)
                self.judge(m, lost, note)

    def judge(self, m, lost, note):
        if lost:
            note(m, 'killed', lost)
        elif self.alike(m):
            note(m, 'equivalent', '')
        else:
            note(m, 'survived', self.WHERE)

    def compiler(self, path):
        """The command by which kbuild has compiled a file."""
        folder, name = os.path.split(f'{self.out}/src/{path}')
        with open(f'{folder}/.{name[:-2]}.o.cmd', encoding='utf-8') as f:
            line = f.readline()
        command = line.split(':=', 1)[1].split(';')[0].strip()
        return re.sub(r' -o \S+ ', ' ', re.sub(r'-Wp,-MMD,\S+', '', command)) + ' -g0 -w'

    def headers(self):
        """Where kbuild compiles."""
        with open(f'{self.out}/kernel', encoding='utf-8') as f:
            release = f.read().strip()
        folder = subprocess.run(['bash', '-c', '. selftests/vm/lib.sh; kernel_dir "$0"',
                                 self.options.kernel], cwd=ROOT,
                                check=True, capture_output=True, text=True).stdout.strip()
        return f'{folder}/root/usr/src/linux-headers-{release}'

    def alike(self, m):
        """Does it compile to the same object code? False too if that is not known."""
        if not m.path.endswith('.c'):
            return False
        source = SOURCES[m.path]
        place = f'{self.out}/src/{m.path}'
        with open(place, encoding='utf-8') as f:
            kept = f.read()
        command = ['sh', '-c', self.compiler(m.path) + ' "$@"', 'sh']
        cwd = self.headers()
        try:
            if m.path not in self.base:
                self.base[m.path] = object_of(command, cwd, place, source.text, f'{self.work}/alone.o')
            new = object_of(command, cwd, place, source.alone(m), f'{self.work}/alone.o')
        finally:
            write_changed(place, kept)
        if self.base[m.path] is None:
            sys.exit(f'mutants/run.py: cannot compile {m.path} alone: {command[2][:200]}')
        return new is not None and new == self.base[m.path]


class Uml(Driver):
    """The same in User-Mode Linux: many times faster, but grace periods of RCU take ticks there."""
    PASSED, UNFIT = 'passed-uml', 'unfit-uml'
    WHERE = '(in User-Mode Linux)'
    MORE = []		# words for uml.sh

    def __init__(self, work, options):
        super().__init__(work, options)
        self.name = 'uml-lockdep' if options.lockdep else 'uml-leak' if options.leaks else 'uml'
        self.PASSED, self.UNFIT = f'passed-{self.name}', f'unfit-{self.name}'

    def cache(self):
        return os.environ.get('HAMLYN_CACHE', f'{ROOT}/.cache')

    def kernel(self):
        return [f'{self.cache()}/{self.name}/build', self.tree, self.out, 'ARCH=um',
                f'KCFLAGS=-include {ROOT}/selftests/vm/uml-barriers.h']

    def headers(self):
        return f'{self.out}/src/driver'

    def build(self, sources):
        self.out = os.path.join(self.work, f'module-{self.name}')
        super().build(sources)
        if run(['make', '-s', f'BUILD={os.environ["BUILD"]}', f'{os.environ["BUILD"]}/hamlyn-perf'],
               f'{self.work}/perf-build.log', cwd=ROOT):
            sys.exit('mutants/run.py: hamlyn-perf, which uml.sh wants, does not build')

    def tests(self, path):
        return [t for t in super().tests(path) if t not in self.words(self.UNFIT)]

    def sound(self, mutants):
        """Some tests are too slow there, or ask for what it has not."""
        tests = dict.fromkeys(t for m in mutants for t in self.tests(m.path))
        for test in tests:
            if test in self.passed():
                continue
            text = self.start_alone([test])
            fit = 'END 0' in text and not any(losers(line) for line in text.split('\n'))
            self.add_words(*((self.PASSED, self.durations(text, [test])) if fit else (self.UNFIT, [test])))

    def start(self, tests):
        log = f'{self.work}/boot.log'
        out = f'{self.work}/boot'
        rc = run(['selftests/vm/uml.sh', '--kernel', self.name, '--build', os.environ['BUILD'], '--no-module',
                  '--ncpus', str(self.options.smp), '--timeout', str(self.boot_time()), '--out', out,
                  '--file', f'{self.work}/script', *self.files(tests), *self.MORE,
                  # What it writes into files is lost when it goes down
                  '--cmd', 'sh /host/script 2>&1 | tee /dev/console'], log, cwd=ROOT)
        with open(f'{out}/console', encoding='utf-8', errors='replace') as f:
            return f.read().replace('\r', ''), 1 if rc == 125 else rc

    def judge(self, m, lost, note):
        """It may go down by itself, but not twice."""
        if lost and lost.startswith('(kernel)'):
            lost = self.boot([m]).get(m.number, lost)
        super().judge(m, lost, note)


class Leaks(Uml):
    """On a kernel with kmemleak and page_owner. That all tests pass is known: what do they leave?"""
    WHERE = '(nothing is left of it)'
    MORE = ['--file', 'selftests/kernel/leak-lib.sh', '--append', 'page_owner=on']

    def tests(self, path):
        """Each makes objects in ways of its own, or fails to."""
        if self.options.tests:
            return super().tests(path)
        names = ['leak', 'uapi_size', 'limits', 'hostile_ticket', 'hostile_admin', 'hostile_pause', 'lists',
                 'lifecycle']
        if path.endswith('/user/user.c'):
            # Records of who has guessed
            names.append('hostile_guess')
        return [t for t in names if t not in self.words(self.UNFIT)]

    def script(self, batch, tests=None):
        lines = ['''cd /host
. ./leak-lib.sh
mount -t debugfs debugfs $debug
can_look >/dev/null || echo "not ok 1 - the kernel keeps account"
figures() {
	echo "pins $(pinned_pages) maps $(mapped_rows) pages $(owned_pages | awk '{ n += $1 } END { print n + 0 }')"
}
# What is killed takes its time
figures_are() {
	for try in 1 2 3 4 5 6; do
		now=$(figures)
		[ "$now" = "$1" ] && return
		sleep 1
	done
	echo "not ok 1 - leak-lib: before $1, now $now"
}''']
        for m in batch:
            names = tests or self.tests(m.path)
            lines.append(f'''echo "MUTANT {m.number}"
unreferenced >/dev/null
echo clear >$debug/kmemleak
insmod ./hamlyn.ko mutant={m.number} {self.options.module_args} || echo "not ok 1 - the module loads"
echo "# insmod $(cut -d. -f1 /proc/uptime)"
HAMLYN_DEVICE=/dev/hamlyn0 HAMLYN_LEAK_ROUNDS=1 ./leak >/dev/null 2>&1
before=$(figures)
for test in {' '.join(f'{t}={self.limit(t)}' for t in names)}; do
	HAMLYN_DEVICE=/dev/hamlyn0 HAMLYN_LEAK_ROUNDS=2 timeout "${{test#*=}}" ./${{test%=*}} >/dev/null 2>&1
	echo "# ${{test%=*}} $(cut -d. -f1 /proc/uptime)"
done
figures_are "$before"
{self.UNLOAD}
lost=$(unreferenced | grep -c '^unreferenced object')
[ "$lost" = 0 ] || echo "not ok 1 - leak-lib: $lost objects to which nothing points"
echo "END {m.number}"''')
        return '\n'.join(lines) + '\n'

    def files(self, tests):
        return super().files(tests + ['leak'])
