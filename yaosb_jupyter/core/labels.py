"""Records <-> the labels of an environment, so that a sandbox can be restored when its record is lost. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import msgspec

from yaosb_jupyter.checks import RESERVED_LABELS
from yaosb_jupyter.core.names import new_id, owner_label
from yaosb_jupyter.options import CreateOptions
from yaosb_jupyter.tai.runtimes.base import EnvironmentState
from yaosb_jupyter.types import SandboxRecord

MANAGED_BY = "managed-by"
MANAGER = "yao-sandbox"
UID = "sandbox-uid"
ID = "sandbox-id"
OWNER = "sandbox-owner"
POOL = "sandbox-pool"
POLICY = "sandbox-policy"
DATA_DIR = "sandbox-data-dir"

# Values of the environment may be secrets, and whoever reaches the engine reads labels.
_SECRET_OPTIONS = frozenset({"env"})


def data_dir_labels(data_dir_id: str) -> dict[str, str]:
    """What marks the environments of one data directory, and no other's."""
    return {MANAGED_BY: MANAGER, DATA_DIR: data_dir_id}


def to_labels(record: SandboxRecord, data_dir_id: str) -> dict[str, str]:
    """All labels of the record's environment: the user's and the reserved ones."""
    return {
        **record.options.labels,
        **data_dir_labels(data_dir_id),
        UID: record.uid,
        ID: record.id if len(record.id) <= 63 else _short(record.id),
        OWNER: owner_label(record.owner),
        POOL: record.pool,
        POLICY: _to_policy(record),
    }


def from_labels(state: EnvironmentState, *, pool: str, now: datetime) -> SandboxRecord | None:
    """The record that the labels of ``state`` tell, with what was lost; None where they are not ours."""
    uid = state.labels.get(UID, "")
    if state.labels.get(MANAGED_BY) != MANAGER or not uid:
        return None
    try:
        record = _from_policy(uid, state, pool)
    except (ValueError, KeyError, TypeError, AttributeError, msgspec.ValidationError):
        record = _without_policy(uid, state, pool, now)
    return replace(
        record,
        status=state.status,
        status_reason=state.reason,
        runtime_id=state.runtime_id,
        name=state.name,
        ip=state.ip,
        ports=state.ports,
        link=state.link,
        last_active=now,
    )


def _to_policy(record: SandboxRecord) -> str:
    options = msgspec.to_builtins(record.options)
    plain = msgspec.to_builtins(CreateOptions())
    kept = {key: value for key, value in options.items() if key not in _SECRET_OPTIONS and value != plain[key]}
    # Keys only: the values are labels themselves. The engine may add an image's labels to ours.
    kept["labels"] = sorted(record.options.labels)
    policy = {
        "id": record.id,
        "owner": record.owner,
        "created_at": record.created_at.isoformat(),
        "address": record.address,
        "options": kept,
        "omitted": sorted(key for key in _SECRET_OPTIONS if options[key]),
    }
    return json.dumps(policy, separators=(",", ":"), sort_keys=True)


def _from_policy(uid: str, state: EnvironmentState, pool: str) -> SandboxRecord:
    policy: dict[str, Any] = json.loads(state.labels[POLICY])
    stored = dict(policy["options"])
    stored["labels"] = {key: state.labels[key] for key in stored["labels"] if key in state.labels}
    created_at = datetime.fromisoformat(policy["created_at"])
    return SandboxRecord(
        uid=uid,
        id=policy["id"],
        owner=policy["owner"],
        pool=pool,
        options=msgspec.convert(stored, CreateOptions),
        status=state.status,
        created_at=created_at,
        last_active=created_at,
        address=policy["address"],
        lost=tuple(policy["omitted"]),
    )


def _without_policy(uid: str, state: EnvironmentState, pool: str, now: datetime) -> SandboxRecord:
    # Kept with a session's defaults: it was ours, and somebody may want its files.
    identity = state.labels.get(ID) or new_id()
    owner = state.labels.get(OWNER) or "unknown"
    user_labels = {key: value for key, value in state.labels.items() if key not in RESERVED_LABELS}
    return SandboxRecord(
        uid=uid,
        id=identity,
        owner=owner,
        pool=pool,
        options=CreateOptions(id=identity, owner=owner, pool=pool, labels=_valid(user_labels)),
        status=state.status,
        created_at=state.created_at or now,
        last_active=now,
        lost=("policy",),
    )


def _valid(labels: Mapping[str, str]) -> dict[str, str]:
    kept: dict[str, str] = {}
    for key, value in labels.items():
        try:
            kept.update(CreateOptions(labels={key: value}).labels)
        except ValueError:
            continue
    return kept


def _short(text: str) -> str:
    return text[:40].rstrip("._-") + "." + hashlib.sha256(text.encode()).hexdigest()[:16]
