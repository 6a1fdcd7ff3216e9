"""The background loop: concurrency, order, limits, slots given back, and an end without leftovers."""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import threading
import time
from typing import Any

import pytest

from pytest_tsuka.backends.concurrency import Slots, pause
from pytest_tsuka.backends.scripted import ScriptedBackend
from pytest_tsuka.errors import BackendError, ItemTimeout
from pytest_tsuka.runner.engine import Engine


def engine(concurrency: int = 8, **options: Any) -> Engine[int, Any]:
    backend = ScriptedBackend(lambda r: "ok")
    return Engine[int, Any](lambda model: backend, concurrency=concurrency, **options).start()


def test_jobs_run_concurrently() -> None:
    """60 jobs of 50 ms at concurrency 8 take less than a sixth of the sequential time (the best of three runs)."""

    def run_once() -> tuple[float, int]:
        running = engine(8)
        most = now = 0

        async def job(_: Any) -> None:
            nonlocal most, now
            now += 1
            most = max(most, now)
            await asyncio.sleep(0.05)
            now -= 1

        start = time.perf_counter()
        for future in [running.prefetch(i, "m", job) for i in range(60)]:
            future.result(30)
        seconds = time.perf_counter() - start
        running.close()
        return seconds, most

    runs = [run_once() for _ in range(3)]
    assert {most for _, most in runs} == {8}
    assert min(seconds for seconds, _ in runs) < 60 * 0.05 / 6  # the ideal is 0.4 s


def test_a_job_is_started_once() -> None:
    running = engine()
    calls: list[int] = []

    async def job(_: Any) -> int:
        calls.append(1)
        return len(calls)

    first = running.prefetch(1, "m", job)
    assert first is running.prefetch(1, "m", job)
    assert first.result(5) == 1
    running.close()


def test_many_are_asked_for_before_the_loop_has_its_turn() -> None:
    """Whatever the loop is at when they come, each is started, and in order."""
    running = engine(1)
    order: list[int] = []

    async def job(number: int, _: Any) -> int:
        order.append(number)
        time.sleep(0.001)  # the loop is busy, and the asking thread goes on
        return number

    futures = [running.prefetch(n, "m", functools.partial(job, n)) for n in range(300)]
    assert [future.result(10) for future in futures] == list(range(300)) == order
    running.close()


def test_what_was_never_started_is_cancelled_at_the_end() -> None:
    running = engine(1)
    futures = [running.prefetch(n, "m", lambda _: asyncio.sleep(60)) for n in range(50)]
    running.close()
    assert all(future.cancelled() for future in futures)


def test_whoever_waits_for_a_job_that_is_cancelled_is_told() -> None:
    """As by a backend whose own task ended: the item has an error then, and the run goes on."""
    running = engine()

    async def job(_: Any) -> None:
        await asyncio.sleep(0.2)
        raise asyncio.CancelledError

    future = running.prefetch(1, "m", job)
    assert not concurrent.futures.wait([future], timeout=10).not_done
    with pytest.raises(concurrent.futures.CancelledError):
        future.result(0)
    running.close()


def test_waiting_until_it_is_idle() -> None:
    """Not before what it is at is finished, and no longer than said."""
    running = engine()
    begun = threading.Event()

    async def busy(_: Any) -> None:
        begun.set()
        time.sleep(0.3)

    future = running.prefetch(1, "m", busy)
    assert begun.wait(5)
    running.wait_idle(0.01)
    assert not future.done()
    running.wait_idle(10)
    assert future.done()
    future = running.prefetch(2, "m", lambda _: asyncio.sleep(60))
    start = time.monotonic()
    running.wait_idle(10)  # it waits itself, so there is nothing to wait for
    assert time.monotonic() - start < 5
    running.close()


def test_the_item_limit() -> None:
    """It counts from when the job gets its slot, and names the option."""
    running = engine(item_timeout=0.1)
    with pytest.raises(ItemTimeout, match=r"0\.1 s \(--tsuka-item-timeout\)"):
        running.prefetch(1, "m", lambda _: asyncio.sleep(5)).result(5)
    running.close()


def test_a_backend_that_cannot_open_is_each_items_error() -> None:
    class Broken(ScriptedBackend):
        async def __aenter__(self) -> ScriptedBackend:
            raise RuntimeError("no such device")

    broken = Broken(lambda r: "")
    running = Engine[int, Any](lambda model: broken, concurrency=2).start()
    for key in range(3):
        with pytest.raises(BackendError, match="RuntimeError: no such device"):
            running.prefetch(key, "m", lambda _: asyncio.sleep(0)).result(5)
    running.close()


def test_closing_cancels_what_is_in_flight() -> None:
    """Within a second, the backend closed after its requests, the thread gone."""
    events: list[str] = []

    class Watched(ScriptedBackend):
        async def __aexit__(self, *_: Any) -> None:
            events.append("closed")

    watched = Watched(lambda r: "")

    async def job(_: Any) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            events.append("cancelled")
            raise

    running = Engine[int, Any](lambda model: watched, concurrency=2).start()
    running.prefetch(1, "m", job)
    while running.progress.in_flight == 0:
        time.sleep(0.01)
    start = time.perf_counter()
    running.close()
    assert time.perf_counter() - start < 1
    assert events == ["cancelled", "closed"]
    assert not any(thread.name == "tsuka-engine" for thread in threading.enumerate())


def test_slots_are_given_back_while_waiting() -> None:
    """One slot, one job that waits a long time: the others go through meanwhile."""

    async def go() -> list[str]:
        slots = Slots(1)
        order: list[str] = []

        async def patient() -> None:
            async with slots.held():
                await pause(0.2)
                order.append("patient")

        async def quick(name: str) -> None:
            async with slots.held():
                await asyncio.sleep(0.01)
                order.append(name)

        await asyncio.gather(patient(), quick("a"), quick("b"))
        assert slots.in_use == 0
        return order

    assert asyncio.run(go()) == ["a", "b", "patient"]


def test_slots_are_first_come_first_served_and_survive_cancelling() -> None:
    async def go() -> list[int]:
        slots = Slots(2)
        order: list[int] = []

        async def job(number: int) -> None:
            async with slots.held():
                order.append(number)
                await pause(0.01)

        tasks = [asyncio.create_task(job(n)) for n in range(20)]
        await asyncio.sleep(0)
        for task in tasks[5:20:3]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert slots.in_use == 0
        return order

    order = asyncio.run(go())
    assert order == sorted(order)
    assert {n for n in range(20) if n < 5 or n % 3 != 2} <= set(order)
