"""What a complete measurement writes into models_profile.json."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from pytest_tsuka.conversation import Usage
from pytest_tsuka.profile.file import BENCHMARK_VERSION
from pytest_tsuka.scoring.effort_effect import ACCEPTED
from pytest_tsuka.scoring.results import EffortResult, ModelResult
from pytest_tsuka.text.json_types import JsonObject

CostOf = Callable[[str, Usage], float | None]
"""What tokens of a model cost in dollars, None when that is not known."""


def profile_entry(
    result: EffortResult, tests_hash: str, now: datetime | None = None, cost_of: CostOf = lambda _model, _usage: None
) -> JsonObject:
    """The profile of a measured effort, in the shape of TSUKA's file plus our own fields."""
    first = result.verdicts[0]
    when = (now or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")
    entry: JsonObject = {
        "model": result.model,
        "provider": first["provider"],
        "tier": result.tier,
        "scores": dict(result.scores.items()),
        "tokensPerSecond": result.tokens_per_second,
        "testedAt": when,
        "benchmarkVersion": BENCHMARK_VERSION,
        "testsHash": tests_hash,
        "testResults": [
            {"name": v["benchmark"], "category": v["category"], "score": v["score"]} for v in result.verdicts
        ],
        "reasoningEffort": result.effort,
        "avgCompletionTokens": result.average_completion_tokens,
        "repeats": result.repeats,
        "tierStability": result.tier_stability,
        "requests": result.requests,
        "promptTokens": result.prompt_tokens,
        "completionTokens": result.completion_tokens,
        "latency": {"p50": result.latency(0.5), "p95": result.latency(0.95)},
        "cost": cost_of(result.model, Usage(result.prompt_tokens, result.completion_tokens)),
        "parameters": first["parameters"],
        "effortHonoured": None if result.honoured is None else result.honoured == ACCEPTED,
        "jsonClean": result.json_clean,
    }
    return entry


def apply_to_profiles(
    data: JsonObject,
    results: Sequence[ModelResult],
    tests_hash: str,
    cost_of: CostOf = lambda _model, _usage: None,
) -> list[str]:
    """Puts what was measured completely into the profile data; returns notes for the summary.

    An effort without a tier leaves its earlier profile as it is. The recommendation is written only
    by a complete sweep; an incomplete one takes the old one out, for it no longer stands.
    """
    notes: list[str] = []
    profiles, recommendations = data["profiles"], data["recommendations"]
    assert isinstance(profiles, dict)
    assert isinstance(recommendations, dict)
    for model in results:
        for effort in model.measured:
            key = f"{effort.model}@{effort.effort}"
            entry = profile_entry(effort, tests_hash, cost_of=cost_of)
            old = profiles.get(key)
            if isinstance(old, dict):
                if old.get("provider") not in (None, entry["provider"]):
                    notes.append(f"{key}: replaces a profile measured at {old.get('provider')}")
                entry = {**{k: v for k, v in old.items() if k not in entry}, **entry}
            profiles[key] = entry
        if model.measured:
            best = model.recommended
            if model.complete and best:
                recommendations[model.model] = best.effort
            else:
                recommendations.pop(model.model, None)
    return notes
