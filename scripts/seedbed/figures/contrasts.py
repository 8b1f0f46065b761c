"""The forest plot: every contrast with its intervals and numbers, one panel per family and metric."""

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator

from seedbed.analysis import statistics
from seedbed.analysis.contrasts import SYSTEM
from seedbed.analysis.differences import OF_GAINS
from seedbed.analysis.verdicts import is_withheld, verdict
from seedbed.core import wording
from seedbed.core.rows import Row, grouped
from seedbed.core.wording import Words
from seedbed.core.words import (
    better,
    change,
    difference_bound,
    difference_range,
    framework_name,
    level_text,
    metric_name,
    recipe_text,
    unit_of,
    with_unit,
)
from seedbed.figures.base import GREY, Data, empty_figure, finish, sides_text, swept_values, values_of
from seedbed.figures.captions import Caption, make_caption
from seedbed.figures.names import clean, columns, series_name, tell_apart, word

FAMILIES = wording.data("figures/labels")["contrasts"]  # titles of panels, by family of contrasts
WORDS = Words("figures/contrasts")
MAX_CONTRASTS = 16  # of a family
MAX_OF_METRIC = 8  # of a family and metric, where there are several
TITLE_LETTERS = 48  # of a line of a panel's title
MAX_LETTERS, LETTERS_BESIDE = 56, 30  # of a line of a row's name, and of one beside the numbers
EQUAL, BEST = sns.color_palette("colorblind")[2], sns.color_palette("colorblind")[4]  # no colours of inits
STYLES: dict[str, dict[str, Any]] = {
    "equal": {"color": EQUAL, "marker": "o", "markersize": 7},
    "best": {"color": BEST, "marker": "D", "markersize": 7},
}
T_INTERVAL: dict[str, Any] = {"color": "black", "linewidth": 1.1, "marker": "|", "markersize": 5}
HOLLOW: dict[str, Any] = {"markerfacecolor": "white"}  # of a difference that bears no verdict
ROW, LINE, ABOVE = 0.36, 0.18, 0.06  # inches of a bar, of a line of text above it, and above all
BAR, THICK = 5, 10  # points


def contrasts(data: Data) -> tuple[Figure, Caption]:
    """Differences in the units of their metrics with their intervals, grouped by family and metric."""
    # of several metrics all are drawn where methods are compared, and the first where anything else is
    known = [row for one in data.by_metric.values() for row in one.contrasts]
    asked = [row for row in known if row["family"] == "method" or row["metric"] == data.metric]
    defined = [row for row in asked if row["delta"] is not None]
    families = grouped(defined, "family", "metric")
    limit = MAX_OF_METRIC if len({row["metric"] for row in defined}) > 1 else MAX_CONTRASTS
    # what each side can do at its best comes first
    shown = {
        key: sorted(rows, key=lambda row: row["selection"] != "best")[:limit]
        for key, rows in families.items()
    }
    if limit == MAX_OF_METRIC:
        shown = {key: _best_alone(rows) for key, rows in shown.items()}
    if not shown:
        return _nothing(asked)
    texts = {
        key: list(zip(_row_names(data, key[0], rows), (_numbers(data, row) for row in rows), strict=True))
        for key, rows in shown.items()
    }
    heights = [ABOVE + sum(ROW + LINE * _lines(*pair) for pair in pairs) for pairs in texts.values()]
    figure = empty_figure(sum(heights) + 0.9 * len(shown) + 0.9)
    axes = figure.subplots(len(shown), 1, squeeze=False, height_ratios=heights)
    for (key, rows), axis in zip(shown.items(), axes[:, 0], strict=True):
        _draw_family(axis, key[0], rows, texts[key])
    several_metrics = limit == MAX_OF_METRIC
    caption = make_caption(
        WORDS,
        "caption",
        Facts(
            **_drawn(data, [row for rows in shown.values() for row in rows]),
            hidden=sum(map(len, families.values())) - sum(map(len, shown.values())),
            most=limit,
            several_metrics=several_metrics,
            best_alone=several_metrics and any(row["selection"] == "best" for row in defined),
            other_scores=len(asked) < len(known),
            undefined=len(asked) - len(defined),
        ),
    )
    return finish(figure, _handles(data, shown), caption), caption


def _nothing(asked: Sequence[Row]) -> tuple[Figure, Caption]:
    """A figure that says why there is no difference to draw."""
    caption = Caption(WORDS.say("nothing", len(asked)))
    figure = empty_figure(1.2)
    figure.subplots().set_axis_off()
    return finish(figure, [], caption), caption


def _best_alone(rows: Sequence[Row]) -> Sequence[Row]:
    """Where there are several metrics, equal recipes only where no side has a best one."""
    return [row for row in rows if row["selection"] == "best"] or rows


@dataclass(frozen=True)
class Facts:
    """What the caption of the differences tells.

    Attributes:
        answers: whether models write answers, and so have several metrics.
        metric: the main one.
        seeds: the fewest seeds of a side, and the most where they differ.
        intervals: whether any difference has an interval.
        interval, level, level_of_equivalence: 95% interval, 0.95, 90%.
        withheld: numbers of differences without a verdict, by the reason.
        differences, without_interval: how many are drawn, and how many of them without an interval.
        own_best, margins, tested: whether any is at each side's best recipe, has a margin of equivalence, is
            tested for equivalence.
        hidden: how many are left out, of which at most `most` of a family (and metric) are drawn.
        several_metrics: whether families are drawn by each metric.
        best_alone: whether of these only those at each side's best recipe are drawn.
        other_scores: whether there are differences of other metrics.
        undefined: how many have no number.
    """

    answers: bool
    metric: str
    seeds: list[int]
    intervals: bool
    interval: str
    level: float
    level_of_equivalence: str
    withheld: Mapping[str, int]
    differences: int
    without_interval: int
    own_best: bool
    margins: bool
    tested: bool
    hidden: int
    most: int
    several_metrics: bool
    best_alone: bool
    other_scores: bool
    undefined: int


def _drawn(data: Data, rows: Sequence[Row]) -> dict[str, Any]:
    """What `Facts` tell of the differences that are drawn."""
    sizes = sorted({size for row in rows for size in (row["n_a"], row["n_b"])})
    return {
        "answers": data.generates,
        "metric": data.metric,
        "seeds": list(dict.fromkeys((sizes[0], sizes[-1]))),
        "intervals": any(row["ci_low"] is not None for row in rows),
        "interval": data.level,
        "level": data.confidence,
        "level_of_equivalence": _equivalence_level(data),
        "withheld": Counter(verdict(row) for row in rows if is_withheld(row)),
        "differences": len(rows),
        "without_interval": sum(row["ci_low"] is None for row in rows),
        "own_best": any(row["selection"] == "best" for row in rows),
        "margins": any(row["margin"] is not None for row in rows),
        "tested": any(map(_is_tested, rows)),
    }


def _is_tested(row: Row) -> bool:
    """Whether a contrast is tested for equivalence."""
    return row["equivalence_low"] is not None


def _equivalence_level(data: Data) -> str:
    """90%"""
    return level_text(2 * data.confidence - 1)


def _handles(data: Data, shown: dict[tuple[str, str], Sequence[Row]]) -> list[Any]:
    rows = [row for family in shown.values() for row in family]
    selections = [name for name in STYLES if any(row["selection"] == name for row in rows)]
    names = {"equal": "at_equal_recipe" if len(selections) > 1 else "difference", "best": "at_own_best"}
    known = any(row["ci_low"] is not None for row in rows)
    more = f", {data.level}" if known else ""
    handles: list[Any] = [
        Line2D([], [], linewidth=BAR if known else 0, label=word(names[name]) + more, **_mark(name))
        for name in selections
    ]
    if any(map(is_withheld, rows)):
        mark = {"marker": "o", "markersize": 7, "color": GREY, "markeredgecolor": "black", **HOLLOW}
        handles.append(Line2D([], [], linewidth=0, label=word("no_verdict"), **mark))
    if any(row["t_low"] is not None for row in rows):
        handles.append(Line2D([], [], label=word("t_interval"), **T_INTERVAL))
    if any(map(_is_tested, rows)):
        label = word("for_equivalence", level=_equivalence_level(data))
        handles.append(Line2D([], [], color=GREY, linewidth=THICK, solid_capstyle="butt", label=label))
    if any(row["margin"] is not None for row in rows):
        handles.append(Patch(label=word("equivalence_margin"), **_MARGIN))
    return handles


_MARGIN: dict[str, Any] = {"facecolor": "0.87", "edgecolor": "0.6", "linewidth": 0.6}


def _mark(selection: str) -> dict[str, Any]:
    return {**STYLES[selection], "markeredgecolor": "black", "solid_capstyle": "butt"}


def _lines(name: str, numbers: str) -> int:
    """The lines of text above a bar: a short name stands beside the numbers, a longer one above them."""
    below = numbers.count("\n") + 1
    return below if _is_beside(name) else name.count("\n") + 1 + below


def _is_beside(name: str) -> bool:
    return "\n" not in name and columns(name) <= LETTERS_BESIDE


def _draw_family(axis: Axes, family: str, rows: Sequence[Row], texts: Sequence[tuple[str, str]]) -> None:
    """Draw differences from the top down, in inches: names and numbers in a line, the bar below them."""
    metric = rows[0]["metric"]
    factor = unit_of(metric).factor
    limits = _limits(rows, factor)
    axis.set_xlim(limits)
    top = ABOVE
    for row, (name, numbers) in zip(rows, texts, strict=True):
        text = {"transform": axis.get_yaxis_transform(), "va": "top", "fontsize": 9}
        axis.text(0, top, name, ha="left", **text).set_in_layout(False)
        below = 0 if _is_beside(name) else LINE * (name.count("\n") + 1)
        axis.text(1, top + below, numbers, ha="right", **text).set_in_layout(False)
        top += LINE * _lines(name, numbers)
        _draw_difference(axis, row, top, limits, factor)
        top += ROW
    axis.set_ylim(top, 0)
    axis.set_yticks([])
    axis.spines["left"].set_visible(False)
    axis.xaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10]))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value)))
    one = {_contrast_name(row) for row in rows}
    title = FAMILIES.get(family, family)
    # of two systems the only row names them
    ending = f": {next(iter(one))}" if len(one) == 1 and (family != SYSTEM or len(rows) > 1) else ""
    if metric != "accuracy":
        title = word("title_of_metric", family=title, metric=metric_name(metric), direction=better(metric))
        title, ending = textwrap.fill(f"{title}{ending}", TITLE_LETTERS), ""
    elif columns(f"{title}{ending}") > TITLE_LETTERS:
        title, ending = textwrap.fill(f"{title}{ending}", TITLE_LETTERS), ""
    axis.set_title(f"{title}{ending}", x=0, fontweight="bold")
    axis.set_xlabel(with_unit(word("difference"), unit_of(metric).difference))


def _draw_difference(axis: Axes, row: Row, top: float, limits: tuple[float, float], factor: int) -> None:
    """Draw a difference with its intervals, ROW inches high."""
    height = top + 0.13
    if row["margin"] is not None:
        corner, size = (-factor * row["margin"], top), (2 * factor * row["margin"], ROW - 0.04)
        axis.add_patch(Rectangle(corner, *size, zorder=0, **_MARGIN))
    style = _mark(row["selection"])
    bar = {"color": style["color"], "solid_capstyle": "butt", "zorder": 2}
    if row["ci_low"] is not None:
        bounds = row["ci_low"], row["ci_high"]
        _draw_interval(axis, bounds, height, limits, bar | {"linewidth": BAR}, factor)
    if _is_tested(row):
        tested = row["equivalence_low"], row["equivalence_high"]
        _draw_interval(axis, tested, height, limits, bar | {"linewidth": THICK}, factor)
    if row["t_low"] is not None:
        over_seeds = row["t_low"], row["t_high"]
        _draw_interval(axis, over_seeds, height + 0.13, limits, T_INTERVAL, factor)
    ends = [top, top + ROW - 0.04]  # clear of the text below
    axis.plot([0, 0], ends, color="black", linewidth=1, zorder=1, solid_capstyle="butt")
    style |= HOLLOW if is_withheld(row) else {}
    axis.plot(factor * row["delta"], height, linestyle="none", zorder=4, **style)


def _numbers(data: Data, row: Row) -> str:
    """The difference and its interval, cut at the bounds of a difference (or of one of two differences).

    Where frameworks are tested for equivalence, a second line has that test's interval and its verdict.
    """
    metric = row["metric"]
    most = difference_bound(metric, of_gains=row["family"] in OF_GAINS)

    def cut(low: float, high: float) -> str:
        return difference_range(metric, max(low, -most), min(high, most))

    text = change(metric, row["delta"])
    if row["ci_low"] is not None:
        text += f"  ({cut(row['ci_low'], row['ci_high'])})"
    if _is_tested(row):
        tested = cut(row["equivalence_low"], row["equivalence_high"])
        found = word("no_verdict") if is_withheld(row) else row["equivalence"]
        text += f"\n{_equivalence_level(data)}: {tested}, {found}"
    return text


def _limits(rows: Sequence[Row], factor: int) -> tuple[float, float]:
    """The scale in points or nats: zero, all differences, and twice the median half interval on both sides.

    One run that collapsed makes an interval so wide that the others would shrink to dots.
    """
    deltas = [factor * row["delta"] for row in rows]
    halves = [factor * (row["ci_high"] - row["ci_low"]) / 2 for row in rows if row["ci_low"] is not None]
    margins = [factor * row["margin"] for row in rows if row["margin"] is not None]
    room = 2 * statistics.median(halves) if halves else 0.0
    room = max(
        [
            room,
            1.2 * max(margins, default=0.0),
            0.15 * (max(*deltas, 0.0) - min(*deltas, 0.0)),
            0.005 * factor,
        ]
    )
    return min(*deltas, 0.0) - room, max(*deltas, 0.0) + room


def _draw_interval(
    axis: Axes,
    bounds: tuple[float, float],
    height: float,
    limits: tuple[float, float],
    style: dict[str, Any],
    factor: int,
) -> None:
    """Draw a line between the bounds times `factor`, with an arrow where it leaves the scale."""
    low, high = (factor * bound for bound in bounds)
    ends = [max(low, limits[0]), min(high, limits[1])]
    axis.plot(ends, [height] * 2, **style)
    for end, beyond, sign in ((ends[0], low < limits[0], "<"), (ends[1], high > limits[1], ">")):
        if beyond:
            axis.plot(end, height, sign, color=style["color"], markersize=7, clip_on=False, zorder=5)


def _tick(value: float) -> str:
    """+5, 0, −5: as differences are written elsewhere."""
    return "0" if abs(value) < 1e-9 else f"{value:+g}".replace("-", "−")


def _row_names(data: Data, family: str, rows: Sequence[Row]) -> list[str]:
    """The names of the rows of a family: contrast, dataset, model, framework, init, recipes, if they vary."""
    several = {key: len({row[key] for row in rows}) > 1 for key in ("contrast", "dataset", "model")}
    names = []
    for row in rows:
        framework, _, init = row["a"].partition("/")
        parts = [_contrast_name(row)] if several["contrast"] else []
        parts += [row[key] for key in ("dataset", "model") if several[key] and family != key]
        named = data.column_key == "framework" and family != "framework" and len(data.columns) > 1
        parts += [framework_name(framework)] if named else []
        several_inits = family == "method" and len(data.inits) > 1
        parts += [series_name(init)] if family in ("framework", "model") or several_inits else []
        if family != SYSTEM and len(values_of(data, "recipe")) > 1:
            parts.append(_recipes(data, row))
        names.append(", ".join(map(clean, filter(None, parts))) or _contrast_name(row))
    return [_two_lines(name) for name in tell_apart(names, _two_lines, 2 * MAX_LETTERS)]


def _contrast_name(row: Row) -> str:
    """checkpoint − random weights"""
    if row["family"] == SYSTEM:
        return " − ".join(clean(row[side]) for side in ("recipe_a", "recipe_b"))
    if row["family"] == "framework":
        return " − ".join(framework_name(row[side].partition("/")[0]) for side in "ab")
    sides = clean(row["contrast"]).split(" - ")
    return " − ".join(wording.data("figures/labels")["inits_short"].get(side, side) for side in sides)


def _two_lines(name: str) -> str:
    """A name on at most two lines, broken after a comma or colon if the rest fits, else shortened."""
    if len(name) <= MAX_LETTERS:
        return name
    signs = [place + 1 for place, sign in enumerate(name[:MAX_LETTERS]) if sign in ",:"]
    fitting = [place for place in signs if len(name) - place - 1 <= MAX_LETTERS]
    space = max(fitting, default=name.rfind(" ", 0, MAX_LETTERS) + 1 or MAX_LETTERS)
    first, rest = name[:space].rstrip(), name[space:].lstrip()
    return f"{first}\n{rest if len(rest) <= MAX_LETTERS else rest[: MAX_LETTERS - 1] + '…'}"


def _recipes(data: Data, row: Row) -> str:
    """The recipe of both sides; or own best: learning rate 1e-4 / 3e-4, where each side has its own.

    Each side of a difference between datasets is a gain, and has up to two recipes: too many for a name.
    """
    if row["family"] == "method":
        swept = [swept_values(data, row[side]) for side in ("recipe_a", "recipe_b")]
        values = " / ".join(dict.fromkeys(filter(None, swept)))
        return word("own_best_of", values=values) if row["selection"] == "best" else values
    if row["selection"] == "equal":
        return recipe_text(data.reporting["recipes"], row["recipe_a"])
    family = data.reporting["recipes"][row["recipe_a"].split("/")[0]]["family"]
    several = len(values_of(data, "recipe_family")) > 1
    kind = word("own_best_in", family=family) if several else word("own_best")
    if row["family"] in OF_GAINS:
        return kind
    values = sides_text(data, (row["recipe_a"], row["recipe_b"]))
    return word("own_best_sides", own_best=kind, values=values)
