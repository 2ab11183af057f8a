# SPDX-License-Identifier: Apache-2.0
"""The kernel's iSCSI initiator at our target: mutual CHAP, digests, a file system, and the target restarted under load."""
from lab.boxes import Target

kernels = ["6.12", "6.1"]
guests = 1
timeout_s = 500

INITIATOR = "iqn.2026-11.io.vjbod.test:kernel"


def test(lab):
    box = lab.boot()
    target = Target(box)
    target.start()
    target.lun("lun1", "128M")
    target.let_in(INITIATOR, "lun1", chap=("in", "secret-of-kernel"), mutual=("out", "secret-of-target"))
    iqn = target.iqn("lun1")
    box.sh(f"kernel_initiator {INITIATOR}")

    # Without the secret there is no login, and it is told as that.
    box.sh(f"kernel_node {iqn} 127.0.0.1:3260 default")
    refused = box.sh(f"iscsiadm -m node -T {iqn} -p 127.0.0.1:3260 -l", check=False)
    assert "authorization failure" in refused, refused

    box.sh(f"kernel_node {iqn} 127.0.0.1:3260 default node.session.auth.authmethod=CHAP "
           "node.session.auth.username=in node.session.auth.password=secret-of-kernel "
           "node.session.auth.username_in=out node.session.auth.password_in=secret-of-target "
           "'node.conn[0].iscsi.HeaderDigest=CRC32C' 'node.conn[0].iscsi.DataDigest=CRC32C'")
    disk = box.sh(f"kernel_login {iqn} 127.0.0.1:3260").strip()
    session = box.sh("iscsiadm -m session -P 2")
    assert "HeaderDigest: CRC32C" in session and "DataDigest: CRC32C" in session, session

    box.sh(f"modprobe ext4; mkfs.ext4 -q {disk}; mkdir -p /mnt/disk; mount {disk} /mnt/disk; "
           "mkdir /tmp/tree; cd /tmp/tree; cp -r /lab/tests tests; head -c 12M /dev/urandom | split -a 3 -b 60001; "
           "find . -type f -exec sha256sum {} + > /tmp/sums; cp -r /tmp/tree /mnt/disk/; "
           "echo 1 > /proc/sys/vm/drop_caches; cd /mnt/disk/tree; sha256sum --quiet -c /tmp/sums", timeout=200)

    # A power cut of the target daemon in the middle of writes: the kernel waits, logs in again and sends them again.
    fio = box.start("cd /tmp; fio --name=verify --directory=/mnt/disk --rw=randwrite --bs=4k --size=24m --ioengine=libaio "
                    "--iodepth=8 --direct=1 --verify=crc32c --verify_fatal=1 --do_verify=1 --verify_state_save=0 "
                    "--time_based --runtime=20 --verify_backlog=64", timeout=200)
    lab.eventually(lambda: target.json("target", "session", "list")["sessions"], what="the session")
    box.sh("sleep 5")
    target.kill()
    box.sh("sleep 3")
    target.start()
    fio.wait()
    box.sh(f"umount /mnt/disk; fsck.ext4 -fn {disk}", timeout=120)
    box.sh(f"mount {disk} /mnt/disk; cd /mnt/disk/tree; sha256sum --quiet -c /tmp/sums; cd /; umount /mnt/disk", timeout=120)
    box.sh(f"iscsiadm -m node -T {iqn} -p 127.0.0.1:3260 -u")
    assert target.json("target", "session", "list")["sessions"] == []
    box.sh("! dmesg | grep -i 'I/O error'")
