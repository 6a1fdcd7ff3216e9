"""What a person sees in the terminal: checks under their item, the table, the recommendation, the gate."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import pytest

from pytest_tsuka.report.scenarios import revisions, table
from pytest_tsuka.scoring.effort_effect import NO_EFFECT, UNKNOWN
from pytest_tsuka.scoring.effort_result import EffortResult
from pytest_tsuka.scoring.results import ModelResult
from pytest_tsuka.scoring.tiers import CATEGORY_NAMES
from pytest_tsuka.scoring.verdict import CheckVerdict, Verdict, operands_text
from pytest_tsuka.text.escape import one_line
from pytest_tsuka.text.numbers import number_text, percent_text, score_text

if TYPE_CHECKING:
    from pytest_tsuka.grading.passes import PassOutcome
    from pytest_tsuka.grading.standings import Standings
    from pytest_tsuka.scoring.gate import GateFailure


class RunSummary(Protocol):
    """What the end of a run has to tell."""

    notes: list[str]
    problems: list[str]
    written: list[str]

    @property
    def results(self) -> list[ModelResult]: ...

    @property
    def gate_failures(self) -> list[GateFailure] | None: ...

    @property
    def standings(self) -> list[Standings]:
        """The results of every scenario of the run."""
        ...

    @property
    def outcomes(self) -> list[PassOutcome]:
        """What came of each grading pass."""
        ...

    @property
    def asked(self) -> str:
        """What the gate asks for, as the user wrote it."""
        ...


class TerminalReport:
    """Writes through pytest's own terminal reporter, on the controller only."""

    def __init__(self, summary: RunSummary, terminal: pytest.TerminalReporter) -> None:
        self._summary = summary
        self._terminal = terminal
        self._level = terminal.config.get_verbosity(pytest.Config.VERBOSITY_SUBTESTS)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Each check under its item at -v, after the item's own word."""
        text = getattr(report, "tsuka", None)
        if not text or report.when != "call" or self._terminal.verbosity < 1:
            return
        verdict: Verdict = json.loads(text)
        for number, run in enumerate(verdict["runs"]):
            if len(verdict["runs"]) > 1:
                self._terminal.write_line(f"    run {number + 1}: {score_text(run['score'])} {run['outcome']}")
            for check in run["checks"]:
                if self._level >= 1 or not check["passed"]:
                    self._check_line(check, several_steps=len(run["conversation"]) > 1)

    def _check_line(self, check: CheckVerdict, *, several_steps: bool) -> None:
        mark = "✓" if check["passed"] else "✗"
        step = f"step {check['step'] + 1} " if several_steps else ""
        weight = f" x{check['weight']:g}" if check["weight"] != 1 else ""
        reason = "" if check["passed"] else f": {check['reason']}"
        line = one_line(f"    {mark} {step}{check['type']} {operands_text(check)}{weight}{reason}")
        self._terminal.write_line(line, green=check["passed"], red=not check["passed"])

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        summary = self._summary
        if not summary.results and not summary.standings and not summary.problems:
            return
        for result in summary.results:
            terminalreporter.section(f"tsuka: {one_line(result.model)}")
            self._table(result)
            self._recommendation(result)
        self._scenarios()
        for note in summary.notes:
            terminalreporter.write_line(f"note: {one_line(note)}")
        for line in summary.written:
            terminalreporter.write_line(line)
        for problem in summary.problems:
            terminalreporter.write_line(one_line(problem), red=True)
        self._gate()

    def pytest_unconfigure(self) -> None:
        """Why there is no tier, and what to do: the last thing that is seen, below pytest's own last line."""
        if line := last_line(self._summary.results):
            self._terminal.write_line(one_line(line), red=True, bold=True)

    def _scenarios(self) -> None:
        revised = {outcome.scenario: outcome.revisions for outcome in self._summary.outcomes}
        for standings in self._summary.standings:
            name = standings.scenario.name
            self._terminal.section(f"tsuka scenario: {one_line(name)}")
            lines = [*table(standings, detail=self._terminal.verbosity > 0), *revisions(revised.get(name, ()), name)]
            for line in lines:
                markup = {line.colour: True} if line.colour else {}
                self._terminal.write_line(line.text, bold=line.bold, **markup)

    # --- table ---------------------------------------------------------------------------

    def _table(self, result: ModelResult) -> None:
        head = ["effort", *CATEGORY_NAMES, "tier", "tok/s", "tokens", "time"]
        shown = [e for e in result.efforts if e.verdicts or e.refused] or list(result.efforts)
        rows = [self._row(effort) for effort in shown]
        widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
        best = result.recommended
        self._terminal.write_line(_joined(head, widths), bold=True)
        for effort, row in zip(shown, rows, strict=True):
            chosen = best is not None and effort.effort == best.effort
            self._terminal.write_line(_joined(row, widths), green=chosen, yellow=not effort.measured)
        if left_out := [e.effort for e in result.efforts if e not in shown]:
            self._terminal.write_line(f"not run: {', '.join(left_out)}", yellow=True)
        for effort in shown:
            if effort.refused:
                self._terminal.write_line(
                    f"{effort.effort}: refused by the endpoint: {one_line(effort.refused)}", yellow=True
                )
            elif effort.incomplete:
                self._terminal.write_line(f"{effort.effort}: no tier: {one_line(effort.incomplete)}", yellow=True)
        self._speed(result)
        self._certainty(result)
        for line in [*result.outcome_lines, *result.saturation.lines()]:
            self._terminal.write_line(one_line(line), yellow=True)

    def _row(self, effort: EffortResult) -> list[str]:
        tier = effort.tier or ("refused" if effort.refused else "no tier")
        if effort.borderline:
            tier += " (borderline)"
        return [
            effort.effort,
            *(score_text(effort.scores[c]) for c in CATEGORY_NAMES),
            tier,
            number_text(effort.tokens_per_second),
            number_text(effort.average_completion_tokens, ".0f"),
            number_text(effort.seconds, unit=" s"),
        ]

    def _speed(self, result: ModelResult) -> None:
        """How the figures of the table came about, in one line."""
        ways = dict.fromkeys(e.speed.words() for e in result.efforts if e.speed)
        if not ways:
            return
        whole = result.throughput
        in_all = f"; all together {whole.tokens_per_second:.1f} with {whole.at_once:.1f} at once" if whole else ""
        self._terminal.write_line(f"tok/s: {', '.join(ways)}{in_all}; time: wall time of the effort")

    def _certainty(self, result: ModelResult) -> None:
        for effort in result.measured:
            spreads = list(effort.spreads.items())
            bounds = effort.bound_tiers
            if not spreads or not bounds:
                continue
            parts = ", ".join(
                f"{c} {score_text(s.mean)} [{score_text(s.low95)}, {score_text(s.high95)}]"
                f" runs {score_text(s.lowest)}–{score_text(s.highest)}"
                for c, s in spreads
            )
            stable = f"{percent_text(effort.tier_stability)} of {effort.repeats} runs are {effort.tier}"
            tiers = f"; tier {bounds[0]} at the lower bound, {bounds[2]} at the upper" if effort.borderline else ""
            self._terminal.write_line(f"{effort.effort}: {parts}; {stable}{tiers}", yellow=effort.borderline)

    # --- words ---------------------------------------------------------------------------

    def _recommendation(self, result: ModelResult) -> None:
        best = result.recommended
        if best is None and all(e.refused for e in result.efforts):
            self._terminal.write_line(
                "every effort level was refused: if this model has none, measure it with"
                " --tsuka-effort=none --tsuka-effort-style=off",
                yellow=True,
            )
            return
        if best is None:
            self._terminal.write_line("no recommendation: no effort was measured completely", yellow=True)
            return
        self._terminal.write_line(f"recommended effort: {best.effort} ({_why_recommended(best, result)})", bold=True)
        if ignored := [e.effort for e in result.efforts if e.honoured == NO_EFFECT]:
            everywhere = len(ignored) == len([e for e in result.efforts if e.runs]) and not result.reasoned
            why = "no reasoning was seen at any level" if everywhere else "same replies as the level beside it"
            self._terminal.write_line(f"effort had no effect at {', '.join(ignored)}: {why}", yellow=True)
        unknown = [e.effort for e in result.efforts if e.honoured == UNKNOWN]
        if unknown and len(result.efforts) > 1:
            why = "no reasoning to be seen, and replies differ by no more than chance"
            self._terminal.write_line(f"whether effort had an effect at {', '.join(unknown)} cannot be told: {why}")

    def _gate(self) -> None:
        failures = self._summary.gate_failures
        if failures is None:
            return
        asked = self._summary.asked
        if not failures:
            self._terminal.write_line(f"gate met: {asked}", green=True, bold=True)
            return
        for failure in failures:
            self._terminal.write_line(one_line(f"gate not met ({asked}): {failure.headline}"), red=True, bold=True)
            for line in failure.details:
                self._terminal.write_line(f"    {one_line(line)}", red=True)


def last_line(results: Sequence[ModelResult]) -> str:
    """Why no model has a tier, and what to do about it; empty where one has."""
    if not results or any(result.measured for result in results):
        return ""
    result = results[0]
    others = f" (and {len(results) - 1} more)" if len(results) > 1 else ""
    return f"no tier for {result.model}{others}: {result.why_no_tier()}"


def _joined(cells: list[str], widths: list[int]) -> str:
    left = 1
    padded = [
        cell.ljust(width) if i < left or i == 4 else cell.rjust(width)
        for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(padded).rstrip()


def _why_recommended(best: EffortResult, result: ModelResult) -> str:
    """The tier, and tokens and time against the next cheapest level with the same tier."""
    measured = result.measured
    rivals = [e for e in measured if e.tier == best.tier and e.effort != best.effort]
    if len(measured) == 1:
        return f"the only level measured, tier {best.tier}"
    if not rivals:
        return f"the only level with tier {best.tier}"
    rival = rivals[0]
    figures = [f"{number_text(best.seconds, unit=' s')} against {number_text(rival.seconds, unit=' s')}"]
    mine, theirs = best.average_completion_tokens, rival.average_completion_tokens
    if mine is not None and theirs is not None:
        figures.insert(0, f"{mine:.0f} tokens per reply against {theirs:.0f}")
    return f"the cheapest level with tier {best.tier}; runner-up {rival.effort}: {', '.join(figures)}"
