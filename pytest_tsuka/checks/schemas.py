"""JSON Schema: is it one, and what in a value breaks it. Nothing is fetched: only local references."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pytest_tsuka.text.js_regex import PatternTimeout, find
from pytest_tsuka.text.json_types import JsonValue, shorten

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

Schema = dict[str, Any] | bool


def schema_problem(schema: Schema) -> str | None:
    """Why this is not a valid JSON Schema, or None."""
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for

    try:
        validator_for(schema).check_schema(schema)  # type: ignore[arg-type]  # true and false are schemas
    except SchemaError as error:
        where = "/".join(map(str, error.absolute_path))
        return f"is not a valid JSON Schema{f' at {where}' if where else ''}: {error.message}"
    return None


@lru_cache(maxsize=512)
def _validator(schema_text: str) -> Validator:
    from jsonschema.validators import extend, validator_for
    from referencing import Registry

    schema = json.loads(schema_text)
    bounded = extend(validator_for(schema), {"pattern": _pattern})  # type: ignore[no-untyped-call]
    # An empty registry: a $ref to the network is an error of its own, never a request.
    return bounded(schema, registry=Registry())  # type: ignore[no-any-return]


def _pattern(_validator: Any, pattern: str, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    """The keyword `pattern` in the dialect it is specified in, JavaScript's, and bounded in time."""
    from jsonschema.exceptions import ValidationError

    if isinstance(instance, str) and find(pattern, "u", instance) is None:
        yield ValidationError(f"{shorten(instance)!r} does not match {pattern!r}")


def violations(value: JsonValue, schema: Schema, most: int = 3) -> str:
    """What breaks the schema, the first few with their places; empty when it holds."""
    from jsonschema.exceptions import best_match, relevance

    validator = _validator(json.dumps(schema, sort_keys=True))
    try:
        errors = sorted(validator.iter_errors(value), key=relevance, reverse=True)
    except (RecursionError, PatternTimeout):
        raise
    except Exception as error:  # an unresolvable reference, a pattern Python cannot compile
        return f"the schema could not be evaluated: {type(error).__name__}: {error}"
    if not errors:
        return ""
    shown = [best_match([error]) or error for error in errors[:most]]
    parts = [f"{_place(e.absolute_path)}: {shorten(e.message, 160)}" for e in shown]
    more = f" (and {len(errors) - most} more)" if len(errors) > most else ""
    return "; ".join(parts) + more


def _place(path: Any) -> str:
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else str(step)
    return text or "the document"
