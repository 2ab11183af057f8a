# SPDX-License-Identifier: Apache-2.0
"""Our host daemon at the kernel's target (LIO) over iSCSI: mutual CHAP, digests, verified I/O of many sizes, its loss."""
from lab.lio import IQN, exercise

kernels = ["6.12"]
guests = 1
timeout_s = 500


def test(lab):
    box = lab.boot()
    box.sh(f"lio_target {IQN} 127.0.0.1 128; lio_key {IQN} HeaderDigest CRC32C; lio_key {IQN} DataDigest CRC32C")
    exercise(lab, box, "iscsi", "127.0.0.1:3260", "--header-digest", "on", "--data-digest", "on")
