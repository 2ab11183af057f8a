# SPDX-License-Identifier: Apache-2.0
"""Figures of several rounds, to a table for people and a document for programs. Ratios are made within a round, where both sides
met the same noise; their median is the result."""
import platform
import statistics
import time


class Result:
    """One job's figures, a list of rounds for each side."""

    def __init__(self, job):
        self.job = job
        self.iops = {"ours": [], "peer": []}
        self.latency_us = {"ours": [], "peer": []}
        self.cpu_us = {"ours": [], "peer": []}  # per I/O, of the programs measured

    def add(self, side, iops, latency_us, cpu_us):
        self.iops[side].append(iops)
        self.latency_us[side].append(latency_us)
        self.cpu_us[side].append(cpu_us)

    def ratios(self):
        return [ours / peer for ours, peer in zip(self.iops["ours"], self.iops["peer"])]

    def ratio(self):
        return statistics.median(self.ratios())

    def noise(self):
        """How far apart the rounds' ratios are, in parts of the median; nothing to say with one round."""
        ratios = self.ratios()
        return (max(ratios) - min(ratios)) / self.ratio() if len(ratios) > 1 else None

    def cpu_ratio(self):
        """How many times the CPU of ours the peer needs for one I/O."""
        return statistics.median(peer / ours if ours > 0 else 0 for ours, peer in zip(self.cpu_us["ours"], self.cpu_us["peer"]))


def table(results):
    lines = [f"{'suite':7} {'job':24} {'ours IOPS':>10} {'peer IOPS':>10} {'ratio':>6} {'needed':>6} {'noise':>6}"
             f" {'our CPU us':>10} {'peer CPU us':>11} {'CPU ratio':>9}"]
    for result in results:
        ours, peer = (statistics.median(result.iops[side]) for side in ("ours", "peer"))
        our_cpu, peer_cpu = (statistics.median(result.cpu_us[side]) for side in ("ours", "peer"))
        noise = result.noise()
        mark = "" if result.ratio() >= result.job.wanted else "  below what is needed"
        lines.append(f"{result.job.suite:7} {result.job.name:24} {ours:10.0f} {peer:10.0f} {result.ratio():6.2f} {result.job.wanted:6.1f}"
                     f" {'-' if noise is None else f'{noise:.0%}':>6} {our_cpu:10.1f} {peer_cpu:11.1f} {result.cpu_ratio():9.2f}{mark}")
    return "\n".join(lines)


def document(results, rounds, seconds):
    return {
        "schema": 1,
        "made": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": {"kernel": platform.release(), "cpus": len(open("/proc/cpuinfo").read().split("processor\t")) - 1},
        "rounds": rounds,
        "seconds": seconds,
        "peer": {"path": "qemu-nbd with libiscsi, tgtd", "target": "tgtd"},
        "jobs": [{
            "suite": result.job.suite,
            "job": result.job.name,
            "ratio": round(result.ratio(), 3),
            "needed": result.job.wanted,
            "reached": result.ratio() >= result.job.wanted,
            "ratios": [round(ratio, 3) for ratio in result.ratios()],
            "noise": None if result.noise() is None else round(result.noise(), 3),
            **{side: {"iops": [round(value) for value in result.iops[side]],
                      "latency_us": [round(value, 1) for value in result.latency_us[side]],
                      "cpu_us_per_io": [round(value, 2) for value in result.cpu_us[side]]} for side in ("ours", "peer")},
        } for result in results],
    }
