"""The commands about suites, models and profiles, as a newcomer would try them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from jsonschema.validators import Draft202012Validator

from pytest_tsuka.cli import main
from pytest_tsuka.cli.models import LOCAL
from pytest_tsuka.cli.suite import SKELETONS
from pytest_tsuka.grading.scenario_files import read_scenario
from pytest_tsuka.profile.model_profiles import BENCHMARK_VERSION
from pytest_tsuka.suite.files import read_suite, standard_suite, tests_hash
from tests.endpoint import Answer, FakeEndpoint, Received, call, completion, error

Serve = Callable[..., FakeEndpoint]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def tsuka(*args: str, code: int = 0) -> str:
    result = CliRunner().invoke(main, list(args))
    assert result.exit_code == code, result.output
    return result.output


# --- suites --------------------------------------------------------------------------------


def test_init_copies_the_standard_suite(project: Path) -> None:
    """With its hash, its scenarios, and schemas that the editor finds; nothing is overwritten."""
    out = tsuka("init")
    assert "7 benchmarks" in out
    assert tests_hash(project / "benchmarks") == tests_hash(standard_suite())
    assert (project / "benchmarks" / "scenarios" / "film.reference.json").exists()
    links = json.loads((project / ".vscode" / "settings.json").read_text())["json.schemas"]
    for link, sample in zip(links, ("10_instruction_frase.json", "scenarios/film.json"), strict=True):
        schema = json.loads((project / link["url"]).read_text())
        Draft202012Validator(schema).validate(json.loads((project / "benchmarks" / sample).read_text(encoding="utf-8")))
    assert "7 benchmarks and 3 scenarios are valid, 0 are not" in tsuka("check")
    assert "is not empty" in tsuka("init", code=2)
    (project / ".vscode" / "settings.json").write_text("{}")
    assert "add to it" in tsuka("init", "more")
    assert (project / ".vscode" / "settings.json").read_text() == "{}"


@pytest.mark.parametrize("what", list(SKELETONS))
def test_new_writes_something_valid(project: Path, what: str) -> None:
    tsuka("new", what, "mine")
    place = project / "benchmarks" / ("scenarios" if what == "scenario" else "")
    if what == "scenario":
        assert read_scenario(place / "mine.json").name == "mine"
    else:
        suite = read_suite(place)
        assert not suite.errors
        assert [b.category for b in suite.benchmarks.values()] == [what]
    assert "0 are not; 0 warnings" in tsuka("check") or what == "scenario"
    assert "exists" in tsuka("new", what, "mine", code=2)
    assert "cannot be a file's name" in tsuka("new", what, "../x", code=2)


def test_check_tells_every_problem(project: Path) -> None:
    """With its place and the closest name; a benchmark that pays an apology is warned of."""
    tsuka("new", "json", "good")
    folder = project / "benchmarks"
    (folder / "bad.json").write_text(
        '{"name": "bad", "category": "json", "prompt": "x", "checks": [{"type": "contain"}]}'
    )
    lazy = {"name": "lazy", "category": "json", "prompt": "x", "checks": [{"type": "not_empty"}]}
    (folder / "lazy.json").write_text(json.dumps(lazy))
    (folder / "scenarios").mkdir()
    (folder / "scenarios" / "s.json").write_text('{"kind": "enrich"}')
    out = tsuka("check", code=1)
    assert "unknown check type 'contain'; did you mean 'contains'" in out
    assert "kind: must be" in out
    assert "warning: lazy.json" in out
    assert "2 benchmarks and 0 scenarios are valid, 2 are not; 1 warnings" in out
    (folder / "bad.json").unlink()
    (folder / "scenarios" / "s.json").unlink()
    tsuka("check")
    tsuka("check", "--strict", code=1)
    assert "there is no folder" in tsuka("check", "nowhere", code=2)


def test_schemas_are_printed() -> None:
    for what in ("benchmark", "scenario"):
        Draft202012Validator.check_schema(json.loads(tsuka("schema", what)))


# --- profiles ------------------------------------------------------------------------------


def profile(tier: str, hash_: str) -> dict[str, Any]:
    scores = {"instruction": 1.0, "json": 1.0, "toolCalling": 1.0}
    return {
        "tier": tier,
        "scores": scores,
        "benchmarkVersion": BENCHMARK_VERSION,
        "testsHash": hash_,
        "testedAt": "2026",
    }


@pytest.fixture
def profiles(project: Path) -> None:
    own = tests_hash(standard_suite())
    entries = {
        "good@low": profile("large", own),
        "good@none": profile("small", own),
        "old@low": profile("large", "gone"),
    }
    Path("models_profile.json").write_text(json.dumps({"profiles": entries, "recommendations": {"good": "low"}}))


@pytest.mark.usefixtures("profiles")
def test_show_says_what_holds_and_why_not() -> None:
    out = tsuka("show")
    assert "good@low: large (instruction 1.00, json 1.00, toolCalling 1.00), 2026; recommended" in out
    assert "old@low" in out
    assert "the suite has changed (hash gone" in out
    assert json.loads(tsuka("show", "--json"))["recommendations"] == {"good": "low", "old": None}
    tsuka("show", "good")
    tsuka("show", "old", code=1)
    assert "holds no profile of 'none'" in tsuka("show", "none", code=1)


@pytest.mark.usefixtures("profiles")
def test_tools_a_model_may_see(project: Path) -> None:
    """A stale or unmeasured model sees the lowest tier's, a misspelt tier is an error."""
    declared = [{"function": {"name": "read"}}, {"function": {"name": "run", "requiredTier": "large"}}]
    Path("t.json").write_text(json.dumps(declared))
    assert "tier large, 2 of 2 tools" in tsuka("tools", "good", "t.json")
    assert "✗ run (needs large)" in tsuka("tools", "good", "t.json", "--effort=none")
    assert "1 of 2 tools" in tsuka("tools", "old", "t.json")
    out = tsuka("tools", "goood", "t.json")
    assert "did you mean 'good'" in out
    assert json.loads(tsuka("tools", "good", "t.json", "--json")) == declared
    Path("t.json").write_text('[{"name": "x", "requiredTier": "larg"}]')
    assert "did you mean 'large'" in tsuka("tools", "good", "t.json", code=1)
    Path("t.json").write_text("{}")
    assert "must be a JSON array" in tsuka("tools", "good", "t.json", code=2)


# --- models --------------------------------------------------------------------------------


def server(received: Received) -> Any:
    """A well-behaved endpoint."""
    if received.method == "GET":
        return Answer(json={"data": [{"id": "chat-1"}, {"id": "text-embedding-3"}]})
    if received.body.get("stream"):
        chunk = {"choices": [{"index": 0, "delta": {"content": "yes"}, "finish_reason": "stop"}],
                 "usage": {"prompt_tokens": 1, "completion_tokens": 1}}  # fmt: skip
        return Answer(events=[(0, f"data: {json.dumps(chunk)}\n\n"), (0, "data: [DONE]\n\n")])
    if received.body.get("tools"):
        return completion(calls=[call("current_time", {"city": "Oslo"})])
    usage = {"prompt_tokens": 5, "completion_tokens": 4, "completion_tokens_details": {"reasoning_tokens": 2}}
    return completion("yes", usage=usage)


def test_models_of_an_endpoint(serve: Serve) -> None:
    out = tsuka("models", f"--base-url={serve(server).url}")
    assert "chat-1" in out
    assert "embedding" not in out
    assert "pytest --tsuka-model=chat-1" in out
    assert "cannot be read" in tsuka("models", "--base-url=http://127.0.0.1:9", code=1)


def test_models_of_this_machine(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """The usual ports are tried; what does not answer is left out."""
    endpoint = serve(server)
    monkeypatch.setitem(LOCAL, "Ollama", endpoint.port)
    for name in ("LM Studio", "llama.cpp", "vLLM"):
        monkeypatch.setitem(LOCAL, name, 9)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-for-somebody-else")
    out = tsuka("models")
    assert "authorization" not in endpoint.requests[0].headers, "no key for whatever listens there"
    assert "Ollama at http://localhost" in out
    assert "vLLM" not in out
    data = json.loads(tsuka("models", "--json"))
    assert [s["models"] for s in data["servers"]] == [["chat-1"], [], [], []]


def test_a_doctor_finds_a_healthy_endpoint(serve: Serve) -> None:
    """One request for each thing it looks at."""
    endpoint = serve(server)
    out = tsuka("doctor", "chat-1", f"--base-url={endpoint.url}")
    for seen in ("✓ endpoint", "✓ model: chat-1 says 'yes'", "✓ usage", "✓ efforts: reasoning seen at low, medium, xhigh",
                 '✓ tools: calls current_time({"city": "Oslo"})', "✓ streaming: first token after"):  # fmt: skip
        assert seen in out
    assert len(endpoint.requests) == 7
    data = json.loads(tsuka("doctor", "chat-1", f"--base-url={endpoint.url}", "--json"))
    assert {entry["what"] for entry in data} == {"key", "endpoint", "model", "usage", "efforts", "tools", "streaming"}


@pytest.mark.parametrize(
    ("answer", "says", "code"),
    [
        (lambda r: error(401, "bad key"), "✗ model: HTTP 401", 1),
        (lambda r: error(404, "model 'x' not found"), "✗ model: HTTP 404", 1),
        (lambda r: completion("yes", usage=None), "! usage: no token counts are reported", 0),
        (lambda r: completion("yes"), "! efforts: all are accepted, no reasoning was seen", 0),
        (lambda r: error(400, "tools are not supported") if "tools" in r.body else completion("yes"), "! tools:", 0),
        (lambda r: error(400, "reasoning_effort is not supported", param="reasoning_effort")
         if "reasoning_effort" in r.body else completion("yes"), "--tsuka-effort-style=off", 0),
    ],
)  # fmt: skip
def test_a_doctor_finds_what_is_wrong(serve: Serve, answer: Any, says: str, code: int) -> None:
    """And what to do about it; the exit status tells whether it can be measured at all."""
    endpoint = serve(lambda r: error(404, "no list") if r.method == "GET" else answer(r))
    assert says in tsuka("doctor", "m", f"--base-url={endpoint.url}", code=code)


def test_a_doctor_knows_a_misspelt_model(serve: Serve) -> None:
    assert "did you mean 'chat-1'" in tsuka("doctor", "chat1", f"--base-url={serve(server).url}")


def test_a_doctor_without_a_server() -> None:
    assert "none was named and none is listed" in tsuka("doctor", "--base-url=http://127.0.0.1:9", code=1)
