"""Ctrl-C in the middle of a run: it stops at once, cancels what is in flight, and loses nothing."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import LEAN, one_check
from tests.endpoint import Answer, FakeEndpoint, Received
from tests.processes import interrupt, start, wait_for

Suite = Callable[..., Path]
Serve = Callable[..., FakeEndpoint]


@pytest.mark.parametrize("how", [(), ("-n", "2")])
def test_sigint(pytester: pytest.Pytester, suite: Suite, serve: Serve, how: tuple[str, ...]) -> None:
    """E15: the results before it are in the file, marked interrupted; exit status 2; no profile; no traceback."""
    suite(**{f"{n}_x": one_check(f"item{n}") for n in range(8)})
    endpoint = serve(lambda r: Answer(hang=True) if _number(r) >= 3 else "yes")
    process = start(pytester.path, endpoint, "--tsuka-json=r.json", "-v", *how)
    wait_for(lambda: endpoint.in_flight > 0 and len(endpoint.requests) >= 4, process)
    time.sleep(1.0)
    output, _ = interrupt(process)
    document = json.loads((pytester.path / "r.json").read_text())
    assert document["interrupted"] is True
    assert {v["benchmark"] for v in document["verdicts"]} >= {"item0", "item1"}
    assert all(v["outcome"] == "passed" for v in document["verdicts"])
    assert "no tier" in output
    assert "Exception ignored" not in output
    assert "Task was destroyed" not in output
    assert not (pytester.path / "models_profile.json").exists()


def _number(received: Received) -> int:
    return int(received.prompt.removeprefix("say item"))


def test_two_runs_write_one_profile(pytester: pytest.Pytester, suite: Suite, serve: Serve) -> None:
    """E17: the file is whole at every moment and holds both models in the end."""
    from tests.conftest import TRIO

    suite(**TRIO)
    endpoint = serve(lambda r: "yes")
    runs = [
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "pytest",
                f"--tsuka-model={name}",
                f"--tsuka-base-url={endpoint.url}",
                "-q",
                *LEAN,
            ],
            cwd=pytester.path,
            stdout=subprocess.DEVNULL,
        )
        for name in ("a", "b", "c")
    ]
    file = pytester.path / "models_profile.json"
    while any(process.poll() is None for process in runs):
        if file.exists():
            json.loads(file.read_text(encoding="utf-8"))
        time.sleep(0.005)
    assert [process.returncode for process in runs] == [0, 0, 0]
    data = json.loads(file.read_text(encoding="utf-8"))
    assert len(data["profiles"]) == 12
    assert data["recommendations"] == {"a": "none", "b": "none", "c": "none"}
    assert [p.name for p in pytester.path.glob(".models_profile.json.*.tmp")] == []


def test_sigint_during_a_runaway_pattern(pytester: pytest.Pytester, suite: Suite, serve: Serve) -> None:
    """A pattern that would match for years gives up after a second, and Ctrl-C is not swallowed meanwhile."""
    pattern = {"type": "regex", "value": "(a|aa)+$"}
    suite(**{f"{n:02}_x": one_check(f"item{n}", checks=[pattern]) for n in range(40)})
    endpoint = serve(lambda r: "a" * 200 + "!")
    process = start(pytester.path, endpoint, "--tsuka-json=r.json")
    wait_for(lambda: len(endpoint.requests) >= 30, process)
    time.sleep(2.5)
    _, seconds = interrupt(process)
    assert seconds < 20  # 40 patterns would take 40 s
    verdicts = json.loads((pytester.path / "r.json").read_text())["verdicts"]
    assert verdicts
    assert "was stopped after 1 s on 201 characters" in verdicts[0]["checks"][0]["reason"]
