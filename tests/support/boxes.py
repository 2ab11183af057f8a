# SPDX-License-Identifier: Apache-2.0
"""Two VJBOD boxes on this machine, for tests: real daemons in a temporary directory, driven through the real command line.

    class MyTest(BoxTest):
        def test_something(self):
            self.boxes.create("disk1")
            ...

Run a test file with the folder of the programs: python3 x_test.py BIN_DIR [unittest arguments]. What is missing on a person's
machine is a loud skip; with CI set, it is a failure."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

BIN = None  # set by main()


def main():
    global BIN
    BIN = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main(verbosity=2)


def need(*programs):
    """Skips the test when a program is missing; fails it in CI."""
    missing = [p for p in programs if shutil.which(p) is None]
    if missing:
        skip(f"missing: {', '.join(missing)}; tools/packages.sh test installs them")


def skip(reason):
    """Loud on a person's machine; in CI, where everything can be had, a failure."""
    if os.environ.get("CI"):
        raise AssertionError(reason)
    raise unittest.SkipTest(reason)


def run(*command, timeout=120, check=True, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=timeout, **options)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def eventually(condition, timeout=30.0, what="the condition"):
    """Polls; returns the first true value."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come true within {timeout} s")
        time.sleep(0.05)


class SmallDisk:
    """A folder on a small file system of its own, that can be filled and made read-only while it is in use."""

    def __init__(self, test, path, size):
        if os.geteuid() != 0:
            skip("a file system of its own needs root")
        self.path, self.test = path, test
        self._mount("-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", path)

    def _mount(self, *arguments):
        done = run("mount", *arguments, check=False)
        if done.returncode != 0:
            skip(f"mount is not permitted here: {done.stderr.strip()}")
        if "remount" not in str(arguments[1]):
            self.test.addCleanup(run, "umount", "-l", self.path, check=False)

    def fill(self, leave=0):
        """Takes all but `leave` bytes."""
        with open(self.path / "filler", "wb", buffering=0) as filler:
            try:
                while True:
                    filler.write(bytes(4096))
            except OSError:
                pass
            if leave:
                filler.truncate(filler.tell() - leave)

    def free(self):
        (self.path / "filler").unlink()

    def read_only(self):
        # A second mount, since the first one has files that are open for writing.
        self._mount("--bind", self.path, self.path)
        self._mount("-o", "remount,bind,ro", self.path)

    def writable(self):
        run("umount", self.path)


class Daemon:
    def __init__(self, program, config, log, prefix=()):
        self.program, self.config, self.log, self.prefix = program, config, log, list(prefix)
        self.process = None

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([*self.prefix, str(BIN / self.program), "--config", str(self.config)], stderr=log,
                                            stdout=log, stdin=subprocess.DEVNULL)

    def fails(self, timeout=20):
        """Starts it where it must not; returns the exit status and what it says."""
        done = subprocess.run([*self.prefix, str(BIN / self.program), "--config", str(self.config)], capture_output=True,
                              text=True, timeout=timeout, stdin=subprocess.DEVNULL)
        return done.returncode, done.stderr

    @property
    def pid(self):
        return self.process.pid

    def signal(self, number):
        os.kill(self.process.pid, number)

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
        if self.process:
            self.process.wait()

    def stop(self, timeout=10):
        """SIGTERM; returns the exit status."""
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(timeout)

    def running(self):
        return self.process is not None and self.process.poll() is None

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def rss_kib(self):
        for line in pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
        return 0


class Boxes:
    """nas2 (target) and nas1 (host). Addresses may lie in network namespaces: then give the prefixes."""

    def __init__(self, control="127.0.0.1", portals=("127.0.0.1",), target_prefix=(), host_prefix=(), target_extra="",
                 host_extra=""):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="vjbod-test."))
        self.control, self.portals = control, portals
        self.target_prefix, self.host_prefix = list(target_prefix), list(host_prefix)
        for name in ("pool", "target", "host", "nbd"):
            (self.dir / name).mkdir()
        self.ports = {}
        self.target_extra, self.pools_extra = target_extra, ""
        self.write_target_config()
        (self.dir / "host.toml").write_text(f"""
name = "nas1"
state_dir = "{self.dir}/host"
control_socket = "{self.dir}/host.sock"
[export]
backend = "socket"
socket_dir = "{self.dir}/nbd"
{host_extra}
""")
        self.target = Daemon("vjbod-targetd", self.dir / "target.toml", self.dir / "target.log", target_prefix)
        self.host = Daemon("vjbod-hostd", self.dir / "host.toml", self.dir / "host.log", host_prefix)

    def write_target_config(self):
        """Port 0 at first; the ports found are written in after the first start, so that a restart keeps them."""
        portals = "".join(f'[[portal]]\naddress = "{a}:{self.ports.get(a, 0)}"\ntransports = ["iscsi"]\n' for a in self.portals)
        (self.dir / "target.toml").write_text(f"""
name = "nas2"
state_dir = "{self.dir}/target"
control_socket = "{self.dir}/target.sock"
{self.target_extra}
[control]
listen = "{self.control}:{self.ports.get('control', 0)}"
{portals}
[[pool]]
name = "tank"
kind = "directory"
path = "{self.dir}/pool"
{self.pools_extra}
""")

    def start_target(self):
        self.target.start()
        eventually(lambda: self.cli("target", "status", check=False).returncode == 0, what="the target daemon answering")
        if not self.ports:
            status = self.json("target", "status")
            self.ports["control"] = int(status["control_address"].rsplit(":", 1)[1])
            for portal in status["portals"]:
                self.ports[portal["address"]] = portal["port"]
            self.write_target_config()

    def start_host(self):
        self.host.start()
        eventually(lambda: self.cli("list", check=False).returncode == 0, what="the host daemon answering")

    def start(self):
        self.start_target()
        self.start_host()
        self.pair()

    def pair(self):
        token = self.dir / "token"
        token.write_text(self.cli("target", "pair-token").stdout)
        self.cli("pair", f"{self.control}:{self.ports['control']}", "--token-file", token)

    def cli(self, *arguments, check=True, timeout=90):
        return run(BIN / "vjbod", "--host-socket", self.dir / "host.sock", "--target-socket", self.dir / "target.sock",
                   *arguments, check=check, timeout=timeout)

    def json(self, *arguments):
        return json.loads(self.cli(*arguments, "-o", "json").stdout)

    def json_of_failing(self, *arguments):
        """For commands whose exit status tells of what they found."""
        return json.loads(self.cli(*arguments, "-o", "json", check=False).stdout)

    def create(self, disk, size="256M", *more):
        self.cli("create", disk, "--peer", "nas2", "--pool", "tank", "--size", size, *more)
        return self.uri(disk)

    def disk(self, disk):
        return self.json("status", disk)["disks"][0]

    def uri(self, disk):
        return f"nbd+unix:///?socket={self.disk(disk)['socket']}"

    def wait(self, disk, state="connected", timeout="60s"):
        self.cli("wait", disk, "--state", state, "--timeout", timeout)

    def lun_file(self):
        """The file of the only LUN."""
        files = [f for f in (self.dir / "pool").rglob("*") if f.is_file() and f.stat().st_size > 0]
        assert len(files) == 1, files
        return files[0]

    def iscsi_url(self, lun, user="", address=None):
        address = address or self.portals[0]
        iqn = next(entry["target_iqn"] for entry in self.json("target", "lun", "list")["luns"] if entry["name"] == lun)
        return f"iscsi://{user}{address}:{self.ports[address]}/{iqn}/0"

    def logs(self):
        return "".join(f"--- {name}\n" + (self.dir / name).read_text(errors="replace")[-6000:]
                       for name in ("target.log", "host.log") if (self.dir / name).exists())

    def close(self):
        for daemon in (self.host, self.target):
            if daemon.running():
                daemon.signal(signal.SIGCONT)
                daemon.process.terminate()
        for daemon in (self.host, self.target):
            if daemon.process:
                try:
                    daemon.process.wait(12)
                except subprocess.TimeoutExpired:
                    daemon.kill()
        shutil.rmtree(self.dir, ignore_errors=True)


class BoxTest(unittest.TestCase):
    """Starts a paired pair of boxes for each test, and shows their logs when it fails."""
    options = {}

    def setUp(self):
        self.boxes = Boxes(**self.options)
        self.addCleanup(self.boxes.close)
        try:
            self.boxes.start()
        except BaseException:
            sys.stderr.write(self.boxes.logs())
            raise

    def run(self, result=None):
        before = len(result.failures) + len(result.errors) if result else 0
        outcome = super().run(result)
        if result and len(result.failures) + len(result.errors) > before and self.boxes.dir.exists():
            sys.stderr.write(self.boxes.logs())
        return outcome

    def tearDown(self):
        outcome = getattr(self, "_outcome", None)
        failed = outcome and getattr(outcome.result, "failures", []) + getattr(outcome.result, "errors", [])
        crashed = [d.program for d in (self.boxes.target, self.boxes.host)
                   if d.process and d.process.poll() not in (None, 0, -signal.SIGKILL, -signal.SIGTERM)]
        if failed or crashed:
            sys.stderr.write(self.boxes.logs())
        self.assertEqual(crashed, [], "daemons that ended by themselves")
