"""Which models there are: what a name means, what an endpoint offers, what may stand in a test id."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_tsuka.backends.apis import AUTO, api_named
from pytest_tsuka.errors import BackendError, SettingsError, closest
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


async def list_models(
    backend_url: str, *, api_key: str = "", api: str = AUTO, timeout: float = 10.0
) -> list[JsonObject]:
    """The entries of the endpoint's `/models`. Raises BackendError with the likely cause."""
    import httpx

    from pytest_tsuka.backends.http.client import plain_client
    from pytest_tsuka.backends.http.failures import cause_of
    from pytest_tsuka.backends.http.urls import Redactor, read_base_url

    endpoint = read_base_url(backend_url)
    redact = Redactor((api_key, *endpoint.secrets))
    try:
        async with plain_client(
            endpoint, api_named(endpoint.api or "chat" if api == AUTO else api), api_key, timeout
        ) as client:
            response = await client.get(endpoint.url("models"))
            data = response.json() if response.status_code == 200 else None
    except (httpx.HTTPError, ValueError, OSError) as error:
        raise BackendError(redact(f"{endpoint.shown}: the list of models cannot be read ({cause_of(error)})")) from None
    if not isinstance(data, dict) or not isinstance(data.get("data"), list):
        raise BackendError(
            redact(f"{endpoint.shown}: HTTP {response.status_code} instead of a list of models; name the model instead")
        )
    return [entry for entry in data["data"] if isinstance(entry, dict) and isinstance(entry.get("id"), str)]


async def offered_instead(backend_url: str, key: str, api: str, model: str) -> str:
    """What the endpoint offers instead of a model it does not have, to be added to its message; "" if unknown."""
    try:
        entries = await list_models(backend_url, api_key=key, api=api, timeout=5.0)
    except BackendError:
        return ""
    names = [str(entry["id"]) for entry in entries]
    near = closest(model, names)
    hint = f"; did you mean {near!r}?" if near else ""
    listed = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
    return f"{hint} (the endpoint lists: {listed or 'no model'})"
