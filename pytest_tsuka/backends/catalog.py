"""Which model names mean what, and the backend each of them is measured with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_tsuka.errors import SettingsError
from pytest_tsuka.text.escape import INVISIBLE
from pytest_tsuka.text.json_types import JsonObject

EMBEDDED = "embedded"


@dataclass(frozen=True, slots=True)
class Model:
    """A model to measure: its exact name (for the profile), and its weights if it runs in process."""

    name: str
    weights: Path | None = None
    fetch: bool = False

    @property
    def in_process(self) -> bool:
        return self.fetch or self.weights is not None


def read_model(text: str) -> Model:
    """`embedded`, a path to a `.gguf` file, or a name at the endpoint."""
    if text == EMBEDDED:
        from pytest_tsuka.backends.weights import SMOLLM2

        return Model(SMOLLM2.model, fetch=True)
    if text.lower().endswith(".gguf"):
        path = Path(text).expanduser()
        if not path.is_file():
            raise SettingsError(f"no such model file: {text}")
        return Model(path.stem, weights=path.absolute())
    return Model(text)


_NOT_CHAT = re.compile(
    r"embed|rerank|whisper|tts\b|\btts|dall-?e|moderation|speech|transcri|stable-diffusion|\bsdxl|flux|bge-|\be5-"
    r"|clip\b|image|realtime|sora|veo|guard\b",
    re.IGNORECASE,
)
_NOT_CHAT_TYPES = {
    "embedding",
    "embeddings",
    "rerank",
    "reranker",
    "image",
    "audio",
    "tts",
    "stt",
    "moderation",
}


def chat_models(entries: Iterable[JsonObject]) -> list[str]:
    """The ids of an endpoint's model list that can chat, by declared type or else by name, sorted."""
    names = []
    for entry in entries:
        kind = str(entry.get("type") or entry.get("object_type") or "").lower()
        name = str(entry["id"])
        if kind in _NOT_CHAT_TYPES or (kind not in ("llm", "chat", "vlm") and _NOT_CHAT.search(name)):
            continue
        names.append(name)
    return sorted(dict.fromkeys(names))


# What structures an id, and what could steer a terminal: the names of `all` are the endpoint's own words.
_NOT_IN_AN_ID = re.compile(rf"[\[\]@\s\x00-\x1f\x7f-\x9f{INVISIBLE}]|::")


def node_labels(names: Sequence[str]) -> dict[str, str]:
    """A unique label for each model name that may stand inside the brackets of a test id."""
    labels: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        label = _NOT_IN_AN_ID.sub("_", name) or "_"
        unique, number = label, 2
        while unique in taken:
            unique, number = f"{label}~{number}", number + 1
        taken.add(unique)
        labels[name] = unique
    return labels
