"""The kinds of scenario that have rules of their own: a schema from samples, a sample from a request."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tsuka.gold.comparison import Vectors
from pytest_tsuka.gold.enrichment import Grade
from pytest_tsuka.gold.fields import fields_of
from pytest_tsuka.gold.samples import asked_fields, grade_sample, is_placeholder
from pytest_tsuka.gold.schemas import grade_schema, sample_findings

SAMPLES: list[Any] = [{"id": 1, "at": "2026-01-01", "state": "new", "tags": ["a"], "box": {"size": 1.5}},
           {"id": 2, "at": "2026-01-02", "state": "old", "tags": [], "box": {"size": 2}}]  # fmt: skip
REFERENCE: dict[str, Any] = {
    "type": "object",
    "required": ["id", "at"],
    "properties": {
        "id": {"type": "integer"},
        "at": {"type": "string", "format": "date"},
        "state": {"type": "string", "enum": ["new", "old"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "box": {"type": "object", "properties": {"size": {"type": "number", "description": "edge in metres"}}},
    },
}


def graded(change: Any, **more: Any) -> Grade:
    answer = copy.deepcopy(REFERENCE)
    change(answer)
    return grade_schema(answer, REFERENCE, SAMPLES, **more)


def status(grade: Grade, path: str) -> tuple[str, float]:
    return next((leaf.status, leaf.credit) for leaf in grade.leaves if leaf.path == path)


def test_a_schema_is_equal_to_itself() -> None:
    same = graded(lambda _: None)
    assert same.quality == 100
    assert {leaf.path for leaf in same.leaves} >= {"id", "id.type", "id.required", "at.format", "state.enum", "tags[].type", "box.size.type"}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "path", "expected"),
    [
        (lambda s: s["properties"]["id"].update(type="string"), "id.type", ("mismatch", 0.0)),
        (lambda s: s["properties"]["id"].update(type="number"), "id.type", ("partial", 0.5)),
        (lambda s: s["properties"]["id"].update(type=["integer", "null"]), "id.type", ("partial", 0.5)),
        (lambda s: s["properties"]["id"].pop("type"), "id.type", ("missing", 0.0)),
        (lambda s: s["properties"]["at"].update(format="date-time"), "at.format", ("mismatch", 0.0)),
        (lambda s: s["properties"]["at"].pop("format"), "at.format", ("missing", 0.0)),
        (lambda s: s["properties"]["state"].update(enum=["new", "old", "NEW ", "x"]), "state.enum", ("partial", 2 / 3)),
        (lambda s: s.update(required=["at"]), "id.required", ("mismatch", 0.0)),
        (lambda s: s["properties"].pop("box"), "box.size", ("missing", 0.0)),
        (lambda s: s["properties"]["box"]["properties"].pop("size"), "box.size", ("missing", 0.0)),
        (lambda s: s["properties"]["tags"]["items"].update(type="integer"), "tags[].type", ("mismatch", 0.0)),
        (lambda s: s["properties"].update(more={"type": "string"}), "more", ("hallucinated", 0.0)),
    ],
)
def test_credit_for_each_part(change: Any, path: str, expected: tuple[str, float]) -> None:
    """Type, format, enum, nesting, required; what the reference does not have is invented."""
    grade = graded(change)
    found = status(grade, path)
    assert found[0] == expected[0]
    assert found[1] == pytest.approx(expected[1])
    assert grade.quality < 100


@given(st.permutations(list(REFERENCE["properties"])))
def test_the_order_of_properties_never_matters(order: list[str]) -> None:
    def change(schema: Any) -> None:
        schema["properties"] = {name: schema["properties"][name] for name in order}

    assert graded(change).quality == 100


def test_names_match_whatever_their_case_and_separators() -> None:
    samples: list[Any] = [{"startDate": "x"}]
    reference: Any = {"type": "object", "properties": {"start_date": {"type": "string"}}}
    answer: Any = {"type": "object", "properties": {"startDate": {"type": "string"}}}
    assert grade_schema(answer, reference, samples).quality == 100


def test_then_by_what_they_mean() -> None:
    """By a similar name or description, once each; without vectors they are two different ones."""
    vectors = Vectors({t: np.array(v, dtype=np.float32) for t, v in
                       (("size", (1, 0)), ("edge", (0, 1)), ("edge in metres", (0.6, 0.8)), ("length of the edge", (0.6, 0.8)))})  # fmt: skip

    def change(schema: Any) -> None:
        schema["properties"]["box"]["properties"] = {"edge": {"type": "number", "description": "length of the edge"}}

    assert status(graded(change), "box.size") == ("missing", 0.0)
    found = graded(change, vectors=vectors, threshold=0.9)
    assert status(found, "box.size") == ("matched", 1.0)
    assert next(leaf for leaf in found.leaves if leaf.path == "box.size").comparison.rung == "embedding"  # type: ignore[union-attr]


@pytest.mark.parametrize("answer", [None, [1], "text", {"type": "objekt"}, {"properties": []}])
def test_what_is_no_schema_scores_0_and_says_so(answer: Any) -> None:
    grade = grade_schema(answer, REFERENCE, SAMPLES)
    assert grade.quality == 0
    assert grade.problem


def test_the_samples_must_be_accepted() -> None:
    """Quality is scaled by the share that is; the first that is not is named."""
    half = graded(lambda s: s["properties"]["state"].update(enum=["new"]))
    assert half.subscores["samples_accepted"] == 0.5
    assert half.schema_problem
    assert "sample 2" in half.schema_problem
    assert half.quality < 50
    assert graded(lambda s: s["required"].append("none")).quality == 0


def test_references_inside_a_schema_are_followed() -> None:
    def change(schema: Any) -> None:
        schema["$defs"] = {"box": schema["properties"]["box"]}
        schema["properties"]["box"] = {"$ref": "#/$defs/box"}

    assert graded(change).quality == 100


def test_a_schema_that_refers_to_itself_ends() -> None:
    loop: Any = {"type": "object", "properties": {"child": {"$ref": "#"}}}
    assert grade_schema(loop, loop, [{}]).quality == 100
    wide: Any = {"type": "object", "properties": {"a": {"$ref": "#"}}}
    assert 0 < grade_schema(wide, {"type": "object", "properties": {"b": {"$ref": "#"}}}, [{}]).hallucination_rate <= 1


@pytest.mark.parametrize(
    ("wrong", "path", "value"),
    [
        (lambda s: s["properties"]["id"].update(type="string"), "properties.id.type", "integer"),
        (lambda s: s["properties"]["state"].update(enum=["new"]), "properties.state.enum", ["new", "old"]),
        (lambda s: s["required"].append("gone"), "required", ["id", "at"]),
        (lambda s: s["properties"].pop("tags"), "properties.tags", REFERENCE["properties"]["tags"]),
        (lambda s: s["properties"]["box"]["properties"]["size"].update(type="integer"), "properties.box.properties.size.type", "number"),
        (lambda s: s["properties"]["tags"]["items"].update(type="integer"), "properties.tags.items.type", "string"),
    ],
)  # fmt: skip
def test_what_samples_prove_against_the_reference(wrong: Any, path: str, value: Any) -> None:
    """Only where the samples contradict it and the answer has it right."""
    reference = copy.deepcopy(REFERENCE)
    wrong(reference)
    (finding,) = sample_findings(REFERENCE, reference, SAMPLES, "m", "p")
    assert (finding.path, finding.value, finding.evidence) == (path, value, "samples")
    assert sample_findings(reference, REFERENCE, SAMPLES, "m", "p") == [], "a worse answer proves nothing"
    assert sample_findings(reference, reference, SAMPLES, "m", "p") == []


# --- samples -------------------------------------------------------------------------------

REQUEST = "An order with `number`, `lines` and `total`."
ORDER: dict[str, Any] = {
    "number": "A-17",
    "lines": [{"book": "Il barone rampante", "price": 12.5}, {"book": "Lessico famigliare", "price": 11}],
    "total": 23.5,
}


def test_a_sample_that_keeps_every_rule() -> None:
    grade = grade_sample(ORDER, REQUEST)
    assert grade.quality == 100
    assert grade.subscores == {"no_placeholders": 1.0, "asked_fields": 1.0, "consistent_types": 1.0}
    assert "rules only: no judge rated it" in grade.notes


@pytest.mark.parametrize("answer", [None, [], [ORDER], "x", 3, {}, {"a": None, "b": {"c": []}}])
def test_what_is_no_sample_scores_0_and_says_so(answer: Any) -> None:
    grade = grade_sample(answer, REQUEST)
    assert grade.quality == 0
    assert grade.problem


@pytest.mark.parametrize(
    ("change", "part", "share"),
    [
        ({"number": "string"}, "no_placeholders", 5 / 6),
        ({"number": None}, "asked_fields", 2 / 3),
        ({"lines": [{"book": "A b", "price": "12"}, {"book": "C d", "price": 3}]}, "consistent_types", 2 / 3),
        ({"lines": [{"book": "A b", "price": 1.5}, {"book": "C d", "price": 3}]}, "consistent_types", 1.0),
    ],
)
def test_each_rule_is_a_sub_score(change: dict[str, Any], part: str, share: float) -> None:
    assert grade_sample({**ORDER, **change}, REQUEST).subscores[part] == pytest.approx(share)


def test_the_rubric_is_four_more_and_the_columns_keep_their_meaning() -> None:
    """Completeness from what was asked for, correctness from all else, quality their harmonic mean."""
    rubric = {"relevance": 1.0, "realism": 0.5, "structure": 1.0, "coverage": 0.5}
    grade = grade_sample({**ORDER, "total": None}, REQUEST, None, rubric)
    assert grade.completeness == pytest.approx((2 / 3 + 0.5) / 2)
    assert grade.correctness == pytest.approx((1 + 1 + 1 + 0.5 + 1) / 5)
    assert grade.quality == pytest.approx(200 * grade.completeness * grade.correctness / (grade.completeness + grade.correctness))  # fmt: skip


@pytest.mark.parametrize("text", ["string", "Example", "TODO", "your name here", "<name>", "...", "Lorem ipsum dolor", "[city]", "{{x}}", "insert title", "N/A", "example 1", "A string"])  # fmt: skip
def test_placeholders(text: str) -> None:
    assert is_placeholder(text)


@pytest.mark.parametrize("text", ["String quartet", "Roma", "An example of grace", "17", "none of these", "Todorov", "Foo Fighters", 12, True])  # fmt: skip
def test_no_placeholders(text: Any) -> None:
    assert not is_placeholder(text)


def test_what_is_asked_for() -> None:
    """Names in backticks; of a schema its required fields, or all of them."""
    assert asked_fields("with `a` and `b c` and `a`", None) == ["a"]
    assert asked_fields("", {"properties": {"x": {}, "y": {}}}) == ["x", "y"]
    assert asked_fields("", {"properties": {"x": {}, "y": {}}, "required": ["y"]}) == ["y"]


@pytest.mark.parametrize(
    ("reference", "kind"),
    [
        ("#/$defs/a~1b", "number"),
        ("#/$defs/a~0b", "boolean"),
        ("#/$defs/c%20d", "date"),
        ("#named", "number"),
        ("#/$defs/none", "any"),
    ],
)
def test_references_are_followed_as_json_schema_has_them(reference: str, kind: str) -> None:
    """Escaped names and anchors; one that leads nowhere says nothing."""
    schema: Any = {
        "properties": {"x": {"$ref": reference}},
        "$defs": {
            "a/b": {"type": "number", "$anchor": "named"},
            "a~b": {"type": "boolean"},
            "c d": {"type": "string", "format": "date"},
        },
    }
    assert fields_of(schema).at("x").kind == kind
