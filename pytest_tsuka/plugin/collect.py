"""Which file is collected by whom: benchmarks and scenarios of the suite, or named on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_tsuka.plugin.benchmarks import BenchmarkFile, TsukaWarning
from pytest_tsuka.plugin.context import Context, context_of
from pytest_tsuka.suite.files import SCENARIOS

__all__ = ["TsukaWarning", "collect_file"]


def collect_file(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """A collector for a file of the suite, or one named on the command line; no other JSON is opened."""
    context = context_of(parent.config)
    resolved = context.place(path)
    named = resolved in context.named_files
    if resolved.parent == context.suite_place / SCENARIOS or (named and resolved.parent.name == SCENARIOS):
        return _scenario_file(path, parent, context, named=named)
    if context.settings.rescore or not (named or resolved.parent == context.suite_place):
        return None
    if context.settings.packaged and resolved.parent == context.suite_place:
        # Its ids look like those of a local folder and not like a path into site-packages.
        return BenchmarkFile.from_parent(parent, path=path, nodeid=f"benchmarks/{path.name}")
    return BenchmarkFile.from_parent(parent, path=path)


def _scenario_file(path: Path, parent: pytest.Collector, context: Context, *, named: bool) -> pytest.Collector | None:
    from pytest_tsuka.plugin.scenarios import ScenarioFile

    if path.name.endswith(".reference.json") or not (context.settings.scenarios or named):
        return None
    if context.settings.packaged and not named:
        return ScenarioFile.from_parent(parent, path=path, nodeid=f"benchmarks/{SCENARIOS}/{path.name}")
    return ScenarioFile.from_parent(parent, path=path)
