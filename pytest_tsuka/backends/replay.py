"""Record what any backend answers, and answer from such a recording without a network."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from pytest_tsuka.conversation import Exchange
from pytest_tsuka.errors import BackendError, EffortRefused, ReplayMiss, SettingsError
from pytest_tsuka.protocols import Backend, Request
from pytest_tsuka.text.json_types import JsonObject, digest
from pytest_tsuka.text.normalise import without_surrogates

RECORD_FORMAT = 1


def request_key(request: Request, parameters: JsonObject) -> str:
    """SHA-256 over what is asked: model, effort, messages, tools, parameters; not over who asks."""
    content = {
        "model": request.model,
        "effort": request.effort,
        "messages": request.messages,
        "tools": request.tools,
        "parameters": parameters,
    }
    return digest(content)


class RecordingBackend:
    """Passes every request on and writes the answer, or the error, to a file of its own in `folder`.

    `asked_for` are the parameters the run asked for: they belong to a request's key, while what an
    endpoint refuses of them is found out only on the way.
    """

    def __init__(self, inner: Backend, folder: Path, asked_for: JsonObject) -> None:
        self._inner = inner
        self._folder = folder
        self._asked_for = asked_for
        self._redact: Callable[[str], str] = getattr(inner, "hide_secrets", lambda text: text)
        self._file: IO[str] | None = None
        self._models: set[str] = set()

    @property
    def provider(self) -> str:
        return self._inner.provider

    def parameters(self, model: str) -> JsonObject:
        return self._inner.parameters(model)

    async def complete(self, request: Request) -> Exchange:
        self._models.add(request.model)
        line: JsonObject = {"key": request_key(request, self._asked_for), "label": request.label}
        try:
            exchange = await self._inner.complete(request)
        except BackendError as error:
            kind = "effort" if isinstance(error, EffortRefused) else "backend"
            self._write({**line, "error": str(error), "kind": kind, "attempts": error.attempts})
            raise
        # As it came: what the server signed must go back to it unchanged. Our own keys are taken out on arrival.
        self._write({**line, "exchange": exchange.to_json()}, redact=False)
        return exchange

    def _write(self, line: JsonObject, *, redact: bool = True) -> None:
        if self._file is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            stamp = f"{time.time_ns():020d}-{os.getpid()}-{os.urandom(4).hex()}"
            self._file = (self._folder / f"{stamp}.jsonl").open("w", encoding="utf-8")
        text = without_surrogates(json.dumps(line, ensure_ascii=False))
        self._file.write((self._redact(text) if redact else text) + "\n")
        self._file.flush()  # a run that is killed keeps what it heard

    async def __aenter__(self) -> RecordingBackend:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._inner.__aexit__(kind, error, trace)
        for model in sorted(self._models):
            parameters = self._inner.parameters(model)
            self._write({"format": RECORD_FORMAT, "model": model, "provider": self.provider, "parameters": parameters})
        if self._file:
            self._file.close()
            self._file = None


class ReplayBackend:
    """Answers from the recordings in a folder. The newest recording of a request counts.

    Where the same request was asked several times (repeats), each asker gets its own answer back.
    """

    def __init__(self, folder: Path, asked_for: JsonObject) -> None:
        self._folder = folder
        self._asked_for = asked_for
        self._by_asker: dict[tuple[str, str], JsonObject] = {}
        self._by_key: dict[str, JsonObject] = {}
        self._labels: set[str] = set()
        self._about: dict[str, JsonObject] = {}
        for line in _recorded_lines(folder):
            if "model" in line:
                self._about[line["model"]] = line
            else:
                self._by_asker[line["key"], line["label"]] = self._by_key[line["key"]] = line
                self._labels.add(line["label"])

    @property
    def provider(self) -> str:
        providers = sorted({str(about["provider"]) for about in self._about.values()})
        return ", ".join(providers) or f"recording in {self._folder.name}"

    @property
    def models(self) -> list[str]:
        """The models that were recorded."""
        return sorted(self._about)

    def parameters(self, model: str) -> JsonObject:
        about = self._about.get(model)
        return dict(about["parameters"]) if about else dict(self._asked_for)

    async def complete(self, request: Request) -> Exchange:
        key = request_key(request, self._asked_for)
        line = self._by_asker.get((key, request.label)) or self._by_key.get(key)
        if line is None:
            why = (
                "it was recorded with another content: prompt, tools, parameters or an earlier answer have changed"
                if request.label in self._labels
                else "it was never recorded"
            )
            raise ReplayMiss(
                f"no recorded answer to {request.label} of {request.model} in {self._folder}: {why};"
                " record it again with --tsuka-record"
            )
        if "error" in line:
            error = EffortRefused if line["kind"] == "effort" else BackendError
            raise error(line["error"], attempts=line["attempts"])
        return Exchange.from_json(line["exchange"])

    async def __aenter__(self) -> ReplayBackend:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


def _recorded_lines(folder: Path) -> Iterator[Any]:
    """Every line of every recording, oldest first. A last line cut off by a killed run is left out."""
    files = sorted(folder.glob("*.jsonl"))
    if not files:
        raise SettingsError(f"--tsuka-replay: {folder} holds no recording (*.jsonl); make one with --tsuka-record")
    for file in files:
        lines = file.read_text(encoding="utf-8").split("\n")
        for number, line in enumerate(lines, 1):
            if not line:
                continue
            try:
                yield json.loads(line)
            except ValueError:
                if number < len(lines):
                    raise SettingsError(f"--tsuka-replay: {file}, line {number} is not JSON") from None
