"""A seccomp filter of the Linux kernel that allows only the system calls needed to compute and to answer.

Only the child process imports it. The child has neither the project nor its packages, and starts again for each script,
so slow imports are avoided here.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys

_PR_SET_SECCOMP = 22
_PR_SET_NO_NEW_PRIVS = 38
_SECCOMP_MODE_FILTER = 2

_KILL = 0x80000000
_REFUSE = 0x00050000 | errno.EPERM
_ALLOW = 0x7FFF0000

_LOAD = 0x20
_JUMP_IF_EQUAL = 0x15
_JUMP_IF_AT_LEAST = 0x35
_JUMP_IF_ANY_BIT = 0x45
_RETURN = 0x06

# Offsets in the data that the kernel passes to the filter: the call, the machine, the low halves of the arguments.
_CALL = 0
_MACHINE = 4
_FIRST_ARGUMENT = 16
_THIRD_ARGUMENT = 32

_PROT_EXEC = 4
_STDOUT = 1


class _Machine:
    """The numbers of the system calls of one architecture: `free` are allowed, `mapping` only without PROT_EXEC."""

    def __init__(
        self, *, audit: int, free: tuple[int, ...], mapping: tuple[int, ...], write: int, beyond: int | None = None
    ) -> None:
        self.audit = audit
        self.free = free
        self.mapping = mapping
        self.write = write
        self.beyond = beyond


# free: munmap brk rt_sigprocmask rt_sigreturn sched_yield mremap madvise exit exit_group gettimeofday futex
#       restart_syscall clock_gettime clock_getres getrandom (and time, on x86_64 alone). mapping: mmap mprotect.
_MACHINES = {
    "x86_64": _Machine(
        audit=0xC000003E,
        free=(11, 12, 14, 15, 24, 25, 28, 60, 231, 96, 202, 219, 228, 229, 318, 201),
        mapping=(9, 10),
        write=1,
        beyond=0x40000000,  # from here on, the same calls under other numbers (x32)
    ),
    "aarch64": _Machine(
        audit=0xC00000B7,
        free=(215, 214, 135, 139, 124, 216, 233, 93, 94, 169, 98, 128, 113, 114, 278),
        mapping=(222, 226),
        write=64,
    ),
}


def install() -> str:
    """Restrict this process to calls for computing, writing to stdout and exiting; the rest fails with EPERM.

    Return an empty string when the filter is active, else the reason why it is not. It cannot be removed again.
    """
    if not sys.platform.startswith("linux"):
        return f"{sys.platform} has no seccomp"
    name = os.uname().machine
    machine = _MACHINES.get(name)
    if machine is None or struct.calcsize("P") != 8:
        return f"no filter is known for {name}"
    return _load(_program(machine))


def _load(program: bytes) -> str:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    instructions = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("@HP", len(program) // 8, ctypes.addressof(instructions))
    described = ctypes.create_string_buffer(header, len(header))
    for arguments in (
        (_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(described), 0, 0),
    ):
        if libc.prctl(*arguments) != 0:
            return f"the kernel refused it: {os.strerror(ctypes.get_errno())}"
    return ""


def _program(machine: _Machine) -> bytes:
    """Return the filter program: jumps stay within blocks of five instructions, so there may be any number of calls."""
    code = [_one(_LOAD, _MACHINE), _one(_JUMP_IF_EQUAL, machine.audit, 1, 0), _one(_RETURN, _KILL), _one(_LOAD, _CALL)]
    if machine.beyond is not None:
        code += [_one(_JUMP_IF_AT_LEAST, machine.beyond, 0, 1), _one(_RETURN, _REFUSE)]
    for call in machine.free:
        code += [_one(_JUMP_IF_EQUAL, call, 0, 1), _one(_RETURN, _ALLOW)]
    for call in machine.mapping:
        code += _guarded(call, _THIRD_ARGUMENT, _one(_JUMP_IF_ANY_BIT, _PROT_EXEC, 1, 0))
    code += _guarded(machine.write, _FIRST_ARGUMENT, _one(_JUMP_IF_EQUAL, _STDOUT, 0, 1))
    return b"".join([*code, _one(_RETURN, _REFUSE)])


def _guarded(call: int, argument: int, check: bytes) -> list[bytes]:
    """Return the block for a call that is allowed unless the check jumps over the next instruction."""
    return [
        _one(_JUMP_IF_EQUAL, call, 0, 4),
        _one(_LOAD, argument),
        check,
        _one(_RETURN, _ALLOW),
        _one(_RETURN, _REFUSE),
    ]


def _one(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
