"""What was said: tool calls, replies, turns and whole conversations, as plain frozen data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any

from pytest_tsuka.text.json_types import JsonObject, JsonValue


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts as the endpoint reported them; None is unknown and never 0."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one request, without the time spent waiting to be allowed to send it.

    `service_seconds` and `tokens_per_second` are the server's own figures where it gives them
    (llama.cpp's `timings`), so that a queue at the server is not counted as the model's slowness.
    `began` and `ended` are seconds since the epoch, from when the request was first sent to when it was
    answered, with every attempt and pause between; `at_once` is the most requests of ours that were in
    flight at the endpoint meanwhile (1: it had the endpoint to itself), None where that is not known.
    """

    seconds: float
    first_token_seconds: float | None = None
    service_seconds: float | None = None
    tokens_per_second: float | None = None
    began: float | None = None
    ended: float | None = None
    at_once: int | None = None


@dataclass(frozen=True, slots=True)
class Load:
    """How busy the endpoint was: how often it rejected the request with 429 or 503 before it answered, and
    how many conversations were allowed at once in the end, where rejections had made that fewer than asked for.
    """

    rejections: int = 0
    allowed: int | None = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call. `arguments` is None when they are no object, and `problem` says why."""

    name: str
    arguments: JsonObject | None
    raw_arguments: str
    id: str = ""
    problem: str | None = None
    repaired: bool = False
    as_text: bool = False


_CUT = frozenset({"length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "model_context_window_exceeded"})
REFUSAL_FINISH = "refusal"
FILTER_FINISH = "content_filter"
NO_TOOLS_FINISH = "tools_unsupported"
MALFORMED_FINISH = "malformed_tool_call"
_FILTERED = frozenset(
    {FILTER_FINISH, "content-filter", "safety", "recitation", "blocklist", "prohibited_content", "spii", "sensitive"}
)


@dataclass(frozen=True, slots=True)
class Reply:
    """A normalised reply. `text` is the answer alone, `answer` the same before its characters were
    normalised (JSON is looked for there, so that no string is changed), `raw_text` what was sent.

    `refusal` is what the model said instead of an answer. `finish_reason` is the endpoint's own word, or one
    of the words above for a request that the model itself kept from being answered.
    """

    text: str
    raw_text: str = ""
    answer: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    text_calls: tuple[ToolCall, ...] = ()
    finish_reason: str | None = None
    notes: tuple[str, ...] = ()
    refusal: str = ""

    @property
    def truncated(self) -> bool:
        """Cut by the token limit."""
        return self.finish_reason in _CUT

    @property
    def refused(self) -> bool:
        """The model declined to answer, and said so in the way its API has for that."""
        return bool(self.refusal) or self.finish_reason == REFUSAL_FINISH

    @property
    def filtered(self) -> bool:
        """A filter of the endpoint's kept the answer back."""
        return (self.finish_reason or "").lower() in _FILTERED

    @property
    def malformed_call(self) -> bool:
        """The server could not read the tool call that the model wrote."""
        return self.finish_reason == MALFORMED_FINISH or "MALFORMED_FUNCTION_CALL" in (self.finish_reason or "")

    @property
    def no_tools(self) -> bool:
        """The model cannot be offered tools at this endpoint."""
        return self.finish_reason == NO_TOOLS_FINISH

    @property
    def no_answer(self) -> str | None:
        """Why nothing that was said is an answer, in words; None where it is one."""
        if self.refused:
            return f"the model refused: {self.refusal}" if self.refusal else "the model refused"
        if self.filtered:
            return "a content filter kept the answer back"
        if self.no_tools:
            return "no tool calls at this endpoint"
        if self.malformed_call:
            return "the server could not read the tool call that the model wrote"
        return None

    @property
    def empty(self) -> bool:
        """Neither text nor tool call: nothing at all was said."""
        return not self.text and not self.tool_calls


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its answer, before normalising: what a backend gives back."""

    message: JsonObject
    finish_reason: str | None = None
    usage: Usage = field(default_factory=Usage)
    timing: Timing = field(default_factory=lambda: Timing(0.0))
    attempts: int = 1
    notes: tuple[str, ...] = ()
    load: Load = Load()

    def to_json(self) -> JsonObject:
        return {
            "message": self.message,
            "finish_reason": self.finish_reason,
            "usage": plain(self.usage),
            "timing": plain(self.timing),
            "attempts": self.attempts,
            "notes": list(self.notes),
            "load": plain(self.load),
        }

    @classmethod
    def from_json(cls, data: JsonObject) -> Exchange:
        values: dict[str, Any] = dict(data)
        return cls(
            message=values["message"],
            finish_reason=values["finish_reason"],
            usage=Usage(**values["usage"]),
            timing=Timing(**values["timing"]),
            attempts=values["attempts"],
            notes=tuple(values["notes"]),
            load=Load(**values.get("load", {})),
        )


@dataclass(frozen=True, slots=True)
class Turn:
    """One step as it was played. `reply` is None when the chain broke before it."""

    sent: tuple[JsonObject, ...]
    reply: Reply | None
    exchange: Exchange | None = None
    not_reached: str | None = None


@dataclass(frozen=True, slots=True)
class Conversation:
    """All turns of one benchmark, in the order of its steps."""

    turns: tuple[Turn, ...]

    @property
    def exchanges(self) -> list[Exchange]:
        return [turn.exchange for turn in self.turns if turn.exchange]


def add_known(values: Iterable[float | None]) -> float | None:
    """The sum of the known values, None when none is known (an unknown figure is never 0)."""
    known = [v for v in values if v is not None]
    return sum(known) if known else None


def plain(record: Any) -> JsonObject:
    """A flat dataclass as a JSON object."""
    values: dict[str, JsonValue] = {f.name: getattr(record, f.name) for f in fields(record)}
    return values
