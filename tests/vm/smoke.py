# SPDX-License-Identifier: Apache-2.0
"""The lab itself: modules, Soft-RoCE with traffic between two guests, NBD and (6.12) ublk devices."""
kernels = ["6.12", "6.1"]
guests = 2
timeout_s = 400


def test(lab):
    nas1, nas2 = lab.boot_two()
    modules = "nbd ib_iser ib_isert" + (" ublk_drv" if lab.kernel.series == "6.12" else "")
    for job in [box.start(f"soft_roce; modprobe -a {modules}; vjbod --version", timeout=120) for box in (nas1, nas2)]:
        job.wait()
    nas1.sh("test -b /dev/nbd0")
    if lab.kernel.series == "6.12":
        nas1.sh("test -c /dev/ublk-control")
    nas1.sh("ping -c 2 -W 5 -M do -s 8900 10.0.0.2")
    server = nas2.start("rping -s -a 10.0.0.2 -C 5 -V -S 4096", timeout=30)
    nas2.sh("wait_for 10 sh -c 'rdma resource show cm_id | grep -q LISTEN'")
    nas1.sh("rping -c -a 10.0.0.2 -C 5 -V -S 4096", timeout=30)
    server.wait(check=False)  # it does not tell an orderly end from a lost one
    nas1.sh("no_soft_roce; test -z \"$(rdma link show)\"")
    nas2.power_cut()
    assert nas1.status("ping -c 1 -W 2 10.0.0.2") != 0, "a box without power answered"
    nas2.boot()
    lab.addresses(nas2)
    nas1.sh("wait_for 20 ping -c 1 -W 2 10.0.0.2")
