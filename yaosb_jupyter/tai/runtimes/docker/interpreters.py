"""Which images have a Python that the guest can run on: tried, once per image."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections import OrderedDict

from yaosb_jupyter.errors import ImageNotFoundError, SandboxError
from yaosb_jupyter.link.blob import guest_blob
from yaosb_jupyter.tai.runtimes.docker.engine import Engine
from yaosb_jupyter.tai.runtimes.docker.failures import NO_COMMAND
from yaosb_jupyter.tai.runtimes.docker.throwaway import run_throwaway
from yaosb_jupyter.tai.runtimes.docker.users import program_archive

_NOBODY = "65534:65534"
_MAX_IMAGES = 200
_MAX_BLOB = 2**20
_SOURCE = "/yaosb-guest.pyz"
# The byte code starts in half the time; the sources beside it are for a Python that was replaced meanwhile.
_COMPILE = f"""
import base64, ctypes, importlib.util, io, json, marshal, resource, selectors, subprocess, sys, termios, zipfile
if sys.version_info < (3, 8):
    sys.exit(1)
made = io.BytesIO()
with zipfile.ZipFile("{_SOURCE}") as source, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as blob:
    for name in source.namelist():
        text = source.read(name)
        code = compile(text, name, "exec", dont_inherit=True, optimize=2)
        unchecked = (1).to_bytes(4, "little") + importlib.util.source_hash(text)
        blob.writestr(name + "c", importlib.util.MAGIC_NUMBER + unchecked + marshal.dumps(code))
        blob.writestr(name, text)
print(base64.b64encode(made.getvalue()).decode())
"""

_known: OrderedDict[tuple[str, str], bytes] = OrderedDict()
"""By engine and image; empty where no guest can run. Of the process, as engines are."""


class Interpreters:
    """The guests for the images of one engine."""

    def __init__(self, engine: Engine, engine_id: str) -> None:
        self._engine = engine
        self._engine_id = engine_id
        self._trying = asyncio.Lock()

    async def guest(self, image_id: str) -> bytes:
        """The guest's blob with the byte code of this image's python3; empty where that is missing or too old.

        The byte code was made inside the image, and is run nowhere else.
        """
        key = (self._engine_id, image_id)
        async with self._trying:
            if key not in _known:
                _known[key] = await self._try(image_id)
                if len(_known) > _MAX_IMAGES:
                    _known.popitem(last=False)
            return _known[key]

    async def _try(self, image_id: str) -> bytes:
        """As an ordinary user, who may not be able to read what root's python3 needs."""
        argv = ["python3", "-I", "-S", "-c", _COMPILE]
        try:
            code, output = await run_throwaway(
                self._engine, image_id, argv, check=False, user=_NOBODY, archive=await asyncio.to_thread(_source)
            )
        except ImageNotFoundError:
            raise
        except SandboxError as error:
            if NO_COMMAND.search(error.message):
                return b""
            raise
        return _decoded(output) if code == 0 else b""


def _source() -> bytes:
    return program_archive({_SOURCE: guest_blob()})


def _decoded(output: bytes) -> bytes:
    """What the image printed, if it can be a blob."""
    try:
        blob = base64.b64decode(output.strip(), validate=True)
    except binascii.Error:
        return b""
    return blob if blob.startswith(b"PK") and len(blob) < _MAX_BLOB else b""
