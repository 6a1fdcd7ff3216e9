"""An endpoint over HTTP, whichever API it speaks: one request, its retries, and what its errors mean."""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import TYPE_CHECKING

from pytest_tsuka.backends.apis import AUTO, NAMES, api_named
from pytest_tsuka.backends.apis.base import Api
from pytest_tsuka.backends.circuit_breaker import Health, Learned
from pytest_tsuka.backends.concurrency import heard, pause
from pytest_tsuka.backends.http.urls import Endpoint, Redactor, read_base_url
from pytest_tsuka.backends.in_flight import Flight, InFlight
from pytest_tsuka.backends.models import offered_instead
from pytest_tsuka.backends.rate_limit import Pacer
from pytest_tsuka.backends.retry import RETRIES, Retries
from pytest_tsuka.backends.trouble import SCORED, Kind, Sent, Trouble
from pytest_tsuka.conversation import NO_TOOLS_FINISH, Exchange, Load, Reply, Timing
from pytest_tsuka.errors import BackendError, SettingsError
from pytest_tsuka.protocols import Request
from pytest_tsuka.text.json_types import JsonObject, JsonValue

if TYPE_CHECKING:
    from pytest_tsuka.backends.sender import Sender

REJECTED_FOR = 60.0
"""Seconds without any answer after which a rejection counts, where other processes ask the endpoint too."""


@dataclass(frozen=True)
class Limits:
    """Seconds and counts that bound one request.

    `timeout` is how long the whole answer may take, `idle` how long a stream may be silent,
    `retries` how often a request that failed for a passing reason is sent again, `loading` how long a
    model that is being loaded is waited for.
    """

    timeout: float = 300.0
    connect: float = 10.0
    idle: float = 120.0
    retries: int = RETRIES
    loading: float = 300.0


@dataclass
class _Asking:
    """How far one request has come."""

    request: Request
    api: Api
    retries: Retries
    count: int = 0
    last: str = ""
    began: float | None = None
    notes: list[str] = field(default_factory=list)
    taken_out: set[str] = field(default_factory=set)
    loading_until: float | None = None


class OpenAIBackend:
    """One endpoint: chat completions, OpenAI's Responses API or Anthropic's Messages API.

    Use as an async context manager, in one event loop. `api` is `auto` or one of `apis.NAMES`: `auto` goes by
    the address, else starts with chat completions and tries the others where the endpoint has no such route.
    `shared` says that other processes ask the endpoint as well.
    """

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
        api: str = AUTO,
        shared: bool = False,
    ) -> None:
        self._base_url = base_url
        self._endpoint: Endpoint = read_base_url(base_url)
        self._api = api_named(self._endpoint.api or "chat" if api == AUTO else api)
        self._may_try = [n for n in NAMES if n != self._api.name] if api == AUTO and not self._endpoint.api else []
        self._api.effort_fields(effort_style, "low")
        self._api_key = api_key
        self._params: JsonObject = dict(params or {})
        self._style = effort_style
        self._stream = stream
        self._limits = limits or Limits()
        self._headers = dict(headers or {})
        self._secrets = tuple(s for s in (api_key, *self._endpoint.secrets) if len(s) >= 4)
        self._redact = Redactor(self._secrets)
        self.pacer = pacer or Pacer()
        self._shared = shared
        self._in_flight = InFlight()
        self._health = Health(patience=2 * self._limits.timeout)
        self._trying_apis = asyncio.Lock()
        self._sender: Sender | None = None

    @property
    def provider(self) -> str:
        """The base URL without credentials."""
        return self._endpoint.shown

    def parameters(self, model: str) -> JsonObject:
        """What requests for this model carried besides the conversation, refused ones taken out."""
        sent = self._health.of(model).applied({**self._api.defaults, **self._params})
        style = "reasoning_effort" if self._style == "auto" and self._api.name == "chat" else self._style
        recorded: JsonObject = {**sent, "effortStyle": style}
        if self._api.name != "chat":
            recorded["api"] = self._api.name
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
        from pytest_tsuka.backends.sender import Sender

        limits = self._limits
        try:
            wire = Wire(self._endpoint, headers=self._headers, timeout=limits.timeout, connect=limits.connect)
            wire.check(self._api, self._api_key)
        except (ValueError, ImportError, UnicodeError, httpx.InvalidURL) as error:
            raise BackendError(
                self._redact(f"the HTTP client cannot be set up (proxy variables, API key?): {error}"),
                permanent=True,
            ) from None
        self._sender = Sender(
            wire, self.provider, key=self._api_key, secrets=self._secrets, timeout=limits.timeout, idle=limits.idle
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._sender:
            await self._sender.close()
            self._sender = None

    # --- requests ------------------------------------------------------------------------

    def _sent(self, request: Request, api: Api) -> Sent:
        learned = self._health.of(request.model)
        effort = copy.deepcopy(api.effort_fields(self._style, request.effort))
        params = {**api.defaults, **self._params}
        body = learned.applied(api.body(request, params, effort, stream=self._stream))
        if learned.unwanted:
            body = copy.deepcopy(body)
            for part in api.played_back(body):
                for name in learned.unwanted & part.keys():
                    del part[name]
        return Sent(f"{self._endpoint.shown}/{api.route}", body, tuple(effort), api)

    async def _send(self, sent: Sent) -> Exchange | Trouble:
        assert self._sender is not None, "used outside of its context"
        return await self._sender.send(sent)

    async def complete(self, request: Request) -> Exchange:
        """The answer, after as many attempts as it takes. Raises BackendError or EffortRefused."""
        asking = _Asking(request, self._api, Retries(self._limits.retries))
        try:
            return await self._complete(asking)
        except asyncio.CancelledError as cancelled:
            if asking.count:  # for the message of the item's own time limit
                cancelled.add_note(f"{asking.count} attempts{f', the last: {asking.last}' if asking.last else ''}")
            raise

    async def _complete(self, asking: _Asking) -> Exchange:
        request = asking.request
        while True:
            self._health.fail_fast(request.model, request.effort, asking.count)
            no_tools = self._health.of(request.model).no_tools
            if request.tools and no_tools:
                return self._scored(NO_TOOLS_FINISH, no_tools, asking)
            asking.api = self._api
            asking.count += 1
            await self.pacer.turn()
            self._health.asked()
            asking.began = asking.began or time.time()
            with self._in_flight.one() as flight:
                answer = await self._send(self._sent(request, asking.api))
            if isinstance(answer, Exchange):
                return self._answered(answer, asking, flight)
            asking.last = self._redact(answer.message)
            if answer.too_many:
                heard(rejected=True)
            wait = await self._wait_before_next(answer, asking, flight)
            if isinstance(wait, Exchange):
                return wait
            if wait:
                await pause(wait)

    def _answered(self, answer: Exchange, asking: _Asking, flight: Flight) -> Exchange:
        self._health.answered()
        allowed = heard(rejected=False)
        self.pacer.spent((answer.usage.prompt_tokens or 0) + (answer.usage.completion_tokens or 0))
        at_once = None if self._shared else flight.at_once
        return replace(
            answer,
            timing=replace(answer.timing, began=asking.began, ended=time.time(), at_once=at_once),
            attempts=asking.count,
            notes=(*answer.notes, *asking.notes),
            load=Load(asking.retries.rejections, allowed),
        )

    def _scored(self, finish: str, said: str, asking: _Asking) -> Exchange:
        """What is as good as an answer: the model itself, or its place here, kept the request from being answered."""
        now = time.time()
        timing = Timing(now - (asking.began or now), began=asking.began or now, ended=now)
        load = Load(asking.retries.rejections)
        note = f"{Reply('', finish_reason=finish).no_answer}: {said}"
        return Exchange({"role": "assistant"}, finish, timing=timing, attempts=asking.count, notes=(note,), load=load)

    async def _wait_before_next(self, trouble: Trouble, asking: _Asking, flight: Flight) -> float | Exchange:
        """Seconds until the next attempt, or what stands for an answer. Raises BackendError."""
        model = asking.request.model
        learned = self._health.of(model)
        if trouble.kind in (Kind.PARAMETER, Kind.PLAYED_BACK) and self._take_out(trouble, learned, asking):
            return 0.0
        if trouble.kind is Kind.LOADING:
            now = time.monotonic()
            asking.loading_until = asking.loading_until or now + self._limits.loading
            if now < asking.loading_until:
                return trouble.retry_after or 1.0
        if trouble.kind is Kind.ROUTE and await self._another_api(asking.api, model):
            return 0.0
        if trouble.page and self._health.reached:  # a gateway in trouble, not a wrong address
            trouble = replace(trouble, kind=Kind.AGAIN)
        self._health.troubled(trouble, asking.last)
        if trouble.kind in (Kind.AGAIN, Kind.CALL):
            company = self._shared and self._health.silent_for < REJECTED_FOR
            wait = asking.retries.pause_after(
                trouble,
                had_company=flight.at_once > 1 or company,
                reached=self._health.reached or not trouble.unreachable,
            )
            if wait is not None:
                return wait
        if finish := SCORED.get(trouble.kind):
            self._health.answered()
            if trouble.kind is Kind.NO_TOOLS:
                learned.no_tools = asking.last
            return self._scored(finish, asking.last, asking)
        if trouble.kind is Kind.MODEL and trouble.message.startswith("HTTP 404"):
            offered = await offered_instead(self._base_url, self._api_key, self._api.name, model)
            trouble = replace(trouble, message=f"{trouble.message}{offered}")
        message = self._redact(trouble.message)
        raise self._health.given_up(trouble, message, model, asking.request.effort, asking.count)

    def _take_out(self, trouble: Trouble, learned: Learned, asking: _Asking) -> bool:
        """Leaves out what the endpoint will not have, for this model and from now on.

        Requests in flight may all be told so at once: each goes again without it, once.
        """
        name = trouble.parameter
        if not name or name in asking.taken_out:
            return False
        asking.taken_out.add(name)
        asking.notes.append(f"the endpoint {learned.take_out(trouble)}: {asking.last}")
        return True

    async def _another_api(self, tried: Api, model: str) -> bool:
        """Whether the endpoint speaks another API than was tried: a plain request to each tells, once."""
        async with self._trying_apis:
            while self._api is tried and self._may_try and not self._health.reached:
                candidate = api_named(self._may_try.pop(0))
                try:
                    candidate.effort_fields(self._style, "low")
                except SettingsError:
                    continue
                answer = await self._send(
                    Sent(f"{self._endpoint.shown}/{candidate.route}", candidate.probe(model), (), candidate)
                )
                missing = isinstance(answer, Trouble) and (
                    answer.page or answer.kind is Kind.ROUTE or (answer.kind is Kind.AGAIN and not answer.too_many)
                )
                if not missing:
                    self._api = candidate
            return self._api is not tried
