"""From checks to scores: tests, categories, tiers, what would flip a tier. Pure, full precision."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pytest_tsuka.errors import SettingsError, unknown_name

CATEGORY_NAMES = ("instruction", "json", "toolCalling")
EPSILON = 1e-9
"""A shortfall below this is a float artefact and not a miss."""

Scores = Mapping[str, float | None]


def weighted_share(passed_and_weight: Iterable[tuple[bool, float]]) -> float:
    """Weight of what passed over all weight, 0..1: the score of a test from its checks."""
    pairs = list(passed_and_weight)
    total = math.fsum(weight for _, weight in pairs)
    return math.fsum(weight for passed, weight in pairs if passed) / total if total else 0.0


def weighted_mean(score_and_weight: Iterable[tuple[float, float]]) -> float | None:
    """The weighted mean, 0..1: a category's score from its tests. None of nothing."""
    pairs = list(score_and_weight)
    if not pairs:
        return None
    return math.fsum(s * w for s, w in pairs) / math.fsum(w for _, w in pairs)


@dataclass(frozen=True, slots=True)
class TierPolicy:
    """Tier names from the lowest to the highest, and what each asks of the categories."""

    thresholds: Mapping[str, Mapping[str, float]]

    def __post_init__(self) -> None:
        for tier, needs in self.thresholds.items():
            for category in needs:
                if category not in CATEGORY_NAMES:
                    raise SettingsError(f"tier {tier!r}: {unknown_name('category', category, CATEGORY_NAMES)}")

    @property
    def tiers(self) -> tuple[str, ...]:
        return tuple(self.thresholds)

    @property
    def lowest(self) -> str:
        return self.tiers[0]

    def rank(self, tier: str) -> int:
        """0 for the lowest tier. Raises SettingsError for a name that is none."""
        if tier not in self.thresholds:
            raise SettingsError(unknown_name("tier", tier, self.tiers))
        return self.tiers.index(tier)

    def tier_of(self, scores: Scores) -> str | None:
        """The highest tier whose thresholds all hold, on unrounded scores; None without all scores."""
        if any(scores.get(category) is None for category in CATEGORY_NAMES):
            return None
        met = [tier for tier in self.tiers if not self.shortfalls(tier, scores)]
        return met[-1] if met else self.lowest

    def shortfalls(self, tier: str, scores: Scores) -> dict[str, float]:
        """By how much each category misses the tier; categories that reach it are left out."""
        self.rank(tier)
        missing: dict[str, float] = {}
        for category, threshold in self.thresholds[tier].items():
            gap = threshold - (scores.get(category) or 0.0)
            if gap > EPSILON:
                missing[category] = gap
        return missing


TIERS = TierPolicy(
    {
        "small": {},
        "medium": {"toolCalling": 0.6, "json": 0.5},
        "large": {"toolCalling": 0.9, "instruction": 0.85, "json": 0.85},
    }
)
"""TSUKA's ladder: what the tools of an agent are gated on."""


def compute_tier(scores: Scores) -> str | None:
    """`small`, `medium` or `large` from unrounded category scores; None if one is missing."""
    return TIERS.tier_of(scores)


@dataclass(frozen=True, slots=True)
class CheckLoss:
    """A check that failed, and how much its category's score would rise if it passed."""

    category: str
    benchmark: str
    check: str
    gain: float


def smallest_flip(needs: Mapping[str, float], losses: Iterable[CheckLoss]) -> list[CheckLoss] | None:
    """The smallest set of failed checks whose passing closes every gap, or None if none does.

    `needs` maps a category to the score still missing. Gains of one category add up and categories
    are independent, so taking each category's largest gains first is exact.
    """
    chosen: list[CheckLoss] = []
    available = list(losses)
    for category, need in needs.items():
        own = sorted((x for x in available if x.category == category), key=lambda x: -x.gain)
        taken: list[float] = []
        while own and math.fsum(taken) < need - EPSILON:
            loss = own.pop(0)
            chosen.append(loss)
            taken.append(loss.gain)
        if math.fsum(taken) < need - EPSILON:
            return None
    return chosen


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The effort to use, and the sentence that says why."""

    effort: str
    tier: str


def recommend(tiers: Sequence[tuple[str, str]], policy: TierPolicy = TIERS) -> Recommendation | None:
    """The first (cheapest) of (effort, tier) pairs in ascending cost that has the highest tier observed."""
    if not tiers:
        return None
    best = max(policy.rank(tier) for _, tier in tiers)
    effort, tier = next((e, t) for e, t in tiers if policy.rank(t) == best)
    return Recommendation(effort, tier)
