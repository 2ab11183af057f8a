# SPDX-License-Identifier: Apache-2.0
"""Full and read-only disks under the state of both daemons and under a pool: what cannot be saved is refused with a sentence
and has not happened, what runs goes on, and it works again when there is room. Needs root, for small file systems."""
import fcntl
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
import boxes as b

NO_SPACE, PERMISSION = 13, 6


class Storage(b.BoxTest):
    def setUp(self):
        b.need("qemu-io", "mount")
        self.boxes = b.Boxes()
        self.addCleanup(self.boxes.close)
        self.pool = b.SmallDisk(self, self.boxes.dir / "pool", "48m")
        self.target_state = b.SmallDisk(self, self.boxes.dir / "target", "1m")
        self.host_state = b.SmallDisk(self, self.boxes.dir / "host", "1m")
        self.boxes.start()

    def qemu_io(self, uri, *commands):
        arguments = [word for command in commands for word in ("-c", command)]
        done = subprocess.run(["qemu-io", "-f", "raw", *arguments, uri], capture_output=True, text=True, timeout=60)
        return done.stdout + done.stderr

    def works(self, uri, pattern=7):
        said = self.qemu_io(uri, f"write -P {pattern} 1M 1M", "flush", f"read -P {pattern} 1M 1M")
        self.assertNotIn("failed", said)

    def refused(self, code, *arguments):
        done = self.boxes.cli(*arguments, check=False)
        self.assertEqual(done.returncode, code, f"{arguments}: {done.stdout}{done.stderr}")
        self.assertRegex(done.stderr, "No space left|Read-only|does not fit", arguments)
        self.assertNotIn("Traceback", done.stderr)

    def everything(self):
        """All that both daemons know and have saved."""
        secret = self.boxes.dir / "secret"
        secret.write_text("twelve-bytes-at-least")
        return {"disks": [(d["name"], d["on_loss"], d["state"], d["host_interface"]) for d in self.boxes.json("list")["disks"]],
                "luns": [(lun["name"], lun["size_bytes"], lun["bound_to"], lun["state"], lun["allowed_initiators"])
                         for lun in self.boxes.json("target", "lun", "list")["luns"]],
                "peers": [peer["name"] for peer in self.boxes.json("peers")["peers"]],
                "hosts": [peer["name"] for peer in self.boxes.json("target", "peers")["peers"]],
                "initiators": self.boxes.json("target", "initiator", "list")["initiators"],
                "host file": json.loads((self.boxes.dir / "host/host.json").read_text()),
                "target file": json.loads((self.boxes.dir / "target/target.json").read_text()),
                "files": sorted(file.name for file in (self.boxes.dir / "pool").rglob("*.lun"))}

    # --- the pool ---

    def test_a_thick_lun_that_does_not_fit_leaves_nothing(self):
        before = self.everything()
        self.refused(NO_SPACE, "create", "big", "--peer", "nas2", "--pool", "tank", "--size", "64M", "--thick")
        self.refused(NO_SPACE, "target", "lun", "create", "big", "--pool", "tank", "--size", "64M", "--thick")
        after = self.everything()
        self.assertEqual(after, before)

    def test_writes_to_a_full_pool_fail_with_no_space_and_nothing_else_happens(self):
        uri = self.boxes.create("disk1", "128M")
        self.works(uri)
        self.pool.fill()
        said = self.qemu_io(uri, "write -P 9 32M 1M")
        self.assertIn("No space left on device", said)
        said = self.qemu_io(uri, "write -f -P 9 32M 4k", "write -z 64M 1M", "write -P 9 32M 512")
        self.assertNotIn("Input/output", said)
        # What has its space already can still be written, read and given back.
        self.works(uri, 8)
        self.assertNotIn("failed", self.qemu_io(uri, "flush", "read -P 0 32M 1M"))
        disk = self.boxes.disk("disk1")
        self.assertEqual((disk["state"], disk["reconnects"]), ("connected", 0))

        self.pool.free()
        self.assertNotIn("failed", self.qemu_io(uri, "write -P 9 32M 1M", "flush", "read -P 9 32M 1M", "read -P 8 1M 1M"))
        self.assertTrue(self.boxes.target.running())

    def test_trim_gives_space_back_on_a_full_pool(self):
        uri = self.boxes.create("disk1", "128M")
        self.assertNotIn("failed", self.qemu_io(uri, "write -P 3 0 8M", "flush"))
        self.pool.fill()
        self.assertIn("No space left on device", self.qemu_io(uri, "write -P 4 32M 4M"))
        self.assertNotIn("failed", self.qemu_io(uri, "discard 0 8M", "write -P 4 32M 4M", "flush", "read -P 4 32M 4M"))

    def test_a_read_only_pool_makes_no_lun_and_fails_no_other(self):
        uri = self.boxes.create("disk1", "16M")
        before = self.everything()
        self.pool.read_only()
        self.refused(PERMISSION, "create", "disk2", "--peer", "nas2", "--pool", "tank", "--size", "1M")
        self.refused(PERMISSION, "target", "lun", "create", "lun2", "--pool", "tank", "--size", "1M")
        self.works(uri)
        self.assertEqual(self.everything(), before)
        self.pool.writable()
        self.boxes.create("disk2", "1M")

    # --- the state of the target ---

    def break_target(self, code, break_it, mend_it):
        uri = self.boxes.create("disk1", "16M")
        self.boxes.cli("target", "lun", "create", "lun2", "--pool", "tank", "--size", "1M")
        self.boxes.cli("target", "initiator", "add", "iqn.2026-11.io.test:a")
        before = self.everything()
        break_it()
        for arguments in (["create", "disk3", "--peer", "nas2", "--pool", "tank", "--size", "1M"],
                          ["attach", "disk3", "--peer", "nas2", "--lun", "lun2"],
                          ["target", "lun", "create", "lun3", "--pool", "tank", "--size", "1M"],
                          ["target", "lun", "delete", "lun2", "--yes"],
                          ["target", "lun", "resize", "lun2", "2M"],
                          ["target", "lun", "bind", "lun2", "nas1"],
                          ["target", "lun", "unbind", "disk1"],
                          ["target", "initiator", "add", "iqn.2026-11.io.test:b"],
                          ["target", "initiator", "remove", "iqn.2026-11.io.test:a"],
                          ["target", "initiator", "allow", "iqn.2026-11.io.test:a", "lun2"],
                          ["target", "unpair", "nas1", "--yes"]):
            self.refused(code, *arguments)
        self.works(uri)
        self.assertEqual(self.everything(), before)
        mend_it()
        self.works(self.boxes.create("disk3", "2M"))
        self.boxes.cli("target", "lun", "resize", "lun2", "2M")
        self.assertEqual(self.boxes.target.stop(), 0)
        self.boxes.start_target()
        self.boxes.wait("disk1")
        self.works(uri)

    def test_a_lun_that_could_not_be_opened_at_the_start_is_served_when_it_can_be(self):
        self.boxes.create("disk1", "4M")
        self.boxes.target.kill()
        with open(self.boxes.lun_file(), "rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            self.boxes.start_target()
            self.assertNotEqual(self.boxes.json_of_failing("target", "lun", "list")["luns"][0]["error"], None)
        self.boxes.wait("disk1", timeout="40s")

    def test_a_full_disk_under_the_state_of_the_target(self):
        self.break_target(NO_SPACE, self.target_state.fill, self.target_state.free)

    def test_a_read_only_disk_under_the_state_of_the_target(self):
        self.break_target(PERMISSION, self.target_state.read_only, self.target_state.writable)

    # --- the state of the host ---

    def break_host(self, code, break_it, mend_it):
        uri = self.boxes.create("disk1", "16M")
        self.boxes.cli("target", "lun", "create", "lun2", "--pool", "tank", "--size", "1M")
        before = self.everything()
        break_it()
        token = self.boxes.dir / "token"
        token.write_text(self.boxes.cli("target", "pair-token").stdout)
        for arguments in (["create", "disk3", "--peer", "nas2", "--pool", "tank", "--size", "1M"],
                          ["attach", "disk3", "--peer", "nas2", "--lun", "lun2"],
                          ["attach", "disk3", "--portal", "127.0.0.1", "--target", "iqn.2026-11.io.test:t", "--lun", "0"],
                          ["edit", "disk1", "--on-loss", "fail"],
                          ["edit", "disk1", "--host-interface", ""],
                          ["disconnect", "disk1"], ["connect", "disk1"],
                          ["detach", "disk1"], ["detach", "disk1", "--force"],
                          ["pair", f"127.0.0.1:{self.boxes.ports['control']}", "--token-file", token]):
            self.refused(code, *arguments)
        self.works(uri)
        self.assertEqual(self.everything(), before)
        mend_it()
        self.works(self.boxes.create("disk3", "2M"))
        self.boxes.cli("edit", "disk1", "--on-loss", "fail")
        self.assertEqual(self.boxes.host.stop(), 0)
        self.boxes.start_host()
        self.boxes.wait("disk1")
        self.assertEqual(self.boxes.disk("disk1")["on_loss"], "fail")
        self.works(uri)

    def test_a_full_disk_under_the_state_of_the_host(self):
        self.break_host(NO_SPACE, self.host_state.fill, self.host_state.free)

    def test_a_read_only_disk_under_the_state_of_the_host(self):
        self.break_host(PERMISSION, self.host_state.read_only, self.host_state.writable)

    def test_a_pairing_and_an_unpairing_that_cannot_be_remembered_do_not_happen_at_the_other_end(self):
        self.host_state.read_only()
        self.refused(PERMISSION, "unpair", "nas2")
        self.assertEqual([peer["name"] for peer in self.boxes.json("target", "peers")["peers"]], ["nas1"])
        self.host_state.writable()
        self.boxes.cli("unpair", "nas2")
        self.host_state.fill()
        with self.assertRaisesRegex(AssertionError, f"exit {NO_SPACE}"):
            self.boxes.pair()
        self.assertEqual(self.boxes.json("target", "peers")["peers"], [])

    # --- at the start ---

    def test_a_daemon_does_not_start_on_a_read_only_state_and_starts_on_a_full_one(self):
        uri = self.boxes.create("disk1", "16M")
        for daemon, disk, name in ((self.boxes.target, self.target_state, "target"), (self.boxes.host, self.host_state, "host")):
            self.assertEqual(daemon.stop(), 0)
            disk.read_only()
            code, said = daemon.fails()
            self.assertEqual(code, PERMISSION, said)
            self.assertIn(str(self.boxes.dir / name), said)
            self.assertIn("--state-dir", said)
            disk.writable()
            disk.fill()
            getattr(self.boxes, f"start_{name}")()
            self.boxes.wait("disk1")
            disk.free()
        self.works(uri)

    def test_a_first_start_on_a_full_disk_says_so_and_leaves_nothing_that_stops_the_next_one(self):
        for daemon, disk, name in ((self.boxes.target, self.target_state, "target"), (self.boxes.host, self.host_state, "host")):
            daemon.stop()
            for file in (self.boxes.dir / name).iterdir():
                file.unlink()
            disk.fill()
            code, said = daemon.fails()
            self.assertEqual(code, NO_SPACE, said)
            self.assertIn("No space left on device", said)
            disk.free()
            getattr(self.boxes, f"start_{name}")()


if __name__ == "__main__":
    b.main()
