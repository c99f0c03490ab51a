"""URLs for the ports of one host's environments, without a manager."""

from __future__ import annotations

from functools import partial

from yaosb_jupyter.checks import check_number
from yaosb_jupyter.choices import Status
from yaosb_jupyter.errors import NotRunningError
from yaosb_jupyter.tai.proxy.server import Proxy
from yaosb_jupyter.tai.proxy.tickets import Serve, Target
from yaosb_jupyter.tai.runtimes.base import Runtime
from yaosb_jupyter.types import ProxyHealth


class HostProxy:
    """Listens when it is first asked. Whoever stops or removes an environment revokes its URLs."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._proxy = Proxy()

    async def url(self, runtime_id: str, port: int, path: str = "/", *, serve: Serve | None = None) -> str:
        """See `AsyncSandbox.proxy`; ``serve`` answers in the server's place.

        Raises `NotFoundError`, `NotRunningError`, `InvalidOptionError`.
        """
        check_number("port", port, 1, 65535)
        state = await self._runtime.inspect(runtime_id)
        if state.status is not Status.RUNNING:
            raise NotRunningError(f"it is {state.status.value}", sandbox=runtime_id, hint="start it first")
        dial = partial(self._runtime.dial, runtime_id, port)
        target = Target(uid=runtime_id, name=state.name, port=port, dial=dial, serve=serve)
        return await self._proxy.url(target, path)

    def revoke(self, runtime_id: str) -> None:
        """Its URLs lead nowhere from now on, and what goes on by them ends."""
        self._proxy.revoke(runtime_id)

    async def healthz(self) -> ProxyHealth:
        """That it answers, and where. Raises `UnavailableError`."""
        return await self._proxy.healthz()

    async def close(self) -> None:
        """Ends it and all that goes on by it. Idempotent."""
        await self._proxy.close()
