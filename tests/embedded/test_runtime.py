"""What only the embedded runtime has: users of its own, state on disk that others share, limits held from outside."""

from __future__ import annotations

import asyncio
import os
import shutil
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.contract.box import Box, eventually
from tests.embedded.conftest import make, spec_in
from tests.rig.require import require
from yaosb_jupyter.choices import Network, Status
from yaosb_jupyter.errors import InvalidOptionError, LimitExceededError, NotRunningError
from yaosb_jupyter.guest import processes
from yaosb_jupyter.options import PortMapping
from yaosb_jupyter.tai.runtimes.base import EnvironmentSpec
from yaosb_jupyter.tai.runtimes.embedded import EmbeddedRuntime
from yaosb_jupyter.tai.runtimes.embedded.cgroups import find_cgroups
from yaosb_jupyter.tai.runtimes.embedded.handles import ProcessHandle, ProcessName
from yaosb_jupyter.tai.runtimes.embedded.record import EnvironmentRecord, RecordStore
from yaosb_jupyter.tai.runtimes.embedded.users import give_user

pytestmark = pytest.mark.embedded

MIB = 2**20


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"gpus": "all"}, "gpus"),
        ({"ports": (PortMapping(container_port=80),)}, "ports"),
        ({"network": Network.ALLOWLIST}, "allowlist"),
        ({"user": "root"}, "user"),
        ({"cmd": ("image",)}, "image"),
        ({"workdir": "/srv/app"}, "workdir"),
    ],
)
async def test_what_cannot_be_given_is_named(
    fields: dict[str, Any], named: str, runtime: EmbeddedRuntime, place: Path
) -> None:
    with pytest.raises(InvalidOptionError, match=named):
        await runtime.create(spec_in(place, **fields))
    assert await runtime.list({}) == []


async def test_a_main_process_that_ends_at_once_has_ended_when_start_returns(
    runtime: EmbeddedRuntime, place: Path
) -> None:
    box = await make(runtime, place, cmd=("sh", "-c", "exit 3"))
    state = await runtime.inspect(box.runtime_id)
    assert (state.status, state.exit_code) == (Status.STOPPED, 3)
    with pytest.raises(NotRunningError, match="ended with code 3"):
        await box.sh("true")


async def test_the_end_by_memory_is_told_to_who_comes_later(runtime: EmbeddedRuntime, place: Path) -> None:
    if await asyncio.to_thread(find_cgroups) is None:
        return
    box = await make(runtime, place, memory=64 * MIB, cmd=("python3", "-c", "x = b'x' * (256 << 20)"))

    async def ended() -> bool:
        return (await runtime.inspect(box.runtime_id)).status is Status.STOPPED

    await eventually(ended, what="killed")
    with pytest.raises(NotRunningError, match="memory"):
        await box.sh("true")


async def test_remove_leaves_nothing_but_the_workspace(runtime: EmbeddedRuntime, place: Path) -> None:
    box = await make(runtime, place)
    await box.sh("echo x > file")
    await runtime.remove(box.runtime_id)
    left = {str(path.relative_to(place)) for path in place.rglob("*") if box.runtime_id in path.name}
    assert left == {f"sandboxes/{box.runtime_id}"}
    groups = await asyncio.to_thread(find_cgroups)
    if groups is not None:
        assert not any(path.exists() for path in groups.group(box.runtime_id).paths.values())


async def test_the_daemons_own_directory_stays_closed(runtime: EmbeddedRuntime, place: Path) -> None:
    await make(runtime, place)
    assert (place / "run").stat().st_mode & 0o777 == 0o700
    assert (place / "state").stat().st_mode & 0o777 == 0o700
    for path in (place / "state").iterdir():
        assert path.stat().st_mode & 0o077 == 0 or path.suffix == ".log", path


async def test_one_that_ran_before_the_host_was_restarted_is_stopped(place: Path, runtime: EmbeddedRuntime) -> None:
    box = await make(runtime, place)
    await box.sh("echo kept > file")
    await runtime.close()
    await end_by_hand(box)
    await asyncio.to_thread(pretend, place, box, boot="another")
    again = EmbeddedRuntime({}, place / "run", place / "state")
    await again.open()
    state = await again.inspect(box.runtime_id)
    assert (state.status, state.reason) == (Status.STOPPED, "the host was restarted")
    back = Box(runtime=again, runtime_id=box.runtime_id, spec=box.spec)
    await back.start()
    assert (await back.sh("cat file")).stdout == b"kept\n"
    await again.remove(box.runtime_id)
    await again.close()


def pretend(place: Path, box: Box, **process: Any) -> None:
    """Changes what is on disk about its process."""
    store = RecordStore(place / "state")
    record = store.load(box.runtime_id)
    assert record is not None
    assert record.process is not None
    store.save(replace(record, process=replace(record.process, **process)))


async def end_by_hand(box: Box) -> None:
    def kill() -> bool:
        table = processes.scan()
        naming = {pid for pid in table if box.runtime_id in processes.command_line(pid)}
        processes.send_signal(naming, 9)
        return not processes.alive(naming, processes.scan())

    async def gone() -> bool:
        return await asyncio.to_thread(kill)

    await eventually(gone, what="its processes are gone")


async def test_the_number_of_its_process_given_to_another_is_not_it(place: Path, runtime: EmbeddedRuntime) -> None:
    box = await make(runtime, place)
    await runtime.close()
    await end_by_hand(box)
    await asyncio.to_thread(pretend, place, box, pid=os.getpid())
    again = EmbeddedRuntime({}, place / "run", place / "state")
    await again.open()
    assert (await again.inspect(box.runtime_id)).status is Status.STOPPED
    await again.stop(box.runtime_id, 0.1)
    await again.remove(box.runtime_id)
    await again.close()


async def test_two_pools_over_one_directory_agree(place: Path, runtime: EmbeddedRuntime) -> None:
    other = EmbeddedRuntime({}, place / "run", place / "state")
    await other.open()
    box = await make(runtime, place)
    seen = {state.runtime_id: state.status for state in await other.list({})}
    assert seen == {box.runtime_id: Status.RUNNING}
    await box.stop()

    async def stopped() -> bool:
        return (await other.inspect(box.runtime_id)).status is Status.STOPPED

    await eventually(stopped, what="the other sees its end")
    await box.start()
    assert {state.status for state in await other.list({})} == {Status.RUNNING}
    assert (await box.sh("echo up")).stdout == b"up\n"
    await other.close()
    assert (await box.sh("echo still up")).stdout == b"still up\n"
    await box.stop()
    assert (await runtime.inspect(box.runtime_id)).reason == ""


async def test_one_whose_directory_goes_as_it_ends_can_be_looked_at(place: Path, runtime: EmbeddedRuntime) -> None:
    """Another pool cleared up behind it, and its end was not seen here yet."""
    other = EmbeddedRuntime({}, place / "run", place / "state")
    await other.open()
    box = await make(runtime, place)
    await other.list({})
    shutil.rmtree(runtime._host.files.directory / box.runtime_id)
    assert (await other.inspect(box.runtime_id)).status is Status.RUNNING
    await other.close()


async def test_logs_are_there_after_a_restart_of_the_manager(place: Path, runtime: EmbeddedRuntime) -> None:
    box = await make(runtime, place, cmd=("sh", "-c", "echo early; sleep 1000"))
    await eventually(lambda: logged(runtime, box), what="the first line is logged")
    await runtime.close()
    again = EmbeddedRuntime({}, place / "run", place / "state")
    await again.open()
    await eventually(lambda: logged(again, box), what="the first line is logged again")
    await again.remove(box.runtime_id)
    await again.close()


async def logged(runtime: EmbeddedRuntime, box: Box) -> bool:
    return b"early" in b"".join([chunk.data async for chunk in runtime.logs(box.runtime_id)])


async def test_x18_without_control_groups_memory_is_held_from_outside(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("yaosb_jupyter.tai.runtimes.embedded.probe.find_cgroups", lambda: None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(place / "cache"))
    runtime = EmbeddedRuntime({}, place / "run", place / "state")
    info = await runtime.open()
    assert "for all together" in info.isolation.memory
    box = await make(runtime, place, memory=200 * MIB)
    hog = f"import time; data = b'x' * {80 * MIB}; time.sleep(1000)"
    hogs = [asyncio.ensure_future(box.python(hog)) for _ in range(4)]
    async with asyncio.timeout(20):
        done, _ = await asyncio.wait(hogs, return_when=asyncio.FIRST_COMPLETED)
    assert {(await hog).code for hog in done} == {137}
    assert (await box.sh("echo answers")).stdout == b"answers\n"
    await runtime.remove(box.runtime_id)
    await asyncio.wait(hogs)
    assert all(hog.exception() is not None or hog.result().code == 137 for hog in hogs)
    await runtime.close()


async def user_of(box: Box) -> int:
    await box.sh("echo > mine")
    return (box.spec.workspace / "mine").stat().st_uid


async def test_root_gives_each_sandbox_a_user_of_its_own(place: Path, runtime: EmbeddedRuntime) -> None:
    require("root")
    users = [await user_of(await make(runtime, place)) for _ in range(3)]
    assert len(set(users)) == 3
    assert all(200000 <= user <= 265535 for user in users)


async def test_a_user_is_not_given_again_while_his_files_are_there(place: Path, runtime: EmbeddedRuntime) -> None:
    require("root")
    box = await make(runtime, place)
    user = await user_of(box)
    await runtime.remove(box.runtime_id)
    assert await user_of(await make(runtime, place)) != user
    await runtime.remove_workspace(box.spec)
    assert not box.spec.workspace.exists()


async def test_a_workspace_of_somebody_is_used_as_him(place: Path, runtime: EmbeddedRuntime) -> None:
    require("root")
    theirs = place / "theirs"
    theirs.mkdir(mode=0o700)
    os.chown(theirs, 71234, 71235)
    box = await make(runtime, place, workspace=theirs)
    assert await user_of(box) == 71234
    await box.write("through-the-api", b"x")
    assert (theirs / "through-the-api").stat().st_uid == 71234


async def test_a_workspace_of_root_is_refused(place: Path, runtime: EmbeddedRuntime) -> None:
    require("root")
    roots = place / "roots"
    roots.mkdir()
    with pytest.raises(InvalidOptionError, match="belongs to root"):
        await runtime.create(spec_in(place, workspace=roots))


def test_users_come_to_an_end(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    given = [give_user((3_000_000, 3_000_001), tmp_path / name, tmp_path / "uids") for name in ("a", "b")]
    assert given == [3_000_000, 3_000_001]
    with pytest.raises(LimitExceededError):
        give_user((3_000_000, 3_000_001), tmp_path / "c", tmp_path / "uids")
    (tmp_path / "a").rmdir()
    assert give_user((3_000_000, 3_000_001), tmp_path / "c", tmp_path / "uids") == 3_000_000


async def test_what_a_killed_daemon_left_of_its_trial_is_swept(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(place / "cache"))
    left = place / "run/e/trykilled"
    sleeper = await asyncio.create_subprocess_exec("sleep", "1000")
    name = await asyncio.to_thread(leave_trial, left, sleeper.pid)
    assert name.pid == sleeper.pid
    runtime = EmbeddedRuntime({}, place / "run", place / "state")
    await runtime.open()
    assert await asyncio.wait_for(sleeper.wait(), 5) == -9
    assert not left.exists()
    await runtime.close()


def leave_trial(directory: Path, pid: int) -> ProcessName:
    """As a daemon would that was killed an hour ago."""
    directory.mkdir(parents=True)
    handle = ProcessHandle.of(pid)
    assert handle is not None
    spec = EnvironmentSpec(uid="trykilled", name="t", image="", labels={}, directory=directory, workspace=directory)
    record = EnvironmentRecord(spec=spec, created_at=datetime.now(UTC), key="k", user=None, process=handle.name)
    RecordStore(directory).save(record)
    handle.close()
    os.utime(directory, (1, 1))
    return handle.name


def tiny_wheel(directory: Path) -> str:
    """A wheel of one module and one command."""
    name = "tiny-1.0-py3-none-any.whl"
    with zipfile.ZipFile(directory / name, "w") as wheel:
        wheel.writestr("tiny.py", "def main():\n    print('tiny runs')\n")
        wheel.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        wheel.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("tiny-1.0.dist-info/entry_points.txt", "[console_scripts]\ntiny = tiny:main\n")
        wheel.writestr("tiny-1.0.dist-info/RECORD", "")
    return name


async def test_pip_installs_into_the_workspace(runtime: EmbeddedRuntime, place: Path, tmp_path: Path) -> None:
    box = await make(runtime, place)
    name = tiny_wheel(tmp_path)
    await box.write(name, (tmp_path / name).read_bytes())
    result = await box.sh(f"python -m pip install -q --no-index ./{name} && tiny && python -c 'import tiny'")
    assert (result.code, result.stdout) == (0, b"tiny runs\n"), result.stderr


async def test_a_record_may_be_saved_by_several_at_once(runtime: EmbeddedRuntime, place: Path) -> None:
    box = await make(runtime, place)

    def save_at_once() -> list[str]:
        record = RecordStore(place / "state").load(box.runtime_id)
        assert record is not None
        store = RecordStore(place / "several")
        store.open()
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(store.save, [record] * 200))
        return [file.name for file in (place / "several").iterdir()]

    assert await asyncio.to_thread(save_at_once) == [f"{box.runtime_id}.json"]
