"""Lists as sets: which item of one answers to which of the other, by optimal one-to-one assignment."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_tsuka.gold.comparison import Vectors, compare, is_empty
from pytest_tsuka.gold.fields import Field, Fields
from pytest_tsuka.gold.values import initial_of, normal_text, numerals, read_date, read_number
from pytest_tsuka.text.json_types import JsonValue

if TYPE_CHECKING:
    import numpy as np

SAME_ITEM = 0.5
"""The pairwise credit under which two items are no pair, however few the alternatives."""


@dataclass(frozen=True, slots=True)
class Pairing:
    """Indices into the two lists: matched (candidate, reference), and what found no partner."""

    matched: tuple[tuple[int, int], ...]
    missing: tuple[int, ...]
    hallucinated: tuple[int, ...]


def pair(
    candidates: Sequence[JsonValue],
    references: Sequence[JsonValue],
    path: str,
    fields: Fields,
    *,
    vectors: Vectors | None = None,
    threshold: float = 1.0,
) -> Pairing:
    """The assignment with the highest total credit (Jonker and Volgenant's algorithm, through scipy).

    Pairs under `SAME_ITEM` are dropped afterwards: an assignment always pairs, also what has
    nothing in common. Equal totals are settled by the items' content, so order never matters.
    """
    from scipy.optimize import linear_sum_assignment

    if not candidates or not references:
        return Pairing((), tuple(range(len(references))), tuple(range(len(candidates))))
    rows = sorted(range(len(candidates)), key=lambda i: _content(candidates[i]))
    columns = sorted(range(len(references)), key=lambda i: _content(references[i]))
    left, right = [candidates[i] for i in rows], [references[i] for i in columns]
    credit = credits(left, right, path, fields, vectors=vectors, threshold=threshold)
    chosen = zip(*linear_sum_assignment(credit, maximize=True), strict=True)
    matched = [(rows[i], columns[j]) for i, j in chosen if credit[i, j] >= SAME_ITEM]
    matched.sort(key=lambda both: both[1])
    seen_left, seen_right = {i for i, _ in matched}, {j for _, j in matched}
    return Pairing(
        tuple(matched),
        tuple(j for j in range(len(references)) if j not in seen_right),
        tuple(i for i in range(len(candidates)) if i not in seen_left),
    )


def _content(item: JsonValue) -> str:
    return json.dumps(item, sort_keys=True, ensure_ascii=True)


def credits(
    candidates: Sequence[JsonValue],
    references: Sequence[JsonValue],
    path: str,
    fields: Fields,
    *,
    vectors: Vectors | None = None,
    threshold: float = 1.0,
) -> np.ndarray:
    """How well each candidate answers to each reference: shape (candidates, references), 0..1.

    Objects compare by their identity fields; all fields together only settle what identity leaves
    open. Without identity fields it is the weighted share of the reference's fields.
    """
    import numpy as np

    if not all(isinstance(item, dict) for item in (*candidates, *references)):
        return _column(candidates, references, fields.at(f"{path}[]"), vectors, threshold)
    names = sorted({name for item in (*candidates, *references) if isinstance(item, dict) for name in item})
    identity = [name for name in fields.identity(path) if name in names]
    overall = _mean(candidates, references, names, path, fields, vectors, threshold)
    if not identity:
        return overall
    same = _mean(candidates, references, identity, path, fields, vectors, threshold)
    return np.where(same >= SAME_ITEM, np.minimum(1.0, same * 0.9 + overall * 0.1), 0.0)


def _mean(
    candidates: Sequence[JsonValue],
    references: Sequence[JsonValue],
    names: Sequence[str],
    path: str,
    fields: Fields,
    vectors: Vectors | None,
    threshold: float,
) -> np.ndarray:
    """The weighted mean of the fields' credits, over the fields that at least one of a pair has."""
    import numpy as np

    total = np.zeros((len(candidates), len(references)))
    weights = np.zeros_like(total)
    for name in names:
        field = fields.at(f"{path}[].{name}")
        left = [item.get(name) if isinstance(item, dict) else None for item in candidates]
        right = [item.get(name) if isinstance(item, dict) else None for item in references]
        either = ~np.array([is_empty(v) for v in left])[:, None] | ~np.array([is_empty(v) for v in right])[None, :]
        total += field.weight * either * _column(left, right, field, vectors, threshold)
        weights += field.weight * either
    mean: np.ndarray = np.divide(total, weights, out=np.zeros_like(total), where=weights > 0)
    return mean


def _column(
    left: Sequence[JsonValue], right: Sequence[JsonValue], field: Field, vectors: Vectors | None, threshold: float
) -> np.ndarray:
    """Credits of one field for all pairs: by key where a value has one normal form, else one by one."""
    import numpy as np

    keys: dict[object, int] = {}

    def number(value: JsonValue) -> int:
        key = _key(value, field)
        return -1 if key is None else keys.setdefault(key, len(keys))

    rows, columns = np.array([number(v) for v in left]), np.array([number(v) for v in right])
    credit: np.ndarray = ((rows[:, None] == columns[None, :]) & (rows[:, None] >= 0)).astype(float)
    _one_by_one(credit, left, right, rows, columns, lambda a, b: compare(a, b, field).credit)
    if vectors is not None and field.kind in ("text", "any"):
        _by_cosine(credit, left, right, vectors, threshold)
    return credit


def _key(value: JsonValue, field: Field) -> object | None:
    """Something equal exactly for values that the certain rungs call equal, or None if there is no such thing."""
    if is_empty(value):
        return None
    if isinstance(value, bool):
        return ("boolean", value)
    if isinstance(value, (list, dict)):
        return ("json", _content(value))
    if isinstance(value, str):
        if field.kind != "text":
            readings = read_number(value, decimal_comma=field.decimal_comma)
            if readings:
                return None
        if read_date(value, day_first=field.day_first):
            return None
        return ("text", normal_text(value))
    return None


def _one_by_one(
    credit: np.ndarray,
    left: Sequence[JsonValue],
    right: Sequence[JsonValue],
    rows: np.ndarray,
    columns: np.ndarray,
    compared: Callable[[JsonValue, JsonValue], float],
) -> None:
    """Fills in the pairs of filled values without a key (numbers, dates): each distinct pair once."""
    known: dict[tuple[str, str], float] = {}
    open_rows = [i for i, v in enumerate(left) if rows[i] < 0 and not is_empty(v)]
    open_columns = [j for j, v in enumerate(right) if columns[j] < 0 and not is_empty(v)]
    texts = [json.dumps(v) for v in right]
    for i in open_rows:
        own = json.dumps(left[i])
        for j in open_columns:
            both = (own, texts[j])
            if both not in known:
                known[both] = compared(left[i], right[j])
            credit[i, j] = known[both]


def _by_cosine(
    credit: np.ndarray, left: Sequence[JsonValue], right: Sequence[JsonValue], vectors: Vectors, threshold: float
) -> None:
    """Raises the credit of short texts at or above the threshold; dates and numbers are never similar."""
    import numpy as np

    def usable(values: Sequence[JsonValue]) -> list[int]:
        return [
            i
            for i, v in enumerate(values)
            if isinstance(v, str) and v in vectors.by_text and not read_date(v) and not read_number(v)
        ]

    rows, columns = usable(left), usable(right)
    if rows and columns:
        a = np.stack([vectors.by_text[str(left[i])] for i in rows])
        b = np.stack([vectors.by_text[str(right[j])] for j in columns])
        similar = (a @ b.T) >= threshold
        similar &= ~_certainly_different([str(left[i]) for i in rows], [str(right[j]) for j in columns])
        block = np.ix_(rows, columns)
        credit[block] = np.maximum(credit[block], similar.astype(float))


def _certainly_different(left: Sequence[str], right: Sequence[str]) -> np.ndarray:
    """`values.certainly_different` for all pairs at once."""
    import numpy as np

    numbers: dict[object, int] = {}

    def ids(keys: Sequence[object]) -> np.ndarray:
        return np.array([numbers.setdefault(key, len(numbers)) for key in keys])

    def differ(a: Sequence[object], b: Sequence[object]) -> np.ndarray:
        unequal: np.ndarray = ids(a)[:, None] != ids(b)[None, :]
        return unequal

    counted = differ([numerals(t) for t in left], [numerals(t) for t in right])
    names, others = [initial_of(t) for t in left], [initial_of(t) for t in right]
    one_is_an_initial = np.array([n is not None and n[2] for n in names])[:, None] | np.array(
        [n is not None and n[2] for n in others]
    )
    # A text that is no name has a last word that no other has.
    same_last = ~differ(
        [n[1] if n else ("left", i) for i, n in enumerate(names)],
        [n[1] if n else ("right", j) for j, n in enumerate(others)],
    )
    other_first = differ([n[0] if n else None for n in names], [n[0] if n else None for n in others])
    found: np.ndarray = counted | (one_is_an_initial & same_last & other_first)
    return found
