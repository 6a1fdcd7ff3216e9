"""How many conversations are allowed at once while an endpoint says that it has too many."""

from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tsuka.backends.concurrency import CALM_ROUNDS, FEWEST_ANSWERS, IN_A_ROW, Slots, heard, pause


@given(st.integers(1, 100), st.lists(st.booleans(), max_size=500))
def test_never_above_the_ceiling_and_never_none(ceiling: int, answers: list[bool]) -> None:
    slots = Slots(ceiling)
    for rejected in answers:
        slots.heard(rejected=rejected)
        assert 1 <= slots.limit <= ceiling


def calm_round(slots: Slots) -> None:
    for _ in range(max(slots.limit, FEWEST_ANSWERS)):
        slots.heard(rejected=False)


@given(st.integers(2, 100))
def test_rejections_lower_it_by_a_share_and_answers_raise_it_by_one(ceiling: int) -> None:
    """Up to where it was too many before: there it is tried again only after a while."""
    slots = Slots(ceiling)
    for _ in range(IN_A_ROW):
        slots.heard(rejected=True)
    assert slots.limit == max(1, int(0.7 * ceiling))
    for expected in range(slots.limit + 1, ceiling):
        calm_round(slots)
        assert slots.limit == expected
    for _ in range(CALM_ROUNDS):
        calm_round(slots)
        assert slots.limit == ceiling - 1
    calm_round(slots)
    assert slots.limit == ceiling


def test_one_more_that_is_too_many_is_taken_back() -> None:
    slots = Slots(40)
    slots.limit = 10
    calm_round(slots)
    assert slots.limit == 11
    for _ in range(IN_A_ROW):
        slots.heard(rejected=True)
    assert slots.limit == 10


def test_a_round_that_is_half_rejected_lowers_it_a_third_does_not() -> None:
    for rejected, limit in (((True, False), 28), ((True, False, False), 40)):
        slots = Slots(40)
        for n in range(40):
            slots.heard(rejected=rejected[n % len(rejected)])
        assert slots.limit == limit


def test_a_gateway_that_rejects_one_in_ten_at_random_is_not_overloaded() -> None:
    rng, slots, lowest = random.Random(1), Slots(32), 32
    for _ in range(10_000):
        slots.heard(rejected=rng.random() < 0.1)
        lowest = min(lowest, slots.limit)
    assert lowest == 32


@given(st.integers(1, 20), st.integers(2, 20))
def test_it_settles_at_what_a_server_takes_at_once(capacity: int, tries: int) -> None:
    """A server that serves `capacity` and rejects at once: whoever is rejected hands the slot on to the next.

    `tries` is how many are rejected while one is served.
    """
    slots, allowed, serving, rejections = Slots(40), [], 0, 0
    for _ in range(4000):
        for _ in range(tries):
            if serving >= slots.limit:
                break
            if serving < capacity:
                serving += 1
            else:
                rejections += 1
                slots.heard(rejected=True)
        serving -= 1
        slots.heard(rejected=False)
        allowed.append(slots.limit)
    assert max(allowed[400:]) <= capacity + 1 + capacity // tries
    assert min(allowed[400:]) >= max(1, capacity // 2)
    assert rejections < 0.35 * 4000


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
            assert [heard(rejected=True) for _ in range(IN_A_ROW)] == [None] * (IN_A_ROW - 1) + [2]

    asyncio.run(main())


def test_who_came_first_is_served_first_also_after_a_pause() -> None:
    async def main() -> list[str]:
        slots, order = Slots(1), []
        let_go = asyncio.Event()

        async def first() -> None:
            async with slots.held():
                await pause(0.01)  # the slot is another's meanwhile
                order.append("first")

        async def other(name: str) -> None:
            async with slots.held():
                await let_go.wait()
                order.append(name)

        tasks = [asyncio.create_task(c) for c in (first(), other("second"), other("third"))]
        await asyncio.sleep(0.05)  # the first one's pause is over: it waits again, before the third
        let_go.set()
        await asyncio.gather(*tasks)
        return order

    assert asyncio.run(main()) == ["second", "first", "third"]


def test_alone_is_alone() -> None:
    """It waits until nobody else has a slot, and whoever comes after it waits for its end."""

    async def main() -> list[int]:
        slots, seen = Slots(4), []
        inside = 0

        async def conversation(alone: bool) -> None:
            nonlocal inside
            async with slots.held(alone=alone):
                inside += 1
                await asyncio.sleep(0.01)
                if alone:
                    seen.append(inside)
                inside -= 1

        await asyncio.gather(*(conversation(alone=n in (2, 5)) for n in range(9)))
        assert slots.in_use == 0
        return seen

    assert asyncio.run(main()) == [1, 1]


def test_a_conversations_own_limit_stands_still_while_it_waits_for_a_slot() -> None:
    async def main() -> None:
        slots = Slots(1)

        async def long() -> None:
            async with slots.held():
                await asyncio.sleep(0.4)

        async with slots.held() as lease:
            async with asyncio.timeout(0.2) as lease.limit:
                other = asyncio.create_task(long())
                await pause(0.01)  # the other has the slot for longer than this one may take
        await other

    asyncio.run(main())


def test_a_pause_counts_against_a_conversations_own_limit() -> None:
    async def main() -> None:
        async with Slots(1).held() as lease:
            async with asyncio.timeout(0.05) as lease.limit:
                await pause(5)

    with pytest.raises(TimeoutError):
        asyncio.run(main())
