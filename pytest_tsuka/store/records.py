"""What grading keeps in the store: answers as they came, grades, the judge's answers, vectors, evaluation records."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_tsuka.conversation import Timing, Usage
from pytest_tsuka.store.database import Store
from pytest_tsuka.text.json_types import JsonObject, JsonValue
from pytest_tsuka.text.normalise import without_surrogates

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Output:
    """One answer of a model: its text, the JSON found in it (None if there was none), what it took."""

    text: str
    value: JsonValue
    reasoning: str = ""
    finish_reason: str | None = None
    usage: Usage = field(default_factory=Usage)
    timing: Timing = field(default_factory=lambda: Timing(0.0))
    notes: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """The server's own service time where it reports one, else the request's."""
        own = self.timing.service_seconds
        return self.timing.seconds if own is None else own

    def to_json(self) -> JsonObject:
        return json.loads(json.dumps(asdict(self)))  # type: ignore[no-any-return]

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Output:
        usage, timing = Usage(**data["usage"]), Timing(**data["timing"])
        return cls(**{**data, "usage": usage, "timing": timing, "notes": tuple(data["notes"])})


@dataclass(frozen=True)
class Grading:
    """What a pass made of a result: one graded document per output, and what it took."""

    grades: tuple[JsonObject, ...]
    pass_id: str
    scoring: str
    edition: str
    at: float
    seconds: float
    judge_calls: int
    cached: int
    judge_cost: float | None
    exact_only: bool = False
    threshold: float | None = None


@dataclass(frozen=True)
class Result:
    """All answers of a model at an effort to a scenario, from one run, and their grading if there is one.

    `wanted` is how many answers were asked for: fewer came when requests failed.
    """

    id: int
    scenario: str
    model: str
    effort: str
    question: str
    provider: str
    wanted: int
    at: float
    outputs: tuple[Output, ...]
    grading: Grading | None = None


@dataclass
class JudgeCall:
    """One request to a judge, as it is kept for audit; failed ones too."""

    about: str
    key: str
    swapped: bool
    messages: Sequence[JsonObject]
    reply: str | None = None
    problem: str | None = None
    usage: Usage = field(default_factory=Usage)
    cost: float | None = None
    seconds: float = 0.0


class Records:
    """The grading half of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._db: sqlite3.Connection = store.db

    # --- answers -------------------------------------------------------------------------

    def add_result(
        self,
        run: int | None,
        *,
        scenario: str,
        model: str,
        effort: str,
        question: str,
        provider: str,
        wanted: int,
        outputs: Iterable[Output],
    ) -> int:
        """Keeps a model's answers, all or none; returns the result's number."""
        with self._store.transaction() as db:
            cursor = db.execute(
                "INSERT INTO results (run, scenario, model, effort, question, provider, wanted, at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (run, scenario, model, effort, question, provider, wanted, time.time()),
            )
            assert cursor.lastrowid is not None
            db.executemany(
                "INSERT INTO outputs VALUES (?, ?, ?)",
                [(cursor.lastrowid, n, _text(output.to_json())) for n, output in enumerate(outputs)],
            )
        return cursor.lastrowid

    def results(self, scenario: str, question: str) -> list[Result]:
        """The latest result of each model and effort that was asked this question, with its grading."""
        rows = self._db.execute(
            "SELECT MAX(results.id), model, effort, provider, wanted, results.at, grading FROM results"
            " LEFT JOIN gradings ON gradings.result = results.id"
            " WHERE scenario = ? AND question = ? GROUP BY model, effort ORDER BY model, effort",
            (scenario, question),
        ).fetchall()
        found = []
        for number, model, effort, provider, wanted, at, grading in rows:
            graded = Grading(**json.loads(grading)) if grading else None
            outputs = self._outputs(number)
            found.append(Result(number, scenario, model, effort, question, provider, wanted, at, outputs, graded))
        return found

    def _outputs(self, result: int) -> tuple[Output, ...]:
        rows = self._db.execute("SELECT output FROM outputs WHERE result = ? ORDER BY number", (result,))
        return tuple(Output.from_json(json.loads(text)) for (text,) in rows)

    def outdated(self, scenario: str, question: str) -> int:
        """How many models' answers are to an earlier wording of the scenario."""
        (count,) = self._db.execute(
            "SELECT COUNT(*) FROM (SELECT DISTINCT model, effort FROM results WHERE scenario = ? AND question != ?"
            " EXCEPT SELECT model, effort FROM results WHERE scenario = ? AND question = ?)",
            (scenario, question, scenario, question),
        ).fetchone()
        return int(count)

    def broken_off(self, scenario: str, model: str, effort: str, question: str, provider: str, wanted: int) -> bool:
        """Whether the latest run that was broken off had come to all answers of this item."""
        row = self._db.execute(
            "SELECT COUNT(number) FROM results JOIN outputs ON result = results.id"
            " WHERE run = (SELECT id FROM runs WHERE finished IS NULL AND EXISTS"
            " (SELECT 1 FROM results AS r WHERE r.run = runs.id) ORDER BY id DESC LIMIT 1)"
            " AND scenario = ? AND model = ? AND effort = ? AND question = ? AND provider = ?",
            (scenario, model, effort, question, provider),
        ).fetchone()
        return bool(row and row[0] == wanted)

    def models(self, scenario: str, question: str) -> list[tuple[str, str]]:
        """Every (model, effort) with an answer."""
        rows = self._db.execute(
            "SELECT DISTINCT model, effort FROM results WHERE scenario = ? AND question = ? ORDER BY model, effort",
            (scenario, question),
        )
        return [(model, effort) for model, effort in rows]

    # --- grades --------------------------------------------------------------------------

    def add_grading(self, result: int, grading: Grading) -> None:
        """Keeps the grading of a whole result in place of an earlier one."""
        self._db.execute(
            "INSERT OR REPLACE INTO gradings VALUES (?, ?, ?, ?, ?, ?)",
            (result, grading.pass_id, grading.scoring, grading.edition, grading.at, _text(asdict(grading))),
        )

    # --- the judge -----------------------------------------------------------------------

    def answer(self, key: str, *, orders: int) -> tuple[str, ...] | None:
        """The replies to a question in as many orders as are asked for, or None."""
        rows = self._db.execute(
            "SELECT reply FROM judge_answers WHERE key = ? AND swapped < ? ORDER BY swapped", (key, orders)
        ).fetchall()
        return tuple(reply for (reply,) in rows) if len(rows) == orders else None

    def add_answer(self, key: str, *, swapped: bool, reply: str) -> None:
        self._db.execute(
            "INSERT OR REPLACE INTO judge_answers VALUES (?, ?, ?)", (key, swapped, without_surrogates(reply))
        )

    def add_call(self, pass_id: str, model: str, call: JudgeCall) -> None:
        self._db.execute(
            "INSERT INTO judge_calls (pass, model, at, call) VALUES (?, ?, ?, ?)",
            (pass_id, model, time.time(), _text(asdict(call))),
        )

    def calls(self, pass_id: str) -> list[tuple[str, float, JsonObject]]:
        """(model under test, time, call) of every judge call of a pass, in order."""
        rows = self._db.execute("SELECT model, at, call FROM judge_calls WHERE pass = ? ORDER BY id", (pass_id,))
        return [(model, at, json.loads(call)) for model, at, call in rows]

    def begin_pass(self, pass_id: str, scenario: str, kind: str, record: JsonObject) -> None:
        self._db.execute(
            "INSERT INTO passes VALUES (?, ?, ?, ?, NULL, ?)", (pass_id, scenario, kind, time.time(), _text(record))
        )

    def end_pass(self, pass_id: str, record: JsonObject) -> None:
        self._db.execute(
            "UPDATE passes SET finished = ?, record = ? WHERE id = ?", (time.time(), _text(record), pass_id)
        )

    def has_pass(self, pass_id: str) -> bool:
        return self._db.execute("SELECT 1 FROM passes WHERE id = ?", (pass_id,)).fetchone() is not None

    def passes(self, scenario: str | None = None, most: int = 50) -> list[JsonObject]:
        """The latest passes, the newest first."""
        where, values = ("WHERE scenario = ?", (scenario,)) if scenario else ("", ())
        rows = self._db.execute(
            f"SELECT id, scenario, kind, started, finished, record FROM passes {where} ORDER BY started DESC LIMIT ?",
            (*values, most),
        )
        return [
            {"id": i, "scenario": s, "kind": k, "started": a, "finished": z, **json.loads(text)}
            for i, s, k, a, z, text in rows
        ]

    def add_check(self, judge: str, effort: str, outcome: JsonObject) -> None:
        self._db.execute(
            "INSERT OR REPLACE INTO judge_checks VALUES (?, ?, ?, ?)", (judge, effort, time.time(), _text(outcome))
        )

    def check(self, judge: str, effort: str) -> JsonObject | None:
        """What `tsuka judge check` found out about a judge, if it was ever run."""
        row = self._db.execute(
            "SELECT outcome FROM judge_checks WHERE judge = ? AND effort = ?", (judge, effort)
        ).fetchone()
        return json.loads(row[0]) if row else None

    # --- vectors -------------------------------------------------------------------------

    def vectors(self, model: str, texts: Sequence[str]) -> dict[str, np.ndarray]:
        """The vectors that are kept, by text."""
        import numpy as np

        found = {}
        for start in range(0, len(texts), 500):
            part = texts[start : start + 500]
            rows = self._db.execute(
                f"SELECT text, vector FROM vectors WHERE model = ? AND text IN ({', '.join('?' * len(part))})",
                (model, *part),
            )
            found.update({text: np.frombuffer(blob, dtype=np.float32) for text, blob in rows})
        return found

    def add_vectors(self, model: str, vectors: Mapping[str, np.ndarray]) -> None:
        with self._store.transaction() as db:
            db.executemany(
                "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)",
                [(model, text, vector.tobytes()) for text, vector in vectors.items()],
            )


def _text(data: Any) -> str:
    return without_surrogates(json.dumps(data, ensure_ascii=False))
