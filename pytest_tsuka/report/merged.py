"""Result documents from parts: shards of a run, or what the store holds of one."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from pytest_tsuka.efforts import EFFORTS
from pytest_tsuka.errors import SettingsError
from pytest_tsuka.report.results import result_document
from pytest_tsuka.scoring.outcomes import SCORED
from pytest_tsuka.scoring.results import Expectation, ModelResult, summarise
from pytest_tsuka.scoring.tiers import TIERS, TierPolicy
from pytest_tsuka.scoring.verdict import Verdict
from pytest_tsuka.store.database import Store
from pytest_tsuka.suite.files import read_suite

_OF_A_RUN = (
    *("checks", "notes", "json_replies", "json_clean", "conversation", "requests", "attempts", "usage", "timing"),
    "latencies",
    "rejections",
    "allowed",
)


def unflattened(flat: Mapping[str, Any]) -> Verdict:
    """A verdict as it was before it was written to a result file."""
    verdict = {key: value for key, value in flat.items() if key not in (*_OF_A_RUN, "runs")}
    if "runs" in flat:
        verdict["runs"] = flat["runs"]
    elif "checks" in flat:
        run = {key: flat[key] for key in _OF_A_RUN if key in flat}  # an older file lacks some
        verdict["runs"] = [{**run, "score": flat["score"], "outcome": flat["outcome"]}]
    else:
        verdict["runs"] = []
    return cast("Verdict", verdict)


def merge_documents(parts: Sequence[tuple[str, Mapping[str, Any]]]) -> tuple[Any, list[ModelResult]]:
    """One document of several, and what it comes to. Raises SettingsError for parts that do not belong together.

    A scored verdict goes before one that is not; of two scored ones the later file's counts. What a
    complete run holds is every benchmark that any part names.
    """
    hashes = {str(document["testsHash"]) for _, document in parts}
    if len(hashes) > 1:
        raise SettingsError(f"the files are of different suites (testsHash {', '.join(sorted(hashes))})")
    versions = {document["benchmarkVersion"] for _, document in parts}
    if len(versions) > 1:
        raise SettingsError(f"the files are of different versions of the scores ({sorted(versions)})")
    found: dict[tuple[str, str, str], Verdict] = {}
    expected: dict[str, str] = {}
    for _, document in parts:
        for flat in document["verdicts"]:
            verdict = unflattened(flat)
            key = (verdict["model"], verdict["effort"], verdict["benchmark"])
            if key not in found or verdict["outcome"] in SCORED or found[key]["outcome"] not in SCORED:
                found[key] = verdict
            expected[verdict["benchmark"]] = verdict["category"]
        expected.update(document.get("benchmarks", {}))
    tiers = next((d["tiers"] for _, d in parts if d.get("tiers")), None)
    policy = TierPolicy(tiers) if tiers else TIERS
    verdicts = list(found.values())
    results = summarise(_expectation(verdicts, expected, policy), verdicts)
    scenarios = _scenarios(parts)
    document = result_document(
        verdicts,
        results,
        tests_hash=hashes.pop(),
        started=time.time(),
        interrupted=False,
        gate=None,
        categories=expected,
    )
    document["started"] = min(str(d["started"]) for _, d in parts)
    document["scenarios"] = scenarios
    return document, results


def _expectation(verdicts: Sequence[Verdict], expected: Mapping[str, str], policy: TierPolicy) -> Expectation:
    efforts = {v["effort"] for v in verdicts}
    return Expectation(
        models=tuple(dict.fromkeys(v["model"] for v in verdicts)),
        efforts=tuple(e for e in EFFORTS if e in efforts),
        categories=expected,
        policy=policy,
    )


def _scenarios(parts: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Any]:
    """Each scenario once, as the last part that has it ranked it."""
    by_name = {s["scenario"]: s for _, document in parts for s in document.get("scenarios", ())}
    return list(by_name.values())


def stored_document(file: Path, folder: Path) -> Any:
    """The latest run in a store, as its result file would have been. Raises SettingsError when there is none."""
    if not file.is_file():
        raise SettingsError(f"{file} does not exist: name a result file, or run pytest --tsuka-model=NAME first")
    store = Store(file)
    try:
        started, verdicts = store.latest_run()
    finally:
        store.close()
    if not verdicts:
        raise SettingsError(f"{file} holds no run")
    suite = read_suite(folder)
    hash_ = verdicts[0]["tests_hash"]
    own = suite.tests_hash == hash_
    expected: dict[str, str] = {b.name: b.category for b in suite.benchmarks.values()} if own else {}
    expected |= {v["benchmark"]: v["category"] for v in verdicts}
    document = result_document(
        verdicts,
        summarise(_expectation(verdicts, expected, TIERS), verdicts),
        tests_hash=hash_,
        started=started,
        interrupted=False,
        gate=None,
        categories=expected,
    )
    return json.loads(json.dumps(document))
