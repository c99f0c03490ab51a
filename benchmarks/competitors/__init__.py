"""One adapter for each way of running things, by the name it has in the table."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from benchmarks.competitors.base import Adapter, Drained, Place

ADAPTERS: Mapping[str, str] = {
    "yaosb in process": "yaosb:InProcess",
    "yaosb in process, async": "yaosb:InProcessAsync",
    "yaosb daemon": "yaosb:Daemon",
    "yaosb relay": "yaosb:Relay",
    "yaosb embedded": "yaosb:Embedded",
    "host": "host:Host",
    "docker CLI": "docker_cli:DockerCli",
    "docker-py": "docker_py:DockerPy",
    "llm-sandbox": "llm_sandbox:LlmSandbox",
    "testcontainers": "testcontainers:Testcontainers",
    "code-sandboxes": "code_sandboxes:CodeSandboxes",
}


def adapter_class(name: str) -> type[Adapter]:
    """Loaded when it is asked for: a process whose memory is measured holds one of them, not all."""
    module, _, attribute = ADAPTERS[name].partition(":")
    found: type[Adapter] = getattr(importlib.import_module(f"{__name__}.{module}"), attribute)
    return found


__all__ = ["ADAPTERS", "Adapter", "Drained", "Place", "adapter_class"]
