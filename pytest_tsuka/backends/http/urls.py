"""Base URLs as people write them, and addresses and texts without their secrets."""

from __future__ import annotations

import base64
import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

from pytest_tsuka.errors import SettingsError

HIDDEN = "***"
_ROUTE = re.compile(r"/(?P<route>chat/completions|completions|models|embeddings|responses|messages)$")
_API_OF_ROUTE = {"chat/completions": "chat", "completions": "chat", "responses": "responses", "messages": "anthropic"}
_SECRET_PARAMETER = re.compile(r"key|token|secret|password|pass|auth|sig", re.IGNORECASE)
_KEY_SHAPES = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|hf|AIza)[-_][A-Za-z0-9_*.-]{6,}|\bBearer\s+[^\s\"',;]+|\bAuthorization\W+Basic\s+[^\s\"',;]+",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A base URL taken apart: where requests go, and what of it must not be shown."""

    root: str
    query: str = ""
    user: str = ""
    password: str = ""
    api: str | None = None
    """The API that the address itself tells of: by a pasted route, or by whose it is."""

    def url(self, path: str) -> str:
        """The address of a route, e.g. `chat/completions`, query included, credentials not."""
        return f"{self.root}/{path}" + (f"?{self.query}" if self.query else "")

    @property
    def shown(self) -> str:
        """The address for people and profiles: no user, no password, secret parameters hidden."""
        if not self.query:
            return self.root
        pairs = [
            (name, HIDDEN if _SECRET_PARAMETER.search(name) else value)
            for name, value in parse_qsl(self.query, keep_blank_values=True)
        ]
        return f"{self.root}?{urlencode(pairs, safe='*')}"

    @property
    def secrets(self) -> tuple[str, ...]:
        found = [self.password, self.user if self.password == "" else "", self.basic_credentials]
        found += [v for n, v in parse_qsl(self.query) if _SECRET_PARAMETER.search(n)]
        return tuple(dict.fromkeys(s for secret in found for s in (secret, quote(secret, safe="")) if s))

    @property
    def basic_credentials(self) -> str:
        """User and password as the Authorization header carries them; empty without a user."""
        if not self.user:
            return ""
        return base64.b64encode(f"{self.user}:{self.password}".encode()).decode("ascii")

    @property
    def loopback(self) -> bool:
        """Whether it is on this machine, where no proxy can reach."""
        host = urlsplit(self.root).hostname or ""
        if host == "localhost" or host.endswith(".localhost"):
            return True
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return False


def read_base_url(text: str) -> Endpoint:
    """The endpoint a base URL means; a bare host gets `/v1`, a pasted route loses its last part.

    Only a whole trailing segment is touched: `/api/v1`, `/openai/v1/`, `/v10/v1` stay what they are.
    """
    parts = _split(text.strip())
    whole = parts.path.rstrip("/")
    route = _ROUTE.search(whole)
    path = _ROUTE.sub("", whole).rstrip("/")
    api = _API_OF_ROUTE.get(route["route"]) if route else None
    host = parts.hostname or ""
    if ":" in host:
        host = f"[{host}]"
    port = f":{parts.port}" if parts.port else ""
    if api is None and (host == "api.anthropic.com" or "anthropic" in path.split("/")):
        api = "anthropic"
    if api == "anthropic" and path.endswith("/anthropic"):  # as its clients write it, who add /v1/messages
        path += "/v1"
    return Endpoint(
        root=f"{parts.scheme.lower()}://{host}{port}{path or '/v1'}",
        query=parts.query,
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        api=api,
    )


def _split(text: str) -> SplitResult:
    if "://" not in text:
        local = re.match(r"(localhost|127\.|\[?::1|0\.0\.0\.0|[^/:]+:\d+)", text)
        text = f"{'http' if local else 'https'}://{text}"
    try:
        parts = urlsplit(text)
        usable = parts.scheme.lower() in ("http", "https") and bool(parts.hostname)
        _ = parts.port
    except ValueError as error:
        raise SettingsError(f"the base URL cannot be read ({error}); write it like http://localhost:11434/v1") from None
    if not usable:
        raise SettingsError(
            f"the base URL {read_safely(text)!r} is no http(s) address; write it like http://localhost:11434/v1"
        )
    return parts


def read_safely(text: str) -> str:
    """An address that could not be read, without what stands before an @ and after a ?."""
    return re.sub(r"//[^/@]*@", f"//{HIDDEN}@", text).partition("?")[0]


class Redactor:
    """Takes known secrets, and what looks like a key, out of texts that people will see."""

    def __init__(self, secrets: Iterable[str]) -> None:
        known = sorted({s for s in secrets if len(s) >= 4}, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, known))) if known else None

    def __call__(self, text: str) -> str:
        if self._known:
            text = self._known.sub(HIDDEN, text)
        return _KEY_SHAPES.sub(HIDDEN, text)
