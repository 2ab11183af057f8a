# SPDX-License-Identifier: Apache-2.0
"""What becomes of a LUN at the peer when its disk ends here: it is told, at once or as soon as it is back, and it is never told
to delete what this host did not make."""
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
import boxes as b


class Farewell(b.BoxTest):
    options = {"host_extra": '[limits]\nkeepalive_idle = "1s"\nkeepalive_timeout = "1s"'}

    def lun(self, name="disk1"):
        luns = [lun for lun in self.boxes.json("target", "lun", "list")["luns"] if lun["name"] == name]
        return luns[0] if luns else None

    def pending(self):
        return self.boxes.json("peers")["peers"][0]["pending"]

    def kinds(self):
        return [event["kind"] for event in self.boxes.json("events")["events"]]

    def state(self):
        return json.loads((self.boxes.dir / "host" / "host.json").read_text())

    def edit_state(self, edit):
        """As a crash would have left it."""
        self.boxes.host.kill()
        state = self.state()
        edit(state)
        (self.boxes.dir / "host" / "host.json").write_text(json.dumps(state))
        self.boxes.start_host()

    def test_a_detach_that_the_peer_missed_is_told_when_it_is_back(self):
        self.boxes.create("disk1", "64M")
        self.boxes.target.kill()
        started = time.monotonic()
        self.boxes.cli("detach", "disk1", "--force")
        self.assertLess(time.monotonic() - started, 9)
        self.assertEqual(self.boxes.json("list")["disks"], [])
        [pending] = self.pending()
        self.assertEqual((pending["lun"], pending["action"]), ("disk1", "close"))
        self.assertIn("disk1", self.boxes.cli("peers").stdout)

        self.boxes.start_target()
        self.assertIn(self.lun()["bound_to"], ("nas1", None))
        b.eventually(lambda: self.lun()["bound_to"] is None, 60, "the LUN being let go")
        b.eventually(lambda: self.pending() == [], what="the host knowing that")
        self.assertIn("peer-told", self.kinds())

    def test_it_is_told_after_a_restart_of_the_host_as_well(self):
        self.boxes.create("disk1", "64M")
        self.boxes.target.kill()
        self.boxes.cli("detach", "disk1", "--force")
        self.assertEqual(self.boxes.host.stop(), 0)
        self.boxes.start_host()
        self.assertEqual(len(self.pending()), 1)
        self.boxes.start_target()
        b.eventually(lambda: self.lun()["bound_to"] is None, 60, "the LUN being let go")

    def test_a_new_attach_takes_the_farewell_back(self):
        self.boxes.create("disk1", "64M")
        self.boxes.target.kill()
        self.boxes.cli("detach", "disk1", "--force")
        self.boxes.host.kill()
        self.boxes.start_target()
        self.boxes.start_host()
        # Either the farewell was first or the attach: the disk works, and stays.
        b.eventually(lambda: self.boxes.cli("attach", "again", "--peer", "nas2", "--lun", "disk1", check=False).returncode == 0,
                     what="the attach")
        self.assertEqual(self.pending(), [])
        time.sleep(3)
        self.assertEqual(self.boxes.disk("again")["state"], "connected")
        self.assertEqual(self.lun()["bound_to"], "nas1")

    def test_a_delete_that_did_not_get_through_is_done_later(self):
        self.boxes.create("disk1", "64M")
        record = self.state()["disks"][0]

        def lose_the_answer(state):
            state["farewells"] = [{"id": record["uuid"], "peer": "nas2", "lun": record["identity"]["naa"].removeprefix("naa."),
                                   "lun_name": "disk1", "request_id": "", "ending": "deleted",
                                   "since": "2026-11-01T00:00:00Z"}]
            state["disks"] = []
        self.edit_state(lose_the_answer)
        b.eventually(lambda: self.lun() is None, 60, "the LUN being deleted")
        b.eventually(lambda: self.pending() == [], what="the host knowing that")

    def test_another_lun_of_the_same_name_is_left_alone(self):
        self.boxes.create("disk1", "64M")
        naa = self.lun()["naa"]
        self.boxes.target.kill()
        self.boxes.cli("detach", "disk1", "--force")
        self.boxes.host.kill()
        self.boxes.start_target()
        self.boxes.cli("target", "lun", "unbind", "disk1")
        self.boxes.cli("target", "lun", "delete", "disk1", "--yes")
        self.boxes.cli("target", "lun", "create", "disk1", "--pool", "tank", "--size", "64M")
        self.boxes.cli("target", "lun", "bind", "disk1", "nas1")
        self.assertNotEqual(self.lun()["naa"], naa)
        self.boxes.start_host()
        b.eventually(lambda: self.pending() == [], 60, "the farewell being over")
        self.assertEqual(self.lun()["bound_to"], "nas1")

    def interrupt(self, **changes):
        """The record of disk1 as it was before its LUN was known to be there."""
        def edit(state):
            disk = state["disks"][0]
            disk.update(phase="creating", chap=None, mutual=None, identity=None, geometry=None, **changes)
        self.edit_state(edit)

    def test_giving_up_an_interrupted_attach_deletes_nothing(self):
        self.boxes.create("disk1", "64M")
        self.interrupt(size_bytes=0)
        self.boxes.cli("detach", "disk1")
        b.eventually(lambda: self.lun()["bound_to"] is None, what="the LUN being let go")

    def test_giving_up_an_interrupted_create_deletes_only_what_it_made(self):
        self.boxes.create("disk1", "64M")
        uuid = self.state()["disks"][0]["uuid"]
        self.interrupt(uuid="11111111-2222-4333-8444-555555555555")
        self.boxes.cli("detach", "disk1")
        time.sleep(1)
        self.assertIsNotNone(self.lun(), "the LUN of another creation was deleted")
        self.assertEqual(self.boxes.json("list")["disks"], [])

        self.boxes.cli("attach", "disk1", "--peer", "nas2", "--lun", "disk1")
        self.interrupt(uuid=uuid, size_bytes=64 << 20)
        self.boxes.cli("detach", "disk1")
        b.eventually(lambda: self.lun() is None, what="the LUN being taken back")

    def test_unpairing_waits_for_a_deletion_and_ends_the_rest(self):
        self.boxes.create("disk1", "64M")
        self.boxes.target.kill()
        self.boxes.cli("detach", "disk1", "--force")
        self.assertEqual(self.boxes.cli("unpair", "nas2", check=False).returncode, 8)
        self.boxes.cli("unpair", "nas2", "--force")
        self.assertEqual(self.state()["farewells"], [])
        self.assertIn("vjbod target unpair nas1", [event["text"] for event in self.boxes.json("events")["events"]
                                                   if event["kind"] == "peer-not-told"][-1])
        self.boxes.start_target()
        self.boxes.cli("target", "unpair", "nas1", "--yes")
        self.assertIsNone(self.lun()["bound_to"])


if __name__ == "__main__":
    b.main()
