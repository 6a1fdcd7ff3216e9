"""A backend that answers from a function: for examples, tests of plugins, and dry runs."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from types import TracebackType

from pytest_tsuka.conversation import Exchange
from pytest_tsuka.protocols import Request
from pytest_tsuka.text.json_types import JsonObject

Answer = str | JsonObject | Exchange


class ScriptedBackend:
    """Answers each request with what `script(request)` returns.

    A string is the text of the answer, an object a whole assistant message (it may hold
    `tool_calls`), an Exchange everything. The script may be async, and may raise BackendError.
    """

    def __init__(self, script: Callable[[Request], Answer | Awaitable[Answer]], provider: str = "scripted") -> None:
        self._script = script
        self._provider = provider

    @property
    def provider(self) -> str:
        return self._provider

    def parameters(self, model: str) -> JsonObject:
        return {}

    async def complete(self, request: Request) -> Exchange:
        answer = self._script(request)
        if inspect.isawaitable(answer):
            answer = await answer
        if isinstance(answer, Exchange):
            return answer
        message: JsonObject = {"role": "assistant", "content": answer} if isinstance(answer, str) else answer
        return Exchange(message=message, finish_reason="tool_calls" if message.get("tool_calls") else "stop")

    async def __aenter__(self) -> ScriptedBackend:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None
