# SPDX-License-Identifier: Apache-2.0
"""Our host daemon at the kernel's target (LIO), over iSCSI/TCP or iSER: one exercise for both."""
from .boxes import Host

IQN = "iqn.2026-11.io.vjbod.test:lio"
GROUP = f"/sys/kernel/config/target/iscsi/{IQN}/tpgt_1"


def exercise(lab, box, transport, portal, *options):
    """`transport` is as in vjbod, iscsi or iser; `portal` is LIO's, in the same guest, and that of lio_target."""
    host = Host(box, extra='[limits]\nkeepalive_idle = "3s"\nkeepalive_timeout = "3s"')
    host.start()
    box.put("/run/in", "secret-of-host-1")
    box.put("/run/out", "secret-of-target")
    box.put("/run/wrong", "wrong-secret-000")
    box.sh(f"lio_allow {IQN} {host.iqn} in secret-of-host-1 out secret-of-target")

    attach = ("attach", "disk1", "--portal", portal, "--target", IQN, "--lun", "0", "--transport", transport,
              "--chap-user", "in", "--mutual-user", "out", *options)
    for secret, mutual in (("/run/wrong", "/run/out"), ("/run/in", "/run/wrong")):
        command = " ".join((*attach, "--chap-secret-file", secret, "--mutual-secret-file", mutual))
        assert box.status(f"vjbod {command}") == 10, "a wrong secret is not told as one"
        box.sh("vjbod detach disk1 --force", check=False)
    host.cli(*attach, "--chap-secret-file", "/run/in", "--mutual-secret-file", "/run/out")
    disk = host.disk("disk1")
    assert disk["state"] == "connected" and disk["connection_type"] == transport, disk

    sizes = (("512", 1, "128k"), ("4k", 32, "4m"), ("60k", 8, "8m"), ("1m", 8, "16m"), ("16m", 2, "64m"))
    jobs = " ".join(f"--name=of-{block} --stonewall --bs={block} --iodepth={depth} --size={size}" for block, depth, size in sizes)
    host.fio_verify("disk1", jobs).wait()

    # LIO goes away and comes back under load.
    fio = host.fio_verify("disk1", seconds=12)
    box.sh(f"sleep 4; echo 0 > {GROUP}/enable")
    lab.eventually(lambda: host.disk("disk1")["state"] == "reconnecting", what="the loss being noticed")
    box.sh(f"sleep 2; echo 1 > {GROUP}/enable")
    fio.wait()
    disk = host.disk("disk1")
    assert disk["reconnects"] >= 1 and disk["connection_type"] == transport, disk
    host.cli("detach", "disk1")
    return host
