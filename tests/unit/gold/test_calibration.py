"""What a cosine means belongs to the model: thresholds from labelled pairs, and what no similarity may overrule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tsuka.gold.assignment import credits
from pytest_tsuka.gold.calibration import ACCEPTED_NEAR_MISSES, calibrate, labelled, texts
from pytest_tsuka.gold.comparison import Vectors, compare
from pytest_tsuka.gold.enrichment import grade
from pytest_tsuka.gold.families import family, same_family
from pytest_tsuka.gold.fields import Field, Scoring, fields_of
from pytest_tsuka.gold.values import certainly_different, normal_text, numerals


def random_vectors(seed: int) -> Vectors:
    rng = np.random.default_rng(seed)
    found = {}
    for text in texts():
        vector = rng.normal(size=16)
        found[text] = (vector / np.linalg.norm(vector)).astype(np.float32)
    return Vectors(found)


@given(st.integers(0, 10_000))
def test_each_strictness_keeps_its_promise(seed: int) -> None:
    """Whatever the model: no more near misses are taken than allowed, and the stricter the higher."""
    calibration = calibrate(random_vectors(seed))
    for name, share in ACCEPTED_NEAR_MISSES.items():
        assert calibration.mistaken[name] <= share
    thresholds = [calibration.thresholds[name] for name in ("lenient", "balanced", "strict")]
    assert thresholds == sorted(thresholds)
    assert calibration.found["lenient"] >= calibration.found["strict"]


def test_the_list_has_no_pair_twice_and_none_that_is_equal_anyway() -> None:
    pairs = [frozenset(pair) for group in labelled() for pair in group]
    assert len(pairs) == len(set(pairs))
    assert all(normal_text(a) != normal_text(b) for group in labelled() for a, b in group)


@pytest.mark.parametrize(
    ("a", "b", "different"),
    [
        ("Clara Anne Holm", "A. Holm", True),  # F27
        ("C. Holm", "Clara Anne Holm", False),
        ("R. Downey Jr.", "Robert Downey Jr.", False),
        ("J.R.R. Tolkien", "John Ronald Reuel Tolkien", False),
        ("Vitamin B6", "Vitamin B12", True),
        ("Part II", "Part III", True),
        ("Episode IV", "Episode 4", False),
        ("Louis XIV", "Louis XVI", True),
        ("the same", "another thing", False),
        ("A. Holm", "A. Berg", False),
    ],
)
def test_what_similarity_may_not_overrule(a: str, b: str, different: bool) -> None:
    """Other numbers, and an initial of another first name; alone and in lists."""
    assert certainly_different(a, b) is different
    assert certainly_different(b, a) is different
    one = np.array([1.0], dtype=np.float32)
    vectors = Vectors({a: one, b: one})
    assert compare(a, b, Field("f", "text"), vectors=vectors, threshold=0.9).credit == float(not different)
    listed = grade({"l": [a]}, {"l": [b]}, scoring=Scoring(threshold=0.9), vectors=vectors)
    assert listed.completeness == float(not different)


TEXTS = st.sampled_from(
    ["A. Holm", "Clara Holm", "C. Holm", "Holm", "Part II", "Part III", "Part 2", "Anna Berg", "A Berg", "B12", "b"]
)


@given(st.lists(TEXTS, min_size=1, max_size=6), st.lists(TEXTS, min_size=1, max_size=6))
def test_in_lists_the_same_as_one_by_one(left: list[str], right: list[str]) -> None:
    """What pairs of items may be, decided for all at once."""
    one = np.array([1.0], dtype=np.float32)
    vectors = Vectors(dict.fromkeys(left + right, one))
    found = credits(left, right, "l", fields_of(None), vectors=vectors, threshold=0.9)
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            assert bool(found[i, j]) == (normal_text(a) == normal_text(b) or not certainly_different(a, b)), (a, b)


def test_roman_numbers() -> None:
    assert numerals("IV, IX and XIX in 2001") == (4, 9, 19, 2001)
    assert numerals("Malcolm X and I") == ()


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("gpt-4o", "openai/gpt-5-mini", True),
        ("o3-mini", "gpt-4.1", True),
        ("claude-opus-4", "anthropic/claude-3-haiku", True),
        ("qwen3:8b", "Qwen/QwQ-32B", True),
        ("google/gemma-3", "gemini-2.5-pro", True),
        ("meta-llama/Llama-3.1-8B", "codellama", True),
        ("deepseek-r1-distill-llama", "gpt-4o", False),
        ("mistral-small", "qwen3", False),
        ("house-model-a", "house-model-b", True),
    ],
)
def test_families(a: str, b: str, same: bool) -> None:
    assert same_family(a, b) is same
    assert family(a) == family(a.upper())


def test_an_omitted_required_key_is_flagged() -> None:
    """F25: null says "none", leaving the key out breaks the schema."""
    schema: Any = {"type": "object", "required": ["end"], "properties": {"end": {"type": ["string", "null"]}}}
    reference: Any = {"end": None}
    assert grade({"end": None}, reference, schema).schema_problem is None
    assert "'end' is a required property" in (grade({}, reference, schema).schema_problem or "")
    filled = grade({"end": "2024-01-01"}, reference, schema)
    assert filled.leaves[0].status == "unverified"
    assert filled.quality == 0
