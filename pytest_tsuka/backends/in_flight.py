"""Which requests of ours are at an endpoint right now. One event loop, so no lock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(eq=False)
class Flight:
    """One request at the endpoint. `at_once` is the most that were there with it, itself included."""

    at_once: int


class InFlight:
    """Counts the requests at one endpoint."""

    def __init__(self) -> None:
        self._flights: set[Flight] = set()

    @contextmanager
    def one(self) -> Iterator[Flight]:
        """A request for the length of the block."""
        flight = Flight(len(self._flights) + 1)
        self._flights.add(flight)
        for other in self._flights:
            other.at_once = max(other.at_once, len(self._flights))
        try:
            yield flight
        finally:
            self._flights.remove(flight)
