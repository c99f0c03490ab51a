"""What may be done with a sandbox in each state, and when it ends by itself. Pure: values in, decisions out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from yaosb_jupyter.choices import Lifecycle, Status
from yaosb_jupyter.errors import NotFoundError, NotRunningError, SandboxError

ONE_SHOT_LIFETIME = 8 * 3600.0
LONG_RUNNING_IDLE_FACTOR = 24


class Call(Enum):
    """What callers ask for. FILES and LOGS need no running environment, EXEC (and stats, kill) does."""

    EXEC = "exec"
    START = "start"
    STOP = "stop"
    REMOVE = "remove"
    FILES = "files"
    LOGS = "logs"
    HEARTBEAT = "heartbeat"


class Verdict(Enum):
    DO = "do"
    NOTHING = "nothing"
    NOT_RUNNING = "not running"
    NOT_FOUND = "not found"


_DO, _NO, _NR, _NF = Verdict.DO, Verdict.NOTHING, Verdict.NOT_RUNNING, Verdict.NOT_FOUND

_STATUSES = (
    Status.CREATED,
    Status.STARTING,
    Status.RUNNING,
    Status.PAUSED,
    Status.STOPPING,
    Status.STOPPED,
    Status.FAILED,
    Status.REMOVING,
    Status.REMOVED,
)
# fmt: off
_ROWS: Mapping[Call, tuple[Verdict, ...]] = {
    #                created starting running paused stopping stopped failed removing removed
    Call.EXEC:      (_NR,    _NR,     _DO,    _NR,   _NR,     _NR,    _NR,   _NF,     _NF),
    Call.START:     (_DO,    _DO,     _NO,    _DO,   _DO,     _DO,    _DO,   _NF,     _NF),
    Call.STOP:      (_NO,    _DO,     _DO,    _DO,   _DO,     _NO,    _NO,   _NF,     _NF),
    Call.REMOVE:    (_DO,    _DO,     _DO,    _DO,   _DO,     _DO,    _DO,   _DO,     _NO),
    Call.FILES:     (_DO,    _DO,     _DO,    _DO,   _DO,     _DO,    _DO,   _NF,     _NF),
    Call.LOGS:      (_DO,    _DO,     _DO,    _DO,   _DO,     _DO,    _DO,   _NF,     _NF),
    Call.HEARTBEAT: (_NO,    _DO,     _DO,    _DO,   _NO,     _NO,    _NO,   _NF,     _NF),
}
# fmt: on


def verdict(call: Call, status: Status) -> Verdict:
    """The cell of the (call x status) table."""
    return _ROWS[call][_STATUSES.index(status)]


def refusal(call: Call, status: Status, *, sandbox: str, reason: str = "") -> SandboxError | None:
    """The error that ``call`` meets in this state, or None where it is allowed (or nothing need be done)."""
    found = verdict(call, status)
    why = f": {reason}" if reason else ""
    if found is Verdict.NOT_FOUND:
        return NotFoundError(f"it is {status.value}{why}", sandbox=sandbox, hint="create it again")
    if found is Verdict.NOT_RUNNING:
        return NotRunningError(f"it is {status.value}, not running{why}", sandbox=sandbox, hint=_NEXT[status])
    return None


_NEXT: Mapping[Status, str] = {
    Status.CREATED: "start it first",
    Status.STARTING: "try again in a moment",
    Status.PAUSED: "start it to go on",
    Status.STOPPING: "start it again when it has stopped",
    Status.STOPPED: "start it first; its files are kept",
    Status.FAILED: "start it to make it anew with its files, or remove it",
}


class Action(Enum):
    """What a lifecycle does when its time has come."""

    STOP = "stop"
    REMOVE = "remove"


@dataclass(frozen=True, kw_only=True)
class Standing:
    """A sandbox at one moment. ``age`` seconds since it was created, ``idle`` since it was last used."""

    lifecycle: Lifecycle
    status: Status
    idle_timeout: float
    max_lifetime: float
    age: float
    idle: float
    busy: bool


@dataclass(frozen=True, kw_only=True)
class Deadline:
    """What comes next, in how many seconds (0 or less: now); because it is idle, unless ``by_age``."""

    action: Action
    due_in: float
    by_age: bool = False


def deadline(standing: Standing) -> Deadline | None:
    """What the lifecycle does next if nothing uses the sandbox; None for never (DESIGN 7)."""
    due = [each for each in (_lifetime_deadline(standing), _idle_deadline(standing)) if each is not None]
    return min(due, key=lambda each: (each.due_in, each.action is not Action.REMOVE), default=None)


def _lifetime_deadline(standing: Standing) -> Deadline | None:
    if standing.lifecycle is Lifecycle.PERSISTENT or not standing.max_lifetime:
        return None
    return Deadline(action=Action.REMOVE, by_age=True, due_in=standing.max_lifetime - standing.age)


def _idle_deadline(standing: Standing) -> Deadline | None:
    if standing.busy or not standing.idle_timeout:
        return None
    due_in = standing.idle_timeout - standing.idle
    if standing.lifecycle is Lifecycle.SESSION:
        return Deadline(action=Action.REMOVE, due_in=due_in)
    if standing.lifecycle is Lifecycle.LONG_RUNNING and standing.status in (Status.RUNNING, Status.PAUSED):
        return Deadline(action=Action.STOP, due_in=due_in)
    return None
