"""Hostile code: run inside a sandbox, it tries to get out by every way we know, and tells which succeeded.

Standard library only. The one argument is JSON, what `tests.attacks.stage` laid out on the host.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import signal
import socket
import struct
import subprocess
import sys
import time

given = json.loads(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)


def can(attempt):
    try:
        return attempt() is not False
    except (OSError, ValueError):
        return False


def read(path):
    with open(path, "rb") as file:
        return b"SECRET" in file.read()


def read_by_link(path):
    os.symlink(path, "link")
    try:
        return read("link")
    finally:
        os.unlink("link")


def overwrite(path):
    with open(path, "r+b") as file:
        file.write(b"X")


def create(path):
    with open(path, "xb"):
        pass


def connect(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as client:
        client.settimeout(2)
        client.connect(address)


def send_datagram():
    """That it was sent proves nothing: the stage tells whether it arrived."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.sendto(b"hello", ("127.0.0.1", given["udp_port"]))


def route():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.connect(("198.51.100.1", 9))


def pids_of(mark):
    """Processes whose arguments hold the mark, but those that hold all of ours."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                line = file.read()
        except OSError:
            continue
        if mark.encode() in line and b"link_socket" not in line:
            found.append(int(name))
    return found


def seen_pid(mark, number):
    """A process of the host, by its arguments where they can be seen, else by its number there."""
    return (pids_of(mark) or [number])[0]


def kill(mark, number):
    os.kill(seen_pid(mark, number), signal.SIGKILL)


def trace(pid):
    seize = 0x4206
    if libc.ptrace(seize, pid, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "ptrace")


def system_call(number, *arguments):
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), f"syscall {number}")


def impersonate(key):
    """Whether the host's end of the link takes us for the guest."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
        link.settimeout(3)
        link.connect(given["link_socket"])
        hello = json.dumps({"major": 1, "minor": 0, "features": [], "key": key}).encode()
        link.sendall(struct.pack("!IBI", len(hello), 1, 0) + hello)
        header = link.recv(9)
        return len(header) == 9 and header[4] == 1


def reaches_link():
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
        link.connect(given["link_socket"])


def read_guest(name):
    with open(f"/proc/{os.getppid()}/{name}", "rb") as file:
        return bool(file.read(1))


def foreign_architecture():
    """getpid by the 32-bit door of a 64-bit kernel, in a child that may be killed for it."""
    pid = os.fork()
    if pid == 0:
        code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        code.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")
        call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
        os._exit(0 if call() > 0 else 1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def hogs():
    """Whether four processes together can have more than the cap."""
    hog = "import time; data = b'x' * (150 << 20); time.sleep(1.5)"
    running = [subprocess.Popen([sys.executable, "-c", hog], stderr=subprocess.DEVNULL) for _ in range(4)]
    codes = [process.wait() for process in running]
    return codes == [0] * 4


def forks():
    """Whether more processes can be had than the cap."""
    children = []
    try:
        for _ in range(given["pids"] + 20):
            pid = os.fork()
            if pid == 0:
                signal.pause()
            children.append(pid)
        return True
    except BlockingIOError:  # EAGAIN
        return False
    finally:
        for pid in children:
            os.kill(pid, signal.SIGKILL)
        for pid in children:
            os.waitpid(pid, 0)


def leave_daemon():
    """One that lost its parents, its session and its environment, and ignores what can be ignored."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for signum in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                signal.signal(signum, signal.SIG_IGN)
            null = os.open("/dev/null", os.O_RDWR)
            for fd in (0, 1, 2):
                os.dup2(null, fd)
            os.execve(sys.executable, [sys.executable, "-c", "import time; time.sleep(1000)", given["daemon_mark"]], {})
        os._exit(0)
    os.wait()
    deadline = time.monotonic() + 10
    while not pids_of(given["daemon_mark"]) and time.monotonic() < deadline:
        time.sleep(0.01)


def refork():
    """A daemon that is never the same process for long."""
    code = """
import os, time
while True:
    try:
        if os.fork():
            os._exit(0)
        os.setsid()
    except OSError:
        pass  # the cap on processes
    time.sleep(0.02)
"""
    subprocess.Popen([sys.executable, "-c", code, given["refork_mark"]], env={}, start_new_session=True).wait()


UNSHARE, MOUNT, SETNS, PIVOT_ROOT = {"x86_64": (272, 165, 308, 155), "aarch64": (97, 40, 268, 41)}[os.uname().machine]
KEYCTL, BPF, PERF = {"x86_64": (250, 321, 298), "aarch64": (219, 280, 241)}[os.uname().machine]
IO_URING_SETUP = 425

ATTACKS = {
    "read secret": lambda: read(given["secret"]),
    "read secret by link": lambda: read_by_link(given["secret"]),
    "read secret by /proc/N/root": lambda: read(f"/proc/{seen_pid(given['mark'], given['pid'])}/root{given['secret']}"),
    "read secret by /proc/N/cwd": lambda: read(f"/proc/{seen_pid(given['mark'], given['pid'])}/cwd/secret"),
    "read what all may read": lambda: read(given["readable"]),
    "overwrite": lambda: overwrite(given["writable"]),
    "create": lambda: create(given["open_directory"] + "/new"),
    "write to /usr": lambda: create("/usr/yaosb-attack"),
    "chmod": lambda: os.chmod(given["own"], 0o640),
    "utime": lambda: os.utime(given["readable"]),
    "stat": lambda: bool(os.stat(given["readable"])),
    "read another sandbox": lambda: read(given["other_file"]),
    "see another sandbox": lambda: bool(pids_of(given["other_mark"])),
    "kill another sandbox": lambda: bool(pids_of(given["other_mark"])) and kill(given["other_mark"], 0),
    "tcp to the host": lambda: connect(socket.AF_INET, ("127.0.0.1", given["tcp_port"])),
    "udp to the host": send_datagram,
    "a route out": route,
    "abstract socket": lambda: connect(socket.AF_UNIX, "\0" + given["abstract"]),
    "path socket": lambda: connect(socket.AF_UNIX, given["socket"]),
    "see processes": lambda: bool(pids_of(given["mark"])),
    "kill a process": lambda: bool(pids_of(given["mark"])) and kill(given["mark"], 0),
    "kill a process by its number": lambda: kill(given["mark"], given["pid"]),
    "trace a process": lambda: trace(seen_pid(given["mark"], given["pid"])),
    "trace the guest": lambda: trace(os.getppid()),
    "read the guest's memory": lambda: read_guest("mem") or read_guest("maps"),
    "read the guest's environment": lambda: read_guest("environ"),
    "reach the link": reaches_link,
    "impersonate without the key": lambda: impersonate(""),
    "impersonate with a wrong key": lambda: impersonate("x" * 43),
    "new user namespace": lambda: system_call(UNSHARE, 0x10000000),
    "new mount namespace": lambda: system_call(UNSHARE, 0x20000),
    "mount": lambda: system_call(MOUNT, b"none", b"/tmp", b"tmpfs", 0, None),
    "remount /usr writable": lambda: system_call(MOUNT, None, b"/usr", None, 0x1020, None),
    "keyctl": lambda: system_call(KEYCTL, 0, -3, 1),
    "bpf": lambda: system_call(BPF, 0, b"\0" * 128, 128),
    "io_uring": lambda: system_call(IO_URING_SETUP, 1, ctypes.create_string_buffer(256)),
    "netlink beyond routes": lambda: socket.socket(17, socket.SOCK_RAW).close(),
    "sysctl": lambda: overwrite("/proc/sys/vm/swappiness"),
    "foreign architecture": lambda: os.uname().machine == "x86_64" and foreign_architecture(),
    "environment of the daemon": lambda: "ATTACK_SECRET" in os.environ,
    "more memory than the cap": hogs,
    "more processes than the cap": forks,
}

if __name__ == "__main__":
    results = {}
    for name, attack in ATTACKS.items():
        results[name] = can(attack)
    leave_daemon()
    refork()
    print(json.dumps(results))
