"""Reads the settings, makes the suite the argument of the run, registers what the run needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_tsuka.errors import BackendError
from pytest_tsuka.plugin.context import Context, find_context, keep_context
from pytest_tsuka.plugin.controller import Controller
from pytest_tsuka.plugin.endpoints import Endpoints, usage_error
from pytest_tsuka.plugin.options import Settings, read_settings
from pytest_tsuka.plugin.transport import ReportWriter, packed
from pytest_tsuka.scoring.tiers import TIERS, TierPolicy

CONTROLLER = "tsuka-controller"


def configure(config: pytest.Config, names: list[str]) -> None:
    """Reads the settings, puts the suite's folder in as the argument, registers what the run needs."""
    policy: TierPolicy = usage_error(lambda: config.hook.pytest_tsuka_tier_policy(config=config)) or TIERS
    settings: Settings = usage_error(lambda: read_settings(config, policy))
    is_worker = hasattr(config, "workerinput")
    distributed = not is_worker and config.getoption("dist", "no") != "no"
    models = tuple(dict.fromkeys([*settings.models, *(_all_models(config, settings) if "all" in names else ())]))
    if any(m.in_process for m in models) and (distributed or is_worker) and not settings.replay:
        raise pytest.UsageError(
            "pytest-tsuka: an embedded model runs inside this process, each worker would load it again:"
            " drop -n, conversations already run concurrently (--tsuka-concurrency)"
        )
    named = _put_folder_in(config, settings)
    workers = int(getattr(config, "workerinput", {}).get("workercount", 1))
    endpoints = Endpoints(config, settings, models, workers)
    context = Context(config, settings, policy, models, named, endpoints)
    keep_context(context)
    if settings.replay and models:
        endpoints.backend(models[0].name)  # a folder without recordings is a usage error now
    writer = ReportWriter()
    config.pluginmanager.register(writer, "tsuka-report-writer")
    if not is_worker:
        usage_error(lambda: context.project)  # a bad price is told now, not when everything has been paid for
        config.pluginmanager.register(Controller(config, writer), CONTROLLER)


def _put_folder_in(config: pytest.Config, settings: Settings) -> frozenset[Path]:
    """Without paths the run is about the suite; with paths about what they name. Returns files named."""
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        config.args[:] = [str(settings.folder)]
        # On CI pytest's summary repeats every failure whole; ours are several lines long and stand above it.
        config.option.force_short_summary = True
        return frozenset()
    from pytest_tsuka.suite.files import place

    here = config.invocation_params.dir
    named = set()
    for at, argument in enumerate(config.args):
        path_text, separator, rest = argument.partition("::")
        path = here / path_text
        if settings.packaged and not path.exists() and "benchmarks" in path.parts[-3:-1]:
            # The ids of the packaged suite look like a local folder's.
            inside = path.parts[path.parts.index("benchmarks", -3) + 1 :]
            path = settings.folder.joinpath(*inside)
            config.args[at] = f"{path}{separator}{rest}"
        if path.suffix == ".json":
            named.add(place(path))
    return frozenset(named)


def _all_models(config: pytest.Config, settings: Settings) -> list[Any]:
    """`all`: every chat model of the endpoint; asked once, workers are told."""
    import asyncio

    from pytest_tsuka.backends.models import Model, chat_models, list_models

    if hasattr(config, "workerinput"):
        return [Model(name) for name in config.workerinput["tsuka_models"]]
    if settings.replay:
        from pytest_tsuka.backends.replay import ReplayBackend

        replay = settings.replay
        return [Model(name) for name in usage_error(lambda: ReplayBackend(replay, {})).models]
    try:
        entries = asyncio.run(list_models(settings.base_url, api_key=settings.api_key, api=settings.api))
    except BackendError as error:
        raise pytest.UsageError(f"pytest-tsuka: --tsuka-model=all: {error}") from None
    names = chat_models(entries)
    if not names:
        raise pytest.UsageError(f"pytest-tsuka: --tsuka-model=all: {settings.base_url} lists no chat model")
    return [Model(name) for name in names]


def send_to_worker(node: Any) -> None:
    """The models that `all` stood for, and what is known already."""
    if context := find_context(node.config):
        if not node.gateway.spec.popen or node.gateway.spec.chdir:  # where other files may be, and another environment
            node.workerinput["tsuka_terms"] = {model.name: context.terms(model.name) for model in context.models}
        node.config.pluginmanager.get_plugin(CONTROLLER).worker_count = node.workerinput["workercount"]
        node.workerinput["tsuka_models"] = [model.name for model in context.models]
        node.workerinput.update(packed(context.earlier))
