# SPDX-License-Identifier: Apache-2.0
"""Disks that come, go and come again: what is made twice, given up half way, or ended by the other side."""
import json
import pathlib
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
import boxes as b


class Attach(b.BoxTest):
    options = {"host_extra": '[limits]\nshards = 2', "target_extra": "allow_test_faults = true"}

    def luns(self):
        return {lun["name"]: lun for lun in self.boxes.json("target", "lun", "list")["luns"]}

    def io(self, disk, *commands, check=True, timeout=60):
        arguments = [x for command in commands for x in ("-c", command)]
        done = b.run("qemu-io", "-f", "raw", *arguments, self.boxes.uri(disk), check=False, timeout=timeout)
        if check:
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertNotIn("failed", done.stdout + done.stderr)
        return done

    def lun_with_data(self, name="e1"):
        """A LUN that exists, with data, and no disk."""
        b.need("qemu-io")
        self.boxes.create(name, "64M")
        self.io(name, "write -P 7 0 1M", "flush")
        self.boxes.cli("detach", name)

    def edit_host_state(self, edit):
        self.boxes.host.stop()
        file = self.boxes.dir / "host" / "host.json"
        state = json.loads(file.read_text())
        edit(state)
        file.write_text(json.dumps(state))
        self.boxes.start_host()

    def test_detach_after_an_attach_that_a_crash_interrupted_keeps_the_lun_and_its_data(self):
        self.lun_with_data()
        self.boxes.cli("attach", "x", "--peer", "nas2", "--lun", "e1")

        def interrupt(state):
            for disk in state["disks"]:
                disk["phase"] = "creating"
        self.edit_host_state(interrupt)
        self.boxes.cli("detach", "x")
        self.assertIn("e1", self.luns())
        self.boxes.cli("attach", "y", "--peer", "nas2", "--lun", "e1")
        self.io("y", "read -P 7 0 1M")

    def refused(self, *arguments):
        done = self.boxes.cli(*arguments, check=False)
        self.assertEqual(done.returncode, 4, done.stdout + done.stderr)
        return done.stderr

    def test_one_lun_is_not_attached_as_two_disks(self):
        b.need("qemu-io")
        self.boxes.create("d1", "64M")
        naa = self.luns()["d1"]["naa"]
        for lun in ("d1", naa):
            self.assertIn("as disk d1", self.refused("attach", "d2", "--peer", "nas2", "--lun", lun))
        iqn = self.luns()["d1"]["target_iqn"]
        portal = f"{self.boxes.portals[0]}:{self.boxes.ports[self.boxes.portals[0]]}"
        self.assertIn("as disk d1", self.refused("attach", "d2", "--portal", portal, "--target", iqn, "--lun", "0"))
        self.io("d1", "write -P 9 0 1M", "read -P 9 0 1M")
        self.assertEqual([d["name"] for d in self.boxes.json("list")["disks"]], ["d1"])
        # The refusals took nothing away: the first disk still gets in.
        self.boxes.cli("reconnect", "d1")
        self.boxes.wait("d1")
        self.io("d1", "read -P 9 0 1M")

    def test_a_lun_bound_anew_to_the_same_host_is_reached_with_its_new_secrets(self):
        b.need("qemu-io")
        self.boxes.create("d1", "64M")
        self.io("d1", "write -P 5 0 1M", "flush")
        self.boxes.cli("target", "lun", "unbind", "d1")
        b.eventually(lambda: self.boxes.disk("d1")["state"] != "connected", what="the session's end")
        self.boxes.cli("target", "lun", "bind", "d1", "nas1")
        self.boxes.wait("d1", timeout="30s")
        self.io("d1", "read -P 5 0 1M")

    def test_an_unbound_lun_is_not_taken_back_by_the_host(self):
        self.boxes.create("d1", "64M")
        self.boxes.cli("target", "lun", "unbind", "d1")
        b.eventually(lambda: self.boxes.disk("d1")["state"] in ("failed", "reconnecting"), what="the session's end")
        deadline = time.monotonic() + 8
        while time.monotonic() < deadline:
            self.boxes.cli("reconnect", "d1", check=False)
            self.assertNotEqual(self.boxes.disk("d1")["state"], "connected")
            self.assertIsNone(self.luns()["d1"]["bound_to"])
            time.sleep(0.5)
        b.eventually(lambda: "vjbod target lun bind" in self.boxes.disk("d1")["note"], what="being told what to do")


if __name__ == "__main__":
    b.main()
