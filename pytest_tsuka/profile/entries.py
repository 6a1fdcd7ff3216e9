"""What a complete measurement writes into models_profile.json."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from pytest_tsuka.conversation import Usage
from pytest_tsuka.profile.model_profiles import BENCHMARK_VERSION, ModelProfiles, best_effort, profile_key
from pytest_tsuka.scoring.effort_effect import ACCEPTED, NO_EFFECT
from pytest_tsuka.scoring.effort_result import EffortResult
from pytest_tsuka.scoring.results import ModelResult
from pytest_tsuka.text.json_types import JsonObject

CostOf = Callable[[str, Usage], float | None]
"""What tokens of a model cost in dollars, None when that is not known."""


class MeasuredOn(NamedTuple):
    """The suite of a run: its hash, and where it is as `profile.file.suite_place` writes it."""

    tests_hash: str
    suite: str | None = None


def profile_entry(
    result: EffortResult,
    measured_on: MeasuredOn,
    now: datetime | None = None,
    cost_of: CostOf = lambda _model, _usage: None,
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
        "tokensPerSecondBasis": {"how": speed.how, "concurrency": speed.at_once} if (speed := result.speed) else None,
        "throughput": (
            {"tokensPerSecond": whole.tokens_per_second, "concurrency": whole.at_once}
            if (whole := result.throughput)
            else None
        ),
        "testedAt": when,
        "benchmarkVersion": BENCHMARK_VERSION,
        "testsHash": measured_on.tests_hash,
        "suite": measured_on.suite,
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
        "wallSeconds": result.seconds,
        "effortHonoured": {ACCEPTED: True, NO_EFFECT: False}.get(result.honoured or ""),
        "outcomes": result.outcomes,
        "jsonClean": result.json_clean,
    }
    return entry


def apply_to_profiles(
    data: JsonObject,
    results: Sequence[ModelResult],
    measured_on: MeasuredOn,
    cost_of: CostOf = lambda _model, _usage: None,
) -> list[str]:
    """Puts what was measured completely into the profile data; returns notes for the summary.

    An effort without a tier leaves its earlier profile as it is. The recommendation is worked out over all
    profiles of the model that hold for the same suite and terms, those of earlier runs too; a run that could
    not finish what it was asked for takes the old one out, for it no longer stands.
    """
    notes: list[str] = []
    profiles, recommendations = data["profiles"], data["recommendations"]
    assert isinstance(profiles, dict)
    assert isinstance(recommendations, dict)
    for model in results:
        if not model.measured:
            continue
        for effort in model.measured:
            key = profile_key(effort.model, effort.effort)
            entry = profile_entry(effort, measured_on, cost_of=cost_of)
            old = profiles.get(key)
            if isinstance(old, dict):
                if old.get("provider") not in (None, entry["provider"]):
                    notes.append(f"{key}: replaces a profile measured at {old.get('provider')}")
                entry = {**{k: v for k, v in old.items() if k not in entry}, **entry}
            profiles[key] = entry
        kept = _kept(profiles, model, measured_on)
        best = best_effort({e.effort: str(e.tier) for e in model.measured} | kept, model.policy)
        if model.complete and best:
            recommendations[model.model] = best
        else:
            recommendations.pop(model.model, None)
        if kept:
            listed = ", ".join(f"{effort} ({tier})" for effort, tier in kept.items())
            stands = f"; recommended of all: {best}" if model.complete else ""
            notes.append(f"{model.model}: earlier profiles of the same suite were kept: {listed}{stands}")
    return notes


def _kept(profiles: JsonObject, model: ModelResult, measured_on: MeasuredOn) -> dict[str, str]:
    """Effort and tier of the earlier profiles of a model that hold beside those of this run, in ascending cost."""
    now = {effort.effort for effort in model.measured}
    mine = profiles[profile_key(model.model, model.measured[0].effort)]
    trusted = ModelProfiles({"profiles": profiles}, tests_hash=measured_on.tests_hash, policy=model.policy)
    return {
        effort: trusted.tier(model.model, effort)
        for effort in trusted.efforts(model.model)
        if effort not in now and _same_terms(trusted.profiles[profile_key(model.model, effort)], mine)
    }


_OTHER_NAME = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}


def _same_terms(a: JsonObject, b: JsonObject) -> bool:
    """Whether two profiles can be compared: of one endpoint, asked in the same way, but for what it refused."""
    ways = [dict(p["parameters"]) if isinstance(p.get("parameters"), dict) else {} for p in (a, b)]
    refused = {str(name) for way in ways for name in way.pop("refused", ())}
    refused |= {_OTHER_NAME[name] for name in refused if name in _OTHER_NAME}
    asked = [{name: value for name, value in way.items() if name not in refused} for way in ways]
    return a.get("provider") == b.get("provider") and asked[0] == asked[1]
