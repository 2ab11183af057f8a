#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs what VJBOD needs, all of it Debian 12 packages. Usage: packages.sh build|test|vm|demo|bench|lint ...  (default: build)
# Does nothing, and needs no network, when everything is there already.
set -euo pipefail

build=(cmake ninja-build ccache g++ pkg-config libboost1.81-dev libprotobuf-dev protobuf-compiler libgrpc++-dev
  protobuf-compiler-grpc libspdlog-dev libfmt-dev libgtest-dev libgmock-dev libibverbs-dev librdmacm-dev liburing-dev
  libisal-dev libssl-dev libexpected-dev libcli11-dev libtomlplusplus-dev nlohmann-json3-dev libbenchmark-dev git)
# Real clients and targets, and what the tests are driven with.
test=(libiscsi-bin tgt qemu-utils qemu-block-extra libnbd-bin nbdfuse nbdkit fio tshark iproute2 ethtool e2fsprogs
  python3 procps openssl util-linux mount clang-16 libclang-rt-16-dev)
# The test lab: QEMU and what makes an initramfs; then what the guests use, since they see this machine's file system.
vm=(qemu-system-x86 busybox-static cpio kmod xz-utils python3 debian-archive-keyring
  rdma-core ibverbs-utils ibverbs-providers rdmacm-utils open-iscsi tgt nbd-client fio iproute2 iputils-ping
  e2fsprogs sg3-utils)
demo=(libnbd-bin python3)  # for quickstart.sh
bench=(fio tgt qemu-utils qemu-block-extra libiscsi-bin python3)  # what bench.sh compares with
lint=(clang-format-14 clang-tidy-14 man-db pandoc python3)

wanted=()
for set in "${@:-build}"; do
  case $set in
    build) wanted+=("${build[@]}") ;;
    test) wanted+=("${test[@]}") ;;
    vm) wanted+=("${vm[@]}") ;;
    demo) wanted+=("${demo[@]}") ;;
    bench) wanted+=("${bench[@]}") ;;
    lint) wanted+=("${lint[@]}") ;;
    *) echo "packages.sh: unknown set \"$set\"; use build, test, vm, demo, bench or lint" >&2; exit 2 ;;
  esac
done

missing=()
for package in "${wanted[@]}"; do
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0
echo "Installing ${#missing[@]} Debian packages: ${missing[*]}"
if [ "$(id -u)" != 0 ]; then
  echo "packages.sh: run as root, or install these yourself: apt-get install ${missing[*]}" >&2
  exit 6
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
apt-get install -q -y --no-install-recommends "${missing[@]}"
