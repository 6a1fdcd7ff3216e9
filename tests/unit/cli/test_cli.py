"""The command line as a person uses it: on files and stores of a project, with a real endpoint behind it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from pytest_tsuka.cli import main
from pytest_tsuka.conversation import Timing, Usage
from pytest_tsuka.gold.judge_check import known_verdicts
from pytest_tsuka.grading.reference_files import read_reference
from pytest_tsuka.grading.scenario_files import read_scenario
from pytest_tsuka.store.database import Store
from pytest_tsuka.store.records import Output, Records
from tests.endpoint import FakeEndpoint, Received, error
from tests.film import FILM as BARE_FILM
from tests.film import TRUE
from tests.judging import sides, verdict

Serve = Callable[..., FakeEndpoint]
FILM: dict[str, Any] = {
    **BARE_FILM,
    "documents": ["Joseph Cotten and Orson Welles, 1949. Curly {entity} braces."],
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one scenario that has no reference yet."""
    folder = tmp_path / "benchmarks" / "scenarios"
    folder.mkdir(parents=True)
    (folder / "film.json").write_text(json.dumps(FILM))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def tsuka(*args: str, code: int = 0, text: str | None = None) -> Result:
    result = CliRunner().invoke(main, list(args), input=text)
    assert result.exit_code == code, result.output
    return result


def file_of(project: Path) -> Path:
    return project / "benchmarks" / "scenarios" / "film.reference.json"


def refer(project: Path, output: Any = None, **fields: Any) -> None:
    data = {"output": output or TRUE, "verified": True, "source": "edited", **fields}
    file_of(project).write_text(json.dumps(data))


def with_judge(project: Path, judge: FakeEndpoint) -> None:
    path = project / "benchmarks" / "scenarios" / "film.json"
    path.write_text(json.dumps({**FILM, "scoring": {"judge": {"model": "judge-1", "base_url": judge.url}}}))


def answered(project: Path, **answers: Any) -> None:
    """Answers in the store, by model."""
    path = project / "benchmarks" / "scenarios" / "film.json"
    store = Store(project / ".tsuka" / "tsuka.db")
    for model, value in answers.items():
        Records(store).add_result(
            None,
            scenario="film",
            model=model,
            effort="low",
            question=read_scenario(path).question_key,
            provider="p",
            wanted=1,
            outputs=[Output(json.dumps(value), value, usage=Usage(10, 5), timing=Timing(1.0))],
        )
    store.close()


def honest(received: Received) -> str:
    return verdict(received, lambda _f, v: v in (1949, "Alida Valli"))


# --- making a reference ------------------------------------------------------------------------


def test_generate_read_verify(project: Path, serve: Serve) -> None:
    """A strong model answers from the scenario's documents and a trusted one; the result must be verified."""
    strong = serve(lambda _: f"Here it is: {json.dumps(TRUE)}")
    (project / "more.txt").write_text("The premiere was in London.")
    said = tsuka("reference", "generate", "film", "--model=big", f"--base-url={strong.url}", "--document=more.txt")
    assert "not verified yet" in said.output
    (received,) = strong.requests
    assert "Curly {entity} braces." in received.prompt
    assert "The premiere was in London." in received.prompt
    reference = read_reference(file_of(project))
    assert (reference.output, reference.verified, reference.source) == (TRUE, False, "generated")
    answered(project, a=TRUE)
    assert "is not verified" in tsuka("rescore", "film", code=1).output
    tsuka("reference", "verify", "film")
    reference = read_reference(file_of(project))
    assert reference.verified
    assert reference.verified_at
    assert "100.0" in tsuka("rescore", "film").output


def test_paste(project: Path) -> None:
    """From a file or standard input; JSON that fits the schema; nothing is overwritten by accident."""
    tsuka("reference", "paste", "film", text=json.dumps(TRUE))
    assert read_reference(file_of(project)).source == "pasted"
    assert "--force" in tsuka("reference", "paste", "film", text="{}", code=1).output
    (project / "r.json").write_text(json.dumps({**TRUE, "year": 1950}))
    tsuka("reference", "paste", "film", "r.json", "--force")
    assert read_reference(file_of(project)).output["year"] == 1950
    assert "year" in tsuka("reference", "paste", "film", "--force", text='{"year": "x"}', code=1).output
    assert "not JSON" in tsuka("reference", "paste", "film", "--force", text="{", code=2).output
    assert read_reference(file_of(project)).output["year"] == 1950


def test_record(project: Path) -> None:
    """An answer of a run becomes the reference."""
    answered(project, a=TRUE)
    tsuka("reference", "record", "film", "a")
    assert (read_reference(file_of(project)).output, read_reference(file_of(project)).source) == (TRUE, "record")
    assert "no answer of 'b'" in tsuka("reference", "record", "film", "b", "--force", code=2).output


def test_generate_says_what_went_wrong(project: Path, serve: Serve) -> None:
    for script, says in ((lambda _: "I do not know.", "no JSON in the answer"), (lambda _: '{"year": "x"}', "schema"),
                         (lambda _: error(401, "bad key"), "bad key")):  # fmt: skip
        endpoint = serve(script)
        said = tsuka("reference", "generate", "film", "--model=big", f"--base-url={endpoint.url}", code=1)
        assert says in said.output
    assert not file_of(project).exists()


def test_edit(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One value at a time or in an editor; what breaks the schema is refused; grades become stale."""
    refer(project)
    answered(project, a=TRUE)
    tsuka("rescore", "film")
    said = tsuka("reference", "edit", "film", "--set", "year=1950", "--set", 'cast[2]="Alida Valli"')
    assert "year: 1949 → 1950" in said.output
    reference = read_reference(file_of(project))
    assert reference.output["cast"][2] == "Alida Valli"
    assert reference.source == "edited"
    assert "stale, the reference was edited" in tsuka("rank", "film").output
    assert "break the scenario's own schema" in tsuka("reference", "edit", "film", "--set", 'year="x"', code=1).output
    assert "not PATH=JSON" in tsuka("reference", "edit", "film", "--set", "year", code=2).output
    editor = project / "editor.py"
    editor.write_text("import sys; p = sys.argv[1]; t = open(p).read(); open(p, 'w').write(t.replace('1950', '1949'))")
    monkeypatch.setenv("EDITOR", f"{sys.executable} {editor}")
    tsuka("reference", "edit", "film")
    assert read_reference(file_of(project)).output["year"] == 1949


# --- what passes changed -----------------------------------------------------------------------


@pytest.fixture
def revised(project: Path, serve: Serve) -> Path:
    """Three automatic changes: one of two models, two of one."""
    with_judge(project, serve(honest))
    refer(project, {"title": "The Third Man", "year": 1951, "cast": []})
    answered(project, a={**TRUE, "cast": []}, b={**TRUE, "cast": ["Alida Valli"]})
    out = tsuka("rescore").output
    assert "reference year: 1951 → 1949 (judged_wrong by a, b)" in out
    assert 'reference cast: [] → ["Alida Valli"] (filled_blank by b)' in out
    return project


def test_changes_are_shown_where_they_stand(revised: Path) -> None:
    """The value before struck through, the value now, how many models, why."""
    result = CliRunner().invoke(main, ["reference", "show", "film"], color=True)
    assert "\x1b[9m1951\x1b[0m" in result.output.replace("\x1b[31m", "")
    assert "[judged_wrong, 2 models: a, b]: known" in result.output
    assert json.loads(tsuka("reference", "show", "film", "--json").output)["year"] == 1949


def test_the_log_is_filtered(revised: Path) -> None:
    """By attribute, by evidence, by being one model's alone."""
    assert tsuka("reference", "log", "film").output.count("→") == 2
    assert "cast" not in tsuka("reference", "log", "film", "--path", "y*").output
    assert "year" not in tsuka("reference", "log", "film", "--single-model").output
    entries = json.loads(tsuka("reference", "log", "film", "--evidence=judged_wrong", "--json").output)
    assert [e["path"] for e in entries] == ["year"]


def test_a_rejection_holds(revised: Path) -> None:
    """The value before comes back, later passes leave the path alone, undo takes the rejection back."""
    assert "1951 again" in tsuka("reference", "reject", "film", "year").output
    tsuka("rescore", "film")
    assert read_reference(file_of(revised)).output["year"] == 1951
    assert "year is kept out of passes" in tsuka("reference", "show", "film").output
    entries = json.loads(tsuka("reference", "log", "film", "--json").output)
    number = next(e["number"] for e in entries if e["path"] == "year")
    tsuka("reference", "undo", "film", str(number))
    assert read_reference(file_of(revised)).output["year"] == 1949
    assert read_reference(file_of(revised)).rejected_paths == []


def test_rejecting_in_bulk(revised: Path) -> None:
    assert tsuka("reference", "reject", "film", "--single-model").output.count("rejected") == 1
    assert read_reference(file_of(revised)).output["cast"] == []
    assert read_reference(file_of(revised)).output["year"] == 1949
    tsuka("reference", "reject", "film", "--all")
    assert read_reference(file_of(revised)).output["year"] == 1951
    assert "no change is like that" in tsuka("reference", "reject", "film", "--all").output


def test_undo_of_one_entry(revised: Path) -> None:
    entries = json.loads(tsuka("reference", "log", "film", "--json").output)
    number = next(e["number"] for e in entries if e["path"] == "cast")
    assert "[] again" in tsuka("reference", "undo", "film", str(number)).output
    assert "there is no entry 9" in tsuka("reference", "undo", "film", "9", code=1).output


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (("reference", "reject", "film"), 2, "name the paths, or choose them"),
        (("reference", "reject", "film", "yaer"), 1, "did you mean 'year'"),
        (("reference", "show", "flim"), 2, "did you mean 'film'"),
        (("rank", "film", "--model=c"), 2, "unknown model 'c'"),
        (("rescore", "film", "--model=c"), 2, "unknown model 'c'"),
        (("history", "--pass=x"), 2, "there is no pass x"),
        (("judge", "check"), 2, "name a scenario, or a judge"),
    ],
)
def test_wrong_use_is_told(revised: Path, args: tuple[str, ...], code: int, says: str) -> None:
    assert says in tsuka(*args, code=code).output


# --- results -----------------------------------------------------------------------------------


def test_rank(revised: Path) -> None:
    (revised / "pyproject.toml").write_text("[tool.tsuka.prices]\na = { in = 1.0, out = 2.0 }\n")
    out = tsuka("rank", "film", "--explain").output
    assert "complete: credit over the values of the reference (recall)" in out
    detail = tsuka("rank", "film", "--detail", "--model=a").output
    assert "✗" not in detail.partition("a@low: quality")[0]
    assert "b@low: quality" not in detail
    rows = json.loads(tsuka("rank", "film", "--json").output)["results"]
    assert {r["model"]: r["costPerAnswer"] for r in rows} == {"a": pytest.approx(2e-5), "b": None}
    assert {"quality", "completeness", "correctness", "hallucinationRate", "secondsPerAnswer", "judgeCost", "judgeCalls",
            "qualityLowest", "qualityHighest", "score", "stale"} <= rows[0].keys()  # fmt: skip


def test_history(revised: Path) -> None:
    """Passes with their judge calls and cost; each call with prompt and answer."""
    out = tsuka("history").output
    assert "film (rescore)" in out
    assert "2 revisions" in out
    (record,) = json.loads(tsuka("history", "film", "--json").output)
    calls = tsuka("history", f"--pass={record['id']}").output
    assert calls.count("judge: ") == record["calls"] == 2
    assert "5 + 4 tokens, –" in calls, "an unknown price is no cost of 0"


def test_rescore_says_what_failed(project: Path, serve: Serve) -> None:
    with_judge(project, serve(lambda _: "no idea"))
    refer(project)
    answered(project, a={**TRUE, "year": 1950}, b=TRUE)
    result = tsuka("rescore", code=1)
    assert "a@low was not graded: judge judge-1 gave no verdict on year when asked twice" in result.output
    assert "b@low: decided by exact 100%" in result.output


def test_one_bad_reference_keeps_no_other_scenario_from_being_graded(project: Path) -> None:
    """It is told, and so is the exit status."""
    refer(project)
    answered(project, a=TRUE)
    other = project / "benchmarks" / "scenarios" / "another.json"
    other.write_text(json.dumps({**FILM, "name": "another"}))
    store = Store(project / ".tsuka" / "tsuka.db")
    Records(store).add_result(
        None,
        scenario="another",
        model="a",
        effort="low",
        question=read_scenario(other).question_key,
        provider="p",
        wanted=1,
        outputs=[Output("{}", TRUE)],
    )
    store.close()
    out = tsuka("rescore", code=1).output
    assert "scenario 'another' has no reference" in out
    assert "a@low: decided by exact 100%" in out


def test_nothing_yet(project: Path) -> None:
    refer(project)
    assert "does not exist yet: run scenarios first" in tsuka("rank", "film", code=2).output
    answered(project)
    assert "no answers yet" in tsuka("rank", "film").output
    assert "no grading pass yet" in tsuka("history").output


def test_packaged_scenarios_are_not_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "La vita è bella" in tsuka("reference", "show", "film").output
    assert "are not changed: copy" in tsuka("reference", "verify", "film", code=2).output


# --- checks ------------------------------------------------------------------------------------


def known(received: Received) -> str:
    """A judge that knows every verdict of the shipped set."""
    values = sides(received)
    for case in known_verdicts():
        q = case.question
        if (
            sorted(map(str, values)) == sorted(map(str, (q.candidate, q.reference)))
            and f"Field: {q.field}" in received.prompt
        ):
            correct = {json.dumps(q.candidate): case.candidate_correct, json.dumps(q.reference): case.reference_correct}
            return verdict(received, lambda _f, v: correct[json.dumps(v)])  # noqa: B023
    raise AssertionError(values)


@pytest.mark.parametrize(
    ("script", "says"),
    [
        (known, ("accuracy          100%", "swayed by order   0%")),
        (lambda _: '{"a_correct": true, "b_correct": false, "better": "A"}', ("first side wins   100%", "by chance")),
        (lambda _: "CORRECT", ("accuracy          0%", "no verdict        48", "by chance")),
    ],
)
def test_a_judge_is_checked(project: Path, serve: Serve, script: Any, says: tuple[str, ...]) -> None:
    """Accuracy and position bias on pairs with known verdicts; after that a run no longer warns."""
    judge = serve(script)
    with_judge(project, judge)
    out = tsuka("judge", "check", "film").output
    for text in says:
        assert text in out
    assert len(judge.requests) == 2 * len(known_verdicts())
    refer(project)
    answered(project, a=TRUE)
    assert "never checked" not in tsuka("rescore", "film").output


def test_a_judge_that_cannot_be_asked(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_tsuka.backends.retry.FIRST_BACKOFF", 0.01)
    out = tsuka("judge", "check", "--model=x", "--base-url=http://127.0.0.1:9/v1", code=1).output
    assert "cannot connect" in out


def test_the_command_is_installed(project: Path) -> None:
    """As a program of its own, quickly and with help."""
    script = Path(sys.executable).with_name("tsuka")
    out = subprocess.run([script, "--help"], check=True, capture_output=True, text=True).stdout
    for command in ("reference", "rank", "history", "rescore", "judge", "embed"):
        assert command in out
