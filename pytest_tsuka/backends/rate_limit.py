"""Requests and tokens per minute: how fast an endpoint may be asked, whoever asks. One event loop, so no lock."""

from __future__ import annotations

import time
from collections.abc import Callable

from pytest_tsuka.backends.concurrency import pause

MINUTE = 60.0


class Pacer:
    """Spreads requests evenly: no burst at the start of a minute and a standstill at its end.

    `requests` and `tokens` are per minute, 0 is no limit. Tokens are those that answers report, so
    the limit is kept on average and the first answers may run ahead of it. `interval` is the seconds
    between two requests.
    """

    def __init__(self, requests: float = 0.0, tokens: float = 0.0, clock: Callable[[], float] = time.monotonic) -> None:
        self.interval = MINUTE / requests if requests else 0.0
        self._per_token = MINUTE / tokens if tokens else 0.0
        self._clock = clock
        self._next_request = self._next_token = 0.0

    def reserve(self) -> float:
        """Takes the next turn and returns in how many seconds it comes."""
        now = self._clock()
        at = max(now, self._next_request, self._next_token)
        self._next_request = at + self.interval
        return at - now

    def spent(self, tokens: int | None) -> None:
        """What an answer used; an unknown number counts for nothing."""
        if self._per_token and tokens:
            self._next_token = max(self._clock(), self._next_token) + tokens * self._per_token

    async def turn(self) -> None:
        """Waits for the next turn; the conversation's slot is another's meanwhile."""
        wait = self.reserve() if self.interval or self._per_token else 0.0
        if wait > 0:
            await pause(wait)
