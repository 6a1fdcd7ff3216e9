"""`tsuka show`, `tools`: what was measured, and what it allows."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from pytest_tsuka.errors import SettingsError, unknown_name
from pytest_tsuka.profile.model_profiles import ModelProfiles
from pytest_tsuka.scoring.tiers import CATEGORY_NAMES
from pytest_tsuka.suite.files import standard_suite, tests_hash
from pytest_tsuka.text.escape import one_line
from pytest_tsuka.text.json_files import Unreadable, read_json
from pytest_tsuka.text.numbers import score_text

profile_option = click.option(
    "--profile", type=click.Path(path_type=Path), default=Path("models_profile.json"), show_default=True,
    help="File of the profiles.",
)  # fmt: skip
folder_option = click.option(
    "--benchmarks", "folder", type=click.Path(path_type=Path), default=Path("benchmarks"), show_default=True,
    help="The suite that profiles must have been measured on; the standard one if there is no such folder.",
)  # fmt: skip


def _load(profile: Path, folder: Path) -> ModelProfiles:
    suite = folder if folder.is_dir() else standard_suite()
    return ModelProfiles.load(profile, tests_hash=tests_hash(suite))


@click.command()
@click.argument("model", required=False)
@click.option("--json", "as_json", is_flag=True, help="As JSON, for programs.")
@profile_option
@folder_option
def show(model: str | None, *, as_json: bool, profile: Path, folder: Path) -> None:
    """Show the profiles: tier and scores, and whether each still holds or why not.

    Exit status 1 when a MODEL is named that has no valid profile.
    """
    found = _load(profile, folder)
    entries: list[dict[str, Any]] = []
    for key, entry in found.profiles.items():
        name, _, effort = key.rpartition("@")
        if model in (None, name):
            why = found.why_invalid(name, effort)
            entries.append({"model": name, "effort": effort, "valid": why is None, "why": why, **_figures(entry)})
    recommended = {e["model"]: found.recommended_effort(e["model"]) for e in entries}
    if as_json:
        click.echo(json.dumps({"profiles": entries, "recommendations": recommended}, indent=1, ensure_ascii=False))
    else:
        for entry in entries:
            _line(entry, best=recommended[entry["model"]] == entry["effort"])
        if not entries:
            click.echo(f"{profile} holds no profile" + (f" of {one_line(model)!r}" if model else ""))
    if model and not any(e["valid"] for e in entries):
        sys.exit(1)


def _figures(entry: Any) -> dict[str, Any]:
    scores = entry.get("scores")
    return {
        "tier": entry.get("tier"),
        "scores": scores if isinstance(scores, dict) else {},
        "testedAt": entry.get("testedAt"),
        "provider": entry.get("provider"),
    }


def _line(entry: dict[str, Any], *, best: bool) -> None:
    scores = ", ".join(
        f"{c} {score_text(s)}" for c in CATEGORY_NAMES if isinstance(s := entry["scores"].get(c), (int, float))
    )
    text = f"{entry['model']}@{entry['effort']}: {entry['tier']} ({scores}), {entry['testedAt']}"
    if not entry["valid"]:
        click.echo(click.style(one_line(f"{text}; {entry['why']}: counts as not measured"), fg="yellow"))
    else:
        click.echo(click.style(one_line(f"{text}{'; recommended' if best else ''}"), bold=best))


@click.command()
@click.argument("model")
@click.argument("file", type=click.File("rb"))
@click.option("--effort", help="Reasoning effort [default: the recommended one].")
@click.option("--json", "as_json", is_flag=True, help="The visible tools as JSON, for programs.")
@profile_option
@folder_option
def tools(model: str, file: Any, effort: str | None, *, as_json: bool, profile: Path, folder: Path) -> None:
    """Which of the tools declared in FILE a MODEL may see at an effort."""
    try:
        declared = read_json(file.read())
    except Unreadable as error:
        raise SettingsError(f"{file.name}: {error.problem}") from None
    if not isinstance(declared, list) or not all(isinstance(tool, dict) for tool in declared):
        raise SettingsError(f"{file.name}: must be a JSON array of tool schemas")
    found = _load(profile, folder)
    names = sorted({key.rpartition("@")[0] for key in found.profiles})
    if model not in names:
        click.echo(f"note: {unknown_name('model', model, names)}: it counts as not measured", err=True)
    visible = found.visible_tools(declared, model, effort)
    if as_json:
        click.echo(json.dumps(visible, indent=1, ensure_ascii=False))
        return
    level = effort or found.recommended_effort(model)
    at = f" at {level}" if level else ""
    click.echo(one_line(f"{model}{at}: tier {found.tier(model, effort)}, {len(visible)} of {len(declared)} tools"))
    for tool in declared:
        function = tool.get("function") if isinstance(tool.get("function"), dict) else {}
        needs = tool.get("requiredTier") or function.get("requiredTier")
        mark = "✓" if tool in visible else "✗"
        name = function.get("name") or tool.get("name") or "?"
        click.echo(one_line(f"  {mark} {name}{f' (needs {needs})' if needs else ''}"))
