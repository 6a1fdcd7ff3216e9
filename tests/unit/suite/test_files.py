"""Reading benchmark files: every mistake with its place, what was found, and what would do; the editors' schema."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from pytest_tsuka.checks import BUILT_IN
from pytest_tsuka.errors import BenchmarkError
from pytest_tsuka.suite.files import json_schema, parse_benchmark, read_suite, standard_suite
from tests.unit.checks.test_checks import OPERANDS

OK: dict[str, Any] = {"name": "a", "category": "json", "prompt": "x", "checks": [{"type": "json_valid"}]}
STEP: dict[str, Any] = {"prompt": "x", "checks": [{"type": "not_empty"}]}
LONG: dict[str, Any] = {"name": "a", "category": "json"}
TOOL: dict[str, Any] = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


def problems(data: Any) -> list[str]:
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    with pytest.raises(BenchmarkError) as caught:
        parse_benchmark(raw, "f.json")
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({**OK, "wieght": 2}, "wieght: unknown field 'wieght'; did you mean 'weight'?"),
        ({**OK, "category": "jsn"}, "category: must be 'instruction', 'json' or 'toolCalling', found string \"jsn\"; did you mean 'json'?"),
        ({**OK, "weight": 0}, "weight: must be greater than 0, found number 0"),
        ({**OK, "weight": "2"}, 'weight: must be a valid number, found string "2"'),
        ({**OK, "weight": True}, "weight: must be a valid number, found boolean true"),
        ({**OK, "name": ""}, "name: must not be empty"),
        ({**OK, "name": "late[1]"}, "name: cannot be part of a test id because of '['; call it 'late_1'"),
        ({**OK, "prompt": ""}, "prompt: must not be empty"),
        ({**OK, "checks": []}, "checks: must not be empty"),
        ({k: v for k, v in OK.items() if k != "prompt"}, "needs prompt (short form: prompt and checks; long form: steps)"),
        ({**OK, "steps": [STEP]}, "has both forms: use prompt and checks, or steps, not both"),
        ({**LONG, "steps": []}, "steps: must not be empty"),
        ({**LONG, "steps": [{**STEP, "toolResult": "x"}]}, "steps[0].toolResult: there is no tool call before the first step"),
        ({**LONG, "steps": [{"toolResult": "x", "checks": STEP["checks"]}]}, "steps[0].toolResult: there is no tool call before the first step"),
        ({**LONG, "steps": [STEP, {"checks": STEP["checks"]}]}, "steps[1]: a step needs a prompt or a toolResult"),
        ({**LONG, "steps": [STEP, {**STEP, "chekcs": []}]}, "steps[1].chekcs: unknown field 'chekcs'; did you mean 'checks'?"),
        ({**LONG, "steps": [STEP, {**STEP, "toolResult": {"g": "x"}}], "tools": [TOOL]}, "steps[1].toolResult: unknown tool 'g'"),
        ({**OK, "tools": [{"name": "f"}]}, 'tools: tool 0 must be {"type": "function"'),
        ({**OK, "tools": [TOOL, TOOL]}, "tools: two tools are called 'f'"),
        ({**OK, "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "strng"}}}]}, "tools: tool 0 (f): parameters must describe an object"),
        ({**OK, "tools": [{"type": "function", "function": {"name": "f", "parameters": {"properties": {"a": {"type": "strng"}}}}}]}, "tools: tool 0 (f): parameters is not a valid JSON Schema at properties/a/type"),
        ({**OK, "checks": [{"type": "json_vald"}]}, "checks[0].type: unknown check type 'json_vald'; did you mean 'json_valid'?"),
        ({**OK, "checks": [5]}, "checks[0]: must be an object, found number 5"),
        ({**OK, "checks": [{"value": 1}]}, "checks[0].type: is missing"),
        ({**OK, "checks": [{"type": "word_count"}]}, "checks[0].value: is missing"),
        ({**OK, "checks": [{"type": "word_count", "value": "5"}]}, 'checks[0].value: must be a valid integer, found string "5"'),
        ({**OK, "checks": [{"type": "word_count", "value": -1}]}, "checks[0].value: must be greater than or equal to 0, found number -1"),
        ({**OK, "checks": [{"type": "word_count", "value": 5, "weight": -1}]}, "checks[0].weight: must be greater than 0, found number -1"),
        ({**OK, "checks": [{"type": "not_empty", "value": 3}]}, "checks[0].value: unknown field 'value' (allowed: type, weight)"),
        ({**OK, "checks": [{"type": "regex", "value": "("}]}, "checks[0]: the pattern '(' does not compile"),
        ({**OK, "checks": [{"type": "regex", "value": "a", "flags": "y"}]}, "checks[0].flags: flag 'y' (sticky) cannot be honoured"),
        ({**OK, "checks": [{"type": "regex", "value": "a", "flags": "q"}]}, "checks[0].flags: unknown flag 'q' (allowed: i, m, s, x, u, g, d)"),
        ({**OK, "checks": [{"type": "contains", "value": ""}]}, "checks[0].value: must not be empty"),
        ({**OK, "checks": [{"type": "first_word", "value": "two words"}]}, "checks[0].value: must be a single word"),
        ({**OK, "checks": [{"type": "json_path_equals", "path": "a..b", "value": 1}]}, "checks[0].path: the path 'a..b' cannot be read from character 1"),
        ({**OK, "checks": [{"type": "json_path_type", "path": "a", "value": "strng"}]}, "checks[0].value: must be 'string', 'number'"),
        ({**OK, "checks": [{"type": "json_schema", "value": {"type": "strng"}}]}, "checks[0].value: is not a valid JSON Schema at type"),
        ({**OK, "checks": [{"type": "tool_called", "value": "f", "call": "all"}]}, "checks[0].call: must be 'any' or a valid integer, found string \"all\""),
        ({**OK, "checks": [{"type": "tool_calls", "value": [{"nmae": "f"}]}]}, "checks[0].value[0].name: is missing"),
        (b"\xff{}", "line 1: not UTF-8: byte 0xff"),
        (b'{"a":\n 1,}', f"line 2, column {3 if sys.version_info >= (3, 13) else 4}: not JSON"),
        (b'{"name": "a", "name": "b"}', "the key 'name' stands twice in one object"),
        (b'{"weight": NaN}', "NaN is not JSON"),
        ({**OK, "weight": 1e308}, "weight: must be less than or equal to 1000000, found number 1e+308"),
        ({**OK, "checks": [{"type": "not_empty", "weight": 1e308}] * 2}, "checks[1].weight: must be less than or equal to 1000000"),
        (b'{"name": "a", "checks": [{"type": "json_path_equals", "path": "a", "value": {"b": [1, 1e400]}}]}', "checks[0].value.b[1]: the number is larger than any that can be computed with"),
        (b'{"name": "a", "x.y": -1e999}', '["x.y"]: the number is larger than any'),
        ({**OK, "name": "a\u202eb"}, "name: cannot be part of a test id because of '\\u202e'; call it 'ab'"),
        ({**OK, "name": "a\U000e0041"}, "name: cannot be part of a test id because of '\\U000e0041'; call it 'a'"),
        (b"[1]", "must be one JSON object"),
        (b"[" * 100_000, "not usable JSON"),
        (b"", "line 1, column 1: not JSON"),
    ],
    ids=range(52),
)  # fmt: skip
def test_every_mistake_has_its_place(data: Any, said: str) -> None:
    assert any(problem.startswith(said) for problem in problems(data)), problems(data)


def test_all_mistakes_of_a_file_are_said_at_once() -> None:
    found = problems(
        {**OK, "wieght": 2, "checks": [{"type": "x"}, {"type": "regex", "value": "("}, {"type": "word_count"}]}
    )
    assert len(found) == 4


def test_what_is_allowed() -> None:
    """The schema link of an editor, a byte-order mark, an empty toolResult, numbers of either kind."""
    benchmark = parse_benchmark(b"\xef\xbb\xbf" + json.dumps({**OK, "$schema": "https://x", "weight": 2}).encode(), "f")
    assert benchmark.weight == 2
    steps = [STEP, {"toolResult": "", "checks": STEP["checks"]}]
    assert parse_benchmark(json.dumps({**LONG, "steps": steps}).encode(), "f").all_steps[1].tool_result == ""


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda v: st.lists(v, max_size=3) | st.dictionaries(st.sampled_from(["name", "category", "steps", "checks", "type", "value", "prompt", "toolResult", "tools", "weight"]), v, max_size=5), max_leaves=12))  # fmt: skip
def test_nothing_but_a_benchmark_error(data: Any) -> None:
    """Whatever a file holds, the answer is a benchmark or located problems."""
    refused: BenchmarkError | None = None
    try:
        parse_benchmark(json.dumps(data).encode(), "f.json")
    except BenchmarkError as error:
        refused = error
    assert refused is None or refused.problems


SCHEMA = Draft202012Validator(json_schema())


def test_the_schema_accepts_what_the_reader_accepts() -> None:
    """The standard suite, and every check type with its operands."""
    Draft202012Validator.check_schema(json_schema())
    for path in read_suite(standard_suite()).benchmarks:
        assert list(SCHEMA.iter_errors(json.loads(path.read_text(encoding="utf-8")))) == []
    for kind, operands in OPERANDS.items():
        assert list(SCHEMA.iter_errors({**OK, "checks": [{"type": kind, **operands}]})) == [], kind
    assert set(json_schema()["$defs"]["Check"]["oneOf"][0]) == {"$ref"}
    assert len(json_schema()["$defs"]["Check"]["oneOf"]) == len(BUILT_IN)


@pytest.mark.parametrize(
    "data",
    [
        {**OK, "wieght": 2},
        {**OK, "category": "jsn"},
        {**OK, "checks": []},
        {**OK, "checks": [{"type": "json_vald"}]},
        {**OK, "checks": [{"type": "word_count"}]},
        {**OK, "checks": [{"type": "word_count", "value": "5"}]},
        {**OK, "checks": [{"type": "not_empty", "value": 3}]},
        {**OK, "steps": [STEP]},
        {"name": "a", "category": "json", "prompt": "x"},
    ],
    ids=range(9),
)
def test_the_schema_refuses_what_the_reader_refuses(data: Any) -> None:
    assert problems(data)
    assert list(SCHEMA.iter_errors(data))


def test_a_suite_with_bad_files(tmp_path: Path) -> None:
    """Good and bad are told apart, names are unique, other files are none of the suite's business."""
    for name, data in {"a": OK, "b": {**OK, "name": "b"}, "c": OK, "d": {}}.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(data))
    (tmp_path / "notes.md").write_text("x")
    suite = read_suite(tmp_path)
    assert [p.name for p in suite.benchmarks] == ["a.json", "b.json"]
    assert [p.name for p in suite.errors] == ["d.json", "c.json"]
    assert not suite.usable
    assert not read_suite(tmp_path / "nowhere").usable
