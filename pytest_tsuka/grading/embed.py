"""Vectors of texts, from the store where it has them and from the embedder where not."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_tsuka.gold.comparison import Vectors
from pytest_tsuka.gold.scenario import Embedding
from pytest_tsuka.grading.clients import Clients
from pytest_tsuka.store.records import Records


async def embed_texts(records: Records, clients: Clients, embedding: Embedding, texts: Sequence[str]) -> Vectors:
    """Vectors of these texts, those that are not kept yet made in one go. Raises BackendError."""
    embedder = clients.embedder(embedding)
    kept = records.vectors(embedder.model, texts)
    missing = [text for text in dict.fromkeys(texts) if text not in kept]
    if missing:
        made = dict(zip(missing, await embedder.embed(missing), strict=True))
        records.add_vectors(embedder.model, made)
        kept |= made
    return Vectors(kept)
