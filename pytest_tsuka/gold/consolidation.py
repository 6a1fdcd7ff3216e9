"""Findings become revisions: the strongest evidence first, then what most models gave, whatever the order of passes.

What is kept per path is every finding ever made, and the value in force follows from them alone:
that grading models one by one, in any order, ends where grading them together does is no accident.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from pytest_tsuka.gold.comparison import compare
from pytest_tsuka.gold.fields import Field as AnswerField
from pytest_tsuka.gold.places import set_value, value_at
from pytest_tsuka.gold.reference import Evidence, Finding, Reference, Revision, timestamp
from pytest_tsuka.text.json_types import JsonValue

STRENGTH: dict[str, int] = {"samples": 3, "judged_wrong": 2, "better": 1, "filled_blank": 1}
"""What the samples prove comes before a verdict that the value is wrong, and that before a better answer."""


@dataclass(frozen=True, slots=True)
class _Claim:
    """A value somebody found for a path, with all who found it (equal by the certain rungs = one value)."""

    value: JsonValue
    strength: int
    evidence: Evidence
    models: tuple[str, ...]
    rationale: str

    @property
    def rank(self) -> tuple[int, int, str]:
        """Stronger evidence first, then more distinct models, then the value's own text as the last word."""
        return (self.strength, len(self.models), _text(self.value))


Duel = Callable[[str, JsonValue, JsonValue], bool]
"""Path, value in the lead, another one: whether the judge holds the first to be wrong and the other right."""


def consolidate(
    reference: Reference, findings: Iterable[Finding], *, now: datetime | None = None, duel: Duel | None = None
) -> list[Revision]:
    """Takes a pass's findings into the reference; returns the revisions it made.

    Per path the claim with the strongest evidence stands, then the one of most distinct models over
    all passes; where several values are claimed, `duel` lets the judge say that the leading one is
    wrong. A path that a person rejected is left alone by passes. Findings must be about what people
    left (`baseline`): then the order in which models are graded changes nothing.
    """
    for finding in findings:
        if finding.path not in reference.rejected_paths and finding not in reference.findings:
            reference.findings.append(finding)
    made = []
    by_path: dict[str, list[Finding]] = {}
    for finding in sorted(reference.findings, key=lambda f: (f.path, f.model, _text(f.value), f.evidence, f.pass_id)):
        by_path.setdefault(finding.path, []).append(finding)
    for path, own in by_path.items():
        if path not in reference.rejected_paths and (revision := _revise(reference, path, own, now, duel)):
            made.append(revision)
    return made


def _revise(
    reference: Reference, path: str, findings: Sequence[Finding], now: datetime | None, duel: Duel | None
) -> Revision | None:
    best = _best_claim(path, _claims(findings), duel)
    current = value_at(reference.output, path)
    standing = _standing(reference, path)
    if standing is not None and _same(standing.after, best.value):
        standing.models, standing.evidence = list(best.models), best.evidence
        standing.after = best.value  # of equal spellings one is kept, whoever came first
        set_value(reference.output, path, best.value)
        return None
    if standing is None and _same(current, best.value):
        return None
    revision = Revision(
        path=path,
        before=current,
        after=best.value,
        evidence=best.evidence,
        models=list(best.models),
        rationale=best.rationale,
        pass_id=findings[-1].pass_id,
        at=timestamp(now),
    )
    set_value(reference.output, path, best.value)
    reference.revisions.append(revision)
    return revision


def _best_claim(path: str, claims: Sequence[_Claim], duel: Duel | None) -> _Claim:
    """The claim of highest rank, unless the judge holds it to be wrong against another one."""
    best, *others = sorted(claims, key=lambda claim: claim.rank, reverse=True)
    for other in others:
        if best.strength < STRENGTH["samples"] and duel is not None and duel(path, best.value, other.value):
            why = "the judge holds the value that led to be wrong"
            best = replace(other, strength=STRENGTH["judged_wrong"], evidence="judged_wrong", rationale=why)
    return best


def _claims(findings: Sequence[Finding]) -> list[_Claim]:
    """Findings that say the same value, put together."""
    groups: list[list[Finding]] = []
    for finding in findings:
        for group in groups:
            if _same(group[0].value, finding.value):
                group.append(finding)
                break
        else:
            groups.append([finding])
    claims = []
    for group in groups:
        strongest = max(group, key=lambda f: (STRENGTH[f.evidence], f.evidence))
        value = min((f.value for f in group), key=_text)  # one spelling, whoever came first
        models = tuple(sorted({f.model for f in group}))
        claims.append(_Claim(value, STRENGTH[strongest.evidence], strongest.evidence, models, strongest.rationale))
    return claims


def _standing(reference: Reference, path: str) -> Revision | None:
    """The revision in force at a path."""
    return reference.standing.get(path)


def _same(a: JsonValue, b: JsonValue) -> bool:
    return a == b or compare(a, b, AnswerField("")).credit >= 1.0


def _text(value: JsonValue) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=True)
