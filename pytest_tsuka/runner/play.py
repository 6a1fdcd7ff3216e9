"""Plays one benchmark as a conversation: what is sent, what is answered, where the chain breaks."""

from __future__ import annotations

import contextlib
import json
import re
import time
from dataclasses import replace

from pytest_tsuka.conversation import Conversation, Reply, ToolCall, Turn
from pytest_tsuka.protocols import Backend, Request
from pytest_tsuka.runner.reply import listed_calls, read_reply
from pytest_tsuka.suite.benchmark import Benchmark, ToolResult
from pytest_tsuka.text.json_types import JsonObject, JsonValue

NOT_EXECUTED = "error: this call was not executed"


async def play(
    benchmark: Benchmark,
    model: str,
    effort: str,
    backend: Backend,
    *,
    accept_text_calls: bool = False,
    label: str = "",
) -> Conversation:
    """The whole conversation. Raises BackendError when the endpoint could not be measured.

    `label` names the item in messages and recordings; the default is the benchmark and the effort.
    """
    history = _History(benchmark)
    turns: list[Turn] = []
    for number, step in enumerate(benchmark.all_steps):
        if turns and step.tool_result is not None:
            broken = _why_broken(turns[-1])
            if broken:
                turns.append(Turn(sent=(), reply=None, not_reached=broken))
                continue
            history.answer(step.tool_result)
        if turns and turns[-1].not_reached:
            turns.append(Turn(sent=(), reply=None, not_reached=turns[-1].not_reached))
            continue
        if step.tool_result is None:
            history.leave_calls_out()
        if step.prompt is not None:
            history.add({"role": "user", "content": step.prompt})
        request = Request(
            model=model,
            effort=effort,
            messages=history.messages,
            tools=benchmark.tools,
            label=f"{label or f'{benchmark.name}[{effort}]'} turn {number + 1}",
        )
        began = time.time()
        exchange = await backend.complete(request)
        if exchange.timing.began is None:  # a backend of somebody else's
            exchange = replace(exchange, timing=replace(exchange.timing, began=began, ended=time.time()))
        reply = read_reply(exchange, benchmark.tool_names, accept_text_calls=accept_text_calls)
        turns.append(Turn(sent=history.take_new(), reply=reply, exchange=exchange))
        history.replay(reply, exchange.message)
    return Conversation(tuple(turns))


def _why_broken(previous: Turn) -> str | None:
    if previous.reply is None:
        return previous.not_reached
    if previous.reply.tool_calls:
        return None
    written = " (one was written as text)" if previous.reply.text_calls else ""
    cut = ", its reply was cut by the token limit" if previous.reply.truncated else ""
    return f"not reached: the step before made no tool call to answer{written}{cut}"


class _History:
    """The messages so far, always a valid conversation for any OpenAI-compatible server."""

    def __init__(self, benchmark: Benchmark) -> None:
        self._messages: list[JsonObject] = []
        self._calls: list[tuple[str, ToolCall]] = []
        self._used_ids: set[str] = set()
        self._new_from = 0
        if benchmark.system is not None:
            self._messages.append({"role": "system", "content": benchmark.system})

    @property
    def messages(self) -> tuple[JsonObject, ...]:
        return tuple(self._messages)

    def add(self, message: JsonObject) -> None:
        self._messages.append(message)

    def take_new(self) -> tuple[JsonObject, ...]:
        """What was added for this turn (the assistant's own messages left out)."""
        new = [m for m in self._messages[self._new_from :] if m["role"] != "assistant"]
        self._new_from = len(self._messages)
        return tuple(new)

    def replay(self, reply: Reply, message: JsonObject) -> None:
        """The assistant's turn as it came, whatever the server put on it: what it signed or wants back is in there.

        Only what no server would take is mended: calls without an id of their own, arguments that are no object.
        """
        self._calls = [(self._unique_id(call.id), call) for call in reply.tool_calls]
        content = message.get("content")
        played: JsonObject = {"role": "assistant", "content": content if isinstance(content, (str, list)) else ""}
        played |= {key: value for key, value in message.items() if key not in _REBUILT and value is not None}
        if self._calls:
            raw = listed_calls(message)
            raw += [{}] * (len(self._calls) - len(raw))  # calls accepted from text
            played["tool_calls"] = [_replayed(*call, own) for call, own in zip(self._calls, raw, strict=False)]
        self._messages.append(played)

    def leave_calls_out(self) -> None:
        """A step without a result replays the turn without its calls: unanswered ones are not valid history."""
        if self._calls:
            self._messages[-1] = {key: value for key, value in self._messages[-1].items() if key != "tool_calls"}
            self._calls = []

    def answer(self, result: ToolResult) -> None:
        """One tool message for every call of the previous step."""
        for (call_id, _), content in zip(self._calls, _results(result, self._calls), strict=True):
            self.add({"role": "tool", "tool_call_id": call_id, "content": content})
        self._calls = []

    def _unique_id(self, given: str) -> str:
        call_id = given.strip()
        number = len(self._used_ids)
        while not call_id or call_id in self._used_ids:
            number += 1
            call_id = f"call_{number}"
        self._used_ids.add(call_id)
        return call_id


_REBUILT = frozenset({"role", "content", "tool_calls", "function_call"})


def _replayed(call_id: str, call: ToolCall, raw: JsonObject) -> JsonValue:
    """A call with everything that came on it; `raw` is the call as the server sent it."""
    function = raw.get("function")
    inner = dict(function) if isinstance(function, dict) else {}
    outer = {key: value for key, value in raw.items() if key not in ("name", "arguments") or inner}
    name = re.sub(r"[^a-zA-Z0-9_-]", "_", call.name)[:64] or "unnamed"
    own = {"name": name, "arguments": _replayed_arguments(call)}
    return {**outer, "id": call_id, "type": "function", "function": {**inner, **own}}


def _replayed_arguments(call: ToolCall) -> str:
    """As they were written where that is a JSON object's text; servers answer 400 or 500 to anything else."""
    if call.arguments and not call.repaired:
        with contextlib.suppress(ValueError, RecursionError):
            if isinstance(json.loads(call.raw_arguments, parse_constant=_no_constant), dict):
                return call.raw_arguments
    return json.dumps(call.arguments or {}, ensure_ascii=False)


def _no_constant(name: str) -> JsonValue:
    raise ValueError(f"{name} is not JSON")


def _results(result: ToolResult, calls: list[tuple[str, ToolCall]]) -> list[str]:
    """What each call is answered with: by order (string, list) or by tool name (object)."""
    if isinstance(result, dict):
        return [result.get(call.name, f"error: no tool {call.name!r} here") for _, call in calls]
    given = [result] if isinstance(result, str) else result
    return [given[i] if i < len(given) else NOT_EXECUTED for i in range(len(calls))]
