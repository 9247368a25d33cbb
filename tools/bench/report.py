#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Makes tables of what bench.sh measured.

usage: report.py DIR              print them
       report.py DIR --update RST --keep FOLDER
                                  put them between the markers of RST, and the
                                  JSON lines and diagrams into FOLDER

Tables stand between ".. BEGIN bench:NAME" and ".. END bench:NAME"; all other
text is left as it is. A table without results stays as it was."""

import argparse
import json
import os
import shutil
import sys

sys.dont_write_bytecode = True

import rst

COMPARED = ("lat", "bw", "rate", "load")


# ---- figures ----

def size_text(size):
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def digits(value):
    """Three figures that count."""
    if value >= 99.5:
        return f"{value:.0f}"
    if 0 < value < 0.0995:
        return f"{value:.2g}"
    return f"{value:.1f}" if value >= 9.95 else f"{value:.2f}"


def scaled(value, steps):
    """(factor, unit) from large to small."""
    for factor, unit in steps:
        if abs(value) >= factor * 0.9995:
            return f"{digits(value / factor)} {unit}"
    factor, unit = steps[-1]
    return f"{value / factor:.0f} {unit}"


def ns_text(ns):
    if ns is None:
        return "-"
    if ns < 9999.5:
        return f"{ns:.0f} ns"
    return scaled(ns, ((1e9, "s"), (1e6, "ms"), (1e3, "us")))


def per_s_text(value):
    if value is None:
        return "-"
    return scaled(value, ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""))).strip()


def bytes_per_s_text(value):
    if value is None:
        return "-"
    return scaled(value, ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s")))


def ratio_text(value):
    if value is None or value <= 0:
        return "-"
    return f"{value:.2f}" if value < 99.5 else f"{value:.0f}"


def text_of(key, value):
    """What a figure means is told by the end of its key."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if key.endswith("bytes_per_s"):
        return bytes_per_s_text(value)
    if key.endswith("_per_s"):
        return per_s_text(value)
    if "ns" in key.split("_"):
        return ns_text(value)
    if key in ("size", "page_bytes"):
        return size_text(value)
    if "ratio" in key or key.startswith("x_"):
        return ratio_text(value)
    if isinstance(value, float):
        return digits(value) if abs(value) < 1e6 else f"{value:.0f}"
    return str(value)


def title_of(key):
    """Without the unit, which stands in the cells."""
    words = [word for word in key.split("_") if word != "ns"]
    text = " ".join(words).replace("bytes per s", "bytes/s").replace(" per s", "/s")
    return text.removeprefix("per ") or key


# ---- results ----

def read(folder):
    """Section -> its results."""
    sections = {}
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".jsonl"):
            continue
        results = []
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                try:
                    results.append(json.loads(line))
                except json.JSONDecodeError as error:
                    print(f"report.py: {name}:{number}: {error}", file=sys.stderr)
        sections[name.removesuffix(".jsonl")] = results
    return sections


def in_order(values):
    return list(dict.fromkeys(values))


def systems_of(results):
    """In the order of the results, but the limit last."""
    return sorted(in_order(r["system"] for r in results), key=lambda name: name == "limit")


# ---- tables ----

def grid(results, test, key):
    """A row for each system, a column for each size."""
    results = [r for r in results if r.get("test") == test and r.get(key) is not None]
    if not results:
        return None
    sizes = sorted({r["size"] for r in results})
    cells = {(r["system"], r["size"]): r[key] for r in results}
    rows = [["", *(size_text(size) for size in sizes)]]
    for system in systems_of(results):
        rows.append([system, *(text_of(key, cells.get((system, size))) for size in sizes)])
    return rst.table(rows)


LATENCY_KEYS = ("median_ns", "p90_ns", "p99_ns", "p999_ns", "p9999_ns", "max_ns",
                "rtt_median_ns", "rtt_p99_ns", "ratio_to_limit")


def percentiles(results, test="lat"):
    """All of a latency, a row for each system and size."""
    results = [r for r in results if r.get("test") == test]
    if not results:
        return None
    keys = [k for k in LATENCY_KEYS if any(r.get(k) is not None for r in results)]
    rows = [["system", "size", *(title_of(k).replace("median", "p50") for k in keys)]]
    systems = systems_of(results)
    for r in sorted(results, key=lambda r: (r["size"], systems.index(r["system"]))):
        rows.append([r["system"], size_text(r["size"]), *(text_of(k, r.get(k)) for k in keys)])
    return rst.table(rows)


# What stands above the table of a test that has others beside it
CAPTIONS = {
    "scale-engines": "*x* engines, 0: the senders do their work; several processes send to one:",
    "scale-senders": "*x* processes send to one:",
    "scale-pairs": "*x* pairs of processes at the same time:",
    "scale-idle": "One-way latency of a pair beside *x* idle contexts:",
    "scale-termini": "Time of a message through one of *x* termini:",
    "scale-spread": "Time of a message, *x* termini in turn:",
    "scale-recent": "Time of a message through one of *x* termini that have all just been used:",
    "scale-slots": "Time of a message, *x* slots in turn:",
    "logp-signature": "Issue of trains of messages, with work between them:",
}


# What a table has no room for, and JSON has
HIDDEN = {
    "scale-bytes": ("page_bytes", "samples"),
    "scale-engines": ("device", "senders", "samples"),
}


def is_figure(key):
    """What a curve is about: told also where all points are alike."""
    return key.endswith(("_ns", "_per_s")) or key == "ratio"


def plain(results):
    """Any results: a column for each key, those with one and the same value left out."""
    tables = []
    tests = in_order(r.get("test") for r in results)
    for test in tests:
        if test in ("machine", "left-out", "areas"):
            continue
        part = [r for r in results if r.get("test") == test]
        keys = in_order(k for r in part for k in r)
        keys = [k for k in keys if k not in ("test", *HIDDEN.get(test, ())) and
                not any(isinstance(r.get(k), (list, dict)) for r in part)]
        if len(part) > 1:
            keys = [k for k in keys if len({json.dumps(r.get(k)) for r in part}) > 1 or
                    is_figure(k) and part[0].get(k) is not None]
        else:
            keys = [k for k in keys if k not in ("system", "size")]
        if not keys:
            continue
        if len(part) == 1:
            rows = [["", test], *([title_of(k), text_of(k, part[0].get(k))] for k in keys)]
        else:
            rows = [[title_of(k) for k in keys]]
            rows += [[text_of(k, r.get(k)) for k in keys] for r in part]
        caption = CAPTIONS.get(test)
        tables.append((caption + "\n\n" if caption else "") + rst.table(rows))
    return "\n\n".join(tables) or None


def left_out(results):
    missing = in_order((r["system"], r["why"]) for r in results if r.get("test") == "left-out")
    if not missing:
        return None
    return rst.table([["left out", "why"], *([system, why] for system, why in missing)])


def instructions(results):
    what = {"send16": "send 16 bytes", "emptypoll": "empty poll", "hit": "hit",
            "streamsend": "send 16 bytes through a stream, and flush",
            "streamrecv": "receive and release them",
            "channelsend": "send 16 bytes through a channel",
            "channelrecv": "receive and release them"}
    results = [r for r in results if r.get("test") == "instructions"]
    if not results:
        return None
    return rst.table([["operation", "instructions"],
                      *([what.get(r["op"], r["op"]), f"{r['instructions']:.0f}"]
                        for r in results)])


def icount(results):
    """One nanosecond of that machine is an instruction."""
    results = [r for r in results if r.get("ns_per_message")]
    if not results:
        return None
    return rst.table([["system", "instructions"],
                      *([r["system"], f"{r['ns_per_message']:.0f}"] for r in results)])


def am_guest(results):
    """Round trips, then what became of the messages over each fabric."""
    trips = [(r["system"], r["median_ns"]) for r in results if r.get("test") == "ping_pong"]
    trips += [(r["system"], r["rtt_median_ns"]) for r in results if r.get("test") == "lat"]
    fabrics = [r for r in results if r.get("test") == "exactly_once"]
    if not trips or not fabrics:
        return None
    keys = ("am_retransmissions", "am_reflections", "am_duplicates", "am_damaged")
    return "\n\n".join((
        rst.table([["32 bytes there and back", "rtt"],
                   *([system, ns_text(ns)] for system, ns in trips)]),
        rst.table([["fabric", "messages", "msgs/s", "sent again", "reflected", "duplicates",
                    "damaged"],
                   *([r["fabric"], str(r["messages"]), per_s_text(r["messages_per_s"]),
                      *(str(r[key]) for key in keys)] for r in fabrics)])))


def machine_text(results):
    if not results:
        return None
    m = results[0]
    return (f"{m['cpu']}, {m['cores']} cores{' of a virtual machine' if m['virtual'] else ''}, "
            f"{m['memory_mib'] // 1024} GiB, Linux {m['kernel']},\n{m['compiler']};\n"
            f"{m['date']}, {m['commit']}, load {m['load']} before the first section.")


def foreign_text(results):
    """Who else used the processors meanwhile?"""
    loads = [r["foreign_load"] for r in results
             if r.get("test") == "machine" and r.get("foreign_load") is not None]
    return f"Others used {100 * max(loads):.0f} % of the processors meanwhile." if loads else None


def tables_of(sections):
    """Name of a table -> its text."""
    tables = {"machine": machine_text(sections.pop("machine", []))}
    for section, results in sections.items():
        if section == "vm-am":
            tables[section] = am_guest(results)
        elif any(r.get("test") in COMPARED for r in results):
            tables.update({
                f"{section}-lat": grid(results, "lat", "median_ns"),
                f"{section}-lat-ratio": grid(results, "lat", "ratio_to_limit"),
                f"{section}-lat-p99": grid(results, "lat", "p99_ns"),
                f"{section}-lat-all": percentiles(results),
                f"{section}-bw": grid(results, "bw", "bytes_per_s"),
                f"{section}-bw-ratio": grid(results, "bw", "ratio_to_limit"),
                f"{section}-rate": grid(results, "rate", "msgs_per_s"),
                f"{section}-load": percentiles(results, "load"),
                f"{section}-cpu": grid(results, "lat", "cpu_ns_per_msg"),
                f"{section}-left-out": left_out(results),
                f"{section}-foreign": foreign_text(results),
            })
        elif section == "instructions":
            tables[section] = instructions(results)
        elif section == "vm-icount":
            tables[section] = icount(results)
        else:
            tables[section] = plain(results)
    return {name: text for name, text in tables.items() if text}


def keep(folder, to):
    os.makedirs(to, exist_ok=True)
    for name in sorted(os.listdir(folder)):
        if name.endswith((".jsonl", ".svg")):
            shutil.copyfile(os.path.join(folder, name), os.path.join(to, name))


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("folder")
    parser.add_argument("--update")
    parser.add_argument("--keep")
    args = parser.parse_args()
    sections = read(args.folder)
    tables = tables_of(sections)
    if not tables:
        sys.exit(f"report.py: {args.folder} holds no results")
    if args.update:
        asked = rst.update(args.update, "bench", tables)
        for name in asked:
            if name not in tables:
                print(f"report.py: no results for {name}: stays as it was", file=sys.stderr)
        for section in sections:
            if not any(name == section or name.startswith(section + "-") for name in asked):
                print(f"report.py: {args.update} has no place for {section}", file=sys.stderr)
    else:
        for name, text in tables.items():
            print(f"{name}\n\n{text}\n")
    if args.keep:
        keep(args.folder, args.keep)


if __name__ == "__main__":
    main()
