"""One event loop in a thread of its own, which plays conversations ahead of whoever wants them.

It never prints or logs: whatever it did would land in the middle of someone else's output. All
state but the futures belongs to the loop's thread.
"""

from __future__ import annotations

import asyncio
import selectors
import sys
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from concurrent.futures import Future
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Generic, TypeVar

from pytest_tsuka.backends.concurrency import Slots
from pytest_tsuka.errors import BackendError, ItemTimeout
from pytest_tsuka.protocols import Backend

Key = TypeVar("Key", bound=Hashable)
Outcome = TypeVar("Outcome")
Job = Callable[[Backend], Awaitable[Outcome]]


@dataclass(slots=True)
class Progress:
    """Counts for a progress line; `in_flight` are the conversations that have had a slot and are not done."""

    done: int = 0
    started: int = 0
    in_flight: int = 0


class _IdleSelector(selectors.DefaultSelector):
    """Sets an event while its loop has nothing to do but wait."""

    def __init__(self, idle: threading.Event) -> None:
        super().__init__()
        self._idle = idle

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        self._idle.set()
        try:
            return super().select(timeout)
        finally:
            self._idle.clear()


class Engine(Generic[Key, Outcome]):
    """Runs jobs concurrently: `prefetch` starts one early, its future is asked for the result.

    `backend_for` makes a model's backend, which is opened in the loop when first needed and closed
    with the engine. `item_timeout` is the wall-clock limit of one job in seconds, counted from when
    it gets its slot.
    """

    def __init__(self, backend_for: Callable[[str], Backend], *, concurrency: int, item_timeout: float = 900.0) -> None:
        self._backend_for = backend_for
        self._concurrency = concurrency
        self._item_timeout = item_timeout
        self._futures: dict[Key, Future[Outcome]] = {}
        self._opening: dict[int, asyncio.Task[Backend]] = {}
        self._started_at: dict[Key, float] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._ready = threading.Event()
        self._asked: deque[tuple[Future[Outcome], Key, str, Job[Outcome], bool]] = deque()
        self._idle = threading.Event()
        self.progress = Progress()

    def start(self) -> Engine[Key, Outcome]:
        self._thread = threading.Thread(target=self._main, name="tsuka-engine", daemon=True)
        self._thread.start()
        self._ready.wait()
        return self

    def started(self, key: Key) -> Future[Outcome] | None:
        """The future of a job that was started and is not forgotten yet."""
        return self._futures.get(key)

    def prefetch(self, key: Key, model: str, job: Job[Outcome], *, alone: bool = False) -> Future[Outcome]:
        """The future of this job, started when first asked for; `alone` with no other beside it."""
        future = self._futures.get(key)
        if future is None:
            assert self._loop is not None, "the engine is not running"
            self.progress.started += 1
            future = self._futures[key] = Future()
            # One wake-up for all that is asked for before the loop has its turn: it costs as much as the asking.
            self._asked.append((future, key, model, job, alone))
            if len(self._asked) == 1:
                self._loop.call_soon_threadsafe(self._begin)
        return future

    def forget(self, key: Key) -> None:
        """Lets go of a finished job's result, so that memory does not grow with the run."""
        self._futures.pop(key, None)
        self._started_at.pop(key, None)

    def seconds_running(self, key: Key) -> float | None:
        """How long a job has had its slot; None while it waits for one."""
        started = self._started_at.get(key)
        return None if started is None else time.monotonic() - started

    def wait_idle(self, at_most: float) -> None:
        """Lets the engine finish what it is at: two threads that both have work cost more than one after the other.

        Each time a thread reads or writes a socket or a file the other takes the interpreter, and it
        has to wait to get it back. `at_most` is in seconds.
        """
        self._idle.wait(at_most)

    def close(self) -> None:
        """Cancels what is in flight, closes the backends, joins the thread."""
        if self._loop is not None and self._thread is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(timeout=10)

    # --- in the loop's thread --------------------------------------------------------------

    def _main(self) -> None:
        with asyncio.Runner(loop_factory=self._new_loop) as runner:
            runner.run(self._serve())

    def _new_loop(self) -> asyncio.AbstractEventLoop:
        if sys.platform == "win32":  # its loop has no selector to ask
            self._idle.set()
            return asyncio.new_event_loop()
        return asyncio.SelectorEventLoop(_IdleSelector(self._idle))

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._slots = Slots(self._concurrency)
        self._tasks: dict[asyncio.Task[Outcome], Future[Outcome]] = {}
        async with AsyncExitStack() as self._stack:
            self._ready.set()
            await self._stop.wait()
            # Before the clients close under them.
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.wait(others, timeout=2) if others else None
            while self._asked:
                future = self._asked.popleft()[0]
                future.cancel()
                future.set_running_or_notify_cancel()

    def _begin(self) -> None:
        """Starts what was asked for. The last entry goes last, so that whoever adds one to none wakes the loop."""
        while self._asked:
            future, key, model, job, alone = self._asked[0]
            task = asyncio.get_running_loop().create_task(self._run(key, model, job, alone))
            self._tasks[task] = future
            task.add_done_callback(self._settle)
            self._asked.popleft()

    def _settle(self, task: asyncio.Task[Outcome]) -> None:
        future = self._tasks.pop(task)
        if task.cancelled():
            future.cancel()
            future.set_running_or_notify_cancel()  # whoever waits for it is told only now
        elif error := task.exception():
            future.set_exception(error)
        else:
            future.set_result(task.result())

    async def _run(self, key: Key, model: str, job: Job[Outcome], alone: bool) -> Outcome:  # noqa: FBT001
        try:
            async with self._slots.held(alone=alone) as lease:
                self.progress.in_flight += 1
                self._started_at[key] = time.monotonic()
                try:
                    backend = await self._opened(model)
                    async with asyncio.timeout(self._item_timeout) as lease.limit:
                        return await job(backend)
                except TimeoutError as error:
                    said = "; ".join(getattr(error.__cause__, "__notes__", ()))
                    raise ItemTimeout(
                        f"no result within the item limit of {self._item_timeout:g} s (--tsuka-item-timeout)"
                        + (f" after {said}" if said else "")
                    ) from None
                finally:
                    self.progress.in_flight -= 1
        finally:
            self.progress.done += 1

    async def _opened(self, model: str) -> Backend:
        """The backend of a model, opened once; a failure to open is every item's error."""
        backend = self._backend_for(model)
        if id(backend) not in self._opening:
            self._opening[id(backend)] = asyncio.create_task(self._open(model, backend))
        return await asyncio.shield(self._opening[id(backend)])

    async def _open(self, model: str, backend: Backend) -> Backend:
        try:
            return await self._stack.enter_async_context(backend)
        except BackendError:
            raise
        except Exception as error:
            raise BackendError(f"the backend of {model!r} cannot be opened: {type(error).__name__}: {error}") from error
