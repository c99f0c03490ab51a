"""What a sandbox is kept from, told to people from what was found by trying. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from yaosb_jupyter.tai.runtimes.base import Capability
from yaosb_jupyter.tai.runtimes.embedded.options import Means
from yaosb_jupyter.tai.runtimes.embedded.trial import Reach
from yaosb_jupyter.types import Isolation

_MEANS = {
    Means.BUBBLEWRAP: "bubblewrap: namespaces of its own",
    Means.BUBBLEWRAP_OUTER_PROC: "bubblewrap: namespaces of its own, under the host's /proc",
    Means.LANDLOCK: "Landlock and seccomp, no namespaces",
    Means.PLAIN: "no isolation",
}


@dataclass(frozen=True, kw_only=True)
class Found:
    """``alone`` and ``bridged``: the reach of a sandbox without and with a network. ``grouped``: control groups hold
    its limits; ``own_user``: it runs as a user that nothing else has; ``landlock``, ``seccomp``: the kernel has them.
    """

    means: Means
    alone: Reach
    bridged: Reach
    grouped: bool
    own_user: bool
    landlock: bool
    seccomp: bool


def capabilities(found: Found) -> frozenset[Capability]:
    held = {Capability.BACKGROUND, Capability.TERMINALS}
    if found.grouped:
        held |= {Capability.MEMORY_LIMIT, Capability.CPU_LIMIT}
    if found.grouped or found.means.has_namespaces or found.own_user:
        held.add(Capability.PIDS_LIMIT)
    if not found.alone.sees_processes:
        held.add(Capability.OWN_PIDS)
    if found.means is not Means.LANDLOCK:  # which takes sockets away from commands
        held |= {Capability.DIAL, Capability.SERVICES}
    return frozenset(held)


def isolation(found: Found) -> Isolation:
    alone, bridged = found.alone, found.bridged
    return Isolation(
        means=_means(found),
        files=_files(alone),
        metadata=_metadata(alone),
        unix_sockets=_sockets(alone, bridged),
        internet=_with_bridge(alone.network, bridged.network, "none", "open, as from the host"),
        host=_with_bridge(alone.host_ports, bridged.host_ports, "none", "open: servers on the host's loopback too"),
        lan=_with_bridge(
            alone.network, bridged.network, "none", "open, as from the host, a cloud's metadata service included"
        ),
        other_sandboxes=_others(found),
        processes=_processes(alone),
        memory=_memory(found),
        cpu="limited for the whole sandbox" if found.grouped else "none: shared with all of the host",
        pids=_pids(found),
    )


def _means(found: Found) -> str:
    more = [name for name, there in (("Landlock", found.landlock), ("seccomp", found.seccomp)) if there]
    extra = f"; inside also {' and '.join(more)}" if more and found.means.has_namespaces else ""
    user = "; a user of its own" if found.own_user else ""
    return _MEANS[found.means] + extra + user


def _files(reach: Reach) -> str:
    if reach.writes_files:
        return "open: whatever your user can read and write"
    if reach.reads_files:
        return "read only: whatever your user can read"
    return "hidden, but for the host's programs and this Python, which are read-only"


def _metadata(reach: Reach) -> str:
    if reach.changes_metadata:
        return "open: times and modes of your files can be changed"
    return "seen: names, sizes and times, which cannot be changed" if reach.sees_metadata else "hidden"


def _sockets(alone: Reach, bridged: Reach) -> str:
    words = []
    for kind, without, with_bridge in (
        ("those in files", alone.path_sockets, bridged.path_sockets),
        ("abstract ones", alone.abstract_sockets, bridged.abstract_sockets),
    ):
        words.append(f"{kind}: {_with_bridge(without, with_bridge, 'none', 'open')}")
    return "; ".join(words)


def _others(found: Found) -> str:
    if found.means is Means.PLAIN:
        return "open: files and processes, as far as " + ("all may read them" if found.own_user else "your user may")
    if found.alone.sees_processes:
        return "files hidden; their processes are seen" + ("" if found.own_user else ", under the same user")
    return "hidden"


def _processes(reach: Reach) -> str:
    if reach.signals_processes:
        return "open: all are seen, and those of your user can be signalled"
    return "seen, not signalled" if reach.sees_processes else "hidden"


def _memory(found: Found) -> str:
    if found.grouped:
        return "limited for the whole sandbox"
    return "limited per process by the kernel; above it for all together, the largest is ended within a second or so"


def _pids(found: Found) -> str:
    if Capability.PIDS_LIMIT in capabilities(found):
        return "limited for the whole sandbox"
    return "none: they count with all of your user's"


def _with_bridge(alone: bool, bridged: bool, closed: str, opened: str) -> str:
    if alone == bridged:
        return _choose(alone, opened, closed)
    return f"{_choose(alone, opened, closed)}; with network=bridge {_choose(bridged, opened, closed)}"


def _choose(condition: bool, yes: str, no: str) -> str:
    return yes if condition else no
