"""The runtime of the tests."""

from __future__ import annotations

from yaosb_jupyter.tai.runtimes.memory.engine import MemoryEngine, named_engine
from yaosb_jupyter.tai.runtimes.memory.runtime import MemoryRuntime

__all__ = ["MemoryEngine", "MemoryRuntime", "named_engine"]
