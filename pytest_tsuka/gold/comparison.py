"""One value against another, the cheapest and most certain rung first; the rung that decided is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from pytest_tsuka.gold.fields import Field
from pytest_tsuka.gold.values import certainly_different, normal_text, read_date, read_number
from pytest_tsuka.text.json_paths import equal, same_number
from pytest_tsuka.text.json_types import JsonValue

if TYPE_CHECKING:
    import numpy as np

Rung = Literal["exact", "calendar", "embedding", "judge"]
LONGEST_SHORT_TEXT = 120
"""Characters up to which a text is compared by similarity; longer ones are free text."""
PARTIAL_DATE = 0.5
"""The credit of a date that agrees as far as the coarser of the two goes."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What came of a comparison: the deciding rung, credit 0..1, the cosine where one was computed.

    `undecided` marks a mismatch that only a judge could have settled. `evidence` is what a judge's
    verdict says against the reference: "better", "judged_wrong" or "filled_blank".
    """

    rung: Rung
    credit: float
    similarity: float | None = None
    undecided: bool = False
    note: str = ""
    evidence: str = ""


@dataclass(frozen=True)
class Vectors:
    """Unit vectors of texts, made before; `similarity` is None for a text that has none."""

    by_text: Mapping[str, np.ndarray]

    def similarity(self, a: str, b: str) -> float | None:
        """The cosine of two texts, each a vector of shape (dimensions,) and length 1."""
        left, right = self.by_text.get(a), self.by_text.get(b)
        return None if left is None or right is None else float(left @ right)


Judge = Callable[[Field, JsonValue, JsonValue, JsonValue], Comparison | None]
"""Field, candidate, reference (None for one left blank), and what else is known of the list item they are in."""
Backing = Callable[[Field, JsonValue], bool]
"""Whether a value that differs from the reference is backed: by the documents, or by another model."""


def is_empty(value: JsonValue) -> bool:
    """null, "", [], {} are absent; 0 and false are values."""
    return value is None or value == "" or value == [] or value == {}


def compare(
    candidate: JsonValue,
    reference: JsonValue,
    field: Field,
    *,
    vectors: Vectors | None = None,
    threshold: float = 1.0,
    judge: Judge | None = None,
    backed: Backing | None = None,
    item: JsonValue = None,
) -> Comparison:
    """Two filled values of one field. Symmetric in both but for who is to be judged.

    Rungs: exact in normal form, calendar for dates, embedding for short texts, judge for what is left.
    """
    decided = _certain(candidate, reference, field)
    if decided is not None:
        return decided
    similarity = None
    if isinstance(candidate, str) and isinstance(reference, str) and _similar_texts_count(candidate, reference, field):
        similarity = vectors.similarity(candidate, reference) if vectors else None
        if similarity is not None and similarity >= threshold and not certainly_different(candidate, reference):
            return Comparison("embedding", 1.0, similarity)
    judged = _judged(candidate, reference, field)
    if not judged and backed is not None and _is_short_text(candidate, reference, field):
        judged = backed(field, candidate)
    if judge and judged:
        answer = judge(field, candidate, reference, item)
        if answer is not None:
            return answer if similarity is None else replace(answer, similarity=similarity)
    rung: Rung = "embedding" if similarity is not None else "exact"
    return Comparison(rung, 0.0, similarity, undecided=judged)


def _certain(candidate: JsonValue, reference: JsonValue, field: Field) -> Comparison | None:
    """The verdict of the exact and the calendar rung, or None where neither is certain."""
    if isinstance(candidate, bool) or isinstance(reference, bool) or field.kind == "boolean":
        return Comparison("exact", float(equal(candidate, reference)))
    if field.kind == "code":
        return Comparison("exact", float(_text(candidate) is not None and _text(candidate) == _text(reference)))
    if isinstance(candidate, (list, dict)) or isinstance(reference, (list, dict)):
        return Comparison("exact", float(equal(candidate, reference)))
    numbers = _numbers(candidate, reference, field)
    if numbers is not None:
        return numbers
    if field.kind == "number":
        return None
    if _text(candidate) is not None and _text(candidate) == _text(reference):
        return Comparison("exact", 1.0)
    return _dates(candidate, reference, field)


def _text(value: JsonValue) -> str | None:
    """The normal text of a string or number."""
    if isinstance(value, str):
        return normal_text(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"{value:g}" if isinstance(value, float) and not value.is_integer() else str(int(value))
    return None


def _readings(value: JsonValue, field: Field) -> frozenset[float]:
    if isinstance(value, str):
        percent_of = 1.0 if field.unit == "%" else 100.0
        return read_number(value, decimal_comma=field.decimal_comma, percent_of=percent_of)
    return frozenset({float(value)}) if isinstance(value, (int, float)) else frozenset()


def _numbers(candidate: JsonValue, reference: JsonValue, field: Field) -> Comparison | None:
    """Numbers by value. In a text field digits are text: 00501 is not 501."""
    native = [isinstance(v, (int, float)) for v in (candidate, reference)]
    if field.kind != "number" and (field.kind == "text" or not any(native)):
        return None
    if all(native) and equal(candidate, reference):
        return Comparison("exact", 1.0)
    left, right = _readings(candidate, field), _readings(reference, field)
    if len(left) == len(right) == 1:
        a, b = next(iter(left)), next(iter(right))
        if same_number(a, b):
            return Comparison("exact", 1.0)
        if field.tolerance and abs(a - b) <= field.tolerance * abs(b):
            return Comparison("exact", 1.0, note=f"within {field.tolerance:g} of the reference")
        return None if field.kind == "number" else Comparison("exact", 0.0)
    if left and right and any(same_number(a, b) for a in left for b in right):
        return Comparison("exact", 0.0, undecided=True, note="a separator could be read in two ways")
    return None if field.kind != "number" or (left and right) else Comparison("exact", 0.0, note="not a number")


def _dates(candidate: JsonValue, reference: JsonValue, field: Field) -> Comparison | None:
    """Calendar values, never by similarity; None where the two are no dates."""
    if not isinstance(candidate, str) or not isinstance(reference, str) or field.kind not in ("date", "any", "text"):
        return None
    left = read_date(candidate, day_first=field.day_first)
    right = read_date(reference, day_first=field.day_first)
    if not left or not right:
        return Comparison("calendar", 0.0, note="not a date") if field.kind == "date" else None
    if len(left) > 1 or len(right) > 1:
        if left == right:
            return Comparison("calendar", 1.0)
        return Comparison("calendar", 0.0, note="day and month could be read in either order")
    a, b = next(iter(left)), next(iter(right))
    if a == b:
        return Comparison("calendar", 1.0)
    if a.precision != b.precision and a.agrees(b):
        return Comparison("calendar", PARTIAL_DATE, note="agrees at a coarser precision")
    return Comparison("calendar", 0.0)


def _similar_texts_count(candidate: str, reference: str, field: Field) -> bool:
    short = max(len(candidate), len(reference)) <= LONGEST_SHORT_TEXT
    return short and field.kind in ("text", "any")


def _is_short_text(candidate: JsonValue, reference: JsonValue, field: Field) -> bool:
    return isinstance(candidate, str) and isinstance(reference, str) and field.kind in ("text", "any")


def _judged(candidate: JsonValue, reference: JsonValue, field: Field) -> bool:
    """Whether the judge's rung is for such a pair: free text, and every number that is not identical."""
    if field.kind == "free_text":
        return True
    if field.kind == "number":
        return bool(_readings(candidate, field)) and bool(_readings(reference, field))
    texts = isinstance(candidate, str) and isinstance(reference, str)
    return texts and max(len(str(candidate)), len(str(reference))) > LONGEST_SHORT_TEXT
