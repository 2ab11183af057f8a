# SPDX-License-Identifier: Apache-2.0
"""Our host daemon at tgt's iSER driver over Soft-RoCE: no CHAP, CHAP, mutual CHAP, verified I/O of many sizes, its restart."""
from lab.boxes import Host

kernels = ["6.12"]
guests = 1
timeout_s = 600
by_hand = "tgtd takes longer than the 3 s of a connect attempt when the machine is busy, and hangs after a restart with CHAP"

IQN = "iqn.2026-11.io.vjbod.test:tgt"
PORTAL = "10.9.9.1:3260"


def start_tgt(box, *accounts):
    """`accounts`: what to add to the target; see tgtadm."""
    box.sh("tgtd --iscsi portal=127.0.0.1:3270 --iser pool_sz_mb=96 -p /run/tgtd.pid; wait_for 20 tgtadm --op show --mode sys; "
           f"tgtadm --lld iser --op new --mode target --tid 1 -T {IQN}; test -f /srv/lun || truncate -s 128M /srv/lun; "
           "tgtadm --lld iser --op new --mode logicalunit --tid 1 --lun 1 -b /srv/lun; "
           "tgtadm --lld iser --op bind --mode target --tid 1 -I ALL; "
           f"tgtadm --lld iser --op bind --mode target --tid 1 -Q {Host.iqn}", timeout=100)
    for direction, user, secret in accounts:
        box.sh(f"tgtadm --lld iser --op new --mode account --user {user} --password {secret}; "
               f"tgtadm --lld iser --op bind --mode account --tid 1 --user {user} {direction}")


def stop_tgt(box):
    box.sh("pkill -9 -x tgtd; wait_for 20 sh -c '! pgrep -x tgtd'")


def test(lab):
    box = lab.boot()
    box.sh("modprobe dummy; ip link add eth9 type dummy; address 10.9.9.1/24 eth9; soft_roce eth9", timeout=200)
    incoming, outgoing = ("", "in", "secret-of-host-1"), ("--outgoing", "out", "secret-of-target")
    box.put("/run/in", incoming[2])
    box.put("/run/out", outgoing[2])
    host = Host(box, extra='[limits]\nkeepalive_idle = "3s"\nkeepalive_timeout = "3s"')
    host.start()
    one_way = ("--chap-user", "in", "--chap-secret-file", "/run/in")
    mutual = (*one_way, "--mutual-user", "out", "--mutual-secret-file", "/run/out")
    for accounts, options in (((), ()), ((incoming,), one_way), ((incoming, outgoing), mutual)):
        start_tgt(box, *accounts)
        host.cli("attach", "disk1", "--portal", PORTAL, "--target", IQN, "--lun", "1", "--transport", "iser", *options)
        disk = host.disk("disk1")
        assert disk["state"] == "connected" and disk["connection_type"] == "iser", disk
        host.fio_verify("disk1", "--name=verify --bs=4k --iodepth=16 --size=2m").wait()
        if not accounts:
            sizes_and_restart(box, host)
        host.cli("detach", "disk1")
        stop_tgt(box)


def sizes_and_restart(box, host):
    sizes = (("512", 1, "128k"), ("4k", 128, "4m"), ("60k", 8, "8m"), ("1m", 8, "16m"), ("16m", 2, "64m"))
    jobs = " ".join(f"--name=of-{block} --stonewall --bs={block} --iodepth={depth} --size={size}" for block, depth, size in sizes)
    host.fio_verify("disk1", jobs).wait()
    fio = host.fio_verify("disk1", seconds=8)
    box.sh("sleep 3")
    stop_tgt(box)
    start_tgt(box)
    fio.wait()
    disk = host.disk("disk1")
    assert disk["reconnects"] >= 1 and disk["connection_type"] == "iser", disk
