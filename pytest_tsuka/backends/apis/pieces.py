"""Pieces of a stream put together: objects merged, texts joined, lists by `index`."""

from __future__ import annotations

from typing import Any

from pytest_tsuka.text.json_types import JsonObject

_ONCE = frozenset(
    {"id", "type", "role", "name", "format", "object", "status", "index", "call_id", "model", "mime_type"}
)
"""Fields that name a thing: a later piece says them again and does not go on with them."""


def joined(before: Any, piece: Any, name: str = "") -> Any:
    """What a field is after another piece of it. `name` is the field's own."""
    if piece is None:
        return before
    if before is None:
        return joined_list([], piece) if isinstance(piece, list) else piece
    if isinstance(before, str) and isinstance(piece, str):
        return (before or piece) if name in _ONCE else before + piece
    if isinstance(before, dict) and isinstance(piece, dict):
        return before | {key: joined(before.get(key), value, key) for key, value in piece.items()}
    if isinstance(before, list) and isinstance(piece, list):
        return joined_list(before, piece)
    return piece


def joined_list(before: list[Any], pieces: list[Any]) -> list[Any]:
    """Entries with an `index` go on with the entry of that index and type, others stand by themselves."""
    made = list(before)
    for piece in pieces:
        at = next((n for n, entry in enumerate(made) if _goes_on_with(entry, piece)), None)
        if at is None:
            made.append(piece)
        else:
            made[at] = joined(made[at], piece)
    return made


def _goes_on_with(entry: Any, piece: Any) -> bool:
    if not isinstance(entry, dict) or not isinstance(piece, dict) or "index" not in piece:
        return False
    same_type = piece.get("type") in (None, entry.get("type"))
    return bool(entry.get("index") == piece["index"] and same_type)


def joined_content(before: Any, piece: Any) -> Any:
    """`content`, which may be text in one piece and a list of blocks in the next.

    A block without an `index` goes on with the one before it where both are of one type.
    """
    if before is None or piece is None:
        return piece if before is None else before
    if isinstance(before, str) and isinstance(piece, str):
        return before + piece
    made = _blocks(before)
    for block in _blocks(piece):
        last = made[-1] if made else None
        if isinstance(block, dict) and isinstance(last, dict) and "index" not in block and _type(block) == _type(last):
            made[-1] = last | {key: _joined_part(last.get(key), value, key) for key, value in block.items()}
        else:
            made = joined_list(made, [block])
    return made


def _joined_part(before: Any, piece: Any, name: str) -> Any:
    both_lists = isinstance(before, list) and isinstance(piece, list)
    return joined_content(before, piece) if both_lists else joined(before, piece, name)


def _type(block: JsonObject) -> Any:
    return block.get("type", "text")


def _blocks(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list(content) if isinstance(content, list) else [content]
