"""pytest-tsuka: measure what a language model can do, as pytest items, and keep it as a profile.

The names below are the public ones. They are imported when first used, so that importing the
package (as every pytest run in the environment does) costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_PLACES = {
    "BackendError": "errors",
    "Benchmark": "suite.benchmark",
    "BenchmarkError": "errors",
    "Check": "checks",
    "Conversation": "conversation",
    "EffortRefused": "errors",
    "Exchange": "conversation",
    "ModelProfiles": "profile.model_profiles",
    "OpenAIBackend": "backends.openai",
    "ProfileError": "errors",
    "Reply": "conversation",
    "Request": "protocols",
    "Result": "checks",
    "ScriptedBackend": "backends.scripted",
    "SettingsError": "errors",
    "Subject": "checks",
    "Suite": "suite.files",
    "TierPolicy": "scoring.tiers",
    "Timing": "conversation",
    "TsukaError": "errors",
    "Usage": "conversation",
    "compute_tier": "scoring.tiers",
    "find_json": "text.json_find",
    "judge": "scoring.verdict",
    "play": "runner.play",
    "read_suite": "suite.files",
    "tests_hash": "suite.files",
}

__all__ = ["__version__", *_PLACES]

if TYPE_CHECKING:
    from pytest_tsuka.backends.openai import OpenAIBackend as OpenAIBackend
    from pytest_tsuka.backends.scripted import ScriptedBackend as ScriptedBackend
    from pytest_tsuka.checks import Check as Check
    from pytest_tsuka.checks import Result as Result
    from pytest_tsuka.checks import Subject as Subject
    from pytest_tsuka.conversation import Conversation as Conversation
    from pytest_tsuka.conversation import Exchange as Exchange
    from pytest_tsuka.conversation import Reply as Reply
    from pytest_tsuka.conversation import Timing as Timing
    from pytest_tsuka.conversation import Usage as Usage
    from pytest_tsuka.errors import BackendError as BackendError
    from pytest_tsuka.errors import BenchmarkError as BenchmarkError
    from pytest_tsuka.errors import EffortRefused as EffortRefused
    from pytest_tsuka.errors import ProfileError as ProfileError
    from pytest_tsuka.errors import SettingsError as SettingsError
    from pytest_tsuka.errors import TsukaError as TsukaError
    from pytest_tsuka.profile.model_profiles import ModelProfiles as ModelProfiles
    from pytest_tsuka.protocols import Request as Request
    from pytest_tsuka.runner.play import play as play
    from pytest_tsuka.scoring.tiers import TierPolicy as TierPolicy
    from pytest_tsuka.scoring.tiers import compute_tier as compute_tier
    from pytest_tsuka.scoring.verdict import judge as judge
    from pytest_tsuka.suite.benchmark import Benchmark as Benchmark
    from pytest_tsuka.suite.files import Suite as Suite
    from pytest_tsuka.suite.files import read_suite as read_suite
    from pytest_tsuka.suite.files import tests_hash as tests_hash
    from pytest_tsuka.text.json_find import find_json as find_json


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'pytest_tsuka' has no attribute {name!r}")
    value = getattr(import_module(f"pytest_tsuka.{_PLACES[name]}"), name)
    globals()[name] = value
    return value
