# SPDX-License-Identifier: Apache-2.0
"""Two boxes on one cable; the target box loses its power in the middle of synchronous writes and comes back with its disk."""
from lab.boxes import Host, Target

kernels = ["6.12"]
guests = 2
timeout_s = 600


def test(lab):
    nas1, nas2 = lab.boot_two(disk_mib=512)
    nas2.sh("data_disk /data")
    target, host = Target(nas2, "/data"), Host(nas1, extra='[limits]\nkeepalive_idle = "3s"\nkeepalive_timeout = "3s"')
    target.start()
    host.start()
    host.pair(target)
    host.create("disk1", "256M")
    before = host.disk("disk1")
    assert before["state"] == "connected", before

    # Through the kernel's NBD: synchronous writes at the start, verified ones in the second half.
    nas1.sh(f"modprobe nbd; nbd-client -N '' -timeout 0 -unix {before['socket']} /dev/nbd0")
    writer = nas1.start("python3 -I -S /lab/tests/guest/synchronous_writes.py write /dev/nbd0 /run/acknowledged", timeout=250)
    fio = nas1.start("cd /tmp; fio --name=verify --filename=/dev/nbd0 --offset=128m --size=64m --rw=randwrite --bs=4k "
                     "--ioengine=libaio --iodepth=8 --direct=1 --sync=1 --time_based --runtime=25 --verify=crc32c "
                     "--verify_fatal=1 --verify_backlog=64 --verify_state_save=0", timeout=250)
    lab.eventually(lambda: acknowledged(nas1) >= 20, 60, "synchronous writes")
    nas2.power_cut()
    lab.eventually(lambda: host.disk("disk1")["state"] == "reconnecting", 30, "the loss being noticed")
    count = acknowledged(nas1)
    lab.say(f"power cut; {count} synchronous writes were acknowledged")

    power_up(lab, nas2)
    # On the target's disk, before anything could be sent again.
    nas2.sh(f"python3 -I -S /lab/tests/guest/synchronous_writes.py check /data/pool/*.lun {count}")
    target.start()
    host.wait("disk1", timeout=90)
    fio.wait()
    after = host.disk("disk1")
    for field in ("isid", "naa", "serial", "socket", "size_bytes"):
        assert after[field] == before[field], (field, before[field], after[field])
    assert after["reconnects"] >= 1
    lab.eventually(lambda: acknowledged(nas1) > count, 30, "further synchronous writes")
    assert writer.running(), "the writer saw an error"
    nas1.sh("! dmesg | grep -i 'I/O error'")
    writer.end()

    # Acknowledged but not flushed, and the target loses its memory: the disk says so instead of going on.
    nas1.sh("dd if=/dev/zero of=/dev/nbd0 bs=64k count=16 seek=1024 oflag=direct 2> /dev/null")
    nas2.power_cut()
    power_up(lab, nas2)
    target.start()
    host.wait("disk1", "failed", timeout=90)
    assert "flush" in (host.disk("disk1")["last_error"] or ""), host.disk("disk1")
    assert nas1.status("dd if=/dev/nbd0 of=/dev/null bs=4k count=1 iflag=direct") != 0, "a failed disk answered"
    host.cli("connect", "disk1")
    host.wait("disk1")
    nas1.sh(f"nbd-client -d /dev/nbd0; nbd-client -N '' -unix {before['socket']} /dev/nbd0; "
            f"python3 -I -S /lab/tests/guest/synchronous_writes.py check /dev/nbd0 {count}")


def acknowledged(box):
    return int(box.sh("cat /run/acknowledged 2> /dev/null | wc -l", check=False) or 0)


def power_up(lab, box):
    box.boot()
    lab.addresses(box)
    box.sh("data_disk /data")
