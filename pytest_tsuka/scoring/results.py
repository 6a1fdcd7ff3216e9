"""From the verdicts of a run to scores per effort, tier, recommendation and profile entries. Pure."""

from __future__ import annotations

import math
import re
import statistics
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pytest_tsuka.scoring.bootstrap import Spread, bootstrap
from pytest_tsuka.scoring.effort_effect import effects, reasoned
from pytest_tsuka.scoring.outcomes import ERROR, FILTERED, MALFORMED_CALL, NO_TOOLS, REFUSED, REFUSED_BY_MODEL, SCORED
from pytest_tsuka.scoring.saturation import Saturation, saturation
from pytest_tsuka.scoring.speed import Speed, Throughput, speed, throughput, wall_seconds
from pytest_tsuka.scoring.tiers import CATEGORY_NAMES, TIERS, CheckLoss, TierPolicy, recommend, weighted_mean
from pytest_tsuka.scoring.timing import ALONE
from pytest_tsuka.scoring.verdict import RunVerdict, Verdict, operands_text
from pytest_tsuka.text.json_types import shorten

_UNANSWERED = (NO_TOOLS, REFUSED_BY_MODEL, FILTERED, MALFORMED_CALL)


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


@dataclass(frozen=True)
class ModelResult:
    """All efforts of one model, in ascending cost."""

    model: str
    efforts: tuple[EffortResult, ...]
    policy: TierPolicy = TIERS

    @property
    def measured(self) -> tuple[EffortResult, ...]:
        return tuple(e for e in self.efforts if e.measured and e.tier)

    @property
    def recommended(self) -> EffortResult | None:
        """The cheapest measured effort with the best tier observed."""
        choice = recommend([(e.effort, e.tier) for e in self.measured if e.tier], self.policy)
        return self.at(choice.effort) if choice else None

    def at(self, effort: str) -> EffortResult | None:
        return next((e for e in self.efforts if e.effort == effort), None)

    @cached_property
    def _runs(self) -> list[RunVerdict]:
        return [run for effort in self.efforts for run in effort.runs]

    @property
    def saturation(self) -> Saturation:
        """Whether the endpoint kept up, over all efforts."""
        return saturation(self._runs)

    @property
    def throughput(self) -> Throughput | None:
        """Of all efforts together."""
        return throughput(self._runs)

    @property
    def outcome_lines(self) -> list[str]:
        """What became of replies that were no answers, by class; nothing where all were answers."""
        lines = []
        for name in _UNANSWERED:
            counts = [(e.effort, n) for e in self.efforts if (n := e.outcomes.get(name))]
            if counts:
                listed = ", ".join(f"{n} at {effort}" for effort, n in counts)
                lines.append(f"{name}: {listed}{self._first_note(name)}")
        return lines

    def _first_note(self, name: str) -> str:
        notes = (note for run in self._runs if run["outcome"] == name for note in run["notes"])
        note = next(notes, None)
        return f" ({shorten(re.sub(r'^turn [0-9]+: ', '', note), 200)})" if note else ""

    def why_no_tier(self) -> str:
        """Why no effort has one, by what most is to be done about, and what that is."""
        refused = [e.refused for e in self.efforts if e.refused]
        if refused and len(refused) == len(self.efforts):
            return (
                f"the endpoint refuses every effort ({shorten(refused[0], 160)}); if this model has no levels:"
                " --tsuka-effort=none --tsuka-effort-style=off"
            )
        errors = [v for e in self.efforts for v in e.verdicts if v["outcome"] == ERROR]
        if errors:
            return (
                f"{len(errors)} items could not be measured (their errors stand above, the first at"
                f" {errors[0]['benchmark']}); tsuka doctor looks for the cause, --tsuka-resume asks for what is missing"
            )
        why = next((e.incomplete for e in self.efforts if e.incomplete), None) or "nothing was measured"
        if any(e.missing for e in self.efforts):
            return f"{why}; a tier needs the whole suite: run without -k, -m, --lf, paths, or go on with --tsuka-resume"
        return f"{why}; mend the suite (tsuka check) and run again"

    @property
    def reasoned(self) -> bool:
        """Whether reasoning was seen at any level."""
        return any(reasoned(e.verdicts) for e in self.efforts)

    @property
    def complete(self) -> bool:
        """Whether every effort asked for was measured or refused by the endpoint."""
        return all(e.measured or e.refused for e in self.efforts)


@dataclass(frozen=True)
class Expectation:
    """What a complete run holds, worked out from the suite on disk."""

    models: tuple[str, ...]
    efforts: tuple[str, ...]
    categories: Mapping[str, str]
    unusable: str | None = None
    policy: TierPolicy = field(default=TIERS)


def summarise(expected: Expectation, verdicts: Sequence[Verdict]) -> list[ModelResult]:
    """One ModelResult per model asked for, from whatever verdicts arrived."""
    by_place: dict[tuple[str, str], dict[str, Verdict]] = {}
    for verdict in verdicts:
        by_place.setdefault((verdict["model"], verdict["effort"]), {})[verdict["benchmark"]] = verdict
    results = []
    for model in expected.models:
        found = {effort: by_place.get((model, effort), {}) for effort in expected.efforts}
        effect = effects({effort: list(own.values()) for effort, own in found.items()})
        # How fast a model writes does not hang on the effort: what was measured alone holds for all.
        alone = speed([run for own in found.values() for v in own.values() for run in v["runs"]])
        alone = alone if alone and alone.how == ALONE else None
        efforts = (_effort(expected, model, effort, found[effort], effect.get(effort), alone) for effort in found)
        results.append(ModelResult(model, tuple(efforts), expected.policy))
    return results


def _effort(
    expected: Expectation,
    model: str,
    effort: str,
    found: Mapping[str, Verdict],
    effect: str | None,
    alone: Speed | None,
) -> EffortResult:
    known = tuple(v for name, v in found.items() if name in expected.categories)
    refused = next((v["error"] for v in found.values() if v["outcome"] == REFUSED), None)
    incomplete = None if refused else _why_incomplete(expected, found)
    own = speed([run for v in known for run in v["runs"]])
    return EffortResult(
        model,
        effort,
        known,
        incomplete,
        refused,
        expected.policy,
        honoured=None if refused else effect,
        speed=(alone or own) if own else None,
        missing=sum(name not in found for name in expected.categories),
    )


def _why_incomplete(expected: Expectation, found: Mapping[str, Verdict]) -> str | None:
    """Why there is no tier, or None. An error is never a score and never left out silently."""
    if expected.unusable:
        return expected.unusable
    wanted = expected.categories
    missing = [name for name in wanted if name not in found]
    errors = [name for name in wanted if name in found and found[name]["outcome"] not in SCORED]
    if missing or errors:
        parts = []
        if missing:
            parts.append(f"{len(missing)} of {len(wanted)} benchmarks were not run")
        if errors:
            parts.append(
                f"{len(errors)} could not be measured ({', '.join(errors[:3])}{'…' if len(errors) > 3 else ''})"
            )
        return "; ".join(parts)
    without = [c for c in CATEGORY_NAMES if c not in wanted.values()]
    return f"the suite has no {' and no '.join(without)} benchmark" if without else None
