"""`data_visualization` blocks as SVG. Colours are classes `s1` to `s12`; the page's style sheet gives them."""

import html
import math

from bot.emulator.workspace import Json

WIDTH, HEIGHT = 560, 250
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 12, 46
LETTER = 6.2
SLANTED_LETTERS = 20
"""As long as Slack lets a label be."""
SERIES_COLOURS = 12


def chart_html(block: Json) -> str:
    chart, title = block["chart"], html.escape(str(block["title"]))
    drawn = _pie(chart["segments"]) if chart["type"] == "pie" else _axes(chart)
    names = [str(entry["name"]) for entry in chart.get("series", [])]
    legend = _legend(names) if len(names) > 1 else ""
    return f'<figure class="chart" aria-label="{title}"><figcaption>{title}</figcaption>{drawn}{legend}</figure>'


def short(value: float) -> str:
    """A number for an axis: 950, 1.5k, 2M."""
    for limit, suffix in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return f"{value / limit:.3g}{suffix}"
    return f"{value:.3g}"


def _axes(chart: Json) -> str:
    """Bar, line or area over categories; the scale begins at zero, so that lengths may be compared."""
    axis, series = chart["axis_config"], chart["series"]
    values = [[float(point["value"]) for point in entry["data"]] for entry in series]
    low, high = min(0.0, *(min(row) for row in values)), max(0.0, *(max(row) for row in values))
    ticks = _ticks(low, high)
    plot = _Plot(ticks[0], ticks[-1], [str(name) for name in axis["categories"]])
    draw = {"bar": _bars, "line": _lines, "area": _areas}[chart["type"]]
    body = _grid(plot, ticks) + _categories(plot, axis) + draw(plot, values, chart)
    return f'<svg viewBox="{-plot.side} 0 {WIDTH + plot.side} {HEIGHT + plot.foot}" role="img">{body}</svg>'


class _Plot:
    """From values to pixels. `foot` and `side` are what slanted names need below and to the left; 0 when they fit as they are."""

    def __init__(self, low: float, high: float, names: list[str]) -> None:
        self.low, self.high, self.count = low, high, len(names)
        self.step = (WIDTH - LEFT - RIGHT) / self.count
        longest = max(len(name) for name in names)
        slanted = longest * LETTER > self.step
        self.foot = max(1, round(min(longest, SLANTED_LETTERS) * LETTER * 0.65) - BOTTOM + 30) if slanted else 0
        reach = [min(len(name), SLANTED_LETTERS) * LETTER * 0.77 - self.x(index) for index, name in enumerate(names)]
        self.side = max(0, *map(round, reach)) if slanted else 0

    def x(self, index: int) -> float:
        return LEFT + self.step * (index + 0.5)

    def y(self, value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (self.high - value) / (self.high - self.low)


def _ticks(low: float, high: float) -> list[float]:
    """About five round values that enclose `low` and `high`."""
    span = (high - low) or 1.0
    rough = span / 4
    size = 10 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= rough)
    first, last = math.floor(low / step), max(math.ceil(high / step), math.floor(low / step) + 1)
    return [step * number for number in range(first, last + 1)]


def _grid(plot: _Plot, ticks: list[float]) -> str:
    return "".join(
        f'<line class="{"zero" if tick == 0 else "grid"}" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{plot.y(tick):.1f}"'
        f' y2="{plot.y(tick):.1f}"/><text class="tick" x="{LEFT - 8}" y="{plot.y(tick) + 4:.1f}"'
        f' text-anchor="end">{short(tick)}</text>'
        for tick in ticks
    )


def _categories(plot: _Plot, axis: Json) -> str:
    """Every category's name, slanted where they would run into each other, and the axis titles."""
    labels = "".join(_label(plot, index, str(name)) for index, name in enumerate(axis["categories"]))
    middle_x, middle_y = (LEFT + WIDTH - RIGHT) / 2, (TOP + HEIGHT - BOTTOM) / 2
    x_label, y_label = html.escape(str(axis.get("x_label") or "")), html.escape(str(axis.get("y_label") or ""))
    return (
        f'{labels}<text class="axis" x="{middle_x}" y="{HEIGHT + plot.foot - 8}" text-anchor="middle">{x_label}</text>'
        f'<text class="axis" transform="translate(12 {middle_y}) rotate(-90)" text-anchor="middle">{y_label}</text>'
    )


def _label(plot: _Plot, index: int, name: str) -> str:
    x, y = plot.x(index), HEIGHT - BOTTOM + 16
    shown = name if len(name) <= SLANTED_LETTERS else f"{name[: SLANTED_LETTERS - 1]}…"
    place = f'transform="translate({x + 4:.1f} {y - 4}) rotate(-40)" text-anchor="end"'
    if not plot.foot:
        place = f'x="{x:.1f}" y="{y}" text-anchor="middle"'
    return f'<text class="tick" {place}>{html.escape(shown)}<title>{html.escape(name)}</title></text>'


def _tip(chart: Json, row: int, column: int) -> str:
    entry = chart["series"][row]
    point = entry["data"][column]
    name, label, value = entry["name"], point["label"], point["value"]
    return f"<title>{html.escape(f'{name}, {label}: {value:,}')}</title>"


def _bars(plot: _Plot, values: list[list[float]], chart: Json) -> str:
    width = min(plot.step * 0.72 / len(values), 46)
    drawn = []
    for row, series in enumerate(values):
        for column, value in enumerate(series):
            x = plot.x(column) + (row - len(values) / 2) * width
            top, bottom = plot.y(max(value, 0)), plot.y(min(value, 0))
            drawn.append(
                f'<rect class="{_colour(row)}" x="{x + 1:.1f}" y="{top:.1f}" width="{max(width - 2, 1):.1f}"'
                f' height="{max(bottom - top, 0.5):.1f}" rx="2">{_tip(chart, row, column)}</rect>'
            )
    return "".join(drawn)


def _lines(plot: _Plot, values: list[list[float]], chart: Json) -> str:
    return "".join(
        f'<polyline class="line {_colour(row)}" points="{_points(plot, series)}"/>'
        + "".join(
            f'<circle class="{_colour(row)}" cx="{plot.x(column):.1f}" cy="{plot.y(value):.1f}" r="3.5">'
            f"{_tip(chart, row, column)}</circle>"
            for column, value in enumerate(series)
        )
        for row, series in enumerate(values)
    )


def _areas(plot: _Plot, values: list[list[float]], chart: Json) -> str:
    zero, last = plot.y(0), plot.x(plot.count - 1)
    filled = "".join(
        f'<polygon class="area {_colour(row)}" points="{plot.x(0):.1f},{zero:.1f} {_points(plot, series)} {last:.1f},{zero:.1f}"/>'
        for row, series in enumerate(values)
    )
    return filled + _lines(plot, values, chart)


def _points(plot: _Plot, series: list[float]) -> str:
    return " ".join(f"{plot.x(column):.1f},{plot.y(value):.1f}" for column, value in enumerate(series))


def _pie(segments: list[Json]) -> str:
    """A ring from twelve o'clock on, and a legend with shares; nothing to draw when all is zero."""
    total = sum(max(float(segment["value"]), 0) for segment in segments) or 1.0
    turn, drawn, names = 0.0, [], []
    for row, segment in enumerate(segments):
        share = max(float(segment["value"]), 0) / total
        label = f"{segment['label']}: {segment['value']:,} ({share:.0%})"
        drawn.append(
            f'<circle class="slice {_colour(row)}" r="60" pathLength="100" stroke-dasharray="{share * 100:.3f} 100"'
            f' stroke-dashoffset="{-turn * 100:.3f}"><title>{html.escape(label)}</title></circle>'
        )
        names.append(label)
        turn += share
    ring = (
        f'<svg class="pie" viewBox="-92 -92 184 184" role="img"><g transform="rotate(-90)">{"".join(drawn)}</g></svg>'
    )
    return f'<div class="pie-box">{ring}{_legend(names)}</div>'


def _legend(names: list[str]) -> str:
    items = "".join(f'<li class="{_colour(row)}">{html.escape(name)}</li>' for row, name in enumerate(names))
    return f'<ul class="legend">{items}</ul>'


def _colour(row: int) -> str:
    return f"s{row % SERIES_COLOURS + 1}"
