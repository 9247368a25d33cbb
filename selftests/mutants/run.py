#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Takes out one check, barrier, lock or put at a time, and sees who notices.

What selftests/mutate.sh does for a table made by hand, this does by rules, for
every place that one of them fits:

  check    the condition of an "if" that ends in an error is never true
  branch   the condition of another "if" is never true (driver/core only)
  always   ... is always true (driver/core only; "?:" and "return a == b" everywhere)
  never    the condition of a "?:", or what is returned, is never true
  drop     one operand of && or || is left out
  edge     < becomes <=, > becomes >=, and the other way round
  barrier  a barrier is left out; acquire and release become relaxed
  once     READ_ONCE() and WRITE_ONCE() become plain
  nospec   an index is not clamped
  wait     nobody waits for a grace period, or for work that is under way
  get, put a reference is not taken, or not dropped; a charge is not given back
  lock     a section is entered without its lock

All mutants of a place are compiled at once, each behind a switch, so that one build
serves them all: HML_MUTANT in the environment of a program, mutant= as a parameter
of the module. Survivors are compiled alone, without the switches: who gives the same
object code as the original is equivalent and dropped; not so a barrier of driver/core,
which may be more than nothing on another processor. In driver/, "once" is judged by that
only.

driver/core: unit tests (under sanitizers), then the selftests on the embedded device.
driver/: selftests on the kernel device, kernel 6.1, several mutants in one boot. A mutant
that a program does not end with, within the time of --timeout, is noticed by time.

A survivor has to be killed by a new test, or justified in selftests/mutants/justified:
a line with its id, or a pattern of ids, and why no test can or need notice it. Ids have
file, function, rule and a hash of the text, and no line numbers, so they survive edits
elsewhere. Ends with "N passed, N failed": killed, equivalent and justified mutants pass.
"""
import argparse
import concurrent.futures
import fcntl
import fnmatch
import os
import shutil
import sys

from core import CORE, Core
from driver import DRIVER, Driver, Leaks, Uml
from source import ROOT, SOURCES, Source
from verdicts import State, report, save


def arguments():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--core', action='store_true', help='mutants of driver/core')
    p.add_argument('--driver', action='store_true', help='mutants of driver/ (needs the VM of kernel 6.1)')
    p.add_argument('--file', action='append', default=[], metavar='F', help='only of this file, as "rx.c"')
    p.add_argument('--only', action='append', default=[], metavar='ID', help='only this one, or this pattern')
    p.add_argument('--rules', metavar='R,R', help='only by these rules')
    p.add_argument('--units', action='store_true', help='of the core: ask the unit tests only')
    p.add_argument('--list', action='store_true', help='id, line and text of each; nothing is built')
    p.add_argument('--report', action='store_true', help='the table again, from the state; nothing is run')
    p.add_argument('--resume', action='store_true',
                   help='leave out those whose verdict is in $BUILD/mutants/state or selftests/mutants/known')
    p.add_argument('--save', action='store_true',
                   help='with --resume or --report: write the verdicts into selftests/mutants/known, for others')
    p.add_argument('--again', action='store_true', help='with --resume: but run survivors again')
    p.add_argument('--confirm', action='store_true',
                   help='with --resume: only those of driver/ that a test has noticed, again, each in a boot of its own')
    p.add_argument('--jobs', type=int, default=1, metavar='N', help='mutants of the core at a time (1)')
    p.add_argument('--timeout', type=int, default=40, metavar='S', help='seconds a selftest may take (40)')
    p.add_argument('--batch', type=int, default=16, metavar='N', help='mutants in one boot (16)')
    p.add_argument('--boot-time', type=int, default=480, metavar='S', help='seconds a boot may take (480)')
    p.add_argument('--tests', metavar='T,T', help='ask these programs or units, not those of the file')
    p.add_argument('--uml', action='store_true',
                   help='driver/ in User-Mode Linux, at native speed (selftests/setup.sh uml); '
                   'who survives there is left for a run without')
    p.add_argument('--lockdep', action='store_true',
                   help='with --uml: on a kernel that watches locks (selftests/setup.sh uml lockdep)')
    p.add_argument('--leaks', action='store_true',
                   help='with --uml: on a kernel that sees what is left of objects (selftests/setup.sh uml leak)')
    p.add_argument('--kernel', default='6.1', metavar='NAME',
                   help='driver/ in a VM of that kernel (6.1); debug has KASAN, and fail_nth among its --tests')
    p.add_argument('--smp', type=int, default=2, metavar='N', help='processors of the guest (2)')
    p.add_argument('--module-args', default='nics=2 max_slots=2048 guesses=0', metavar='ARGS',
                   help='parameters of the module (nics=2 max_slots=2048 guesses=0)')
    p.add_argument('--limit', type=int, metavar='N', help='end after so many mutants')
    options = p.parse_args()
    if options.lockdep or options.confirm:
        # lockdep's first report is its last
        options.batch = 1
    if options.confirm and not options.resume:
        p.error('--confirm takes --resume: it asks for verdicts that are there')
    if options.lockdep and options.leaks:
        p.error('--lockdep and --leaks are two kernels: one at a time')
    if (options.lockdep or options.leaks) and not options.uml:
        p.error('--lockdep and --leaks need --uml')
    if options.uml and options.kernel != '6.1':
        p.error('--uml or --kernel: one of them')
    if not options.core and not options.driver:
        options.core = options.driver = True
    if options.save and not (options.resume or options.report):
        p.error('--save takes --resume or --report: what is known would be lost')
    return options


def select(sources, options):
    chosen = [m for s in sources for m in s.mutants]
    if options.file:
        names = [os.path.basename(f) for f in options.file]
        chosen = [m for m in chosen if os.path.basename(m.path) in names]
        chosen.sort(key=lambda m: names.index(os.path.basename(m.path)))
    if options.only:
        chosen = [m for m in chosen if any(fnmatch.fnmatchcase(m.id, o) for o in options.only)]
    if options.rules:
        chosen = [m for m in chosen if m.rule in options.rules.split(',')]
    return chosen


def run_core(sources, todo, options, state):
    core = Core(os.environ['WORK'], options)
    core.build(sources)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        def one(m):
            state.note(m, *core.judge(m))
        list(pool.map(one, todo))


def main():
    options = arguments()
    paths = [f'driver/core/{n}' for n in CORE] * options.core + \
        [f'driver/{n}' for n in DRIVER] * options.driver
    names = [os.path.basename(f) for f in options.file]
    unknown = set(names) - {os.path.basename(p) for p in paths}
    if unknown:
        sys.exit(f'mutants/run.py: no rules for {", ".join(sorted(unknown))}; see --list')
    sources = [Source(p, p.startswith('driver/core/')) for p in paths]
    SOURCES.update((s.path, s) for s in sources)
    for number, m in enumerate((m for s in sources for m in s.mutants), 1):
        m.number = number
    chosen = select(sources, options)
    if options.list:
        for m in chosen:
            print(f'{m.id}\t{m.path}:{m.line}\t{m.old}\t{m.new}')
        print(f'{len(chosen)} mutants')
        return 0
    os.environ['BUILD'] = os.path.abspath(os.environ.get('BUILD', f'{ROOT}/build'))
    os.environ['WORK'] = os.path.join(os.environ['BUILD'], 'mutants')
    os.makedirs(os.environ['WORK'], exist_ok=True)
    alone = open(os.path.join(os.environ['WORK'], 'lock'), 'w', encoding='utf-8')
    try:
        fcntl.flock(alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit(f'mutants/run.py: another one runs in {os.environ["WORK"]}; give each a BUILD of its own')
    state = State(os.path.join(os.environ['WORK'], 'state'), options.resume or options.report)
    todo = [m for m in chosen if state.is_due(m, options)][:options.limit]
    if not options.report:
        for tool in ('rsync', 'gcc', 'make', 'strip'):
            if not shutil.which(tool):
                sys.exit(f'mutants/run.py: {tool} is missing; run: selftests/setup.sh packages native')
        core = [s for s in sources if s.path.startswith('driver/core/')]
        driver = [s for s in sources if s not in core]
        mine = [m for m in todo if m.path.startswith('driver/core/')]
        if mine:
            run_core(core, mine, options, state)
        mine = [m for m in todo if not m.path.startswith('driver/core/')]
        if mine:
            kind = Leaks if options.leaks else Uml if options.uml else Driver
            machine = kind(os.environ['WORK'], options)
            machine.build(driver)
            machine.all(mine, state.note)
    if options.save:
        save(sources, state)
    return 0 if report(sources, state, {m.id for m in chosen}, len(paths) == len(CORE) + len(DRIVER)) else 1


if __name__ == '__main__':
    sys.exit(main())
