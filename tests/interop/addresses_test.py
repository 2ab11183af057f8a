# SPDX-License-Identifier: Apache-2.0
"""An address that comes later, on either box, is used without a restart or SIGHUP: hosts are told, initiators discover it, and a
portal that waits for it opens at once. Needs root and iproute2."""
import json
import os
import pathlib
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
import boxes as b

HOST, TARGET = f"vjbod-ah{os.getpid()}", f"vjbod-at{os.getpid()}"


def ip(*arguments, check=True):
    return b.run("ip", *arguments, check=check)


class Addresses(unittest.TestCase):
    def setUp(self):
        b.need("ip", "iscsi-ls")
        if os.geteuid() != 0:
            b.skip("network namespaces need root")
        self.addCleanup(lambda: [ip("netns", "del", name, check=False) for name in (HOST, TARGET)])
        for name in (HOST, TARGET):
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        for link in ("mgmt", "data"):
            ip("link", "add", f"{link}0", "netns", HOST, "type", "veth", "peer", "name", f"{link}0", "netns", TARGET)
            for name in (HOST, TARGET):
                ip("-n", name, "link", "set", f"{link}0", "up")
        self.address(HOST, "mgmt0", "10.78.0.1/24")
        self.address(TARGET, "mgmt0", "10.78.0.2/24")

    def address(self, box, link, address, action="add"):
        ip("-n", box, "addr", action, address, "dev", link)

    def start(self, *portals, **options):
        self.boxes = b.Boxes(control="10.78.0.2", portals=portals, target_prefix=("ip", "netns", "exec", TARGET),
                             host_prefix=("ip", "netns", "exec", HOST), **options)
        self.addCleanup(self.boxes.close)
        try:
            self.boxes.start()
        except BaseException:
            sys.stderr.write(self.boxes.logs())
            raise

    def run(self, result=None):
        before = len(result.failures) + len(result.errors) if result else 0
        outcome = super().run(result)
        if result and len(result.failures) + len(result.errors) > before and getattr(self, "boxes", None):
            sys.stderr.write(self.boxes.logs())
        return outcome

    def advertised(self):
        return {portal["address"] for portal in self.boxes.json("target", "portal", "list")["portals"]}

    def discovered(self):
        done = b.run("ip", "netns", "exec", HOST, "iscsi-ls", "-i", "iqn.2026-11.io.test:a",
                     f"iscsi://10.78.0.2:{self.port()}/", check=False)
        return done.stdout

    def port(self):
        return self.boxes.json("target", "portal", "list")["portals"][0]["port"]

    def test_an_address_that_comes_later_is_advertised_and_used(self):
        self.start("0.0.0.0")
        self.assertEqual(self.advertised(), {"10.78.0.2"})
        self.boxes.create("disk1", "16M")
        self.assertTrue(self.boxes.disk("disk1")["portal"].startswith("10.78.0.2:"))
        self.boxes.cli("target", "lun", "create", "lun2", "--pool", "tank", "--size", "1M")
        self.boxes.cli("target", "initiator", "add", "iqn.2026-11.io.test:a")
        self.boxes.cli("target", "initiator", "allow", "iqn.2026-11.io.test:a", "lun2")
        self.assertNotIn("10.78.1.2", self.discovered())

        self.address(HOST, "data0", "10.78.1.1/24")
        self.address(TARGET, "data0", "10.78.1.2/24")
        b.eventually(lambda: self.advertised() == {"10.78.0.2", "10.78.1.2"}, 10, "the new address being advertised")
        b.eventually(lambda: "10.78.1.2" in self.discovered(), 10, "initiators discovering it")
        # The host has been told: its next session goes over the new link, which does not carry the control channel.
        b.eventually(lambda: any(portal["address"] == "10.78.1.2" for portal in self.stored_portals()), 10, "the host being told")
        self.boxes.cli("target", "session", "kill", self.boxes.json("target", "session", "list")["sessions"][0]["id"])
        b.eventually(lambda: (self.boxes.disk("disk1")["portal"] or "").startswith("10.78.1.2:"), 20, "the new way")

        self.address(TARGET, "data0", "10.78.1.2/24", "del")
        b.eventually(lambda: self.advertised() == {"10.78.0.2"}, 10, "the address being forgotten")
        b.eventually(lambda: self.changes() >= 2, 10, "both changes being told")
        self.assertLessEqual(self.changes(), 6)

    def changes(self):
        return [event["kind"] for event in self.boxes.json("target", "events")["events"]].count("portals-changed")

    def stored_portals(self):
        return json.loads((self.boxes.dir / "host/host.json").read_text())["disks"][0]["portals"]

    def test_a_portal_that_waits_for_its_address_opens_when_it_comes(self):
        self.start("10.78.0.2", "10.78.1.2")
        self.assertEqual(self.advertised(), {"10.78.0.2"})
        self.assertIn("10.78.1.2", (self.boxes.dir / "target.log").read_text())
        self.boxes.create("disk1", "16M")
        self.address(HOST, "data0", "10.78.1.1/24")
        self.address(TARGET, "data0", "10.78.1.2/24")
        started = time.monotonic()
        b.eventually(lambda: self.advertised() == {"10.78.0.2", "10.78.1.2"}, 10, "the portal being open")
        self.assertLess(time.monotonic() - started, 5)
        b.eventually(lambda: any(portal["address"] == "10.78.1.2" for portal in self.stored_portals()), 10, "the host being told")

    def test_a_disk_comes_back_over_an_address_that_its_host_gets_later(self):
        self.start("0.0.0.0")
        self.address(TARGET, "data0", "10.78.1.2/24")
        self.boxes.create("disk1", "16M")
        # The only way is lost, the target goes on with another one, and the host gets there by an address of its own.
        self.address(HOST, "data0", "10.78.1.1/24")
        b.eventually(lambda: any(portal["source_address"] == "10.78.1.1" for portal in self.stored_portals()), 10,
                     "the host choosing its new address")
        ip("-n", TARGET, "link", "set", "mgmt0", "down")
        self.boxes.cli("reconnect", "disk1")
        b.eventually(lambda: (self.boxes.disk("disk1")["portal"] or "").startswith("10.78.1.2:"), 30, "the new way")


if __name__ == "__main__":
    b.main()
