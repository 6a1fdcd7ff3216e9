"""Checks on the JSON in the answer."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import JsonValue, field_validator, model_validator

from pytest_tsuka.checks.base import Check, Count, Flags, Path, Pattern, Result, Subject, compiles, search
from pytest_tsuka.checks.schemas import Schema, schema_problem, violations
from pytest_tsuka.text.json_find import NoJson
from pytest_tsuka.text.json_paths import equal, look_up
from pytest_tsuka.text.json_types import ABSENT, JSON_TYPES, Found, is_absent, is_integer, json_type, shown
from pytest_tsuka.text.normalise import normalise


class JsonValid(Check):
    """The answer holds JSON; strict: the whole answer is JSON, unrepaired."""

    type: Literal["json_valid"]
    strict: bool = False

    def evaluate(self, subject: Subject) -> Result:
        found = subject.json
        if isinstance(found, NoJson):
            return Result(False, f"expected JSON: {found.reason}")
        if self.strict and not found.clean:
            return Result(False, f"expected nothing but JSON, needed: {', '.join(found.notes)}")
        notes = f" ({', '.join(found.notes)})" if found.notes else ""
        return Result(True, f"JSON {json_type(found.value)}{notes}")


def _nowhere(subject: Subject, path: str, expected: str) -> str:
    """Why there is no value at a path: no JSON at all, or where the path leaves the document."""
    found = subject.json
    where = path or "the document"
    if isinstance(found, NoJson):
        return f"expected {expected} at {where}, found no JSON: {found.reason}"
    return f"expected {expected} at {where}, found nothing there in {shown(found.value)}"


def _value_at(subject: Subject, path: str) -> Found:
    found = subject.json
    return ABSENT if isinstance(found, NoJson) else look_up(found.value, path)


def difference(found: Found, expected: JsonValue) -> str:
    """Expected and found, with both JSON types where these differ."""
    left, right = json_type(found), json_type(expected)
    if left == right:
        return f"expected {shown(expected)}, found {shown(found)}"
    hint = ""
    if left == "string" and right in ("array", "object"):
        hint = f"; a string that holds JSON is no {right}" if str(found).lstrip()[:1] in "[{" else ""
    return f"expected {shown(expected)} ({right}), found {shown(found)} ({left}){hint}"


class JsonPathEquals(Check):
    """The value at the path equals this one, type included; lenient also takes "5" for 5."""

    type: Literal["json_path_equals"]
    path: Path
    value: JsonValue
    lenient: bool = False

    def evaluate(self, subject: Subject) -> Result:
        found = _value_at(subject, self.path)
        if is_absent(found):
            return Result(False, _nowhere(subject, self.path, shown(self.value)))
        if equal(found, self.value, lenient=self.lenient, written=True):
            return Result(True, f"{self.path or 'the document'} is {shown(found)}")
        return Result(False, f"{self.path or 'the document'}: {difference(found, self.value)}")


class JsonPathType(Check):
    """The value at the path has this JSON type (a boolean is no number, null no object, 4.0 an integer)."""

    type: Literal["json_path_type"]
    path: Path
    value: Literal["string", "number", "integer", "boolean", "array", "object", "null"]

    def evaluate(self, subject: Subject) -> Result:
        found = _value_at(subject, self.path)
        if is_absent(found):
            return Result(False, _nowhere(subject, self.path, f"a value of type {self.value}"))
        kind = json_type(found)
        passed = is_integer(found) if self.value == "integer" else kind == self.value
        return Result(passed, f"{self.path or 'the document'}: expected type {self.value}, found {kind} {shown(found)}")


class JsonPathLength(Check):
    """The array at the path has this many items."""

    type: Literal["json_path_length"]
    path: Path
    value: Count

    def evaluate(self, subject: Subject) -> Result:
        found = _value_at(subject, self.path)
        where = self.path or "the document"
        if is_absent(found):
            return Result(False, _nowhere(subject, self.path, f"an array of {self.value}"))
        if not isinstance(found, list):
            kind = json_type(found)
            return Result(False, f"{where}: expected an array of {self.value}, found {kind} {shown(found)}")
        return Result(
            len(found) == self.value,
            f"{where}: expected {self.value} items, found {len(found)} in {shown(found)}",
        )


class JsonPathRegex(Check):
    """The pattern is found in the value at the path (a string as it is, anything else as JSON)."""

    type: Literal["json_path_regex"]
    path: Path
    value: Pattern
    flags: Flags = ""

    @model_validator(mode="after")
    def _compile(self) -> JsonPathRegex:
        compiles(self.value, self.flags)
        return self

    def evaluate(self, subject: Subject) -> Result:
        found = _value_at(subject, self.path)
        if is_absent(found):
            return Result(False, _nowhere(subject, self.path, f"a match of /{self.value}/{self.flags}"))
        text = normalise(found) if isinstance(found, str) else shown(found, 1_000_000)
        return search(self.value, self.flags, text, self.path or "the document")


class JsonPathExists(Check):
    """The path leads to a value, which may be null."""

    type: Literal["json_path_exists"]
    path: Path

    def evaluate(self, subject: Subject) -> Result:
        found = _value_at(subject, self.path)
        if is_absent(found):
            return Result(False, _nowhere(subject, self.path, "a value"))
        return Result(True, f"{self.path or 'the document'} is {shown(found)}")


class JsonPathAbsent(Check):
    """The answer holds JSON and the path leads nowhere in it."""

    type: Literal["json_path_absent"]
    path: Path
    negative: ClassVar[bool] = True

    def evaluate(self, subject: Subject) -> Result:
        found = _value_at(subject, self.path)
        if isinstance(subject.json, NoJson):
            return Result(False, _nowhere(subject, self.path, "JSON without a value"))
        if is_absent(found):
            return Result(True, f"nothing at {self.path}")
        return Result(False, f"expected nothing at {self.path or 'the document'}, found {shown(found)}")


class JsonSchema(Check):
    """The answer's JSON satisfies this JSON Schema."""

    type: Literal["json_schema"]
    value: Schema

    @field_validator("value")
    @classmethod
    def _is_schema(cls, value: Schema) -> Schema:
        if problem := schema_problem(value):
            raise ValueError(problem)
        return value

    def evaluate(self, subject: Subject) -> Result:
        found = subject.json
        if isinstance(found, NoJson):
            return Result(False, f"expected JSON for the schema: {found.reason}")
        broken = violations(found.value, self.value)
        return Result(not broken, "satisfies the schema" if not broken else f"breaks the schema: {broken}")


assert set(JsonPathType.model_fields["value"].annotation.__args__) == set(JSON_TYPES)  # type: ignore[union-attr]
