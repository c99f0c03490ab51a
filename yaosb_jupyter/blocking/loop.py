"""The background loop: one thread of this process, where everything asynchronous happens."""

from __future__ import annotations

import asyncio
import atexit
import inspect
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, Protocol, TypeVar
from weakref import WeakSet

from yaosb_jupyter.errors import NotAvailableError

T = TypeVar("T")

_END_PATIENCE = 15.0
"""Seconds that an interrupted call has to clean up: ending a command takes up to its grace."""
_EXIT_PATIENCE = 5.0


class Job(Future[T]):
    """Work on the loop as another thread sees it; it is done, also when cancelled, once the work has ended there."""

    def __init__(self, loop: asyncio.AbstractEventLoop, work: Callable[[], Awaitable[T]]) -> None:
        super().__init__()
        self._loop = loop
        self._task: asyncio.Task[T] | None = None
        # Carries the caller's context along: in a notebook it decides the cell that output goes to.
        loop.call_soon_threadsafe(self._begin, work)

    def cancel(self) -> bool:
        self._loop.call_soon_threadsafe(self._cancel_task)
        return not self.done()

    def _begin(self, work: Callable[[], Awaitable[T]]) -> None:
        self._task = self._loop.create_task(_awaited(work))
        self._task.add_done_callback(self._end)

    def _cancel_task(self) -> None:
        assert self._task is not None  # callbacks come in order
        self._task.cancel()

    def _end(self, task: asyncio.Task[T]) -> None:
        if task.cancelled():
            super().cancel()
            self.set_running_or_notify_cancel()
        elif (error := task.exception()) is not None:
            self.set_exception(error)
        else:
            self.set_result(task.result())


async def _awaited(work: Callable[[], Awaitable[T]]) -> T:
    return await work()


class Closable(Protocol):
    async def close(self) -> None: ...


class Loop:
    """A running loop in a thread of its own; made by `background`."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._kept: WeakSet[Closable] = WeakSet()
        started: Future[asyncio.AbstractEventLoop] = Future()
        self._thread = threading.Thread(target=self._main, args=(started,), name="yaosb", daemon=True)
        self._thread.start()
        self._loop = started.result()

    def _main(self, started: Future[asyncio.AbstractEventLoop]) -> None:
        asyncio.run(self._serve(started))

    async def _serve(self, started: Future[asyncio.AbstractEventLoop]) -> None:
        self._stopped = asyncio.Event()
        started.set_result(asyncio.get_running_loop())
        await self._stopped.wait()
        await asyncio.gather(*(kept.close() for kept in self._kept), return_exceptions=True)

    @property
    def alive(self) -> bool:
        """Whether work can be begun from this process."""
        return os.getpid() == self._pid and self._thread.is_alive()

    def keep(self, closable: Closable) -> None:
        """Sees to it that ``closable`` is closed when the process ends, where nobody has done it before."""
        self._kept.add(closable)

    def start(self, work: Callable[[], Awaitable[T]]) -> Job[T]:
        """Begins ``work`` there. Raises `NotAvailableError` in a forked process, where the thread does not exist."""
        if os.getpid() != self._pid:
            raise NotAvailableError(
                "this object belongs to the process that this one was forked from",
                hint="make a new one here: yaosb_jupyter.connect()",
            )
        return Job(self._loop, work)

    def finish(self, work: Callable[[], Awaitable[object]]) -> None:
        """`run`; only begins it on the loop's own thread, where what nobody holds any more may be let go."""
        if threading.get_ident() == self._thread.ident:
            self.start(work)
        else:
            self.run(work)

    def run(self, work: Callable[[], Awaitable[T]], calls: Calls | None = None) -> T:
        """Does ``work`` there while this thread waits, and makes its ``calls``.

        `KeyboardInterrupt`, as all that a call raises, cancels the work and is raised when that has ended.
        """
        if threading.get_ident() == self._thread.ident:
            raise RuntimeError("a blocking call on the loop it waits for: use the asynchronous face here")
        job = self.start(work)
        try:
            if calls is not None:
                calls.make(job)
            return job.result()
        except BaseException:
            if not job.done():
                job.cancel()
                _wait(job, _END_PATIENCE)
            raise

    def close(self) -> None:
        """Closes what is kept, cancels what runs, and waits for a moment. Idempotent."""
        if self.alive:
            self._loop.call_soon_threadsafe(self._stopped.set)
            self._thread.join(_EXIT_PATIENCE)


def _wait(job: Job[Any], patience: float) -> None:
    ended = threading.Event()
    job.add_done_callback(lambda _: ended.set())
    ended.wait(patience)


class Calls:
    """Callbacks that happen in the thread that waits, where they may block, print and be interrupted."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

    def bridge(self, callback: Callable[[Any], object] | None) -> Callable[[Any], Coroutine[Any, Any, None]] | None:
        """``callback`` for the loop's side, which goes on when it has returned."""
        return None if callback is None else lambda data: self._call(callback, data)

    async def _call(self, callback: Callable[[Any], object], data: Any) -> None:
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[object] = loop.create_future()

        def call() -> None:
            try:
                value = callback(data)
            except Exception as error:
                loop.call_soon_threadsafe(_settle, answered, None, error)
            else:
                loop.call_soon_threadsafe(_settle, answered, value, None)

        self._queue.put(call)
        value = await answered
        if inspect.isawaitable(value):
            await value

    def make(self, job: Job[Any]) -> None:
        """Makes the calls until the job is done."""
        job.add_done_callback(lambda _: self._queue.put(None))
        while (call := self._queue.get()) is not None:
            call()


def _settle(future: asyncio.Future[object], value: object, error: Exception | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(value)


_lock = threading.Lock()
_current: Loop | None = None


def background() -> Loop:
    """The loop of this process, started when first asked for."""
    global _current
    with _lock:
        if _current is None:
            _current = Loop()
            atexit.register(_current.close)
        return _current


def _forget() -> None:
    """In a forked process, which has the objects and not the thread; the lock may have been held by another thread."""
    global _current, _lock
    _lock = threading.Lock()
    _current = None


os.register_at_fork(after_in_child=_forget)
