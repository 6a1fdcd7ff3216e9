"""The examples of README and pages under docs/ are real: Python runs, files are read, commands exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from pytest_tsuka.cli import main
from pytest_tsuka.gold.scenario import parse_scenario
from pytest_tsuka.grading.project import read_project
from pytest_tsuka.plugin.options import OPTIONS

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def with_blocks(language: str, *more: Path) -> list[Path]:
    return [page for page in (*PAGES, *more) if blocks(page, language)]


@pytest.mark.parametrize(
    "page", [p for p in with_blocks("python") if p.parent.name != "reference"], ids=lambda p: p.stem
)
def test_examples(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each Python block, followed by the text block with its output where there is one."""
    text = page.read_text(encoding="utf-8")
    found = re.findall(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", text, re.DOTALL | re.MULTILINE)
    for code, output in found:
        exec(compile(code, page.name, "exec"), {})
        assert capsys.readouterr().out == output


def test_the_scenario_example() -> None:
    (example,) = blocks(ROOT / "docs" / "scenarios.md", "json")
    scenario = parse_scenario(example.encode(), "scenarios.md")
    assert scenario.scoring.judge is not None
    assert scenario.repeats == 3


@pytest.mark.parametrize("page", with_blocks("toml"), ids=lambda p: p.stem)
def test_project_settings(page: Path, tmp_path: Path) -> None:
    for example in blocks(page, "toml"):
        (tmp_path / "pyproject.toml").write_text(example, encoding="utf-8")
        project = read_project(tmp_path)
        assert project.prices
        assert project.ranking


@pytest.mark.parametrize("page", with_blocks("sh", ROOT / "README.md", ROOT / "README.it.md"), ids=lambda p: p.stem)
def test_commands(page: Path) -> None:
    """Every `tsuka` command and option there is one of the program's, every option of pytest's one of the plugin's."""
    options = {o.flag for o in OPTIONS} | {f"--no-{o.flag[2:]}" for o in OPTIONS if o.negatable}
    for line in "\n".join(blocks(page, "sh")).replace("\\\n", " ").splitlines():
        for part in re.split(r"&&|\|", line.partition("#")[0]):
            words = shlex.split(part)
            if words[:1] == ["tsuka"]:
                check_command(words[1:])
            given = {word.partition("=")[0] for word in words if "-tsuka-" in word}
            assert given <= options, line


def check_command(words: list[str]) -> None:
    command: click.Command = main
    context = click.Context(main)
    while isinstance(command, click.Group):
        found = command.get_command(context, words[0])
        assert found is not None, words
        command, words = found, words[1:]
    known = {flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)}
    for word in words:
        assert not word.startswith("--") or word.partition("=")[0] in known, words
