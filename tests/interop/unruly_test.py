# SPDX-License-Identifier: Apache-2.0
"""An initiator that is let in and then breaks the rules: each time a clear answer or the end of its connection, and nothing else
happens: not a byte of it is on the disk, and the next one is served."""
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
import boxes as b
import target_box as t
from raw_initiator import RawInitiator

block = 512
old = b"a" * (16 * block)
response, r2t, reject = 0x21, 0x31, 0x3f
command_not_supported = 0x05  # reason of a Reject
illegal_request = 0x05
invalid_field_in_information_unit = (illegal_request, 0x0e, 0x03)


class Unruly(t.TargetTest):
    def setUp(self):
        super().setUp()
        self.lun()
        self.let_in(t.initiator, "lun1")
        self.iqn = self.boxes.iscsi_url("lun1").split("/")[3]
        self.peers = []
        self.addCleanup(lambda: [peer.close() for peer in self.peers])
        peer = self.connect()
        peer.write10(0, 16, len(old), old)
        self.assertEqual(peer.receive().status, 0)

    def connect(self):
        peer = RawInitiator("127.0.0.1", self.boxes.ports["127.0.0.1"], self.iqn, t.initiator)
        self.peers.append(peer)
        peer.test_unit_ready()
        return peer

    def unchanged(self, peer=None):
        self.assertEqual((peer or self.connect()).read10(0, 16), old)
        self.assertTrue(self.boxes.target.running())

    def asked_for_data(self, blocks):
        """A write without immediate data, up to the target's request for it."""
        peer = self.connect()
        itt = peer.write10(0, blocks, blocks * block)
        asked = peer.receive()
        self.assertEqual((asked.opcode, asked.itt), (r2t, itt))
        return peer, itt, asked.ttt

    def ends(self, peer):
        """It may be told why before the target closes."""
        answer = peer.receive()
        while answer is not None:
            self.assertEqual(answer.opcode, reject)
            answer = peer.receive()

    def test_an_unknown_opcode_is_rejected_and_the_session_goes_on(self):
        for opcode, data in ((0x07, b""), (0x1f, b"x" * 300), (0x1c | 0x40, b"")):
            with self.subTest(opcode=hex(opcode)):
                peer = self.connect()
                header = struct.pack(">BBHI8sIIIIxxxxxxxxxxxxxxxx", opcode, 0x80, 0, len(data), bytes(8), 77, 0xffffffff,
                                     peer.cmd_sn, peer.stat_sn)
                peer.send(header, data)
                if not opcode & 0x40:
                    peer.cmd_sn += 1
                answer = peer.receive()
                self.assertEqual((answer.opcode, answer.header[2]), (reject, command_not_supported))
                self.assertEqual(answer.data, header)
                self.unchanged(peer)

    def test_endless_unknown_opcodes_end_the_connection(self):
        peer = self.connect()
        header = struct.pack(">BBHI8sIIIIxxxxxxxxxxxxxxxx", 0x5f, 0x80, 0, 0, bytes(8), 77, 0xffffffff, peer.cmd_sn, peer.stat_sn)
        peer.send(header)
        try:
            peer.socket.sendall(header * 10000)
        except OSError:
            pass
        self.ends(peer)
        self.unchanged()
        self.assertLess(self.boxes.logs().count("is not one of iSCSI's"), 10)

    def test_data_out_with_a_wrong_data_sn_ends_the_connection_and_writes_nothing(self):
        # As the suite of libiscsi has it: 0 twice, 27, -1, and the two in reverse order.
        for numbers in ((0, 0), (27,), (0xffffffff,), (1, 0)):
            with self.subTest(numbers=numbers):
                peer, itt, ttt = self.asked_for_data(len(numbers))
                for index, number in enumerate(numbers):
                    try:
                        peer.data_out(itt, ttt, number, index * block, b"b" * block, index == len(numbers) - 1)
                    except (BrokenPipeError, ConnectionResetError):
                        pass
                self.ends(peer)
                self.unchanged()

    def test_data_out_that_was_not_asked_for_ends_the_connection_and_writes_nothing(self):
        cases = {"beyond the request": dict(offset=block, length=block), "too long": dict(length=2 * block),
                 "another tag": dict(ttt_off=1), "too short, and final": dict(length=block // 2)}
        for name, case in cases.items():
            with self.subTest(name):
                peer, itt, ttt = self.asked_for_data(1)
                peer.data_out(itt, ttt + case.get("ttt_off", 0), 0, case.get("offset", 0), b"b" * case.get("length", block), True)
                self.ends(peer)
                self.unchanged()

    def test_a_write_that_expects_less_data_than_its_cdb_says_is_refused_whole(self):
        # SPC and FCP-4 let a target write a part or refuse; a part of what was asked for is no answer that anybody checks.
        for blocks, expected in ((1, 0), (2, block), (1, 200), (16, 15 * block)):
            for immediate in (True, False):
                with self.subTest(blocks=blocks, expected=expected, immediate=immediate):
                    peer = self.connect()
                    itt = peer.write10(0, blocks, expected, b"b" * expected if immediate else b"")
                    answer = peer.receive()
                    self.assertEqual((answer.opcode, answer.itt, answer.status), (response, itt, 0x02))
                    self.assertEqual(answer.sense, invalid_field_in_information_unit)
                    self.assertTrue(answer.overflow)
                    self.assertEqual(answer.residual, blocks * block - expected)
                    self.unchanged(peer)

    def test_a_write_that_expects_more_data_than_its_cdb_says_writes_what_the_cdb_says(self):
        peer = self.connect()
        peer.write10(0, 1, 3 * block, b"b" * (3 * block))
        answer = peer.receive()
        self.assertEqual((answer.opcode, answer.status, answer.underflow, answer.residual), (response, 0, True, 2 * block))
        self.assertEqual(peer.read10(0, 16), b"b" * block + old[block:])

    def test_a_command_with_a_number_outside_the_window_is_not_carried_out(self):
        for number in (0, 0x7fffffff, 0xffffffff):
            with self.subTest(number=number):
                peer = self.connect()
                peer.write10(0, 1, block, b"b" * block, cmd_sn=number)
                self.unchanged()


if __name__ == "__main__":
    b.main()
