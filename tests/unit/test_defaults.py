import os

import pytest

from yaosb_jupyter.choices import Lifecycle, Network
from yaosb_jupyter.core.defaults import complete, differences
from yaosb_jupyter.options import CreateOptions
from yaosb_jupyter.settings import load_settings
from yaosb_jupyter.tai.runtimes.memory import MemoryRuntime
from yaosb_jupyter.types import PoolSpec, PoolTimeouts

SETTINGS = load_settings(environ={"YAO_SANDBOX_MEMORY": "1g"}, file=os.devnull, data_dir="/d", idle_timeout=100)
POOL = PoolSpec(name="near", cpus=3.0, image="pool-image", timeouts=PoolTimeouts(idle_timeout=10, max_lifetime=1000))


async def completed(options: CreateOptions, pool: PoolSpec = POOL) -> CreateOptions:
    return complete(options, pool, SETTINGS, await MemoryRuntime().open())


async def test_options_then_pool_then_settings_then_runtime() -> None:
    options = await completed(CreateOptions(cpus=0.5))
    assert (options.cpus, options.image, options.memory) == (0.5, "pool-image", 2**30)
    assert options.network is Network.BRIDGE
    plain = await completed(CreateOptions(), PoolSpec(name="plain"))
    assert (plain.cpus, plain.image, plain.idle_timeout, plain.max_lifetime) == (1.0, "memory", 100, 0)


async def test_zero_is_a_value() -> None:
    assert (await completed(CreateOptions(idle_timeout=0, max_lifetime=0))).idle_timeout == 0


@pytest.mark.parametrize(
    ("lifecycle", "idle", "lifetime"),
    [
        (Lifecycle.ONE_SHOT, 0, 8 * 3600),
        (Lifecycle.SESSION, 10, 1000),
        (Lifecycle.LONG_RUNNING, 240, 0),
        (Lifecycle.PERSISTENT, 0, 0),
    ],
)
async def test_timeouts_by_lifecycle(lifecycle: Lifecycle, idle: float, lifetime: float) -> None:
    options = await completed(CreateOptions(lifecycle=lifecycle))
    assert (options.idle_timeout, options.max_lifetime) == (idle, lifetime)


async def test_differences_name_only_what_was_asked_for() -> None:
    existing = await completed(CreateOptions(memory=2**27, id="lab"))
    assert differences(CreateOptions(id="other", memory=2**27), existing) == ()
    (difference,) = differences(CreateOptions(memory=2**28), existing)
    assert difference.startswith("memory: asked for 268435456")
