"""The check types a benchmark may use: the built-in ones, and those a plugin adds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import get_args

from pytest_tsuka.checks import json_path, text, tool_calls
from pytest_tsuka.checks.base import Check, Result, Subject
from pytest_tsuka.errors import SettingsError

__all__ = ["BUILT_IN", "Check", "Registry", "Result", "Subject", "check_types"]

Registry = Mapping[str, type[Check]]


def type_name(check: type[Check]) -> str:
    """The name a benchmark uses for this class: the value of its `type: Literal[…]`."""
    names = get_args(check.model_fields["type"].annotation)
    if len(names) != 1 or not isinstance(names[0], str):
        raise SettingsError(f"the check class {check.__qualname__} needs a field like: type: Literal['its_name']")
    return names[0]


def check_types(extra: Iterable[type[Check]] = ()) -> Registry:
    """All check types by name. A name used twice is an error, so that a plugin cannot change a score."""
    found: dict[str, type[Check]] = {}
    for check in (*_BUILT_IN_CLASSES, *extra):
        name = type_name(check)
        if name in found:
            raise SettingsError(
                f"two check types are called {name!r}: {found[name].__qualname__}, {check.__qualname__}"
            )
        found[name] = check
    return MappingProxyType(found)


_BUILT_IN_CLASSES: tuple[type[Check], ...] = (
    text.WordCount,
    text.LineCount,
    text.FirstWord,
    text.LastWord,
    text.Contains,
    text.NotContains,
    text.Regex,
    text.NotRegex,
    text.NotEmpty,
    json_path.JsonValid,
    json_path.JsonPathEquals,
    json_path.JsonPathType,
    json_path.JsonPathLength,
    tool_calls.ToolCalled,
    tool_calls.ToolNotCalled,
    tool_calls.ToolArgEquals,
    tool_calls.ToolArgRegex,
    json_path.JsonSchema,
    json_path.JsonPathRegex,
    json_path.JsonPathExists,
    json_path.JsonPathAbsent,
    tool_calls.ToolArgsValid,
    tool_calls.ToolCalls,
    text.MinWords,
    text.MaxWords,
)

BUILT_IN: Registry = check_types()
