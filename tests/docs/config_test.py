# SPDX-License-Identifier: Apache-2.0
"""Every key of the configuration that a manual names: what the manual shows is taken, and a wrong type, a value out of range or
an unknown key beside it is refused with file, line and reason. Usage: config_test.py BIN_DIR SOURCE_DIR"""
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib

bin_dir, source = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
failures, checks = [], 0

# One value of each type, as TOML.
VALUES = {"text": '"zz zz"', "number": "7", "negative": "-1", "huge": "9223372036854775807", "fraction": "1.5", "flag": "true",
          "date": "1979-05-27", "numbers": "[1, 2]", "table": "{ a = 1 }", "texts": '["zz zz"]'}
# What each kind of key may take of these. "7" is a duration and, where it fits the range, a count.
TAKES = {"text": set(), "flag": {"flag"}, "number": {"number"}, "duration": {"number"}, "size": set(), "texts": set()}


def target_keys():
    """Table ("" for the top) -> keys, from the list of the manual. A table in two brackets is a list of tables."""
    text = (source / "target/vjbod-targetd.8.md").read_text().split("## CONFIGURATION", 1)[1].split("Example:", 1)[0]
    tables, table = {"": []}, ""
    for line in text.splitlines():
        if heading := re.match(r"`(\[+[a-z]+\]+)`", line):
            table = heading[1]
            tables[table] = []
        elif key := re.match(r"\* `([a-z_]+)`:", line):
            tables[table].append(key[1])
    return tables


def example(manual):
    """The TOML in the manual."""
    text = re.split(r"\n#+ (?:FILES|SIGNALS)", (source / manual).read_text().split("CONFIGURATION", 1)[1])[0]
    lines = re.findall(r"^    (.+)$", text, re.MULTILINE)
    return "\n".join(lines)


def kind_of(program, table, key):
    kinds = {"vjbod-targetd": {"number": "connections connections_per_address command_window shards",
                               "duration": "login_deadline keepalive_idle keepalive_answer logout_grace",
                               "size": "buffer_memory", "flag": "allow_test_faults pin_shards io_uring",
                               "texts": "transports algorithms"},
             "vjbod-hostd": {"number": "shards disks_max", "size": "buffer_memory",
                             "duration": "connect_timeout keepalive_idle keepalive_timeout"}}
    for kind, keys in kinds[program].items():
        if key in keys.split():
            return kind
    return "text"


def check(program, text, line=None, key=None):
    """`line`: where the error must be said to be; none: the text must be taken."""
    global checks
    checks += 1
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(text)
        file.flush()
        done = subprocess.run([bin_dir / program, "--check-config", "--config", file.name], capture_output=True, text=True,
                              timeout=30)
        said = done.stderr
        if line is None:
            if done.returncode != 0:
                failures.append(f"{program} refuses what it should take: {said}\n{text}")
            return
        wanted = f"{file.name}:{line}: " + (f"{key}: " if key else "")
        if done.returncode != 2 or wanted not in said or len(said.split(wanted)[1].strip()) < 5:
            failures.append(f"{program}: exit {done.returncode}, \"{said.strip()}\" and not \"{wanted}…\" for\n{text}")


def lines_of(table, key, value):
    """The file, and the line that holds the key."""
    others = {"[[portal]]": ['address = "127.0.0.1:0"'], "[[pool]]": ['name = "tank"', 'path = "/srv"']}.get(table, [])
    others = [line for line in others if not line.startswith(key + " ")]
    head = [table] if table else []
    text = head + [f"{key} = {value}"] + others
    return "\n".join(text) + "\n", len(head) + 1


host_tables = {"": []}
for name, value in tomllib.loads(example("initiator/vjbod-hostd.8.md")).items():
    if isinstance(value, dict):
        host_tables[f"[{name}]"] = list(value)
    else:
        host_tables[""].append(name)

for program, tables, manual in (("vjbod-targetd", target_keys(), "target/vjbod-targetd.8.md"),
                                ("vjbod-hostd", host_tables, "initiator/vjbod-hostd.8.md")):
    assert sum(map(len, tables.values())) > 12, f"the keys of {program} could not be read from its manual: {tables}"
    check(program, example(manual))
    check(program, "")
    for table, keys in tables.items():
        prefix = table.strip("[]") + "." if table else ""
        text, line = lines_of(table, "no_such_key", "1")
        check(program, text, line, prefix + "no_such_key")
        for key in keys:
            kind = kind_of(program, table, key)
            for type_name, value in VALUES.items():
                text, line = lines_of(table, key, value)
                if type_name in TAKES[kind]:
                    check(program, text)
                else:
                    check(program, text, line, prefix + key)
    check(program, "name = \n", 1)
    check(program, "name = \"a\"\nname = \"b\"\n", 2)
    check(program, "[control\n", 1)
    for name in ("", "../x", "Nas", "a b", "a\\u0007", "ü", "-a", "x" * 64):
        check(program, f'name = "{name}"\n', 1, "name")
    for level in ("loud", "INFO", ""):
        check(program, f'log_level = "{level}"\n', 1, "log_level")
    check(program, "[table_nobody_knows]\na = 1\n", 1, "table_nobody_knows")
    check(program, "[limits]\nkeepalive_idle = \"1.5h\"\n", 2, "limits.keepalive_idle")
    check(program, "[limits]\nkeepalive_idle = \"30d\"\n", 2, "limits.keepalive_idle")
    missing = subprocess.run([bin_dir / program, "--config", "/nonexistent/file.toml"], capture_output=True, text=True, timeout=30)
    if missing.returncode != 2 or "/nonexistent/file.toml" not in missing.stderr:
        failures.append(f"{program}: a missing file: exit {missing.returncode}, {missing.stderr}")

for wrong, key in (('[[portal]]\naddress = "nas2:3260"', "portal.address"), ('[[portal]]\naddress = "127.0.0.1:99999"', "portal.address"),
                   ('[[portal]]\naddress = "[::1"', "portal.address"), ('[control]\nlisten = "::1:x:y"', "control.listen"),
                   ('[[pool]]\nname = "tank"\npath = "srv"', "pool.path"), ('[[pool]]\nname = "Tank"\npath = "/srv"', "pool.name")):
    check("vjbod-targetd", wrong + "\n", 3 if key == "pool.path" else 2, key)
check("vjbod-targetd", "iqn_prefix = \"iqn.2026-13.io\"\n", 1, "iqn_prefix")
check("vjbod-hostd", "initiator_iqn = \"nas1\"\n", 1, "initiator_iqn")

print("\n".join(failures) or f"{checks} configurations are judged as they should be")
sys.exit(1 if failures else 0)
