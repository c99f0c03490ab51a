"""The way to one engine: control calls through the `docker` library in threads, streams on connections of our own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlencode
from weakref import WeakSet

from yaosb_jupyter.errors import ProtocolError, RuntimeUnavailableError, missing_extra
from yaosb_jupyter.tai.runtimes.docker.address import EngineAddress
from yaosb_jupyter.tai.runtimes.docker.failures import api_error, unreachable
from yaosb_jupyter.tai.runtimes.docker.http import Connection, Response

if TYPE_CHECKING:
    from docker import APIClient

_T = TypeVar("_T")
_THREADS = 32
_CALL_SECONDS = 60
_CONNECT_SECONDS = 10.0
_CLOSE_SECONDS = 5.0
_BUFFER = 2**17


class Engine:
    """One engine. `open` before all else; all methods raise `RuntimeUnavailableError` when it does not answer."""

    def __init__(self, address: EngineAddress) -> None:
        self.address = address
        # Of our own: a stop that waits its whole grace must not keep other work from its thread.
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="yaosb-docker")
        self._client: APIClient | None = None
        self._ssl = None if address.tls is None else address.tls.context()
        self._version = ""
        self._background: set[asyncio.Task[None]] = set()
        self._connections: WeakSet[Connection] = WeakSet()

    async def open(self) -> None:
        """Connects; raises `NotAvailableError` where the `docker` package is missing."""
        if self._client is not None:
            return
        self._version = await self._ask_version()
        loop = asyncio.get_running_loop()
        self._client = await loop.run_in_executor(self._threads, self._make_client)

    async def _ask_version(self) -> str:
        """Of the engine's API; by ourselves, since the library's own question heeds proxies and other authorities."""
        try:
            async with asyncio.timeout(_CONNECT_SECONDS), self.stream("GET", "/version") as response:
                body = b"".join([piece async for piece in response.chunks()])
            return str(json.loads(body)["ApiVersion"])
        except (TimeoutError, ValueError, KeyError, ProtocolError) as error:
            raise unreachable(self.address, f"no Docker engine: {error!r}") from error

    def _make_client(self) -> APIClient:
        try:
            import docker
            from docker.errors import DockerException
            from docker.tls import TLSConfig
        except ImportError as error:
            raise missing_extra("docker", "the Docker runtime") from error
        files = self.address.tls
        tls = (
            False
            if files is None
            else TLSConfig(
                client_cert=(files.cert, files.key) if files.cert else None, ca_cert=files.ca or None, verify=True
            )
        )
        try:
            client = docker.APIClient(
                self.address.url, version=self._version, timeout=_CALL_SECONDS, tls=tls, max_pool_size=_THREADS
            )
        except (DockerException, OSError) as error:
            raise unreachable(self.address, error) from error
        if self.address.url.startswith("unix://"):
            from yaosb_jupyter.tai.runtimes.docker.unixsocket import Adapter

            socket_url = self.address.url.replace("unix://", "http+unix://", 1)
            client.mount("http+docker://", Adapter(socket_url, _CALL_SECONDS, max_pool_size=_THREADS))
        client.trust_env = False  # no proxy between us and the engine, and no look for .netrc in each call
        return client

    async def call(self, function: Callable[[APIClient], _T], *, sandbox: str | None = None) -> _T:
        """Runs one control call in a thread. ``sandbox`` is named in its errors."""
        client = self._client
        if client is None:
            raise RuntimeUnavailableError(f"the Docker engine at {self.address} is not open")
        try:
            running = asyncio.get_running_loop().run_in_executor(self._threads, _call, function, client)
        except RuntimeError as error:
            raise RuntimeUnavailableError("the pool is being closed") from error
        outcome = await running
        if isinstance(outcome, _Failure):
            raise outcome.translated(self.address, sandbox) from outcome.error
        return outcome

    async def connect(self) -> Connection:
        """A connection of its own."""
        address = self.address
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                if address.path:
                    streams = await asyncio.open_unix_connection(address.path, limit=_BUFFER)
                else:
                    streams = await asyncio.open_connection(address.host, address.port, ssl=self._ssl, limit=_BUFFER)
        except (OSError, TimeoutError) as error:
            raise unreachable(address, str(error) or "no answer in time") from error
        connection = Connection(*streams)
        self._connections.add(connection)
        return connection

    def target(self, *path: str, **query: Any) -> str:
        """The request target of an engine path; parts are quoted."""
        joined = "/".join(quote(part, safe="") for part in path)
        return f"/v{self._version}/{joined}" + (f"?{urlencode(query, errors='surrogateescape')}" if query else "")

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        target: str,
        *,
        sandbox: str | None = None,
        headers: dict[str, str] | None = None,
        body: Any = None,
    ) -> AsyncIterator[Response]:
        """A request whose answer is streamed; the connection is closed at the end. HTTP errors are raised as ours.

        It takes as long as the engine works on it: a pull, an upload, a log that is followed.
        """
        connection = await self.connect()
        try:
            response = await connection.request(method, target, headers=headers, body=body)
            if response.status >= 400:
                message = response.headers.get("x-error", "") if method == "HEAD" else await response.text()
                raise api_error(response.status, message or "not found", sandbox)
            yield response
        except ConnectionError as error:
            raise unreachable(self.address, error) from error
        finally:
            await connection.aclose()

    async def upgrade(self, target: str, body: Any, *, sandbox: str | None = None) -> Connection:
        """A connection that the engine has turned into a raw stream of bytes."""
        connection = await self.connect()
        try:
            headers = {"Connection": "Upgrade", "Upgrade": "tcp"}
            async with asyncio.timeout(_CALL_SECONDS):
                response = await connection.request("POST", target, headers=headers, body=body)
            if response.status not in (101, 200):
                raise api_error(response.status, await response.text(), sandbox)
        except (ConnectionError, TimeoutError) as error:
            await connection.aclose()
            raise unreachable(self.address, str(error) or "no answer in time") from error
        except BaseException:
            await connection.aclose()
            raise
        return connection

    def in_background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Lets ``work`` go on after its caller; `close` waits for it a little."""
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    async def close(self) -> None:
        """Idempotent; hangs up all connections. Threads that still wait for the engine end with their call."""
        if self._background:
            _, late = await asyncio.wait(self._background, timeout=_CLOSE_SECONDS)
            for task in late:
                task.cancel()
        for connection in tuple(self._connections):
            await connection.aclose()
        client, self._client = self._client, None
        self._threads.shutdown(wait=False, cancel_futures=True)
        if client is not None:
            await asyncio.to_thread(client.close)


class _Failure:
    """An error of a control call, on its way from the thread to the caller."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def translated(self, address: EngineAddress, sandbox: str | None) -> Exception:
        from docker.errors import APIError

        if isinstance(self.error, APIError):
            return api_error(self.error.status_code or 500, str(self.error.explanation or self.error), sandbox)
        return unreachable(address, self.error)


def _call(function: Callable[[APIClient], _T], client: APIClient) -> _T | _Failure:
    from docker.errors import DockerException
    from requests.exceptions import RequestException

    try:
        return function(client)
    except (DockerException, RequestException) as error:
        return _Failure(error)
