"""What it means when there is no answer at all: the exceptions of the HTTP client as troubles."""

from __future__ import annotations

from pytest_tsuka.backends.trouble import Kind, Trouble


def cause_of(error: BaseException) -> str:
    """The innermost reason: httpx wraps it twice and says little itself."""
    inner: BaseException = error
    while (deeper := inner.__cause__ or inner.__context__) is not None:
        inner = deeper
    text = str(inner) or str(error)
    return f"{type(inner).__name__}: {text}" if text else type(inner).__name__


def transport_trouble(error: Exception, where: str) -> Trouble:
    """The trouble behind an exception of httpx's or of a socket; `where` is the endpoint as people may see it."""
    import httpx

    match error:
        case httpx.InvalidURL() | httpx.UnsupportedProtocol():
            return Trouble(Kind.ENDPOINT, f"{error} ({where})")
        case httpx.ConnectTimeout():
            return Trouble(Kind.AGAIN, f"{where}: no connection", unreachable=True)
        case httpx.TimeoutException():
            return Trouble(Kind.AGAIN, f"{where}: the connection was silent for too long", stalled=True)
        case httpx.ConnectError() | httpx.ProxyError():
            via = "through the proxy of the environment " if isinstance(error, httpx.ProxyError) else ""
            what = f"cannot connect {via}({cause_of(error)}); is the server running? (--tsuka-base-url)"
            return Trouble(Kind.AGAIN, f"{where}: {what}", unreachable=True)
    return Trouble(Kind.AGAIN, f"{where}: the connection broke off ({cause_of(error)})")
