"""Finding JSON: whatever stands around it, valid JSON comes out equal; prose and cut replies never become any."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pytest_tsuka.text.brackets import MAX_DEPTH
from pytest_tsuka.text.json_find import FoundJson, NoJson, find_json

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text
values = st.recursive(scalars, lambda v: st.lists(v, max_size=4) | st.dictionaries(text, v, max_size=4), max_leaves=12)
documents = st.dictionaries(text, values, min_size=1, max_size=4)
lists = st.lists(values, min_size=1, max_size=4)
# Prose may hold apostrophes, quotes, placeholders, stray brackets; no character that begins a document of its own.
prose = st.text(st.sampled_from("ab cdè.,'\"!:-\n()<>"), max_size=40)
spoiled = st.sampled_from(
    [
        "",
        "Close it with }. ",
        "Put {user} and {host} there.",
        "See [1] and [2].",
        "list[str] ",
        "{{ x }}\n",
        "a > b } ]",
    ]
)


def found(reply: str, **more: Any) -> Any:
    result = find_json(reply, **more)
    assert isinstance(result, FoundJson), result
    return result.value


@given(documents | lists, st.sampled_from([None, 1, 4]), st.booleans())
def test_a_clean_answer(value: Any, indent: int | None, ascii_only: bool) -> None:
    """The whole answer is JSON: equal, and clean."""
    result = find_json(json.dumps(value, indent=indent, ensure_ascii=ascii_only))
    assert isinstance(result, FoundJson)
    assert (result.value, result.how, result.clean) == (value, "whole", True)


@given(documents, prose, spoiled, prose)
def test_an_object_in_prose(value: Any, before: str, more: str, after: str) -> None:
    assert found(f"{more}{before}\n{json.dumps(value)}\n{after}{more}") == value


@given(documents, prose, prose)
def test_an_object_in_a_sentence(value: Any, before: str, after: str) -> None:
    assert found(f"x{before} {json.dumps(value, ensure_ascii=False)} {after}") == value


@given(
    documents | lists,
    prose,
    prose,
    st.sampled_from(["json", "", "JSON", "javascript"]),
    st.sampled_from([None, 2]),
)
def test_a_fence(value: Any, before: str, after: str, language: str, indent: int | None) -> None:
    assert found(f"{before}\n```{language}\n{json.dumps(value, indent=indent)}\n```\n{after}") == value


@given(documents, documents, prose)
def test_the_last_word_counts(first: Any, last: Any, between: str) -> None:
    """A model that corrects itself is taken at its last document."""
    assert found(f"{json.dumps(first)}\n{between}\n{json.dumps(last)}") == last


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=200).filter(lambda t: "{" not in t and "[" not in t))
@example("I cannot answer that question.")
@example("list of things: a, b")
@example("See (1) or 2.")
def test_prose_never_yields_an_object_or_array(reply: str) -> None:
    result = find_json(reply)
    if isinstance(result, FoundJson):
        assert result.how in ("whole", "repaired")
        assert result.value is None or not isinstance(result.value, (dict, list)) or '"' in reply


@given(st.text(st.sampled_from("abc de.,;'\"([{}])-*#\n1"), max_size=120).filter(lambda t: ":" not in t))
def test_prose_with_brackets_yields_no_object(reply: str) -> None:
    """Without a colon there is no object, whatever brackets and quotes a text holds."""
    result = find_json(reply)
    if isinstance(result, FoundJson) and isinstance(result.value, dict):
        assert result.value == {}
        assert "{" in reply


@given(documents | lists, st.data(), st.sampled_from(["length", None]))
def test_a_cut_reply_is_never_completed(value: Any, data: Any, finish: str | None) -> None:
    """Cut anywhere, with or without the server saying so, no value is made up: what comes out stands in the whole."""
    whole = json.dumps(value)
    cut = whole[: data.draw(st.integers(1, len(whole) - 1))]
    result = find_json(cut, truncated=finish == "length")
    if finish == "length":
        assert isinstance(result, NoJson)
        return
    if isinstance(result, FoundJson):
        assert set(_leaves(result.value)) <= set(_leaves(value)) | {"0"}


def _leaves(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [x for k, v in value.items() for x in (json.dumps(k), *_leaves(v))]
    if isinstance(value, list):
        return [x for v in value for x in _leaves(v)]
    return [json.dumps(value)]


def _strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [x for k, v in value.items() for x in (k, *_strings(v))]
    if isinstance(value, list):
        return [x for v in value for x in _strings(v)]
    return [value] if isinstance(value, str) else []


def _trailing_commas(text: str) -> str:
    return text[:-1] + "," + text[-1]


def _comment(text: str) -> str:
    return text[0] + " // first\n" + text[1:]


@given(documents, st.sampled_from([_trailing_commas, _comment]))
def test_a_repair_changes_no_string(value: Any, spoil: Any) -> None:
    """Trailing commas and comments go; the strings inside stay to the letter."""
    result = find_json(spoil(json.dumps(value)))
    assert isinstance(result, FoundJson)
    assert result.value == value
    assert result.how == "repaired"


plain = st.text(st.characters(exclude_categories=["C"], exclude_characters='\\"'), max_size=12)


@given(st.dictionaries(plain, plain, min_size=1, max_size=3), st.integers(0, 10_000))
def test_a_repair_invents_no_string(value: Any, seed: int) -> None:
    """One character lost anywhere: every string that comes out stands in what was said, or nothing comes out."""
    whole = json.dumps(value, ensure_ascii=False)
    at = seed % len(whole)
    broken = whole[:at] + whole[at + 1 :]
    result = find_json(broken)
    if isinstance(result, FoundJson) and result.how == "repaired":
        assert all(string in broken for string in _strings(result.value))


@settings(max_examples=300)
@given(st.text(st.sampled_from("{}[]\",:\\`\n abtrue0-.ef'#/*"), max_size=300))
def test_noise_never_raises(reply: str) -> None:
    find_json(reply)
    find_json(reply, truncated=True)


HOSTILE = [
    "{", "[", '{"a":', '{"a":[', "[{", '{"', '"{', '{"a{', "}{", "[]", "{}", "{{}", '{"a":1}', "```\n", "```json\n{",
    '{"\\"', "\n[", '\n{"a":', "{x:", "\n{x:[", "{'a':", '"', '{"a":1,', "\n[1,", "```\n{}\n", "{a:1}\n",
    '```json {"a":', '{"":}', '{"a":1]', 'x {"k":"v" ', '\n{"a":1,\n"b":[\n', "\\", '{"\\u', "{{ x ", "//{", "/*", "#[", "{'\\\\\"", '{x:\\\\"', "[}", "[[[[:", "{/*", "{a:'", '{"":\\"\n',
]  # fmt: skip


@pytest.mark.parametrize("unit", HOSTILE)
def test_a_megabyte_of_brackets(unit: str) -> None:
    """1 MiB of hostile input is answered in linear time: the quadratic way would take minutes."""
    reply = unit * ((1 << 20) // len(unit))
    start = time.process_time()
    find_json(reply)
    assert time.process_time() - start < 10


def test_bounds() -> None:
    """Past the depth or the size the JSON is invalid, not a crash."""
    assert found("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    assert isinstance(find_json("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1)), NoJson)
    assert isinstance(find_json("x\n" + '{"a":' * 600 + "1" + "}" * 600), NoJson)
    assert isinstance(find_json("[" * 100_000), NoJson)
    assert isinstance(find_json(json.dumps(["x" * (4 << 20)])), NoJson)


@pytest.mark.parametrize(
    ("reply", "value", "how"),
    [
        ("Here:\n[1, 2]\nDone.", [1, 2], "prose"),
        (
            '{"items": [{"id": 1}, {"id": oops}, {"id": 3}]}',
            {"items": [{"id": 1}, {"id": "oops"}, {"id": 3}]},
            "repaired",
        ),
        (
            '{name: "Ada", pets: [{"k": 1}]}\n\nHope that helps!',
            {"name": "Ada", "pets": [{"k": 1}]},
            "repaired",
        ),
        ('{"items": [\n{"id": 1},\n{"id": 2}\n]', {"items": [{"id": 1}, {"id": 2}]}, "repaired"),
        ('He said "hi. {"a": oops} and {"b": 1}', {"b": 1}, "prose"),
        ('{"quoted": "None", x: None}', {"quoted": "None", "x": None}, "repaired"),
        ('{"a": "b" /* c */, "u": "http://x#y"}', {"a": "b", "u": "http://x#y"}, "repaired"),
        ('```\n{"a": "x\n```\ny"}\n```', {"a": "x\n```\ny"}, "repaired"),
        ("{“a”: “b”}", {"a": "b"}, "repaired"),
        ("42", 42, "whole"),
        ('"text"', "text", "whole"),
    ],
)
def test_documented_choices(reply: str, value: Any, how: str) -> None:
    result = find_json(reply)
    assert isinstance(result, FoundJson), result
    assert (result.value, result.how) == (value, how)


@pytest.mark.parametrize(
    "reply",
    [
        "See [1] for more",
        "[1] Smith 2020\n[2] Doe",
        '{"a": }',
        '{"a": "cut',
        '{"a": 1',
        '{"a": [1, 2',
        '{"a": "x", "b"',
        "",
        "{user}",
        "[TODO] write",
        "- [x] done",
        '{"a": 1,',
    ],
)
def test_what_is_no_json(reply: str) -> None:
    """Citations, placeholders, and documents cut in the middle of a value."""
    assert isinstance(find_json(reply), NoJson)


def test_flags() -> None:
    """NaN, Infinity, numbers out of range, double keys and one layer of encoding are said."""
    for reply, note in [
        ('{"a": NaN}', "NaN is not JSON"),
        ('{"a": 1e999}', "beyond the range"),
        ('{"a": 1, "a": 2}', "duplicate key 'a'"),
        ('"{\\"a\\": 1}"', "double-encoded"),
        ('{"a": 1}\n{"b": 1}', "2 JSON documents"),
    ]:
        result = find_json(reply)
        assert isinstance(result, FoundJson)
        assert any(note in n for n in result.notes), result
        assert not result.clean
