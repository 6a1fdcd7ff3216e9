"""What every check is: a frozen model of its operands with one pure method, `evaluate`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from pytest_tsuka.conversation import Reply, ToolCall
from pytest_tsuka.text.js_regex import PatternError, PatternTimeout, check_flags, compile_pattern, find
from pytest_tsuka.text.json_find import FoundJson, NoJson, find_json
from pytest_tsuka.text.json_paths import PathError, parse_path
from pytest_tsuka.text.json_types import JsonObject, shorten

HEAVIEST = 1e6
"""The heaviest weight: sums of weights stay exact enough, and finite."""


class Result(NamedTuple):
    """Whether a check passed, and the sentence that shows what was expected and what was found."""

    passed: bool
    reason: str


@dataclass(frozen=True)
class Subject:
    """What a check looks at: one reply, the tools that were offered, the JSON in the answer."""

    reply: Reply
    tools: tuple[JsonObject, ...] = field(default=())

    @cached_property
    def json(self) -> FoundJson | NoJson:
        """The JSON of the answer, looked for once however many checks ask.

        In the answer as it was written, so that no string is changed; in the normalised text where
        that has none (no-break spaces are no white space to JSON).
        """
        reply = self.reply
        found = find_json(reply.answer or reply.text, truncated=reply.truncated)
        if isinstance(found, NoJson) and reply.answer.strip() != reply.text:
            return find_json(reply.text, truncated=reply.truncated)
        return found

    @property
    def text(self) -> str:
        return self.reply.text

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return self.reply.tool_calls

    @property
    def offered(self) -> tuple[str, ...]:
        return offered_names(self.tools)


def offered_names(tools: tuple[JsonObject, ...]) -> tuple[str, ...]:
    """The function names of tool schemas, in order."""
    functions = (tool.get("function") for tool in tools)
    return tuple(str(f.get("name", "")) for f in functions if isinstance(f, dict))


class Check(BaseModel, ABC):
    """One declarative check. Subclasses add operands as fields and say when it passes.

    `evaluate` never raises on what a model said: what it cannot evaluate fails with that reason.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)

    type: str
    weight: Annotated[float, Field(gt=0, le=HEAVIEST, allow_inf_nan=False)] = 1.0

    negative: ClassVar[bool] = False
    """True for a check that asks for something to be missing: an empty reply never passes it."""

    @abstractmethod
    def evaluate(self, subject: Subject) -> Result:
        """Whether the reply passes, with a reason that names what was expected and found."""

    def operands(self) -> JsonObject:
        """The operands as written, for reports: everything but type and weight, defaults left out."""
        kept: dict[str, Any] = self.model_dump(
            mode="json", by_alias=True, exclude={"type", "weight"}, exclude_unset=True
        )
        return kept

    @cached_property
    def reported_operands(self) -> JsonObject:
        """`operands`, worked out once for all the replies that the check looks at."""
        return self.operands()

    def apply(self, subject: Subject) -> Result:
        """`evaluate`, guarded: what is no answer earns nothing, nor does silence; an exception is a failed check."""
        if (why := subject.reply.no_answer) is not None:
            return Result(False, shorten(why, 400))
        if self.negative and subject.reply.empty:
            return Result(False, "nothing was said: an empty reply earns no point for what it lacks")
        try:
            return self.evaluate(subject)
        except PatternTimeout as error:
            return Result(False, str(error))
        except RecursionError:
            return Result(False, "the value is nested too deeply to be evaluated")
        except Exception as error:
            # A check from a plugin may have a bug: it costs its own point, not the run.
            return Result(False, f"the check could not be evaluated: {type(error).__name__}: {error}")


def _rejecting(check: Callable[[str], object], error: type[ValueError]) -> Callable[[str], str]:
    def validate(value: str) -> str:
        try:
            check(value)
        except error as reason:
            raise ValueError(str(reason)) from None
        return value

    return validate


Path = Annotated[str, AfterValidator(_rejecting(parse_path, PathError))]
Flags = Annotated[str, AfterValidator(_rejecting(check_flags, PatternError))]
Pattern = Annotated[str, Field(min_length=1)]
NonEmpty = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=0)]


def compiles(pattern: str, flags: str) -> None:
    """Raises ValueError where the pattern cannot be used, for validators at collection."""
    try:
        compile_pattern(pattern, flags)
    except PatternError as error:
        raise ValueError(str(error)) from None


def search(pattern: str, flags: str, text: str, what: str) -> Result:
    """A regex check: found (with the match) or not (with the text)."""
    match = find(pattern, flags, text)
    if match is None:
        return Result(False, f"expected {what} to match /{pattern}/{flags}, found {quoted(text)}")
    return Result(True, f"{what} matches /{pattern}/{flags}: {quoted(match)}")


def quoted(text: str, limit: int = 120) -> str:
    """Model text inside a message: shortened, and in quotes so that its edges are seen."""
    return f"“{shorten(text, limit)}”" if text else "nothing"
