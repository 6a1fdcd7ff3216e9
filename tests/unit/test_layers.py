"""The layers of ARCHITECTURE.md, read from the imports themselves."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "pytest_tsuka"
LAYERS = (
    {"errors", "files"},
    {"text"},
    {"conversation", "efforts", "protocols"},
    {"checks"},
    {"suite", "backends"},
    {"runner", "scoring"},
    {"gold"},
    {"store", "profile"},
    {"grading"},
    {"report"},
    {"plugin", "cli"},
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}


def modules() -> list[Path]:
    return [p for p in PACKAGE.rglob("*.py") if p != PACKAGE / "__init__.py"]


def own_name(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """Every module a file imports, dotted, wherever in the file."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_one_way(path: Path) -> None:
    """No module imports from a layer below its own; only plugin and report know pytest; none knows its insides."""
    name = own_name(path)
    for module in imported(path):
        first, _, rest = module.partition(".")
        assert first != "_pytest"
        if first == "pytest":
            assert name in ("plugin", "report")
        if first == "pytest_tsuka" and rest:
            other = rest.split(".")[0]
            assert RANK[other] <= RANK[name], f"{name} imports {other}"


def test_the_plugin_imports_nothing_heavy() -> None:
    """A run without a model loads neither the client nor the validators."""
    code = "import sys, pytest, pytest_tsuka.plugin; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert not {"numpy", "httpx", "jsonschema", "pydantic", "regex", "asyncio", "filelock"} & set(out)


def test_public_names() -> None:
    """Every exported name exists, and star-import gives exactly them."""
    import pytest_tsuka

    for name in pytest_tsuka.__all__:
        assert getattr(pytest_tsuka, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = pytest_tsuka.nonsense
