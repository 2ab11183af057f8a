#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that includes follow the layers: a folder may include only what stands in its row. Run from anywhere;
prints each violation as file:line, exits 1 if there is one. Tests and generated files are free."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Folder -> folders it may include, besides itself. A name ending in .h is a single header.
ALLOWED = {
    "common/base": [],
    "common/runtime": ["common/base"],
    "common/scsi": ["common/base"],
    "common/iscsi": ["common/base"],
    "common/transport": ["common/base", "common/runtime", "common/iscsi"],
    "common/transport/memory": ["common/base", "common/runtime", "common/iscsi", "common/transport"],
    "common/transport/tcp": ["common/base", "common/runtime", "common/iscsi", "common/transport"],
    "common/transport/iser": ["common/base", "common/runtime", "common/iscsi", "common/transport"],
    "common/config": ["common/base", "common/runtime"],
    "common/net": ["common/base"],
    "common/rpc": ["common/base", "common/runtime", "common/config", "common/net", "proto"],
    "target/backstore": ["common/base", "common/runtime"],
    "target/scsi": ["common/base", "common/runtime", "common/scsi", "target/backstore"],
    "target/iscsi": ["common/base", "common/runtime", "common/iscsi", "common/transport/data_mover.h", "target/scsi"],
    "target/control": ["common", "target", "proto"],
    "target": ["common", "target", "proto"],
    "initiator/session": ["common/base", "common/runtime", "common/iscsi", "common/transport/data_mover.h",
                          "common/transport/connector.h", "common/transport/rdma_errc.h"],
    "initiator/disk": ["common/base", "common/runtime", "common/scsi", "common/transport/data_mover.h",
                       "initiator/session"],
    "initiator/frontend": ["common/base", "common/runtime", "initiator/disk"],
    "initiator/control": ["common", "initiator", "proto"],
    "initiator": ["common", "initiator", "proto"],
    "tools/vjbod": ["common", "proto"],
}
# Outside headers that only some folders may know. Pattern -> folders.
RESTRICTED = [
    (re.compile(r"boost/asio"), ["common/runtime", "common/transport/tcp", "common/rpc", "common/net", "target/control",
                                 "target", "initiator/frontend", "initiator/control", "initiator"]),
    (re.compile(r"grpc|google/protobuf"), ["common/rpc", "target/control", "target", "initiator/control", "initiator",
                                           "tools/vjbod"]),
    (re.compile(r"liburing"), ["target/backstore"]),
    (re.compile(r"infiniband/|rdma/"), ["common/transport/iser", "common/net"]),
    (re.compile(r"spdlog"), ["common/base", "common/rpc"]),  # rpc: what gRPC itself says becomes a log line
]
# Pure by name: no event loop, no clock, no log.
PURE = re.compile(r"(_machine|_codec|_wire|_table)(_\w+)?\.(h|cc)$")
PURE_FOLDERS = ["common/iscsi", "common/scsi"]
NOT_PURE = re.compile(r"common/runtime/(?!clock\.h|backoff\.h)|common/base/log\.h|boost/asio|<(thread|mutex|sys/socket\.h)>")
# SCSI must not know its transport, not even by name.
NO_TRANSPORT = ("common/scsi", "target/scsi")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def covers(entry, included):
    return included == entry or (not entry.endswith(".h") and included.startswith(entry + "/"))


def check(path, errors):
    name = path.relative_to(ROOT).as_posix()
    folder = path.parent.relative_to(ROOT).as_posix()
    if folder not in ALLOWED:
        errors.append(f"{name}:1: the folder {folder} is not in tools/check_layers.py")
        return
    pure = folder in PURE_FOLDERS or PURE.search(path.name)
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if folder in NO_TRANSPORT and "iscsi" in line.lower():
            errors.append(f"{name}:{number}: {folder} must not know its transport")
        match = INCLUDE.match(line)
        if not match:
            continue
        quote, included = match.groups()
        if quote == '"':
            if included.startswith("vjbod/v1/"):
                included = "proto/" + included
            own = included.rsplit("/", 1)[0] == folder
            if not own and not any(covers(entry, included) for entry in ALLOWED[folder]):
                errors.append(f"{name}:{number}: {folder} must not include {included}")
        for pattern, folders in RESTRICTED:
            if pattern.match(included) and folder not in folders:
                errors.append(f"{name}:{number}: {folder} must not know {included}")
        if pure and NOT_PURE.search(included if quote == '"' else f"<{included}>"):
            errors.append(f"{name}:{number}: a pure file must not include {included}")


def main():
    errors = []
    files = [path for top in ("common", "target", "initiator", "tools") for path in sorted((ROOT / top).rglob("*"))
             if path.suffix in (".h", ".cc")]
    for path in files:
        check(path, errors)
    print("\n".join(errors) if errors else f"{len(files)} files keep to the layers")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
