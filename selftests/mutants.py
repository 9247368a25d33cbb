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

A survivor has to be killed by a new test, or justified in selftests/mutants.justified:
a line with its id, or a pattern of ids, and why no test can or need notice it. Ids have
file, function, rule and a hash of the text, and no line numbers, so they survive edits
elsewhere. Ends with "N passed, N failed": killed, equivalent and justified mutants pass.
"""
import argparse
import concurrent.futures
import fnmatch
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CORE = ['guard.c', 'link.c', 'notify.c', 'rx.c', 'sched.c', 'tx.c', 'nic.h']
DRIVER = ['slot.c', 'terminus.c', 'ticket.c', 'area.c', 'mmap.c', 'datapath.c', 'user.c',
          'memory.c', 'watch.c', 'chardev.c', 'nq.c', 'explain.c', 'audit.c', 'netlink.c',
          'netlink_dump.c', 'netlink_event.c', 'netlink_fill.c', 'netlink_nic.c', 'nic.c',
          'engine.c', 'placement.c', 'stats.c']
# Programs that should notice a mutant of a file of the driver, likeliest first.
NOTICE = {
    'slot.c': 'uapi_size lifecycle protection hostile_ticket foreign limits hostile_watch fork_kill',
    'terminus.c': 'uapi_size lifecycle foreign gather limits hostile_admin fork_kill send_errors',
    'ticket.c': 'hostile_ticket tickets uapi_size lifecycle inherit',
    'area.c': 'uapi_size limits lifecycle foreign huge gather fork_kill',
    'mmap.c': 'hostile_mmap lifecycle huge inherit',
    'datapath.c': 'sendrecv gather lifecycle hostile_wq poll_wait threads',
    'user.c': 'limits hostile_admin hostile_share hostile_guess inherit lifecycle',
    'memory.c': 'limits lifecycle hostile_mmap',
    'watch.c': 'hostile_watch uapi_size hostile_guess lifecycle foreign',
    'chardev.c': 'uapi_size lifecycle foreign poll_wait hostile_admin inherit',
    'nq.c': 'uapi_size nq poll_wait lifecycle foreign limits',
    'explain.c': 'limits uapi_size',
    'audit.c': 'hostile_audit uapi_size lifecycle',
    'engine.c': 'sendrecv poll_wait threads hostile_share lifecycle',
    'nic.c': 'hostile_admin uapi_size lifecycle',
    'stats.c': 'hostile_admin uapi_size lifecycle',
    'placement.c': 'lifecycle',
}
NOTICE_ELSE = 'hostile_admin limits lifecycle'
# Made for survivors: asked last, by all files of the driver. After a colon: the fixture.
NEW = ['survivors:edge', 'survivors:leak']
EMBEDDED = {
    'rx.c': 'protection paranoid nq sendrecv gather tickets',
    'tx.c': 'send_errors sendrecv gather tickets protection',
    'notify.c': 'nq sendrecv threads',
    'guard.c': 'protection', 'link.c': 'hostile_segment protection', 'sched.c': 'sendrecv',
    'nic.h': 'protection gather nq',
}

SLOWEST = 'unit_property'

SKIP_IN = re.compile(r'^(static_assert|_Static_assert|BUILD_BUG_ON\w*|lockdep_\w+|sizeof)$')
FAILS = re.compile(r'return\s+-|return\s+ERR_|goto\s|return\s+false|return\s+NULL|=\s*-[A-Z]|'
                   r'-E[A-Z]{3,}|\bcontinue;|\bbreak;|return;|HAMLYN_REJECT|VM_FAULT|refuse\(')
PUT = re.compile(r'^(\w*_put(_\w+)?|put_\w+|\w*uncharge\w*|\w*free|k\w*free\w*|\w*_free_\w+|'
                 r'unpin\w*|drop_\w+|\w+_drop|fput|mmdrop|free_uid|ida_free|\w*atomic\w*_dec\w*|'
                 r'\w*atomic\w*_sub|forget|memzero_explicit|hml_guard_inherit|xa_erase|'
                 r'xa_destroy|list_del\w*|eventfd_ctx_put|vunmap|hlist_del\w*|'
                 r'strscpy_pad|unlink_slot|RCU_INIT_POINTER|\w+_destroy(_all)?|\w*_release)$')
# What has such a name and only says something.
TELLS = re.compile(r'^(trace_\w+|nla_put_\w+|put_(u32|u64|uid|string|flag|rejects|limits|in|pages)|'
                   r'get_task_comm|hml_adversary_get|wait_event\w*)$')
GET = re.compile(r'^(refcount_inc|\w*_get|get_\w+|mmgrab|\w*atomic\w*_inc|kref_get|\w*atomic\w*_add)$')
WAIT = re.compile(r'^(hml_fabric_quiesce|synchronize_\w+|cancel_\w+_sync|flush_\w+|wait_\w+|'
                  r'rcu_barrier|timer_delete_sync|hml_watch_tell|preempt_disable|kthread_stop)$')
FENCES = re.compile(r'^(smp_mb|smp_wmb|smp_rmb|barrier|hml_barrier|smp_mb__\w+)$')
LOCKS = {'mutex_lock': 'mutex_unlock', 'spin_lock': 'spin_unlock', 'spin_lock_bh': 'spin_unlock_bh',
         'spin_lock_irq': 'spin_unlock_irq', 'read_lock': 'read_unlock', 'write_lock': 'write_unlock',
         'down_read': 'up_read', 'down_write': 'up_write', 'rcu_read_lock': 'rcu_read_unlock',
         'preempt_disable': 'preempt_enable', 'hml_port_notify_enter': 'hml_port_notify_exit'}
# What stands for a call: the arguments are numbered.
RELAXED = {'smp_load_acquire': 'READ_ONCE(*({0}))', 'READ_ONCE': '({0})',
           'hml_index_nospec': '({0})', 'array_index_nospec': '({0})'}
RELAXED_STATEMENT = {'smp_store_release': 'WRITE_ONCE(*({0}), {1})',
                     'hml_store_release_mb': 'WRITE_ONCE(*({0}), {1})',
                     'rcu_assign_pointer': 'RCU_INIT_POINTER({0}, {1})',
                     'WRITE_ONCE': '{0} = {1}'}
KEYWORDS = {'if', 'else', 'for', 'while', 'do', 'return', 'goto', 'switch', 'case', 'default'}
FLIP = {'<': '<=', '<=': '<', '>': '>=', '>=': '>'}

SWITCH = '''/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HML_MUTANT_H
#define HML_MUTANT_H
#ifdef __KERNEL__
extern int hml_mutant;
#define HML_MUTANT(n) (*(volatile int *)&hml_mutant == (n))
#else
extern char *getenv(const char *name);
extern int atoi(const char *s);
static int hml_mutant_now = -1;
__attribute__((__constructor__, __unused__)) static void hml_mutant_read(void)
{
	hml_mutant_now = getenv("HML_MUTANT") ? atoi(getenv("HML_MUTANT")) : 0;
}
#define HML_MUTANT(n) (*(volatile int *)&hml_mutant_now == (n))
#endif
#endif
'''


# ---- reading C -----------------------------------------------------------------

def mask(text):
    """The text with comments, strings and preprocessor lines blanked out."""
    pattern = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|'
                         r'^[ \t]*#(?:[^\n\\]|\\\n|\\.)*', re.S | re.M)
    return pattern.sub(lambda m: re.sub(r'[^\n]', ' ', m.group()), text)


TOKEN = re.compile(r'[A-Za-z_]\w*|\d\w*|<<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||'
                   r'[-+*/%&|^]=|[^\s\w]')


class Token:
    __slots__ = ('text', 'start', 'end', 'pair')

    def __init__(self, match):
        self.text, self.start, self.end, self.pair = match.group(), match.start(), match.end(), None


def functions(masked):
    """(name, start, end) of every function's body."""
    for brace in re.finditer(r'^\{', masked, re.M):
        end = masked.find('\n}', brace.start())
        head = masked[:brace.start()]
        head = head[max(head.rfind(';'), head.rfind('}')) + 1:]
        name = re.search(r'(\w+)\s*\(', head)
        if name and end > 0:
            yield name.group(1), brace.start(), end + 2


def tokens_of(masked, start, end):
    tokens = [Token(m) for m in TOKEN.finditer(masked, start, end)]
    stack = []
    for i, token in enumerate(tokens):
        if token.text in '([{':
            stack.append(i)
        elif token.text in ')]}' and stack:
            token.pair = stack.pop()
            tokens[token.pair].pair = i
    return tokens


# ---- rules ---------------------------------------------------------------------

class Part:
    """A piece of text, and what takes its place in a mutant."""

    def __init__(self, start, end, kind, new='', args=(), order=5):
        self.start, self.end, self.kind, self.new = start, end, kind, new
        self.args, self.order = args, order


class Mutant:
    def __init__(self, path, function, rule, line, old, new, parts):
        self.path, self.function, self.rule, self.line = path, function, rule, line
        self.old, self.new, self.parts = old, new, parts
        self.id, self.number = None, None


ENDS_LEFT = {'(', '[', '{', '}', ';', ',', '=', '+=', '-=', '|=', '&=', '?', ':', 'return'}
ENDS_RIGHT = {')', ']', '}', ';', ',', '?', ':'}


class Finder:
    """Finds the mutants of one function."""

    def __init__(self, source, function, start, end, core):
        self.source, self.function, self.core = source, function, core
        self.tokens = tokens_of(source.masked, start, end)
        self.found = []

    def text(self, start, end):
        return ' '.join(self.source.text[start:end].split())

    def add(self, rule, start, end, new, parts, context=None):
        line = self.source.text.count('\n', 0, start) + 1
        old = self.text(*(context or (start, end)))
        self.found.append(Mutant(self.source.path, self.function, rule, line, old, new, parts))

    def left(self, i, more=()):
        """First token of the expression that ends before token i."""
        while i > 0:
            token = self.tokens[i - 1]
            if token.text in ')]' and token.pair is not None:
                i = token.pair
                continue
            if token.text in ENDS_LEFT or token.text in more:
                break
            i -= 1
        return i

    def right(self, i, more=()):
        """Last token of the expression that begins behind token i."""
        while i + 1 < len(self.tokens):
            token = self.tokens[i + 1]
            if token.text in '([' and token.pair is not None:
                i = token.pair
                continue
            if token.text in ENDS_RIGHT or token.text in more:
                break
            i += 1
        return i

    def compiled_time(self, i):
        """Is it in something that is not run?"""
        depth = i
        while depth > 0:
            depth -= 1
            token = self.tokens[depth]
            if token.text in ')]}' and token.pair is not None:
                depth = token.pair
            elif token.text == '(' and depth and SKIP_IN.match(self.tokens[depth - 1].text):
                return True
        return False

    def span(self, first, last):
        return self.tokens[first].start, self.tokens[last].end

    def constant(self, rule, first, last, value, context=None, order=5):
        start, end = self.span(first, last)
        self.add(rule, start, end, f'{self.text(start, end)} => {value}',
                 [Part(start, end, 'constant', value, order=order)], context)

    def split(self, first, last, operator):
        """Operands of an operator at the top level of an expression."""
        operands, begin, i = [], first, first
        while i <= last:
            token = self.tokens[i]
            if token.text in '([{' and token.pair is not None:
                i = token.pair
            elif token.text == operator:
                operands.append((begin, i - 1))
                begin = i + 1
            i += 1
        operands.append((begin, last))
        return operands

    def drop(self, first, last):
        context = self.span(first, last)
        either = self.split(first, last, '||')
        for one in either:
            if len(either) > 1:
                self.constant('drop', *one, '0', context, 3)
            both = self.split(*one, '&&')
            for two in both:
                if len(both) > 1:
                    self.constant('drop', *two, '1', context, 4)

    def operators(self):
        seen = set()
        for i, token in enumerate(self.tokens):
            if token.text in ('||', '&&') and not self.compiled_time(i):
                span = self.left(i), self.right(i)
                if span not in seen:
                    seen.add(span)
                    self.drop(*span)
            elif token.text in FLIP and not self.compiled_time(i):
                self.edge(i)
            elif token.text == '?' and self.tokens[i + 1].text != ':':
                first = self.left(i)
                self.constant('never', first, i - 1, '0', None, 1)
                self.constant('always', first, i - 1, '1', None, 2)

    def edge(self, i):
        more = ('&&', '||', '==', '!=')
        first, last = self.left(i, more), self.right(i, more)
        if first == i or last == i:
            return
        start, end = self.span(first, last)
        flipped = FLIP[self.tokens[i].text]
        args = (self.span(first, i - 1), self.span(i + 1, last))
        self.add('edge', start, end, flipped,
                 [Part(start, end, 'edge', flipped, args + (self.tokens[i].text,), 9)])

    def body(self, i):
        """Text of the statement that begins at token i."""
        if self.tokens[i].text == '{':
            return self.source.masked[self.tokens[i].start:self.tokens[self.tokens[i].pair].end]
        j = i
        while self.tokens[j].text != ';':
            j = self.tokens[j].pair if self.tokens[j].text in '({[' else j + 1
        return self.source.masked[self.tokens[i].start:self.tokens[j].end]

    def conditions(self):
        for i, token in enumerate(self.tokens):
            if token.text == 'if' and self.tokens[i + 1].text == '(':
                first, last = i + 2, self.tokens[i + 1].pair - 1
                check = FAILS.search(self.body(last + 2))
                if check or self.core:
                    self.constant('check' if check else 'branch', first, last, '0', None, 1)
                if self.core:
                    self.constant('always', first, last, '1', None, 2)
            elif token.text == 'return':
                self.returned(i)

    def returned(self, i):
        last = self.right(i)
        if last == i or self.tokens[last + 1].text != ';':
            return
        top = {self.tokens[k].text for k in self.top(i + 1, last)}
        if top & {'==', '!=', '<', '>', '<=', '>=', '&&', '||'}:
            self.constant('never', i + 1, last, '0', None, 1)
            self.constant('always', i + 1, last, '1', None, 2)

    def top(self, first, last):
        i = first
        while i <= last:
            yield i
            if self.tokens[i].text in '([{' and self.tokens[i].pair is not None:
                i = self.tokens[i].pair
            i += 1

    def statement(self, i):
        """Token of the semicolon, if a statement begins at token i."""
        before = self.tokens[i - 1].text if i else '{'
        if not re.match(r'[A-Za-z_*(]', self.tokens[i].text) or self.tokens[i].text in KEYWORDS:
            return None
        if before not in ('{', '}', ';', ')', 'else', ':'):
            return None
        if before == ')':
            word = self.tokens[self.tokens[i - 1].pair - 1].text
            if word not in ('if', 'while', 'for') and 'for_each' not in word:
                return None
        j = i
        while j < len(self.tokens) and self.tokens[j].text != ';':
            if self.tokens[j].text in ')}':	# the third part of a "for"
                return None
            j = self.tokens[j].pair if self.tokens[j].text in '([{' else j
            j += 1
        return j if j < len(self.tokens) else None

    def gone(self, rule, i, last):
        start, end = self.span(i, last)
        self.add(rule, start, end, '', [Part(start, end, 'gone')])

    def arguments(self, i):
        inner = self.split(i + 2, self.tokens[i + 1].pair - 1, ',')
        return [self.span(*a) for a in inner if a[0] <= a[1]]

    def calls(self):
        for i, token in enumerate(self.tokens[:-1]):
            called = re.match(r'[A-Za-z_]', token.text) and self.tokens[i + 1].text == '('
            last = self.statement(i)
            if called and last is not None and self.tokens[i + 1].pair == last - 1:
                self.called(i, token.text, last)
            elif called and token.text in RELAXED:
                self.relaxed(i, token.text)
            elif last is not None and not called and \
                    re.search(r'(--|\+\+|-= \w+);$', self.text(*self.span(i, last))) and \
                    re.search(r'ref|users|count|used|pages|wired', self.text(*self.span(i, last))):
                up = '++;' in self.text(*self.span(i, last))
                self.gone('get' if up else 'put', i, last)

    def called(self, i, name, last):
        if name in RELAXED_STATEMENT:
            start, end = self.span(i, last - 1)
            new = RELAXED_STATEMENT[name]
            self.add('once' if name == 'WRITE_ONCE' else 'barrier', start, end, new,
                     [Part(start, self.tokens[last].end, 'statement', new, self.arguments(i))])
            return
        if TELLS.match(name):
            return
        for pattern, rule in ((FENCES, 'barrier'), (WAIT, 'wait'), (PUT, 'put'), (GET, 'get')):
            if pattern.match(name) and name not in LOCKS and name not in LOCKS.values():
                self.gone(rule, i, last)
                return
        if name in LOCKS:
            self.section(i, name, last)

    def relaxed(self, i, name):
        start, end = self.span(i, self.tokens[i + 1].pair)
        rule = {'READ_ONCE': 'once', 'smp_load_acquire': 'barrier'}.get(name, 'nospec')
        self.add(rule, start, end, RELAXED[name],
                 [Part(start, end, 'call', RELAXED[name], self.arguments(i))])

    def section(self, i, name, last):
        """A lock, and the unlocks up to the next lock."""
        what = self.text(*self.span(i + 1, last))
        parts = [Part(*self.span(i, last), 'gone')]
        for j in range(last, len(self.tokens) - 1):
            if self.tokens[j].text in (name, LOCKS[name]) and self.tokens[j + 1].text == '(':
                end = self.statement(j)
                if end is None or self.text(*self.span(j + 1, end)) != what:
                    continue
                if self.tokens[j].text == name:
                    break
                parts.append(Part(*self.span(j, end), 'gone'))
        if len(parts) > 1:
            self.add('lock', parts[0].start, parts[0].end, '', parts)

    def all(self):
        self.conditions()
        self.operators()
        self.calls()
        return self.found


class Source:
    """A file, its mutants, and the texts that they give."""

    def __init__(self, path, core):
        self.path, self.core = path, core
        with open(os.path.join(ROOT, path), encoding='utf-8') as f:
            self.text = f.read()
        self.masked = mask(self.text)
        self.mutants = []
        for name, start, end in functions(self.masked):
            self.mutants += Finder(self, name, start, end, core).all()
        self.name_them()

    def name_them(self):
        count = {}
        unique = {}
        for m in self.mutants:	# "return a && b;" is found by two rules
            key = tuple((p.start, p.end, p.kind, p.new) for p in m.parts)
            unique.setdefault(key, m)
        self.mutants = list(unique.values())
        for m in self.mutants:
            text = f'{m.rule}|{m.old}|{m.new}'
            base = (f'{os.path.basename(m.path)}:{m.function}:{m.rule}:'
                    f'{hashlib.sha1(text.encode()).hexdigest()[:6]}')
            count[base] = count.get(base, 0) + 1
            m.id = base if count[base] == 1 else f'{base}.{count[base]}'

    def render(self, start, end, parts, make):
        out, at = [], start
        parts = sorted(parts, key=lambda p: (p.start, -p.end, p.order))
        while parts:
            part = parts.pop(0)
            inner = [p for p in parts if p.end <= part.end]
            parts = [p for p in parts if p.end > part.end]
            out.append(self.text[at:part.start])
            out.append(make(part, lambda a, b, inner=inner: self.render(
                a, b, [p for p in inner if p.start >= a and p.end <= b], make)))
            at = part.end
        out.append(self.text[at:end])
        return ''.join(out)

    def alone(self, mutant):
        """The text with one mutant, as somebody would have written it."""
        def make(part, inner):
            if part.kind == 'constant':
                return part.new
            if part.kind == 'edge':
                return f'{inner(*part.args[0])} {part.new} {inner(*part.args[1])}'
            new = part.new.format(*(self.text[a:b] for a, b in part.args))
            lines = self.text.count('\n', part.start, part.end) - new.count('\n')
            return new + (';' if part.kind in ('gone', 'statement') else '') + '\n' * lines
        return self.render(0, len(self.text), mutant.parts, make)

    def switched(self, include):
        """The text with all mutants, each behind a switch."""
        numbers = {id(p): m.number for m in self.mutants for p in m.parts}
        parts = [p for m in self.mutants if m.rule != 'once' or self.core for p in m.parts]

        def make(part, inner):
            on = f'HML_MUTANT({numbers[id(part)]})'
            if part.kind == 'constant':
                return f'({on} ? {part.new} : !!({inner(part.start, part.end)}))'
            if part.kind == 'edge':
                a, b = inner(*part.args[0]), inner(*part.args[1])
                return f'({on} ? ({a}) {part.new} ({b}) : ({a}) {part.args[2]} ({b}))'
            new = part.new.format(*(self.text[a:b] for a, b in part.args))
            old = self.text[part.start:part.end]
            if part.kind == 'call':
                return f'({on} ? {new} : {old})'
            if part.kind == 'gone':
                return f'do {{ if (!{on}) {{ {old} }} }} while (0);'
            return f'do {{ if ({on}) {{ {new}; }} else {{ {old} }} }} while (0);'
        return f'#include "{include}"\n#line 1\n' + self.render(0, len(self.text), parts, make)


# ---- the two places where mutants are run ---------------------------------------

def run(command, log, **kwargs):
    with open(log, 'wb') as f:
        return subprocess.run(command, stdout=f, stderr=subprocess.STDOUT, check=False, **kwargs).returncode


def copy_tree(to, own=()):
    """What is of its own there stays as it is, for make."""
    os.makedirs(to, exist_ok=True)
    keep = [f'--exclude=/{path}' for path in own if os.path.exists(f'{to}/{path}')]
    for part in ('Makefile', 'driver', 'uapi', 'libhamlyn', 'selftests', 'tools', 'Kconfig'):
        subprocess.run(['rsync', '-rlp', '--checksum', '--delete', '--exclude=*.o', '--exclude=*.cmd',
                        *keep, os.path.join(ROOT, part), to + '/'], check=True)


def write_changed(path, text):
    """Keeps the time of what is the same, for make."""
    if os.path.exists(path):
        with open(path, encoding='utf-8') as f:
            if f.read() == text:
                return
    with open(path, 'w', encoding='utf-8') as f:
        f.write(text)


def program_of(test):
    return test.split(':')[0]


def losers(line):
    m = re.match(r'not ok [0-9]* ?-? ?(.*)', line.strip())
    return m.group(1) if m else None


def object_of(command, cwd, source, text, out):
    """Object code without debugging information, or None if there is none."""
    with open(source, 'w', encoding='utf-8') as f:
        f.write(text)
    if subprocess.run(command + ['-o', out], cwd=cwd, check=False, stdout=subprocess.DEVNULL,
                      stderr=subprocess.DEVNULL).returncode:
        return None
    subprocess.run(['strip', '-d', out], check=True)
    with open(out, 'rb') as f:
        return f.read()


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
                sys.exit(f'mutants.py: without a mutant {unit} fails: {lost}')
            self.limits[unit] = 10 + 5 * (time.time() - began)
        copy_tree(self.plain)

    def make(self, targets):
        log = f'{self.work}/core-build.log'
        if run(['make', '-s', '-C', self.tree, 'BUILD=build', 'CFLAGS=-O2 -w', *targets], log):
            sys.exit(f'mutants.py: driver/core with switches does not build, see {log}')

    def find_units(self):
        """Which units include which file of the core."""
        folder = f'{self.tree}/selftests/unit'
        texts = {n: open(f'{folder}/{n}', encoding='utf-8').read() for n in os.listdir(folder)}
        world = set(re.findall(r'#include "(\w+\.c)"', texts['unit_world.h']))
        for name, text in texts.items():
            if re.match(r'unit_\w+\.c$', name):
                core = set(re.findall(r'#include "(\w+\.c)"', text))
                if 'unit_world.h"' in text:
                    core |= world
                self.units[name[:-2]] = core

    def programs(self, path):
        name = os.path.basename(path)
        mine = [u for u, files in self.units.items() if name in files or (name == 'nic.h' and files)]
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
                           '-Ilibhamlyn/include', '-Ilibhamlyn/src', '-Idriver/core', user]
                out = f'{self.work}/alone.o'
                if (user, mutant.path) not in self.base:
                    self.base[user, mutant.path] = object_of(command, self.plain, changed, source.text, out)
                new = object_of(command, self.plain, changed, source.alone(mutant), out)
                if new != self.base[user, mutant.path]:
                    write_changed(changed, source.text)
                    return False
            write_changed(changed, source.text)
            return True


class Driver:
    """driver/: one module with all mutants, many of them in a boot."""

    def __init__(self, work, options):
        self.work, self.options = work, options
        self.tree = os.path.join(work, 'driver')
        self.out = os.path.join(work, 'module')
        self.base = {}

    def build(self, sources):
        copy_tree(self.tree, [s.path for s in sources] + ['driver/core/mutant.h', 'driver/main.c'])
        write_changed(f'{self.tree}/driver/core/mutant.h', SWITCH)
        for source in sources:
            write_changed(f'{self.tree}/{source.path}', source.switched('core/mutant.h'))
        with open(f'{ROOT}/driver/main.c', encoding='utf-8') as f:
            write_changed(f'{self.tree}/driver/main.c', f.read() + '\nint hml_mutant;\n'
                          'module_param_named(mutant, hml_mutant, int, 0400);\n')
        log = f'{self.work}/module-build.log'
        if run(['selftests/vm/build-module.sh', '6.1', self.tree, self.out], log, cwd=ROOT):
            sys.exit(f'mutants.py: the module with switches does not build, see {log}')
        subprocess.run(['strip', '-d', '-o', f'{self.work}/hamlyn.ko', f'{self.out}/hamlyn.ko'], check=True)
        tests = sorted({t for s in sources for t in self.tests(s.path)})
        log = f'{self.work}/tests-build.log'
        self.bins = os.path.join(os.environ['BUILD'], 'selftests')
        if run(['make', '-s', f'BUILD={os.environ["BUILD"]}',
                *sorted({f'{self.bins}/{program_of(t)}' for t in tests})], log, cwd=ROOT):
            sys.exit(f'mutants.py: the tests do not build, see {log}')

    def tests(self, path):
        names = NOTICE.get(os.path.basename(path), NOTICE_ELSE).split() + NEW
        if self.options.tests:
            names = self.options.tests.split(',')
        return [n for n in names if os.path.exists(f'{ROOT}/selftests/{program_of(n)}.c')]

    def script(self, batch, tests=None):
        lines = ['cd /host']
        for m in batch:
            # Enough for what tests need; as mutate.sh. A program that fails is the last one.
            lines.append(f'''echo "MUTANT {m.number}"
insmod ./hamlyn.ko mutant={m.number} {self.options.module_args} || echo "not ok 1 - the module loads"
for test in {' '.join(tests or self.tests(m.path))}; do
	only=
	[ "${{test#*:}}" = "$test" ] || only="-f ${{test#*:}}"
	lost=$( (HAMLYN_DEVICE=/dev/hamlyn0 timeout {self.options.timeout} ./${{test%:*}} $only 2>&1; echo "rc $?") |
		tr -d '\\r' | grep -m 1 -E '^not ok|^rc ([1-35-9]|[1-9][0-9])')
	echo "# $test $(cut -d. -f1 /proc/uptime)"
	[ -z "$lost" ] || {{ echo "not ok 1 - $test: ${{lost#not ok [0-9]* }}"; break; }}
done
rmmod hamlyn || {{ echo "not ok 1 - the module unloads"; exit 1; }}
echo "END {m.number}"''')
        return '\n'.join(lines) + '\n'

    def boot(self, batch):
        """{number: noticed by or None}; a number is missing if it did not get its turn."""
        path = f'{self.work}/script'
        with open(path, 'w', encoding='utf-8') as f:
            f.write(self.script(batch))
        return self.read(batch, *self.start(sorted({t for m in batch for t in self.tests(m.path)})))

    def start(self, tests):
        """What was said in the guest, and the exit status."""
        files = ['--file', f'{self.work}/hamlyn.ko']
        for test in sorted({program_of(t) for t in tests}):
            files += ['--file', f'{self.bins}/{test}']
        limit = 60 + self.options.boot_time
        log = f'{self.work}/boot.log'
        out = f'{self.work}/boot'
        rc = run(['selftests/vm/run.sh', '6.1', '--smp', str(self.options.smp),
                  '--timeout', str(limit), '--out', out, '--script', f'{self.work}/script', *files], log, cwd=ROOT)
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
        """Without a mutant all tests pass, and in what time."""
        tests = dict.fromkeys(t for m in mutants for t in self.tests(m.path))
        tests = [t for t in tests if t not in self.passed()]
        if not tests:
            return
        nobody = Mutant('', '', '', 0, '', '', [])
        nobody.number = 0
        with open(f'{self.work}/script', 'w', encoding='utf-8') as f:
            f.write(self.script([nobody], tests))
        text, _ = self.start(tests)
        if 'END 0' not in text or 'not ok' in text:
            sys.exit('mutants.py: without a mutant not all tests pass:\n' + text[-2000:])
        with open(f'{self.work}/passed', 'a', encoding='utf-8') as f:
            f.write('\n'.join(tests) + '\n')

    def passed(self):
        try:
            with open(f'{self.work}/passed', encoding='utf-8') as f:
                return f.read().split()
        except OSError:
            return []

    def all(self, mutants, note):
        todo = []
        for m in mutants:
            if m.rule in ('once', 'barrier', 'nospec') and self.alike(m):
                note(m, 'equivalent', '')
            elif m.rule == 'once':
                note(m, 'survived', '')
            else:
                todo.append(m)
        self.sound([m for m in todo])
        empty = 0
        while todo and empty < 3:
            batch = todo[:self.options.batch]
            result = self.boot(batch)
            empty = 0 if result else empty + 1
            for m in batch:
                if m.number not in result:
                    continue
                todo.remove(m)
                lost = result[m.number]
                if lost:
                    note(m, 'killed', lost)
                elif self.alike(m):
                    note(m, 'equivalent', '')
                else:
                    note(m, 'survived', '')

    def compiler(self, path):
        """The command by which kbuild has compiled a file."""
        folder, name = os.path.split(f'{self.out}/src/{path}')
        with open(f'{folder}/.{name[:-2]}.o.cmd', encoding='utf-8') as f:
            line = f.readline()
        command = line.split(':=', 1)[1].split(';')[0].strip()
        return re.sub(r' -o \S+ ', ' ', re.sub(r'-Wp,-MMD,\S+', '', command)) + ' -g0 -w'

    def alike(self, m):
        """Does it compile to the same object code? False too if that is not known."""
        if not m.path.endswith('.c'):
            return False
        source = SOURCES[m.path]
        place = f'{self.out}/src/{m.path}'
        with open(place, encoding='utf-8') as f:
            kept = f.read()
        command = ['sh', '-c', self.compiler(m.path) + ' "$@"', 'sh']
        with open(f'{self.out}/kernel', encoding='utf-8') as f:
            release = f.read().strip()
        headers = subprocess.run(['bash', '-c', '. selftests/vm/lib.sh; kernel_dir 6.1'], cwd=ROOT,
                                 check=True, capture_output=True, text=True).stdout.strip()
        cwd = f'{headers}/root/usr/src/linux-headers-{release}'
        try:
            if m.path not in self.base:
                self.base[m.path] = object_of(command, cwd, place, source.text, f'{self.work}/alone.o')
            new = object_of(command, cwd, place, source.alone(m), f'{self.work}/alone.o')
        finally:
            write_changed(place, kept)
        if self.base[m.path] is None:
            sys.exit(f'mutants.py: cannot compile {m.path} alone: {command[2][:200]}')
        return new is not None and new == self.base[m.path]


# ---- what is known of each ------------------------------------------------------

SOURCES = {}


def justifications():
    """[(pattern of ids, reason)]; a reason goes on in lines that begin with a blank."""
    found = []
    try:
        with open(f'{ROOT}/selftests/mutants.justified', encoding='utf-8') as f:
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


class State:
    """One line of JSON a mutant: what became of it."""

    def __init__(self, path, resume):
        self.path, self.known = path, {}
        if resume and os.path.exists(path):
            with open(path, encoding='utf-8') as f:
                for line in f:
                    entry = json.loads(line)
                    self.known[entry['id']] = entry
        elif os.path.exists(path):
            os.rename(path, path + '.old')
        self.lock = threading.Lock()

    def note(self, mutant, verdict, by):
        entry = {'id': mutant.id, 'verdict': verdict, 'by': by}
        with self.lock:
            self.known[mutant.id] = entry
            with open(self.path, 'a', encoding='utf-8') as f:
                f.write(json.dumps(entry) + '\n')
            print(f'{verdict:10} {mutant.id}  {by}'[:160], flush=True)


def report(sources, state, chosen):
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
    if stale and len(SOURCES) == len(CORE) + len(DRIVER):
        for pattern in stale:
            print(f'stale: {pattern} in mutants.justified fits no mutant')
        total['open'] += len(stale)
    passed = total['killed'] + total['equivalent'] + total['justified']
    print(f"{passed} passed, {total['open']} failed" +
          (f", {total['not run']} not run" if total['not run'] else ''))
    return total['open'] == 0


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
                   help='leave out those whose verdict is in $BUILD/mutants/state')
    p.add_argument('--again', action='store_true', help='with --resume: but run survivors again')
    p.add_argument('--jobs', type=int, default=1, metavar='N', help='mutants of the core at a time (1)')
    p.add_argument('--timeout', type=int, default=40, metavar='S', help='seconds a selftest may take (40)')
    p.add_argument('--batch', type=int, default=16, metavar='N', help='mutants in one boot (16)')
    p.add_argument('--boot-time', type=int, default=480, metavar='S', help='seconds a boot may take (480)')
    p.add_argument('--tests', metavar='T,T', help='ask these programs or units, not those of the file')
    p.add_argument('--smp', type=int, default=2, metavar='N', help='processors of the guest (2)')
    p.add_argument('--module-args', default='nics=2 max_slots=2048 guesses=0', metavar='ARGS',
                   help='parameters of the module (nics=2 max_slots=2048 guesses=0)')
    p.add_argument('--limit', type=int, metavar='N', help='end after so many mutants')
    options = p.parse_args()
    if not options.core and not options.driver:
        options.core = options.driver = True
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
        sys.exit(f'mutants.py: no rules for {", ".join(sorted(unknown))}; see --list')
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
    state = State(os.path.join(os.environ['WORK'], 'state'), options.resume or options.report)
    todo = [m for m in chosen if m.id not in state.known or
            (options.again and state.known[m.id]['verdict'] == 'survived')][:options.limit]
    if not options.report:
        for tool in ('rsync', 'gcc', 'make', 'strip'):
            if not shutil.which(tool):
                sys.exit(f'mutants.py: {tool} is missing; run: selftests/setup.sh packages native')
        core = [s for s in sources if s.path.startswith('driver/core/')]
        driver = [s for s in sources if s not in core]
        mine = [m for m in todo if m.path.startswith('driver/core/')]
        if mine:
            run_core(core, mine, options, state)
        mine = [m for m in todo if not m.path.startswith('driver/core/')]
        if mine:
            machine = Driver(os.environ['WORK'], options)
            machine.build(driver)
            machine.all(mine, state.note)
    return 0 if report(sources, state, {m.id for m in chosen}) else 1


if __name__ == '__main__':
    sys.exit(main())
