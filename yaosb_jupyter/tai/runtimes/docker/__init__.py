"""Sandboxes as containers of a Docker engine."""

from yaosb_jupyter.tai.runtimes.docker.runtime import DockerRuntime

__all__ = ["DockerRuntime"]
