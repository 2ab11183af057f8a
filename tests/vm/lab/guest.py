# SPDX-License-Identifier: Apache-2.0
"""A guest: one QEMU process, and a virtio-serial port through which the agent in it runs commands."""
import ctypes
import os
import signal
import socket
import subprocess
import threading
import time

from .missing import need

QEMU = "qemu-system-x86_64"
BOOT_SECONDS = 120
PROBE_SECONDS = 15
PR_SET_PDEATHSIG = 1
# Without self-tests and workarounds that cost an emulated guest seconds and show nothing here.
KERNEL_ARGUMENTS = ("console=ttyS0 loglevel=5 panic=-1 mitigations=off nokaslr edd=off cryptomgr.notests "
                    "initcall_blacklist=jent_mod_init,bpf_tcp_ca_kfunc_init,bpf_dummy_struct_ops_init")


class GuestError(AssertionError):
    pass


class Job:
    """A command that runs in a guest."""

    def __init__(self, guest, text, timeout):
        self.guest, self.text, self.timeout = guest, text, timeout
        self.done, self.begun = threading.Event(), time.monotonic()
        self.status = self.output = None

    def finish(self, status, output):
        self.status, self.output = status, output
        took = f"{self.begun - self.guest.lab.started:.1f} + {time.monotonic() - self.begun:.1f} s"
        self.guest.log(f"-- [{took}, status {status}] {self.text}\n{output}")
        self.done.set()

    def running(self):
        return not self.done.is_set()

    def end(self):
        """Kills it, with what it started."""
        self.guest.request(Job(self.guest, f"(end of: {self.text})", 30), "end", self.number, b"").wait()
        self.wait(check=False)

    def wait(self, check=True):
        """Its output. The guest ends it at its timeout; a guest that does not answer at all fails a little later."""
        if not self.done.wait(self.timeout + 30):
            raise GuestError(f"{self.guest.name} does not answer: {self.text}")
        if check and self.status != 0:
            why = f"not done after {self.timeout} s" if self.status is None else f"status {self.status}"
            raise GuestError(f"{self.guest.name}: {self.text}\n{why}\n{self.output}")
        return self.output


class Guest:
    """Booted by Lab.boot(). `cables` are sockets whose other ends are other guests' interfaces; `disk` is a raw file."""

    def __init__(self, lab, name, number, cables, disk, memory_mib, vcpus):
        self.lab, self.name, self.number = lab, name, number
        self.cables, self.disk, self.memory_mib, self.vcpus = cables, disk, memory_mib, vcpus
        self.process = None
        self.boots = 0

    def boot(self):
        """Starts it and waits until it can be used."""
        self.start_machine()
        return self.wait_booted()

    def start_machine(self):
        assert self.process is None, f"{self.name} runs already"
        need(QEMU)
        ours, theirs = socket.socketpair()
        command = machine(self.lab.kernel, self.lab.initramfs, self.lab.accelerator, self.memory_mib, self.vcpus)
        command += ["-append", f"{KERNEL_ARGUMENTS} lab.name={self.name}", "-chardev", f"file,id=console,path={self.console()},append=on",
                    "-serial", "chardev:console", "-device", "virtio-serial",
                    "-chardev", f"socket,id=lab,fd={theirs.fileno()}", "-device", "virtserialport,chardev=lab,name=lab",
                    "-device", "virtio-rng-pci"]
        for tag, path, access in (("root", "/", "on"), ("tests", self.lab.tests, "on"), ("bin", self.lab.bin, "on"),
                                  ("modules", self.lab.kernel.modules, "on"), ("share", self.lab.folder, "off")):
            command += ["-virtfs", f"local,path={path},mount_tag=lab-{tag},security_model=none,multidevs=remap,readonly={access}"]
        for link, cable in enumerate(self.cables):
            command += ["-netdev", f"dgram,id=n{link},local.type=fd,local.str={cable.socket.fileno()}", "-device",
                        f"virtio-net-pci,netdev=n{link},mac=52:54:00:00:0{link}:0{self.number},host_mtu=9000,romfile="]
        if self.disk:
            # "unsafe" lets QEMU ignore flushes: its writes are in this machine's memory at once, and that is not cut off.
            command += ["-drive", f"file={self.disk},format=raw,if=virtio,cache=unsafe"]
        for cable in self.cables:
            cable.plug()
        descriptors = [theirs.fileno(), *(cable.socket.fileno() for cable in self.cables)]
        with open(self.lab.folder / f"{self.name}.qemu", "ab") as errors:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors,
                                            pass_fds=descriptors, preexec_fn=die_with_parent)
        theirs.close()
        self.boots += 1
        self.channel = ours
        self.jobs, self.next_id, self.sending = {}, 0, threading.Lock()
        self.ready = threading.Event()
        self.started = time.monotonic()
        threading.Thread(target=self.receive, args=(ours,), daemon=True).start()

    def wait_booted(self):
        while not self.ready.wait(0.1):
            if self.process.poll() is not None or time.monotonic() - self.started > BOOT_SECONDS:
                state = "ended" if self.process.poll() is not None else f"did not boot within {BOOT_SECONDS} s"
                raise GuestError(f"{self.name} {state}; console:\n{self.console_tail()}")
        self.lab.say(f"{self.name} booted in {time.monotonic() - self.started:.0f} s")
        return self

    def receive(self, channel):
        with channel.makefile("rb") as answers:
            while True:
                try:
                    line = answers.readline()
                    if not line:
                        break
                    number, status, length = line.decode().split()
                    output = answers.read(int(length)).decode(errors="replace")
                except OSError:
                    break
                if status == "ready":
                    self.ready.set()
                else:
                    self.jobs.pop(int(number)).finish(None if status == "late" else int(status), output)
        for job in list(self.jobs.values()):
            job.finish(125, f"{self.name} ended\n")

    def request(self, job, kind, argument, data):
        with self.sending:
            self.next_id += 1
            job.number = self.next_id
            self.jobs[self.next_id] = job
            try:
                self.channel.sendall(f"{self.next_id} {kind} {argument} {len(data)}\n".encode() + data)
            except OSError:
                self.jobs.pop(self.next_id, None)
                job.finish(125, f"{self.name} has ended\n")
        return job

    def start(self, text, timeout=60):
        """Runs shell text, with guest/functions.sh, in the background; a Job."""
        return self.request(Job(self, text, timeout), "run", timeout, text.encode())

    def sh(self, text, timeout=60, check=True):
        """Runs shell text, with guest/functions.sh; its output."""
        return self.start(text, timeout).wait(check)

    def status(self, text, timeout=60):
        """Runs shell text; its exit status."""
        job = self.start(text, timeout)
        job.wait(check=False)
        return job.status

    def put(self, path, text):
        """Writes a file in the guest, mode 0600."""
        self.request(Job(self, f"(write {path})", 30), "put", path, text.encode()).wait()

    def power_cut(self):
        """As a pulled plug: what is in the guest's memory is gone, what it wrote to its disk stays. boot() starts it again."""
        self.process.kill()
        self.process.wait()
        self.process = None
        self.channel.close()
        for cable in self.cables:
            cable.unplug()

    def running(self):
        return self.process is not None and self.process.poll() is None

    def console(self):
        return self.lab.folder / f"{self.name}.console"

    def console_tail(self, lines=40):
        text = self.console().read_text(errors="replace") if self.console().exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def log(self, text):
        with open(self.lab.folder / f"{self.name}.commands", "a", encoding="utf-8") as log:
            log.write(text)


class Cable:
    """One end of a cable between two guests: a datagram is a frame. Kept open here, so that a guest which is cut off does not
    take the other's interface with it."""

    def __init__(self, end):
        self.socket = end
        self.plugged = True
        self.unplug()

    def plug(self):
        self.plugged = True
        self.drain.join()
        self.socket.setblocking(True)

    def unplug(self):
        """Frames to a guest that is off are lost, as on a real cable."""
        if not self.plugged:
            return
        self.plugged = False
        self.socket.settimeout(0.1)
        self.drain = threading.Thread(target=self.lose, daemon=True)
        self.drain.start()

    def lose(self):
        while not self.plugged:
            try:
                self.socket.recv(65536)
            except OSError:
                pass


def cables(count, memory=1 << 20):
    """Pairs of ends; the first of each is for one guest, the second for the other."""
    pairs = []
    for _ in range(count):
        ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        for end in ends:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, memory)
        pairs.append(tuple(map(Cable, ends)))
    return pairs


def machine(kernel, initramfs, accelerator, memory_mib, vcpus):
    acceleration = ["-accel", "kvm"] if accelerator == "kvm" else ["-accel", "tcg,thread=multi"]
    return [QEMU, *acceleration, "-cpu", "max,la57=off", "-m", str(memory_mib), "-smp", str(vcpus), "-nographic", "-nodefaults",
            "-no-reboot", "-monitor", "none", "-kernel", str(kernel.image), "-initrd", str(initramfs)]


def choose_accelerator(kernel, initramfs):
    """KVM where it can really boot this kernel (some clouds have a /dev/kvm that cannot), else emulation."""
    wanted = os.environ.get("VJBOD_VM_ACCELERATOR")
    if wanted:
        return wanted
    need(QEMU)
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "tcg"
    command = machine(kernel, initramfs, "kvm", 256, 1) + ["-append", f"{KERNEL_ARGUMENTS} lab.probe", "-serial", "stdio"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          errors="replace", preexec_fn=die_with_parent) as process:
        late = threading.Timer(PROBE_SECONDS, process.kill)
        late.start()
        output = process.stdout.read()
        late.cancel()
    return "kvm" if "LAB-PROBE-OK" in output else "tcg"


def die_with_parent():
    """Between fork and exec: QEMU is killed when the lab ends, however it ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.setpgid(0, 0)
