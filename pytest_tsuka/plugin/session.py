"""A run seen from the controller: verdicts come in on reports, profile, gate and reports go out."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from collections.abc import Generator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_tsuka.errors import ProfileError, SettingsError
from pytest_tsuka.plugin.collect import EffortItem, as_transport, reply_text
from pytest_tsuka.plugin.grading import ScenarioGrading
from pytest_tsuka.plugin.outputs import append_summary, outputs, write_text
from pytest_tsuka.plugin.scenarios import ScenarioItem
from pytest_tsuka.plugin.state import state_of
from pytest_tsuka.scoring.outcomes import FAILED, PASSED, outcome_named
from pytest_tsuka.scoring.verdict import Verdict
from pytest_tsuka.text.escape import one_line
from pytest_tsuka.text.numbers import score_text

if TYPE_CHECKING:
    from pytest_tsuka.grading.passes import PassOutcome
    from pytest_tsuka.grading.standings import Standings
    from pytest_tsuka.scoring.gate import GateFailure
    from pytest_tsuka.scoring.results import ModelResult
    from pytest_tsuka.store.database import Store


BATCH = 0.2
"""Seconds within which verdicts go to the store together."""


class ReportWriter:
    """Puts the verdict on the report, wherever the item runs: xdist carries it to the controller."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Hooks are resolved now, where a single process, a controller and workers see the same."""
        state = state_of(session.config)
        _ = state.registry
        for text in getattr(session.config, "workerinput", {}).get("tsuka_resumed", ()):
            verdict: Verdict = json.loads(text)
            state.finished_before[verdict["model"], verdict["effort"], verdict["benchmark"]] = verdict
        for answered in getattr(session.config, "workerinput", {}).get("tsuka_answered", ()):
            state.answered_before.add(tuple(answered))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if isinstance(item, EffortItem) and item.verdict is not None and call.when != "teardown":
            text, verdict = as_transport(item.verdict)
            report.tsuka = text  # type: ignore[attr-defined]
            if call.when == "call" and verdict["outcome"] != PASSED:
                report.tsuka_below = [score_text(verdict["score"]), verdict["outcome"]]  # type: ignore[attr-defined]
            if report.failed and call.when == "call":
                report.sections.append(("the model said", reply_text(verdict)))
            item.state.judged = (text, verdict)
        elif isinstance(item, EffortItem) and call.when == "teardown":
            item.verdict = None  # pytest keeps its items to the end
        # Also of an item that is an error: answers that did come are kept.
        kept = call.when == "call" or (call.when == "setup" and report.failed)
        if isinstance(item, ScenarioItem) and kept and (call.when == "call" or item.outputs):
            report.tsuka_scenario = item.payload()  # type: ignore[attr-defined]
        return report


class Controller:
    """Collects verdicts in the process that reports, and settles profile, gate and files at the end."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self.state = state_of(config)
        self._verdicts: dict[str, Verdict] = {}
        self._started = time.time()
        self._store: Store | None = None
        self._run = 0
        self._unkept: list[tuple[str, Verdict, str]] = []
        self._unkept_since = 0.0
        self.state.before_waiting = self._keep_now
        self._said = False
        self._grading = ScenarioGrading(self.state)
        self.results: list[ModelResult] = []
        self.gate_failures: list[GateFailure] | None = None
        self.notes: list[str] = []
        self.problems: list[str] = []
        self.written: list[str] = []

    @property
    def verdicts(self) -> list[Verdict]:
        """In the order of the suite, whatever order workers finished in."""
        order = {m.name: i for i, m in enumerate(self.state.models)}
        efforts = self.state.settings.efforts
        return sorted(
            self._verdicts.values(),
            key=lambda v: (
                order.get(v["model"], len(order)),
                v["file"],
                v["benchmark"],
                efforts.index(v["effort"]),
            ),
        )

    @property
    def standings(self) -> list[Standings]:
        return self._grading.standings

    @property
    def outcomes(self) -> list[PassOutcome]:
        return self._grading.outcomes

    @cached_property
    def _dry(self) -> bool:
        option = self._config.option
        return bool(option.collectonly or option.setuponly)

    def pytest_report_header(self, config: pytest.Config) -> list[str]:
        settings = self.state.settings
        if settings.rescore:
            return ["tsuka: kept answers of scenarios are graded again, no model under test is called"]
        names = ", ".join(model.name for model in self.state.models)
        suite = "standard suite" if settings.packaged else settings.folder.name
        where = (
            f"replayed from {settings.replay.name}"
            if settings.replay
            else "in this process"
            if all(m.in_process for m in self.state.models)
            else f"at {self.state.provider(self.state.models[0].name)}"
        )
        return [one_line(f"tsuka: {names} {where}; {suite}, efforts {' '.join(settings.efforts)}")]

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """The terminal reporter exists from now on (not yet in pytest_configure)."""
        from pytest_tsuka.report.terminal import TerminalReport

        if terminal := self._config.pluginmanager.get_plugin("terminalreporter"):
            self._config.pluginmanager.register(TerminalReport(self, terminal), "tsuka-terminal")
        if not self._dry:
            self._open_store()

    def _open_store(self) -> None:
        """Before workers start, which are told what a broken-off run had finished."""
        from pytest_tsuka.store.database import Store, StoreError

        state = self.state
        try:
            self._store = Store(state.settings.store)
            if state.settings.resume:
                self._resume(self._store)
            self._run = self._store.begin_run()
        except (StoreError, sqlite3.Error) as error:
            if state.settings.resume:
                raise pytest.UsageError(f"pytest-tsuka: --tsuka-resume: {error}") from None
            if state.settings.rescore:
                raise pytest.UsageError(f"pytest-tsuka: --tsuka-rescore: {error}") from None
            self.notes.append(f"nothing can be resumed later: {error}")
            self._store = None

    def _resume(self, store: Store) -> None:
        state = self.state
        resumed = store.broken_off(
            {model.name: state.conditions(model.name) for model in state.models},
            state.settings.efforts,
            [benchmark.name for benchmark in state.suite.benchmarks.values()],
        )
        state.finished_before.update(resumed.verdicts)
        self._grading.resume(store)
        if resumed.started is None:
            self.notes.append("nothing to resume: no broken-off run of this suite with these settings")
        else:
            when = time.strftime("%Y-%m-%d %H:%M", time.localtime(resumed.started))
            self.notes.append(f"{len(resumed.verdicts)} verdicts were taken from the run begun at {when}")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None, object, object]:
        text: str | None = getattr(report, "tsuka", None)
        if text:
            verdict = self._received(text)
            self._verdicts[report.nodeid] = verdict
            self._keep(verdict, text)
        self._receive_answers(report)
        result = yield
        if text:
            del report.tsuka  # pytest keeps its reports to the end
        return result

    def _received(self, text: str) -> Verdict:
        """The verdict of a report: what was judged in this process a moment ago, else what a worker sent."""
        judged = self.state.judged
        # Its strings are shared with other verdicts; a second copy of each would take most of a run's memory.
        verdict: Verdict = judged[1] if judged and judged[0] is text else json.loads(text)
        return verdict

    def _receive_answers(self, report: pytest.TestReport) -> None:
        if text := getattr(report, "tsuka_scenario", None):
            self._grading.receive(text, self._store, self._run)

    def _keep(self, verdict: Verdict, text: str) -> None:
        """Kept at once, or with the next ones: before pytest's loop waits, and after BATCH seconds at the latest."""
        if self._store is None:
            return
        if not self._unkept:
            self._unkept_since = time.monotonic()
        self._unkept.append((self.state.conditions(verdict["model"]), verdict, text))
        # Without an engine in this process (under xdist) nobody says when the loop waits.
        if self.state.engine is None or time.monotonic() - self._unkept_since >= BATCH:
            self._keep_now()

    def _keep_now(self) -> None:
        if self._store is None or not self._unkept:
            return
        try:
            self._store.add(self._run, self._unkept)
        except sqlite3.Error as error:
            self.notes.append(f"nothing can be resumed later: {self.state.settings.store}: {error}")
            self._store = None
        self._unkept = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, Any] | None:
        """Below full score: a letter and a word for each class; PARTIAL and not failing the run under a gate."""
        below = getattr(report, "tsuka_below", None)
        if below is None or report.when != "call":
            return None
        score, outcome = below
        letter = outcome_named(outcome).letter
        if report.passed and self.state.settings.gated:
            kind = "" if outcome == FAILED else f" {outcome}"
            return "partial", "p" if outcome == FAILED else letter, (f"PARTIAL {score}{kind}", {"yellow": True})
        if report.failed and outcome != FAILED:
            return "failed", letter, ("FAILED", {"red": True})
        return None

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Before JUnit's own sessionfinish, which writes the XML."""
        bad_end = exitstatus in (pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR)
        interrupted = exitstatus == pytest.ExitCode.INTERRUPTED
        self._keep_now()
        self._grade_scenarios(whole=not (bad_end or interrupted))
        try:
            if not self._dry and (self._verdicts or not bad_end):
                self._settle(session, interrupted=interrupted)
        finally:  # a run that is killed before its profile is written is taken up again
            self._close_store(finished=exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED))

    def _settle(self, session: pytest.Session, *, interrupted: bool) -> None:
        """Scores, profile, gate, files, JUnit properties, exit status."""
        from pytest_tsuka.scoring.results import summarise

        rescore = self.state.settings.rescore
        if not rescore and (self._verdicts or not self._grading.pending or self.state.settings.gated):
            self.results = summarise(self._expectation(), self.verdicts)
        workers, allowed = self.state.worker_count, self.state.settings.concurrency
        if workers > allowed:
            self.notes.append(
                f"{workers} workers play {workers} conversations at once, more than --tsuka-concurrency={allowed}"
            )
        self._write_profile()
        if self.state.settings.gated and not interrupted:
            self._judge_gate()
        self._write_files(interrupted=interrupted)
        self._add_suite_properties()
        failed = bool(self.gate_failures) or bool(self.problems)
        if failed and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _grade_scenarios(self, *, whole: bool) -> None:
        """Once all answers are in. An interrupted run keeps them for a later pass."""
        grading = self._grading
        if not whole:
            if grading.pending and self._store:
                self.notes.append("answers to scenarios were kept but not graded: pytest --tsuka-rescore")
            return
        try:
            grading.grade(self._store, self._say)
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

    def _close_store(self, *, finished: bool) -> None:
        self._grading.close()
        if self._store is None:
            return
        with contextlib.suppress(sqlite3.Error):
            if finished:
                self._store.end_run(self._run)
            self._store.close()

    def _expectation(self) -> Any:
        from pytest_tsuka.scoring.results import Expectation
        from pytest_tsuka.suite.files import tests_hash

        suite = self.state.suite
        unusable = None
        if suite.errors:
            unusable = f"the suite has {len(suite.errors)} bad file{'s' * (len(suite.errors) != 1)}"
        elif not suite.benchmarks:
            unusable = f"{self.state.settings.folder} holds no benchmark"
        elif tests_hash(self.state.settings.folder) != suite.tests_hash:
            unusable = "the suite was changed during the run"
        return Expectation(
            models=tuple(model.name for model in self.state.models),
            efforts=self.state.settings.efforts,
            categories={b.name: b.category for b in suite.benchmarks.values()},
            unusable=unusable,
            policy=self.state.policy,
        )

    def _write_profile(self) -> None:
        from pytest_tsuka.profile.entries import MeasuredOn, apply_to_profiles, profile_entry
        from pytest_tsuka.profile.file import suite_place, update_profiles

        if not any(model.measured for model in self.results):
            return
        path = self.state.settings.profile
        settings = self.state.settings
        place = suite_place(settings.folder, path, packaged=settings.packaged)
        measured_on = MeasuredOn(self.state.suite.tests_hash, place)
        cost_of = self.state.project.cost
        try:
            self.problems += update_profiles(
                path, lambda data: self.notes.extend(apply_to_profiles(data, self.results, measured_on, cost_of))
            )
        except (OSError, ProfileError) as error:
            self.problems.append(f"the profile was not written: {error}")
            return
        count = sum(len(model.measured) for model in self.results)
        self.written.append(f"{count} profile{'s' * (count != 1)} written to {_shown(path, self._config)}")
        for model in self.results:
            for effort in model.measured:
                self._config.hook.pytest_tsuka_profile(
                    config=self._config,
                    model=model.model,
                    effort=effort.effort,
                    profile=profile_entry(effort, measured_on, cost_of=cost_of),
                )

    def _judge_gate(self) -> None:
        from pytest_tsuka.scoring.gate import judge_gate

        settings = self.state.settings
        self.gate_failures = judge_gate(
            settings.requirements,
            self.results,
            effort=settings.gate_effort,
            on_lower_bound=settings.gate_on_lower_bound,
        )

    def _write_files(self, *, interrupted: bool) -> None:
        """Result file, page and summary, all of the same document."""
        settings = self.state.settings
        if not (settings.json or settings.html or settings.markdown or settings.github_summary):
            return
        from pytest_tsuka.report.results import result_document

        document = result_document(
            self.verdicts,
            self.results,
            tests_hash=self.state.suite.tests_hash,
            started=self._started,
            interrupted=interrupted,
            gate=self.gate_failures,
            scenarios=self.standings,
            categories={b.name: b.category for b in self.state.suite.benchmarks.values()},
        )
        for name, what, path, text in outputs(document, settings):
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_text(path, text())
            except Exception as error:  # a page that cannot be drawn must not cost the run's other files
                expected = isinstance(error, (OSError, SettingsError))
                why = getattr(error, "strerror", None) or (error if expected else f"{type(error).__name__}: {error}")
                were = "were" if name.endswith("s") else "was"
                self.problems.append(f"{name} {were} not written to {path}: {why}")
                continue
            self.written.append(f"{what} written to {_shown(path, self._config)}")
        if settings.github_summary:
            append_summary(settings.github_summary, document, self.problems)

    def _add_suite_properties(self) -> None:
        """JUnit's suite properties, without importing pytest's private names: by the method's own name."""
        values: dict[str, str] = {"tsuka.testsHash": self.state.suite.tests_hash}
        several = len(self.results) > 1
        for model in self.results:
            prefix = f"tsuka.{model.model}." if several else "tsuka."
            best = model.recommended
            values[prefix + "model"] = model.model
            values[prefix + "tier"] = (best.tier if best else None) or "none"
            values[prefix + "recommendedEffort"] = best.effort if best else "none"
            for effort in model.efforts:
                values[f"{prefix}tier.{effort.effort}"] = effort.tier or "none"
        values |= {one_line(name): one_line(value) for name, value in self._grading.properties().items()}
        if self.gate_failures is not None:
            values["tsuka.gate"] = "failed" if self.gate_failures else "met"
        for plugin in self._config.pluginmanager.get_plugins():
            if add := getattr(plugin, "add_global_property", None):
                for name, value in values.items():
                    add(name, value)

    @property
    def asked(self) -> str:
        """What the gate asks for, as the user wrote it."""
        return ", ".join(requirement.text for requirement in self.state.settings.requirements)


def _shown(path: Path, config: pytest.Config) -> str:
    try:
        return str(path.relative_to(config.invocation_params.dir))
    except ValueError:
        return str(path)
