# SPDX-License-Identifier: Apache-2.0
"""See ../bench.sh. Exit status: 0 when all was measured, whatever the ratios; 1 when something failed; 2 for wrong options."""
import argparse
import json
import os
import pathlib
import shutil
import sys
import tempfile

# Before anything makes a temporary file: LUNs are to be in memory.
MEMORY = "/dev/shm"
if os.access(MEMORY, os.W_OK):
    tempfile.tempdir = MEMORY

import contenders
import jobs
import report


def options():
    parser = argparse.ArgumentParser(prog="tools/bench.sh")
    parser.add_argument("--bin", required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seconds", type=int)
    parser.add_argument("--only", choices=["path", "target"])
    parser.add_argument("--job", default="")
    parser.add_argument("--json")
    given = parser.parse_args()
    given.rounds = given.rounds or (1 if given.quick else 3)
    given.seconds = given.seconds or (2 if given.quick else 5)
    if given.rounds < 1 or given.seconds < 1:
        parser.error("--rounds and --seconds are at least 1")
    given.chosen = [job for job in jobs.JOBS if given.only in (None, job.suite) and given.job in job.name]
    if not given.chosen:
        parser.error(f"no job has \"{given.job}\" in its name; there are: " + ", ".join(job.name for job in jobs.JOBS))
    return given


def measure(job, contender, seconds):
    pids = contender.processes(job.suite)
    before = jobs.cpu_seconds(pids)
    iops, latency_us = job.run(contender.where(job.suite), seconds)
    spent = jobs.cpu_seconds(pids) - before
    return iops, latency_us, spent * 1e6 / (iops * seconds)


def measure_all(given, ours, peer):
    results = [report.Result(job) for job in given.chosen]
    for number in range(given.rounds):
        # Who goes first changes: what warms up or cools down during a round favours nobody.
        order = [("ours", ours), ("peer", peer)]
        if number % 2:
            order.reverse()
        for result in results:
            for side, contender in order:
                result.add(side, *measure(result.job, contender, given.seconds))
            print(f"round {number + 1}/{given.rounds}  {result.job.suite:6} {result.job.name:24} {result.iops['ours'][-1]:9.0f} :"
                  f"{result.iops['peer'][-1]:9.0f} IOPS", flush=True)
    return results


def main():
    given = options()
    directory = pathlib.Path(tempfile.mkdtemp(prefix="vjbod-bench."))
    ours = contenders.Vjbod(given.bin)
    peer = contenders.QemuAndTgt(directory)
    try:
        for contender in (ours, peer):
            print(f"starting {contender.name}", flush=True)
            contender.start()
        results = measure_all(given, ours, peer)
    except (jobs.Failed, AssertionError, OSError) as error:
        print(f"bench: {error}\n{ours.logs()}{peer.logs()}", file=sys.stderr)
        return 1
    finally:
        peer.stop()
        ours.stop()
        shutil.rmtree(directory, ignore_errors=True)
    print(f"\nratio: ours to the peer's, median of {given.rounds} rounds of {given.seconds} s; noise: how far apart the rounds' ratios are;"
          "\nCPU: of the daemons, per I/O.\n")
    print(report.table(results))
    if given.json:
        pathlib.Path(given.json).write_text(json.dumps(report.document(results, given.rounds, given.seconds), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
