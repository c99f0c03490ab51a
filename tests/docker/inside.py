"""Run in a container that has the engine's socket: a manager there, and what it can do with a sandbox beside it.

Prints what it saw as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from yaosb_jupyter import AsyncManager
from yaosb_jupyter.settings import Settings
from yaosb_jupyter.types import PoolSpec


async def main(image: str, place: Path) -> None:
    pool = PoolSpec(name="engine", address="unix:///var/run/docker.sock", image=image, options={"probe_image": image})
    settings = Settings(data_dir=place / "data", runtime_dir=place / "run", owner="inside", pools=(pool,))
    saw: dict[str, object] = {}
    async with AsyncManager.open(settings) as manager:
        sandbox = await manager.create(env={"WORD": "hello"})
        try:
            saw["link"] = (await sandbox.info()).link
            await sandbox.files.write("in/put", b"from the manager")
            ran = await sandbox.exec('cat in/put; echo; echo "$WORD"; echo from inside > out', stdin="")
            saw["exec"] = [ran.exit_code, ran.stdout]
            saw["read"] = (await sandbox.files.read("out")).decode()
            await sandbox.stop()
            saw["stopped"] = (await sandbox.files.read("out")).decode()
            await sandbox.start()
            saw["again"] = (await sandbox.exec(["cat", "out"])).stdout
        finally:
            await sandbox.remove()
        saw["left"] = len(await manager.list())
    print(json.dumps(saw))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
