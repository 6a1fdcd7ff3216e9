"""Whether an endpoint had more to do than it could: what it rejected, and how long requests queued at it. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_tsuka.scoring.verdict import RunVerdict

MUCH_QUEUED = 0.5
"""The share of requests' seconds from which on they were mostly spent in a queue."""


@dataclass(frozen=True, slots=True)
class Saturation:
    """`allowed` is the fewest conversations allowed at once, None where rejections never changed it.

    `queued` is the share (0..1) of the requests' seconds that the endpoint did not spend on them, by
    its own figures; 0 where it reports none. The least that any of them waited is the way there and
    back, and no queue.
    """

    rejections: int
    requests: int
    allowed: int | None
    queued: float

    def lines(self) -> list[str]:
        """What to tell the user; nothing where the endpoint kept up."""
        lines = []
        if self.allowed is not None:
            share = self.rejections / (self.rejections + self.requests)
            lines.append(
                f"the endpoint was saturated: {share:.0%} of the requests were rejected (429, 503) and sent again,"
                f" as few as {self.allowed} at once; --tsuka-concurrency={self.allowed} would not overload it"
            )
        if self.queued >= MUCH_QUEUED:
            lines.append(
                f"the endpoint was saturated: requests spent {self.queued:.0%} of their time in its queue;"
                " tok/s and latency are without that time; a lower --tsuka-concurrency takes no longer"
            )
        return lines


def saturation(runs: Sequence[RunVerdict]) -> Saturation:
    """Over all conversations of these runs. Verdicts of older versions say nothing about it."""
    seconds = math.fsum(run["timing"].get("seconds") or 0.0 for run in runs)
    waits = [
        ((run["timing"].get("seconds") or 0.0) - math.fsum(run["latencies"]), run["requests"])
        for run in runs
        if run["requests"]
    ]
    way = min((wait / requests for wait, requests in waits), default=0.0)
    queued = math.fsum(wait - way * requests for wait, requests in waits)
    return Saturation(
        rejections=sum(run.get("rejections", 0) for run in runs),
        requests=sum(run["requests"] for run in runs),
        allowed=min((a for run in runs if (a := run.get("allowed")) is not None), default=None),
        queued=max(0.0, queued / seconds) if seconds else 0.0,
    )
