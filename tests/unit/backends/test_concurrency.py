"""How many conversations are allowed at once while an endpoint says that it has too many."""

from __future__ import annotations

import asyncio
import random

from hypothesis import given
from hypothesis import strategies as st

from pytest_tsuka.backends.concurrency import FEWEST_ANSWERS, Slots, heard


@given(st.integers(1, 100), st.lists(st.booleans(), max_size=500))
def test_never_above_the_ceiling_and_never_none(ceiling: int, answers: list[bool]) -> None:
    slots = Slots(ceiling)
    for rejected in answers:
        slots.heard(rejected=rejected)
        assert 1 <= slots.limit <= ceiling


@given(st.integers(2, 100))
def test_rejections_lower_it_by_a_share_and_answers_raise_it_by_one(ceiling: int) -> None:
    slots = Slots(ceiling)
    for _ in range(max(ceiling, FEWEST_ANSWERS)):
        slots.heard(rejected=True)
    assert slots.limit == max(1, int(0.7 * ceiling))
    for expected in range(slots.limit + 1, ceiling + 1):
        for _ in range(max(slots.limit, FEWEST_ANSWERS)):
            assert slots.limit == expected - 1
            slots.heard(rejected=False)
        assert slots.limit == expected
    for _ in range(1000):
        slots.heard(rejected=False)
    assert slots.limit == ceiling


def test_a_gateway_that_rejects_one_in_ten_at_random_is_not_overloaded() -> None:
    rng, slots, lowest = random.Random(1), Slots(32), 32
    for _ in range(10_000):
        slots.heard(rejected=rng.random() < 0.1)
        lowest = min(lowest, slots.limit)
    assert lowest == 32


@given(st.integers(1, 20), st.integers(0, 2**32))
def test_it_settles_around_what_a_server_takes_at_once(capacity: int, seed: int) -> None:
    """Rounds of as many requests as are allowed, of which the server takes `capacity`."""
    rng, slots, allowed = random.Random(seed), Slots(40), []
    for _ in range(400):
        outcomes = [place >= capacity for place in range(slots.limit)]
        rng.shuffle(outcomes)
        for rejected in outcomes:
            slots.heard(rejected=rejected)
        allowed.append(slots.limit)
    assert max(allowed[100:]) <= capacity * 2 + 1
    assert min(allowed[100:]) >= max(1, capacity // 2)


def test_fewer_allowed_holds_back_those_who_wait_and_more_lets_them_in() -> None:
    async def main() -> None:
        slots = Slots(8)
        leave = asyncio.Event()
        inside = 0

        async def conversation() -> None:
            nonlocal inside
            async with slots.held():
                inside += 1
                await leave.wait()
                inside -= 1

        slots.limit = 2
        tasks = [asyncio.create_task(conversation()) for _ in range(8)]
        await asyncio.sleep(0)
        assert inside == 2
        for _ in range(FEWEST_ANSWERS):
            slots.heard(rejected=False)
        await asyncio.sleep(0)
        assert inside == 3
        leave.set()
        await asyncio.gather(*tasks)
        assert slots.in_use == 0

    asyncio.run(main())


def test_a_conversation_learns_what_is_allowed_only_where_that_is_less_than_asked_for() -> None:
    async def main() -> None:
        assert heard(rejected=True) is None  # outside of any slot
        slots = Slots(4)
        async with slots.held():
            assert heard(rejected=False) is None
            assert [heard(rejected=True) for _ in range(FEWEST_ANSWERS)][-1] == 2

    asyncio.run(main())
