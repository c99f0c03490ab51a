"""Ports inside a sandbox: until one is served, and what it answers."""

from __future__ import annotations

import asyncio

from yaosb_jupyter.core.sandbox import AsyncSandbox
from yaosb_jupyter.errors import PortUnavailableError

PATIENCE = 30.0


async def served(sandbox: AsyncSandbox, port: int) -> None:
    """Waits until something listens at ``port``."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await (await sandbox.dial(port)).aclose()
            except PortUnavailableError:
                await asyncio.sleep(0.05)
            else:
                return


async def answer(sandbox: AsyncSandbox, port: int, path: str) -> bytes:
    """What an HTTP server there answers, head and body."""
    connection = await sandbox.dial(port)
    try:
        await connection.send(f"GET {path} HTTP/1.1\r\nHost: sandbox\r\nConnection: close\r\n\r\n".encode())
        got = b""
        async with asyncio.timeout(PATIENCE):
            while piece := await connection.receive():
                got += piece
        return got
    finally:
        await connection.aclose()
