"""``yaosb``: the daemon and its sandboxes from a shell.

Exit codes: 0; 1 what was asked for failed; 2 it was not understood; 130 interrupted; ``exec`` gives the command's
(127 and 126 where it could not be started).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import stat
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from yaosb_jupyter.blocking.entry import connect
from yaosb_jupyter.blocking.manager import Manager
from yaosb_jupyter.blocking.sandbox import Sandbox
from yaosb_jupyter.blocking.stream import CommandStream
from yaosb_jupyter.building import Order, build
from yaosb_jupyter.choices import ExecChannel
from yaosb_jupyter.core.files.copies import Copies, CopyOptions, Step
from yaosb_jupyter.core.files.places import Place as FilePlace
from yaosb_jupyter.core.sandbox import AsyncSandbox
from yaosb_jupyter.daemon.connect import connect_async
from yaosb_jupyter.daemon.log import log_to_stderr
from yaosb_jupyter.daemon.place import Place
from yaosb_jupyter.daemon.process import run
from yaosb_jupyter.daemon.stop import stop_daemon
from yaosb_jupyter.doctor import Health, diagnose
from yaosb_jupyter.errors import CommandNotFoundError, InvalidOptionError, SandboxError
from yaosb_jupyter.images.catalogue import IMAGES, image_named
from yaosb_jupyter.images.platforms import Platform
from yaosb_jupyter.settings import Settings, load_settings
from yaosb_jupyter.tai.volumes.limits import MAX_SIZE
from yaosb_jupyter.types import Exit, FileInfo, SandboxInfo
from yaosb_jupyter.units import format_duration, format_size, parse_duration
from yaosb_jupyter.version import __version__
from yaosb_jupyter.wire.codec import to_json

INTERRUPTED = 130
_PIECE = 1 << 16


def main(argv: Sequence[str] | None = None) -> int:
    warnings.showwarning = lambda message, *_: print(f"yaosb: warning: {message}", file=sys.stderr)
    args = _parser().parse_args(argv)
    try:
        return int(args.run(args))
    except SandboxError as error:
        print(f"yaosb: {error}", *getattr(error, "__notes__", ()), sep="\n", file=sys.stderr)
        return error.exit_code if isinstance(error, CommandNotFoundError) else 1
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has had enough; nothing more goes there, at exit neither.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="yaosb", description="Sandboxes for notebooks.")
    parser.add_argument("--version", action="version", version=f"yaosb {__version__}")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--data-dir", type=Path, help="default: $YAO_DATA_DIR, else the user's data directory")
    told = argparse.ArgumentParser(add_help=False, parents=[common])
    told.add_argument("--json", action="store_true", help="for programs")
    verbs = parser.add_subparsers(metavar="COMMAND", required=True)

    serve = verbs.add_parser("serve", parents=[common], help="be the daemon, here in the foreground")
    serve.add_argument("--idle-exit", metavar="DURATION", help="end after this long without use (default: never)")
    serve.set_defaults(run=_serve)

    shutdown = verbs.add_parser("shutdown", parents=[common], help="end the daemon; sandboxes go on")
    shutdown.set_defaults(run=_shutdown)

    listing = verbs.add_parser("ls", parents=[told], help="list sandboxes")
    listing.set_defaults(run=_ls)

    acts: Sequence[tuple[str, str, Callable[[Sandbox], object]]] = (
        ("start", "start stopped sandboxes", Sandbox.start),
        ("stop", "stop sandboxes, keeping their files (the daemon: shutdown)", Sandbox.stop),
        ("rm", "remove sandboxes with their files", Sandbox.remove),
    )
    for name, does, act in acts:
        verb = verbs.add_parser(name, parents=[common], help=does)
        verb.add_argument("ids", nargs="+", metavar="ID")
        verb.set_defaults(run=_each, act=act)

    create = verbs.add_parser("create", parents=[told], help="create a sandbox")
    create.add_argument("id", nargs="?", default="", metavar="ID")
    for option in ("pool", "image", "lifecycle", "idle-timeout", "memory", "network", "user"):
        create.add_argument(f"--{option}")
    create.add_argument("--cpus", type=float)
    create.set_defaults(run=_create)

    execute = verbs.add_parser("exec", parents=[common], help="run a command in a sandbox")
    execute.add_argument("-i", "--interactive", action="store_true", help="pass stdin on")
    execute.add_argument("--cwd", default="")
    execute.add_argument("--timeout")
    execute.add_argument("--env", action="append", default=[], metavar="K=V", help="a variable; may be repeated")
    execute.add_argument("id", metavar="ID")
    execute.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND")
    execute.set_defaults(run=_exec)

    image = verbs.add_parser("image", help="our images")
    building = image.add_subparsers(metavar="COMMAND", required=True).add_parser(
        "build",
        parents=[common],
        help="build them on the Docker engine",
        epilog="\n".join(["images:", *(f"  {each.name:10}{each.does}" for each in IMAGES.values())]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    building.add_argument("names", nargs="*", metavar="NAME", help="base (the default), test, desktop, data")
    building.add_argument("--platform", help="linux/amd64 or linux/arm64 (default: the engine's own)")
    building.add_argument("--push", type=_given, metavar="REGISTRY", help="push to it, as REGISTRY/sandbox-NAME:TAG")
    building.add_argument("--rebuild", action="store_true", help="build what is there already, too")
    building.add_argument("--verbose", action="store_true", help="tell all that the builds print")
    building.set_defaults(run=_image_build)

    copying = verbs.add_parser("cp", parents=[common], help="copy into sandboxes, out of them, or from one to another")
    copying.add_argument("sources", nargs="+", metavar="SRC", help="a path or pattern here, or ID:path")
    copying.add_argument("target", metavar="DST", help="into it where it is a directory or ends with /")
    copying.add_argument("--checksum", action="store_true", help="tell unchanged files by content")
    copying.add_argument("--max-size", metavar="SIZE", default=MAX_SIZE, help=f"most that may come here ({MAX_SIZE})")
    copying.set_defaults(run=_cp)

    files = verbs.add_parser("files", parents=[told], help="list a directory of a sandbox, or tell of a file")
    files.add_argument("place", metavar="ID[:PATH]")
    files.set_defaults(run=_files)

    doctor = verbs.add_parser("doctor", parents=[told], help="tell what works here, and what to do where it does not")
    doctor.set_defaults(run=_doctor)
    return parser


def _given(text: str) -> str:
    """An empty one is a variable that was never set."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty")
    return text


def _settings(args: argparse.Namespace) -> Settings:
    return load_settings(data_dir=args.data_dir)


def _connect(args: argparse.Namespace) -> Manager:
    return connect(args.data_dir)


def _serve(args: argparse.Namespace) -> int:
    idle_exit = parse_duration(args.idle_exit, "--idle-exit") if args.idle_exit else 0.0
    settings = _settings(args)
    log_to_stderr()
    asyncio.run(run(settings, idle_exit=idle_exit, ready=lambda: None))
    return 0


def _shutdown(args: argparse.Namespace) -> int:
    pid = asyncio.run(stop_daemon(Place.of(_settings(args))))
    print("no daemon runs" if pid is None else f"stopped the daemon (process {pid})")
    return 0


def _ls(args: argparse.Namespace) -> int:
    with _connect(args) as manager:
        infos = manager.list()
    if args.json:
        print(json.dumps(to_json(list(infos)), indent=2))
    else:
        print(_table(_HEADINGS, [_row(info) for info in infos]))
    return 0


def _each(args: argparse.Namespace) -> int:
    """Nothing is done where one of them is not there."""
    failed = False
    with _connect(args) as manager:
        for sandbox in [manager.get(id) for id in args.ids]:
            try:
                args.act(sandbox)
                print(sandbox.id)
            except SandboxError as error:
                print(f"yaosb: {error}", file=sys.stderr)
                failed = True
    return int(failed)


def _create(args: argparse.Namespace) -> int:
    names = ("pool", "image", "lifecycle", "idle_timeout", "memory", "network", "user", "cpus")
    fields = {name: value for name in names if (value := getattr(args, name)) is not None}
    with _connect(args) as manager:
        info = manager.create(args.id, **fields).last_info
    print(json.dumps(to_json(info), indent=2) if args.json else info.id)
    return 0


def _exec(args: argparse.Namespace) -> int:
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    outputs = {ExecChannel.STDOUT: sys.stdout.buffer, ExecChannel.STDERR: sys.stderr.buffer}
    with _connect(args) as manager:
        sandbox = manager.get(args.id)
        given = {"cwd": args.cwd, "timeout": args.timeout, "env": _variables(args.env)}
        stream = sandbox.stream(command, encoding=None, stdin=args.interactive, **given)
        with stream:
            if args.interactive:
                threading.Thread(target=_feed, args=(stream,), daemon=True).start()
            for event in stream:
                if isinstance(event, Exit):
                    return event.status.exit_code
                outputs[event.channel].write(event.data)
                outputs[event.channel].flush()
    raise AssertionError("a stream ends with an Exit event")


def _variables(pairs: Sequence[str]) -> dict[str, str]:
    if odd := next((pair for pair in pairs if not pair.partition("=")[1]), None):
        raise InvalidOptionError(f"--env {odd!r} is not valid", hint="accepted: K=V")
    return {name: value for name, _, value in (pair.partition("=") for pair in pairs)}


def _cp(args: argparse.Namespace) -> int:
    asyncio.run(_copy(args))
    return 0


async def _copy(args: argparse.Namespace) -> None:
    async with await connect_async(args.data_dir) as manager:

        async def find(ref: str) -> AsyncSandbox:
            return await manager.get(ref)

        options = CopyOptions(checksum=args.checksum, max_size=args.max_size)
        copies = Copies(find, _tell if sys.stderr.isatty() else lambda _: None, options)
        sources = [FilePlace.parse(source) for source in args.sources]
        for done in await copies.run(sources, FilePlace.parse(args.target)):
            copied = done.copied
            print(f"{done.source} -> {done.target} ({copied.files} files, {format_size(copied.size)})")
            for path in copied.skipped:
                print(f"yaosb: left out, as a link or special file: {path}", file=sys.stderr)


def _tell(step: Step) -> None:
    done, total = step.progress.done, step.progress.total
    end = "\n" if done == total else ""
    print(f"\r\x1b[K{step.source}  {format_size(done)} of {format_size(total)}", end=end, file=sys.stderr, flush=True)


def _files(args: argparse.Namespace) -> int:
    ref, _, path = args.place.partition(":")
    with _connect(args) as manager:
        files = manager.get(ref).files
        there = files.stat(path, follow=True)
        infos = files.list(path) if there.is_dir else [there]
    if args.json:
        print(json.dumps(to_json(list(infos)), indent=2))
    else:
        print(_table(("MODE", "SIZE", "MODIFIED", "NAME"), [_file(info) for info in infos]))
    return 0


def _file(info: FileInfo) -> tuple[str, ...]:
    name = f"{info.name}/" if info.is_dir else info.name
    end = "" if info.link_target is None else f" -> {info.link_target}"
    modified = datetime.fromtimestamp(info.mtime).astimezone().strftime("%Y-%m-%d %H:%M")
    size = "" if info.is_dir else format_size(info.size)
    return (stat.filemode(info.mode), size, modified, _printable(name + end))


def _printable(text: str) -> str:
    """What moves the cursor or colours, as escapes: names are a sandbox's."""
    return text if text.isprintable() else text.encode("unicode_escape").decode("ascii")


def _feed(stream: CommandStream[bytes]) -> None:
    try:
        while data := os.read(sys.stdin.fileno(), _PIECE):
            stream.send(data)
        stream.close_stdin()
    except SandboxError:
        pass  # the reader of the output meets it too, and tells it


def _image_build(args: argparse.Namespace) -> int:
    order = Order(
        images=[image_named(name) for name in args.names or ["base"]],
        platform=Platform.parse(args.platform) if args.platform else None,
        push=args.push or "",
        rebuild=args.rebuild,
        verbose=args.verbose,
    )
    asyncio.run(build(order, _settings(args), lambda line: print(line, flush=True)))
    return 0


def _doctor(args: argparse.Namespace) -> int:
    findings = asyncio.run(diagnose(_settings(args)))
    if args.json:
        print(json.dumps(to_json(findings), indent=2))
    else:
        marks = {Health.GOOD: "ok", Health.FAIR: "--", Health.BAD: "!!"}
        for finding in findings:
            print(f"{marks[finding.health]}  {finding.name}: {finding.found}")
            if finding.advice:
                print(f"      {finding.advice}")
    return int(any(finding.health is Health.BAD for finding in findings))


_HEADINGS = ("ID", "STATUS", "LIFECYCLE", "POOL", "IMAGE", "AGE", "EXPIRES")


def _row(info: SandboxInfo) -> tuple[str, ...]:
    now = datetime.now(UTC)
    status = info.status.value if info.reachable else f"{info.status.value}, unreachable"
    age = format_duration(max(0.0, (now - info.created_at).total_seconds()))
    left = info.expires_at and format_duration(max(0.0, (info.expires_at - now).total_seconds()))
    return (info.id, status, info.lifecycle.value, info.pool, info.image, age, f"in {left}" if left else "never")


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in (headings, *rows)) for column in range(len(headings))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in (headings, *rows)]
    return "\n".join(line.rstrip() for line in lines)
