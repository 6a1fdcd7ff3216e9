"""The examples of the pages under docs/ run and print what they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda p: p.stem)
def test_examples(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each Python block, followed by the text block with its output where there is one."""
    text = page.read_text(encoding="utf-8")
    found = re.findall(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", text, re.DOTALL | re.MULTILINE)
    assert found
    for code, output in found:
        exec(compile(code, page.name, "exec"), {})
        assert capsys.readouterr().out == output
