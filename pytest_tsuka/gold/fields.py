"""What the schema and the scoring say about a field: how its values compare and what they weigh."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pytest_tsuka.errors import SettingsError, unknown_name
from pytest_tsuka.text.json_types import JsonObject

Kind = Literal["text", "free_text", "number", "boolean", "date", "code", "any"]

STRICTNESS: Mapping[str, float] = {"lenient": 0.80, "balanced": 0.88, "strict": 0.95}
"""Cosine thresholds for an embedder without a calibration of its own."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of the answer; list items are written `cast[]`, their fields `cast[].name`."""

    path: str
    kind: Kind = "any"
    weight: float = 1.0
    tolerance: float = 0.0
    day_first: bool | None = None
    decimal_comma: bool | None = None
    unit: str = ""
    in_schema: bool = True


@dataclass(frozen=True)
class Scoring:
    """How a scenario is scored, the same for every model.

    `threshold` is the cosine from which two short texts are the same; the rest maps field paths to
    weights, relative tolerances and, for lists of objects, the fields that say which item it is.
    """

    threshold: float = STRICTNESS["balanced"]
    field_weights: Mapping[str, float] = field(default_factory=dict)
    free_text: frozenset[str] = frozenset()
    tolerance: Mapping[str, float] = field(default_factory=dict)
    identity: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def threshold_of(strictness: str | float) -> float:
    """The cosine of a strictness by name, or the number itself. Raises SettingsError."""
    if isinstance(strictness, str):
        if strictness not in STRICTNESS:
            raise SettingsError(unknown_name("strictness", strictness, STRICTNESS))
        return STRICTNESS[strictness]
    if not 0.0 <= strictness <= 1.0:
        raise SettingsError(f"a strictness must be a cosine from 0 to 1, found {strictness}")
    return strictness


_CODE_FORMATS = {
    "uri",
    "uri-reference",
    "iri",
    "email",
    "idn-email",
    "uuid",
    "hostname",
    "ipv4",
    "ipv6",
    "time",
    "duration",
}


class Fields:
    """Looks up the Field of a path, from the schema where it says something, else with what the value shows."""

    def __init__(self, schema: JsonObject | None, scoring: Scoring) -> None:
        self._schema = schema
        self._scoring = scoring
        self._known: dict[str, Field] = {}

    def at(self, path: str) -> Field:
        if path not in self._known:
            self._known[path] = self._make(path)
        return self._known[path]

    def identity(self, path: str) -> tuple[str, ...]:
        """The fields that say which item of a list of objects it is."""
        return self._scoring.identity.get(path, ())

    def _make(self, path: str) -> Field:
        schema = _schema_at(self._schema, path) if self._schema is not None else {}
        scoring = self._scoring
        return Field(
            path=path,
            kind="free_text" if path in scoring.free_text else _kind(schema or {}),
            weight=scoring.field_weights.get(path, 1.0),
            tolerance=scoring.tolerance.get(path, 0.0),
            day_first=_flag(schema, "x-dayFirst"),
            decimal_comma=_flag(schema, "x-decimalComma"),
            unit=str((schema or {}).get("x-unit", "")),
            in_schema=schema is not None,
        )


def fields_of(schema: JsonObject | None, scoring: Scoring | None = None) -> Fields:
    """The fields of a scenario's schema under its scoring."""
    return Fields(schema, scoring or Scoring())


def _flag(schema: JsonObject | None, name: str) -> bool | None:
    value = (schema or {}).get(name)
    return value if isinstance(value, bool) else None


def _kind(schema: JsonObject) -> Kind:
    kinds = schema.get("type")
    names = [k for k in (kinds if isinstance(kinds, list) else [kinds]) if k != "null"]
    if "enum" in schema or "const" in schema or schema.get("format") in _CODE_FORMATS:
        return "code"
    if schema.get("format") in ("date", "date-time"):
        return "date"
    match names:
        case ["number"] | ["integer"] | ["integer", "number"] | ["number", "integer"]:
            return "number"
        case ["boolean"]:
            return "boolean"
        case ["string"]:
            return "text"
    return "any"


def _schema_at(schema: JsonObject, path: str) -> JsonObject | None:
    """The subschema of a path; None when the schema names its fields and this one is not among them."""
    found: Any = resolved(schema, schema)
    for step in re.findall(r"\[\]|[^.\[\]]+", path):
        if step == "[]":
            found = resolved(found.get("items", {}), schema)
        else:
            properties = found.get("properties")
            if isinstance(properties, dict) and step in properties:
                found = resolved(properties[step], schema)
            elif isinstance(properties, dict) and found.get("additionalProperties") in (None, False):
                return None
            else:
                found = resolved(found.get("additionalProperties", {}), schema)
    return dict(found)


def field_paths(schema: JsonObject, most: int = 2000) -> list[str]:
    """Every field that a schema names, list items as `cast[]`, parents before their members."""
    found: list[str] = []
    todo: list[tuple[str, Any, int]] = [("", schema, 0)]
    while todo and len(found) < most:
        path, part, depth = todo.pop(0)
        part = resolved(part, schema)
        if path and path not in found:
            found.append(path)
        if depth > 12:  # a schema that refers to itself
            continue
        for name, inner in (part.get("properties") or {}).items():
            todo.append((f"{path}.{name}" if path else name, inner, depth + 1))
        if isinstance(part.get("items"), dict):
            todo.append((f"{path}[]", part["items"], depth + 1))
    return found


def describe(schema: JsonObject | None, path: str) -> str:
    """A field's place in the schema, for a judge: each parent with its type and description, then itself."""
    if schema is None:
        return ""
    lines = []
    steps = re.findall(r"\[\]|[^.\[\]]+", path)
    for end in range(len(steps) + 1):
        place = "".join(s if s == "[]" else f".{s}" for s in steps[:end]).removeprefix(".")
        part = _schema_at(schema, place) or {}
        kind = part.get("type")
        said = part.get("description") or part.get("title")
        if (place and (kind or said)) or said:
            name = place or "the whole record"
            kinds = "/".join(map(str, kind)) if isinstance(kind, list) else str(kind or "")
            lines.append(f"{name}{f' ({kinds})' if kinds else ''}{f': {said}' if said else ''}")
    return "\n".join(lines)


def resolved(schema: Any, root: JsonObject) -> JsonObject:
    """A subschema with its local reference followed; `true` and anything unusable is no constraint."""
    for _ in range(16):
        reference = schema.get("$ref") if isinstance(schema, dict) else None
        if not isinstance(reference, str) or not reference.startswith("#"):
            break
        schema = _looked_up(reference, root)
    return schema if isinstance(schema, dict) else {}


def _looked_up(reference: str, root: JsonObject) -> Any:
    """What a local reference points to; nothing where it leads nowhere."""
    from referencing import Registry, Resource
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012

    document: Resource[Any] = DRAFT202012.create_resource(root)
    try:
        return Registry().with_resource("", document).resolver().lookup(reference).contents
    except Unresolvable:
        return {}
