#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""House rules that a compiler does not check. Prints each violation as file:line, exits 1 if there is one.

- Each source begins with its licence line; headers have #pragma once; lines have at most 100 columns.
- Data-path folders have no locks, threads or atomics; clocks and entropy are read in one place each.
- Each source folder has a README.md of at most 40 lines that names every file in it, and no file that is not there.
- No folder or file is left that nothing builds. The five longest files are printed, for people to look at.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = ("common", "target", "initiator", "tools", "tests")
COLUMNS = 100
LINES_MAX = 700  # a file this long has more than one purpose
README_LINES_MAX = 40
NO_LOCKS = ("target/iscsi", "target/scsi", "initiator/session", "initiator/disk", "common/transport")
LOCKS = re.compile(r"std::(mutex|shared_mutex|atomic\b|thread\b|jthread|condition_variable)")
# One documented exception each, with its reason.
LOCKS_ALLOWED = {
    "target/scsi/logical_unit.h": "flush error and home-reactor hand-over, read by all shards",
    "common/transport/iser/open_devices.h": "librdmacm's devices are the process's; only when connections come and go",
}
CLOCK = re.compile(r"(steady_clock|system_clock|high_resolution_clock)::now\(")
CLOCK_HOMES = ("common/runtime/", "tools/", "tests/")
ENTROPY = re.compile(r"random_device|\brand\(|\bsrand\(")
BANNED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")


def tracked():
    out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, text=True,
                         capture_output=True).stdout
    return [name for name in out.splitlines() if (ROOT / name).is_file()]


def check_source(name, errors):
    text = (ROOT / name).read_text()
    lines = text.splitlines()
    folder = name.rsplit("/", 1)[0]
    if not lines or "SPDX-License-Identifier: Apache-2.0" not in "\n".join(lines[:3]):
        errors.append(f"{name}:1: the licence line is missing")
    if name.endswith(".h") and "#pragma once" not in lines:
        errors.append(f"{name}:1: #pragma once is missing")
    if name.endswith((".h", ".cc")) and len(lines) > LINES_MAX:
        errors.append(f"{name}:1: {len(lines)} lines; split it by purpose (limit {LINES_MAX})")
    table = False  # laid out by hand
    for number, line in enumerate(lines, 1):
        where = f"{name}:{number}"
        table = "clang-format off" in line or (table and "clang-format on" not in line)
        if name.endswith((".h", ".cc")) and len(line) > COLUMNS and not table:
            errors.append(f"{where}: {len(line)} columns, limit {COLUMNS}")
        if not name.endswith("tidy.py") and BANNED.search(line):
            errors.append(f"{where}: finish it, or open an issue")
        if name.endswith((".h", ".cc")) and not name.startswith("tests/"):
            if folder.startswith(NO_LOCKS) and LOCKS.search(line) and name not in LOCKS_ALLOWED:
                errors.append(f"{where}: no locks, threads or atomics on the data path")
            if CLOCK.search(line) and not name.startswith(CLOCK_HOMES):
                errors.append(f"{where}: ask the reactor (or common/runtime/wall_clock.h) for the time")
            if ENTROPY.search(line):
                errors.append(f"{where}: use common/base/random.h")


def check_readme(folder, names, errors):
    path = ROOT / folder / "README.md"
    where = f"{folder}/README.md"
    if not path.exists():
        errors.append(f"{where}:1: missing; it says purpose, files, invariants and thread rule")
        return
    text = path.read_text()
    if len(text.splitlines()) > README_LINES_MAX:
        errors.append(f"{where}:1: more than {README_LINES_MAX} lines")
    stems = {name.rsplit("/", 1)[1].rsplit(".", 1)[0] for name in names}
    for stem in sorted(stems):
        if not re.search(rf"\b{re.escape(stem)}\b", text):
            errors.append(f"{where}:1: does not name {stem}")
    for mentioned in re.findall(r"`([\w/]+)\.(?:h|cc)`", text):
        if "/" not in mentioned and mentioned not in stems and not list((ROOT / folder).rglob(mentioned + ".*")):
            errors.append(f"{where}:1: names {mentioned}, which is not there")


def main():
    errors = []
    names = tracked()
    sources = [n for n in names if n.startswith(SOURCES) and n.endswith((".h", ".cc", ".py", ".sh"))]
    for name in sources:
        check_source(name, errors)
    folders = {}
    for name in sources:
        if name.endswith((".h", ".cc")) and not name.startswith("tests/"):
            folders.setdefault(name.rsplit("/", 1)[0], []).append(name)
    for folder, files in sorted(folders.items()):
        check_readme(folder, files, errors)
    longest = sorted(((len((ROOT / n).read_text().splitlines()), n) for n in sources), reverse=True)[:5]
    print("longest files: " + ", ".join(f"{n} {count}" for count, n in longest))
    print("\n".join(errors) if errors else f"{len(sources)} sources keep to the house rules")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
