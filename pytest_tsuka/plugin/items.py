"""What benchmark and scenario items have in common: work that the engine does ahead of pytest's loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from pytest_tsuka.backends.models import Model
from pytest_tsuka.plugin.context import Context, context_of
from pytest_tsuka.plugin.jobs import JobKey, jobs_of
from pytest_tsuka.protocols import Backend


class PlayedItem(pytest.Item):
    """An item whose setup waits for `runs` jobs of the engine."""

    model: Model
    effort: str
    runs: int = 1
    """How many jobs this item takes."""
    subject: str
    """The name of what is played, for messages and recordings."""

    @property
    def context(self) -> Context:
        return context_of(self.config)

    @property
    def measured_alone(self) -> bool:
        """Whether its conversation may be one of those that tell a model's speed."""
        return False

    @property
    def known(self) -> bool:
        """Whether the outcome is known already, so that nothing is asked."""
        return False

    def job(self, label: str) -> Callable[[Backend], Awaitable[Any]]:
        """What the engine does for one run, with the model's backend. `label` names the run."""
        raise NotImplementedError

    def start(self, run: int) -> Future[Any]:
        """A run of the item, started if it is not yet."""
        label = f"{self.subject}[{self.effort}]" + (f" run {run + 1}" if run else "")
        return jobs_of(self.config).future((self.nodeid, run), self.model.name, lambda: self.job(label))

    def jobs(self) -> list[Future[Any]]:
        """All runs of the item; none where the outcome is known already."""
        return [] if self.known else [self.start(run) for run in range(self.runs)]

    @property
    def keys(self) -> list[JobKey]:
        return [(self.nodeid, run) for run in range(self.runs)]

    def forget(self) -> None:
        jobs_of(self.config).forget(self.keys)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        return super().repr_failure(excinfo, style or "short")

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, self.name
