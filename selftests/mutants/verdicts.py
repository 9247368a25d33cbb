# SPDX-License-Identifier: GPL-2.0-only
"""What is known of each mutant."""
import fnmatch
import json
import os
import re
import threading

from source import ROOT, SOURCES

KNOWN = f'{ROOT}/selftests/mutants/known'


def justifications():
    """[(pattern of ids, reason)]; a reason goes on in lines that begin with a blank."""
    found = []
    try:
        with open(f'{ROOT}/selftests/mutants/justified', encoding='utf-8') as f:
            for line in f:
                if line.startswith('#') or not line.strip():
                    continue
                if line[0] in ' \t' and found:
                    found[-1][1] += ' ' + line.strip()
                else:
                    pattern, _, reason = line.strip().partition(' ')
                    found.append([pattern, reason.strip()])
    except FileNotFoundError:
        pass
    return found


def justified(name, reasons):
    for pattern, reason in reasons:
        if name == pattern or fnmatch.fnmatchcase(name, pattern):
            return reason
    return None


def saved():
    """{id: entry} of selftests/mutants/known."""
    found = {}
    try:
        with open(KNOWN, encoding='utf-8') as f:
            for line in f:
                if line.strip() and not line.startswith('#'):
                    name, verdict, by = line.rstrip('\n').split('\t')
                    found[name] = {'id': name, 'verdict': verdict, 'by': by}
    except FileNotFoundError:
        pass
    return found


def save(sources, state):
    """What is known of the mutants there are, each with the program that notices it."""
    mine = {os.path.basename(s.path) for s in sources}
    with open(KNOWN, encoding='utf-8') as f:
        kept = [line for line in f if line.startswith('#') or line.split(':')[0] not in mine]
    with open(KNOWN, 'w', encoding='utf-8') as f:
        f.writelines(kept)
        for m in (m for s in sources for m in s.mutants if m.id in state.known):
            entry = state.known[m.id]
            by = entry['by'].split()[0].strip('():') if entry['verdict'] == 'killed' else ''
            f.write(f"{m.id}\t{entry['verdict']}\t{by}\n")


class State:
    """One line of JSON a mutant: what became of it."""

    def __init__(self, path, resume):
        self.path, self.known = path, saved() if resume else {}
        if resume and os.path.exists(path):
            with open(path, encoding='utf-8') as f:
                for line in f:
                    entry = json.loads(line)
                    self.known[entry['id']] = entry
        elif os.path.exists(path):
            os.rename(path, path + '.old')
        self.lock = threading.Lock()

    def is_due(self, mutant, options):
        entry = self.known.get(mutant.id)
        if options.confirm:
            # A program and its test; the kernel's own words, and leak-lib's, need no second boot
            test = entry and re.match(r'[a-z]\w+(:\w+)?(: |$)', entry['by'])
            return bool(test) and entry['verdict'] == 'killed' and not mutant.path.startswith('driver/core/')
        return not entry or options.again and entry['verdict'] == 'survived'

    def note(self, mutant, verdict, by):
        entry = {'id': mutant.id, 'verdict': verdict, 'by': by}
        with self.lock:
            self.known[mutant.id] = entry
            with open(self.path, 'a', encoding='utf-8') as f:
                f.write(json.dumps(entry) + '\n')
            print(f'{verdict:10} {mutant.id}  {by}'[:160], flush=True)


def report(sources, state, chosen, whole):
    reasons = justifications()
    columns = ['generated', 'equivalent', 'killed', 'justified', 'open', 'not run']
    print('\n{:28}'.format('file') + ''.join(f'{c:>12}' for c in columns))
    total = dict.fromkeys(columns, 0)
    left = []
    for source in sources:
        row = dict.fromkeys(columns, 0)
        for m in source.mutants:
            if m.id not in chosen:
                continue
            row['generated'] += 1
            verdict = state.known.get(m.id, {}).get('verdict', 'not run')
            if verdict == 'survived':
                verdict = 'justified' if justified(m.id, reasons) else 'open'
            row[verdict] += 1
            if verdict == 'open':
                left.append(m)
        if not row['generated']:
            continue
        for c in columns:
            total[c] += row[c]
        print(f'{source.path:28}' + ''.join(f'{row[c]:12}' for c in columns))
    print('{:28}'.format('all') + ''.join(f'{total[c]:12}' for c in columns))
    for m in left:
        print(f'open: {m.id}  {m.path}:{m.line}: {m.old[:70]}  ->  {m.new[:50]}')
    known = {m.id for s in SOURCES.values() for m in s.mutants}
    stale = [p for p, _ in reasons if not any(fnmatch.fnmatchcase(i, p) for i in known)]
    if whole:
        for pattern in stale:
            print(f'stale: {pattern} in justified fits no mutant')
        total['open'] += len(stale)
    passed = total['killed'] + total['equivalent'] + total['justified']
    print(f"{passed} passed, {total['open']} failed" +
          (f", {total['not run']} not run" if total['not run'] else ''))
    return total['open'] == 0
