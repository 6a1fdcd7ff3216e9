"""What is kept of runs in `.tsuka/tsuka.db` (SQLite, WAL): verdicts as they finish, so that a run can be resumed."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from pytest_tsuka.errors import TsukaError
from pytest_tsuka.verdict import SCORED, Verdict

SCHEMA_VERSION = 1
COMMIT_EVERY = 0.2
"""Seconds between commits while verdicts come in faster than that; slower ones are each committed."""

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
)


class StoreError(TsukaError):
    """The store cannot be used; the text says why."""


class Resumed(NamedTuple):
    """What a broken-off run had finished, by (model, effort, benchmark), and when it began."""

    verdicts: dict[tuple[str, str, str], Verdict]
    started: float | None


class Store:
    """One connection. Safe with other processes: WAL, and writers wait for each other."""

    def __init__(self, file: Path) -> None:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            ignore = file.parent / ".gitignore"
            if file.parent.name == ".tsuka" and not ignore.exists():
                ignore.write_text("*\n")
            self._db = sqlite3.connect(file, timeout=30, isolation_level=None)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._db.execute("PRAGMA foreign_keys = ON")
            self._migrate()
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"{file} cannot be used ({error})") from None
        self._last_commit = 0.0

    def _migrate(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version > SCHEMA_VERSION:
            self._db.execute("ROLLBACK")
            raise sqlite3.DatabaseError(
                f"made by a newer pytest-tsuka: schema {version}, this one knows {SCHEMA_VERSION}"
            )
        for number in range(version, SCHEMA_VERSION):
            for statement in _MIGRATIONS[number].split(";"):
                if statement.strip():
                    self._db.execute(statement)
        self._db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        self._db.execute("COMMIT")

    def begin_run(self) -> int:
        """A new run's number."""
        cursor = self._db.execute("INSERT INTO runs (started) VALUES (?)", (time.time(),))
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def add(self, run: int, conditions: str, verdict: Verdict, text: str) -> None:
        """Keeps a verdict, `text` being its JSON; several in quick succession share a transaction."""
        if not self._db.in_transaction:
            self._db.execute("BEGIN IMMEDIATE")
        self._db.execute(
            "INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                run,
                conditions,
                verdict["model"],
                verdict["effort"],
                verdict["benchmark"],
                verdict["outcome"],
                text,
            ),
        )
        if time.monotonic() - self._last_commit >= COMMIT_EVERY:
            self.commit()

    def commit(self) -> None:
        if self._db.in_transaction:
            self._db.execute("COMMIT")
        self._last_commit = time.monotonic()

    def end_run(self, run: int) -> None:
        self.commit()
        self._db.execute("UPDATE runs SET finished = ? WHERE id = ?", (time.time(), run))

    def broken_off(self, conditions: dict[str, str], efforts: Iterable[str], benchmarks: Iterable[str]) -> Resumed:
        """The scored verdicts of each model's latest run under the same conditions, where it is incomplete.

        `conditions` maps a model to the digest of suite, endpoint and parameters it is measured under.
        """
        wanted = set(benchmarks)
        found: dict[tuple[str, str, str], Verdict] = {}
        begun: list[float] = []
        for model, digest in conditions.items():
            for effort in efforts:
                row = self._db.execute(
                    "SELECT MAX(run), started FROM verdicts JOIN runs ON runs.id = run"
                    " WHERE conditions = ? AND model = ? AND effort = ?",
                    (digest, model, effort),
                ).fetchone()
                if row is None or row[0] is None:
                    continue
                own = {name: v for name, v in self._scored(row[0], digest, model, effort) if name in wanted}
                if own and own.keys() != wanted:
                    begun.append(row[1])
                    found.update({(model, effort, name): verdict for name, verdict in own.items()})
        return Resumed(found, min(begun, default=None))

    def _scored(self, run: int, digest: str, model: str, effort: str) -> list[tuple[str, Verdict]]:
        rows = self._db.execute(
            "SELECT benchmark, outcome, verdict FROM verdicts"
            " WHERE run = ? AND conditions = ? AND model = ? AND effort = ?",
            (run, digest, model, effort),
        )
        return [(name, json.loads(text)) for name, outcome, text in rows if outcome in SCORED]

    def close(self) -> None:
        self.commit()
        self._db.close()
