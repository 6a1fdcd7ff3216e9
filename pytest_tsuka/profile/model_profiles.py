"""What was measured, for whom it still holds, and which tools a model may see."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_tsuka.efforts import effort_cost
from pytest_tsuka.errors import ProfileError, unknown_name
from pytest_tsuka.profile.file import Damaged, read_profiles, update_profiles
from pytest_tsuka.scoring.tiers import CATEGORY_NAMES, TIERS, TierPolicy, recommend
from pytest_tsuka.text.json_types import JsonObject

BENCHMARK_VERSION = 5
"""Raised whenever a score changes meaning. TSUKA's own is 4."""


def profile_key(model: str, effort: str) -> str:
    return f"{model}@{effort}"


STANDARD_SUITE = "pytest-tsuka:standard"
"""How a profile names the suite that comes with the package."""


def suite_place(suite: Path, profile: Path, *, packaged: bool) -> str | None:
    """Where a suite is, as its profiles say it: relative to the file of the profiles, None where there is no way."""
    if packaged:
        return STANDARD_SUITE
    try:
        return Path(os.path.relpath(suite.resolve(), profile.resolve().parent)).as_posix()
    except ValueError:  # on another drive
        return None


class Suites:
    """The suites that the profiles of a file were measured on, as they are now. `folder` is the file's own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._hashes: dict[str, str | None] = {}

    def hash_of(self, profile: JsonObject) -> str | None:
        """The hash of the profile's suite; None where it is not known or not here."""
        place = profile.get("suite")
        if not isinstance(place, str) or not place:
            return None
        if place not in self._hashes:
            from pytest_tsuka.suite.files import standard_suite, suite_files, tests_hash

            folder = standard_suite() if place == STANDARD_SUITE else self._folder / place
            try:
                self._hashes[place] = tests_hash(folder) if suite_files(folder) else None
            except OSError:
                self._hashes[place] = None
        return self._hashes[place]


def best_effort(tiers: Mapping[str, str], policy: TierPolicy) -> str | None:
    """The cheapest effort with the best tier; None of none."""
    choice = recommend(sorted(tiers.items(), key=lambda item: effort_cost(item[0])), policy)
    return choice.effort if choice else None


class ModelProfiles:
    """The profiles of a file, read once. An invalid profile reads as not measured.

    `tests_hash` is the hash of the suite that profiles must have been measured on, `suites` finds it for each
    profile. Without either only `benchmarkVersion` is checked: for data of which the caller knows the suite.
    """

    def __init__(
        self,
        data: JsonObject,
        *,
        tests_hash: str | None = None,
        suites: Suites | None = None,
        policy: TierPolicy = TIERS,
    ) -> None:
        self._data = data
        self._tests_hash = tests_hash
        self._suites = suites
        self._policy = policy

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        tests_hash: str | None = None,
        any_suite: bool = False,
        policy: TierPolicy = TIERS,
    ) -> ModelProfiles:
        """Reads a file. A missing one holds no profiles; a damaged one raises ProfileError.

        A profile holds only for the suite that it was measured on. Which that is, and where, stands in the
        profile: its files are looked at as they are now, and where they cannot be found the profile counts as not
        measured. `tests_hash` names the suite instead (`read_suite(folder).tests_hash`), `any_suite` trusts
        every profile, whatever became of its suite.
        """
        file = Path(path)
        try:
            data = read_profiles(file)
        except FileNotFoundError:
            data = {}
        except Damaged as error:
            raise ProfileError(f"{file} is damaged ({error}): run the benchmarks again, or restore the file") from None
        suites = None if any_suite or tests_hash is not None else Suites(file.parent)
        return cls(data, tests_hash=tests_hash, suites=suites, policy=policy)

    @property
    def profiles(self) -> Mapping[str, JsonObject]:
        """All entries of the file by `model@effort`, valid or not."""
        found = self._data.get("profiles")
        return {k: v for k, v in found.items() if isinstance(v, dict)} if isinstance(found, dict) else {}

    def why_invalid(self, model: str, effort: str) -> str | None:
        """Why there is no valid profile of this model and effort, or None if there is one."""
        profile = self.profiles.get(profile_key(model, effort))
        if profile is None:
            return "never measured"
        if profile.get("benchmarkVersion") != BENCHMARK_VERSION:
            return f"stale: benchmark version {profile.get('benchmarkVersion')}, now {BENCHMARK_VERSION}"
        expected = self._tests_hash
        if expected is None and self._suites is not None:
            expected = self._suites.hash_of(profile)
            if expected is None:
                return (
                    f"its suite ({profile.get('suite') or 'not recorded'}) is not here to compare it with: pass"
                    " tests_hash, or any_suite=True to trust it all the same"
                )
        if expected is not None and profile.get("testsHash") != expected:
            return f"stale: the suite has changed (hash {profile.get('testsHash')}, now {expected})"
        scores = profile.get("scores")
        usable = isinstance(scores, dict) and all(
            isinstance(scores.get(c), (int, float)) and not isinstance(scores.get(c), bool) for c in CATEGORY_NAMES
        )
        if not usable or profile.get("tier") not in self._policy.tiers:
            return "unusable: its scores or its tier are missing"
        return None

    def valid_profile(self, model: str, effort: str) -> JsonObject | None:
        """The profile, if it still holds."""
        return None if self.why_invalid(model, effort) else self.profiles[profile_key(model, effort)]

    def tier(self, model: str, effort: str | None = None) -> str:
        """The measured tier; the lowest one when unmeasured or stale. No effort: the recommended one."""
        if effort is None:
            effort = self.recommended_effort(model) or ""
        profile = self.valid_profile(model, effort)
        return str(profile["tier"]) if profile else self._policy.lowest

    def efforts(self, model: str) -> list[str]:
        """The efforts with a valid profile, in ascending cost."""
        prefix = f"{model}@"
        measured = [key[len(prefix) :] for key in self.profiles if key.startswith(prefix)]
        valid = [effort for effort in measured if self.valid_profile(model, effort)]
        return sorted(valid, key=effort_cost)

    def recommended_effort(self, model: str) -> str | None:
        """The stored recommendation if its profile is valid, else the lowest valid level with the best tier."""
        stored = self._data.get("recommendations")
        effort = stored.get(model) if isinstance(stored, dict) else None
        if isinstance(effort, str) and self.valid_profile(model, effort):
            return effort
        return best_effort({e: self.tier(model, e) for e in self.efforts(model)}, self._policy)

    def visible_tools(
        self, tools: Sequence[Mapping[str, Any]], model: str, effort: str | None = None
    ) -> list[Mapping[str, Any]]:
        """The tools that a model may see at an effort (default: the recommended one).

        A tool may declare `requiredTier` (at its top or inside `function`); one above the measured
        tier is left out. Unmeasured or stale means the lowest tier. Raises ProfileError for a tier
        name that does not exist: a typo must not open a tool.
        """
        allowed = self._policy.rank(self.tier(model, effort))
        return [tool for tool in tools if self._required_rank(tool) <= allowed]

    def _required_rank(self, tool: Mapping[str, Any]) -> int:
        function = tool.get("function")
        inner = function if isinstance(function, Mapping) else {}
        declared = [d["requiredTier"] for d in (tool, inner) if "requiredTier" in d]
        ranks = [0]
        for tier in declared:
            if not isinstance(tier, str) or tier not in self._policy.tiers:
                name = tool.get("name") or inner.get("name") or "?"
                raise ProfileError(f"tool {name!r}: {unknown_name('tier', str(tier), self._policy.tiers)}")
            ranks.append(self._policy.rank(tier))
        return max(ranks)


def merge_profiles(target: Path, files: Sequence[Path], policy: TierPolicy = TIERS) -> int:
    """Puts the profiles of all files into `target` and returns how many it holds then.

    Of two of one model and effort the later measured counts. A recommendation is made anew for each
    model: the cheapest effort of the best tier among its profiles of one suite.
    """

    def change(data: JsonObject) -> None:
        profiles = data["profiles"]
        assert isinstance(profiles, dict)
        for file in files:
            for key, entry in ModelProfiles.load(file, any_suite=True).profiles.items():
                known = profiles.get(key)
                if not isinstance(known, dict) or str(entry.get("testedAt")) >= str(known.get("testedAt")):
                    profiles[key] = entry
        recommended: JsonObject = {}
        for model in dict.fromkeys(key.rpartition("@")[0] for key in profiles):
            latest = max(
                (e for k, e in profiles.items() if k.rpartition("@")[0] == model and isinstance(e, dict)),
                key=lambda entry: str(entry.get("testedAt")),
            )
            trusted = ModelProfiles({"profiles": profiles}, tests_hash=str(latest.get("testsHash")), policy=policy)
            if effort := trusted.recommended_effort(model):
                recommended[model] = effort
        data["recommendations"] = recommended

    update_profiles(target, change)
    return len(ModelProfiles.load(target, any_suite=True).profiles)
