"""What a run came to, worked out without pytest."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_tsuka.plugin.settle import FinishedRun, Gate, Summary, settle
from pytest_tsuka.scoring.gate import read_requirement
from pytest_tsuka.scoring.results import Expectation
from tests.builders import SUITE, run_of, verdict


def settled(verdicts: Any, efforts: tuple[str, ...] = ("low",), **more: Any) -> Summary:
    return settle(FinishedRun(verdicts, Expectation(("m",), efforts, SUITE), "abcd1234", 0.0, **more))


def gate(*asked: str, **more: Any) -> Gate:
    return Gate(tuple(read_requirement(text) for text in asked), **more)


def test_a_whole_run_has_a_tier_a_document_and_properties() -> None:
    summary = settled(run_of(1, 1, 1))
    assert summary.measured
    assert summary.gate_failures is None
    assert summary.document()["models"][0]["tier"] == "large"
    assert summary.properties() == {
        "tsuka.testsHash": "abcd1234",
        "tsuka.model": "m",
        "tsuka.tier": "large",
        "tsuka.recommendedEffort": "low",
        "tsuka.tier.low": "large",
    }


def test_a_missing_benchmark_is_no_tier_and_fails_a_gate() -> None:
    summary = settled(run_of(1, 1, 1)[:2], gate=gate("small"))
    assert not summary.measured
    assert summary.gate_failures
    assert summary.properties()["tsuka.gate"] == "failed"
    assert summary.properties()["tsuka.tier"] == "none"


@pytest.mark.parametrize(
    ("asked", "met"), [(("large",), True), (("toolCalling=0.9", "medium"), True), (("json=1",), True)]
)
def test_a_gate_that_is_met(asked: tuple[str, ...], met: bool) -> None:
    summary = settled(run_of(1, 1, 1), gate=gate(*asked))
    assert (summary.gate_failures == []) == met
    assert summary.properties()["tsuka.gate"] == "met"


def test_a_gate_looks_at_the_effort_that_is_named() -> None:
    verdicts = [*run_of(1, 1, 1, effort="low"), *run_of(0, 0, 0, effort="none")]
    assert settled(verdicts, ("none", "low"), gate=gate("large")).gate_failures == []
    assert settled(verdicts, ("none", "low"), gate=gate("large", effort="none")).gate_failures


def test_an_interrupted_run_is_not_judged() -> None:
    summary = settled(run_of(1, 1, 1), gate=gate("large"), interrupted=True)
    assert summary.gate_failures is None
    assert summary.document()["interrupted"] is True


def test_more_workers_than_conversations_is_said() -> None:
    assert settled([], workers=3, concurrency=2).notes == [
        "3 workers play 3 conversations at once, more than --tsuka-concurrency=2"
    ]
    assert settled([], workers=2, concurrency=2).notes == []


def test_a_run_that_measured_nothing_has_no_models() -> None:
    summary = settle(FinishedRun([], None, "abcd1234", 0.0))
    assert (summary.results, summary.measured) == ([], False)
    assert summary.document()["models"] == []


def test_an_error_is_an_effort_without_a_tier_and_the_last_words_say_what_to_do() -> None:
    summary = settled([*run_of(1, 1, 1)[:2], verdict("tools")])
    (model,) = summary.results
    assert model.efforts[0].tier is None
    assert "tsuka doctor" in model.why_no_tier()
