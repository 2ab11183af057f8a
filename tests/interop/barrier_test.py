# SPDX-License-Identifier: Apache-2.0
"""What makes replay safe: the stale-write barrier, the identity check, and that acknowledged means durable."""
import json
import pathlib
import subprocess
import sys
import time
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
import boxes as b

QUICK = '[limits]\nkeepalive_idle = "2s"\nkeepalive_timeout = "2s"'


class Barriers(b.BoxTest):
    options = {"host_extra": QUICK, "target_extra": "allow_test_faults = true"}

    def setUp(self):
        b.need("qemu-io", "nbdcopy")
        super().setUp()
        self.uri = self.boxes.create("disk1", "64M")

    def io(self, *commands, check=True, timeout=60):
        arguments = [x for command in commands for x in ("-c", command)]
        done = b.run("qemu-io", "-f", "raw", *arguments, self.uri, check=False, timeout=timeout)
        if check:
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertNotIn("failed", done.stdout + done.stderr)
        return done

    def test_a_held_write_of_a_dead_connection_never_lands_after_the_write_that_replaced_it(self):
        self.boxes.cli("target", "fault", "delay", "disk1", "--operations", "write", "--length", "65536", "--ms", "6000")
        writer = subprocess.Popen(["qemu-io", "-f", "raw", "-c", "write -P 1 0 4k", self.uri], stdout=subprocess.PIPE, text=True)
        b.eventually(lambda: self.boxes.json("target", "session", "list")["sessions"][0]["tasks_active"] > 0, what="the write")
        session = self.boxes.json("target", "session", "list")["sessions"][0]["id"]
        self.boxes.cli("target", "session", "kill", session, "--timeout", "30s", check=False)
        output, _ = writer.communicate(timeout=60)
        self.assertEqual(writer.returncode, 0, output)
        self.boxes.cli("target", "fault", "clear", "disk1")
        self.io("write -P 2 0 4k", "flush")
        time.sleep(7)
        self.io("read -P 2 0 4k")

    def test_a_lun_replaced_behind_its_name_gets_not_one_write(self):
        self.io("write -P 7 0 1M", "flush")
        self.boxes.target.stop()
        # Another LUN under the old name: its UUID, and with it NAA and serial, is another one.
        state_file = self.boxes.dir / "target" / "target.json"
        state = json.loads(state_file.read_text())
        self.assertEqual(len(state["luns"]), 1)
        was = state["luns"][0]["uuid"]
        state["luns"][0]["uuid"] = str(uuid.uuid4())
        state_file.write_text(json.dumps(state))
        file = self.boxes.lun_file()
        if was in file.name:
            file.rename(file.with_name(file.name.replace(was, state["luns"][0]["uuid"])))
        before = self.boxes.lun_file().read_bytes()
        self.boxes.start_target()
        b.eventually(lambda: self.boxes.disk("disk1")["state"] == "stale", timeout=40, what="stale")
        self.boxes.cli("edit", "disk1", "--io-timeout", "2s")
        self.io("write -P 9 0 4k", check=False)
        self.assertEqual(self.boxes.lun_file().read_bytes(), before)
        self.assertEqual(self.boxes.cli("check", check=False).returncode, 2)

    def test_what_was_flushed_survives_a_kill_of_the_target(self):
        for number in range(1, 6):
            self.io(f"write -P {number} {number}M 1M", "flush" if number % 2 else f"write -f -P {number} {number}M 1M")
            self.boxes.target.kill()
            self.boxes.start_target()
            self.boxes.wait("disk1")
            for old in range(1, number + 1):
                self.io(f"read -P {old} {old}M 1M")

    def test_an_error_of_fsync_reaches_the_flush_of_the_host(self):
        self.io("write -P 1 0 4k")
        self.boxes.cli("target", "fault", "error", "disk1", "--operations", "flush", "--once")
        # qemu-io says nothing of a flush that failed, but its exit status does.
        self.assertEqual(self.io("write -P 2 0 4k", "flush", check=False).returncode, 1)
        # Once lost, never said to be safe again (until the LUN is opened anew).
        self.assertEqual(self.io("flush", check=False).returncode, 1)
        self.assertIn("flush", self.boxes.logs())

    def test_an_error_of_the_medium_reaches_the_reader_and_nobody_else(self):
        self.boxes.cli("target", "fault", "error", "disk1", "--operations", "read", "--first-byte", "1048576", "--length", "4096")
        failed = self.io("read 1M 4k", check=False)
        self.assertIn("Input/output error", failed.stdout + failed.stderr)
        self.io("read 2M 4k")
        self.boxes.cli("target", "fault", "clear", "disk1")
        self.io("read 1M 4k")


if __name__ == "__main__":
    b.main()
