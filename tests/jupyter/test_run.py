"""Scripts in a sandbox of the memory runtime, which runs real processes."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from yaosb_jupyter.core.manager import AsyncManager
from yaosb_jupyter.core.sandbox import AsyncSandbox
from yaosb_jupyter.errors import ExecFailedError, ExecTimeoutError, UnavailableError
from yaosb_jupyter.jupyter.events import Event
from yaosb_jupyter.jupyter.mailbox import Mailbox
from yaosb_jupyter.jupyter.run import Script, raise_for_exit, run_script
from yaosb_jupyter.jupyter.scriptfiles import ScriptFiles, is_script
from yaosb_jupyter.types import ExecResult, Output, PoolSpec


@pytest.fixture
async def sandbox(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[AsyncSandbox]:
    async with AsyncManager.open(
        data_dir=tmp_path / "data",
        runtime_dir=tmp_path / "run",
        pools=[PoolSpec(name="memory", address=f"memory://{request.node.name}")],
    ) as manager:
        yield await manager.create("lab")
        await manager.remove("lab")


async def run(sandbox: AsyncSandbox, script: Script) -> ExecResult[str]:
    kept: list[ExecResult[str]] = []
    result = await run_script(sandbox, script, ScriptFiles("notebook"), Mailbox(), kept.append)
    assert kept == [result]
    return result


def text(events: Sequence[Event]) -> str:
    return "".join(event.data for event in events if isinstance(event, Output))


async def test_j10_the_body_is_taken_as_it_stands(sandbox: AsyncSandbox) -> None:
    body = 'x=1\necho "{x} $x ${x}" \'$y\' "%s"\nprintf "a\\tb\\n"\n'
    assert (await run(sandbox, Script(body=body))).stdout == "{x} 1 1 $y %s\na\tb\n"


async def test_a_body_longer_than_an_argument_may_be(sandbox: AsyncSandbox) -> None:
    body = "true\n" * 60_000 + "echo the end\n"
    assert len(body) > 2 * 128 * 1024
    assert (await run(sandbox, Script(body=body))).stdout == "the end\n"


@pytest.mark.parametrize("body", ["false\necho on", "false | cat\necho on"])
async def test_the_shell_stops_at_the_first_failure(sandbox: AsyncSandbox, body: str) -> None:
    result = await run(sandbox, Script(body=body))
    assert (result.exit_code, result.stdout) == (1, "")
    with pytest.raises(ExecFailedError, match="exit code 1"):
        raise_for_exit(result, "lab")


async def test_without_bash_the_shell_is_sh(sandbox: AsyncSandbox, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "sh").symlink_to("/bin/sh")
    script = Script(body='echo "${BASH_VERSION:-no bash}"\nfalse\necho on', env={"PATH": str(programs)})
    result = await run(sandbox, script)
    assert (result.exit_code, result.stdout) == (1, "no bash\n")


async def test_python_sees_modules_beside_it_and_names_the_file(sandbox: AsyncSandbox) -> None:
    await sandbox.files.write("sub/helper.py", "VALUE = 42\n")
    body = "import helper, sys\nprint(helper.VALUE)\nraise KeyError('x')\n"
    result = await run(sandbox, Script(body=body, lang="python", cwd="sub"))
    assert result.stdout == "42\n"
    assert "line 3" in result.stderr
    assert "raise KeyError('x')" in result.stderr


async def test_an_unknown_language_is_the_command(sandbox: AsyncSandbox) -> None:
    assert (await run(sandbox, Script(body="the body", lang="cat"))).stdout == "the body"
    missing = await run(sandbox, Script(body="x", lang="no-such-thing"))
    assert missing.exit_code == 127
    assert "no-such-thing" in missing.stderr


async def test_the_script_is_gone_afterwards(sandbox: AsyncSandbox) -> None:
    await run(sandbox, Script(body="true"))
    await run(sandbox, Script(body="false"))
    assert await sandbox.files.list() == []


async def test_a_directory_that_is_not_there_is_not_made(sandbox: AsyncSandbox) -> None:
    with pytest.raises(Exception, match="nowhere"):
        await run(sandbox, Script(body="true", cwd="nowhere"))
    assert await sandbox.files.list() == []


async def test_environment_and_input_reach_the_script(sandbox: AsyncSandbox) -> None:
    data = bytes(range(256)) * 8192
    script = Script(body="echo $A $PYTHONUNBUFFERED; sha256sum", env={"A": "b c"}, stdin=data)
    result = await run(sandbox, script)
    assert result.stdout.splitlines()[0] == "b c 1"
    assert hashlib.sha256(data).hexdigest() in result.stdout


async def test_without_input_the_script_reads_the_end_at_once(sandbox: AsyncSandbox) -> None:
    assert (await run(sandbox, Script(body="cat; echo end"))).stdout == "end\n"


async def test_input_that_nobody_reads_does_not_hang(sandbox: AsyncSandbox) -> None:
    assert (await run(sandbox, Script(body="echo no", stdin=b"x" * 5_000_000))).stdout == "no\n"


async def test_a_timeout_keeps_what_was_written(sandbox: AsyncSandbox) -> None:
    with pytest.raises(ExecTimeoutError) as caught:
        await run(sandbox, Script(body="echo before; sleep 60", timeout=0.3))
    assert caught.value.result is not None
    assert caught.value.result.stdout == "before\n"
    assert await sandbox.files.list() == []


async def test_output_arrives_while_the_script_runs(sandbox: AsyncSandbox) -> None:
    mailbox: Mailbox[Event] = Mailbox()
    await sandbox.files.write("go", "")
    body = "echo first; while [ -e go ]; do sleep 0.02; done; echo second >&2"
    running = asyncio.create_task(run_script(sandbox, Script(body=body), ScriptFiles("n"), mailbox, lambda _: None))
    assert text(await asyncio.to_thread(mailbox.take) or []) == "first\n"
    await sandbox.files.remove("go")
    result = await asyncio.wait_for(running, 10)
    assert (result.stdout, result.stderr) == ("first\n", "second\n")


async def interrupted(sandbox: AsyncSandbox, body: str) -> tuple[float, ExecResult[str]]:
    """Cancels a script once it has written; how long its end took, and its result, which holds all that was shown."""
    mailbox: Mailbox[Event] = Mailbox()
    kept: list[ExecResult[str]] = []
    script = Script(body=body, lang="python")
    running = asyncio.create_task(run_script(sandbox, script, ScriptFiles("notebook"), mailbox, kept.append))
    written = text(await asyncio.to_thread(mailbox.take, timeout=20.0) or [])
    began = time.monotonic()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    took = time.monotonic() - began
    mailbox.close()
    (result,) = kept
    assert result.stdout == written + text(mailbox.take() or [])
    return took, result


async def test_j1_an_interrupt_reaches_the_command_and_its_last_words_are_shown(sandbox: AsyncSandbox) -> None:
    body = (
        "import time\ntry:\n    print('on', flush=True)\n    time.sleep(60)\n"
        "except KeyboardInterrupt:\n    print('last words')"
    )
    took, result = await interrupted(sandbox, body)
    assert result.stdout.startswith("on")
    assert result.stdout.endswith("last words\n")
    assert result.exit_code == 0
    assert took < 0.3
    assert await sandbox.files.list() == []


async def test_j1_an_interrupt_ends_a_command_that_ignores_it(sandbox: AsyncSandbox) -> None:
    body = (
        "import signal, time\nfor s in (signal.SIGINT, signal.SIGTERM): signal.signal(s, signal.SIG_IGN)\n"
        "print('deaf', flush=True)\nwhile True: time.sleep(1)"
    )
    took, result = await interrupted(sandbox, body)
    assert took < 0.35
    assert (result.stdout.strip(), result.exit_code, result.signal) == ("deaf", 137, 9)
    assert await sandbox.kill_process(r"\.cell-.*\.py") == []
    assert await sandbox.files.list() == []


async def test_what_a_killed_kernel_left_is_removed_by_the_next_cell_of_the_notebook(sandbox: AsyncSandbox) -> None:
    left = ScriptFiles("notebook").place(sandbox, "true", cwd="", suffix=".sh")
    name = await left.__aenter__()
    other = ScriptFiles("another notebook").place(sandbox, "true", cwd="", suffix=".sh")
    kept = await other.__aenter__()
    assert is_script(name)
    await sandbox.files.write(".cell-mine.sh", "")
    await run(sandbox, Script(body="true"))
    assert {file.name for file in await sandbox.files.list()} == {kept, ".cell-mine.sh"}


async def test_a_script_that_could_not_be_removed_is_removed_by_the_next_cell(
    sandbox: AsyncSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the daemon was killed: the same kernel goes on."""
    files = ScriptFiles("notebook")

    async def refused(*_: object, **__: object) -> None:
        raise UnavailableError("no daemon")

    with monkeypatch.context() as patched:
        patched.setattr(type(sandbox.files), "remove", refused)
        await run_script(sandbox, Script(body="true"), files, Mailbox(), lambda _: None)
    assert len(await sandbox.files.list()) == 1
    await run_script(sandbox, Script(body="true"), files, Mailbox(), lambda _: None)
    assert await sandbox.files.list() == []


def test_that_memory_was_missing_is_told() -> None:
    result = ExecResult(exit_code=137, stdout="", stderr="", signal=9, out_of_memory=True)
    with pytest.raises(ExecFailedError, match="killed for want of memory"):
        raise_for_exit(result, "lab")
