#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The documentation as a site: Documentation/*.rst, and the manual, page by page.

Sphinx makes it, of copies in BUILD/site: there pages name each other by links, and each page of the
manual, which mandoc makes, has a heading and a summary that the search finds. A warning is an error.
"""

import argparse
import html
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent

# Chapters in the order of reading; what is in none is an error.
CHAPTERS = [
    ("Begin", ["install", "tutorial", "libhamlyn"]),
    ("Between hosts", ["administration", "fabrics"]),
    ("Parallel programs", ["mpi", "active-messages", "tempest-tutorial", "tempest"]),
    ("How fast", ["performance", "jobs", "tracing"]),
    ("How protected", ["threat-model", "conformance"]),
    ("How it is made", ["architecture", "layout", "uapi", "abi", "barriers", "locking"]),
    ("How it is tested", ["testing", "coverage", "dependencies", "releasing", "upstream"]),
]

# Of names in section 3, by their beginnings, in the order of the page that lists them.
FAMILIES = [
    ("Channels", r"h_channel|hamlyn_channel"),
    ("Servers", r"h_server|hamlyn_server"),
    ("Publishing", r"h_(publisher|publication|subscri)|hamlyn_publish"),
    ("Work queues", r"h_work|hamlyn_work"),
    ("Rendezvous", r"h_(listener|connect)|hamlyn_rendezvous"),
    ("Streams", r"h_stream|hamlyn_stream"),
    ("Datagrams", r"h_datagram|hamlyn_datagram"),
    ("Tagged writes", r"h_tagged|hamlyn_tagged"),
    ("Groups, gathers, barriers", r"h_(group|gather|barrier)|hamlyn_(group|gather|barrier)"),
    ("Managers", r"h_(manager|receiver|seed)|hamlyn_manager"),
    ("Active Messages", r"am_|gam|HPAM|hpam|handler|lam|vnn"),
    ("Tempest", r"TPPI|tempest"),
    ("Stache", r"stache"),
    ("Hamlyn itself", r""),
]

MANUALS = [
    "tools/hamlynctl/hamlynctl.8",
    "tools/hamlyn-cat/hamlyn-cat.1",
    "tools/hamlyn-run/hamlyn-run.1",
    "tools/hamlyn-perf/hamlyn-perf.1",
    "tools/hamlyn-bridge/hamlyn-bridge.1",
    "tools/tempest-cc/hamlyn-tempest-cc.1",
]


def heading(text, mark="="):
    return f"{mark * len(text)}\n{text}\n{mark * len(text)}\n\n"


# ---- chapters ---------------------------------------------------------------


def link_pages(text, names):
    """``page.rst``, and `words <page.rst>`_, become links to it."""
    text = re.sub(
        r"`([^`<]+?)\s*<([a-z-]+)\.rst>`_",
        lambda m: f":doc:`{m[1]} <{m[2]}>`" if m[2] in names else m[0],
        text,
    )

    def refer(match):
        if match[1] not in names:
            return match[0]
        made = f":doc:`{match[1]}`"
        # What is behind it in a table keeps its column.
        return made.ljust(len(match[0])) if match[2] is not None else made

    return re.sub(r"``(?:Documentation/)?([a-z-]+)\.rst``(?=(  )|)", refer, text)


def copy_chapters(source):
    pages = {path.stem: path for path in sorted((ROOT / "Documentation").glob("*.rst"))}
    listed = {name for _, chapter in CHAPTERS for name in chapter}
    if listed != set(pages):
        sys.exit(f"site.py: CHAPTERS and Documentation/*.rst differ: {sorted(listed ^ set(pages))}")
    for name, path in pages.items():
        (source / f"{name}.rst").write_text(link_pages(path.read_text(), pages))
    shutil.copytree(
        ROOT / "Documentation/bench",
        source / "bench",
        ignore=lambda _, names: [n for n in names if not n.endswith(".svg")],
    )


# ---- the manual -------------------------------------------------------------


def summary(page):
    """What stands behind the dash of NAME."""
    text = page.read_text()
    found = re.search(r"^\.Nd (.*)$", text, re.M)
    if found:
        line = found[1]
    else:
        found = re.search(r"^\.SH NAME\n.*? \\- (.*)$", text, re.M)
        if not found:
            sys.exit(f"site.py: {page}: NAME says nothing")
        line = found[1]
    line = line.replace("\\-", "-").replace("\\&", "").replace("\\(aq", "'")
    return re.sub(r"([*`|\\_])", r"\\\1", line.strip('"'))


def body(page, pages):
    made = subprocess.run(
        ["mandoc", "-Thtml", "-Ofragment", str(page)], check=True, capture_output=True, text=True
    ).stdout
    made = re.sub(r'<table class="(head|foot)">.*?</table>', "", made, flags=re.S)
    # Headings of its own would be in the contents of each page, twice.
    made = re.sub(r"<(/?)h1\b", r"<\1h2", made)

    def refer(match):
        name = html.unescape(match[1])
        return f'<a class="Xr" href="{name}.html">' if name in pages else '<a class="Xr">'

    made = re.sub(r'<a class="Xr"[^>]*aria-label="([^",]+), section (\d)">',
                  lambda m: refer((None, f"{m[1]}.{m[2]}")), made)
    return re.sub(r'<a class="Xr"(?: href="[^"]*")?>([^<]+)\((\d)\)</a>',
                  lambda m: link(f"{html.unescape(m[1])}.{m[2]}", f"{m[1]}({m[2]})", pages), made)


def link(name, text, pages):
    if name in pages:
        return f'<a class="Xr" href="{name}.html">{text}</a>'
    return f'<span class="Xr">{text}</span>'


def write_manual(source, build):
    folder = source / "man"
    folder.mkdir()
    pages = {
        path.name: path
        for path in sorted((build / "man").glob("man*/*.[1-8]")) + [ROOT / m for m in MANUALS]
    }
    for name, path in pages.items():
        title = f"{name[:-2]}({name[-1]})"
        (folder / f"{name}.rst").write_text(
            ":orphan:\n\n"
            + heading(title)
            + f"{summary(path)}\n\n.. raw:: html\n   :file: {name}.part\n"
        )
        (folder / f"{name}.part").write_text(f'<div class="manual">{body(path, pages)}</div>\n')
    return {name: summary(path) for name, path in pages.items()}


def lines_of(names, summaries):
    return "".join(
        f":doc:`{name[:-2]} <man/{name}>`\n   {summaries[name]}\n\n" for name in sorted(names)
    )


def write_lists(source, summaries):
    left = {name for name in summaries if name.endswith(".3")}
    text = heading("Calls, by name") + (
        "Each has a page of the manual, with its arguments, errors and lifetimes. "
        "``man 3 h_send_msg`` shows the same.\n\n"
    )
    for family, pattern in FAMILIES:
        names = {name for name in left if re.match(pattern, name)}
        left -= names
        if names:
            text += f"{family}\n{'-' * len(family)}\n\n" + lines_of(names, summaries)
    (source / "calls.rst").write_text(text)
    others = {name for name in summaries if not name.endswith(".3")}
    (source / "manual.rst").write_text(
        heading("Commands and concepts") + lines_of(others, summaries)
    )


# ---- the first page ---------------------------------------------------------


def write_index(source):
    text = (HERE / "index.rst").read_text()
    for caption, names in CHAPTERS + [("Manual", ["calls", "manual"])]:
        text += f"\n.. toctree::\n   :hidden:\n   :caption: {caption}\n\n"
        text += "".join(f"   {name}\n" for name in names)
    (source / "index.rst").write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default="build", help="where products are (default: build)")
    parser.add_argument("--version", required=True, help="of hamlyn")
    options = parser.parse_args()
    build = pathlib.Path(options.build).resolve()
    source, out = build / "site", build / "html"
    for folder in source, out:
        shutil.rmtree(folder, ignore_errors=True)
    (source / "static").mkdir(parents=True)
    shutil.copy(HERE / "site.css", source / "static")
    shutil.copy(HERE / "conf.py", source)
    copy_chapters(source)
    write_lists(source, write_manual(source, build))
    write_index(source)
    made = subprocess.run(
        ["sphinx-build", "-q", "-W", "--keep-going", "-b", "html", str(source), str(out)],
        check=False,
        env={**os.environ, "HAMLYN_VERSION": options.version},
    )
    if made.returncode:
        sys.exit("site.py: sphinx-build has something to say")
    print(out / "index.html")


if __name__ == "__main__":
    main()
