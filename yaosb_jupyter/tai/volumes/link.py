"""The volume of a workspace that only the guest in its sandbox can reach.

The guest is not trusted: what it says is checked, what it sends is bounded by what was asked for, and each of its
answers is waited for only so long.
"""

from __future__ import annotations

import errno
import math
import os
import stat
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager
from typing import Annotated, Any, TypeVar

import msgspec

from yaosb_jupyter.choices import FileChange
from yaosb_jupyter.errors import NotAvailableError, ProtocolError, SandboxLostError, UnavailableError
from yaosb_jupyter.guest import frames
from yaosb_jupyter.guest.confined import Entry
from yaosb_jupyter.guest.records import MAX_NAME, RecordError, checked_name
from yaosb_jupyter.guest.walk import TreeError
from yaosb_jupyter.link.connection import Connection, RemoteError, Stream
from yaosb_jupyter.link.patience import Resting, awake, never
from yaosb_jupyter.tai.volumes.base import Volume
from yaosb_jupyter.tai.volumes.paths import file_info, path_errors, split_named, split_path
from yaosb_jupyter.types import FileEvent, FileInfo

PATIENCE = 60.0
"""How long a guest may take for its next answer; one that works says so more often."""
_MOST_ENTRIES = 250_000
_MOST_EVENTS = 1000
_PIECE = 1 << 20
_MANIFEST = "files.manifest"
_OF_TREES = (_MANIFEST, "files.pack", "files.unpack")
"""Guests that know no manifests have records of another form, too."""

T = TypeVar("T")


class _Told(msgspec.Struct, frozen=True, kw_only=True):
    """What a guest may tell of a file; everything else is refused."""

    name: str
    size: Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
    mode: Annotated[int, msgspec.Meta(ge=0, lt=1 << 16)]
    mtime: float
    target: Annotated[str, msgspec.Meta(max_length=4096)] | None = None


class _Changed(msgspec.Struct, frozen=True, kw_only=True):
    event: FileChange
    name: str


class LinkVolume(Volume):
    """Files through a link. ``connect`` gives its connection; it raises `SandboxLostError` where there is none.

    While the guest is ``resting`` no answer is expected.
    """

    def __init__(
        self, connect: Callable[[], Awaitable[Connection]], *, sandbox: str = "", resting: Resting = never
    ) -> None:
        self._connect = connect
        self._sandbox = sandbox
        self._resting = resting

    async def read(self, path: str, *, offset: int = 0, size: int | None = None) -> AsyncIterator[bytes]:
        left = math.inf if size is None else size
        async with self._stream("files.read", path, self._named(path), offset=offset, size=size) as stream:
            async for data in self._data(stream, path):
                left -= len(data)
                if left < 0:
                    raise self._lie("more of a file than was asked for")
                yield data

    async def write(self, path: str, content: AsyncIterable[bytes], *, mode: int | None = None) -> FileInfo:
        names = self._named(path)
        async with self._stream("files.write", path, names, mode=mode) as stream:
            await self._send(stream, path, content)
            result = await self._ended(stream, path)
            return file_info(names, self._entry({**result, "name": names[-1]}))

    async def stat(self, path: str, *, follow: bool = False) -> FileInfo:
        names = self._names(path)
        result = await self._call("files.stat", path, names, follow=follow)
        return file_info(names, self._entry({**result, "name": ""}))

    async def list(self, path: str = "") -> Sequence[FileInfo]:
        names = self._names(path)
        found: list[Entry] = []
        async with self._stream("files.list", path, names) as stream:
            async for message in self._messages(stream, path):
                found.extend(self._entries(message))
                if len(found) > _MOST_ENTRIES:
                    raise UnavailableError(
                        f"{path!r} has more than {_MOST_ENTRIES} entries",
                        sandbox=self._sandbox or None,
                        hint="list it by a command inside",
                    )
        return [file_info((*names, entry.name), entry) for entry in sorted(found, key=lambda entry: entry.name)]

    async def mkdir(self, path: str) -> None:
        await self._call("files.mkdir", path, self._names(path))

    async def remove(self, path: str, *, recursive: bool = False) -> None:
        await self._call("files.remove", path, self._named(path), recursive=recursive)

    async def rename(self, source: str, target: str) -> None:
        names = self._named(source)
        await self._call("files.rename", f"{source} -> {target}", names, target=self._named(target))

    async def manifest(self, source: str, *, checksum: bool = False) -> AsyncIterator[bytes]:
        names = self._names(source)
        async with self._stream(_MANIFEST, source, names, checksum=checksum) as stream:
            async for data in self._data(stream, source):
                yield data

    async def pack(self, source: str, there: AsyncIterable[bytes] | None = None) -> AsyncIterator[bytes]:
        names = self._names(source)
        async with self._stream("files.pack", source, names, manifest=there is not None) as stream:
            if there is not None:
                await self._send(stream, source, there)
            async for data in self._data(stream, source):
                yield data

    async def unpack(self, target: str, records: AsyncIterable[bytes]) -> None:
        async with self._stream("files.unpack", target, self._names(target)) as stream:
            await self._send(stream, target, records)
            await self._ended(stream, target)

    async def watch(self, path: str = "") -> AsyncIterator[FileEvent]:
        """What changes in a directory, until it is left or the directory is removed. Waits as long as nothing does."""
        names = self._names(path)
        async with self._stream("files.watch", path, names) as stream:
            async for message in self._messages(stream, path, forever=True):
                for changed in self._converted(message.get("events"), list[_Changed])[:_MOST_EVENTS]:
                    self._check_name(changed.name)
                    yield FileEvent(change=changed.event, path="/".join((*names, changed.name)))

    # Streams

    @asynccontextmanager
    async def _stream(self, operation: str, path: str, names: Sequence[str], **arguments: Any) -> AsyncIterator[Stream]:
        """Left early, the operation is cancelled, and the guest has let go of the files then."""
        connection = await self._connect()
        if operation in _OF_TREES and _MANIFEST not in connection.features:
            raise NotAvailableError(
                "its guest is too old to copy trees",
                sandbox=self._sandbox or None,
                hint="stop and start the sandbox, which renews it",
            )
        with self._errors(path):
            stream = connection.open(operation, {"names": names, **arguments})
        try:
            yield stream
        finally:
            await stream.let_go()

    async def _call(self, operation: str, path: str, names: Sequence[str], **arguments: Any) -> Mapping[str, Any]:
        async with self._stream(operation, path, names, **arguments) as stream:
            return await self._ended(stream, path)

    async def _data(self, stream: Stream, path: str) -> AsyncGenerator[bytes]:
        while (item := await self._receive(stream, path)) is not None:
            if item[0] == frames.DATA:
                yield item[1]
        await self._result(stream, path)

    async def _messages(self, stream: Stream, path: str, *, forever: bool = False) -> AsyncGenerator[Mapping[str, Any]]:
        while (item := await self._receive(stream, path, forever=forever)) is not None:
            if item[0] == frames.MESSAGE:
                with self._errors(path):
                    message = frames.decode_json(item[1])
                if "busy" not in message:
                    yield message
        await self._result(stream, path)

    async def _send(self, stream: Stream, path: str, content: AsyncIterable[bytes]) -> None:
        """Sends data to its end."""
        async for data in content:
            for start in range(0, len(data), _PIECE):
                await self._patient(stream.send(memoryview(data)[start : start + _PIECE]), path)
            if stream.closed:
                break  # refused; the answer tells why
        await self._patient(stream.send_eof(), path)

    async def _ended(self, stream: Stream, path: str) -> Mapping[str, Any]:
        """The result, when it is there."""
        async for _ in self._messages(stream, path):
            pass
        return await self._result(stream, path)

    async def _receive(self, stream: Stream, path: str, *, forever: bool = False) -> tuple[int, bytes] | None:
        return await self._patient(stream.receive(), path, forever=forever)

    async def _result(self, stream: Stream, path: str) -> Mapping[str, Any]:
        return await self._patient(stream.result(), path)

    async def _patient(self, answer: Awaitable[T], path: str, *, forever: bool = False) -> T:
        try:
            async with awake(None if forever else PATIENCE, self._resting):
                with self._errors(path):
                    return await answer
        except TimeoutError:
            raise UnavailableError(
                f"{path!r}: its guest has not answered for {PATIENCE:g} s",
                sandbox=self._sandbox or None,
                hint="stop and start the sandbox",
            ) from None

    # What is told

    @contextmanager
    def _errors(self, path: str) -> Iterator[None]:
        with path_errors(path, self._sandbox):
            try:
                yield
            except RemoteError as error:
                raise _refusal(error) from error
            except (ConnectionError, ProtocolError, frames.FrameError) as error:
                raise SandboxLostError(f"its link broke ({error})") from error

    def _names(self, path: str) -> tuple[str, ...]:
        with path_errors(path, self._sandbox):
            return split_path(path)

    def _named(self, path: str) -> tuple[str, ...]:
        with path_errors(path, self._sandbox):
            return split_named(path)

    def _entry(self, value: Any) -> Entry:
        told = self._converted(value, _Told)
        target = told.target if stat.S_ISLNK(told.mode) else None
        return Entry(told.name, told.size, told.mode, told.mtime if math.isfinite(told.mtime) else 0.0, target)

    def _entries(self, message: Mapping[str, Any]) -> Iterator[Entry]:
        entries = message.get("entries")
        for value in entries if isinstance(entries, list) else ():
            entry = self._entry(value)
            self._check_name(entry.name)
            yield entry

    def _converted(self, value: Any, kind: type[T]) -> T:
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            raise self._lie(str(error)) from error

    def _check_name(self, name: str) -> None:
        try:
            good = bool(checked_name(os.fsencode(name)))
        except (RecordError, UnicodeEncodeError):
            good = False
        if not good or len(name) > MAX_NAME:
            raise self._lie(f"a file is called {name[:100]!r}")

    def _lie(self, what: str) -> ProtocolError:
        return ProtocolError(f"its guest tells what cannot be: {what}", sandbox=self._sandbox or None)


def _refusal(error: RemoteError) -> Exception:
    """What the guest could not do, as the same work on this machine would raise it."""
    code, at = error.fields.get("errno"), error.fields.get("at")
    if error.code == "RecordError":
        return RecordError(str(error)[:200])
    if error.code == "OSError" and isinstance(code, int) and code in errno.errorcode:
        return (
            TreeError(code, os.strerror(code), at[:4096]) if isinstance(at, str) else OSError(code, os.strerror(code))
        )
    return UnavailableError(f"its guest refused: {str(error)[:200]}")
