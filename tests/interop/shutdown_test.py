# SPDX-License-Identifier: Apache-2.0
"""SIGTERM: what was acknowledged is there, sessions are logged out, clients are not told errors, and the exit status is 0 within
10 s whatever hangs, and much sooner when nothing does."""
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
import boxes as b
import target_box as t

PROMPT = 4  # seconds: nothing hangs, on a busy machine
LIMIT = 10


class NbdWriter(threading.Thread):
    """Writes block after block, each with its number, keeps what was acknowledged and what was refused."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.acknowledged, self.errors, self.ended = str(path), 0, [], False

    def receive(self, size):
        data = b""
        while len(data) < size:
            got = self.socket.recv(size - len(data))
            if not got:
                raise ConnectionResetError
            data += got
        return data

    def run(self):
        try:
            with socket.socket(socket.AF_UNIX) as self.socket:
                self.socket.connect(self.path)
                self.receive(18)
                self.socket.sendall(struct.pack(">I", 3))                              # fixed newstyle, no zeroes
                self.socket.sendall(b"IHAVEOPT" + struct.pack(">II", 1, 0))           # the default export
                self.receive(10)
                for number in range(1 << 16):
                    data = struct.pack(">Q", number + 1) * 512
                    self.socket.sendall(struct.pack(">IHHQQI", 0x25609513, 0, 1, number, number * 4096, 4096) + data)
                    _, error, handle = struct.unpack(">IIQ", self.receive(16))
                    assert handle == number
                    if error:
                        self.errors.append((number, error))
                        return
                    self.acknowledged = number + 1
        except OSError:
            pass
        finally:
            self.ended = True


def timed_stop(daemon, *signals):
    started = time.monotonic()
    for number in signals or (signal.SIGTERM,):
        daemon.signal(number)
        time.sleep(0.1)
    status = daemon.process.wait(20)
    return status, time.monotonic() - started


class Shutdown(b.BoxTest):
    def setUp(self):
        b.need("nbdcopy", "fio")
        super().setUp()
        self.uri = self.boxes.create("disk1", "64M")

    def writer(self):
        writer = NbdWriter(self.boxes.disk("disk1")["socket"])
        writer.start()
        b.eventually(lambda: writer.acknowledged > 20, what="the first writes")
        return writer

    def check_data(self, writer):
        copy = self.boxes.dir / "copy"
        b.run("nbdcopy", "--", self.uri, copy)
        data = copy.read_bytes()
        self.assertGreater(writer.acknowledged, 20)
        for number in range(writer.acknowledged):
            block = data[number * 4096:(number + 1) * 4096]
            self.assertEqual(block, struct.pack(">Q", number + 1) * 512, f"block {number} of {writer.acknowledged} acknowledged")

    def test_the_target_stops_under_writes_and_the_host_goes_on_with_the_next_one(self):
        writer = self.writer()
        status, seconds = timed_stop(self.boxes.target)
        self.assertEqual(status, 0)
        self.assertLess(seconds, PROMPT)
        log = (self.boxes.dir / "target.log").read_text()
        self.assertIn("the initiator logged out", log)
        before = writer.acknowledged
        self.boxes.start_target()
        b.eventually(lambda: writer.acknowledged > before + 20, 60, "the writes going on")
        self.assertEqual(writer.errors, [])
        self.assertEqual(self.boxes.host.stop(), 0)
        writer.join(10)
        self.boxes.start_host()
        self.boxes.wait("disk1")
        self.check_data(writer)

    def test_the_host_stops_under_writes_without_an_error_to_its_clients(self):
        writer = self.writer()
        status, seconds = timed_stop(self.boxes.host)
        self.assertEqual(status, 0)
        self.assertLess(seconds, PROMPT)
        writer.join(10)
        self.assertTrue(writer.ended)
        self.assertEqual(writer.errors, [])
        self.assertIn("the initiator logged out", (self.boxes.dir / "target.log").read_text())
        self.boxes.start_host()
        self.boxes.wait("disk1")
        self.check_data(writer)

    def test_the_target_stops_with_a_host_that_hangs(self):
        self.boxes.host.signal(signal.SIGSTOP)
        status, seconds = timed_stop(self.boxes.target)
        self.assertEqual(status, 0)
        self.assertLess(seconds, 3 + PROMPT)  # the grace that initiators have to log out
        self.boxes.host.signal(signal.SIGCONT)

    def test_the_host_stops_with_a_target_that_hangs_and_tells_no_errors(self):
        writer = self.writer()
        self.boxes.target.signal(signal.SIGSTOP)
        time.sleep(1)
        status, seconds = timed_stop(self.boxes.host)
        self.boxes.target.signal(signal.SIGCONT)
        self.assertEqual(status, 0)
        self.assertLess(seconds, 5 + PROMPT)
        writer.join(10)
        self.assertEqual(writer.errors, [])
        self.boxes.start_host()
        self.boxes.wait("disk1")
        self.check_data(writer)

    def test_the_host_stops_at_once_when_its_target_is_gone(self):
        writer = self.writer()
        self.boxes.target.kill()
        b.eventually(lambda: self.boxes.disk("disk1")["state"] == "reconnecting", what="the loss being noticed")
        status, seconds = timed_stop(self.boxes.host)
        self.assertEqual(status, 0)
        self.assertLess(seconds, PROMPT)
        writer.join(10)
        self.assertEqual(writer.errors, [], "a client was told an error for a write that could still be done")

    def test_a_second_sigterm_changes_nothing(self):
        writer = self.writer()
        for daemon in (self.boxes.target, self.boxes.host):
            status, seconds = timed_stop(daemon, signal.SIGTERM, signal.SIGTERM, signal.SIGINT)
            self.assertEqual(status, 0)
            self.assertLess(seconds, LIMIT)
        writer.join(10)
        self.assertEqual(writer.errors, [])
        self.boxes.start_target()
        self.boxes.start_host()
        self.boxes.wait("disk1")
        self.check_data(writer)

    def test_with_people_who_watch_events_and_a_create_under_way(self):
        watchers = [subprocess.Popen([b.BIN / "vjbod", "--host-socket", self.boxes.dir / "host.sock", "events", "--follow"],
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(3)]
        creates = [subprocess.Popen([b.BIN / "vjbod", "--host-socket", self.boxes.dir / "host.sock", "create", f"new{n}", "--peer",
                                     "nas2", "--pool", "tank", "--size", "1M"], stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL) for n in range(4)]
        time.sleep(0.05)
        status, seconds = timed_stop(self.boxes.host)
        self.assertEqual(status, 0)
        self.assertLess(seconds, PROMPT)
        for client in watchers + creates:
            client.wait(10)
        self.boxes.start_host()
        for number in range(4):
            self.boxes.create(f"new{number}", "1M")  # whatever had been done of it
        self.assertEqual(len(self.boxes.json("target", "lun", "list")["luns"]), 5)

    def test_with_an_attach_that_waits_for_a_target_that_never_answers(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            waiting = subprocess.Popen([b.BIN / "vjbod", "--host-socket", self.boxes.dir / "host.sock", "attach", "silent",
                                        "--portal", f"127.0.0.1:{silent.getsockname()[1]}", "--target", "iqn.2026-11.test:silent",
                                        "--lun", "0"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            b.eventually(lambda: "silent" in self.boxes.cli("list").stdout, what="the disk being there")
            status, seconds = timed_stop(self.boxes.host)
            self.assertEqual(status, 0)
            self.assertLess(seconds, PROMPT)
            self.assertEqual(waiting.wait(10), 7)
            self.boxes.start_host()
            self.assertEqual(self.boxes.disk("silent")["state"], "connecting")

    def test_disks_that_come_up_while_the_daemon_stops(self):
        """At whatever moment the signal comes: the daemon ends in order, and the next one has the disk or can make it."""
        for number in range(12):
            create = subprocess.Popen([b.BIN / "vjbod", "--host-socket", self.boxes.dir / "host.sock", "create", f"late{number}",
                                       "--peer", "nas2", "--pool", "tank", "--size", "1M"], stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL)
            time.sleep(0.02 * number)
            status, seconds = timed_stop(self.boxes.host)
            self.assertEqual(status, 0, f"at {number}")
            self.assertLess(seconds, PROMPT, f"at {number}")
            create.wait(10)
            self.boxes.start_host()
            self.boxes.create(f"late{number}", "1M")
            self.boxes.wait(f"late{number}")
        self.assertEqual(len(self.boxes.json("target", "lun", "list")["luns"]), 13)


class DuringLogin(t.TargetTest):
    def test_sigterm_with_logins_half_way(self):
        peers = []
        for number in range(30):
            peer = socket.create_connection(("127.0.0.1", self.boxes.ports["127.0.0.1"]))
            self.addCleanup(peer.close)
            login = struct.pack(">BBHI", 0x43, 0x87, 0, 512) + bytes(40) + bytes(512)
            peer.sendall(login[:(0, 20, 48, 300)[number % 4]])
            peers.append(peer)
        status, seconds = timed_stop(self.boxes.target)
        self.assertEqual(status, 0)
        self.assertLess(seconds, PROMPT)

    def test_sigterm_while_initiators_log_in_and_out(self):
        b.need("iscsi-inq")
        self.lun()
        self.let_in(t.initiator, "lun1")
        url, stop = self.boxes.iscsi_url("lun1"), threading.Event()

        def log_in():
            while not stop.is_set():
                subprocess.run(["iscsi-inq", "-i", t.initiator, url], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               timeout=60)
        threads = [threading.Thread(target=log_in) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(3):
                time.sleep(0.4)
                status, seconds = timed_stop(self.boxes.target)
                self.assertEqual(status, 0)
                self.assertLess(seconds, 3 + PROMPT)
                self.boxes.start_target()
        finally:
            stop.set()
            for thread in threads:
                thread.join()


if __name__ == "__main__":
    b.main()
