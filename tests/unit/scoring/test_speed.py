"""Speed of one stream, throughput of all, wall time: what they are sums and ratios of."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tsuka.conversation import Exchange, Timing, Usage
from pytest_tsuka.scoring.speed import speed, throughput, wall_seconds
from pytest_tsuka.scoring.timing import timed


def exchange(tokens: int | None, seconds: float, **timing: Any) -> Exchange:
    return Exchange({}, usage=Usage(completion_tokens=tokens), timing=Timing(seconds, **timing))


def run(*exchanges: Exchange, began: float | None = None, ended: float | None = None) -> Any:
    tokens = sum(e.usage.completion_tokens or 0 for e in exchanges)
    seconds = sum(e.timing.seconds for e in exchanges)
    timing = {"seconds": seconds, "began": began, "ended": ended, **timed(exchanges)}
    return {"timing": timing, "usage": {"completion_tokens": tokens or None}}


def test_what_was_measured_alone_goes_before_all_else() -> None:
    runs = [
        run(exchange(100, 2.0, at_once=1)),
        run(exchange(100, 20.0, at_once=8), exchange(100, 9.0, first_token_seconds=1.0)),
    ]
    found = speed(runs)
    assert found
    assert (found.tokens_per_second, found.how, found.at_once) == (50.0, "alone", 1.0)


def test_a_stream_is_timed_from_its_first_token_to_its_last() -> None:
    found = speed([run(exchange(101, 12.0, first_token_seconds=2.0, at_once=4))])
    assert found
    assert (found.tokens_per_second, found.how) == (10.0, "streamed")


def test_else_whole_requests_are_all_there_is() -> None:
    found = speed([run(exchange(30, 3.0), began=0.0, ended=3.0), run(exchange(30, 3.0), began=0.0, ended=3.0)])
    assert found
    assert (found.tokens_per_second, found.how, found.at_once) == (10.0, "shared", 2.0)


def test_the_servers_own_speed_is_used_where_it_tells_one() -> None:
    found = speed([run(exchange(80, 9.0, tokens_per_second=40.0, at_once=1, first_token_seconds=5.0))])
    assert found
    assert (found.tokens_per_second, found.how) == (40.0, "alone")


@pytest.mark.parametrize("runs", [[], [run()], [run(exchange(None, 3.0))], [run(exchange(0, 3.0))]])
def test_without_tokens_nothing_is_known(runs: list[Any]) -> None:
    assert speed(runs) is None
    assert throughput(runs) is None


spans = st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20)), min_size=1, max_size=12)


@given(spans)
def test_wall_time_counts_each_moment_once(spans: list[tuple[int, int]]) -> None:
    runs = [run(exchange(1, float(length)), began=float(at), ended=float(at + length)) for at, length in spans]
    moments = {moment for at, length in spans for moment in range(at, at + length)}
    assert wall_seconds(runs) == len(moments)
    whole = throughput(runs)
    assert whole
    assert whole.tokens_per_second == pytest.approx(len(spans) / len(moments))
    assert whole.at_once == pytest.approx(sum(length for _, length in spans) / len(moments))


def test_wall_time_of_what_nobody_timed() -> None:
    assert wall_seconds([run(exchange(1, 1.0))]) is None
