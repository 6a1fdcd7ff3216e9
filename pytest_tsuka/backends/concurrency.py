"""Who may talk to the endpoint right now: first come, first served, fewer at once while it says that it has too many.

All of it runs in the engine's one event loop, so there is no lock.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar

OVERLOADED = 1 / 3
"""The share of answers that say "too many" from which on there are too many; some gateways say so at random."""
DECREASE = 0.7
FEWEST_ANSWERS = 16
"""Answers before the limit is changed, or as many as may be asked for at once."""


class Slots:
    """At most `limit` conversations at once, in the order in which they asked.

    `ceiling` is what the user allows. The limit follows what `heard` says, by additive increase and
    multiplicative decrease (Chiu and Jain 1989, as TCP does): after each round of answers one more,
    or `DECREASE` times as many where the endpoint was overloaded in that round.
    """

    def __init__(self, ceiling: int) -> None:
        self.ceiling = self.limit = ceiling
        self.in_use = 0
        self._answers = self._rejections = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def acquire(self) -> None:
        if self.in_use < self.limit and not self._waiting:
            self.in_use += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the slot was handed over in the same moment
                self.release()
            elif turn in self._waiting:  # not where others that ended in the same moment have passed it over
                self._waiting.remove(turn)
            raise

    def release(self) -> None:
        self.in_use -= 1
        self._hand_out()

    def heard(self, *, rejected: bool) -> None:
        """An answer came; `rejected` when it says that the endpoint has too much to do."""
        self._answers += 1
        self._rejections += rejected
        if self._answers < max(self.limit, FEWEST_ANSWERS):
            return
        overloaded = self._rejections >= OVERLOADED * self._answers
        self._answers = self._rejections = 0
        if overloaded:
            self.limit = max(1, int(self.limit * DECREASE))
        elif self.limit < self.ceiling:
            self.limit += 1
            self._hand_out()

    def _hand_out(self) -> None:
        while self._waiting and self.in_use < self.limit:
            turn = self._waiting.popleft()
            if not turn.done():
                self.in_use += 1
                turn.set_result(None)

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """A slot for the length of the block; `pause` gives it back meanwhile."""
        lease = _Lease(self)
        await lease.take()
        token = _lease.set(lease)
        try:
            yield
        finally:
            _lease.reset(token)
            lease.give_back()


class _Lease:
    """One conversation's hold on a slot, which it may not have at the moment."""

    def __init__(self, slots: Slots) -> None:
        self.slots = slots
        self._owned = False

    async def take(self) -> None:
        await self.slots.acquire()
        self._owned = True

    def give_back(self) -> None:
        if self._owned:
            self._owned = False
            self.slots.release()


_lease: ContextVar[_Lease | None] = ContextVar("tsuka_lease", default=None)


async def pause(seconds: float) -> None:
    """Sleeps and lets another conversation have the slot of this one (Retry-After, back-off)."""
    lease = _lease.get()
    if lease is None:
        await asyncio.sleep(seconds)
        return
    lease.give_back()
    await asyncio.sleep(seconds)
    await lease.take()


def heard(*, rejected: bool) -> int | None:
    """Tells the slots of this conversation about an answer.

    Returns how many conversations are allowed at once now, where that is fewer than the user allows.
    """
    lease = _lease.get()
    if lease is None:
        return None
    slots = lease.slots
    slots.heard(rejected=rejected)
    return slots.limit if slots.limit < slots.ceiling else None
