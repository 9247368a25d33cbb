#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Section 3 manual pages (mdoc) from the kernel-doc of the libraries' headers.

A page for each public function, variable, type and header, with links to it from
the other names that share a comment; a copy of the pages that are written by hand.
Stops, with file and line, at kernel-doc that it does not
understand, at a public function without any, at a reference to a function that
is not there, and at an exported symbol without a page.

A program in examples/ is shown on the pages of all calls that its first comment
names. The marker before it is for selftests/tools/doc-test.sh, which runs it.
"""

import argparse
import errno
import os
import re
import shutil
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True

from kerneldoc import PUBLIC, Entry, Header, Trouble, trouble  # noqa: E402

HERE = Path(__file__).resolve().parent
TOP = HERE.parent.parent

ERRNOS = {name for name in dir(errno) if name.startswith("E")}
ITEM = r"(?:[-*]|\d+\.) "

# What has a macro of its own in running text; a space in it has become NBSP.
SPECIAL = re.compile(
    r"(?P<call>\b[A-Za-z_]\w*)\(\)"
    r"|(?P<manual>\b[a-z_][\w-]*)\((?P<number>[1-8])\)"
    r"|@(?P<argument>[a-z_]\w*(?:(?:->|\.)[a-z_]\w*)*)"
    r"|%?(?P<errno>-?\bE[A-Z0-9]+\b)"
    r"|(?P<global>\b(?:HPAM_\w+|TPPI_(?:num_nodes|self_address|seg_size)\b))"
    r"|\$(?P<variable>[A-Z][A-Z_]+)"
    r"|(?P<type>\b(?:struct|union|enum)\xa0\w+)"
    r"|(?P<path>(?<![\w.])/(?:dev|proc|sys)/[\w/]*\w)"
    r"|%?(?P<constant>\b(?:NULL|(?:H|HAMLYN|INT|CLOCK|RLIMIT|CAP|SCM|MADV|MAP|SA|EPOLL)_"
    r"[A-Z0-9_]+\*?))")


def escape(text):
    text = text.replace("\\", "\\e").replace('"', "\\(dq").replace("\xa0", " ")
    return "\\&" + text if text[:1] in (".", "'") else text


def argument(text):
    text = escape(text)
    return f'"{text}"' if " " in text else text


class Page:
    """One manual page as it is written."""

    def __init__(self, pages, entry):
        self.pages = pages          # name: Entry, all there are
        self.entry = entry
        self.lines = []
        self.see = set()
        self.constants = set()

    def add(self, *lines):
        self.lines += lines

    def piece(self, match):
        """Macro and arguments for what SPECIAL found, or None."""
        found = {key: value for key, value in match.groupdict().items() if value}
        kind, text = next(iter(found.items()))
        if kind == "call":
            if text in self.pages and self.pages[text] is not self.entry:
                self.see.add(text)
                return f"Xr {text} 3"
            if PUBLIC.match(text) and text not in self.pages:
                self.entry.trouble(f"{text}() is mentioned but there is no such function")
            return f"Fn {text}"
        if kind == "manual":
            return f"Xr {text} {match['number']}"
        if kind == "errno":
            return "Er " + text.replace("-", "\\-") if text.lstrip("-") in ERRNOS else None
        if kind == "type":
            name = text.split("\xa0")[1]
            if name in self.pages and name != self.entry.name:
                self.see.add(name)
            self.constants.add(name)
            return f"Vt {escape(text)}"
        if kind == "global":
            if text not in self.pages:
                self.entry.trouble(f"{text} is mentioned but there is no such variable")
            self.see.add(text)
            return f"Va {text}"
        if kind == "constant":
            self.constants.add(text)
        return {"argument": "Fa", "variable": "Ev", "path": "Pa", "constant": "Dv"}[kind] + \
            " " + escape(text)

    def word(self, word):
        """A macro line for a word, or None if it is just a word."""
        lead, core, tail = re.match(r"([(\[]*)(.*?)([)\].,;:!?]*)$", word).groups()
        if core.endswith("("):                  # the parentheses of a call
            core, tail = core + tail[:1], tail[1:]
        elif re.search(r"\(\d?$", core) and tail.startswith(")"):
            core, tail = core + ")", tail[1:]
        parts, position = [], 0
        for match in SPECIAL.finditer(core):
            piece = self.piece(match)
            if not piece:
                continue
            if match.start() > position:
                parts.append("No \\&" + escape(core[position:match.start()]))
            parts.append(piece)
            position = match.end()
        if not parts:
            return None
        if position < len(core):
            parts.append("No \\&" + escape(core[position:]))
        macro, _, rest = parts[0].partition(" ")
        line = " ".join([macro, *lead, rest]) if lead else parts[0]
        if lead and macro == "Xr":              # whose first argument groff takes for the page
            line = f"No \\&{lead} Ns {parts[0]}"
        return "." + " Ns ".join([line, *parts[1:]]) + "".join(" " + char for char in tail)

    def text(self, text):
        """A paragraph of running text."""
        text = re.sub(r"\b(struct|union|enum) (\w)", "\\1\xa0\\2", " ".join(text.split()))
        text = re.sub(r"``|&(?=struct\b)", "", text)
        line = ""
        for word in text.split(" "):
            macro = self.word(word)
            if macro or len(line) + len(escape(word)) > 76:
                if line:
                    self.add(line)
                line = ""
            if macro:
                self.add(macro)
                continue
            line += (" " if line else "") + escape(word).replace("\\&", "" if line else "\\&")
            if re.search(r"[.!?]\)?$", word):
                self.add(line)
                line = ""
        if line:
            self.add(line)

    def literal(self, lines, indent=True):
        self.add(".Bd -literal" + " -offset indent" * indent)
        for line in lines:
            self.add(escape(line))
        self.add(".Ed")

    def blocks(self, lines, quoted=False, first=True):
        """Paragraphs, lists and literal blocks; indented ones only where @quoted."""
        chunks, chunk = [], []
        for line in [*lines, ""]:
            if line.strip():
                chunk.append(line)
            elif chunk:
                chunks.append(chunk)
                chunk = []
        literal = False
        for chunk in chunks:
            indented = all(line.startswith((" ", "\t")) for line in chunk)
            if indented and (literal or quoted):
                depth = min(len(line) - len(line.lstrip()) for line in chunk)
                self.literal([line[depth:] for line in chunk])
                continue
            if indented or re.match(r"\.\. |[=~^-]{4,}$|\+--", chunk[-1]):
                self.entry.trouble(f'{self.entry.name}: text is not understood:'
                                   f' "{chunk[0].strip()}"')
            if not first:
                self.add(".Pp")
            first = False
            literal = chunk[-1].endswith("::")
            if literal:
                chunk[-1] = chunk[-1][:-1]
            self.paragraph(chunk)

    def paragraph(self, chunk):
        items = [number for number, line in enumerate(chunk) if re.match(ITEM, line)]
        if not items:
            self.text(" ".join(chunk))
            return
        if items[0]:
            self.text(" ".join(chunk[:items[0]]))
        self.add(f".Bl {'-enum' if chunk[items[0]][0].isdigit() else '-bullet'} -compact")
        for start, end in zip(items, [*items[1:], len(chunk)]):
            self.add(".It")
            self.text(" ".join([re.sub(ITEM, "", chunk[start]), *chunk[start + 1:end]]))
        self.add(".El")

    def parameters(self, macro):
        names = [key for key in self.entry.texts if key.startswith("@")]
        if not names:
            return
        self.add(".Bl -tag -width Ds")
        for key in names:
            self.add(f".It {macro} {escape(key[1:])}")
            lines = self.entry.texts[key]
            depth = min([len(line) - len(line.lstrip()) for line in lines[1:] if line.strip()],
                        default=0)
            self.blocks([lines[0], *(line[depth:] for line in lines[1:])])
        self.add(".El")

    def description(self, macro, what):
        lines = self.entry.texts["description"]
        if any(lines):
            self.blocks(lines)
        else:
            purpose = self.entry.purpose
            self.text(purpose[0].upper() + purpose[1:] + ("" if purpose.endswith("?") else "."))
        if any(key.startswith("@") for key in self.entry.texts):
            self.add(".Pp", f"The {what} are:")
            self.parameters(macro)
        for key, title in (("context", "Context"), ("note", "Note"), ("example", "Example")):
            if key in self.entry.texts:
                self.add(f".Ss {title}")
                self.blocks(self.entry.texts[key], quoted=key == "example")

    def constants_used(self, defines, enums):
        """Definitions of the constants that the page names, NAME_* included."""
        wanted = [re.compile(name.replace("*", ".*")) for name in self.constants]
        used = {name: define for name, define in defines.items()
                if any(pattern.fullmatch(name) for pattern in wanted)}
        names = max(map(len, used), default=0)
        values = max((len(value) for value, _, _ in used.values()), default=0)
        shown = []
        for name, (value, behind, above) in used.items():
            shown += above.expandtabs().split("\n") if above else []
            shown.append(f"#define {name:{names}} {value:{values}} {behind}".rstrip())
        for text in {enums[name]: None for name in sorted(self.constants) if name in enums}:
            shown += text.expandtabs().split("\n")
        if shown:
            self.add(".Sh CONSTANTS")
            self.literal(shown)

    def see_also(self):
        self.add(".Sh SEE ALSO")
        # One name of a family is enough
        names = sorted({self.pages[name].name for name in self.see} - {self.entry.name},
                       key=str.lower)
        references = [f"{name} 3" for name in names] + self.entry.header.library.see
        for reference in references:
            self.add(f".Xr {reference}" + (" ," if reference is not references[-1] else ""))


class Example:
    """A program that pages show: whose, what it is about, its code, what it prints."""

    def __init__(self, path):
        self.path = path
        match = re.fullmatch(r"// SPDX-License-Identifier: MIT\n/\*\n((?: \*.*\n)+?) \*\n"
                             r"((?: \*.*\n)+?) \*/\n(.*)\n/\*\n"
                             r" \* (It prints.*:)\n \*\n((?: \*.*\n)+) \*/\n",
                             path.read_text(), re.S)
        if not match:
            trouble(path, 1, "must be: comment with names, blank line, text; code; comment with"
                             ' "It prints:", blank line, output')
        self.names, text, self.code, self.prints, output = match.groups()
        self.names = re.split(r"[,\s]+", self.unstarred(self.names).strip())
        self.text = self.unstarred(text)
        self.output = self.unstarred(output).rstrip("\n").split("\n")
        self.code = self.code.strip("\n").expandtabs().split("\n")
        for line in self.code:
            if len(line) > 80:
                trouble(path, 1, f'wider than a page: "{line.strip()}"')

    @staticmethod
    def unstarred(text):
        return re.sub(r"^ \* ?", "", text, flags=re.M)

    def show(self, page):
        """The first of its pages has it run, the others have the same."""
        kind = "run" if page.entry.name == self.names[0] else "same"
        name = "example-" + self.path.stem
        page.add(".Sh EXAMPLES")
        page.blocks(self.text.split("\n"))
        page.add(f'.\\" hamlyn-{kind}: {name}')
        page.literal(self.code, indent=False)
        page.add(".Pp")
        page.text(self.prints)
        if kind == "run":
            page.add(f'.\\" hamlyn-output: {name}')
        page.literal(self.output)


# Tempest has the signals for its own.
INSTEAD_OF_LIBC = ["__sysv_signal", "bsd_signal", "pthread_sigmask", "sigaction", "sigblock",
                   "sighold", "sigignore", "signal", "sigprocmask", "sigset", "sigsetmask",
                   "ssignal", "sysv_signal"]


class Library:
    """Headers in a folder, and the list of what is exported."""

    def __init__(self, text, include, exported, see, unpaged=()):
        self.text = text
        self.exported = exported
        self.unpaged = set(unpaged)     # exported, and not for people
        self.see = see
        self.headers = [Header(path, str(path.relative_to(include)))
                        for path in sorted(include.rglob("*.h")) if path.name != "uapi.h"]
        for header in self.headers:
            header.library = self


class Generator:
    """All pages of all headers."""

    def __init__(self, args):
        self.args = args
        self.libraries = [
            Library("hamlyn library (libhamlyn, \\-lhamlyn)", args.include, args.map,
                    ["hamlyn 7", "hamlyn_concepts 7"]),
            Library("hamlyn active messages library (libhamlyn\\-am, \\-lhamlyn\\-am)",
                    args.am_include, args.am_map, ["hamlyn 7", "hamlyn_am 7"]),
            Library("Tempest library (libhamlyn\\-tempest, \\-lhamlyn\\-tempest)",
                    args.tempest_include, args.tempest_map, ["hamlyn 7", "hamlyn_tempest 7"],
                    ["__tempest_loop_1", "__tempest_rseq_cs_1", *INSTEAD_OF_LIBC]),
            Library("Stache library (libhamlyn\\-stache, \\-lhamlyn\\-stache)",
                    args.stache_include, args.stache_map, ["hamlyn 7", "hamlyn_stache 7"])]
        self.headers = [header for library in self.libraries for header in library.headers]
        self.shared = Header(args.uapi, "hamlyn/uapi.h")
        self.shared.library = self.libraries[0]
        self.pages = {}     # name: what it is about
        self.also = {}      # name: and a structure
        self.examples = {}  # name of a page: Example
        self.collect()
        self.collect_examples()

    def collect(self):
        for header in self.headers:
            # A macro of the name of a function, of another header, stands in for it
            others = {name for other in self.headers if other is not header
                      for name in other.functions}
            for line, name in header.undocumented():
                if not {name.rstrip("()")} & others & set(header.macros):
                    trouble(header.path, line, f"{name} is public and has no kernel-doc")
            for entry in header.entries:
                self.add_page(entry)
        # Structures of the uapi that the library's calls have to do with
        used = set()
        for header in self.headers:
            for name, (_, result, arguments) in header.functions.items():
                if PUBLIC.match(name):
                    used |= set(re.findall(r"\bstruct (hamlyn_\w+)",
                                           " ".join([result, *arguments])))
        for entry in self.shared.entries:
            if entry.kind == "struct" and entry.name in used:
                entry.purpose = re.sub(r"^HAMLYN_IOC_\w+: ", "", entry.purpose)
                self.add_page(entry)
        for header in self.headers:
            stem = header.include[:-len(".h")].replace("/", "_")
            line, lines = header.overview()
            entry = Entry(header, line)
            entry.kind = "header"
            entry.name = "libhamlyn" if stem == "hamlyn" else stem
            entry.family = [entry.name]
            entry.purpose = re.sub(rf"^(?:libhamlyn|{stem}),\s*|\.$", "", lines[0],
                                   flags=re.I) or stem
            # Else the page's name would stop in the middle of one
            if lines[0][-1] not in ".:" or ". " in lines[0]:
                trouble(header.path, line + 1, "the first line of a header is one sentence")
            entry.texts["description"] = lines[1:]
            self.add_page(entry)
        self.defines, self.enums = {}, {}
        for header in [self.shared, *self.headers]:
            self.defines.update(header.defines)
            self.enums.update(header.enums)

    def collect_examples(self):
        for path in sorted(self.args.examples.glob("*.c")):
            example = Example(path)
            for name in example.names:
                if name not in self.pages:
                    trouble(path, 3, f"{name}() is named but there is no such function")
                if self.examples.setdefault(self.pages[name].name, example) is not example:
                    trouble(path, 3, f"{name}() has an example already")

    def add_page(self, entry):
        for name in entry.family[1:]:
            if self.pages.setdefault(name, entry) is not entry:
                entry.trouble(f"{name} has a page already")
        other = self.pages.setdefault(entry.name, entry)
        if other is entry:
            return
        # A structure of the same name as a function is on its page
        if {"function", "struct"} != {entry.kind, other.kind}:
            entry.trouble(f"{entry.name} has a page already")
        self.pages[entry.name], self.also[entry.name] = \
            (entry, other) if entry.kind == "function" else (other, entry)

    def check_map(self, library):
        path = library.exported
        in_global = False
        for number, line in enumerate(path.read_text().split("\n"), 1):
            in_global = (in_global or "global:" in line) and "local:" not in line
            for name in re.findall(r"^\s*(\w+)\s*;", line):
                if in_global and not re.match("(h|stache)__", name) and \
                        name not in library.unpaged and name not in self.pages:
                    trouble(path, number, f"{name} is exported and has no page")

    def errors(self, name, seen):
        """Errnos that a call may return, with those of calls that its text refers to."""
        entry = self.pages[name]
        text = " ".join(entry.texts.get("return", []))
        found = {code for code in re.findall(r"-(E[A-Z0-9]+)", text) if code in ERRNOS}
        for one, names in re.findall(
                r"(-E[A-Z0-9]+ )?\bas ((?:\w+\(\)(?:, or |, and | or | and |, )?)+)", text):
            for other in re.findall(r"\w+(?=\(\))", names):
                # "-ETIMEDOUT as h_open()" is about that one
                if not one and other in self.pages and other not in seen:
                    seen.add(other)
                    found |= self.errors(other, seen)
        return found

    def siblings(self, entry):
        """Of the same group of the header, or with the same noun in their names."""
        noun = "_".join(entry.name.split("_")[:2])
        near = {other.name for other in entry.header.entries
                if (other.group == entry.group and entry.group) or
                (other.name + "_").startswith(noun + "_")}
        if len(near) > 16:
            near = {name for name in near if (name + "_").startswith(noun + "_")}
        return near

    def title(self, page):
        entry = page.entry
        page.add('.\\" SPDX-License-Identifier: MIT',
                 f'.\\" From {entry.header.include}, by gen.py: change it there.',
                 f".Dd {self.args.date}", f".Dt {entry.name.upper()} 3",
                 f".Os hamlyn {self.args.version}",
                 # Words of it that are macros, such as "An", would be taken for them
                 ".Sh NAME", *(f".Nm {name} ," for name in entry.family[:-1]),
                 f".Nm {entry.family[-1]}",
                 ".Nd " + re.sub(r"\b(?=[A-Z][a-z]\b)", r"\\&", escape(entry.purpose)),
                 ".Sh LIBRARY", entry.header.library.text,
                 ".Sh SYNOPSIS", f".In {entry.header.include}")

    def function(self, page):
        entry = page.entry
        has_callback = any("(*" in text for text in entry.arguments)
        if has_callback:
            page.add(".ad l")
        for name in entry.family:
            _, result, texts = entry.header.functions.get(name) or \
                (0, entry.result, entry.arguments)
            if result is not None:
                page.add(f".Ft {argument(result)}")
            page.add(f".Fo {name}")
            for text in texts or (["void"] if result is not None else []):
                # Blanks within one .Fa neither break nor stretch: callbacks are too long for a line.
                for part in text.split(", "):
                    page.add(f".Fa {argument(part)}")
            page.add(".Fc")
        if has_callback:
            page.add(".ad b")
        page.add(".Sh DESCRIPTION")
        page.description("Fa", "arguments")
        if "return" in entry.texts:
            page.add(".Sh RETURN VALUES")
            lines = entry.texts["return"]
            page.blocks(["Returns " + lines[0], *lines[1:]] if lines[0] else lines)
        if entry.name in self.examples:
            self.examples[entry.name].show(page)
        own = set(re.findall(r"-(E[A-Z0-9]+)", " ".join(entry.texts.get("return", []))))
        errors = sorted(self.errors(entry.name, {entry.name}))
        if set(errors) - own:
            page.add(".Sh ERRORS", "All of them, with those of the calls named above:")
            for code in errors:
                page.add(f".Er \\-{code}" + (" ," if code != errors[-1] else " ."))
        for text in [entry.result or "", *entry.arguments]:
            page.see |= set(re.findall(r"\bstruct (\w+)", text)) & set(self.pages)
            page.see |= {word for word in re.findall(r"\w+", text) if self.is_typedef(word)}
        page.see |= self.siblings(entry)

    def is_typedef(self, name):
        return name in self.pages and self.pages[name].kind == "typedef"

    def definition(self, page):
        page.literal(page.entry.code.expandtabs().split("\n"))
        page.add(".Pp" if page.entry.name in self.also else ".Sh DESCRIPTION")
        if page.entry.kind != "enum":
            page.constants |= set(re.findall(r"\bH(?:AMLYN)?_[A-Z0-9_]+", page.entry.code))
        page.description({"enum": "Dv"}.get(page.entry.kind, "Va"),
                         "arguments" if page.entry.kind == "typedef" else "members")

    def structure(self, page):
        entry = page.entry
        self.definition(page)
        used = re.compile(rf"\b{'struct ' if entry.kind == 'struct' else ''}{entry.name}\b")
        users = {other.name for other in self.pages.values()
                 if used.search(" ".join([other.result or "", *other.arguments]))}
        # What everybody uses leads nowhere
        page.see |= users if entry.kind == "struct" or len(users) <= 16 else set()

    def variables(self, page):
        entry = page.entry
        for name, kind in zip(entry.family, entry.arguments):
            page.add(f".Vt extern {kind} {name} ;")
        page.add(".Sh DESCRIPTION")
        page.description("Va", "variables")
        page.see |= self.siblings(entry)

    def overview(self, page):
        entry = page.entry
        page.add(".Sh DESCRIPTION")
        page.blocks(entry.texts["description"], quoted=True)
        group = None
        for other in entry.header.entries:
            if other in self.also.values():
                continue    # it is on the function's page
            if other.group != group or group is None:
                page.add(*([".El"] if group is not None else []))
                title = re.sub("^the rest is (the )?", "", other.group) or "general"
                page.add(f".Ss {escape(title[0].upper() + title[1:])}",
                         ".Bl -tag -width Ds -compact")
                group = other.group
            first, last = other.family[0], other.family[-1]
            page.add(f".It Xr {first} 3" + (f" No to Xr {last} 3" if len(other.family) > 3 else
                     "".join(f" , Xr {name} 3" for name in other.family[1:])))
            page.text(other.purpose)
        page.add(*([".El"] if group is not None else []))
        page.see = set()
        page.constants |= {name for name in [*entry.header.defines, *entry.header.enums]
                           if re.match(r"H_[A-Z]", name)}
        page.see |= {other.name for other in self.pages.values()
                     if other.kind == "header" and other.header.library is entry.header.library}

    def write(self):
        out = self.args.out
        for old in out.glob("man[1-8]"):
            shutil.rmtree(old)
        (out / "man3").mkdir(parents=True)
        for name, entry in self.pages.items():
            if name != entry.name:
                (out / "man3" / f"{name}.3").symlink_to(f"{entry.name}.3")
                continue
            page = Page(self.pages, entry)
            self.title(page)
            body = {"function": self.function, "variable": self.variables,
                    "header": self.overview}
            body.get(entry.kind, self.structure)(page)
            if entry.name in self.also:
                page.entry = self.also[entry.name]
                page.add(".Sh STRUCTURE")
                self.definition(page)
                page.entry = entry
            page.constants_used(self.defines, self.enums)
            page.see_also()
            (out / "man3" / f"{entry.name}.3").write_text("\n".join(page.lines) + "\n")
        for page in sorted(HERE.glob("*.[1-8]")):
            folder = out / f"man{page.suffix[1:]}"
            folder.mkdir(exist_ok=True)
            if (folder / page.name).exists():
                trouble(page, 1, "a page of that name is generated")
            shutil.copyfile(page, folder / page.name)


def arguments():
    parser = argparse.ArgumentParser(description="Writes the manual pages of libhamlyn,"
                                     " libhamlyn-am, libhamlyn-tempest and libhamlyn-stache.")
    parser.add_argument("out", type=Path, help="folder for them: man3 and man7 in it are made anew")
    parser.add_argument("--version", default="0.3.0", help="of hamlyn (default %(default)s)")
    parser.add_argument("--date", help="of the pages, as 2026-11-20; default: $SOURCE_DATE_EPOCH,"
                        " else when a header was changed last")
    parser.add_argument("--include", type=Path, default=TOP / "libhamlyn/include",
                        help="folder of the headers")
    parser.add_argument("--uapi", type=Path, default=TOP / "uapi/linux/hamlyn.h",
                        help="header of the kernel's structures")
    parser.add_argument("--map", type=Path, default=TOP / "libhamlyn/libhamlyn.map",
                        help="list of exported symbols")
    parser.add_argument("--examples", type=Path, default=HERE / "examples",
                        help="folder of the programs that pages show")
    parser.add_argument("--am-include", type=Path, default=TOP / "libhamlyn/am/include",
                        help="folder of the headers of libhamlyn-am")
    parser.add_argument("--am-map", type=Path, default=TOP / "libhamlyn/am/libhamlyn-am.map",
                        help="list of its exported symbols")
    parser.add_argument("--tempest-include", type=Path, default=TOP / "libhamlyn/tempest/include",
                        help="folder of the headers of libhamlyn-tempest")
    parser.add_argument("--tempest-map", type=Path,
                        default=TOP / "libhamlyn/tempest/libhamlyn-tempest.map",
                        help="list of its exported symbols")
    parser.add_argument("--stache-include", type=Path, default=TOP / "libhamlyn/stache/include",
                        help="folder of the headers of libhamlyn-stache")
    parser.add_argument("--stache-map", type=Path,
                        default=TOP / "libhamlyn/stache/libhamlyn-stache.map",
                        help="list of its exported symbols")
    args = parser.parse_args()
    if args.date:
        when = time.strptime(args.date, "%Y-%m-%d")
    else:
        newest = max(path.stat().st_mtime for path in [args.uapi, *args.include.rglob("*.h"),
                                                         *args.am_include.rglob("*.h"),
                                                         *args.tempest_include.rglob("*.h"),
                                                         *args.stache_include.rglob("*.h")])
        when = time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", newest)))
    args.date = time.strftime("%B ", when) + time.strftime("%d, %Y", when).lstrip("0")
    return args


def main():
    args = arguments()
    try:
        generator = Generator(args)
        for library in generator.libraries:
            generator.check_map(library)
        generator.write()
    except Trouble as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
