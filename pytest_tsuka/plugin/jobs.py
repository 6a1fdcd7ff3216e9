"""The conversations that the engine holds for items: started once, asked for by key, let go of."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_tsuka.runner.engine import Engine

JobKey = tuple[str, int]
"""An item's node id, and the number of the run."""


class Jobs:
    """One engine's work. `alone` are the keys of those that are done with no other beside them.

    Whoever has something to do while pytest's loop would only wait adds it to `before_waiting`.
    """

    def __init__(self) -> None:
        self.engine: Engine[JobKey, Any] | None = None
        self.alone: Collection[JobKey] = ()
        self.before_waiting: list[Callable[[], None]] = []

    def future(self, key: JobKey, model: str, job: Callable[[], Any]) -> Future[Any]:
        """The result of a job to come; `job` makes what the engine does, when it is not started yet."""
        assert self.engine, "the engine is not running"
        return self.engine.started(key) or self.engine.prefetch(key, model, job(), alone=key in self.alone)

    def forget(self, keys: Iterable[JobKey]) -> None:
        """Lets go of results, so that memory does not grow with the run."""
        if self.engine:
            for key in keys:
                self.engine.forget(key)

    def use_the_wait(self) -> None:
        """Does what is to be done while there is nothing else to do."""
        for act in self.before_waiting:
            act()


_JOBS: pytest.StashKey[Jobs] = pytest.StashKey()


def jobs_of(config: pytest.Config) -> Jobs:
    """The jobs of this process."""
    return config.stash.setdefault(_JOBS, Jobs())
