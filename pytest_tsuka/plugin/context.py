"""What an item needs to know of its run: settings, suite, endpoints, what an earlier run had finished."""

from __future__ import annotations

import platform
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_tsuka.backends.models import Model, node_labels
from pytest_tsuka.errors import BenchmarkError, Problem, SettingsError
from pytest_tsuka.plugin.endpoints import Endpoints
from pytest_tsuka.plugin.options import Settings
from pytest_tsuka.profile.model_profiles import BENCHMARK_VERSION
from pytest_tsuka.scoring.tiers import TierPolicy
from pytest_tsuka.text.json_types import JsonObject, digest

if TYPE_CHECKING:
    from pytest_tsuka.checks import Registry
    from pytest_tsuka.gold.scenario import Scenario
    from pytest_tsuka.grading.project import Project
    from pytest_tsuka.scoring.verdict import Verdict
    from pytest_tsuka.suite.benchmark import Benchmark
    from pytest_tsuka.suite.files import Suite

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


@dataclass
class Earlier:
    """What a run that was broken off had come to: verdicts by (model, effort, benchmark), and answers that are kept."""

    verdicts: dict[tuple[str, str, str], Verdict] = field(default_factory=dict)
    answers: set[tuple[str, str, str]] = field(default_factory=set)


@dataclass
class Context:
    """The same in a single process, a controller and each worker. Nothing in it changes once items are played."""

    config: pytest.Config
    settings: Settings
    policy: TierPolicy
    models: tuple[Model, ...]
    named_files: frozenset[Path]
    endpoints: Endpoints
    earlier: Earlier = field(default_factory=Earlier)
    _folders: dict[Path, Path] = field(default_factory=dict)
    _conditions: dict[str, str] = field(default_factory=dict)
    _hook_counts: dict[str, int] = field(default_factory=dict)

    @cached_property
    def labels(self) -> dict[str, str]:
        return node_labels([model.name for model in self.models])

    @cached_property
    def registry(self) -> Registry:
        """The check types there are. Hooks are resolved here, at the session's start."""
        from pytest_tsuka.checks import BUILT_IN, check_types

        hook = self.config.hook
        self._hook_counts = {name: len(getattr(hook, name).get_hookimpls()) for name in HOOKS}
        extra = [c for found in hook.pytest_tsuka_check_types(config=self.config) for c in found]
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

    @cached_property
    def project(self) -> Project:
        """What `[tool.tsuka]` and the file of prices say. Raises SettingsError."""
        from pytest_tsuka.grading.project import read_project

        return read_project(self.config.rootpath, self.settings.prices)

    # --- what keeps an item from being played --------------------------------------------

    def check_hooks(self) -> None:
        """A hook in a conftest.py that is loaded only now was not asked: say so instead of half using it.

        The controller of a distributed run never collects, so it would not see such a hook at all
        and would come to another tier than a single process.
        """
        for name, count in self._hook_counts.items():
            if len(getattr(self.config.hook, name).get_hookimpls()) > count:
                late = "is implemented in a conftest.py that is loaded too late; move it to the root conftest.py"
                raise BenchmarkError(str(self.settings.folder), [Problem(name, late)])

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

    def why_nothing_is_sent(self) -> str | None:
        """Why no conversation may be played, or None: nothing of a suite with a bad file is sent."""
        if self.suite.errors and not self.config.getoption("continue_on_collection_errors", default=False):
            bad = ", ".join(path.name for path in self.suite.errors)
            return f"nothing is sent to a model: the suite has bad files ({bad})"
        return None

    # --- terms ---------------------------------------------------------------------------

    def terms(self, model: str) -> JsonObject:
        """Everything a verdict of this model depends on."""
        return {
            "hash": self.suite.tests_hash,
            "version": BENCHMARK_VERSION,
            "provider": self.endpoints.provider(model),
            "repeats": self.settings.repeats,
            "textCalls": self.settings.text_calls,
            **self.endpoints.asked_for,
        }

    def conditions(self, model: str) -> str:
        """A digest of the terms: only under the same can a run be resumed."""
        if model not in self._conditions:
            self._conditions[model] = digest(self.terms(model))[:16]
        return self._conditions[model]

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


_CONTEXT: pytest.StashKey[Context] = pytest.StashKey()


def keep_context(context: Context) -> None:
    context.config.stash[_CONTEXT] = context


def context_of(config: pytest.Config) -> Context:
    return config.stash[_CONTEXT]


def find_context(config: pytest.Config) -> Context | None:
    """The context, or None in a run that measures no model."""
    return config.stash.get(_CONTEXT, None)
