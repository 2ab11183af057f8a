# SPDX-License-Identifier: Apache-2.0
"""What goes over the wire between our host, our target and foreign initiators, as another implementation reads it: tshark finds
every kind of PDU that belongs there, nothing malformed, and no expert error."""
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
import boxes as b
import foreign_target as f
import target_box as t

ours = "alice", "secretsecret12"
theirs = "bob", "mutualsecret34"

# RFC 7143, 11.2.1.2.
opcodes = {0x00: "NOP-Out", 0x01: "SCSI Command", 0x02: "Task Management Request", 0x03: "Login Request", 0x04: "Text Request",
           0x05: "Data-Out", 0x06: "Logout Request", 0x20: "NOP-In", 0x21: "SCSI Response", 0x22: "Task Management Response",
           0x23: "Login Response", 0x24: "Text Response", 0x25: "Data-In", 0x26: "Logout Response", 0x31: "R2T"}
expert_error = 0x00800000  # tshark's severities; warnings are 0x00600000
session = {"Login Request", "Login Response", "SCSI Command", "SCSI Response", "Data-In", "Logout Request", "Logout Response"}


class Capture:
    """What passes a TCP port of the loopback interface, until it is read."""

    def __init__(self, folder, port):
        self.file, self.log, self.port = folder / "capture.pcap", folder / "dumpcap.log", port
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(["dumpcap", "-q", "-P", "-B", "16", "-i", "lo", "-f", f"port {port}", "-w",
                                             str(self.file)], stdout=log, stderr=log)
        b.eventually(lambda: "File:" in self.log.read_text(), what="the capture")

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.process.wait(20)

    def dissected(self):
        """One dictionary a packet."""
        # What was sent last reaches the file last: a datagram of ours marks the end.
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mark:
            mark.sendto(b"end of this capture", ("127.0.0.1", self.port))
        b.eventually(lambda: b"end of this capture" in self.file.read_bytes(), what="the end of the capture")
        self.end()
        dropped = re.search(r"received/dropped on interface .*: \d+/(\d+)", self.log.read_text())
        if not dropped or int(dropped[1]) != 0:
            raise AssertionError("the capture is not complete: " + self.log.read_text())
        fields = ("frame.number", "iscsi.opcode", "iscsi.datasegmentlength", "iscsi.keyvalue", "_ws.malformed",
                  "_ws.expert.severity", "_ws.expert.message")
        done = b.run("tshark", "-r", self.file, "-d", f"tcp.port=={self.port},iscsi", "-o", "iscsi.bogus_pdu_filter:FALSE",
                     "-Y", "iscsi || (tcp && data)", "-T", "fields", "-E", "separator=/t", "-E", "aggregator=|",
                     *[word for field in fields for word in ("-e", field)])
        return [dict(zip(fields, line.split("\t"))) for line in done.stdout.splitlines()]


class Dissect(t.TargetTest):
    options = {"host_extra": '[limits]\nkeepalive_idle = "1s"\nkeepalive_timeout = "5s"'}

    def setUp(self):
        b.need("dumpcap", "tshark", "qemu-io", "iscsi-inq", "iscsi-ls", "iscsi-test-cu")
        if os.geteuid() != 0:
            b.skip("capturing needs root")
        super().setUp()

    def watch(self, port):
        self.capture = Capture(self.boxes.dir, port)
        self.addCleanup(self.capture.end)

    def check(self, *wanted):
        """All is as another implementation has it, and the PDUs of these names are there. Returns the text keys."""
        packets = self.capture.dissected()
        seen, keys = set(), []
        for packet in packets:
            self.assertEqual(packet["_ws.malformed"], "", packet)
            self.assertNotEqual(packet["iscsi.opcode"], "", f"data that is no iSCSI: {packet}")
            severities = [int(s) for s in packet["_ws.expert.severity"].split("|") if s]
            self.assertTrue(all(severity < expert_error for severity in severities), packet)
            codes = [int(code, 0) & 0x3f for code in packet["iscsi.opcode"].split("|")]
            self.assertEqual(set(codes) - set(opcodes), set(), packet)
            seen.update(opcodes[code] for code in codes)
            lengths = packet["iscsi.datasegmentlength"].split("|")  # of one PDU, unless it is of a kind that has none
            if codes == [0x01] and int(lengths[0] or "0", 0) > 0:
                seen.add("immediate data")
            keys += filter(None, packet["iscsi.keyvalue"].split("|"))
        self.assertEqual(set(wanted) - seen, set(), f"missing; seen: {sorted(seen)}")
        everything = self.capture.file.read_bytes()
        for secret in (ours[1], theirs[1]):
            self.assertNotIn(secret.encode(), everything)
        return keys

    def foreign_url(self, **more):
        self.lun()
        self.let_in(t.initiator, "lun1", chap=ours, **more)
        return self.boxes.iscsi_url("lun1", f"{ours[0]}%{ours[1]}@")

    def use(self, disk):
        """Reads, writes, a flush, a trim and zeros, and then a rest that is long enough to ask for a sign of life."""
        b.run("qemu-io", "-f", "raw", "-c", "write -P 1 0 1M", "-c", "write -P 2 0 4k", "-c", "flush", "-c", "read -P 2 0 4k", "-c",
              "read -P 1 4k 1020k", "-c", "discard 8M 1M", "-c", "write -z 9M 1M", self.boxes.uri(disk))
        time.sleep(2.5)
        self.boxes.cli("detach", disk)

    def use_own_disk(self, *options):
        self.boxes.start_host()
        self.boxes.pair()
        self.watch(self.boxes.ports["127.0.0.1"])
        self.boxes.create("disk1", "64M", *options)
        self.use("disk1")
        return self.check(*session, "immediate data", "NOP-Out", "NOP-In")

    def test_our_host_and_our_target(self):
        keys = self.use_own_disk()
        self.assertEqual(len([k for k in keys if k.startswith("CHAP_R=")]), 2, "CHAP was not mutual")
        self.assertIn("HeaderDigest=None", keys)

    def test_our_host_and_our_target_with_digests(self):
        keys = self.use_own_disk("--header-digest", "on", "--data-digest", "on")
        self.assertIn("HeaderDigest=CRC32C", keys)
        self.assertIn("DataDigest=CRC32C", keys)

    def test_our_host_and_a_foreign_target(self):
        f.need()
        tgt = f.Tgt(self.boxes.dir, 64 << 20)
        self.addCleanup(tgt.kill)
        tgt.start()
        tgt.serve()
        tgt.account(*ours)
        tgt.account(*theirs, "--outgoing")
        self.boxes.start_host()
        self.watch(tgt.port)
        self.boxes.cli("attach", "foreign", "--portal", f"127.0.0.1:{tgt.port}", "--target", f.iqn, "--lun", "1",
                       "--chap-user", ours[0], "--chap-secret-file", self.secret(ours[1]), "--mutual-user", theirs[0],
                       "--mutual-secret-file", self.secret(theirs[1]), "--header-digest", "on", "--data-digest", "on")
        self.use("foreign")
        # Its first burst is 64 KiB, so that it asks for the rest of a large write.
        self.check(*session, "immediate data", "R2T", "Data-Out", "NOP-Out", "NOP-In")

    def test_a_foreign_initiator_with_chap_and_discovery(self):
        url = self.foreign_url()
        self.watch(self.boxes.ports["127.0.0.1"])
        self.libiscsi("iscsi-inq", url)
        self.libiscsi("iscsi-ls", "-s", f"iscsi://{ours[0]}%{ours[1]}@{self.portal()}/")
        keys = self.check(*session, "Text Request", "Text Response")
        self.assertIn("SendTargets=All", keys)
        self.assertTrue(any(k.startswith("TargetAddress=") for k in keys), keys)
        self.assertGreaterEqual(len([k for k in keys if k.startswith("CHAP_R=")]), 2)

    def test_a_foreign_initiator_with_mutual_chap_and_header_digests(self):
        url = self.foreign_url(mutual=theirs) + f"?target_user={theirs[0]}&target_password={theirs[1]}&header_digest=crc32c"
        self.watch(self.boxes.ports["127.0.0.1"])
        self.libiscsi("iscsi-inq", url)
        keys = self.check(*session)
        self.assertEqual(len([k for k in keys if k.startswith("CHAP_R=")]), 2, "CHAP was not mutual")

    def test_writes_and_task_management_of_a_foreign_initiator(self):
        self.lun()
        self.let_in(t.initiator, "lun1")
        url = self.boxes.iscsi_url("lun1")
        self.watch(self.boxes.ports["127.0.0.1"])
        b.run("iscsi-test-cu", "-i", t.initiator, "-d", "-n", "--test=iSCSI.iSCSITMF.AbortTaskSimpleAsync", url)
        image = (f"driver=iscsi,transport=tcp,portal={self.portal()},target={url.split('/')[3]},lun=0,"
                 f"initiator-name={t.initiator}")
        b.run("qemu-io", "--image-opts", "-c", "write -P 1 0 2M", "-c", "read -P 1 0 2M", image)
        self.check(*session, "immediate data", "R2T", "Data-Out", "Task Management Request", "Task Management Response")


if __name__ == "__main__":
    b.main()
