# SPDX-License-Identifier: MIT
"""The kernel-doc of a header, and what it is about. As strict as it can be: what is
not understood, or does not fit, is an error."""

import re

SECTION = re.compile(r"(description|context|returns?|notes?|examples?)\s*:\s*(.*)$", re.I)
PARAMETER = re.compile(r"@(\w+|\.\.\.)(?:\.\.\.)?\s*:\s*(.*)$")
TITLE = re.compile(r"(?:(struct|union|enum|typedef)\s+)?(\w+)(\(\))?\s+-\s+(\S.*)$")
ATTRIBUTE = r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)\s*"
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
NOT_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.S)
ABOVE = re.compile(r"\n(/\*(?!\*| --)(?:(?!\*/).)*\*/)\n$", re.S)
VARIABLES = re.compile(r"DOC:\s+(\w+(?:, \w+)*)\s+-\s+(\S.*)$")
PUBLIC = re.compile(r"(?:h_[a-z]|l?am_|HPAM_|TPPI_|stache_(?!_))\w*$")


class Trouble(Exception):
    """Something in a header that needs a person: file, line, what."""


def trouble(path, line, text):
    raise Trouble(f"{path}:{line}: {text}")


class Entry:
    """One kernel-doc comment and what it is about."""

    def __init__(self, header, line):
        self.header = header
        self.line = line
        self.kind = self.name = self.purpose = None
        self.group = ""
        self.texts = {"description": []}    # section or @parameter: lines
        self.result = ""                    # functions: type
        self.arguments = []                 # functions: declarations
        self.code = ""                      # types: definition
        self.family = []                    # names: its own, and those that share its comment

    def trouble(self, text):
        trouble(self.header.path, self.line, text)

    def parse(self, lines):
        """Comment lines without their stars; @lines begins with the title."""
        self.parse_title(lines[0])
        rest = lines[1:]
        while rest and rest[0] and not rest[0].startswith("@"):
            self.purpose += " " + rest.pop(0).strip()
        self.purpose = self.purpose.rstrip(".")
        key = "description"
        current = self.texts[key]
        for line in rest:
            parameter = PARAMETER.match(line)
            section = SECTION.match(line)
            if parameter or section:
                key = "@" + parameter[1] if parameter else section[1].lower().rstrip("s")
                text = (parameter or section)[2]
                if key in self.texts and key != "description":
                    self.trouble(f'"{key}" is there twice')
                current = self.texts.setdefault(key, [])
                current.append(text)
            elif line:
                current.append(line)
            else:
                # As for the kernel's own tool: a blank line ends what a parameter is
                if key.startswith("@") or key == "context":
                    key = "description"
                    current = self.texts[key]
                current += [""] if current else []

    def parse_title(self, line):
        variables = VARIABLES.match(line)
        if variables:
            self.kind = "variable"
            self.family = variables[1].split(", ")
            self.name = self.family[0]
            self.purpose = variables[2]
            return
        match = TITLE.match(line)
        if not match:
            self.trouble(f'kernel-doc is not understood: "{line}"; must be'
                         ' "name() - text" or "struct name - text"')
        self.kind = match[1] or ("function" if match[3] else None)
        self.name = match[2]
        self.family = [self.name]
        self.purpose = match[4]
        if not self.kind or (match[1] and match[3]):
            self.trouble(f'is "{self.name}" a function or a type? "{line}"')

    def check_parameters(self, names, others=()):
        """@others: arguments that only other members of the family have."""
        documented = [key[1:] for key in self.texts if key.startswith("@")]
        described = " ".join(self.texts["description"])
        # "@arg0 to @arg4" in the text is enough for them
        numbered = {re.sub(r"\d+$", "", name) for name in re.findall(r"@(\w+\d)\b", described)}
        for name in names:
            if name not in documented:
                self.trouble(f'{self.name}: "@{name}" is not described')
        for name in others:
            if name not in names and re.sub(r"\d+$", "", name) not in numbered:
                self.trouble(f'{self.name}: "@{name}" of {self.family[-1]} is not described')
        for name in documented:
            if name not in names:
                self.trouble(f'{self.name}: "@{name}" is described but not there')


def blanked(match):
    return re.sub(r"[^\n]", " ", match[0])


class Header:
    """A header: what is in it, and what it says about that."""

    def __init__(self, path, include):
        self.path = path
        self.include = include
        self.text = path.read_text()
        self.code = NOT_CODE.sub(blanked, self.text)
        self.defines = {}       # name: (value, comment behind it, comment above it)
        self.macros = {}        # function-like, name: (position, [parameters])
        self.enums = {}         # name: definition
        self.functions = {}     # name: (position, result, [arguments])
        self.types = {}         # "struct name": (position, definition)
        self.variables = {}     # name: (position, type)
        self.ends = {}          # position where something begins: where it ends
        self.entries = []
        self.read_directives()
        self.read_items()
        self.read_comments()

    def line(self, position):
        return self.text.count("\n", 0, position) + 1

    def read_directives(self):
        for match in DIRECTIVE.finditer(self.code):
            define = re.match(r"\s*#\s*define\s+(\w+)(\(([^)]*)\))?", match[0])
            if define and define[2]:
                names = [name.strip() for name in define[3].split(",") if name.strip()]
                self.macros[define[1]] = (match.start(), names)
            elif define:
                value = " ".join(match[0].replace("\\\n", " ").split()).partition(define[1])[2]
                behind = re.search(r"/\*.*\*/", self.text[match.start():match.end()])
                above = ABOVE.search(self.text[:match.start()])
                self.defines[define[1]] = (value.strip(), behind[0] if behind else "",
                                           above[1] if above and not behind else "")
        self.code = DIRECTIVE.sub(blanked, self.code)
        self.code = re.sub(r"\bextern\s*\{", blanked, self.code)

    def read_items(self):
        depth = start = 0
        brace = None
        for match in re.finditer(r"[{};]", self.code):
            at = match.start()
            if match[0] == "{":
                brace = at if depth == 0 else brace
                depth += 1
                continue
            if match[0] == "}":
                depth = max(depth - 1, 0)
                head = self.code[start:brace or start]
                if depth or not re.search(r"\)\s*$", head):
                    continue
            elif depth:
                continue
            self.read_item(start, brace, at + 1)
            start = at + 1
            brace = None

    def read_item(self, start, brace, end):
        start += len(self.code[start:end]) - len(self.code[start:end].lstrip("} \t\n"))
        self.ends[start] = end
        head = " ".join(self.code[start:brace or end - 1].split())
        head = re.sub(ATTRIBUTE + r"|_Static_assert\s*\(.*", "", head).strip()
        aggregate = re.match(r"(struct|union|enum)(?: (\w+))?$", head)
        variable = re.match(r"extern (.*?)\b(\w+)$", head)
        typedef = re.match(r"typedef\b.*?(?:\(\s*\*\s*(\w+)\s*\)\s*\(.*|\b(\w+))$", head)
        if aggregate:
            if brace and aggregate[1] == "enum":
                for name in [aggregate[2]] * bool(aggregate[2]) + \
                        re.findall(r"\b[A-Z]\w+", self.code[brace:end]):
                    self.enums[name] = self.text[start:end]
            if brace and aggregate[2]:
                self.types[head] = (start, self.text[start:end])
        elif typedef:
            self.types["typedef " + (typedef[1] or typedef[2])] = (start, self.text[start:end])
        elif variable:
            self.variables[variable[2]] = (start, variable[1].strip())
        else:
            function = re.match(r"(?:extern |static |inline )*(.*?)\b(\w+) ?\((.*)\)$", head)
            if function and function[2] not in ("if", "while"):
                self.functions[function[2]] = (start, function[1].strip(), split(function[3]))

    def read_comments(self):
        group = ""
        for match in re.finditer(r"/\*(.*?)\*/", self.text, re.S):
            title = re.match(r" -+ (.+?) -+ $", match[1])
            if title:
                group = title[1]
            if not match[1].startswith("*") or match[1].strip("*") == "":
                continue
            line = self.line(match.start())
            if self.code.count("{", 0, match.start()) > self.code.count("}", 0, match.start()):
                trouble(self.path, line, "kernel-doc inside of a definition is not understood")
            lines = [re.sub(r"^\s*\*? ?", "", text).rstrip().expandtabs()
                     for text in match[1][1:].strip().split("\n")]
            if lines[0].startswith("DOC:") and not VARIABLES.match(lines[0]):
                continue
            entry = Entry(self, line)
            entry.group = group
            entry.parse(lines)
            self.find_subject(entry, match.end())
            self.entries.append(entry)

    def find_family(self, entry, start, others):
        """
        What follows line by line, and is called the same but for a number, shares the
        comment. @others: name: position. Return: the others' names.
        """
        names = {position: name for name, position in others.items()}
        pattern = re.sub(r"\d+", r"\\d+", re.escape(entry.name))
        while r"\d" in pattern:
            space = re.match(r"[ \t]*\n", self.text[self.ends[start]:])
            start = self.ends[start] + (space.end() if space else 0)
            if not re.fullmatch(pattern, names.get(start, "")):
                break
            entry.family.append(names[start])
        return entry.family[1:]

    def find_variables(self, entry, end):
        for name in entry.family:
            if name not in self.variables:
                entry.trouble(f"{name} is described but not declared")
            start, kind = self.variables[name]
            if self.code[end:start].strip():
                entry.trouble(f'"{name}" does not follow its description')
            entry.arguments.append(kind)
            end = self.ends[start]
        entry.check_parameters(entry.family)

    def find_subject(self, entry, end):
        """What the comment is about follows it, with nothing in between."""
        others = []
        if entry.kind == "variable":
            self.find_variables(entry, end)
            return
        if entry.kind == "function":
            if entry.name in self.macros:
                start, names = self.macros[entry.name]
                entry.arguments = names
                entry.result = None
            elif entry.name in self.functions:
                start, entry.result, entry.arguments = self.functions[entry.name]
                names = [argument_name(entry, text) for text in entry.arguments]
                names = [name for name in names if name]
                for name in self.find_family(entry, start, {
                        name: value[0] for name, value in self.functions.items()}):
                    others += [argument_name(entry, text) for text in self.functions[name][2]]
            else:
                entry.trouble(f"{entry.name}() is described but not declared")
            if entry.result not in (None, "void") and "return" not in entry.texts:
                entry.trouble(f"{entry.name}(): what it returns is not described")
        else:
            key = f"{entry.kind} {entry.name}"
            if key not in self.types:
                entry.trouble(f"{key} is described but not defined")
            start, entry.code = self.types[key]
            names = members(entry)
            for name in self.find_family(entry, start, {
                    key.split()[1]: value[0] for key, value in self.types.items()
                    if key.startswith("typedef ") and entry.kind == "typedef"}):
                code = self.types["typedef " + name][1]
                others += arguments_of_typedef(entry, code)
                entry.code += "\n" + code
        if self.code[end:start].strip():
            entry.trouble(f'"{entry.name}" does not follow its description')
        entry.check_parameters(names, others)

    def undocumented(self):
        """Public functions, function-like macros and variables that no comment is about."""
        known = {name for entry in self.entries for name in entry.family}
        public = {**{name + "()": value[0] for name, value in self.functions.items()},
                  **{name + "()": value[0] for name, value in self.macros.items()},
                  **{name: value[0] for name, value in self.variables.items()}}
        return [(self.line(start), name) for name, start in public.items()
                if PUBLIC.match(name.rstrip("()")) and name.rstrip("()") not in known]

    def overview(self):
        """The first comment that is not the licence: title line and text."""
        for match in re.finditer(r"/\*(?!\*)(.*?)\*/", self.text, re.S):
            if "SPDX" not in match[1]:
                lines = [re.sub(r"^\s*\*? ?", "", line).rstrip()
                         for line in match[1].strip().split("\n")]
                return self.line(match.start()), lines
        return trouble(self.path, 1, "a header begins with a comment that says what it is for")


def split(text):
    """Arguments at the commas that are in no parentheses."""
    parts, depth = [""], 0
    for char in text:
        depth += (char == "(") - (char == ")")
        if char == "," and not depth:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts if part.strip() not in ("", "void")]


def argument_name(entry, text):
    pointer = re.search(r"\(\s*\*\s*(\w+)", text)
    plain = re.search(r"(\w+)\s*(?:\[[^\]]*\]\s*)*$", text)
    if text == "...":
        return "..."
    if not pointer and not plain:
        entry.trouble(f'argument "{text}" is not understood')
    return (pointer or plain)[1]


def arguments_of_typedef(entry, code):
    arguments = re.search(r"\)\s*\((.*)\)\s*;$", code, re.S)
    return [argument_name(entry, text)
            for text in split(" ".join(arguments[1].split()))] if arguments else []


def members(entry):
    """Names of the public members; takes the others out of the definition."""
    code = re.sub(r"\n[ \t]*/\*\s*private:.*?(?=\n[ \t]*/\*\s*public:|\n\})", "", entry.code,
                  flags=re.S)
    code = re.sub(r"\n[ \t]*/\*\s*(?:public:)?\s*\*/", "", code)
    entry.code = code
    body = re.sub(r"/\*.*?\*/|//[^\n]*", "", code, flags=re.S)
    if entry.kind == "typedef":
        return arguments_of_typedef(entry, body)
    body = body[body.index("{") + 1:body.rindex("}")]
    if entry.kind == "enum":
        return [part.split("=")[0].strip() for part in body.split(",") if part.strip()]
    body = re.sub(r"\b(?:struct|union)\s*\{|\}", " ", body)     # nested without a name
    body = re.sub(ATTRIBUTE, "", body)
    names = []
    for text in body.split(";"):
        for part in split(" ".join(text.split())):
            names.append(argument_name(entry, part.split(":")[0].strip()))
    return names
