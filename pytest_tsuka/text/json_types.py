"""Names for JSON values, and the JSON type of a value (a boolean is not a number)."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any, TypeAlias, TypeGuard, Union

JsonValue: TypeAlias = Union[bool, int, float, str, "list[JsonValue]", "dict[str, JsonValue]", None]
JsonObject: TypeAlias = dict[str, Any]
"""A JSON object. Its values are JsonValue; spelt Any, since dict is invariant and callers pass literals."""

JSON_TYPES = ("string", "number", "integer", "boolean", "array", "object", "null")


class _Absent:
    """The value of a path that leads nowhere: not null, and equal to nothing."""

    def __repr__(self) -> str:
        return "absent"


ABSENT = _Absent()
Found: TypeAlias = JsonValue | _Absent


def is_absent(value: object) -> TypeGuard[_Absent]:
    return value is ABSENT


def json_type(value: Found) -> str:
    """`string`, `number`, `boolean`, `array`, `object`, `null`, or `absent`."""
    match value:
        case _Absent():
            return "absent"
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"


def is_integer(value: Found) -> bool:
    """True for a number without a fraction: 4 and 4.0, never a boolean."""
    return (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, float) and value.is_integer())


def finite(value: Any) -> Any:
    """The value with null for every number that JSON cannot say."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: finite(member) for key, member in value.items()}
    return [finite(member) for member in value] if isinstance(value, list) else value


def digest(value: Any) -> str:
    """SHA-256 of a JSON value, in hexadecimal, whatever the order of its keys."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def shown(value: Found, limit: int = 80) -> str:
    """A value as JSON for a message, shortened in the middle."""
    if is_absent(value):
        return "absent"
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (ValueError, TypeError, RecursionError) as error:
        text = f"<{json_type(value)}: {error}>"
    return shorten(text, limit)


def shorten(text: str, limit: int = 80) -> str:
    """At most `limit` characters, the middle cut out with its length named."""
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    tail = limit - head
    return f"{text[:head]} …[{len(text) - limit} more]… {text[-tail:]}"
