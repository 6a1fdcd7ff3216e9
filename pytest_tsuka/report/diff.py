"""What changed between two runs, and whether it is more than the noise of their repeats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_tsuka.report.markdown import escaped, table
from pytest_tsuka.report.scenarios import Line
from pytest_tsuka.scoring.tiers import CATEGORY_NAMES
from pytest_tsuka.text.escape import one_line
from pytest_tsuka.text.numbers import score_text

NOISE_WITHOUT_REPEATS = 0.05
"""What a category may fall without being called a regression, when no run was repeated and the noise is unknown."""
MOST_SHOWN = 50


def compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Tiers and categories per model and effort, items with their checks; `regressions` in words."""
    tiers = list(after.get("tiers") or before.get("tiers") or ("small", "medium", "large"))
    old, new = _efforts(before), _efforts(after)
    levels = [_level(key, old[key], new[key], tiers) for key in new if key in old]
    found: dict[str, Any] = {
        "before": before["finished"],
        "after": after["finished"],
        "suiteChanged": before["testsHash"] != after["testsHash"],
        "levels": levels,
        "onlyBefore": [f"{m} at {e}" for m, e in old if (m, e) not in new],
        "onlyAfter": [f"{m} at {e}" for m, e in new if (m, e) not in old],
        "items": _items(before, after),
    }
    found["regressions"] = [line for level in levels for line in level["regressions"]] + _lost_models(
        before, after, tiers
    )
    return found


def _efforts(document: Mapping[str, Any]) -> dict[tuple[str, str], Any]:
    return {
        (m["model"], e["effort"]): e
        for m in document["models"]
        for e in m["efforts"]
        if e["tier"] is not None or any(s is not None for s in e["scores"].values())
    }


def _level(key: tuple[str, str], old: Mapping[str, Any], new: Mapping[str, Any], tiers: list[str]) -> dict[str, Any]:
    name = f"{key[0]} at {key[1]}"
    categories = [_category(c, old, new) for c in CATEGORY_NAMES]
    regressions = [
        f"{name}: {c['category']} fell from {score_text(c['before'])} to {score_text(c['after'])}, {c['noise']}"
        for c in categories
        if c["regression"]
    ]
    if _rank(new["tier"], tiers) < _rank(old["tier"], tiers):
        regressions.insert(0, f"{name}: tier fell from {old['tier']} to {new['tier'] or 'none'}")
    return {
        "model": key[0],
        "effort": key[1],
        "tierBefore": old["tier"],
        "tierAfter": new["tier"],
        "categories": categories,
        "regressions": regressions,
    }


def _rank(tier: str | None, tiers: list[str]) -> int:
    return tiers.index(tier) if tier in tiers else -1


def _category(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    a, b = old["scores"][name], new["scores"][name]
    first, second = ((e.get("intervals") or {}).get(name) for e in (old, new))
    change = None if a is None or b is None else b - a
    if change is None:
        noise, beyond = "not measured in both", False
    elif first and second:
        beyond = second[1] < first[0] or first[1] < second[0]
        noise = "beyond the noise of the repeats" if beyond else "within the noise of the repeats"
    else:
        beyond = abs(change) > NOISE_WITHOUT_REPEATS
        noise = "noise unknown (no repeats)"
    return {
        "category": name,
        "before": a,
        "after": b,
        "change": change,
        "noise": noise,
        "beyondNoise": beyond,
        "regression": bool(change is not None and change < 0 and beyond),
    }


def _lost_models(before: Mapping[str, Any], after: Mapping[str, Any], tiers: list[str]) -> list[str]:
    """Models whose tier at the recommended effort fell."""
    now = {m["model"]: m["tier"] for m in after["models"]}
    return [
        f"{m['model']}: tier at the recommended effort fell from {m['tier']} to {now[m['model']] or 'none'}"
        for m in before["models"]
        if m["model"] in now and _rank(now[m["model"]], tiers) < _rank(m["tier"], tiers)
    ]


def _items(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[dict[str, Any]]:
    old = {(v["model"], v["effort"], v["benchmark"]): v for v in before["verdicts"]}
    found = []
    for v in after["verdicts"]:
        key = (v["model"], v["effort"], v["benchmark"])
        was = old.get(key)
        if was is None or (was["score"], was["outcome"]) == (v["score"], v["outcome"]):
            continue
        found.append(
            {
                "benchmark": key[2],
                "model": key[0],
                "effort": key[1],
                "before": was["score"],
                "after": v["score"],
                "outcomeBefore": was["outcome"],
                "outcomeAfter": v["outcome"],
                "checks": _checks(was, v),
            }
        )
    return sorted(found, key=lambda item: (item["after"] or 0) - (item["before"] or 0))


def _checks(was: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The checks whose outcome changed, by step, type and operands."""

    def by_name(verdict: Mapping[str, Any]) -> dict[str, Any]:
        return {f"step {c['step'] + 1} {c['type']} {c['operands']}": c for c in verdict.get("checks", ())}

    old, new = by_name(was), by_name(now)
    return [
        f"{name} {'passes now' if new[name]['passed'] else 'fails now: ' + new[name]['reason']}"
        for name in new
        if name in old and old[name]["passed"] != new[name]["passed"]
    ]


# --- words ---------------------------------------------------------------------------------


def _change(c: Mapping[str, Any]) -> str:
    return f"{score_text(c['before'])} → {score_text(c['after'])}"


def text_lines(found: Mapping[str, Any]) -> Iterator[Line]:
    """For a terminal."""
    if found["suiteChanged"]:
        yield Line("the suite has changed: scores of the two runs are not of the same tests", colour="yellow")
    for level in found["levels"]:
        yield Line(
            one_line(f"{level['model']} at {level['effort']}: {level['tierBefore']} → {level['tierAfter']}"), bold=True
        )
        for c in level["categories"]:
            if c["change"]:
                colour = "red" if c["regression"] else "green" if c["change"] > 0 and c["beyondNoise"] else ""
                yield Line(f"  {c['category']} {_change(c)} ({c['noise']})", colour=colour)
    for what, names in (("only before", found["onlyBefore"]), ("only after", found["onlyAfter"])):
        if names:
            yield Line(one_line(f"{what}: {', '.join(names)}"))
    for item in found["items"][:MOST_SHOWN]:
        where = f"{item['benchmark']} ({item['model']} at {item['effort']})"
        yield Line(one_line(f"{_change(item)}  {where}: {item['outcomeBefore']} → {item['outcomeAfter']}"))
        for check in item["checks"]:
            yield Line(one_line(f"    {check}"))
    if len(found["items"]) > MOST_SHOWN:
        yield Line(f"and {len(found['items']) - MOST_SHOWN} more items")
    for line in found["regressions"]:
        yield Line(one_line(f"regression: {line}"), colour="red", bold=True)
    if not found["regressions"]:
        yield Line("no regression", colour="green")


def markdown(found: Mapping[str, Any]) -> str:
    """For a pull request."""
    parts = []
    if found["suiteChanged"]:
        parts.append("**The suite has changed**: scores of the two runs are not of the same tests.\n")
    if found["regressions"]:
        parts.append("\n".join(["**Regressions**\n", *(f"- {escaped(line)}" for line in found["regressions"])]) + "\n")
    else:
        parts.append("**No regression**\n")
    rows = [
        [
            escaped(f"{level['model']} at {level['effort']}"),
            escaped(f"{level['tierBefore']} → {level['tierAfter']}"),
            *(f"{_change(c)}{' ⚠' if c['regression'] else ''}" for c in level["categories"]),
        ]
        for level in found["levels"]
    ]
    if rows:
        parts.append(table(["model", "tier", *CATEGORY_NAMES], rows))
    items = [
        [
            escaped(i["benchmark"]),
            escaped(f"{i['model']} at {i['effort']}"),
            _change(i),
            escaped("; ".join(i["checks"])),
        ]
        for i in found["items"][:MOST_SHOWN]
    ]
    if items:
        listed = table(["benchmark", "model", "score", "checks"], items)
        parts.append(f"<details><summary>{len(found['items'])} items changed</summary>\n\n{listed}\n</details>\n")
    return "\n".join(parts)
