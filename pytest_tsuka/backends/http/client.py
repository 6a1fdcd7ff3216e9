"""JSON posted to one URL: through httpx's client where a proxy is in between, else straight through its transport."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping

import httpx

from pytest_tsuka.backends.http.transport import AsyncHTTP11Transport
from pytest_tsuka.backends.http.urls import Endpoint
from pytest_tsuka.text.json_types import JsonObject


class Wire:
    """Connections to an endpoint's chat completions. Raises ValueError or httpx.InvalidURL for what cannot be sent."""

    def __init__(
        self, endpoint: Endpoint, *, api_key: str, headers: Mapping[str, str], timeout: float, connect: float
    ) -> None:
        sent = {"User-Agent": "pytest-tsuka", "Accept": "application/json, text/event-stream", **headers}
        if api_key:
            sent["Authorization"] = f"Bearer {api_key}"
        if endpoint.user:
            pair = f"{endpoint.user}:{endpoint.password}".encode()
            sent["Authorization"] = f"Basic {base64.b64encode(pair).decode('ascii')}"
        self._proxied = not endpoint.loopback and _proxied()
        self._transport = AsyncHTTP11Transport()
        self._client = httpx.AsyncClient(
            headers=sent,
            timeout=httpx.Timeout(timeout, connect=connect),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=64),
            trust_env=not endpoint.loopback,  # no proxy can reach this machine's own loopback
            transport=None if self._proxied else self._transport,
        )
        self._url = httpx.URL(endpoint.url("chat/completions"))
        # Worked out once: httpx's client does so for each request, and looks for cookies in each answer.
        self._sent = self._client.headers.copy()
        self._sent["Content-Type"] = "application/json"
        self._extensions = {"timeout": self._client.timeout.as_dict()}

    async def post(self, body: JsonObject) -> httpx.Response:
        """The answer, its body still to be read; whoever has it closes it. Raises httpx's exceptions."""
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
        request = httpx.Request("POST", self._url, headers=self._sent, content=content, extensions=self._extensions)
        if self._proxied:
            return await self._client.send(request, stream=True)
        return await self._transport.handle_async_request(request)

    async def close(self) -> None:
        await self._client.aclose()


def _proxied() -> bool:
    """Whether the environment names a proxy, which is httpx's own business then."""
    from urllib.request import getproxies

    return bool(getproxies())
