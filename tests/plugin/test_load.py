"""Fair use of an endpoint: one that takes few requests at once, and one that keeps the others in a queue."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import one_check
from tests.endpoint import Answer, FakeEndpoint, Received, completion, error

Run = Callable[..., pytest.RunResult]
Suite = Callable[..., Path]
Serve = Callable[..., FakeEndpoint]


def written(pytester: pytest.Pytester) -> Any:
    return json.loads((pytester.path / "r.json").read_text(encoding="utf-8"))


class Narrow:
    """Takes `capacity` requests at once for 20 ms each and rejects the others."""

    def __init__(self, capacity: int, status: int = 429) -> None:
        self.capacity, self.status = capacity, status
        self.until: list[float] = []
        self.rejected = self.answered = 0
        self._lock = threading.Lock()

    def __call__(self, received: Received) -> Answer:
        with self._lock:
            now = time.monotonic()
            self.until = [t for t in self.until if t > now]
            if len(self.until) >= self.capacity:
                self.rejected += 1
                return error(self.status, "too many requests", {"retry-after": "0.1"})
            self.until.append(now + 0.02)
            self.answered += 1
            return Answer(json=completion("yes"), delay=0.02)


@pytest.mark.parametrize("status", [429, 503])
def test_an_overloaded_endpoint_is_asked_less_at_once(
    pytester: pytest.Pytester, run: Run, serve: Serve, suite: Suite, status: int
) -> None:
    """Nothing is lost, and by far fewer requests are rejected than with every slot in use all the time."""
    suite(**{f"b{n:03}": one_check(f"b{n:03}") for n in range(150)})
    narrow = Narrow(4, status)
    reports = ("--tsuka-json=r.json", "--tsuka-markdown=r.md", "--tsuka-html=r.html")
    result = run(serve(narrow), "--tsuka-concurrency=32", "--tsuka-effort=none", *reports)
    result.assert_outcomes(passed=150)
    (line,) = [line for line in result.outlines if "saturated" in line]
    effort = written(pytester)["models"][0]["efforts"][0]
    assert effort["rejections"] == narrow.rejected
    assert 1 <= effort["allowedAtOnce"] <= 8
    assert f"--tsuka-concurrency={effort['allowedAtOnce']} would not" in line
    assert written(pytester)["models"][0]["saturation"] == [line]
    assert "the endpoint was saturated" in (pytester.path / "r.md").read_text(encoding="utf-8")
    assert line in unescape((pytester.path / "r.html").read_text(encoding="utf-8"))
    assert {run["allowed"] for run in written(pytester)["verdicts"]} != {None}


def test_an_endpoint_that_keeps_up_is_not_called_saturated(
    pytester: pytest.Pytester, run: Run, serve: Serve, suite: Suite
) -> None:
    suite(**{f"b{n:03}": one_check(f"b{n:03}") for n in range(60)})
    narrow = Narrow(8)
    result = run(serve(narrow), "--tsuka-concurrency=4", "--tsuka-effort=none", "--tsuka-json=r.json")
    result.assert_outcomes(passed=60)
    result.stdout.no_fnmatch_line("the endpoint was saturated*")
    effort = written(pytester)["models"][0]["efforts"][0]
    assert (effort["allowedAtOnce"], effort["queuedShare"]) == (None, 0.0)


def test_a_queue_at_the_server_is_not_the_models_slowness(
    pytester: pytest.Pytester, run: Run, serve: Serve, suite: Suite
) -> None:
    """The server reports 50 ms of work and 20 tokens per second; all but the first request wait before that."""
    suite(**{name: one_check(name) for name in "abc"})
    timings = {"prompt_ms": 10.0, "predicted_ms": 40.0, "predicted_per_second": 20.0}
    body = completion("yes", timings=timings)
    endpoint = serve(lambda r: Answer(json=body, delay=0.05 if r.prompt.endswith("a") else 0.5))
    result = run(endpoint, "--tsuka-effort=none", "--tsuka-json=r.json")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["the endpoint was saturated: requests spent 8?% of their time in its queue;*"])
    data = written(pytester)
    assert [v["latencies"] for v in data["verdicts"]] == [[0.05], [0.05], [0.05]]
    effort = data["models"][0]["efforts"][0]
    assert effort["tokensPerSecond"] == pytest.approx(20.0)
    waits = [v["timing"]["seconds"] - 0.05 for v in data["verdicts"]]
    assert effort["queuedShare"] == pytest.approx((sum(waits) - 3 * min(waits)) / effort["requestSeconds"])


def test_the_way_to_a_far_endpoint_is_no_queue(pytester: pytest.Pytester, run: Run, serve: Serve, suite: Suite) -> None:
    """Each request takes 0.3 s longer than the server worked on it."""
    suite(**{name: one_check(name) for name in "abc"})
    body = completion("yes", timings={"prompt_ms": 10.0, "predicted_ms": 40.0, "predicted_per_second": 20.0})
    result = run(serve(lambda _: Answer(json=body, delay=0.35)), "--tsuka-effort=none", "--tsuka-json=r.json")
    result.stdout.no_fnmatch_line("the endpoint was saturated*")
    assert written(pytester)["models"][0]["efforts"][0]["queuedShare"] < 0.3


def test_workers_share_the_ceiling(pytester: pytest.Pytester, run: Run, serve: Serve, suite: Suite) -> None:
    suite(**{f"b{n:03}": one_check(f"b{n:03}") for n in range(40)})
    endpoint = serve(lambda _: Answer(json=completion("yes"), delay=0.05))
    result = run(endpoint, "--tsuka-concurrency=2", "--tsuka-effort=none", "-n", "2")
    result.assert_outcomes(passed=40)
    assert endpoint.most_in_flight == 2
    result.stdout.no_fnmatch_line("*workers*at once*")


def test_more_workers_than_conversations_allowed_is_said(
    pytester: pytest.Pytester, run: Run, serve: Serve, suite: Suite
) -> None:
    suite(a=one_check("a"), b=one_check("b"))
    result = run(serve(lambda _: "yes"), "--tsuka-concurrency=1", "--tsuka-effort=none", "-n", "2")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["note: 2 workers play 2 conversations at once, more than --tsuka-concurrency=1"])


class AtRandom:
    """Rejects one request in ten at random, however few there are at once."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self.rejected = 0

    def __call__(self, received: Received) -> Any:
        with self._lock:
            rejects = self._random.random() < 0.1
            self.rejected += rejects
        return error(429, "not now") if rejects else Answer(json=completion("yes"), delay=0.01)


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["one process", "two workers"])
def test_rejections_at_random_are_no_saturation(
    pytester: pytest.Pytester, run: Run, serve: Serve, suite: Suite, workers: tuple[str, ...]
) -> None:
    suite(**{f"b{n:03}": one_check(f"b{n:03}") for n in range(200)})
    script = AtRandom(5)
    result = run(serve(script), "--tsuka-concurrency=32", "--tsuka-effort=none", "--tsuka-json=r.json", *workers)
    result.assert_outcomes(passed=200)
    result.stdout.no_fnmatch_line("the endpoint was saturated*")
    effort = written(pytester)["models"][0]["efforts"][0]
    assert (effort["rejections"], effort["allowedAtOnce"]) == (script.rejected, None)


def test_waiting_for_ones_turn_is_not_counted_against_an_item(run: Run, serve: Serve, suite: Suite) -> None:
    """All are let in and rejected at once, then served one after the other for longer than an item may take."""
    suite(**{f"b{n:03}": one_check(f"b{n:03}") for n in range(24)})
    lock = threading.Lock()
    free_from = 0.0

    def one_at_a_time(received: Received) -> Answer:
        nonlocal free_from
        with lock:
            if (now := time.monotonic()) < free_from:
                return error(503, "busy", {"retry-after": "0.05"})
            free_from = now + 0.25
        return Answer(json=completion("yes"), delay=0.25)

    result = run(serve(one_at_a_time), "--tsuka-concurrency=16", "--tsuka-effort=none", "--tsuka-item-timeout=4")
    result.assert_outcomes(passed=24)


def test_a_worker_plays_ahead_as_far_as_it_was_given_items(run: Run, serve: Serve, suite: Suite) -> None:
    suite(**{f"b{n:03}": one_check(f"b{n:03}") for n in range(60)})
    endpoint = serve(lambda _: Answer(json=completion("yes"), delay=0.5))
    run(endpoint, "--tsuka-concurrency=16", "--tsuka-effort=none", "-n", "2").assert_outcomes(passed=60)
    assert 8 < endpoint.most_in_flight <= 16
