"""What a judge replied, read: the last JSON object, typed and closed-world; anything else is no verdict.

No verdict is no score. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

from pytest_tsuka.text.json_find import FoundJson, find_json
from pytest_tsuka.text.json_types import JsonObject

Better = Literal["A", "B", "same"]
RUBRIC = ("relevance", "realism", "structure", "coverage")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a judge said, in terms of A and B."""

    a_correct: bool
    b_correct: bool
    better: Better
    tolerance: float | None = None
    reason: str = ""


def _last_object(reply: str) -> JsonObject | None:
    found = find_json(reply)
    if not isinstance(found, FoundJson) or not isinstance(found.value, dict) or found.how == "repaired":
        return None
    return found.value


def read_verdict(reply: str, *, alone: bool = False) -> Verdict | None:
    """The verdict of the reply's last JSON object, or None. No word in prose is ever a verdict.

    `alone` reads the answer to a question about one value, which is then A.
    """
    data = _last_object(reply)
    if data is None:
        return None
    reason = data.get("reason", "")
    if alone:
        correct = data.get("correct")
        said = reason if isinstance(reason, str) else ""
        return Verdict(correct, False, "A", reason=said) if isinstance(correct, bool) else None
    a, b, better = data.get("a_correct"), data.get("b_correct"), data.get("better")
    tolerance = data.get("tolerance")
    if not isinstance(a, bool) or not isinstance(b, bool) or better not in ("A", "B", "same"):
        return None
    if tolerance is not None and (isinstance(tolerance, bool) or not isinstance(tolerance, (int, float))):
        return None
    if (a, b) in ((True, False), (False, True)) and better != "same" and better != ("A" if a else "B"):
        return None  # contradicts itself
    within = None if tolerance is None else min(max(float(tolerance), 0.0), 1.0)
    return Verdict(a, b, cast("Better", better), within, reason if isinstance(reason, str) else "")


def read_rubric(reply: str) -> dict[str, float] | None:
    """The ratings of the reply's last JSON object as shares 0..1, or None."""
    data = _last_object(reply)
    if data is None:
        return None
    found = {}
    for name in RUBRIC:
        rating = data.get(name)
        if isinstance(rating, bool) or not isinstance(rating, (int, float)) or not 0 <= rating <= 10:
            return None
        found[name] = rating / 10
    return found
