# SPDX-License-Identifier: Apache-2.0
"""The kernel's initiator (open-iscsi) at our target, over iSCSI/TCP or iSER: one exercise for both."""
from .boxes import Target

INITIATOR = "iqn.2026-11.io.vjbod.test:kernel"
MUTUAL_CHAP = ("node.session.auth.authmethod=CHAP node.session.auth.username=in node.session.auth.password=secret-of-kernel "
               "node.session.auth.username_in=out node.session.auth.password_in=secret-of-target")
FIO = ("cd /tmp; fio --rw=randwrite --ioengine=libaio --direct=1 --verify=crc32c --verify_fatal=1 --do_verify=1 "
       "--verify_state_save=0 ")


def exercise(lab, box, transport, address, settings=""):
    """`transport` is as open-iscsi calls it, default or iser; `address` our target's portal, in the same guest."""
    target = Target(box)
    target.start()
    target.lun("lun1", "128M")
    target.let_in(INITIATOR, "lun1", chap=("in", "secret-of-kernel"), mutual=("out", "secret-of-target"))
    iqn, portal = target.iqn("lun1"), f"{address}:3260"
    box.sh(f"kernel_initiator {INITIATOR} {'ib_iser' if transport == 'iser' else 'iscsi_tcp'}")

    # Without the secret there is no login, and it is told as that.
    refused = box.sh(f"kernel_node {iqn} {portal} {transport}; iscsiadm -m node -T {iqn} -p {portal} -l", check=False)
    assert "authorization failure" in refused, refused

    disk = box.sh(f"kernel_node {iqn} {portal} {transport} {MUTUAL_CHAP} {settings}; kernel_login {iqn} {portal}").strip()
    session = target.json("target", "session", "list")["sessions"][0]
    assert session["transport"] == ("iSER" if transport == "iser" else "iSCSI") and session["authentication"] == "chap", session
    assert session["header_digest"] == session["data_digest"] == ("CRC32C" in settings), session

    box.sh(f"modprobe ext4; mkfs.ext4 -q {disk}; mkdir -p /mnt/disk; mount {disk} /mnt/disk; "
           "mkdir /tmp/tree; cd /tmp/tree; cp -r /lab/tests tests; head -c 12M /dev/urandom | split -a 3 -b 60001; "
           "find . -type f -exec sha256sum {} + > /tmp/sums; cp -r /tmp/tree /mnt/disk/; "
           "echo 1 > /proc/sys/vm/drop_caches; cd /mnt/disk/tree; sha256sum --quiet -c /tmp/sums", timeout=200)
    # Sizes and depths: what one PDU carries, immediate data and the rest, more than a burst.
    sizes = (("512", 1, "128k"), ("4k", 32, "2m"), ("60k", 8, "4m"), ("1m", 4, "8m"))
    jobs = " ".join(f"--name=of-{block} --stonewall --bs={block} --iodepth={depth} --size={size}" for block, depth, size in sizes)
    box.sh(f"{FIO} --directory=/mnt/disk {jobs}", timeout=200)

    # The target daemon is killed in the middle of writes: the kernel waits, logs in again and sends them again.
    fio = box.start(f"{FIO} --directory=/mnt/disk --name=loss --bs=4k --iodepth=8 --size=16m --time_based --runtime=12 --verify_backlog=64",
                    timeout=200)
    box.sh("sleep 4")
    target.kill()
    target.start()
    fio.wait()
    box.sh(f"umount /mnt/disk; fsck.ext4 -fn {disk}; mount {disk} /mnt/disk; cd /mnt/disk/tree; "
           "sha256sum --quiet -c /tmp/sums; cd /; umount /mnt/disk", timeout=120)
    box.sh(f"iscsiadm -m node -T {iqn} -p {portal} -u")
    assert target.json("target", "session", "list")["sessions"] == []
    box.sh("! dmesg | grep -i 'I/O error'")
    return target
