"""The reference of a scenario: its file, its history, and what people do to it; passes are in `consolidation`."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pytest_tsuka.checks.schemas import violations
from pytest_tsuka.errors import GoldReferenceError, Problem, closest
from pytest_tsuka.gold.places import changed_paths, overlap, set_value, value_at
from pytest_tsuka.text.json_types import JsonObject, JsonValue, digest

Evidence = Literal["samples", "judged_wrong", "better", "filled_blank"]
Source = Literal["generated", "pasted", "record", "edited"]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", defer_build=True)


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
    return digest(content)[:16]


def timestamp(now: datetime | None = None) -> str:
    """Now, or the given time, as references and logs write it."""
    return (now or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_reference(raw: bytes, where: str, schema: JsonObject | None = None) -> Reference:
    """The reference in a file's bytes, checked against the scenario's schema. Raises GoldReferenceError.

    `where` names the file. What a person changed in it by hand becomes an edit.
    """
    try:
        reference = Reference.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise GoldReferenceError(f"{where}: {Problem(place, first['msg'])}") from None
    if schema is not None and (broken := violations(reference.output, schema)):
        raise GoldReferenceError(f"{where}: the reference breaks the scenario's own schema: {broken}")
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


def reference_text(reference: Reference) -> str:
    """What stands in the file of a reference, which is marked as saved by this program."""
    reference.saved = _digest(reference.output)
    return json.dumps(reference.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"


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
        reference.edited_at = timestamp(now)
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
        reference.source, reference.edited_at = "edited", timestamp(now)
    return made


def _note_edit(reference: Reference, path: str, before: JsonValue, after: JsonValue, now: datetime | None) -> Revision:
    for revision in reference.revisions:
        if overlap(revision.path, path) and revision.stands:
            revision.superseded = True
    reference.findings = [f for f in reference.findings if not overlap(f.path, path)]
    reference.rejected_paths = [p for p in reference.rejected_paths if not overlap(p, path)]
    revision = Revision(path=path, before=before, after=after, evidence="person", at=timestamp(now))
    reference.revisions.append(revision)
    return revision


def verify(reference: Reference, *, now: datetime | None = None) -> None:
    """A person vouches for it."""
    reference.verified, reference.verified_at = True, timestamp(now)
