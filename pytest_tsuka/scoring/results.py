"""From the verdicts of a run to scores per effort, tier, recommendation and profile entries. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pytest_tsuka.scoring.effort_effect import effects, reasoned
from pytest_tsuka.scoring.effort_result import EffortResult
from pytest_tsuka.scoring.outcomes import ERROR, FILTERED, MALFORMED_CALL, NO_TOOLS, REFUSED, REFUSED_BY_MODEL, SCORED
from pytest_tsuka.scoring.saturation import Saturation, saturation
from pytest_tsuka.scoring.speed import Speed, Throughput, speed, throughput
from pytest_tsuka.scoring.tiers import CATEGORY_NAMES, TIERS, TierPolicy, recommend
from pytest_tsuka.scoring.timing import ALONE
from pytest_tsuka.scoring.verdict import RunVerdict, Verdict
from pytest_tsuka.text.json_types import shorten

_UNANSWERED = (NO_TOOLS, REFUSED_BY_MODEL, FILTERED, MALFORMED_CALL)


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
