"""The scenario half of the controller: answers come in on reports, are kept, and are graded at the end."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_tsuka.errors import BenchmarkError, GoldReferenceError
from pytest_tsuka.plugin.context import Context
from pytest_tsuka.suite.files import SCENARIOS

if TYPE_CHECKING:
    from pytest_tsuka.grading.passes import PassOutcome
    from pytest_tsuka.grading.standings import Standings
    from pytest_tsuka.store.database import Store
    from pytest_tsuka.store.records import Records


_NO_PROPERTY = ("model", "effort", "output")


class ScenarioGrading:
    """Keeps answers and grades them; `standings`, `notes` and `problems` are for the reports."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._seen: dict[Path, set[tuple[str, str]]] = {}
        self._records: Records | None = None
        self._own: Store | None = None
        self.standings: list[Standings] = []
        self.outcomes: list[PassOutcome] = []
        self.notes: list[str] = []
        self.problems: list[str] = []

    def resume(self, store: Store) -> None:
        """Notes which answers a broken-off run had come to: they are not asked for again."""
        from pytest_tsuka.grading.scenario_files import Scenarios
        from pytest_tsuka.store.records import Records

        context, records = self._context, Records(store)
        if not context.settings.scenarios:
            return
        for scenario in Scenarios(context.suite_place / SCENARIOS).values():
            for model, effort in context.scenario_pairs(scenario):
                provider = context.endpoints.provider(model.name)
                asked = (scenario.name, model.name, effort)
                if records.broken_off(*asked, scenario.question_key, provider, scenario.repeats):
                    context.earlier.answers.add(asked)

    def receive(self, text: str, store: Store | None, run: int) -> None:
        """An item's answers. Without a store they live as long as this process."""
        from pytest_tsuka.store.records import Output

        item: dict[str, Any] = json.loads(text)
        path = Path(os.path.normpath(self._context.settings.folder / item["path"]))
        self._seen.setdefault(path, set()).add((item["model"], item["effort"]))
        if not item["outputs"]:
            return
        keys = ("scenario", "model", "effort", "question", "provider", "wanted")
        wanted = {key: item[key] for key in keys}
        outputs = [Output.from_json(output) for output in item["outputs"]]
        try:
            self._open(store).add_result(run if store else None, outputs=outputs, **wanted)
        except sqlite3.Error as error:
            self.problems.append(f"the answers of {item['model']} to {item['scenario']} were not kept: {error}")

    def _open(self, store: Store | None) -> Records:
        from pytest_tsuka.store.database import Store
        from pytest_tsuka.store.records import Records

        if self._records is None:
            if store is None:
                store = self._own = Store(None)
            self._records = Records(store)
        return self._records

    def close(self) -> None:
        """Lets go of the store that was only for this process."""
        if self._own is not None:
            self._own.close()

    @property
    def pending(self) -> int:
        """How many scenarios have been answered."""
        return len(self._seen)

    def grade(self, store: Store | None, say: Any) -> None:
        """Grades what was answered in this session, scenario by scenario."""
        if not self._seen:
            return
        records = self._open(store)
        for path, pairs in sorted(self._seen.items()):
            try:
                self._grade_one(path, pairs, records, say)
            except (BenchmarkError, GoldReferenceError, sqlite3.Error) as error:
                self.problems.append(f"{path.name} was not graded: {error}")

    def _grade_one(self, path: Path, pairs: Iterable[tuple[str, str]], records: Records, say: Any) -> None:
        from pytest_tsuka.grading.scenario_files import read_scenario
        from pytest_tsuka.grading.walk import grade_scenario

        settings, project = self._context.settings, self._context.project
        scenario = read_scenario(path)
        if scenario.scoring.judge or scenario.scoring.embedding or project.embedding:
            say(f"grading {scenario.name} …")
        graded = grade_scenario(
            path,
            scenario,
            records,
            self._context.endpoints.clients(),
            project,
            kind="rescore" if settings.rescore else "run",
            improve=not settings.packaged,
            only=set(pairs),
        )
        self.outcomes.append(graded.outcome)
        self.notes += graded.outcome.notes
        self.problems += graded.problems()
        self.standings.append(graded.standings)

    def properties(self) -> dict[str, str]:
        """Figures of every result for JUnit's suite properties, named as in the result file."""
        if not self.standings:
            return {}
        from pytest_tsuka.grading.standings import plain_row

        found: dict[str, str] = {}
        for table in self.standings:
            for row in table.rows:
                for key, value in plain_row(row).items():
                    if key in _NO_PROPERTY or value is None or isinstance(value, (dict, list)):
                        continue
                    shown = f"{value:.6g}" if isinstance(value, float) else str(value)
                    found[f"tsuka.scenario.{table.scenario.name}.{row.label}.{key}"] = shown
        return found
