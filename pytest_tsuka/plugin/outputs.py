"""The files a run leaves for programs and people, all made from one result document."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_tsuka.errors import SettingsError
from pytest_tsuka.files import write_atomically

if TYPE_CHECKING:
    from pytest_tsuka.plugin.options import Settings
    from pytest_tsuka.text.json_types import JsonObject


def shown(path: Path, here: Path) -> str:
    """A path for people: relative to where they are, if it is below."""
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


class Outputs:
    """Writes what is asked for; `written` and `problems` tell what came of it. `here` is where pytest was started."""

    def __init__(self, settings: Settings, here: Path) -> None:
        self._settings = settings
        self._here = here
        self.written: list[str] = []
        self.problems: list[str] = []

    def write(self, make: Callable[[], JsonObject]) -> None:
        """`make` makes the document, if anything is asked for."""
        settings = self._settings
        if not (settings.json or settings.html or settings.markdown or settings.github_summary):
            return
        document = make()
        for name, what, path, text in self._files(document):
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(path, text())
            except Exception as error:  # a page that cannot be drawn must not cost the run's other files
                expected = isinstance(error, (OSError, SettingsError))
                why = getattr(error, "strerror", None) or (error if expected else f"{type(error).__name__}: {error}")
                were = "were" if name.endswith("s") else "was"
                self.problems.append(f"{name} {were} not written to {path}: {why}")
                continue
            self.written.append(f"{what} written to {shown(path, self._here)}")
        if settings.github_summary:
            self._append_summary(settings.github_summary, document)

    def _files(self, document: JsonObject) -> Iterator[tuple[str, str, Path, Callable[[], str]]]:
        """Of each file: its name, what it holds, where it goes, and its text when it is wanted."""
        settings = self._settings
        data: Any = document
        if settings.json:
            yield "the results", f"{len(data['verdicts'])} verdicts", settings.json, lambda: _json(document)
        if settings.html:
            from pytest_tsuka.report.html import html_page

            yield "the page", "the page", settings.html, lambda: html_page(_as_read(document))
        if settings.markdown:
            from pytest_tsuka.report.markdown import summary

            yield "the summary", "the summary", settings.markdown, lambda: summary(_as_read(document))

    def _append_summary(self, path: Path, document: JsonObject) -> None:
        """GitHub shows what is appended to its summary file under the job."""
        from pytest_tsuka.report.markdown import summary

        try:
            with path.open("a", encoding="utf-8", errors="replace") as file:
                file.write(summary(_as_read(document)))
        except OSError as error:
            self.problems.append(f"the summary was not appended to {path}: {error.strerror or error}")


def _json(document: JsonObject) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _as_read(document: JsonObject) -> Any:
    """As somebody reads it from the file: what is shown never depends on how it came."""
    return json.loads(json.dumps(document))
