"""What is the memory runtime's own: faults on request, and an engine that outlives event loops."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from yaosb_jupyter.choices import ExecChannel, Status
from yaosb_jupyter.errors import ImageNotFoundError, NotFoundError, RuntimeUnavailableError, SandboxLostError
from yaosb_jupyter.options import ExecOptions
from yaosb_jupyter.tai.runtimes.base import EnvironmentSpec
from yaosb_jupyter.tai.runtimes.memory import MemoryEngine, MemoryRuntime
from yaosb_jupyter.tai.runtimes.memory.mainprocess import Log, Logged, last_lines
from yaosb_jupyter.tai.runtimes.memory.processes import find


@pytest.fixture
def engine() -> Iterator[MemoryEngine]:
    made = MemoryEngine()
    yield made
    made.close()


@pytest.fixture
def spec(tmp_path: Path) -> EnvironmentSpec:
    (tmp_path / "workspace").mkdir()
    return EnvironmentSpec(
        uid="one", name="one", image="any", labels={"a": "b"}, directory=tmp_path, workspace=tmp_path / "workspace"
    )


async def test_the_next_call_fails_and_only_that(engine: MemoryEngine, spec: EnvironmentSpec) -> None:
    runtime = MemoryRuntime(engine)
    engine.fail_next("create", ImageNotFoundError("as the test wants"))
    with pytest.raises(ImageNotFoundError):
        await runtime.create(spec)
    assert await runtime.list({}) == []
    await runtime.create(spec)


async def test_an_answer_is_lost_after_the_work_was_done(engine: MemoryEngine, spec: EnvironmentSpec) -> None:
    runtime = MemoryRuntime(engine)
    engine.fail_next("create", after=True)
    with pytest.raises(RuntimeUnavailableError):
        await runtime.create(spec)
    assert [state.name for state in await runtime.list({"a": "b"})] == ["one"]


async def test_an_unreachable_engine_fails_calls_ends_events_and_comes_back(
    engine: MemoryEngine, spec: EnvironmentSpec
) -> None:
    runtime = MemoryRuntime(engine)
    runtime_id = await runtime.create(spec)
    await runtime.start(runtime_id)
    events = runtime.events()
    waiting = asyncio.ensure_future(anext(aiter(events)))
    await asyncio.sleep(0)
    engine.become_unreachable("the cable was pulled")
    with pytest.raises(RuntimeUnavailableError, match="the cable was pulled"):
        await waiting
    for call in (runtime.open(), runtime.inspect(runtime_id), runtime.list({}), runtime.remove(runtime_id)):
        with pytest.raises(RuntimeUnavailableError):
            await call
    with pytest.raises(RuntimeUnavailableError):
        runtime.events()
    engine.become_reachable()
    assert (await runtime.inspect(runtime_id)).status is Status.RUNNING


async def test_a_vanished_environment_is_gone_with_its_processes(engine: MemoryEngine, spec: EnvironmentSpec) -> None:
    runtime = MemoryRuntime(engine)
    runtime_id = await runtime.create(spec)
    await runtime.start(runtime_id)
    stream = await runtime.exec_stream(runtime_id, ExecOptions(argv=("sleep", "1000")))
    mark = engine.get(runtime_id).mark
    assert await asyncio.to_thread(find, mark)
    await asyncio.to_thread(engine.vanish, runtime_id)
    assert not await asyncio.to_thread(find, mark)
    with pytest.raises(NotFoundError):
        await runtime.inspect(runtime_id)
    with pytest.raises(SandboxLostError):
        await stream.wait()


async def test_a_delayed_call_takes_longer(engine: MemoryEngine, spec: EnvironmentSpec) -> None:
    engine.delays["create"] = 0.05
    loop = asyncio.get_running_loop()
    began = loop.time()
    await MemoryRuntime(engine).create(spec)
    assert loop.time() - began >= 0.05


def test_an_engine_outlives_event_loops(engine: MemoryEngine, spec: EnvironmentSpec) -> None:
    async def begin() -> str:
        runtime = MemoryRuntime(engine)
        runtime_id = await runtime.create(spec)
        await runtime.start(runtime_id)
        anext(aiter(runtime.events())).close()
        return runtime_id

    async def go_on(runtime_id: str) -> bytes:
        runtime = MemoryRuntime(engine)
        stream = await runtime.exec_stream(runtime_id, ExecOptions(argv=("echo", "again")))
        piece = await stream.receive()
        assert (await stream.wait()).exit_code == 0
        await runtime.stop(runtime_id, 1)
        return piece[1] if piece else b""

    assert asyncio.run(go_on(asyncio.run(begin()))) == b"again\n"


@pytest.mark.parametrize("after", [0.0, 0.0005, 0.001, 0.003])
async def test_a_cancelled_exec_leaves_no_process(after: float, engine: MemoryEngine, spec: EnvironmentSpec) -> None:
    runtime = MemoryRuntime(engine)
    runtime_id = await runtime.create(spec)
    await runtime.start(runtime_id)
    starting = asyncio.ensure_future(runtime.exec_stream(runtime_id, ExecOptions(argv=("sleep", "1000"))))
    await asyncio.sleep(after)
    starting.cancel()
    await asyncio.wait([starting])
    if not starting.cancelled():
        await starting.result().aclose()
    assert not await asyncio.to_thread(find, engine.get(runtime_id).mark)


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_descriptors_do_not_pile_up(engine: MemoryEngine, spec: EnvironmentSpec) -> None:
    runtime = MemoryRuntime(engine)
    runtime_id = await runtime.create(spec)
    await runtime.start(runtime_id)
    before = _descriptors()
    for number in range(20):
        stream = await runtime.exec_stream(runtime_id, ExecOptions(argv=("cat",), stdin=True))
        if number % 2:
            await stream.close_stdin()
            await stream.wait()
        else:
            await stream.aclose()
    assert _descriptors() <= before


@pytest.mark.parametrize(
    ("pieces", "count", "expected"),
    [
        (["a\nb\nc\n"], 2, "b\nc\n"),
        (["a\nb\nc"], 2, "b\nc"),
        (["a\n", "b\n", "c\n"], 2, "b\nc\n"),
        (["a\nb", "c\nd\n"], 2, "bc\nd\n"),
        (["a\nb", "c", "d\n"], 1, "bcd\n"),
        (["a\n"], 0, ""),
        (["a\n"], 9, "a\n"),
        ([], 3, ""),
    ],
)
def test_the_last_lines_of_a_log(pieces: list[str], count: int, expected: str) -> None:
    logged = [Logged(at=datetime.now(UTC), channel=ExecChannel.STDOUT, data=piece.encode()) for piece in pieces]
    assert b"".join(piece.data for piece in last_lines(logged, count)) == expected.encode()


def test_a_log_keeps_its_end_and_readers_their_place() -> None:
    log = Log()
    log.append(ExecChannel.STDOUT, b"first")
    pieces, position = log.since(0)
    assert [piece.data for piece in pieces] == [b"first"]
    for _ in range(30):
        log.append(ExecChannel.STDERR, b"x" * 2**16)
    kept, end = log.since(position)
    assert sum(len(piece.data) for piece in kept) == 2**20
    assert log.since(end) == ([], end)
