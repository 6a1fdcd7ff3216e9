"""A run is recorded and replayed without a network; a broken-off run is taken up where it stopped."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_tsuka.store.database import SCHEMA_VERSION, Store, StoreError
from tests.conftest import LEAN, TRIO, one_check
from tests.endpoint import Answer, FakeEndpoint, Received, completion, error
from tests.ideal import benchmark_of, ideal
from tests.processes import interrupt, start, wait_for

Run = Callable[..., pytest.RunResult]
Suite = Callable[..., Path]
Serve = Callable[..., FakeEndpoint]
Profiles = Callable[[], Any]
OFFLINE = "--tsuka-base-url=http://127.0.0.1:9"


def without_time(profiles: Any) -> Any:
    for profile in profiles["profiles"].values():
        profile.pop("testedAt")
    return profiles


@pytest.mark.parametrize("how", [(), ("-n", "2")])
def test_a_replay_gives_the_same_profile(
    pytester: pytest.Pytester, run: Run, serve: Serve, profiles: Profiles, how: tuple[str, ...]
) -> None:
    """But for testedAt: scores, figures, refused levels and parameters; no request is sent."""

    def script(received: Received) -> Any:
        if received.effort == "xhigh":
            return error(400, "reasoning_effort xhigh is not supported")
        if "temperature" in received.body:
            return error(400, "temperature is not supported", param="temperature")
        name, _ = benchmark_of(received)
        return "hm" if name == "json_annidato" and received.effort == "low" else ideal(received)

    first = run(serve(script), "--tsuka-record=cassette", *how)
    first.assert_outcomes(passed=20, failed=1, skipped=7)
    recorded = without_time(profiles())
    (pytester.path / "models_profile.json").unlink()
    again = pytester.runpytest_inprocess("--tsuka-model=m", OFFLINE, "--tsuka-replay=cassette", "--no-tsuka-scenarios")
    again.assert_outcomes(passed=20, failed=1, skipped=7)
    assert without_time(profiles()) == recorded
    assert recorded["profiles"]["m@low"]["parameters"]["refused"] == ["temperature"]


def test_repeats_get_their_own_answers_back(
    suite: Suite, run: Run, serve: Serve, profiles: Profiles, pytester: pytest.Pytester
) -> None:
    """The same request asked five times is answered five times, each asker with its own."""
    suite(**TRIO)
    answers = iter(["yes", "no", "yes", "no", "no"] * 3)
    args = ("--tsuka-effort=none", "--tsuka-repeats=5")
    run(serve(lambda r: next(answers)), *args, "--tsuka-record=c", "--tsuka-concurrency=1")
    recorded = without_time(profiles())
    for concurrency in ("1", "8"):
        pytester.runpytest_inprocess(
            "--tsuka-model=m", OFFLINE, "--tsuka-replay=c", *args, f"--tsuka-concurrency={concurrency}"
        )
        assert without_time(profiles()) == recorded


def test_a_miss_names_item_and_turn(suite: Suite, run: Run, serve: Serve, pytester: pytest.Pytester) -> None:
    """Another prompt, or another parameter, is not answered with what was said to the old one."""
    suite(**TRIO)
    run(serve(lambda r: "yes"), "--tsuka-record=c", "--tsuka-effort=none")
    suite(**{"10_i": one_check("words", prompt="say it otherwise"), "40_n": one_check("new")})
    result = pytester.runpytest_inprocess("--tsuka-model=m", OFFLINE, "--tsuka-replay=c", "--tsuka-effort=none")
    result.assert_outcomes(passed=2, errors=2)
    result.stdout.fnmatch_lines_random(
        [
            "*no recorded answer to words?none? turn 1 of m in *c: it was recorded with another content*",
            "*no recorded answer to new?none? turn 1 of m in *c: it was never recorded; record it again*",
        ]
    )
    other = pytester.runpytest_inprocess(
        "--tsuka-model=m", "--tsuka-replay=c", "--tsuka-param=seed=1", "-k", "tools and none"
    )
    other.assert_outcomes(errors=1)


def test_recordings_hold_no_secrets(
    suite: Suite, run: Run, serve: Serve, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An endpoint that echoes the key in answers and errors does not get it onto the disk."""
    suite(**TRIO)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-SECRET-one")
    endpoint = serve(
        lambda r: (
            error(500, f"key {r.headers['authorization']}")
            if "data" in r.prompt
            else f"yes {r.headers['authorization']}"
        )
    )
    run(endpoint, "--tsuka-record=c", "--tsuka-effort=none", "--tsuka-retries=0")
    files = list((pytester.path / "c").glob("*.jsonl"))
    text = "".join(f.read_text(encoding="utf-8") for f in files)
    assert "yes" in text
    assert "SECRET" not in text


def test_a_replay_without_recordings(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_inprocess("--tsuka-model=m", "--tsuka-replay=nowhere")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--tsuka-replay: *nowhere holds no recording*--tsuka-record*"])


def test_all_models_of_a_recording(suite: Suite, run: Run, serve: Serve, pytester: pytest.Pytester) -> None:
    """`all` in a replay is every recorded model."""
    suite(**TRIO)
    run(serve(lambda r: "yes"), "--tsuka-model=b", "--tsuka-record=c", "--tsuka-effort=none")
    result = pytester.runpytest_inprocess("--tsuka-model=all", OFFLINE, "--tsuka-replay=c", "--tsuka-effort=none")
    result.assert_outcomes(passed=6)


def items(count: int) -> dict[str, Any]:
    categories = ("instruction", "json", "toolCalling")
    return {f"{n:04}": one_check(f"item{n:04}", categories[n % 3]) for n in range(count)}


def number_played(endpoint: FakeEndpoint) -> int:
    return len({r.prompt for r in endpoint.requests})


@pytest.mark.parametrize("how", [(), ("-n", "2")])
def test_resume(
    pytester: pytest.Pytester, suite: Suite, run: Run, serve: Serve, profiles: Profiles, how: tuple[str, ...]
) -> None:
    """After Ctrl-C only what was not finished is played; the profile is that of a whole run."""
    suite(**items(30))
    endpoint = serve(lambda r: Answer(json=completion("yes"), delay=0.05))
    args = ("--tsuka-effort=none", "--tsuka-concurrency=2")
    process = start(pytester.path, endpoint, *args, *how)
    wait_for(lambda: len(endpoint.requests) >= 12, process)
    interrupt(process)
    before = len(endpoint.requests)
    result = run(endpoint, "--tsuka-resume", *args, *how)
    result.assert_outcomes(passed=30)
    result.stdout.fnmatch_lines(["note: * verdicts were taken from the run begun at *"])
    assert 0 < len(endpoint.requests) - before < 30
    assert number_played(endpoint) == 30
    assert profiles()["profiles"]["m@none"]["requests"] == 30
    again = run(endpoint, "--tsuka-resume", *args, *how)
    again.stdout.fnmatch_lines(["note: nothing to resume: no broken-off run of this suite with these settings"])


def test_a_run_that_is_killed_can_be_resumed(pytester: pytest.Pytester, suite: Suite, run: Run, serve: Serve) -> None:
    """SIGKILL: results are on disk before anything is waited for, not at the end."""
    suite(**items(20))
    endpoint = serve(lambda r: Answer(json=completion("yes"), hang=r.prompt.endswith("0012")))
    process = start(pytester.path, endpoint, "--tsuka-concurrency=1")
    wait_for(lambda: len(endpoint.requests) >= 13, process)
    time.sleep(1)
    process.kill()
    process.communicate()
    before = len(endpoint.requests)
    endpoint.script = lambda r: "yes"
    run(endpoint, "--tsuka-resume", "--tsuka-effort=none").assert_outcomes(passed=20)
    assert len(endpoint.requests) - before == 8  # the twelve before the one that hung were kept


def test_a_run_that_is_killed_after_its_last_answer_is_not_asked_again(
    pytester: pytest.Pytester, suite: Suite, run: Run, serve: Serve, profiles: Profiles
) -> None:
    """SIGKILL between the last verdict and the profile: everything is in the store, so nothing is sent."""
    from filelock import FileLock

    suite(**TRIO)
    endpoint = serve(lambda r: "yes")
    database = pytester.path / ".tsuka" / "tsuka.db"

    def kept() -> int:
        store = Store(database)
        try:
            return len(store.latest_run()[1])
        finally:
            store.close()

    with FileLock(pytester.path / ".models_profile.json.lock"):  # the run gets as far as its profile, and waits
        process = start(pytester.path, endpoint)
        wait_for(lambda: database.exists() and len(endpoint.requests) == 3 and kept() == 3, process)
        process.kill()
        process.communicate()
    assert profiles() is None
    run(endpoint, "--tsuka-resume", "--tsuka-effort=none").assert_outcomes(passed=3)
    assert len(endpoint.requests) == 3
    assert profiles()["profiles"]["m@none"]["tier"] == "large"
    again = run(endpoint, "--tsuka-resume", "--tsuka-effort=none")
    again.stdout.fnmatch_lines(["note: nothing to resume: *"])


@pytest.mark.parametrize(
    "change", [("--tsuka-param=seed=1",), ("--tsuka-repeats=2",), ("--tsuka-text-calls",), "suite"]
)
def test_other_conditions_are_not_resumed(
    pytester: pytest.Pytester, suite: Suite, run: Run, serve: Serve, change: Any
) -> None:
    """Another parameter or another suite: everything is played anew."""
    suite(**items(6))
    endpoint = serve(lambda r: error(500, "x") if r.prompt.endswith("5") else "yes")
    run(endpoint, "--tsuka-effort=none", "--tsuka-retries=0").assert_outcomes(passed=5, errors=1)
    endpoint.script = lambda r: "yes"
    endpoint.requests.clear()
    if change == "suite":
        suite(**{"0000": one_check("item0000", weight=2)})
        run(endpoint, "--tsuka-effort=none", "--tsuka-resume")
    else:
        run(endpoint, "--tsuka-effort=none", "--tsuka-resume", *change)
    assert number_played(endpoint) == 6


def test_errors_are_played_again(suite: Suite, run: Run, serve: Serve) -> None:
    """A run that ended with errors is resumed like a broken-off one: only the errors are asked again."""
    suite(**items(6))
    endpoint = serve(lambda r: error(500, "x") if r.prompt.endswith("5") else "yes")
    run(endpoint, "--tsuka-effort=none", "--tsuka-retries=0").assert_outcomes(passed=5, errors=1)
    endpoint.script = lambda r: "yes"
    endpoint.requests.clear()
    run(endpoint, "--tsuka-effort=none", "--tsuka-resume").assert_outcomes(passed=6)
    assert [r.prompt for r in endpoint.requests] == ["say item0005"]


def test_a_store_that_cannot_be_used(pytester: pytest.Pytester, suite: Suite, run: Run, serve: Serve) -> None:
    """A run goes on without it and says so; a resume is a usage error."""
    suite(**TRIO)
    (pytester.path / ".tsuka").write_text("a file where a folder should be")
    result = run(serve(lambda r: "yes"), "--tsuka-effort=none")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["note: nothing can be resumed later: *tsuka.db cannot be used (*"])
    assert run(serve(lambda r: "yes"), "--tsuka-resume").ret == pytest.ExitCode.USAGE_ERROR


def test_a_store_of_a_newer_version(tmp_path: Path) -> None:
    import sqlite3

    file = tmp_path / "t.db"
    Store(file).close()
    connection = sqlite3.connect(file)
    assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()
    with pytest.raises(StoreError, match="made by a newer pytest-tsuka"):
        Store(file)


class Flaky:
    """Fails at random, per request: 10 % 429, 5 % 500, 2 % reset, 2 % stalls, 1 % garbage."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def __call__(self, received: Received) -> Any:
        chance = self._random.random()
        if chance < 0.10:
            return error(429, "slow down", {"retry-after": "0.05"})
        if chance < 0.15:
            return error(500, "boom")
        if chance < 0.17:
            return Answer(reset=True)
        if chance < 0.19:
            return Answer(hang=True)
        if chance < 0.20:
            return Answer(body=b"\x1f\x8b\x08\x00\xff")
        return "yes" if int(received.prompt[-4:]) % 5 else "no"


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("how", "count"), [((), 1000), (("-n", "2"), 100), (("sigint",), 100)])
def test_many_items_against_a_flaky_endpoint(
    pytester: pytest.Pytester,
    suite: Suite,
    run: Run,
    serve: Serve,
    profiles: Profiles,
    how: tuple[str, ...],
    count: int,
) -> None:
    """Nothing is lost, nothing scored wrongly, and it ends; also with a SIGINT and a resume in the middle."""
    suite(**items(count))
    endpoint = serve(Flaky(7))
    args = [
        "--tsuka-effort=none",
        "--tsuka-concurrency=64",
        "--tsuka-timeout=1",
        "--tsuka-retries=8",
        "--tsuka-json=r.json",
        "-q",
    ]
    if how == ("sigint",):
        process = start(pytester.path, endpoint, *args)
        wait_for(lambda: len(endpoint.requests) >= count // 2, process, seconds=150)
        interrupt(process)
        args.append("--tsuka-resume")
    result = pytester.runpytest_subprocess(
        *LEAN,
        "--tsuka-model=m",
        f"--tsuka-base-url={endpoint.url}",
        *args,
        *(h for h in how if h != "sigint"),
        "--tb=no",
    )
    result.assert_outcomes(passed=count * 4 // 5, failed=count // 5)
    verdicts = json.loads((pytester.path / "r.json").read_text())["verdicts"]
    assert len({v["benchmark"] for v in verdicts}) == count
    for verdict in verdicts:
        assert verdict["score"] == (1 if int(verdict["benchmark"][-4:]) % 5 else 0)
    assert profiles()["profiles"]["m@none"]["requests"] == count
