"""What an endpoint has taught us: which requests are hopeless, and when it counts as down."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from pytest_tsuka.backends.trouble import Kind, Trouble
from pytest_tsuka.errors import BackendError, EffortRefused
from pytest_tsuka.text.json_types import JsonObject

FAILURES_TO_STOP = 4
"""Requests given up in a row, or stalled in a row, none answered in between, after which an endpoint counts as down."""

_PERMANENT = (Kind.MODEL, Kind.ENDPOINT, Kind.ROUTE)


@dataclass
class Learned:
    """What an endpoint taught us about one model: parameters it refuses, efforts, whether it is lost.

    `unwanted` are fields of the model's own turns that must not go back, `no_tools` says why it takes no tools.
    """

    dropped: dict[str, str | None] = field(default_factory=dict)
    unwanted: set[str] = field(default_factory=set)
    no_tools: str | None = None
    efforts: dict[str, str] = field(default_factory=dict)
    lost: str | None = None

    def applied(self, body: JsonObject) -> JsonObject:
        """The body, changed in place: without the parameters that the endpoint refuses, or under its names."""
        for name, replacement in self.dropped.items():
            if name in body:
                value = body.pop(name)
                if replacement:
                    body[replacement] = value
        return body

    def take_out(self, trouble: Trouble) -> str:
        """Remembers the field that the trouble names; says what the endpoint does not take."""
        name = str(trouble.parameter)
        if trouble.kind is Kind.PLAYED_BACK:
            self.unwanted.add(name)
            return f"does not want {name!r} of the model's own turn back"
        self.dropped.setdefault(name, trouble.replacement)
        return f"refuses {name!r}" + (f", sent as {trouble.replacement}" if trouble.replacement else "")


class Health:
    """A circuit breaker for one endpoint, and a memory for each of its models.

    `patience` is how many seconds without any answer make stalled requests a sign that it hangs.
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._silent_since: float | None = None
        self._models: dict[str, Learned] = {}
        self.reached = False
        """Whether it ever answered."""
        self._failures = self._stalls = 0
        self._down: str | None = None

    def of(self, model: str) -> Learned:
        return self._models.setdefault(model, Learned())

    def fail_fast(self, model: str, effort: str, attempts: int) -> None:
        """What is known to be hopeless is not tried again: raises what the first one was told."""
        learned = self.of(model)
        if reason := self._down or learned.lost:
            raise BackendError(reason, attempts=attempts, permanent=True)
        if reason := learned.efforts.get(effort):
            raise EffortRefused(reason, attempts=attempts, permanent=True)

    @property
    def silent_for(self) -> float:
        """Seconds since the last answer, or since the first request."""
        return time.monotonic() - self._silent_since if self._silent_since is not None else 0.0

    def answered(self) -> None:
        self.reached = True
        self._failures = self._stalls = 0
        self._silent_since = time.monotonic()

    def asked(self) -> None:
        """The first request starts the clock."""
        if self._silent_since is None:
            self._silent_since = time.monotonic()

    def troubled(self, trouble: Trouble, message: str) -> None:
        """Requests that all run into their limit mean a server that hangs: the rest must not wait for it, too."""
        self._stalls = self._stalls + 1 if trouble.stalled else 0
        if self._stalls >= FAILURES_TO_STOP and self.silent_for >= self._patience and self._down is None:
            self._down = f"{message} (the endpoint counts as down: {self._stalls} requests in a row got no answer)"

    def given_up(self, trouble: Trouble, message: str, model: str, effort: str, attempts: int) -> BackendError:
        """The error of a request that is not tried again, remembered as far as it concerns others."""
        if trouble.kind is Kind.EFFORT:
            self.of(model).efforts[effort] = message
            return EffortRefused(message, attempts=attempts, permanent=True)
        if trouble.kind is Kind.MODEL:
            self.of(model).lost = message
        elif trouble.kind in (Kind.ENDPOINT, Kind.ROUTE):
            self._down = message
        elif trouble.kind in (Kind.AGAIN, Kind.LOADING):
            self._failures += 1
            if self._failures >= FAILURES_TO_STOP:
                self._down = f"{message} (the endpoint counts as down: {self._failures} requests in a row failed)"
            if attempts > 1:
                message = f"{message} (after {attempts} attempts)"
        return BackendError(message, attempts=attempts, permanent=trouble.kind in _PERMANENT)
