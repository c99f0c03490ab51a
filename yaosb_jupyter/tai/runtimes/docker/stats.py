"""Use of resources, from the engine's one-shot figures: CPU needs two of them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from yaosb_jupyter.errors import NotRunningError
from yaosb_jupyter.tai.runtimes.docker.engine import Engine
from yaosb_jupyter.types import SandboxStats

_FRESH_SECONDS = 30.0
_SHORTEST_SECONDS = 0.1


@dataclass(frozen=True, kw_only=True)
class Sample:
    """CPU time in nanoseconds at a moment of the engine's clock, in seconds."""

    cpu: int
    at: float

    @classmethod
    def of(cls, figures: Mapping[str, Any]) -> Sample:
        cpu = figures.get("cpu_stats", {}).get("cpu_usage", {}).get("total_usage", 0)
        return cls(cpu=int(cpu), at=datetime.fromisoformat(figures["read"]).timestamp())


class StatsReader:
    """Keeps each container's last sample: a call needs one more, for which the engine takes up to a second."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._samples: dict[str, Sample] = {}

    async def read(self, runtime_id: str) -> SandboxStats:
        figures = await self._figures(runtime_id)
        sample, before = Sample.of(figures), self._samples.get(runtime_id)
        if before is None or not _SHORTEST_SECONDS <= sample.at - before.at <= _FRESH_SECONDS:
            await asyncio.sleep(_SHORTEST_SECONDS)
            figures = await self._figures(runtime_id)
            sample, before = Sample.of(figures), sample
        self._samples[runtime_id] = sample
        return stats_of(figures, before, sample)

    def forget(self, runtime_id: str) -> None:
        self._samples.pop(runtime_id, None)

    async def _figures(self, runtime_id: str) -> Mapping[str, Any]:
        figures: Mapping[str, Any] = await self._engine.call(
            lambda client: client.stats(runtime_id, stream=False, one_shot=True), sandbox=runtime_id
        )
        if not figures.get("pids_stats", {}).get("current") and not figures.get("memory_stats"):
            raise NotRunningError("the container is not running", sandbox=runtime_id, hint="start it first")
        return figures


def stats_of(figures: Mapping[str, Any], before: Sample, sample: Sample) -> SandboxStats:
    memory = figures.get("memory_stats", {})
    details = memory.get("stats", {})
    cache = details.get("total_inactive_file", details.get("inactive_file", 0))
    networks = (figures.get("networks") or {}).values()
    elapsed = max(sample.at - before.at, 1e-9)
    return SandboxStats(
        cpu_percent=max(0.0, (sample.cpu - before.cpu) / 1e9 / elapsed * 100),
        memory=max(0, memory.get("usage", 0) - cache),
        memory_limit=memory.get("limit", 0),
        pids=figures.get("pids_stats", {}).get("current", 0),
        network_rx=sum(network["rx_bytes"] for network in networks),
        network_tx=sum(network["tx_bytes"] for network in networks),
    )
