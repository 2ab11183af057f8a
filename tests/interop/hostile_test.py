# SPDX-License-Identifier: Apache-2.0
"""Bytes that no initiator sends, against a running target: it lives, serves others meanwhile, and its memory stays bounded."""
import os
import pathlib
import socket
import struct
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
import boxes as b
import target_box as t

idle_rss_kib = 64 * 1024
rss_per_session_kib = 3 * 1024


def header(opcode, flags=0, data_length=0, ahs_words=0):
    """A basic header segment (RFC 7143, 11.2); what is not given is zero."""
    return struct.pack(">BBHI", opcode, flags, 0, (ahs_words << 24) | data_length) + bytes(40)


class Hostile(t.TargetTest):
    def setUp(self):
        b.need("iscsi-inq")
        super().setUp()
        self.lun()
        self.let_in(t.initiator, "lun1")
        self.url = self.boxes.iscsi_url("lun1")
        self.open = []
        self.addCleanup(lambda: [peer.close() for peer in self.open])

    def connect(self):
        peer = socket.create_connection(("127.0.0.1", self.boxes.ports["127.0.0.1"]), timeout=20)
        self.open.append(peer)
        return peer

    def served(self):
        """A real login still works."""
        self.assertTrue(self.boxes.target.running())
        self.assertIn("VJBOD", self.libiscsi("iscsi-inq", self.url).stdout)

    def ended(self, peer):
        """The target closes; what it says before is bounded."""
        said = 0
        try:
            while True:
                got = peer.recv(65536)
                if not got:
                    break
                said += len(got)
                self.assertLess(said, 65536)
        except (ConnectionResetError, BrokenPipeError):
            pass

    def send(self, peer, data):
        try:
            peer.sendall(data)
        except (ConnectionResetError, BrokenPipeError):
            pass

    def test_a_first_pdu_that_is_no_login_ends_the_connection(self):
        for opcode in (0x00, 0x01, 0x02, 0x04, 0x05, 0x06, 0x10, 0x1c, 0x20, 0x23, 0x3f):
            peer = self.connect()
            self.send(peer, header(0x40 | opcode, 0x80))
            self.ended(peer)
        self.served()

    def test_garbage_ends_the_connection(self):
        for length in (48, 49, 4096, 1 << 20):
            peer = self.connect()
            # The first byte is an opcode that nobody has, so that the bytes cannot be a login by chance.
            self.send(peer, b"\x3f" + os.urandom(length - 1))
            self.ended(peer)
        self.served()

    def test_lengths_beyond_the_limits_end_the_connection_and_take_no_memory(self):
        before = self.boxes.target.rss_kib()
        for data_length, ahs in ((0xffffff, 0), (0xffffff, 255), (8193, 0), (0, 255), (1 << 20, 1)):
            peer = self.connect()
            self.send(peer, header(0x43, 0x87, data_length, ahs))
            self.ended(peer)
        self.assertLess(self.boxes.target.rss_kib() - before, 8 * 1024)
        self.served()

    def test_truncated_pdus_end_with_the_connection(self):
        for data in (b"\x43", header(0x43, 0x87)[:47], header(0x43, 0x87, 512), header(0x43, 0x87, 512) + b"InitiatorName=iqn."):
            peer = self.connect()
            self.send(peer, data)
            peer.shutdown(socket.SHUT_WR)
            self.ended(peer)
        self.served()

    def test_text_that_is_no_text_ends_the_login(self):
        for text in (b"\0" * 8192, b"=" * 512, b"A" * 8192, b"InitiatorName=" + b"x" * 300 + b"\0", os.urandom(512),
                     b"InitiatorName=iqn.a\0" * 300):
            text = text[:8192]
            peer = self.connect()
            self.send(peer, header(0x43, 0x87, len(text)) + text + bytes(-len(text) % 4))
            peer.shutdown(socket.SHUT_WR)
            self.ended(peer)
        self.served()

    def test_a_byte_a_second_is_ended_by_the_time_limit_of_the_login(self):
        peer = self.connect()
        peer.settimeout(1)
        started = time.monotonic()
        rest = iter(header(0x43, 0x87, 512) + bytes(512))
        while True:
            self.assertLess(time.monotonic() - started, 90, "the target waits for ever")
            try:
                peer.sendall(bytes([next(rest)]))
                if peer.recv(4096) == b"":
                    break
            except socket.timeout:
                continue
            except (ConnectionResetError, BrokenPipeError):
                break
        self.served()

    def test_idle_memory_is_bounded(self):
        self.assertLessEqual(self.boxes.target.rss_kib(), idle_rss_kib)
        for _ in range(20):
            self.served()
        self.assertLessEqual(self.boxes.target.rss_kib(), idle_rss_kib + rss_per_session_kib)


if __name__ == "__main__":
    b.main()
