"""The files a run leaves for programs and people, all made from one result document."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_tsuka.plugin.options import Settings
    from pytest_tsuka.text.json_types import JsonObject


def outputs(document: JsonObject, settings: Settings) -> Iterator[tuple[str, str, Path, Callable[[], str]]]:
    """What is asked for: its name, what it holds, where it goes, and its text when it is wanted."""
    data: Any = document
    if settings.json:
        yield "the results", f"{len(data['verdicts'])} verdicts", settings.json, lambda: json_text(document)
    if settings.html:
        from pytest_tsuka.report.html import html_page

        yield "the page", "the page", settings.html, lambda: html_page(plain(document))
    if settings.markdown:
        from pytest_tsuka.report.markdown import summary

        yield "the summary", "the summary", settings.markdown, lambda: summary(plain(document))


def json_text(document: JsonObject) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def plain(document: JsonObject) -> Any:
    """As somebody reads it from the file: what is shown never depends on how it came."""
    return json.loads(json.dumps(document))


def write_text(path: Path, text: str) -> None:
    from pytest_tsuka.files import write_atomically

    write_atomically(path, text)


def append_summary(path: Path, document: JsonObject, problems: list[str]) -> None:
    """GitHub shows what is appended to its summary file under the job."""
    from pytest_tsuka.report.markdown import summary

    try:
        with path.open("a", encoding="utf-8", errors="replace") as file:
            file.write(summary(plain(document)))
    except OSError as error:
        problems.append(f"the summary was not appended to {path}: {error.strerror or error}")
