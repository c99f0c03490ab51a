"""Gives each sandbox its user: ids allocated among those in use, and the image's own users."""

from __future__ import annotations

import asyncio
import io
import os
import tarfile
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from yaosb_jupyter.errors import NotFoundError
from yaosb_jupyter.tai.runtimes.base import EnvironmentSpec
from yaosb_jupyter.tai.runtimes.docker.containers import create_container, discard
from yaosb_jupyter.tai.runtimes.docker.engine import Engine
from yaosb_jupyter.tai.runtimes.docker.options import UidRange
from yaosb_jupyter.tai.runtimes.docker.probe import EngineFacts
from yaosb_jupyter.tai.runtimes.docker.spec import UID_LABEL, own_workspace
from yaosb_jupyter.tai.runtimes.docker.throwaway import throwaway_labels
from yaosb_jupyter.tai.runtimes.docker.users import Identity, allocate, is_known, named_identity
from yaosb_jupyter.tai.runtimes.docker.workspace import owner

_REMAPPED_IDS = UidRange(first=10_000, last=59_999)
_MAX_IMAGES = 100


class Accounts:
    """Identities on one engine."""

    def __init__(self, engine: Engine, facts: EngineFacts, ids: UidRange | None, *, shared: bool) -> None:
        self._engine = engine
        self._facts = facts
        self._ids = ids or (_REMAPPED_IDS if facts.remapped else UidRange())
        self._shared = shared
        self._pending: set[int] = set()
        self._reading = asyncio.Lock()
        self._files: OrderedDict[str, tuple[str, str]] = OrderedDict()

    @property
    def own_uids(self) -> bool:
        """Whether each sandbox gets a user id of its own."""
        return not self._facts.rootless and (os.geteuid() == 0 or not self._shared)

    @asynccontextmanager
    async def identity(self, spec: EnvironmentSpec, image_id: str) -> AsyncIterator[Identity]:
        """The sandbox's user; its id is held until the container that has it exists."""
        if spec.user:
            passwd, group = await self.image_files(image_id)
            yield named_identity(spec.user, passwd, group)
            return
        uid, gid = await self._unprivileged(spec)
        self._pending.add(uid)
        try:
            passwd, _ = await self.image_files(image_id)
            yield Identity(uid=uid, gid=gid, known=is_known(uid, passwd))
        finally:
            self._pending.discard(uid)

    async def _unprivileged(self, spec: EnvironmentSpec) -> tuple[int, int]:
        if self._facts.rootless:
            return 0, 0
        if not self.own_uids:
            return os.geteuid(), os.getegid()
        if self._shared and not own_workspace(spec):
            uid, gid = await asyncio.to_thread(owner, spec.workspace)
            if uid:
                return uid, gid
        uid = allocate(spec.uid, self._ids, await self._taken() | self._pending)
        return uid, uid

    async def _taken(self) -> set[int]:
        found = await self._engine.call(lambda client: client.containers(all=True, filters={"label": UID_LABEL}))
        return {int(each["Labels"][UID_LABEL]) for each in found}

    async def image_files(self, image_id: str) -> tuple[str, str]:
        """The image's passwd and group, read once."""
        async with self._reading:
            if image_id not in self._files:
                self._files[image_id] = await self._read_files(image_id)
                if len(self._files) > _MAX_IMAGES:
                    self._files.popitem(last=False)
            return self._files[image_id]

    async def _read_files(self, image_id: str) -> tuple[str, str]:
        labels = await throwaway_labels()
        body = {"Image": image_id, "Entrypoint": ["none"], "Labels": labels, "HostConfig": {"NetworkMode": "none"}}
        container = await create_container(self._engine, body)
        try:
            return await self._read(container, "/etc/passwd"), await self._read(container, "/etc/group")
        finally:
            await discard(self._engine, container)

    async def _read(self, container: str, path: str) -> str:
        target = self._engine.target("containers", container, "archive", path=path)
        try:
            async with self._engine.stream("GET", target) as response:
                archive = b"".join([piece async for piece in response.chunks()])
        except NotFoundError:
            return ""
        return await asyncio.to_thread(_first_file, archive)


def _first_file(archive: bytes) -> str:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        entry = tar.next()
        file = tar.extractfile(entry) if entry is not None and entry.isreg() else None
        return file.read().decode(errors="replace") if file is not None else ""
