# SPDX-License-Identifier: Apache-2.0
"""tgtd, a target that we did not write, on a port and a control port of its own, serving one file as LUN 1."""
import os
import random
import socket
import subprocess

import boxes as b

iqn = "iqn.2026-11.io.vjbod.test:foreign-target"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def need():
    b.need("tgtd", "tgtadm")
    if os.geteuid() != 0:
        b.skip("tgtd needs root")


class Tgt:
    def __init__(self, folder, size):
        self.log, self.file, self.port = folder / "tgtd.log", folder / "foreign", free_port()
        self.control = str(random.randrange(1000, 30000))  # another tgtd may run on this machine
        self.process = None
        with open(self.file, "wb") as file:
            file.truncate(size)

    def start(self):
        """It knows no target yet: serve() tells it one."""
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(["tgtd", "-f", "-C", self.control, "--iscsi", f"portal=127.0.0.1:{self.port}"],
                                            stdout=log, stderr=log)
        b.eventually(lambda: b.run("tgtadm", "-C", self.control, "--lld", "iscsi", "--mode", "target", "--op", "show",
                                   check=False).returncode == 0, what="tgtd answering")

    def kill(self):
        # It does not end by SIGTERM while it has sessions.
        if self.process:
            self.process.kill()
            self.process.wait()

    def admin(self, mode, operation, *more):
        b.run("tgtadm", "-C", self.control, "--lld", "iscsi", "--mode", mode, "--op", operation, *more)

    def digests(self, key, value):
        self.admin("target", "update", "--tid", "1", "-n", key, "-v", value)

    def serve(self):
        self.admin("target", "new", "--tid", "1", "-T", iqn)
        self.admin("logicalunit", "new", "--tid", "1", "--lun", "1", "-b", self.file)
        for key in ("HeaderDigest", "DataDigest"):
            self.digests(key, "CRC32C,None")
        self.admin("target", "bind", "--tid", "1", "-I", "ALL")

    def account(self, user, secret, *more):
        """With "--outgoing": what it proves itself with."""
        self.admin("account", "new", "--user", user, "--password", secret)
        self.admin("account", "bind", "--tid", "1", "--user", user, *more)
