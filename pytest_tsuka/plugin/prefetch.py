"""The engine's lifetime, what is fed to it ahead of pytest's loop, and the lines shown while waiting."""

from __future__ import annotations

import concurrent.futures
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

import pytest

from pytest_tsuka.plugin.context import Context, context_of
from pytest_tsuka.plugin.items import PlayedItem
from pytest_tsuka.plugin.jobs import JobKey, Jobs, jobs_of
from pytest_tsuka.text.escape import one_line

AHEAD = 4
"""Conversations that are started and not finished, as a multiple of the concurrency."""
FARTHEST = 10
"""How far before pytest's loop they may be, as a multiple of that: one slow answer must not hold up all others."""
FEEDING = 0.2
"""Seconds between two looks at whether more can be started, while pytest's loop waits for an item."""
FIRST_BEAT, BEAT_TTY, BEAT_LOG = 3.0, 5.0, 30.0
ALONE = 2
"""Conversations of a model that are held with no other beside them; one each where there are several models."""
LET_WORK = 0.05
"""Seconds that pytest's loop leaves to an engine that has something to do."""
WORKER_POLL = 0.25
"""Seconds between a worker's looks at whether its controller is still there."""


@contextmanager
def running_engine(session: pytest.Session) -> Iterator[None]:
    """An engine for the items of this process, if any of them will really be played."""
    config = session.config
    context, jobs = context_of(config), jobs_of(config)
    items = [item for item in session.items if isinstance(item, PlayedItem)] if hasattr(session, "items") else []
    if not items or not _plays(session, context):
        yield
        return
    from pytest_tsuka.runner.engine import Engine

    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if not context.settings.replay:
        fetched = {item.model for item in items if item.model.fetch}
        context.endpoints.fetch_weights(fetched, lambda line: terminal.write_line(line) if terminal else None)
    engine: Engine[JobKey, Any] = Engine(
        context.endpoints.backend_to_open,
        concurrency=_concurrency(context),
        item_timeout=context.settings.item_timeout,
    )
    jobs.engine = engine.start()
    _start_alone(context, jobs, items)
    feeder = Feeder(context, jobs, items, session.items, terminal)
    config.pluginmanager.register(feeder, "tsuka-feeder")
    try:
        yield
    finally:
        config.pluginmanager.unregister(feeder)
        engine.close()
        jobs.engine = None


def _plays(session: pytest.Session, context: Context) -> bool:
    """Whether this session sends anything to a model."""
    option = session.config.option
    stopped = session.testsfailed and not option.continue_on_collection_errors
    dry = context.settings.rescore or option.collectonly or option.setuponly
    return not (stopped or dry or context.why_nothing_is_sent())


def _concurrency(context: Context) -> int:
    """This process's share of what was asked for; no more than llama.cpp has slots when all runs in process."""
    asked = max(1, context.settings.concurrency // context.endpoints.workers)
    if not all(model.in_process for model in context.models):
        return asked
    from pytest_tsuka.backends.embedded import MOST_SLOTS

    return min(asked, MOST_SLOTS)


def _start_alone(context: Context, jobs: Jobs, items: list[PlayedItem]) -> None:
    """The first conversations of each model, at its cheapest effort, one after the other before all others.

    Among others each would wait for those, and its speed would not be what somebody alone with it sees. Of several
    processes none can know that it is alone, and a replay has its speed from the recording.
    """
    if context.endpoints.workers > 1 or context.settings.replay or context.settings.concurrency == 1:
        return
    by_model: dict[str, list[PlayedItem]] = {}
    for item in items:
        own = by_model.setdefault(item.model.name, [])
        if item.measured_alone and (not own or item.effort == own[0].effort):
            own.append(item)
    each = ALONE if len(by_model) == 1 else 1
    first = [item for own in by_model.values() for item in own[:each]]
    jobs.alone = frozenset(item.keys[0] for item in first)
    for item in first:
        item.start(0)


def _xdist_worker(config: pytest.Config) -> Any:
    """What runs the items of an xdist worker, found by the names of xdist's public protocol; else None."""
    if not hasattr(config, "workerinput"):
        return None
    return next((p for p in config.pluginmanager.get_plugins() if hasattr(p, "channel")), None)


class Feeder:
    """Starts the next conversations when an item begins, and tells that a run is alive."""

    def __init__(
        self,
        context: Context,
        jobs: Jobs,
        items: list[PlayedItem],
        all_items: list[pytest.Item],
        terminal: pytest.TerminalReporter | None,
    ) -> None:
        self._settings = context.settings
        self._workers = context.endpoints.workers
        self._config = context.config
        self._jobs = jobs
        self._items = items
        self._terminal = terminal
        self._position = {item.nodeid: at for at, item in enumerate(items)}
        self._begun = time.monotonic()
        self._finished = 0
        self._fed = self._at = 0
        self._last_beat = self._begun
        interactor = _xdist_worker(context.config)
        self._channel = getattr(interactor, "channel", None)
        self._queue = queue if hasattr(queue := getattr(interactor, "torun", None), "lock") else None
        self._all_items = all_items
        self._window = self._window_size()
        self._farthest = self._window if getattr(context.config.option, "maxfail", 0) else FARTHEST * self._window

    def _window_size(self) -> int:
        option = self._config.option
        slots = max(1, self._settings.concurrency // self._workers // self._settings.repeats)
        # With -x or --maxfail what was started too early is wasted.
        return slots if getattr(option, "maxfail", 0) else AHEAD * slots

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        if isinstance(item, PlayedItem):
            at = self._position.get(item.nodeid)
            if at is None or hasattr(item.config, "workerinput"):
                self._start(item, nextitem, *self._queued())
            else:
                self._at = at
                self._feed()
        else:
            self._jobs.use_the_wait()
        return (yield)

    def _feed(self) -> None:
        """Starts what the window has room for; many at once, since each start wakes the engine's thread."""
        engine = self._jobs.engine
        assert engine
        begin = max(self._fed, self._at)
        unfinished = (engine.progress.started - engine.progress.done) // self._settings.repeats
        room = min(self._window - unfinished, self._at + self._farthest - begin)
        if begin == self._at or room > self._window // 2:
            self._fed = begin + max(room, 1)
            self._start(*self._items[begin : self._fed])

    def _queued(self) -> list[pytest.Item]:
        """What an xdist worker was given to run after its next item, as far as the window reaches.

        A worker holds all items and is told only of the next one; the others are read from its queue, whose name
        and lock are xdist's own. Without them two conversations at once are played.
        """
        if self._queue is None:
            return []
        with self._queue.lock() as numbers:
            ahead = [n for n in islice(numbers, max(0, self._window - 2)) if isinstance(n, int)]
        return [self._all_items[n] for n in ahead if n < len(self._all_items)]

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, object, object]:
        """Waits where the terminal is not captured, so that the heartbeat can be seen."""
        if isinstance(item, PlayedItem):
            jobs = item.jobs()
            waiting = [job for job in jobs if not job.done()]
            if waiting:
                self._jobs.use_the_wait()
            while waiting and concurrent.futures.wait(waiting, timeout=self._next_look()).not_done:
                if self._controller_is_gone():
                    # The controller was interrupted: execnet would interrupt this worker only after 5 s.
                    raise KeyboardInterrupt
                self._beat(item)
                if self._more_to_feed:
                    self._feed()
            if jobs and self._jobs.engine:
                self._jobs.engine.wait_idle(LET_WORK)
        try:
            return (yield)
        finally:
            self._finished += 1

    def _controller_is_gone(self) -> bool:
        if self._channel is None:
            return False
        try:
            self._channel.waitclose(timeout=0)
        except self._channel.TimeoutError:
            return False
        except Exception:  # closed by an error at the other end
            return True
        return True

    @staticmethod
    def _start(*items: pytest.Item | None) -> None:
        for item in items:
            if isinstance(item, PlayedItem):
                item.jobs()

    def _interval(self) -> float:
        if self._last_beat == self._begun:
            return FIRST_BEAT
        return BEAT_TTY if self._terminal and self._terminal.isatty else BEAT_LOG

    @property
    def _more_to_feed(self) -> bool:
        return self._queue is None and self._fed < min(len(self._items), self._at + self._farthest)

    def _next_look(self) -> float:
        return min(FEEDING, self._next_beat()) if self._more_to_feed else self._next_beat()

    def _next_beat(self) -> float:
        if not self._terminal:
            return WORKER_POLL
        return max(0.05, self._last_beat + self._interval() - time.monotonic())

    def _beat(self, item: PlayedItem) -> None:
        now = time.monotonic()
        if not self._terminal or now < self._last_beat + self._interval():
            return
        self._last_beat = now
        engine = self._jobs.engine
        assert engine
        total, done = len(self._items), self._finished
        elapsed = now - self._begun
        played = engine.progress.done / self._settings.repeats
        left = f", about {_clock(elapsed / played * (total - played))} left" if played >= 1 else ""
        running = max(engine.seconds_running((item.nodeid, run)) or 0 for run in range(item.runs))
        slow = f"; waiting for {one_line(item.name)}, {running:.0f} s" if running else ""
        in_flight = engine.progress.in_flight
        if self._terminal.verbosity < 0 and done:
            self._terminal.write("\n")  # with -q pytest does not know that its line of letters is open
        self._terminal.write_line(
            f"  … {done} of {total} items done, {in_flight} in flight, {_clock(elapsed)} elapsed{left}{slow}"
        )


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"
