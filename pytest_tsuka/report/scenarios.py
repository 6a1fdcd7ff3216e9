"""A scenario's results as lines of text: the table, what to know about it, every field with its rung."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_tsuka.text.escape import one_line
from pytest_tsuka.text.json_types import shown
from pytest_tsuka.text.numbers import UNKNOWN, number_text, percent_text, score_text

if TYPE_CHECKING:
    from pytest_tsuka.gold.reference import Revision
    from pytest_tsuka.grading.standings import Row, Standings
    from pytest_tsuka.text.json_types import JsonObject

MARKS = {
    "matched": "✓",
    "partial": "~",
    "mismatch": "✗",
    "missing": "–",
    "hallucinated": "+",
    "unverified": "?",
    "extra": "·",
}
LEGEND = "✓ matched  ~ partial  ✗ mismatch  – missing  + not in the reference  ? unverified  · outside the schema"
DEFINITIONS: dict[str, dict[str, str]] = {
    "enrichment": {
        "complete": "credit over the values of the reference (recall)",
        "correct": "credit over the values given (precision)",
        "invented": "share of the values given that the reference does not have",
    },
    "schema_generation": {
        "complete": "credit over the reference schema's properties and what it says of them",
        "correct": "credit over the properties the answer declares and what it says of them",
        "invented": "share of what the answer declares that the reference schema does not have",
    },
    "sample_generation": {
        "complete": "asked-for fields that are there, and the judge's coverage",
        "correct": "no placeholders, consistent types, and the judge's relevance, realism and structure",
        "invented": "not measured: there is no reference",
    },
}


@dataclass(frozen=True, slots=True)
class Line:
    """A line and how it is shown."""

    text: str
    bold: bool = False
    colour: str = ""


def table(standings: Standings, *, detail: bool = False) -> Iterator[Line]:
    """The results of a scenario, the best first; with `detail` every field of each median run."""
    rows = standings.rows
    if not rows:
        yield Line("no answers yet", colour="yellow")
        return
    parts = standings.ranking
    yield Line(
        f"{standings.scenario.kind}, ranked by quality {parts.quality:.0f} %, speed {parts.speed:.0f} %,"
        f" cost {parts.cost:.0f} %"
    )
    head = ["model", "effort", "score", "quality", "spread", "complete", "correct", "invented", "valid", "time", "cost"]
    if standings.scenario.scoring.judge:
        head += ["judge", "grading"]
    cells = [_cells(row, judged=len(head) > 11) for row in rows]
    widths = [max(len(row[i]) for row in [head, *cells]) for i in range(len(head))]
    yield Line(_joined(head, widths), bold=True)
    for row, own in zip(rows, cells, strict=True):
        yield Line(_joined(own, widths), colour="yellow" if row.stale or row.quality is None else "")
    yield from _remarks(standings)
    if detail:
        yield Line(LEGEND)
        for row in rows:
            yield from fields(row)


def _cells(row: Row, *, judged: bool) -> list[str]:
    ranked = row.ranked
    score = UNKNOWN if ranked is None else f"{ranked.score:.1f}{'' if ranked.complete else '*'}"
    spread = f"{row.lowest:.0f}–{row.highest:.0f}" if row.runs > 1 and row.lowest is not None else ""
    cells = [
        one_line(row.model),
        row.effort,
        score,
        number_text(row.quality),
        spread,
        score_text(row.completeness),
        score_text(row.correctness),
        percent_text(row.hallucination_rate),
        percent_text(row.schema_valid),
        f"{row.seconds:.1f} s",
        dollars(row.cost),
    ]
    if judged:
        spent = "" if row.judge_calls == 0 else f" {dollars(row.judge_cost)}"
        asked = UNKNOWN if row.quality is None else f"{row.judge_calls} calls{spent}, {row.cached} cached"
        cells += [asked, "" if row.grading_seconds is None else f"{row.grading_seconds:.1f} s"]
    return cells


def dollars(cost: float | None) -> str:
    """An amount; unknown is a dash and never 0."""
    if cost is None:
        return UNKNOWN
    return "$0" if cost == 0 else f"${cost:.4f}" if cost >= 0.001 else f"${cost:.2g}"


def _remarks(standings: Standings) -> Iterator[Line]:
    rows = standings.rows
    if any(row.ranked and not row.ranked.complete for row in rows):
        yield Line("* ranked without a cost or a time that is not known (prices: [tool.tsuka.prices])")
    if any(row.exact_only for row in rows):
        yield Line("exact matching only: no embedding model, so other spellings count as mismatches", colour="yellow")
    for row in rows:
        name = one_line(row.label)
        if row.quality is None:
            yield Line(f"{name}: not graded", colour="yellow")
        if row.stale:
            yield Line(
                f"{name}: stale, {row.stale} after it was graded: tsuka rescore {standings.scenario.name}",
                colour="yellow",
            )
        if row.problem:
            yield Line(f"{name}: {one_line(row.problem)}", colour="yellow")
        if row.runs < row.wanted:
            yield Line(f"{name}: {row.runs} of {row.wanted} answers, the other requests failed", colour="yellow")
        if row.rungs:
            shares = ", ".join(f"{rung} {percent_text(share)}" for rung, share in row.rungs.items())
            open_ = [f"{n} {what}" for n, what in ((row.undecided, "undecided"), (row.unverified, "unverified")) if n]
            yield Line(f"{name}: decided by {shares}{''.join(f'; {o}' for o in open_)}")
    if standings.outdated:
        yield Line(
            f"{standings.outdated} more answered an earlier wording of this scenario and are left out", colour="yellow"
        )


def fields(row: Row) -> Iterator[Line]:
    """Field by field: candidate against reference, the rung that decided, the similarity where there is one."""
    if row.grade is None:
        return
    grade: dict[str, Any] = dict(row.grade)
    which = f" (median of {row.runs} runs)" if row.runs > 1 else ""
    yield Line(f"{one_line(row.label)}{which}: quality {grade['quality']:.1f}", bold=True)
    if grade["schemaProblem"]:
        yield Line(f"  breaks the schema: {one_line(grade['schemaProblem'])}", colour="yellow")
    for name, share in grade["subscores"].items():
        yield Line(f"  {name} {score_text(share)}")
    width = max((len(leaf["path"]) for leaf in grade["leaves"]), default=0)
    for leaf in grade["leaves"]:
        yield _field(leaf, min(width, 40))
    for note in grade["notes"]:
        yield Line(f"  {one_line(note)}")


def _field(leaf: JsonObject, width: int) -> Line:
    value: dict[str, Any] = dict(leaf)
    status = value["status"]
    similarity = value.get("similarity")
    rung = value.get("rung", "") + (f" {similarity:.3f}" if similarity is not None else "")
    said = shown(value["candidate"], 60) if value["candidate"] is not None else ""
    if status in ("mismatch", "partial", "missing") or (status == "matched" and value.get("rung") != "exact"):
        said += f" (reference {shown(value['reference'], 60)})" if value["reference"] is not None else ""
    note = f": {value['note']}" if value.get("note") else ""
    undecided = ", undecided" if value.get("undecided") else ""
    colour = {"matched": "green", "mismatch": "red", "missing": "red", "hallucinated": "red"}.get(status, "")
    text = f"  {MARKS[status]} {value['path']:{width}}  {rung:15}  {said.strip()}{undecided}{note}"
    return Line(one_line(text).rstrip(), colour=colour)


def revisions(made: Sequence[Revision], name: str) -> Iterator[Line]:
    """What a pass changed in the reference, and how to take it back."""
    for revision in made:
        models = ", ".join(revision.models)
        yield Line(
            one_line(
                f"reference {revision.path}: {shown(revision.before, 60)} → {shown(revision.after, 60)}"
                f" ({revision.evidence} by {models}); to refuse: tsuka reference reject {name} '{revision.path}'"
            ),
            colour="yellow",
        )


def _joined(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [c.ljust(w) if i < 2 else c.rjust(w) for i, (c, w) in enumerate(zip(cells, widths, strict=True))]
    return "  ".join(padded).rstrip()
