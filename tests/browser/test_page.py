"""The HTML page in a real browser: what a person sees, and that nothing a model says runs."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_tsuka.report.html import html_page
from tests.conftest import LEAN, TRIO, write_json
from tests.endpoint import FakeEndpoint, Received, completion
from tests.film import FILM, REFERENCE
from tests.judging import is_question, verdict

webdriver = pytest.importorskip("selenium.webdriver")
WebDriverWait = pytest.importorskip("selenium.webdriver.support.ui").WebDriverWait

FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-quic"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
HOSTILE = (
    "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    "</pre></details></body><a href=\"javascript:document.title='owned'\">x</a>"
    "{{ 7 * 7 }} \u202egnp.exe\u202c \x1b[2J <style>body{display:none}</style>"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("needs chromium and chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    found = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield found
    found.quit()


def script(received: Received) -> Any:
    """A hostile model with some right answers; the judge beside it is honest."""
    if is_question(received):
        return verdict(received, lambda _f, v: v == 1949)
    if "Fill" in received.prompt:
        return json.dumps({"title": HOSTILE, "year": 1949, "cast": ["Orson Welles", HOSTILE]})
    message: dict[str, Any] = {
        "role": "assistant",
        "content": f"yes {HOSTILE}",
        "reasoning_content": f"thinking {HOSTILE}",
    }
    if "tools" in received.prompt:
        call = {"id": "c", "type": "function", "function": {"name": "read", "arguments": json.dumps({"f": HOSTILE})}}
        message = {**message, "content": HOSTILE, "tool_calls": [call]}
    return completion(message=message)


@pytest.fixture
def page(pytester: pytest.Pytester, suite: Callable[..., Path], serve: Callable[..., FakeEndpoint]) -> Path:
    """The page of a run against a hostile model, with a scenario whose reference was revised."""
    endpoint = serve(script)
    suite(**TRIO)
    judged = {**FILM, "scoring": {"judge": {"model": "judge-1", "base_url": endpoint.url}}}
    wrong = {**REFERENCE, "output": {**REFERENCE["output"], "year": 1950}}
    write_json(pytester.path / "benchmarks" / "scenarios", {"film": judged, "film__reference": wrong})
    options = (f"--tsuka-model=m{HOSTILE[:30]}", f"--tsuka-base-url={endpoint.url}", "--tsuka-effort=low,medium")
    result = pytester.runpytest_subprocess(*LEAN, *options, "--tsuka-html=r.html", "-q")
    result.stdout.fnmatch_lines(["the page written to r.html"])
    return Path(pytester.path / "r.html")


def opened(browser: Any, page: Path, width: int = 1200, scheme: str = "light") -> None:
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600},
    )
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    browser.get(page.as_uri())


def found(browser: Any, selector: str) -> list[Any]:
    elements: list[Any] = browser.find_elements("css selector", selector)
    return elements


def test_what_a_person_sees(browser: Any, page: Path) -> None:
    """The verdict first, charts with thresholds, every item, the scenario's table and the revised reference."""
    opened(browser, page)
    text = browser.find_element("css selector", "main").text
    assert text.index("no tier") if "no tier" in text else text.index("Recommended effort: low")
    assert "What holds it back from" in text
    assert len(found(browser, "figure svg")) >= 2
    assert "0.9: large toolCalling" in browser.find_element("css selector", "figure").text
    assert len(found(browser, "details.item")) == 6
    assert "Scenario film" in text
    deleted, inserted = found(browser, "del")[0], found(browser, "ins")[0]
    assert (deleted.text, inserted.text) == ("1950", "1949")
    assert "line-through" in deleted.value_of_css_property("text-decoration")
    assert "tsuka reference reject film 'year'" in text
    item = next(i for i in found(browser, "details.item") if "tools" in i.text)
    browser.execute_script("arguments[0].open = true", item)
    folded = [d.text for d in item.find_elements("css selector", "details")]
    assert folded == ["thinking", "calls read"], "folded until somebody wants to see them"
    assert [e for e in browser.get_log("browser") if e["level"] == "SEVERE"] == []


def test_no_text_of_a_model_runs_or_breaks_out(browser: Any, page: Path) -> None:
    """Scripts, handlers, links, styles, bidirectional controls and template braces are shown as text."""
    opened(browser, page)
    for details in found(browser, "details"):
        browser.execute_script("arguments[0].open = true", details)
    assert browser.title != "owned"
    assert found(browser, "main img") == []
    assert found(browser, "a[href^='javascript']") == []
    assert len(found(browser, "script")) == 1
    assert len(found(browser, "head style")) == 1
    assert browser.find_element("css selector", "body").is_displayed()
    text = browser.find_element("css selector", "main").text
    assert "<script>document.title='owned'</script>" in text
    assert "{{ 7 * 7 }}" in text
    assert "\\u202e" in text
    assert "\u202e" not in page.read_text(encoding="utf-8")
    assert "\x1b" not in page.read_text(encoding="utf-8")


def test_an_injected_script_is_refused_by_the_pages_policy(browser: Any, page: Path, tmp_path: Path) -> None:
    """Even if escaping failed: only the page's own script has a hash that runs."""
    broken = tmp_path / "broken.html"
    text = page.read_text(encoding="utf-8")
    broken.write_text(text.replace("</main>", "<script>document.title='owned'</script></main>"), encoding="utf-8")
    opened(browser, broken)
    assert browser.title != "owned"


def test_it_asks_no_network(browser: Any, page: Path) -> None:
    browser.get_log("performance")
    opened(browser, page)
    messages = [json.loads(e["message"])["message"] for e in browser.get_log("performance")]
    asked = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    assert asked
    assert all(url.startswith(("file:", "data:")) for url in asked)


def test_items_are_filtered_and_searched(browser: Any, page: Path) -> None:
    opened(browser, page)

    def shown() -> int:
        return sum(item.is_displayed() for item in found(browser, "details.item"))

    assert shown() == 6
    for name, value, left in (("effort", "low", 3), ("category", "json", 1), ("category", "", 3), ("effort", "", 6)):
        choice = browser.find_element("css selector", f"select[name={name}]")
        browser.execute_script(
            "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('change'))", choice, value
        )
        assert shown() == left
    search = browser.find_element("css selector", "input[type=search]")
    search.send_keys("thinking data")
    WebDriverWait(browser, 5).until(lambda _: shown() == 2)
    assert browser.find_element("css selector", "output").text == "2 of 6"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_needs_no_sideways_scrolling(browser: Any, page: Path, scheme: str) -> None:
    """In both colour schemes, with enough contrast between text and paper."""
    opened(browser, page, width=390, scheme=scheme)
    for details in found(browser, "details"):
        browser.execute_script("arguments[0].open = true", details)
    wide = browser.execute_script(
        "return [...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > 390"
        " && !e.closest('.scroll')).map(e => e.outerHTML.slice(0, 80))"
    )
    assert wide == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    body = browser.find_element("css selector", "body")
    ink, paper = (luminance(body.value_of_css_property(p)) for p in ("color", "background-color"))
    assert (max(ink, paper) + 0.05) / (min(ink, paper) + 0.05) > 7
    assert (paper < ink) == (scheme == "dark")


def luminance(colour: str) -> float:
    """https://www.w3.org/TR/WCAG21/#dfn-relative-luminance"""
    parts = [float(x) / 255 for x in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def test_two_thousand_items(browser: Any, tmp_path: Path) -> None:
    """Under 8 MB however long the answers, and still searchable."""
    verdict_: dict[str, Any] = {
        "benchmark": "b", "file": "b.json", "description": "", "category": "json", "weight": 1, "model": "m",
        "effort": "low", "outcome": "failed", "score": 0.5, "error": None, "notes": [],
        "checks": [{"step": 0, "type": "contains", "operands": {"value": "x"}, "weight": 1, "passed": False, "reason": "no"}],
        "conversation": [{"sent": [{"role": "user", "content": "q" * 500}],
                          "reply": {"text": "a" * 20_000, "reasoning": "r" * 20_000, "tool_calls": []}}],
    }  # fmt: skip
    verdicts = [{**copy.deepcopy(verdict_), "benchmark": f"number_{n}"} for n in range(2000)]
    document: dict[str, Any] = {
        "finished": "2026-01-01T00:00:00Z", "testsHash": "abc", "interrupted": False, "generator": "pytest-tsuka",
        "models": [], "tiers": {}, "gate": None, "verdicts": verdicts, "scenarios": [],
    }  # fmt: skip
    big = tmp_path / "big.html"
    big.write_text(html_page(document), encoding="utf-8")
    assert big.stat().st_size < 8_000_000
    opened(browser, big)
    assert len(found(browser, "details.item")) == 2000
    search = browser.find_element("css selector", "input[type=search]")
    search.send_keys("number_1999")
    output = browser.find_element("css selector", "output")
    WebDriverWait(browser, 20).until(lambda _: output.text == "1 of 2000")
