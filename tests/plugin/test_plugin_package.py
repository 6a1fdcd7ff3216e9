"""A plugin package of somebody else's: every hook, found through its entry point, with and without workers."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.conftest import LEAN, write_json
from tests.film import FILM, REFERENCE

PLUGIN = '''
from pathlib import Path
from typing import Literal

import numpy as np
import pytest_tsuka


class Shout(pytest_tsuka.Check):
    """The answer is in capitals."""

    type: Literal["shout"]

    def evaluate(self, subject):
        return pytest_tsuka.Result(subject.text.isupper(), f"expected capitals, found {subject.text!r}")


class House:
    model = "house"

    async def embed(self, texts):
        return np.array([[1.0, 0.0] if "elles" in text else [0.0, 1.0] for text in texts], dtype=np.float32)


def pytest_tsuka_check_types(config):
    return [Shout]


def pytest_tsuka_backend(config, model):
    if model == "loud":
        film = '{"title": "The Third Man", "year": 1949, "cast": ["O. Welles", "Joseph Cotten"]}'
        return pytest_tsuka.ScriptedBackend(lambda r: film if "Fill" in r.messages[-1]["content"] else "YES")


def pytest_tsuka_embedder(config, model):
    return House() if model == "house" else None


def pytest_tsuka_tier_policy(config):
    return pytest_tsuka.TierPolicy({"quiet": {}, "loud": {"instruction": 1.0}})


def pytest_tsuka_profile(config, model, effort, profile):
    with Path("seen.txt").open("a") as file:
        file.write(f"{model}@{effort} {profile['tier']}\\n")
'''


@pytest.mark.parametrize("how", [(), ("-n", "2")])
def test_every_hook(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, how: tuple[str, ...]) -> None:
    site = pytester.path / "site"
    (site / "tsuka_loud-1.0.dist-info").mkdir(parents=True)
    (site / "tsuka_loud.py").write_text(PLUGIN, encoding="utf-8")
    info = site / "tsuka_loud-1.0.dist-info"
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tsuka-loud\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[pytest11]\ntsuka_loud = tsuka_loud\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")]))
    suite = {
        name: {"name": name, "category": category, "prompt": "x", "checks": [{"type": "shout"}]}
        for name, category in (("a", "instruction"), ("b", "json"), ("c", "toolCalling"))
    }
    write_json(pytester.path / "benchmarks", suite)
    scoring = {"embedding": {"model": "house"}, "strictness": 0.9}
    write_json(
        pytester.path / "benchmarks" / "scenarios", {"film": {**FILM, "scoring": scoring}, "film__reference": REFERENCE}
    )
    result = pytester.runpytest_subprocess(
        *LEAN, "--tsuka-model=loud", "--tsuka-effort=low", "--tsuka-json=r.json", *how
    )
    result.assert_outcomes(passed=4)
    assert json.loads(Path("models_profile.json").read_text())["profiles"]["loud@low"]["tier"] == "loud"
    assert Path("seen.txt").read_text() == "loud@low loud\n"
    leaves = json.loads(Path("r.json").read_text())["scenarios"][0]["results"][0]["grade"]["leaves"]
    assert {leaf["path"]: leaf["rung"] for leaf in leaves}["cast[1]"] == "embedding"
