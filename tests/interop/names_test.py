# SPDX-License-Identifier: Apache-2.0
"""Hostile names and sizes in every command and in every call that takes one: refused before anything is stored, and never
printed raw. The calls are made directly, since `vjbod` might refuse by itself what the daemons must refuse."""
import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
import boxes as b

LONG = "a" * 300
# Names of boxes, disks, LUNs, pools.
NAMES = ["", ".", "..", "../x", "a/b", "/etc/passwd", "A", "disk 1", " disk", "-a", "a\n", "a\tb", "\x1b[31mred", "a\x7f", "\x00",
         "a\x00b", "ü", "a\u202eb", "\u0085", "a" * 64, LONG, "%n%s", "a;b", "$(x)", "'", '"']
IQNS = ["", "iqn", "iqn.", "iqn.2026-11", "iqn.2026-13.io.test:a", "iqn.2026-11.io.test:", "iqn.2026-11.io.test:" + "a" * 220,
        "iqn.2026-11.io.test:a b", "iqn.2026-11.io.test:a\n", "iqn.2026-11.io.test:\x1b[2J", "iqn.2026-11.io.test:ü",
        "iqn.2026-11.io.test:a/../b", "iqn.2026-11.io.test:a\x00b", "eui.123", "naa.zz", "x" * 224, "../x"]
INTERFACES = [".", "..", "../eth0", "a/b", "eth 0", "eth0\n", "\x1b[31m", "ü", "a" * 16, LONG, "eth0:1"]
ADDRESSES = ["\n", "a b", "\x1b[31m", "../x", "::1%" + LONG, "127.0.0.1:80:80", "http://x", "unix:/run/x", "dns:///x", "a/b", "ü"]
USERS = ["a b", "a\n", "\x1b[31m", "a" * 300, "\x00"]
SIZES = [0, 1, 511, 513, 1000, (1 << 62) + 512, 1 << 63, (1 << 64) - 512, (1 << 64) - 1]

IQN = "iqn.2026-11.io.test:a"
LUN = {"name": "new", "pool": "tank", "size_bytes": 1 << 20}
DISK = {"disk": "new", "peer": "nas2", "pool": "tank", "size_bytes": 1 << 20}
FOREIGN = {"address": "127.0.0.1", "target_iqn": "iqn.2026-11.io.test:t"}
SECRET = "YSBzZWNyZXQgb2Ygc29tZSBsZW5ndGg="  # bytes are Base64 in JSON
OTHER_SECRET = "YW5vdGhlciBzZWNyZXQgb2Ygc29tZSBsZW5ndGg="

# Method -> a request that would be taken, or refused for a reason of its own, and (field, hostile values).
ADMIN = {
    "UnpairPeer": ({}, [("name", NAMES)]),
    "CreateLun": (LUN, [("name", NAMES), ("pool", NAMES), ("size_bytes", SIZES), ("block_size", [1, 511, 1024, 4095, 1 << 20])]),
    "DeleteLun": ({}, [("lun", NAMES)]),
    "ResizeLun": ({"lun": "lun2", "size_bytes": 2 << 20}, [("lun", NAMES), ("size_bytes", SIZES)]),
    "BindLun": ({"lun": "lun2", "peer": "nas1"}, [("lun", NAMES), ("peer", NAMES)]),
    "UnbindLun": ({}, [("lun", NAMES)]),
    "AddInitiator": ({"iqn": "iqn.2026-11.io.test:new", "chap_user": "a", "chap_secret": SECRET, "mutual_user": "b",
                      "mutual_secret": OTHER_SECRET}, [("iqn", IQNS), ("chap_user", USERS), ("mutual_user", USERS)]),
    "RemoveInitiator": ({}, [("name", IQNS)]),
    "AllowInitiator": ({"iqn": IQN, "lun": "lun2"}, [("iqn", IQNS), ("lun", NAMES)]),
    "DenyInitiator": ({"iqn": IQN, "lun": "lun2"}, [("iqn", IQNS), ("lun", NAMES)]),
    "KillSession": ({}, [("name", NAMES + ["-1", "1e3", "99999999999999999999"])]),
    "SetFault": ({"clear": {}}, [("lun", NAMES)]),
    "TraceLun": ({}, [("name", NAMES)]),
    "CreatePairToken": ({}, [("ttl_s", [86401, (1 << 32) - 1])]),
    "GetStatus": ({}, []), "ListPeers": ({}, []), "ListPools": ({}, []), "ListLuns": ({}, []), "ListInitiators": ({}, []),
    "ListPortals": ({}, []), "ListSessions": ({}, []), "Events": ({}, []),
}
PEER = {
    "Pair": ({"secret": SECRET, "host_name": "new", "initiator_iqn": IQN}, [("host_name", NAMES), ("initiator_iqn", IQNS)]),
    "ProvisionLun": ({"request_id": "a", **LUN}, [("request_id", NAMES), ("name", NAMES), ("pool", NAMES), ("size_bytes", SIZES),
                                                 ("block_size", [1, 511, 1024])]),
    "OpenLun": ({}, [("lun", NAMES)]),
    "CloseLun": ({}, [("lun", NAMES)]),
    "DeleteLun": ({"request_id": "a"}, [("lun", NAMES)]),
    "ResizeLun": ({"lun": "disk1", "size_bytes": 2 << 20}, [("lun", NAMES), ("size_bytes", SIZES)]),
    "Unpair": ({}, []), "Describe": ({}, []), "ListPools": ({}, []), "ListLuns": ({}, []), "Watch": ({}, []),
}
HOST = {
    "Pair": ({"address": "127.0.0.1", "port": 1, "token": "x"}, [("address", ADDRESSES), ("port", [65536, (1 << 32) - 1]),
                                                                 ("token", NAMES)]),
    "Unpair": ({}, [("peer", NAMES)]),
    "ListInterfacePairs": ({}, [("peer", NAMES)]),
    "Preflight": ({}, [("peer", NAMES)]),
    "ListPeerPools": ({}, [("peer", NAMES)]),
    "ListPeerLuns": ({}, [("peer", NAMES)]),
    "CreateDisk": (DISK, [("disk", NAMES), ("peer", NAMES), ("pool", NAMES), ("size_bytes", SIZES), ("block_size", [1, 511, 1024]),
                          ("options.host_interface", INTERFACES), ("options.remote_interface", INTERFACES),
                          ("options.backend", NAMES[1:]), ("options.on_loss", NAMES)]),
    "AttachDisk": ({"disk": "new", "peer_lun": {"peer": "nas2", "lun": "lun2"}},
                   [("disk", NAMES), ("peer_lun.peer", NAMES), ("peer_lun.lun", NAMES), ("options.host_interface", INTERFACES)]),
    "AttachDisk foreign": ({"disk": "new", "no_wait": True,
                            "foreign": {**FOREIGN, "chap_user": "a", "chap_secret": SECRET, "mutual_user": "b",
                                        "mutual_secret": OTHER_SECRET}},
                           [("disk", NAMES), ("foreign.address", ADDRESSES + ["", "nas2"]), ("foreign.port", [65536, (1 << 32) - 1]),
                            ("foreign.target_iqn", IQNS), ("foreign.lun_number", [16384, (1 << 32) - 1]),
                            ("foreign.chap_user", USERS), ("foreign.mutual_user", USERS),
                            ("options.host_interface", INTERFACES)]),
    "ConnectDisk": ({}, [("disk", NAMES)]),
    "DisconnectDisk": ({}, [("disk", NAMES)]),
    "ReconnectDisk": ({}, [("disk", NAMES)]),
    "EditDisk": ({"disk": "disk1"}, [("disk", NAMES), ("options.host_interface", INTERFACES),
                                     ("options.remote_interface", INTERFACES), ("options.backend", NAMES[1:]),
                                     ("options.on_loss", NAMES)]),
    "DetachDisk": ({}, [("disk", NAMES)]),
    "DeleteDisk": ({}, [("disk", NAMES)]),
    "ListDisks": ({}, [("disk", NAMES[1:])]),  # "": all
    "GetStatus": ({}, []), "ListPeers": ({}, []), "Events": ({}, []),
}


def with_field(request, field, value):
    copy = json.loads(json.dumps(request))
    place = copy
    *steps, last = field.split(".")
    for step in steps:
        place = place.setdefault(step, {})
    # 64-bit numbers are texts in protobuf's JSON.
    place[last] = str(value) if isinstance(value, int) and value >= 1 << 32 else value
    return copy


class Names(b.BoxTest):
    def setUp(self):
        super().setUp()
        self.boxes.create("disk1", "1M")
        self.boxes.cli("target", "lun", "create", "lun2", "--pool", "tank", "--size", "1M")
        self.boxes.cli("target", "initiator", "add", IQN)

    def everything(self):
        status = self.boxes.json("list")["disks"]
        return ((self.boxes.dir / "host/host.json").read_text(), (self.boxes.dir / "target/target.json").read_text(),
                sorted(path.name for path in self.boxes.dir.rglob("*") if path.parent.name != "target" or path.suffix != ".new"),
                [(disk["name"], disk["state"], disk["on_loss"], disk["host_interface"]) for disk in status])

    def rpc(self, where, lines):
        done = b.run(b.BIN / "vjbod_rpc_call", *where, input="".join(line + "\n" for line in lines), timeout=600)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(len(answers), len(lines))
        return answers

    def hostile(self, service, where, methods):
        before = self.everything()
        tried = []
        for method, (request, fields) in methods.items():
            for field, values in fields:
                for value in values:
                    tried.append((method, field, value, f"{service}/{method.split()[0]} " +
                                  json.dumps(with_field(request, field, value))))
        answers = self.rpc(where, [line for *_, line in tried])
        for (method, field, value, _), answer in zip(tried, answers):
            with self.subTest(method=method, field=field, value=value):
                self.assertNotIn(answer["kind"], (0, 7, 8, 9, 16), answer)  # and not for want of an answer
                text = answer["text"]
                self.assertTrue(text.isprintable() and len(text) > 5, repr(text))
                self.assertLess(len(text), 1000)
        self.assertEqual(self.everything(), before)

    def test_the_tables_name_every_method_and_every_field_that_is_a_name(self):
        listed = [json.loads(line) for line in b.run(b.BIN / "vjbod_rpc_call", "list").stdout.splitlines()]
        tables = {"TargetAdmin": ADMIN, "TargetPeer": PEER, "HostAdmin": HOST}
        self.assertEqual({line["method"] for line in listed},
                         {f"{service}/{method.split()[0]}" for service, table in tables.items() for method in table})
        names = {"name", "peer", "pool", "lun", "disk", "iqn", "host_name", "initiator_iqn", "request_id", "size_bytes", "address"}
        for line in listed:
            service, method = line["method"].split("/")
            if f"{service}/{method}" == "HostAdmin/AttachDisk":
                continue  # in two forms
            tried = {field for field, _ in tables[service][method][1]}
            fixed = set(tables[service][method][0]) if method == "DeleteLun" else set()
            missing = (set(line["fields"]) & names) - tried - fixed - ({"request_id"} if method in ("CloseLun", "DeleteLun", "UnbindLun")
                                                                      else set())
            self.assertEqual(missing, set(), line["method"])

    def test_target_admin(self):
        self.hostile("TargetAdmin", ["unix", self.boxes.dir / "target.sock"], ADMIN)

    def test_target_peer(self):
        fingerprint = self.boxes.json("target", "status")["certificate_fingerprint"]
        self.hostile("TargetPeer", ["tls", "127.0.0.1", self.boxes.ports["control"], fingerprint, self.boxes.dir / "host"], PEER)

    def test_host_admin(self):
        self.hostile("HostAdmin", ["unix", self.boxes.dir / "host.sock"], HOST)

    # --- the command line ---

    def test_every_command_that_takes_a_name_refuses_a_hostile_one(self):
        secret = self.boxes.dir / "secret"
        secret.write_text("a secret of some length\n")
        token = self.boxes.dir / "token"
        token.write_text("nonsense\n")
        names = ["../x", "A", "a\x1b[31m", "ü", LONG]
        iqns = ["iqn.2026-11.io.test:a\x1b[31m", "iqn.2026-11.io.test:ü", "iqn." + LONG, "../x"]
        create = ["--pool", "tank", "--size", "1M"]
        before = self.everything()
        for commands, values in (
                ([["unpair", "*"], ["interfaces", "*"], ["preflight", "*"], ["pools", "*"], ["luns", "*"],
                  ["create", "*", "--peer", "nas2", *create], ["create", "new", "--peer", "*", *create],
                  ["create", "new", "--peer", "nas2", "--pool", "*", "--size", "1M"],
                  ["attach", "*", "--peer", "nas2", "--lun", "lun2"], ["attach", "new", "--peer", "*", "--lun", "lun2"],
                  ["attach", "new", "--peer", "nas2", "--lun", "*"], ["status", "*"], ["connect", "*"], ["disconnect", "*"],
                  ["reconnect", "*"], ["edit", "*", "--on-loss", "fail"], ["detach", "*"], ["delete", "*", "--yes"],
                  ["wait", "*"], ["target", "unpair", "*", "--yes"], ["target", "lun", "create", "*", *create],
                  ["target", "lun", "create", "new", "--pool", "*", "--size", "1M"], ["target", "lun", "delete", "*", "--yes"],
                  ["target", "lun", "resize", "*", "2M"], ["target", "lun", "bind", "*", "nas1"],
                  ["target", "lun", "bind", "lun2", "*"], ["target", "lun", "unbind", "*"],
                  ["target", "initiator", "allow", IQN, "*"], ["target", "initiator", "deny", IQN, "*"],
                  ["target", "session", "kill", "*"], ["pair", "*", "--token-file", token]], names),
                ([["target", "initiator", "add", "*"], ["target", "initiator", "remove", "*"],
                  ["target", "initiator", "allow", "*", "lun2"], ["target", "initiator", "deny", "*", "lun2"],
                  ["attach", "new", "--portal", "127.0.0.1", "--target", "*", "--lun", "0"]], iqns),
                ([["edit", "disk1", "--host-interface", "*"], ["edit", "disk1", "--remote-interface", "*"],
                  ["create", "new", "--peer", "nas2", *create, "--host-interface", "*"]], ["../x", "a\x1b[31m", "ü", LONG])):
            for command in commands:
                for value in values:
                    with self.subTest(command=command, value=value):
                        done = self.boxes.cli(*[value if word == "*" else word for word in command], check=False)
                        self.assertIn(done.returncode, (2, 3, 10), done.stderr)
                        self.assertEqual(done.stdout, "")
                        self.assertTrue(done.stderr.replace("\n", "").isprintable(), repr(done.stderr))
        self.assertEqual(self.everything(), before)

    def test_an_iqn_in_upper_case_is_the_one_in_lower_case(self):
        self.boxes.cli("target", "initiator", "allow", IQN.upper(), "lun2")
        [initiator] = self.boxes.json("target", "initiator", "list")["initiators"]
        self.assertEqual((initiator["iqn"], initiator["luns"]), (IQN, ["lun2"]))
        self.boxes.cli("target", "initiator", "remove", IQN.upper())

    def test_sizes_are_bytes_or_whole_powers_and_fit_the_blocks(self):
        before = self.everything()
        for size in ("0", "-1", "-1G", "1.5G", "10XB", "10GB", "10 G", "1e9", "0x1000", "", "G", "1000", "513", "4097", "8191P", "4P1",
                     "9999999999999999999999", "18446744073709551616", "5000000000000000000"):
            for command in (["create", "new", "--peer", "nas2", "--pool", "tank", f"--size={size}"],
                            ["create", "new", "--peer", "nas2", "--pool", "tank", "--block-size", "4096", f"--size={size}"],
                            ["target", "lun", "create", "new", "--pool", "tank", f"--size={size}"],
                            ["target", "lun", "resize", "--", "lun2", size], ["target", "lun", "resize", "--", "disk1", size]):
                with self.subTest(command=command):
                    done = self.boxes.cli(*command, check=False)
                    self.assertEqual(done.returncode, 2, done.stderr)
                    self.assertGreater(len(done.stderr), 20)
        done = self.boxes.cli("create", "new", "--peer", "nas2", "--pool", "tank", "--block-size", "4096", "--size", "512", check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("multiple of the block size 4096", done.stderr)
        done = self.boxes.cli("target", "lun", "resize", "lun2", "512K", check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("not shrink", done.stderr)
        self.assertEqual(self.everything(), before)


if __name__ == "__main__":
    b.main()
