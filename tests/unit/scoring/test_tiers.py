"""Scores, tiers, recommendation, and the exact smallest set of checks that would flip a tier."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tsuka.errors import SettingsError
from pytest_tsuka.scoring.tiers import (
    CATEGORY_NAMES,
    TIERS,
    CheckLoss,
    TierPolicy,
    compute_tier,
    recommend,
    smallest_flip,
    weighted_mean,
    weighted_share,
)
from pytest_tsuka.text.numbers import score_text

unit = st.floats(0, 1)
weights = st.floats(0.01, 100)


def scores(tool: float, instruction: float, json: float) -> dict[str, float | None]:
    return {"toolCalling": tool, "instruction": instruction, "json": json}


@pytest.mark.parametrize(
    ("tool", "instruction", "json", "tier"),
    [
        (0.9, 0.85, 0.85, "large"),
        (0.8999, 1, 1, "medium"),
        (1, 0.8499, 1, "medium"),
        (1, 1, 0.8499, "medium"),
        (0.6, 0, 0.5, "medium"),
        (0.5999, 1, 1, "small"),
        (1, 1, 0.4999, "small"),
        (0, 0, 0, "small"),
        (0.9 - 1e-10, 0.85 - 1e-10, 0.85, "large"),  # a float artefact is no miss
        (0.9 - 1e-8, 1, 1, "medium"),
        (0.89286, 1, 1, "medium"),  # is displayed as 0.89 and would round to 0.90 in two steps
    ],
)
def test_tiers(tool: float, instruction: float, json: float, tier: str) -> None:
    """Thresholds on unrounded scores."""
    assert compute_tier(scores(tool, instruction, json)) == tier


@pytest.mark.parametrize("missing", CATEGORY_NAMES)
def test_no_tier_without_every_category(missing: str) -> None:
    assert compute_tier({**scores(1, 1, 1), missing: None}) is None


@given(unit, unit, unit, unit)
def test_a_better_score_never_lowers_the_tier(tool: float, instruction: float, json: float, more: float) -> None:
    before = compute_tier(scores(tool, instruction, json))
    after = compute_tier(scores(max(tool, more), instruction, json))
    assert before
    assert after
    assert TIERS.rank(after) >= TIERS.rank(before)


@given(st.lists(st.tuples(st.booleans(), weights), min_size=1))
def test_share_is_a_share(checks: list[tuple[bool, float]]) -> None:
    """0..1, 1 exactly when all pass, whatever the order; scaling every weight changes nothing."""
    share = weighted_share(checks)
    assert 0 <= share <= 1
    assert (share == 1) == all(passed for passed, _ in checks)
    assert weighted_share(checks[::-1]) == share
    assert weighted_share([(p, w * 4) for p, w in checks]) == pytest.approx(share)


@given(st.lists(st.tuples(unit, weights), min_size=1))
def test_mean_is_between_its_values(pairs: list[tuple[float, float]]) -> None:
    mean = weighted_mean(pairs)
    assert mean is not None
    assert min(s for s, _ in pairs) - 1e-9 <= mean <= max(s for s, _ in pairs) + 1e-9
    assert weighted_mean([]) is None


@given(
    st.lists(st.tuples(st.sampled_from(CATEGORY_NAMES), st.floats(0.001, 0.5)), max_size=9),
    st.dictionaries(st.sampled_from(CATEGORY_NAMES), st.floats(0.001, 1.0), min_size=1, max_size=3),
)
def test_the_smallest_flip_is_exact(gains: list[tuple[str, float]], needs: dict[str, float]) -> None:
    """Compared with every subset: none smaller closes the gaps, and the found one does."""
    losses = [CheckLoss(category, "b", str(i), gain) for i, (category, gain) in enumerate(gains)]

    def closes(subset: tuple[CheckLoss, ...]) -> bool:
        return all(math.fsum(x.gain for x in subset if x.category == c) >= need - 1e-9 for c, need in needs.items())

    sizes = [n for n in range(len(losses) + 1) for subset in itertools.combinations(losses, n) if closes(subset)]
    found = smallest_flip(needs, losses)
    if not sizes:
        assert found is None
    else:
        assert found is not None
        assert closes(tuple(found))
        assert len(found) == sizes[0]


def test_recommendation() -> None:
    """The first level, in ascending cost, with the highest tier observed."""
    swept = [("none", "small"), ("low", "medium"), ("medium", "medium"), ("xhigh", "small")]
    assert recommend(swept).effort == "low"  # type: ignore[union-attr]
    assert recommend([("none", "small"), ("low", "small")]).effort == "none"  # type: ignore[union-attr]
    assert recommend([]) is None


def test_policy_mistakes_are_named() -> None:
    with pytest.raises(SettingsError, match="did you mean 'toolCalling'"):
        TierPolicy({"a": {}, "b": {"toolcalling": 0.5}})
    with pytest.raises(SettingsError, match="unknown tier 'larg'; did you mean 'large'"):
        TIERS.rank("larg")


@given(unit)
def test_display_never_rounds_up(score: float) -> None:
    """0.8999 is not 0.90, however it is displayed."""
    shown = float(score_text(score))
    assert shown <= score + 1e-8
    assert score - shown < 0.01 + 1e-9


def test_display_of_artefacts() -> None:
    assert score_text(0.1 + 0.2) == "0.30"
    assert score_text(0.8999) == "0.89"
    assert score_text(None) == "–"
