"""Pieces of a stream come to what a whole answer would have held."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tsuka.backends.apis.chat import ChatStream
from pytest_tsuka.backends.apis.pieces import joined, joined_content


def streamed(*deltas: dict[str, Any]) -> dict[str, Any]:
    """The message that comes of these deltas."""
    stream = ChatStream()
    for delta in deltas:
        stream.feed({"choices": [{"delta": delta}]})
    message: dict[str, Any] = stream.body()["choices"][0]["message"]
    return message


@pytest.mark.parametrize(
    ("pieces", "whole"),
    [
        (["a", "b", None, "c"], "abc"),
        ([{"a": "x", "n": 1}, {"a": "y", "m": {"z": "1"}}, {"m": {"z": "2"}}], {"a": "xy", "n": 1, "m": {"z": "12"}}),
        ([[{"index": 0, "text": "a"}], [{"index": 1, "text": "b"}, {"index": 0, "text": "c"}]], [{"index": 0, "text": "ac"}, {"index": 1, "text": "b"}]),
        ([[{"text": "a"}], [{"text": "b"}]], [{"text": "a"}, {"text": "b"}]),
        ([[{"index": 0, "type": "x", "id": "i", "d": "1"}], [{"index": 0, "type": "x", "id": "i", "d": "2"}]], [{"index": 0, "type": "x", "id": "i", "d": "12"}]),
        ([[{"index": 0, "type": "text", "t": "a"}], [{"index": 0, "type": "sealed", "d": "b"}]], [{"index": 0, "type": "text", "t": "a"}, {"index": 0, "type": "sealed", "d": "b"}]),
        ([1, 2], 2),
        ([True, None], True),
    ],
)  # fmt: skip
def test_any_field(pieces: list[Any], whole: Any) -> None:
    """Objects merged, texts joined, lists by index and type; what names a thing is not said twice."""
    assert streamed(*({"extra": piece} for piece in pieces))["extra"] == whole
    assert streamed(*({"tool_calls": [{"index": 0, "extra": piece}]} for piece in pieces))["tool_calls"] == [
        {"extra": whole}
    ]


@given(st.text(max_size=40), st.lists(st.integers(0, 40), max_size=5))
def test_texts_however_they_are_cut(text: str, cuts: list[int]) -> None:
    edges = [0, *sorted(min(c, len(text)) for c in cuts), len(text)]
    pieces = [text[a:b] for a, b in itertools.pairwise(edges)]
    assert streamed(*({"signature": p, "content": p} for p in pieces)) == {
        "role": "assistant",
        "content": text,
        "signature": text,
    }


@given(
    st.lists(
        st.tuples(st.sampled_from(["text", "thinking"]), st.text(min_size=1, max_size=4), st.booleans()), min_size=1
    )
)
def test_blocks_and_strings_in_any_order(said: list[tuple[str, str, bool]]) -> None:
    """What is said as text, in a string or in a block, is one text; runs of a kind are one block."""
    content: Any = None
    for kind, words, bare in said:
        content = joined_content(content, words if bare and kind == "text" else [{"type": kind, kind: words}])
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    for kind in ("text", "thinking"):
        assert "".join(b[kind] for b in blocks if b["type"] == kind) == "".join(w for k, w, _ in said if k == kind)
    assert all(a["type"] != b["type"] for a, b in itertools.pairwise(blocks))


def test_a_block_with_an_index_goes_to_the_block_of_that_index() -> None:
    content = joined_content([{"index": 0, "type": "text", "text": "a"}], [{"index": 1, "type": "text", "text": "b"}])
    assert joined_content(content, [{"index": 0, "type": "text", "text": "c"}]) == [
        {"index": 0, "type": "text", "text": "ac"},
        {"index": 1, "type": "text", "text": "b"},
    ]


@given(
    st.recursive(
        st.none() | st.booleans() | st.text(max_size=3),
        lambda v: st.lists(v, max_size=3) | st.dictionaries(st.sampled_from("abc"), v, max_size=3),
        max_leaves=6,
    )
)
def test_nothing_more_changes_nothing(value: Any) -> None:
    assert joined(value, None) == value
