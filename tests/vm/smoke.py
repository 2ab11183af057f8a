# SPDX-License-Identifier: Apache-2.0
"""The lab itself: modules, NBD and (6.12) ublk devices, the kernel's iSER at both ends of a cable, faults, power cuts."""
kernels = ["6.12", "6.1"]
guests = 2
timeout_s = 400

IQN = "iqn.2026-11.io.vjbod.test:lio"


def test(lab):
    nas1, nas2 = lab.boot_two()
    modules = "nbd" + (" ublk_drv" if lab.kernel.series == "6.12" else "")
    jobs = [nas1.start(f"soft_roce; modprobe -a {modules}; kernel_initiator iqn.2026-11.io.vjbod.test:kernel ib_iser", 120),
            nas2.start(f"soft_roce; lio_target {IQN} 10.0.0.2 64; vjbod --version", 120)]
    for job in jobs:
        job.wait()
    nas1.sh("test -b /dev/nbd0; ping -c 2 -W 5 -M do -s 8900 10.0.0.2")
    if lab.kernel.series == "6.12":
        nas1.sh("test -c /dev/ublk-control")

    disk = nas1.sh(f"kernel_node {IQN} 10.0.0.2:3261 iser; kernel_login {IQN} 10.0.0.2:3261").strip()
    nas1.sh(f"iscsiadm -m session | grep '^iser:'; dd if=/dev/urandom of=/tmp/data bs=1M count=4 2> /dev/null; "
            f"dd if=/tmp/data of={disk} bs=256k oflag=direct 2> /dev/null; dd if={disk} bs=256k count=16 iflag=direct 2> /dev/null "
            "| cmp - /tmp/data")
    nas1.sh(f"iscsiadm -m node -T {IQN} -p 10.0.0.2:3261 -u")

    # RDMA's packets are lost and everything else's are not.
    nas2.start("rping -s -P -a 10.0.0.2", 300)
    rping = "timeout 6 rping -c -a 10.0.0.2 -C 2"
    nas1.sh(f"wait_for 30 {rping}", 60)
    nas1.sh("drop_roce; ping -c 1 -W 5 10.0.0.2")
    assert nas1.status(rping) != 0, "drop_roce lets RDMA through"
    nas1.sh(f"undrop_roce; kernel_login {IQN} 10.0.0.2:3261; iscsiadm -m node -T {IQN} -p 10.0.0.2:3261 -u; no_soft_roce; "
            "test -z \"$(rdma link show)\"", 60)

    nas2.power_cut()
    assert nas1.status("ping -c 1 -W 2 10.0.0.2") != 0, "a box without power answered"
    nas2.boot()
    lab.addresses(nas2)
    nas1.sh("wait_for 20 ping -c 1 -W 2 10.0.0.2")
