"""What counts as the answer: thinking apart, text normalised, calls in every shape."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tsuka.conversation import Exchange
from pytest_tsuka.runner.reply import read_reply, split_thinking
from pytest_tsuka.runner.text_calls import find_text_calls
from pytest_tsuka.text.normalise import normalise, words


@pytest.mark.parametrize(
    ("raw", "answer"),
    [
        ("<think>a</think>b", "b"),
        ("\n<THINKING>a</Thinking>\n b", "b"),
        ("<think>a</think><reasoning>b</reasoning>c", "c"),
        ("<thought>a\n", ""),
        ("a</think>b", "b"),
        ("<think/>b", "b"),
        ("<think id='1'>a</think>b", "b"),
        ("<think>why <think> twice</think> more</think>b", "b"),
        ("<think></think>\n\nb <think>c</think>", "b <think>c</think>"),
        ("Write <think> first.", "Write <think> first."),
        ("Use <think>a</think> tags", "Use <think>a</think> tags"),
        ("<thought-experiment>a", "<thought-experiment>a"),
        ("<think>a</think>b mentions </think> too", "b mentions </think> too"),
    ],
)
def test_thinking(raw: str, answer: str) -> None:
    assert normalise(split_thinking(raw)[1]) == answer


@given(
    st.text(st.sampled_from("ab <>/\n"), max_size=30),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=30).filter(lambda t: "<" not in t),
)
def test_a_closed_block_leaves_the_answer(thought: str, answer: str) -> None:
    assert split_thinking(f"<think>{thought}</think>{answer}")[1] == answer


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("\ufeffa\r\nb\r\n", "a\nb"),
        ("l\u2019uomo", "l'uomo"),
        ("10\u00a0km\u202f!", "10 km !"),
        ("so\u00adft\u200b\u2060", "soft"),
        ("e\u0300", "è"),
        ("a\ud800b", "a\ufffdb"),
        ("\ud83c\udf75", "🍵"),
        ("👩\u200d🚀 a\u200db", "👩\u200d🚀 ab"),
        ("می\u200cروم", "میروم"),
    ],
)
def test_normal_form(raw: str, text: str) -> None:
    assert normalise(raw) == text


@given(st.text())
def test_normalising_is_idempotent_and_encodable(raw: str) -> None:
    once = normalise(raw)
    assert normalise(once) == once
    once.encode("utf-8")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "- uno\n* due\n+ tre\n1. quattro\n2) cinque\n• sei",
            ["uno", "due", "tre", "quattro", "cinque", "sei"],
        ),
        ("- [x] fatto\n- [ ] da fare", ["fatto", "da", "fare"]),
        ("> 1. citato", ["citato"]),
        ("**1.** Oslo", ["Oslo"]),
        ("3 gatti", ["3", "gatti"]),
        ("42.", ["42"]),
        ("Nel 1999. Poi", ["Nel", "1999", "Poi"]),
        ("a – b — c―d", ["a", "b", "c", "d"]),
        ("state-of-the-art", ["state-of-the-art"]),
        ("1️⃣ uno 2️⃣ due", ["uno", "due"]),
        ("水とお茶", ["水", "と", "お", "茶"]),
        ("GPT模型", ["GPT", "模", "型"]),
        ("한국어 문장", ["한국어", "문장"]),
        ("हिन्दी।", ["हिन्दी"]),
        ("«po'» (2.75) 'x'!", ["po", "2.75", "x"]),
        ("... — !!", []),
        ("", []),
    ],
)
def test_words(text: str, found: list[str]) -> None:
    assert words(normalise(text)) == found


def one_call(arguments: Any) -> Any:
    message = {
        "content": None,
        "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": arguments}}],
    }
    return read_reply(Exchange(message), ("f",)).tool_calls[0]


@pytest.mark.parametrize(
    ("sent", "arguments"),
    [
        ('{"a": 1}', {"a": 1}),
        ({"a": 1}, {"a": 1}),
        (None, {}),
        ("", {}),
        (" \n", {}),
        ("null", {}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ("{'a': 1,}", {"a": 1}),
        ('{"a": 1}"', {"a": 1}),
        ('{"a": "cut', None),
        ("[1]", None),
        ([1], None),
        ('"text"', None),
    ],
)
def test_arguments(sent: Any, arguments: Any) -> None:
    """Every form servers use; what is no object is kept with its problem, and the call still counts."""
    call = one_call(sent)
    assert call.name == "f"
    assert call.arguments == arguments
    assert (call.problem is None) == (arguments is not None)


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"])),
        st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    )
)
def test_valid_arguments_come_out_equal(arguments: dict[str, Any]) -> None:
    assert one_call(json.dumps(arguments)).arguments == arguments
    assert one_call(json.dumps(json.dumps(arguments))).arguments == arguments


def test_legacy_function_call() -> None:
    reply = read_reply(Exchange({"content": "", "function_call": {"name": "f", "arguments": '{"a": 2}'}}), ("f",))
    assert [(c.name, c.arguments) for c in reply.tool_calls] == [("f", {"a": 2})]


WEATHER = '{"city": "Roma"}'


@pytest.mark.parametrize(
    "text",
    [
        f'<tool_call>{{"name": "weather", "arguments": {WEATHER}}}</tool_call>',
        f'Sure.\n<tool_call>\n{{"name": "weather", "arguments": {json.dumps(WEATHER)}}}',
        f'<|tool_call|>[{{"name": "weather", "arguments": {WEATHER}}}]',
        f'<function_call>{{"name": "weather", "parameters": {WEATHER}}}</function_call>',
        f'[TOOL_CALLS] [{{"name": "weather", "arguments": {WEATHER}}}]',
        f"[TOOL_CALLS]weather[ARGS]{WEATHER}",
        f"[TOOL_CALLS]weather[CALL_ID]abc123[ARGS]{WEATHER}",
        f'<|python_tag|>{{"name": "weather", "parameters": {WEATHER}}}',
        '<|python_tag|>weather.call(city="Roma")',
        f"<function=weather>{WEATHER}</function>",
        "<tool_call>\n<function=weather>\n<parameter=city>\nRoma\n</parameter>\n</function>\n</tool_call>",
        '<invoke name="weather">\n<parameter name="city">Roma</parameter>\n</invoke>',
        f"<|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|>{WEATHER}<|tool_call_end|>",
        f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n{WEATHER}\n```",
        f"<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{WEATHER}",
        f'{{"name": "weather", "arguments": {WEATHER}}}',
        f'```json\n{{"name": "weather", "arguments": {WEATHER}}}\n```',
        f'Calling it:\n{{"type": "function", "function": {{"name": "weather", "arguments": {WEATHER}}}}}',
        f'{{"function": "weather", "arguments": {WEATHER}}}',
    ],
)
def test_calls_written_as_text(text: str) -> None:
    """Not a call, but recognised, so that the failure can say what happened."""
    (call,) = find_text_calls(text, ("weather",))
    assert (call.name, call.arguments) == ("weather", {"city": "Roma"})
    reply = read_reply(Exchange({"content": text}), ("weather",))
    assert reply.tool_calls == ()
    assert "written as text" in reply.notes[-1]
    assert read_reply(Exchange({"content": text}), ("weather",), accept_text_calls=True).tool_calls[0].arguments == {
        "city": "Roma"
    }


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "Anna", "arguments": {}}',
        '{"name": "weather"}',
        "weather(city='Roma')",
        "I would call weather.",
    ],
)
def test_what_is_no_call(text: str) -> None:
    """A record with a name is no call unless a tool of that name was offered."""
    assert find_text_calls(text, ("weather",)) == ()


@given(st.text(st.sampled_from('<>|/{}[]"=tolcaf_ \nTOLCAS'), max_size=200))
def test_text_calls_never_raise(text: str) -> None:
    find_text_calls(text, ("a",))
