"""The operations on files, whose modules are loaded when the first of them is asked for: most guests serve none."""

from __future__ import annotations

from .link import Stream
from .loop import Loop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict

    Operation = Callable[[Stream, Dict[str, Any]], None]

NAMES = ("read", "write", "stat", "list", "mkdir", "remove", "rename", "watch", "manifest", "pack", "unpack")


def operations(loop: Loop, workdir: str) -> Dict[str, Operation]:
    """Those on the files below ``workdir``."""
    loaded: Dict[str, Operation] = {}

    def serve(stream: Stream, request: Dict[str, Any]) -> None:
        if not loaded:
            try:
                from . import files
            except ImportError as error:  # confined, the guest may not reach its own program any more
                stream.fail("UnavailableError", "the guest cannot serve files here: %s" % error)
                return
            loaded.update(files.operations(loop, workdir))
        loaded[request["op"]](stream, request)

    return dict.fromkeys(["files.%s" % name for name in NAMES], serve)
