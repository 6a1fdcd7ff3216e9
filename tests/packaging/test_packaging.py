"""What is published: contents and metadata of wheel and sdist, checked as an index would."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytest.importorskip("build")
pytest.importorskip("twine")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wheel and sdist, built as a release would be."""
    target = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(target), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    return target


def test_the_wheel_holds_what_runs(built: Path) -> None:
    """The package with its data, the standard suite with its scenarios; no tests, no caches, no weights."""
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        names = wheel.namelist()
    for wanted in (
        "pytest_tsuka/py.typed",
        "pytest_tsuka/standard_suite/10_instruction_frase.json",
        "pytest_tsuka/standard_suite/scenarios/film.reference.json",
        "pytest_tsuka/schemas/benchmark.json",
        "pytest_tsuka/schemas/scenario.json",
        "pytest_tsuka/report/templates/report.html.j2",
        "pytest_tsuka/report/templates/report.css",
        "pytest_tsuka/report/templates/report.js",
        "pytest_tsuka/gold/calibration.json",
        "pytest_tsuka/gold/judge_check.json",
    ):
        assert wanted in names
    assert {name.split("/")[0].split("-")[0] for name in names} == {"pytest_tsuka"}
    assert not [n for n in names if "__pycache__" in n or n.endswith((".gguf", ".db", ".lock"))]


def test_the_metadata(built: Path) -> None:
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        info = next(n for n in wheel.namelist() if n.endswith(".dist-info/METADATA"))
        points = wheel.read(info.replace("METADATA", "entry_points.txt")).decode()
        metadata = Parser().parsestr(wheel.read(info).decode())
    assert "tsuka = pytest_tsuka.cli:main" in points
    assert "tsuka = pytest_tsuka.plugin" in points
    assert metadata["Requires-Python"] == ">=3.11"
    classifiers = metadata.get_all("Classifier") or []
    for version in ("3.11", "3.12", "3.13", "3.14"):
        assert f"Programming Language :: Python :: {version}" in classifiers
    assert set(metadata.get_all("Provides-Extra") or []) >= {"embedded", "gold", "html"}


def test_the_sdist_can_be_built_and_tested_from(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "conftest.py", "tests/conftest.py"} <= names
    assert "benchmarks/scenarios/film.json" in names
    assert "docs/tutorial.md" in names
    assert not [n for n in names if n.startswith((".tsuka", ".venv", "dist/"))]


def test_an_index_would_take_them(built: Path) -> None:
    command = [sys.executable, "-m", "twine", "check", "--strict", *map(str, built.iterdir())]
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout
