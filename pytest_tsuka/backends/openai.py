"""Any OpenAI-compatible endpoint over HTTP: one request, its retries, and what its errors mean."""

from __future__ import annotations

import asyncio
import copy
import json
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pytest_tsuka.backends.answers import Kind, Trouble, read_answer, read_completion, read_timing
from pytest_tsuka.backends.circuit_breaker import Health, Learned
from pytest_tsuka.backends.concurrency import heard, pause
from pytest_tsuka.backends.http.sse import Completion, StreamBroken, events
from pytest_tsuka.backends.http.urls import HIDDEN, Endpoint, Redactor, read_base_url
from pytest_tsuka.backends.listing import cause_of, list_models
from pytest_tsuka.backends.rate_limit import Pacer
from pytest_tsuka.conversation import Exchange, Load
from pytest_tsuka.efforts import effort_fields
from pytest_tsuka.errors import BackendError, closest
from pytest_tsuka.protocols import Request
from pytest_tsuka.text.json_types import JsonObject, JsonValue

if TYPE_CHECKING:
    import httpx

    from pytest_tsuka.backends.http.client import Wire

FIRST_BACKOFF, LONGEST_BACKOFF = 0.5, 20.0


@dataclass(frozen=True)
class Limits:
    """Seconds and counts that bound one request.

    `timeout` is how long the whole answer may take, `idle` how long a stream may be silent,
    `retries` how often a transient failure is tried again, `loading` how long a model that is
    being loaded is waited for.
    """

    timeout: float = 300.0
    connect: float = 10.0
    idle: float = 120.0
    retries: int = 4
    loading: float = 300.0


@dataclass
class _Attempts:
    """How far a request has come, for whoever cancels it."""

    count: int = 0
    last: str = ""


class OpenAIBackend:
    """Chat completions of one endpoint. Use as an async context manager, in one event loop."""

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str = "",
        params: Mapping[str, JsonValue] | None = None,
        effort_style: str = "auto",
        stream: bool = False,
        limits: Limits | None = None,
        headers: Mapping[str, str] | None = None,
        pacer: Pacer | None = None,
    ) -> None:
        effort_fields(effort_style, "low")
        self._base_url = base_url
        self._endpoint: Endpoint = read_base_url(base_url)
        self._api_key = api_key
        self._params: JsonObject = {"temperature": 0, **(params or {})}
        self._style = effort_style
        self._stream = stream
        self._limits = limits or Limits()
        self._headers = dict(headers or {})
        self._secrets = tuple(s for s in (api_key, *self._endpoint.secrets) if len(s) >= 4)
        self._redact = Redactor(self._secrets)
        self.pacer = pacer or Pacer()
        self._health = Health(patience=2 * self._limits.timeout)
        self._wire: Wire | None = None

    @property
    def provider(self) -> str:
        """The base URL without credentials."""
        return self._endpoint.shown

    def parameters(self, model: str) -> JsonObject:
        """What requests for this model carried besides the conversation, refused ones taken out."""
        sent = self._with_lessons(dict(self._params), self._health.of(model))
        style = "reasoning_effort" if self._style == "auto" else self._style
        recorded: JsonObject = {**sent, "effortStyle": style}
        if dropped := sorted(self._health.of(model).dropped):
            recorded["refused"] = list(dropped)
        return recorded

    def hide_secrets(self, text: str) -> str:
        """The text without the key, or anything that looks like one."""
        return self._redact(text)

    # --- lifetime ------------------------------------------------------------------------

    async def __aenter__(self) -> OpenAIBackend:
        import httpx

        from pytest_tsuka.backends.http.client import Wire

        limits = self._limits
        try:
            self._wire = Wire(
                self._endpoint,
                api_key=self._api_key,
                headers=self._headers,
                timeout=limits.timeout,
                connect=limits.connect,
            )
        except (ValueError, ImportError, UnicodeError, httpx.InvalidURL) as error:
            raise BackendError(
                self._redact(f"the HTTP client cannot be set up (proxy variables, API key?): {error}"),
                permanent=True,
            ) from None
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._wire:
            await self._wire.close()
            self._wire = None

    # --- requests ------------------------------------------------------------------------

    @staticmethod
    def _with_lessons(body: JsonObject, learned: Learned) -> JsonObject:
        for name, replacement in learned.dropped.items():
            if name in body:
                value = body.pop(name)
                if replacement:
                    body[replacement] = value
        return body

    def _body(self, request: Request, learned: Learned) -> JsonObject:
        body: JsonObject = {"model": request.model, "messages": list(request.messages)}
        if request.tools:
            body["tools"] = list(request.tools)
        body.update(copy.deepcopy(effort_fields(self._style, request.effort)))
        body.update(self._params)
        if self._stream:
            body["stream"] = True
            body["stream_options"] = {"include_usage": True}
        return self._with_lessons(body, learned)

    async def complete(self, request: Request) -> Exchange:
        """The answer, after as many attempts as it takes. Raises BackendError or EffortRefused."""
        attempts = _Attempts()
        try:
            return await self._complete(request, attempts)
        except asyncio.CancelledError as cancelled:
            if attempts.count:  # for the message of the item's own time limit
                cancelled.add_note(
                    f"{attempts.count} attempts{f', the last: {attempts.last}' if attempts.last else ''}"
                )
            raise

    async def _complete(self, request: Request, tried: _Attempts) -> Exchange:
        learned = self._health.of(request.model)
        attempts = failures = rejections = 0
        notes: list[str] = []
        taken_out: set[str] = set()
        loading_until: float | None = None
        while True:
            self._health.fail_fast(request.model, request.effort, attempts)
            body = self._body(request, learned)
            tried.count = attempts = attempts + 1
            await self.pacer.turn()
            self._health.asked()
            answer = await self._send(body, tuple(effort_fields(self._style, request.effort)))
            if isinstance(answer, Exchange):
                self._health.answered()
                allowed = heard(rejected=False)
                self.pacer.spent(_tokens(answer))
                return Exchange(
                    answer.message,
                    answer.finish_reason,
                    answer.usage,
                    answer.timing,
                    attempts,
                    (*answer.notes, *notes),
                    Load(rejections, allowed),
                )
            trouble = answer
            if trouble.too_many:
                rejections += 1
                heard(rejected=True)
            tried.last = self._redact(trouble.message)
            if trouble.kind is Kind.PARAMETER and trouble.parameter and trouble.parameter not in taken_out:
                # Requests in flight may all be told so at once: each goes again without it, once.
                taken_out.add(trouble.parameter)
                learned.dropped.setdefault(trouble.parameter, trouble.replacement)
                instead = f", sent as {trouble.replacement}" if trouble.replacement else ""
                notes.append(f"the endpoint refuses {trouble.parameter!r}{instead}: {self._redact(trouble.message)}")
                continue
            if trouble.kind is Kind.LOADING:
                loading_until = loading_until or time.monotonic() + self._limits.loading
                if time.monotonic() < loading_until:
                    await pause(trouble.retry_after or 1.0)
                    continue
            self._health.troubled(trouble, tried.last)
            if trouble.kind is not Kind.AGAIN or failures >= self._limits.retries:
                if trouble.kind is Kind.MODEL:
                    trouble = await self._with_offered_models(trouble, request.model)
                message = self._redact(trouble.message)
                raise self._health.given_up(trouble, message, request.model, request.effort, attempts)
            failures += 1
            await pause(_wait(failures, trouble.retry_after))

    async def _with_offered_models(self, trouble: Trouble, model: str) -> Trouble:
        """The trouble with what the endpoint offers instead of a model it does not have."""
        if not trouble.message.startswith("HTTP 404"):
            return trouble
        try:
            entries = await list_models(self._base_url, api_key=self._api_key, timeout=5.0)
        except BackendError:
            return trouble
        names = [str(entry["id"]) for entry in entries]
        near = closest(model, names)
        hint = f"; did you mean {near!r}?" if near else ""
        listed = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
        return replace(trouble, message=f"{trouble.message}{hint} (the endpoint lists: {listed or 'no model'})")

    async def _send(self, body: JsonObject, effort_keys: tuple[str, ...]) -> Exchange | Trouble:
        import httpx

        assert self._wire is not None, "used outside of its context"
        start = time.perf_counter()
        try:
            async with asyncio.timeout(self._limits.timeout):
                return await self._exchange(self._wire, body, effort_keys, start)
        except TimeoutError:
            return self._transport_trouble(f"no complete answer within {self._limits.timeout:g} s", stalled=True)
        except httpx.TimeoutException as error:
            what = (
                "no connection" if isinstance(error, httpx.ConnectTimeout) else "the connection was silent for too long"
            )
            return self._transport_trouble(what)
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            return Trouble(Kind.ENDPOINT, f"{error} ({self.provider})")
        except (httpx.ConnectError, httpx.ProxyError) as error:
            via = "through the proxy of the environment " if isinstance(error, httpx.ProxyError) else ""
            return self._transport_trouble(
                f"cannot connect {via}({cause_of(error)}); is the server running? (--tsuka-base-url)"
            )
        except (httpx.HTTPError, httpx.StreamError, OSError) as error:
            return self._transport_trouble(f"the connection broke off ({cause_of(error)})")

    def _transport_trouble(self, what: str, *, stalled: bool = False) -> Trouble:
        return Trouble(Kind.AGAIN, f"{self.provider}: {what}", stalled=stalled)

    async def _exchange(
        self,
        wire: Wire,
        body: JsonObject,
        effort_keys: tuple[str, ...],
        start: float,
    ) -> Exchange | Trouble:
        response = await wire.post(body)
        try:
            kind = response.headers.get("content-type", "")
            if response.status_code == 200 and kind.startswith("text/event-stream"):
                return await self._read_stream(response, body, effort_keys, start)
            content = self._without_secrets(await response.aread())
        finally:
            await response.aclose()
        return read_answer(
            response.status_code,
            {k.lower(): v for k, v in response.headers.items()},
            content,
            url=self._endpoint.shown + "/chat/completions",
            seconds=time.perf_counter() - start,
            sent=body,
            effort_keys=effort_keys,
        )

    def _without_secrets(self, body: bytes) -> bytes:
        """A server may echo the key in an answer as well as in an error; it goes no further than here."""
        for secret in self._secrets:
            if secret.encode() in body:
                body = body.replace(secret.encode(), HIDDEN.encode())
        return body

    async def _read_stream(
        self, response: httpx.Response, body: JsonObject, effort_keys: tuple[str, ...], start: float
    ) -> Exchange | Trouble:
        completion = Completion()
        first: float | None = None
        stream = events(response.aiter_bytes())
        try:
            while True:
                try:
                    async with asyncio.timeout(self._limits.idle):
                        event = await anext(stream)
                except StopAsyncIteration:
                    break
                except TimeoutError:
                    return self._transport_trouble(f"the stream was silent for {self._limits.idle:g} s", stalled=True)
                completion.feed(event)
                if first is None and completion.started:
                    first = time.perf_counter() - start
        except (StreamBroken, UnicodeDecodeError) as error:
            return self._transport_trouble(str(error))
        if not completion.finished:
            return self._transport_trouble("the stream ended before the reply was complete")
        data: Any = completion.body()
        if any(secret in str(data) for secret in self._secrets):
            data = json.loads(self._without_secrets(json.dumps(data, ensure_ascii=False).encode()))
        seconds = time.perf_counter() - start
        answer = read_completion(data, seconds=seconds, sent=body, effort_keys=effort_keys)
        if isinstance(answer, Trouble):
            return answer
        timing = read_timing(data.get("timings"), seconds, first)
        return Exchange(answer.message, answer.finish_reason, answer.usage, timing)


def _tokens(answer: Exchange) -> int:
    return (answer.usage.prompt_tokens or 0) + (answer.usage.completion_tokens or 0)


def _wait(failures: int, asked: float | None) -> float:
    """Exponential back-off with jitter, never less than Retry-After asks for."""
    backoff = min(LONGEST_BACKOFF, FIRST_BACKOFF * 2 ** (failures - 1))
    backoff *= random.uniform(0.5, 1.0)
    return backoff if asked is None else max(asked, 0.05)
