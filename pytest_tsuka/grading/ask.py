"""One answer to a scenario: what is sent, and the JSON found in what came back."""

from __future__ import annotations

from pytest_tsuka.checks.base import Subject
from pytest_tsuka.protocols import Backend, Request
from pytest_tsuka.runner.reply import read_reply
from pytest_tsuka.store.records import Output
from pytest_tsuka.text.json_find import FoundJson
from pytest_tsuka.text.json_types import JsonObject


async def ask(messages: tuple[JsonObject, ...], model: str, effort: str, backend: Backend, label: str) -> Output:
    """A model's answer. Raises BackendError when the endpoint could not be measured: never a score."""
    exchange = await backend.complete(Request(model, effort, messages, label=label))
    reply = read_reply(exchange)
    found = Subject(reply).json
    notes = list(reply.notes)
    if isinstance(found, FoundJson) and found.how == "repaired":
        notes.append("the JSON was repaired")
    if reply.truncated:
        notes.append("cut by the token limit")
    return Output(
        text=reply.raw_text,
        value=found.value if isinstance(found, FoundJson) else None,
        reasoning=reply.reasoning,
        finish_reason=reply.finish_reason,
        usage=exchange.usage,
        timing=exchange.timing,
        notes=tuple(notes),
    )
