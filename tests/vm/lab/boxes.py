# SPDX-License-Identifier: Apache-2.0
"""Our daemons in guests, with the default paths of their manuals, driven through the real command line."""
import json
import shlex

PROGRAM_SECONDS = 60  # to start, to stop and to answer, in an emulated guest beside other load


class Box:
    program = config_path = None

    def __init__(self, guest):
        self.guest = guest

    def start(self):
        self.guest.sh(f"mkdir -p /run/vjbod; daemon {self.program} {self.config_path}; "
                      f"wait_for {PROGRAM_SECONDS} {self.answers}", timeout=PROGRAM_SECONDS + 30)

    def kill(self):
        self.guest.sh(f"kill -9 $(daemon_pid {self.program}); "
                      f"wait_for 10 sh -c '! kill -0 $(cat /run/{self.program}.pid)'")

    def stop(self):
        self.guest.sh(f"kill $(daemon_pid {self.program}); "
                      f"wait_for {PROGRAM_SECONDS} sh -c '! kill -0 $(cat /run/{self.program}.pid)'", PROGRAM_SECONDS + 30)

    def cli(self, *arguments, check=True, timeout=90):
        return self.guest.sh("vjbod " + " ".join(shlex.quote(str(a)) for a in arguments), timeout=timeout, check=check)

    def json(self, *arguments):
        output = self.guest.sh("vjbod " + " ".join(shlex.quote(str(a)) for a in arguments) + " -o json 2> /dev/null", check=False)
        return json.loads(output)


class Target(Box):
    """`folder` keeps its state and its pool; on a disk of the guest both outlive a power cut."""
    program, config_path, answers = "vjbod-targetd", "/etc/vjbod/target.toml", "vjbod target status"

    def __init__(self, guest, folder="/srv/vjbod", extra=""):
        super().__init__(guest)
        self.folder, self.extra = folder, extra

    def start(self):
        self.guest.sh(f"mkdir -p {self.folder}/pool")
        self.guest.put(self.config_path, f"""
name = "nas2"
state_dir = "{self.folder}/state"
{self.extra}
[[pool]]
name = "tank"
path = "{self.folder}/pool"
""")
        super().start()

    def lun(self, name, size, *more):
        self.cli("target", "lun", "create", name, "--pool", "tank", "--size", size, *more)

    def iqn(self, lun):
        return next(entry["target_iqn"] for entry in self.json("target", "lun", "list")["luns"] if entry["name"] == lun)

    def let_in(self, iqn, *luns, chap=None, mutual=None):
        """`chap` and `mutual` are pairs of user and secret."""
        options = []
        for name, pair in (("chap", chap), ("mutual", mutual)):
            if pair:
                self.guest.put(f"/run/secret-{name}", pair[1])
                options += [f"--{name}-user", pair[0], f"--{name}-secret-file", f"/run/secret-{name}"]
        self.cli("target", "initiator", "add", iqn, *options)
        for lun in luns:
            self.cli("target", "initiator", "allow", iqn, lun)

    def token(self):
        return self.cli("target", "pair-token")


class Host(Box):
    program, config_path, answers = "vjbod-hostd", "/etc/vjbod/host.toml", "vjbod list"

    iqn = "iqn.2026-11.io.vjbod.test:host"

    def __init__(self, guest, folder="/var/lib/vjbod", backend="socket", extra=""):
        super().__init__(guest)
        self.folder, self.backend, self.extra = folder, backend, extra

    def start(self):
        self.guest.sh(f"mkdir -p {self.folder}/host /run/vjbod/nbd")
        self.guest.put(self.config_path, f"""
name = "nas1"
state_dir = "{self.folder}/host"
initiator_iqn = "{self.iqn}"
[export]
backend = "{self.backend}"
{self.extra}
""")
        super().start()

    def pair(self, target, address="10.0.0.2"):
        self.guest.put("/run/token", target.token())
        self.cli("pair", address, "--token-file", "/run/token")

    def create(self, disk, size, *more):
        self.cli("create", disk, "--peer", "nas2", "--pool", "tank", "--size", size, *more)

    def disk(self, name):
        return self.json("status", name)["disks"][0]

    def wait(self, disk, state="connected", timeout=60):
        self.cli("wait", disk, "--state", state, "--timeout", f"{timeout}s", timeout=timeout + 30)

    def uri(self, disk):
        return f"nbd+unix:///?socket=/run/vjbod/nbd/{disk}.sock"

    def fio_verify(self, disk, jobs="--name=verify --bs=4k --size=32m --iodepth=16", seconds=0):
        """fio over the disk's socket, checking what it wrote: `seconds` long, or once. A Job."""
        length = f"--time_based --runtime={seconds} --verify_backlog=64" if seconds else ""
        return self.guest.start(
            f"cd /tmp; fio --ioengine=nbd --uri='{self.uri(disk)}' --rw=randwrite --verify=crc32c --verify_fatal=1 --do_verify=1 "
            f"--verify_state_save=0 {length} {jobs}", timeout=seconds + 240)
