"""The seccomp programs, run by a small interpreter: also for machines that we are not on."""

from __future__ import annotations

import errno
import struct

import pytest

from yaosb_jupyter.guest import seccomp

ALLOW, KILL = 0x7FFF0000, 0x80000000
X86, ARM = seccomp.ARCHITECTURES["x86_64"], seccomp.ARCHITECTURES["aarch64"]
MACHINES = {"x86_64": X86, "aarch64": ARM}


def run(code: bytes, number: int, audit: int, *arguments: int) -> int:
    """What the kernel would answer to one system call."""
    padded = [*arguments, 0, 0, 0, 0, 0, 0][:6]
    data = struct.pack("<IIQ6Q", number & 0xFFFFFFFF, audit, 0, *(value & (2**64 - 1) for value in padded))
    program = [struct.unpack_from("=HBBI", code, offset) for offset in range(0, len(code), 8)]
    accumulator = position = 0
    for _ in range(len(program)):
        operation, if_true, if_false, value = program[position]
        position += 1
        if operation == 0x20:
            accumulator = struct.unpack_from("<I", data, value)[0]
        elif operation == 0x06:
            return value
        else:
            met = {0x15: accumulator == value, 0x35: accumulator >= value, 0x45: bool(accumulator & value)}[operation]
            position += if_true if met else if_false
    raise AssertionError("the program has no end")


def refused(error: int) -> int:
    return 0x00050000 | error


@pytest.fixture(params=MACHINES)
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_dangerous_calls_are_refused(machine: str) -> None:
    architecture = MACHINES[machine]
    code = seccomp.program(True, [], machine)
    for name in ("ptrace", "mount", "unshare", "setns", "keyctl", "bpf", "process_vm_writev", "kexec_load"):
        assert run(code, architecture.numbers[name], architecture.audit) == refused(errno.EPERM), name
    for number in (425, 426, 427, 428, 429, 430, 442):
        assert run(code, number, architecture.audit) == refused(errno.EPERM), number
    assert run(code, 435, architecture.audit) == refused(errno.ENOSYS), "clone3"


def test_ordinary_calls_are_allowed(machine: str) -> None:
    architecture = MACHINES[machine]
    code = seccomp.program(True, ["alg"], machine)
    ordinary = {"x86_64": (0, 1, 2, 9, 59, 60, 62, 202, 257), "aarch64": (56, 63, 64, 93, 98, 129, 221, 222)}
    for number in ordinary[machine]:
        assert run(code, number, architecture.audit) == ALLOW, number


@pytest.mark.parametrize("flag", [0x20000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000])
def test_a_clone_into_new_namespaces_is_refused(flag: int, machine: str) -> None:
    architecture = MACHINES[machine]
    code = seccomp.program(True, [], machine)
    clone = architecture.numbers["clone"]
    assert run(code, clone, architecture.audit, flag | 17) == refused(errno.EPERM)
    assert run(code, clone, architecture.audit, 0x003D0F00) == ALLOW, "a thread"
    assert run(code, clone, architecture.audit, 0x01200011) == ALLOW, "a process"


def test_what_is_typed_into_a_terminal_cannot_be_faked(machine: str) -> None:
    architecture = MACHINES[machine]
    code = seccomp.program(True, [], machine)
    ioctl = architecture.numbers["ioctl"]
    assert run(code, ioctl, architecture.audit, 0, 0x5412) == refused(errno.EPERM)
    assert run(code, ioctl, architecture.audit, 0, 0xFFFFFFFF00005412) == refused(errno.EPERM), (
        "the kernel takes 32 bits"
    )
    assert run(code, ioctl, architecture.audit, 0, 0x5413) == ALLOW


def test_personalities_that_weaken_a_process_are_refused(machine: str) -> None:
    architecture = MACHINES[machine]
    code = seccomp.program(True, [], machine)
    personality = architecture.numbers["personality"]
    assert run(code, personality, architecture.audit, 0xFFFFFFFF) == ALLOW, "a question"
    assert run(code, personality, architecture.audit, 0) == ALLOW
    assert run(code, personality, architecture.audit, 0x0400000) == refused(errno.EPERM), "READ_IMPLIES_EXEC"


def test_only_the_named_families_of_sockets_are_refused(machine: str) -> None:
    architecture = MACHINES[machine]
    code = seccomp.program(True, ["unix", "netlink", "packet", "alg", "vsock"], machine)
    number = architecture.numbers["socket"]
    for family in (1, 16, 17, 38, 40):
        assert run(code, number, architecture.audit, family) == refused(errno.EACCES), family
    for family in (2, 10):
        assert run(code, number, architecture.audit, family) == ALLOW, family


def test_all_sockets_can_be_refused(machine: str) -> None:
    architecture = MACHINES[machine]
    code = seccomp.program(False, ["*"], machine)
    for family in (1, 2, 10, 16):
        assert run(code, architecture.numbers["socket"], architecture.audit, family) == refused(errno.EACCES)
    socketpair = {"x86_64": 53, "aarch64": 199}[machine]
    assert run(code, socketpair, architecture.audit, 1) == ALLOW


def test_foreign_architectures_end_the_process(machine: str) -> None:
    code = seccomp.program(True, ["*"], machine)
    for audit in (0x40000003, 0x40000028, MACHINES["aarch64" if machine == "x86_64" else "x86_64"].audit):
        assert run(code, 20, audit) == KILL


def test_the_x32_door_is_shut() -> None:
    code = seccomp.program(True, ["unix"], "x86_64")
    assert run(code, 0x40000000 | 41, X86.audit, 1) == KILL
    assert run(code, 0x40000000 | 101, X86.audit) == KILL


def test_a_machine_without_a_table_is_told() -> None:
    with pytest.raises(OSError, match="riscv64"):
        seccomp.program(True, [], "riscv64")
