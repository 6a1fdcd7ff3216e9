"""How often a request is sent again, for models, judges and embedders alike."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from pytest_tsuka.backends.embeddings import EndpointEmbedder
from pytest_tsuka.backends.openai import Limits, OpenAIBackend
from pytest_tsuka.backends.retry import UNREACHED, Retries
from pytest_tsuka.backends.trouble import Kind, Trouble
from pytest_tsuka.errors import BackendError
from pytest_tsuka.protocols import Request
from tests.endpoint import Answer, FakeEndpoint, Received, completion, error

Serve = Callable[..., FakeEndpoint]
BUSY = Trouble(Kind.AGAIN, "HTTP 429", too_many=True)
BROKEN = Trouble(Kind.AGAIN, "HTTP 500")


def test_failures_count_up_to_the_limit() -> None:
    retries = Retries(3)
    waits = [retries.pause_after(BROKEN) for _ in range(4)]
    assert waits[-1] is None
    assert all(0.5 * w <= wait <= w for wait, w in zip(waits, (0.5, 1.0, 2.0), strict=False) if wait)


def test_a_rejection_in_company_never_counts() -> None:
    retries = Retries(0)
    for _ in range(100):
        wait = retries.pause_after(BUSY, had_company=True)
        assert wait is not None
        assert wait <= 4.0
    assert retries.rejections == 100
    assert retries.pause_after(BUSY) is None


def test_other_failures_count_also_in_company() -> None:
    assert Retries(0).pause_after(BROKEN, had_company=True) is None


def test_what_retry_after_asks_for_is_waited() -> None:
    asked = Trouble(Kind.AGAIN, "x", retry_after=3.0, too_many=True)
    assert Retries(1).pause_after(asked) == 3.0
    assert Retries(1).pause_after(asked, had_company=True) == 3.0
    assert Retries(1).pause_after(Trouble(Kind.AGAIN, "x", retry_after=0.0)) == 0.05


def test_what_was_never_reached_is_given_up_sooner() -> None:
    retries = Retries(50)
    waits = [retries.pause_after(BROKEN, reached=False) for _ in range(UNREACHED + 1)]
    assert waits.index(None) == UNREACHED


# --- over a real socket ----------------------------------------------------------------------


class Narrow:
    """Serves `capacity` at once and rejects the others; an answer goes out when as many were rejected."""

    def __init__(self, capacity: int, rejections: int) -> None:
        self._capacity, self._rejections = capacity, rejections
        self.rejected = 0

    def __call__(self, received: Received) -> Answer:
        if endpoint_of(self).in_flight > self._capacity:
            self.rejected += 1
            return error(429, "too many", {"retry-after": "0.01"})
        return Answer(json=completion("yes"), delay=0.3)


_ENDPOINTS: dict[int, FakeEndpoint] = {}


def endpoint_of(script: Any) -> FakeEndpoint:
    return _ENDPOINTS[id(script)]


def test_rejections_lose_nothing_though_no_retry_is_allowed(serve: Serve) -> None:
    """Twelve at once against a server that takes one: eleven rejections and more for each, and all are answered."""
    script = Narrow(1, 1)
    endpoint = _ENDPOINTS[id(script)] = serve(script)

    async def go() -> list[Any]:
        async with OpenAIBackend(endpoint.url, limits=Limits(retries=0)) as backend:
            requests = (Request("m", "none", ({"role": "user", "content": str(n)},)) for n in range(12))
            return await asyncio.gather(*(backend.complete(r) for r in requests))

    exchanges = asyncio.run(go())
    assert len(exchanges) == 12
    assert script.rejected > 12
    assert sum(e.load.rejections for e in exchanges) == script.rejected


def test_an_endpoint_that_rejects_everything_ends(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """Alone each rejection counts; so it is not asked for ever."""
    monkeypatch.setattr("pytest_tsuka.backends.retry.FIRST_BACKOFF", 0.01)
    endpoint = serve(lambda r: error(429, "no"))

    async def go() -> None:
        async with OpenAIBackend(endpoint.url, limits=Limits(retries=2)) as backend:
            await backend.complete(Request("m", "none", ({"role": "user", "content": "x"},)))

    with pytest.raises(BackendError, match=r"HTTP 429: no \(after 3 attempts\)"):
        asyncio.run(go())
    assert len(endpoint.requests) == 3


def test_where_others_ask_too_a_rejection_does_not_count_soon(serve: Serve) -> None:
    """A worker cannot see what the other workers have in flight."""
    answers = iter([error(429, "no", {"retry-after": "0"})] * 6)
    endpoint = serve(lambda r: next(answers, "yes"))

    async def go() -> Any:
        async with OpenAIBackend(endpoint.url, limits=Limits(retries=2), shared=True) as backend:
            return await backend.complete(Request("m", "none", ({"role": "user", "content": "x"},)))

    exchange = asyncio.run(go())
    assert (exchange.load.rejections, exchange.timing.at_once) == (6, None)


def embedded(endpoint: FakeEndpoint, **options: Any) -> Any:
    return asyncio.run(EndpointEmbedder("e", endpoint.url, **options).embed(["a", "b"]))


VECTORS = {"data": [{"index": 1, "embedding": [0.0, 2.0]}, {"index": 0, "embedding": [3.0, 0.0]}]}


def test_an_embedder_waits_as_long_as_it_is_asked_to(serve: Serve) -> None:
    arrived: list[float] = []

    def script(received: Received) -> Any:
        arrived.append(time.monotonic())
        return VECTORS if received.number else error(429, "busy", {"retry-after": "1.5"})

    assert embedded(serve(script)).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert arrived[1] - arrived[0] >= 1.5


@pytest.mark.parametrize(
    ("answer", "requests", "said"),
    [
        (error(500, "boom"), 3, "HTTP 500: boom"),
        (error(429, "used up", type="insufficient_quota"), 1, "the quota of this key is used up"),
        (error(401, "no key"), 1, "is the API key right"),
        (Answer(body=b"\xff"), 3, "not valid UTF-8 JSON"),
        (Answer(json={"data": 3}), 1, "holds no embeddings"),
        (Answer(reset=True), 3, "the connection broke off"),
    ],
)
def test_an_embedder_follows_the_same_rules(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, answer: Answer, requests: int, said: str
) -> None:
    monkeypatch.setattr("pytest_tsuka.backends.retry.FIRST_BACKOFF", 0.01)
    endpoint = serve(lambda r: answer)
    with pytest.raises(BackendError, match=said):
        embedded(endpoint, retries=2)
    assert len(endpoint.requests) == requests
