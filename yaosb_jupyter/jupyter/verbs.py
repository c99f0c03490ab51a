"""The verbs of ``%sandbox``."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from yaosb_jupyter.choices import ExecChannel, VncStatus
from yaosb_jupyter.core.commands.output import decoder
from yaosb_jupyter.core.files.copies import CopyOptions
from yaosb_jupyter.core.files.places import Place
from yaosb_jupyter.core.sandbox import AsyncSandbox
from yaosb_jupyter.jupyter.arguments import create_fields
from yaosb_jupyter.jupyter.cards import Card, Listing
from yaosb_jupyter.jupyter.copying import copy
from yaosb_jupyter.jupyter.events import Event
from yaosb_jupyter.jupyter.links import DesktopLink, PortLink
from yaosb_jupyter.jupyter.mailbox import Mailbox
from yaosb_jupyter.jupyter.progress import PullLayers
from yaosb_jupyter.jupyter.scriptfiles import is_script
from yaosb_jupyter.jupyter.session import Session
from yaosb_jupyter.jupyter.views import (
    SandboxCard,
    StatsCard,
    file_listing,
    pool_listing,
    sandbox_card,
    sandbox_listing,
    stats_card,
)
from yaosb_jupyter.types import FileInfo, Output, PoolInfo, PullProgress, SandboxInfo
from yaosb_jupyter.units import format_size

_DESKTOP_PATIENCE = 10.0

Shown = Card | Listing[Any] | PortLink | DesktopLink | str
"""A card, a table, a link, or a line."""


class Verbs:
    """Each gets its arguments and gives what to show; what there is to tell meanwhile goes to the mailbox."""

    def __init__(self, session: Session, mailbox: Mailbox[Event]) -> None:
        self._session = session
        self._mailbox = mailbox

    async def create(self, args: Namespace) -> SandboxCard:
        manager = await self._session.manager()
        layers = PullLayers(args.image or "the image")
        make = manager.get_or_create if args.reuse else manager.create
        sandbox = await make(args.id, progress=self._pulling(layers), **create_fields(args))
        self._session.use(sandbox)
        return sandbox_card(sandbox.last_info)

    async def ls(self, args: Namespace) -> Listing[SandboxInfo]:
        infos = await (await self._session.manager()).list(status=args.status, pool=args.pool)
        return sandbox_listing(infos, self._session.current)

    async def use(self, args: Namespace) -> SandboxCard:
        sandbox = await self._session.sandbox(args.ref)
        self._session.use(sandbox)
        return sandbox_card(sandbox.last_info)

    async def info(self, args: Namespace) -> SandboxCard:
        return sandbox_card((await self._session.sandbox(args.ref)).last_info)

    async def start(self, args: Namespace) -> str:
        return f"running: {await self._each(args.refs, lambda sandbox: sandbox.start())}"

    async def stop(self, args: Namespace) -> str:
        stopped = await self._each(args.refs, lambda sandbox: sandbox.stop(args.timeout))
        return f"stopped, files kept: {stopped}"

    async def rm(self, args: Namespace) -> str:
        async def remove(sandbox: AsyncSandbox) -> None:
            await sandbox.remove()
            self._session.forget(sandbox)

        return f"removed: {await self._each(args.refs, remove)}"

    async def logs(self, args: Namespace) -> str:
        sandbox = await self._session.sandbox(args.ref)
        decoders = {channel: decoder("utf-8", "replace") for channel in ExecChannel}
        async for chunk in sandbox.logs(follow=args.follow, tail=args.tail):
            text = decoders[chunk.channel](chunk.data, False)
            await self._mailbox.put(Output(channel=chunk.channel, data=text), weight=len(text))
        return ""

    async def stats(self, args: Namespace) -> StatsCard:
        sandbox = await self._session.sandbox(args.ref)
        return stats_card(sandbox.last_info, await sandbox.stats())

    async def pools(self, _args: Namespace) -> Listing[PoolInfo]:
        return pool_listing(await (await self._session.manager()).pools())

    async def pull(self, args: Namespace) -> str:
        manager = await self._session.manager()
        await manager.pull_image(args.image, pool=args.pool, progress=self._pulling(PullLayers(args.image)))
        return f"pulled: {args.image}"

    async def files(self, args: Namespace) -> Listing[FileInfo]:
        place = Place.inside(args.path)
        sandbox = await self._session.sandbox(place.ref or "")
        there = await sandbox.files.stat(place.path, follow=True)
        files = await sandbox.files.list(place.path) if there.is_dir else [there]
        return file_listing([file for file in files if not is_script(file.name)], title=f"{sandbox.id}:{there.path}")

    async def cp(self, args: Namespace) -> str:
        sources = [Place.parse(source) for source in args.sources]
        options = CopyOptions(checksum=args.checksum, max_size=args.max_size)
        return await copy(self._session.sandbox, sources, Place.parse(args.target), self._mailbox, options)

    async def proxy(self, args: Namespace) -> PortLink:
        sandbox = await self._session.sandbox(args.ref)
        url = await sandbox.proxy(args.port, args.page)
        return PortLink(sandbox=sandbox.id, port=args.port, url=url, show=args.show)

    async def vnc(self, args: Namespace) -> DesktopLink:
        """Waits a little while it starts; the page can be opened before, too."""
        sandbox = await self._session.sandbox(args.ref)
        desktop = await sandbox.vnc()
        with suppress(TimeoutError):
            async with asyncio.timeout(_DESKTOP_PATIENCE):
                while desktop.status is VncStatus.STARTING:
                    await asyncio.sleep(0.2)  # there is no event for it
                    desktop = await sandbox.vnc()
        return DesktopLink(sandbox=sandbox.id, desktop=desktop, show=args.show)

    async def write(self, path: str, content: str) -> str:
        """``%%sbwrite``."""
        place = Place.inside(path)
        sandbox = await self._session.sandbox(place.ref or "")
        written = await sandbox.files.write(place.path, content)
        return f"wrote {sandbox.id}:{place.path} ({format_size(written.size)})"

    def _pulling(self, layers: PullLayers) -> Callable[[PullProgress], None]:
        return lambda step: self._mailbox.post(layers.add(step))

    async def _each(self, refs: list[str], act: Callable[[AsyncSandbox], Awaitable[object]]) -> str:
        """Acts on each sandbox at once; all are tried, then the first error is raised."""
        sandboxes = [await self._session.sandbox(ref) for ref in refs or [""]]
        done = await asyncio.gather(*(act(sandbox) for sandbox in sandboxes), return_exceptions=True)
        for outcome in done:
            if isinstance(outcome, BaseException):
                raise outcome
        return ", ".join(sandbox.id for sandbox in sandboxes)
