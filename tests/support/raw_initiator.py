# SPDX-License-Identifier: Apache-2.0
"""A logged-in initiator that sends whatever PDU a test wants, right or wrong (RFC 7143, section 11)."""
import socket
import struct


class Pdu:
    def __init__(self, header, data):
        self.header, self.data = header, data
        self.opcode = header[0] & 0x3f
        self.itt, self.ttt = struct.unpack(">II", header[16:24])

    # SCSI Response
    status = property(lambda self: self.header[3])
    residual = property(lambda self: struct.unpack(">I", self.header[44:48])[0])
    overflow = property(lambda self: bool(self.header[1] & 0x04))
    underflow = property(lambda self: bool(self.header[1] & 0x02))

    @property
    def sense(self):
        """Key, code and qualifier, from sense data of fixed format."""
        sense = self.data[2:]
        return (sense[2] & 0x0f, sense[12], sense[13]) if len(sense) >= 14 else None


class RawInitiator:
    def __init__(self, address, port, target, name, isid=b"\x80\x11\x22\x33\x44\x55"):
        self.socket = socket.create_connection((address, port), timeout=20)
        self.cmd_sn, self.stat_sn, self.itt = 1, 0, 0
        keys = {"InitiatorName": name, "TargetName": target, "SessionType": "Normal", "ImmediateData": "Yes", "InitialR2T": "Yes",
                "HeaderDigest": "None", "DataDigest": "None", "FirstBurstLength": "65536", "MaxRecvDataSegmentLength": "65536"}
        text = "".join(f"{key}={value}\0" for key, value in keys.items()).encode()
        # Operational stage to full feature phase. The ISID is of the random kind; one that is in use ends the session that has it.
        self.send(struct.pack(">BBBBI6sHIHHIIxxxxxxxxxxxxxxxx", 0x43, 0x87, 0, 0, len(text), isid, 0, 0, 0,
                              0, self.cmd_sn, 0), text)
        answer = self.receive()
        if answer is None or answer.opcode != 0x23 or answer.header[36:38] != b"\0\0" or answer.header[1] & 0x83 != 0x83:
            raise AssertionError(f"the login failed: {answer and answer.header.hex()}")

    def send(self, header, data=b""):
        assert len(header) == 48, len(header)
        self.socket.sendall(header + data + bytes(-len(data) % 4))

    def _exactly(self, size):
        got = b""
        while len(got) < size:
            more = self.socket.recv(size - len(got))
            if not more:
                return None
            got += more
        return got

    def receive(self):
        """The next PDU that is no ping, or None when the target has closed the connection."""
        try:
            while True:
                header = self._exactly(48)
                if header is None:
                    return None
                length = int.from_bytes(header[5:8], "big")
                data = self._exactly((length + 3) // 4 * 4)
                if data is None:
                    return None
                pdu = Pdu(header, data[:length])
                self.stat_sn = struct.unpack(">I", header[24:28])[0] + 1
                if pdu.opcode != 0x20:
                    return pdu
        except (ConnectionResetError, BrokenPipeError):
            return None

    def command(self, cdb, expected, immediate=b"", write=True, cmd_sn=None):
        """Sends a SCSI Command for LUN 0; returns its tag."""
        self.itt += 1
        flags = 0x80 | (0x20 if write else 0x40 if expected else 0) | 0x01
        self.send(struct.pack(">BBHI8sIIII16s", 0x01, flags, 0, len(immediate), bytes(8), self.itt, expected,
                              self.cmd_sn if cmd_sn is None else cmd_sn, self.stat_sn, bytes(cdb).ljust(16, b"\0")), immediate)
        if cmd_sn is None:
            self.cmd_sn += 1
        return self.itt

    def write10(self, lba, blocks, expected, immediate=b"", **more):
        return self.command(struct.pack(">BBIBHB", 0x2a, 0, lba, 0, blocks, 0), expected, immediate, **more)

    def read10(self, lba, blocks, block_bytes=512):
        """Returns the data."""
        self.command(struct.pack(">BBIBHB", 0x28, 0, lba, 0, blocks, 0), blocks * block_bytes, write=False)
        data = b""
        while True:
            pdu = self.receive()
            if pdu is None or pdu.opcode not in (0x21, 0x25):
                raise AssertionError("the read was not answered")
            if pdu.opcode == 0x25:
                data += pdu.data
            if pdu.opcode == 0x21 or pdu.header[1] & 0x01:  # with status
                return data

    def data_out(self, itt, ttt, data_sn, offset, data, final):
        self.send(struct.pack(">BBHI8sIIIIIIII", 0x05, 0x80 if final else 0, 0, len(data), bytes(8), itt, ttt, 0, self.stat_sn, 0,
                              data_sn, offset, 0), data)

    def test_unit_ready(self):
        """The first command after a login gets the unit attention."""
        statuses = []
        for _ in range(4):
            self.command([0], 0, write=False)
            answer = self.receive()
            statuses.append(answer and answer.status)
            if statuses[-1] == 0:
                return
        raise AssertionError(f"not ready: {statuses}")

    def close(self):
        self.socket.close()
