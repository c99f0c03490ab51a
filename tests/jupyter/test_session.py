from __future__ import annotations

import pytest

from yaosb_jupyter.checks import check_id
from yaosb_jupyter.jupyter.session import notebook_name


@pytest.mark.parametrize(
    "path",
    [
        "/home/ada/Analysis.ipynb",
        "RTC:a/b.ipynb",
        "Übung 1 (neu).ipynb",
        "/x/" + "long" * 100 + ".ipynb",
        "/x/....ipynb",
    ],
)
def test_a_notebooks_name_is_an_id_and_the_same_for_each_kernel(path: str) -> None:
    name = notebook_name({"JPY_SESSION_NAME": path}, {})
    check_id(name)
    assert name == notebook_name({"JPY_SESSION_NAME": path}, {})
    assert name == notebook_name({}, {"__vsc_ipynb_file__": path})


def test_notebooks_of_one_file_name_are_told_apart() -> None:
    names = {notebook_name({"JPY_SESSION_NAME": f"/home/{user}/work.ipynb"}, {}) for user in ("ada", "bob")}
    assert len(names) == 2
    assert all(name.startswith("work-") for name in names)


def test_without_a_path_each_kernel_has_its_own() -> None:
    first, second = notebook_name({}, {}), notebook_name({}, {})
    check_id(first)
    assert first != second
