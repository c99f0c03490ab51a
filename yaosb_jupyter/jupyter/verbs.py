"""The verbs of ``%sandbox``. Each gets the session, its arguments and the cell, and gives what to show."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from yaosb_jupyter.core.sandbox import AsyncSandbox
from yaosb_jupyter.jupyter.arguments import create_fields
from yaosb_jupyter.jupyter.cards import Card, Listing
from yaosb_jupyter.jupyter.copying import copy_in, copy_out
from yaosb_jupyter.jupyter.events import Event
from yaosb_jupyter.jupyter.mailbox import Mailbox
from yaosb_jupyter.jupyter.places import Place, direction
from yaosb_jupyter.jupyter.progress import PullLayers
from yaosb_jupyter.jupyter.session import Session
from yaosb_jupyter.jupyter.views import file_listing, pool_listing, sandbox_card, sandbox_listing, stats_card
from yaosb_jupyter.types import FileInfo, Output, PoolInfo, SandboxInfo

Shown = Card | Listing[Any] | str
"""A card, a table, or a line."""

Verb = Callable[[Session, Namespace, Mailbox[Event]], Awaitable[Shown]]


async def create(session: Session, args: Namespace, mailbox: Mailbox[Event]) -> Card:
    manager = await session.manager()
    layers = PullLayers(args.image or "the image")
    fields = create_fields(args)
    make = manager.get_or_create if args.reuse else manager.create
    sandbox = await make(args.id, progress=lambda step: mailbox.post(layers.add(step)), **fields)
    session.current = sandbox.uid
    return sandbox_card(sandbox.last_info)


async def ls(session: Session, args: Namespace, mailbox: Mailbox[Event]) -> Listing[SandboxInfo]:
    infos = await (await session.manager()).list(status=args.status, pool=args.pool or "")
    return sandbox_listing(infos, session.current)


async def use(session: Session, args: Namespace, mailbox: Mailbox[Event]) -> Card:
    sandbox = await session.sandbox(args.ref)
    session.current = sandbox.uid
    return sandbox_card(await sandbox.info())


async def info(session: Session, args: Namespace, mailbox: Mailbox[Event]) -> Card:
    return sandbox_card(await (await session.sandbox(args.ref)).info())


async def start(session: Session, args: Namespace, mailbox: Mailbox[Event]) -> str:
    started = await _each(session, args.refs, lambda sandbox: sandbox.start())
    return f"running: {started}"


async def stop(session: Session, args: Namespace, mailbox: Mailbox[Event]) -> str:
    stopped = await _each(session, args.refs, lambda sandbox: sandbox.stop(args.timeout))
    return f"stopped: {stopped}; the files are kept"


async def rm(session: Session, args: Namespace, mailbox: Mailbox[Event]) -> str:
    async def remove(sandbox: AsyncSandbox) -> None:
        await sandbox.remove()
        session.forget(sandbox.uid)

    return f"removed: {await _each(session, args.refs, remove)}"


async def logs(session: Session, args: Namespace, mailbox: Mailbox[Event]) -> str:
    sandbox = await session.sandbox(args.ref)
    async for chunk in sandbox.logs(follow=args.follow, tail=args.tail):
        text = chunk.data.decode("utf-8", "replace")
        await mailbox.put(Output(channel=chunk.channel, data=text), weight=len(text))
    return ""


async def stats(session: Session, args: Namespace, mailbox: Mailbox[Event]) -> Card:
    sandbox = await session.sandbox(args.ref)
    now = await sandbox.stats()
    return stats_card(sandbox.last_info, now)


async def pools(session: Session, args: Namespace, mailbox: Mailbox[Event]) -> Listing[PoolInfo]:
    return pool_listing(await (await session.manager()).pools())


async def pull(session: Session, args: Namespace, mailbox: Mailbox[Event]) -> str:
    layers = PullLayers(args.image)
    manager = await session.manager()
    await manager.pull_image(args.image, pool=args.pool, progress=lambda step: mailbox.post(layers.add(step)))
    return f"pulled: {args.image}"


async def files(session: Session, args: Namespace, mailbox: Mailbox[Event]) -> Listing[FileInfo]:
    place = Place.inside(args.path)
    return file_listing(await (await session.sandbox(place.ref or "")).files.list(place.path))


async def cp(session: Session, args: Namespace, mailbox: Mailbox[Event]) -> str:
    source, target = direction(args.source, args.target)
    if source.ref is None:
        sandbox = await session.sandbox(target.ref or "")
        return await copy_in(sandbox, Path(source.path).expanduser(), target.path, mailbox)
    sandbox = await session.sandbox(source.ref)
    return await copy_out(sandbox, source.path, Path(target.path).expanduser(), mailbox)


async def write(session: Session, path: str, content: str, mailbox: Mailbox[Event]) -> str:
    """``%%sbwrite``."""
    place = Place.inside(path)
    sandbox = await session.sandbox(place.ref or "")
    await sandbox.files.write(place.path, content)
    return f"wrote {sandbox.id}:{place.path} ({len(content.encode())} bytes)"


VERBS: dict[str, Verb] = {
    function.__name__: function
    for function in (create, ls, use, info, start, stop, rm, logs, stats, pools, pull, files, cp)
}


async def _each(session: Session, refs: list[str], act: Callable[[AsyncSandbox], Awaitable[object]]) -> str:
    """Acts on each sandbox at once; all are tried, then the first error is raised."""
    sandboxes = [await session.sandbox(ref) for ref in refs or [""]]
    done = await asyncio.gather(*(act(sandbox) for sandbox in sandboxes), return_exceptions=True)
    for outcome in done:
        if isinstance(outcome, BaseException):
            raise outcome
    return ", ".join(sandbox.id for sandbox in sandboxes)
