"""Results of a scenario ranked by quality, speed and cost, in the proportion its owner chose."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_tsuka.errors import SettingsError


@dataclass(frozen=True, slots=True)
class Ranking:
    """Percentages that add up to 100; the default is equal thirds."""

    quality: float = 100 / 3
    speed: float = 100 / 3
    cost: float = 100 / 3

    def __post_init__(self) -> None:
        parts = (self.quality, self.speed, self.cost)
        if any(part < 0 for part in parts) or not math.isclose(math.fsum(parts), 100.0, abs_tol=1e-6):
            raise SettingsError(f"ranking: {', '.join(f'{p:g}' for p in parts)} do not add up to 100")


@dataclass(frozen=True, slots=True)
class RankedResult:
    """One model's place: its blended score 0..100 and what it was made of; None where a figure is unknown."""

    model: str
    score: float
    quality: float
    speed: float | None
    cost: float | None

    @property
    def complete(self) -> bool:
        """Whether it was ranked on all three; one without a time or cost is marked."""
        return self.speed is not None and self.cost is not None


def log_scale(value: float, best: float) -> float:
    """100 for the best, 0 for ten times worse and beyond, logarithmic between: 100 · (1 − log10(value / best)).

    A narrow field is not stretched: $12 against $10 is 92. Something free is beaten by nothing but free.
    """
    if value <= best:
        return 100.0
    if best <= 0:
        return 0.0
    return max(0.0, 100.0 * (1.0 - math.log10(value / best)))


def rank(
    results: Sequence[tuple[str, float, float | None, float | None]], ranking: Ranking | None = None
) -> list[RankedResult]:
    """Ranks (model, quality 0..100, seconds, cost), the best first; equals keep their order.

    A result without a time or a cost is ranked on what it has, the other weights scaled up.
    """
    ranking = ranking or Ranking()
    fastest = min((seconds for _, _, seconds, _ in results if seconds is not None), default=0.0)
    cheapest = min((cost for _, _, _, cost in results if cost is not None), default=0.0)
    ranked = []
    for model, quality, seconds, cost in results:
        speed_score = None if seconds is None else log_scale(seconds, fastest)
        cost_score = None if cost is None else log_scale(cost, cheapest)
        parts = [(ranking.quality, quality), (ranking.speed, speed_score), (ranking.cost, cost_score)]
        known = [(weight, score) for weight, score in parts if score is not None]
        total = math.fsum(weight for weight, _ in known)
        blended = math.fsum(w * s for w, s in known) / total if total else quality
        ranked.append(RankedResult(model, blended, quality, speed_score, cost_score))
    return sorted(ranked, key=lambda result: -result.score)
