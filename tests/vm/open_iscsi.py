# SPDX-License-Identifier: Apache-2.0
"""The kernel's iSCSI initiator at our target: mutual CHAP, digests, a file system, the target killed under load."""
from lab.kernel_initiator import exercise

kernels = ["6.12", "6.1"]
guests = 1
timeout_s = 500


def test(lab):
    exercise(lab, lab.boot(), "default", "127.0.0.1",
             "'node.conn[0].iscsi.HeaderDigest=CRC32C' 'node.conn[0].iscsi.DataDigest=CRC32C'")
