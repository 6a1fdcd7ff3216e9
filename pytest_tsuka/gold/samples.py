"""A sample that a model invented for a request: there is no reference, so rules and a judge's rubric grade it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from statistics import fmean
from typing import Any

from pytest_tsuka.checks.schemas import violations
from pytest_tsuka.gold.comparison import is_empty
from pytest_tsuka.gold.enrichment import NO_JSON, Grade
from pytest_tsuka.gold.values import normal_text
from pytest_tsuka.text.json_paths import leaves
from pytest_tsuka.text.json_types import JsonObject, JsonValue, json_type

_PLACEHOLDER = re.compile(
    r"(?:a |an |the |your |my |some )?"
    r"(?:string|number|integer|boolean|text|value|example|sample|placeholder|todo|tbd|tba|fixme|foo|bar|baz|qux"
    r"|lorem ipsum.*|x{2,}|n/?a|null|undefined|test|abc|asdf|name|title|description)"
    r"(?: ?(?:here|goes here|value|text|name|string|\d+))?[.!]?"
    r"|\.{2,}|…|<[^>]*>|\{+[^}]*\}+|\[[^\]]*\]|(?:insert|enter|fill in)\b.*"
)
_NAMED_FIELD = re.compile(r"`([^`\s]{1,64})`")
COMPLETENESS = ("asked_fields", "coverage")
"""The sub-scores that make the completeness; all others make the correctness."""


def grade_sample(
    answer: JsonValue, request: str, schema: JsonObject | None = None, rubric: Mapping[str, float] | None = None
) -> Grade:
    """Grades a sample by its rules and, where a judge gave them, its ratings (shares 0..1).

    Completeness is the mean of the asked-for fields and the rubric's coverage, correctness the mean
    of everything else; quality is their harmonic mean as for any scenario. A part that there is
    nothing to apply to (no list, no field asked for by name) is left out.
    """
    if answer is None:
        return Grade((), NO_JSON)
    if not isinstance(answer, dict):
        return Grade((), f"the answer is no JSON object but {json_type(answer)}")
    filled = [(path, value) for path, value in leaves(answer) if not is_empty(value)]
    if not filled:
        return Grade((), "the sample is empty")
    fake = [path for path, value in filled if is_placeholder(value)]
    parts: dict[str, float] = {"no_placeholders": 1 - len(fake) / len(filled)}
    notes = [f"placeholder at {path}" for path in fake[:10]]
    asked = asked_fields(request, schema)
    if asked:
        present = _names(answer)
        lacking = [name for name in asked if normal_text(name) not in present]
        parts["asked_fields"] = 1 - len(lacking) / len(asked)
        notes += [f"asked for and not there: {name}" for name in lacking[:10]]
    consistent, odd = _consistency(answer)
    if consistent is not None:
        parts["consistent_types"] = consistent
        notes += [f"types differ between the items of {path}" for path in odd[:10]]
    parts.update(rubric or {})
    if rubric is None:
        notes.append("rules only: no judge rated it")
    return Grade(
        (),
        schema_problem=(violations(answer, schema) or None) if schema else None,
        subscores=parts,
        recall=fmean([v for k, v in parts.items() if k in COMPLETENESS] or [1.0]),
        precision=fmean(v for k, v in parts.items() if k not in COMPLETENESS),
        notes=tuple(notes),
    )


def is_placeholder(value: JsonValue) -> bool:
    """Whether a value stands for one that was never invented: "string", "TODO", "<name>", "…"."""
    return isinstance(value, str) and _PLACEHOLDER.fullmatch(normal_text(value)) is not None


def asked_fields(request: str, schema: JsonObject | None) -> list[str]:
    """The fields a sample must have: the schema's required ones (or all, if it requires none), and
    those the request names in backticks.
    """
    named = _NAMED_FIELD.findall(request)
    if schema:
        named += schema.get("required") or list(schema.get("properties") or {})
    return list(dict.fromkeys(named))


def _names(value: JsonValue) -> set[str]:
    """Every field name with a value that is not empty, at any depth."""
    found: set[str] = set()
    if isinstance(value, dict):
        for name, inner in value.items():
            if not is_empty(inner):
                found |= {normal_text(name), *_names(inner)}
    elif isinstance(value, list):
        for inner in value:
            found |= _names(inner)
    return found


def _consistency(value: JsonValue) -> tuple[float | None, list[str]]:
    """The share of fields of list items whose JSON type is the same in every item, and those where it is not."""
    kinds: dict[str, set[str]] = {}

    def note(path: str, item: Any) -> None:
        if item is not None:
            kinds.setdefault(path, set()).add(json_type(item))

    def walk(part: JsonValue, path: str, *, in_list: bool) -> None:
        if in_list:
            note(path, part)
        if isinstance(part, dict):
            for name, inner in part.items():
                walk(inner, f"{path}.{name}" if path else name, in_list=in_list)
        elif isinstance(part, list):
            for inner in part:
                walk(inner, f"{path}[]", in_list=True)

    walk(value, "", in_list=False)
    odd = [path for path, found in kinds.items() if len(found) > 1]
    return (1 - len(odd) / len(kinds) if kinds else None), odd
