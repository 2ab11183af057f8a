# SPDX-License-Identifier: Apache-2.0
"""What the daemons take while nothing is asked of them: no measurable CPU, and bounded memory however many sit connected."""
import contextlib
import os
import pathlib
import struct
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
import boxes as b
import target_box as t
from raw_initiator import RawInitiator

idle_rss_kib_max = 64 * 1024
rss_kib_per_session_max = 3 * 1024
sessions = 50
disks = 8
loaders = 4
commands_of_a_loader = 100
loaded_rss_kib_min = 80 * 1024
# Two looks at the memory, 5 s apart, and a bit.
trimmed_seconds = 12
cpu_watched_seconds = 30
cpu_share_max = 0.001
# After it the daemons have given back what I/O took; their idle checks are 2 s apart.
settling_seconds = 5


def setUpModule():
    # What a sanitizer adds is not ours to bound. The programs name its start routine where they have one.
    program = (b.BIN / "vjbod-targetd").read_bytes()
    if any(name in program for name in (b"__asan_init", b"__tsan_init")):
        raise unittest.SkipTest("built with a sanitizer")


def cpu_seconds(daemon):
    """Of all threads, to the nanosecond: one tick of /proc/PID/stat would be a third of what is allowed."""
    total = 0
    for thread in os.listdir(f"/proc/{daemon.pid}/task"):
        with contextlib.suppress(FileNotFoundError):
            total += int(pathlib.Path(f"/proc/{daemon.pid}/task/{thread}/schedstat").read_text().split()[0])
    return total / 1e9


class Clients:
    """Programs that have used a disk and stay connected to it."""

    def __init__(self):
        self.processes = []

    def use(self, uri):
        client = subprocess.Popen(["qemu-io", "-f", "raw", uri], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
        self.processes.append(client)
        for command in ("write 0 4M", "read 0 4M"):
            client.stdin.write(command + "\n")
            client.stdin.flush()
            line = client.stdout.readline()
            while "ops" not in line:
                if line == "" or "failed" in line:
                    raise AssertionError(f"qemu-io: {line or 'it ended'}")
                line = client.stdout.readline()

    def close(self):
        for client in self.processes:
            client.stdin.close()
            client.stdout.close()
            client.wait(10)


class TargetResources(t.TargetTest):
    def test_idle_sessions_take_little_memory(self):
        self.lun()
        self.let_in(t.initiator, "lun1")
        iqn = self.boxes.iscsi_url("lun1").split("/")[3]
        alone = self.boxes.target.rss_kib()
        peers = []
        self.addCleanup(lambda: [peer.close() for peer in peers])
        for number in range(sessions):
            peer = RawInitiator("127.0.0.1", self.boxes.ports["127.0.0.1"], iqn, t.initiator,
                                isid=b"\x80" + number.to_bytes(5, "big"))
            peers.append(peer)
            peer.test_unit_ready()
            peer.write10(0, 128, 64 << 10, os.urandom(64 << 10))
            self.assertEqual(peer.receive().status, 0)
            peer.read10(0, 512)
        time.sleep(settling_seconds)
        with_sessions = self.boxes.target.rss_kib()
        for peer in peers:  # all live
            peer.test_unit_ready()
        print(f"vjbod-targetd: {alone} KiB alone, {(with_sessions - alone) / sessions:.0f} KiB for each of {sessions} idle sessions")
        self.assertLessEqual(alone, idle_rss_kib_max)
        self.assertLessEqual(with_sessions - alone, sessions * rss_kib_per_session_max)


    def test_the_memory_of_a_load_is_given_back(self):
        self.lun("lun1", "256M")
        self.let_in(t.initiator, "lun1")
        iqn = self.boxes.iscsi_url("lun1").split("/")[3]
        peers = []
        self.addCleanup(lambda: [peer.close() for peer in peers])
        for number in range(loaders):
            peer = RawInitiator("127.0.0.1", self.boxes.ports["127.0.0.1"], iqn, t.initiator,
                                isid=b"\x80" + number.to_bytes(5, "big"))
            peers.append(peer)
            peer.test_unit_ready()
        before = self.boxes.target.rss_kib()
        # Every command has its memory before the first gets its data.
        data = os.urandom(256 << 10)
        asked = []
        for peer in peers:
            for command in range(commands_of_a_loader):
                peer.write10(0, len(data) // 512, len(data))
            asked.append([peer.receive() for command in range(commands_of_a_loader)])
        for peer, requests in zip(peers, asked):
            for request in requests:
                self.assertEqual(request.opcode, 0x31)
                peer.data_out(request.itt, request.ttt, 0, 0, data, final=True)
                self.assertEqual(peer.receive().status, 0)
        loaded = self.boxes.target.rss_kib()
        self.assertGreater(loaded - before, loaded_rss_kib_min)
        time.sleep(trimmed_seconds)
        after = self.boxes.target.rss_kib()
        print(f"vjbod-targetd: {before} KiB before a load, {loaded} KiB in it, {after} KiB after it")
        self.assertLessEqual(after - before, loaders * rss_kib_per_session_max)


class HostResources(b.BoxTest):
    def setUp(self):
        b.need("qemu-io")
        super().setUp()
        self.clients = Clients()
        self.addCleanup(self.clients.close)

    def test_idle_disks_take_little_memory(self):
        alone = self.boxes.host.rss_kib()
        for number in range(disks):
            self.clients.use(self.boxes.create(f"disk{number}", "16M"))
        time.sleep(settling_seconds)
        with_disks = self.boxes.host.rss_kib()
        print(f"vjbod-hostd: {alone} KiB alone, {(with_disks - alone) / disks:.0f} KiB for each of {disks} idle disks with a client")
        self.assertLessEqual(alone, idle_rss_kib_max)
        self.assertLessEqual(with_disks - alone, disks * rss_kib_per_session_max)

    def test_an_idle_disk_takes_no_measurable_cpu(self):
        self.clients.use(self.boxes.create("disk1", "16M"))
        time.sleep(settling_seconds)
        daemons = (self.boxes.target, self.boxes.host)
        before = [cpu_seconds(daemon) for daemon in daemons]
        time.sleep(cpu_watched_seconds)
        for daemon, started_with in zip(daemons, before):
            share = (cpu_seconds(daemon) - started_with) / cpu_watched_seconds
            print(f"{daemon.program}: {share:.4%} of a CPU while idle")
            self.assertLess(share, cpu_share_max, daemon.program)


if __name__ == "__main__":
    b.main()
