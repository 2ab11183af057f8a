#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds, and runs every test; ends with ctest's summary.
# Usage: tools/test.sh [--quick | --sanitizers | --all | --soak]   [-- more ctest arguments]
#   (default)      the release build and all of its tests, those in guests (tests/vm) included
#   --quick        the release build, unit tests and simulation only
#   --sanitizers   the tests of the data path and of the pure parts again, under ASan+UBSan (built with clang) and under
#                  TSan (built with g++), and 10 s of each fuzzer
#   --all          the default and the sanitizers
#   --soak         long forms: the tests in guests that have one, and the simulation with 100000 seeds; takes hours
set -euo pipefail
cd "$(dirname "$0")/.."

mode=default
case ${1:-} in
  --quick | --sanitizers | --all | --soak) mode=${1#--}; shift ;;
  -h | --help) sed -n '3,10s/^# \{0,1\}//p' "$0"; exit 0 ;;
  "" | --) ;;
  *) echo "test.sh: unknown option \"$1\"; see --help" >&2; exit 2 ;;
esac
[ "${1:-}" != -- ] || shift

packages=(build test lint)
[ "$mode" = quick ] || packages+=(vm)
tools/packages.sh "${packages[@]}"
jobs=$(nproc)
export CTEST_OUTPUT_ON_FAILURE=1 CTEST_PARALLEL_LEVEL=${CTEST_PARALLEL_LEVEL:-$jobs}

build() { # PRESET [TARGET...]
  local preset=$1
  shift
  echo "== build: $preset $*"
  cmake --preset "$preset" >/dev/null
  cmake --build --preset "$preset" ${1:+--target "$@"} -- -j "$jobs"
}
run() { # PRESET-FOLDER CTEST-ARGUMENT...
  local folder=$1
  shift
  echo "== test: $folder $*"
  ctest --test-dir "$folder" --no-tests=error "$@"
}

case $mode in
  quick) build release; run build -L 'unit|sim' "$@" ;;
  default | all) build release; run build "$@" ;;
  soak) build release; build/bin/vjbod_sim --seeds=100000; tests/vm/run --soak ;;
esac
if [ "$mode" = sanitizers ] || [ "$mode" = all ]; then
  build asan core_tests fuzzers
  run build/asan -L 'core|fuzz' "$@"
  build tsan core_tests
  run build/tsan -L core "$@"
fi
