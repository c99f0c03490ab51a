"""Handing the host the pipe that a command writes to, over a connection of its own: the link carries bytes only."""

from __future__ import annotations

import array
import socket

from . import frames
from .executions import Executions
from .link import Stream
from .loop import READ, Loop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict


def operations(
    loop: Loop, executions: Executions, path: str, hello: Dict[str, Any]
) -> Dict[str, Callable[[Stream, Dict[str, Any]], None]]:
    """``path`` and ``hello`` as of the link."""

    def hand_over(stream: Stream, request: Dict[str, Any]) -> None:
        execution = executions.find(stream, request)
        if execution is None:
            return
        descriptor = execution.lend_output()
        if descriptor is None:
            stream.fail("NotAvailableError", "it has no output that could be handed over")
            return

        def passed(taken: bool) -> None:
            execution.output_lent(taken)
            if taken:
                stream.close({})
            else:
                stream.fail("NotAvailableError", "its output was not taken")

        shown = dict(hello, descriptor=execution.exec_id, offset=execution.ring.end)
        pass_descriptor(loop, path, shown, descriptor, passed)

    return {"hand_over": hand_over}


def pass_descriptor(
    loop: Loop, path: str, hello: Dict[str, Any], descriptor: int, done: Callable[[bool], None]
) -> None:
    """``done`` is told whether the host has it: HELLO is answered by HELLO, PING, which bears it, by PONG."""
    dialled = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    dialled.setblocking(False)
    decoder = frames.Decoder()

    def end(taken: bool) -> None:
        loop.unwatch(dialled.fileno())
        dialled.close()
        done(taken)

    def ready() -> None:
        try:
            data = dialled.recv(4096)
            answers = list(decoder.feed(data))
            if not data or any(answer.kind not in (frames.HELLO, frames.PONG) for answer in answers):
                end(False)
            elif any(answer.kind == frames.PONG for answer in answers):
                end(True)
            elif answers:
                borne = array.array("i", [descriptor])
                dialled.sendmsg([frames.encode(frames.PING, 0)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, borne)])
        except (OSError, frames.FrameError):
            end(False)

    try:
        dialled.connect(path)
        dialled.sendall(frames.encode_json(frames.HELLO, 0, hello))
    except OSError:
        end(False)
    else:
        loop.watch(dialled.fileno(), READ, ready)
