#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# How fast VJBOD is beside what people would use otherwise, measured in turns in one run on this box:
#   path    fio -> NBD socket -> vjbod-hostd -> iSCSI on loopback -> vjbod-targetd, beside fio -> qemu-nbd with libiscsi -> tgtd
#   target  iscsi-perf -> vjbod-targetd, beside iscsi-perf -> tgtd
# All LUNs are files in /dev/shm. Only the ratios mean something: a box is never quiet.
# Usage: tools/bench.sh [--quick] [--rounds N] [--seconds S] [--only path|target] [--job TEXT] [--json FILE] [--bin DIR]
#   --quick       one round of 2 s for each job (default: 3 rounds of 5 s, about seven minutes)
#   --only SUITE  one of the two; --job TEXT: only the jobs whose name has TEXT in it
#   --json FILE   writes all figures there, too
#   --bin DIR     programs that are built already (default: builds them)
set -euo pipefail
cd "$(dirname "$0")/.."

bin=
arguments=()
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) sed -n '3,11s/^# \{0,1\}//p' "$0"; exit 0 ;;
    --bin) bin=${2:?--bin needs a folder}; shift 2 ;;
    *) arguments+=("$1"); shift ;;
  esac
done

tools/packages.sh bench
if [ -z "$bin" ]; then
  tools/packages.sh build
  [ -f build/build.ninja ] || cmake --preset release -DVJBOD_TESTS=OFF >/dev/null
  cmake --build build --target vjbod-targetd vjbod-hostd vjbod
  bin=build/bin
fi
exec python3 tools/bench/bench.py --bin "$bin" "${arguments[@]}"
