"""Errors name a sandbox by its id, never by what a runtime calls it."""

from __future__ import annotations

import pytest

from tests.unit.records import make_record
from yaosb_jupyter.core.naming import name_by_id
from yaosb_jupyter.errors import NotRunningError

CONTAINER = "4f" * 32


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (f"container {CONTAINER} is not running", "container lab is not running"),
        ('the name "/yao-sb-x" is in use', 'the name "lab" is in use'),
        (f"/data/{CONTAINER}/workspace is gone", f"/data/{CONTAINER}/workspace is gone"),
        ("yao-sb-xy is another", "yao-sb-xy is another"),
    ],
)
def test_internal_names_give_way_to_the_id(message: str, told: str) -> None:
    error = NotRunningError(message, sandbox=CONTAINER)
    name_by_id(error, make_record(runtime_id=CONTAINER, name="yao-sb-x"))
    assert str(error) == f"sandbox 'lab': {told}"
