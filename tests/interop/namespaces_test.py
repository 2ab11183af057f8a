# SPDX-License-Identifier: Apache-2.0
"""Two boxes in two network namespaces with two links: data and management. Data flow over the chosen pair only, forcing the
other pair moves them, and the data link may go down for 30 s. Needs root and iproute2."""
import os
import pathlib
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
import boxes as b

HOST, TARGET = f"vjbod-h{os.getpid()}", f"vjbod-t{os.getpid()}"
LINKS = {"data": "10.77.1", "mgmt": "10.77.0"}
SPARE = {"spare": "10.77.2"}


def ip(*arguments, check=True):
    return b.run("ip", *arguments, check=check)


class Base(unittest.TestCase):
    links = LINKS
    keepalive = "3s"

    def setUp(self):
        b.need("ip", "fio", "nbdcopy", "qemu-io")
        if os.geteuid() != 0:
            b.skip("network namespaces need root")
        self.addCleanup(lambda: [ip("netns", "del", name, check=False) for name in (HOST, TARGET)])
        for name in (HOST, TARGET):
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        for link, subnet in self.links.items():
            ip("link", "add", f"{link}0", "netns", HOST, "type", "veth", "peer", "name", f"{link}0", "netns", TARGET)
            for name, last in ((HOST, 1), (TARGET, 2)):
                ip("-n", name, "addr", "add", f"{subnet}.{last}/24", "dev", f"{link}0")
                ip("-n", name, "link", "set", f"{link}0", "up")
        self.boxes = b.Boxes(control="10.77.0.2", portals=[f"{subnet}.2" for subnet in self.links.values()],
                             target_prefix=("ip", "netns", "exec", TARGET), host_prefix=("ip", "netns", "exec", HOST),
                             host_extra=f'[limits]\nkeepalive_idle = "{self.keepalive}"\nkeepalive_timeout = "{self.keepalive}"')
        self.addCleanup(self.boxes.close)
        try:
            self.boxes.start()
            # A link that has just been made takes a moment to have a carrier.
            b.eventually(lambda: sum(pair["usable"] for pair in self.ranked()) == len(self.links),
                         what="all links being up")
        except BaseException:
            sys.stderr.write(self.boxes.logs())
            raise

    def ranked(self):
        return self.boxes.json("interfaces", "nas2")["pairs"]

    def sent(self, link):
        """Bytes that the host has sent over a link."""
        return int(b.run("ip", "netns", "exec", HOST, "cat", f"/sys/class/net/{link}0/statistics/tx_bytes").stdout)

    def write(self, uri, megabytes=32):
        data = self.boxes.dir / "data"
        data.write_bytes(os.urandom(megabytes << 20))
        before = {link: self.sent(link) for link in self.links}
        b.run("nbdcopy", "--flush", "--", data, uri)
        return {link: self.sent(link) - before[link] for link in self.links}


class Namespaces(Base):
    def test_data_flow_over_the_chosen_pair_only_and_forcing_the_other_moves_them(self):
        pairs = self.ranked()
        self.assertEqual(pairs[0]["host"]["name"], "data0", pairs)
        self.assertEqual(pairs[0]["iser_reason_code"], "no-rdma-device")
        uri = self.boxes.create("disk1", "128M")
        disk = self.boxes.disk("disk1")
        self.assertEqual((disk["host_interface"], disk["portal"].rsplit(":", 1)[0]), ("data0", "10.77.1.2"))
        sent = self.write(uri)
        self.assertGreater(sent["data"], 32 << 20)
        self.assertLess(sent["mgmt"], 1 << 20)

        self.boxes.cli("edit", "disk1", "--host-interface", "mgmt0")
        self.boxes.wait("disk1")
        b.eventually(lambda: (self.boxes.disk("disk1")["portal"] or "").startswith("10.77.0.2:"), what="the move")
        sent = self.write(uri)
        self.assertGreater(sent["mgmt"], 32 << 20)
        self.assertLess(sent["data"], 1 << 20)

    def test_the_data_link_goes_down_for_thirty_seconds_under_load(self):
        uri = self.boxes.create("disk1", "128M")
        fio = subprocess.Popen(["fio", "--name=v", "--ioengine=nbd", f"--uri={uri}", "--rw=randwrite", "--bs=4k", "--size=96m",
                                "--iodepth=16", "--time_based", "--runtime=40", "--verify=crc32c", "--verify_fatal=1",
                                "--verify_backlog=64", "--verify_state_save=0", "--output-format=terse"], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
        time.sleep(4)
        before = self.boxes.disk("disk1")
        ip("-n", TARGET, "link", "set", "data0", "down")
        time.sleep(30)
        self.assertIn(self.boxes.disk("disk1")["state"], ("reconnecting", "connected"))
        ip("-n", TARGET, "link", "set", "data0", "up")
        output, _ = fio.communicate(timeout=120)
        self.assertEqual(fio.returncode, 0, output)
        self.boxes.wait("disk1")
        after = self.boxes.disk("disk1")
        for field in ("isid", "naa", "socket"):
            self.assertEqual(after[field], before[field])

    def test_preflight_names_what_a_disk_would_meet(self):
        checks = {check["name"]: check for check in self.boxes.json_of_failing("preflight", "nas2")["checks"]}
        self.assertEqual(checks["payload"]["result"], "ok", checks)
        self.assertIn("9000 is recommended", checks["mtu"]["text"])
        ip("-n", HOST, "link", "set", "data0", "mtu", "9000")
        checks = {check["name"]: check for check in self.boxes.json_of_failing("preflight", "nas2")["checks"]}
        self.assertEqual(checks["control"]["result"], "ok")
        self.assertEqual(checks["data-path"]["result"], "ok")
        self.assertEqual(checks["mtu"]["result"], "failed", checks)
        # Small packets pass, those of our size do not come back.
        self.assertEqual(checks["payload"]["result"], "failed", checks)
        self.assertIn("9000 bytes are lost between data0 (MTU 9000) and data0 of nas2 (MTU 1500)", checks["payload"]["text"])
        ip("-n", HOST, "link", "set", "mgmt0", "mtu", "9000")
        checks = {check["name"]: check for check in self.boxes.json_of_failing("preflight", "nas2")["checks"]}
        self.assertEqual(checks["mtu"]["result"], "failed", checks)


class TwoDataLinks(Base):
    links = LINKS | SPARE
    keepalive = "15s"  # the kernel's word must be enough

    def test_a_dead_link_is_left_for_the_other_pair_at_once_and_the_disk_stays_there(self):
        uri = self.boxes.create("disk1", "128M")
        first = self.boxes.disk("disk1")
        self.assertIn(first["host_interface"], ("data0", "spare0"))
        dead = first["host_interface"]
        other = {"data0": "spare0", "spare0": "data0"}[dead]
        fio = subprocess.Popen(["fio", "--name=v", "--ioengine=nbd", f"--uri={uri}", "--rw=randwrite", "--bs=4k", "--size=96m",
                                "--iodepth=16", "--time_based", "--runtime=20", "--verify=crc32c", "--verify_fatal=1",
                                "--verify_backlog=64", "--verify_state_save=0", "--output-format=terse"], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
        self.addCleanup(fio.kill)
        time.sleep(3)
        ip("-n", TARGET, "link", "set", dead, "down")
        lost = time.monotonic()

        def there():
            now = self.boxes.disk("disk1")
            return now["state"] == "connected" and now["portal"].startswith(self.links[other[:-1]] + ".")
        b.eventually(there, timeout=30, what="the other way")
        self.assertLess(time.monotonic() - lost, 10)
        ip("-n", TARGET, "link", "set", dead, "up")
        output, _ = fio.communicate(timeout=120)
        self.assertEqual(fio.returncode, 0, output)
        self.assertTrue(there(), "moved back without being asked to")


if __name__ == "__main__":
    b.main()
