# SPDX-License-Identifier: Apache-2.0
"""Our host against a target that we did not write, tgtd: attach by portal, name and number, with CHAP one way and mutual, with
digests, through a restart of the target under load; and what a person is told when it is refused."""
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
import boxes as b
import foreign_target as f

size = 64 << 20
ours = "alice", "secretsecret12"
theirs = "bob", "mutualsecret34"


class ForeignTarget(b.BoxTest):
    def setUp(self):
        b.need("qemu-io", "fio")
        f.need()
        self.boxes = b.Boxes()
        self.addCleanup(self.boxes.close)
        self.boxes.start_host()
        self.tgt = f.Tgt(self.boxes.dir, size)
        self.addCleanup(self.tgt.kill)
        self.tgt.start()
        self.tgt.serve()

    def secret(self, text):
        path = self.boxes.dir / f"secret-{text}"
        path.write_text(text + "\n")
        path.chmod(0o600)
        return path

    def attach(self, *more, iqn=f.iqn, lun=1, check=True):
        return self.boxes.cli("--timeout", "40s", "attach", "foreign", "--portal", f"127.0.0.1:{self.tgt.port}", "--target", iqn,
                              "--lun", lun, *more, check=check)

    def refused(self, code, sentence, *more, **where):
        """The attach ends at once with the exit status and the words, and leaves nothing behind."""
        began = time.monotonic()
        done = self.attach(*more, check=False, **where)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(sentence, done.stderr)
        self.assertLess(time.monotonic() - began, 10)
        self.assertEqual(self.boxes.json("list")["disks"], [])
        return done.stderr

    def chap(self, secret=ours[1]):
        return "--chap-user", ours[0], "--chap-secret-file", self.secret(secret)

    def mutual(self, secret=theirs[1]):
        return "--mutual-user", theirs[0], "--mutual-secret-file", self.secret(secret)

    def check_io(self):
        disk = self.boxes.disk("foreign")
        self.assertEqual((disk["state"], disk["connection_type"], disk["size_bytes"]), ("connected", "iscsi", size))
        commands = ["write -P 0x5a 0 4M", "write -P 0xa5 4096 512", "write -P 0x3c 60M 4M", "flush", "read -P 0x5a 0 4096",
                    "read -P 0xa5 4096 512", "read -P 0x5a 4608 512", "read -P 0x3c 60M 4M", "read -P 0 8M 1M"]
        b.run("qemu-io", "-f", "raw", *[word for c in commands for word in ("-c", c)], self.boxes.uri("foreign"))
        data = self.tgt.file.read_bytes()
        self.assertEqual(data[:4096], b"\x5a" * 4096)
        self.assertEqual(data[4096:4608], b"\xa5" * 512)
        self.assertEqual(data[60 << 20:], b"\x3c" * (4 << 20))

    def test_attach_write_read_and_detach(self):
        self.attach()
        self.check_io()
        self.boxes.cli("detach", "foreign")
        self.assertEqual(self.boxes.json("list")["disks"], [])
        self.attach()
        b.run("qemu-io", "-f", "raw", "-c", "read -P 0x3c 60M 4M", self.boxes.uri("foreign"))

    def test_digests(self):
        self.attach("--header-digest", "on", "--data-digest", "on")
        self.check_io()

    def test_digests_that_the_target_does_not_do_are_not_tried_for_ever(self):
        self.tgt.digests("DataDigest", "None")
        self.refused(1, "DataDigest", "--data-digest", "on")
        self.attach()
        self.assertEqual(self.boxes.cli("edit", "foreign", "--data-digest", "on", check=False).returncode, 1)
        b.eventually(lambda: self.boxes.disk("foreign")["state"] == "failed", what="failed")
        self.assertIn("DataDigest", self.boxes.disk("foreign")["note"])
        self.boxes.cli("edit", "foreign", "--data-digest", "off")
        self.boxes.cli("connect", "foreign")
        self.boxes.wait("foreign")

    def test_chap(self):
        self.tgt.account(*ours)
        wrong = self.refused(10, "0x0201", *self.chap("wrongsecret123"))
        self.assertIn(f.iqn, wrong)
        self.assertIn(f"127.0.0.1:{self.tgt.port}", wrong)
        self.assertNotIn("wrongsecret123", wrong + self.boxes.logs())
        self.assertIn("--chap-user", self.refused(10, "0x0201"))
        self.attach(*self.chap())
        self.check_io()
        # The same again is the same disk; with another secret it would not be.
        self.attach(*self.chap())
        other = self.attach(*self.chap("wrongsecret123"), check=False)
        self.assertEqual(other.returncode, 4, other.stderr)

    def test_mutual_chap(self):
        self.tgt.account(*ours)
        self.tgt.account(*theirs, "--outgoing")
        wrong = self.refused(10, "CHAP", *self.chap(), *self.mutual("wrongsecret345"))
        self.assertNotIn("wrongsecret345", wrong + self.boxes.logs())
        self.attach(*self.chap(), *self.mutual())
        self.check_io()

    def test_a_target_without_the_mutual_secret_is_not_used(self):
        self.tgt.account(*ours)
        self.refused(10, "0x0201", *self.chap(), *self.mutual())

    def test_a_name_that_the_target_does_not_know(self):
        said = self.refused(3, "0x0203", iqn=f.iqn + "-other")
        self.assertIn("--target", said)

    def test_a_lun_number_that_the_target_does_not_have(self):
        self.refused(3, "no such LUN", lun=7)

    def test_a_target_that_is_not_for_us(self):
        self.tgt.admin("target", "unbind", "--tid", "1", "-I", "ALL")
        self.tgt.admin("target", "bind", "--tid", "1", "-Q", "iqn.2026-11.io.vjbod.test:somebody-else")
        # To those it is not for, tgtd does not say that it is there.
        self.refused(3, "0x0203")

    def test_a_restart_of_the_target_under_load(self):
        self.tgt.account(*ours)
        self.attach(*self.chap(), "--header-digest", "on", "--data-digest", "on")
        before = self.boxes.disk("foreign")
        command = ["fio", "--name=v", "--ioengine=nbd", f"--uri={self.boxes.uri('foreign')}", "--rw=randwrite", "--bs=4k",
                   "--size=32m", "--iodepth=8", "--time_based", "--runtime=12", "--verify=crc32c", "--verify_fatal=1",
                   "--verify_backlog=64", "--verify_state_save=0", "--output-format=terse"]
        fio = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(fio.kill)
        b.eventually(lambda: self.boxes.disk("foreign")["stats"]["write_ops"] > 100, what="load")
        self.tgt.kill()
        b.eventually(lambda: self.boxes.disk("foreign")["state"] == "reconnecting", what="the loss being noticed")
        # It is up before it knows this target, and says that there is none: that is no reason to give up.
        self.tgt.start()
        self.tgt.admin("target", "new", "--tid", "2", "-T", f.iqn + "-other")
        b.eventually(lambda: "0x0203" in self.boxes.disk("foreign")["note"], what="being told that there is no target")
        self.tgt.serve()
        self.tgt.account(*ours)
        output, _ = fio.communicate(timeout=90)
        self.assertEqual(fio.returncode, 0, output)
        after = self.boxes.disk("foreign")
        self.assertEqual(after["state"], "connected")
        self.assertGreater(after["reconnects"], before["reconnects"])
        for field in ("isid", "naa", "serial", "socket", "size_bytes"):
            self.assertEqual(after[field], before[field], field)


if __name__ == "__main__":
    b.main()
