# SPDX-License-Identifier: Apache-2.0
"""Losing the target, the network or the host daemon under load: no I/O error, no wrong byte, the same device and ISID."""
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
import boxes as b


def fio_verify(uri, seconds, **more):
    """Writes for `seconds` while verifying what it wrote."""
    command = ["fio", "--name=v", "--ioengine=nbd", f"--uri={uri}", "--rw=randwrite", "--bs=4k", "--size=96m", "--iodepth=16",
               "--time_based", f"--runtime={seconds}", "--verify=crc32c", "--verify_fatal=1", "--verify_backlog=64",
               "--verify_state_save=0", "--output-format=terse"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)


class Loss(b.BoxTest):
    options = {"host_extra": '[limits]\nkeepalive_idle = "3s"\nkeepalive_timeout = "3s"'}

    def setUp(self):
        b.need("fio", "qemu-io")
        super().setUp()
        self.uri = self.boxes.create("disk1", "128M")
        self.before = self.boxes.disk("disk1")

    def check_same_disk(self):
        after = self.boxes.disk("disk1")
        for field in ("isid", "naa", "serial", "socket", "size_bytes"):
            self.assertEqual(after[field], self.before[field], field)

    def finish(self, fio, timeout):
        output, _ = fio.communicate(timeout=timeout)
        self.assertEqual(fio.returncode, 0, output)

    def test_target_killed_in_the_middle_of_writes_and_restarted(self):
        fio = fio_verify(self.uri, 30)
        time.sleep(4)
        self.boxes.target.kill()
        b.eventually(lambda: self.boxes.disk("disk1")["state"] == "reconnecting", what="the loss being noticed")
        time.sleep(20)
        self.boxes.start_target()
        self.finish(fio, 120)
        self.check_same_disk()
        self.assertGreaterEqual(self.boxes.disk("disk1")["reconnects"], 1)

    def test_target_stopped_for_forty_seconds(self):
        fio = fio_verify(self.uri, 50)
        time.sleep(4)
        self.boxes.target.signal(signal.SIGSTOP)
        time.sleep(40)
        self.boxes.target.signal(signal.SIGCONT)
        self.finish(fio, 120)
        self.check_same_disk()

    def test_host_daemon_killed_under_a_client_that_reconnects(self):
        pattern = 1
        for round_ in range(3):
            for _ in range(5):
                b.run("qemu-io", "-f", "raw", "-c", f"write -P {pattern} {pattern}M 1M", "-c", "flush", self.uri)
                pattern += 1
            self.boxes.host.kill()
            self.boxes.start_host()
            self.boxes.wait("disk1")
            for old in range(1, pattern):
                b.run("qemu-io", "-f", "raw", "-c", f"read -P {old} {old}M 1M", self.uri)
        self.check_same_disk()

    def test_a_hundred_short_flaps_leak_nothing(self):
        fio = fio_verify(self.uri, 45)
        b.eventually(lambda: self.boxes.disk("disk1")["stats"]["write_ops"] > 100, what="load")
        counts = (self.boxes.host.descriptors(), self.boxes.target.descriptors())
        for _ in range(100):
            for session in self.boxes.json("target", "session", "list")["sessions"]:
                self.boxes.cli("target", "session", "kill", session["id"], check=False)
            self.boxes.wait("disk1")
        self.finish(fio, 180)
        b.eventually(lambda: self.boxes.host.descriptors() <= counts[0] + 1 and
                     self.boxes.target.descriptors() <= counts[1] + 2, what="descriptors as before")
        self.check_same_disk()

    def test_detach_with_a_dead_target_takes_at_most_five_seconds(self):
        reader = fio_verify(self.uri, 30)
        time.sleep(2)
        self.boxes.target.signal(signal.SIGSTOP)
        started = time.monotonic()
        self.boxes.cli("detach", "disk1", "--force")
        self.assertLess(time.monotonic() - started, 9)  # five, and three for a peer that does not answer
        reader.communicate(timeout=60)

    def test_on_loss_fail_fails_at_once(self):
        self.boxes.cli("edit", "disk1", "--on-loss", "fail")
        self.boxes.target.kill()
        b.eventually(lambda: self.boxes.disk("disk1")["state"] == "reconnecting", what="the loss being noticed")
        started = time.monotonic()
        read = b.run("qemu-io", "-f", "raw", "-c", "read 0 4k", self.uri, check=False)
        self.assertLess(time.monotonic() - started, 5)
        self.assertIn("Input/output error", read.stdout + read.stderr)

    def test_queued_io_fails_after_its_timeout_and_not_before(self):
        self.boxes.cli("edit", "disk1", "--io-timeout", "6s")
        self.boxes.target.kill()
        b.eventually(lambda: self.boxes.disk("disk1")["state"] == "reconnecting", what="the loss being noticed")
        started = time.monotonic()
        read = b.run("qemu-io", "-f", "raw", "-c", "read 0 4k", self.uri, check=False)
        waited = time.monotonic() - started
        self.assertIn("Input/output error", read.stdout + read.stderr)
        self.assertGreater(waited, 3)
        self.assertLess(waited, 9)


if __name__ == "__main__":
    b.main()
