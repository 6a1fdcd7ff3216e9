"""The result file of a run: every verdict and the summary, for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pytest_tsuka.conversation import plain
from pytest_tsuka.profile.model_profiles import BENCHMARK_VERSION
from pytest_tsuka.scoring.effort_result import EffortResult
from pytest_tsuka.scoring.gate import flip_lines
from pytest_tsuka.scoring.results import ModelResult
from pytest_tsuka.scoring.speed import Speed, Throughput
from pytest_tsuka.scoring.verdict import Verdict
from pytest_tsuka.text.json_types import JsonObject

if TYPE_CHECKING:
    from pytest_tsuka.grading.standings import Standings
    from pytest_tsuka.scoring.gate import GateFailure

RESULT_FORMAT = 1


def result_document(
    verdicts: Sequence[Verdict],
    results: Sequence[ModelResult],
    *,
    tests_hash: str,
    started: float,
    interrupted: bool,
    gate: Sequence[GateFailure] | None,
    scenarios: Sequence[Standings] = (),
    categories: Mapping[str, str] | None = None,
) -> JsonObject:
    """The whole file. `format` is raised when a field changes meaning."""
    from pytest_tsuka import __version__

    document: dict[str, Any] = {
        "format": RESULT_FORMAT,
        "generator": f"pytest-tsuka {__version__}",
        "started": datetime.fromtimestamp(started, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "finished": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "interrupted": interrupted,
        "testsHash": tests_hash,
        "benchmarkVersion": BENCHMARK_VERSION,
        "tiers": {tier: dict(needs) for tier, needs in results[0].policy.thresholds.items()} if results else {},
        "models": [_model(result) for result in results],
        "gate": None if gate is None else {"met": not gate, "failures": [[g.headline, *g.details] for g in gate]},
        "benchmarks": dict(categories or {}),
        "verdicts": [_flat(verdict) for verdict in verdicts],
        "scenarios": [standings.to_json() for standings in scenarios],
    }
    return document


def _model(result: ModelResult) -> dict[str, Any]:
    best = result.recommended
    return {
        "model": result.model,
        "recommendedEffort": best.effort if best else None,
        "tier": best.tier if best else None,
        "holdsBack": _holds_back(best) if best else None,
        "saturation": result.saturation.lines(),
        "remarks": result.outcome_lines,
        "efforts": [_effort(effort) for effort in result.efforts],
    }


def _holds_back(result: EffortResult) -> dict[str, Any] | None:
    """What keeps the recommended effort from the next tier: by how much, and the fewest checks that would do."""
    tiers = result.policy.tiers
    above = tiers[result.policy.rank(result.tier) + 1 :] if result.tier else ()
    if not above:
        return None
    return {"tier": above[0], "why": flip_lines(result, result.policy.shortfalls(above[0], result.scores), above[0])}


def _effort(result: EffortResult) -> dict[str, Any]:
    spreads, bounds = result.spreads, result.bound_tiers
    return {
        "effort": result.effort,
        "tier": result.tier,
        "scores": result.scores,
        "incomplete": result.incomplete,
        "refused": result.refused,
        "honoured": result.honoured,
        "tokensPerSecond": result.tokens_per_second,
        "tokensPerSecondBasis": plain_or_none(result.speed, without="tokens_per_second"),
        "throughput": plain_or_none(result.throughput),
        "avgCompletionTokens": result.average_completion_tokens,
        "promptTokens": result.prompt_tokens,
        "completionTokens": result.completion_tokens,
        "reasoningTokens": result.reasoning_tokens,
        "requests": result.requests,
        "seconds": result.seconds,
        "requestSeconds": result.request_seconds,
        "outcomes": result.outcomes,
        "rejections": result.saturation.rejections,
        "allowedAtOnce": result.saturation.allowed,
        "queuedShare": result.saturation.queued,
        "jsonClean": result.json_clean,
        "repeats": result.repeats,
        "tierStability": result.tier_stability,
        "intervals": {c: [s.low95, s.high95] for c, s in spreads.items()} or None,
        "tierBounds": list(bounds) if bounds else None,
    }


def _flat(verdict: Verdict) -> dict[str, Any]:
    """A verdict with its single run's fields beside its own; several runs stay a list."""
    flat: dict[str, Any] = {key: value for key, value in verdict.items() if key != "runs"}
    runs = verdict["runs"]
    if runs:
        first: dict[str, Any] = dict(min(runs, key=lambda run: run["score"]))
        flat.update({key: value for key, value in first.items() if key not in ("score", "outcome")})
    if len(runs) > 1:
        flat["runs"] = runs
    return flat


def plain_or_none(figures: Speed | Throughput | None, *, without: str = "") -> JsonObject | None:
    """A record of figures as JSON with the names of the file."""
    if figures is None:
        return None
    names = {"tokens_per_second": "tokensPerSecond", "how": "how", "at_once": "concurrency"}
    return {names[name]: value for name, value in plain(figures).items() if name != without}
