"""Which engine an address means: `local`, `unix://`, `tcp://`, `context://`, as the Docker command line reads them."""

from __future__ import annotations

import hashlib
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from yaosb_jupyter.errors import InvalidOptionError, NotAvailableError, RuntimeUnavailableError
from yaosb_jupyter.tai.runtimes.docker.options import DockerOptions

_DEFAULT_CONTEXT = "default"
_ACCEPTED = "accepted: local, unix:///PATH, tcp://HOST[:PORT], context://NAME"
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, kw_only=True)
class TlsFiles:
    """PEM files; an empty ``ca`` means the system's authorities."""

    ca: str = ""
    cert: str = ""
    key: str = ""

    def context(self) -> ssl.SSLContext:
        """Raises `InvalidOptionError` for files that cannot be used."""
        try:
            context = ssl.create_default_context(cafile=self.ca or None)
            if self.cert:
                context.load_cert_chain(self.cert, self.key or None)
        except OSError as error:  # ssl.SSLError is one
            raise InvalidOptionError(
                f"the engine's certificates cannot be used: {error}",
                hint=f"looked at {self.ca}, {self.cert}, {self.key}",
            ) from error
        return context


@dataclass(frozen=True, kw_only=True)
class EngineAddress:
    """One engine: a socket's ``path``, or ``host`` and ``port``; ``origin`` says where the address came from."""

    path: str = ""
    host: str = ""
    port: int = 0
    tls: TlsFiles | None = None
    origin: str = ""

    @property
    def url(self) -> str:
        if self.path:
            return f"unix://{self.path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"tcp://{host}:{self.port}"

    @property
    def is_local(self) -> bool:
        return bool(self.path) or self.host in _LOOPBACK

    def __str__(self) -> str:
        return f"{self.url} ({self.origin})" if self.origin else self.url


def resolve(address: str, options: DockerOptions, *, environ: Mapping[str, str], home: Path) -> EngineAddress:
    """The engine that ``address`` means here. Reads the Docker configuration's files.

    ``local`` is the option ``context``, else DOCKER_HOST, DOCKER_CONTEXT, the current context, the platform's socket.
    Raises `InvalidOptionError` for a malformed address, `NotAvailableError` for a context that does not exist.
    """
    config = Path(environ.get("DOCKER_CONFIG") or home / ".docker")
    if address.startswith("context://"):
        return _of_context(address.removeprefix("context://"), options, environ, home, config)
    if address in ("", "local", *_LOOPBACK):
        return _local(options, environ, home, config)
    return _parse(address, _tls(options, environ), "")


def _local(options: DockerOptions, environ: Mapping[str, str], home: Path, config: Path) -> EngineAddress:
    context = options.context
    if not context and not environ.get("DOCKER_HOST"):
        context = environ.get("DOCKER_CONTEXT") or _read_json(config / "config.json").get("currentContext", "")
    return _of_context(context or _DEFAULT_CONTEXT, options, environ, home, config)


def _of_context(
    name: str, options: DockerOptions, environ: Mapping[str, str], home: Path, config: Path
) -> EngineAddress:
    """The default one has no files: it is DOCKER_HOST, or the platform's socket."""
    if name != _DEFAULT_CONTEXT:
        return _from_files(name, config)
    if host := environ.get("DOCKER_HOST"):
        return _parse(host, _tls(options, environ), "DOCKER_HOST")
    return EngineAddress(path=str(_platform_socket(environ, home)))


def _platform_socket(environ: Mapping[str, str], home: Path) -> Path:
    system = Path("/var/run/docker.sock")
    runtime = environ.get("XDG_RUNTIME_DIR")
    others = [home / ".docker/run/docker.sock", *([Path(runtime) / "docker.sock"] if runtime else [])]
    return next((path for path in (system, *others) if path.exists()), system)


def _from_files(name: str, config: Path) -> EngineAddress:
    digest = hashlib.sha256(name.encode()).hexdigest()
    endpoint = _read_json(config / "contexts/meta" / digest / "meta.json").get("Endpoints", {}).get("docker", {})
    if not endpoint.get("Host"):
        raise NotAvailableError(f"there is no Docker context {name!r}", hint="docker context ls tells which there are")
    directory = config / "contexts/tls" / digest / "docker"
    ca, cert, key = (
        str(path) if path.exists() else "" for path in (directory / f"{n}.pem" for n in ("ca", "cert", "key"))
    )
    tls = TlsFiles(ca=ca, cert=cert, key=key) if ca or cert else None
    return _parse(endpoint["Host"], tls, f"context {name!r}")


def _tls(options: DockerOptions, environ: Mapping[str, str]) -> TlsFiles | None:
    if options.tls_ca or options.tls_cert:
        return TlsFiles(ca=options.tls_ca, cert=options.tls_cert, key=options.tls_key)
    directory = environ.get("DOCKER_CERT_PATH", "")
    if not directory and not environ.get("DOCKER_TLS_VERIFY"):
        return None
    base = Path(directory)
    return TlsFiles(ca=str(base / "ca.pem"), cert=str(base / "cert.pem"), key=str(base / "key.pem"))


def _parse(url: str, tls: TlsFiles | None, origin: str) -> EngineAddress:
    if url.startswith("unix://"):
        path = url.removeprefix("unix://")
        if not path.startswith("/"):
            raise InvalidOptionError(f"address {url!r} is not valid", hint="accepted: unix:// and an absolute path")
        return EngineAddress(path=path, origin=origin)
    if not url.startswith("tcp://"):
        raise InvalidOptionError(f"address {url!r} is not one of a Docker engine we can use", hint=_ACCEPTED)
    try:
        parts = urlsplit(url)
        host, port, path = parts.hostname, parts.port, parts.path
    except ValueError:
        host, port, path = None, None, ""
    if not host or path not in ("", "/"):
        raise InvalidOptionError(f"address {url!r} is not valid", hint=_ACCEPTED)
    return EngineAddress(host=host, port=port or (2376 if tls else 2375), tls=tls, origin=origin)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise RuntimeUnavailableError(f"{path} cannot be read: {error}", hint="mend or remove it") from error
    return found if isinstance(found, dict) else {}
