# SPDX-License-Identifier: Apache-2.0
"""What was asked for while a peer hangs, and what is asked for before it answers: each answer belongs to the disk, and to the
settings, that it was asked for, whatever has the name by then."""
import pathlib
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
import boxes as b

USAGE, BUSY = 2, 5
MIB = 1 << 20


class Meanwhile(b.BoxTest):
    def setUp(self):
        self.boxes = b.Boxes()
        self.addCleanup(self.boxes.close)
        self.boxes.start()

    def begin(self, *arguments):
        """A command that goes on while others are given."""
        command = subprocess.Popen([str(b.BIN / "vjbod"), "--host-socket", str(self.boxes.dir / "host.sock"), "--target-socket",
                                    str(self.boxes.dir / "target.sock"), *arguments], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(command.communicate)
        self.addCleanup(command.kill)
        time.sleep(0.7)  # it waits for the peer by now
        return command

    def give_up(self, command):
        command.send_signal(signal.SIGINT)
        command.wait(10)

    def hang(self):
        self.boxes.target.signal(signal.SIGSTOP)

    def go_on(self):
        self.boxes.target.signal(signal.SIGCONT)

    def write(self, disk, pattern):
        b.run("qemu-io", "-f", "raw", "-c", f"write -P {pattern} 0 1M", "-c", "flush", self.boxes.uri(disk))

    def read(self, disk, pattern):
        done = b.run("qemu-io", "-r", "-f", "raw", "-c", f"read -P {pattern} 0 1M", self.boxes.uri(disk))
        self.assertNotIn("Pattern verification failed", done.stdout)

    def luns(self):
        return {lun["name"]: lun for lun in self.boxes.json("target", "lun", "list")["luns"]}

    def test_an_attach_that_was_given_up_does_not_become_the_next_disk_of_that_name(self):
        b.need("qemu-io")
        self.boxes.create("old", "4M")
        self.write("old", 0x77)
        self.boxes.cli("detach", "old")
        self.hang()
        attach = self.begin("attach", "disk1", "--peer", "nas2", "--lun", "old")
        self.give_up(attach)
        self.boxes.cli("detach", "disk1")
        create = self.begin("create", "disk1", "--peer", "nas2", "--pool", "tank", "--size", "8M")
        self.go_on()
        self.assertEqual(create.wait(60), 0, create.stderr.read())
        disk = self.boxes.disk("disk1")
        self.assertEqual((disk["size_bytes"], disk["lun"]), (8 * MIB, "disk1"), disk)
        self.read("disk1", 0)
        self.write("disk1", 0x11)
        self.boxes.cli("attach", "old", "--peer", "nas2", "--lun", "old")
        self.read("old", 0x77)

    def test_a_lun_made_for_a_disk_that_was_detached_is_not_left_behind(self):
        self.hang()
        create = self.begin("create", "disk1", "--peer", "nas2", "--pool", "tank", "--size", "8M")
        self.boxes.cli("detach", "disk1")
        self.go_on()
        self.assertNotEqual(create.wait(60), 0)
        b.eventually(lambda: self.luns() == {}, timeout=60, what="the LUN being deleted again")

    def test_a_given_up_attach_takes_nothing_from_a_lun_made_later(self):
        self.hang()
        attach = self.begin("attach", "disk1", "--peer", "nas2", "--lun", "disk1")  # there is none
        self.give_up(attach)
        self.boxes.cli("detach", "disk1")
        self.go_on()
        self.boxes.create("disk1", "4M")
        peer = self.boxes.json("peers")["peers"][0]
        self.assertEqual(peer["pending"], [], "what is still to be told would end the new one")
        self.assertEqual(self.luns()["disk1"]["bound_to"], "nas1")

    def test_a_deletion_that_waits_is_of_its_own_disk(self):
        self.boxes.create("disk1", "4M")
        self.hang()
        delete = self.begin("delete", "disk1", "--yes")
        done = self.boxes.cli("detach", "disk1", check=False)
        self.assertEqual(done.returncode, BUSY, done.stderr)
        self.go_on()
        self.assertEqual(delete.wait(60), 0, delete.stderr.read())
        self.assertEqual(self.luns(), {})

    def test_settings_changed_while_a_peer_hangs_are_kept(self):
        self.boxes.create("disk1", "4M")
        self.hang()
        for command in (["reconnect", "disk1"], ["edit", "disk1", "--transport", "iscsi"]):
            slow = self.begin(*command)
            self.boxes.cli("edit", "disk1", "--on-loss", "fail", "--io-timeout", "30s")
            self.go_on()
            self.assertEqual(slow.wait(60), 0, slow.stderr.read())
            disk = self.boxes.disk("disk1")
            self.assertEqual((disk["on_loss"], disk["io_timeout_s"]), ("fail", 30), command)
            self.boxes.cli("edit", "disk1", "--on-loss", "queue", "--io-timeout", "600s")
            self.hang()
        self.go_on()
        self.assertEqual(self.boxes.disk("disk1")["transport_wanted"], "iscsi")

    def test_a_lun_that_the_peer_cannot_forget_is_not_said_to_be_deleted(self):
        self.boxes.create("disk1", "4M")
        shutil.move(self.boxes.dir / "target", self.boxes.dir / "away")
        done = self.boxes.cli("delete", "disk1", "--yes", check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("folder is gone", done.stderr)
        self.assertEqual(list(self.luns()), ["disk1"])
        shutil.move(self.boxes.dir / "away", self.boxes.dir / "target")
        b.eventually(lambda: self.luns() == {}, timeout=60, what="the LUN being deleted after all")

    def test_no_lun_has_a_name_that_another_luns_naa_could_be(self):
        self.boxes.create("disk1", "4M")
        naa = self.luns()["disk1"]["naa"].removeprefix("naa.")
        done = self.boxes.cli("create", naa, "--peer", "nas2", "--pool", "tank", "--size", "4M", check=False)
        self.assertEqual(done.returncode, USAGE, done.stderr)
        self.assertEqual(list(self.luns()), ["disk1"])
        self.assertEqual([disk["name"] for disk in self.boxes.json("list")["disks"]], ["disk1"])


if __name__ == "__main__":
    b.main()
