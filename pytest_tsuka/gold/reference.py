"""The reference of a scenario and how it improves itself: findings of passes become revisions, people decide.

A revision made by a pass gives way only to stronger evidence, counted over all passes. What is kept
per path is therefore every finding ever made, and the value in force follows from them alone: that
grading models one by one, in any order, ends where grading them together does is no accident.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pytest_tsuka.checks.schemas import violations
from pytest_tsuka.errors import GoldReferenceError, Problem
from pytest_tsuka.gold.fields import Field as AnswerField
from pytest_tsuka.gold.ladder import compare
from pytest_tsuka.json_paths import look_up, parse_path
from pytest_tsuka.jsontypes import JsonObject, JsonValue, is_absent

Evidence = Literal["samples", "judged_wrong", "better", "filled_blank"]
Source = Literal["generated", "pasted", "record", "edited"]

STRENGTH: dict[str, int] = {"samples": 3, "judged_wrong": 2, "better": 1, "filled_blank": 1}
"""What the samples prove comes before a verdict that the value is wrong, and that before a better answer."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Finding(_Model):
    """One model's evidence for a value at a path, found in one pass."""

    path: str
    value: Any
    evidence: Evidence
    model: str
    rationale: str = ""
    pass_id: str = ""


class Revision(_Model):
    """A change of the reference: what stood there, what stands there now, who proposed it and why."""

    path: str
    before: Any = None
    after: Any = None
    evidence: Evidence | Literal["person"]
    models: list[str] = Field(default_factory=list)
    rationale: str = ""
    pass_id: str = ""
    at: str = ""
    rejected: bool = False


class Reference(_Model):
    """`<name>.reference.json`: the output, whether a person verified it, its history."""

    output: Any
    verified: bool = False
    source: Source = "generated"
    verified_at: str | None = None
    edited_at: str | None = None
    revisions: list[Revision] = Field(default_factory=list)
    findings: list[Finding] = Field(default_factory=list)
    rejected_paths: list[str] = Field(default_factory=list)


def read_reference(file: Path, schema: JsonObject | None = None) -> Reference:
    """The reference of a file, checked against the scenario's schema. Raises GoldReferenceError."""
    try:
        reference = Reference.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        raise GoldReferenceError(f"{file} does not exist: make a reference and verify it") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise GoldReferenceError(f"{file}: {Problem(where, first['msg'])}") from None
    if schema is not None and (broken := violations(reference.output, schema)):
        raise GoldReferenceError(f"{file}: the reference breaks the scenario's own schema: {broken}")
    return reference


def write_reference(file: Path, reference: Reference) -> None:
    """Replaces the file atomically."""
    from pytest_tsuka.profile import write_atomically

    write_atomically(file, json.dumps(reference.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n")


# --- consolidation -------------------------------------------------------------------------


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


def consolidate(reference: Reference, findings: Iterable[Finding], *, now: datetime | None = None) -> list[Revision]:
    """Takes a pass's findings into the reference; returns the revisions it made.

    Per path the claim with the strongest evidence stands, then the one of most distinct models over
    all passes. A path a person rejected or edited is left alone by passes.
    """
    for finding in findings:
        if finding.path not in reference.rejected_paths and finding not in reference.findings:
            reference.findings.append(finding)
    made = []
    by_path: dict[str, list[Finding]] = {}
    for finding in sorted(reference.findings, key=lambda f: (f.path, f.model, _text(f.value), f.evidence, f.pass_id)):
        by_path.setdefault(finding.path, []).append(finding)
    for path, own in by_path.items():
        if path not in reference.rejected_paths and (revision := _revise(reference, path, own, now)):
            made.append(revision)
    return made


def _revise(reference: Reference, path: str, findings: Sequence[Finding], now: datetime | None) -> Revision | None:
    best = max(_claims(findings), key=lambda claim: claim.rank)
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
        at=(now or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ"),
    )
    set_value(reference.output, path, best.value)
    reference.revisions.append(revision)
    return revision


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
    return next((r for r in reversed(reference.revisions) if r.path == path and not r.rejected), None)


def _same(a: JsonValue, b: JsonValue) -> bool:
    return a == b or compare(a, b, AnswerField("")).credit >= 1.0


def _text(value: JsonValue) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=True)


# --- people --------------------------------------------------------------------------------


def reject(reference: Reference, paths: Iterable[str]) -> list[Revision]:
    """Restores what stood at each path before any pass, and keeps the path out of later passes."""
    undone = []
    for path in paths:
        own = [r for r in reference.revisions if r.path == path and not r.rejected and r.evidence != "person"]
        if not own:
            raise GoldReferenceError(f"no pass has changed {path!r}; see the log for the paths that were changed")
        set_value(reference.output, path, own[0].before)
        for revision in own:
            revision.rejected = True
        reference.rejected_paths.append(path)
        reference.findings = [f for f in reference.findings if f.path != path]
        undone += own
    return undone


# --- places in the output ------------------------------------------------------------------


def value_at(output: JsonValue, path: str) -> JsonValue:
    """The value at a path of a leaf (`cast[2].name`), None where there is none."""
    found = look_up(output, path)
    return None if is_absent(found) else cast("JsonValue", found)


def set_value(output: JsonValue, path: str, value: JsonValue) -> None:
    """Puts a value at a path and makes what is missing on the way; a list grows by one at its end."""
    steps = parse_path(path)
    target: Any = output
    for step, following in pairwise(steps):
        target = _member(target, step, [] if isinstance(following, int) else {}, path)
    last = steps[-1] if steps else None
    if isinstance(target, dict) and isinstance(last, str):
        target[last] = value
    elif isinstance(target, list) and isinstance(last, int) and last <= len(target):
        target[last : last + 1] = [value]
    else:
        raise GoldReferenceError(f"the reference has no place {path!r}")


def _member(target: Any, step: str | int, empty: Any, path: str) -> Any:
    """The container at a step, made if it is not there."""
    if isinstance(target, dict) and isinstance(step, str):
        if not isinstance(target.get(step), (dict, list)):
            target[step] = empty
        return target[step]
    if isinstance(target, list) and isinstance(step, int) and step <= len(target):
        if step == len(target):
            target.append(empty)
        return target[step]
    raise GoldReferenceError(f"the reference has no place {path!r}")
