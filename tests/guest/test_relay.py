"""The relay: what comes goes on at once and whole, into a pipe or into anything else, by every Python."""

from __future__ import annotations

import hashlib
import io
import os
import secrets
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.guest.rig import other_pythons
from yaosb_jupyter.link.blob import install_blob

SIZE = 5_000_000


def a_pipe() -> tuple[int, int]:
    return os.pipe()


def a_socket() -> tuple[int, int]:
    ours, theirs = socket.socketpair()
    return ours.detach(), theirs.detach()


@pytest.fixture
def name() -> str:
    return f"yaosb-test-{secrets.token_hex(8)}"


@pytest.fixture
def listener(name: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"\0{name}")
        listening.listen()
        listening.settimeout(20)
        yield listening


@pytest.mark.parametrize("python", [sys.executable, *other_pythons()])
@pytest.mark.parametrize("kind", [a_pipe, a_socket])
def test_it_carries_what_comes(
    python: str, kind: Callable[[], tuple[int, int]], name: str, listener: socket.socket, tmp_path: Path
) -> None:
    reading, writing = kind()
    argv = [python, "-I", "-S", str(install_blob(tmp_path)), "relay", name]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=writing) as relay, io.FileIO(reading) as output:
        os.close(writing)
        assert relay.stdin is not None
        guest, _ = listener.accept()
        with guest:
            guest.settimeout(20)
            for word in (b"one", b"two", b"three"):  # each alone: nothing waits for what comes behind it
                guest.sendall(word)
                assert output.read(100) == word
                relay.stdin.write(word)
                relay.stdin.flush()
                assert guest.recv(100) == word
            content = os.urandom(SIZE)
            sending = threading.Thread(target=guest.sendall, args=(content,))
            sending.start()
            assert digest_of(output, SIZE) == hashlib.sha256(content).digest()
            sending.join(20)
        assert output.read(1) == b""
        assert relay.wait(20) == 0


def digest_of(output: io.FileIO, size: int) -> bytes:
    digest = hashlib.sha256()
    while size:
        data = output.read(1 << 16)
        digest.update(data)
        size -= len(data)
    return digest.digest()
