"""The gate: does a measured model reach what was asked, and if not, what would make it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_tsuka.errors import SettingsError, unknown_name
from pytest_tsuka.scoring.effort_result import EffortResult
from pytest_tsuka.scoring.results import ModelResult
from pytest_tsuka.scoring.tiers import CATEGORY_NAMES, TIERS, TierPolicy, smallest_flip
from pytest_tsuka.text.numbers import score_text

MOST_FLIPS = 10


@dataclass(frozen=True, slots=True)
class Requirement:
    """A tier to reach, or a score of one category."""

    text: str
    tier: str | None = None
    category: str | None = None
    score: float = 0.0


def read_requirement(text: str, policy: TierPolicy = TIERS) -> Requirement:
    """`medium`, or `toolCalling=0.8`. Raises SettingsError with the names that exist."""
    category, equals, number = text.partition("=")
    if not equals:
        policy.rank(text)
        return Requirement(text, tier=text)
    if category not in CATEGORY_NAMES:
        raise SettingsError(unknown_name("category", category, CATEGORY_NAMES))
    try:
        score = float(number)
    except ValueError:
        score = -1.0
    if not 0.0 <= score <= 1.0:
        raise SettingsError(f"{text!r}: the score must be a number from 0 to 1")
    return Requirement(text, category=category, score=score)


@dataclass(frozen=True, slots=True)
class GateFailure:
    """A requirement a model did not meet: one line on why, and lines on what would flip it."""

    headline: str
    details: tuple[str, ...] = ()


def judge_gate(
    requirements: Sequence[Requirement],
    results: Sequence[ModelResult],
    *,
    effort: str | None = None,
    on_lower_bound: bool = False,
) -> list[GateFailure]:
    """Everything that keeps the gate shut; empty when it is met. No tier fails it."""
    failures: list[GateFailure] = []
    for model in results:
        chosen = model.at(effort) if effort else model.recommended
        if chosen is None or not chosen.measured:
            failures.append(_unmeasured(model, chosen, effort))
            continue
        for requirement in requirements:
            if failure := _judge_one(requirement, chosen, on_lower_bound=on_lower_bound):
                failures.append(failure)
    return failures


def _unmeasured(model: ModelResult, chosen: EffortResult | None, effort: str | None) -> GateFailure:
    asked = [chosen] if chosen else list(model.efforts)
    whys = [f"{e.effort}: {e.incomplete or e.refused}" for e in asked if e.incomplete or e.refused]
    where = f" at effort {effort}" if effort else ""
    return GateFailure(f"{model.model}: no tier{where}", tuple(whys) or (f"effort {effort!r} was not run",))


def _judge_one(requirement: Requirement, result: EffortResult, *, on_lower_bound: bool) -> GateFailure | None:
    scores = dict(result.scores)
    basis = ""
    if on_lower_bound:
        scores |= {category: spread.low95 for category, spread in result.spreads.items()}
        basis = " at the lower bound"
    who = f"{result.model} at {result.effort}"
    if requirement.category:
        short = requirement.score - (scores[requirement.category] or 0.0)
        needs = {requirement.category: short} if short > 1e-9 else {}
        headline = (
            f"{who}: {requirement.category} {score_text(scores[requirement.category])}{basis} < {requirement.score:g}"
        )
    else:
        assert requirement.tier
        tier = result.policy.tier_of(scores)
        met = tier is not None and result.policy.rank(tier) >= result.policy.rank(requirement.tier)
        needs = {} if met else result.policy.shortfalls(requirement.tier, scores)
        headline = f"{who}: tier {tier}{basis} < {requirement.tier}"
    if not needs:
        return None
    if on_lower_bound:
        misses = [f"{category} misses by {_shortfall(gap)}" for category, gap in needs.items()]
        return GateFailure(headline, (*misses, "more repeats narrow the interval; better answers move it"))
    return GateFailure(headline, tuple(flip_lines(result, needs, requirement.text)))


def flip_lines(result: EffortResult, needs: dict[str, float], target: str) -> list[str]:
    """By how much each category misses, and the smallest set of checks whose passing would reach it."""
    lines = [f"{category} misses by {_shortfall(gap)}" for category, gap in needs.items()]
    flips = smallest_flip(needs, result.losses())
    if flips is None:
        return [*lines, f"no set of failed checks alone would reach {target}"]
    lines.append(f"{len(flips)} check{'s' if len(flips) != 1 else ''} would reach {target}:")
    lines.extend(f"  {f.benchmark}: {f.check} (+{f.gain:.3f} {f.category})" for f in flips[:MOST_FLIPS])
    if len(flips) > MOST_FLIPS:
        lines.append(f"  and {len(flips) - MOST_FLIPS} more")
    return lines


def _shortfall(gap: float) -> str:
    """Three digits, more where the miss is smaller than that."""
    return f"{gap:.3f}" if gap >= 0.0005 else f"{gap:.1e}"
