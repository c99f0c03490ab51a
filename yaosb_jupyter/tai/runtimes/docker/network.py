"""The bridge of our own, on which sandboxes do not reach each other."""

from __future__ import annotations

import asyncio

from yaosb_jupyter.errors import AlreadyExistsError, RuntimeUnavailableError
from yaosb_jupyter.tai.runtimes.docker.engine import Engine
from yaosb_jupyter.tai.runtimes.docker.spec import NETWORK_NAME

_BRIDGE = {
    "com.docker.network.bridge.name": "yaosb0",
    "com.docker.network.bridge.enable_icc": "false",
}


class OwnNetwork:
    """Made when it is first needed; shared by all sandboxes of the engine, so never removed by us."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._made = False
        self._making = asyncio.Lock()

    async def ensure(self) -> None:
        """Raises `RuntimeUnavailableError` where a network of our name lets containers reach each other."""
        async with self._making:
            if not self._made:
                await self._find_or_make()
                self._made = True

    def forget(self) -> None:
        """Someone has removed it."""
        self._made = False

    async def _find_or_make(self) -> None:
        for _ in range(3):
            found = await self._engine.call(lambda client: client.networks(names=[f"^{NETWORK_NAME}$"]))
            if found:
                if found[0].get("Options", {}).get("com.docker.network.bridge.enable_icc") != "false":
                    raise RuntimeUnavailableError(
                        f"the engine's network {NETWORK_NAME!r} lets containers reach each other",
                        hint=f"docker network rm {NETWORK_NAME}, then it is made again",
                    )
                return
            try:
                await self._engine.call(
                    lambda client: client.create_network(
                        NETWORK_NAME,
                        driver="bridge",
                        options=_BRIDGE,
                        check_duplicate=True,
                        labels={"yaosb.shared": "1"},
                    )
                )
            except (AlreadyExistsError, RuntimeUnavailableError):
                # Made by someone else at the same moment: the engine refuses a second one by name, or by its bridge's.
                await asyncio.sleep(0.1)
        if not await self._engine.call(lambda client: client.networks(names=[f"^{NETWORK_NAME}$"])):
            raise RuntimeUnavailableError(
                f"the engine cannot make the network {NETWORK_NAME!r}", hint="use network='none'"
            )
