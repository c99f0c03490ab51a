"""Stand-ins for what a test cannot have: an image registry, and an engine that goes away."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"


class FakeRegistry:
    """A registry on loopback with one image ``there:1`` of one layer; ``hold`` keeps its layer back."""

    def __init__(self, layer_tar: bytes) -> None:
        self.hold = threading.Event()
        self.hold.set()
        self.asked_for_layer = threading.Event()
        layer = gzip.compress(layer_tar)
        config = json.dumps(
            {
                "architecture": "amd64",
                "os": "linux",
                "config": {"Cmd": ["sh"]},
                "rootfs": {"type": "layers", "diff_ids": [_digest(layer_tar)]},
            }
        ).encode()
        manifest = json.dumps(
            {
                "schemaVersion": 2,
                "mediaType": MANIFEST,
                "config": _entry("application/vnd.docker.container.image.v1+json", config),
                "layers": [_entry("application/vnd.docker.image.rootfs.diff.tar.gzip", layer)],
            }
        ).encode()
        blobs = {_digest(blob): blob for blob in (layer, config)}
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                kind, body, status = "application/json", b"{}", 200
                if self.path in ("/v2/there/manifests/1", f"/v2/there/manifests/{_digest(manifest)}"):
                    kind, body = MANIFEST, manifest
                elif self.path.startswith("/v2/there/blobs/"):
                    body = blobs[self.path.rsplit("/", 1)[1]]
                elif self.path != "/v2/":
                    status, body = 404, b'{"errors": [{"code": "MANIFEST_UNKNOWN", "message": "manifest unknown"}]}'
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Docker-Content-Digest", _digest(body))
                self.end_headers()
                if self.command == "HEAD":
                    return
                if body is layer:
                    registry.asked_for_layer.set()
                    registry.hold.wait(30)
                self.wfile.write(body)

            do_HEAD = do_GET  # noqa: N815 - the name the base class looks for

            def log_message(self, format: str, *args: object) -> None:
                """Silent."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.hold.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _entry(kind: str, blob: bytes) -> dict[str, object]:
    return {"mediaType": kind, "size": len(blob), "digest": _digest(blob)}


class Forwarder:
    """A socket in front of the real engine, that can go away with all its connections."""

    def __init__(self, path: str, target: str) -> None:
        self._path, self._target = path, target
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_unix_server(self._serve, self._path)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        other_reader, other_writer = await asyncio.open_unix_connection(self._target)
        self._writers |= {writer, other_writer}
        await asyncio.gather(_copy(reader, other_writer), _copy(other_reader, writer))

    async def go_away(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()
        await self._server.wait_closed()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof() and not writer.is_closing():
            writer.write_eof()
    except (ConnectionError, OSError):
        pass  # the other side is gone
