"""What a graded answer says against the reference: the findings that a pass consolidates."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Literal, cast

from pytest_tsuka.checks.schemas import violations
from pytest_tsuka.errors import GoldReferenceError
from pytest_tsuka.gold.comparison import is_empty
from pytest_tsuka.gold.enrichment import Grade, LeafGrade
from pytest_tsuka.gold.places import set_value, value_at
from pytest_tsuka.gold.reference import Finding
from pytest_tsuka.text.json_types import JsonObject, JsonValue


def findings_of(
    grade: Grade, answer: JsonValue, reference: JsonValue, schema: JsonObject | None, model: str, pass_id: str
) -> list[Finding]:
    """The findings of one answer, graded against the reference as people left it.

    A list that the reference leaves blank is one finding: the items of which everything was
    confirmed. What would break the scenario's own schema is left out.
    """
    found = []
    for path, value, leaf in _claimed(grade, answer, reference):
        evidence = leaf.comparison.evidence if leaf.comparison else ""
        finding = Finding(
            path=path,
            value=value,
            evidence=cast("Literal['better', 'judged_wrong', 'filled_blank']", evidence),
            model=model,
            rationale=leaf.comparison.note if leaf.comparison else "",
            pass_id=pass_id,
        )
        if _fits(reference, finding, schema):
            found.append(finding)
    return found


def _claimed(grade: Grade, answer: JsonValue, reference: JsonValue) -> Iterator[tuple[str, JsonValue, LeafGrade]]:
    lists: dict[str, list[LeafGrade]] = {}
    for leaf in grade.leaves:
        blank = _blank_list(leaf.path, reference)
        if blank is not None:
            lists.setdefault(blank, []).append(leaf)
        elif leaf.comparison is not None and leaf.comparison.evidence:
            yield leaf.path, leaf.candidate, leaf
    for path, leaves in lists.items():
        items = value_at(answer, path)
        refuted = {_index(leaf.path, path) for leaf in leaves if not (leaf.comparison and leaf.comparison.evidence)}
        kept = [item for i, item in enumerate(items if isinstance(items, list) else []) if i not in refuted and item]
        proof = next((leaf for leaf in leaves if leaf.comparison and leaf.comparison.evidence), None)
        if kept and proof is not None:
            yield path, cast("JsonValue", kept), proof


def _blank_list(path: str, reference: JsonValue) -> str | None:
    """The outermost list on a leaf's path that the reference leaves blank."""
    for match in re.finditer(r"\[\d+\]", path):
        if is_empty(value_at(reference, path[: match.start()])):
            return path[: match.start()]
    return None


def _index(path: str, owner: str) -> int:
    match = re.match(r"\[(\d+)\]", path[len(owner) :])
    return int(match[1]) if match else -1


def _fits(reference: JsonValue, finding: Finding, schema: JsonObject | None) -> bool:
    changed = copy.deepcopy(reference)
    try:
        set_value(changed, finding.path, finding.value)
    except GoldReferenceError:
        return False
    return schema is None or not violations(changed, schema)
