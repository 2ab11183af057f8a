# SPDX-License-Identifier: Apache-2.0
"""Our host daemon at the kernel's target (LIO ib_isert) over Soft-RoCE: mutual CHAP, verified I/O of many sizes, its loss."""
from lab.lio import IQN, exercise

kernels = ["6.12"]
guests = 1
timeout_s = 600
by_hand = "one run in nine ended in a panic of the guest's kernel, in rxe_invalidate_mw of Soft-RoCE"


def test(lab):
    box = lab.boot()
    box.sh("modprobe dummy; ip link add eth9 type dummy; address 10.9.9.1/24 eth9; soft_roce eth9", timeout=200)
    box.sh(f"lio_target {IQN} 10.9.9.1 128")
    exercise(lab, box, "iser", "10.9.9.1:3261")
