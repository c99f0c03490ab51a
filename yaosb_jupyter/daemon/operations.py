"""The table of requests: each is one call of the client's `Service`."""

from __future__ import annotations

import contextlib
import functools
import secrets
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, aclosing
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from yaosb_jupyter.core.service import Service
from yaosb_jupyter.daemon import requests as ask
from yaosb_jupyter.daemon.control import Control
from yaosb_jupyter.daemon.held import Departed, follow
from yaosb_jupyter.daemon.lending import lend
from yaosb_jupyter.daemon.offers import Offer
from yaosb_jupyter.daemon.streaming import carry, received, send_data, send_items, send_logs, with_progress
from yaosb_jupyter.errors import NotFoundError, ProtocolError, SandboxError, UnavailableError
from yaosb_jupyter.link.stream import Stream
from yaosb_jupyter.tai.runtimes.base import ExecStream
from yaosb_jupyter.types import ListFilter
from yaosb_jupyter.wire.codec import to_json
from yaosb_jupyter.wire.errors import error_to_json

R = TypeVar("R", bound=ask.Request)


@dataclass(frozen=True, kw_only=True)
class Session:
    """One client's connection: what it may do.

    ``departed`` returns when the client's process has ended; ``offer`` holds a descriptor ready for that process.
    """

    service: Service
    control: Control
    departed: Departed
    offer: Callable[[int], AbstractContextManager[Offer]]


Serve = Callable[[Session, Stream, R], Awaitable[Any]]


async def serve(session: Session, stream: Stream) -> None:
    """Serves one request; what it raises goes to the client."""
    with session.control.serving():
        try:
            kind, handler = _find(stream.request.get("op"))
            value = await handler(session, stream, ask.parse(kind, dict(stream.request)))
        except SandboxError as error:
            stream.fail(error_to_json(error))
        else:
            stream.close({"value": to_json(value)})


def _find(op: Any) -> tuple[type[ask.Request], Serve[Any]]:
    try:
        return _TABLE[op]
    except (KeyError, TypeError):
        raise ProtocolError(f"the daemon does not know {op!r}", hint="it may be an older one: yaosb shutdown") from None


_TABLE: dict[str, tuple[type[ask.Request], Serve[Any]]] = {}


def _serves(kind: type[R]) -> Callable[[Serve[R]], Serve[R]]:
    def enter(handler: Serve[R]) -> Serve[R]:
        _TABLE[kind.op] = (kind, handler)
        return handler

    return enter


@_serves(ask.Create)
async def _create(session: Session, stream: Stream, asked: ask.Create) -> Any:
    return await with_progress(stream, lambda progress: session.service.create(asked.options, progress))


@_serves(ask.GetOrCreate)
async def _get_or_create(session: Session, stream: Stream, asked: ask.GetOrCreate) -> Any:
    return await with_progress(stream, lambda progress: session.service.get_or_create(asked.options, progress))


@_serves(ask.PullImage)
async def _pull_image(session: Session, stream: Stream, asked: ask.PullImage) -> None:
    await with_progress(stream, lambda progress: session.service.pull_image(asked.image, asked.pool, progress))


@_serves(ask.List)
async def _list(session: Session, stream: Stream, asked: ask.List) -> None:
    await send_items(stream, await session.service.list(asked.filter))


@_serves(ask.Pools)
async def _pools(session: Session, stream: Stream, _asked: ask.Pools) -> None:
    await send_items(stream, await session.service.pools())


@_serves(ask.Exec)
async def _exec(session: Session, stream: Stream, asked: ask.Exec) -> Any:
    held = session.control.held.find(asked.options.id)
    if held is None and asked.again:
        with contextlib.suppress(NotFoundError):  # it has not begun
            return await _attach(session, stream, ask.Attach(ref=asked.ref, command_id=asked.options.id, since=0))
    if held is None:
        begin = functools.partial(session.service.exec_stream, asked.ref, asked.options)
        stdin = asked.options.stdin or asked.options.tty is not None
        held = session.control.held.hold(asked.options.id or secrets.token_hex(8), begin, stdin=stdin)
    return await held.serve(stream, 0, session.departed)


@_serves(ask.Attach)
async def _attach(session: Session, stream: Stream, asked: ask.Attach) -> Any:
    held = session.control.held.find(asked.command_id)
    if held is None or asked.since is None:
        command = await session.service.attach(asked.ref, asked.command_id, asked.since, holds=asked.holds)
        if command.background or asked.since is None:
            return await follow(stream, command)

        async def begun() -> ExecStream:
            return command

        held = session.control.held.hold(asked.command_id, begun, since=asked.since)
    assert asked.since is not None
    return await held.serve(stream, asked.since, session.departed)


@_serves(ask.TakeStdout)
async def _take_stdout(session: Session, stream: Stream, asked: ask.TakeStdout) -> bool:
    held = session.control.held.find(asked.command_id)
    pipe = None if held is None else await held.take_stdout()
    if pipe is None:
        return False
    if pipe.closed:
        raise UnavailableError("its output was handed over before", hint="run the command again")
    with session.offer(pipe.fileno()) as offer:
        await stream.send_message({"token": offer.token, "offset": pipe.offset})
        await offer.taken()
    pipe.close()
    return True


@_serves(ask.Control)
async def _control(session: Session, _stream: Stream, asked: ask.Control) -> None:
    signum = asked.signal if session.control.held.first_time(asked.token) else None
    held = session.control.held.find(asked.command_id)
    if held is None:
        return await session.service.control(
            asked.ref, asked.command_id, signal=signum, grace=asked.grace, size=asked.size
        )
    command = await held.command()
    if signum is not None:
        await command.signal(signum)
    if asked.size is not None:
        await command.resize(asked.size)
    if asked.grace is not None:
        await command.cancel(asked.grace)
    return None


@_serves(ask.Commands)
async def _commands(session: Session, stream: Stream, asked: ask.Commands) -> None:
    await send_items(stream, await session.service.commands(asked.ref))


@_serves(ask.Dial)
async def _dial(session: Session, stream: Stream, asked: ask.Dial) -> None:
    async with await session.service.dial(asked.ref, asked.port) as connection:
        await carry(stream, connection)


@_serves(ask.Logs)
async def _logs(session: Session, stream: Stream, asked: ask.Logs) -> None:
    chunks = session.service.logs(asked.ref, follow=asked.follow, tail=asked.tail, since=asked.since)
    async with aclosing(cast(Any, chunks)):
        await send_logs(stream, chunks)


@_serves(ask.FilesRead)
async def _files_read(session: Session, stream: Stream, asked: ask.FilesRead) -> None:
    await send_data(stream, session.service.volume(asked.ref).read(asked.path, offset=asked.offset, size=asked.size))


@_serves(ask.FilesWrite)
async def _files_write(session: Session, stream: Stream, asked: ask.FilesWrite) -> Any:
    async with aclosing(cast(Any, received(stream))) as content:
        return await session.service.volume(asked.ref).write(asked.path, content, mode=asked.mode)


@_serves(ask.FilesManifest)
async def _files_manifest(session: Session, stream: Stream, asked: ask.FilesManifest) -> None:
    await send_data(stream, session.service.volume(asked.ref).manifest(asked.source, checksum=asked.checksum))


@_serves(ask.FilesOpen)
async def _files_open(session: Session, stream: Stream, asked: ask.FilesOpen) -> None:
    async with session.service.volume(asked.ref).opened(asked.path) as file:
        if file is not None:
            await lend(stream, session.offer(file.descriptor))


@_serves(ask.FilesStage)
async def _files_stage(session: Session, stream: Stream, asked: ask.FilesStage) -> Any:
    async with session.service.volume(asked.ref).staged(asked.path, mode=asked.mode) as file:
        if file is None:
            return None
        await lend(stream, session.offer(file.descriptor))
        return await file.commit()


@_serves(ask.FilesPack)
async def _files_pack(session: Session, stream: Stream, asked: ask.FilesPack) -> None:
    async with aclosing(cast(Any, received(stream))) as manifest:
        there = manifest if asked.manifest else None
        await send_data(stream, session.service.volume(asked.ref).pack(asked.source, there))


@_serves(ask.FilesUnpack)
async def _files_unpack(session: Session, stream: Stream, asked: ask.FilesUnpack) -> None:
    async with aclosing(cast(Any, received(stream))) as records:
        await session.service.volume(asked.ref).unpack(asked.target, records)


@_serves(ask.FilesList)
async def _files_list(session: Session, stream: Stream, asked: ask.FilesList) -> None:
    await send_items(stream, await session.service.volume(asked.ref).list(asked.path))


@_serves(ask.DaemonStatus)
async def _daemon_status(session: Session, _stream: Stream, _asked: ask.DaemonStatus) -> Any:
    return session.control.status()


@_serves(ask.DaemonStop)
async def _daemon_stop(session: Session, _stream: Stream, asked: ask.DaemonStop) -> bool:
    others = session.control.status().clients > 1
    if asked.when_unused and (others or await session.service.list(ListFilter())):
        return False
    return session.control.stop(when_idle=asked.when_idle)


def _plain(kind: type[R], call: Callable[[Service, R], Awaitable[Any]]) -> None:
    """A request without anything flowing."""

    async def handler(session: Session, _stream: Stream, asked: R) -> Any:
        return await call(session.service, asked)

    _TABLE[kind.op] = (kind, handler)


_plain(ask.Get, lambda service, asked: service.get(asked.ref))
_plain(ask.Start, lambda service, asked: service.start(asked.ref))
_plain(ask.Stop, lambda service, asked: service.stop(asked.ref, asked.timeout))
_plain(ask.Remove, lambda service, asked: service.remove(asked.ref))
_plain(ask.Spawn, lambda service, asked: service.spawn(asked.ref, asked.options))
_plain(ask.Proxy, lambda service, asked: service.proxy(asked.ref, asked.port, asked.path))
_plain(ask.Vnc, lambda service, asked: service.vnc(asked.ref))
_plain(ask.ProxyHealthz, lambda service, _asked: service.proxy_healthz())
_plain(ask.KillProcess, lambda service, asked: service.kill_process(asked.ref, asked.pattern))
_plain(
    ask.Heartbeat,
    lambda service, asked: service.heartbeat(asked.ref, active=asked.active, process_count=asked.process_count),
)
_plain(ask.Stats, lambda service, asked: service.stats(asked.ref))
_plain(ask.Cleanup, lambda service, _asked: service.cleanup())
_plain(ask.AddPool, lambda service, asked: service.add_pool(asked.spec))
_plain(ask.RemovePool, lambda service, asked: service.remove_pool(asked.name, force=asked.force))
_plain(ask.ImageExists, lambda service, asked: service.image_exists(asked.image, asked.pool))
_plain(ask.FilesStat, lambda service, asked: service.volume(asked.ref).stat(asked.path, follow=asked.follow))
_plain(ask.FilesMkdir, lambda service, asked: service.volume(asked.ref).mkdir(asked.path))
_plain(ask.FilesRemove, lambda service, asked: service.volume(asked.ref).remove(asked.path, recursive=asked.recursive))
_plain(ask.FilesRename, lambda service, asked: service.volume(asked.ref).rename(asked.source, asked.target))

TABLE: Mapping[str, tuple[type[ask.Request], Serve[Any]]] = _TABLE
"""By the name of the request."""
