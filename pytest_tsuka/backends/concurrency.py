"""Who may talk to the endpoint right now: first come, first served, fewer at once while it says that it has too many.

All of it runs in the engine's one event loop, so there is no lock.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

OVERLOADED = 1 / 2
"""The share of answers that say "too many" from which on there are too many; some gateways say so at random."""
IN_A_ROW = 8
"""Rejections with no answer between them that are no chance either, however many answers a round has."""
DECREASE = 0.7
FEWEST_ANSWERS = 16
"""Answers before the limit is changed, or as many as may be asked for at once."""
CALM_ROUNDS = 8
"""Rounds without overload before one more is tried where one more was too many before."""


class Slots:
    """At most `limit` conversations at once, in the order in which they asked.

    `ceiling` is what the user allows. The limit follows what `heard` says, by additive increase and
    multiplicative decrease (Chiu and Jain 1989, as TCP does): after each round of answers one more,
    or `DECREASE` times as many where the endpoint was overloaded in that round. Where one more was too many
    it is taken back, and tried again only after `CALM_ROUNDS`.
    """

    def __init__(self, ceiling: int) -> None:
        self.ceiling = self.limit = ceiling
        self.in_use = 0
        self._answers = self._rejections = self._in_a_row = self._calm = 0
        self._too_many = ceiling + 1
        self._grown = False
        self._waiting: list[_Turn] = []
        self._number = 0
        self._alone = False

    def number(self) -> int:
        """The place in the queue of a conversation that comes now; it keeps it when it comes back from a pause."""
        self._number += 1
        return self._number

    async def acquire(self, number: int | None = None, *, alone: bool = False) -> None:
        """Waits for a slot: who came first has the first that is free. `alone` waits until no other is in use."""
        turn = _Turn(self.number() if number is None else number, alone, asyncio.get_running_loop().create_future())
        heapq.heappush(self._waiting, turn)
        self._hand_out()
        try:
            await turn.given
        except asyncio.CancelledError:
            if turn.given.done() and not turn.given.cancelled():  # the slot was handed over in the same moment
                self.release(alone=alone)
            elif turn in self._waiting:  # not where others that ended in the same moment have passed it over
                self._waiting.remove(turn)
                heapq.heapify(self._waiting)
            raise

    def release(self, *, alone: bool = False) -> None:
        self.in_use -= 1
        if alone:
            self._alone = False
        self._hand_out()

    def heard(self, *, rejected: bool) -> None:
        """An answer came; `rejected` when it says that the endpoint has too much to do."""
        self._answers += 1
        self._rejections += rejected
        self._in_a_row = self._in_a_row + 1 if rejected else 0
        whole_round = self._answers >= max(self.limit, FEWEST_ANSWERS)
        if self._in_a_row >= IN_A_ROW or (whole_round and self._rejections >= OVERLOADED * self._answers):
            self._too_many = self.limit
            self.limit = max(1, self.limit - 1 if self._grown else int(self.limit * DECREASE))
            self._next_round(grown=False, calm=0)
        elif whole_round:
            grows = self.limit < self.ceiling and (self.limit + 1 < self._too_many or self._calm >= CALM_ROUNDS)
            if grows and self.limit + 1 >= self._too_many:
                self._too_many = self.ceiling + 1
            self.limit += grows
            self._next_round(grown=grows, calm=0 if grows else self._calm + 1)
            self._hand_out()

    def _next_round(self, *, grown: bool, calm: int) -> None:
        self._answers = self._rejections = self._in_a_row = 0
        self._grown = grown
        self._calm = calm

    def _hand_out(self) -> None:
        while self._waiting and not self._alone and self.in_use < self.limit:
            if self._waiting[0].alone and self.in_use:
                return
            turn = heapq.heappop(self._waiting)
            if not turn.given.done():
                self.in_use += 1
                self._alone = turn.alone
                turn.given.set_result(None)

    @asynccontextmanager
    async def held(self, *, alone: bool = False) -> AsyncIterator[Lease]:
        """A slot for the length of the block; `pause` gives it back meanwhile.

        `alone` keeps all others out until the block ends or pauses for the first time.
        """
        lease = Lease(self, alone=alone)
        await lease.take()
        token = _lease.set(lease)
        try:
            yield lease
        finally:
            _lease.reset(token)
            lease.give_back()


@dataclass(order=True)
class _Turn:
    number: int
    alone: bool = field(compare=False)
    given: asyncio.Future[None] = field(compare=False)


class Lease:
    """One conversation's hold on a slot, which it may not have at the moment.

    `limit` is the conversation's own time limit: it stands still while the conversation waits for a slot,
    for that is the others' time.
    """

    def __init__(self, slots: Slots, *, alone: bool = False) -> None:
        self.slots = slots
        self.limit: asyncio.Timeout | None = None
        self._number = slots.number()
        self._alone = alone
        self._owned = False

    async def take(self) -> None:
        limit = self.limit
        ends = limit.when() if limit else None
        left = None if ends is None else ends - asyncio.get_running_loop().time()
        if limit and left is not None:
            limit.reschedule(None)
        await self.slots.acquire(self._number, alone=self._alone)
        self._owned = True
        if limit and left is not None:
            limit.reschedule(asyncio.get_running_loop().time() + left)

    def give_back(self) -> None:
        if self._owned:
            self._owned = False
            alone, self._alone = self._alone, False
            self.slots.release(alone=alone)


_lease: ContextVar[Lease | None] = ContextVar("tsuka_lease", default=None)


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
