"""The scenario file: what it may say, every problem with its place, what is sent, what makes grades comparable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema.validators import Draft202012Validator

from pytest_tsuka.errors import ScenarioError, SettingsError
from pytest_tsuka.gold.scenario import json_schema, parse_scenario
from pytest_tsuka.grading.scenario_files import Scenarios, read_scenario, reference_file, scenario_files
from pytest_tsuka.grading.verified import verified_reference
from pytest_tsuka.suite.files import standard_suite, tests_hash

SCHEMA = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "cast": {"type": "array", "items": {"type": "object", "properties": {"actor": {"type": "string"}}}},
    },
}
FILM: dict[str, Any] = {
    "name": "film",
    "kind": "enrichment",
    "prompt": "Fill {schema} for {entity}",
    "entity": {"title": "X"},
    "schema": SCHEMA,
}
SAMPLE: dict[str, Any] = {"name": "s", "kind": "sample_generation", "prompt": "{request}", "request": "an order"}
TYPES: dict[str, Any] = {"name": "t", "kind": "schema_generation", "prompt": "{samples}", "samples": [{"a": 1}]}


def parse(data: Any) -> Any:
    return parse_scenario(data if isinstance(data, bytes) else json.dumps(data).encode(), "film.json")


@pytest.mark.parametrize("data", [FILM, SAMPLE, TYPES])
def test_the_smallest_of_each_kind(data: dict[str, Any]) -> None:
    scenario = parse(data)
    assert scenario.repeats == 1
    assert scenario.scoring.strictness == "balanced"
    assert scenario.needs_reference == (data is not SAMPLE)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"kind": "enrich"}, "kind: must be"),
        ({"kind": "enrich"}, "did you mean 'enrichment'"),
        ({"entity": None}, "kind enrichment needs entity"),
        ({"schema": None}, "kind enrichment needs schema"),
        ({"prompt": "Fill it"}, "prompt: says none of {entity} or {schema}"),
        ({"prompt": "{entity} {documents}"}, "prompt: uses {documents}, but the scenario has no documents"),
        ({"promt": "x"}, "promt: unknown field 'promt'; did you mean 'prompt'"),
        ({"schema": {"type": "objekt"}}, "schema: is not a valid JSON Schema"),
        ({"repeats": 0}, "repeats: must be greater than or equal to 1"),
        ({"repeats": "3"}, "repeats: must be a valid integer"),
        ({"documents": "text"}, "documents: must be"),
        ({"name": "a::b"}, "name: 'a::b' holds"),
        ({"scoring": {"strictness": "hard"}}, "scoring.strictness: must be"),
        ({"scoring": {"strictness": 1.5}}, "scoring.strictness: must be"),
        ({"scoring": {"judge": {"modle": "x"}}}, "scoring.judge.modle: unknown field 'modle'; did you mean 'model'"),
        ({"scoring": {"field_weights": {"titel": 2}}}, "scoring.field_weights: unknown field 'titel'; did you mean"),
        ({"scoring": {"field_weights": {"title": -1}}}, "scoring.field_weights.title: must be greater than"),
        ({"scoring": {"tolerance": {"cast[].year": 1}}}, "scoring.tolerance: unknown field 'cast[].year'"),
        ({"scoring": {"free_text": ["plot"]}}, "scoring.free_text: unknown field 'plot'"),
        ({"scoring": {"identity": {"cast": ["actr"]}}}, "scoring.identity.cast: unknown field 'actr'; did you mean"),
        ({"scoring": {"identity": {"cast": []}}}, "scoring.identity.cast: must not be empty"),
        ({"ranking": {"quality": 50, "speed": 30, "cost": 30}}, "ranking: 50, 30, 30 do not add up to 100"),
        ({"ranking": {"quality": 100}}, "ranking.speed: is missing"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(change: dict[str, Any], says: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse({k: v for k, v in {**FILM, **change}.items() if v is not None})
    assert says in str(caught.value)
    assert "film.json is not a valid scenario" in str(caught.value)


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"{", "line 1, column 2: not JSON"),
        (b"[]", "must be one JSON object"),
        (b'{"name": "a", "name": "b"}', "the key 'name' stands twice"),
        (b'{"name": "\xff"}', "not UTF-8"),
    ],
)
def test_what_is_no_json_is_told(raw: bytes, says: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse(raw)
    assert says in str(caught.value)


def test_inputs_are_filled_in_once() -> None:
    """What an input says is never filled in again, and braces that name no input stay."""
    entity = {"title": "{schema}", "é": 1}
    scenario = parse({**FILM, "entity": entity, "system": 'Like {"a": {x}}', "prompt": "{entity}|{documents}|{schema}",
                      "documents": ["one {request}", "two"]})  # fmt: skip
    system, user = scenario.messages
    assert system == {"role": "system", "content": 'Like {"a": {x}}'}
    parts = user["content"].split("|")
    assert json.loads(parts[0]) == entity
    assert "é" in parts[0]
    assert parts[1] == "one {request}\n\ntwo"
    assert json.loads(parts[2]) == SCHEMA


def test_what_a_grade_depends_on_is_in_its_keys() -> None:
    """The wording in the question's key; scoring, schema and documents in the scoring's; an address in none."""
    judge = {"scoring": {"judge": {"model": "j"}, "embedding": {"model": "e"}}}
    base = parse({**FILM, **judge})

    def changed(**more: Any) -> tuple[bool, bool]:
        other = parse({**FILM, **judge, **more})
        return other.question_key != base.question_key, other.scoring_key != base.scoring_key

    assert changed(prompt="Now fill {schema} for {entity}") == (True, False)
    assert changed(description="other", repeats=5) == (False, False)
    assert changed(documents=["d"]) == (False, True)
    assert changed(scoring={**judge["scoring"], "strictness": 0.9}) == (False, True)
    elsewhere = {
        "judge": {"model": "j", "base_url": "http://h/v1"},
        "embedding": {"model": "e", "base_url": "http://h/v1"},
    }
    assert changed(scoring=elsewhere) == (False, False)
    assert changed(scoring={**judge["scoring"], "judge": {"model": "j", "both_orders": True}}) == (False, True)


def test_a_folder_of_scenarios(tmp_path: Path) -> None:
    """A bad file hides no other; names are unique; a typo is answered with the closest name."""
    for name, data in (("a", FILM), ("b", FILM), ("c", {**SAMPLE, "name": "Order 1"}), ("d", "{"), ("a.reference", {})):
        (tmp_path / f"{name}.json").write_text(data if isinstance(data, str) else json.dumps(data))
    folder = Scenarios(tmp_path)
    assert [p.name for p in scenario_files(tmp_path)] == ["a.json", "b.json", "c.json", "d.json"]
    assert list(folder) == ["film", "Order 1"]
    assert {p.name for p in folder.errors} == {"b.json", "d.json"}
    assert "also the name in a.json" in str(folder.errors[tmp_path / "b.json"])
    assert folder.named("c")[1].name == "Order 1", "by its file's name too"
    with pytest.raises(SettingsError, match="did you mean 'film'"):
        folder.named("flim")
    with pytest.raises(ScenarioError):
        folder.named("d")
    with pytest.raises(SettingsError, match="holds no scenario"):
        Scenarios(tmp_path / "empty").named("x")


def test_where_a_reference_is(tmp_path: Path) -> None:
    """By the scenario's name, or by the file's where that is the one there is, or the name is no file name."""
    scenario = parse(FILM)
    assert reference_file(tmp_path / "x.json", scenario).name == "film.reference.json"
    (tmp_path / "x.reference.json").write_text("{}")
    assert reference_file(tmp_path / "x.json", scenario).name == "x.reference.json"
    odd = parse({**FILM, "name": "a/b"})
    assert reference_file(tmp_path / "y.json", odd).name == "y.reference.json"


def test_a_sample_scenario_takes_no_reference(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(json.dumps(SAMPLE))
    scenario = read_scenario(tmp_path / "s.json")
    assert verified_reference(tmp_path / "s.json", scenario) is None
    (tmp_path / "s.reference.json").write_text("{}")
    with pytest.raises(Exception, match="takes no reference"):
        verified_reference(tmp_path / "s.json", scenario)


SHIPPED = scenario_files(standard_suite() / "scenarios")


@pytest.mark.parametrize("path", SHIPPED, ids=lambda p: p.stem)
def test_shipped_scenarios_are_usable(path: Path) -> None:
    """Each reads, has a verified reference where one is due, and fits the published schema."""
    scenario = read_scenario(path)
    verified_reference(path, scenario)
    Draft202012Validator(json_schema()).validate(json.loads(path.read_text(encoding="utf-8")))


def test_one_of_each_kind_is_shipped() -> None:
    assert sorted(read_scenario(p).kind for p in SHIPPED) == ["enrichment", "sample_generation", "schema_generation"]


@pytest.mark.parametrize("broken", [{"kind": "enrich"}, {"prompt": 1}, {"schema": None}, {"scoring": {"judge": {}}}])
def test_the_schema_refuses_what_reading_refuses(broken: dict[str, Any]) -> None:
    data = {k: v for k, v in {**FILM, **broken}.items() if v is not None}
    assert not Draft202012Validator(json_schema()).is_valid(data)
    assert Draft202012Validator(json_schema()).is_valid(FILM)


def test_scenarios_are_no_part_of_the_suites_hash(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    before = tests_hash(tmp_path)
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "scenarios" / "film.json").write_text(json.dumps(FILM))
    assert tests_hash(tmp_path) == before
