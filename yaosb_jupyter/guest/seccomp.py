"""seccomp: the system calls that a sandbox has no use for, refused; foreign architectures end the process."""

from __future__ import annotations

import ctypes
import errno
import os
import struct

from . import libc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Sequence

_LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
_JUMP_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_JUMP_GREATER_EQUAL = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_JUMP_SET = 0x45  # BPF_JMP | BPF_JSET | BPF_K
_RETURN = 0x06  # BPF_RET | BPF_K

_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_KILL_PROCESS = 0x80000000

_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data; low words come first on both
_X32 = 0x40000000

_NEW_NAMESPACES = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C

FAMILIES = {"unix": 1, "inet": 2, "inet6": 10, "netlink": 16, "packet": 17, "alg": 38, "vsock": 40}


class Architecture:
    def __init__(self, audit: int, numbers: Dict[str, int]) -> None:
        self.audit = audit
        self.numbers = numbers


_X86_64 = Architecture(
    0xC000003E,
    {
        "socket": 41, "clone": 56, "ptrace": 101, "syslog": 103, "personality": 135, "ustat": 136, "sysfs": 139,
        "pivot_root": 155, "acct": 163, "settimeofday": 164, "mount": 165, "umount2": 166, "swapon": 167,
        "swapoff": 168, "reboot": 169, "sethostname": 170, "setdomainname": 171, "iopl": 172, "ioperm": 173,
        "init_module": 175, "delete_module": 176, "quotactl": 179, "lookup_dcookie": 212, "clock_settime": 227,
        "kexec_load": 246, "add_key": 248, "request_key": 249, "keyctl": 250, "unshare": 272, "perf_event_open": 298,
        "fanotify_init": 300, "open_by_handle_at": 304, "clock_adjtime": 305, "setns": 308, "process_vm_readv": 310,
        "process_vm_writev": 311, "kcmp": 312, "finit_module": 313, "kexec_file_load": 320, "bpf": 321,
        "userfaultfd": 323, "ioctl": 16,
    },
)  # fmt: skip
_ARM64 = Architecture(
    0xC00000B7,
    {
        "ioctl": 29, "umount2": 39, "mount": 40, "pivot_root": 41, "quotactl": 60, "acct": 89, "personality": 92,
        "unshare": 97, "kexec_load": 104, "init_module": 105, "delete_module": 106, "clock_settime": 112, "syslog": 116,
        "ptrace": 117, "reboot": 142, "sethostname": 161, "setdomainname": 162, "settimeofday": 170, "socket": 198,
        "add_key": 217, "request_key": 218, "keyctl": 219, "clone": 220, "swapon": 224, "swapoff": 225,
        "perf_event_open": 241, "fanotify_init": 262, "open_by_handle_at": 265, "clock_adjtime": 266, "setns": 268,
        "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272, "finit_module": 273, "bpf": 280,
        "userfaultfd": 282, "kexec_file_load": 294, "lookup_dcookie": 18,
    },
)  # fmt: skip
# Younger than the common table, so the same everywhere.
_COMMON = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "pidfd_getfd": 438, "process_madvise": 440,
    "mount_setattr": 442, "quotactl_fd": 443,
}  # fmt: skip
_CLONE3 = 435
_LOOKED_INTO = frozenset({"socket", "clone", "ioctl", "personality"})
_HARMLESS_PERSONALITIES = (0x0, 0x8, 0x20000, 0x20008, 0xFFFFFFFF, 0x40000)  # the last: without address randomization

ARCHITECTURES = {"x86_64": _X86_64, "aarch64": _ARM64}


def program(dangerous: bool, sockets: Sequence[str], machine: str = "") -> bytes:
    """The filter. Raises `OSError` for a machine whose system calls are not known here."""
    machine = machine or os.uname().machine
    architecture = ARCHITECTURES.get(machine)
    if architecture is None:
        raise OSError("no seccomp filter is known for %s" % machine)
    numbers = architecture.numbers
    code: List[bytes] = [
        _op(_LOAD, _ARCHITECTURE),
        _op(_JUMP_EQUAL, architecture.audit, 1, 0),
        _op(_RETURN, _KILL_PROCESS),
        _op(_LOAD, _NUMBER),
    ]
    if architecture is _X86_64:
        code += [_op(_JUMP_GREATER_EQUAL, _X32, 0, 1), _op(_RETURN, _KILL_PROCESS)]
    if dangerous:
        code += _dangerous(numbers)
    if sockets:
        code += _sockets(numbers["socket"], sockets)
    return b"".join([*code, _op(_RETURN, _ALLOW)])


def install(code: bytes) -> None:
    """On this thread and what it starts. Raises `OSError`."""
    buffer = ctypes.create_string_buffer(code, len(code))

    class Program(ctypes.Structure):
        _fields_ = [("count", ctypes.c_ushort), ("code", ctypes.c_void_p)]

    filter_program = Program(len(code) // 8, ctypes.addressof(buffer))
    libc.prctl(libc.PR_SET_SECCOMP, 2, ctypes.byref(filter_program))


def _dangerous(numbers: Dict[str, int]) -> List[bytes]:
    code: List[bytes] = []
    for name, number in sorted({**numbers, **_COMMON}.items()):
        if name not in _LOOKED_INTO:
            code += [_op(_JUMP_EQUAL, number, 0, 1), _refuse(errno.EPERM)]
    # Its arguments lie in memory where a filter cannot look; libraries fall back to clone.
    code += [_op(_JUMP_EQUAL, _CLONE3, 0, 1), _refuse(errno.ENOSYS)]
    code += _argument(numbers["clone"], 0, [_op(_JUMP_SET, _NEW_NAMESPACES, 0, 1), _refuse(errno.EPERM)])
    for request in (_TIOCSTI, _TIOCLINUX):
        code += _argument(numbers["ioctl"], 1, [_op(_JUMP_EQUAL, request, 0, 1), _refuse(errno.EPERM)])
    accepted = _HARMLESS_PERSONALITIES
    # Each jumps over those after it and the refusal.
    checks = [_op(_JUMP_EQUAL, value, len(accepted) - index, 0) for index, value in enumerate(accepted)]
    code += _argument(numbers["personality"], 0, [*checks, _refuse(errno.EPERM)])
    return code


def _sockets(number: int, families: Sequence[str]) -> List[bytes]:
    if "*" in families:
        return [_op(_JUMP_EQUAL, number, 0, 1), _refuse(errno.EACCES)]
    body: List[bytes] = []
    for family in families:
        body += [_op(_JUMP_EQUAL, FAMILIES[family], 0, 1), _refuse(errno.EACCES)]
    return _argument(number, 0, body)


def _argument(number: int, index: int, body: List[bytes]) -> List[bytes]:
    """``body`` with one argument of one call loaded, and the call's number back afterwards."""
    loaded = [_op(_LOAD, _ARGUMENTS + 8 * index), *body, _op(_LOAD, _NUMBER)]
    return [_op(_JUMP_EQUAL, number, 0, len(loaded)), *loaded]


def _refuse(error: int) -> bytes:
    return _op(_RETURN, _ERRNO | error)


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
