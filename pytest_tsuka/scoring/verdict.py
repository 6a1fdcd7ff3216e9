"""A conversation judged by the checks of its benchmark. A verdict is plain JSON and self-sufficient."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import TypedDict, cast

from pytest_tsuka.checks.base import Check, Result, Subject
from pytest_tsuka.conversation import Conversation, Reply, Turn, add_known, plain
from pytest_tsuka.scoring.outcomes import FAILED, OUTCOMES, PASSED
from pytest_tsuka.scoring.tiers import weighted_share
from pytest_tsuka.scoring.timing import timed
from pytest_tsuka.suite.benchmark import Benchmark
from pytest_tsuka.text.json_find import FoundJson
from pytest_tsuka.text.json_types import JsonObject, JsonValue, finite, shorten
from pytest_tsuka.text.normalise import without_surrogates
from pytest_tsuka.text.numbers import score_text


class CheckVerdict(TypedDict):
    """One check: where it stands, what it asked, whether it passed and why."""

    step: int
    type: str
    operands: JsonObject
    weight: float
    passed: bool
    reason: str


class RunVerdict(TypedDict):
    """One conversation judged."""

    score: float
    outcome: str
    checks: list[CheckVerdict]
    notes: list[str]
    json_replies: int
    json_clean: int
    conversation: list[JsonObject]
    requests: int
    attempts: int
    usage: dict[str, int | None]
    timing: dict[str, float | None]
    latencies: list[float]
    rejections: int
    allowed: int | None


class Verdict(TypedDict):
    """One item: the mean over its runs, and each run."""

    benchmark: str
    file: str
    description: str
    category: str
    weight: float
    model: str
    effort: str
    provider: str
    parameters: JsonObject
    tests_hash: str
    outcome: str
    score: float | None
    error: str | None
    runs: list[RunVerdict]


def judge(benchmark: Benchmark, conversation: Conversation) -> RunVerdict:
    """Applies the checks of every step, weighted, to the turns that were played."""
    checks: list[CheckVerdict] = []
    json_clean: list[bool] = []
    for number, (step, turn) in enumerate(zip(benchmark.all_steps, conversation.turns, strict=True)):
        subject = Subject(turn.reply, benchmark.tools) if turn.reply else None
        for check in step.checks:
            result = check.apply(subject) if subject else Result(False, turn.not_reached or "not reached")
            checks.append(_check_verdict(number, check, result))
        if subject and any(check.type.startswith("json") for check in step.checks):
            found = subject.json
            json_clean.append(isinstance(found, FoundJson) and found.clean)
    score = weighted_share((c["passed"], c["weight"]) for c in checks)
    replies = [turn.reply for turn in conversation.turns if turn.reply]
    judged: JsonObject = {
        "score": score,
        "outcome": _outcome(checks, replies),
        "checks": checks,
        "notes": _notes(conversation),
        "json_replies": len(json_clean),
        "json_clean": sum(json_clean),
        "conversation": [_turn_json(turn) for turn in conversation.turns],
        **_figures(conversation),
    }
    return cast("RunVerdict", judged)


def _check_verdict(step: int, check: Check, result: Result) -> CheckVerdict:
    return {
        "step": step,
        "type": check.type,
        "operands": check.reported_operands,
        "weight": check.weight,
        "passed": result.passed,
        "reason": result.reason,
    }


def _outcome(checks: Sequence[CheckVerdict], replies: Sequence[Reply]) -> str:
    """The first class of the table that some reply belongs to; passed where every check did."""
    if all(c["passed"] for c in checks):
        return PASSED
    return next((o.name for o in OUTCOMES if o.applies and any(o.applies(r) for r in replies)), FAILED)


def _notes(conversation: Conversation) -> list[str]:
    notes: list[str] = []
    for number, turn in enumerate(conversation.turns):
        if turn.reply is None:
            continue
        own = list(turn.reply.notes)
        if turn.reply.truncated:
            own.insert(0, _truncation(turn))
        prefix = f"turn {number + 1}: " if len(conversation.turns) > 1 else ""
        notes.extend(f"{prefix}{note}" for note in own)
    return notes


def _truncation(turn: Turn) -> str:
    usage = turn.exchange.usage if turn.exchange else None
    if usage is None or usage.completion_tokens is None:
        return "truncated: the reply was cut by the token limit"
    if usage.reasoning_tokens:
        return f"truncated: {usage.reasoning_tokens} of {usage.completion_tokens} completion tokens were reasoning"
    return f"truncated after {usage.completion_tokens} completion tokens: raise the token limit"


def _figures(conversation: Conversation) -> JsonObject:
    exchanges = conversation.exchanges
    seconds = [e.timing.seconds for e in exchanges]
    # The server's own figure where it gives one: a queue in front of it is not the model's slowness.
    latencies: list[JsonValue] = [e.timing.service_seconds or e.timing.seconds for e in exchanges]
    firsts = [e.timing.first_token_seconds for e in exchanges]
    return {
        "requests": len(exchanges),
        "attempts": sum(e.attempts for e in exchanges),
        "usage": {
            name: add_known(getattr(e.usage, name) for e in exchanges)
            for name in ("prompt_tokens", "completion_tokens", "reasoning_tokens")
        },
        "timing": {
            "seconds": math.fsum(seconds),
            "first_token_seconds": firsts[0] if firsts else None,
            "began": min((b for e in exchanges if (b := e.timing.began) is not None), default=None),
            "ended": max((b for e in exchanges if (b := e.timing.ended) is not None), default=None),
            **timed(exchanges),
        },
        "latencies": latencies,
        "rejections": sum(e.load.rejections for e in exchanges),
        "allowed": min((e.load.allowed for e in exchanges if e.load.allowed), default=None),
    }


def _turn_json(turn: Turn) -> JsonObject:
    if turn.reply is None:
        return {"sent": list(turn.sent), "reply": None, "not_reached": turn.not_reached}
    reply = turn.reply
    data: JsonObject = {
        "sent": list(turn.sent),
        "reply": {
            "text": reply.text,
            "raw_text": reply.raw_text if reply.raw_text != reply.text else None,
            "reasoning": reply.reasoning,
            **({"refusal": reply.refusal} if reply.refusal else {}),
            "tool_calls": [_call_json(call) for call in reply.tool_calls],
            "text_calls": [_call_json(call) for call in reply.text_calls],
            "finish_reason": reply.finish_reason,
        },
    }
    if turn.exchange:
        data["usage"] = plain(turn.exchange.usage)
        data["timing"] = plain(turn.exchange.timing)
        data["attempts"] = turn.exchange.attempts
    return data


def _call_json(call: object) -> JsonObject:
    return {key: value for key, value in plain(call).items() if value not in (None, False, "")}


def mean_verdict_score(runs: Sequence[RunVerdict]) -> float | None:
    """A test's score with repeats: the mean over its runs."""
    return math.fsum(run["score"] for run in runs) / len(runs) if runs else None


def combined_outcome(runs: Sequence[RunVerdict]) -> str:
    """Passed when every run passed; else the first class of the table that some run belongs to."""
    outcomes = {run["outcome"] for run in runs} - {PASSED}
    return next((o.name for o in OUTCOMES if o.name in outcomes), FAILED) if outcomes else PASSED


# --- words -----------------------------------------------------------------------------------


def failed_checks(run: RunVerdict) -> list[CheckVerdict]:
    return [check for check in run["checks"] if not check["passed"]]


def headline(score: float, run: RunVerdict) -> str:
    """The first line of a failure, which becomes the short summary and the JUnit message."""
    names = list(dict.fromkeys(check["type"] for check in failed_checks(run)))
    kind = "" if run["outcome"] == FAILED else f"{run['outcome']}, "
    return f"{kind}score {score_text(score)} < 1.00 ({', '.join(names)})"


def operands_text(check: CheckVerdict) -> str:
    """The operands of a check on one short line."""
    parts = [
        f"{key}={value!r}" if isinstance(value, str) else f"{key}={value}" for key, value in check["operands"].items()
    ]
    return shorten(" ".join(parts), 70)


# --- made and sent ---------------------------------------------------------------------------


def make_verdict(
    benchmark: Benchmark,
    file: str,
    model: str,
    effort: str,
    *,
    provider: str,
    parameters: JsonObject,
    tests_hash: str,
    outcome: str,
    score: float | None,
    error: str | None,
    runs: list[RunVerdict],
) -> Verdict:
    """The verdict of an item, self-sufficient: everything that is known of it."""
    return {
        "benchmark": benchmark.name,
        "file": file,
        "description": benchmark.description,
        "category": benchmark.category,
        "weight": benchmark.weight,
        "model": model,
        "effort": effort,
        "provider": provider,
        "parameters": parameters,
        "tests_hash": tests_hash,
        "outcome": outcome,
        "score": score,
        "error": error,
        "runs": runs,
    }


def as_transport(verdict: Verdict) -> tuple[str, Verdict]:
    """A verdict as one string of strict JSON, nothing a worker's channel or a writer could choke on.

    And the verdict as that says it: itself, where nothing had to be changed.
    """
    try:
        text = json.dumps(verdict, ensure_ascii=False, allow_nan=False)
    except ValueError:  # a server's own JSON may hold numbers beyond the range of a float
        verdict = cast("Verdict", finite(verdict))
        text = json.dumps(verdict, ensure_ascii=False, allow_nan=False)
    clean = without_surrogates(text)
    return clean, verdict if clean == text else json.loads(clean)
