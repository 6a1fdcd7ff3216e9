"""Which models an endpoint offers, and what went wrong when a connection did."""

from __future__ import annotations

from pytest_tsuka.backends.apis import api_named
from pytest_tsuka.backends.http.failures import cause_of
from pytest_tsuka.backends.http.urls import Redactor, read_base_url
from pytest_tsuka.errors import BackendError
from pytest_tsuka.text.json_types import JsonObject


async def list_models(backend_url: str, *, api_key: str = "", timeout: float = 10.0) -> list[JsonObject]:
    """The entries of the endpoint's `/models`. Raises BackendError with the likely cause."""
    import httpx

    endpoint = read_base_url(backend_url)
    redact = Redactor((api_key, *endpoint.secrets))
    headers = api_named(endpoint.api or "chat").headers(api_key)
    auth = (endpoint.user, endpoint.password) if endpoint.user else None
    try:
        async with httpx.AsyncClient(timeout=timeout, trust_env=not endpoint.loopback, auth=auth) as client:
            response = await client.get(endpoint.url("models"), headers=headers)
            data = response.json() if response.status_code == 200 else None
    except (httpx.HTTPError, ValueError, OSError) as error:
        raise BackendError(redact(f"{endpoint.shown}: the list of models cannot be read ({cause_of(error)})")) from None
    if not isinstance(data, dict) or not isinstance(data.get("data"), list):
        raise BackendError(
            redact(f"{endpoint.shown}: HTTP {response.status_code} instead of a list of models; name the model instead")
        )
    return [entry for entry in data["data"] if isinstance(entry, dict) and isinstance(entry.get("id"), str)]
