"""Reading a tar as it comes, without holding it."""

from __future__ import annotations

import tarfile
from collections.abc import AsyncIterator

from yaosb_jupyter.errors import ProtocolError

_BLOCK = 512
_MAX_EXTENSION = 2**20


class TarReader:
    """Entry after entry of a stream: `next_entry`, then `content`."""

    def __init__(self, source: AsyncIterator[bytes]) -> None:
        self._source = source
        self._held = b""
        self._size = 0

    async def next_entry(self) -> None:
        """Goes to the next file's content; extended headers are passed over."""
        while True:
            try:
                header = tarfile.TarInfo.frombuf(await self._take(_BLOCK), "utf-8", "surrogateescape")
            except tarfile.HeaderError as error:
                raise ProtocolError("the engine's archive is no tar") from error
            if header.type not in (
                tarfile.XHDTYPE,
                tarfile.XGLTYPE,
                tarfile.GNUTYPE_LONGNAME,
                tarfile.GNUTYPE_LONGLINK,
            ):
                self._size = header.size
                return
            if header.size > _MAX_EXTENSION:
                raise ProtocolError("the engine's archive has an endless header")
            await self._take(header.size + -header.size % _BLOCK)

    async def content(self) -> AsyncIterator[bytes]:
        while self._size:
            piece = self._held or await anext(self._source, b"")
            if not piece:
                raise ProtocolError("the engine's archive ends too early")
            self._held = piece[self._size :]
            piece = piece[: self._size]
            self._size -= len(piece)
            yield piece

    async def _take(self, size: int) -> bytes:
        while len(self._held) < size:
            piece = await anext(self._source, b"")
            if not piece:
                raise ProtocolError("the engine's archive ends too early")
            self._held += piece
        taken, self._held = self._held[:size], self._held[size:]
        return taken
