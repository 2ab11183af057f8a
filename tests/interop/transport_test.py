# SPDX-License-Identifier: Apache-2.0
"""The choice between iSER and iSCSI where there is no RDMA: it is told everywhere why, and moving a disk under load costs no
I/O error."""
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
import boxes as b


class Transport(b.BoxTest):
    def setUp(self):
        b.need("fio", "qemu-io")
        super().setUp()

    def test_a_disk_on_iscsi_says_why_it_is_not_iser(self):
        self.boxes.create("disk1")
        disk = self.boxes.disk("disk1")
        self.assertEqual((disk["connection_type"], disk["transport_wanted"]), ("iscsi", "auto"))
        fallback = disk["fallback"]
        self.assertEqual((fallback["active"], fallback["reason_code"], fallback["degraded"]), (True, "no-rdma-device", False))
        self.assertIn("no RDMA device on lo", fallback["reason_text"])
        self.assertEqual(fallback["count"], 1)
        self.assertTrue(fallback["last_at"])
        self.assertIn("iSER failed: " + fallback["reason_text"], self.boxes.cli("list").stdout)
        self.assertIn("no-rdma-device", self.boxes.cli("status", "disk1", "-v").stdout)
        events = [event for event in self.boxes.json("events")["events"] if event["kind"] == "iser-fallback"]
        self.assertEqual([event["severity"] for event in events], ["warning"])
        self.assertIn("no-rdma-device", events[0]["text"])
        # No end has RDMA: that is what auto is for.
        self.assertEqual(self.boxes.cli("check", check=False).returncode, 0)

        self.boxes.host.stop()
        self.boxes.start_host()
        self.boxes.wait("disk1")
        self.assertEqual(self.boxes.disk("disk1")["fallback"]["reason_code"], "no-rdma-device")

    def test_a_disk_that_wants_iscsi_has_nothing_to_explain(self):
        self.boxes.create("disk1", "64M", "--transport", "iscsi")
        disk = self.boxes.disk("disk1")
        self.assertFalse(disk["fallback"]["active"])
        self.assertIsNone(disk["fallback"]["reason_code"])
        self.assertIsNone(disk["note"])

    def test_iser_or_nothing_is_refused_with_the_reason_and_leaves_nothing(self):
        done = self.boxes.cli("create", "d", "--peer", "nas2", "--pool", "tank", "--size", "64M", "--transport", "iser", check=False)
        self.assertEqual(done.returncode, 14, done.stderr)
        self.assertIn("no-rdma-device", done.stderr)
        self.assertEqual(self.boxes.json("list")["disks"], [])
        self.assertEqual(self.boxes.json("target", "lun", "list")["luns"], [])
        self.boxes.create("d", "64M")
        done = self.boxes.cli("edit", "d", "--transport", "iser", check=False)
        self.assertEqual(done.returncode, 14, done.stderr)
        self.assertEqual(self.boxes.disk("d")["transport_wanted"], "auto")

    def test_a_disk_is_moved_under_load_without_an_error(self):
        uri = self.boxes.create("disk1", "128M")
        fio = subprocess.Popen(["fio", "--name=v", "--ioengine=nbd", f"--uri={uri}", "--rw=randwrite", "--bs=4k", "--size=96m",
                                "--iodepth=16", "--time_based", "--runtime=20", "--verify=crc32c", "--verify_fatal=1",
                                "--verify_backlog=64", "--verify_state_save=0", "--output-format=terse"], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
        self.addCleanup(fio.kill)
        time.sleep(3)
        for turn in range(6):
            transport = ("iscsi", "auto")[turn % 2]
            before = self.boxes.disk("disk1")["reconnects"]
            self.boxes.cli("reconnect", "disk1", "--transport", transport)
            disk = self.boxes.disk("disk1")
            self.assertEqual((disk["state"], disk["connection_type"], disk["transport_wanted"]), ("connected", "iscsi", transport))
            self.assertEqual(disk["reconnects"], before + 1)
        stays = self.boxes.disk("disk1")["reconnects"]
        done = self.boxes.cli("reconnect", "disk1", "--transport", "iser", check=False)
        self.assertEqual(done.returncode, 14, done.stderr)
        self.assertIn("no-rdma-device", done.stderr)
        self.assertEqual(self.boxes.disk("disk1")["reconnects"], stays)
        output, _ = fio.communicate(timeout=120)
        self.assertEqual(fio.returncode, 0, output)
        self.assertEqual(self.boxes.disk("disk1")["stats"]["errors"], 0)

    def test_what_would_be_tried_is_told_in_advance(self):
        checks = {check["name"]: check for check in self.boxes.json_of_failing("preflight", "nas2")["checks"]}
        self.assertIn("iSCSI to 127.0.0.1", checks["plan"]["text"])
        self.assertIn("no-rdma-device", checks["plan"]["text"])

    def test_the_upgrade_policy_is_kept(self):
        self.boxes.create("disk1", "64M", "--upgrade", "idle")
        self.assertEqual(self.boxes.disk("disk1")["upgrade"], "idle")
        self.boxes.host.stop()
        self.boxes.start_host()
        self.assertEqual(self.boxes.disk("disk1")["upgrade"], "idle")
        self.boxes.cli("edit", "disk1", "--upgrade", "manual")
        self.assertEqual(self.boxes.disk("disk1")["upgrade"], "manual")


if __name__ == "__main__":
    b.main()
