"""The film that scenarios of the tests ask for."""

from __future__ import annotations

from typing import Any

TRUE: dict[str, Any] = {"title": "The Third Man", "year": 1949, "cast": ["Joseph Cotten", "Orson Welles"]}
FILM: dict[str, Any] = {
    "name": "film",
    "kind": "enrichment",
    "prompt": "Fill {schema} for {entity}",
    "entity": {"title": "The Third Man"},
    "schema": {
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "year": {"type": "integer"},
            "cast": {"type": "array", "items": {"type": "string"}},
        },
    },
}
REFERENCE: dict[str, Any] = {"output": TRUE, "verified": True, "source": "edited"}
