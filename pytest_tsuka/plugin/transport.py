"""How a verdict gets from the item to the controller: on the report, which xdist carries."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

import pytest

from pytest_tsuka.plugin.benchmarks import EffortItem
from pytest_tsuka.plugin.context import Earlier, context_of
from pytest_tsuka.plugin.scenarios import ScenarioItem
from pytest_tsuka.report.item import reply_text
from pytest_tsuka.scoring.outcomes import PASSED
from pytest_tsuka.scoring.verdict import Verdict, as_transport
from pytest_tsuka.text.numbers import score_text


class ReportWriter:
    """Puts the verdict on the report, wherever the item runs."""

    def __init__(self) -> None:
        self._last: tuple[str, Verdict] | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Hooks are resolved now, where a single process, a controller and workers see the same."""
        context = context_of(session.config)
        _ = context.registry
        _unpack(getattr(session.config, "workerinput", {}), context.earlier)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if isinstance(item, EffortItem):
            self._benchmark(item, call, report)
        elif isinstance(item, ScenarioItem):
            # Also of an item that is an error: answers that did come are kept.
            kept = call.when == "call" or (call.when == "setup" and report.failed and item.outputs)
            if kept:
                report.tsuka_scenario = item.payload()  # type: ignore[attr-defined]
        return report

    def _benchmark(self, item: EffortItem, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
        if call.when == "teardown":
            item.verdict = None  # pytest keeps its items to the end
        if item.verdict is None:
            return
        text, verdict = as_transport(item.verdict)
        report.tsuka = text  # type: ignore[attr-defined]
        if call.when == "call" and verdict["outcome"] != PASSED:
            report.tsuka_below = [score_text(verdict["score"]), verdict["outcome"]]  # type: ignore[attr-defined]
        if report.failed and call.when == "call":
            report.sections.append(("the model said", reply_text(verdict)))
        self._last = (text, verdict)

    def received(self, text: str) -> Verdict:
        """The verdict of a report: what was judged in this process a moment ago, else what a worker sent."""
        # Its strings are shared with other verdicts; a second copy of each would take most of a run's memory.
        verdict: Verdict = self._last[1] if self._last and self._last[0] is text else json.loads(text)
        return verdict


def packed(earlier: Earlier) -> dict[str, list[object]]:
    """What a worker is told of an earlier run, as plain data."""
    return {
        "tsuka_answered": [list(key) for key in earlier.answers],
        "tsuka_resumed": [as_transport(verdict)[0] for verdict in earlier.verdicts.values()],
    }


def _unpack(workerinput: dict[str, Any], earlier: Earlier) -> None:
    for text in workerinput.get("tsuka_resumed", ()):
        verdict: Verdict = json.loads(text)
        earlier.verdicts[verdict["model"], verdict["effort"], verdict["benchmark"]] = verdict
    for scenario, model, effort in workerinput.get("tsuka_answered", ()):
        earlier.answers.add((scenario, model, effort))
