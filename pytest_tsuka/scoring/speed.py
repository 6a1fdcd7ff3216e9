"""How fast a model answers: one stream as its user sees it, and all streams together. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pytest_tsuka.scoring.timing import ALONE, SHARED, STREAMED
from pytest_tsuka.scoring.verdict import RunVerdict


@dataclass(frozen=True, slots=True)
class Speed:
    """Completion tokens per second of one stream, and how that was measured.

    `alone`: of requests that had the endpoint to themselves. `streamed`: from the first token to the last,
    whatever else was in flight. `shared`: while `at_once` requests were in flight on average.
    """

    tokens_per_second: float
    how: str
    at_once: float

    def words(self) -> str:
        match self.how:
            case "alone":
                return "one stream, measured alone"
            case "streamed":
                return f"one stream, first to last token, {self.at_once:.1f} at once"
        return f"one stream, {self.at_once:.1f} at once"


@dataclass(frozen=True, slots=True)
class Throughput:
    """Completion tokens of all requests over the wall time, with how many were in flight on average."""

    tokens_per_second: float
    at_once: float


def wall_seconds(runs: Iterable[RunVerdict]) -> float | None:
    """The time during which some conversation of these was being held; None where it is not known of any."""
    known = sorted(
        (began, ended)
        for run in runs
        if (began := run["timing"].get("began")) is not None and (ended := run["timing"].get("ended")) is not None
    )
    if not known:
        return None
    total, until = 0.0, -math.inf
    for began, ended in known:
        total += max(0.0, ended - max(began, until))
        until = max(until, ended)
    return total


def throughput(runs: Sequence[RunVerdict]) -> Throughput | None:
    """None where tokens or times are not known."""
    wall = wall_seconds(runs)
    tokens = [t for run in runs if (t := run["usage"].get("completion_tokens")) is not None]
    if not wall or not tokens:
        return None
    return Throughput(sum(tokens) / wall, _at_once(runs, wall))


def speed(runs: Sequence[RunVerdict]) -> Speed | None:
    """By the best way there is: alone, streamed, else of all requests; None where no tokens were timed."""
    for how in (ALONE, STREAMED, SHARED):
        tokens = math.fsum(run["timing"].get(f"{how}_tokens") or 0 for run in runs)
        seconds = math.fsum(run["timing"].get(f"{how}_seconds") or 0 for run in runs)
        if tokens > 0 and seconds > 0:
            wall = wall_seconds(runs)
            return Speed(tokens / seconds, how, 1.0 if how == ALONE or not wall else _at_once(runs, wall))
    return None


def _at_once(runs: Iterable[RunVerdict], wall: float) -> float:
    return max(1.0, math.fsum(run["timing"].get("seconds") or 0.0 for run in runs) / wall)
