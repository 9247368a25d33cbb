# SPDX-License-Identifier: GPL-2.0-only
"""What the core and the driver have in common: trees, object code, verdicts of tests."""
import os
import re
import subprocess

from source import ROOT

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


def source_of(program):
    """Of a test program, in whichever folder of selftests/ it is; None if there is none."""
    for folder, _, names in os.walk(f'{ROOT}/selftests'):
        if f'{program}.c' in names:
            return os.path.join(folder, f'{program}.c')
    return None


def program_of(test):
    return test.split(':')[0]


def losers(line):
    # User-Mode Linux's own, on a busy host: its idle task, and interrupts that nobody wants.
    if re.search(r'WARNING: kernel/(sched/.* swapper/|irq/manage\.c)', line):
        return None
    m = re.match(r'not ok [0-9]* ?-? ?(.*)', line.strip()) or \
        re.search(r'\] (WARNING: .*|BUG: .*)', line)
    return m.group(1)[:120] if m else None


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
