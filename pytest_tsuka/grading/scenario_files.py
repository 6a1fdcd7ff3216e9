"""The scenarios of a folder, and where the reference of each is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from pytest_tsuka.errors import Problem, ScenarioError, SettingsError, unknown_name
from pytest_tsuka.gold.scenario import Scenario, parse_scenario

REFERENCE_SUFFIX = ".reference.json"


def scenario_files(folder: Path) -> list[Path]:
    """The scenarios of a folder: each `*.json` directly in it that is no reference, in name order."""
    return sorted(
        (p for p in folder.glob("*.json") if p.is_file() and not p.name.endswith(REFERENCE_SUFFIX)),
        key=lambda p: p.name,
    )


def read_scenario(path: Path) -> Scenario:
    """One file. Raises ScenarioError with every problem found in it."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ScenarioError(str(path), [Problem("", f"cannot be read: {error.strerror}")]) from error
    return parse_scenario(raw, str(path))


class Scenarios(Mapping[str, Scenario]):
    """The scenarios of a folder by name; bad files are in `errors` and never hide the others."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: dict[str, Path] = {}
        self.errors: dict[Path, ScenarioError] = {}
        self._scenarios: dict[str, Scenario] = {}
        for path in scenario_files(folder):
            try:
                scenario = read_scenario(path)
                if twin := self.files.get(scenario.name):
                    problem = Problem("name", f"{scenario.name!r} is also the name in {twin.name}: names are unique")
                    raise ScenarioError(str(path), [problem])
            except ScenarioError as error:
                self.errors[path] = error
                continue
            self.files[scenario.name], self._scenarios[scenario.name] = path, scenario

    def __getitem__(self, name: str) -> Scenario:
        return self._scenarios[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._scenarios)

    def __len__(self) -> int:
        return len(self._scenarios)

    def named(self, name: str) -> tuple[Path, Scenario]:
        """A scenario by its name, for people who type it. Raises SettingsError with the closest name."""
        if name in self._scenarios:
            return self.files[name], self._scenarios[name]
        for path, error in self.errors.items():
            if name in (path.stem, path.name):
                raise error
        by_stem = {path.stem: own for own, path in self.files.items()}
        if name in by_stem:
            return self.files[by_stem[name]], self._scenarios[by_stem[name]]
        if not self._scenarios:
            raise SettingsError(f"{self.folder} holds no scenario")
        raise SettingsError(unknown_name("scenario", name, self._scenarios))


def reference_file(path: Path, scenario: Scenario) -> Path:
    """Where a scenario's reference is: `<name>.reference.json` beside it, or by the file's own stem."""
    by_name, by_stem = (path.parent / f"{stem}{REFERENCE_SUFFIX}" for stem in (scenario.name, path.stem))
    safe = re.fullmatch(r"[\w .-]+", scenario.name) is not None
    return by_name if safe and (by_name.exists() or not by_stem.exists()) else by_stem
