# SPDX-License-Identifier: Apache-2.0
"""The contract of movers over Soft-RoCE: both ends in one guest, our verbs layer, the kernel's RDMA."""
kernels = ["6.12", "6.1"]
guests = 1
timeout_s = 900


def test(lab):
    box = lab.boot()
    box.sh("modprobe dummy; ip link add eth9 type dummy; address 10.9.9.1/24 eth9; soft_roce eth9", timeout=300)
    before = box.sh("rdma resource show")
    box.sh("VJBOD_RDMA_ADDRESS=10.9.9.1 $(command -v rdma_contract) 2>&1 | tee /dev/console | tail -60", timeout=800)
    after = box.sh("rdma resource show")
    assert after == before, f"left behind: {after}, at the start: {before}"
