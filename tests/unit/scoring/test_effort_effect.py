"""Whether an effort made a difference: seen, excluded, or not to be told."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tsuka.scoring.effort_effect import ACCEPTED, NO_EFFECT, UNKNOWN, effects, paired_p_value

LEVELS = ("none", "low", "medium", "xhigh")


def verdict(name: str, text: str, tokens: int | None, *, reasoning: str = "", score: float = 1.0) -> Any:
    usage = {"completion_tokens": tokens, "reasoning_tokens": None}
    turn = {"reply": {"text": text, "tool_calls": [], "reasoning": reasoning}, "usage": usage}
    return {"benchmark": name, "score": score, "runs": [{"conversation": [turn], "usage": usage}]}


def level(tokens: list[int | None], text: str, **more: Any) -> list[Any]:
    return [verdict(f"b{n}", text, count, **more) for n, count in enumerate(tokens)]


def test_the_same_replies_are_no_effect() -> None:
    same = level([5, 6, 7], "yes")
    assert effects({"none": same, "low": same}) == {"none": NO_EFFECT, "low": NO_EFFECT}


def test_other_replies_of_like_length_cannot_be_told() -> None:
    assert effects({"none": level([5, 6, 7], "a"), "low": level([6, 5, 7], "b")}) == dict.fromkeys(
        ("none", "low"), UNKNOWN
    )


def test_many_more_tokens_are_an_effect() -> None:
    found = effects({"none": level([10, 12, 9, 11], "a"), "low": level([300, 280, 310, 290], "b")})
    assert found == {"none": ACCEPTED, "low": ACCEPTED}


def test_reasoning_at_one_level_and_not_at_another_is_an_effect() -> None:
    found = effects({"none": level([5], "a"), "low": level([9], "b", reasoning="hm")})
    assert found == {"none": ACCEPTED, "low": ACCEPTED}


def test_scores_that_differ_throughout_are_an_effect_without_any_token_count() -> None:
    none, low = level([None] * 4, "a", score=0.2), level([None] * 4, "b", score=0.9)
    assert effects({"none": none, "low": low}) == {"none": ACCEPTED, "low": ACCEPTED}


def test_one_level_alone_has_nothing_to_compare_with() -> None:
    assert effects({"low": level([5], "a", reasoning="hm")}) == {"low": UNKNOWN}


def test_a_level_that_was_not_played_has_no_effect_of_any_kind() -> None:
    refused: Any = [{"benchmark": "b0", "score": None, "runs": []}]
    assert effects({"none": level([5], "a"), "xhigh": refused}) == {"none": UNKNOWN}


def test_chance_is_called_an_effect_in_one_of_twenty_models_at_most() -> None:
    """Four levels that do the same, seven benchmarks, lengths by chance: 400 models."""
    rng = random.Random(20261207)
    called = 0
    for _ in range(400):
        base = [rng.uniform(2, 6) for _ in range(7)]
        by_effort = {
            effort: level([int(2.718 ** (b + rng.gauss(0, 0.3))) for b in base], f"{effort}{rng.random()}")
            for effort in LEVELS
        }
        called += ACCEPTED in effects(by_effort).values()
    assert called <= 30  # 20 are expected at the most; P(more than 30) is below 2 %


@given(st.lists(st.integers(-1000, 1000), min_size=3, max_size=40).filter(lambda d: len(set(d)) > 1))
def test_p_values_are_those_of_scipy(differences: list[float]) -> None:
    stats = pytest.importorskip("scipy.stats")
    expected = float(stats.ttest_1samp(differences, 0.0).pvalue)
    assert paired_p_value(differences) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("differences", "p"), [([], 1.0), ([5.0, 5.0], 1.0), ([0.0] * 4, 1.0), ([2.0] * 4, 0.0)])
def test_p_values_without_a_spread(differences: list[float], p: float) -> None:
    assert paired_p_value(differences) == p
