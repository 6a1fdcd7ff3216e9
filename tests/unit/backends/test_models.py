"""Model names: which of an endpoint's can chat, and how they stand in test ids."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pytest_tsuka.backends.models import chat_models, node_labels, read_model
from pytest_tsuka.text.escape import one_line, printable


def test_chat_models() -> None:
    """By declared type, else by name; sorted, each once."""
    ids = ["qwen3:8b", "nomic-embed-text", "bge-m3", "whisper-1", "gpt-4o", "tts-1", "dall-e-3", "rerank-x", "gpt-4o"]
    entries = [{"id": name} for name in ids]
    assert chat_models(entries) == ["gpt-4o", "qwen3:8b"]
    assert chat_models([{"id": "a", "type": "embeddings"}, {"id": "my-embed-chat", "type": "llm"}]) == ["my-embed-chat"]


@given(st.lists(st.text(max_size=12), unique=True))
def test_labels_are_safe_and_unique(names: list[str]) -> None:
    labels = node_labels(names)
    assert list(labels) == names
    assert len(set(labels.values())) == len(names)
    for label in labels.values():
        assert not set("[]@ \n\t") & set(label)
        assert "::" not in label
        assert printable(label) == label


def test_what_a_name_means() -> None:
    assert read_model("embedded").fetch
    assert read_model("qwen3:8b").name == "qwen3:8b"
    assert not read_model("qwen3:8b").in_process


@given(st.text(st.characters()))
def test_one_line_is_one_safe_line(text: str) -> None:
    shown = one_line(text)
    assert len(shown.splitlines()) <= 1
    shown.encode("utf-8")
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in shown)
