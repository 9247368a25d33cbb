# SPDX-License-Identifier: MIT
"""The mirrors of C structures are what the compiler makes of the headers."""

import ctypes
import os
import pathlib
import shlex
import shutil
import subprocess
import tempfile
import unittest

from hamlyn import _library

TOP = pathlib.Path(__file__).resolve().parents[3]


def flags():
    """Of this tree, or of what is installed."""
    if (TOP / "libhamlyn/include/hamlyn.h").exists():
        return [f"-I{TOP}/uapi", f"-I{TOP}/libhamlyn/include"]
    found = subprocess.run(["pkg-config", "--cflags", "libhamlyn"], stdout=subprocess.PIPE,
                           check=False, text=True)
    return shlex.split(found.stdout)


def program():
    lines = ["#include <stdio.h>", "#include <stddef.h>", "#include <sys/uio.h>",
             *(f"#include <hamlyn/{h}.h>" for h in ("channel", "datagram", "group", "publish",
                                                 "tagged", "work")),
             "int main(void) {"]
    for name, mirror in _library.STRUCTURES.items():
        lines.append(f'printf("{name} %zu\\n", sizeof(struct {name}));')
        for member, *_ in mirror._fields_:
            lines.append(f'printf("{name}.{member} %zu %zu\\n", '
                         f'offsetof(struct {name}, {member}), '
                         f'sizeof(((struct {name} *)0)->{member}));')
    for constant in ("H_TICKET_BYTES", "H_SEED_BYTES", "H_CHANNEL_SEED_BYTES",
                     "HAMLYN_META_FAST", "HAMLYN_MAX_METADATA", "HAMLYN_MAX_TAGS",
                     "HAMLYN_EXPLAIN_BYTES", "H_NOWAIT", "H_FOREVER"):
        lines.append(f'printf("{constant} %lld\\n", (long long){constant});')
    return "\n".join([*lines, "return 0; }"])


def mirrored():
    out = []
    for name, mirror in _library.STRUCTURES.items():
        out.append(f"{name} {ctypes.sizeof(mirror)}")
        for member, *_ in mirror._fields_:
            descriptor = getattr(mirror, member)
            out.append(f"{name}.{member} {descriptor.offset} {descriptor.size}")
    out += [f"H_TICKET_BYTES {_library.TICKET_BYTES}", f"H_SEED_BYTES {_library.SEED_BYTES}",
            f"H_CHANNEL_SEED_BYTES {_library.CHANNEL_SEED_BYTES}",
            f"HAMLYN_META_FAST {_library.META_FAST}",
            f"HAMLYN_MAX_METADATA {_library.MAX_METADATA}",
            f"HAMLYN_MAX_TAGS {_library.MAX_TAGS}",
            f"HAMLYN_EXPLAIN_BYTES {_library.EXPLAIN_BYTES}",
            f"H_NOWAIT {_library.NOWAIT}", f"H_FOREVER {_library.FOREVER}"]
    return out


class Layout(unittest.TestCase):
    maxDiff = None

    def test_structures(self):
        compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
        if not compiler:
            self.skipTest("there is no compiler")
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder, "layout.c")
            source.write_text(program())
            subprocess.run([*shlex.split(compiler), *flags(), str(source), "-o",
                            f"{folder}/layout"], check=True)
            said = subprocess.run([f"{folder}/layout"], check=True, stdout=subprocess.PIPE,
                                  text=True).stdout.splitlines()
        self.assertEqual(mirrored(), said)

    def test_py_buffer(self):
        # Of Include/cpython/object.h: address, object, length in front
        with _library.Buffer(b"12345") as b:
            self.assertEqual(b.length, 5)
            self.assertEqual(ctypes.string_at(b.address, 5), b"12345")


if __name__ == "__main__":
    unittest.main()
