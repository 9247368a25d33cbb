# SPDX-License-Identifier: GPL-2.0-only
"""Reads C, finds mutants by rules, and writes the texts that they give."""
import hashlib
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# By path, filled by run.py
SOURCES = {}

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
WAIT = re.compile(r'^(hml_grace_wait|synchronize_\w+|cancel_\w+_sync|flush_\w+|wait_\w+|'
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

# ---- reading C -----------------------------------------------------------------

def mask(text):
    """The text with comments, strings and preprocessor lines blanked out."""
    pattern = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|'
                         r'^[ \t]*#(?:[^\n\\]|\\\n|\\.)*', re.S | re.M)
    # A character is an operand: without it there is an operator with nothing behind it
    return pattern.sub(lambda m: re.sub(r'[^\n]', 'C' if m.group()[0] == "'" else ' ', m.group()), text)


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
