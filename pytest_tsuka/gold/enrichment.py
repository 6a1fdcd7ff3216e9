"""A whole answer against its reference: every leaf with its verdict, then completeness, correctness, quality."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pytest_tsuka.checks.schemas import violations
from pytest_tsuka.gold.assignment import pair
from pytest_tsuka.gold.comparison import Backing, Comparison, Judge, Vectors, compare, is_empty
from pytest_tsuka.gold.fields import Field, Fields, Scoring, fields_of
from pytest_tsuka.text.json_types import JsonObject, JsonValue

NO_JSON = "no usable JSON in the answer"
Status = Literal["matched", "partial", "mismatch", "missing", "hallucinated", "unverified", "extra"]


@dataclass(frozen=True, slots=True)
class LeafGrade:
    """One value of the answer or of the reference, and what became of it.

    `path` is where it stands (`cast[2].name`), `field` the field it belongs to (`cast[].name`).
    """

    path: str
    field: str
    status: Status
    weight: float
    candidate: JsonValue = None
    reference: JsonValue = None
    comparison: Comparison | None = None

    @property
    def credit(self) -> float:
        return self.comparison.credit if self.comparison else 0.0

    @property
    def in_reference(self) -> bool:
        """Whether it counts as a value that the reference has."""
        return self.status in ("matched", "partial", "mismatch", "missing")

    @property
    def given(self) -> bool:
        """Whether it counts as a value that the answer gives."""
        return self.status in ("matched", "partial", "mismatch", "hallucinated")


@dataclass(frozen=True)
class Grade:
    """All leaves of one answer; scores are 0..1 but for quality, which is 0..100.

    `problem` says why there was nothing to grade, `schema_problem` what of the answer breaks the
    schema. `subscores` are the parts that a kind of scenario adds to or has instead of leaves
    (0..1); `recall` and `precision` stand in for what leaves would give, `scale` lowers the quality.
    """

    leaves: tuple[LeafGrade, ...]
    problem: str | None = None
    schema_problem: str | None = None
    subscores: Mapping[str, float] = field(default_factory=dict)
    recall: float | None = None
    precision: float | None = None
    scale: float = 1.0
    notes: tuple[str, ...] = ()

    def _weight(self, *, reference: bool) -> float:
        return math.fsum(leaf.weight for leaf in self.leaves if (leaf.in_reference if reference else leaf.given))

    @property
    def _credit(self) -> float:
        return math.fsum(leaf.weight * leaf.credit for leaf in self.leaves if leaf.in_reference)

    @property
    def completeness(self) -> float:
        """Credit over the values of the reference (recall)."""
        if self.recall is not None:
            return self.recall
        total = self._weight(reference=True)
        return self._credit / total if total else 0.0

    @property
    def correctness(self) -> float:
        """Credit over the values given (precision)."""
        if self.precision is not None:
            return self.precision
        total = self._weight(reference=False)
        return self._credit / total if total else 0.0

    @property
    def quality(self) -> float:
        """The harmonic mean of completeness and correctness, 0..100."""
        both = self.completeness + self.correctness
        return self.scale * 200.0 * self.completeness * self.correctness / both if both else 0.0

    @property
    def hallucination_rate(self) -> float:
        """The share of given values (by weight) that the reference does not have."""
        total = self._weight(reference=False)
        return math.fsum(leaf.weight for leaf in self.leaves if leaf.status == "hallucinated") / total if total else 0.0

    @property
    def rungs(self) -> Mapping[str, int]:
        """How many leaves each rung decided."""
        return Counter(leaf.comparison.rung for leaf in self.leaves if leaf.comparison)

    @property
    def undecided(self) -> int:
        """Mismatches that only a judge could have settled."""
        return sum(bool(leaf.comparison and leaf.comparison.undecided) for leaf in self.leaves)

    @property
    def unverified(self) -> int:
        """Values where the reference has none and nobody judged them."""
        return sum(leaf.status == "unverified" for leaf in self.leaves)


def grade(
    answer: JsonValue,
    reference: JsonValue,
    schema: JsonObject | None = None,
    scoring: Scoring | None = None,
    *,
    vectors: Vectors | None = None,
    judge: Judge | None = None,
    backed: Backing | None = None,
) -> Grade:
    """Grades an answer field by field. Without vectors and judge only the certain rungs decide.

    `answer` None means that there was no usable JSON: everything in the reference is missing.
    `backed` says which short texts that differ are worth a question to the judge.
    """
    scoring = scoring or Scoring()
    walk = _Walk(fields_of(schema, scoring), scoring.threshold, vectors, judge, backed)
    leaves = tuple(walk.value(answer, reference, "", ""))
    if answer is None:
        return Grade(leaves, NO_JSON)
    return Grade(leaves, schema_problem=(violations(answer, schema) or None) if schema else None)


@dataclass(frozen=True)
class _Walk:
    fields: Fields
    threshold: float
    vectors: Vectors | None
    judge: Judge | None
    backed: Backing | None

    def value(
        self, candidate: JsonValue, reference: JsonValue, path: str, field: str, item: JsonValue = None
    ) -> Iterator[LeafGrade]:
        """The leaves at and below one place; `item` is the list item that they belong to, if any."""
        if is_empty(candidate) and is_empty(reference):
            return
        if isinstance(reference, dict) or (is_empty(reference) and isinstance(candidate, dict)):
            yield from self._object(candidate, reference, path, field, item)
        elif isinstance(reference, list) or (is_empty(reference) and isinstance(candidate, list)):
            yield from self._list(candidate, reference, path, field)
        else:
            yield self._leaf(candidate, reference, path, self.fields.at(field), item)

    def _object(
        self, candidate: JsonValue, reference: JsonValue, path: str, field: str, item: JsonValue
    ) -> Iterator[LeafGrade]:
        left: dict[str, Any] = candidate if isinstance(candidate, dict) else {}
        right: dict[str, Any] = reference if isinstance(reference, dict) else {}
        if not is_empty(candidate) and not isinstance(candidate, dict):
            yield self._surplus(candidate, path, field)
        for name in (*right, *(n for n in left if n not in right)):
            inner = (f"{path}.{name}" if path else name, f"{field}.{name}" if field else name)
            around = {k: v for k, v in item.items() if k != name} if isinstance(item, dict) else item
            yield from self.value(left.get(name), right.get(name), *inner, around)

    def _list(self, candidate: JsonValue, reference: JsonValue, path: str, field: str) -> Iterator[LeafGrade]:
        left = candidate if isinstance(candidate, list) else [] if is_empty(candidate) else [candidate]
        right = reference if isinstance(reference, list) else []
        # Places are those in the lists as they stand, empty items and all.
        rows = [i for i, item in enumerate(left) if not is_empty(item)]
        columns = [j for j, item in enumerate(right) if not is_empty(item)]
        if not columns:
            for i in rows:
                yield from self.value(left[i], None, f"{path}[{i}]", f"{field}[]", _scalars(left[i]))
            return
        found = pair(
            [left[i] for i in rows],
            [right[j] for j in columns],
            field,
            self.fields,
            vectors=self.vectors,
            threshold=self.threshold,
        )
        for i, j in ((rows[i], columns[j]) for i, j in found.matched):
            yield from self.value(left[i], right[j], f"{path}[{j}]", f"{field}[]", _scalars(right[j]))
        for j in (columns[j] for j in found.missing):
            yield from self.value(None, right[j], f"{path}[{j}]", f"{field}[]")
        for i in (rows[i] for i in found.hallucinated):
            yield from self._whole(left[i], f"{path}[+{i}]", f"{field}[]")

    def _whole(self, item: JsonValue, path: str, field: str) -> Iterator[LeafGrade]:
        """Every leaf of an item that the reference's list does not hold."""
        if isinstance(item, dict):
            for name, value in item.items():
                yield from self._whole(value, f"{path}.{name}", f"{field}.{name}")
        elif isinstance(item, list):
            for i, value in enumerate(item):
                yield from self._whole(value, f"{path}[{i}]", f"{field}[]")
        elif not is_empty(item):
            yield self._surplus(item, path, field)

    def _surplus(self, value: JsonValue, path: str, field: str) -> LeafGrade:
        known = self.fields.at(field)
        status: Status = "hallucinated" if known.in_schema else "extra"
        return LeafGrade(path, field, status, known.weight, candidate=value)

    def _leaf(self, candidate: JsonValue, reference: JsonValue, path: str, field: Field, item: JsonValue) -> LeafGrade:
        if is_empty(candidate):
            return LeafGrade(path, field.path, "missing", field.weight, reference=reference)
        if not field.in_schema:
            return LeafGrade(path, field.path, "extra", field.weight, candidate=candidate)
        if is_empty(reference):
            return self._without_reference(candidate, path, field, item)
        compared = compare(
            candidate,
            reference,
            field,
            vectors=self.vectors,
            threshold=self.threshold,
            judge=self.judge,
            backed=self.backed,
            item=item,
        )
        status: Status = "matched" if compared.credit >= 1 else "partial" if compared.credit > 0 else "mismatch"
        return LeafGrade(path, field.path, status, field.weight, candidate, reference, compared)

    def _without_reference(self, candidate: JsonValue, path: str, field: Field, item: JsonValue) -> LeafGrade:
        """A value the reference left blank: confirmed it counts as one it should have had."""
        answer = self.judge(field, candidate, None, item) if self.judge else None
        if answer is None:
            return LeafGrade(path, field.path, "unverified", field.weight, candidate=candidate)
        status: Status = "matched" if answer.credit >= 1 else "hallucinated"
        return LeafGrade(path, field.path, status, field.weight, candidate=candidate, comparison=answer)


def _scalars(item: JsonValue) -> JsonValue:
    """What of a list item tells a judge which one it is."""
    if not isinstance(item, dict):
        return None
    return {k: v for k, v in item.items() if not isinstance(v, (dict, list)) and not is_empty(v)}


def plain_grade(graded: Grade) -> JsonObject:
    """A grade as JSON: its scores, counts, and every leaf with the rung that decided it."""
    return {
        "quality": graded.quality,
        "completeness": graded.completeness,
        "correctness": graded.correctness,
        "hallucinationRate": graded.hallucination_rate,
        "problem": graded.problem,
        "schemaProblem": graded.schema_problem,
        "subscores": dict(graded.subscores),
        "rungs": dict(graded.rungs),
        "undecided": graded.undecided,
        "unverified": graded.unverified,
        "notes": list(graded.notes),
        "leaves": [_plain_leaf(leaf) for leaf in graded.leaves],
    }


def _plain_leaf(leaf: LeafGrade) -> JsonObject:
    plain: dict[str, Any] = {"path": leaf.path, "field": leaf.field, "status": leaf.status, "weight": leaf.weight}
    plain |= {"candidate": leaf.candidate, "reference": leaf.reference, "credit": leaf.credit}
    if leaf.comparison:
        plain |= {"rung": leaf.comparison.rung, "similarity": leaf.comparison.similarity}
        if leaf.comparison.note:
            plain["note"] = leaf.comparison.note
        if leaf.comparison.undecided:
            plain["undecided"] = True
    return plain
