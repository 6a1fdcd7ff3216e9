"""What a person sees in the terminal: checks under their item, the table, the recommendation, the gate."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Protocol

import pytest

from pytest_tsuka.report.scenarios import revisions, table
from pytest_tsuka.scoring.effort_effect import NO_EFFECT
from pytest_tsuka.scoring.results import EffortResult, ModelResult
from pytest_tsuka.scoring.tiers import CATEGORY_NAMES
from pytest_tsuka.scoring.verdict import CheckVerdict, Verdict, operands_text, score_text
from pytest_tsuka.text.escape import one_line

if TYPE_CHECKING:
    from pytest_tsuka.grading.passes import PassOutcome
    from pytest_tsuka.grading.standings import Standings
    from pytest_tsuka.scoring.gate import GateFailure


class RunSummary(Protocol):
    """What the end of a run has to tell."""

    results: list[ModelResult]
    gate_failures: list[GateFailure] | None
    notes: list[str]
    problems: list[str]
    written: list[str]

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
        self._certainty(result)
        for line in result.saturation.lines():
            self._terminal.write_line(line, yellow=True)

    def _row(self, effort: EffortResult) -> list[str]:
        tier = effort.tier or ("refused" if effort.refused else "no tier")
        if effort.borderline:
            tier += " (borderline)"
        speed, tokens = effort.tokens_per_second, effort.average_completion_tokens
        return [
            effort.effort,
            *(score_text(effort.scores[c]) for c in CATEGORY_NAMES),
            tier,
            f"{speed:.1f}" if speed is not None else "–",
            f"{tokens:.0f}" if tokens is not None else "–",
            f"{effort.seconds:.1f} s" if effort.runs else "–",
        ]

    def _certainty(self, result: ModelResult) -> None:
        for effort in result.measured:
            spreads = [(c, s) for c in CATEGORY_NAMES if (s := effort.spread(c))]
            bounds = effort.bound_tiers()
            if not spreads or not bounds:
                continue
            parts = ", ".join(
                f"{c} {score_text(s.mean)} [{score_text(s.low95)}, {score_text(s.high95)}]"
                f" runs {score_text(s.lowest)}–{score_text(s.highest)}"
                for c, s in spreads
            )
            stable = f"{effort.tier_stability:.0%} of {effort.repeats} runs are {effort.tier}"
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
        ignored = [e.effort for e in result.efforts if e.honoured == NO_EFFECT]
        if ignored:
            why = (
                "no reasoning was seen at any level"
                if len(ignored) == len([e for e in result.efforts if e.runs])
                else "same replies as the level beside it"
            )
            self._terminal.write_line(f"effort had no effect at {', '.join(ignored)}: {why}", yellow=True)

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
    figures = [f"{best.seconds:.1f} s against {rival.seconds:.1f} s"]
    mine, theirs = best.average_completion_tokens, rival.average_completion_tokens
    if mine is not None and theirs is not None:
        figures.insert(0, f"{mine:.0f} tokens per reply against {theirs:.0f}")
    return f"the cheapest level with tier {best.tier}; runner-up {rival.effort}: {', '.join(figures)}"
