"""Reading a tar as it comes, without holding it."""

from __future__ import annotations

import tarfile
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

from yaosb_jupyter.errors import ProtocolError

_BLOCK = 512
_MAX_EXTENSION = 2**20


@dataclass(frozen=True, kw_only=True)
class TarEntry:
    """``kind`` as `tarfile` names types; ``mtime`` in nanoseconds since 1970."""

    path: str
    kind: bytes
    mode: int
    mtime: int
    size: int

    @property
    def is_file(self) -> bool:
        return self.kind in tarfile.REGULAR_TYPES

    @property
    def is_directory(self) -> bool:
        return self.kind == tarfile.DIRTYPE

    @property
    def is_hard_link(self) -> bool:
        """To a file that came before; its content is not told again."""
        return self.kind == tarfile.LNKTYPE


class TarReader:
    """Entry after entry of a stream: `next_entry`, then `content`. Raises `ProtocolError` for what is no tar."""

    def __init__(self, source: AsyncIterator[bytes]) -> None:
        self._source = source
        self._held = b""
        self._left = 0
        self._padding = 0

    async def next_entry(self) -> TarEntry | None:
        """The next one; None after the last. What is left of the content before is passed over."""
        async for _ in self.content():
            pass
        await self._take(self._padding)
        self._padding = 0
        told: dict[str, str] = {}
        while (block := await self._take(_BLOCK)) != bytes(_BLOCK):
            try:
                header = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
            except tarfile.HeaderError as error:
                raise ProtocolError("the engine's archive is no tar") from error
            if header.type == tarfile.XHDTYPE:
                told |= _records(await self._extension(header.size))
            elif header.type == tarfile.GNUTYPE_LONGNAME:
                told["path"] = _text((await self._extension(header.size)).rstrip(b"\0"))
            elif header.type in (tarfile.XGLTYPE, tarfile.GNUTYPE_LONGLINK):
                await self._extension(header.size)
            else:
                return self._entry(header, told)
        return None

    def _entry(self, header: tarfile.TarInfo, told: Mapping[str, str]) -> TarEntry:
        try:
            size = int(told.get("size", header.size)) if header.isreg() else 0
            mtime = _nanoseconds(told.get("mtime", str(int(header.mtime))))
        except ValueError as error:
            raise ProtocolError("the engine's archive tells a size or time that is none") from error
        self._left, self._padding = size, -size % _BLOCK
        path = told.get("path", header.name).rstrip("/")
        return TarEntry(path=path, kind=header.type, mode=header.mode, mtime=mtime, size=size)

    async def content(self) -> AsyncIterator[bytes]:
        while self._left:
            piece = self._held or await anext(self._source, b"")
            if not piece:
                raise ProtocolError("the engine's archive ends too early")
            self._held = piece[self._left :]
            piece = piece[: self._left]
            self._left -= len(piece)
            yield piece

    async def _extension(self, size: int) -> bytes:
        if size > _MAX_EXTENSION:
            raise ProtocolError("the engine's archive has an endless header")
        return (await self._take(size + -size % _BLOCK))[:size]

    async def _take(self, size: int) -> bytes:
        while len(self._held) < size:
            piece = await anext(self._source, b"")
            if not piece:
                raise ProtocolError("the engine's archive ends too early")
            self._held += piece
        taken, self._held = self._held[:size], self._held[size:]
        return taken


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _nanoseconds(seconds: str) -> int:
    """Of a decimal fraction, exactly."""
    whole, _, fraction = seconds.partition(".")
    return int(whole) * 10**9 + int(f"{fraction:0<9.9}")


def _records(extension: bytes) -> dict[str, str]:
    """Of a pax header: ``LENGTH KEY=VALUE`` and a newline each, all of which the length counts."""
    found: dict[str, str] = {}
    while extension:
        length, _, rest = extension.partition(b" ")
        size = int(length) - len(length) - 1 if length.isdigit() else 0
        key, separator, value = rest[: max(size - 1, 0)].partition(b"=")
        if not separator or rest[size - 1 : size] != b"\n":
            raise ProtocolError("the engine's archive has a header that cannot be read")
        found[_text(key)] = _text(value)
        extension = rest[size:]
    return found
