#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# From a fresh clone to a disk that holds data, on this one box: installs what is missing, builds, starts both daemons on
# loopback in a temporary directory, pairs them, creates and attaches a disk, writes real data and reads it back.
# Usage: tools/quickstart.sh [--keep]
#   --keep   leave the daemons running, and say how to talk to them and how to stop them
set -euo pipefail
cd "$(dirname "$0")/.."

keep=no
case ${1:-} in
  --keep) keep=yes ;;
  "") ;;
  -h | --help) sed -n '3,7s/^# \{0,1\}//p' "$0"; exit 0 ;;
  *) echo "quickstart.sh: unknown option \"$1\"; see --help" >&2; exit 2 ;;
esac

step_number=0
step() { step_number=$((step_number + 1)); echo "[$step_number/8] $*"; }

step "Installing the Debian packages that are missing"
tools/packages.sh build demo

step "Building (the first time takes a few minutes)"
[ -f build/build.ninja ] || cmake --preset release -DVJBOD_TESTS=OFF >/dev/null
cmake --build build --target vjbod-targetd vjbod-hostd vjbod

bin=$PWD/build/bin
work=$(mktemp -d -t vjbod-quickstart.XXXXXX)
daemons=()
finish() {
  status=$?
  if [ $status -ne 0 ]; then
    echo "quickstart failed; the daemons' logs:" >&2
    tail -n 20 "$work"/*.log >&2 || true
  fi
  if [ "$keep" = no ] || [ $status -ne 0 ]; then
    for pid in "${daemons[@]}"; do kill "$pid" 2>/dev/null || true; done
    for pid in "${daemons[@]}"; do wait "$pid" 2>/dev/null || true; done
    rm -rf "$work"
  fi
  exit $status
}
trap finish EXIT

step "Starting vjbod-targetd and vjbod-hostd in $work"
mkdir -p "$work/pool" "$work/target" "$work/host" "$work/nbd"
cat > "$work/target.toml" <<END
name = "nas2"
state_dir = "$work/target"
control_socket = "$work/target.sock"
[control]
listen = "127.0.0.1:0"
[[portal]]
address = "127.0.0.1:0"
transports = ["iscsi"]
[[pool]]
name = "tank"
kind = "directory"
path = "$work/pool"
END
cat > "$work/host.toml" <<END
name = "nas1"
state_dir = "$work/host"
control_socket = "$work/host.sock"
[export]
backend = "socket"
socket_dir = "$work/nbd"
END
"$bin/vjbod-targetd" --config "$work/target.toml" >"$work/target.log" 2>&1 </dev/null & daemons+=($!)
"$bin/vjbod-hostd" --config "$work/host.toml" >"$work/host.log" 2>&1 </dev/null & daemons+=($!)
export VJBOD_TARGET_SOCKET=$work/target.sock VJBOD_HOST_SOCKET=$work/host.sock
for socket in "$VJBOD_TARGET_SOCKET" "$VJBOD_HOST_SOCKET"; do
  for _ in $(seq 100); do [ -S "$socket" ] && break; sleep 0.1; done
  [ -S "$socket" ] || { echo "the daemon did not open $socket" >&2; exit 1; }
done

step "Pairing the two"
"$bin/vjbod" target pair-token > "$work/token"
address=$("$bin/vjbod" target status -o json | python3 -c 'import json, sys; print(json.load(sys.stdin)["control_address"])')
"$bin/vjbod" pair "$address" --token-file "$work/token"

step "Creating a 1 GiB disk on nas2 and attaching it to nas1"
"$bin/vjbod" create disk1 --peer nas2 --pool tank --size 1G
uri="nbd+unix:///?socket=$("$bin/vjbod" status disk1 -o json |
  python3 -c 'import json, sys; print(json.load(sys.stdin)["disks"][0]["socket"])')"

step "Writing this repository's files through the disk, and reading them back"
data=$work/data
{ git ls-files -z 2>/dev/null || find . -path ./build -prune -o -type f -print0; } | tar --null -T - -cf "$data" 2>/dev/null
truncate -s %65536 "$data"
size=$(stat -c %s "$data")
nbdcopy --flush -- "$data" "$uri"
nbdcopy -- "$uri" "$work/copy"
head -c "$size" "$work/copy" | sha256sum | cut -d' ' -f1 > "$work/read"
sha256sum < "$data" | cut -d' ' -f1 > "$work/written"
echo "  written $(cat "$work/written")"
echo "  read    $(cat "$work/read")"
cmp -s "$work/read" "$work/written" || { echo "the checksums differ" >&2; exit 1; }
echo "  $size bytes, equal"

step "The disk as the host sees it"
"$bin/vjbod" list

step "What to do next with two real boxes"
cat <<END
  On the remote box (it gives the space):   vjbod-targetd --config /etc/vjbod/target.toml
                                            vjbod target pair-token
  On the host box (it uses the space):      vjbod-hostd --config /etc/vjbod/host.toml
                                            vjbod pair REMOTE-ADDRESS          (asks for the token)
                                            vjbod create disk1 --peer NAME --pool POOL --size 1T
  The configuration files are shown in the manuals: target/vjbod-targetd.8.md, initiator/vjbod-hostd.8.md.
END
if [ "$keep" = yes ]; then
  cat <<END
  The daemons still run. To talk to them:
    export VJBOD_TARGET_SOCKET=$work/target.sock VJBOD_HOST_SOCKET=$work/host.sock PATH=$bin:\$PATH
  To stop them and forget everything:
    kill ${daemons[*]}; rm -rf $work
END
fi
