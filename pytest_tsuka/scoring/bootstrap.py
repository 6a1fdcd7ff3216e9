"""How sure a score is: a seeded bootstrap over tests and their repeated runs."""

from __future__ import annotations

from dataclasses import dataclass

BOOTSTRAP_SAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Spread:
    """A category over repeated runs: mean, lowest and highest run, 95 % interval of the mean (all 0..1)."""

    mean: float
    lowest: float
    highest: float
    low95: float
    high95: float


def bootstrap(scores: list[list[float]], weights: list[float], *, seed: int) -> tuple[float, float]:
    """The 2.5th and 97.5th percentile of the weighted mean when tests and their runs are resampled.

    `scores` holds one list of run scores per test. Efron's percentile bootstrap, two levels: tests
    with replacement, then runs within each drawn test.
    """
    import numpy as np

    generator = np.random.default_rng(seed)
    tests = len(scores)
    runs = min(map(len, scores))
    table = np.array([s[:runs] for s in scores])
    weight = np.array(weights)
    drawn = generator.integers(0, tests, size=(BOOTSTRAP_SAMPLES, tests))
    picked = generator.integers(0, runs, size=(BOOTSTRAP_SAMPLES, tests, runs))
    means = np.take_along_axis(table[drawn], picked, axis=2).mean(axis=2)
    drawn_weights = weight[drawn]
    values = (means * drawn_weights).sum(axis=1) / drawn_weights.sum(axis=1)
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)
