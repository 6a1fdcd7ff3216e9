"""What matching two lists costs: strings with ready vectors, objects of six fields, next to scipy's assignment alone.

Run it with `python -m perf.lists [SIZE ...]` (default 50 200 1000). The floor is the assignment on a ready matrix.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from pytest_tsuka.gold.assignment import pair
from pytest_tsuka.gold.comparison import Vectors
from pytest_tsuka.gold.fields import Scoring, fields_of

FIELDS = ("name", "city", "year", "price", "kind", "note")


def timed(call: Callable[[], object]) -> float:
    """Milliseconds of the best of three calls."""
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best * 1000


def names(rng: random.Random, count: int) -> list[str]:
    return [
        "".join(rng.choices("abcdefghijklmnop", k=6)) + " " + "".join(rng.choices("qrstuvw", k=8)) for _ in range(count)
    ]


def strings(n: int, rng: random.Random, numbers: np.random.Generator) -> tuple[list[str], list[str], Vectors]:
    """Two lists of so many names, half of them spelt otherwise, and unit vectors of all."""
    texts = names(rng, n)
    variants = [t.title() if i % 2 else t.replace(" ", "  ") + "s" for i, t in enumerate(texts)]
    rng.shuffle(variants)
    every = list(dict.fromkeys(texts + variants))
    matrix = numbers.normal(size=(len(every), 384)).astype(np.float32)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    return variants, texts, Vectors(dict(zip(every, matrix, strict=True)))


def row(n: int, rng: random.Random, numbers: np.random.Generator) -> str:
    """One line of the table."""
    floor = timed(lambda: linear_sum_assignment(numbers.random((n, n)), maximize=True))
    variants, texts, vectors = strings(n, rng, numbers)
    fields = fields_of(None)
    spent = timed(lambda: pair(variants, texts, "l", fields, vectors=vectors, threshold=0.9))
    line = f"{n:5} {floor:9.1f} ms {spent:7.1f} ms {spent / floor:6.1f}"
    if n > 200:
        return line
    objects: list[Any] = [
        dict(zip(FIELDS, [t, t[:3], 1900 + i, i * 1.5, "k", t], strict=True)) for i, t in enumerate(texts)
    ]
    others = [{**o, "note": "x"} for o in objects]
    rng.shuffle(others)
    own = fields_of(None, Scoring(identity={"l": ("name",)}))
    spent = timed(lambda: pair(others, objects, "l", own, vectors=vectors, threshold=0.9))
    return f"{line} {spent:7.1f} ms {spent / floor:6.1f}"


def main() -> None:
    sizes = [int(x) for x in sys.argv[1:]] or [50, 200, 1000]
    rng, numbers = random.Random(1), np.random.default_rng(1)
    print(f"{'n':>5} {'assignment':>12} {'strings':>10} {'×':>6} {'objects':>10} {'×':>6}")
    for n in sizes:
        print(row(n, rng, numbers))


if __name__ == "__main__":
    main()
