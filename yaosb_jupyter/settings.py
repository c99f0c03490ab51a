"""Where the defaults come from: the environment, then a YAML file, then arguments, the later ones winning."""

from __future__ import annotations

import getpass
import hashlib
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import platformdirs
import yaml

from yaosb_jupyter.choices import Network
from yaosb_jupyter.errors import InvalidOptionError
from yaosb_jupyter.types import PoolLimits, PoolSpec, PoolTimeouts
from yaosb_jupyter.units import parse_duration, parse_size

CONFIG_NAME = "yaosb.yaml"
DEFAULT_POOL = "default"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a manager is set up. Sizes in bytes, durations in seconds (0 never), ``cpus`` in cores.

    ``runtime_dir`` holds sockets, so it is short; ``image`` empty takes the runtime's own default; ``tai_*`` describe
    the pool that is made when ``pools`` is empty: an empty ``tai_addr`` takes a reachable Docker engine, else
    ``embedded``.
    """

    data_dir: Path
    runtime_dir: Path
    owner: str
    pools: tuple[PoolSpec, ...] = ()
    image: str = ""
    max_sandboxes: int = 100
    idle_timeout: float = 30 * 60.0
    max_lifetime: float = 0.0
    stop_timeout: float = 10.0
    memory: int = 2 * 2**30
    cpus: float = 1.0
    pids: int = 512
    tai_addr: str = ""
    tai_runtime: str = "docker"
    tai_kubeconfig: str = ""
    tai_namespace: str = "default"
    grpc_listen: str = ""
    grpc_allow: tuple[str, ...] = ()
    daemon_idle_exit: float = 10 * 60.0

    @property
    def runtimes_dir(self) -> Path:
        """Where runtimes without an engine keep what must outlive a restart of the host."""
        return self.data_dir / "runtimes"

    def all_pools(self) -> tuple[PoolSpec, ...]:
        """The configured pools, or the one that ``tai_*`` describe. The first is the default."""
        if self.pools:
            return self.pools
        options = {"runtime": self.tai_runtime, "kubeconfig": self.tai_kubeconfig, "namespace": self.tai_namespace}
        only_k8s = options if self.tai_runtime == "k8s" else {}
        return (PoolSpec(name=DEFAULT_POOL, address=self.tai_addr, options=only_k8s),)


def load_settings(
    *, file: Path | str | None = None, environ: Mapping[str, str] | None = None, **overrides: Any
) -> Settings:
    """Settings from ``environ`` (default: the process's), then the YAML file, then ``overrides``.

    ``file`` defaults to ``$YAO_CONFIG``, else to ``yaosb.yaml`` in the user's configuration directory where it exists.
    Raises `InvalidOptionError` naming the variable or field.
    """
    env = os.environ if environ is None else environ
    values: dict[str, Any] = {}
    for name, field_name in _VARIABLES.items():
        if env.get(name):
            values[field_name] = _convert(field_name, env[name], name)
    for given in (_read_file(file, env), overrides):
        for field_name, value in given.items():
            if field_name not in _CONVERTERS:
                accepted = "accepted: " + ", ".join(sorted(_CONVERTERS))
                raise InvalidOptionError(f"unknown setting {field_name!r}", hint=accepted)
            if value is not None:
                values[field_name] = _convert(field_name, value, field_name)
    data_dir = values.setdefault("data_dir", Path(platformdirs.user_data_dir("yaosb", appauthor=False)))
    values.setdefault("runtime_dir", _default_runtime_dir(data_dir, env))
    values.setdefault("owner", _os_user())
    return Settings(**values)


def _read_file(file: Path | str | None, env: Mapping[str, str]) -> Mapping[str, Any]:
    named = file or env.get("YAO_CONFIG")
    path = Path(named) if named else Path(platformdirs.user_config_dir("yaosb", appauthor=False)) / CONFIG_NAME
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if named:
            raise InvalidOptionError(f"the configuration file {path} does not exist") from None
        return {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InvalidOptionError(f"the configuration file {path} cannot be read: {error}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise InvalidOptionError(f"the configuration file {path} is not a mapping", hint="accepted: settings by name")
    return {str(key): value for key, value in content.items()}


def _default_runtime_dir(data_dir: Path, env: Mapping[str, str]) -> Path:
    # One short directory for each data directory: a socket's path ends at 107 bytes.
    digest = hashlib.sha256(os.fsencode(data_dir.absolute())).hexdigest()[:12]
    base = env.get("XDG_RUNTIME_DIR")
    if base and Path(base).is_dir():
        return Path(base) / "yaosb" / digest
    return Path(tempfile.gettempdir()) / f"yaosb-{os.getuid()}" / digest


def _os_user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a uid without a passwd entry
        return f"uid-{os.getuid()}"


def _convert(field_name: str, value: Any, source: str) -> Any:
    return _CONVERTERS[field_name](value, source)


def _path(value: Any, source: str) -> Path:
    if not isinstance(value, str | Path) or not str(value):
        raise _bad(source, value, "a path")
    return Path(value).expanduser().absolute()


def _text(value: Any, source: str) -> str:
    if not isinstance(value, str):
        raise _bad(source, value, "text")
    return value


def _count(value: Any, source: str) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError):
        raise _bad(source, value, "a whole number") from None
    if isinstance(value, bool) or number < 0 or number != float(value):
        raise _bad(source, value, "a whole number, 0 or more")
    return number


def _cores(value: Any, source: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise _bad(source, value, "a number of cores") from None
    if isinstance(value, bool) or not 0.01 <= number <= 1024:
        raise _bad(source, value, "0.01 to 1024 cores")
    return number


def _names(value: Any, source: str) -> tuple[str, ...]:
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, Sequence) or not all(isinstance(item, str) for item in items):
        raise _bad(source, value, "a list, or text separated by commas")
    return tuple(item.strip() for item in items if item.strip())


def _tai_runtime(value: Any, source: str) -> str:
    if value not in ("docker", "k8s"):
        raise _bad(source, value, "docker, k8s")
    return str(value)


def _network(value: Any, source: str) -> Network:
    return Network.of(value, source)


def _texts(value: Any, source: str) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise _bad(source, value, "a mapping of names to text")
    return {str(key): str(item) for key, item in value.items()}


def _pools(value: Any, source: str) -> tuple[PoolSpec, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise _bad(source, value, "a list of pools")
    pools = tuple(_pool(item, f"{source}[{index}]") for index, item in enumerate(value))
    names = [pool.name for pool in pools]
    for name in names:
        if names.count(name) > 1:
            raise InvalidOptionError(f"{source}: the name {name!r} is given twice", hint="give each pool its own name")
    return pools


def _pool(value: Any, source: str) -> PoolSpec:
    if isinstance(value, PoolSpec):
        return value
    return PoolSpec(**_fields(value, source, _POOL_CONVERTERS))


def _limits(value: Any, source: str) -> PoolLimits:
    return PoolLimits(**_fields(value, source, {field.name: _count for field in fields(PoolLimits)}))


def _timeouts(value: Any, source: str) -> PoolTimeouts:
    return PoolTimeouts(**_fields(value, source, {field.name: parse_duration for field in fields(PoolTimeouts)}))


_Converter = Callable[[Any, str], Any]


def _fields(value: Any, source: str, converters: Mapping[str, _Converter]) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise _bad(source, value, "a mapping with " + ", ".join(converters))
    unknown = sorted(str(key) for key in value if key not in converters)
    if unknown:
        raise InvalidOptionError(f"unknown field {source}.{unknown[0]}", hint="accepted: " + ", ".join(converters))
    return {name: converters[name](item, f"{source}.{name}") for name, item in value.items() if item is not None}


def _bad(source: str, value: Any, accepted: str) -> InvalidOptionError:
    return InvalidOptionError(f"{source}={value!r} is not valid", hint=f"accepted: {accepted}")


_CONVERTERS: Mapping[str, _Converter] = {
    "data_dir": _path,
    "runtime_dir": _path,
    "owner": _text,
    "pools": _pools,
    "image": _text,
    "max_sandboxes": _count,
    "idle_timeout": parse_duration,
    "max_lifetime": parse_duration,
    "stop_timeout": parse_duration,
    "memory": parse_size,
    "cpus": _cores,
    "pids": _count,
    "tai_addr": _text,
    "tai_runtime": _tai_runtime,
    "tai_kubeconfig": _text,
    "tai_namespace": _text,
    "grpc_listen": _text,
    "grpc_allow": _names,
    "daemon_idle_exit": parse_duration,
}

_POOL_CONVERTERS: Mapping[str, _Converter] = {
    "name": _text,
    "address": _text,
    "options": _texts,
    "limits": _limits,
    "timeouts": _timeouts,
    "image": _text,
    "memory": parse_size,
    "cpus": _cores,
    "pids": _count,
    "network": _network,
    "workdir": _text,
    "user": _text,
}

_VARIABLES: Mapping[str, str] = {
    "YAO_DATA_DIR": "data_dir",
    "YAO_RUNTIME_DIR": "runtime_dir",
    "YAO_TAI_ADDR": "tai_addr",
    "YAO_TAI_RUNTIME": "tai_runtime",
    "YAO_TAI_KUBECONFIG": "tai_kubeconfig",
    "YAO_TAI_NAMESPACE": "tai_namespace",
    "YAO_GRPC_LISTEN": "grpc_listen",
    "YAO_GRPC_ALLOW": "grpc_allow",
    "YAO_SANDBOX_IMAGE": "image",
    "YAO_SANDBOX_MAX": "max_sandboxes",
    "YAO_SANDBOX_IDLE_TIMEOUT": "idle_timeout",
    "YAO_SANDBOX_MEMORY": "memory",
    "YAO_SANDBOX_CPU": "cpus",
    "YAO_DAEMON_IDLE_EXIT": "daemon_idle_exit",
}
