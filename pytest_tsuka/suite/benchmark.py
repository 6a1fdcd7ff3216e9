"""The benchmark file as data: one JSON object with steps, each step with checks."""

from __future__ import annotations

import re
import unicodedata
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SerializeAsAny, field_validator, model_validator

from pytest_tsuka.checks.base import HEAVIEST, Check, offered_names
from pytest_tsuka.checks.schemas import schema_problem
from pytest_tsuka.errors import unknown_name
from pytest_tsuka.text.escape import INVISIBLE

Category = Literal["instruction", "json", "toolCalling"]
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")

_INVISIBLE = re.compile(f"[{INVISIBLE}]")

Weight = Annotated[float, Field(gt=0, le=HEAVIEST, allow_inf_nan=False)]
ToolResult = str | list[str] | dict[str, str]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, populate_by_name=True)


class Step(_Model):
    """One turn: a user message, or the result of the previous step's tool call, and the checks."""

    prompt: Annotated[str, Field(min_length=1)] | None = None
    tool_result: ToolResult | None = Field(default=None, alias="toolResult")
    checks: Annotated[tuple[SerializeAsAny[Check], ...], Field(min_length=1, strict=False)]

    @model_validator(mode="after")
    def _says_something(self) -> Step:
        if self.prompt is None and self.tool_result is None:
            raise ValueError("a step needs a prompt or a toolResult")
        return self


class Benchmark(_Model):
    """One file of a suite. The short form (`prompt` + `checks`) is read as a single step."""

    editor_schema: str | None = Field(default=None, alias="$schema")
    name: Annotated[str, Field(min_length=1)]
    description: str = ""
    category: Category
    weight: Weight = 1.0
    system: str | None = None
    tools: Annotated[tuple[dict[str, Any], ...], Field(strict=False)] = ()
    prompt: Annotated[str, Field(min_length=1)] | None = None
    checks: Annotated[tuple[SerializeAsAny[Check], ...], Field(min_length=1, strict=False)] | None = None
    steps: Annotated[tuple[Step, ...], Field(min_length=1, strict=False)] | None = None

    @field_validator("name")
    @classmethod
    def _usable_in_a_node_id(cls, name: str) -> str:
        bad = [c for c in name if c in "[]@" or unicodedata.category(c) in ("Cc", "Cs") or _INVISIBLE.match(c)]
        if bad or "::" in name or name != name.strip():
            what = repr(bad[0]) if bad else "'::'" if "::" in name else "spaces at its edge"
            suggestion = re.sub(r"[\[\]@:\s]+", "_", _INVISIBLE.sub("", name)).strip("_") or "another_name"
            raise ValueError(f"cannot be part of a test id because of {what}; call it {suggestion!r}")
        return unicodedata.normalize("NFC", name)

    @field_validator("tools")
    @classmethod
    def _valid_tools(cls, tools: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
        for at, tool in enumerate(tools):
            if problem := _tool_problem(tool):
                raise ValueError(f"tool {at} {problem}")
        names = offered_names(tools)
        if twice := next((n for n in names if names.count(n) > 1), None):
            raise ValueError(f"two tools are called {twice!r}")
        return tools

    @model_validator(mode="after")
    def _one_form(self) -> Benchmark:
        if self.steps is not None:
            if self.prompt is not None or self.checks is not None:
                raise ValueError("has both forms: use prompt and checks, or steps, not both")
            first = self.steps[0]
            if first.tool_result is not None:
                raise ValueError("steps[0].toolResult: there is no tool call before the first step")
            if first.prompt is None:
                raise ValueError("steps[0].prompt: the first step needs a prompt")
            self._check_result_names()
        elif self.prompt is None or self.checks is None:
            missing = "prompt" if self.prompt is None else "checks"
            raise ValueError(f"needs {missing} (short form: prompt and checks; long form: steps)")
        return self

    def _check_result_names(self) -> None:
        for at, step in enumerate(self.steps or ()):
            for name in step.tool_result if isinstance(step.tool_result, dict) else ():
                if name not in self.tool_names:
                    raise ValueError(f"steps[{at}].toolResult: {unknown_name('tool', name, self.tool_names)}")

    @cached_property
    def all_steps(self) -> tuple[Step, ...]:
        """The steps, whichever form the file uses."""
        if self.steps is not None:
            return self.steps
        return (Step.model_construct(prompt=self.prompt, tool_result=None, checks=self.checks or ()),)

    @cached_property
    def tool_names(self) -> tuple[str, ...]:
        return offered_names(self.tools)


def _tool_problem(tool: dict[str, Any]) -> str | None:
    """What is wrong with an OpenAI function schema, or None."""
    function = tool.get("function")
    if tool.get("type") != "function" or not isinstance(function, dict):
        return 'must be {"type": "function", "function": {"name": …, "parameters": …}}'
    name = function.get("name")
    if not isinstance(name, str) or not TOOL_NAME.fullmatch(name):
        return f"has the name {name!r}: servers reject a request whose tool names do not match ^{TOOL_NAME.pattern}$"
    parameters = function.get("parameters")
    if parameters is None:
        return None
    if not isinstance(parameters, dict):
        return f"({name}): parameters must be a JSON Schema object"
    if parameters.get("type", "object") != "object":
        return f"({name}): parameters must describe an object, not {parameters['type']!r}"
    if problem := schema_problem(parameters):
        return f"({name}): parameters {problem}"
    return None
