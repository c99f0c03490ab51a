"""`yaosb image build`: our images on the engine of a pool, with progress for a terminal."""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from yaosb_jupyter.errors import InvalidOptionError
from yaosb_jupyter.images.catalogue import Image
from yaosb_jupyter.images.context import write_context
from yaosb_jupyter.images.platforms import Platform
from yaosb_jupyter.images.wheels import fetch_wheels
from yaosb_jupyter.settings import Settings
from yaosb_jupyter.tai.address import Kind, parse_address
from yaosb_jupyter.tai.runtimes.docker.address import resolve
from yaosb_jupyter.tai.runtimes.docker.builds import Builds
from yaosb_jupyter.tai.runtimes.docker.engine import Engine
from yaosb_jupyter.tai.runtimes.docker.images import Images
from yaosb_jupyter.tai.runtimes.docker.options import DockerOptions
from yaosb_jupyter.types import PoolSpec
from yaosb_jupyter.units import format_size

_STEP = re.compile(r"Step (\d+)/(\d+) : (.*)")
_SHOWN = 90

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Order:
    """What is to be built. ``platform`` None is the engine's own; ``push`` names a registry and a path in it;
    ``rebuild`` builds what is there already."""

    images: Sequence[Image]
    platform: Platform | None = None
    push: str = ""
    rebuild: bool = False
    verbose: bool = False


async def build(order: Order, settings: Settings, say: Say) -> None:
    """Builds, and what the images are made on top of first. Raises `UnavailableError` with what the build said."""
    async with _engine(settings) as engine:
        await _Builder(engine, order, say).build()


class _Builder:
    def __init__(self, engine: Engine, order: Order, say: Say) -> None:
        self._builds = Builds(engine)
        self._present = Images(engine)
        self._order = order
        self._say = say

    async def build(self) -> None:
        own = Platform.parse(await self._builds.platform())
        platform = self._order.platform or own
        for image in dict.fromkeys(each for asked in self._order.images for each in asked.lineage):
            name = image.full_name if platform == own else f"{image.full_name}-{platform.architecture}"
            if self._order.rebuild or not await self._present.exists(name):
                await self._build_one(image, name, platform, foreign=platform != own)
            else:
                self._say(f"{name} is there already, {format_size(await self._builds.size(name))}")
            if platform == own:
                await self._builds.tag(name, image.short_name)
            if self._order.push and image in self._order.images:
                await self._push(name)

    async def _build_one(self, image: Image, name: str, platform: Platform, *, foreign: bool) -> None:
        began = time.monotonic()
        suffix = f"-{platform.architecture}" if foreign else ""
        arguments = {"BASE": f"{image.base.full_name}{suffix}"} if image.base else {}
        with tempfile.TemporaryDirectory(prefix="yaosb-image-") as place:
            wheels = await self._wheels(image, platform, Path(place))
            with tempfile.TemporaryFile() as context:
                await asyncio.to_thread(write_context, image, wheels, context)
                size = context.tell()
                context.seek(0)
                self._say(f"building {name} for {platform}, from {format_size(size)} of files")
                say = self._say if self._order.verbose else _Steps(image.name, self._say)
                await self._builds.build(
                    name, context, arguments=arguments, platform=str(platform) if foreign else "", say=say
                )
        await self._builds.check_platform(name, str(platform))
        size = await self._builds.size(name)
        self._say(f"built {name}, {format_size(size)}, in {time.monotonic() - began:.0f} s")

    async def _wheels(self, image: Image, platform: Platform, place: Path) -> Path | None:
        if image.requirements is None:
            return None
        self._say(f"{image.name}: fetching wheels")
        wheels = place / "wheels"
        await fetch_wheels(image.requirements, platform, wheels)
        found = await asyncio.to_thread(lambda: [path.stat().st_size for path in wheels.iterdir()])
        self._say(f"{image.name}: {len(found)} wheels, {format_size(sum(found))}")
        return wheels

    async def _push(self, name: str) -> None:
        target = f"{self._order.push.rstrip('/')}/{name.partition('/')[2]}"
        await self._builds.tag(name, target)
        self._say(f"pushing {target}")
        await self._builds.push(target, self._say if self._order.verbose else lambda _: None)
        self._say(f"pushed {target}")


class _Steps:
    """Tells the steps of a build, without what their commands print."""

    def __init__(self, name: str, say: Say) -> None:
        self._name = name
        self._say = say

    def __call__(self, line: str) -> None:
        if step := _STEP.match(line):
            words = " ".join(step[3].split())
            self._say(f"{self._name} {step[1]}/{step[2]}  {words if len(words) <= _SHOWN else words[:_SHOWN] + ' ...'}")


@asynccontextmanager
async def _engine(settings: Settings) -> AsyncIterator[Engine]:
    spec = _pool(settings)
    address = await asyncio.to_thread(
        resolve, spec.address, DockerOptions.parse(spec.options), environ=os.environ, home=Path.home()
    )
    engine = Engine(address)
    try:
        await engine.open()
        yield engine
    finally:
        await engine.close()


def _pool(settings: Settings) -> PoolSpec:
    """The first with a Docker engine, or where one is looked for."""
    for spec in settings.all_pools():
        kind = parse_address(spec.address).kind
        if kind is Kind.DOCKER:
            return spec
        if kind is Kind.CHOOSE:
            return PoolSpec(name=spec.name, address="local")
    raise InvalidOptionError("no pool has a Docker engine, which builds the images", hint="YAO_TAI_ADDR=local")
