"""A run seen from the process that reports: verdicts come in on reports, profile, gate and files go out at the end."""

from __future__ import annotations

import time
from collections.abc import Generator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pytest

from pytest_tsuka.errors import ProfileError
from pytest_tsuka.plugin.context import context_of
from pytest_tsuka.plugin.grading import ScenarioGrading
from pytest_tsuka.plugin.jobs import jobs_of
from pytest_tsuka.plugin.keeping import Keeper
from pytest_tsuka.plugin.outputs import Outputs, shown
from pytest_tsuka.plugin.settle import FinishedRun, Gate, Summary, settle
from pytest_tsuka.plugin.transport import ReportWriter
from pytest_tsuka.scoring.outcomes import FAILED, outcome_named
from pytest_tsuka.text.escape import one_line

if TYPE_CHECKING:
    from pytest_tsuka.grading.passes import PassOutcome
    from pytest_tsuka.grading.standings import Standings
    from pytest_tsuka.scoring.gate import GateFailure
    from pytest_tsuka.scoring.results import Expectation, ModelResult
    from pytest_tsuka.scoring.verdict import Verdict


class Controller:
    """Collects verdicts, and settles the run when it ends. `worker_count` is how many processes play its items."""

    def __init__(self, config: pytest.Config, writer: ReportWriter) -> None:
        self._config = config
        self._context = context_of(config)
        self._writer = writer
        self._verdicts: dict[str, Verdict] = {}
        self._started = time.time()
        self._keeper = Keeper(self._context)
        jobs_of(config).before_waiting.append(self._keeper.keep_now)
        self._grading = ScenarioGrading(self._context)
        self._summary: Summary | None = None
        self._said = False
        self.worker_count = 1
        self.notes: list[str] = []
        self.problems: list[str] = []
        self.written: list[str] = []

    # --- what the terminal report asks ---------------------------------------------------

    @property
    def results(self) -> list[ModelResult]:
        return self._summary.results if self._summary else []

    @property
    def gate_failures(self) -> list[GateFailure] | None:
        return self._summary.gate_failures if self._summary else None

    @property
    def asked(self) -> str:
        """What the gate asks for, as the user wrote it."""
        return self._gate.asked if self._gate else ""

    @property
    def standings(self) -> list[Standings]:
        return self._grading.standings

    @property
    def outcomes(self) -> list[PassOutcome]:
        return self._grading.outcomes

    # --- the beginning -------------------------------------------------------------------

    @cached_property
    def _dry(self) -> bool:
        option = self._config.option
        return bool(option.collectonly or option.setuponly)

    def pytest_report_header(self, config: pytest.Config) -> list[str]:
        context, settings = self._context, self._context.settings
        if settings.rescore:
            return ["tsuka: kept answers of scenarios are graded again, no model under test is called"]
        names = ", ".join(model.name for model in context.models)
        suite = "standard suite" if settings.packaged else settings.folder.name
        where = (
            f"replayed from {settings.replay.name}"
            if settings.replay
            else "in this process"
            if all(m.in_process for m in context.models)
            else f"at {context.endpoints.provider(context.models[0].name)}"
        )
        return [one_line(f"tsuka: {names} {where}; {suite}, efforts {' '.join(settings.efforts)}")]

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """The terminal reporter exists from now on (not yet in pytest_configure)."""
        from pytest_tsuka.report.terminal import TerminalReport

        if terminal := self._config.pluginmanager.get_plugin("terminalreporter"):
            self._config.pluginmanager.register(TerminalReport(self, terminal), "tsuka-terminal")
        if not self._dry:
            self._keeper.open(self._grading)

    # --- while it runs -------------------------------------------------------------------

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None, object, object]:
        text: str | None = getattr(report, "tsuka", None)
        if text:
            verdict = self._writer.received(text)
            self._verdicts[report.nodeid] = verdict
            self._keeper.keep(verdict, text)
        if answers := getattr(report, "tsuka_scenario", None):
            self._grading.receive(answers, self._keeper.store, self._keeper.run)
        result = yield
        if text:
            del report.tsuka  # pytest keeps its reports to the end
        return result

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, Any] | None:
        """Below full score: a letter of its own for each class; PARTIAL and not failing the run under a gate."""
        below = getattr(report, "tsuka_below", None)
        if below is None or report.when != "call":
            return None
        score, outcome = below
        letter = outcome_named(outcome).letter
        if report.passed and self._gate:
            kind = "" if outcome == FAILED else f" {outcome}"
            return "partial", "p" if outcome == FAILED else letter, (f"PARTIAL {score}{kind}", {"yellow": True})
        if report.failed and outcome != FAILED:
            return "failed", letter, ("FAILED", {"red": True})
        return None

    # --- the end -------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Before JUnit's own sessionfinish, which writes the XML."""
        bad_end = exitstatus in (pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR)
        interrupted = exitstatus == pytest.ExitCode.INTERRUPTED
        self._keeper.keep_now()
        self._grade_scenarios(whole=not (bad_end or interrupted))
        try:
            if not self._dry and (self._verdicts or not bad_end):
                self._finish(interrupted=interrupted)
        finally:  # a run that is killed before its profile is written is taken up again
            self._grading.close()
            self._keeper.close(finished=exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED))
            self.notes = [*self._keeper.notes, *self.notes]
        if (self.gate_failures or self.problems) and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _grade_scenarios(self, *, whole: bool) -> None:
        """Once all answers are in. An interrupted run keeps them for a later pass."""
        grading = self._grading
        if not whole:
            if grading.pending and self._keeper.store:
                self.notes.append("answers to scenarios were kept but not graded: pytest --tsuka-rescore")
            return
        try:
            grading.grade(self._keeper.store, self._say)
        except KeyboardInterrupt:
            self.problems.append("grading was interrupted; the answers are kept: pytest --tsuka-rescore")
        self.notes += grading.notes
        self.problems += grading.problems

    def _say(self, line: str) -> None:
        if terminal := self._config.pluginmanager.get_plugin("terminalreporter"):
            if self._said or terminal.currentfspath or terminal.verbosity > 0:
                terminal.ensure_newline()
            else:
                terminal.write("\n")  # with -q and under xdist pytest does not know that its line of letters is open
            self._said = True
            terminal.write_line(line)

    @cached_property
    def _gate(self) -> Gate | None:
        settings = self._context.settings
        if not settings.requirements:
            return None
        return Gate(settings.requirements, settings.gate_effort or None, settings.gate_on == "lower")

    def _finish(self, *, interrupted: bool) -> None:
        settings = self._context.settings
        measures = not settings.rescore and bool(self._verdicts or not self._grading.pending or self._gate)
        summary = self._summary = settle(
            FinishedRun(
                self._in_order(),
                self._expectation() if measures else None,
                self._context.suite.tests_hash,
                self._started,
                interrupted,
                self._gate,
                self.standings,
                {one_line(name): one_line(value) for name, value in self._grading.properties().items()},
                self.worker_count,
                settings.concurrency,
            )
        )
        self.notes += summary.notes
        if summary.measured:
            self._write_profile(summary)
        outputs = Outputs(settings, self._config.invocation_params.dir)
        outputs.write(summary.document)
        self.written += outputs.written
        self.problems += outputs.problems
        self._add_suite_properties(summary.properties())

    def _in_order(self) -> list[Verdict]:
        """The verdicts in the order of the suite, whatever order workers finished in."""
        models = {m.name: i for i, m in enumerate(self._context.models)}
        efforts = self._context.settings.efforts
        return sorted(
            self._verdicts.values(),
            key=lambda v: (models.get(v["model"], len(models)), v["file"], v["benchmark"], efforts.index(v["effort"])),
        )

    def _expectation(self) -> Expectation:
        """What a complete run would have held, by the suite as it is on disk."""
        from pytest_tsuka.scoring.results import Expectation
        from pytest_tsuka.suite.files import tests_hash

        context, suite = self._context, self._context.suite
        unusable = None
        if suite.errors:
            unusable = f"the suite has {len(suite.errors)} bad file{'s' * (len(suite.errors) != 1)}"
        elif not suite.benchmarks:
            unusable = f"{context.settings.folder} holds no benchmark"
        elif tests_hash(context.settings.folder) != suite.tests_hash:
            unusable = "the suite was changed during the run"
        return Expectation(
            models=tuple(model.name for model in context.models),
            efforts=context.settings.efforts,
            categories={b.name: b.category for b in suite.benchmarks.values()},
            unusable=unusable,
            policy=context.policy,
        )

    def _write_profile(self, summary: Summary) -> None:
        from pytest_tsuka.profile.entries import MeasuredOn, apply_to_profiles, profile_entry
        from pytest_tsuka.profile.file import update_profiles
        from pytest_tsuka.profile.model_profiles import suite_place

        settings = self._context.settings
        place = suite_place(settings.folder, settings.profile, packaged=settings.packaged)
        measured_on = MeasuredOn(summary.run.tests_hash, place)
        cost_of = self._context.project.cost
        try:
            self.problems += update_profiles(
                settings.profile,
                lambda data: self.notes.extend(apply_to_profiles(data, summary.results, measured_on, cost_of)),
            )
        except (OSError, ProfileError) as error:
            self.problems.append(f"the profile was not written: {error}")
            return
        efforts = [effort for model in summary.results for effort in model.measured]
        where = shown(settings.profile, self._config.invocation_params.dir)
        self.written.append(f"{len(efforts)} profile{'s' * (len(efforts) != 1)} written to {where}")
        for effort in efforts:
            entry = profile_entry(effort, measured_on, cost_of=cost_of)
            self._config.hook.pytest_tsuka_profile(
                config=self._config, model=effort.model, effort=effort.effort, profile=entry
            )

    def _add_suite_properties(self, values: dict[str, str]) -> None:
        """JUnit's suite properties, without importing pytest's private names: by the method's own name."""
        for plugin in self._config.pluginmanager.get_plugins():
            if add := getattr(plugin, "add_global_property", None):
                for name, value in values.items():
                    add(name, value)
