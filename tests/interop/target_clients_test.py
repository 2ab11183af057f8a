# SPDX-License-Identifier: Apache-2.0
"""Foreign initiators (the tools of libiscsi, QEMU's iSCSI driver) against our target: discovery, data, CHAP, header digests."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
import boxes as b
import target_box as t

ours = "alice", "secretsecret12"
theirs = "bob", "mutualsecret34"
other = "iqn.2026-11.io.vjbod.test:other"


def mutual(secret=theirs[1]):
    return f"?target_user={theirs[0]}&target_password={secret}"


class TargetClients(t.TargetTest):
    def setUp(self):
        b.need("iscsi-ls", "iscsi-inq", "iscsi-readcapacity16", "iscsi-perf", "qemu-img", "qemu-io")
        super().setUp()
        self.lun()

    def chap_url(self, secret=ours[1], user=ours[0]):
        return self.boxes.iscsi_url("lun1", f"{user}%{secret}@")

    def refused(self, message, *command, **more):
        done = self.libiscsi(*command, check=False, **more)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertIn(message, done.stdout + done.stderr)

    def qemu(self, *commands, **options):
        # QEMU takes the initiator's name as an option of the driver, not in the URL.
        iqn = self.boxes.iscsi_url("lun1").split("/")[3]
        more = "".join(f",{key.replace('_', '-')}={value}" for key, value in options.items())
        image = (f"driver=iscsi,transport=tcp,portal={self.portal()},target={iqn},lun=0,"
                 f"initiator-name={t.initiator}{more}")
        arguments = [argument for command in commands for argument in ("-c", command)]
        done = b.run("qemu-io", "--image-opts", *arguments, image)
        self.assertNotIn("failed", done.stdout + done.stderr)

    def test_discovery_shows_only_what_the_asker_may_use(self):
        self.lun("lun2")
        self.let_in(t.initiator, "lun1")
        self.let_in(other, "lun1", "lun2")
        seen = self.libiscsi("iscsi-ls", "-s", f"iscsi://{self.portal()}/").stdout
        self.assertEqual([seen.count(name) for name in ("nas2.lun1", "nas2.lun2", "DIRECT_ACCESS")], [1, 0, 1], seen)
        seen = self.libiscsi("iscsi-ls", "-s", f"iscsi://{self.portal()}/", iqn=other).stdout
        self.assertEqual([seen.count(name) for name in ("nas2.lun1", "nas2.lun2", "DIRECT_ACCESS")], [1, 1, 2], seen)
        self.boxes.cli("target", "initiator", "deny", other, "lun2")
        seen = self.libiscsi("iscsi-ls", f"iscsi://{self.portal()}/", iqn=other).stdout
        self.assertEqual([seen.count(name) for name in ("nas2.lun1", "nas2.lun2")], [1, 0], seen)

    def test_who_may_not_use_a_lun_cannot_log_in_to_it(self):
        self.lun("lun2")
        self.let_in(t.initiator, "lun1")
        # 0x0203: whether the target exists is not told to who may not use it.
        stranger = "iqn.2026-11.io.vjbod.test:stranger"
        for url in (self.boxes.iscsi_url("lun2"), self.boxes.iscsi_url("lun2").replace("lun2", "nothing")):
            self.refused("Target not found", "iscsi-inq", url)
            self.refused("Target not found", "iscsi-inq", url, iqn=stranger)
        self.refused("LOGICAL_UNIT_NOT_SUPPORTED", "iscsi-inq", self.boxes.iscsi_url("lun1")[:-1] + "1")
        self.boxes.cli("target", "initiator", "remove", t.initiator)
        self.refused("Target not found", "iscsi-inq", self.boxes.iscsi_url("lun1"))

    def test_inquiry_capacity_and_load(self):
        self.let_in(t.initiator, "lun1")
        url = self.boxes.iscsi_url("lun1")
        inquiry = self.libiscsi("iscsi-inq", url).stdout
        for text in ("CONNECTED", "DIRECT_ACCESS", "Vendor:VJBOD", "CmdQue:1"):
            self.assertIn(text, inquiry)
        capacity = self.libiscsi("iscsi-readcapacity16", url).stdout
        for text in (f"ADDRESS:{(64 << 20) // 512 - 1}", "BYTES:512", "LBPME:1", f"Total size:{64 << 20}"):
            self.assertIn(text, capacity)
        self.assertIn("finished", self.libiscsi("iscsi-perf", "-t", "2", url).stdout)
        self.assertIn("finished", self.libiscsi("iscsi-perf", "-t", "2", "-r", "-b", "256", url).stdout)

    def test_the_serial_number_is_the_one_we_tell(self):
        self.let_in(t.initiator, "lun1")
        lun = self.boxes.json("target", "lun", "list")["luns"][0]
        page = self.libiscsi("iscsi-inq", "-e", "1", "-c", "128", self.boxes.iscsi_url("lun1")).stdout
        self.assertIn(lun["serial"], page)

    def test_a_file_goes_there_and_back(self):
        # qemu-img has no option for the initiator's name with a URL: this is the name it uses then.
        iqn = "iqn.2008-11.org.linux-kvm"
        self.let_in(iqn, "lun1")
        data = self.boxes.dir / "data"
        data.write_bytes(os.urandom(9 << 20) + bytes(3 << 20) + os.urandom(20 << 20))
        url = self.boxes.iscsi_url("lun1")
        b.run("qemu-img", "convert", "-n", "-f", "raw", "-O", "raw", data, url)
        back = self.boxes.dir / "back"
        b.run("qemu-img", "convert", "-f", "raw", "-O", "raw", url, back)
        whole = back.read_bytes()
        self.assertEqual(len(whole), 64 << 20)
        self.assertTrue(whole.startswith(data.read_bytes()), "the file that came back differs")
        self.assertFalse(any(whole[32 << 20:]), "the rest of the LUN is not zero")
        self.assertEqual(self.boxes.lun_file().read_bytes()[:32 << 20], data.read_bytes())

    def test_patterns_zeroes_and_discards(self):
        self.let_in(t.initiator, "lun1")
        for digest in ("none", "crc32c"):
            self.qemu("write -P 0x11 0 4M", "write -P 0x22 1536 512", "write -f -P 0x33 3M 1M", "write -z 8k 64k", "flush",
                      "read -P 0x11 0 1536", "read -P 0x22 1536 512", "read -P 0x11 2048 6144", "read -P 0 8k 64k",
                      "read -P 0x33 3M 1M", "discard 1M 1M", "read -P 0x11 2M 1M", "aio_write -P 0x44 16M 4M",
                      "aio_write -P 0x55 20M 4M", "aio_flush", "read -P 0x44 16M 4M", "read -P 0x55 20M 4M",
                      "read -P 0x11 72k 512", header_digest=digest)

    def test_header_digests_are_used_when_they_are_asked_for(self):
        self.let_in(t.initiator, "lun1")
        url = self.boxes.iscsi_url("lun1")
        self.assertIn("finished", self.libiscsi("iscsi-perf", "-t", "1", url + "?header_digest=crc32c").stdout)

    def test_chap_lets_in_only_with_the_right_secret(self):
        self.let_in(t.initiator, "lun1", chap=ours)
        self.assertIn("VJBOD", self.libiscsi("iscsi-inq", self.chap_url()).stdout)
        self.assertIn("nas2.lun1", self.libiscsi("iscsi-ls", f"iscsi://{ours[0]}%{ours[1]}@{self.portal()}/").stdout)
        refusal = "Authentication failure(513)"
        self.refused(refusal, "iscsi-inq", self.chap_url("wrongsecret123"))
        self.refused(refusal, "iscsi-inq", self.chap_url(ours[1] + "3"))
        self.refused(refusal, "iscsi-inq", self.chap_url(user="mallory"))
        self.refused(refusal, "iscsi-inq", self.boxes.iscsi_url("lun1"))
        self.refused(refusal, "iscsi-ls", f"iscsi://{self.portal()}/")
        log = (self.boxes.dir / "target.log").read_text()
        self.assertIn('wrong CHAP response of user "alice"', log)
        for secret in (ours[1], "wrongsecret123"):
            self.assertNotIn(secret, log)

    def test_mutual_chap_proves_the_target_too(self):
        self.let_in(t.initiator, "lun1", chap=ours, mutual=theirs)
        self.assertIn("VJBOD", self.libiscsi("iscsi-inq", self.chap_url() + mutual()).stdout)
        environment = {"LIBISCSI_CHAP_USERNAME": ours[0], "LIBISCSI_CHAP_PASSWORD": ours[1],
                       "LIBISCSI_CHAP_TARGET_USERNAME": theirs[0], "LIBISCSI_CHAP_TARGET_PASSWORD": theirs[1]}
        self.assertIn("VJBOD", self.libiscsi("iscsi-inq", self.boxes.iscsi_url("lun1"), **environment).stdout)
        self.refused("Invalid CHAP_R", "iscsi-inq", self.chap_url() + mutual("wrongsecret34"))
        self.refused("Authentication failure(513)", "iscsi-inq", self.chap_url("wrongsecret123") + mutual())


if __name__ == "__main__":
    b.main()
