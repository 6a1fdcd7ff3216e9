"""The ladder, lists as sets, scores: each rule with a case that fails without it."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_tsuka.errors import SettingsError
from pytest_tsuka.gold import Comparison, Field, Ranking, Scoring, Vectors, compare, fields_of, grade, rank
from pytest_tsuka.gold.assignment import pair
from pytest_tsuka.gold.comparison import PARTIAL_DATE
from pytest_tsuka.gold.fields import Kind, threshold_of
from pytest_tsuka.gold.ranking import log_scale


def credit(reference: Any, candidate: Any, kind: Kind = "any", **more: Any) -> float:
    return compare(candidate, reference, Field("f", kind, **more)).credit


@pytest.mark.parametrize(
    ("kind", "more", "pairs"),
    [
        ("text", {}, [("Acme", "ACME", 1), ("00501", "501", 0), ("00501", 501, 0), ("57", 57, 1), ("U.N.", "UN", 1), ("C++", "C", 0)]),
        ("number", {}, [(4.0, 4, 1), (1234.56, "1.234,56", 1), (16181, "16.181", 0), (2.5, "2,5", 1), (5, "25", 0), (-5, "5", 0), (1000, "1e3", 1), ("3100", 3100, 1), (57, "57", 1), ("60%", "60 %", 1), (0.6, "60%", 1), (60, "60%", 0), (2.5, "42.5", 0)]),
        ("number", {"unit": "%"}, [(60, "60%", 1), (60, "60", 1), (60, "0.6", 0)]),
        ("number", {"decimal_comma": True}, [(16181, "16.181", 1), (16.181, "16.181", 0)]),
        ("number", {"tolerance": 0.01}, [(100, 100.9, 1), (100, 102, 0)]),
        ("date", {"day_first": True}, [("2021-06-17", "17/6/2021", 1), ("2021-07-03", "3/7/2021", 1), ("2021-03-07", "3/7/2021", 0)]),
        ("date", {}, [("2019-06", "June 2019", 1), ("2019-06-14", "June 2019", PARTIAL_DATE), ("2017-07-06", "to", 0), ("2017-05-01", "may", 0), ("2024-05-01", "2024-05-01T23:30:00-05:00", 1), ("2024-05-01", "2024-05-02T04:30:00Z", 0), ("1972-03-14", "1972-03-24", 0), ("2021-07-03", "3/7/2021", 0), ("3/7/2021", "3/7/2021", 1), ("2021-03-03", "3/3/2021", 1)]),
        ("boolean", {}, [(True, True, 1), (True, "true", 0), (True, 1, 0), (False, 0, 0), (True, "No", 0)]),
        ("code", {}, [("tt0371746", "TT0371746", 1), ("a@b.c", "a@b.d", 0)]),
        ("any", {}, [(4, 4.0, 1), (4, "4", 1), ("14 marzo 1972", "1972-03-14", 1), (True, 1, 0), ([1], [1], 1), ({"a": 1}, {"a": 2}, 0)]),
    ],
)  # fmt: skip
def test_the_certain_rungs(kind: Kind, more: dict[str, Any], pairs: list[tuple[Any, Any, float]]) -> None:
    """F01 to F17, F29: exact and calendar; symmetric in reference and candidate."""
    for reference, candidate, expected in pairs:
        assert credit(reference, candidate, kind, **more) == expected, (reference, candidate)
        if not more.get("tolerance"):
            assert credit(candidate, reference, kind, **more) == expected, (candidate, reference)


VECTORS = Vectors(
    {
        "Robert Downey Jr.": np.array([1.0, 0.0], dtype=np.float32),
        "R. Downey Jr.": np.array([0.98, 0.199], dtype=np.float32),
        "Gwyneth Paltrow": np.array([0.5, 0.866], dtype=np.float32),
        "1972-03-14": np.array([1.0, 0.0], dtype=np.float32),
        "1972-03-24": np.array([1.0, 0.0], dtype=np.float32),
    }
)


def test_similarity_is_for_short_texts_only() -> None:
    """The rung, the cosine and the threshold; dates, codes and numbers never go by similarity."""
    text = Field("f", "text")
    alike = compare("R. Downey Jr.", "Robert Downey Jr.", text, vectors=VECTORS, threshold=0.95)
    assert (alike.rung, alike.credit, round(alike.similarity or 0, 2)) == ("embedding", 1.0, 0.98)
    strict = compare("R. Downey Jr.", "Robert Downey Jr.", text, vectors=VECTORS, threshold=0.99)
    assert (strict.rung, strict.credit) == ("embedding", 0.0)
    assert compare("1972-03-24", "1972-03-14", Field("f"), vectors=VECTORS, threshold=0.5) == Comparison(
        "calendar", 0.0
    )
    assert compare("R. Downey Jr.", "Robert Downey Jr.", Field("f", "code"), vectors=VECTORS, threshold=0.5).credit == 0


def test_what_only_a_judge_settles_is_marked() -> None:
    """Free text and numbers that differ are undecided without a judge, and asked with one."""
    assert compare("Short.", "Another.", Field("f", "free_text")).undecided
    assert compare(273.37, 273.35, Field("f", "number")).undecided
    assert not compare("a", "b", Field("f", "text")).undecided
    asked: list[tuple[Any, Any]] = []

    def judge(field: Field, candidate: Any, reference: Any, item: Any) -> Comparison:
        asked.append((candidate, reference))
        return Comparison("judge", 0.5)

    assert compare("x", "y", Field("f", "free_text"), judge=judge) == Comparison("judge", 0.5)
    assert compare("same", "SAME", Field("f", "free_text"), judge=judge).rung == "exact"
    assert asked == [("x", "y")]


FIELDS = fields_of(None)


def test_one_answer_item_satisfies_one_reference_item() -> None:
    """F19: three identical references, one answer: a third."""
    graded = grade({"l": [{"id": 1}]}, {"l": [{"id": 1}] * 3})
    assert graded.completeness == pytest.approx(1 / 3)
    assert graded.correctness == 1.0


def test_pairs_with_nothing_in_common_are_no_pairs() -> None:
    """F21: the assignment pairs everything, phantoms are dropped."""
    found = pair(["red", "bicycle"], ["red", "blue"], "l", FIELDS)
    assert (found.matched, found.missing, found.hallucinated) == (((0, 0),), (1,), (1,))
    graded = grade({"l": ["red", "bicycle"]}, {"l": ["red", "blue"]})
    assert (graded.completeness, graded.correctness) == (0.5, 0.5)


@pytest.mark.parametrize(
    ("reference", "candidate", "status"),
    [
        (None, None, None),
        ("", None, None),
        ([], None, None),
        (0, None, "missing"),
        (None, 0, "unverified"),
        (None, "n/a", "unverified"),
        (False, None, "missing"),
        ({}, [], None),
    ],
)
def test_empty_is_absent(reference: Any, candidate: Any, status: str | None) -> None:
    """F23, F25: null, "", [] and {} are one thing; 0 and false are values."""
    leaves = grade({"f": candidate}, {"f": reference}).leaves
    assert [leaf.status for leaf in leaves] == ([status] if status else [])
    assert [leaf.status for leaf in grade({}, {"f": reference}).leaves] == (["missing"] if status == "missing" else [])


def cast(count: int) -> Any:
    return [f"Actor {chr(65 + n)}" for n in range(count)]


def test_more_right_items_win() -> None:
    """Three of three beats three of five; twelve of fifteen beats four of fifteen; order and extra items count."""
    everyone: Any = {"cast": cast(15)}
    three = grade({"cast": cast(3)}, {"cast": cast(3)}).quality
    assert three == 100
    assert grade({"cast": [*cast(3), "X", "Y"]}, {"cast": cast(3)}).quality < three
    assert grade({"cast": cast(12)}, everyone).quality > grade({"cast": cast(4)}, everyone).quality
    assert grade({"cast": cast(15)[::-1]}, everyone).quality == 100


def test_scores() -> None:
    """Weights, recall, precision, their harmonic mean, hallucinations, surplus fields, an answer without JSON."""
    schema = {
        "properties": {
            "a": {"type": "string"},
            "b": {"type": "number"},
            "c": {"type": "array", "items": {"type": "string"}},
        }
    }
    scoring = Scoring(field_weights={"a": 2.0})
    graded = grade(
        {"a": "x", "b": 1, "c": ["p", "z"], "extra": 5}, {"a": "X", "b": 2, "c": ["p", "q"]}, schema, scoring
    )
    assert graded.completeness == pytest.approx(3 / 5)
    assert graded.correctness == pytest.approx(3 / 5)
    assert graded.quality == pytest.approx(60)
    assert graded.hallucination_rate == pytest.approx(1 / 5)
    assert {leaf.path: leaf.status for leaf in graded.leaves} == {
        "a": "matched",
        "b": "mismatch",
        "c[0]": "matched",
        "c[1]": "missing",
        "c[+1]": "hallucinated",
        "extra": "extra",
    }
    nothing = grade(None, {"a": "x"}, schema)
    assert (nothing.quality, nothing.problem) == (0.0, "no usable JSON in the answer")


def test_identity_says_which_item_it_is() -> None:
    """By identity first, then by everything else; a role that differs is a mismatch in the right pair."""
    reference: Any = {"cast": [{"actor": "Anita Rey", "role": "Queen"}, {"actor": "Amir Rey", "role": "King"}]}
    answer: Any = {"cast": [{"actor": "Amir Rey", "role": "Queen"}, {"actor": "Anita Rey", "role": "Queen"}]}
    graded = grade(answer, reference, scoring=Scoring(identity={"cast": ("actor",)}))
    assert {leaf.path: leaf.status for leaf in graded.leaves} == {
        "cast[0].actor": "matched",
        "cast[0].role": "matched",
        "cast[1].actor": "matched",
        "cast[1].role": "mismatch",
    }


def test_schema_references_and_unknown_fields() -> None:
    schema = {
        "$defs": {"person": {"properties": {"born": {"type": "string", "format": "date"}}}},
        "properties": {"people": {"type": "array", "items": {"$ref": "#/$defs/person"}}},
    }
    fields = fields_of(schema)
    assert fields.at("people[].born").kind == "date"
    assert not fields.at("people[].height").in_schema
    assert fields_of(None).at("anything").in_schema


names = st.sampled_from(["Ada", "Bob", "Cleo", "Dora", "3/7/2021", "1.5", "1,5", "x" * 130])
values = st.none() | st.booleans() | st.integers(0, 3) | names
records = st.dictionaries(st.sampled_from("abc"), values, max_size=3)
documents = st.fixed_dictionaries(
    {"one": values, "many": st.lists(values, max_size=5), "rows": st.lists(records, max_size=4)}
)


@settings(max_examples=150)
@given(documents, documents, st.randoms())
def test_order_never_matters(answer: Any, reference: Any, shuffler: random.Random) -> None:
    """Lists are sets, keys have no order: scores stay the same to the last digit."""

    def shuffled(value: Any) -> Any:
        if isinstance(value, dict):
            keys = list(value)
            shuffler.shuffle(keys)
            return {k: shuffled(value[k]) for k in keys}
        if isinstance(value, list):
            items = [shuffled(v) for v in value]
            shuffler.shuffle(items)
            return items
        return value

    first, second = grade(answer, reference), grade(shuffled(answer), shuffled(reference))
    assert first.quality == pytest.approx(second.quality)
    assert first.completeness == pytest.approx(second.completeness)


@given(documents)
def test_the_reference_itself_is_perfect(reference: Any) -> None:
    graded = grade(reference, reference)
    assert graded.quality == (100 if graded.leaves else 0)
    assert all(leaf.status == "matched" for leaf in graded.leaves)


@given(documents, documents)
def test_scores_stay_in_their_ranges(answer: Any, reference: Any) -> None:
    graded = grade(answer, reference)
    assert 0 <= graded.completeness <= 1 + 1e-9
    assert 0 <= graded.correctness <= 1 + 1e-9
    assert 0 <= graded.quality <= 100 + 1e-9
    assert 0 <= graded.hallucination_rate <= 1


@settings(max_examples=60)
@given(st.lists(st.sampled_from("abcd"), max_size=4), st.lists(st.sampled_from("abcd"), max_size=4))
def test_the_assignment_is_optimal(left: list[str], right: list[str]) -> None:
    """Compared with every assignment of small lists."""
    found = len(pair(list(left), list(right), "l", FIELDS).matched)
    short, long = sorted((left, right), key=len)
    best = max(
        (sum(a == b for a, b in zip(short, p, strict=True)) for p in itertools.permutations(long, len(short))),
        default=0,
    )
    assert found == best


def test_ranking() -> None:
    """The best is 100, ten times worse 0, $12 against $10 is 92; what is unknown is left out and marked."""
    assert log_scale(10, 10) == 100
    assert round(log_scale(12, 10)) == 92
    assert log_scale(100, 10) == pytest.approx(0)
    assert log_scale(1000, 10) == 0
    ranked = rank([("good", 90, 10, 10), ("cheap", 60, 10, 1), ("unknown", 80, 10, None)], Ranking(20, 0, 80))
    assert [r.model for r in ranked] == ["cheap", "unknown", "good"]
    assert [r.complete for r in ranked] == [True, False, True]
    assert ranked[1].score == pytest.approx(80)
    with pytest.raises(SettingsError, match="do not add up to 100"):
        Ranking(50, 50, 50)


def test_strictness() -> None:
    assert threshold_of("lenient") < threshold_of("balanced") < threshold_of("strict")
    assert threshold_of(0.9) == 0.9
    with pytest.raises(SettingsError, match="did you mean 'strict'"):
        threshold_of("strickt")
    with pytest.raises(SettingsError, match="from 0 to 1"):
        threshold_of(2.0)
