# SPDX-License-Identifier: Apache-2.0
"""The kernel's iSER initiator at our target over Soft-RoCE: mutual CHAP, a file system, the target killed under load."""
from lab.kernel_initiator import exercise

kernels = ["6.12", "6.1"]
guests = 1
timeout_s = 600


def test(lab):
    box = lab.boot()
    box.sh("modprobe dummy; ip link add eth9 type dummy; address 10.9.9.1/24 eth9; soft_roce eth9", timeout=200)
    exercise(lab, box, "iser", "10.9.9.1")
