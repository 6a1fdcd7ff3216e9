"""An endpoint's every way to answer, over a real socket: what is retried, what is said, what is given up."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import email.utils
import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from pytest_tsuka.backends.answers import read_answer
from pytest_tsuka.backends.error_answers import retry_after
from pytest_tsuka.backends.http.urls import Redactor, read_base_url
from pytest_tsuka.backends.openai import Limits, OpenAIBackend
from pytest_tsuka.backends.trouble import Sent, Trouble
from pytest_tsuka.conversation import Exchange
from pytest_tsuka.efforts import effort_fields
from pytest_tsuka.errors import BackendError, EffortRefused, SettingsError
from pytest_tsuka.protocols import Request
from pytest_tsuka.runner.reply import read_reply
from tests.endpoint import Answer, FakeEndpoint, completion, error

Serve = Callable[..., FakeEndpoint]
USER = ({"role": "user", "content": "hi"},)


def request(effort: str = "low", model: str = "m") -> Request:
    return Request(model=model, effort=effort, messages=USER)


def ask(
    endpoint: FakeEndpoint,
    *,
    times: int = 1,
    effort: str = "low",
    retries: int = 2,
    limits: Limits | None = None,
    **options: Any,
) -> Any:
    """The exchange, or the BackendError, of the last of `times` requests one after another."""

    async def go() -> Any:
        backend = OpenAIBackend(endpoint.url, limits=limits or Limits(retries=retries, timeout=20), **options)
        async with backend:
            for _ in range(times - 1):
                with contextlib.suppress(BackendError):
                    await backend.complete(request(effort))
            return await backend.complete(request(effort)), backend.parameters("m")

    try:
        return asyncio.run(go())
    except BackendError as failure:
        return failure


def answered(endpoint: FakeEndpoint, **options: Any) -> Exchange:
    result = ask(endpoint, **options)
    assert not isinstance(result, BackendError), result
    exchange: Exchange = result[0]
    return exchange


def failed(endpoint: FakeEndpoint, **options: Any) -> BackendError:
    result = ask(endpoint, **options)
    assert isinstance(result, BackendError)
    return result


@pytest.fixture(autouse=True)
def short_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_tsuka.backends.retry.FIRST_BACKOFF", 0.01)


# --- addresses -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "root"),
    [
        ("http://localhost:11434", "http://localhost:11434/v1"),
        ("http://localhost:11434/", "http://localhost:11434/v1"),
        ("http://localhost:11434/v1", "http://localhost:11434/v1"),
        ("http://localhost:11434/v1/", "http://localhost:11434/v1"),
        ("localhost:11434", "http://localhost:11434/v1"),
        ("api.example", "https://api.example/v1"),
        (" HTTP://H/v1/chat/completions ", "http://h/v1"),
        ("https://gw.example/v1/models", "https://gw.example/v1"),
        ("https://gw.example/api/v1", "https://gw.example/api/v1"),
        ("https://gw.example/openai/v1/", "https://gw.example/openai/v1"),
        ("https://gw.example/av1/v1", "https://gw.example/av1/v1"),
        ("https://gw.example/v10/v1", "https://gw.example/v10/v1"),
        ("https://gw.example/v1beta/openai/", "https://gw.example/v1beta/openai"),
        ("http://[::1]:8080", "http://[::1]:8080/v1"),
    ],
)
def test_base_urls(written: str, root: str) -> None:
    """D22, D23: every usual way to write one; only a whole trailing segment is touched."""
    assert read_base_url(written).root == root
    assert read_base_url(written).url("chat/completions") == f"{root}/chat/completions"


@pytest.mark.parametrize("written", ["ftp://x", "http://", "http://h:99999", "", "http://[::1"])
def test_unusable_base_urls(written: str) -> None:
    with pytest.raises(SettingsError, match="http"):
        read_base_url(written)


def test_credentials_are_not_shown() -> None:
    """D29: user, password and secret query parameters leave the shown address."""
    endpoint = read_base_url("https://user:pw-SECRET@gw.example/v1?key=q-SECRET&region=eu")
    assert endpoint.shown == "https://gw.example/v1?key=***&region=eu"
    assert endpoint.url("models") == "https://gw.example/v1/models?key=q-SECRET&region=eu"
    redact = Redactor(("sk-known-key", *endpoint.secrets))
    assert "SECRET" not in redact("failed: pw-SECRET q-SECRET")
    assert redact("Bearer abc.def and sk-known-key and sk-otherkey123") == "*** and *** and ***"


def test_loopback_never_goes_through_a_proxy(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """D27: proxy variables, even of an unknown scheme, do not matter for this machine's own loopback."""
    for name in ("HTTP_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
        monkeypatch.setenv(name, "socks9://127.0.0.1:9")
    assert answered(serve(lambda r: "ok")).message["content"] == "ok"


def test_the_proxy_of_the_environment_is_asked(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy gets the whole URL of what it is to fetch; the name of the host is its to resolve."""
    proxy = serve(lambda r: "through the proxy")
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
    text = asyncio.run(said_by("http://models.invalid:8080/v1"))
    assert text == "through the proxy"
    assert [r.path for r in proxy.requests] == ["http://models.invalid:8080/v1/chat/completions"]


@pytest.mark.parametrize("key", ["", "sk-not-this-one"])
def test_credentials_of_the_url_are_sent_as_basic(serve: Serve, key: str) -> None:
    """As in any HTTP client; they go before a key, which the environment may hold for another endpoint."""
    endpoint = serve(lambda r: "ok")
    asyncio.run(said_by(f"http://user:p%40ss@127.0.0.1:{endpoint.port}/v1", api_key=key))
    scheme, _, coded = endpoint.requests[0].headers["authorization"].partition(" ")
    assert (scheme, base64.b64decode(coded)) == ("Basic", b"user:p@ss")


def test_a_key_is_sent_as_bearer_and_nothing_without_one(serve: Serve) -> None:
    endpoint = serve(lambda r: "ok")
    asyncio.run(said_by(endpoint.url, api_key="sk-1234"))
    asyncio.run(said_by(endpoint.url))
    assert [r.headers.get("authorization") for r in endpoint.requests] == ["Bearer sk-1234", None]


async def said_by(url: str, **options: Any) -> Any:
    async with OpenAIBackend(url, **options) as backend:
        return (await backend.complete(request())).message["content"]


def test_an_unknown_proxy_scheme_elsewhere_is_an_error_of_the_item(monkeypatch: pytest.MonkeyPatch) -> None:
    """D27: the cause is named, nothing crashes."""
    monkeypatch.setenv("ALL_PROXY", "socks9://127.0.0.1:9")

    async def open_it() -> None:
        async with OpenAIBackend("http://192.0.2.1/v1"):
            pass

    with pytest.raises(BackendError, match="proxy variables"):
        asyncio.run(open_it())


# --- errors --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "attempts", "said"),
    [
        (error(401, "bad key"), 1, r"HTTP 401: bad key \(is the API key right\?\)"),
        (error(403, "not yours"), 1, r"HTTP 403: not yours \(may this key use this model\?\)"),
        (
            error(404, "model 'm' not found"),
            1,
            r"HTTP 404: model 'm' not found \(is 'm' the model's exact name\?\)",
        ),
        (error(404, "no route"), 1, r"is http://127.0.0.1:\d+/v1/chat/completions the right address\?"),
        (
            Answer(404, body=b"<html><h1>404</h1></html>", headers={"content-type": "text/html"}),
            1,
            r"non-JSON 404 from http.*; is /v1 missing in the base URL\?",
        ),
        (
            Answer(200, body=b"<!doctype html><title>Web UI</title>"),
            1,
            "got a web page from .*, check the base URL",
        ),
        (Answer(502, body=b"<html>502 Bad Gateway</html>"), 3, r"HTTP 502 from .* \(after 3 attempts\)"),
        (error(500, "boom"), 3, r"HTTP 500: boom \(after 3 attempts\)"),
        (error(529, "overloaded"), 3, "HTTP 529"),
        (error(400, "context too long"), 1, "HTTP 400: context too long"),
        (
            error(429, "no credit left on this account", type="insufficient_quota"),
            1,
            "the quota of this key is used up",
        ),
        (
            error(429, "slow down", {"retry-after": "86400"}),
            1,
            r"Retry-After asks for 86400 s, which is not waited for",
        ),
        (Answer(json={"id": "x", "object": "chat.completion"}), 3, r'no choices in response: \{"id": "x"'),
        (Answer(json={"choices": []}), 3, r'no choices in response: \{"choices": \[\]\}'),
        (Answer(json={"code": "limit", "message": "daily cap"}), 3, "no choices in response: .*daily cap"),
        (Answer(json={"error": {"message": "upstream died", "code": 502}}), 3, "upstream died"),
        (Answer(json=[1]), 3, "no choices in response"),
        (
            Answer(body=bytes.fromhex("1f8b0800ff")),
            3,
            r"response is not valid UTF-8 JSON \(first bytes 1f 8b 08 00 \.\.\.\)",
        ),
        (Answer(body=b'{"choices": [{"mess'), 3, "response is not JSON"),
        (Answer(body=b""), 3, "an empty response"),
        (Answer(301, json={}, headers={"location": "https://x/v1"}), 1, "301"),
        (
            Answer(400, json={"object": "error", "message": "1 validation error in body: seed", "code": 400}),
            1,
            "1 validation error in body: seed",
        ),
        (
            Answer(422, json={"detail": [{"loc": ["body", "messages"], "msg": "field required"}]}),
            1,
            "body.messages: field required",
        ),
        (Answer(reset=True), 3, "the connection broke off"),
        (
            Answer(json=completion("half a body that never comes"), cut=20),
            3,
            r"the connection broke off|response is not JSON",
        ),
    ],
)
def test_errors(serve: Serve, answer: Answer, attempts: int, said: str) -> None:
    """D03, D09, D13, D20, D21, D26: retried only where it can help, and said with its likely cause."""
    endpoint = serve(lambda r: answer)
    failure = failed(endpoint)
    assert sum(r.path == "/v1/chat/completions" for r in endpoint.requests) == attempts == failure.attempts
    import re

    assert re.search(said, str(failure)), str(failure)


def test_a_model_that_is_not_there(serve: Serve) -> None:
    """The closest name the endpoint offers, and what else it has."""

    def script(received: Any) -> Any:
        if received.method == "GET":
            return Answer(json={"data": [{"id": "qwen3:8b"}, {"id": "m2"}]})
        return error(404, "model not found")

    endpoint = serve(script)
    failure = asyncio.run(_one(endpoint, "qwen3-8b"))
    assert "did you mean 'qwen3:8b'? (the endpoint lists: qwen3:8b, m2)" in str(failure)


async def _one(endpoint: FakeEndpoint, model: str) -> BackendError:
    async with OpenAIBackend(endpoint.url) as backend:
        with pytest.raises(BackendError) as caught:
            await backend.complete(request(model=model))
    return caught.value


@pytest.mark.parametrize("stream", [False, True])
def test_a_key_that_is_echoed_in_an_answer(serve: Serve, stream: bool) -> None:
    """It is hidden in replies as well: they are shown and kept."""

    def script(received: Any) -> Any:
        text = f"your key is {received.headers['authorization']}"
        return Answer(events=[(0, event({"content": text})), (0, event({}, finish="stop"))]) if stream else text

    exchange = answered(serve(script), api_key="k-SECRET-1", stream=stream)
    assert exchange.message["content"] == "your key is Bearer ***"


def test_a_passing_failure_is_retried(serve: Serve) -> None:
    """D11, D20: 503, half a body, a reset: the good answer that follows counts, with its attempts."""
    answers: list[Any] = [
        error(503, "busy"),
        Answer(json=completion("x"), cut=20),
        Answer(reset=True),
        completion("ok"),
    ]
    endpoint = serve(lambda r: answers[r.number])
    exchange = answered(endpoint, retries=3)
    assert (exchange.message["content"], exchange.attempts) == ("ok", 4)


def test_a_loading_model_is_waited_for(serve: Serve) -> None:
    """D11: 503 while loading does not use up the retries."""
    endpoint = serve(lambda r: error(503, "Loading model", {"retry-after": "0.01"}) if r.number < 6 else "ok")
    assert answered(endpoint, retries=0).attempts == 7


def test_retry_after_is_obeyed(serve: Serve) -> None:
    """429 with seconds."""
    endpoint = serve(lambda r: error(429, "slow", {"retry-after": "0.4"}) if r.number == 0 else "ok")
    start = time.perf_counter()
    answered(endpoint)
    assert time.perf_counter() - start >= 0.4


def test_retry_after_in_every_form() -> None:
    """D07: seconds, a date ahead, a date past, garbage, milliseconds."""
    now = 1_800_000_000.0
    date = email.utils.formatdate(now + 3, usegmt=True)
    assert retry_after({"retry-after": "2.5"}, now) == 2.5
    assert retry_after({"retry-after": date}, now) == pytest.approx(3, abs=1)
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, now) == 0
    assert retry_after({"retry-after": "soon"}, now) is None
    assert retry_after({"retry-after": "-5"}, now) == 0
    assert retry_after({"retry-after": "nan"}, now) is None
    assert retry_after({"retry-after-ms": "250"}, now) == 0.25
    assert retry_after({}, now) is None


def test_a_server_that_never_answers(serve: Serve) -> None:
    """D19: the limit is per attempt, and the report says how many there were."""
    endpoint = serve(lambda r: Answer(hang=True))
    failure = failed(endpoint, limits=Limits(timeout=0.2, retries=1))
    assert "no complete answer within 0.2 s (after 2 attempts)" in str(failure)


def test_a_server_that_hangs_is_given_up(serve: Serve) -> None:
    """Four requests in a row without an answer, and the rest end at once."""
    endpoint = serve(lambda r: Answer(hang=True))
    failure = failed(endpoint, times=500, limits=Limits(timeout=0.1, retries=9))
    assert "counts as down: 4 requests in a row got no answer" in str(failure)
    assert len(endpoint.requests) == 4


def test_a_hopeless_endpoint_is_asked_once(serve: Serve) -> None:
    """D09: a used-up quota or a wrong key ends the rest at once with the same words."""
    endpoint = serve(lambda r: error(429, "gone", type="insufficient_quota"))
    assert "quota" in str(failed(endpoint, times=20))
    assert len(endpoint.requests) == 1


def test_an_endpoint_that_is_down_is_given_up(serve: Serve) -> None:
    """The circuit breaker: after four requests given up in a row nothing more is sent."""
    endpoint = serve(lambda r: Answer(reset=True))
    assert "counts as down: 4 requests in a row failed" in str(failed(endpoint, times=500, retries=0))
    assert len(endpoint.requests) == 4


def test_one_success_closes_the_breaker_again(serve: Serve) -> None:
    endpoint = serve(lambda r: "ok" if r.number % 4 == 3 else Answer(reset=True))
    assert answered(endpoint, times=40, retries=0).message["content"] == "ok"


# --- parameters and effort -----------------------------------------------------------------


def test_max_tokens_is_sent_under_its_other_name(serve: Serve) -> None:
    """A 400 that names the replacement leads to one retry with it; later requests use it at once."""

    def script(received: Any) -> Any:
        if "max_tokens" in received.body:
            return error(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
        return "ok"

    endpoint = serve(script)
    exchange, parameters = ask(endpoint, times=3, params={"max_tokens": 7})
    assert [r.body.get("max_completion_tokens") for r in endpoint.requests] == [None, 7, 7, 7]
    assert parameters["max_completion_tokens"] == 7
    assert parameters["refused"] == ["max_tokens"]
    assert exchange.notes == ()


def test_a_parameter_is_not_dropped_twice(serve: Serve) -> None:
    """D05: an endpoint that goes on refusing gets no endless retries."""
    endpoint = serve(lambda r: error(400, "temperature is not supported", param="temperature"))
    assert "temperature is not supported" in str(failed(endpoint))
    assert len(endpoint.requests) == 2


@pytest.mark.parametrize(
    "answer",
    [
        error(
            400,
            "reasoning_effort: value 'xhigh' is not accepted here, use low, medium or high",
            code="unsupported_value",
        ),
        Answer(
            400,
            json={"object": "error", "message": "1 validation error in body: reasoning_effort", "code": 400},
        ),
        error(400, "Unsupported value", param="reasoning_effort"),
        error(422, "this model does not support thinking"),
    ],
)
def test_a_refused_effort(serve: Serve, answer: Answer) -> None:
    """D01, D03: told apart from other errors, in the endpoint's words, never sent again, never dropped."""
    endpoint = serve(lambda r: answer)
    failure = failed(endpoint, times=5, effort="xhigh")
    assert isinstance(failure, EffortRefused)
    assert json.loads(json.dumps(answer.json)).get("message", "") in str(failure)
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize(
    ("style", "effort", "fields"),
    [
        ("auto", "none", {"reasoning_effort": "none"}),
        ("reasoning_effort", "xhigh", {"reasoning_effort": "xhigh"}),
        ("openrouter", "low", {"reasoning": {"effort": "low"}}),
        ("openrouter", "none", {"reasoning": {"enabled": False}}),
        ("ollama", "none", {"think": False}),
        ("ollama", "medium", {"think": "medium"}),
        ("chat_template", "none", {"chat_template_kwargs": {"enable_thinking": False}}),
        ("chat_template", "low", {"chat_template_kwargs": {"enable_thinking": True}}),
        ("off", "none", {}),
    ],
)
def test_effort_styles(serve: Serve, style: str, effort: str, fields: dict[str, Any]) -> None:
    """Each endpoint is told the effort in its own way."""
    assert effort_fields(style, effort) == fields
    endpoint = serve(lambda r: "ok")
    answered(endpoint, effort=effort, effort_style=style)
    body = endpoint.requests[0].body
    assert {k: v for k, v in body.items() if k not in ("model", "messages", "temperature")} == fields


# --- usage, reasoning ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        {"prompt_tokens": 4, "completion_tokens": None},
        {"completion_tokens": -1},
        "many",
        {"completion_tokens": True},
    ],
)
def test_missing_usage(serve: Serve, usage: Any) -> None:
    """D14: unknown is None."""
    exchange = answered(serve(lambda r: completion("ok", usage=usage)))
    assert exchange.usage.completion_tokens is None


def test_the_servers_own_timings(serve: Serve) -> None:
    """llama.cpp says how long the work took; the queue before it is not the model's slowness."""
    timings = {"prompt_ms": 100.0, "predicted_ms": 400.0, "predicted_per_second": 50.0}
    timing = answered(serve(lambda r: completion("ok", timings=timings))).timing
    assert (timing.service_seconds, timing.tokens_per_second) == (0.5, 50.0)


def test_an_answer_only_in_the_reasoning_field() -> None:
    """D15: it is not the answer, and the note says where to look."""
    message = {"role": "assistant", "content": None, "reasoning_content": "Lima, surely."}
    reply = read_reply(Exchange(message, "stop"))
    assert reply.text == ""
    assert reply.notes[0].startswith("content is empty; 13 characters of reasoning")


# --- streams -------------------------------------------------------------------------------


def event(delta: dict[str, Any] | None = None, **more: Any) -> str:
    choice = {"index": 0, "delta": delta or {}, "finish_reason": more.pop("finish", None)}
    return "data: " + json.dumps({"choices": [choice], **more}, ensure_ascii=False) + "\n\n"


def test_a_streamed_reply(serve: Serve) -> None:
    """D25: UTF-8 without charset, time to first token, usage and timings at the end."""
    events = [
        (0.0, ": ping\n\n"),
        (0.1, event({"role": "assistant", "content": ""})),
        (0.1, event({"content": "✅ già\u0085 "})),
        (0.05, event({"content": "fatto"})),
        (0.0, event({}, finish="stop")),
        (0.0, 'data: {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}\r\n\r\n'),
        (0.0, "data: [DONE]\n\n"),
    ]
    endpoint = serve(lambda r: Answer(events=events))
    exchange = answered(endpoint, stream=True)
    assert exchange.message["content"] == "✅ già\u0085 fatto"
    assert (exchange.finish_reason, exchange.usage.completion_tokens) == ("stop", 2)
    assert exchange.timing.first_token_seconds
    assert 0.15 < exchange.timing.first_token_seconds < exchange.timing.seconds
    assert endpoint.requests[0].body["stream_options"] == {"include_usage": True}


def test_streamed_tool_calls(serve: Serve) -> None:
    """Pieces by index, by id, without either, and with every call numbered 0."""

    def tool(index: int | None, **function: Any) -> str:
        call_id = function.pop("id", None)
        piece: dict[str, Any] = {"function": function}
        if index is not None:
            piece["index"] = index
        if call_id:
            piece["id"] = call_id
        return event({"tool_calls": [piece]})

    def read(*events: str) -> list[tuple[str, Any]]:
        done = [*events, event({}, finish="tool_calls")]
        reply = read_reply(answered(serve(lambda r: Answer(events=[(0, e) for e in done])), stream=True), ("a", "b"))
        return [(c.name, c.arguments) for c in reply.tool_calls]

    expected = [("a", {"x": 1}), ("b", {})]
    assert (
        read(
            tool(0, id="1", name="a", arguments=""),
            tool(0, arguments='{"x"'),
            tool(0, arguments=": 1}"),
            tool(1, id="2", name="b", arguments="{}"),
        )
        == expected
    )
    assert (
        read(
            tool(None, id="1", name="a", arguments='{"x": 1'),
            tool(None, arguments="}"),
            tool(None, id="2", name="b", arguments=""),
        )
        == expected
    )
    assert read(tool(0, id="1", name="a", arguments='{"x": 1}'), tool(0, id="2", name="b", arguments="{}")) == expected


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([(0.0, event({"content": "half"}))], "the stream ended before the reply was complete"),
        (
            [(0.0, event({"content": "a"})), (5.0, event({}, finish="stop"))],
            "the stream was silent for 0.3 s",
        ),
        ([(0.0, 'data: {"error": {"message": "out of memory"}}\n\n')], "out of memory"),
        ([(0.0, "data: <html>\n\n")], "an event is not JSON"),
    ],
)
def test_broken_streams(serve: Serve, events: list[tuple[float, str]], said: str) -> None:
    """A stalled or broken stream is an error after its retries, never a reply."""
    endpoint = serve(lambda r: Answer(events=events))
    assert said in str(failed(endpoint, limits=Limits(idle=0.3, retries=1), stream=True))
    assert len(endpoint.requests) == 2


def test_a_server_that_cannot_stream(serve: Serve) -> None:
    """A plain body in answer to a streamed request is read as it is; a refused stream_options is left out."""
    endpoint = serve(lambda r: error(400, "unknown field stream_options") if "stream_options" in r.body else "ok")
    assert answered(endpoint, stream=True).message["content"] == "ok"


def test_read_answer_needs_no_socket() -> None:
    """The same reading for recorded bodies."""
    found = read_answer(200, {}, json.dumps(completion("x")).encode(), sent=Sent("u", {}), seconds=1.0)
    assert isinstance(found, Exchange)
    assert isinstance(read_answer(418, {}, b"{}", sent=Sent("u", {}), seconds=1.0), Trouble)
