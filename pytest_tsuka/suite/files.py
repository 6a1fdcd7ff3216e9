"""Reads a folder of benchmarks: every bad file with its place and a way to mend it, and the suite's hash."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pytest_tsuka.checks import BUILT_IN, Check, Registry
from pytest_tsuka.errors import BenchmarkError, Problem, unknown_name
from pytest_tsuka.suite.benchmark import Benchmark
from pytest_tsuka.suite.problems import kind_of, located
from pytest_tsuka.text.json_files import Unreadable, read_json

SCENARIOS = "scenarios"
"""The folder in a suite that holds its scenarios."""
SCHEMA_ID = "https://json-schema.org/draft/2020-12/schema"


@dataclass(frozen=True)
class Suite:
    """A folder of benchmarks as it was read: the good files, the bad ones, and the hash over all."""

    folder: Path
    benchmarks: Mapping[Path, Benchmark]
    errors: Mapping[Path, BenchmarkError]
    tests_hash: str

    @property
    def usable(self) -> bool:
        """Whether a model may be measured: nothing of a suite with a bad file is sent."""
        return bool(self.benchmarks) and not self.errors


def standard_suite() -> Path:
    """The suite that ships with the package: inside the wheel, or beside the package in a checkout."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "standard_suite"
    return inside if inside.is_dir() else package.parent / "benchmarks"


def suite_files(folder: Path) -> list[Path]:
    """The suite's files: each `*.json` directly in the folder, in ascending name order."""
    return sorted((p for p in folder.glob("*.json") if p.is_file()), key=lambda p: p.name)


def place(path: Path) -> Path:
    """A file's identity in a suite: its folder with links resolved, its own name as it stands there."""
    return path.parent.resolve() / path.name


def tests_hash(folder: Path) -> str:
    """First 8 hex digits of MD5 over each file's name and then its bytes, in name order (TSUKA's digest)."""
    digest = hashlib.md5(usedforsecurity=False)
    for path in suite_files(folder):
        digest.update(path.name.encode("utf-8", "surrogateescape"))
        digest.update(path.read_bytes())
    return digest.hexdigest()[:8]


tests_hash.__test__ = False  # type: ignore[attr-defined]  # its name is not a test's in a file that imports it


def read_suite(folder: Path, registry: Registry = BUILT_IN) -> Suite:
    """Reads every file; a bad one is an entry in `errors` and never hides the others."""
    good: dict[Path, Benchmark] = {}
    bad: dict[Path, BenchmarkError] = {}
    for path in suite_files(folder):
        try:
            good[path] = read_benchmark(path, registry)
        except BenchmarkError as error:
            bad[path] = error
    for path, problem in _duplicates(good):
        bad[path] = BenchmarkError(str(path), [problem])
        del good[path]
    return Suite(folder, good, bad, tests_hash(folder))


def _duplicates(benchmarks: Mapping[Path, Benchmark]) -> list[tuple[Path, Problem]]:
    by_name: dict[str, list[Path]] = {}
    for path, benchmark in benchmarks.items():
        by_name.setdefault(benchmark.name, []).append(path)
    return [
        (path, Problem("name", f"{name!r} is also the name in {paths[0].name}: names are unique in a suite"))
        for name, paths in by_name.items()
        for path in paths[1:]
    ]


def read_benchmark(path: Path, registry: Registry = BUILT_IN) -> Benchmark:
    """One file. Raises BenchmarkError with every problem found in it."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise BenchmarkError(str(path), [Problem("", f"cannot be read: {error.strerror}")]) from error
    return parse_benchmark(raw, str(path), registry)


def parse_benchmark(raw: bytes, where: str, registry: Registry = BUILT_IN) -> Benchmark:
    """A benchmark from the bytes of its file; `where` names it in errors."""
    try:
        data = read_json(raw)
    except Unreadable as error:
        raise BenchmarkError(where, [error.problem]) from None
    if not isinstance(data, dict):
        raise BenchmarkError(where, [Problem("", "must be one JSON object")])
    problems: list[Problem] = []
    _build_checks(data, registry, problems)
    try:
        benchmark = Benchmark.model_validate(data)
    except ValidationError as error:
        problems.extend(located(error, data, Benchmark, registry))
        benchmark = None
    if problems or benchmark is None:
        raise BenchmarkError(where, problems)
    return benchmark


# --- checks --------------------------------------------------------------------------------


def _build_checks(data: dict[str, Any], registry: Registry, problems: list[Problem]) -> None:
    """Replaces each raw check by its model, noting what is wrong; those are left out of `data`."""
    _build_list(data, "checks", registry, problems)
    steps = data.get("steps")
    if isinstance(steps, list):
        for at, step in enumerate(steps):
            if isinstance(step, dict):
                _build_list(step, f"steps[{at}].checks", registry, problems)


def _build_list(owner: dict[str, Any], where: str, registry: Registry, problems: list[Problem]) -> None:
    raw = owner.get("checks")
    if not isinstance(raw, list):
        return
    built: list[Check] = []
    for at, check in enumerate(raw):
        try:
            built.append(_build_check(check, registry))
        except Unreadable as error:
            problems.append(_inside(f"{where}[{at}]", error.problem))
        except ValidationError as error:
            problems.extend(_inside(f"{where}[{at}]", p) for p in located(error, check, Benchmark, registry))
    # A list whose checks are all wrong is already reported: do not call it empty as well.
    owner["checks"] = built if built or not raw else [_placeholder()]


def _placeholder() -> Check:
    return BUILT_IN["not_empty"].model_validate({"type": "not_empty"})


def _build_check(check: Any, registry: Registry) -> Check:
    if not isinstance(check, dict):
        raise Unreadable("", f"must be an object, found {kind_of(check)}")
    name = check.get("type")
    if not isinstance(name, str):
        raise Unreadable("type", "must name a check type" if "type" in check else "is missing")
    if name not in registry:
        raise Unreadable("type", unknown_name("check type", name, registry))
    return registry[name].model_validate(check)


def _inside(where: str, problem: Problem) -> Problem:
    inner = problem.where
    joined = where if not inner else f"{where}{inner}" if inner.startswith("[") else f"{where}.{inner}"
    return Problem(joined, problem.what)


# --- JSON Schema ---------------------------------------------------------------------------


def json_schema(registry: Registry = BUILT_IN) -> dict[str, Any]:
    """The JSON Schema of a benchmark file, for editors, made from the same models that read it."""
    schema = Benchmark.model_json_schema(by_alias=True)
    definitions = schema.setdefault("$defs", {})
    for name, check in registry.items():
        own = check.model_json_schema(by_alias=True)
        definitions.update(own.pop("$defs", {}))
        own["required"] = ["type", *(r for r in own.get("required", []) if r != "type")]
        definitions[f"check_{name}"] = own
    definitions["Check"] = {"oneOf": [{"$ref": f"#/$defs/check_{name}"} for name in registry]}
    schema["oneOf"] = [
        {"required": ["prompt", "checks"], "not": {"required": ["steps"]}},
        {"required": ["steps"], "not": {"anyOf": [{"required": ["prompt"]}, {"required": ["checks"]}]}},
    ]
    return {"$schema": SCHEMA_ID, "title": "pytest-tsuka benchmark", **schema}
