"""A model run in this process by llama.cpp (xllamacpp), reached through its own HTTP server on loopback."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from pytest_tsuka.backends.openai import Limits, OpenAIBackend
from pytest_tsuka.conversation import Exchange
from pytest_tsuka.errors import BackendError
from pytest_tsuka.protocols import Request
from pytest_tsuka.text.json_types import JsonObject, JsonValue

CONTEXT = 4096
NEW_TOKENS = 256
MOST_SLOTS = 4


class EmbeddedBackend:
    """llama.cpp in process. `slots` conversations are decoded at once, each with a context of its own.

    One core is left free unless `threads` says otherwise: on a busy core llama.cpp's threads wait
    for each other and everything becomes several times slower.
    """

    def __init__(
        self,
        weights: Path,
        *,
        slots: int = MOST_SLOTS,
        threads: int | None = None,
        params: Mapping[str, JsonValue] | None = None,
        effort_style: str = "auto",
        limits: Limits | None = None,
    ) -> None:
        self._weights = weights
        self._slots = max(1, min(slots, MOST_SLOTS))
        self._threads = threads or max(1, (os.cpu_count() or 2) - 1)
        self._params: JsonObject = {"max_tokens": NEW_TOKENS, **(params or {})}
        self._style = effort_style
        self._limits = limits
        self._server: Any = None
        self._http: OpenAIBackend | None = None

    @property
    def provider(self) -> str:
        return f"embedded:{self._weights.name}"

    def parameters(self, model: str) -> JsonObject:
        sent = self._http.parameters(model) if self._http else dict(self._params)
        return {**sent, "context": CONTEXT}

    async def complete(self, request: Request) -> Exchange:
        assert self._http, "used outside of its context"
        return await self._http.complete(request)

    async def __aenter__(self) -> EmbeddedBackend:
        self._server = await asyncio.to_thread(self._load)
        self._http = OpenAIBackend(
            self._server.listening_address,
            params=self._params,
            effort_style=self._style,
            stream=True,
            api="chat",
            limits=self._limits,
        )
        await self._http.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._http:
            await self._http.__aexit__(kind, error, trace)
        server, self._server = self._server, None
        await asyncio.to_thread(_stop, server)

    def _load(self) -> Any:
        try:
            import xllamacpp
        except ImportError:
            raise BackendError(
                "the embedded model needs llama.cpp: pip install 'pytest-tsuka[embedded]'", permanent=True
            ) from None
        params = xllamacpp.CommonParams()
        params.model.path = str(self._weights)
        params.n_ctx = CONTEXT * self._slots
        params.n_parallel = self._slots
        params.n_predict = -1
        params.port = 0
        params.ui = False
        params.verbosity = -1  # not a line of llama.cpp's between pytest's
        params.warmup = False
        for cpu in (params.cpuparams, params.cpuparams_batch):
            cpu.n_threads = self._threads
            cpu.poll = 0
        try:
            return xllamacpp.Server(params)
        except Exception as error:
            raise BackendError(
                f"llama.cpp cannot load {self._weights} ({error}); is it a complete GGUF file?",
                permanent=True,
            ) from None


def _stop(server: Any) -> None:
    """Dropping the last reference ends the server; in a thread, since it joins its own."""
    del server
