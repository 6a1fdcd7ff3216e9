"""One model at one effort: scores, tier, figures and how certain they are, from its verdicts. Pure."""

from __future__ import annotations

import math
import statistics
import zlib
from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from pytest_tsuka.scoring.bootstrap import Spread, bootstrap
from pytest_tsuka.scoring.saturation import Saturation, saturation
from pytest_tsuka.scoring.speed import Speed, Throughput, throughput, wall_seconds
from pytest_tsuka.scoring.tiers import CATEGORY_NAMES, TIERS, CheckLoss, TierPolicy, weighted_mean
from pytest_tsuka.scoring.verdict import RunVerdict, Verdict, operands_text


@dataclass(frozen=True)
class EffortResult:
    """One model at one effort: measured with a tier, or not and why."""

    model: str
    effort: str
    verdicts: tuple[Verdict, ...]
    incomplete: str | None
    refused: str | None
    policy: TierPolicy = TIERS
    honoured: str | None = None
    speed: Speed | None = None
    missing: int = 0
    """How many benchmarks of the suite were not run."""

    @property
    def measured(self) -> bool:
        return self.incomplete is None and self.refused is None

    @cached_property
    def scores(self) -> dict[str, float | None]:
        """Category means over what was scored, unrounded; None for a category without a score."""
        return {
            category: weighted_mean(
                (v["score"], v["weight"]) for v in self.verdicts if v["category"] == category and v["score"] is not None
            )
            for category in CATEGORY_NAMES
        }

    @cached_property
    def tier(self) -> str | None:
        """The tier, only of a complete measurement."""
        return self.policy.tier_of(self.scores) if self.measured else None

    @cached_property
    def runs(self) -> list[RunVerdict]:
        return [run for verdict in self.verdicts for run in verdict["runs"]]

    @cached_property
    def repeats(self) -> int:
        return min((len(v["runs"]) for v in self.verdicts if v["runs"]), default=0)

    # --- figures -------------------------------------------------------------------------

    def _total(self, name: str) -> int | None:
        known = [n for run in self.runs if (n := run["usage"].get(name)) is not None]
        return sum(known) if known else None

    @cached_property
    def outcomes(self) -> dict[str, int]:
        """How many items came to which outcome."""
        return dict(Counter(verdict["outcome"] for verdict in self.verdicts))

    @property
    def requests(self) -> int:
        return sum(run["requests"] for run in self.runs)

    @property
    def prompt_tokens(self) -> int | None:
        return self._total("prompt_tokens")

    @property
    def completion_tokens(self) -> int | None:
        return self._total("completion_tokens")

    @property
    def reasoning_tokens(self) -> int | None:
        return self._total("reasoning_tokens")

    @property
    def average_completion_tokens(self) -> float | None:
        """Completion tokens per request, over the runs whose tokens are known."""
        known = [run for run in self.runs if run["usage"].get("completion_tokens") is not None]
        requests = sum(run["requests"] for run in known)
        tokens = self.completion_tokens
        return tokens / requests if tokens is not None and requests else None

    @property
    def tokens_per_second(self) -> float | None:
        """Of one stream, as its user would see it."""
        return self.speed.tokens_per_second if self.speed else None

    @cached_property
    def throughput(self) -> Throughput | None:
        """All streams together."""
        return throughput(self.runs)

    @cached_property
    def seconds(self) -> float | None:
        """Wall time: while some conversation at this effort was being held. None where it is not known."""
        return wall_seconds(self.runs)

    @cached_property
    def request_seconds(self) -> float:
        """The sum of all requests' seconds, however many were in flight at once."""
        return math.fsum(run["timing"].get("seconds") or 0 for run in self.runs)

    def latency(self, quantile: float) -> float | None:
        """Seconds per request at a quantile (0..1), nearest rank."""
        ordered = sorted(seconds for run in self.runs for seconds in run["latencies"])
        return ordered[max(0, math.ceil(quantile * len(ordered)) - 1)] if ordered else None

    @cached_property
    def saturation(self) -> Saturation:
        """Whether the endpoint kept up."""
        return saturation(self.runs)

    @property
    def json_clean(self) -> float | None:
        """The share of json replies that were JSON and nothing else."""
        replies = sum(run["json_replies"] for run in self.runs)
        return sum(run["json_clean"] for run in self.runs) / replies if replies else None

    # --- certainty -----------------------------------------------------------------------

    def _run_scores(self, number: int) -> dict[str, float | None]:
        return {
            category: weighted_mean(
                (v["runs"][number]["score"], v["weight"]) for v in self.verdicts if v["category"] == category
            )
            for category in CATEGORY_NAMES
        }

    @cached_property
    def tier_stability(self) -> float | None:
        """The share of runs whose own tier is the tier; None without repeats."""
        if not self.measured or self.repeats < 2:
            return None
        tiers = [self.policy.tier_of(self._run_scores(i)) for i in range(self.repeats)]
        return statistics.fmean(tier == self.tier for tier in tiers)

    @cached_property
    def spreads(self) -> dict[str, Spread]:
        """By category; none without repeats."""
        return {category: spread for category in CATEGORY_NAMES if (spread := self._spread(category))}

    def _spread(self, category: str) -> Spread | None:
        """Mean, extremes and a seeded bootstrap interval over tests and runs; None without repeats."""
        mean = self.scores[category]
        if self.repeats < 2 or mean is None:
            return None
        per_run = [s for i in range(self.repeats) if (s := self._run_scores(i)[category]) is not None]
        low, high = bootstrap(
            [[run["score"] for run in v["runs"]] for v in self.verdicts if v["category"] == category],
            [v["weight"] for v in self.verdicts if v["category"] == category],
            seed=zlib.crc32(f"{self.model}@{self.effort}:{category}".encode()),
        )
        return Spread(mean, min(per_run), max(per_run), low, high)

    @cached_property
    def bound_tiers(self) -> tuple[str, str, str] | None:
        """The tier at the lower bound, the mean and the upper bound; None without repeats."""
        if not self.measured or len(self.spreads) < len(CATEGORY_NAMES):
            return None
        lower = self.policy.tier_of({c: s.low95 for c, s in self.spreads.items()})
        upper = self.policy.tier_of({c: s.high95 for c, s in self.spreads.items()})
        assert lower
        assert upper
        assert self.tier
        return lower, self.tier, upper

    @cached_property
    def borderline(self) -> bool:
        bounds = self.bound_tiers
        return bounds is not None and len(set(bounds)) > 1

    # --- what would flip it --------------------------------------------------------------

    def losses(self) -> list[CheckLoss]:
        """Every failed check with what its passing (in all runs) would add to its category."""
        totals = {c: math.fsum(v["weight"] for v in self.verdicts if v["category"] == c) for c in CATEGORY_NAMES}
        found: list[CheckLoss] = []
        for verdict in self.verdicts:
            for number, check in enumerate(verdict["runs"][0]["checks"] if verdict["runs"] else ()):
                failed = sum(not run["checks"][number]["passed"] for run in verdict["runs"])
                if failed:
                    test_total = math.fsum(c["weight"] for c in verdict["runs"][0]["checks"])
                    share = check["weight"] / test_total * failed / len(verdict["runs"])
                    gain = share * verdict["weight"] / totals[verdict["category"]]
                    step = f"step {check['step'] + 1} " if len(verdict["runs"][0]["conversation"]) > 1 else ""
                    label = f"{step}{check['type']} {operands_text(check)}".rstrip()
                    found.append(CheckLoss(verdict["category"], verdict["benchmark"], label, gain))
        return found
