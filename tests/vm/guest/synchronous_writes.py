# SPDX-License-Identifier: Apache-2.0
"""write DEVICE LOG: numbered blocks, each a write that must be stable when it is answered (force unit access); LOG gets the
number of each answered one. check FILE COUNT: the first COUNT are in FILE. Each number has its own place."""
import mmap
import os
import sys

BLOCK = 4096


def block(number):
    return (b"%015d\n" % number) * (BLOCK // 16)


def write(device, log):
    disk = os.open(device, os.O_RDWR | os.O_DIRECT | os.O_DSYNC)
    aligned = mmap.mmap(-1, BLOCK)
    number = 0
    with open(log, "w", encoding="ascii") as acknowledged:
        while True:
            aligned[:] = block(number)
            os.pwrite(disk, aligned, number * BLOCK)
            print(number, file=acknowledged, flush=True)
            number += 1


def check(path, count):
    with open(path, "rb") as file:
        wrong = [number for number in range(count) if file.read(BLOCK) != block(number)]
    sys.exit(f"of {count} acknowledged blocks these are not there: {wrong}" if wrong else 0)


if sys.argv[1] == "write":
    write(*sys.argv[2:])
else:
    check(sys.argv[2], int(sys.argv[3]))
