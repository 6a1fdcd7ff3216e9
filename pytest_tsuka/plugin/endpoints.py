"""Where models are asked: the backend of each, made once, and the judges and embedders of scenarios."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_tsuka.backends.models import Model
from pytest_tsuka.backends.replay import RecordingBackend, ReplayBackend
from pytest_tsuka.errors import BackendError, SettingsError
from pytest_tsuka.plugin.options import Settings
from pytest_tsuka.text.json_types import JsonObject

if TYPE_CHECKING:
    from pytest_tsuka.grading.clients import Clients
    from pytest_tsuka.protocols import Backend


def usage_error(call: Callable[[], Any]) -> Any:
    """The result of `call`, a SettingsError turned into pytest's usage error."""
    try:
        return call()
    except SettingsError as error:
        raise pytest.UsageError(f"pytest-tsuka: {error}") from None


@dataclass
class Endpoints:
    """What the engine needs: a plugin's backend, llama.cpp in this process, a recording, or the endpoint, one for all.

    `workers` is how many processes ask: each keeps to its share of what is allowed.
    """

    config: pytest.Config
    settings: Settings
    models: tuple[Model, ...]
    workers: int
    _backends: dict[str, Backend] = field(default_factory=dict)
    _of_plugins: dict[str, Backend | None] = field(default_factory=dict)
    _weights: dict[str, Path] = field(default_factory=dict)
    _unfetched: dict[str, BackendError] = field(default_factory=dict)

    def provider(self, model: str) -> str:
        return self.backend(model).provider

    def parameters(self, model: str) -> JsonObject:
        """What requests for a model carry besides the conversation."""
        recorded = dict(self.backend(model).parameters(model))
        if self.settings.text_calls:
            recorded["textCalls"] = True
        return recorded

    @property
    def asked_for(self) -> JsonObject:
        """What the run asks of every request besides its content, before any endpoint refuses some of it."""
        asked: JsonObject = {"params": self.settings.params, "effortStyle": self.settings.effort_style}
        return asked if self.settings.api == "auto" else {**asked, "api": self.settings.api}

    def backend(self, name: str) -> Backend:
        """The backend of a model. A folder without recordings is a usage error."""
        model = next((m for m in self.models if m.name == name), Model(name))
        replay = self.settings.replay
        key = name if not replay and (model.in_process or self._of_plugin(name)) else ""
        if key not in self._backends:
            if replay:
                self._backends[key] = usage_error(lambda: ReplayBackend(replay, self.asked_for))
            else:
                self._backends[key] = self._recorded(self._of_plugin(name) or self._own(model))
        return self._backends[key]

    def backend_to_open(self, name: str) -> Backend:
        """`backend`, for the engine. Raises BackendError when its weights could not be fetched."""
        if error := self._unfetched.get(name):
            raise error
        return self.backend(name)

    def fetch_weights(self, models: set[Model], say: Callable[[str], None]) -> None:
        """Before the first item, in the main thread, where the user sees it. A failure is each item's error."""
        from pytest_tsuka.backends.weights import ensure_weights

        for model in models:
            try:
                self._weights[model.name] = ensure_weights(say)
            except BackendError as error:
                self._unfetched[model.name] = error

    def clients(self) -> Clients:
        """Where the judges and embedders of scenarios are found: plugins first, then as the scenario says."""
        from pytest_tsuka.grading.clients import Clients

        settings, hook = self.settings, self.config.hook
        return Clients(
            settings.base_url,
            settings.api_key,
            self._limits,
            settings.api,
            own_backend=self._of_plugin,
            own_embedder=lambda name: hook.pytest_tsuka_embedder(config=self.config, model=name),
        )

    def _recorded(self, backend: Backend) -> Backend:
        record = self.settings.record
        return RecordingBackend(backend, record, self.asked_for) if record else backend

    def _of_plugin(self, name: str) -> Backend | None:
        if name not in self._of_plugins:
            self._of_plugins[name] = self.config.hook.pytest_tsuka_backend(config=self.config, model=name)
        return self._of_plugins[name]

    @property
    def _limits(self) -> Any:
        from pytest_tsuka.backends.openai import Limits

        settings = self.settings
        return Limits(timeout=settings.timeout, idle=settings.idle_timeout, retries=settings.retries)

    def _own(self, model: Model) -> Backend:
        from pytest_tsuka.backends.openai import OpenAIBackend
        from pytest_tsuka.backends.rate_limit import Pacer

        settings = self.settings
        if model.in_process:
            from pytest_tsuka.backends.embedded import EmbeddedBackend
            from pytest_tsuka.backends.weights import expected_weights

            return EmbeddedBackend(
                model.weights or self._weights.get(model.name) or expected_weights(),
                slots=settings.concurrency,
                threads=settings.threads or None,
                params=settings.params,
                effort_style=settings.effort_style,
                limits=self._limits,
            )
        return OpenAIBackend(
            settings.base_url,
            api_key=settings.api_key,
            params=settings.params,
            effort_style=settings.effort_style,
            stream=settings.stream,
            limits=self._limits,
            api=settings.api,
            shared=self.workers > 1,
            pacer=Pacer(settings.rpm / self.workers, settings.tpm / self.workers),
        )
