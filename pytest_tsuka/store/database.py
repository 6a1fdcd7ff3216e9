"""The database of runs, `.tsuka/tsuka.db` (SQLite, WAL): its schema, and verdicts as they finish for `--tsuka-resume`.

What grading keeps in it is in `evaluation.records`.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from pytest_tsuka.errors import TsukaError
from pytest_tsuka.scoring.outcomes import SCORED
from pytest_tsuka.scoring.verdict import Verdict

SCHEMA_VERSION = 2

_MIGRATIONS = (
    """
    CREATE TABLE runs (
        id INTEGER PRIMARY KEY,
        started REAL NOT NULL,
        finished REAL
    );
    CREATE TABLE verdicts (
        run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        conditions TEXT NOT NULL,
        model TEXT NOT NULL,
        effort TEXT NOT NULL,
        benchmark TEXT NOT NULL,
        outcome TEXT NOT NULL,
        verdict TEXT NOT NULL,
        PRIMARY KEY (run, model, effort, benchmark)
    );
    CREATE INDEX verdicts_by_conditions ON verdicts (conditions, model, effort, run);
    """,
    """
    CREATE TABLE results (
        id INTEGER PRIMARY KEY,
        run INTEGER REFERENCES runs (id) ON DELETE CASCADE,
        scenario TEXT NOT NULL,
        model TEXT NOT NULL,
        effort TEXT NOT NULL,
        question TEXT NOT NULL,
        provider TEXT NOT NULL,
        wanted INTEGER NOT NULL,
        at REAL NOT NULL
    );
    CREATE INDEX results_by_scenario ON results (scenario, question, model, effort);
    CREATE TABLE outputs (
        result INTEGER NOT NULL REFERENCES results (id) ON DELETE CASCADE,
        number INTEGER NOT NULL,
        output TEXT NOT NULL,
        PRIMARY KEY (result, number)
    );
    CREATE TABLE gradings (
        result INTEGER PRIMARY KEY REFERENCES results (id) ON DELETE CASCADE,
        pass TEXT NOT NULL,
        scoring TEXT NOT NULL,
        edition TEXT NOT NULL,
        at REAL NOT NULL,
        grading TEXT NOT NULL
    );
    CREATE TABLE passes (
        id TEXT PRIMARY KEY,
        scenario TEXT NOT NULL,
        kind TEXT NOT NULL,
        started REAL NOT NULL,
        finished REAL,
        record TEXT NOT NULL
    );
    CREATE TABLE judge_calls (
        id INTEGER PRIMARY KEY,
        pass TEXT NOT NULL,
        model TEXT NOT NULL,
        at REAL NOT NULL,
        call TEXT NOT NULL
    );
    CREATE INDEX judge_calls_by_pass ON judge_calls (pass);
    CREATE TABLE judge_answers (
        key TEXT NOT NULL,
        swapped INTEGER NOT NULL,
        reply TEXT NOT NULL,
        PRIMARY KEY (key, swapped)
    );
    CREATE TABLE judge_checks (
        judge TEXT NOT NULL,
        effort TEXT NOT NULL,
        at REAL NOT NULL,
        outcome TEXT NOT NULL,
        PRIMARY KEY (judge, effort)
    );
    CREATE TABLE vectors (
        model TEXT NOT NULL,
        text TEXT NOT NULL,
        vector BLOB NOT NULL,
        PRIMARY KEY (model, text)
    );
    """,
)


class StoreError(TsukaError):
    """The store cannot be used; the text says why."""


class Resumed(NamedTuple):
    """What a broken-off run had finished, by (model, effort, benchmark), and when it began."""

    verdicts: dict[tuple[str, str, str], Verdict]
    started: float | None


class Store:
    """One connection. Safe with other processes: WAL, writers wait for each other, no transaction is left open.

    `file` None is a database in memory, for when none can be kept.
    """

    def __init__(self, file: Path | None) -> None:
        self.file = file
        try:
            if file is None:
                self.db = sqlite3.connect(":memory:", isolation_level=None)
                self._migrate()
                return
            file.parent.mkdir(parents=True, exist_ok=True)
            ignore = file.parent / ".gitignore"
            if file.parent.name == ".tsuka" and not ignore.exists():
                ignore.write_text("*\n")
            self.db = sqlite3.connect(file, timeout=30, isolation_level=None)
            self.db.execute("PRAGMA journal_mode = WAL")
            self.db.execute("PRAGMA synchronous = NORMAL")
            self.db.execute("PRAGMA foreign_keys = ON")
            self._migrate()
        except (OSError, sqlite3.Error) as error:
            if hasattr(self, "db"):
                self.db.close()
            raise StoreError(f"{file} cannot be used ({error})") from None

    def _migrate(self) -> None:
        self.db.execute("BEGIN IMMEDIATE")
        (version,) = self.db.execute("PRAGMA user_version").fetchone()
        if version > SCHEMA_VERSION:
            self.db.execute("ROLLBACK")
            raise sqlite3.DatabaseError(
                f"made by a newer pytest-tsuka: schema {version}, this one knows {SCHEMA_VERSION}"
            )
        for number in range(version, SCHEMA_VERSION):
            for statement in _MIGRATIONS[number].split(";"):
                if statement.strip():
                    self.db.execute(statement)
        self.db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        self.db.execute("COMMIT")

    def begin_run(self) -> int:
        """A new run's number."""
        cursor = self.db.execute("INSERT INTO runs (started) VALUES (?)", (time.time(),))
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def add(self, run: int, verdicts: Iterable[tuple[str, Verdict, str]]) -> None:
        """Keeps verdicts, all or none: each with the digest of its conditions, and its JSON."""
        rows = [
            (run, conditions, v["model"], v["effort"], v["benchmark"], v["outcome"], text)
            for conditions, v, text in verdicts
        ]
        with self.transaction() as db:
            db.executemany("INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    def end_run(self, run: int) -> None:
        self.db.execute("UPDATE runs SET finished = ? WHERE id = ?", (time.time(), run))

    def broken_off(self, conditions: dict[str, str], efforts: Iterable[str], benchmarks: Iterable[str]) -> Resumed:
        """The scored verdicts of each model's latest run under the same conditions, where it is incomplete.

        A run that has all verdicts and was killed before its end is: its profile was never written.

        `conditions` maps a model to the digest of suite, endpoint and parameters it is measured under.
        """
        wanted = set(benchmarks)
        found: dict[tuple[str, str, str], Verdict] = {}
        begun: list[float] = []
        for model, digest in conditions.items():
            for effort in efforts:
                row = self.db.execute(
                    "SELECT MAX(run), started, finished FROM verdicts JOIN runs ON runs.id = run"
                    " WHERE conditions = ? AND model = ? AND effort = ?",
                    (digest, model, effort),
                ).fetchone()
                if row is None or row[0] is None:
                    continue
                own = {name: v for name, v in self._scored(row[0], digest, model, effort) if name in wanted}
                if own and (own.keys() != wanted or row[2] is None):
                    begun.append(row[1])
                    found.update({(model, effort, name): verdict for name, verdict in own.items()})
        return Resumed(found, min(begun, default=None))

    def _scored(self, run: int, digest: str, model: str, effort: str) -> list[tuple[str, Verdict]]:
        rows = self.db.execute(
            "SELECT benchmark, outcome, verdict FROM verdicts"
            " WHERE run = ? AND conditions = ? AND model = ? AND effort = ?",
            (run, digest, model, effort),
        )
        return [(name, json.loads(text)) for name, outcome, text in rows if outcome in SCORED]

    def latest_run(self) -> tuple[float, list[Verdict]]:
        """When the latest run with a verdict began, and its verdicts; none of an empty store."""
        row = self.db.execute(
            "SELECT runs.id, started FROM runs WHERE EXISTS (SELECT 1 FROM verdicts WHERE run = runs.id)"
            " ORDER BY runs.id DESC LIMIT 1"
        ).fetchone()
        if row is None:
            return 0.0, []
        rows = self.db.execute("SELECT verdict FROM verdicts WHERE run = ? ORDER BY model, rowid", (row[0],))
        return row[1], [json.loads(text) for (text,) in rows]

    def close(self) -> None:
        self.db.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing; other processes wait."""
        self.db.execute("BEGIN IMMEDIATE")
        try:
            yield self.db
        except BaseException:
            self.db.execute("ROLLBACK")
            raise
        self.db.execute("COMMIT")
