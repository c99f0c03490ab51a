"""Records as tests need them."""

from datetime import UTC, datetime
from typing import Any

from yaosb_jupyter.choices import Lifecycle, Network, Status
from yaosb_jupyter.core.names import new_uid
from yaosb_jupyter.options import CreateOptions, PortMapping
from yaosb_jupyter.types import Isolation, SandboxRecord

CREATED = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)


def make_record(**changes: Any) -> SandboxRecord:
    """One with a value in every field."""
    options = CreateOptions(
        id="lab",
        owner="ann@example.org",
        chat="planning",
        labels={"team": "blue", "note": "mit Ümlaut"},
        pool="near",
        image="python:3.12",
        cmd=("sh", "-c", "sleep 1"),
        workdir="/workspace",
        user="root",
        env={"TOKEN": "secret"},
        memory=2**30,
        cpus=0.5,
        pids=64,
        gpus="all",
        ports=(PortMapping(container_port=8080), PortMapping(container_port=53, protocol="udp")),
        network=Network.NONE,
        vnc=True,
        lifecycle=Lifecycle.LONG_RUNNING,
        idle_timeout=0.5,
        max_lifetime=0.0,
        stop_timeout=3.0,
        workspace="/srv/shared",
    )
    given: dict[str, Any] = {
        "uid": new_uid(),
        "id": options.id,
        "owner": options.owner,
        "pool": options.pool,
        "options": options,
        "status": Status.RUNNING,
        "status_reason": "",
        "runtime_id": "abc",
        "name": "yao-sb-x",
        "ip": "10.0.0.2",
        "ports": (PortMapping(container_port=8080, host_port=32768),),
        "isolation": Isolation(**dict.fromkeys(Isolation.__dataclass_fields__, "as probed")),
        "created_at": CREATED,
        "last_active": CREATED,
        "process_count": 2,
        "address": "unix:///run/docker.sock",
    }
    return SandboxRecord(**(given | changes))
