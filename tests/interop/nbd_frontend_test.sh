#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The NBD server with a disk in RAM behind it, used by real clients: nbdinfo, nbdcopy, qemu-io,
# qemu-img, fio with verification, and (as root, with /dev/fuse and loop devices) a file system
# through nbdfuse. Usage: nbd_frontend_test.sh BIN_FOLDER [file-system]
# With "file-system" only that part; it exits 77, saying why, where it cannot run.
set -euo pipefail

bin=$1
part=${2:-clients}
dir=$(mktemp -d)
server=
loop=
fuse=
clean() {
  status=$?
  [ -z "$loop" ] || { umount "$dir/mnt" 2>/dev/null || true; losetup -d "$loop" 2>/dev/null || true; }
  [ -z "$fuse" ] || { fusermount3 -u "$dir/fuse/disk" 2>/dev/null || umount "$dir/fuse/disk" 2>/dev/null || true; }
  [ -z "$server" ] || { kill "$server" 2>/dev/null && wait "$server" || true; }
  [ "$status" = 0 ] || [ "$status" = 77 ] || { echo "--- server log"; tail -50 "$dir/server.log"; }
  rm -rf "$dir"
}
trap clean EXIT

fail() { echo "FAILED: $*" >&2; exit 1; }
step() { echo "== $*"; }
# Loud on a person's machine; in CI, where everything can be had, a failure.
skip() { [ -z "${CI:-}" ] || fail "$*"; echo "SKIPPED: $*"; exit 77; }
need() { for tool in "$@"; do command -v "$tool" >/dev/null || skip "$tool is not installed"; done; }

start_server() { # SIZE_MIB BLOCK_BYTES
  coproc SERVER { exec "$bin/nbd_memory_server" "$dir/disk.sock" "$1" "$2" 2 2>"$dir/server.log"; }
  server=$SERVER_PID
  read -r -t 20 uri <&"${SERVER[0]}" || fail "the server did not start"
}
stop_server() {
  kill "$server"
  wait "$server" || fail "the server ended with exit code $?"
  server=
  [ ! -e "$dir/disk.sock" ] || fail "the socket file was left behind"
}

qemu_io() { # COMMAND...  fails when qemu-io or a pattern check does
  local arguments=() output
  for command in "$@"; do arguments+=(-c "$command"); done
  output=$(qemu-io -f raw "${arguments[@]}" "$uri" 2>&1) || fail "qemu-io: $output"
  ! grep -qiE 'fail|error' <<<"$output" || fail "qemu-io: $output"
}

clients() { # BLOCK_BYTES
  local block=$1 size_mib=64
  step "block size $block: nbdinfo"
  start_server "$size_mib" "$block"
  nbdinfo --list --json "$uri" >"$dir/list.json"
  python3 - "$dir/list.json" "$block" $((size_mib << 20)) <<'PYTHON'
import json, sys
export, = json.load(open(sys.argv[1]))["exports"]
assert export["export-name"] == "memory", export
assert export["description"] == "a disk in RAM", export
assert export["export-size"] == int(sys.argv[3]), export
assert export["block_size_minimum"] == int(sys.argv[2]), export
assert export["block_size_preferred"] == 4096 and export["block_size_maximum"] == 32 << 20, export
for flag in "can_multi_conn can_flush can_fua can_trim can_zero can_fast_zero can_cache can_df".split():
    assert export[flag], flag
assert not export["is_read_only"]
PYTHON
  [ "$(nbdinfo --size "$uri")" = $((size_mib << 20)) ] || fail "nbdinfo --size"
  [ "$(stat -c %a "$dir/disk.sock")" = 600 ] || fail "the socket's mode"

  step "block size $block: nbdcopy both ways over four connections"
  head -c $((size_mib << 20)) /dev/urandom >"$dir/in"
  nbdcopy --connections=4 --flush "$dir/in" "$uri"
  nbdcopy --connections=4 "$uri" "$dir/out"
  cmp "$dir/in" "$dir/out"

  step "block size $block: qemu-io patterns, write zeroes, discard, FUA"
  qemu_io "write -P 0x5a 1M 3M" "read -P 0x5a 1M 3M" "write -z 1M 1M" "read -P 0 1M 1M" \
    "write -z -u 2M 4k" "read -P 0 2M 4k" "discard 3M 1M" "write -f -P 7 0 4k" "read -P 7 0 4k" flush \
    "aio_write -P 1 8M 16M" "aio_write -P 2 24M 16M" aio_flush "read -P 1 8M 16M" "read -P 2 24M 16M"

  step "block size $block: qemu-img convert both ways"
  qemu-img create -q -f qcow2 "$dir/image.qcow2" ${size_mib}M
  qemu-io -c "write -P 3 5M 20M" -c "write -P 4 40M 64k" "$dir/image.qcow2" >/dev/null
  qemu-img convert -n -f qcow2 -O raw "$dir/image.qcow2" "$uri"
  qemu-img compare -q -f qcow2 -F raw "$dir/image.qcow2" "$uri" || fail "qemu-img compare"
  qemu-img convert -f raw -O raw "$uri" "$dir/out"
  qemu-img compare -q -f qcow2 -F raw "$dir/image.qcow2" "$dir/out" || fail "qemu-img compare of the copy"

  step "block size $block: fio with verification"
  for job in "randwrite 4k 32" "write 1m 4" "randrw 64k 8"; do
    read -r rw bs depth <<<"$job"
    fio --name=verify --ioengine=nbd --uri="$uri" --rw="$rw" --bs="$bs" --iodepth="$depth" --size=32m \
      --verify=crc32c --verify_fatal=1 --do_verify=1 --verify_state_save=0 --fsync=64 --output="$dir/fio.log" || fail "fio $job: $(cat "$dir/fio.log")"
    grep -q 'err= 0' "$dir/fio.log" || fail "fio $job: $(cat "$dir/fio.log")"
  done
  stop_server
}

file_system() {
  need nbdfuse losetup mkfs.ext4 fsck.ext4
  [ "$(id -u)" = 0 ] || skip "mounting needs root"
  [ -c /dev/fuse ] || skip "there is no /dev/fuse"
  [ -e /dev/loop-control ] || skip "there are no loop devices"
  start_server 128 512
  step "nbdfuse and a loop device"
  mkdir "$dir/fuse" "$dir/mnt"
  wait_for_fuse() {
    for _ in $(seq 200); do
      [ -s "$dir/fuse/disk" ] && return 0
      sleep 0.05
    done
    return 1
  }
  touch "$dir/fuse/disk"
  nbdfuse "$dir/fuse/disk" "$uri" >"$dir/fuse.log" 2>&1 &
  fuse=$!
  wait_for_fuse || { fuse=; skip "nbdfuse cannot mount here: $(cat "$dir/fuse.log")"; }
  loop=$(losetup --find --show "$dir/fuse/disk") || { loop=; skip "losetup does not work here"; }
  step "mkfs, mount, copy a tree, unmount, fsck, compare"
  mkfs.ext4 -q -F "$loop"
  mount "$loop" "$dir/mnt" || skip "mount does not work here"
  cp -r /usr/include/linux "$dir/mnt/tree"
  sync -f "$dir/mnt"
  umount "$dir/mnt"
  fsck.ext4 -f -n "$loop" >"$dir/fsck.log" 2>&1 || fail "fsck: $(cat "$dir/fsck.log")"
  mount "$loop" "$dir/mnt"
  diff -r /usr/include/linux "$dir/mnt/tree" || fail "the tree differs"
  umount "$dir/mnt"
  losetup -d "$loop"
  loop=
  fusermount3 -u "$dir/fuse/disk" 2>/dev/null || umount "$dir/fuse/disk"
  wait "$fuse" || true
  fuse=
  stop_server
}

case $part in
  clients)
    need nbdinfo nbdcopy qemu-io qemu-img fio python3
    clients 512
    clients 4096
    ;;
  file-system) file_system ;;
  *) fail "unknown part $part" ;;
esac
echo "passed"
