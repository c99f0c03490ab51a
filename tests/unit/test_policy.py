import itertools

import pytest

from yaosb_jupyter.choices import Lifecycle, Status
from yaosb_jupyter.core.policy import Action, Call, Deadline, Standing, Verdict, deadline, refusal, verdict
from yaosb_jupyter.errors import NotFoundError, NotRunningError


def standing(**changes: object) -> Standing:
    given: dict[str, object] = {
        "lifecycle": Lifecycle.SESSION,
        "status": Status.RUNNING,
        "idle_timeout": 100.0,
        "max_lifetime": 0.0,
        "age": 0.0,
        "idle": 0.0,
        "busy": False,
    }
    return Standing(**(given | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(("call", "status"), list(itertools.product(Call, Status)))
def test_every_cell_is_decided(call: Call, status: Status) -> None:
    found = verdict(call, status)
    error = refusal(call, status, sandbox="lab", reason="why")
    if found is Verdict.NOT_RUNNING:
        assert isinstance(error, NotRunningError)
        assert status.value in str(error)
        assert "why" in str(error)
        assert error.hint
    elif found is Verdict.NOT_FOUND:
        assert isinstance(error, NotFoundError)
    else:
        assert error is None


def test_the_rules_of_the_table() -> None:
    assert verdict(Call.START, Status.RUNNING) is Verdict.NOTHING
    assert verdict(Call.STOP, Status.STOPPED) is Verdict.NOTHING
    assert all(verdict(Call.REMOVE, status) in (Verdict.DO, Verdict.NOTHING) for status in Status)
    allowed = [status for status in Status if verdict(Call.EXEC, status) is Verdict.DO]
    assert allowed == [Status.RUNNING]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, Deadline(action=Action.REMOVE, due_in=100.0)),
        ({"idle": 30.0}, Deadline(action=Action.REMOVE, due_in=70.0)),
        ({"idle": 100.5}, Deadline(action=Action.REMOVE, due_in=-0.5)),
        ({"busy": True}, None),
        ({"idle_timeout": 0.0}, None),
        ({"idle_timeout": 0.25, "idle": 0.2}, Deadline(action=Action.REMOVE, due_in=0.25 - 0.2)),
        ({"status": Status.STOPPED}, Deadline(action=Action.REMOVE, due_in=100.0)),
        ({"max_lifetime": 50.0}, Deadline(action=Action.REMOVE, by_age=True, due_in=50.0)),
        ({"max_lifetime": 50.0, "busy": True, "age": 60.0}, Deadline(action=Action.REMOVE, by_age=True, due_in=-10.0)),
        ({"lifecycle": Lifecycle.LONG_RUNNING}, Deadline(action=Action.STOP, due_in=100.0)),
        ({"lifecycle": Lifecycle.LONG_RUNNING, "status": Status.STOPPED}, None),
        (
            {"lifecycle": Lifecycle.LONG_RUNNING, "status": Status.STOPPED, "max_lifetime": 500.0},
            Deadline(action=Action.REMOVE, by_age=True, due_in=500.0),
        ),
        (
            {"lifecycle": Lifecycle.LONG_RUNNING, "max_lifetime": 100.0},
            Deadline(action=Action.REMOVE, by_age=True, due_in=100.0),
        ),
        ({"lifecycle": Lifecycle.ONE_SHOT, "idle": 10.0**6}, None),
        (
            {"lifecycle": Lifecycle.ONE_SHOT, "max_lifetime": 8 * 3600.0, "age": 3600.0},
            Deadline(action=Action.REMOVE, by_age=True, due_in=7 * 3600.0),
        ),
        ({"lifecycle": Lifecycle.PERSISTENT, "idle": 10.0**9, "max_lifetime": 1.0, "age": 10.0**9}, None),
    ],
)
def test_deadlines(changes: dict[str, object], expected: Deadline | None) -> None:
    assert deadline(standing(**changes)) == expected
