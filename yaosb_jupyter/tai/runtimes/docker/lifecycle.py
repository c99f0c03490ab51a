"""Making, starting, stopping and removing containers."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from yaosb_jupyter.choices import Network
from yaosb_jupyter.errors import (
    CommandNotFoundError,
    InvalidOptionError,
    NotFoundError,
    NotRunningError,
    RuntimeUnavailableError,
    SandboxError,
    UnavailableError,
)
from yaosb_jupyter.tai.runtimes.base import EnvironmentSpec
from yaosb_jupyter.tai.runtimes.docker import workspace
from yaosb_jupyter.tai.runtimes.docker.accounts import Accounts
from yaosb_jupyter.tai.runtimes.docker.containers import create_container, discard, remove_container
from yaosb_jupyter.tai.runtimes.docker.engine import Engine
from yaosb_jupyter.tai.runtimes.docker.environments import EnvironmentFacts, Environments
from yaosb_jupyter.tai.runtimes.docker.failures import NO_COMMAND
from yaosb_jupyter.tai.runtimes.docker.guests import Guests
from yaosb_jupyter.tai.runtimes.docker.images import Images
from yaosb_jupyter.tai.runtimes.docker.interpreters import Interpreters
from yaosb_jupyter.tai.runtimes.docker.network import OwnNetwork
from yaosb_jupyter.tai.runtimes.docker.scripts import KEEPALIVE_NAME, REMOVE_CONTENT
from yaosb_jupyter.tai.runtimes.docker.spec import (
    GUEST,
    MAIN_ENVIRONMENT,
    LinkKind,
    Plan,
    check,
    create_body,
    guest_is_main,
    needs_environment_script,
    own_workspace,
    volume_name,
)
from yaosb_jupyter.tai.runtimes.docker.throwaway import run_throwaway
from yaosb_jupyter.tai.runtimes.docker.users import account_archive, program_archive
from yaosb_jupyter.tai.runtimes.hostdirs import check_host_directory
from yaosb_jupyter.tai.threads import in_thread
from yaosb_jupyter.types import WORKDIR

_CONFIRM_SECONDS = 2.0
_INIT = re.compile(r"/sbin/docker-init|docker-init|/dev/init|\[\S+\]")
"""The engine's init, and what has no command line: one that could not become the command, and ends."""


def has_begun(command_lines: Iterable[str]) -> bool:
    """Whether the engine's init has become the command, or has started it."""
    return any(not _INIT.match(line) for line in command_lines)


@dataclass(frozen=True, kw_only=True)
class Lifecycle:
    """The calls that change containers.

    ``shared``: workspaces are directories of this host; ``guest``: images with python3 get our guest.
    """

    engine: Engine
    accounts: Accounts
    images: Images
    network: OwnNetwork
    environments: Environments
    interpreters: Interpreters
    guests: Guests
    shared: bool
    guest: bool
    swap_limit: bool
    proven_images: set[str] = field(default_factory=set)
    """Images in which our own main process was seen to work."""

    async def create(self, spec: EnvironmentSpec) -> str:
        check(spec)
        if not self.shared and not own_workspace(spec):
            raise InvalidOptionError(
                f"workspace={str(spec.workspace)!r} cannot be used: the engine does not see this host's files",
                hint="copy the files in, or force the pool option shared_files=yes",
            )
        if not own_workspace(spec):
            await in_thread(check_host_directory, spec.workspace, spec.name)
        image = await self.images.facts(spec.image)
        if spec.network is Network.BRIDGE:
            await self.network.ensure()
        guest = await self.interpreters.guest(image.image_id) if self.guest else b""
        link = LinkKind.ENGINE if not guest else LinkKind.SOCKET if self.shared else LinkKind.RELAY
        async with self.accounts.identity(spec, image.image_id) as identity:
            plan = Plan(image=image, identity=identity, shared=self.shared, link=link, swap_limit=self.swap_limit)
            body = create_body(spec, plan)
            await in_thread(_prepare, spec, plan, guest)
            try:
                runtime_id = await create_container(self.engine, body, spec.name)
            except SandboxError:
                await self._remove_volume_quietly(spec)
                raise
            try:
                await self._put_files(spec, plan, guest, runtime_id)
            except BaseException:
                await discard(self.engine, runtime_id)
                await self._remove_volume_quietly(spec)
                raise
        guest_main = guest_is_main(spec, link)
        facts = EnvironmentFacts(
            image=image.image_id,
            own_main=not spec.cmd and not guest_main,
            directory=spec.directory,
            link=link,
            guest_main=guest_main,
            starter=image.starter,
            vnc_port=image.vnc_port,
            cmd=spec.cmd if guest_main else (),
            uid=identity.uid,
            gid=identity.gid,
            workdir=spec.workdir,
            env=dict(spec.env),
            volume="" if self.shared else volume_name(spec.uid),
        )
        self.environments.remember(runtime_id, facts)
        return runtime_id

    async def _put_files(self, spec: EnvironmentSpec, plan: Plan, guest: bytes, runtime_id: str) -> None:
        passwd, group = await self.accounts.image_files(plan.image.image_id)
        files, programs = {}, {}
        if not self.shared and needs_environment_script(spec, plan.link):
            files[MAIN_ENVIRONMENT] = workspace.environment_script(spec.env)
        if not self.shared and guest:
            programs[GUEST] = guest
        archive = account_archive(
            plan.identity,
            passwd,
            group,
            workspace="" if self.shared else WORKDIR,
            files=files,
            programs=programs,
        )
        if archive:
            await self.engine.call(lambda client: client.put_archive(runtime_id, "/", archive))

    async def _remove_volume_quietly(self, spec: EnvironmentSpec) -> None:
        if not self.shared:
            with suppress(SandboxError):  # in use by the one whose name was taken, or never made
                await self._remove_volume(volume_name(spec.uid))

    async def _remove_volume(self, name: str) -> None:
        with suppress(NotFoundError):
            await self.engine.call(lambda client: client.remove_volume(name))

    async def start(self, runtime_id: str) -> None:
        facts = await self.environments.get(runtime_id)
        guest = await self.guests.of(runtime_id)
        if guest is None:
            await self._start_plainly(runtime_id, facts)
        elif facts.guest_main:
            proven = facts.image in self.proven_images
            await guest.start(
                lambda: self._run(runtime_id), renew=lambda: self._renew_guest(runtime_id, facts), proven=proven
            )
            if not facts.cmd:
                self.proven_images.add(facts.image)
        else:
            await self._start_plainly(runtime_id, facts)
            with suppress(NotRunningError):  # its main process has ended at once, as who looks at it will find
                await guest.inject(lambda: self._renew_guest(runtime_id, facts))

    async def _renew_guest(self, runtime_id: str, facts: EnvironmentFacts) -> None:
        """Where that fails, the one it has serves: a manager speaks with all of its own major version."""
        with suppress(SandboxError):
            blob = await self.interpreters.guest(facts.image)
            if blob and facts.link is LinkKind.SOCKET:
                await in_thread(workspace.save_guest, facts.directory, blob)
            elif blob:
                archive = program_archive({GUEST: blob})
                await self.engine.call(lambda client: client.put_archive(runtime_id, "/", archive))

    async def _start_plainly(self, runtime_id: str, facts: EnvironmentFacts) -> None:
        await self._run(runtime_id)
        if not (facts.own_main and facts.image in self.proven_images):
            await self._confirm_main(runtime_id)
            if facts.own_main:
                self.proven_images.add(facts.image)

    async def _run(self, runtime_id: str) -> None:
        """No-op when running."""
        try:
            await self._start(runtime_id)
        except SandboxError as error:
            if "is paused" in error.message or "paused container" in error.message:
                await self.engine.call(lambda client: client.unpause(runtime_id), sandbox=runtime_id)
            elif "network" in error.message and "not found" in error.message:
                self.network.forget()
                await self.network.ensure()
                await self._start(runtime_id)
            else:
                raise

    async def _start(self, runtime_id: str) -> None:
        try:
            await self.engine.call(lambda client: client.start(runtime_id), sandbox=runtime_id)
        except SandboxError as error:
            if not NO_COMMAND.search(error.message):
                raise
            hint = "the image has no sh: use cmd='image'" if 'exec: "sh"' in error.message else "check cmd"
            raise CommandNotFoundError(error.message, sandbox=runtime_id, hint=hint) from error

    async def _confirm_main(self, runtime_id: str) -> None:
        """The engine's init starts in any case: waits until it has become the command, or has failed to.

        There is no event for the first, so the engine is asked, for two seconds at most.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(_CONFIRM_SECONDS):
                while True:
                    try:
                        top = await self.engine.call(lambda client: client.top(runtime_id), sandbox=runtime_id)
                    except (NotRunningError, RuntimeUnavailableError):
                        await self._check_ended(runtime_id)
                        return
                    column = top["Titles"].index("CMD")
                    if has_begun(row[column] for row in top["Processes"] or ()):
                        return
                    await asyncio.sleep(0.01)

    async def _check_ended(self, runtime_id: str) -> None:
        found = await self.engine.call(lambda client: client.inspect_container(runtime_id), sandbox=runtime_id)
        code = found["State"]["ExitCode"]
        if found["State"]["Running"] or code not in (126, 127):
            return  # it ran, and ended by itself
        command = [*(found["Config"]["Entrypoint"] or ()), *(found["Config"]["Cmd"] or ())]
        hint = "the image has no sh: use cmd='image'" if KEEPALIVE_NAME in command else "check cmd"
        raise CommandNotFoundError(
            f"the main process could not be started: {command[0]!r}", exit_code=code, sandbox=runtime_id, hint=hint
        )

    async def stop(self, runtime_id: str, timeout: float) -> None:
        """The engine counts whole seconds: a fraction is rounded up."""
        await self.engine.call(lambda client: client.stop(runtime_id, timeout=math.ceil(timeout)), sandbox=runtime_id)
        guest = await self.guests.of(runtime_id)
        if guest is not None:
            await guest.ended()

    async def remove(self, runtime_id: str) -> None:
        try:
            volume = (await self.environments.get(runtime_id)).volume
            await remove_container(self.engine, runtime_id)
        except NotFoundError:
            return
        if volume:
            await self._remove_volume(volume)
        self.environments.forget(runtime_id)
        await self.guests.forget(runtime_id)

    async def remove_workspace(self, spec: EnvironmentSpec) -> None:
        if not self.shared:
            await self._remove_volume(volume_name(spec.uid))
            return
        if not own_workspace(spec) or await in_thread(workspace.remove, spec.workspace):
            return
        mount = {"Type": "bind", "Source": str(spec.workspace), "Target": WORKDIR}
        config = {"Mounts": [mount], "CapAdd": ["DAC_OVERRIDE", "FOWNER"]}
        argv = ["sh", "-c", REMOVE_CONTENT, "yaosb-remove", WORKDIR]
        await run_throwaway(self.engine, spec.image, argv, host_config=config)
        if not await in_thread(workspace.remove, spec.workspace):
            raise UnavailableError(f"{spec.workspace} could not be removed", hint="look at its owner")


def _prepare(spec: EnvironmentSpec, plan: Plan, guest: bytes) -> None:
    workspace.save_environment(spec.directory, spec.env)
    if plan.shared:
        workspace.prepare(spec.workspace, own=own_workspace(spec), identity=plan.identity)
        if guest:
            workspace.save_guest(spec.directory, guest)
        if needs_environment_script(spec, plan.link):
            script = workspace.environment_script(spec.env)
            workspace.save_main_environment(spec.directory, script, plan.identity)
