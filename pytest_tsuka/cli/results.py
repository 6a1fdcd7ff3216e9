"""`tsuka report`, `diff`, `merge`: result files of runs (`--tsuka-json`)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from pytest_tsuka.cli.common import Place, place_options
from pytest_tsuka.errors import SettingsError
from pytest_tsuka.files import write_atomically
from pytest_tsuka.profile.entries import MeasuredOn, apply_to_profiles
from pytest_tsuka.profile.file import is_profile_file, update_profiles
from pytest_tsuka.profile.model_profiles import merge_profiles, suite_place
from pytest_tsuka.report.diff import compare, markdown, text_lines
from pytest_tsuka.report.html import html_page
from pytest_tsuka.report.merged import merge_documents, stored_document
from pytest_tsuka.report.results import RESULT_FORMAT
from pytest_tsuka.suite.files import standard_suite, tests_hash
from pytest_tsuka.text.escape import one_line

JsonFile = click.Path(path_type=Path)


def read_result(path: Path) -> dict[str, Any]:
    """A result file. Raises SettingsError for anything else."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SettingsError(f"{path} is no result file: {error}") from None
    if not isinstance(data, dict) or "verdicts" not in data or "models" not in data:
        raise SettingsError(f"{path} is no result file: write one with pytest --tsuka-json={path.name}")
    if data.get("format", 0) > RESULT_FORMAT:
        raise SettingsError(f"{path} was written by a newer pytest-tsuka (format {data['format']})")
    return data


@click.command()
@click.argument("file", type=JsonFile, required=False)
@click.option("-o", "--output", type=JsonFile, default=Path("tsuka.html"), show_default=True, help="The page.")
@place_options
def report(file: Path | None, output: Path, place: Place) -> None:
    """Make the HTML page of a result FILE, or of the latest run in the store."""
    document = read_result(file) if file else stored_document(place.store, place.folder)
    write_atomically(output, html_page(document))
    click.echo(f"{output} written: {len(document['verdicts'])} items")


@click.command()
@click.argument("before", type=JsonFile)
@click.argument("after", type=JsonFile, required=False)
@click.option("--fail-on-regression", is_flag=True, help="Exit with 1 when something got worse beyond the noise.")
@click.option("--markdown", "as_markdown", is_flag=True, help="As Markdown, for a pull request.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, for programs.")
@place_options
def diff(
    before: Path, after: Path | None, *, fail_on_regression: bool, as_markdown: bool, as_json: bool, place: Place
) -> None:
    """Compare two result files, or BEFORE with the latest run in the store.

    Tiers, categories (against the noise of the repeats, where there are any), items and checks.
    """
    newer = read_result(after) if after else stored_document(place.store, place.folder)
    found = compare(read_result(before), newer)
    if as_json:
        click.echo(json.dumps(found, indent=1, ensure_ascii=False))
    elif as_markdown:
        click.echo(markdown(found))
    else:
        for line in text_lines(found):
            click.echo(click.style(line.text, bold=line.bold or None, fg=line.colour or None))
    sys.exit(int(fail_on_regression and bool(found["regressions"])))


@click.command()
@click.argument("files", nargs=-1, required=True, type=JsonFile)
@click.option("-o", "--output", type=JsonFile, help="The joined result file.")
@click.option("--profile", type=JsonFile, help="Also write what is complete now to this file of profiles.")
def merge(files: tuple[Path, ...], output: Path | None, profile: Path | None) -> None:
    """Join what CI shards left: result files, or files of profiles.

    Result files of one suite: parts that had no tier alone may have one together; exit status 1 when
    the whole is still incomplete. Profiles: of two of one model and effort the later one counts.
    """
    if all(is_profile_file(path) for path in files):
        if output or not profile:
            raise click.UsageError("profiles are joined into --profile FILE")
        count = merge_profiles(profile, files)
        click.echo(f"{count} profiles written to {profile}")
        return
    if not output and not profile:
        raise click.UsageError("say where to: --output FILE, --profile FILE, or both")
    document, results = merge_documents([(path.name, read_result(path)) for path in files])
    if output:
        write_atomically(output, json.dumps(document, indent=1, ensure_ascii=False) + "\n")
        click.echo(f"{len(document['verdicts'])} verdicts written to {output}")
    if profile:
        notes: list[str] = []
        suite = _suite_of(str(document["testsHash"]), profile)
        notes += update_profiles(profile, lambda data: notes.extend(apply_to_profiles(data, results, suite)))
        click.echo(f"{sum(len(m.measured) for m in results)} profiles written to {profile}")
        for note in notes:
            click.echo(f"note: {one_line(note)}")
    incomplete = [(m.model, e) for m in results for e in m.efforts if e.incomplete]
    for model, effort in incomplete:
        click.echo(one_line(f"{model} at {effort.effort}: no tier: {effort.incomplete}"), err=True)
    sys.exit(int(bool(incomplete)))


def _suite_of(hash_: str, profile: Path) -> MeasuredOn:
    """The suite of a hash, with its place where it is the one here or the standard one."""
    for folder, packaged in ((Path("benchmarks"), False), (standard_suite(), True)):
        if folder.is_dir() and tests_hash(folder) == hash_:
            return MeasuredOn(hash_, suite_place(folder, profile, packaged=packaged))
    return MeasuredOn(hash_)
