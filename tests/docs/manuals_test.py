# SPDX-License-Identifier: Apache-2.0
"""Every option that a program takes stands in its manual, and every one that the manual names is taken.
Usage: manuals_test.py BIN_DIR SOURCE_DIR"""
import pathlib
import re
import subprocess
import sys

bin_dir, source = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")


def help_of(program, *command):
    done = subprocess.run([bin_dir / program, *command, "--help"], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, f"{program} {' '.join(command)} --help: exit {done.returncode}\n{done.stderr}"
    return done.stdout


def subcommands(text):
    text = text.split("Examples:")[0]
    if "Subcommands:" not in text:
        return []
    lines = text.split("Subcommands:", 1)[1].splitlines()
    return [line.split()[0] for line in lines if re.match(r"  [a-z]", line)]


def options_of(program):
    """Of the program and of all of its commands."""
    found, waiting = set(), [()]
    while waiting:
        command = waiting.pop()
        assert len(command) <= 3, f"{program}: commands nest without end: {command}"
        text = help_of(program, *command)
        found |= set(OPTION.findall(text.split("Examples:")[0]))
        waiting += [command + (name,) for name in subcommands(text)]
    return found


MANUALS = {"vjbod": "tools/vjbod/vjbod.8.md", "vjbod-hostd": "initiator/vjbod-hostd.8.md",
           "vjbod-targetd": "target/vjbod-targetd.8.md"}
taken = {program: options_of(program) for program in MANUALS}
of_any = set().union(*taken.values())  # a manual may speak of another program's options
failures = []
for program, manual in MANUALS.items():
    assert len(taken[program]) > 4, f"{program}: its help could not be read"
    written = set(OPTION.findall((source / manual).read_text()))
    failures += [f"{manual}: {option} is missing" for option in sorted(taken[program] - written)]
    failures += [f"{manual}: {option} is no option of any program" for option in sorted(written - of_any)]
print("\n".join(failures) or "manuals and programs agree")
sys.exit(1 if failures else 0)
