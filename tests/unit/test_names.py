import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yaosb_jupyter.checks import check_id
from yaosb_jupyter.core.names import (
    chat_id,
    check_owner,
    environment_name,
    is_uid,
    new_id,
    new_uid,
    owner_label,
    owner_of_path,
    path_of_owner,
)
from yaosb_jupyter.errors import InvalidOptionError

OWNERS = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=60)
LABEL_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")


def test_uids_are_ulids_that_sort_by_time() -> None:
    first, second = new_uid(), new_uid()
    assert first != second
    assert first[:8] <= second[:8]
    assert is_uid(first)
    assert not is_uid("lab")
    assert not is_uid("../" + first)
    check_id(new_id())


@given(OWNERS)
def test_an_owner_is_one_path_component_and_back(owner: str) -> None:
    component = path_of_owner(owner)
    assert "/" not in component
    assert not component.startswith(".")
    assert owner_of_path(component) == owner


@given(OWNERS, OWNERS)
def test_different_owners_have_different_paths(one: str, other: str) -> None:
    assert (path_of_owner(one) == path_of_owner(other)) == (one == other)


@pytest.mark.parametrize("owner", ["ann", "ann@example.org", "Ann Lee", "日本", "a/b", "..", "%2E"])
def test_owners_are_free_text(owner: str) -> None:
    check_owner(owner)


@pytest.mark.parametrize("owner", ["", "a\nb", "a\0b", "x" * 256, "/" * 100])
def test_what_cannot_be_an_owner(owner: str) -> None:
    with pytest.raises(InvalidOptionError, match="owner="):
        check_owner(owner)


@given(OWNERS)
def test_an_owner_fits_a_label(owner: str) -> None:
    label = owner_label(owner)
    assert len(label) <= 63
    assert LABEL_VALUE.fullmatch(label)
    if LABEL_VALUE.fullmatch(owner) and len(owner) <= 63:
        assert label == owner


@given(OWNERS, OWNERS)
def test_environment_names_are_dns_labels(owner: str, label: str) -> None:
    for name in (environment_name(owner, label), environment_name(owner, label, new_uid())):
        assert len(name) <= 63
        assert re.fullmatch(r"yao-sb-[a-z0-9]([a-z0-9-]*[a-z0-9])?", name)


def test_environment_names_say_whose() -> None:
    assert environment_name("ann", "lab") == "yao-sb-ann-lab"
    assert environment_name("ann", "Lab").startswith("yao-sb-ann-lab-")
    assert environment_name("ann", "Lab") != environment_name("ann", "lAb")
    assert environment_name("x" * 80, "lab") != environment_name("x" * 80, "bal")


@given(OWNERS, OWNERS)
def test_a_chats_id_is_an_id(owner: str, chat: str) -> None:
    check_id(chat_id(owner, chat))


def test_a_plain_chats_id_is_plain() -> None:
    assert chat_id("ann", "planning") == "ann-planning"
