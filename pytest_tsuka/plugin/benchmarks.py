"""Benchmark files as collectors, one item per model and effort."""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_tsuka.backends.models import Model
from pytest_tsuka.errors import BackendError, BenchmarkError, EffortRefused, SettingsError
from pytest_tsuka.plugin.context import context_of
from pytest_tsuka.plugin.items import PlayedItem
from pytest_tsuka.protocols import Backend
from pytest_tsuka.report.item import failure_lines, properties, worst_run
from pytest_tsuka.scoring.outcomes import ERROR, PASSED, REFUSED
from pytest_tsuka.scoring.vacuous import vacuous_warning
from pytest_tsuka.scoring.verdict import (
    RunVerdict,
    Verdict,
    combined_outcome,
    headline,
    judge,
    make_verdict,
    mean_verdict_score,
)
from pytest_tsuka.text.escape import one_line, printable

if TYPE_CHECKING:
    from pytest_tsuka.conversation import Conversation
    from pytest_tsuka.suite.benchmark import Benchmark


class TsukaWarning(pytest.PytestWarning):
    """Something about a benchmark that makes its scores less worth than they look."""


TsukaWarning.__module__ = "pytest_tsuka.plugin.collect"  # where filters of warnings name it


class WrongAnswer(Exception):
    """Raised by an item whose checks did not all pass; carries the verdict to its report."""

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict
        super().__init__(headline(verdict["score"] or 0.0, worst_run(verdict)))


class BenchmarkFile(pytest.File):
    """One benchmark file."""

    def collect(self) -> Iterator[EffortItem]:
        context = context_of(self.config)
        try:
            context.check_hooks()
            context.check_terms()
            benchmark = context.benchmark(context.place(self.path))
        except (BenchmarkError, SettingsError) as error:
            raise self.CollectError(_relative(printable(str(error)), self.config.rootpath)) from None
        self._guard_against_vacuous_passes(benchmark)
        for model in context.models:
            for effort in context.settings.efforts:
                label = f"{context.labels[model.name]}-{effort}" if len(context.models) > 1 else effort
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
        self.subject = benchmark.name
        self.model = model
        self.effort = effort
        self.runs = self.context.settings.repeats
        self.verdict: Verdict | None = None
        self._conversations: list[Conversation] = []
        self.add_marker(pytest.mark.tsuka(category=benchmark.category, effort=effort, model=model.name))

    @property
    def _earlier(self) -> Verdict | None:
        """The verdict that a broken-off run had already come to."""
        return self.context.earlier.verdicts.get((self.model.name, self.effort, self.benchmark.name))

    @property
    def known(self) -> bool:
        return self._earlier is not None

    @property
    def measured_alone(self) -> bool:
        return not self.known

    def job(self, label: str) -> Callable[[Backend], Awaitable[Any]]:
        from pytest_tsuka.runner.play import play

        text_calls = self.context.settings.text_calls
        return lambda backend: play(
            self.benchmark, self.model.name, self.effort, backend, accept_text_calls=text_calls, label=label
        )

    def setup(self) -> None:
        """Waits for the conversations. Trouble with the endpoint is an ERROR here, never a score."""
        if reason := self.context.why_nothing_is_sent():
            pytest.fail(reason, pytrace=False)
        message = skipped = None
        try:
            self._conversations = [job.result() for job in self.jobs()]
        except EffortRefused as error:
            skipped = one_line(str(error))
        except BackendError as error:
            message = one_line(f"{self.model.name} at {self.effort}: {error}")
        finally:
            self.forget()
        if skipped is not None:
            self.verdict = self._unscored(REFUSED, skipped)
            pytest.skip(f"effort {self.effort!r} refused: {skipped}")
        if message is not None:
            self.verdict = self._unscored(ERROR, message)
            pytest.fail(message, pytrace=False)

    def runtest(self) -> None:
        """Judges the conversations; below full score the item fails, or is PARTIAL under a gate."""
        self.verdict = self._earlier or self._judged()
        self.user_properties.extend(properties(self.verdict))
        if self.verdict["outcome"] != PASSED and not self.context.settings.gated:
            raise WrongAnswer(self.verdict)

    def _judged(self) -> Verdict:
        runs = [judge(self.benchmark, conversation) for conversation in self._conversations]
        self._conversations = []
        return self._made(combined_outcome(runs), mean_verdict_score(runs), None, runs)

    def _unscored(self, outcome: str, error: str) -> Verdict:
        verdict = self._made(outcome, None, error, [])
        self.user_properties.extend(properties(verdict))
        return verdict

    def _made(self, outcome: str, score: float | None, error: str | None, runs: list[RunVerdict]) -> Verdict:
        return make_verdict(
            self.benchmark,
            self.path.name,
            self.model.name,
            self.effort,
            provider=self.context.endpoints.provider(self.model.name),
            parameters=self.context.endpoints.parameters(self.model.name),
            tests_hash=self.context.suite.tests_hash,
            outcome=outcome,
            score=score,
            error=error,
            runs=runs,
        )

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, WrongAnswer):
            return "\n".join(failure_lines(excinfo.value.verdict))
        return super().repr_failure(excinfo, style)
