"""The seams that others may implement: a backend answers requests, an embedder turns texts into vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from pytest_tsuka.conversation import Exchange
from pytest_tsuka.text.json_types import JsonObject

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    import numpy as np


@dataclass(frozen=True, slots=True)
class Request:
    """One turn to be answered. `label` names item and turn for messages; it is not sent."""

    model: str
    effort: str
    messages: tuple[JsonObject, ...]
    tools: tuple[JsonObject, ...] = ()
    label: str = ""


@runtime_checkable
class Backend(Protocol):
    """Answers requests from within one event loop, which also opens and closes it.

    `complete` raises BackendError when the endpoint could not be measured (EffortRefused when it
    will not have the effort). `provider` names it in the profile, without credentials;
    `parameters` are what the requests carried besides the conversation, for the record.
    """

    @property
    def provider(self) -> str: ...

    def parameters(self, model: str) -> JsonObject: ...

    async def complete(self, request: Request) -> Exchange: ...

    async def __aenter__(self) -> Backend: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors, from within one event loop. `embed` raises BackendError.

    `model` names what the vectors come from: vectors of one name are compared with each other and
    kept in the store.
    """

    @property
    def model(self) -> str: ...

    async def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors, shape (texts, dimensions), float32."""
        ...
