"""The flags of every magic and verb."""

from __future__ import annotations

import argparse
from typing import Any, cast

from yaosb_jupyter.choices import Lifecycle, Network
from yaosb_jupyter.errors import InvalidOptionError
from yaosb_jupyter.jupyter.parser import MagicParser, key_value
from yaosb_jupyter.options import CreateFields
from yaosb_jupyter.tai.volumes.limits import MAX_SIZE
from yaosb_jupyter.units import parse_duration

LIFECYCLES = [member.value for member in Lifecycle]
NETWORKS = [member.value for member in Network]

_SANDBOX = """Sandboxes, from a notebook: the verbs below; `%sandbox VERB -h` tells one's flags.

A sandbox that is created, or named by `use`, is the one that other commands take when they name none.
Paths in a sandbox are written NAME:path, or :path for the one in use.
"""
_CELL = """Run the cell in a sandbox, its output shown as it is written.

The body is taken as it stands: neither {x} nor $x is replaced by the notebook's variables. It runs with
`bash -eo pipefail` where there is a bash, else with `sh -e`, or with what --lang names. Without ID it runs in
the sandbox in use; where there is none, in a session sandbox made for this notebook. A non-zero exit raises
ExecFailedError, so that "Run All" stops. Interrupting the cell ends the command.
`_sb` is the result: exit_code, stdout, stderr, duration.
"""
_LINE = """Run one shell command in a sandbox. As %%sbexec, which tells more."""
_WRITE = """Write the cell to a file of a workspace: PATH in the sandbox in use, or NAME:PATH. Directories are made."""


def sandbox_parser() -> MagicParser:
    """``%sandbox VERB ...``"""
    parser = MagicParser("%sandbox", description=_SANDBOX)
    verb = parser.add_verbs()
    _create_flags(verb("create", "make a sandbox and use it"))
    listing = verb("ls", "list the sandboxes")
    listing.add_argument("--status", help="only those with this status")
    listing.add_argument("--pool", default="", help="only those of this pool")
    _id(verb("use", "use this sandbox from now on; without ID: tell which is in use"))
    _id(verb("info", "all about a sandbox"))
    _ids(verb("start", "start stopped sandboxes"))
    stop = verb("stop", "stop sandboxes, keeping their files")
    _ids(stop)
    stop.add_argument("--timeout", type=_duration("timeout"), help='before processes are killed ("10s")')
    _ids(verb("rm", "remove sandboxes with their files"))
    logs = verb("logs", "output of the main process")
    _id(logs)
    logs.add_argument("-f", "--follow", action="store_true", help="go on until interrupted")
    logs.add_argument("-n", "--tail", type=int, metavar="LINES", help="only the last lines")
    _id(verb("stats", "CPU, memory and processes now"))
    verb("pools", "the pools, and what their sandboxes are kept from")
    pull = verb("pull", "get an image onto a pool's host")
    pull.add_argument("image")
    pull.add_argument("--pool", default="", help="which pool (the default one)")
    files = verb("files", "list a directory of the workspace, or one file")
    files.add_argument("path", nargs="?", default=":", help="NAME:path or path")
    copy = verb("cp", "copy files and directories into sandboxes, out of them, or from one to another")
    copy.add_argument("sources", nargs="+", metavar="source", help="a path or pattern here, or NAME:path")
    copy.add_argument("target", help="a path here, or NAME:path; into it where it is a directory or ends with /")
    copy.add_argument("--checksum", action="store_true", help="tell unchanged files by content, not by size and time")
    copy.add_argument("--max-size", metavar="SIZE", default=MAX_SIZE, help=f"most that may come here ({MAX_SIZE})")
    proxy = verb("proxy", "a link to what listens at a port inside")
    proxy.add_argument("port", type=int, metavar="PORT")
    proxy.add_argument("page", nargs="?", default="/", metavar="PATH", help='which page ("/")')
    proxy.add_argument("--sandbox", dest="ref", default="", metavar="ID", help="which sandbox (the one in use)")
    proxy.add_argument("--show", action="store_true", help="show the page in the cell, too")
    desktop = verb("vnc", "a link to the desktop of a sandbox made with --vnc")
    _id(desktop)
    desktop.add_argument("--show", action="store_true", help="show it in the cell, too")
    told = verb("help", "show this, or the flags of a verb")
    told.add_argument("topic", nargs="?", choices=[*parser.verbs], metavar="VERB")
    return parser


def cell_parser() -> MagicParser:
    """``%%sbexec [ID] ...``"""
    parser = MagicParser("%%sbexec", description=_CELL)
    parser.add_argument("ref", nargs="?", default="", metavar="ID", help="which sandbox")
    return _exec_flags(parser)


def line_parser() -> MagicParser:
    """``%sbexec [options] COMMAND``"""
    parser = MagicParser("%sbexec", usage="%%sbexec [options] COMMAND", description=_LINE)
    parser.add_argument("--sandbox", dest="ref", default="", metavar="ID", help="which sandbox")
    return _exec_flags(parser)


def write_parser() -> MagicParser:
    """``%%sbwrite PATH``"""
    parser = MagicParser("%%sbwrite", description=_WRITE)
    parser.add_argument("path")
    return parser


def create_fields(args: argparse.Namespace) -> CreateFields:
    """What ``%sandbox create`` was told, without what was left out and the id."""
    names = CreateFields.__annotations__
    return cast(
        CreateFields, {name: value for name, value in vars(args).items() if name in names and value is not None}
    )


def _create_flags(parser: MagicParser) -> None:
    parser.add_argument("id", nargs="?", default="", metavar="ID", help="its name (one is made where it is missing)")
    parser.add_argument("--reuse", action="store_true", help="take the sandbox of that name or chat where there is one")
    parser.add_argument("--image", help="a container image; embedded takes none")
    parser.add_argument("--pool", help="where (the default pool)")
    parser.add_argument("--lifecycle", metavar="|".join(LIFECYCLES), help="when it ends by itself (session)")
    parser.add_argument("--idle-timeout", metavar="TIME", help='unused for so long it is stopped ("30m"; 0: never)')
    parser.add_argument("--max-lifetime", metavar="TIME", help='it lives so long ("8h"; 0: for ever)')
    parser.add_argument("--stop-timeout", metavar="TIME", help="from SIGTERM to SIGKILL when it is stopped")
    parser.add_argument("--memory", metavar="SIZE", help='"512m", "2g"')
    parser.add_argument("--cpus", type=float, metavar="N", help="cores, fractions too")
    parser.add_argument("--pids", type=int, metavar="N", help="processes and threads at most")
    parser.add_argument("--gpus", metavar="N", help='a number, or "all"')
    parser.add_argument("--network", metavar="|".join(NETWORKS), help="what it reaches")
    parser.add_argument("--port", dest="ports", action="append", metavar="PORT", help="publish: PORT or HOST:PORT")
    parser.add_argument("--env", type=key_value, action=_Pairs, metavar="K=V", help="a variable for its commands")
    parser.add_argument("--label", dest="labels", type=key_value, action=_Pairs, metavar="K=V", help="a label")
    parser.add_argument("--user", help="who its commands run as")
    parser.add_argument("--workdir", metavar="PATH", help="where its commands run (/workspace)")
    parser.add_argument("--workspace", metavar="DIR", help="a directory of the host in place of a workspace of its own")
    parser.add_argument("--cmd", help='the main process: a shell line; "image" for the image\'s own')
    parser.add_argument("--vnc", action="store_const", const=True, help="with a desktop")
    parser.add_argument("--owner", help="for whom (admins only)")
    parser.add_argument("--chat", help="the conversation it belongs to")
    parser.add_argument("--no-start", dest="start", action="store_const", const=False, help="make it, do not start it")


def _exec_flags(parser: MagicParser) -> MagicParser:
    parser.add_argument("--lang", default="", help="python, node, sh, bash, ruby, perl, R, or a command")
    parser.add_argument("--timeout", type=_duration("timeout"), metavar="TIME", help='end the command after "90s"')
    parser.add_argument("--cwd", default="", metavar="PATH", help="where it runs")
    parser.add_argument("--env", type=key_value, action=_Pairs, metavar="K=V", help="a variable; may be repeated")
    parser.add_argument("--user", default="", help="who it runs as")
    parser.add_argument("--stdin", default="", metavar="VAR", help="send this variable (str or bytes) to its input")
    parser.add_argument("-o", "--out", default="", metavar="VAR", help="keep the result in this variable")
    parser.add_argument("--no-raise", action="store_true", help="a non-zero exit is no error")
    parser.add_argument("--rm", action="store_true", help="in a sandbox made for this once, and removed")
    parser.add_argument("--get", action="append", default=[], metavar="PATH", help="bring this file here afterwards")
    return parser


class _Pairs(argparse.Action):
    """Repeated ``K=V`` into one mapping."""

    def __call__(self, _parser: Any, namespace: argparse.Namespace, values: Any, _option: str | None = None) -> None:
        key, value = values
        setattr(namespace, self.dest, {**(getattr(namespace, self.dest) or {}), key: value})


def _id(parser: MagicParser) -> None:
    parser.add_argument("ref", nargs="?", default="", metavar="ID", help="which sandbox (the one in use)")


def _ids(parser: MagicParser) -> None:
    parser.add_argument("refs", nargs="*", metavar="ID", help="which sandboxes (the one in use)")


def _duration(name: str) -> Any:
    def convert(text: str) -> float:
        try:
            return parse_duration(text, name)
        except InvalidOptionError as error:
            raise argparse.ArgumentTypeError(f"{error.message}; {error.hint}") from None

    return convert
