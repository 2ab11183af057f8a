# SPDX-License-Identifier: Apache-2.0
"""iSER by itself where both boxes have RDMA, iSCSI with the right reason where one has not, and moves under load without an error."""
import time

from lab.boxes import Host, Target

kernels = ["6.12"]
guests = 2
timeout_s = 1500

FALLBACK_SECONDS = 30
CREATE_SECONDS = 6


def test(lab):
    nas1, nas2 = lab.boot_two(disk_mib=512)
    nas2.sh("data_disk /data")
    for box in (nas1, nas2):
        box.sh("soft_roce")
    target, host = Target(nas2, "/data"), Host(nas1)
    target.start()
    host.start()
    host.pair(target)

    pair = host.json("interfaces", "nas2")["pairs"][0]
    assert pair["iser"] and pair["host"]["rdma"]["link_up"], pair
    assert pair["host"]["rdma"]["regions_max"] > 0, pair
    assert {"address": "10.0.0.1", "prefix_length": 24, "rdma_type": "RoCE v2"} in pair["host"]["addresses"], pair
    host.create("disk1", "128M")
    connected_by(host, "disk1", "iser")

    for name, box, where in (("disk2", nas2, "nas2"), ("disk3", nas1, "here")):
        box.sh("no_soft_roce")
        started = time.monotonic()
        host.create(name, "16M")
        lab.say(f"{name} took {time.monotonic() - started:.1f} s")
        disk = connected_by(host, name, "iscsi")
        fallback = disk["fallback"]
        assert (fallback["active"], fallback["reason_code"]) == (True, "no-rdma-device"), fallback
        assert fallback["reason_text"] == f"no RDMA device on eth0 ({where})", fallback
        assert time.monotonic() - started < CREATE_SECONDS, "too slow"
        assert "iSCSI" in host.cli("list"), host.cli("list")
        box.sh("soft_roce")

    # Under load: by hand to iSCSI and back, then the device is pulled, then its packets are lost.
    lab.eventually(lambda: host.json("interfaces", "nas2")["pairs"][0]["iser"], 30, "RDMA at both ends")
    host.cli("reconnect", "disk1", "--transport", "iser")
    fio = host.fio_verify("disk1", "--name=verify --bs=4k --size=96m --iodepth=16", seconds=240)
    for transport in ("iscsi", "iser", "auto"):
        host.cli("reconnect", "disk1", "--transport", transport)
        connected_by(host, "disk1", "iscsi" if transport == "iscsi" else "iser")

    nas1.sh("no_soft_roce")
    fell_back(lab, host, "the device being pulled")
    nas1.sh("soft_roce")
    back_to_iser(lab, host)

    for box in (nas1, nas2):
        box.sh("drop_roce")
    fell_back(lab, host, "RDMA's packets being lost")
    for box in (nas1, nas2):
        box.sh("undrop_roce")
    back_to_iser(lab, host)
    fio.wait()
    assert host.disk("disk1")["stats"]["errors"] == 0, host.disk("disk1")


def connected_by(host, name, transport):
    disk = host.disk(name)
    assert (disk["state"], disk["connection_type"]) == ("connected", transport), disk
    return disk


def fell_back(lab, host, what):
    def there():
        disk = host.disk("disk1")
        return disk["state"] == "connected" and disk["connection_type"] == "iscsi"
    lab.eventually(there, FALLBACK_SECONDS, f"iSCSI after {what}")
    fallback = host.disk("disk1")["fallback"]
    assert fallback["active"] and fallback["reason_code"], fallback
    lab.say(f"{what}: {fallback['reason_code']}: {fallback['reason_text']}")


def back_to_iser(lab, host):
    lab.eventually(lambda: host.json("interfaces", "nas2")["pairs"][0]["iser"], 30, "RDMA at both ends")
    host.cli("reconnect", "disk1", "--transport", "iser")
    connected_by(host, "disk1", "iser")
