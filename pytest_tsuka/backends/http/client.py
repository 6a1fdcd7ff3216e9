"""JSON posted to an endpoint: through httpx's client where a proxy is in between, else straight by its transport."""

from __future__ import annotations

import json
from collections.abc import Mapping

import httpx

from pytest_tsuka.backends.apis.base import Api
from pytest_tsuka.backends.http.transport import AsyncHTTP11Transport
from pytest_tsuka.backends.http.urls import Endpoint
from pytest_tsuka.text.json_types import JsonObject, finite


def headers_for(endpoint: Endpoint, api: Api, key: str) -> dict[str, str]:
    """What every request carries: who asks, and the key or the credentials of the address, which go before it."""
    headers = {"User-Agent": "pytest-tsuka", **api.headers(key)}
    if endpoint.user:
        headers["Authorization"] = f"Basic {endpoint.basic_credentials}"
    return headers


def plain_client(endpoint: Endpoint, api: Api, key: str, timeout: float) -> httpx.AsyncClient:
    """httpx's own client, for the few requests that are not conversations."""
    # No proxy can reach this machine's own loopback.
    return httpx.AsyncClient(headers=headers_for(endpoint, api, key), timeout=timeout, trust_env=not endpoint.loopback)


class Wire:
    """Connections to an endpoint. Raises ValueError or httpx.InvalidURL for what cannot be sent."""

    def __init__(self, endpoint: Endpoint, *, headers: Mapping[str, str], timeout: float, connect: float) -> None:
        self._endpoint = endpoint
        self._proxied = not endpoint.loopback and _proxied()
        self._transport = AsyncHTTP11Transport()
        self._client = httpx.AsyncClient(
            headers={"Accept": "application/json, text/event-stream", **headers},
            timeout=httpx.Timeout(timeout, connect=connect),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=64),
            trust_env=not endpoint.loopback,  # no proxy can reach this machine's own loopback
            transport=None if self._proxied else self._transport,
        )
        self._own = httpx.Headers(headers)  # what the user says goes before what we would
        self._extensions = {"timeout": self._client.timeout.as_dict()}
        # Worked out once: httpx's client does so for each request, and looks for cookies in each answer.
        self._places: dict[str, tuple[httpx.URL, httpx.Headers]] = {}

    def check(self, api: Api, key: str) -> None:
        """Raises what sending to this API would raise before anything is sent."""
        self._place(api, key)

    def _place(self, api: Api, key: str) -> tuple[httpx.URL, httpx.Headers]:
        if api.name not in self._places:
            headers = self._client.headers.copy()
            headers["Content-Type"] = "application/json"
            for name, value in headers_for(self._endpoint, api, key).items():
                if name not in self._own:
                    headers[name] = value
            self._places[api.name] = httpx.URL(self._endpoint.url(api.route)), headers
        return self._places[api.name]

    async def post(self, api: Api, key: str, body: JsonObject) -> httpx.Response:
        """The answer, its body still to be read; whoever has it closes it. Raises httpx's exceptions."""
        url, headers = self._place(api, key)
        request = httpx.Request("POST", url, headers=headers, content=_encoded(body), extensions=self._extensions)
        if self._proxied:
            return await self._client.send(request, stream=True)
        return await self._transport.handle_async_request(request)

    async def close(self) -> None:
        await self._client.aclose()


def _encoded(body: JsonObject) -> bytes:
    """UTF-8; what a server said that has no place there (half a character, a number beyond all) goes back escaped."""
    try:
        return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except UnicodeEncodeError:
        return json.dumps(body, separators=(",", ":"), allow_nan=False).encode()
    except ValueError:
        return _encoded(finite(body))


def _proxied() -> bool:
    """Whether the environment names a proxy, which is httpx's own business then."""
    from urllib.request import getproxies

    return bool(getproxies())
