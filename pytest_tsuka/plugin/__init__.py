"""The pytest plugin: hooks of two lines each. Without a model it does nothing and imports nothing."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from pytest_tsuka.plugin import options


def pytest_addoption(parser: pytest.Parser) -> None:
    """https://docs.pytest.org/en/stable/reference/reference.html#pytest.hookspec.pytest_addoption"""
    options.add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """https://docs.pytest.org/en/stable/reference/reference.html#pytest.hookspec.pytest_addhooks"""
    from pytest_tsuka.plugin import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Reads the settings and puts the benchmark folder in, on the controller and on workers alike."""
    config.addinivalue_line("markers", "tsuka(category, scenario, effort, model): set on every item, for -m")
    if options.is_wanted(config):
        from pytest_tsuka.plugin.configure import configure

        configure(config, options.model_names(config))
    else:
        _refuse_benchmarks_without_model(config)


def _refuse_benchmarks_without_model(config: pytest.Config) -> None:
    """A benchmark named on the command line without a model would silently collect nothing."""
    folder = config.rootpath / config.getini("tsuka_benchmarks")
    for argument in config.args:
        path = config.invocation_params.dir / argument.partition("::")[0]
        if path.suffix == ".json" and path.parent.resolve() in (folder.resolve(), folder.resolve() / "scenarios"):
            raise pytest.UsageError(
                f"{argument} is a benchmark: say which model to measure, e.g. --tsuka-model=NAME"
                " (or tsuka_model in the ini file)"
            )


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: object) -> None:
    """xdist: what the controller worked out once is handed to the workers."""
    from pytest_tsuka.plugin.configure import send_to_worker

    send_to_worker(node)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """https://docs.pytest.org/en/stable/reference/reference.html#pytest.hookspec.pytest_collect_file"""
    if file_path.suffix != ".json" or not options.is_wanted(parent.config):
        return None
    from pytest_tsuka.plugin.collect import collect_file

    return collect_file(file_path, parent)


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """The engine lives as long as the loop: also on -x, Ctrl-C and pytest.exit."""
    if not options.is_wanted(session.config):
        return (yield)
    from pytest_tsuka.plugin.prefetch import running_engine

    with running_engine(session):
        return (yield)
