"""Requests and tokens per minute."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tsuka.backends.openai import OpenAIBackend
from pytest_tsuka.backends.rate_limit import Pacer
from pytest_tsuka.protocols import Request
from tests.endpoint import Answer, FakeEndpoint, Received, completion

Serve = Callable[..., FakeEndpoint]


class Clock:
    """A time that moves when told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@given(st.lists(st.floats(0, 5), min_size=1, max_size=60), st.floats(1, 600))
def test_requests_are_spread_evenly(pauses: list[float], rpm: float) -> None:
    """Whenever they come, no two turns are nearer than a minute's share, and nobody waits without need."""
    clock = Clock()
    pacer = Pacer(requests=rpm, clock=clock)
    turns = []
    for waited in pauses:
        clock.now += waited
        turns.append(clock.now + pacer.reserve())
    gaps = [b - a for a, b in pairwise(turns)]
    assert all(gap >= 60 / rpm - 1e-6 for gap in gaps)
    assert turns[0] == clock.now if len(pauses) == 1 else turns[0] <= 100 + pauses[0] + 1e-9


@given(st.lists(st.integers(1, 5000), min_size=2, max_size=40), st.integers(100, 100_000))
def test_tokens_are_kept_on_average(answers: list[int], tpm: int) -> None:
    """After each answer the next turn waits until its tokens fit."""
    clock = Clock()
    pacer = Pacer(tokens=tpm, clock=clock)
    for tokens in answers:
        clock.now += pacer.reserve()
        pacer.spent(tokens)
    last = clock.now + pacer.reserve()
    assert last - 100.0 == pytest.approx(sum(answers) / tpm * 60)


def test_no_limit_never_waits() -> None:
    pacer = Pacer()
    pacer.spent(10**9)
    pacer.spent(None)
    assert [pacer.reserve() for _ in range(5)] == [0.0] * 5


def test_an_endpoint_is_asked_no_faster(serve: Serve) -> None:
    """Retries count as well: each is a request."""
    arrived: list[float] = []
    began: list[float] = []

    def script(received: Received) -> Answer:
        arrived.append(time.monotonic())
        return Answer(status=503, json={}) if received.number == 1 else Answer(json=completion("yes"))

    async def go() -> None:
        async with OpenAIBackend(serve(script).url, pacer=Pacer(requests=600)) as backend:
            began.append(time.monotonic())
            asked = (Request("m", "none", ({"role": "user", "content": str(n)},)) for n in range(6))
            await asyncio.gather(*(backend.complete(request) for request in asked))

    asyncio.run(go())
    assert len(arrived) == 7
    assert arrived[-1] - began[0] >= 0.6  # six intervals after the first, however late that one arrives
