# SPDX-License-Identifier: Apache-2.0
"""Kernels of the guests: Debian packages, downloaded through apt and unpacked into a cache folder, never installed; and the
initramfs that brings a guest from the kernel to the file system of this machine."""
import fcntl
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from .missing import Missing, need

GUEST = pathlib.Path(__file__).resolve().parent.parent / "guest"
KEYRING = pathlib.Path("/usr/share/keyrings/debian-archive-keyring.gpg")
# Debian 12's own kernel (without ublk), and the one of its backports (with).
SUITES = {"6.1": "bookworm", "6.12": "bookworm-backports"}
# What must be there before the guest can see any other module.
EARLY_MODULES = ["virtio_pci", "9p", "9pnet_virtio", "overlay", "virtio_net", "virtio_blk", "virtio_console", "virtio_rng",
                 "configfs"]
EARLY_APPLETS = ["sh", "mount", "insmod", "mkdir", "switch_root", "cat", "echo", "poweroff", "hostname", "ifconfig"]
DOWNLOAD_SECONDS = 300


class Kernel:
    def __init__(self, series, folder):
        self.series, self.folder = series, folder
        self.modules = folder / "lib" / "modules"
        self.version = next(self.modules.iterdir()).name
        self.image = folder / "boot" / f"vmlinuz-{self.version}"
        if not self.version.startswith(series + "."):
            raise Missing(f"the suite {SUITES[series]} has kernel {self.version}, not {series}")


def cache_folder(build):
    """In the build tree, unless the person keeps caches elsewhere."""
    base = os.environ.get("XDG_CACHE_HOME")
    return pathlib.Path(base) / "vjbod-vm" if base else build / "vm-cache"


def get(series, cache):
    """The kernel, downloaded if it is not in the cache. Two runs at once take turns."""
    need("apt-get", "dpkg-deb", "depmod", "modprobe", "cpio", "xz", "busybox")
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = cache / f"linux-{series}"
        if not folder.exists():
            download(series, cache, folder)
        return Kernel(series, folder)


def download(series, cache, folder):
    if not KEYRING.exists():
        raise Missing(f"no {KEYRING}: kernels are fetched from Debian's archive, and checked with its keys")
    with tempfile.TemporaryDirectory(dir=cache) as name:
        work = pathlib.Path(name)
        (work / "lists" / "partial").mkdir(parents=True)
        (work / "archives" / "partial").mkdir(parents=True)
        (work / "sources.list").write_text(f"deb [signed-by={KEYRING}] {mirror()} {SUITES[series]} main\n")
        options = ["-o", f"Dir::Etc::sourcelist={work}/sources.list", "-o", "Dir::Etc::sourceparts=/dev/null",
                   "-o", f"Dir::State::lists={work}/lists", "-o", f"Dir::Cache={work}", "-o", "APT::Sandbox::User="]
        apt(["apt-get", *options, "-qq", "update"], series, work)
        depends = apt(["apt-cache", *options, "depends", "linux-image-amd64"], series, work)
        package = re.search(r"Depends: (linux-image-\S+)", depends)
        if not package:
            raise Missing(f"no kernel in {mirror()} {SUITES[series]}")
        apt(["apt-get", *options, "-qq", "download", package[1]], series, work)
        unpacked = work / "unpacked"
        subprocess.run(["dpkg-deb", "-x", next(work.glob("*.deb")), unpacked], check=True)
        version = next((unpacked / "lib" / "modules").iterdir()).name
        subprocess.run(["depmod", "-b", unpacked, version], check=True)
        unpacked.rename(folder)


def apt(command, series, folder):
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=DOWNLOAD_SECONDS)
    except subprocess.TimeoutExpired as late:
        raise Missing(f"kernel {series} could not be downloaded within {DOWNLOAD_SECONDS} s") from late
    if done.returncode != 0:
        raise Missing(f"kernel {series} could not be downloaded: {done.stderr.strip()}")
    return done.stdout


def mirror():
    """The mirror of Debian that this machine uses already."""
    for path in [pathlib.Path("/etc/apt/sources.list"), *sorted(pathlib.Path("/etc/apt/sources.list.d").glob("*"))]:
        text = path.read_text(errors="replace") if path.is_file() else ""
        found = re.search(r"^(?:deb .*?|URIs:\s*)(https?://\S+/debian)/?(?:\s|$)", text, re.MULTILINE)
        if found:
            return found[1]
    return "http://deb.debian.org/debian"


def initramfs(kernel, cache):
    """Busybox, the early modules and guest/initramfs.sh; made anew when one of them has changed."""
    script = (GUEST / "initramfs.sh").read_bytes()
    busybox = pathlib.Path(shutil.which("busybox"))
    key = hashlib.sha256(script + kernel.version.encode() + repr((EARLY_MODULES, EARLY_APPLETS)).encode()).hexdigest()[:16]
    result = cache / f"initramfs-{kernel.series}-{key}.gz"
    if result.exists():
        return result
    with tempfile.TemporaryDirectory(dir=cache) as name:
        root = pathlib.Path(name) / "root"
        for folder in ("bin", "lib", "proc", "sys", "dev", "lower", "scratch", "new"):
            (root / folder).mkdir(parents=True)
        shutil.copy(busybox, root / "bin" / "busybox")
        for applet in EARLY_APPLETS:
            (root / "bin" / applet).symlink_to("busybox")
        order = []
        for module in EARLY_MODULES:
            found = subprocess.run(["modprobe", "-d", kernel.folder, "-S", kernel.version, "--show-depends", module],
                                   capture_output=True, text=True).stdout
            order += [line.split()[1] for line in found.splitlines() if line.startswith("insmod")]
        names = []
        for path in dict.fromkeys(order):
            plain = pathlib.Path(path).name.removesuffix(".xz")
            data = subprocess.run(["xz", "-dc", path], check=True, capture_output=True).stdout if path.endswith(".xz") \
                else pathlib.Path(path).read_bytes()
            (root / "lib" / plain).write_bytes(data)
            names.append(plain)
        (root / "modules").write_text("\n".join(names) + "\n")
        (root / "init").write_bytes(script)
        (root / "init").chmod(0o755)
        made = pathlib.Path(name) / "initramfs.gz"
        subprocess.run(f"cd {root} && find . | cpio -o -H newc --quiet | gzip -1 > {made}", shell=True, check=True)
        made.rename(result)
    return result
