"""Ideal and typical conversations for the standard suite: what a perfect model says to each prompt."""

from __future__ import annotations

import json
from typing import Any

from tests.endpoint import Received, call, completion

PRODUCTS = {
    "prodotti": [
        {"nome": "cuscino", "prezzo": 12.5},
        {"nome": "mensola", "prezzo": 27.6},
        {"nome": "lampada", "prezzo": 34.9},
    ],
    "conteggio": 3,
    "totale": 75.0,
}
ORDER = {
    "ordine": 4471,
    "cliente": {"nome": "Marta Gallo", "citta": "Trieste", "abbonata": False},
    "righe": [
        {"articolo": "quaderno", "quantita": 3, "prezzo": 2.8, "regalo": False},
        {"articolo": "zaino", "quantita": 1, "prezzo": 49.9, "regalo": True},
    ],
    "pagato": True,
    "spedito": False,
}

IDEAL: dict[str, list[dict[str, Any]]] = {
    "frase_8_parole": [{"content": "Stamattina il pescatore porta le reti al mare."}],
    "lista_vincoli_negativi": [{"content": "pera\npesca\nciliegia\nalbicocca\nfico"}],
    "json_prodotti": [{"content": json.dumps(PRODUCTS)}],
    "json_annidato": [{"content": json.dumps(ORDER)}],
    "catena_tool_distrattori": [
        {"content": None, "tool_calls": [call("cerca_contatti", {"nome": "Luca Bianchi"})]},
        {
            "content": "",
            "tool_calls": [call("fissa_appuntamento", {"contatto_id": "CT-1024", "data": "2027-03-12"})],
        },
    ],
    "trappola_astensione": [{"content": "No, i file sarebbero persi per sempre."}],
    "tool_write_append": [
        {"content": None, "tool_calls": [call("scrivi_file", {"percorso": "spesa.txt", "testo": "latte"})]},
        {
            "content": None,
            "tool_calls": [call("scrivi_file", {"percorso": "spesa.txt", "testo": "\npane", "append": True})],
        },
    ],
}

_MARKS = {
    "otto parole": "frase_8_parole",
    "cinque frutti": "lista_vincoli_negativi",
    "catalogo": "json_prodotti",
    "Ordine 4471": "json_annidato",
    "Luca Bianchi": "catena_tool_distrattori",
    "svuota_cestino": "trappola_astensione",
    "spesa.txt": "tool_write_append",
}


def benchmark_of(received: Received) -> tuple[str, int]:
    """(benchmark name, turn) that a request belongs to."""
    first = next(m["content"] for m in received.body["messages"] if m["role"] == "user")
    name = next(name for mark, name in _MARKS.items() if mark in first)
    return name, sum(m["role"] == "assistant" for m in received.body["messages"])


def ideal(received: Received) -> dict[str, Any]:
    """The answer of a perfect model."""
    name, turn = benchmark_of(received)
    return completion(message={"role": "assistant", **IDEAL[name][turn]})
