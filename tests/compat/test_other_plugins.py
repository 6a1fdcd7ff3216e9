"""Beside other plugins: one run each, in an environment that has them (CI makes one)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import TRIO

PLUGINS = {
    "pytest_asyncio": (),
    "pytest_cov": ("--cov=pytest_tsuka", "--cov-report="),
    "pytest_html": ("--html=other.html", "--self-contained-html"),
    "pytest_randomly": ("-p", "randomly"),
    "pytest_timeout": ("--timeout=60",),
    "pytest_rerunfailures": ("--reruns=2",),
}


@pytest.mark.parametrize("plugin", PLUGINS)
def test_beside(plugin: str, pytester: pytest.Pytester, suite: Callable[..., Path], serve: Any) -> None:
    """The same outcomes and the same profile; a rerun asks nothing twice."""
    pytest.importorskip(plugin)
    suite(**TRIO)
    endpoint = serve(lambda r: "no" if "data" in r.prompt else "yes")
    args = ("--tsuka-model=m", f"--tsuka-base-url={endpoint.url}", "--tsuka-effort=low", "-p", "no:hypothesispytest")
    result = pytester.runpytest_subprocess(*args, *PLUGINS[plugin])
    outcomes = result.parseoutcomes()
    assert (outcomes["passed"], outcomes["failed"]) == (2, 1), result.stdout.str()
    profile = json.loads(Path("models_profile.json").read_text())["profiles"]["m@low"]
    assert profile["scores"] == {"instruction": 1.0, "json": 0.0, "toolCalling": 1.0}
    assert len(endpoint.requests) == 3 if plugin != "pytest_rerunfailures" else 5
