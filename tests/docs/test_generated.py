"""What is generated from the code is what the code says now."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest

from pytest_tsuka.plugin.options import OPTIONS
from pytest_tsuka.profile.entries import MeasuredOn, profile_entry
from tests.builders import document, run_of

ROOT = Path(__file__).parents[2]


def generator() -> Any:
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATED: dict[Path, str] = generator().generated()


@pytest.mark.parametrize("path", GENERATED, ids=lambda p: p.stem)
def test_pages_and_schemas_are_up_to_date(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == GENERATED[path], "run: python docs/generate.py"


def test_every_field_of_the_files_is_explained() -> None:
    """Those of a profile and of a result file, no more and no less."""
    from pytest_tsuka.scoring.results import Expectation, summarise
    from tests.builders import SUITE

    made = generator()
    assert set(document(*run_of(1, 1, 1))) == set(made.RESULT_FIELDS)
    (model,) = summarise(Expectation(("m",), ("low",), SUITE), run_of(1, 1, 1))
    assert set(profile_entry(model.efforts[0], MeasuredOn("h"))) == set(made.PROFILE_FIELDS)


def test_workflows_use_options_that_exist() -> None:
    known = {option.flag for option in OPTIONS}
    for page in (ROOT / "docs").rglob("*.md"):
        for block in re.findall(r"^```yaml\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
            assert set(re.findall(r"--tsuka-[a-z-]+", block)) <= known, page


def test_the_schemas_are_json() -> None:
    for name in ("benchmark", "scenario"):
        json.loads((ROOT / "pytest_tsuka" / "schemas" / f"{name}.json").read_text(encoding="utf-8"))
