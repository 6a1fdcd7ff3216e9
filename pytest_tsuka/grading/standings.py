"""A scenario's results side by side: what was graded, ranked by quality, speed and cost; stale ones marked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from pytest_tsuka.gold.ranking import RankedResult, Ranking, rank
from pytest_tsuka.gold.reference import Reference
from pytest_tsuka.gold.scenario import Scenario
from pytest_tsuka.grading.passes import label_of
from pytest_tsuka.grading.project import Project
from pytest_tsuka.store.records import Records, Result
from pytest_tsuka.text.json_types import JsonObject


@dataclass(frozen=True)
class Row:
    """One model at one effort: means over its runs (shares 0..1, quality 0..100), None where not graded or unknown.

    `cost` is dollars per answer, `seconds` per answer; `stale` says why a grade is out of date.
    `grade` is the median run's, of two middle ones the lower.
    """

    model: str
    effort: str
    runs: int
    wanted: int
    seconds: float
    tokens: float | None
    cost: float | None
    quality: float | None = None
    lowest: float | None = None
    highest: float | None = None
    completeness: float | None = None
    correctness: float | None = None
    hallucination_rate: float | None = None
    schema_valid: float | None = None
    rungs: dict[str, float] = field(default_factory=dict)
    undecided: int = 0
    unverified: int = 0
    problem: str | None = None
    judge_calls: int = 0
    cached: int = 0
    judge_cost: float | None = None
    grading_seconds: float | None = None
    exact_only: bool = False
    pass_id: str | None = None
    stale: str | None = None
    grade: JsonObject | None = None
    output: str = ""
    ranked: RankedResult | None = None

    @property
    def label(self) -> str:
        return label_of(self.model, self.effort)


@dataclass(frozen=True)
class Standings:
    """All results of a scenario, the best first, those without a grade last."""

    scenario: Scenario
    ranking: Ranking
    rows: tuple[Row, ...]
    outdated: int
    reference: Reference | None = None

    def to_json(self) -> JsonObject:
        """For programs; figures that are unknown are null."""
        return {
            "scenario": self.scenario.name,
            "kind": self.scenario.kind,
            "ranking": {"quality": self.ranking.quality, "speed": self.ranking.speed, "cost": self.ranking.cost},
            "outdated": self.outdated,
            "results": [plain_row(row) for row in self.rows],
            "reference": _plain_reference(self.reference) if self.reference else None,
        }


def _plain_reference(reference: Reference) -> JsonObject:
    """The reference as it is, the changes of passes that stand, and what was rejected."""
    return {
        "output": reference.output,
        "verifiedAt": reference.verified_at,
        "revisions": [revision.model_dump(mode="json") for revision in reference.standing.values()],
        "rejectedPaths": list(reference.rejected_paths),
    }


def standings(scenario: Scenario, reference: Reference | None, records: Records, project: Project) -> Standings:
    """Everything the store holds on a scenario as it is now worded."""
    scenario = project.completed(scenario)
    results = records.results(scenario.name, scenario.question_key)
    rows = [_row(result, scenario, reference, project) for result in results if result.outputs]
    graded = [(row, row.quality) for row in rows if row.quality is not None]
    ranking = project.ranking_of(scenario)
    ranked = {r.model: r for r in rank([(row.label, q, row.seconds, row.cost) for row, q in graded], ranking)}
    order = {label: n for n, label in enumerate(ranked)}
    placed = [Row(**{**row.__dict__, "ranked": ranked.get(row.label)}) for row in rows]
    placed.sort(key=lambda row: (order.get(row.label, len(order)), row.label))
    return Standings(
        scenario, ranking, tuple(placed), records.outdated(scenario.name, scenario.question_key), reference
    )


def _row(result: Result, scenario: Scenario, reference: Reference | None, project: Project) -> Row:
    outputs = result.outputs
    tokens = [o.usage.completion_tokens for o in outputs]
    costs = [project.cost(result.model, o.usage) for o in outputs]
    base: dict[str, Any] = {
        "model": result.model,
        "effort": result.effort,
        "runs": len(outputs),
        "wanted": result.wanted,
        "seconds": fmean(o.seconds for o in outputs),
        "tokens": _mean(tokens),
        "cost": _mean(costs),
    }
    if result.grading is None:
        return Row(**base)
    grading, grades = result.grading, result.grading.grades
    chosen = median_run([g["quality"] for g in grades])
    decided: Counter[str] = Counter()
    for g in grades:
        decided.update(g["rungs"])
    total = sum(decided.values())
    return Row(
        **base,
        quality=fmean(g["quality"] for g in grades),
        lowest=min(g["quality"] for g in grades),
        highest=max(g["quality"] for g in grades),
        completeness=fmean(g["completeness"] for g in grades),
        correctness=fmean(g["correctness"] for g in grades),
        hallucination_rate=fmean(g["hallucinationRate"] for g in grades),
        schema_valid=fmean(float(not g["schemaProblem"] and not g["problem"]) for g in grades),
        rungs={rung: count / total for rung, count in sorted(decided.items())},
        undecided=sum(g["undecided"] for g in grades),
        unverified=sum(g["unverified"] for g in grades),
        problem=grades[chosen]["problem"],
        judge_calls=grading.judge_calls,
        cached=grading.cached,
        judge_cost=grading.judge_cost,
        grading_seconds=grading.seconds,
        exact_only=grading.exact_only,
        pass_id=grading.pass_id,
        stale=_why_stale(result, scenario, reference),
        grade=grades[chosen],
        output=outputs[chosen].text,
    )


def median_run(qualities: Sequence[float]) -> int:
    """The index of the median run by quality; of two middle ones, the lower."""
    order = sorted(range(len(qualities)), key=lambda i: qualities[i])
    return order[(len(order) - 1) // 2]


def _mean(values: Sequence[float | None]) -> float | None:
    """The mean, None as soon as one is unknown."""
    known = [v for v in values if v is not None]
    return fmean(known) if len(known) == len(values) and known else None


def _why_stale(result: Result, scenario: Scenario, reference: Reference | None) -> str | None:
    assert result.grading is not None
    if result.grading.scoring != scenario.scoring_key:
        return "the scoring was changed"
    if reference is not None and result.grading.edition != reference.edition:
        return "the reference was edited"
    return None


def plain_row(row: Row) -> JsonObject:
    """A row for programs; what is not known is None."""
    ranked = row.ranked
    return {
        "model": row.model,
        "effort": row.effort,
        "runs": row.runs,
        "runsWanted": row.wanted,
        "score": ranked.score if ranked else None,
        "quality": row.quality,
        "qualityLowest": row.lowest,
        "qualityHighest": row.highest,
        "completeness": row.completeness,
        "correctness": row.correctness,
        "hallucinationRate": row.hallucination_rate,
        "schemaValid": row.schema_valid,
        "rungs": row.rungs,
        "undecided": row.undecided,
        "unverified": row.unverified,
        "problem": row.problem,
        "speedScore": ranked.speed if ranked else None,
        "costScore": ranked.cost if ranked else None,
        "secondsPerAnswer": row.seconds,
        "tokensPerAnswer": row.tokens,
        "costPerAnswer": row.cost,
        "judgeCalls": row.judge_calls,
        "judgeAnswersCached": row.cached,
        "judgeCost": row.judge_cost,
        "gradingSeconds": row.grading_seconds,
        "exactMatchingOnly": row.exact_only,
        "pass": row.pass_id,
        "stale": row.stale,
        "output": row.output,
        "grade": row.grade,
    }
