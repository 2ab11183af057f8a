# SPDX-License-Identifier: Apache-2.0
"""The main job on one machine: pair, create, use, restart both ends, detach, attach, delete. Real NBD clients."""
import concurrent.futures
import os
import pathlib
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
import boxes as b


class WholePath(b.BoxTest):
    def setUp(self):
        b.need("nbdcopy", "nbdinfo", "qemu-io", "fio")
        super().setUp()

    def pattern(self, size=8 << 20):
        path = self.boxes.dir / "pattern"
        path.write_bytes(os.urandom(size))
        return path

    def read_back(self, uri, size):
        copy = self.boxes.dir / "copy"
        b.run("nbdcopy", "--", uri, copy)
        return copy.read_bytes()[:size]

    def test_data_survive_restarts_of_both_ends_and_a_new_attach(self):
        uri = self.boxes.create("disk1")
        data = self.pattern()
        b.run("nbdcopy", "--flush", "--", data, uri)
        self.assertEqual(self.read_back(uri, 8 << 20), data.read_bytes())

        isid = self.boxes.disk("disk1")["isid"]
        self.assertEqual(self.boxes.target.stop(), 0)
        self.boxes.start_target()
        self.boxes.wait("disk1")
        self.assertEqual(self.boxes.host.stop(), 0)
        self.boxes.start_host()
        self.boxes.wait("disk1")
        self.assertEqual(self.boxes.disk("disk1")["isid"], isid)
        self.assertEqual(self.read_back(uri, 8 << 20), data.read_bytes())

        self.boxes.cli("detach", "disk1")
        self.assertEqual(self.boxes.json("list")["disks"], [])
        self.boxes.cli("attach", "again", "--peer", "nas2", "--lun", "disk1")
        self.assertEqual(self.read_back(self.boxes.uri("again"), 8 << 20), data.read_bytes())
        self.boxes.cli("delete", "again", "--yes")
        self.assertEqual(self.boxes.json("target", "lun", "list")["luns"], [])

    def test_zeros_are_fast_forced_writes_are_stable_and_the_log_names_the_disk(self):
        uri = self.boxes.create("disk1", "64M")
        commands = ["write -P 1 0 1M", "write -z -n 0 512k", "read -P 0 0 512k", "read -P 1 512k 512k",  # -n: fast or not at all
                    "write -f -P 7 1M 16M", "read -P 7 1M 16M"]
        b.run("qemu-io", "-f", "raw", *[word for command in commands for word in ("-c", command)], uri)
        log = (self.boxes.dir / "host.log").read_text()
        for prefix in ("[disk1] ", "[disk1 session 1] ", "[disk1 nbd] ", "[disk1 nbd client 1] "):
            self.assertIn(prefix, log)

    def test_the_same_create_again_changes_nothing_and_another_one_is_refused(self):
        self.boxes.create("disk1")
        self.boxes.create("disk1")
        self.assertEqual(len(self.boxes.json("target", "lun", "list")["luns"]), 1)
        other = self.boxes.cli("create", "disk1", "--peer", "nas2", "--pool", "tank", "--size", "1G", check=False)
        self.assertEqual(other.returncode, 4)

    def test_an_older_lun_is_deleted_while_a_newer_one_is_in_use(self):
        self.boxes.create("disk1", "1M")
        self.boxes.create("disk2", "1M")
        self.boxes.cli("delete", "disk1", "--yes")
        self.assertEqual([lun["name"] for lun in self.boxes.json("target", "lun", "list")["luns"]], ["disk2"])
        self.assertEqual(self.boxes.disk("disk2")["state"], "connected")

    def test_the_same_create_many_times_at_once_makes_one_disk(self):
        arguments = ["create", "disk1", "--peer", "nas2", "--pool", "tank", "--size", "64M"]
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            done = list(pool.map(lambda _: self.boxes.cli(*arguments, check=False), range(8)))
        self.assertEqual([one.returncode for one in done], [0] * 8, [one.stderr for one in done])
        self.assertEqual(len(self.boxes.json("target", "lun", "list")["luns"]), 1)
        self.assertEqual(self.boxes.disk("disk1")["state"], "connected")

    def test_errors_have_their_exit_codes_and_leave_nothing(self):
        for code, arguments in [
            (2, ["create", "d", "--peer", "nas2", "--pool", "tank", "--size", "1000"]),
            (2, ["create", "../d", "--peer", "nas2", "--pool", "tank", "--size", "1M"]),
            (3, ["create", "d", "--peer", "nobody", "--pool", "tank", "--size", "1M"]),
            (3, ["create", "d", "--peer", "nas2", "--pool", "none", "--size", "1M"]),
            (14, ["create", "d", "--peer", "nas2", "--pool", "tank", "--size", "1M", "--transport", "iser"]),
            (15, ["create", "d", "--peer", "nas2", "--pool", "tank", "--size", "1M", "--backend", "ublk"]),
            (13, ["create", "d", "--peer", "nas2", "--pool", "tank", "--size", "1P", "--thick"]),
            (3, ["detach", "nothing"]),
            (1, ["resize", "d", "2G"]),
        ]:
            done = self.boxes.cli(*arguments, check=False)
            self.assertEqual(done.returncode, code, f"{arguments}: {done.stderr}")
            self.assertTrue(done.stderr.startswith("vjbod: "), done.stderr)
        self.assertEqual(self.boxes.json("list")["disks"], [])
        self.assertEqual(self.boxes.json("target", "lun", "list")["luns"], [])

    def test_who_may_not_use_the_control_socket_is_told_so(self):
        # As another user, who can get to the socket but may not use it.
        self.boxes.dir.chmod(0o755)
        command = [b.BIN / "vjbod", "--host-socket", self.boxes.dir / "host.sock", "list"]
        done = b.run(*command, check=False, user=65534, group=65534, extra_groups=[])
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertIn("by its owner only", done.stderr)
        self.boxes.host.stop()
        done = b.run(*command, check=False)
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertIn("start vjbod-hostd", done.stderr)

    def test_a_change_is_waited_for_and_times_stay_what_they_were(self):
        self.boxes.create("d", "64M")
        first = self.boxes.disk("d")
        time.sleep(1.1)
        self.assertEqual(self.boxes.disk("d")["state_since"], first["state_since"])
        for command in (["reconnect", "d"], ["edit", "d", "--header-digest", "on"]):
            self.boxes.cli(*command)
            self.assertEqual(self.boxes.disk("d")["state"], "connected", command)
        self.boxes.cli("disconnect", "d")
        self.boxes.cli("connect", "d")
        self.assertEqual(self.boxes.disk("d")["state"], "connected")
        self.assertNotEqual(self.boxes.disk("d")["state_since"], first["state_since"])
        self.boxes.target.kill()
        b.eventually(lambda: self.boxes.disk("d")["state"] == "reconnecting", what="the loss")
        done = self.boxes.cli("reconnect", "d", "--timeout", "2s", check=False)
        self.assertEqual(done.returncode, 9, done.stderr)
        self.boxes.cli("reconnect", "d", "--no-wait")

    def test_fio_verifies_and_the_block_sizes_are_told(self):
        uri = self.boxes.create("disk4k", "128M", "--block-size", "4096")
        info = b.run("nbdinfo", "--json", "--", uri).stdout
        self.assertIn('"block_size_minimum": 4096', info)
        b.run("fio", "--name=v", "--ioengine=nbd", f"--uri={uri}", "--rw=randwrite", "--bs=4k-64k", "--size=64m", "--iodepth=16",
              "--verify=crc32c", "--verify_fatal=1", "--do_verify=1", "--randrepeat=1", "--verify_state_save=0", timeout=180)

    def test_growth_of_the_lun_is_followed(self):
        uri = self.boxes.create("disk1", "64M")
        self.boxes.cli("target", "lun", "resize", "disk1", "96M")
        b.run("qemu-io", "-f", "raw", "-c", "read 0 4k", uri)
        b.eventually(lambda: self.boxes.disk("disk1")["size_bytes"] == 96 << 20, what="the new size")
        self.assertEqual(int(b.run("nbdinfo", "--size", "--", uri).stdout), 96 << 20)

    def test_unpairing_is_refused_with_disks_and_ends_everything_without(self):
        self.boxes.create("disk1")
        self.assertEqual(self.boxes.cli("unpair", "nas2", check=False).returncode, 5)
        self.boxes.cli("detach", "disk1")
        self.boxes.cli("unpair", "nas2")
        self.assertEqual(self.boxes.json("peers")["peers"], [])
        self.assertEqual(self.boxes.json("target", "peers")["peers"], [])

    def test_detach_refuses_a_disk_in_use_and_force_ends_it(self):
        uri = self.boxes.create("disk1")
        with b.subprocess.Popen(["qemu-io", "-f", "raw", uri], stdin=b.subprocess.PIPE, stdout=b.subprocess.DEVNULL,
                                stderr=b.subprocess.DEVNULL) as client:
            b.eventually(lambda: self.boxes.cli("detach", "disk1", check=False).returncode == 5, what="the client's connection")
            self.boxes.cli("detach", "disk1", "--force")
            client.stdin.close()
        self.assertEqual(self.boxes.json("list")["disks"], [])


if __name__ == "__main__":
    b.main()
