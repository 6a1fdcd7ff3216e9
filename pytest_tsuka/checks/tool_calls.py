"""Checks on the tool calls of the turn."""

from __future__ import annotations

import json
from abc import abstractmethod
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from pytest_tsuka.checks.base import (
    Check,
    Count,
    Flags,
    NonEmpty,
    Path,
    Pattern,
    Result,
    Subject,
    compiles,
    search,
)
from pytest_tsuka.checks.json_path import difference
from pytest_tsuka.checks.schemas import violations
from pytest_tsuka.conversation import ToolCall
from pytest_tsuka.errors import closest
from pytest_tsuka.text.json_paths import equal, look_up
from pytest_tsuka.text.json_types import is_absent, shorten, shown

WhichCall = Literal["any"] | Count
ArgumentPath = Annotated[Path, Field(min_length=1)]


def described(call: ToolCall) -> str:
    """A call for a message: name and arguments, shortened."""
    arguments = call.raw_arguments if call.arguments is None else json.dumps(call.arguments, ensure_ascii=False)
    return f"{call.name}({shorten(arguments, 100)})"


def calls_made(subject: Subject) -> str:
    """What was called instead, for a failure: the calls, or that one was only written as text."""
    if subject.calls:
        return ", ".join(described(call) for call in subject.calls[:5])
    if subject.reply.text_calls:
        written = ", ".join(described(call) for call in subject.reply.text_calls[:3])
        return f"no tool call; {written} was written as text, which no agent could have executed"
    return "no tool call"


class _OnCall(Check):
    """A check on the first call, on the n-th (`call: n`, from 0), or on some call (`call: "any"`)."""

    call: WhichCall = 0

    def candidates(self, subject: Subject) -> tuple[ToolCall, ...]:
        if self.call == "any":
            return subject.calls
        index = int(self.call)
        return subject.calls[index : index + 1]

    @property
    def which(self) -> str:
        if self.call == "any":
            return "some call"
        return "the first call" if self.call == 0 else f"call {self.call}"

    def first_passing(self, subject: Subject) -> Result:
        """The first candidate that passes; else the first candidate's reason, or that there is none."""
        results = [self.judge(call, subject) for call in self.candidates(subject)]
        if not results:
            return Result(False, f"expected {self.wanted()} as {self.which}, found {calls_made(subject)}")
        return next((r for r in results if r.passed), results[0])

    @abstractmethod
    def judge(self, call: ToolCall, subject: Subject) -> Result:
        """Whether this call passes."""

    @abstractmethod
    def wanted(self) -> str:
        """What is looked for, for the failure that there is no call at all."""

    def evaluate(self, subject: Subject) -> Result:
        return self.first_passing(subject)


class ToolCalled(_OnCall):
    """The first tool call (or `call`) has this name."""

    type: Literal["tool_called"]
    value: NonEmpty

    def wanted(self) -> str:
        return f"a call of {self.value!r}"

    def judge(self, call: ToolCall, subject: Subject) -> Result:
        if call.name == self.value:
            return Result(True, f"called {described(call)}")
        hint = ""
        if call.name not in subject.offered and (near := closest(call.name, subject.offered)):
            hint = f" (unknown tool {call.name!r}, closest offered: {near!r})"
        return Result(False, f"expected {self.wanted()} as {self.which}, found {calls_made(subject)}{hint}")


class ToolNotCalled(Check):
    """No call of this turn has this name; without a value: no tool was called at all."""

    type: Literal["tool_not_called"]
    value: NonEmpty | None = None
    negative: ClassVar[bool] = True

    def evaluate(self, subject: Subject) -> Result:
        made = [call for call in subject.calls if self.value is None or call.name == self.value]
        what = "no tool call" if self.value is None else f"no call of {self.value!r}"
        if made:
            return Result(False, f"expected {what}, found {', '.join(described(call) for call in made[:5])}")
        note = " (one was written as text)" if subject.reply.text_calls else ""
        return Result(True, f"{what}{note}")


class ToolArgEquals(_OnCall):
    """An argument of the first call (or `call`) equals this value, type included."""

    type: Literal["tool_arg_equals"]
    arg: ArgumentPath
    value: JsonValue
    lenient: bool = False

    def wanted(self) -> str:
        return f"a call with {self.arg} = {shown(self.value)}"

    def judge(self, call: ToolCall, subject: Subject) -> Result:
        if call.arguments is None:
            return Result(False, f"argument {self.arg!r} of {call.name!r}: {call.problem}")
        found = look_up(call.arguments, self.arg)
        if is_absent(found):
            return Result(False, _missing(self.arg, shown(self.value), call))
        if equal(found, self.value, lenient=self.lenient):
            return Result(True, f"{self.arg} is {shown(found)}")
        return Result(False, f"argument {self.arg!r} of {call.name!r}: {difference(found, self.value)}")


def _missing(arg: str, expected: str, call: ToolCall) -> str:
    names = list(call.arguments or {})
    near = closest(arg, names)
    hint = f" (closest: {near!r})" if near else ""
    return f"expected {arg} = {expected}, {described(call)} has no argument {arg!r}{hint}"


class ToolArgRegex(_OnCall):
    """The pattern is found in an argument (a string as it is, anything else as JSON); flag i by default."""

    type: Literal["tool_arg_regex"]
    arg: ArgumentPath
    value: Pattern
    flags: Flags = "i"

    @model_validator(mode="after")
    def _compile(self) -> ToolArgRegex:
        compiles(self.value, self.flags)
        return self

    def wanted(self) -> str:
        return f"a call whose {self.arg} matches /{self.value}/{self.flags}"

    def judge(self, call: ToolCall, subject: Subject) -> Result:
        if call.arguments is None:
            return Result(False, f"argument {self.arg!r} of {call.name!r}: {call.problem}")
        found = look_up(call.arguments, self.arg)
        if is_absent(found):
            return Result(False, _missing(self.arg, f"/{self.value}/{self.flags}", call))
        text = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
        return search(self.value, self.flags, text, f"argument {self.arg!r} of {call.name!r}")


class ToolArgsValid(_OnCall):
    """The call's arguments satisfy the offered tool's own schema: none invented, none missing, right types."""

    type: Literal["tool_args_valid"]

    def wanted(self) -> str:
        return "a call with valid arguments"

    def judge(self, call: ToolCall, subject: Subject) -> Result:
        if call.name not in subject.offered:
            near = closest(call.name, subject.offered)
            hint = f" (closest offered: {near!r})" if near else ""
            return Result(False, f"{call.name!r} was never offered{hint}")
        if call.arguments is None:
            return Result(False, f"call of {call.name!r}: {call.problem}")
        broken = violations(call.arguments, _parameters(subject, call.name))
        if broken:
            return Result(False, f"arguments of {described(call)} break the tool's schema: {broken}")
        return Result(True, f"{described(call)} satisfies the tool's schema")


def _parameters(subject: Subject, name: str) -> dict[str, Any]:
    """The tool's parameter schema; an argument it does not list is an invented one."""
    tool: Any = subject.tools[subject.offered.index(name)]
    schema: dict[str, Any] = dict(tool["function"].get("parameters") or {"type": "object"})
    combines = {
        "additionalProperties",
        "unevaluatedProperties",
        "patternProperties",
        "allOf",
        "anyOf",
        "oneOf",
        "$ref",
    }
    if not combines & schema.keys():
        schema["additionalProperties"] = False
    return schema


class ExpectedCall(BaseModel):
    """One call of a set: its name, and its arguments if they matter."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)
    name: NonEmpty
    arguments: dict[str, JsonValue] | None = None

    def accepts(self, call: ToolCall, *, lenient: bool) -> bool:
        if call.name != self.name:
            return False
        if self.arguments is None:
            return True
        arguments: JsonValue = dict(self.arguments)
        return call.arguments is not None and equal(call.arguments, arguments, lenient=lenient)


class ToolCalls(Check):
    """The calls of the turn are exactly this set, in any order, each expected call once."""

    type: Literal["tool_calls"]
    value: tuple[ExpectedCall, ...] = Field(strict=False)
    lenient: bool = False

    def evaluate(self, subject: Subject) -> Result:
        if not self.value and subject.reply.empty:
            return Result(False, "nothing was said: an empty reply earns no point for what it lacks")
        pairs = self._pairs(subject.calls)
        missing = [e for i, e in enumerate(self.value) if i not in pairs.values()]
        extra = [call for i, call in enumerate(subject.calls) if i not in pairs]
        if not missing and not extra:
            return Result(True, f"the calls are {calls_made(subject)}")
        parts = []
        if missing:
            parts.append("missing " + ", ".join(shown(_plain(e)) for e in missing))
        if extra:
            parts.append("not expected " + ", ".join(described(call) for call in extra))
        return Result(False, f"{'; '.join(parts)}; found {calls_made(subject)}")

    def _pairs(self, calls: tuple[ToolCall, ...]) -> dict[int, int]:
        """Call index → expected index, as many pairs as possible (augmenting paths)."""
        paired: dict[int, int] = {}

        def place(expected: int, tried: set[int]) -> bool:
            for at, call in enumerate(calls):
                if at in tried or not self.value[expected].accepts(call, lenient=self.lenient):
                    continue
                tried.add(at)
                if at not in paired or place(paired[at], tried):
                    paired[at] = expected
                    return True
            return False

        for expected in range(len(self.value)):
            place(expected, set())
        return paired


def _plain(expected: ExpectedCall) -> JsonValue:
    plain: dict[str, JsonValue] = expected.model_dump(mode="json", exclude_none=True)
    return plain
