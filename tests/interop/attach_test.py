# SPDX-License-Identifier: Apache-2.0
"""Disks that come, go and come again: what is made twice, given up half way, or ended by the other side."""
import json
import pathlib
import subprocess
import sys
import threading

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


if __name__ == "__main__":
    b.main()
