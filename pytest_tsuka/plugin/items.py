"""What benchmark and scenario items have in common: work that the engine does ahead of pytest's loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any

import pytest

from pytest_tsuka.backends.catalog import Model
from pytest_tsuka.plugin.state import State, state_of
from pytest_tsuka.protocols import Backend


class PlayedItem(pytest.Item):
    """An item whose setup waits for `runs` jobs of the engine."""

    model: Model
    effort: str

    @property
    def state(self) -> State:
        return state_of(self.config)

    @property
    def measured_alone(self) -> bool:
        """Whether its conversation may be one of those that tell a model's speed."""
        return False

    @property
    def runs(self) -> int:
        """How many jobs this item takes."""
        raise NotImplementedError

    def job(self, run: int) -> Callable[[Backend], Awaitable[Any]]:
        """What the engine does for one run, with the model's backend."""
        raise NotImplementedError

    def jobs(self) -> list[Future[Any]]:
        """The item's work, started if it is not yet; none where the outcome is known already."""
        return [self.state.prefetch(self, run) for run in range(self.runs)]
