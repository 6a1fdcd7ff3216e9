"""Did the reasoning effort make a difference: accepted, without effect, or not to be told."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise

from pytest_tsuka.scoring.verdict import Verdict
from pytest_tsuka.text.json_types import JsonObject, JsonValue

ACCEPTED, NO_EFFECT, UNKNOWN = "accepted", "no effect", "unknown"
SIGNIFICANCE = 0.05
"""Of all comparisons of a model together (Bonferroni): of two levels that do the same one in twenty models may be
said to differ."""


def effects(by_effort: Mapping[str, Sequence[Verdict]]) -> dict[str, str]:
    """What each level that was played came to; `by_effort` is in ascending cost.

    No effect: every reply, and its length in tokens, is that of a neighbouring level. Accepted: reasoning
    was seen at this level and none at another, or tokens, reasoning or scores differ from another level's
    by more than chance (paired t-test over the benchmarks). Whatever is neither cannot be told.
    """
    played = {effort: list(verdicts) for effort, verdicts in by_effort.items() if any(v["runs"] for v in verdicts)}
    found = dict.fromkeys(played, UNKNOWN)
    pairs = list(combinations(played, 2))
    for a, b in pairs:
        if _differ(played[a], played[b], SIGNIFICANCE / (len(pairs) * len(_MEASURES))):
            found[a] = found[b] = ACCEPTED
    for a, b in pairwise(played):
        if _same_replies(played[a], played[b]):
            found[a] = found[b] = NO_EFFECT
    return found


# --- replies -------------------------------------------------------------------------------


def _reply_of(turn: JsonObject) -> JsonObject:
    reply = turn.get("reply")
    return reply if isinstance(reply, dict) else {}


def _without_ids(calls: JsonValue) -> JsonValue:
    if not isinstance(calls, list):
        return []
    return [{k: v for k, v in call.items() if k != "id"} for call in calls if isinstance(call, dict)]


def _replies(verdicts: Sequence[Verdict]) -> dict[str, list[JsonValue]]:
    return {
        v["benchmark"]: [
            [_reply_of(turn).get("text"), _without_ids(_reply_of(turn).get("tool_calls")), _tokens(turn)]
            for run in v["runs"]
            for turn in run["conversation"]
        ]
        for v in verdicts
        if v["runs"]
    }


def _tokens(turn: JsonObject) -> JsonValue:
    usage = turn.get("usage")
    return usage.get("completion_tokens") if isinstance(usage, dict) else None


def _same_replies(a: Sequence[Verdict], b: Sequence[Verdict]) -> bool:
    first, second = _replies(a), _replies(b)
    common = first.keys() & second.keys()
    return bool(common) and all(first[name] == second[name] for name in common)


# --- figures -------------------------------------------------------------------------------


def _completion_tokens(verdict: Verdict) -> float | None:
    """On a log scale: twice as many are as much more of a short answer as of a long one."""
    known = [t for run in verdict["runs"] if (t := run["usage"].get("completion_tokens")) is not None]
    return math.log1p(statistics.fmean(known)) if known else None


def _reasoning(verdict: Verdict) -> float | None:
    amounts = []
    for run in verdict["runs"]:
        tokens = run["usage"].get("reasoning_tokens")
        seen = sum(len(str(_reply_of(turn).get("reasoning") or "")) for turn in run["conversation"])
        amounts.append(float(tokens) if tokens is not None else seen / 4)
    return math.log1p(statistics.fmean(amounts)) if amounts else None


def reasoned(verdicts: Sequence[Verdict]) -> bool:
    """Whether any reasoning was seen, in tokens or as text."""
    return any((_reasoning(v) or 0.0) > 0 for v in verdicts)


def _score(verdict: Verdict) -> float | None:
    return verdict["score"]


_MEASURES = (_completion_tokens, _reasoning, _score)


def _differ(a: Sequence[Verdict], b: Sequence[Verdict], level: float) -> bool:
    by_name = {v["benchmark"]: v for v in b}
    pairs = [(v, by_name[v["benchmark"]]) for v in a if v["benchmark"] in by_name]
    if reasoned(a) != reasoned(b):
        return True
    for measure in _MEASURES:
        known = [
            (x, y) for one, other in pairs if (x := measure(one)) is not None and (y := measure(other)) is not None
        ]
        if paired_p_value([y - x for x, y in known]) < level:
            return True
    return False


def paired_p_value(differences: Sequence[float]) -> float:
    """The two-sided p-value of Student's paired t-test; 1 of fewer than three differences."""
    count = len(differences)
    if count < 3:
        return 1.0
    mean, spread = statistics.fmean(differences), statistics.stdev(differences)
    if spread < 1e-12 * max(1.0, abs(mean)):
        return 1.0 if abs(mean) < 1e-12 else 0.0
    return _two_sided(abs(mean) / (spread / math.sqrt(count)), count - 1)


def _two_sided(t: float, freedom: int) -> float:
    """P(|T| > t) of Student's distribution with whole degrees of freedom (Abramowitz and Stegun 26.7.3, 26.7.4)."""
    angle = math.atan(t / math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    term = total = cosine if freedom % 2 else 1.0
    for k in range(3 if freedom % 2 else 2, freedom - 1, 2):
        term *= cosine**2 * (k - 1) / k
        total += term
    if freedom % 2 == 0:
        return 1.0 - sine * total
    return 1.0 - 2 / math.pi * (angle + (sine * total if freedom > 1 else 0.0))
