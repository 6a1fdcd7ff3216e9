"""Strict JSON with a bound on nesting, and a note of what JSON itself leaves open."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

from pytest_tsuka.text.brackets import too_deep
from pytest_tsuka.text.json_types import JsonObject, JsonValue


@dataclass(frozen=True, slots=True)
class Parsed:
    """A parsed JSON text and what was odd about it (duplicate keys, NaN, one layer of encoding)."""

    value: JsonValue
    flags: tuple[str, ...] = ()


class _TooDeep(ValueError):
    pass


class StrictParser:
    """json.loads with a bound on nesting, and a note of what JSON itself leaves open."""

    def __init__(self) -> None:
        self.flags: list[str] = []
        self._decoder = json.JSONDecoder(
            object_pairs_hook=self._object, parse_constant=self._constant, parse_float=self._float
        )

    def _object(self, pairs: list[tuple[str, JsonValue]]) -> JsonObject:
        made: JsonObject = dict(pairs)
        if len(made) < len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    self.flags.append(f"duplicate key {key!r}, the last value counts")
                seen.add(key)
        return made

    def _constant(self, token: str) -> None:
        self.flags.append(f"{token} is not JSON, read as null")

    def _float(self, token: str) -> float | None:
        number = float(token)
        if math.isinf(number):
            self.flags.append(f"{token[:20]} is beyond the range of a number, read as null")
            return None
        return number

    def at(self, text: str, start: int) -> tuple[JsonValue, int]:
        """(value, end). Raises ValueError (JSONDecodeError has the place)."""
        try:
            return self._decoder.raw_decode(text, start)
        except RecursionError:
            raise _TooDeep("nested too deeply") from None


def parse_whole(text: str) -> Parsed | None:
    """The whole text as JSON, or None. NaN and Infinity become null, flagged."""
    parser = StrictParser()
    if too_deep(text):
        return None
    try:
        value, end = parser.at(text, 0)
    except ValueError:
        return None
    if text[end:].strip(" \t\n\r"):
        return None
    return Parsed(value, tuple(dict.fromkeys(parser.flags)))
