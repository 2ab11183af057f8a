# SPDX-License-Identifier: Apache-2.0
"""The jobs, how one is run, and what the programs that serve it spend on it."""
import json
import os
import pathlib
import re
import subprocess

FILE_MIB = 256  # of each LUN; fio uses a little less
INITIATOR = "iqn.2026-11.io.vjbod.bench:initiator"
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class Failed(Exception):
    """A program ended with an error or said something unexpected; the text is for the person."""


def run(*command, timeout, check=True):
    try:
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        raise Failed(f"{command[0]} did not end within {timeout} s") from None
    if check and done.returncode != 0:
        raise Failed(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done


def cpu_seconds(pids):
    """User and system time of the processes."""
    total = 0
    for pid in pids:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICKS_PER_SECOND


class FioJob:
    """Through an NBD socket."""
    suite = "path"

    def __init__(self, pattern, block, depth, wanted):
        self.pattern, self.block, self.depth, self.wanted = pattern, block, depth, wanted
        self.name = f"{pattern} {block} depth {depth}"

    def run(self, socket, seconds):
        """I/Os per second, and mean latency in microseconds."""
        done = run("fio", "--name=bench", "--ioengine=nbd", f"--uri=nbd+unix:///?socket={socket}", f"--rw={self.pattern}",
                   f"--bs={self.block}", f"--iodepth={self.depth}", "--time_based", f"--runtime={seconds}",
                   f"--size={FILE_MIB - 16}m", "--output-format=json", timeout=seconds + 60)
        # libnbd and fio may write lines before the document.
        job = json.loads(done.stdout[done.stdout.index("{"):])["jobs"][0]
        if job["error"] != 0:
            raise Failed(f"fio {self.name}: error {job['error']}")
        side = job["read"] if job["read"]["io_bytes"] else job["write"]
        return side["iops"], side["lat_ns"]["mean"] / 1000


class PerfJob:
    """Random reads, straight at an iSCSI target. Sectors are 512 bytes."""
    suite = "target"

    def __init__(self, block, sectors, depth, wanted):
        self.sectors, self.depth, self.wanted = sectors, depth, wanted
        self.name = f"randread {block} depth {depth}"

    def run(self, url, seconds):
        done = run("iscsi-perf", "-i", INITIATOR, "-m", self.depth, "-b", self.sectors, "-t", seconds, "-r", url,
                   timeout=seconds + 60)
        averages = re.findall(r"iops average (\d+)", done.stdout)
        if not averages or int(averages[-1]) == 0:
            raise Failed(f"iscsi-perf {self.name}: no figure in its output\n{done.stdout[-1000:]}{done.stderr[-1000:]}")
        iops = int(averages[-1])
        return iops, self.depth * 1e6 / iops


# With the ratio that each must reach.
JOBS = [
    FioJob("randread", "4k", 1, 1.2),
    FioJob("randread", "4k", 32, 1.5),
    FioJob("randwrite", "4k", 1, 1.2),
    FioJob("randwrite", "4k", 32, 1.5),
    FioJob("read", "1m", 8, 1.5),
    FioJob("write", "1m", 8, 1.5),
    FioJob("read", "2m", 1, 1.5),
    FioJob("write", "2m", 1, 1.5),
    PerfJob("4k", 8, 1, 1.2),
    PerfJob("4k", 8, 32, 1.5),
    PerfJob("256k", 512, 1, 1.5),
    PerfJob("256k", 512, 32, 1.5),
]
