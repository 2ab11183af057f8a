# SPDX-License-Identifier: Apache-2.0
"""Pairing end to end: what an unpaired caller reaches, how a token ends, what is sent to a box that is another one, and what
is left when a pairing ends."""
import base64
import datetime
import json
import pathlib
import socket
import ssl
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
import boxes as b

NOT_FOUND, BUSY, UNREACHABLE, AUTHENTICATION, MISMATCH = 3, 5, 8, 10, 12
WRONG = "V3Jvbmcgc2VjcmV0ISEhIQ=="  # Base64 of 16 bytes


class Pairing(b.BoxTest):
    def setUp(self):
        self.boxes = b.Boxes()
        self.addCleanup(self.boxes.close)
        self.boxes.start_target()
        self.boxes.start_host()

    def rpc(self, state, *lines):
        """As the box with that state directory."""
        fingerprint = self.boxes.json("target", "status")["certificate_fingerprint"]
        done = b.run(b.BIN / "vjbod_rpc_call", "tls", "127.0.0.1", self.boxes.ports["control"], fingerprint, state,
                     input="".join(line + "\n" for line in lines))
        return [json.loads(line) for line in done.stdout.splitlines()]

    def stranger(self):
        folder = self.boxes.dir / "stranger"
        folder.mkdir(exist_ok=True)
        return folder

    def token(self, *options):
        path = self.boxes.dir / "token"
        path.write_text(self.boxes.cli("target", "pair-token", *options).stdout)
        return path

    def pair(self, token, check=True):
        return self.boxes.cli("pair", f"127.0.0.1:{self.boxes.ports['control']}", "--token-file", token, check=check)

    def everything_of_the_target(self):
        return (self.boxes.dir / "target/target.json").read_text() if (self.boxes.dir / "target/target.json").exists() else ""

    def test_an_unpaired_caller_reaches_pairing_and_nothing_else(self):
        self.boxes.pair()
        self.boxes.create("disk1", "1M")
        before = self.everything_of_the_target()
        methods = [json.loads(line)["method"] for line in b.run(b.BIN / "vjbod_rpc_call", "list").stdout.splitlines()]
        self.assertGreater(len(methods), 40)
        for answer, method in zip(self.rpc(self.stranger(), *[f"{method} {{}}" for method in methods]), methods):
            with self.subTest(method=method):
                # The administrator's and the host's services are not there for other boxes: version, "does not know this call".
                self.assertEqual(answer["kind"], AUTHENTICATION if method.startswith("TargetPeer/") else 16, answer)
                self.assertEqual(answer["responses"], [])
                self.assertNotIn("disk1", answer["text"])
        self.assertEqual(self.everything_of_the_target(), before)

    def test_a_token_pairs_once(self):
        token = self.token()
        self.pair(token)
        self.boxes.cli("unpair", "nas2")
        self.assertEqual(self.pair(token, check=False).returncode, AUTHENTICATION)

    def test_five_wrong_tries_and_the_token_is_gone(self):
        token = self.token()
        wrong = f'TargetPeer/Pair {{"secret": "{WRONG}", "host_name": "x", "initiator_iqn": "iqn.2026-11.io.test:x"}}'
        for answer in self.rpc(self.stranger(), *[wrong] * 5):
            self.assertEqual(answer["kind"], AUTHENTICATION)
        done = self.pair(token, check=False)
        self.assertEqual(done.returncode, AUTHENTICATION, done.stderr)
        self.assertIn("pair-token", done.stderr)
        self.assertEqual(self.boxes.json("peers")["peers"], [])
        self.assertEqual(self.boxes.json("target", "peers")["peers"], [])
        self.pair(self.token())

    def test_four_wrong_tries_are_forgiven(self):
        token = self.token()
        self.rpc(self.stranger(), *[f'TargetPeer/Pair {{"secret": "{WRONG}"}}'] * 4)
        self.pair(token)

    def test_an_expired_token_pairs_nobody(self):
        token = self.token("--ttl", "1s")
        time.sleep(1.2)
        self.assertEqual(self.pair(token, check=False).returncode, AUTHENTICATION)
        self.assertEqual(self.boxes.json("target", "peers")["peers"], [])

    def test_a_token_holds_for_ten_minutes(self):
        made = self.boxes.json("target", "pair-token")
        expires = datetime.datetime.fromisoformat(made["expires_at"].replace("Z", "+00:00"))
        self.assertAlmostEqual(expires.timestamp(), time.time() + 600, delta=20)

    def test_nothing_is_sent_to_a_box_with_another_certificate(self):
        """Somebody has the address and a key of his own: he gets no byte of what is sent inside TLS, the secret least of all."""
        token = self.token()
        other = self.stranger()
        self.rpc(other, "TargetPeer/Describe {}")  # makes the key and certificate
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.load_cert_chain(other / "identity.pem")
        context.set_alpn_protocols(["h2"])
        received, connections = bytearray(), []
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        def serve():
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                connections.append(peer)
                try:
                    with context.wrap_socket(peer, server_side=True) as secured:
                        while data := secured.recv(65536):
                            received.extend(data)
                except OSError:
                    pass

        threading.Thread(target=serve, daemon=True).start()
        done = self.boxes.cli("pair", f"127.0.0.1:{listener.getsockname()[1]}", "--token-file", token, check=False)
        self.assertEqual(done.returncode, MISMATCH, done.stderr)
        self.assertGreater(len(connections), 0)
        self.assertEqual(bytes(received), b"")
        self.assertEqual(self.boxes.json("peers")["peers"], [])
        self.pair(token)  # it was not used up

    def test_unpairing_at_the_target_ends_sessions_and_forgets_secrets(self):
        b.need("qemu-io")
        self.boxes.pair()
        uri = self.boxes.create("disk1", "1M")
        secrets = [part["secret"] for part in json.loads((self.boxes.dir / "target/target.json").read_text())["luns"][0]
                   ["binding"].values() if isinstance(part, dict)]
        self.assertEqual(len(secrets), 2)
        self.assertEqual(len(self.boxes.json("target", "session", "list")["sessions"]), 1)
        self.boxes.cli("target", "unpair", "nas1", "--yes")
        self.assertEqual(self.boxes.json("target", "session", "list")["sessions"], [])
        self.assertEqual(self.boxes.json("target", "peers")["peers"], [])
        for path in (self.boxes.dir / "target").iterdir():
            for secret in secrets:
                self.assertNotIn(secret, path.read_text(errors="replace"))
        # The host is told, cannot come back, and says why; the data are still there.
        b.eventually(lambda: "0x0203" in (self.boxes.disk("disk1")["last_error"] or ""),
                     what="the disk being refused")
        self.assertEqual(self.boxes.disk("disk1")["state"], "reconnecting")
        self.assertEqual(self.boxes.json("target", "session", "list")["sessions"], [])
        b.eventually(lambda: not self.boxes.json("peers")["peers"][0]["reachable"], what="the channel being closed")
        answer = self.rpc(self.boxes.dir / "host", "TargetPeer/ListLuns {}", "TargetPeer/Describe {}")
        self.assertEqual([one["kind"] for one in answer], [AUTHENTICATION] * 2)
        self.assertEqual(self.boxes.json("target", "lun", "list")["luns"][0]["bound_to"], None)
        # Its own end goes without the other one, which has nothing left of it.
        self.boxes.cli("detach", "disk1", "--force")
        self.boxes.cli("unpair", "nas2")
        self.assertEqual(self.boxes.json("peers")["peers"], [])
        for path in (self.boxes.dir / "host").iterdir():
            for secret in secrets:
                self.assertNotIn(secret, path.read_text(errors="replace"))

    def test_a_box_that_calls_itself_another_name_is_still_the_same_box(self):
        self.boxes.pair()
        self.boxes.create("disk1", "1M")
        self.boxes.target.stop()
        path = self.boxes.dir / "target.toml"
        path.write_text(path.read_text().replace('name = "nas2"', 'name = "nas9"'))
        self.boxes.start_target()
        done = self.pair(self.token())
        self.assertEqual([(peer["name"], peer["disks"]) for peer in self.boxes.json("peers")["peers"]], [("nas2", 1)], done)
        self.assertIn("calls itself nas9", self.boxes.cli("events").stdout)
        self.boxes.wait("disk1")
        done = self.boxes.cli("unpair", "nas2", check=False)
        self.assertEqual(done.returncode, BUSY, done.stderr)
        self.assertIn("disk1", done.stderr)

    def test_another_initiator_name_ends_the_sessions_of_the_old_one(self):
        self.boxes.pair()
        self.boxes.create("disk1", "1M")
        secret = base64.urlsafe_b64decode((self.boxes.dir / "token").read_text().strip().removeprefix("vjbod1-") + "===")[35:51]
        old = self.boxes.json("target", "session", "list")["sessions"]
        self.assertEqual(len(old), 1)
        # The same key again, as long as its token lasts.
        answer, = self.rpc(self.boxes.dir / "host", "TargetPeer/Pair " + json.dumps({
            "secret": base64.b64encode(secret).decode(), "host_name": "nas1", "initiator_iqn": "iqn.2026-11.io.test:other",
            "version": {"version": "0.1.0", "protocol_major": 1}}))
        self.assertEqual(answer["kind"], 0, answer)
        b.eventually(lambda: self.boxes.json("target", "session", "list")["sessions"] == [], what="the old session being over")
        self.boxes.cli("target", "unpair", "nas1", "--yes")
        b.eventually(lambda: "0x0203" in (self.boxes.disk("disk1")["last_error"] or ""), what="the disk being refused")
        self.assertEqual(self.boxes.json("target", "session", "list")["sessions"], [])

    def test_secrets_are_in_no_log_and_no_list(self):
        self.boxes.pair()
        self.boxes.create("disk1", "1M")
        secrets = []
        for part in json.loads((self.boxes.dir / "target/target.json").read_text())["luns"][0]["binding"].values():
            if isinstance(part, dict):
                secrets += [part["secret"], bytes.fromhex(part["secret"]).decode()]
        token = (self.boxes.dir / "token").read_text().strip()
        said = "".join(self.boxes.cli(*command, "-o", "json").stdout for command in
                       (["list"], ["peers"], ["events"], ["status", "disk1"], ["luns", "nas2"], ["target", "lun", "list"],
                        ["target", "peers"], ["target", "events"], ["target", "session", "list"]))
        said += self.boxes.cli("status", "disk1", "-v").stdout
        said += (self.boxes.dir / "host.log").read_text() + (self.boxes.dir / "target.log").read_text()
        for secret in secrets + [token]:
            self.assertNotIn(secret, said)
        for name in ("host", "target"):
            for path in (self.boxes.dir / name).iterdir():
                self.assertEqual(path.stat().st_mode & 0o077, 0, path)


if __name__ == "__main__":
    b.main()
