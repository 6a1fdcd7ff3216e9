"""The layers of ARCHITECTURE.md, read from the imports themselves."""

from __future__ import annotations

import ast
import graphlib
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


def needed(path: Path, names: set[str]) -> set[str]:
    """The modules of the package that a file imports, whole names, wherever in the file and for whatever reason."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("pytest_tsuka"):
            inner = {f"{node.module}.{alias.name}" for alias in node.names} & names
            found |= inner or {node.module} & names
    return found


def test_there_are_no_circles() -> None:
    """Not between folders and not inside one, names for types included: every module has what it needs before it."""
    by_name = {
        ".".join(p.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): p for p in modules()
    }
    graph = {name: needed(path, set(by_name)) - {name} for name, path in by_name.items()}
    try:
        order = list(graphlib.TopologicalSorter(graph).static_order())
    except graphlib.CycleError as error:
        pytest.fail(f"a circle: {' -> '.join(error.args[1])}")
    assert len(order) == len(by_name)


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
