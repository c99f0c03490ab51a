"""The host of an attack: sets out baits, runs the hostile program in a sandbox, and tells what became of both.

``python -m tests.attacks.stage MEANS NETWORK`` prints one JSON object; run by `tests.attacks.places` as whom it wants.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from yaosb_jupyter.choices import ExecChannel, Network
from yaosb_jupyter.errors import SandboxError
from yaosb_jupyter.guest import processes
from yaosb_jupyter.options import ExecOptions
from yaosb_jupyter.tai.runtimes.base import EnvironmentSpec
from yaosb_jupyter.tai.runtimes.embedded import EmbeddedRuntime

MIB = 2**20
PIDS = 60
PROGRAM = Path(__file__).with_name("program.py")


async def main(means: str, network: str) -> dict[str, Any]:
    os.environ["ATTACK_SECRET"] = "s3cret"
    directory = Path(tempfile.mkdtemp(prefix="yaosb-a"))
    directory.chmod(0o755)
    os.environ["XDG_CACHE_HOME"] = str(directory / "cache")  # every run finds out for itself
    options = {} if means == "best" else {"means": means, "plain": "yes"}
    runtime = EmbeddedRuntime(options, directory / "run")
    try:
        info = await runtime.open()
    except SandboxError as error:
        shutil.rmtree(directory)
        return {"unavailable": str(error)}
    try:
        told: dict[str, Any] = {"isolation": asdict(info.isolation), "capabilities": sorted(info.capabilities)}
        with ExitStack() as stack:
            return {**told, **await attack(runtime, directory, Network(network), stack)}
    finally:
        for state in await runtime.list({}):
            await runtime.remove(state.runtime_id)
        await runtime.close()
        shutil.rmtree(directory)


async def attack(runtime: EmbeddedRuntime, directory: Path, network: Network, stack: ExitStack) -> dict[str, Any]:
    bait = Bait(directory / "bait", stack)
    ids = {}
    for name in ("attacker", "other"):
        spec = EnvironmentSpec(
            uid=f"{name}{secrets.token_hex(4)}",
            name=name,
            image="",
            labels={},
            directory=directory / name,
            workspace=directory / name / "workspace",
            memory=512 * MIB,
            pids=PIDS,
            network=network,
        )
        ids[name] = await runtime.create(spec)
        await runtime.start(ids[name])
    other_mark = f"other{secrets.token_hex(8)}"
    await run(runtime, ids["other"], "sh", "-c", "echo SECRET > file; chmod 644 file")
    await run(runtime, ids["other"], "sh", "-c", f'setsid sh -c "sleep 1000" {other_mark} >/dev/null 2>&1 &')
    marks = {"daemon_mark": f"daemon{secrets.token_hex(8)}", "refork_mark": f"refork{secrets.token_hex(8)}"}
    given = {
        **bait.given,
        **marks,
        "other_file": str(directory / "other/workspace/file"),
        "other_mark": other_mark,
        "pids": PIDS,
        "link_socket": link_socket(runtime, ids["attacker"]),
    }
    output = await run(runtime, ids["attacker"], "python3", "-c", PROGRAM.read_text(), json.dumps(given))
    results = json.loads(output)
    results["udp to the host"] = bait.datagram_arrived()
    results["kill a process"] = results["kill a process by its number"] = not bait.process_lives()
    results["kill another sandbox"] = not marked(other_mark)
    results["the link was lost"] = await run(runtime, ids["attacker"], "echo", "here") != "here\n"
    left = {name: marked(mark) for name, mark in marks.items()}
    await runtime.stop(ids["attacker"], 1.0)
    results["a daemon outlives the stop"] = any(marked(mark) for mark in marks.values())
    return {"attacks": results, "left": left}


def link_socket(runtime: EmbeddedRuntime, runtime_id: str) -> str:
    """Where the link is inside; a hostile program would find it in its guest's arguments or by looking."""
    host = runtime._host
    if host.means.has_namespaces:
        return "/run/yaosb/link/link.sock"
    return str(host.files.directory / runtime_id / "link.sock")


async def run(runtime: EmbeddedRuntime, runtime_id: str, *argv: str) -> str:
    stream = await runtime.exec_stream(runtime_id, ExecOptions(argv=argv, timeout=60))
    output = dict.fromkeys(ExecChannel, b"")
    while (piece := await stream.receive()) is not None:
        output[piece[0]] += piece[1]
    status = await stream.wait()
    if status.exit_code != 0:
        raise RuntimeError(f"{argv[0]} ended with {status}: {output[ExecChannel.STDERR].decode()[-2000:]}")
    return output[ExecChannel.STDOUT].decode()


def marked(mark: str, looks: int = 50) -> bool:
    """Whether a process has the mark among its arguments. One that forks and forks is easily missed by a look."""
    return any(mark in processes.command_line(pid) for _ in range(looks) for pid in processes.scan())


class Bait:
    """Things of the host that the daemon's user, or anybody, may use."""

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        directory.mkdir()
        directory.chmod(0o777)
        files = {"secret": 0o600, "readable": 0o644, "writable": 0o666, "own": 0o600}
        for name, mode in files.items():
            directory.joinpath(name).write_text("SECRET")
            directory.joinpath(name).chmod(mode)
        mark = f"bait{secrets.token_hex(8)}"
        self._process = subprocess.Popen(["sh", "-c", "read line", mark], cwd=directory, stdin=subprocess.PIPE)
        stack.enter_context(self._process)
        stack.callback(self._process.kill)
        abstract = f"yaosb-{secrets.token_hex(8)}"
        listeners = {
            "path": (socket.AF_UNIX, str(directory / "s")),
            "abstract": (socket.AF_UNIX, f"\0{abstract}"),
            "tcp": (socket.AF_INET, ("127.0.0.1", 0)),
        }
        sockets = {}
        for name, (family, address) in listeners.items():
            sockets[name] = stack.enter_context(socket.socket(family, socket.SOCK_STREAM))
            sockets[name].bind(address)
            sockets[name].listen()
        (directory / "s").chmod(0o666)
        self._udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        self._udp.bind(("127.0.0.1", 0))
        self.given = {
            **{name: str(directory / name) for name in files},
            "open_directory": str(directory),
            "mark": mark,
            "pid": self._process.pid,
            "socket": str(directory / "s"),
            "abstract": abstract,
            "tcp_port": sockets["tcp"].getsockname()[1],
            "udp_port": self._udp.getsockname()[1],
        }

    def datagram_arrived(self) -> bool:
        self._udp.settimeout(0.2)
        try:
            return self._udp.recv(10) == b"hello"
        except TimeoutError:
            return False

    def process_lives(self) -> bool:
        return self._process.poll() is None


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(*sys.argv[1:]))))
