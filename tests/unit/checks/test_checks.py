"""Every check type: when it passes, what its failure says, and that it never raises."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tsuka.checks import BUILT_IN, Check, Subject, check_types
from pytest_tsuka.conversation import Exchange
from pytest_tsuka.errors import SettingsError
from pytest_tsuka.runner.reply import read_reply
from pytest_tsuka.text.json_paths import PathError, equal, look_up, parse_path
from pytest_tsuka.text.json_types import ABSENT

TOOLS = tuple(
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
                "required": ["city"],
            },
        },
    }
    for name in ("weather", "forecast")
)


def subject(text: str = "", *calls: tuple[str, Any], finish: str = "stop") -> Subject:
    listed = [{"id": str(i), "function": {"name": n, "arguments": a}} for i, (n, a) in enumerate(calls)]
    return Subject(
        read_reply(Exchange({"content": text, "tool_calls": listed}, finish), ("weather", "forecast")), TOOLS
    )


def check(kind: str, **operands: Any) -> Check:
    return BUILT_IN[kind].model_validate({"type": kind, **operands})


def passes(kind: str, about: Subject, **operands: Any) -> bool:
    return check(kind, **operands).apply(about).passed


def reason(kind: str, about: Subject, **operands: Any) -> str:
    return check(kind, **operands).apply(about).reason


DOCUMENT = '{"a": {"b": [1, 2.0, {"c": null}]}, "t": true, "s": "x", "n": 4.0, "k.d": "dot", "e": [], "l": "L’uomo"}'


@pytest.mark.parametrize(
    ("kind", "operands", "expected"),
    [
        ("json_valid", {}, True),
        ("json_valid", {"strict": True}, True),
        ("json_path_equals", {"path": "a.b[0]", "value": 1.0}, True),
        ("json_path_equals", {"path": "$.a.b[-1].c", "value": None}, True),
        ("json_path_equals", {"path": "a.b[9]", "value": None}, False),
        ("json_path_equals", {"path": "a.nope", "value": None}, False),
        ("json_path_equals", {"path": '["k.d"]', "value": "dot"}, True),
        ("json_path_equals", {"path": "k.d", "value": "dot"}, False),
        ("json_path_equals", {"path": "t", "value": 1}, False),
        ("json_path_equals", {"path": "t", "value": "true"}, False),
        ("json_path_equals", {"path": "a.length", "value": 1}, False),
        ("json_path_equals", {"path": "l", "value": "L'uomo"}, True),
        ("json_path_equals", {"path": "l", "value": "L’uomo"}, True),
        ("json_path_equals", {"path": "", "value": json.loads(DOCUMENT)}, True),
        ("json_path_type", {"path": "n", "value": "integer"}, True),
        ("json_path_type", {"path": "n", "value": "number"}, True),
        ("json_path_type", {"path": "t", "value": "number"}, False),
        ("json_path_type", {"path": "a.b[2].c", "value": "object"}, False),
        ("json_path_type", {"path": "a.b[2].c", "value": "null"}, True),
        ("json_path_type", {"path": "e", "value": "array"}, True),
        ("json_path_type", {"path": "e", "value": "object"}, False),
        ("json_path_type", {"path": "nope", "value": "null"}, False),
        ("json_path_length", {"path": "a.b", "value": 3}, True),
        ("json_path_length", {"path": "s", "value": 1}, False),
        ("json_path_length", {"path": "e", "value": 0}, True),
        ("json_path_regex", {"path": "s", "value": "^X$", "flags": "i"}, True),
        ("json_path_regex", {"path": "a.b", "value": r"\[1, 2"}, True),
        ("json_path_exists", {"path": "a.b[2].c"}, True),
        ("json_path_exists", {"path": "a.z"}, False),
        ("json_path_absent", {"path": "a.z"}, True),
        ("json_path_absent", {"path": "a.b"}, False),
        ("json_schema", {"value": {"required": ["a", "t"]}}, True),
        ("json_schema", {"value": {"properties": {"s": {"type": "integer"}}}}, False),
        ("json_schema", {"value": False}, False),
    ],
)
def test_json_checks(kind: str, operands: dict[str, Any], expected: bool) -> None:
    assert passes(kind, subject(DOCUMENT), **operands) is expected


def test_json_checks_without_json() -> None:
    """All of them fail on prose, the negative one too, and say that there is no JSON."""
    about = subject("I would rather not.")
    cases: list[tuple[str, dict[str, Any]]] = [
        ("json_valid", {}),
        ("json_path_equals", {"path": "a", "value": 1}),
        ("json_path_absent", {"path": "a"}),
        ("json_path_exists", {"path": "a"}),
        ("json_schema", {"value": {}}),
    ]
    for kind, operands in cases:
        assert not passes(kind, about, **operands)
        assert "no JSON" in reason(kind, about, **operands)


def test_strict_json() -> None:
    """A fence, prose, a repair, NaN: lenient passes, strict fails and says what was needed."""
    for text in (f"```json\n{DOCUMENT}\n```", f"Here: {DOCUMENT}", '{"a": 1,}', '{"a": NaN}'):
        assert passes("json_valid", subject(text))
        assert not passes("json_valid", subject(text), strict=True)
    assert "taken from a code fence" in reason("json_valid", subject(f"```\n{DOCUMENT}\n```"), strict=True)


def test_no_break_spaces_between_tokens() -> None:
    """JSON knows no such white space; the reader does."""
    assert passes("json_path_equals", subject('{\u00a0"a":\u00a01}'), path="a", value=1)


@pytest.mark.parametrize(
    ("kind", "operands", "expected"),
    [
        ("tool_called", {"value": "weather"}, True),
        ("tool_called", {"value": "forecast"}, False),
        ("tool_called", {"value": "forecast", "call": "any"}, True),
        ("tool_called", {"value": "forecast", "call": 1}, True),
        ("tool_called", {"value": "weather", "call": 7}, False),
        ("tool_not_called", {"value": "forecast"}, False),
        ("tool_not_called", {"value": "delete"}, True),
        ("tool_not_called", {}, False),
        ("tool_arg_equals", {"arg": "city", "value": "Rome"}, True),
        ("tool_arg_equals", {"arg": "days", "value": 3}, False),
        ("tool_arg_equals", {"arg": "days", "value": 3, "call": 1}, True),
        ("tool_arg_equals", {"arg": "days", "value": "3", "call": 1}, False),
        ("tool_arg_equals", {"arg": "days", "value": "3", "call": 1, "lenient": True}, True),
        ("tool_arg_equals", {"arg": "nested.deep[0]", "value": True, "call": 1}, True),
        ("tool_arg_regex", {"arg": "city", "value": "rome"}, True),
        ("tool_arg_regex", {"arg": "city", "value": "rome", "flags": ""}, False),
        ("tool_arg_regex", {"arg": "days", "value": "^3$", "call": 1}, True),
        ("tool_args_valid", {}, True),
        ("tool_args_valid", {"call": 1}, False),
        ("tool_calls", {"value": [{"name": "forecast"}, {"name": "weather"}]}, True),
        ("tool_calls", {"value": [{"name": "weather"}]}, False),
        ("tool_calls", {"value": [{"name": "weather", "arguments": {"city": "Rome"}}, {"name": "forecast"}]}, True),
        ("tool_calls", {"value": [{"name": "weather", "arguments": {"city": "Oslo"}}, {"name": "forecast"}]}, False),
        ("tool_calls", {"value": []}, False),
    ],
)
def test_tool_checks(kind: str, operands: dict[str, Any], expected: bool) -> None:
    about = subject(
        "", ("weather", {"city": "Rome"}), ("forecast", {"city": "Oslo", "days": 3, "nested": {"deep": [True]}})
    )
    assert passes(kind, about, **operands) is expected


def test_invented_arguments_and_wrong_types() -> None:
    """The offered tool's own schema is the measure; what it does not list is invented."""
    assert "'days'" not in reason("tool_args_valid", subject("", ("weather", {"city": "Rome", "days": 2})))
    assert "'unit' was unexpected" in reason("tool_args_valid", subject("", ("weather", {"city": "R", "unit": "C"})))
    assert "is not of type 'integer'" in reason("tool_args_valid", subject("", ("weather", {"city": "R", "days": "2"})))
    assert "'city' is a required property" in reason("tool_args_valid", subject("", ("weather", {})))
    assert "never offered (closest offered: 'weather')" in reason("tool_args_valid", subject("", ("wheather", {})))


def test_a_set_of_calls_is_matched_as_a_set() -> None:
    """A call without arguments does not take the partner of one with arguments; each call counts once."""
    expected = [{"name": "weather"}, {"name": "weather", "arguments": {"city": "Rome"}}]
    rome, oslo = ("weather", {"city": "Rome"}), ("weather", {"city": "Oslo"})
    assert passes("tool_calls", subject("", rome, oslo), value=expected)
    assert passes("tool_calls", subject("", oslo, rome), value=expected)
    assert not passes("tool_calls", subject("", rome), value=expected)
    assert not passes("tool_calls", subject("", rome, rome, oslo), value=expected)
    assert "not expected weather" in reason("tool_calls", subject("", rome, oslo, oslo), value=expected)
    assert passes("tool_calls", subject("done"), value=[])
    assert not passes("tool_calls", subject(""), value=[])


def test_cut_arguments() -> None:
    """The call counts as called, its argument checks fail with the reason."""
    about = subject("", ("weather", '{"city": "Ro'))
    assert passes("tool_called", about, value="weather")
    assert "cut off" in reason("tool_arg_equals", about, arg="city", value="Ro")


def test_nothing_said_earns_nothing() -> None:
    """No negative check passes on an empty reply; a tool call or any text is enough to be judged."""
    negative: list[tuple[str, dict[str, Any]]] = [
        ("not_contains", {"value": "x"}),
        ("not_regex", {"value": "x"}),
        ("tool_not_called", {}),
        ("tool_not_called", {"value": "x"}),
        ("max_words", {"value": 5}),
        ("json_path_absent", {"path": "a"}),
    ]
    for kind, operands in negative:
        for nothing in ("", " \n", "<think>hmm</think>", "<think>never closed"):
            assert not passes(kind, subject(nothing), **operands)
    assert passes("not_contains", subject("", ("weather", {})), value="x")
    assert passes("tool_not_called", subject("no"))


@pytest.mark.parametrize(
    ("kind", "text", "operands", "expected"),
    [
        ("min_words", "a b c", {"value": 3}, True),
        ("min_words", "a b", {"value": 3}, False),
        ("max_words", "a b c", {"value": 3}, True),
        ("max_words", "a b c d", {"value": 3}, False),
        ("line_count", "a\r\n\r\nb", {"value": 2}, True),
        ("first_word", "«Stamattina» il", {"value": "Stamattina"}, True),
        ("first_word", "stamattina", {"value": "Stamattina"}, False),
        ("first_word", "stamattina", {"value": "Stamattina", "flags": "i"}, True),
        ("last_word", "… il mare!”", {"value": "mare"}, True),
        ("last_word", "un po'", {"value": "po’"}, True),
        ("first_word", "你好世界", {"value": "你好"}, True),
        ("contains", "STRASSE", {"value": "straße"}, True),
        ("contains", "Straße", {"value": "straße", "flags": ""}, False),
        ("contains", "l’uomo", {"value": "l'uomo"}, True),
        ("contains", "e\u0300 qui", {"value": "è"}, True),
        ("contains", "a b", {"value": "a "}, True),
        ("not_contains", "grosso", {"value": "rosso"}, False),
        ("regex", "l’uomo", {"value": "^l’uomo$"}, True),
        ("regex", "a\n", {"value": "a$"}, True),
        ("regex", "a\nb", {"value": "a$"}, False),
        ("regex", "a\nb", {"value": "a$", "flags": "m"}, True),
        ("regex", "perché no", {"value": r"\bperché\b"}, True),
        ("regex", "٣", {"value": r"\d"}, False),
        ("not_empty", "x", {}, True),
        ("not_empty", "<think>x</think>", {}, False),
    ],
)
def test_text_checks(kind: str, text: str, operands: dict[str, Any], expected: bool) -> None:
    assert passes(kind, subject(text), **operands) is expected


def test_a_runaway_pattern_fails_with_its_reason() -> None:
    about = subject("a" * 200 + "!")
    assert "was stopped after 1 s" in reason("regex", about, value="(a|aa)+$")
    assert not passes("not_regex", about, value="(a|aa)+$")
    schema = {"type": "string", "pattern": "(a|aa)+$"}
    assert "was stopped after 1 s" in reason("json_schema", subject(json.dumps("a" * 200 + "!")), value=schema)


ANY_TEXT = st.text(max_size=60)
OPERANDS: dict[str, dict[str, Any]] = {
    "word_count": {"value": 1}, "line_count": {"value": 1}, "first_word": {"value": "a"}, "last_word": {"value": "a"},
    "contains": {"value": "a"}, "not_contains": {"value": "a"}, "regex": {"value": "a"}, "not_regex": {"value": "a"},
    "not_empty": {}, "json_valid": {}, "json_path_equals": {"path": "a[0]", "value": 1},
    "json_path_type": {"path": "a", "value": "null"}, "json_path_length": {"path": "", "value": 0},
    "tool_called": {"value": "a"}, "tool_not_called": {}, "tool_arg_equals": {"arg": "a", "value": 1},
    "tool_arg_regex": {"arg": "a", "value": "a"}, "json_schema": {"value": {"type": "object"}},
    "json_path_regex": {"path": "a", "value": "a"}, "json_path_exists": {"path": "a"}, "json_path_absent": {"path": "a"},
    "tool_args_valid": {}, "tool_calls": {"value": [{"name": "a"}]}, "min_words": {"value": 1}, "max_words": {"value": 1},
}  # fmt: skip


@given(
    ANY_TEXT, st.lists(st.tuples(ANY_TEXT, ANY_TEXT | st.none() | st.dictionaries(ANY_TEXT, st.integers())), max_size=2)
)
def test_no_check_raises_on_what_a_model_says(text: str, calls: list[tuple[str, Any]]) -> None:
    assert OPERANDS.keys() == BUILT_IN.keys()
    about = subject(text, *calls)
    for kind, operands in OPERANDS.items():
        made = check(kind, **operands)
        result = made.evaluate(about) if not (made.negative and about.reply.empty) else made.apply(about)
        assert isinstance(result.passed, bool)
        assert result.reason


def test_a_check_with_a_bug_costs_its_own_point() -> None:
    from typing import Literal

    class Broken(Check):
        type: Literal["broken"]

        def evaluate(self, subject: Subject) -> Any:
            raise KeyError("oops")

    made = check_types([Broken])["broken"].model_validate({"type": "broken"})
    assert made.apply(subject("x")) == (False, "the check could not be evaluated: KeyError: 'oops'")
    with pytest.raises(SettingsError, match="two check types are called 'broken'"):
        check_types([Broken, Broken])


# --- paths and equality ----------------------------------------------------------------------


@pytest.mark.parametrize("path", ["a..b", ".a", "a[", "a[x]", "a]", "a b[", '["a', "a.[0]b"])
def test_unreadable_paths(path: str) -> None:
    with pytest.raises(PathError, match="path"):
        parse_path(path)


keys = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
documents = st.recursive(
    leaves, lambda v: st.lists(v, max_size=3) | st.dictionaries(keys, v, max_size=3), max_leaves=10
)


@given(documents, st.data())
def test_every_value_has_a_path(document: Any, data: Any) -> None:
    """Quoted keys reach whatever a key holds."""
    path, value = "$", document
    while isinstance(value, (dict, list)) and value and data.draw(st.booleans()):
        if isinstance(value, dict):
            key = data.draw(st.sampled_from(sorted(value)))
            path += f"[{json.dumps(key)}]"
            value = value[key]
        else:
            index = data.draw(st.integers(-len(value), len(value) - 1))
            path += f"[{index}]"
            value = value[index]
    assert look_up(document, path) is value or look_up(document, path) == value


@given(documents)
def test_equality_is_reflexive_and_survives_json(document: Any) -> None:
    assert equal(document, document)
    assert equal(json.loads(json.dumps(document)), document)
    assert not equal(ABSENT, document)


@given(documents, documents)
def test_equality_is_symmetric(a: Any, b: Any) -> None:
    assert equal(a, b) == equal(b, a)


@pytest.mark.parametrize(
    ("found", "expected", "strict", "lenient"),
    [
        (4, 4.0, True, True),
        (1, True, False, False),
        (True, 1, False, False),
        (0, False, False, False),
        (None, 0, False, False),
        ("", 0, False, False),
        ([], 0, False, False),
        ("5", 5, False, True),
        (6, "6", False, True),
        ("005", 5, False, False),
        ("true", True, False, True),
        ("True", True, False, False),
        (True, "true", False, False),
        (0.1 + 0.2, 0.3, True, True),
        (9007199254740993, 9007199254740992, False, False),
        (9007199254740993, 9007199254740993, True, True),
        ("e\u0300", "è", True, True),
        ("A", "a", False, False),
        ([1, 2], [2, 1], False, False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True, True),
        ({"a": 1}, {"a": 1, "b": None}, False, False),
        (["5"], [5], False, True),
    ],
)
def test_equality(found: Any, expected: Any, strict: bool, lenient: bool) -> None:
    assert equal(found, expected) is strict
    assert equal(found, expected, lenient=True) is lenient
