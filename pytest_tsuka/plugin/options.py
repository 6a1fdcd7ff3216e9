"""Options and their ini counterparts, read once into one frozen Settings. Nothing heavy is imported here."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from pytest_tsuka.efforts import EFFORT_STYLES, EFFORTS

if TYPE_CHECKING:
    from pytest_tsuka.backends.catalog import Model
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

    @property
    def flag(self) -> str:
        return f"--tsuka-{self.name}"

    @property
    def key(self) -> str:
        return "tsuka_" + self.name.replace("-", "_")


OPTIONS = (
    Option(
        "model",
        "model to measure: a name at the endpoint, 'all', 'embedded', or a path to a .gguf file; repeatable",
        "MODEL",
        "args",
        [],
        many=True,
    ),
    Option(
        "base-url",
        "OpenAI-compatible endpoint (default: $OPENAI_BASE_URL, else http://localhost:11434/v1)",
        "URL",
        "string",
        "",
    ),
    Option(
        "api",
        "what the endpoint speaks: chat completions, OpenAI's responses, Anthropic's messages; auto goes by the"
        " address, and tries the others where there are no chat completions",
        "API",
        "string",
        "auto",
        choices=("auto", "chat", "responses", "anthropic"),
    ),
    Option("api-key-env", "environment variable that holds the API key", "NAME", "string", "OPENAI_API_KEY"),
    Option(
        "benchmarks",
        "folder of benchmark files, relative to the rootdir; the standard suite if it does not exist",
        "FOLDER",
        "string",
        "benchmarks",
    ),
    Option(
        "effort",
        "effort levels to measure, comma separated or repeated",
        "LEVELS",
        "args",
        list(EFFORTS),
        many=True,
    ),
    Option(
        "effort-style",
        "how the endpoint is told the effort",
        "STYLE",
        "string",
        "auto",
        choices=EFFORT_STYLES,
    ),
    Option("param", "extra request parameter, VALUE as JSON; repeatable", "KEY=VALUE", "linelist", [], many=True),
    Option("repeats", "conversations per item", "N", "int", 1, convert=int),
    Option(
        "concurrency",
        "conversations at once at most, of all workers; fewer while the endpoint rejects",
        "N",
        "int",
        8,
        convert=int,
    ),
    Option(
        "rpm",
        "requests per minute the endpoint allows, shared by all workers (0: no limit)",
        "N",
        "float",
        0.0,
        convert=float,
    ),
    Option(
        "tpm",
        "tokens per minute the endpoint allows, shared by all workers (0: no limit)",
        "N",
        "float",
        0.0,
        convert=float,
    ),
    Option("timeout", "seconds one request may take", "SECONDS", "float", 300.0, convert=float),
    Option("item-timeout", "seconds one conversation may take in all", "SECONDS", "float", 900.0, convert=float),
    Option("idle-timeout", "seconds a streamed reply may be silent", "SECONDS", "float", 120.0, convert=float),
    Option(
        "retries",
        "how often a request is sent again after a 5xx, a reset, a timeout or garbage; being rejected (429, 503) while"
        " others are served does not count, an endpoint never reached is given up after 4",
        "N",
        "int",
        8,
        convert=int,
    ),
    Option(
        "stream",
        "ask for streamed replies: stalled servers are seen, time to first token is measured",
        None,
        "bool",
        False,
    ),
    Option("text-calls", "accept tool calls that were only written as text", None, "bool", False),
    Option("threads", "threads of the embedded model (default: all cores but one)", "N", "int", 0, convert=int),
    Option("record", "write every answer to a file in this folder, for --tsuka-replay", "FOLDER", "string", ""),
    Option("replay", "answer from the recordings in this folder, without a network", "FOLDER", "string", ""),
    Option(
        "resume", "play only what a broken-off run of the same suite and settings did not finish", None, "bool", False
    ),
    Option("scenarios", "collect the scenarios of the suite too (the default)", None, "bool", True, negatable=True),
    Option(
        "scenario-effort",
        "effort levels scenarios are answered at (default: the first of those measured)",
        "LEVELS",
        "args",
        [],
        many=True,
    ),
    Option(
        "rescore", "grade the kept answers of scenarios again, without calling a model under test", None, "bool", False
    ),
    Option("prices", "JSON file of prices: {model: {in, out}}, dollars per million tokens", "PATH", "string", ""),
    Option("store", "database of runs", "PATH", "string", ".tsuka/tsuka.db"),
    Option("profile", "file of the profiles", "PATH", "string", "models_profile.json"),
    Option("json", "write every verdict to this JSON file", "PATH", "string", ""),
    Option("html", "write a page of the run, one file that needs no network (extra: html)", "PATH", "string", ""),
    Option("markdown", "write a summary of the run as Markdown, for a pull request", "PATH", "string", ""),
    Option("github-summary", "append that summary to the file named by $GITHUB_STEP_SUMMARY", None, "bool", False),
    Option(
        "fail-under",
        "exit with 1 unless every model reaches this tier, or CATEGORY=SCORE; repeatable",
        "TIER",
        "args",
        [],
        many=True,
    ),
    Option("gate-effort", "effort the gate looks at (default: the recommended one)", "LEVEL", "string", ""),
    Option(
        "gate-on",
        "what the gate compares: the mean, or the lower bound of the 95%% interval",
        "WHAT",
        "string",
        "mean",
        choices=("mean", "lower"),
    ),
)


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


@dataclass(frozen=True)
class Settings:
    """Everything a run needs to know, checked."""

    models: tuple[Model, ...]
    efforts: tuple[str, ...]
    folder: Path
    packaged: bool
    base_url: str
    api: str
    api_key: str
    effort_style: str
    params: dict[str, Any]
    repeats: int
    concurrency: int
    rpm: float
    tpm: float
    timeout: float
    item_timeout: float
    idle_timeout: float
    retries: int
    stream: bool
    text_calls: bool
    threads: int
    record: Path | None
    replay: Path | None
    resume: bool
    scenarios: bool
    scenario_efforts: tuple[str, ...]
    rescore: bool
    prices: Path | None
    store: Path
    profile: Path
    json: Path | None
    html: Path | None
    markdown: Path | None
    github_summary: Path | None
    requirements: tuple[Requirement, ...]
    gate_effort: str | None
    gate_on_lower_bound: bool

    @property
    def gated(self) -> bool:
        return bool(self.requirements)


def read_settings(config: pytest.Config, names: list[str], policy: TierPolicy) -> Settings:
    """The settings of a run that measures `names`. Raises SettingsError naming option and mend."""
    from pytest_tsuka.backends.apis import AUTO, NAMES, api_named
    from pytest_tsuka.backends.catalog import read_model
    from pytest_tsuka.backends.http.urls import read_base_url
    from pytest_tsuka.errors import SettingsError, unknown_name
    from pytest_tsuka.scoring.gate import read_requirement
    from pytest_tsuka.suite.files import standard_suite

    values = {option.key: _value(config, option) for option in OPTIONS}
    folder = config.rootpath / values["tsuka_benchmarks"]
    packaged = not folder.is_dir()
    if packaged and values["tsuka_benchmarks"] != "benchmarks":
        raise SettingsError(f"--tsuka-benchmarks: no such folder: {folder}")
    for key, low in (("repeats", 1), ("concurrency", 1), ("retries", 0), ("threads", 0)):
        if values[f"tsuka_{key}"] < low:
            raise SettingsError(f"--tsuka-{key} must be at least {low}, found {values[f'tsuka_{key}']}")
    for key in ("rpm", "tpm"):
        if not values[f"tsuka_{key}"] >= 0:
            raise SettingsError(f"--tsuka-{key} must be at least 0, found {values[f'tsuka_{key}']:g}")
    for key in ("timeout", "item-timeout", "idle-timeout"):
        if not values["tsuka_" + key.replace("-", "_")] > 0:
            raise SettingsError(f"--tsuka-{key} must be more than 0 seconds")
    if values["tsuka_record"] and values["tsuka_replay"]:
        raise SettingsError("--tsuka-record and --tsuka-replay exclude each other: a replay hears nothing new")
    base_url = values["tsuka_base_url"] or os.environ.get("OPENAI_BASE_URL") or "http://localhost:11434/v1"
    read_base_url(base_url)
    api = values["tsuka_api"]
    if api not in (AUTO, *NAMES):
        raise SettingsError(f"tsuka_api: {unknown_name('API', api, (AUTO, *NAMES))}")
    efforts = read_efforts(values["tsuka_effort"])
    gate_effort = values["tsuka_gate_effort"] or None
    if gate_effort and gate_effort not in efforts:
        raise SettingsError(f"--tsuka-gate-effort: {gate_effort!r} is not measured (levels: {', '.join(efforts)})")
    style = values["tsuka_effort_style"]
    if style not in EFFORT_STYLES:
        raise SettingsError(f"tsuka_effort_style: must be one of {', '.join(EFFORT_STYLES)}, found {style!r}")
    if spoken := read_base_url(base_url).api if api == AUTO else api:
        api_named(spoken).effort_fields(style, "low")
    if style == "off" and efforts != ("none",):
        if config.getoption("tsuka_effort", None):
            raise SettingsError("--tsuka-effort-style=off sends no effort, so only --tsuka-effort=none can be measured")
        efforts = ("none",)
    return Settings(
        models=tuple(dict.fromkeys(read_model(name) for name in names)),
        efforts=efforts,
        folder=standard_suite() if packaged else folder,
        packaged=packaged,
        base_url=base_url,
        api=api,
        api_key=os.environ.get(values["tsuka_api_key_env"], ""),
        effort_style=style,
        params=read_params(values["tsuka_param"]),
        repeats=values["tsuka_repeats"],
        concurrency=values["tsuka_concurrency"],
        rpm=values["tsuka_rpm"],
        tpm=values["tsuka_tpm"],
        timeout=values["tsuka_timeout"],
        item_timeout=values["tsuka_item_timeout"],
        idle_timeout=values["tsuka_idle_timeout"],
        retries=values["tsuka_retries"],
        stream=values["tsuka_stream"],
        text_calls=values["tsuka_text_calls"],
        threads=values["tsuka_threads"],
        record=_path_or_none(config, values, "tsuka_record"),
        replay=_path_or_none(config, values, "tsuka_replay"),
        resume=values["tsuka_resume"],
        scenarios=values["tsuka_scenarios"] or values["tsuka_rescore"],
        scenario_efforts=_scenario_efforts(values["tsuka_scenario_effort"], efforts, style),
        rescore=values["tsuka_rescore"],
        prices=_path_or_none(config, values, "tsuka_prices"),
        store=_in_folder_of(config, "tsuka_store", values["tsuka_store"]),
        profile=_in_folder_of(config, "tsuka_profile", values["tsuka_profile"]),
        json=_path_or_none(config, values, "tsuka_json"),
        html=_html(_path_or_none(config, values, "tsuka_html")),
        markdown=_path_or_none(config, values, "tsuka_markdown"),
        github_summary=_github_summary() if values["tsuka_github_summary"] else None,
        requirements=tuple(read_requirement(text, policy) for text in values["tsuka_fail_under"]),
        gate_effort=gate_effort,
        gate_on_lower_bound=values["tsuka_gate_on"] == "lower",
    )


def _html(path: Path | None) -> Path | None:
    """Told now and not after the run, when what writes the page is not installed."""
    from pytest_tsuka.errors import SettingsError

    for module in ("jinja2", "pygal") if path else ():
        if find_spec(module) is None:
            raise SettingsError(f"--tsuka-html needs {module}: pip install 'pytest-tsuka[html]'")
    return path


def _github_summary() -> Path | None:
    name = os.environ.get("GITHUB_STEP_SUMMARY")
    return Path(name) if name else None


def _value(config: pytest.Config, option: Option) -> Any:
    given = config.getoption(option.key, None)
    ini = config.getini(option.key)  # read in any case: a wrong type is an error now, not later
    return ini if given is None else given


def _path_or_none(config: pytest.Config, values: dict[str, Any], key: str) -> Path | None:
    return _in_folder_of(config, key, values[key]) if values[key] else None


def _in_folder_of(config: pytest.Config, key: str, value: str) -> Path:
    """An option is relative to where pytest was started, an ini value to the rootdir."""
    base = config.invocation_params.dir if config.getoption(key, None) else config.rootpath
    return base / Path(value).expanduser()


def _scenario_efforts(given: list[str], measured: tuple[str, ...], style: str) -> tuple[str, ...]:
    """What was asked for, else the first level that is measured. Without effort levels there is only that one."""
    return read_efforts(given, "--tsuka-scenario-effort") if given and style != "off" else measured[:1]


def read_efforts(given: list[str], option: str = "--tsuka-effort") -> tuple[str, ...]:
    """Levels in ascending cost, from any mix of commas and repeats."""
    from pytest_tsuka.errors import SettingsError, unknown_name

    asked = [level.strip() for text in given for level in text.split(",") if level.strip()]
    for level in asked:
        if level not in EFFORTS:
            raise SettingsError(f"{option}: {unknown_name('effort', level, EFFORTS)}")
    if not asked:
        raise SettingsError(f"{option} names no level (allowed: {', '.join(EFFORTS)})")
    return tuple(level for level in EFFORTS if level in asked)


_RESERVED = ("model", "messages", "input", "tools", "stream", "stream_options", "reasoning_effort", "store")


def read_params(given: list[str]) -> dict[str, Any]:
    """Request parameters from KEY=VALUE, the value as JSON; plain words need no quotes."""
    from pytest_tsuka.errors import SettingsError

    params: dict[str, Any] = {}
    for text in given:
        key, equals, value = text.partition("=")
        key = key.strip()
        if not equals or not key:
            raise SettingsError(f"--tsuka-param: {text!r} is not KEY=VALUE")
        if key in _RESERVED:
            raise SettingsError(f"--tsuka-param: {key!r} is set by the run itself")
        try:
            params[key] = json.loads(value)
        except ValueError:
            if value[:1] in '[{"':
                raise SettingsError(f"--tsuka-param: the value of {key!r} is not JSON: {value}") from None
            params[key] = value
    return params
