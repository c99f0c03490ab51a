"""A process that takes big output through one adapter and tells its own peak memory.

``python -m benchmarks.peak NAME PLACE SIZE`` prints ``{"peak": BYTES}`` or ``{"absent": REASON}``.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from benchmarks.competitors import Place, adapter_class
from benchmarks.harness import AbsentError
from benchmarks.output import drained, zeros


def main(name: str, place: str, size: str) -> None:
    given = json.loads(place)
    try:
        with adapter_class(name)(Place(**{**given, "root": Path(given["root"])})) as adapter:
            drained(adapter, zeros, int(size), text=False)
            told: dict[str, object] = {"peak": peak()}
    except AbsentError as reason:
        told = {"absent": str(reason)}
    print(json.dumps(told))


def peak() -> int:
    """Bytes. Not `resource.ru_maxrss`, which a child made by vfork inherits from its parent."""
    found = re.search(r"^VmHWM:\s*(\d+) kB$", Path("/proc/self/status").read_text(encoding="ascii"), re.MULTILINE)
    if found is None:
        raise RuntimeError("the kernel does not tell VmHWM")
    return int(found[1]) * 1024


if __name__ == "__main__":
    main(*sys.argv[1:])
