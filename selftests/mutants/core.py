# SPDX-License-Identifier: GPL-2.0-only
"""driver/core: the unit tests, then the embedded device."""
import os
import re
import subprocess
import sys
import threading
import time

from machine import SWITCH, copy_tree, losers, object_of, run, write_changed
from source import SOURCES
from verdicts import justifications, justified

CORE = ['guard.c', 'link.c', 'notify.c', 'rx.c', 'sched.c', 'tx.c', 'wire.c', 'link.h', 'nic.h']
EMBEDDED = {
    'rx.c': 'protection paranoid nq sendrecv gather tickets',
    'tx.c': 'send_errors sendrecv gather tickets protection',
    'notify.c': 'nq sendrecv threads',
    'guard.c': 'protection', 'link.c': 'hostile_segment protection', 'sched.c': 'sendrecv',
    'link.h': 'hostile_segment protection', 'nic.h': 'protection gather nq',
}

SLOWEST = 'unit_property'


class Core:
    """driver/core: unit tests, then the embedded device."""

    def __init__(self, work, options):
        self.work, self.options = work, options
        self.tree = os.path.join(work, 'core')
        self.plain = os.path.join(work, 'core-alone')
        self.base = {}
        self.lock = threading.Lock()
        self.reasons = justifications()
        self.units = {}

    def build(self, sources):
        self.limits = {}
        copy_tree(self.tree, [s.path for s in sources] + ['driver/core/mutant.h'])
        write_changed(f'{self.tree}/driver/core/mutant.h', SWITCH)
        for source in sources:
            write_changed(f'{self.tree}/{source.path}', source.switched('mutant.h'))
        self.find_units()
        names = sorted({u for s in sources for u in self.programs(s.path)})
        tests = sorted({t for s in sources for t in self.embedded(s.path)})
        self.make([f'build/unit/{u}' for u in names] + [f'build/selftests/{t}' for t in tests])
        for unit in names:
            began = time.time()
            lost = self.one([f'build/unit/{unit}'], 0, 300)
            if lost:
                sys.exit(f'mutants/run.py: without a mutant {unit} fails: {lost}')
            self.limits[unit] = 10 + 5 * (time.time() - began)
        copy_tree(self.plain)

    def make(self, targets):
        log = f'{self.work}/core-build.log'
        if run(['make', '-s', '-C', self.tree, 'BUILD=build', 'CFLAGS=-O2 -w', *targets], log):
            sys.exit(f'mutants/run.py: driver/core with switches does not build, see {log}')

    def find_units(self):
        """Which units include which file of the core, by themselves or through another."""
        folder = f'{self.tree}/selftests/unit'
        texts = {n: open(f'{folder}/{n}', encoding='utf-8').read() for n in os.listdir(folder)}

        def core(name):
            included = re.findall(r'#include "(\w+\.[ch])"', texts.get(name, ''))
            return {n for n in included if n.endswith('.c')}.union(*(core(n) for n in included))
        for name in texts:
            if re.match(r'unit_\w+\.c$', name):
                self.units[name[:-2]] = core(name)

    def programs(self, path):
        name = os.path.basename(path)
        mine = [u for u, files in self.units.items() if name in files or (name.endswith('.h') and files)]
        if self.options.tests:
            mine = [u for u in mine if u in self.options.tests.split(',')]
        first = 'unit_' + name[:-2]
        return sorted(mine, key=lambda u: (u != first, self.limits.get(u, 0)))

    def embedded(self, path):
        if self.options.units:
            return []
        return EMBEDDED.get(os.path.basename(path), '').split()

    def one(self, command, number, limit, device=None):
        """Name of the first test that fails, or None."""
        env = dict(os.environ, HML_MUTANT=str(number), CMOCKA_MESSAGE_OUTPUT='TAP',
                   HAMLYN_DEVICE=device or '', ASAN_OPTIONS='detect_leaks=1')
        with subprocess.Popen(command, cwd=self.tree, env=env, text=True, errors='replace',
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              stdin=subprocess.DEVNULL, start_new_session=True) as p:
            late = []
            timer = threading.Timer(limit, lambda: (late.append(1), os.killpg(p.pid, 9)))
            timer.start()
            lost = None
            for line in p.stdout:
                lost = losers(line)
                if lost:
                    try:
                        os.killpg(p.pid, 9)
                    except ProcessLookupError:
                        pass
                    break
            p.wait()
            timer.cancel()
        if late:
            return f'(time) {os.path.basename(command[0])} did not end within {limit:.0f} s'
        if lost or not p.returncode:
            return lost
        return f'(status {p.returncode}) {os.path.basename(command[0])}'

    def judge(self, mutant):
        def same():
            # The same code here need not be the same on other processors.
            return mutant.rule not in ('barrier', 'once', 'nospec') and self.alike(mutant)
        known = justified(mutant.id, self.reasons)
        for i, unit in enumerate(self.programs(mutant.path)):
            if known and unit == SLOWEST:
                continue
            if i == 1 and same():	# cheaper than the other units
                return 'equivalent', ''
            lost = self.one([f'build/unit/{unit}'], mutant.number, self.limits[unit])
            if lost:
                return 'killed', f'{unit}: {lost}'
        if same():
            return 'equivalent', ''
        # Seconds to minutes for each: not for what is known to survive.
        for test in [] if known else self.embedded(mutant.path):
            lost = self.ask(test, mutant.number)
            # On a busy machine: is it the mutant?
            if lost and lost.startswith('(time)') and self.ask(test, 0):
                lost = None
            if lost:
                return 'killed', f'{test}: {lost}'
        return 'survived', ''

    def ask(self, test, number):
        device = f'shm:mutant-{os.getpid()}-{number}'
        return self.one([f'build/selftests/{test}'], number, self.options.timeout, device)

    def alike(self, mutant):
        """Is the object code that of the original, in each unit of the core?"""
        with self.lock:
            users = [mutant.path] if mutant.path.endswith('.c') else \
                [f'driver/core/{n}' for n in CORE if n.endswith('.c')]
            changed = f'{self.plain}/{mutant.path}'
            source = SOURCES[mutant.path]
            for user in users:
                command = ['gcc', '-O2', '-w', '-c', '-std=gnu11', '-D_GNU_SOURCE', '-Iuapi',
                           '-Ilibhamlyn/include', '-Ilibhamlyn/src', '-Ilibhamlyn/src/embedded',
                           '-iquotedriver/core', user]
                out = f'{self.work}/alone.o'
                if (user, mutant.path) not in self.base:
                    self.base[user, mutant.path] = object_of(command, self.plain, changed, source.text, out)
                new = object_of(command, self.plain, changed, source.alone(mutant), out)
                if new != self.base[user, mutant.path]:
                    write_changed(changed, source.text)
                    return False
            write_changed(changed, source.text)
            return True
