"""Sandboxes without an engine: processes of this host, kept in by namespaces, Landlock and seccomp."""

from yaosb_jupyter.tai.runtimes.embedded.runtime import EmbeddedRuntime

__all__ = ["EmbeddedRuntime"]
