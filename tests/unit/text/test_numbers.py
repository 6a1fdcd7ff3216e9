"""One formatter: what is shown never reaches what was missed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tsuka.scoring.tiers import EPSILON, TIERS
from pytest_tsuka.text.numbers import number_text, percent_text, score_text

THRESHOLDS = sorted({value for needs in TIERS.thresholds.values() for value in needs.values()})


@given(st.floats(0, 1), st.sampled_from(THRESHOLDS), st.sampled_from([2, 3]))
def test_a_score_shown_reaches_a_threshold_only_if_it_does(score: float, threshold: float, digits: int) -> None:
    assert (float(score_text(score, digits)) >= threshold) == (threshold - score <= EPSILON)


@given(st.sampled_from(THRESHOLDS), st.floats(-5e-9, 5e-9))
def test_also_where_it_is_close(threshold: float, off: float) -> None:
    score = threshold + off
    assert (float(score_text(score)) >= threshold) == (threshold - score <= EPSILON)


@pytest.mark.parametrize(
    ("score", "shown"), [(0.8496, "0.84"), (0.85, "0.85"), (1.0, "1.00"), (0.999, "0.99"), (0.0, "0.00"), (None, "–")]
)
def test_scores(score: float | None, shown: str) -> None:
    assert score_text(score) == shown


def test_what_is_not_known_is_a_dash() -> None:
    assert (number_text(None), percent_text(None), number_text(1.25, unit=" s")) == ("–", "–", "1.2 s")


@pytest.mark.parametrize(("share", "shown"), [(0.0, "0%"), (0.001, "1%"), (0.5, "50%"), (0.999, "99%"), (1.0, "100%")])
def test_only_all_is_all_and_only_nothing_is_nothing(share: float, shown: str) -> None:
    assert percent_text(share) == shown
