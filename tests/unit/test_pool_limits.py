import pytest

from tests.unit.records import make_record
from yaosb_jupyter.choices import Status
from yaosb_jupyter.core.limits import check_limits
from yaosb_jupyter.errors import LimitExceededError
from yaosb_jupyter.types import PoolLimits, PoolSpec

NEAR = PoolSpec(name="near", limits=PoolLimits(max_total=3, max_per_user=2))
RECORDS = [
    make_record(owner="ann", pool="near"),
    make_record(owner="ann", pool="near", status=Status.STOPPED),
    make_record(owner="bob", pool="near", status=Status.FAILED),
    make_record(owner="ann", pool="far"),
]


@pytest.mark.parametrize(
    ("count", "pool", "owner", "max_sandboxes", "named"),
    [
        (4, PoolSpec(name="free"), "ann", 0, None),
        (4, PoolSpec(name="free"), "ann", 5, None),
        (4, PoolSpec(name="free"), "ann", 4, "YAO_SANDBOX_MAX"),
        (4, NEAR, "cid", 0, "max_total"),
        (2, NEAR, "ann", 0, "max_per_user"),
        (2, NEAR, "bob", 0, None),
    ],
)
def test_limits(count: int, pool: PoolSpec, owner: str, max_sandboxes: int, named: str | None) -> None:
    def check() -> None:
        check_limits(RECORDS[:count], pool=pool, owner=owner, max_sandboxes=max_sandboxes)

    if named is None:
        check()
    else:
        with pytest.raises(LimitExceededError, match=named):
            check()
