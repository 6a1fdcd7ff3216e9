"""Benchmark files as collectors, one item per model and effort."""

from __future__ import annotations

import json
import warnings
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_tsuka.backends.catalog import Model
from pytest_tsuka.errors import BackendError, BenchmarkError, EffortRefused, SettingsError
from pytest_tsuka.plugin.items import PlayedItem
from pytest_tsuka.plugin.state import State, state_of
from pytest_tsuka.protocols import Backend
from pytest_tsuka.scoring.outcomes import ERROR, PASSED, REFUSED
from pytest_tsuka.scoring.verdict import (
    RunVerdict,
    Verdict,
    combined_outcome,
    failed_checks,
    headline,
    judge,
    mean_verdict_score,
    operands_text,
    vacuous_warning,
)
from pytest_tsuka.text.escape import one_line, printable
from pytest_tsuka.text.json_types import finite
from pytest_tsuka.text.normalise import without_surrogates
from pytest_tsuka.text.numbers import score_text

if TYPE_CHECKING:
    from pytest_tsuka.conversation import Conversation
    from pytest_tsuka.suite.benchmark import Benchmark


SCENARIOS = "scenarios"
"""The folder in a suite that holds its scenarios."""


class TsukaWarning(pytest.PytestWarning):
    """Something about a benchmark that makes its scores less worth than they look."""


class WrongAnswer(Exception):
    """Raised by an item whose checks did not all pass; carries the verdict to its report."""

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict
        super().__init__(headline(verdict["score"] or 0.0, _worst(verdict)))


def collect_file(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """A collector for a file of the suite, or one named on the command line; no other JSON is opened."""
    state = state_of(parent.config)
    resolved = state.place(path)
    if resolved.parent == state.suite_place / SCENARIOS or (
        resolved in state.named_files and resolved.parent.name == SCENARIOS
    ):
        return _scenario_file(path, parent, state)
    if state.settings.rescore:
        return None
    if resolved.parent == state.suite_place or resolved in state.named_files:
        if state.settings.packaged and resolved.parent == state.suite_place:
            # Its ids look like those of a local folder and not like a path into site-packages.
            return BenchmarkFile.from_parent(parent, path=path, nodeid=f"benchmarks/{path.name}")
        return BenchmarkFile.from_parent(parent, path=path)
    return None


def _scenario_file(path: Path, parent: pytest.Collector, state: State) -> pytest.Collector | None:
    from pytest_tsuka.plugin.scenarios import ScenarioFile

    named = state.place(path) in state.named_files
    if path.name.endswith(".reference.json") or not (state.settings.scenarios or named):
        return None
    if state.settings.packaged and not named:
        return ScenarioFile.from_parent(parent, path=path, nodeid=f"benchmarks/{SCENARIOS}/{path.name}")
    return ScenarioFile.from_parent(parent, path=path)


class BenchmarkFile(pytest.File):
    """One benchmark file."""

    def collect(self) -> Iterator[EffortItem]:
        state = state_of(self.config)
        try:
            state.check_hooks()
            state.check_terms()
            benchmark = state.benchmark(state.place(self.path))
        except (BenchmarkError, SettingsError) as error:
            raise self.CollectError(_relative(printable(str(error)), self.config.rootpath)) from None
        self._guard_against_vacuous_passes(benchmark)
        for model in state.models:
            for effort in state.settings.efforts:
                label = f"{state.labels[model.name]}-{effort}" if len(state.models) > 1 else effort
                name = f"{benchmark.name}[{label}]"
                # Without an explicit nodeid the structured id of pytest 9.2 differs from the same id
                # read from a string, and --lf runs everything again (pytest-dev/pytest#15045).
                yield EffortItem.from_parent(
                    self,
                    name=name,
                    nodeid=f"{self.nodeid}::{name}",
                    benchmark=benchmark,
                    model=model,
                    effort=effort,
                )

    def _guard_against_vacuous_passes(self, benchmark: Benchmark) -> None:
        message = vacuous_warning(benchmark)
        if message is None:
            return
        try:
            warnings.warn_explicit(TsukaWarning(message), None, str(self.path), 1)
        except TsukaWarning:  # -W error
            raise self.CollectError(one_line(message)) from None


def _relative(text: str, root: Path) -> str:
    return text.replace(f"{root}/", "")


class EffortItem(PlayedItem):
    """One benchmark played by one model at one effort, as often as --tsuka-repeats says."""

    def __init__(self, *, benchmark: Benchmark, model: Model, effort: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.benchmark = benchmark
        self.model = model
        self.effort = effort
        self.verdict: Verdict | None = None
        self._conversations: list[Conversation] = []
        self.add_marker(pytest.mark.tsuka(category=benchmark.category, effort=effort, model=model.name))

    @property
    def runs(self) -> int:
        return self.state.settings.repeats

    @property
    def measured_alone(self) -> bool:
        return self.state.resumed(self) is None

    def job(self, run: int) -> Callable[[Backend], Awaitable[Any]]:
        from pytest_tsuka.runner.play import play

        label = f"{self.benchmark.name}[{self.effort}]" + (f" run {run + 1}" if run else "")
        text_calls = self.state.settings.text_calls
        return lambda backend: play(
            self.benchmark, self.model.name, self.effort, backend, accept_text_calls=text_calls, label=label
        )

    def jobs(self) -> list[Future[Any]]:
        """The conversations of this item, started if they are not yet; none when its verdict is known already."""
        return [] if self.state.resumed(self) else super().jobs()

    def setup(self) -> None:
        """Waits for the conversations. Trouble with the endpoint is an ERROR here, never a score."""
        if reason := self.state.why_nothing_is_sent():
            pytest.fail(reason, pytrace=False)
        message = skipped = None
        try:
            self._conversations = [job.result() for job in self.jobs()]
        except EffortRefused as error:
            skipped = one_line(str(error))
        except BackendError as error:
            message = one_line(f"{self.model.name} at {self.effort}: {error}")
        finally:
            self.state.forget(self)
        if skipped is not None:
            self.verdict = self._unscored(REFUSED, skipped)
            pytest.skip(f"effort {self.effort!r} refused: {skipped}")
        if message is not None:
            self.verdict = self._unscored(ERROR, message)
            pytest.fail(message, pytrace=False)

    def runtest(self) -> None:
        """Judges the conversations; below full score the item fails, or is PARTIAL under a gate."""
        self.verdict = self.state.resumed(self) or self._judged()
        self.user_properties.extend(properties(self.verdict))
        if self.verdict["outcome"] != PASSED and not self.state.settings.gated:
            raise WrongAnswer(self.verdict)

    def _judged(self) -> Verdict:
        runs = [judge(self.benchmark, conversation) for conversation in self._conversations]
        self._conversations = []
        return self._make_verdict(combined_outcome(runs), mean_verdict_score(runs), None, runs)

    def _unscored(self, outcome: str, error: str) -> Verdict:
        verdict = self._make_verdict(outcome, None, error, [])
        self.user_properties.extend(properties(verdict))
        return verdict

    def _make_verdict(self, outcome: str, score: float | None, error: str | None, runs: list[RunVerdict]) -> Verdict:
        return {
            "benchmark": self.benchmark.name,
            "file": self.path.name,
            "description": self.benchmark.description,
            "category": self.benchmark.category,
            "weight": self.benchmark.weight,
            "model": self.model.name,
            "effort": self.effort,
            "provider": self.state.provider(self.model.name),
            "parameters": self.state.parameters(self.model.name),
            "tests_hash": self.state.suite.tests_hash,
            "outcome": outcome,
            "score": score,
            "error": error,
            "runs": runs,
        }

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, WrongAnswer):
            return "\n".join(failure_lines(excinfo.value.verdict))
        return super().repr_failure(excinfo, style or "short")

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, self.name


def _worst(verdict: Verdict) -> RunVerdict:
    return min(verdict["runs"], key=lambda run: run["score"])


def failure_lines(verdict: Verdict) -> list[str]:
    """What an author of a benchmark or a user of a model needs to see: score, failed checks, notes."""
    run = _worst(verdict)
    lines = [headline(verdict["score"] or 0.0, run), f"{verdict['model']} at effort {verdict['effort']}"]
    if len(verdict["runs"]) > 1:
        scores = ", ".join(score_text(r["score"]) for r in verdict["runs"])
        lines.append(f"scores of {len(verdict['runs'])} runs: {scores}; the lowest is shown")
    for check in failed_checks(run):
        step = f"step {check['step'] + 1}: " if _steps(run) > 1 else ""
        lines.append(f"  ✗ {step}{check['type']} {operands_text(check)} (weight {check['weight']:g})")
        lines.append(f"      {check['reason']}")
    lines.extend(f"  note: {note}" for note in run["notes"])
    return [one_line(line) for line in lines]


def _steps(run: RunVerdict) -> int:
    return len(run["conversation"])


def reply_text(verdict: Verdict, most: int = 1500) -> str:
    """What the model said in its worst run, for the section under a failure."""
    lines: list[str] = []
    for number, turn in enumerate(_worst(verdict)["conversation"]):
        reply: Any = turn.get("reply")
        if not reply:
            continue
        prefix = f"[{number + 1}] " if _steps(_worst(verdict)) > 1 else ""
        for call in reply["tool_calls"]:
            lines.append(f"{prefix}calls {call.get('name')}({call.get('raw_arguments', '')})")
        if reply.get("refusal"):
            lines.append(f"{prefix}refuses: {reply['refusal']}")
        if reply["text"]:
            lines.append(f"{prefix}{reply['text']}")
    text = printable("\n".join(lines))
    return text if len(text) <= most else f"{text[:most]}\n… {len(text) - most} more characters (see --tsuka-json)"


def properties(verdict: Verdict) -> list[tuple[str, str]]:
    """An item's figures for JUnit: score, weight, tokens, seconds and every check."""
    found: dict[str, object] = {
        "tsuka.outcome": verdict["outcome"],
        "tsuka.score": "" if verdict["score"] is None else score_text(verdict["score"], 3),
        "tsuka.weight": f"{verdict['weight']:g}",
        "tsuka.category": verdict["category"],
        "tsuka.effort": verdict["effort"],
        "tsuka.model": verdict["model"],
    }
    if verdict["runs"]:
        run = _worst(verdict)
        found["tsuka.seconds"] = f"{sum(r['timing']['seconds'] or 0 for r in verdict['runs']):.3f}"
        tokens = [r["usage"]["completion_tokens"] for r in verdict["runs"]]
        if all(t is not None for t in tokens):
            found["tsuka.tokens"] = sum(t for t in tokens if t is not None)
        for number, check in enumerate(run["checks"]):
            outcome = "pass" if check["passed"] else f"fail: {check['reason']}"
            found[f"tsuka.check.{number}"] = f"{check['type']} {operands_text(check)} x{check['weight']:g} {outcome}"
    return [(name, one_line(str(value))) for name, value in found.items() if value != ""]


def as_transport(verdict: Verdict) -> tuple[str, Verdict]:
    """A verdict as one string of strict JSON, nothing a worker's channel or a writer could choke on.

    And the verdict as that says it: itself, where nothing had to be changed.
    """
    try:
        text = json.dumps(verdict, ensure_ascii=False, allow_nan=False)
    except ValueError:  # a server's own JSON may hold numbers beyond the range of a float
        verdict = cast("Verdict", finite(verdict))
        text = json.dumps(verdict, ensure_ascii=False, allow_nan=False)
    clean = without_surrogates(text)
    return clean, verdict if clean == text else json.loads(clean)
