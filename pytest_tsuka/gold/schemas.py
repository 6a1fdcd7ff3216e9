"""A JSON Schema that a model wrote, graded against a reference schema and the samples it was made from.

Properties are matched as a set: by name whatever its case and separators, then by a similar name or
description. Each gives credit for being there and for its type, format, enum, whether it is
required, and what is nested in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_tsuka.checks.schemas import schema_problem, violations
from pytest_tsuka.gold.assignment import SAME_ITEM
from pytest_tsuka.gold.comparison import Comparison, Vectors, compare
from pytest_tsuka.gold.enrichment import NO_JSON, Grade, LeafGrade, Status
from pytest_tsuka.gold.fields import Field, resolved
from pytest_tsuka.gold.reference import Finding
from pytest_tsuka.gold.values import normal_text
from pytest_tsuka.text.json_types import JsonObject, JsonValue

RELATED_TYPE = 0.5
"""The credit of a type that holds part of the reference's values: integer for number, string for string or null."""


def grade_schema(
    answer: JsonValue,
    reference: JsonObject,
    samples: Sequence[JsonValue],
    *,
    vectors: Vectors | None = None,
    threshold: float = 1.0,
) -> Grade:
    """Grades a schema. One that is not valid has quality 0; else quality is scaled by the share of samples accepted."""
    if answer is None:
        return Grade(_leaves({}, reference, vectors, threshold), NO_JSON)
    if not isinstance(answer, dict) or schema_problem(answer):
        problem = "is no object" if not isinstance(answer, dict) else schema_problem(answer)
        return Grade(_leaves({}, reference, vectors, threshold), f"the answer {problem}")
    broken = [(n, text) for n, sample in enumerate(samples, 1) if (text := violations(sample, answer))]
    accepted = 1 - len(broken) / len(samples) if samples else 1.0
    return Grade(
        _leaves(answer, reference, vectors, threshold),
        schema_problem=f"sample {broken[0][0]} is not accepted: {broken[0][1]}" if broken else None,
        subscores={"samples_accepted": accepted},
        scale=accepted,
    )


def described_texts(schema: JsonValue) -> list[str]:
    """Names and descriptions of a schema's properties: what similarity may have to decide."""
    found: list[str] = []

    def walk(part: Any, depth: int) -> None:
        if not isinstance(part, dict) or depth > 16:
            return
        for name, inner in _properties(part, part).items():
            found.append(name)
            if isinstance(inner, dict) and isinstance(inner.get("description"), str):
                found.append(inner["description"])
            walk(inner, depth + 1)
        walk(part.get("items"), depth + 1)

    walk(schema, 0)
    return list(dict.fromkeys(found))


# --- matching ------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Side:
    """A schema with the root its references start from."""

    schema: Mapping[str, Any]
    root: JsonObject

    @property
    def properties(self) -> Mapping[str, Any]:
        return _properties(self.schema, self.root)

    @property
    def required(self) -> frozenset[str]:
        names = self.schema.get("required")
        return frozenset(n for n in names if isinstance(n, str)) if isinstance(names, list) else frozenset()

    def at(self, name: str) -> _Side:
        return _Side(resolved(self.properties.get(name, {}), self.root), self.root)

    @property
    def items(self) -> _Side:
        return _Side(resolved(self.schema.get("items", {}), self.root), self.root)


def _properties(schema: Mapping[str, Any], root: JsonObject) -> dict[str, Any]:
    found = schema.get("properties")
    return {n: resolved(s, root) for n, s in found.items()} if isinstance(found, dict) else {}


def _leaves(
    answer: JsonObject, reference: JsonObject, vectors: Vectors | None, threshold: float
) -> tuple[LeafGrade, ...]:
    walk = _Walk(vectors, threshold)
    left, right = _Side(resolved(answer, answer), answer), _Side(resolved(reference, reference), reference)
    return tuple(walk.level(left, right, "", 0))


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", normal_text(name))


@dataclass(frozen=True)
class _Walk:
    vectors: Vectors | None
    threshold: float

    def level(self, left: _Side, right: _Side, path: str, depth: int) -> Iterator[LeafGrade]:
        """The leaves of one object's properties and, through `[]`, of a list's items."""
        if depth > 16:
            return
        if right.schema.get("type") == "array" or "items" in right.schema or "items" in left.schema:
            inner = f"{path}[]"
            if "items" in right.schema:
                yield from self._facets(left.items, right.items, inner)
            yield from self.level(left.items, right.items, inner, depth + 1)
        matched = self._match(left.properties, right.properties)
        for name in right.properties:
            place = f"{path}.{name}" if path else name
            other, comparison = matched.get(name, (None, None))
            if other is None or comparison is None:
                yield from _one_sided(right, name, place, "missing")
                continue
            yield LeafGrade(place, place, "matched", 1.0, other, name, comparison)
            yield from self._facets(left.at(other), right.at(name), place)
            same = (other in left.required) == (name in right.required)
            yield _facet(f"{place}.required", other in left.required, name in right.required, float(same))
            yield from self.level(left.at(other), right.at(name), place, depth + 1)
        taken = {other for other, _ in matched.values()}
        for name in left.properties:
            if name not in taken:
                yield from _one_sided(left, name, f"{path}.{name}" if path else name, "hallucinated")

    def _match(self, left: Mapping[str, Any], right: Mapping[str, Any]) -> dict[str, tuple[str, Comparison]]:
        """Reference name to answer name: by name, then by what names and descriptions mean."""
        found: dict[str, tuple[str, Comparison]] = {}
        by_name = {_plain(name): name for name in reversed(list(left))}
        for name in right:
            exact = name if name in left else by_name.get(_plain(name))
            if exact is not None and exact not in {other for other, _ in found.values()}:
                found[name] = (exact, Comparison("exact", 1.0))
        open_right = [n for n in right if n not in found]
        open_left = [n for n in left if n not in {other for other, _ in found.values()}]
        if open_right and open_left:
            found.update(self._by_meaning(open_left, open_right, left, right))
        return found

    def _by_meaning(
        self, open_left: list[str], open_right: list[str], left: Mapping[str, Any], right: Mapping[str, Any]
    ) -> dict[str, tuple[str, Comparison]]:
        import numpy as np
        from scipy.optimize import linear_sum_assignment

        table = [[self._alike(a, b, left[a], right[b]) for b in open_right] for a in open_left]
        credit = np.array([[c.credit for c in row] for row in table])
        return {
            open_right[j]: (open_left[i], table[i][j])
            for i, j in zip(*linear_sum_assignment(credit, maximize=True), strict=True)
            if credit[i, j] >= SAME_ITEM
        }

    def _alike(self, a: str, b: str, left: Mapping[str, Any], right: Mapping[str, Any]) -> Comparison:
        said = (left.get("description"), right.get("description"))
        by_name = compare(a, b, Field("", "text"), vectors=self.vectors, threshold=self.threshold)
        if by_name.credit or not all(isinstance(text, str) and text for text in said):
            return by_name
        return compare(*said, Field("", "text"), vectors=self.vectors, threshold=self.threshold)

    @staticmethod
    def _facets(left: _Side, right: _Side, place: str) -> Iterator[LeafGrade]:
        """Type, format and enumeration of one property. What only the answer says costs nothing."""
        a, b = _types(left.schema), _types(right.schema)
        if b:
            yield _facet(f"{place}.type", sorted(a), sorted(b), _type_credit(a, b)) if a else _lost(f"{place}.type", b)
        if "format" in right.schema:
            mine, due = left.schema.get("format"), right.schema["format"]
            path = f"{place}.format"
            yield _facet(path, mine, due, float(mine == due)) if mine is not None else _lost(path, due)
        if values := _enum(right.schema):
            own = _enum(left.schema)
            shared = len(own.keys() & values.keys()) / len(own.keys() | values.keys())
            both = ([*own.values()], [*values.values()])
            yield _facet(f"{place}.enum", *both, shared) if own else _lost(f"{place}.enum", both[1])


def _types(schema: Mapping[str, Any]) -> set[str]:
    kinds = schema.get("type")
    if kinds is None and "properties" in schema:
        return {"object"}
    return {str(k) for k in (kinds if isinstance(kinds, list) else [kinds]) if k is not None}


def _type_credit(a: set[str], b: set[str]) -> float:
    if a == b:
        return 1.0
    wide = [{"number" if kind == "integer" else kind for kind in kinds} - {"null"} for kinds in (a, b)]
    return RELATED_TYPE if wide[0] == wide[1] else 0.0


def _enum(schema: Mapping[str, Any]) -> dict[str, JsonValue]:
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    return {normal_text(str(v)): v for v in values} if isinstance(values, list) else {}


def _facet(path: str, candidate: Any, reference: Any, credit: float) -> LeafGrade:
    status: Status = "matched" if credit >= 1 else "partial" if credit > 0 else "mismatch"
    return LeafGrade(path, path, status, 1.0, candidate, reference, Comparison("exact", credit))


def _lost(path: str, reference: Any) -> LeafGrade:
    return LeafGrade(
        path, path, "missing", 1.0, reference=sorted(reference) if isinstance(reference, set) else reference
    )


def _one_sided(owner: _Side, name: str, place: str, status: Status, depth: int = 0) -> Iterator[LeafGrade]:
    """A property that only one of the two has, and all that is nested in it: each once, and its type."""
    own = owner.at(name)

    def leaf(path: str, value: Any) -> LeafGrade:
        candidate, reference = (value, None) if status == "hallucinated" else (None, value)
        return LeafGrade(path, path, status, 1.0, candidate, reference)

    yield leaf(place, name)
    if kinds := _types(own.schema):
        yield leaf(f"{place}.type", sorted(kinds))
    inner, prefix = own, place
    while "items" in inner.schema and depth < 16:
        inner, prefix, depth = inner.items, f"{prefix}[]", depth + 1
    if depth < 16:
        for nested in inner.properties:
            yield from _one_sided(inner, nested, f"{prefix}.{nested}", status, depth + 1)


# --- what samples prove --------------------------------------------------------------------


def sample_findings(
    answer: JsonValue, reference: JsonObject, samples: Sequence[JsonValue], model: str, pass_id: str
) -> list[Finding]:
    """Where the samples themselves contradict the reference and the answer has it right."""
    if not isinstance(answer, dict) or schema_problem(answer):
        return []
    found: list[Finding] = []

    def finding(path: str, value: Any, why: str) -> None:
        found.append(Finding(path=path, value=value, evidence="samples", model=model, rationale=why, pass_id=pass_id))

    def walk(left: Any, right: Any, values: Sequence[JsonValue], path: str, depth: int) -> None:
        if not isinstance(left, dict) or not isinstance(right, dict) or depth > 16:
            return
        for keyword in ("type", "enum"):
            if keyword in right and keyword in left and path:
                wrong = [v for v in values if violations(v, {keyword: right[keyword]})]
                if wrong and not any(violations(v, {keyword: left[keyword]}) for v in values):
                    finding(f"{path}{keyword}", left[keyword], f"a sample has {wrong[0]!r} here")
        objects = [v for v in values if isinstance(v, dict)]
        required = right.get("required")
        if isinstance(required, list) and objects:
            always = [n for n in required if all(n in v for v in objects)]
            mine = left.get("required")
            if always != required and not set(mine if isinstance(mine, list) else []) - set(always):
                finding(f"{path}required", always, "a sample lacks a field that is required here")
        own, theirs = right.get("properties"), left.get("properties")
        if isinstance(own, dict) and isinstance(theirs, dict):
            for name, schema in theirs.items():
                seen = [v[name] for v in objects if name in v]
                if not seen or not re.fullmatch(r"\w+", name):
                    continue
                if name in own:
                    walk(schema, own[name], seen, f"{path}properties.{name}.", depth + 1)
                elif not any(violations(v, schema) for v in seen):
                    finding(f"{path}properties.{name}", schema, "the samples have this field")
        if isinstance(right.get("items"), dict):
            inner = [i for v in values if isinstance(v, list) for i in v]
            if inner:
                walk(left.get("items"), right["items"], inner, f"{path}items.", depth + 1)

    walk(answer, reference, samples, "", 0)
    return found
