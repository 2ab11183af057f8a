# SPDX-License-Identifier: Apache-2.0
"""What a test is given: guests, a kernel for them, a place for logs, and a way to wait."""
import os
import re
import time

from . import guest, kernels

# A line of a console with one of these is a defect of a kernel or of what drove it, even where the test passed.
ALARMS = re.compile(r"BUG:|Oops|general protection fault|Kernel panic|KASAN|refcount_t:|blocked for more than")


class Lab:
    def __init__(self, title, folder, tests, bin_folder, soak):
        self.title, self.folder, self.tests, self.bin, self.soak = title, folder, tests, bin_folder, soak
        self.kernel = self.initramfs = self.accelerator = None
        self.guests = []
        self.started = time.monotonic()

    def use_kernel(self, series, cache):
        self.kernel = kernels.get(series, cache)
        self.initramfs = kernels.initramfs(self.kernel, cache)
        self.accelerator = guest.choose_accelerator(self.kernel, self.initramfs)
        self.say(f"kernel {self.kernel.version}, {self.accelerator}")

    def say(self, text):
        print(f"[{time.monotonic() - self.started:6.1f}] {self.title}: {text}", flush=True)

    def boot(self, name="nas1", disk_mib=0, cables=(), memory_mib=1024, vcpus=2, later=False):
        """Boots a guest. `disk_mib` gives it a disk, /dev/vda, that outlives power cuts. `later`: wait_booted() is yours."""
        disk = None
        if disk_mib:
            disk = self.folder / f"{name}.disk"
            with open(disk, "wb") as file:
                file.truncate(disk_mib << 20)
        made = guest.Guest(self, name, len(self.guests) + 1, list(cables), disk, memory_mib, vcpus)
        self.guests.append(made)
        made.start_machine()
        return made if later else made.wait_booted()

    def boot_two(self, disk_mib=0, cables=1, memory_mib=1024):
        """nas1, the host, and nas2, the target, with 10.0.N.1 and 10.0.N.2 on the Nth cable; `disk_mib` is the target's.
        One CPU each: virtual CPUs that wait for one another are slow when there are more of them than real ones."""
        pairs = guest.cables(cables)
        nas1 = self.boot("nas1", cables=[pair[0] for pair in pairs], memory_mib=memory_mib, vcpus=1, later=True)
        nas2 = self.boot("nas2", cables=[pair[1] for pair in pairs], disk_mib=disk_mib, memory_mib=memory_mib,
                         vcpus=1)
        self.addresses(nas1.wait_booted())
        self.addresses(nas2)
        return nas1, nas2

    @staticmethod
    def addresses(box):
        box.sh("; ".join(f"address 10.0.{link}.{box.number}/24 eth{link}" for link in range(len(box.cables))))

    @staticmethod
    def eventually(condition, timeout=30, what="the condition", pause=0.5):
        """Polls; the first true value."""
        deadline = time.monotonic() + timeout
        while True:
            value = condition()
            if value:
                return value
            if time.monotonic() > deadline:
                raise AssertionError(f"{what} did not come true within {timeout} s")
            time.sleep(pause)

    def check_consoles(self):
        for box in self.guests:
            text = box.console().read_text(errors="replace")
            alarm = ALARMS.search(text)
            if alarm:
                line = text[text.rfind("\n", 0, alarm.start()) + 1:].splitlines()[0]
                raise AssertionError(f"{box.name}'s kernel complained: {line}")

    def show_consoles(self):
        for box in self.guests:
            print(f"--- end of {box.console()}\n{box.console_tail()}", flush=True)
        for log in sorted(self.folder.glob("*.log")):
            print(f"--- end of {log}\n" + "\n".join(log.read_text(errors="replace").splitlines()[-25:]), flush=True)

    def close(self):
        for box in self.guests:
            if box.running():
                box.power_cut()
            if box.disk and os.path.exists(box.disk):
                os.unlink(box.disk)
