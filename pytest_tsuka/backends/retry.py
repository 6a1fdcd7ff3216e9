"""How often a request is sent again, and after which pause: the same rules for models, judges and embedders."""

from __future__ import annotations

import random

from pytest_tsuka.backends.trouble import Trouble

FIRST_BACKOFF, LONGEST_BACKOFF = 0.5, 8.0
FIRST_QUEUE, LONGEST_QUEUE = 0.2, 4.0
"""Seconds between two tries of a request that is rejected while others are served."""
RETRIES = 8
UNREACHED = 4
"""Retries at the most while an endpoint was never reached: its address may be wrong."""


class Retries:
    """The retries of one request: `most` is how often it may fail and be sent again.

    A rejection (429, 503) of a request that had company is none: the endpoint is busy with the others, and
    whoever waits has its turn in the end. One that comes while nothing else of ours is in flight counts,
    or an endpoint that rejects everything would be asked for ever.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._failures = 0
        self.rejections = 0
        """All rejections, counted or not."""

    def pause_after(self, trouble: Trouble, *, had_company: bool = False, reached: bool = True) -> float | None:
        """Seconds until the next attempt; None when there is none.

        `reached` says whether the endpoint ever gave an answer to anybody.
        """
        self.rejections += trouble.too_many
        if trouble.too_many and had_company:
            return _asked(trouble) or _backoff(self.rejections, FIRST_QUEUE, LONGEST_QUEUE)
        most = self._most if reached else min(self._most, UNREACHED)
        if self._failures >= most:
            return None
        self._failures += 1
        return _asked(trouble) or _backoff(self._failures, FIRST_BACKOFF, LONGEST_BACKOFF)


def _asked(trouble: Trouble) -> float | None:
    """What Retry-After asks for, but never nothing at all."""
    return None if trouble.retry_after is None else max(trouble.retry_after, 0.05)


def _backoff(number: int, first: float, longest: float) -> float:
    """Exponential, with jitter: those who failed together do not come back together."""
    return min(longest, first * 2.0 ** min(number - 1, 10)) * random.uniform(0.5, 1.0)
