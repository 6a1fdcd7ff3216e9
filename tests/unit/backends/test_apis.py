"""Three APIs, one verdict: their bodies and streams by the vendors' own types and clients."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from typing import Any

import anthropic
import openai
import pytest
from anthropic.types import Message as AnthropicMessage
from anthropic.types import RawMessageStreamEvent
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming, MessageCreateParamsStreaming
from openai.types import responses as openai_responses
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat.completion_create_params import (
    CompletionCreateParamsNonStreaming,
    CompletionCreateParamsStreaming,
)
from openai.types.responses.response_create_params import (
    ResponseCreateParamsNonStreaming,
    ResponseCreateParamsStreaming,
)
from pydantic import TypeAdapter

from pytest_tsuka.backends.openai import Limits, OpenAIBackend
from pytest_tsuka.conversation import Conversation
from pytest_tsuka.errors import BackendError, EffortRefused, SettingsError
from pytest_tsuka.runner.play import play
from pytest_tsuka.scoring.verdict import RunVerdict, judge
from pytest_tsuka.suite.benchmark import Benchmark
from pytest_tsuka.suite.files import parse_benchmark
from tests.endpoint import Answer, FakeEndpoint, Received, error
from tests.wires import APIS, ROUTES, Says, answer, api_of, speaking

Serve = Callable[..., FakeEndpoint]
PARAMS: dict[tuple[str, bool], Any] = {
    ("chat", False): CompletionCreateParamsNonStreaming,
    ("chat", True): CompletionCreateParamsStreaming,
    ("responses", False): ResponseCreateParamsNonStreaming,
    ("responses", True): ResponseCreateParamsStreaming,
    ("anthropic", False): MessageCreateParamsNonStreaming,
    ("anthropic", True): MessageCreateParamsStreaming,
}
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
PLAIN = {"type": "function", "function": {"name": "now"}}
CHAIN: dict[str, Any] = {
    "name": "chain",
    "category": "toolCalling",
    "system": "Be brief.",
    "tools": [TOOL, PLAIN],
    "steps": [
        {
            "prompt": "Umbrella in Oslo?",
            "checks": [
                {"type": "tool_called", "value": "weather"},
                {"type": "tool_arg_equals", "arg": "city", "value": "Oslo"},
                {"type": "tool_args_valid"},
            ],
        },
        {"toolResult": "rain", "checks": [{"type": "contains", "value": "yes"}, {"type": "tool_not_called"}]},
        {"prompt": "Sure?", "checks": [{"type": "first_word", "value": "Sure", "weight": 2}]},
    ],
}
TURNS = [
    Says("Let me look.", [("weather", {"city": "Oslo"}), ("now", {})], thinking="Look it up. "),
    Says("Yes, it rains.", thinking="Rain."),
    Says("No idea."),
]


def benchmark(raw: dict[str, Any] = CHAIN) -> Benchmark:
    return parse_benchmark(json.dumps(raw).encode(), "b.json")


def played(endpoint: FakeEndpoint, raw: dict[str, Any] = CHAIN, *, effort: str = "low", **options: Any) -> Conversation:
    async def go() -> Conversation:
        limits = Limits(retries=1, timeout=20)
        async with OpenAIBackend(endpoint.url, api_key="k-1234", limits=limits, **options) as backend:
            return await play(benchmark(raw), "m", effort, backend)

    return asyncio.run(go())


def consumed(value: Any) -> Any:
    """Everything in a validated value looked at: pydantic reads iterables only when they are walked."""
    if isinstance(value, dict):
        return {k: consumed(v) for k, v in value.items()}
    return (
        [consumed(v) for v in value] if isinstance(value, Iterable) and not isinstance(value, (str, bytes)) else value
    )


def check_request(received: Received, *, stream: bool) -> None:
    """The vendor's own types take the body, and know each of its fields."""
    typed = PARAMS[api_of(received), stream]
    adapter = TypeAdapter(typed)  # must outlive what it validated: iterables are read only now
    consumed(adapter.validate_python(received.body))
    known = {name for base in (typed, *typed.__orig_bases__) for name in base.__annotations__}
    assert received.body.keys() <= known


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("api", APIS)
def test_the_same_conversation_gives_the_same_verdict(serve: Serve, api: str, stream: bool) -> None:
    """Thinking, text and parallel calls, played back; and the vendor's types accept every request."""
    endpoint = serve(speaking(api, lambda turn, r: TURNS[len(endpoint.requests) - 1]))
    verdict = judge(benchmark(), played(endpoint, api=api, stream=stream))
    expected = judge(benchmark(), played(serve(_scripted_chat()), api="chat"))
    assert _said(verdict) == _said(expected)
    assert verdict["score"] == pytest.approx(5 / 7)
    assert [r.path for r in endpoint.requests] == [ROUTES[api]] * 3
    for received in endpoint.requests:
        check_request(received, stream=stream)


def _scripted_chat() -> Callable[[Received], Answer]:
    turns = iter(TURNS)
    return speaking("chat", lambda turn, r: next(turns))


def _said(verdict: RunVerdict) -> Any:
    keys = ("text", "reasoning", "finish_reason")
    turns: list[Any] = [turn["reply"] for turn in verdict["conversation"]]
    calls = [[(c["name"], c.get("arguments")) for c in turn["tool_calls"]] for turn in turns]
    usage = {k: v for k, v in verdict["usage"].items() if k != "reasoning_tokens"}
    return verdict["score"], verdict["outcome"], [[t[k] for k in keys] for t in turns], calls, usage


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_what_chat_servers_sign_goes_back(serve: Serve, stream: bool) -> None:
    """Reasoning of the message and unknown fields of each call, whole or put together from a stream."""
    endpoint = serve(speaking("chat", lambda turn, r: TURNS[len(endpoint.requests) - 1]))
    played(endpoint, stream=stream)
    turn = endpoint.requests[1].body["messages"][2]
    assert (turn["content"], turn["reasoning_content"]) == ("Let me look.", "Look it up. ")
    signed = [(c["id"], c["extra_content"]["google"]["thought_signature"]) for c in turn["tool_calls"]]
    assert signed == [("call_0", "c2lnbmVk"), ("call_1", "c2lnbmVk")]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_encrypted_reasoning_goes_back(serve: Serve, stream: bool) -> None:
    """Nothing is stored at the server; its items come back in their order, results after the calls."""
    endpoint = serve(speaking("responses", lambda turn, r: TURNS[len(endpoint.requests) - 1]))
    played(endpoint, api="responses", stream=stream)
    first, second, third = (r.body for r in endpoint.requests)
    assert (first["store"], first["include"]) == (False, ["reasoning.encrypted_content"])
    assert first["reasoning"] == {"effort": "low"}
    assert [i.get("type") or i["role"] for i in second["input"]] == [
        *("system", "user", "reasoning", "message", "function_call", "function_call"),
        *("function_call_output", "function_call_output"),
    ]
    assert second["input"][2]["encrypted_content"] == "c2lnbmVk"
    outputs = [(i["call_id"], i["output"][:4]) for i in second["input"][-2:]]
    assert outputs == [("call_0", "rain"), ("call_1", "erro")]
    assert third["input"][: len(second["input"])] == second["input"]
    assert [i.get("type") or i["role"] for i in third["input"][len(second["input"]) :]] == [
        "reasoning",
        "message",
        "user",
    ]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_signed_thinking_goes_back(serve: Serve, stream: bool) -> None:
    endpoint = serve(speaking("anthropic", lambda turn, r: TURNS[len(endpoint.requests) - 1]))
    played(endpoint, api="anthropic", stream=stream)
    first, second, third = (r.body for r in endpoint.requests)
    assert first["system"] == "Be brief."
    assert (first["thinking"], first["output_config"]) == ({"type": "adaptive"}, {"effort": "low"})
    assert first["tools"][1] == {"name": "now", "input_schema": {"type": "object"}}
    _, assistant, results = second["messages"]
    assert [b["type"] for b in assistant["content"]] == ["thinking", "text", "tool_use", "tool_use"]
    assert assistant["content"][0] == {"type": "thinking", "thinking": "Look it up. ", "signature": "c2lnbmVk"}
    assert assistant["content"][2]["input"] == {"city": "Oslo"}
    assert [b["tool_use_id"] for b in results["content"]] == ["toolu_0", "toolu_1"]
    assert [m["role"] for m in third["messages"]] == ["user", "assistant", "user", "assistant", "user"]
    headers = endpoint.requests[0].headers
    assert (headers["x-api-key"], headers["anthropic-version"]) == ("k-1234", "2023-06-01")
    assert "authorization" not in headers


LEFT_OUT = {**CHAIN, "steps": [CHAIN["steps"][0], CHAIN["steps"][2]]}


@pytest.mark.parametrize("api", APIS)
def test_a_step_without_a_result_leaves_calls_out_and_what_belongs_to_them(serve: Serve, api: str) -> None:
    """No call without its answer, no reasoning without what it led to: the history stays one that a server takes."""
    turns = [Says("", [("weather", {"city": "Oslo"})], thinking="Look."), Says("Sure.")]
    endpoint = serve(speaking(api, lambda turn, r: turns[len(endpoint.requests) - 1]))
    verdict = judge(benchmark(LEFT_OUT), played(endpoint, LEFT_OUT, api=api))
    assert verdict["score"] == 1.0
    check_request(endpoint.requests[1], stream=False)
    text = json.dumps(endpoint.requests[1].body.get("messages") or endpoint.requests[1].body["input"])
    assert not any(word in text for word in ("tool_call", "function_call", "tool_use", "encrypted", "signature"))


@pytest.mark.parametrize("api", APIS)
def test_a_refusal_is_one_in_every_api(serve: Serve, api: str) -> None:
    endpoint = serve(speaking(api, lambda turn, r: Says(refusal="I will not do that.")))
    raw = {"name": "r", "category": "instruction", "prompt": "x", "checks": [{"type": "not_contains", "value": "z"}]}
    for stream in (False, True):
        verdict = judge(benchmark(raw), played(endpoint, raw, api=api, stream=stream))
        assert (verdict["score"], verdict["outcome"]) == (0.0, "refused by the model")
        assert "I will not do that." in verdict["checks"][0]["reason"]


@pytest.mark.parametrize("api", APIS)
def test_a_reply_that_was_cut_is_truncated_in_every_api(serve: Serve, api: str) -> None:
    endpoint = serve(speaking(api, lambda turn, r: Says("half a", cut=True)))
    raw = {"name": "r", "category": "instruction", "prompt": "x", "checks": [{"type": "contains", "value": "z"}]}
    for stream in (False, True):
        assert judge(benchmark(raw), played(endpoint, raw, api=api, stream=stream))["outcome"] == "truncated"


# --- which API -----------------------------------------------------------------------------


@pytest.mark.parametrize("api", APIS)
def test_auto_finds_the_api_that_the_endpoint_speaks(serve: Serve, api: str) -> None:
    """By a plain request where there are no chat completions; asked once, however many requests there are."""
    endpoint = serve(speaking(api, lambda turn, r: Says("Sure.")))
    raw = {"name": "r", "category": "instruction", "prompt": "x", "checks": [{"type": "contains", "value": "sure"}]}

    async def go() -> tuple[list[Conversation], Any]:
        async with OpenAIBackend(endpoint.url, limits=Limits(retries=1)) as backend:
            jobs = (play(benchmark(raw), "m", "none", backend) for _ in range(5))
            return await asyncio.gather(*jobs), backend.parameters("m")

    conversations, parameters = asyncio.run(go())
    assert all(judge(benchmark(raw), c)["score"] == 1.0 for c in conversations)
    assert parameters.get("api", "chat") == api
    wrong = [r for r in endpoint.requests if r.path != ROUTES[api]]
    assert len(wrong) <= 5 + APIS.index(api)
    assert len(endpoint.requests) - len(wrong) == 5 + (api != "chat")


def test_a_model_that_is_only_elsewhere_is_found_there(serve: Serve) -> None:
    """The words of an endpoint that has chat completions, though not for this model."""

    def script(received: Received) -> Answer:
        if received.path == ROUTES["chat"]:
            return error(404, "This model is only supported in v1/responses and not in v1/chat/completions.")
        return answer("responses", Says("Sure."), stream=False)

    endpoint = serve(script)
    raw = {"name": "r", "category": "instruction", "prompt": "x", "checks": [{"type": "contains", "value": "sure"}]}
    assert judge(benchmark(raw), played(endpoint, raw))["score"] == 1.0


def test_an_address_with_no_api_at_all_says_so(serve: Serve) -> None:
    with pytest.raises(BackendError, match=r"is http://127.0.0.1:\d+/v1/chat/completions the right address\?"):
        played(serve(lambda r: Answer(404, json={"detail": "Not Found"})))


@pytest.mark.parametrize(
    ("url", "api", "root"),
    [
        ("https://api.anthropic.com", "anthropic", "https://api.anthropic.com/v1"),
        ("https://api.anthropic.com/v1/messages", "anthropic", "https://api.anthropic.com/v1"),
        ("https://gw.example/anthropic", "anthropic", "https://gw.example/anthropic/v1"),
        ("https://gw.example/api/anthropic/v1", "anthropic", "https://gw.example/api/anthropic/v1"),
        ("http://localhost:8000/v1/responses", "responses", "http://localhost:8000/v1"),
        ("http://localhost:8000/v1/chat/completions", "chat", "http://localhost:8000/v1"),
        ("http://localhost:8000/v1", None, "http://localhost:8000/v1"),
    ],
)
def test_the_address_tells(url: str, api: str | None, root: str) -> None:
    from pytest_tsuka.backends.http.urls import read_base_url

    assert (read_base_url(url).api, read_base_url(url).root) == (api, root)


# --- efforts -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("api", "style", "effort", "fields"),
    [
        ("responses", "auto", "none", {"reasoning": {"effort": "none"}}),
        ("responses", "auto", "xhigh", {"reasoning": {"effort": "xhigh"}}),
        ("anthropic", "auto", "none", {"thinking": {"type": "disabled"}}),
        ("anthropic", "auto", "xhigh", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "xhigh"}}),
        ("anthropic", "thinking_budget", "medium", {"thinking": {"type": "enabled", "budget_tokens": 4096}}),
        ("anthropic", "off", "low", {}),
    ],
)
def test_how_each_api_is_told_the_effort(serve: Serve, api: str, style: str, effort: str, fields: Any) -> None:
    endpoint = serve(speaking(api, lambda turn, r: Says("Sure.")))
    raw = {"name": "r", "category": "instruction", "prompt": "x", "checks": [{"type": "not_empty"}]}
    played(endpoint, raw, effort=effort, api=api, effort_style=style)
    (received,) = endpoint.requests
    assert {k: v for k, v in received.body.items() if k in ("reasoning", "thinking", "output_config")} == fields
    check_request(received, stream=False)


@pytest.mark.parametrize(
    ("api", "style"), [("responses", "ollama"), ("anthropic", "openrouter"), ("chat", "thinking_budget")]
)
def test_a_style_of_another_api_is_an_error(api: str, style: str) -> None:
    with pytest.raises(SettingsError, match="--tsuka-api"):
        OpenAIBackend("http://localhost:1", api=api, effort_style=style)


def test_an_unknown_api_names_the_closest() -> None:
    with pytest.raises(SettingsError, match="did you mean 'responses'"):
        OpenAIBackend("http://localhost:1", api="response")


def test_a_refused_effort_is_one_also_where_it_has_other_names(serve: Serve) -> None:
    refusal = error(400, "output_config.effort: adaptive thinking is not supported on this model")
    endpoint = serve(speaking("anthropic", lambda turn, r: refusal))
    raw = {"name": "r", "category": "instruction", "prompt": "x", "checks": [{"type": "not_empty"}]}
    with pytest.raises(EffortRefused):
        played(endpoint, raw, api="anthropic")


def test_a_temperature_that_thinking_rules_out_is_left_out(serve: Serve) -> None:
    """Named before the thinking that it does not go with: the temperature is dropped, the effort stays."""

    def script(turn: int, received: Received) -> Says | Answer:
        if "temperature" in received.body:
            return error(400, "`temperature` may only be set to 1 when thinking is enabled or in adaptive mode.")
        return Says("Sure.")

    endpoint = serve(speaking("anthropic", script))
    raw = {"name": "r", "category": "instruction", "prompt": "x", "checks": [{"type": "not_empty"}]}
    conversation = played(endpoint, raw, api="anthropic", params={"temperature": 0})
    assert judge(benchmark(raw), conversation)["score"] == 1.0
    assert endpoint.requests[-1].body["thinking"] == {"type": "adaptive"}


def test_no_temperature_where_the_api_has_none(serve: Serve) -> None:
    """Anthropic's own types know none any more; the other two are asked for 0."""
    for api, expected in (("chat", 0), ("responses", 0), ("anthropic", None)):
        endpoint = serve(speaking(api, lambda turn, r: Says("Sure.")))
        raw = {"name": "r", "category": "instruction", "prompt": "x", "checks": [{"type": "not_empty"}]}
        played(endpoint, raw, api=api)
        assert endpoint.requests[0].body.get("temperature") == expected


def test_the_limit_that_an_api_demands_is_never_left_out(serve: Serve) -> None:
    said = error(400, "max_tokens must be greater than thinking.budget_tokens, is not supported")
    endpoint = serve(speaking("anthropic", lambda turn, r: said))
    raw = {"name": "r", "category": "instruction", "prompt": "x", "checks": [{"type": "not_empty"}]}
    with pytest.raises(BackendError):
        played(endpoint, raw, api="anthropic")
    assert all(r.body["max_tokens"] for r in endpoint.requests)


def test_parameters_have_the_names_of_the_api(serve: Serve) -> None:
    for api, name in (
        ("responses", "max_output_tokens"),
        ("anthropic", "max_tokens"),
        ("chat", "max_completion_tokens"),
    ):
        endpoint = serve(speaking(api, lambda turn, r: Says("Sure.")))
        raw = {"name": "r", "category": "instruction", "prompt": "x", "checks": [{"type": "not_empty"}]}
        played(endpoint, raw, api=api, params={"max_completion_tokens": 77})
        assert endpoint.requests[0].body[name] == 77
        check_request(endpoint.requests[0], stream=False)


# --- errors of streams ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("api", "events"),
    [
        ("chat", ['data: {"error": {"message": "busy", "type": "overloaded_error"}}\n\n']),
        (
            "anthropic",
            ['event: error\ndata: {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}\n\n'],
        ),
        ("responses", ['data: {"type": "error", "code": "server_error", "message": "busy"}\n\n']),
        (
            "responses",
            [
                'data: {"type": "response.failed", "response": {"error": {"code": "server_error", "message": "busy"}}}\n\n'
            ],
        ),
    ],
)
def test_an_error_in_a_stream_is_retried(serve: Serve, api: str, events: list[str]) -> None:
    def script(turn: int, received: Received) -> Says | Answer:
        return Says("Sure.") if received.number else Answer(events=[(0.0, e) for e in events])

    endpoint = serve(speaking(api, script))
    raw = {"name": "r", "category": "instruction", "prompt": "x", "checks": [{"type": "contains", "value": "sure"}]}
    assert judge(benchmark(raw), played(endpoint, raw, api=api, stream=True))["score"] == 1.0
    assert len(endpoint.requests) == 2


def test_items_that_a_last_event_leaves_out_are_taken_from_those_before(serve: Serve) -> None:
    def script(turn: int, received: Received) -> Answer:
        made = answer("responses", Says("Sure."), stream=True)
        assert made.events
        events = [(d, e) for d, e in made.events if "response.completed" not in e]
        done = {"type": "response.completed", "response": {"status": "completed", "output": []}}
        return Answer(events=[*events, (0.0, f"data: {json.dumps(done)}\n\n")])

    raw = {"name": "r", "category": "instruction", "prompt": "x", "checks": [{"type": "contains", "value": "sure"}]}
    conversation = played(serve(speaking("responses", script)), raw, api="responses", stream=True)
    assert judge(benchmark(raw), conversation)["score"] == 1.0


# --- the fake servers, by the vendors' own clients -------------------------------------------

FULL = Says("Let me look.", [("weather", {"city": "Oslo"})], thinking="Look it up.")


def test_the_fakes_answers_are_the_vendors() -> None:
    def body(api: str) -> Any:
        return answer(api, FULL, stream=False).json

    ChatCompletion.model_validate(body("chat"))
    openai_responses.Response.model_validate(body("responses"))
    AnthropicMessage.model_validate(body("anthropic"))
    events: list[tuple[str, Any]] = [
        ("chat", ChatCompletionChunk),
        ("responses", openai_responses.ResponseStreamEvent),
        ("anthropic", RawMessageStreamEvent),
    ]
    for api, model in events:
        for _, event in answer(api, FULL, stream=True).events or ():
            data = event.partition("data: ")[2].strip()
            if data != "[DONE]" and '"ping"' not in data:
                TypeAdapter(model).validate_python(json.loads(data))


def test_openais_client_talks_to_the_fake(serve: Serve) -> None:
    endpoint = serve(lambda r: answer(api_of(r), FULL, stream=bool(r.body.get("stream"))))
    with openai.OpenAI(base_url=endpoint.url, api_key="k", max_retries=0) as client:
        chat = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])
        assert chat.choices[0].message.content == FULL.text
        chunks = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}], stream=True)
        assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == FULL.text
        response = client.responses.create(model="m", input="x")
        assert response.output_text == FULL.text
        events = list(client.responses.create(model="m", input="x", stream=True))
        assert "".join(e.delta for e in events if e.type == "response.output_text.delta") == FULL.text


def test_anthropics_client_talks_to_the_fake(serve: Serve) -> None:
    endpoint = serve(lambda r: answer(api_of(r), FULL, stream=bool(r.body.get("stream"))))
    with anthropic.Anthropic(base_url=endpoint.url.removesuffix("/v1"), api_key="k", max_retries=0) as client:
        asked: Any = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}
        message = client.messages.create(**asked)
        assert [block.type for block in message.content] == ["thinking", "text", "tool_use"]
        with client.messages.stream(**asked) as stream:
            final = stream.get_final_message()
        assert [b.to_dict() for b in final.content] == [b.to_dict() for b in message.content]
