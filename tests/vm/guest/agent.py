# SPDX-License-Identifier: Apache-2.0
"""Process 1 of a guest: takes requests from the lab over a virtio-serial port and answers each when it is done. Many can be
under way. A request is a line "ID KIND ARGUMENT LENGTH" and LENGTH bytes: "run SECONDS" with a shell command, "put PATH" with
a file, or "end ID" of a command. An answer is a line "ID STATUS LENGTH" and the output; STATUS "late" is a command that was ended.

Imports little: in an emulated guest each module costs a tenth of a second or more."""
import os

import select
import time

OUTPUT_MAX = 1 << 20  # bytes of a command's output that are sent: the last ones
PORTS = "/sys/class/virtio-ports/"
SIGKILL = 9


def read(path):
    with open(path, "rb") as file:
        return file.read()


def find_port():
    for entry in os.listdir(PORTS):
        if read(PORTS + entry + "/name").strip() == b"lab":
            return os.open("/dev/" + entry, os.O_RDWR)
    raise SystemExit("no virtio-serial port named lab")


def send(port, number, status, output):
    data = b"%d %s %d\n" % (number, str(status).encode(), len(output)) + output
    while data:
        data = data[os.write(port, data):]


class Command:
    """A shell with the functions of functions.sh. Its background processes may outlive it and keep its output open."""

    def __init__(self, number, text, seconds):
        self.number, self.end = number, time.monotonic() + seconds
        self.path = f"/run/lab-output-{number}"
        output = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.execv("/bin/bash", ["bash", "-euo", "pipefail", "-c", b". /lab/tests/guest/functions.sh\n" + text])
        os.close(output)
        self.pidfd = os.pidfd_open(self.pid)
        self.status = None

    def finish(self, port):
        os.close(self.pidfd)
        output = read(self.path)[-OUTPUT_MAX:]
        os.unlink(self.path)
        send(port, self.number, self.status, output)


def put(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(data)


def reap(commands):
    """Ends of commands and, as process 1, of orphans."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        for command in commands:
            if command.pid == pid and command.status is None:
                code = os.waitstatus_to_exitcode(status)
                command.status = code if code >= 0 else 128 - code


def main():
    port = find_port()
    send(port, 0, "ready", b"")
    commands, buffer = [], b""
    while True:
        poll = select.poll()
        poll.register(port, select.POLLIN)
        for command in commands:
            poll.register(command.pidfd, select.POLLIN)
        if any(descriptor == port for descriptor, _ in poll.poll(500)):
            buffer += os.read(port, 65536)
        while b"\n" in buffer:
            line, rest = buffer.split(b"\n", 1)
            number, kind, argument, length = line.split(b" ")
            if len(rest) < int(length):
                break
            data, buffer = rest[:int(length)], rest[int(length):]
            if kind == b"put":
                put(os.fsdecode(argument), data)
                send(port, int(number), 0, b"")
            elif kind == b"end":
                for command in commands:
                    if command.number == int(argument) and command.status is None:
                        os.killpg(command.pid, SIGKILL)
                send(port, int(number), 0, b"")
            else:
                commands.append(Command(int(number), data, float(argument)))
        reap(commands)
        now = time.monotonic()
        for command in list(commands):
            if command.status is None and now > command.end:
                os.killpg(command.pid, SIGKILL)
                command.status = "late"
            if command.status is not None:
                commands.remove(command)
                command.finish(port)


main()
