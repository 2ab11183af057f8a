# SPDX-License-Identifier: Apache-2.0
"""A target whose machine was restarted has lost what was acknowledged and not flushed: the disk fails, and says so, also when
the host's daemon was killed at the same time. A target whose daemon alone was restarted has lost nothing, and neither has one
that had flushed all."""
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
import boxes as b

# The target's daemon sees this file where the kernel gives the id of its last start.
bind_boot_id = 'mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"'


class LostCache(b.BoxTest):
    def setUp(self):
        b.need("fio", "qemu-io", "unshare")
        folder = tempfile.TemporaryDirectory(prefix="vjbod-test.")
        self.addCleanup(folder.cleanup)
        self.boot_id = pathlib.Path(folder.name) / "boot_id"
        self.machine_starts("1")
        prefix = ["unshare", "--mount", "sh", "-c", bind_boot_id, str(self.boot_id)]
        if subprocess.run([*prefix, "true"], capture_output=True).returncode != 0:
            b.skip("needs the right to mount in a namespace of its own")
        self.options = {"target_prefix": prefix}
        super().setUp()
        self.uri = self.boxes.create("disk1", "64M")

    def machine_starts(self, digit):
        self.boot_id.write_text("-".join(digit * length for length in (8, 4, 4, 4, 12)) + "\n")

    def restart_target(self):
        self.boxes.target.kill()
        b.eventually(lambda: self.boxes.disk("disk1")["state"] == "reconnecting", what="the loss being noticed")
        self.boxes.start_target()

    def io(self, *commands, check=True):
        arguments = [word for command in commands for word in ("-c", command)]
        return b.run("qemu-io", "-f", "raw", *arguments, self.uri, check=check)

    def write_without_flush(self):
        # qemu-io flushes when it ends; fio does what it is told.
        b.run("fio", "--name=w", "--ioengine=nbd", f"--uri={self.uri}", "--rw=write", "--bs=64k", "--size=1m",
              "--buffer_pattern=0x5a", "--output-format=terse")

    def test_unflushed_writes_of_a_machine_that_was_restarted_fail_the_disk_loudly(self):
        self.io("write -P 1 8M 4k", "flush")
        self.write_without_flush()
        self.machine_starts("2")
        self.restart_target()

        b.eventually(lambda: self.boxes.disk("disk1")["state"] == "failed", what="failed")
        disk = self.boxes.disk("disk1")
        self.assertIn("16 acknowledged writes were not flushed", disk["note"])
        self.assertIn("vjbod connect", disk["note"])
        self.assertIn("not flushed", self.boxes.cli("status", "disk1").stdout)
        self.assertIn("not flushed", self.boxes.cli("list").stdout)
        event = [e for e in self.boxes.json("events")["events"] if e["kind"] == "disk-failed"]
        self.assertEqual(len(event), 1, event)
        self.assertEqual(event[0]["severity"], "error")
        self.assertIn("not flushed", event[0]["text"])
        self.assertEqual(self.boxes.cli("check", check=False).returncode, 2)
        for command in ("read 8M 4k", "write -P 2 8M 4k", "flush"):
            self.assertEqual(self.io(command, check=False).returncode, 1, command)
        # By itself it stays so; a person may take it as it is.
        self.assertEqual(self.boxes.cli("reconnect", "disk1", check=False).returncode, 1)
        self.assertEqual(self.boxes.disk("disk1")["state"], "failed")
        self.boxes.cli("connect", "disk1")
        self.boxes.wait("disk1")
        self.io("read -P 1 8M 4k", "write -P 3 8M 4k", "flush", "read -P 3 8M 4k")

    def test_a_machine_that_was_restarted_after_a_flush_has_lost_nothing(self):
        self.write_without_flush()
        self.io("write -P 1 8M 4k", "flush")
        self.machine_starts("2")
        self.restart_target()
        self.boxes.wait("disk1")
        self.io("read -P 0x5a 0 1M", "read -P 1 8M 4k")

    def test_a_daemon_that_was_killed_and_started_again_has_lost_nothing(self):
        self.write_without_flush()
        self.restart_target()
        self.boxes.wait("disk1")
        self.io("read -P 0x5a 0 1M")

    def restart_both(self):
        self.boxes.host.kill()
        self.boxes.target.kill()
        self.boxes.start_target()
        self.boxes.start_host()

    def test_a_host_daemon_that_was_killed_at_the_same_time_hides_no_loss(self):
        self.write_without_flush()
        self.machine_starts("2")
        self.restart_both()
        b.eventually(lambda: self.boxes.disk("disk1")["state"] == "failed", what="failed")
        self.assertIn("16 acknowledged writes were not flushed", self.boxes.disk("disk1")["note"])
        self.assertEqual(self.io("read 0 4k", check=False).returncode, 1)
        # Not even when it is restarted once more, whether killed or in order.
        self.boxes.host.stop()
        self.boxes.start_host()
        b.eventually(lambda: self.boxes.disk("disk1")["state"] == "failed", what="failed again")
        self.boxes.cli("connect", "disk1")
        self.boxes.wait("disk1")
        self.io("write -P 3 8M 4k", "flush", "read -P 3 8M 4k")
        self.boxes.cli("detach", "disk1")
        self.assertEqual(list((self.boxes.dir / "nbd").iterdir()), [])

    def test_a_host_daemon_that_was_killed_after_a_flush_fails_nothing(self):
        self.write_without_flush()
        self.io("flush")
        self.machine_starts("2")
        self.restart_both()
        self.boxes.wait("disk1")
        self.io("read -P 0x5a 0 1M")

    def test_both_daemons_killed_lose_nothing_that_the_kernel_has(self):
        self.write_without_flush()
        self.restart_both()
        self.boxes.wait("disk1")
        self.io("read -P 0x5a 0 1M")


if __name__ == "__main__":
    b.main()
