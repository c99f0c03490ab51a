"""A real kernel, as a front end sees it, and the daemon it starts."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from tests.rig.require import TEST_IMAGE
from yaosb_jupyter.daemon.connect import connect_async

PATIENCE = 60.0


@dataclass
class Cell:
    """What one cell sent: messages with the time they arrived, and its reply."""

    messages: list[tuple[float, dict[str, Any]]] = field(default_factory=list)
    reply: dict[str, Any] = field(default_factory=dict)

    def stream(self, name: str) -> str:
        return "".join(text for _, text in self.pieces(name))

    def pieces(self, name: str = "stdout") -> list[tuple[float, str]]:
        return [
            (when, message["content"]["text"])
            for when, message in self.messages
            if message["msg_type"] == "stream" and message["content"]["name"] == name
        ]

    def bundles(self) -> list[dict[str, str]]:
        """Data of displays and of the cell's value."""
        kinds = ("display_data", "execute_result", "update_display_data")
        return [message["content"]["data"] for _, message in self.messages if message["msg_type"] in kinds]

    @property
    def error(self) -> str:
        """The name of the exception it ended with, or ``""``."""
        return str(self.reply.get("ename", ""))

    @property
    def traceback(self) -> list[str]:
        return [line for _, message in self.messages for line in message["content"].get("traceback", [])]


class Kernel:
    """Runs cells in a kernel of its own."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self.manager = manager
        self.client = client

    def send(self, code: str) -> str:
        """Sends a cell, without waiting for it."""
        return str(self.client.execute(code))

    def collect(self, sent: str, until: Callable[[Cell], bool] = lambda _: False) -> Cell:
        """What a cell sends until it has ended, or ``until`` says so."""
        cell = Cell()
        self.gather(sent, cell, until)
        return cell

    def gather(self, sent: str, cell: Cell, until: Callable[[Cell], bool] = lambda _: False) -> None:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            message = self.client.get_iopub_msg(timeout=PATIENCE)
            if message["parent_header"].get("msg_id") != sent:
                continue
            cell.messages.append((time.time(), message))
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                cell.reply = self.reply(sent)
                return
            if until(cell):
                return
        raise AssertionError("the cell does not end")

    def reply(self, sent: str) -> dict[str, Any]:
        """The reply to one request; those to others are passed over."""
        while True:
            reply = self.client.get_shell_msg(timeout=PATIENCE)
            if reply["parent_header"].get("msg_id") == sent:
                return dict(reply["content"])

    def run(self, code: str) -> Cell:
        return self.collect(self.send(code))

    def do(self, code: str) -> Cell:
        """As `run`; the cell must end well."""
        cell = self.run(code)
        assert cell.reply["status"] == "ok", "\n".join(cell.traceback)
        return cell


@contextmanager
def kernel(env: Mapping[str, str], cwd: Path) -> Iterator[Kernel]:
    """A kernel with the magics loaded."""
    manager = KernelManager(kernel_name="python3", transport="ipc", ip=str(cwd / "kernel"))
    manager.start_kernel(env={**os.environ, **env}, cwd=str(cwd))
    client = manager.client()
    try:
        client.start_channels()
        client.wait_for_ready(timeout=PATIENCE)
        running = Kernel(manager, client)
        running.do("%load_ext yaosb_jupyter")
        yield running
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def environment(root: Path, address: str) -> dict[str, str]:
    """For a kernel whose daemon is its own, with one pool."""
    return {
        "YAO_DATA_DIR": str(root / "data"),
        "YAO_TAI_ADDR": address,
        "YAO_SANDBOX_IMAGE": TEST_IMAGE,
        "YAO_CONFIG": os.devnull,
        "IPYTHONDIR": str(root / "ipython"),
    }


def stop_daemon(root: Path, address: str) -> None:
    """Removes what the daemon of `environment` holds, and ends it."""

    async def remove() -> None:
        async with await connect_async() as manager:
            for info in await manager.list():
                await manager.remove(info.uid)

    facts = root / "data/daemon.json"
    if not facts.exists():
        return
    with patch.dict(os.environ, environment(root, address)):
        asyncio.run(remove())
    try:
        daemon = os.pidfd_open(json.loads(facts.read_text())["pid"])
    except ProcessLookupError:
        return
    signal.pidfd_send_signal(daemon, signal.SIGTERM)
    ended, _, _ = select.select([daemon], [], [], PATIENCE)
    os.close(daemon)
    assert ended, "the daemon does not end"
