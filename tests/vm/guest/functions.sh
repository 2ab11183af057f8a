# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What tests do in guests; sourced by the agent before each command.

wait_for() { # SECONDS COMMAND...: until the command succeeds
  local deadline=$((SECONDS + $1))
  shift
  until "$@" > /dev/null 2>&1; do
    [ $SECONDS -lt $deadline ] || { echo "not within the time: $*" >&2; return 1; }
    sleep 0.2
  done
}

# ---- network and RDMA ----

address() { # ADDRESS/PREFIX [INTERFACE]: jumbo frames, since an RDMA message is cut into packets of 4 KiB at the most
  local interface=${2:-eth0}
  ip link set "$interface" mtu 9000
  ip address replace "$1" dev "$interface"
  ip link set "$interface" up
}
soft_roce() { # [INTERFACE]: an RDMA device, rxe_INTERFACE, on it
  local interface=${1:-eth0}
  modprobe rdma_rxe
  modprobe rdma_ucm
  modprobe ib_umad 2> /dev/null || true
  rdma link add "rxe_$interface" type rxe netdev "$interface"
  wait_for 10 sh -c "rdma link show rxe_$interface/1 | grep -q 'state ACTIVE'"
}
no_soft_roce() { # [INTERFACE]: as when the device is pulled
  rdma link delete "rxe_${1:-eth0}"
}
drop_roce() { # [INTERFACE]: Soft-RoCE's packets to this box are lost, and nothing else. Not those from it: it would notice.
  local interface=${1:-eth0}
  modprobe -a sch_ingress cls_u32 act_gact
  tc qdisc add dev "$interface" clsact
  tc filter add dev "$interface" ingress protocol ip u32 match ip protocol 17 0xff match ip dport 4791 0xffff action drop
}
undrop_roce() { tc qdisc delete dev "${1:-eth0}" clsact; } # [INTERFACE]

# ---- disks ----

data_disk() { # FOLDER: mounts the guest's own disk there, which outlives power cuts; a file system is made the first time
  modprobe ext4
  mkdir -p "$1"
  blkid /dev/vda > /dev/null || mkfs.ext4 -q -E lazy_itable_init=1,nodiscard /dev/vda
  mount /dev/vda "$1"
}

# ---- LIO, the kernel's target ----

lio_core=/sys/kernel/config/target
lio_target() { # IQN ADDRESS MIB: a RAM disk with CHAP-less access for all; iSCSI on port 3260, iSER on 3261 where RDMA is
  modprobe target_core_mod
  modprobe iscsi_target_mod
  mkdir -p /etc/target $lio_core/core/rd_mcp_0/rd0 $lio_core/iscsi
  echo "rd_pages=$(($3 * 256))" > $lio_core/core/rd_mcp_0/rd0/control
  echo 1 > $lio_core/core/rd_mcp_0/rd0/enable
  local group=$lio_core/iscsi/$1/tpgt_1
  mkdir -p "$group/lun/lun_0" "$group/np/$2:3260"
  ln -s $lio_core/core/rd_mcp_0/rd0 "$group/lun/lun_0/rd0"
  echo 0 > "$group/attrib/authentication"
  echo 1 > "$group/attrib/generate_node_acls"
  echo 0 > "$group/attrib/demo_mode_write_protect"
  echo 1 > "$group/attrib/cache_dynamic_acls"
  if [ -n "$(rdma link show)" ]; then
    modprobe ib_isert
    mkdir "$group/np/$2:3261"
    echo 1 > "$group/np/$2:3261/iser"
  fi
  echo 1 > "$group/enable"
}
lio_allow() { # IQN INITIATOR USER SECRET [MUTUAL-USER MUTUAL-SECRET]: from now on this initiator only, with CHAP
  local group=$lio_core/iscsi/$1/tpgt_1
  local acl=$group/acls/$2
  echo 0 > "$group/attrib/generate_node_acls"
  mkdir -p "$acl/lun_0"
  ln -s "$group/lun/lun_0" "$acl/lun_0/lun_0"
  echo -n "$3" > "$acl/auth/userid"
  echo -n "$4" > "$acl/auth/password"
  if [ -n "${5:-}" ]; then
    echo -n "$5" > "$acl/auth/userid_mutual"
    echo -n "$6" > "$acl/auth/password_mutual"
  fi
  echo 1 > "$group/attrib/authentication"
}
lio_key() { echo "$3" > "$lio_core/iscsi/$1/tpgt_1/param/$2"; } # IQN KEY VALUE: what LIO offers

# ---- open-iscsi, the kernel's initiator ----

kernel_initiator() { # IQN [MODULE]: starts iscsid
  modprobe "${2:-iscsi_tcp}"
  modprobe sd_mod
  mkdir -p /etc/iscsi /run/lock/iscsi
  echo "InitiatorName=$1" > /etc/iscsi/initiatorname.iscsi
  cat > /etc/iscsi/iscsid.conf <<'END'
node.startup = manual
node.session.timeo.replacement_timeout = 120
node.conn[0].timeo.login_timeout = 10
node.conn[0].timeo.noop_out_interval = 5
node.conn[0].timeo.noop_out_timeout = 5
node.session.initial_login_retry_max = 4
END
  iscsid -f > /tmp/iscsid.log 2>&1 &
  wait_for 20 iscsiadm -m iface
}
kernel_node() { # IQN PORTAL [TRANSPORT [NAME=VALUE...]]: a record of a target, with settings. TRANSPORT: default or iser
  local iqn=$1 portal=$2 transport=${3:-default} setting
  shift $(($# > 3 ? 3 : $#))
  iscsiadm -m node -o new -T "$iqn" -p "$portal,1" -I "$transport" > /dev/null
  for setting in "$@"; do
    iscsiadm -m node -T "$iqn" -p "$portal" -o update -n "${setting%%=*}" -v "${setting#*=}"
  done
}
kernel_login() { # IQN PORTAL: prints the disk, as in /dev/sda
  iscsiadm -m node -T "$1" -p "$2" -l > /dev/null
  kernel_disk
}
kernel_disk() {
  local name
  for _ in $(seq 100); do
    name=$(iscsiadm -m session -P 3 2> /dev/null | awk '/Attached scsi disk/ {print $4; exit}')
    if [ -n "$name" ] && [ -b "/dev/$name" ] && [ "$(cat "/sys/block/$name/size")" -gt 0 ]; then
      echo "/dev/$name"
      return
    fi
    sleep 0.2
  done
  echo "no disk came with the session" >&2
  iscsiadm -m session -P 3 >&2
  return 1
}

# ---- our daemons ----

daemon() { # PROGRAM CONFIGURATION: starts it; its log is kept with the consoles'
  "/lab/bin/$1" --config "$2" >> "/lab/share/$(hostname)-$1.log" 2>&1 &
  echo $! > "/run/$1.pid"
}
daemon_pid() { cat "/run/$1.pid"; }
