#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Writes one small function for each form of an instruction that hamlyn-tempest-cc checks,
with what it takes the instruction to do with memory, for forms.c, which has the processor
tell what it does.

  forms.py AS INSN_C OUT_S

AS is the assembler of hamlyn-tempest-cc, INSN_C its tables, which the names are from."""
import os
import re
import subprocess
import sys
import tempfile

GENERAL = ["%al", "%ax", "%eax", "%rax"]
CONDITIONS = ["e", "ne", "a", "ae", "b", "be", "g", "ge", "l", "le", "s", "ns", "p", "np", "o", "no"]
PREDICATES = ["eq", "lt", "le", "unord", "neq", "nlt", "nle", "ord"]


def templates():
    """Ways to write operands, one of them in memory"""
    yield "M"
    yield "$1, M"
    for r in GENERAL:
        yield f"M, {r}"
        yield f"{r}, M"
        yield f"$1, M, {r}"
        yield f"$1, {r}, M"
        yield f"%cl, {r}, M"
        yield f"M, {r}, %rdx"
        yield f"M, {r}, %edx"
        yield f"{r}, M, {r}"
    yield "%cl, M"
    for v in "%xmm1", "%ymm1":
        w = v.replace("1", "2")
        for form in ("M, {v}", "{v}, M", "$1, M, {v}", "$1, {v}, M", "%xmm0, M, {v}",
                     "M, {v}, {w}", "$1, M, {v}, {w}", "{v}, M, {w}, {v}"):
            yield form.format(v=v, w=w)
    for r in "%eax", "%rax":
        yield f"M, {r}, %xmm1"


def names(insn_c):
    """Those of the tables, as they are, with a suffix, and with a v in front"""
    with open(insn_c, encoding="ascii") as source:
        tables = source.read().split("#define TABLE")[0]
    bare = set()
    for entry in re.findall(r'\{\s*((?:"[^"]*"\s*)+),', tables):
        bare.update(" ".join(re.findall(r'"([^"]*)"', entry)).split())
    bare.update("cmov" + c for c in CONDITIONS)
    bare.update("set" + c for c in CONDITIONS)
    bare.update("mov" + way + a + b for way in "zs" for a in "bwl" for b in "wlq")
    bare.update("cmp" + p + t for p in PREDICATES for t in ("ps", "pd", "ss", "sd"))
    bare.update("bt" + k for k in ("", "s", "r", "c"))
    bare.update(k + way + t for k in ("fmadd", "fmsub", "fnmadd", "fnmsub")
                for way in ("132", "213", "231") for t in ("ps", "pd", "ss", "sd"))
    for name in sorted(bare):
        yield name
        yield "v" + name
        for suffix in "bwlq":
            yield name + suffix


def assembles(statements):
    """Which of them the assembler takes: those in no error's line"""
    with tempfile.TemporaryDirectory() as work:
        path = os.path.join(work, "all.s")
        with open(path, "w", encoding="ascii") as out:
            out.write("".join(f"\t{s}\n" for s in statements))
        ran = subprocess.run(["as", "--no-warn", "-o", "/dev/null", path], text=True,
                             capture_output=True, check=False)
    bad = {int(n) for n in re.findall(r"all\.s:(\d+): Error", ran.stderr)}
    return [s for i, s in enumerate(statements) if i + 1 not in bad]


def checked(compiler_as, statements):
    """What becomes of them: for each that is checked, offset of the second look, and the tag"""
    with tempfile.TemporaryDirectory() as work:
        source, kept, fake = (os.path.join(work, n) for n in ("in.s", "kept.s", "fake"))
        with open(source, "w", encoding="ascii") as out:
            out.write('\t.text\n\t.type f, @function\nf:\n')
            for i, statement in enumerate(statements):
                out.write(f"\t.globl form{i}\n\t{statement}\n\tcall f\n")
            out.write('\tret\n\t.size f, .-f\n\t.ident "GCC: forms"\n')
        with open(fake, "w", encoding="ascii") as out:
            out.write(f'#!/bin/sh\nfor last; do :; done\ncp "$last" {kept}\n')
        os.chmod(fake, 0o755)
        subprocess.run([compiler_as, "-o", "/dev/null", source], check=True,
                       env=dict(os.environ, HAMLYN_TEMPEST_AS=fake, HAMLYN_TEMPEST_REPORT=""))
        with open(kept, encoding="ascii") as result:
            text = result.read()
    found = {}
    for part in re.split(r"\t\.globl form", text)[1:]:
        number = int(re.match(r"\d+", part).group())
        tags = re.findall(r"cmpb \$(\d), \(%r1[01]\)", part)
        second = re.findall(r"leaq (\d+)\(%rdi\)", part)
        if tags:
            found[number] = int(second[0]) if second else 0, int(tags[0]) == 3
    return found


def main():
    compiler_as, insn_c, out_s = sys.argv[1:]
    ways = list(templates())
    statements = assembles(sorted({f"{name} {way.replace('M', '(%rdi)')}"
                                   for name in names(insn_c) for way in ways}))
    found = checked(compiler_as, statements)
    with open(out_s, "w", encoding="ascii") as out:
        out.write("\t.text\n")
        for i in found:
            out.write(f"form{i}:\t{statements[i]}\n\tret\n")
        out.write("\t.section .rodata\n\t.globl forms, n_forms\n\t.balign 8\nforms:\n")
        for i, (second, write) in found.items():
            out.write(f"\t.quad form{i}, name{i}\n\t.int {second}, {int(write)}\n")
        for i in found:
            out.write(f'name{i}:\t.string "{statements[i]}"\n')
        out.write(f"\t.balign 4\nn_forms:\t.int {len(found)}\n")
        out.write("\t.section .note.GNU-stack, \"\", @progbits\n")
    left = [s for i, s in enumerate(statements) if i not in found]
    print(f"# {len(found)} forms are checked, {len(left)} are left plain")
    with open(out_s + ".plain", "w", encoding="ascii") as out:
        out.write("".join(s + "\n" for s in left))


main()
