"""Which cosine means "the same": worked out per embedding model from a small labelled list.

Cosines of different models are not comparable: unrelated names are 0.83 alike for one and 0.2 for
another. The list holds pairs of short texts that mean the same (spelling variants, initials,
abbreviations, translations) and near misses that do not (two actors of one first name, B6 and B12).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from math import nextafter

from pytest_tsuka.gold.comparison import Vectors
from pytest_tsuka.gold.values import certainly_different

ACCEPTED_NEAR_MISSES: Mapping[str, float] = {"lenient": 0.20, "balanced": 0.05, "strict": 0.0}
"""The share of near misses that each strictness may take for the same."""

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Calibration:
    """The threshold of each strictness, and for each what share of equals and of near misses is at or above it."""

    thresholds: Mapping[str, float]
    found: Mapping[str, float]
    mistaken: Mapping[str, float]


@cache
def labelled() -> tuple[tuple[Pair, ...], tuple[Pair, ...]]:
    """Pairs that mean the same, and pairs that do not."""
    data = json.loads(resources.files("pytest_tsuka.gold").joinpath("calibration.json").read_text(encoding="utf-8"))
    return tuple((a, b) for a, b in data["same"]), tuple((a, b) for a, b in data["different"])


def texts() -> list[str]:
    """Every text of the list, to be embedded."""
    return list(dict.fromkeys(text for pairs in labelled() for pair in pairs for text in pair))


def calibrate(vectors: Vectors) -> Calibration:
    """The lowest threshold of each strictness that accepts no more near misses than it may.

    Pairs that other rules tell apart anyway (numbers, initials) are left out.
    """
    same, different = ([_cosine(vectors, p) for p in pairs if not certainly_different(*p)] for pairs in labelled())
    misses = sorted(different, reverse=True)
    thresholds = {}
    for name, share in ACCEPTED_NEAR_MISSES.items():
        highest_refused = misses[int(share * len(misses))]
        thresholds[name] = min(1.0, nextafter(highest_refused, 2.0))
    return Calibration(
        thresholds,
        {name: _share(same, threshold) for name, threshold in thresholds.items()},
        {name: _share(different, threshold) for name, threshold in thresholds.items()},
    )


def _cosine(vectors: Vectors, pair: Pair) -> float:
    similarity = vectors.similarity(*pair)
    if similarity is None:
        raise ValueError(f"no vector for {pair}")
    return similarity


def _share(cosines: Sequence[float], threshold: float) -> float:
    return sum(c >= threshold for c in cosines) / len(cosines)
