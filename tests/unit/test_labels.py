from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.records import CREATED, make_record
from yaosb_jupyter.checks import RESERVED_LABELS
from yaosb_jupyter.choices import Status
from yaosb_jupyter.core.labels import DATA_DIR, MANAGED_BY, OWNER, POLICY, UID, from_labels, to_labels
from yaosb_jupyter.core.names import new_id
from yaosb_jupyter.options import MIN_MEMORY, CreateOptions
from yaosb_jupyter.tai.runtimes.base import EnvironmentState
from yaosb_jupyter.types import SandboxRecord


def state_of(record: SandboxRecord, **labels: str) -> EnvironmentState:
    return EnvironmentState(
        runtime_id=record.runtime_id,
        name=record.name,
        status=record.status,
        labels={**to_labels(record, "data-dir"), **labels},
        ip=record.ip,
        ports=record.ports,
    )


def test_m2_m3_a_record_comes_back_from_its_labels() -> None:
    record = make_record()
    restored = from_labels(state_of(record), pool="near", now=CREATED)
    assert restored is not None
    assert restored.lost == ("env",)
    expected = replace(record, options=replace(record.options, env={}), isolation=None, process_count=0, lost=("env",))
    assert restored == expected


def test_what_an_image_adds_is_no_label_of_ours() -> None:
    record = make_record()
    restored = from_labels(state_of(record, maintainer="somebody"), pool="near", now=CREATED)
    assert restored is not None
    assert restored.options.labels == record.options.labels


def test_no_secret_is_in_a_label() -> None:
    assert "secret" not in str(to_labels(make_record(), "data-dir"))


def test_every_reserved_label_is_ours() -> None:
    labels = to_labels(make_record(), "data-dir")
    assert labels.keys() == RESERVED_LABELS | {"team", "note"}
    assert labels[OWNER] != "ann@example.org"  # a label cannot hold it
    assert labels[DATA_DIR] == "data-dir"


@pytest.mark.parametrize("policy", ["", "{", "[]", "{}", '{"options": 3}', '{"options": {"labels": [1]}}', "null"])
def test_a_broken_policy_loses_the_policy_not_the_sandbox(policy: str) -> None:
    restored = from_labels(state_of(make_record(), **{POLICY: policy}), pool="near", now=CREATED)
    assert restored is not None
    assert restored.id == "lab"
    assert restored.lost == ("policy",)
    assert restored.status is Status.RUNNING


@pytest.mark.parametrize("labels", [{}, {UID: "x"}, {MANAGED_BY: "another", UID: "x"}, {MANAGED_BY: "yao-sandbox"}])
def test_what_is_not_ours(labels: dict[str, str]) -> None:
    state = EnvironmentState(runtime_id="r", name="n", status=Status.RUNNING, labels=labels)
    assert from_labels(state, pool="near", now=CREATED) is None


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "idle_timeout": st.floats(0, 1e9),
            "cpus": st.floats(0.01, 1024),
            "memory": st.integers(MIN_MEMORY, 2**50),
            "cmd": st.lists(TEXT, max_size=3).map(tuple),
            "chat": TEXT,
            "vnc": st.booleans(),
            "start": st.booleans(),
        },
    )
)
def test_any_options_come_back(fields: dict[str, object]) -> None:
    id = new_id()
    options = CreateOptions(id=id, owner="ann", pool="near", **fields)  # type: ignore[arg-type]
    restored = from_labels(state_of(make_record(id=id, options=options)), pool="near", now=CREATED)
    assert restored is not None
    assert restored.options == options
