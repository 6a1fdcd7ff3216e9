"""What one process of a run knows: settings, suite, engine. Kept in the config's stash."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_tsuka.backends.catalog import Model, node_labels
from pytest_tsuka.backends.replay import RecordingBackend, ReplayBackend
from pytest_tsuka.errors import BackendError, Problem, SettingsError
from pytest_tsuka.plugin.options import Settings
from pytest_tsuka.profile.file import BENCHMARK_VERSION
from pytest_tsuka.scoring.tiers import TierPolicy
from pytest_tsuka.text.json_types import JsonObject

if TYPE_CHECKING:
    from pytest_tsuka.checks import Registry
    from pytest_tsuka.gold.scenario import Scenario
    from pytest_tsuka.grading.clients import Clients
    from pytest_tsuka.grading.project import Project
    from pytest_tsuka.plugin.collect import EffortItem
    from pytest_tsuka.plugin.items import PlayedItem
    from pytest_tsuka.protocols import Backend
    from pytest_tsuka.runner.engine import Engine
    from pytest_tsuka.scoring.verdict import Verdict
    from pytest_tsuka.suite.benchmark import Benchmark
    from pytest_tsuka.suite.files import Suite

JobKey = tuple[str, int]
_TERMS = {
    "hash": "the suite's testsHash (are the same files on every host?)",
    "version": "pytest-tsuka's benchmark version (is the same release installed?)",
    "provider": "the endpoint (--tsuka-base-url reaches every worker, $OPENAI_BASE_URL does not)",
}
HOOKS = (
    "pytest_tsuka_check_types",
    "pytest_tsuka_backend",
    "pytest_tsuka_embedder",
    "pytest_tsuka_tier_policy",
)

_STATE: pytest.StashKey[State] = pytest.StashKey()


def state_of(config: pytest.Config) -> State:
    return config.stash[_STATE]


def find_state(config: pytest.Config) -> State | None:
    """The state, or None in a run that measures no model."""
    return config.stash.get(_STATE, None)


@dataclass
class State:
    """Everything but what the controller alone collects."""

    config: pytest.Config
    settings: Settings
    policy: TierPolicy
    models: tuple[Model, ...]
    named_files: frozenset[Path]
    engine: Engine[JobKey, Any] | None = None
    worker_count: int = 1
    """In a controller: how many workers play its items."""
    weights: dict[str, Path] = field(default_factory=dict)
    unfetched: dict[str, BackendError] = field(default_factory=dict)
    finished_before: dict[tuple[str, str, str], Verdict] = field(default_factory=dict)
    answered_before: set[tuple[str, str, str]] = field(default_factory=set)
    judged: tuple[str, Verdict] | None = None
    """What the last report of this process carries: its text, and the verdict that it says."""
    alone: frozenset[JobKey] = frozenset()
    """The conversations that are held with no other beside them: they tell how fast one stream is."""
    before_waiting: Callable[[], None] = lambda: None
    """What the controller does while nothing else is to be done."""
    _backends: dict[str, Backend] = field(default_factory=dict)
    _folders: dict[Path, Path] = field(default_factory=dict)
    _conditions: dict[str, str] = field(default_factory=dict)
    _hook_counts: dict[str, int] = field(default_factory=dict)

    def store(self) -> None:
        self.config.stash[_STATE] = self

    @cached_property
    def labels(self) -> dict[str, str]:
        return node_labels([model.name for model in self.models])

    @cached_property
    def registry(self) -> Registry:
        from pytest_tsuka.checks import BUILT_IN, check_types

        self._count_hooks()
        extra = [c for found in self.config.hook.pytest_tsuka_check_types(config=self.config) for c in found]
        return check_types(extra) if extra else BUILT_IN

    @cached_property
    def suite(self) -> Suite:
        """The suite as it is on disk, read once per process."""
        from pytest_tsuka.suite.files import read_suite

        return read_suite(self.suite_place, self.registry)

    @cached_property
    def suite_place(self) -> Path:
        """The suite's folder with links resolved; the ids keep the name it has in the project."""
        return self.settings.folder.resolve()

    def place(self, path: Path) -> Path:
        """`suite.place`, each folder's links resolved once: a suite may have ten thousand files."""
        if path.parent not in self._folders:
            from pytest_tsuka.suite.files import place

            self._folders[path.parent] = place(path).parent
        return self._folders[path.parent] / path.name

    def benchmark(self, path: Path) -> Benchmark:
        """The benchmark of a file. Raises BenchmarkError."""
        from pytest_tsuka.suite.files import read_benchmark

        if error := self.suite.errors.get(path):
            raise error
        return self.suite.benchmarks.get(path) or read_benchmark(path, self.registry)

    # --- hooks ---------------------------------------------------------------------------

    def _count_hooks(self) -> None:
        if not self._hook_counts:
            hook = self.config.hook
            self._hook_counts.update({name: len(getattr(hook, name).get_hookimpls()) for name in HOOKS})

    def check_hooks(self) -> None:
        """A hook in a conftest.py that is loaded only now was not asked: say so instead of half using it.

        The controller of a distributed run never collects, so it would not see such a hook at all
        and would come to another tier than a single process.
        """
        from pytest_tsuka.errors import BenchmarkError

        for name, count in self._hook_counts.items():
            if len(getattr(self.config.hook, name).get_hookimpls()) > count:
                raise BenchmarkError(
                    str(self.settings.folder),
                    [
                        Problem(
                            name,
                            "is implemented in a conftest.py that is loaded too late; move it to the root conftest.py",
                        )
                    ],
                )

    def check_terms(self) -> None:
        """Raises SettingsError in a worker on another machine that would measure something else than the controller.

        Its verdicts would be mixed into a profile that they do not belong to.
        """
        if self._unlike_controller:
            raise SettingsError(self._unlike_controller)

    @cached_property
    def _unlike_controller(self) -> str | None:
        """What differs, by this worker's own terms."""
        asked: dict[str, JsonObject] = getattr(self.config, "workerinput", {}).get("tsuka_terms", {})
        for model, terms in asked.items():
            own = self.terms(model)
            if names := [name for name in own if own[name] != terms.get(name)]:
                lines = [f"  {_TERMS.get(n, n)}: {own[n]!r} here, {terms.get(n)!r} for the controller" for n in names]
                here = f"{platform.node()}:{self.config.rootpath}"
                return "\n".join([f"this worker ({here}) would measure something else:", *lines])
        return None

    # --- playing -------------------------------------------------------------------------

    def why_nothing_is_sent(self) -> str | None:
        """Why no conversation may be played, or None: nothing of a suite with a bad file is sent."""
        if self.suite.errors and not self.config.getoption("continue_on_collection_errors", default=False):
            bad = ", ".join(path.name for path in self.suite.errors)
            return f"nothing is sent to a model: the suite has bad files ({bad})"
        return None

    def prefetch(self, item: PlayedItem, run: int) -> Future[Any]:
        assert self.engine, "the engine is not running"
        key = (item.nodeid, run)
        alone = key in self.alone
        return self.engine.started(key) or self.engine.prefetch(key, item.model.name, item.job(run), alone=alone)

    def forget(self, item: PlayedItem) -> None:
        if self.engine:
            for run in range(item.runs):
                self.engine.forget((item.nodeid, run))

    @cached_property
    def project(self) -> Project:
        """What `[tool.tsuka]` and the file of prices say. Raises SettingsError."""
        from pytest_tsuka.grading.project import read_project

        return read_project(self.config.rootpath, self.settings.prices)

    # --- scenarios -----------------------------------------------------------------------

    def scenario_pairs(self, scenario: Scenario) -> list[tuple[Model, str]]:
        """The models and efforts a scenario has items for: those asked for, or in a rescore those with answers."""
        if not self.settings.rescore:
            return [(model, effort) for model in self.models for effort in self.settings.scenario_efforts]
        from pytest_tsuka.store.database import Store, StoreError
        from pytest_tsuka.store.records import Records

        asked = {model.name for model in self.models}
        try:
            store = Store(self.settings.store)
        except StoreError as error:
            raise pytest.UsageError(f"pytest-tsuka: --tsuka-rescore: {error}") from None
        try:
            kept = Records(store).models(scenario.name, scenario.question_key)
        finally:
            store.close()
        return [(Model(name), effort) for name, effort in kept if not asked or name in asked]

    def provider(self, model: str) -> str:
        return self.backend(model).provider

    def parameters(self, model: str) -> JsonObject:
        recorded = dict(self.backend(model).parameters(model))
        if self.settings.text_calls:
            recorded["textCalls"] = True
        return recorded

    def backend(self, name: str) -> Backend:
        """The backend of a model: a plugin's, llama.cpp in this process, or the endpoint (one for all)."""
        model = next((m for m in self.models if m.name == name), Model(name))
        replay = self.settings.replay
        key = name if not replay and (model.in_process or self._plugin_backend(name)) else ""
        if key not in self._backends:
            if replay:
                self._backends[key] = usage_error(lambda: ReplayBackend(replay, self.asked_for))
            else:
                self._backends[key] = self._recorded(self._plugin_backend(name) or self._own_backend(model))
        return self._backends[key]

    def _recorded(self, backend: Backend) -> Backend:
        record = self.settings.record
        return RecordingBackend(backend, record, self.asked_for) if record else backend

    @property
    def asked_for(self) -> JsonObject:
        """What the run asks of every request besides its content, before any endpoint refuses some of it."""
        asked: JsonObject = {"params": self.settings.params, "effortStyle": self.settings.effort_style}
        return asked if self.settings.api == "auto" else {**asked, "api": self.settings.api}

    def terms(self, model: str) -> JsonObject:
        """Everything a verdict of this model depends on."""
        return {
            "hash": self.suite.tests_hash,
            "version": BENCHMARK_VERSION,
            "provider": self.provider(model),
            "repeats": self.settings.repeats,
            "textCalls": self.settings.text_calls,
            **self.asked_for,
        }

    def conditions(self, model: str) -> str:
        """A digest of the terms: only under the same can a run be resumed."""
        if model not in self._conditions:
            terms = json.dumps(self.terms(model), sort_keys=True)
            self._conditions[model] = hashlib.sha256(terms.encode()).hexdigest()[:16]
        return self._conditions[model]

    def resumed(self, item: EffortItem) -> Verdict | None:
        """The verdict that a broken-off run had already come to."""
        return self.finished_before.get((item.model.name, item.effort, item.benchmark.name))

    def backend_to_open(self, name: str) -> Backend:
        """`backend`, for the engine. Raises BackendError when its weights could not be fetched."""
        if error := self.unfetched.get(name):
            raise error
        return self.backend(name)

    @property
    def workers(self) -> int:
        """How many processes ask the endpoint: each keeps to its share of what is allowed."""
        return int(getattr(self.config, "workerinput", {}).get("workercount", 1))

    def _plugin_backend(self, name: str) -> Backend | None:
        made: dict[str, Backend | None] = self.config.stash.setdefault(_PLUGIN_BACKENDS, {})
        if name not in made:
            self._count_hooks()
            made[name] = self.config.hook.pytest_tsuka_backend(config=self.config, model=name)
        return made[name]

    def clients(self) -> Clients:
        """Where the judges and embedders of scenarios are found: plugins first, then as the scenario says."""
        from pytest_tsuka.backends.openai import Limits
        from pytest_tsuka.grading.clients import Clients

        settings = self.settings
        hook = self.config.hook
        return Clients(
            settings.base_url,
            settings.api_key,
            Limits(timeout=settings.timeout, idle=settings.idle_timeout, retries=settings.retries),
            settings.api,
            own_backend=self._plugin_backend,
            own_embedder=lambda name: hook.pytest_tsuka_embedder(config=self.config, model=name),
        )

    def _own_backend(self, model: Model) -> Backend:
        from pytest_tsuka.backends.openai import Limits, OpenAIBackend
        from pytest_tsuka.backends.rate_limit import Pacer

        settings = self.settings
        limits = Limits(timeout=settings.timeout, idle=settings.idle_timeout, retries=settings.retries)
        if model.in_process:
            from pytest_tsuka.backends.embedded import EmbeddedBackend
            from pytest_tsuka.backends.weights import expected_weights

            path = model.weights or self.weights.get(model.name) or expected_weights()
            return EmbeddedBackend(
                path,
                slots=settings.concurrency,
                threads=settings.threads or None,
                params=settings.params,
                effort_style=settings.effort_style,
                limits=limits,
            )
        return OpenAIBackend(
            settings.base_url,
            api_key=settings.api_key,
            params=settings.params,
            effort_style=settings.effort_style,
            stream=settings.stream,
            limits=limits,
            api=settings.api,
            shared=self.workers > 1,
            pacer=Pacer(settings.rpm / self.workers, settings.tpm / self.workers),
        )


_PLUGIN_BACKENDS: pytest.StashKey[dict[str, Any]] = pytest.StashKey()


def usage_error(call: Callable[[], Any]) -> Any:
    """The result of `call`, a SettingsError turned into pytest's usage error."""
    try:
        return call()
    except SettingsError as error:
        raise pytest.UsageError(f"pytest-tsuka: {error}") from None
