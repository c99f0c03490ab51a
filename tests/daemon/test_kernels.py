"""Kernels come and go; sandboxes stay."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager, start_new_kernel

from tests.daemon.conftest import Station, configure, wait_until
from yaosb_jupyter.blocking.entry import connect

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:jupyter_client")


class Kernel:
    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self._manager = manager
        self._client = client

    def run(self, code: str) -> str:
        """What the code prints."""
        printed: list[str] = []

        def hook(message: dict[str, dict[str, str]]) -> None:
            if "text" in message["content"]:
                printed.append(message["content"]["text"])

        reply = self._client.execute_interactive(code, timeout=60, output_hook=hook)
        assert reply["content"]["status"] == "ok", reply["content"]
        return "".join(printed)

    def kill(self) -> None:
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)


@pytest.fixture
def kernels(station: Station, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Kernel, Kernel]]:
    for name in ("JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(station.root / name.lower()))
    with ExitStack() as stack:
        started = []
        for _ in range(2):
            kernel = Kernel(*start_new_kernel(startup_timeout=60))
            stack.callback(kernel.kill)
            started.append(kernel)
        yield started[0], started[1]


@pytest.fixture(params=["memory://kernels", pytest.param("local", id="docker", marks=pytest.mark.docker)])
def pool(request: pytest.FixtureRequest, station: Station, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(station, monkeypatch, request.param)


LIST = "print(sorted(info.id for info in yaosb_jupyter.manager().list()))"


def test_two_kernels_and_a_script_share_sandboxes_and_a_killed_kernel_leaves_its_own(
    pool: None, station: Station, kernels: tuple[Kernel, Kernel]
) -> None:
    one, two = kernels
    one.run("import yaosb_jupyter; mine = yaosb_jupyter.manager().create('one', idle_timeout=4)")
    two.run("import yaosb_jupyter; mine = yaosb_jupyter.manager().create('two')")
    script = station.script(f"import yaosb_jupyter; yaosb_jupyter.manager().create('script'); {LIST}")
    out, err = script.communicate(timeout=60)
    assert out == "['one', 'script', 'two']\n", err
    assert one.run(LIST) == two.run(LIST) == out
    assert two.run("print(yaosb_jupyter.manager().exec('one', 'echo from two').stdout, end='')") == "from two\n"
    used = time.monotonic()

    one.kill()

    with connect() as manager:
        (left,) = [info for info in manager.list() if info.id == "one"]
        assert left.status == "running"
        wait_until(lambda: "one" not in [info.id for info in manager.list() if info.status == "running"])
        assert time.monotonic() - used > 3.5, "it stays for its idle timeout"
        assert {"two", "script"} <= {info.id for info in manager.list() if info.status == "running"}
        for info in manager.list():
            manager.remove(info.uid)
