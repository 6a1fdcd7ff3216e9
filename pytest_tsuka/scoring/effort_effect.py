"""Did the reasoning effort make a difference: accepted, or without effect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_tsuka.text.json_types import JsonObject, JsonValue

if TYPE_CHECKING:
    from pytest_tsuka.scoring.results import EffortResult

ACCEPTED, NO_EFFECT = "accepted", "no effect"


def judge_honoured(efforts: Sequence[EffortResult]) -> list[EffortResult]:
    """Says of each measured level whether it was accepted or had no effect.

    No effect: no reasoning was seen at any level, or every reply of a level equals that of a
    neighbouring level. With one level alone there is nothing to compare.
    """
    played = [e for e in efforts if e.runs]
    if len(played) < 2:
        return [_honoured(e, ACCEPTED) if e.runs and not e.refused else e for e in efforts]
    silent = not any(_reasoned(e) for e in played)
    replies = [_replies(e) for e in played]
    same = [silent] * len(played)
    for i in range(len(played) - 1):
        common = replies[i].keys() & replies[i + 1].keys()
        if common and all(replies[i][name] == replies[i + 1][name] for name in common):
            same[i] = same[i + 1] = True
    verdict = {id(e): NO_EFFECT if same[i] else ACCEPTED for i, e in enumerate(played)}
    return [_honoured(e, verdict[id(e)]) if id(e) in verdict else e for e in efforts]


def _honoured(result: EffortResult, honoured: str) -> EffortResult:
    return replace(result, honoured=honoured)


def _reasoned(result: EffortResult) -> bool:
    if result.reasoning_tokens:
        return True
    return any(_reply_of(turn).get("reasoning") for run in result.runs for turn in run["conversation"])


def _reply_of(turn: JsonObject) -> JsonObject:
    reply = turn.get("reply")
    return reply if isinstance(reply, dict) else {}


def _replies(result: EffortResult) -> dict[str, list[JsonValue]]:
    return {
        v["benchmark"]: [
            [_reply_of(turn).get("text"), _without_ids(_reply_of(turn).get("tool_calls"))]
            for run in v["runs"]
            for turn in run["conversation"]
        ]
        for v in result.verdicts
    }


def _without_ids(calls: JsonValue) -> JsonValue:
    if not isinstance(calls, list):
        return []
    return [{k: v for k, v in call.items() if k != "id"} for call in calls if isinstance(call, dict)]
