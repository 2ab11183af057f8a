# SPDX-License-Identifier: Apache-2.0
"""A write that the target still holds when its session has ended never lands after one that was acknowledged later, however the
session ended and whoever comes next; and sessions that share a LUN by right are left alone."""
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
import boxes as b
import target_box as t
from raw_initiator import RawInitiator

block = 512
hold_ms = 6000


def hold_writes(boxes, lun, at, length):
    """The held write begins before what is held, and the one that replaces it ends there."""
    boxes.cli("target", "fault", "delay", lun, "--operations", "write", "--first-byte", at, "--length", length, "--ms", hold_ms)


def held(boxes):
    return any(session["tasks_active"] > 0 for session in boxes.json("target", "session", "list")["sessions"])


class PairedHost(b.BoxTest):
    options = {"target_extra": "allow_test_faults = true"}

    def setUp(self):
        b.need("qemu-io")
        super().setUp()
        self.uri = self.boxes.create("disk1", "64M")

    def io(self, *commands):
        arguments = [x for command in commands for x in ("-c", command)]
        done = b.run("qemu-io", "-f", "raw", *arguments, self.uri, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertNotIn("failed", done.stdout + done.stderr)

    def held_write(self):
        hold_writes(self.boxes, "disk1", 4096, 4096)
        writer = subprocess.Popen(["qemu-io", "-f", "raw", "-c", "write -P 1 0 8k", self.uri], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        self.addCleanup(writer.wait)
        self.addCleanup(writer.kill)
        b.eventually(lambda: held(self.boxes), what="the write")
        return time.monotonic() + hold_ms / 1000

    def new_data_stays(self, over):
        self.uri = self.boxes.uri("disk1")
        self.io("write -P 2 0 4k", "flush")
        time.sleep(max(0.0, over - time.monotonic()) + 1)
        self.io("read -P 2 0 4k")

    def test_detached_by_force_and_attached_again(self):
        over = self.held_write()
        self.boxes.cli("detach", "disk1", "--force")
        self.boxes.cli("attach", "disk1", "--peer", "nas2", "--lun", "disk1")
        self.new_data_stays(over)

    def test_unbound_and_bound_anew(self):
        over = self.held_write()
        self.boxes.cli("target", "lun", "unbind", "disk1")
        self.assertGreater(time.monotonic(), over - 1, "the answer came before the old session was over")
        self.boxes.cli("target", "lun", "bind", "disk1", "nas1")
        self.boxes.cli("detach", "disk1", "--force")
        self.boxes.cli("attach", "disk1", "--peer", "nas2", "--lun", "disk1")
        self.new_data_stays(over)


class ForeignInitiators(t.TargetTest):
    options = {"target_extra": "allow_test_faults = true"}
    other = "iqn.2026-11.io.vjbod.test:other"

    def setUp(self):
        super().setUp()
        self.lun()
        self.let_in(t.initiator, "lun1")
        self.let_in(self.other, "lun1")
        self.iqn = self.boxes.iscsi_url("lun1").split("/")[3]

    def connect(self, name=t.initiator, isid=1):
        peer = RawInitiator("127.0.0.1", self.boxes.ports["127.0.0.1"], self.iqn, name, bytes([0x80, 0, 0, 0, 0, isid]))
        self.addCleanup(peer.close)
        peer.test_unit_ready()
        return peer

    def held_write(self, peer):
        hold_writes(self.boxes, "lun1", block, block)
        peer.write10(0, 2, 2 * block, b"1" * 2 * block)
        b.eventually(lambda: held(self.boxes), what="the write")
        return time.monotonic() + hold_ms / 1000

    def new_data_stays(self, peer, over):
        peer.write10(0, 1, block, b"2" * block)
        self.assertEqual(peer.receive().status, 0)
        time.sleep(max(0.0, over - time.monotonic()) + 1)
        self.assertEqual(peer.read10(0, 1), b"2" * block)

    def test_another_isid_waits_for_the_session_that_was_cut(self):
        peer = self.connect()
        over = self.held_write(peer)
        peer.close()
        b.eventually(lambda: not self.boxes.json("target", "session", "list")["sessions"], what="the end of the session")
        self.new_data_stays(self.connect(isid=2), over)

    def test_another_initiator_waits_for_it_too_and_those_that_live_are_not_disturbed(self):
        neighbour = self.connect(self.other)
        peer = self.connect()
        over = self.held_write(peer)
        peer.close()
        b.eventually(lambda: len(self.boxes.json("target", "session", "list")["sessions"]) == 1, what="the end of the session")
        neighbour.write10(8, 1, block, b"3" * block)
        self.assertEqual(neighbour.receive().status, 0)
        self.assertLess(time.monotonic(), over - 2, "the neighbour waited")
        self.new_data_stays(self.connect(self.other, isid=2), over)
        self.assertEqual(neighbour.read10(8, 1), b"3" * block)

    def test_a_right_taken_away_and_given_again(self):
        peer = self.connect()
        over = self.held_write(peer)
        self.boxes.cli("target", "initiator", "deny", t.initiator, "lun1")
        self.assertGreater(time.monotonic(), over - 1, "the answer came before the old session was over")
        self.boxes.cli("target", "initiator", "allow", t.initiator, "lun1")
        self.new_data_stays(self.connect(isid=2), over)


if __name__ == "__main__":
    b.main()
