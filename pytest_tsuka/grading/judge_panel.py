"""The judge at work: asked once per question, its answers kept, every call recorded, failures explicit."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pytest_tsuka.errors import BackendError, GradingError
from pytest_tsuka.gold.judge import Asked
from pytest_tsuka.gold.scenario import Judge
from pytest_tsuka.grading.project import Project
from pytest_tsuka.protocols import Backend, Request
from pytest_tsuka.runner.reply import read_reply
from pytest_tsuka.store.records import JudgeCall, Records
from pytest_tsuka.text.json_types import JsonObject, shorten

ONCE_MORE = (
    "That is not the answer that was asked for. Reply with exactly one JSON object with the fields named in the"
    " instructions, and nothing else."
)


@dataclass
class Tally:
    """What one model's grading asked of the judge. `cost` is None as soon as one call's is unknown."""

    calls: int = 0
    cached: int = 0
    cost: float | None = 0.0


class Panel:
    """Asks a judge through a backend. Identical questions in flight are one request.

    `pass_id` is what the calls are recorded under. Use inside one event loop, the backend open.
    """

    def __init__(
        self, judge: Judge, model: str, backend: Backend, records: Records, project: Project, pass_id: str, at_once: int
    ) -> None:
        self._judge = judge
        self._model = model
        self._backend = backend
        self._records = records
        self._project = project
        self._pass_id = pass_id
        self._slots = asyncio.Semaphore(at_once)
        self._asked: dict[str, asyncio.Task[tuple[str, ...]]] = {}
        self._replies: dict[str, tuple[str, ...]] = {}
        self.tallies: dict[str, Tally] = defaultdict(Tally)

    @property
    def effort(self) -> str:
        return self._judge.effort or "none"

    def known(self, question: Asked) -> Sequence[str] | None:
        """The replies to a question that was answered before, in this pass or any other."""
        key = self._key(question)
        if key not in self._replies:
            kept = self._records.answer(key, orders=self._orders(question))
            if kept is None or not all(question.understands(reply) for reply in kept):
                return None
            self._replies[key] = kept
        return self._replies[key]

    def note_cached(self, label: str, questions: int) -> None:
        self.tallies[label].cached += questions

    async def ask(self, questions: Sequence[Asked], label: str) -> int:
        """Gets the answers to open questions and returns how many were really asked here.

        `label` is the model under test, which the calls are counted for; a question that another model
        is asking already is not paid twice. Raises GradingError.
        """
        distinct = {self._key(q): q for q in questions}
        new = [key for key in distinct if key not in self._asked]
        tasks = [self._task(question, key, label) for key, question in distinct.items()]
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome
        return len(new)

    def _key(self, question: Asked) -> str:
        return question.key(self._model, self.effort)

    def _orders(self, question: Asked) -> int:
        return 2 if self._judge.both_orders and question.has_sides else 1

    def _task(self, question: Asked, key: str, label: str) -> asyncio.Task[tuple[str, ...]]:
        if key not in self._asked:
            self._asked[key] = asyncio.create_task(self._answers(question, key, label))
        return self._asked[key]

    async def _answers(self, question: Asked, key: str, label: str) -> tuple[str, ...]:
        async with self._slots:
            replies = [
                await self._one(question, key, label, swapped=order == 1) for order in range(self._orders(question))
            ]
        self._replies[key] = tuple(replies)
        return self._replies[key]

    async def _one(self, question: Asked, key: str, label: str, *, swapped: bool) -> str:
        """One order: asked, and asked once more when the reply is no verdict."""
        messages: tuple[JsonObject, ...] = tuple(question.messages(swapped=swapped))
        reply = ""
        for attempt in range(2):
            reply = await self._call(question, key, label, messages, swapped=swapped)
            if question.understands(reply):
                with _recording():
                    self._records.add_answer(key, swapped=swapped, reply=reply)
                return reply
            if attempt == 0:
                messages += ({"role": "assistant", "content": reply}, {"role": "user", "content": ONCE_MORE})
        raise GradingError(
            f"judge {self._model} gave no verdict on {question.about} when asked twice;"
            f" its last reply: {shorten(reply)}"
        )

    async def _call(
        self, question: Asked, key: str, label: str, messages: tuple[JsonObject, ...], *, swapped: bool
    ) -> str:
        call = JudgeCall(question.about, key, swapped, messages)
        tally = self.tallies[label]
        tally.calls += 1
        started = time.monotonic()
        try:
            exchange = await self._backend.complete(
                Request(self._model, self.effort, messages, label=f"judge {question.about}")
            )
        except BackendError as error:
            call.problem = str(error)
            tally.cost = None
            raise GradingError(f"judge {self._model} failed on {question.about}: {error}") from None
        else:
            call.reply = read_reply(exchange).answer
            call.usage = exchange.usage
            call.cost = self._project.cost(self._model, exchange.usage)
            tally.cost = None if tally.cost is None or call.cost is None else tally.cost + call.cost
            if not question.understands(call.reply):
                call.problem = "no verdict"
            return call.reply
        finally:
            call.seconds = time.monotonic() - started
            with _recording():
                self._records.add_call(self._pass_id, label, call)


@contextmanager
def _recording() -> Iterator[None]:
    """A call that cannot be recorded ends the pass: it would be paid again, and nobody could audit it."""
    try:
        yield
    except sqlite3.Error as error:
        raise GradingError(f"the store cannot be written: {error}") from None
