"""Options and their ini counterparts: each is named once, as a field of the Settings it ends in. Nothing heavy here."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from pytest_tsuka.efforts import EFFORT_STYLES, EFFORTS
from pytest_tsuka.plugin import option_values as values

if TYPE_CHECKING:
    from pytest_tsuka.backends.models import Model
    from pytest_tsuka.scoring.gate import Requirement
    from pytest_tsuka.scoring.tiers import TierPolicy

IniType = Literal["string", "args", "int", "float", "bool", "linelist"]


@dataclass(frozen=True, slots=True)
class Option:
    """One setting: `--tsuka-NAME` and the ini key `tsuka_name`. `metavar` None is a switch."""

    name: str
    help: str
    metavar: str | None
    ini: IniType
    default: Any
    many: bool = False
    choices: tuple[str, ...] | None = None
    convert: Callable[[str], Any] | None = None
    negatable: bool = False
    read: values.Reader = values.as_it_is

    @property
    def flag(self) -> str:
        return f"--tsuka-{self.name}"

    @property
    def key(self) -> str:
        return "tsuka_" + self.name.replace("-", "_")

    def given(self, config: pytest.Config, policy: TierPolicy) -> values.Given:
        """What the command line says, else the ini file."""
        on_command_line = config.getoption(self.key, None)
        in_ini = config.getini(self.key)  # read in any case: a wrong type is an error now, not later
        value = in_ini if on_command_line is None else on_command_line
        return values.Given(self.flag, value, config, policy, on_command_line is not None)


def _option(help: str, metavar: str | None, default: Any, name: str = "", **more: Any) -> Any:
    """A field of Settings with its option; the option has the field's name unless it says another."""
    more.setdefault("ini", {int: "int", float: "float", bool: "bool", str: "string"}.get(type(default), "args"))
    if isinstance(default, (int, float)) and not isinstance(default, bool):
        more.setdefault("convert", type(default))
    return field(metadata={"option": {"name": name, "help": help, "metavar": metavar, "default": default, **more}})


def _path(help: str, default: str = "", read: values.Reader = values.path_or_none, metavar: str = "PATH") -> Any:
    return _option(help, metavar, default, read=read)


@dataclass(frozen=True)
class Settings:
    """Everything a run needs to know, checked."""

    models: tuple[Model, ...] = _option(
        "model to measure: a name at the endpoint, 'all', 'embedded', or a path to a .gguf file; repeatable",
        "MODEL", [], "model", many=True, read=values.models,
    )  # fmt: skip
    base_url: str = _option(
        "endpoint (default: $OPENAI_BASE_URL, else http://localhost:11434/v1)", "URL", "", read=values.base_url
    )
    api: str = _option(
        "what the endpoint speaks: chat completions, OpenAI's responses, Anthropic's messages; auto goes by the"
        " address, and tries the others where there are no chat completions",
        "API", "auto", choices=("auto", "chat", "responses", "anthropic"),
        read=values.one_of("auto", "chat", "responses", "anthropic"),
    )  # fmt: skip
    api_key_env: str = _option("environment variable that holds the API key", "NAME", "OPENAI_API_KEY")
    benchmarks: Path = _option(
        "folder of benchmark files, relative to the rootdir; the standard suite if it does not exist",
        "FOLDER", "benchmarks", read=values.suite,
    )  # fmt: skip
    efforts: tuple[str, ...] = _option(
        "effort levels to measure, comma separated or repeated", "LEVELS", list(EFFORTS), "effort", many=True,
        read=values.efforts,
    )  # fmt: skip
    effort_style: str = _option(
        "how the endpoint is told the effort", "STYLE", "auto", choices=EFFORT_STYLES,
        read=values.one_of(*EFFORT_STYLES),
    )  # fmt: skip
    params: dict[str, Any] = _option(
        "extra request parameter, VALUE as JSON; repeatable", "KEY=VALUE", [], "param", ini="linelist", many=True,
        read=values.params,
    )  # fmt: skip
    repeats: int = _option("conversations per item", "N", 1, read=values.at_least(1))
    concurrency: int = _option(
        "conversations at once at most, of all workers; fewer while the endpoint rejects", "N", 8,
        read=values.at_least(1),
    )  # fmt: skip
    rpm: float = _option(
        "requests per minute the endpoint allows, shared by all workers (0: no limit)", "N", 0.0,
        read=values.at_least(0),
    )  # fmt: skip
    tpm: float = _option(
        "tokens per minute the endpoint allows, shared by all workers (0: no limit)", "N", 0.0,
        read=values.at_least(0),
    )  # fmt: skip
    timeout: float = _option("seconds one request may take", "SECONDS", 300.0, read=values.seconds)
    item_timeout: float = _option(
        "seconds one conversation may take in all, waiting for its turn apart", "SECONDS", 900.0, read=values.seconds
    )
    idle_timeout: float = _option("seconds a streamed reply may be silent", "SECONDS", 120.0, read=values.seconds)
    retries: int = _option(
        "how often a request is sent again after a 5xx, a reset, a timeout or garbage; being rejected (429, 503) while"
        " others are served does not count, an endpoint never reached is given up after 4",
        "N", 8, read=values.at_least(0),
    )  # fmt: skip
    stream: bool = _option(
        "ask for streamed replies: stalled servers are seen, time to first token is measured", None, False
    )
    text_calls: bool = _option("accept tool calls that were only written as text", None, False)
    threads: int = _option(
        "threads of the embedded model (default: all cores but one)", "N", 0, read=values.at_least(0)
    )
    record: Path | None = _path("write every answer to a file in this folder, for --tsuka-replay", metavar="FOLDER")
    replay: Path | None = _path("answer from the recordings in this folder, without a network", metavar="FOLDER")
    resume: bool = _option("play only what a broken-off run of the same suite and settings did not finish", None, False)
    scenarios: bool = _option("collect the scenarios of the suite too (the default)", None, True, negatable=True)
    scenario_effort: tuple[str, ...] = _option(
        "effort levels scenarios are answered at (default: the first of those measured)", "LEVELS", [], many=True,
        read=values.efforts_or_none,
    )  # fmt: skip
    rescore: bool = _option(
        "grade the kept answers of scenarios again, without calling a model under test", None, False
    )
    prices: Path | None = _path("JSON file of prices: {model: {in, out}}, dollars per million tokens")
    store: Path = _path("database of runs", ".tsuka/tsuka.db", values.path)
    profile: Path = _path("file of the profiles", "models_profile.json", values.path)
    json: Path | None = _path("write every verdict to this JSON file")
    html: Path | None = _path("write a page of the run, one file that needs no network (extra: html)", read=values.page)
    markdown: Path | None = _path("write a summary of the run as Markdown, for a pull request")
    github_summary: Path | None = _option(
        "append that summary to the file named by $GITHUB_STEP_SUMMARY", None, False, read=values.github_summary
    )
    requirements: tuple[Requirement, ...] = _option(
        "exit with 1 unless every model reaches this tier, or CATEGORY=SCORE; repeatable", "TIER", [], "fail-under",
        many=True, read=values.requirements,
    )  # fmt: skip
    gate_effort: str = _option("effort the gate looks at (default: the recommended one)", "LEVEL", "")
    gate_on: str = _option(
        "what the gate compares: the mean, or the lower bound of the 95%% interval", "WHAT", "mean",
        choices=("mean", "lower"), read=values.one_of("mean", "lower"),
    )  # fmt: skip

    @property
    def gated(self) -> bool:
        return bool(self.requirements)

    @property
    def packaged(self) -> bool:
        """Whether the suite is the one that comes with the package."""
        return not self.benchmarks.is_dir()

    @cached_property
    def folder(self) -> Path:
        """The suite's folder."""
        from pytest_tsuka.suite.files import standard_suite

        return standard_suite() if self.packaged else self.benchmarks

    @property
    def api_key(self) -> str:
        return os.environ.get(self.api_key_env, "")

    @property
    def scenario_efforts(self) -> tuple[str, ...]:
        """What was asked for, else the first level that is measured. Without levels there is only that one."""
        return self.scenario_effort if self.scenario_effort and self.effort_style != "off" else self.efforts[:1]


def _made(name: str, said: dict[str, Any]) -> Option:
    return Option(**{**said, "name": said["name"] or name.replace("_", "-")})


_BY_FIELD = {f.name: _made(f.name, f.metadata["option"]) for f in fields(Settings)}
OPTIONS = tuple(_BY_FIELD.values())


def add_options(parser: pytest.Parser) -> None:
    """Registers every option and its ini key."""
    group = parser.getgroup("tsuka", "measuring language models")
    for option in OPTIONS:
        extra: dict[str, Any] = {"dest": option.key, "default": None, "help": option.help}
        if option.metavar is None:
            extra["action"] = "store_true"
        else:
            extra["metavar"] = option.metavar
            extra["action"] = "append" if option.many else "store"
            if option.convert:
                extra["type"] = option.convert
            if option.choices:
                extra["choices"] = option.choices
        group.addoption(option.flag, **extra)
        if option.negatable:
            off = {"dest": option.key, "default": None, "action": "store_false", "help": f"not so: {option.help}"}
            group.addoption(option.flag.replace("--", "--no-", 1), **off)
        parser.addini(option.key, option.help.replace("%%", "%"), type=option.ini, default=option.default)


def model_names(config: pytest.Config) -> list[str]:
    """The models asked for, as written; empty means that the plugin is not wanted."""
    given = config.getoption("tsuka_model", None) or config.getini("tsuka_model")
    return list(dict.fromkeys(given))


def is_wanted(config: pytest.Config) -> bool:
    """Whether this run is one of pytest-tsuka's: a model is named, or kept answers are to be graded."""
    return bool(model_names(config) or config.getoption("tsuka_rescore", None))


def read_settings(config: pytest.Config, policy: TierPolicy) -> Settings:
    """The settings of a run. Raises SettingsError naming option and mend."""
    given = {name: option.given(config, policy) for name, option in _BY_FIELD.items()}
    settings = Settings(**{name: _BY_FIELD[name].read(said) for name, said in given.items()})
    return _checked(settings, levels_named=given["efforts"].on_command_line)


def _checked(settings: Settings, *, levels_named: bool) -> Settings:
    """What no option can say alone."""
    from pytest_tsuka.backends.apis import AUTO, api_named
    from pytest_tsuka.backends.http.urls import read_base_url
    from pytest_tsuka.errors import SettingsError

    if settings.record and settings.replay:
        raise SettingsError("--tsuka-record and --tsuka-replay exclude each other: a replay hears nothing new")
    spoken = read_base_url(settings.base_url).api if settings.api == AUTO else settings.api
    if spoken:
        api_named(spoken).effort_fields(settings.effort_style, "low")
    if settings.gate_effort and settings.gate_effort not in settings.efforts:
        listed = ", ".join(settings.efforts)
        raise SettingsError(f"--tsuka-gate-effort: {settings.gate_effort!r} is not measured (levels: {listed})")
    if settings.rescore:
        settings = replace(settings, scenarios=True)
    if settings.effort_style == "off" and settings.efforts != ("none",):
        if levels_named:
            raise SettingsError("--tsuka-effort-style=off sends no effort, so only --tsuka-effort=none can be measured")
        settings = replace(settings, efforts=("none",))
    return settings
