"""The seven benchmarks that ship: shapes, ideal answers, empty answers, and the mistakes they are made to catch."""

from __future__ import annotations

import asyncio
import copy
import json
from pathlib import Path
from typing import Any

import pytest

from pytest_tsuka.backends.scripted import ScriptedBackend
from pytest_tsuka.protocols import Request
from pytest_tsuka.runner.play import play
from pytest_tsuka.scoring.vacuous import APOLOGY, vacuous_share, vacuous_warning
from pytest_tsuka.scoring.verdict import judge
from pytest_tsuka.suite.files import read_suite, standard_suite, tests_hash
from tests.endpoint import call
from tests.ideal import IDEAL, ORDER, PRODUCTS

SUITE = read_suite(standard_suite())
BY_NAME = {b.name: b for b in SUITE.benchmarks.values()}

INVENTORY = [
    ("10_instruction_frase.json", "frase_8_parole", "instruction", 1, [4]),
    ("11_instruction_lista.json", "lista_vincoli_negativi", "instruction", 1, [3]),
    ("20_json_prodotti.json", "json_prodotti", "json", 1, [7]),
    ("21_json_annidato.json", "json_annidato", "json", 1, [11]),
    ("30_tool_catena.json", "catena_tool_distrattori", "toolCalling", 2, [2, 3]),
    ("31_tool_trappola.json", "trappola_astensione", "toolCalling", 1, [2]),
    ("32_tool_write_append.json", "tool_write_append", "toolCalling", 2, [3, 4]),
]


def score(name: str, replies: list[dict[str, Any]]) -> float:
    """The score of a model that says these messages in turn."""
    said = iter(replies)

    def script(request: Request) -> dict[str, Any]:
        return {"role": "assistant", **next(said)}

    return judge(BY_NAME[name], asyncio.run(play(BY_NAME[name], "m", "none", ScriptedBackend(script))))["score"]


def test_inventory() -> None:
    """Files, names, categories, weights and check counts are those of TSUKA's suite."""
    assert SUITE.usable
    found = [
        (path.name, b.name, b.category, b.weight, [len(step.checks) for step in b.all_steps])
        for path, b in SUITE.benchmarks.items()
    ]
    assert found == INVENTORY


@pytest.mark.parametrize("name", list(IDEAL))
def test_an_ideal_conversation_scores_one(name: str) -> None:
    assert score(name, IDEAL[name]) == 1.0


@pytest.mark.parametrize("name", list(IDEAL))
def test_saying_nothing_earns_less_than_a_quarter(name: str) -> None:
    """Neither an empty reply nor, up to the guard's limit, a stock apology."""
    assert score(name, [{"content": ""}] * 2) < 0.25
    assert vacuous_share(BY_NAME[name]) < 0.25
    assert vacuous_share(BY_NAME[name], APOLOGY) <= 0.25
    assert vacuous_warning(BY_NAME[name]) is None


def changed(document: dict[str, Any], **changes: Any) -> list[dict[str, Any]]:
    made = copy.deepcopy(document)
    made.update(changes)
    return [{"content": json.dumps(made)}]


CHAIN_FIRST, CHAIN_SECOND = IDEAL["catena_tool_distrattori"]
WRITE_FIRST, WRITE_SECOND = IDEAL["tool_write_append"]


@pytest.mark.parametrize(
    ("name", "replies", "expected"),
    [
        # one word too many; first word wrong; forbidden letter
        ("frase_8_parole", [{"content": "Stamattina il vecchio pescatore porta le reti al mare."}], 0.75),
        ("frase_8_parole", [{"content": "Oggi il pescatore porta le reti al mare."}], 0.75),
        ("frase_8_parole", [{"content": "Stamattina un pescatore porta le reti al mare."}], 0.75),
        (
            "frase_8_parole",
            [{"content": "Ecco la frase: Stamattina il pescatore porta le reti al mare."}],
            0.5,
        ),
        # the apple, as a word; a numbered list; six fruits
        ("lista_vincoli_negativi", [{"content": "mela\npera\npesca\nkiwi\nfico"}], 0.75),
        ("lista_vincoli_negativi", [{"content": "melagrana\npera\npesca\nkiwi\nfico"}], 1.0),
        ("lista_vincoli_negativi", [{"content": "1. pera\n2. pesca\n3. kiwi\n4. fico\n5. limone"}], 0.5),
        ("lista_vincoli_negativi", [{"content": "- pera\n- pesca\n- kiwi\n- fico\n- limone"}], 0.5),
        ("lista_vincoli_negativi", [{"content": "pera\npesca\nkiwi\nfico\nlimone\narancia"}], 0.75),
        # JSON in a fence; a sold-out product; the wrong order; a sum that is text
        ("json_prodotti", [{"content": f"```json\n{json.dumps(PRODUCTS)}\n```"}], 6 / 7),
        ("json_prodotti", changed(PRODUCTS, conteggio=4, totale=83.4), 5 / 7),
        ("json_prodotti", changed(PRODUCTS, prodotti=PRODUCTS["prodotti"][::-1]), 5 / 7),  # type: ignore[index]
        ("json_prodotti", changed(PRODUCTS, totale="75.00"), 6 / 7),
        # types as text, a negation misread
        ("json_annidato", changed(ORDER, ordine="4471"), 10 / 11),
        ("json_annidato", changed(ORDER, pagato="vero", spedito="falso"), 9 / 11),
        ("json_annidato", changed(ORDER, spedito=True), 10 / 11),
        ("json_annidato", [{"content": "L'ordine 4471 è di Marta Gallo."}], 0.0),
        # straight to the appointment; a namesake's id; the wrong search tool
        ("catena_tool_distrattori", [CHAIN_SECOND, {"content": "fatto"}], 0.0),
        (
            "catena_tool_distrattori",
            [
                CHAIN_FIRST,
                {
                    "content": "",
                    "tool_calls": [call("fissa_appuntamento", {"contatto_id": "CT-1042", "data": "2027-03-12"})],
                },
            ],
            4 / 6,
        ),
        (
            "catena_tool_distrattori",
            [{"tool_calls": [call("cerca_documenti", {"testo": "Bianchi"})]}, {"content": "?"}],
            0.0,
        ),
        ("catena_tool_distrattori", [{"content": "Non trovo Luca Bianchi."}], 0.0),
        # calls what it was told not to; talks without answering
        (
            "trappola_astensione",
            [{"content": None, "tool_calls": [call("svuota_cestino", {"conferma": True})]}],
            0.0,
        ),
        ("trappola_astensione", [{"content": "Sì, si potrebbero recuperare."}], 0.25),
        # forgets the append flag; appends the whole file again; writes only text
        (
            "tool_write_append",
            [WRITE_FIRST, {"tool_calls": [call("scrivi_file", {"percorso": "spesa.txt", "testo": "pane"})]}],
            6 / 8,
        ),
        (
            "tool_write_append",
            [
                WRITE_FIRST,
                {"tool_calls": [call("scrivi_file", {"percorso": "spesa.txt", "testo": "latte\npane"})]},
            ],
            5 / 8,
        ),
        ("tool_write_append", [{"content": "Ho creato il file spesa.txt."}], 0.0),
        ("tool_write_append", [WRITE_FIRST, {"content": "Aggiunto!"}], 3 / 8),
    ],
)
def test_typical_mistakes_lose_what_they_should(name: str, replies: list[dict[str, Any]], expected: float) -> None:
    assert score(name, replies) == pytest.approx(expected)


def test_the_hash_is_tsukas_digest(tmp_path: Path) -> None:
    """MD5 over each file's name and then its bytes, in name order, first 8 hex digits."""
    import hashlib

    (tmp_path / "b.json").write_bytes(b"{}")
    (tmp_path / "a.json").write_bytes(b"\r\n[1]")
    (tmp_path / "notes.txt").write_bytes(b"not part of it")
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "scenarios" / "c.json").write_bytes(b"nor this")
    expected = hashlib.md5(b"a.json\r\n[1]b.json{}").hexdigest()[:8]
    assert tests_hash(tmp_path) == expected
    (tmp_path / "a.json").write_bytes(b"\n[1]")
    assert tests_hash(tmp_path) != expected
