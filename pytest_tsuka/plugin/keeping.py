"""What a run keeps in the store while it goes on, so that a broken-off one can be taken up again."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from typing import TYPE_CHECKING

import pytest

from pytest_tsuka.plugin.context import Context
from pytest_tsuka.plugin.jobs import jobs_of

if TYPE_CHECKING:
    from pytest_tsuka.plugin.grading import ScenarioGrading
    from pytest_tsuka.scoring.verdict import Verdict
    from pytest_tsuka.store.database import Store

BATCH = 0.2
"""Seconds within which verdicts go to the store together."""


class Keeper:
    """The controller's hold on the store. `notes` are for the summary; `store` is None where none can be kept."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._jobs = jobs_of(context.config)
        self.store: Store | None = None
        self.run = 0
        self.notes: list[str] = []
        self._waiting: list[tuple[str, Verdict, str]] = []
        self._waiting_since = 0.0

    def open(self, grading: ScenarioGrading) -> None:
        """Before workers start, which are told what a broken-off run had finished."""
        from pytest_tsuka.store.database import Store, StoreError

        settings = self._context.settings
        try:
            self.store = Store(settings.store)
            if settings.resume:
                self._resume(self.store)
                grading.resume(self.store)
            self.run = self.store.begin_run()
        except (StoreError, sqlite3.Error) as error:
            for asked, option in ((settings.resume, "--tsuka-resume"), (settings.rescore, "--tsuka-rescore")):
                if asked:
                    raise pytest.UsageError(f"pytest-tsuka: {option}: {error}") from None
            self.notes.append(f"nothing can be resumed later: {error}")
            self.store = None

    def _resume(self, store: Store) -> None:
        context = self._context
        resumed = store.broken_off(
            {model.name: context.conditions(model.name) for model in context.models},
            context.settings.efforts,
            [benchmark.name for benchmark in context.suite.benchmarks.values()],
        )
        context.earlier.verdicts.update(resumed.verdicts)
        if resumed.started is None:
            self.notes.append("nothing to resume: no broken-off run of this suite with these settings")
        else:
            when = time.strftime("%Y-%m-%d %H:%M", time.localtime(resumed.started))
            self.notes.append(f"{len(resumed.verdicts)} verdicts were taken from the run begun at {when}")

    def keep(self, verdict: Verdict, text: str) -> None:
        """Kept at once, or with the next ones: before pytest's loop waits, and after BATCH seconds at the latest."""
        if self.store is None:
            return
        if not self._waiting:
            self._waiting_since = time.monotonic()
        self._waiting.append((self._context.conditions(verdict["model"]), verdict, text))
        # Without an engine in this process (under xdist) nobody says when the loop waits.
        if self._jobs.engine is None or time.monotonic() - self._waiting_since >= BATCH:
            self.keep_now()

    def keep_now(self) -> None:
        """What is waiting goes to the store."""
        if self.store is None or not self._waiting:
            return
        try:
            self.store.add(self.run, self._waiting)
        except sqlite3.Error as error:
            self.notes.append(f"nothing can be resumed later: {self._context.settings.store}: {error}")
            self.store = None
        self._waiting = []

    def close(self, *, finished: bool) -> None:
        """`finished`: the run came to its end, with everything written; an unfinished one is taken up again."""
        if self.store is None:
            return
        with contextlib.suppress(sqlite3.Error):
            if finished:
                self.store.end_run(self.run)
            self.store.close()
