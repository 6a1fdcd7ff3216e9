"""Who may talk to the endpoint right now: a first-come, first-served limit with slots to give back.

All of it runs in the engine's one event loop, so there is no lock.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar


class Slots:
    """At most `limit` conversations at once, in the order in which they asked."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.in_use = 0
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
            else:
                self._waiting.remove(turn)
            raise

    def release(self) -> None:
        self.in_use -= 1
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
        self._slots = slots
        self._owned = False

    async def take(self) -> None:
        await self._slots.acquire()
        self._owned = True

    def give_back(self) -> None:
        if self._owned:
            self._owned = False
            self._slots.release()


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
