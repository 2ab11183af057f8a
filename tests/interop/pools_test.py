# SPDX-License-Identifier: Apache-2.0
"""Pools that are no directory: a block device (a loop device here) and memory; and the trace of a backstore. Needs root."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
import boxes as b

DEVICE_BYTES = 64 << 20


class Pools(b.BoxTest):
    def setUp(self):
        b.need("qemu-io", "losetup", "mkfs.ext4")
        if os.geteuid() != 0:
            b.skip("a loop device needs root")
        self.boxes = b.Boxes()
        self.addCleanup(self.boxes.close)
        backing = self.boxes.dir / "backing"
        with open(backing, "wb") as file:
            file.truncate(DEVICE_BYTES)
        made = b.run("losetup", "--find", "--show", backing, check=False)
        if made.returncode != 0:
            b.skip(f"no loop device here: {made.stderr.strip()}")
        self.device = made.stdout.strip()
        self.addCleanup(b.run, "losetup", "--detach", self.device, check=False)
        self.boxes.target_extra = "allow_test_faults = true"
        self.boxes.pools_extra = (f'[[pool]]\nname = "disk"\nkind = "block"\npath = "{self.device}"\n'
                                  '[[pool]]\nname = "ram"\nkind = "memory"\n')
        self.boxes.write_target_config()
        self.boxes.start()

    def io(self, disk, *commands):
        arguments = [word for command in commands for word in ("-c", command)]
        done = b.run("qemu-io", "-f", "raw", *arguments, self.boxes.uri(disk))
        self.assertNotIn("failed", done.stdout + done.stderr)

    def refused(self, code, *arguments):
        done = self.boxes.cli(*arguments, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stderr

    def restart_target(self):
        self.assertEqual(self.boxes.target.stop(), 0)
        self.boxes.start_target()

    def test_a_device_is_one_lun_that_nobody_else_may_use(self):
        said = self.refused(2, "create", "d1", "--peer", "nas2", "--pool", "disk", "--size", "32M")
        self.assertIn(f"--size {DEVICE_BYTES}", said)
        self.boxes.cli("create", "d1", "--peer", "nas2", "--pool", "disk", "--size", str(DEVICE_BYTES))
        self.io("d1", "write -P 3 1M 1M", "flush")
        with open(self.device, "rb") as device:
            device.seek(1 << 20)
            self.assertEqual(device.read(1 << 20), bytes([3]) * (1 << 20))
        self.assertNotEqual(b.run("mkfs.ext4", "-q", self.device, check=False, input="y\n").returncode, 0)
        self.refused(13, "create", "d2", "--peer", "nas2", "--pool", "disk", "--size", str(DEVICE_BYTES))
        self.restart_target()
        self.boxes.wait("d1")
        self.io("d1", "read -P 3 1M 1M")
        pools = {pool["name"]: pool for pool in self.boxes.json("target", "pool", "list")["pools"]}
        self.assertEqual((pools["disk"]["kind"], pools["disk"]["lun_count"]), ("block", 1))
        # Deleted, the device is free again, and nothing on it was touched.
        self.boxes.cli("delete", "d1", "--yes")
        with open(self.device, "rb") as device:
            device.seek(1 << 20)
            self.assertEqual(device.read(4096), bytes([3]) * 4096)
        self.boxes.cli("create", "d3", "--peer", "nas2", "--pool", "disk", "--size", str(DEVICE_BYTES))

    def test_what_was_in_memory_is_not_served_as_zeros_after_a_restart(self):
        self.boxes.cli("create", "m1", "--peer", "nas2", "--pool", "ram", "--size", "64M")
        self.io("m1", "write -P 4 0 1M", "read -P 4 0 1M")
        self.restart_target()
        lun = self.boxes.json("target", "lun", "list")["luns"][0]
        self.assertEqual(lun["state"], "failed")
        self.assertNotEqual(self.boxes.disk("m1")["state"], "connected")
        self.boxes.cli("detach", "m1", "--force")
        # The host tells the target as soon as it has reached it again.
        b.eventually(lambda: self.boxes.cli("target", "lun", "delete", "m1", "--yes", check=False).returncode == 0,
                     timeout=60, what="the deletion of a LUN that is not served")
        self.assertEqual(self.boxes.json("target", "lun", "list")["luns"], [])

    def test_the_trace_shows_what_was_asked_of_a_backstore(self):
        self.boxes.cli("create", "m1", "--peer", "nas2", "--pool", "ram", "--size", "64M")
        self.io("m1", "write 8k 4k", "flush")
        trace = self.boxes.json("target", "fault", "trace", "m1")
        self.assertTrue(any("write" in entry and "8192" in entry for entry in trace["entries"]), trace)
        self.assertTrue(any("flush" in entry for entry in trace["entries"]), trace)
        self.assertGreaterEqual(trace["finished"], len(trace["entries"]))


if __name__ == "__main__":
    b.main()
