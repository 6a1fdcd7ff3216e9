"""The profile file: what survives, what is valid, what a model may see, and two writers at once."""

from __future__ import annotations

import json
import multiprocessing
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tsuka import ModelProfiles, ProfileError
from pytest_tsuka.profile.file import update_profiles
from pytest_tsuka.profile.model_profiles import BENCHMARK_VERSION, suite_place
from pytest_tsuka.suite.files import standard_suite, tests_hash


def entry(tier: str = "large", **changes: Any) -> dict[str, Any]:
    scores = {"instruction": 1.0, "json": 1.0, "toolCalling": 1.0}
    return {
        "tier": tier,
        "scores": scores,
        "benchmarkVersion": BENCHMARK_VERSION,
        "testsHash": "abcd1234",
        **changes,
    }


def profiles(entries: dict[str, Any], recommendations: dict[str, str] | None = None, **more: Any) -> ModelProfiles:
    return ModelProfiles({"profiles": entries, "recommendations": recommendations or {}}, **more)


TOOLS = [
    {"type": "function", "function": {"name": "read"}},
    {"type": "function", "function": {"name": "search", "requiredTier": "medium"}},
    {"type": "function", "requiredTier": "large", "function": {"name": "execute"}},
]


def names(tools: Any) -> list[str]:
    return [t["function"]["name"] for t in tools]


@pytest.mark.parametrize(
    ("measured", "visible"),
    [
        ({"m@low": entry("large")}, ["read", "search", "execute"]),
        ({"m@low": entry("medium")}, ["read", "search"]),
        ({"m@low": entry("small")}, ["read"]),
        ({"m@none": entry("large")}, ["read"]),  # measured at another effort
        ({"other@low": entry("large")}, ["read"]),
        ({"m@low": entry("large", benchmarkVersion=4)}, ["read"]),
        ({"m@low": entry("large", testsHash="00000000")}, ["read"]),
        ({"m@low": entry("huge")}, ["read"]),
        ({"m@low": entry("large", scores={"json": 1})}, ["read"]),
        ({"m@low": "large"}, ["read"]),
        ({}, ["read"]),
    ],
)
def test_visible_tools(measured: dict[str, Any], visible: list[str]) -> None:
    """Unmeasured, stale, or unusable means the lowest tier."""
    assert names(profiles(measured, tests_hash="abcd1234").visible_tools(TOOLS, "m", "low")) == visible


@pytest.mark.parametrize("tier", ["larg", "", None, 3])
def test_a_typo_opens_no_tool(tier: Any) -> None:
    """An unknown tier name on a tool is an error, not `small`."""
    tools = [{"type": "function", "function": {"name": "danger", "requiredTier": tier}}]
    with pytest.raises(ProfileError, match="tool 'danger': unknown tier"):
        profiles({"m@low": entry()}).visible_tools(tools, "m", "low")


def test_the_stricter_of_two_declarations_counts() -> None:
    tool = {"requiredTier": "small", "function": {"name": "x", "requiredTier": "large"}}
    assert profiles({"m@low": entry("medium")}).visible_tools([tool], "m", "low") == []


def test_recommended_effort() -> None:
    """The stored one if valid; else the lowest valid level with the best tier; else none."""
    swept = {"m@none": entry("small"), "m@low": entry("medium"), "m@medium": entry("medium")}
    assert profiles(swept, {"m": "medium"}).recommended_effort("m") == "medium"
    assert profiles(swept).recommended_effort("m") == "low"
    assert profiles(swept, {"m": "xhigh"}).recommended_effort("m") == "low"
    stale = {**swept, "m@low": entry("medium", testsHash="x")}
    assert profiles(stale, {"m": "low"}, tests_hash="abcd1234").recommended_effort("m") == "medium"
    assert profiles({}, {"m": "low"}).recommended_effort("m") is None
    assert profiles({"m@none": entry("small")}).recommended_effort("m") == "none"


def test_why_invalid() -> None:
    found = profiles({"m@low": entry(testsHash="old"), "m@none": entry(benchmarkVersion=4)}, tests_hash="new")
    assert found.why_invalid("m", "xhigh") == "never measured"
    assert found.why_invalid("m", "low") == "stale: the suite has changed (hash old, now new)"
    assert found.why_invalid("m", "none") == f"stale: benchmark version 4, now {BENCHMARK_VERSION}"


def test_loading(tmp_path: Path) -> None:
    """A missing file holds nothing; a damaged one is an error, not an empty one."""
    file = tmp_path / "p.json"
    assert ModelProfiles.load(file).tier("m", "low") == "small"
    file.write_text("{")
    with pytest.raises(ProfileError, match="is damaged"):
        ModelProfiles.load(file)


def project(folder: Path, **changes: Any) -> Path:
    """A profile of a suite beside it, as a run leaves them; returns the file of the profiles."""
    suite = folder / "benchmarks"
    suite.mkdir(parents=True)
    (suite / "a.json").write_text('{"name": "a"}')
    file = folder / "models_profile.json"
    measured = {"testsHash": tests_hash(suite), "suite": suite_place(suite, file, packaged=False), **changes}
    file.write_text(json.dumps({"profiles": {"m@low": entry(**measured)}}))
    return file


def test_the_guard_is_on_by_default(tmp_path: Path) -> None:
    """A fixture that was edited after the measurement closes the tools that the profile had opened."""
    file = project(tmp_path)
    assert names(ModelProfiles.load(file).visible_tools(TOOLS, "m")) == ["read", "search", "execute"]
    (tmp_path / "benchmarks" / "a.json").write_text('{"name": "b"}')
    assert names(ModelProfiles.load(file).visible_tools(TOOLS, "m")) == ["read"]
    assert str(ModelProfiles.load(file).why_invalid("m", "low")).startswith("stale: the suite has changed")


def test_the_place_of_the_suite_is_relative_to_the_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The project may move, and be read from any folder."""
    project(tmp_path / "old")
    (tmp_path / "old").rename(tmp_path / "new")
    monkeypatch.chdir(tmp_path)
    assert ModelProfiles.load("new/models_profile.json").tier("m", "low") == "large"


@pytest.mark.parametrize("suite", [None, "elsewhere", 3, ""])
def test_a_suite_that_is_not_here_is_trusted_only_in_so_many_words(tmp_path: Path, suite: Any) -> None:
    file = project(tmp_path, suite=suite)
    assert ModelProfiles.load(file).tier("m", "low") == "small"
    assert "any_suite=True" in str(ModelProfiles.load(file).why_invalid("m", "low"))
    assert ModelProfiles.load(file, any_suite=True).tier("m", "low") == "large"
    expected = tests_hash(tmp_path / "benchmarks")
    assert ModelProfiles.load(file, tests_hash=expected).tier("m", "low") == "large"
    assert ModelProfiles.load(file, tests_hash="00000000").tier("m", "low") == "small"


def test_the_standard_suite_is_found_wherever_the_package_is(tmp_path: Path) -> None:
    hash_ = tests_hash(standard_suite())
    file = project(tmp_path, suite=suite_place(standard_suite(), tmp_path / "p.json", packaged=True), testsHash=hash_)
    assert ModelProfiles.load(file).tier("m", "low") == "large"


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    others=st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), json_values, max_size=4),
    extra=json_values,
)
def test_what_we_do_not_know_survives(
    tmp_path_factory: pytest.TempPathFactory, others: dict[str, Any], extra: Any
) -> None:
    """Other models' profiles and unknown keys come through a rewrite unchanged."""
    file = tmp_path_factory.mktemp("p") / "models_profile.json"
    before = {
        "profiles": {k: v for k, v in others.items() if k != "mine@low"},
        "recommendations": {},
        "theirs": extra,
    }
    file.write_text(json.dumps(before), encoding="utf-8")

    def change(data: dict[str, Any]) -> None:
        data["profiles"]["mine@low"] = {"tier": "small"}

    assert update_profiles(file, change) == []
    after = json.loads(file.read_text(encoding="utf-8"))
    assert after["profiles"].pop("mine@low") == {"tier": "small"}
    assert after == before


def _add(file: Path, name: str, count: int) -> None:
    for number in range(count):
        update_profiles(file, lambda data, n=number: data["profiles"].update({f"{name}@{n}": {}}))  # type: ignore[misc]


def test_two_processes_lose_nothing(tmp_path: Path) -> None:
    file = tmp_path / "p.json"
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_add, args=(file, name, 20)) for name in "abc"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert len(json.loads(file.read_text())["profiles"]) == 60
    assert sorted(p.name for p in tmp_path.iterdir()) == [".p.json.lock", "p.json"]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    """An exception on the way changes nothing and leaves no temporary file."""
    file = tmp_path / "p.json"
    file.write_text('{"profiles": {"a@low": {}}}')

    def change(data: dict[str, Any]) -> None:
        data["profiles"]["b@low"] = object()

    with pytest.raises(TypeError):
        update_profiles(file, change)
    assert json.loads(file.read_text()) == {"profiles": {"a@low": {}}}
    assert sorted(p.name for p in tmp_path.iterdir()) == [".p.json.lock", "p.json"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No space left: the old file stays, the error says so."""
    file = tmp_path / "p.json"
    file.write_text('{"profiles": {}}')
    monkeypatch.setattr("tempfile.mkstemp", lambda **_: (os.open("/dev/full", os.O_WRONLY), str(tmp_path / "gone")))
    with pytest.raises(OSError, match="No space left"):
        update_profiles(file, lambda data: data["profiles"].update({"a@low": {}}))
    assert json.loads(file.read_text()) == {"profiles": {}}


def test_links_and_modes_are_kept(tmp_path: Path) -> None:
    """A symbolic link stays one, and the file keeps its mode."""
    real = tmp_path / "real.json"
    real.write_text("{}")
    real.chmod(0o640)
    link = tmp_path / "link.json"
    link.symlink_to(real)
    update_profiles(link, lambda data: None)
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
