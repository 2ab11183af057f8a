# SPDX-License-Identifier: Apache-2.0
"""Many connections that do not log in: a real login is not delayed, the limits hold, the log stays short, and nothing is left."""
import pathlib
import socket
import struct
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
import boxes as b
import target_box as t

idle_rss_kib = 64 * 1024


class Connections(t.TargetTest):
    def setUp(self):
        b.need("iscsi-inq", "iscsi-perf")
        super().setUp()
        self.lun()
        self.let_in(t.initiator, "lun1")
        self.url = self.boxes.iscsi_url("lun1")
        self.open = []
        self.addCleanup(lambda: [peer.close() for peer in self.open])

    def connect(self, source="127.0.0.1"):
        peer = socket.create_connection(("127.0.0.1", self.boxes.ports["127.0.0.1"]), timeout=20, source_address=(source, 0))
        self.open.append(peer)
        return peer

    def send(self, peer, data):
        try:
            peer.sendall(data)
        except OSError:
            pass

    def served(self):
        self.assertIn("VJBOD", self.libiscsi("iscsi-inq", self.url).stdout)

    def quickest_login(self):
        """Of three: a busy machine is not the target's fault."""
        fastest = 60.0
        for _ in range(3):
            started = time.monotonic()
            self.served()
            fastest = min(fastest, time.monotonic() - started)
        return fastest

    def log(self):
        return (self.boxes.dir / "target.log").read_text().splitlines()


class HalfOpen(Connections):
    def test_two_hundred_half_open_connections_do_not_delay_a_login_and_leave_nothing(self):
        before = self.boxes.target.descriptors()
        started = time.monotonic()
        login = struct.pack(">BBHI", 0x43, 0x87, 0, 512) + bytes(40) + b"InitiatorName=iqn.2026-11.io.test:slow\0" + bytes(512)
        peers = [self.connect() for _ in range(200)]
        for number, peer in enumerate(peers):
            peer.sendall(login[:(0, number % 49, 60)[number % 3]])  # nothing, a part of the header, half a login
        stop = threading.Event()

        def drip():
            """A byte a second on some of them."""
            for place in range(60, len(login)):
                for peer in peers[2:60:3]:
                    self.send(peer, login[place:place + 1])
                if stop.wait(1):
                    return

        dripping = threading.Thread(target=drip, daemon=True)
        dripping.start()
        self.assertLess(self.quickest_login(), 1.0)
        self.assertLess(self.boxes.target.rss_kib(), idle_rss_kib + 200 * 64)
        self.assertGreaterEqual(self.boxes.target.descriptors(), before + 200)
        b.eventually(lambda: self.boxes.target.descriptors() <= before, 30, "the descriptors being closed by the time limit")
        self.assertGreater(time.monotonic() - started, 14)
        stop.set()
        dripping.join()
        lines = [line for line in self.log() if "deadline" in line]
        self.assertLess(len(lines), 20, "a line for each connection")
        self.assertGreater(len(lines), 0)


class Caps(Connections):
    """The limits of the configuration, small."""
    options = {"target_extra": """[limits]
connections = 12
connections_per_address = 8
"""}

    def alive(self, peers):
        """How many of them the target has not closed."""
        time.sleep(0.5)
        count = 0
        for peer in peers:
            peer.setblocking(False)
            try:
                count += peer.recv(1) != b""
            except BlockingIOError:
                count += 1
            except OSError:
                pass
        return count

    def test_the_limits_hold_and_are_logged_once(self):
        one = [self.connect("127.0.0.2") for _ in range(40)]
        self.assertEqual(self.alive(one), 8)
        two = [self.connect("127.0.0.3") for _ in range(40)]
        self.assertLessEqual(self.alive(one) + self.alive(two), 12)
        self.assertLessEqual(self.alive(two), 8)
        self.assertLess(self.quickest_login(), 1.0)  # those that say nothing make way
        log = self.log()
        for address in ("127.0.0.2", "127.0.0.3"):
            self.assertLess(len([line for line in log if address in line]), 8, log)

    def test_sessions_do_not_make_way_and_the_refusal_is_logged_once(self):
        clients = [b.subprocess.Popen(["iscsi-perf", "-i", t.initiator, "-t", "60", self.url],
                                      stdout=b.subprocess.DEVNULL, stderr=b.subprocess.DEVNULL) for _ in range(8)]
        for client in clients:
            self.addCleanup(client.wait)
            self.addCleanup(client.kill)
        b.eventually(lambda: len(self.boxes.json("target", "session", "list")["sessions"]) == 8, what="eight sessions")
        more = [self.connect("127.0.0.1") for _ in range(60)]
        self.assertEqual(self.alive(more), 0)
        self.assertEqual(len(self.boxes.json("target", "session", "list")["sessions"]), 8)
        lines = [line for line in self.log() if "turned away" in line]
        self.assertEqual(len(lines), 1, lines)
        self.assertIn("limits.connections_per_address", lines[0])
        self.assertIn("127.0.0.1", lines[0])


if __name__ == "__main__":
    b.main()
