"""Failures of tools like this one, reported by their users: replies and checks with the right outcome."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from pytest_tsuka.backends.scripted import ScriptedBackend
from pytest_tsuka.checks import BUILT_IN, Subject
from pytest_tsuka.conversation import Exchange, Reply
from pytest_tsuka.errors import BenchmarkError
from pytest_tsuka.protocols import Request
from pytest_tsuka.runner.play import play
from pytest_tsuka.runner.reply import read_reply
from pytest_tsuka.suite.files import parse_benchmark
from pytest_tsuka.text.json_find import FoundJson, find_json
from pytest_tsuka.text.json_types import JsonObject
from pytest_tsuka.text.normalise import filled_lines, words

CASES = {c["id"]: c for c in json.loads((Path(__file__).parents[1] / "data" / "field_cases.json").read_text())}

SPEC_DIFFERS = {
    # first_word is case-sensitive unless flags has i (fixture format, section 3).
    "C05": [True, False],
}


def tools_of(case: dict[str, Any]) -> tuple[JsonObject, ...]:
    return tuple({"type": "function", "function": tool} for tool in case["input"].get("tools", ()))


def reply_for(variant: dict[str, Any], *, text_calls: bool = False, offered: tuple[str, ...] = ()) -> Reply:
    if "output_repeat" in variant:
        message = {"content": variant["output_repeat"]["text"] * variant["output_repeat"]["times"]}
    else:
        message = variant.get("message") or {"role": "assistant", "content": variant["output"]}
    exchange = Exchange(message, finish_reason=variant.get("finish_reason", "stop"))
    return read_reply(exchange, offered, accept_text_calls=text_calls)


def outcomes(checks: list[dict[str, Any]], reply: Reply, tools: tuple[JsonObject, ...] = ()) -> list[bool]:
    subject = Subject(reply, tools)
    return [BUILT_IN[c["type"]].model_validate(c).apply(subject).passed for c in checks]


def matches_json(expected: dict[str, Any], reply: Reply) -> bool:
    """Whether the JSON of the answer is what one alternative of a case expects."""
    found = find_json(reply.text, truncated=reply.truncated)
    if not isinstance(found, FoundJson):
        return expected.get("json_valid") is not True
    if expected.get("json_valid") is False:
        return False
    if "json" in expected and found.value != expected["json"]:
        return False
    return not expected.get("repaired") or bool(found.notes)


@pytest.mark.parametrize("case_id", [i for i in CASES if i[0] == "A"])
def test_json_in_output(case_id: str) -> None:
    """The JSON that the reply means is found, and nothing that it does not mean."""
    case = CASES[case_id]
    variants = case["input"].get("variants", [case["input"]])
    expectations = case["expected"].get("variants", [case["expected"]])
    for variant, expected in zip(variants, expectations, strict=True):
        reply = reply_for(variant)
        alternatives = expected.get("one_of", [expected])
        assert any(matches_json(a, reply) for a in alternatives), find_json(reply.text, truncated=reply.truncated)
        if "checks" in expected:
            checks = variant.get("checks") or case["input"]["checks"]
            assert outcomes(checks, reply) == expected["checks"]


def test_unbalanced_braces_are_fast() -> None:
    """A47: tens of thousands of unbalanced braces do not stall the run."""
    start = time.perf_counter()
    assert not matches_json({"json_valid": True}, reply_for(CASES["A47"]["input"]))
    assert time.perf_counter() - start < 20  # seconds of slack for a busy machine; quadratic takes minutes


DATA_DRIVEN_B = [i for i in CASES if i[0] == "B" and i not in ("B17", "B31")]


@pytest.mark.parametrize("case_id", DATA_DRIVEN_B)
def test_tool_calls(case_id: str) -> None:
    """Calls are read in every shape in which servers send them, and judged by what they say."""
    case = CASES[case_id]
    given = case["input"]
    tools = tools_of(case)
    offered = tuple(t["function"]["name"] for t in tools)
    variants = given.get("variants", [given])
    expectations = case["expected"].get("variants", [case["expected"]] * len(variants))
    for variant, expected in zip(variants, expectations, strict=True):
        lenient = bool(given.get("lenient"))
        reply = reply_for(variant, text_calls=lenient, offered=offered)
        checks = variant.get("checks") or given.get("checks", [])
        wanted = [a["checks"] for a in expected.get("one_of", [expected.get("lenient", expected)]) if "checks" in a]
        if wanted:
            assert outcomes(checks, reply, tools) in wanted
        if "arguments" in expected:
            assert [call.arguments for call in reply.tool_calls] == [expected["arguments"]]
        if "text" in expected:
            assert reply.text == expected["text"]
        if "calls" in expected:
            assert len(reply.tool_calls) == expected["calls"]
        if lenient:
            strict = reply_for(variant, offered=offered)
            assert not any(outcomes(checks, strict, tools))
            assert any("written as text" in note for note in strict.notes)


def test_near_miss_of_a_name_is_noted() -> None:
    """B29: the closest offered name is in the notes and in the reason."""
    case = CASES["B29"]
    reply = reply_for(case["input"], offered=("list-files",))
    assert reply.notes == ("the model called unknown tool 'list_files' (closest offered: 'list-files')",)
    result = BUILT_IN["tool_called"].model_validate(case["input"]["checks"][0]).apply(Subject(reply, tools_of(case)))
    assert "closest offered: 'list-files'" in result.reason


def test_types_are_named_when_they_differ() -> None:
    """B05, B07: a string that holds JSON, or digits, is told apart from the value itself."""
    reply = reply_for(CASES["B07"]["input"])
    number = BUILT_IN["tool_arg_equals"].model_validate(CASES["B07"]["input"]["checks"][1])
    assert number.apply(Subject(reply)).reason == "argument 'n' of 'post': expected 5 (number), found \"5\" (string)"
    listed = BUILT_IN["tool_arg_equals"].model_validate(CASES["B05"]["input"]["checks"][0])
    reason = listed.apply(Subject(reply_for(CASES["B05"]["input"]))).reason
    assert "(array)" in reason
    assert "a string that holds JSON is no array" in reason


async def played(messages: list[JsonObject], steps: list[JsonObject]) -> list[Request]:
    """The requests of a conversation in which the model says `messages`."""
    seen: list[Request] = []

    def script(request: Request) -> JsonObject:
        seen.append(request)
        return messages[len(seen) - 1]

    raw = {"name": "b", "category": "toolCalling", "steps": steps}
    await play(parse_benchmark(json.dumps(raw).encode(), "b.json"), "m", "none", ScriptedBackend(script))
    return seen


def step(**fields: Any) -> JsonObject:
    return {"checks": [{"type": "not_empty"}], **fields}


def run_play(messages: list[JsonObject], steps: list[JsonObject]) -> list[Request]:
    import asyncio

    return asyncio.run(played(messages, steps))


FINAL: JsonObject = {"role": "assistant", "content": "done"}


def test_replayed_arguments_are_a_string() -> None:
    """B01: arguments that came as an object go back as a JSON string."""
    requests = run_play([CASES["B01"]["input"]["message"], FINAL], [step(prompt="x"), step(toolResult="r")])
    (sent,) = requests[1].messages[-2]["tool_calls"]
    assert sent["function"]["arguments"] == '{"city": "Oslo", "days": 2}'


def test_calls_that_share_an_id_are_answered_apart() -> None:
    """B15: two calls, two results, two ids."""
    case = CASES["B15"]["input"]
    requests = run_play([case["message"], FINAL], [step(prompt="x"), step(toolResult=case["toolResult"])])
    assistant, *results = requests[1].messages[-3:]
    ids = [c["id"] for c in assistant["tool_calls"]]
    assert len(set(ids)) == 2
    assert [(r["tool_call_id"], r["content"]) for r in results] == list(zip(ids, ["A", "B"], strict=True))


def test_one_constant_id_in_every_step() -> None:
    """B17: each result stands after its own call, under an id that is unique in the history."""
    first, second = CASES["B17"]["input"]["steps"]
    requests = run_play(
        [first["message"], second["message"], FINAL],
        [step(prompt="x"), step(toolResult=first["toolResult"]), step(toolResult=second["toolResult"])],
    )
    history = requests[2].messages
    assert [m["role"] for m in history] == ["user", "assistant", "tool", "assistant", "tool"]
    assert [m["content"] for m in history if m["role"] == "tool"] == ["r1", "r2"]
    ids = [m["tool_calls"][0]["id"] for m in history if m["role"] == "assistant"]
    assert len(set(ids)) == 2
    assert [m["tool_call_id"] for m in history if m["role"] == "tool"] == ids


def test_a_result_without_a_call_is_not_sent() -> None:
    """B19: the chain is broken, no orphan tool message reaches the server."""
    requests = run_play(
        [CASES["B19"]["input"]["message"]], [step(prompt="x"), step(toolResult="18C"), step(prompt="more")]
    )
    assert len(requests) == 1


def test_tool_names_servers_reject() -> None:
    """B31: a name with a space is a collection error with the allowed pattern."""
    raw = {"name": "b", "category": "toolCalling", **step(prompt="x"), "tools": [*tools_of(CASES["B31"])]}
    with pytest.raises(BenchmarkError, match=r"'google search'.*\^\[a-zA-Z0-9_-\]\{1,64\}\$"):
        parse_benchmark(json.dumps(raw).encode(), "b.json")


@pytest.mark.parametrize("case_id", [i for i in CASES if i[0] == "C" and i not in ("C27", "C29", "C31")])
def test_text_checks(case_id: str) -> None:
    """Words, lines, substrings and patterns mean what a reader takes them to mean."""
    case = CASES[case_id]
    variants = case["input"].get("variants", [case["input"]])
    expected = case["expected"]
    alternatives = expected.get("variants", [expected] * len(variants))
    for variant, wanted in zip(variants, alternatives, strict=True):
        checks = variant.get("checks") or case["input"]["checks"]
        reply = reply_for(variant)
        assert outcomes(checks, reply) == SPEC_DIFFERS.get(case_id, wanted.get("checks", [True] * len(checks)))
        if "count" in wanted:
            assert len(words(reply.text)) == wanted["count"]
        if "line_count" in wanted:
            assert filled_lines(reply.text) == wanted["line_count"]


def test_flag_g_keeps_no_state() -> None:
    """C27: the same check passes on every step."""
    check = BUILT_IN["regex"].model_validate(CASES["C27"]["input"]["checks"][0])
    assert [check.apply(Subject(Reply("all OK"))).passed for _ in range(3)] == [True, True, True]


@pytest.mark.parametrize("case_id", ["C29", "C31"])
def test_checks_that_assert_nothing(case_id: str) -> None:
    """An empty needle, a misspelt type or operand is a collection error, every one of them."""
    checks = CASES[case_id]["input"]["checks"]
    for check in checks:
        raw = {"name": "b", "category": "instruction", "prompt": "x", "checks": [check]}
        with pytest.raises(BenchmarkError, match=r"checks\[0\]\.(value|type|needle)"):
            parse_benchmark(json.dumps(raw).encode(), "b.json")


def test_thousands_separator_is_named_as_a_near_miss() -> None:
    """C32: contains is literal, and says that the number was there."""
    check = BUILT_IN["contains"].model_validate(CASES["C32"]["input"]["checks"][0])
    assert "near miss: “6,207”" in check.apply(Subject(Reply("The total is 6,207."))).reason


def test_every_case_of_the_field_is_covered() -> None:
    """The data file holds what the parametrised tests above run."""
    assert {i[0] for i in CASES} == {"A", "B", "C"}
    assert len(CASES) == 61
