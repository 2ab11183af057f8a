# SPDX-License-Identifier: Apache-2.0
"""What keeps a daemon from starting is named, has its exit status, and changes nothing: ports in use, and state files that are
damaged or of a newer version, each kind of them."""
import json
import os
import pathlib
import shutil
import signal
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
import boxes as b

OTHER, USAGE, BUSY, PERMISSION, VERSION = 1, 2, 5, 6, 16


class Ports(b.BoxTest):
    def setUp(self):
        self.boxes = b.Boxes()
        self.addCleanup(self.boxes.close)
        self.boxes.start_target()
        self.boxes.target.stop()

    def occupy(self, port):
        """Listens there, as another program."""
        program = b.subprocess.Popen([sys.executable, "-c", "import socket, sys, time\ns = socket.socket()\n"
                                      "s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
                                      f"s.bind(('127.0.0.1', {port}))\ns.listen()\nprint('there', flush=True)\ntime.sleep(600)"],
                                     stdout=b.subprocess.PIPE, text=True)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        self.addCleanup(program.stdout.close)
        self.assertEqual(program.stdout.readline(), "there\n")
        return program

    def test_a_portal_in_use_is_named_with_its_user(self):
        port = self.boxes.ports["127.0.0.1"]
        other = self.occupy(port)
        code, said = self.boxes.target.fails()
        self.assertEqual(code, BUSY, said)
        self.assertIn(f"portal 127.0.0.1:{port} is in use by", said)
        self.assertIn(f"process {other.pid}", said)
        other.kill()
        other.wait()
        self.boxes.start_target()

    def test_a_control_port_in_use_is_named_with_its_user(self):
        port = self.boxes.ports["control"]
        other = self.occupy(port)
        code, said = self.boxes.target.fails()
        self.assertEqual(code, BUSY, said)
        self.assertIn(f"127.0.0.1:{port} is in use by", said)
        self.assertIn("control", said)
        self.assertIn(f"process {other.pid}", said)

    def test_a_second_daemon_leaves_the_first_one_alone(self):
        self.boxes.start_target()
        self.boxes.start_host()
        for daemon, name in ((self.boxes.target, "target"), (self.boxes.host, "host")):
            code, said = daemon.fails()
            self.assertEqual(code, BUSY, said)
            self.assertIn(f"{self.boxes.dir}/{name} is in use by another daemon", said)
            # Another state directory, but the same control socket.
            other = self.boxes.dir / f"other-{name}"
            config = self.boxes.dir / f"other-{name}.toml"
            text = daemon.config.read_text().replace(f'"{self.boxes.dir}/{name}"', f'"{other}"')
            for port in self.boxes.ports.values():
                text = text.replace(f":{port}", ":0")
            config.write_text(text)
            second = b.Daemon(daemon.program, config, self.boxes.dir / "second.log")
            code, said = second.fails()
            self.assertEqual(code, BUSY, said)
            self.assertIn(f"{self.boxes.dir}/{name}.sock", said)
        self.assertEqual(self.boxes.cli("list").returncode, 0)
        self.assertEqual(self.boxes.cli("target", "status").returncode, 0)

    def test_a_socket_of_a_disk_that_somebody_else_uses_is_named(self):
        self.boxes.start_target()
        self.boxes.start_host()
        self.boxes.pair()
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(self.boxes.dir / "nbd" / "disk1.sock"))
            other.listen()
            done = self.boxes.cli("create", "disk1", "--peer", "nas2", "--pool", "tank", "--size", "1M", check=False)
            self.assertEqual(done.returncode, 15, done.stderr)
            self.assertIn("disk1.sock", done.stderr)
        self.assertIn("disk1.sock", self.boxes.disk("disk1")["note"])
        self.boxes.cli("delete", "disk1", "--yes")


def damages(text, of_json):
    """Name of the damage -> what the file holds then."""
    yield "empty", b""
    yield "cut short", text[:len(text) // 2]
    yield "zeros", bytes(len(text))
    yield "another format", b"\x7fELF" + text
    if not of_json:
        return
    state = json.loads(text)
    yield "no object", b"[]"
    yield "no version", json.dumps({k: v for k, v in state.items() if k != "version"}).encode()
    yield "version as text", json.dumps({**state, "version": "1"}).encode()
    yield "version 0", json.dumps({**state, "version": 0}).encode()

    for key in state:  # more of this in the unit tests of the state
        if isinstance(state[key], list) and state[key]:
            yield f"{key}[0] twice", json.dumps({**state, key: state[key] + state[key][:1]}).encode()
            yield f"{key}[0] = 1", json.dumps({**state, key: [1]}).encode()
            yield f"{key} = 1", json.dumps({**state, key: 1}).encode()


class StateFiles(b.BoxTest):
    def setUp(self):
        super().setUp()
        self.boxes.create("disk1", "1M")
        secret = self.boxes.dir / "secret"
        secret.write_text("a secret of some length\n")
        secret.chmod(0o600)
        self.boxes.cli("target", "lun", "create", "lun2", "--pool", "tank", "--size", "1M")
        self.boxes.cli("target", "initiator", "add", "iqn.2026-11.io.test:a", "--chap-user", "a", "--chap-secret-file", secret)
        self.boxes.cli("target", "initiator", "allow", "iqn.2026-11.io.test:a", "lun2")

    def check(self, daemon, folder, file, content, code, *words):
        path = folder / file
        path.write_bytes(content)
        os.chmod(path, 0o600)
        before = sorted(entry.name for entry in folder.iterdir())
        got, said = daemon.fails()
        self.assertEqual(got, code, said)
        for word in (str(path), "left as it is", *words):
            self.assertIn(word, said)
        self.assertTrue(said.isprintable() or said.replace("\n", "").isprintable(), repr(said))
        self.assertEqual(path.read_bytes(), content, "the file was changed")
        self.assertEqual(sorted(entry.name for entry in folder.iterdir()), before)

    def test_every_damage_of_every_file_is_refused_and_the_file_kept(self):
        for daemon, name, start in ((self.boxes.target, "target", self.boxes.start_target),
                                    (self.boxes.host, "host", self.boxes.start_host)):
            self.assertEqual(daemon.stop(), 0)
            folder = self.boxes.dir / name
            for file, of_json in ((f"{name}.json", True), ("identity.pem", False)):
                good = (folder / file).read_bytes()
                tried = 0
                for damage, content in damages(good, of_json):
                    with self.subTest(file=f"{name}/{file}", damage=damage):
                        self.check(daemon, folder, file, content, OTHER, "damaged", "backup")
                    tried += 1
                self.assertGreater(tried, 8 if of_json else 3)
                (folder / file).write_bytes(good)
            start()
        self.boxes.wait("disk1")

    def test_a_newer_version_is_refused_and_the_file_kept(self):
        for daemon, name, start in ((self.boxes.target, "target", self.boxes.start_target),
                                    (self.boxes.host, "host", self.boxes.start_host)):
            self.assertEqual(daemon.stop(), 0)
            folder = self.boxes.dir / name
            good = (folder / f"{name}.json").read_bytes()
            newer = json.dumps({"version": 2, "everything": "is different"}).encode()
            self.check(daemon, folder, f"{name}.json", newer, VERSION, "version 2", "newer program")
            (folder / f"{name}.json").write_bytes(good)
            start()
        self.boxes.wait("disk1")

    def test_a_key_that_others_can_read_is_refused(self):
        self.assertEqual(self.boxes.target.stop(), 0)
        path = self.boxes.dir / "target" / "identity.pem"
        path.chmod(0o644)
        code, said = self.boxes.target.fails()
        self.assertEqual(code, PERMISSION, said)
        self.assertIn("chmod 600", said)

    def test_a_lun_whose_file_is_damaged_is_not_served_and_the_others_are(self):
        file = next(path for path in (self.boxes.dir / "pool").rglob("*.lun"))
        uuid = file.name.removesuffix(".lun")
        luns = json.loads((self.boxes.dir / "target/target.json").read_text())["luns"]
        name = next(lun["name"] for lun in luns if lun["uuid"] == uuid)
        self.assertEqual(self.boxes.target.stop(), 0)
        for damage in ("short", "missing", "folder", "fifo"):
            with self.subTest(damage=damage):
                kept = self.boxes.dir / "kept"
                shutil.move(file, kept)
                if damage == "short":
                    file.write_bytes(kept.read_bytes()[:-512])
                elif damage == "folder":
                    file.mkdir()
                elif damage == "fifo":
                    os.mkfifo(file)
                self.boxes.start_target()
                states = {lun["name"]: (lun["state"], lun["error"]) for lun in self.boxes.json("target", "lun", "list")["luns"]}
                self.assertEqual(states[name][0], "failed")
                self.assertIn(str(file), states[name][1])
                self.assertEqual([state for lun, (state, _) in states.items() if lun != name], ["ok"])
                self.assertEqual(self.boxes.target.stop(), 0)
                if damage == "short":
                    self.assertEqual(file.stat().st_size, (1 << 20) - 512, "the file was changed")
                if file.is_dir():
                    file.rmdir()
                else:
                    file.unlink(missing_ok=True)
                shutil.move(kept, file)
        self.boxes.start_target()
        self.boxes.wait("disk1")


if __name__ == "__main__":
    b.main()
