"""The reference of a scenario and how it improves itself: findings of passes become revisions, people decide.

A revision made by a pass gives way only to stronger evidence, counted over all passes. What is kept
per path is therefore every finding ever made, and the value in force follows from them alone: that
grading models one by one, in any order, ends where grading them together does is no accident.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pytest_tsuka.checks.schemas import violations
from pytest_tsuka.errors import GoldReferenceError, Problem, closest
from pytest_tsuka.gold.fields import Field as AnswerField
from pytest_tsuka.gold.ladder import compare
from pytest_tsuka.json_paths import look_up, parse_path
from pytest_tsuka.jsontypes import JsonObject, JsonValue, is_absent

Evidence = Literal["samples", "judged_wrong", "better", "filled_blank"]
Source = Literal["generated", "pasted", "record", "edited"]

STRENGTH: dict[str, int] = {"samples": 3, "judged_wrong": 2, "better": 1, "filled_blank": 1}
"""What the samples prove comes before a verdict that the value is wrong, and that before a better answer."""
LOCK_TIMEOUT = 30.0
"""Seconds to wait for another process that is writing the same reference."""


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
    superseded: bool = False

    @property
    def stands(self) -> bool:
        """Whether a pass made it and nothing has taken it back."""
        return self.evidence != "person" and not self.rejected and not self.superseded


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
    saved: str | None = None

    @property
    def edition(self) -> str:
        """A digest of what people made of it: it changes when they edit or reject, never by a pass.

        Grades under another edition are stale.
        """
        return _digest([baseline(self), sorted(self.rejected_paths)])

    @property
    def standing(self) -> dict[str, Revision]:
        """The revision of a pass in force at each path that has one."""
        return {r.path: r for r in self.revisions if r.stands}


def baseline(reference: Reference) -> JsonValue:
    """The output as people left it: every standing revision of a pass undone."""
    output = copy.deepcopy(reference.output)
    first: dict[str, Revision] = {}
    for revision in reference.revisions:
        if revision.stands:
            first.setdefault(revision.path, revision)
    for path, revision in first.items():
        set_value(output, path, copy.deepcopy(revision.before))
    return cast("JsonValue", output)


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def _now(now: datetime | None = None) -> str:
    return (now or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")


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
    if reference.saved is not None and reference.saved != _digest(reference.output):
        _adopt_hand_edits(reference)
    return reference


def _adopt_hand_edits(reference: Reference) -> None:
    """Somebody changed the output in an editor: what differs from a pass's revision is that person's value."""
    for path, revision in reference.standing.items():
        if value_at(reference.output, path) != revision.after:
            _note_edit(reference, path, revision.after, value_at(reference.output, path), None)
    # Findings that no revision stands for agreed with a value that may be gone.
    standing = reference.standing
    reference.findings = [f for f in reference.findings if f.path in standing]
    reference.saved = _digest(reference.output)


def write_reference(file: Path, reference: Reference) -> None:
    """Replaces the file atomically."""
    from pytest_tsuka.profile import write_atomically

    reference.saved = _digest(reference.output)
    write_atomically(file, json.dumps(reference.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n")


@contextmanager
def reference_lock(file: Path) -> Iterator[None]:
    """Held while a reference is read, changed and written. Raises GoldReferenceError when another process keeps it."""
    from filelock import FileLock, Timeout

    lock = FileLock(file.with_name(f".{file.name}.lock"))
    try:
        lock.acquire(timeout=LOCK_TIMEOUT)
    except Timeout:
        raise GoldReferenceError(f"{file} has been in use by another process for {LOCK_TIMEOUT:g} s") from None
    try:
        yield
    finally:
        lock.release()


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
        at=_now(now),
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


# --- people --------------------------------------------------------------------------------


def reject(reference: Reference, paths: Iterable[str]) -> list[Revision]:
    """Restores what stood at each path before any pass, and keeps the path out of later passes."""
    undone = []
    for path in paths:
        own = [r for r in reference.revisions if r.path == path and r.stands]
        if not own:
            known = reference.standing
            near = closest(path, known)
            hint = f"; did you mean {near!r}?" if near else ""
            raise GoldReferenceError(f"no pass has changed {path!r}{hint} (changed: {', '.join(known) or 'nothing'})")
        set_value(reference.output, path, own[0].before)
        for revision in own:
            revision.rejected = True
        _keep_out(reference, path)
        undone += own
    return undone


def _keep_out(reference: Reference, path: str) -> None:
    if path not in reference.rejected_paths:
        reference.rejected_paths.append(path)
    reference.findings = [f for f in reference.findings if f.path != path]


def undo(reference: Reference, number: int, *, now: datetime | None = None) -> Revision:
    """Takes back entry `number` (from 1) of the log and returns it.

    A pass's revision: what stood before that entry comes back, and the path is kept out. A rejected
    one: the rejection itself is taken back and the value restored. A person's edit: the value before.
    """
    if not 1 <= number <= len(reference.revisions):
        raise GoldReferenceError(f"there is no entry {number}: the log has {len(reference.revisions)}")
    entry = reference.revisions[number - 1]
    later = [r for r in reference.revisions[number:] if r.path == entry.path and (r.stands or r.evidence == "person")]
    if later or (entry.superseded and not entry.rejected):
        raise GoldReferenceError(f"entry {number} is not the last word on {entry.path!r}: undo the later one first")
    if entry.rejected:
        entry.rejected = False
        reference.rejected_paths = [p for p in reference.rejected_paths if p != entry.path]
        set_value(reference.output, entry.path, entry.after)
    elif entry.evidence == "person":
        set_value(reference.output, entry.path, entry.before)
        reference.revisions.remove(entry)
        reference.edited_at = _now(now)
    else:
        set_value(reference.output, entry.path, entry.before)
        entry.rejected = True
        _keep_out(reference, entry.path)
    return entry


def edit(reference: Reference, output: JsonValue, *, now: datetime | None = None) -> list[Revision]:
    """A person's new output in place of the old; returns what changed. Findings about what is gone are dropped."""
    made = []
    for path in changed_paths(reference.output, output):
        made.append(_note_edit(reference, path, value_at(reference.output, path), value_at(output, path), now))
    reference.output = copy.deepcopy(output)
    if made:
        reference.source, reference.edited_at = "edited", _now(now)
    return made


def _note_edit(reference: Reference, path: str, before: JsonValue, after: JsonValue, now: datetime | None) -> Revision:
    for revision in reference.revisions:
        if _within(revision.path, path) and revision.stands:
            revision.superseded = True
    reference.findings = [f for f in reference.findings if not _within(f.path, path)]
    reference.rejected_paths = [p for p in reference.rejected_paths if not _within(p, path)]
    revision = Revision(path=path, before=before, after=after, evidence="person", at=_now(now))
    reference.revisions.append(revision)
    return revision


def _within(inner: str, outer: str) -> bool:
    """Whether a path is another one, or lies in it, or holds it."""
    a, b = parse_path(inner), parse_path(outer)
    shorter = min(len(a), len(b))
    return list(a[:shorter]) == list(b[:shorter])


def changed_paths(before: JsonValue, after: JsonValue, path: str = "") -> list[str]:
    """Where two outputs differ: leaves, and lists as a whole where their lengths do."""
    if isinstance(before, dict) and isinstance(after, dict):
        found = []
        for name in (*before, *(n for n in after if n not in before)):
            inner = f"{path}.{name}" if path else name
            found += changed_paths(before.get(name), after.get(name), inner)
        return found
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [
            p for i, (a, b) in enumerate(zip(before, after, strict=True)) for p in changed_paths(a, b, f"{path}[{i}]")
        ]
    return [] if before == after else [path]


def verify(reference: Reference, *, now: datetime | None = None) -> None:
    """A person vouches for it."""
    reference.verified, reference.verified_at = True, _now(now)


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
