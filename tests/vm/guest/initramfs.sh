#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The first program of a guest: puts a file system together out of the host's one (9p, read-only, below a throw-away
# overlay) and what the lab shares (/lab), and ends as the agent in it. Done here, since programs in memory start fast.
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
for module in $(cat /modules); do insmod "/lib/$module"; done
for word in $(cat /proc/cmdline); do
  case $word in
    lab.probe) echo LAB-PROBE-OK; poweroff -f ;;
    lab.name=*) hostname "${word#lab.name=}" ;;
  esac
done
ifconfig lo 127.0.0.1 up

share() { # TAG FOLDER OPTIONS
  mkdir -p "$2"
  mount -t 9p -o "trans=virtio,version=9p2000.L,msize=262144,$3" "lab-$1" "$2"
}
memory() { # FOLDER OPTIONS
  mkdir -p "$1"
  mount -t tmpfs -o "$2" tmpfs "$1"
}
share root /lower ro,cache=loose
memory /scratch size=75%
mkdir -p /scratch/upper /scratch/work
mount -t overlay -o lowerdir=/lower,upperdir=/scratch/upper,workdir=/scratch/work overlay /new
mkdir -p /new/proc /new/sys /new/dev /new/root
memory /new/run mode=755
memory /new/tmp mode=1777
memory /new/lab mode=755
share tests /new/lab/tests ro,cache=loose
share bin /new/lab/bin ro,cache=loose
share modules /new/lib/modules ro,cache=loose
share share /new/lab/share rw,cache=none
mkdir -p /new/run/lock
memory /dev/shm mode=1777
mkdir -p /dev/pts
mount -t devpts devpts /dev/pts
mount -t configfs configfs /sys/kernel/config
mount -t debugfs debugfs /sys/kernel/debug
for folder in proc sys dev; do mount -o move "/$folder" "/new/$folder"; done
export PATH=/lab/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8
exec switch_root /new /usr/bin/python3 -I -S /lab/tests/guest/agent.py
