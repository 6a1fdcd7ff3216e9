"""Charts of the HTML page, drawn by pygal as SVG that takes its colours from the page."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_tsuka.scoring.tiers import CATEGORY_NAMES
from pytest_tsuka.text.numbers import score_text

if TYPE_CHECKING:
    from pygal.graph.graph import Graph

COLOURS = ("var(--instruction)", "var(--json)", "var(--tools)", *("var(--quiet)",) * 15)


def pygal() -> Any:
    """The library, without the import hook for its plugins, which Python 3.11 warns of at every later import."""
    import pygal as library

    sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__module__ != "pygal"]
    return library


def score_chart(efforts: Sequence[Mapping[str, Any]], tiers: Mapping[str, Mapping[str, float]]) -> str:
    """Category scores (0..1) per effort, with the thresholds of the tiers as dashed lines."""
    chart = pygal().Line(**_options(height=300), range=(0, 1), y_labels=[0, 0.25, 0.5, 0.75, 1])
    chart.x_labels = [e["effort"] for e in efforts]
    for category in CATEGORY_NAMES:
        chart.add(category, [e["scores"][category] for e in efforts], formatter=score_text)
    for label, threshold in thresholds(tiers):
        chart.add(
            label, [threshold] * len(efforts), show_dots=len(efforts) < 2, stroke_style={"width": 1, "dasharray": "5,4"}
        )
    return _svg(chart)


def legend(tiers: Mapping[str, Mapping[str, float]]) -> list[tuple[str, str]]:
    """What the lines of the score chart are: colour and name, the thresholds in grey."""
    lines = [*CATEGORY_NAMES, *(label for label, _ in thresholds(tiers))]
    return list(zip(COLOURS, lines, strict=False))


def thresholds(tiers: Mapping[str, Mapping[str, float]]) -> list[tuple[str, float]]:
    """Each distinct threshold with the tiers and categories it is for, from the highest."""
    by_value: dict[float, list[str]] = {}
    for tier, needs in tiers.items():
        for category, value in needs.items():
            by_value.setdefault(value, []).append(f"{tier} {category}")
    return [(f"{value:g}: {', '.join(names)}", value) for value, names in sorted(by_value.items(), reverse=True)]


def cost_chart(efforts: Sequence[Mapping[str, Any]], figure: str, title: str) -> str | None:
    """The mean of the category scores against a figure of each effort (tokens, seconds): where more stops paying."""
    points = []
    for effort in efforts:
        scores = [effort["scores"][category] for category in CATEGORY_NAMES]
        if effort[figure] is not None and all(score is not None for score in scores):
            mean = sum(scores) / len(scores)
            points.append({"value": (effort[figure], mean), "label": effort["effort"]})
    if not points:
        return None
    chart = pygal().XY(
        **_options(height=300),
        range=(0, 1),
        xrange=(0, 1.15 * max(point["value"][0] for point in points) or 1),
        y_labels=[0, 0.25, 0.5, 0.75, 1],
        stroke=len(points) > 1,
        x_title=title,
        print_labels=True,
    )
    chart.add("mean score", sorted(points, key=lambda point: point["value"]), formatter=_coordinates)
    return _svg(chart)


def _coordinates(value: Any) -> str:
    return f"{value[0]:.3g}, {score_text(value[1])}" if isinstance(value, tuple) else f"{value}"


def _options(*, height: int) -> dict[str, Any]:
    style = pygal().style.Style(
        background="transparent",
        plot_background="transparent",
        foreground="var(--ink)",
        foreground_strong="var(--ink)",
        foreground_subtle="var(--quiet)",
        guide_stroke_color="var(--line)",
        major_guide_stroke_color="var(--line)",
        colors=COLOURS,
        value_colors=("var(--ink)",) * 18,  # else pygal works out contrasts, and only with literal colours
        opacity="1",
        font_family="inherit",
        value_label_font_size=12,
        label_font_size=12,
        major_label_font_size=12,
        title_font_size=13,
        value_background="transparent",
    )
    return {
        "style": style,
        "js": [],
        "width": 520,
        "height": height,
        "show_legend": False,
        "disable_xml_declaration": True,
        "margin": 8,
        "margin_right": 28,
        "dots_size": 4,
        "stroke_style": {"width": 2},
    }


def _svg(chart: Graph) -> str:
    """The chart's SVG without the script that pygal adds for tooltips."""
    from xml.etree import ElementTree as ET

    tree = chart.render_tree()
    for parent in list(tree.iter()):
        for child in [c for c in parent if str(c.tag).endswith("script")]:
            parent.remove(child)
    text = ET.tostring(tree, encoding="unicode")
    return text if isinstance(text, str) else str(text)
