# SPDX-License-Identifier: Apache-2.0
"""The two that are compared, each a host and a target with a LUN in memory: started on free ports in a temporary directory,
stopped by process id."""
import contextlib
import os
import pathlib
import socket
import subprocess
import sys
import time

import jobs

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "tests" / "support"))
import boxes


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def control_socket(number):
    return f"/var/run/tgtd/socket.{number}"


def wait_until(condition, what):
    deadline = time.monotonic() + 20
    while not condition():
        if time.monotonic() > deadline:
            raise jobs.Failed(f"{what} did not come within 20 s")
        time.sleep(0.05)


class Vjbod:
    name = "vjbod"

    def __init__(self, bin_dir):
        boxes.BIN = pathlib.Path(bin_dir).resolve()
        self.boxes = boxes.Boxes()

    def start(self):
        self.boxes.start()
        self.boxes.create("bench", f"{jobs.FILE_MIB}M")
        # iscsi-perf gets a LUN of its own: one LUN is one host's.
        self.boxes.cli("target", "lun", "create", "perf", "--pool", "tank", "--size", f"{jobs.FILE_MIB}M")
        self.boxes.cli("target", "initiator", "add", jobs.INITIATOR)
        self.boxes.cli("target", "initiator", "allow", jobs.INITIATOR, "perf")
        for file in (self.boxes.dir / "pool").rglob("*.lun"):
            fill(file)
        self.socket = self.boxes.disk("bench")["socket"]
        self.url = self.boxes.iscsi_url("perf")

    def where(self, suite):
        return self.socket if suite == "path" else self.url

    def processes(self, suite):
        return [self.boxes.target.pid] + ([self.boxes.host.pid] if suite == "path" else [])

    def logs(self):
        return self.boxes.logs()

    def stop(self):
        self.boxes.close()


class QemuAndTgt:
    name = "qemu+tgt"
    iqn = "iqn.2026-11.io.vjbod.bench:tgt"

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.processes_started = []
        # tgtd's control sockets are told apart by a number with 15 bits.
        self.control = str(next(n for n in range(1000 + os.getpid() % 30000, 32768) if not os.path.exists(control_socket(n))))

    def spawn(self, *command):
        with open(self.directory / f"{command[0]}.log", "ab") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.processes_started.append(process)
        return process

    def tgtadm(self, *arguments, check=True):
        return jobs.run("tgtadm", "-C", self.control, "--lld", "iscsi", *arguments, timeout=20, check=check)

    def start(self):
        lun = self.directory / "tgt.lun"
        lun.touch()
        os.truncate(lun, jobs.FILE_MIB << 20)
        fill(lun)
        port = free_port()
        self.tgtd = self.spawn("tgtd", "-f", "-C", self.control, "--iscsi", f"portal=127.0.0.1:{port}")
        wait_until(lambda: self.tgtadm("--op", "show", "--mode", "target", check=False).returncode == 0, "tgtd's answer")
        self.tgtadm("--op", "new", "--mode", "target", "--tid", "1", "-T", self.iqn)
        self.tgtadm("--op", "new", "--mode", "logicalunit", "--tid", "1", "--lun", "1", "-b", lun)
        self.tgtadm("--op", "bind", "--mode", "target", "--tid", "1", "-I", "ALL")
        self.url = f"iscsi://127.0.0.1:{port}/{self.iqn}/1"
        self.socket = self.directory / "qemu.sock"
        self.qemu = self.spawn("qemu-nbd", "--image-opts",
                               f"driver=iscsi,transport=tcp,portal=127.0.0.1:{port},target={self.iqn},lun=1,"
                               f"initiator-name={jobs.INITIATOR}", "-k", str(self.socket), "-e", "16", "-t", "--cache=none")
        wait_until(self.socket.exists, "qemu-nbd's socket")

    def where(self, suite):
        return self.socket if suite == "path" else self.url

    def processes(self, suite):
        return [self.tgtd.pid] + ([self.qemu.pid] if suite == "path" else [])

    def logs(self):
        return "".join(f"--- {path.name}\n{path.read_text(errors='replace')[-3000:]}" for path in self.directory.glob("*.log"))

    def stop(self):
        for process in reversed(self.processes_started):
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        # tgtd leaves its control socket behind.
        for path in (control_socket(self.control), control_socket(self.control) + ".lock"):
            with contextlib.suppress(OSError):
                os.unlink(path)


def fill(path):
    """With bytes of which none is zero, so that no read is one of a hole."""
    with open(path, "r+b") as file:
        for _ in range(jobs.FILE_MIB):
            file.write(os.urandom(4096) * 256)
