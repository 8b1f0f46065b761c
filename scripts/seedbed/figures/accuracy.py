"""Figures of final accuracies: every seed, the mean with its interval, and what has to be beaten."""

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, NullLocator

from seedbed.analysis.table_rows import SummaryRow
from seedbed.core.bag_of_words import bag_name, bag_remarks
from seedbed.core.known import known
from seedbed.core.rows import grouped
from seedbed.core.wording import Words
from seedbed.core.words import axis_label, bounds_of, key_text, short_number, unit_of, value_text
from seedbed.figures.base import (
    BAG,
    GREY,
    MAJORITY,
    NAMED_LETTERS,
    STROKE,
    Data,
    Group,
    Look,
    capped,
    empty_figure,
    finish,
    give_room,
    limits_of,
    line_handle,
    mark,
    panels,
    place_name,
    recipe_groups,
    runs_of,
    share_limits,
    state_handles,
    state_of,
)
from seedbed.figures.captions import Caption, make_caption
from seedbed.figures.names import word, wrap_names

WORDS = Words("figures/accuracy")
CAPPED: dict[str, Any] = {"color": "black", "linewidth": 1.3, "marker": "_", "markersize": 7}
ABOVE: dict[str, Any] = {
    "xycoords": "axes fraction",
    "textcoords": "offset points",
    "fontsize": 9,
    "color": GREY,
}
# Of the room that a swept value has on its axis: where to either side the mean and the seeds of an init are.
MEAN_PLACE, SEED_PLACES = 0.13, (0.28, 0.44)
SIDES = (-1, 1)
ROW, TITLE, GAP = 0.36, 0.2, 0.05  # inches of a line of scores, of a line of a group's title, below a group
TIGHTEST = 0.9  # of these inches, where legend and labels take the others
GROUP_LETTERS, NAME_LETTERS = 40, 20  # of a line of a group's title, of a line's name
MOST_TICKS, LOG_FROM = (
    7,
    10,
)  # of points: ticks of an axis, and the ratio of values from which it is logarithmic
WIDEST = 0.3  # room of a value, of the whole axis
NEAR = 0.3  # of the range of the runs: a baseline further away is named, not drawn

# --- final accuracies ---------------------------------------------------------------------------------------


def test_accuracy(data: Data) -> tuple[Figure, Caption]:
    """Test accuracy of the selected checkpoints: every seed, mean and interval, and what has to be beaten."""
    places = grouped(data.summary, "dataset", "model")
    shown, note = capped(list(places))
    groups = {place: groups_of(data, places[place]) for place in shown}
    named = len(shown) > 1
    names = wrap_names([place_name(data, *place) for place in shown], NAMED_LETTERS)
    above = [0.55 + (0.2 + 0.17 * (name.count("\n") + 1)) * named for name in names]
    heights = [more + height_of(groups[place]) for place, more in zip(shown, above, strict=True)]
    figure = empty_figure(sum(heights) + 0.85)
    axes = figure.subplots(len(shown), 1, squeeze=False, height_ratios=heights)[:, 0]
    states: set[str] = set()
    for place, name, axis in zip(shown, names, axes, strict=True):
        states |= draw_groups(axis, data, groups[place])
        share_limits([axis], 0, limits_of(data.metric))
        _label_references(axis, data, places[place])
        if named:
            axis.set_title(name, pad=29)
    axes[-1].set_xlabel(axis_label("test", data.metric))
    remarks = bag_remarks(data.summary)
    level = data.level_of_intervals
    words = (data.metric, data.seeds, level, data.task.words.constant, _bags(data), remarks, note)
    caption = make_caption(WORDS, "test_accuracy", *words)
    handles = [*score_handles(data), *state_handles(states, data.weak)]
    finish(figure, handles, caption, legend_rows=1)
    give_room(figure, axes, TIGHTEST * sum(height_of(groups[place]) for place in shown))
    return figure, caption


def test_metric(data: Data) -> tuple[Figure, Caption]:
    """The same by the metric that the datasets choose."""
    return test_accuracy(data)


def groups_of(data: Data, rows: Sequence[SummaryRow]) -> list[Group]:
    """The groups of a dataset and model, for one framework (or init) after another; several are named."""
    several = len(data.columns) > 1
    return [
        replace(group, title=", ".join(filter(None, (data.column_name(name) * several, group.title))))
        for name in data.columns
        for group in recipe_groups(data, rows, name)
    ]


def score_handles(data: Data) -> list[Any]:
    """The legend entries of what stands on a line of scores."""
    style = {"marker": "o", "markersize": 5.5, "color": "0.5", "markeredgecolor": "white"}
    return [
        Line2D([], [], label=word("one_seed"), linestyle="none", **style),
        Line2D([], [], label=word("mean"), linestyle="none", **STROKE),
        *data.interval_handle,
    ]


def _title_lines(group: Group) -> list[str]:
    return textwrap.wrap(group.title, GROUP_LETTERS)


def height_of(groups: Sequence[Group]) -> float:
    """The inches that `draw_groups` needs."""
    lines = sum(len(_title_lines(group)) for group in groups)
    return TITLE * lines + sum(ROW * len(group.rows) + GAP for group in groups)


def draw_groups(axis: Axes, data: Data, groups: Sequence[Group]) -> set[str]:
    """Draw groups from the top down, in inches; returns the states (collapsed, weak) that occur.

    The lines of what has to be beaten stop where a group has its title.
    """
    states: set[str] = set()
    height, ticks, names = 0.0, [], []
    labels = [look.label for look in data.series.values()]
    series = dict(zip(data.series, wrap_names(labels, NAME_LETTERS), strict=True))
    for group in groups:
        for line in _title_lines(group):
            style = {"fontsize": 9, "color": GREY, "transform": axis.get_yaxis_transform(), "va": "center"}
            axis.text(0.0, height + TITLE / 2, line, **style).set_in_layout(False)
            height += TITLE
        if group.rows:
            _draw_references(axis, group.rows[0], (height, height + ROW * len(group.rows)))
        order = list(data.series)
        for row in sorted(group.rows, key=lambda row: order.index(row[data.series_key])):
            ticks.append(height + ROW / 2)
            names.append(series[row[data.series_key]])
            states |= _draw_row(axis, data, row, height)
            height += ROW
        height += GAP
    axis.set_ylim(height, 0)
    axis.set_yticks(ticks, names)
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)
    axis.xaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 5, 10]))
    return states


def _draw_row(axis: Axes, data: Data, row: SummaryRow, height: float) -> set[str]:
    """Mean and interval on top; below them one mark per seed, each on its own line."""
    look, metric = data.look(row), row.metric
    factor = unit_of(metric).factor
    runs = runs_of(data, row)
    if row.interval is not None:
        bar = {"color": look.colour, "linewidth": 7, "solid_capstyle": "butt", "alpha": 0.45}
        axis.plot(interval_of(row), [height + 0.1] * 2, **bar)
    if row.mean is not None:
        axis.plot(factor * row.mean, height + 0.1, **STROKE)
    heights = height + np.linspace(0.21, 0.29, len(runs)) if len(runs) > 1 else [height + 0.25]
    states = set()
    for run, level in zip(runs, heights, strict=True):
        value = run.value(f"test_{metric}")
        if value is not None:
            state = state_of(data.task, run)
            style = mark(look, state, len(runs))
            axis.plot(factor * value, level, linestyle="none", zorder=3, **style)
            states.add(state)
    return states


def interval_of(row: SummaryRow) -> np.ndarray:
    """The interval of a summary row in drawn units, cut at the bounds of its metric."""
    unit, (least, most) = unit_of(row.metric), bounds_of(row.metric)
    return unit.factor * np.clip(known(row.interval), least, most)


def _bags(data: Data) -> list[str]:
    """The names of the baselines in the figure: bag of words, bag of characters."""
    return list(dict.fromkeys(bag_name(row) for row in data.summary if row.bag_of_words is not None))


def _draw_references(axis: Axes, row: SummaryRow, heights: tuple[float, float]) -> None:
    """Draw the baselines, if the task has any."""
    if row.majority_share is None:
        return
    factor = unit_of(row.metric).factor
    axis.plot([factor * row.majority_share] * 2, heights, zorder=0, **MAJORITY)
    if row.bag_of_words is not None:
        axis.plot([factor * row.bag_of_words] * 2, heights, zorder=0, **BAG)


def _baselines(data: Data, row: SummaryRow) -> list[tuple[str, float, dict[str, Any]]]:
    """Name, value and line style of the baselines; there may be no bag of words."""
    found = [
        (data.task.words.constant, row.majority_share, MAJORITY),
        (bag_name(row), row.bag_of_words, BAG),
    ]
    return [each for each in found if each[1] is not None]


def _named_references(data: Data, rows: Sequence[SummaryRow]) -> list[tuple[str, float]]:
    """The baselines of a panel in words, and their values: of bags of several sizes that of the largest."""
    row = rows[0]
    found = [(f"{name} {value_text(row.metric, share)}", share) for name, share, _ in _baselines(data, row)]
    bags = {each.train_size: each.bag_of_words for each in rows if each.bag_of_words is not None}
    if len(bags) < 2:
        return found
    largest = max(bags, key=known)
    return [found[0], (word("bag_of_each_size", bag=bag_name(row)), bags[largest])]


def _label_references(axis: Axes, data: Data, rows: Sequence[SummaryRow]) -> None:
    """Name the baselines above the panel, one per line, each written inwards from its position."""
    low, high = axis.get_xlim()
    for line, (text, share) in enumerate(_named_references(data, rows)):
        value = unit_of(rows[0].metric).factor * share
        inwards = "left" if value < (low + high) / 2 else "right"
        axis.annotate(
            text,
            (value, 1),
            xycoords=("data", "axes fraction"),
            xytext=(0, 2 + 12 * line),
            textcoords="offset points",
            ha=inwards,
            va="bottom",
            fontsize=9,
            color=GREY,
        )


# --- sweeps -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sweep:
    """One row of the figure of sweeps: recipes by one key, in which alone they differ unless they are points.

    They are of one family, unless families are the series: then `family` is empty.
    """

    dataset: str
    model: str
    family: str
    key: str
    fixed: tuple[tuple[str, Any], ...]
    values: dict[str, Any]  # by recipe
    points: bool = False  # they differ in other keys, too, so no line joins them

    @property
    def place(self) -> tuple[str, str]:
        """Dataset and model."""
        return self.dataset, self.model


def test_accuracy_by_recipe(data: Data) -> tuple[Figure, Caption]:
    """Test accuracy by swept value: one line per init, one panel per framework, one row per other value."""
    shown, note = capped(sweeps_of(data))
    names = [sweep_name(data, sweep) for sweep in shown]
    figure, axes = panels(data, names, height=2.5, pad=29, beside=False)
    states: set[str] = set()
    for sweep, line in zip(shown, axes, strict=True):
        for framework, axis in zip(data.frameworks, line, strict=True):
            states |= draw_sweep(axis, data, sweep, framework, data.summary)
            axis.set_xlabel(key_text(sweep.key))
        share_limits(line, 1, limits_of(data.metric))
        # of the sweep's size of training
        baselines = next(
            row for row in data.summary if row.dataset == sweep.dataset and row.recipe in sweep.values
        )
        for axis in line:
            _draw_baselines(axis, data, baselines)
        line[0].set_ylabel(axis_label("test", data.metric))
    handles = [
        *sweep_handles(data, list(data.series)),
        Line2D([], [], label=data.task.words.constant, **MAJORITY),
        *[Line2D([], [], label=name, **BAG) for name in _bags(data)],
        *state_handles(states, data.weak),
    ]
    remarks = bag_remarks(data.summary)
    level = data.level_of_intervals
    points = any(sweep.points for sweep in shown)
    words = (data.metric, data.seeds, level, data.task.words.constant, remarks, note, points)
    caption = make_caption(WORDS, "test_accuracy_by_recipe", *words)
    return finish(figure, handles, caption), caption


def test_metric_by_recipe(data: Data) -> tuple[Figure, Caption]:
    """The same by the metric that the datasets choose."""
    return test_accuracy_by_recipe(data)


def sweep_handles(data: Data, names: Sequence[str]) -> list[Line2D]:
    """The legend entries of swept series, of intervals and of the best recipe."""
    handles = [line_handle(data.series[name]) for name in names]
    if data.interval_handle:
        bar = {"color": "black", "linestyle": "none", "marker": "|", "markersize": 14, "markeredgewidth": 1.3}
        handles.append(Line2D([], [], label=data.level, **bar))
    star = {"marker": "*", "markersize": 11, "linestyle": "none", "color": "white"}
    return [*handles, Line2D([], [], label=word("best_on_validation"), markeredgecolor="black", **star)]


def sweeps_of(data: Data) -> list[Sweep]:
    """The sweeps of the experiment, in the order of the runs."""
    rows = {}
    for run in data.runs:
        swept = data.reporting["recipes"][run.recipe]["swept"]
        if not swept:
            continue
        key = "learning_rate" if "learning_rate" in swept else next(iter(swept))
        fixed = tuple((name, short_number(value)) for name, value in swept.items() if name != key)
        family = "" if data.series_key == "recipe_family" else run.recipe_family
        place = (run.dataset, run.model, family, key, fixed)
        rows.setdefault(place, {})[run.recipe] = swept[key]
    found = [Sweep(*place, values) for place, values in rows.items()]
    alike: dict[tuple[str, ...], list[Sweep]] = {}
    for sweep in found:
        alike.setdefault((*sweep.place, sweep.family, *_keys(sweep)), []).append(sweep)
    return [one for members in alike.values() for one in _by_key(data, members)]


def _by_key(data: Data, sweeps: Sequence[Sweep]) -> list[Sweep]:
    """Of points one sweep by each key, since they are not all combinations of their values; others as they
    are."""
    blocks = {recipe: data.reporting["recipes"][recipe] for sweep in sweeps for recipe in sweep.values}
    families: dict[str, list[Mapping[str, Any]]] = {}
    for block in blocks.values():
        families.setdefault(block["family"], []).append(block["swept"])
    if all(map(_is_grid, families.values())):
        return list(sweeps)
    by_key = {key: {name: block["swept"][key] for name, block in blocks.items()} for key in _keys(sweeps[0])}
    return [
        replace(sweeps[0], key=key, fixed=(), values=values, points=True)
        for key, values in by_key.items()
        if len(set(map(short_number, values.values()))) > 1
    ]


def _keys(sweep: Sweep) -> list[str]:
    return [sweep.key, *(name for name, _ in sweep.fixed)]


def _is_grid(settings: Sequence[Mapping[str, Any]]) -> bool:
    """Whether settings are all combinations of their values."""
    columns = zip(*(map(short_number, each.values()) for each in settings), strict=True)
    return math.prod(len(set(column)) for column in columns) == len(settings)


def sweep_name(data: Data, sweep: Sweep) -> str:
    """Dataset and model of a sweep, and its fixed values."""
    fixed = [f"{key_text(key)} {value}" for key, value in sweep.fixed]
    place = place_name(data, sweep.dataset, sweep.model)
    return ", ".join(filter(None, [place, sweep.family, *fixed]))


def draw_sweep(axis: Axes, data: Data, sweep: Sweep, column: str, summary: Sequence[SummaryRow]) -> set[str]:
    """Draw one sweep: the means of each series, joined by a line, and seeds beside them; return their states.

    Args:
        axis: the panel.
        data: the tables.
        sweep: one of `sweeps_of`.
        column: the framework or init of the panel.
        summary: rows of the summary by one metric.
    """
    places, room = _sweep_axis(axis, sweep)
    here = [row for row in summary if row[data.column_key] == column]
    best = {(data.look(row).name, row.recipe) for row in here if _in_sweep(row, sweep, "best")}
    equal = [row for row in here if _in_sweep(row, sweep, "equal")]
    names = [name for name in data.series if any(data.look(row).name == name for row in equal)]
    states: set[str] = set()
    for name, (mean_place, seed_places) in zip(names, _lanes(len(names)), strict=True):
        rows = [row for row in equal if data.look(row).name == name]
        rows.sort(key=lambda row: places[row.recipe])
        x = [places[row.recipe] + mean_place * room for row in rows]
        factor, look = unit_of(rows[0].metric).factor, data.series[name]
        means = [np.nan if row.mean is None else factor * row.mean for row in rows]
        if not sweep.points:
            axis.plot(x, means, linewidth=2, color=look.colour, linestyle=look.line)
        for row, place in zip(rows, x, strict=True):
            _draw_mean(axis, row, look, place, chosen=(name, row.recipe) in best)
            beside = [places[row.recipe] + end * room for end in seed_places]
            states |= _draw_seeds(axis, data, row, beside)
    return states


def _lanes(series: int) -> list[tuple[float, tuple[float, float]]]:
    """The positions of mean, first and last seed of each series, relative to the room of a swept value."""
    if series <= len(SIDES):
        return [
            (side * MEAN_PLACE, (side * SEED_PLACES[0], side * SEED_PLACES[1])) for side in SIDES[:series]
        ]
    width = 2 * SEED_PLACES[1] / series
    starts = [-SEED_PLACES[1] + width * place for place in range(series)]
    return [(start + 0.2 * width, (start + 0.55 * width, start + 0.85 * width)) for start in starts]


def _draw_mean(axis: Axes, row: SummaryRow, look: Look, place: float, *, chosen: bool) -> None:
    """Draw the mean, as a star if the recipe was chosen, and its interval on top."""
    if row.mean is None:
        return
    shape = {"marker": "*", "markersize": 13} if chosen else {"marker": look.marker, "markersize": 6}
    style = {"color": look.colour, "markeredgecolor": "black", "markeredgewidth": 0.8, "zorder": 4}
    axis.plot(place, unit_of(row.metric).factor * row.mean, **style, **shape)
    if row.interval is not None:
        axis.plot([place] * 2, interval_of(row), zorder=5, **CAPPED)


def _draw_seeds(axis: Axes, data: Data, row: SummaryRow, ends: Sequence[float]) -> set[str]:
    """Draw one mark per seed, side by side; return their states."""
    runs = runs_of(data, row)
    column, factor = f"test_{row.metric}", unit_of(row.metric).factor
    places = np.linspace(*ends, len(runs)) if len(runs) > 1 else [sum(ends) / 2]
    known = [(run, place) for run, place in zip(runs, places, strict=True) if run.value(column) is not None]
    for run, place in known:
        style = mark(data.look(run), state_of(data.task, run), len(runs))
        axis.plot(place, factor * run.value(column), linestyle="none", zorder=3, **style)
    return {state_of(data.task, run) for run, _ in known}


def _draw_baselines(axis: Axes, data: Data, row: SummaryRow) -> None:
    """Name the baselines above the panel; draw those near enough to leave the runs their room."""
    low, high = axis.get_ylim()
    reach = NEAR * (high - low)
    bounds = [low, high]
    for line, (name, share, style) in enumerate(_baselines(data, row)):
        value = unit_of(row.metric).factor * share
        near = low - reach <= value <= high + reach
        if near:
            axis.axhline(value, zorder=0, **style)
            bounds += [value - reach / 6, value + reach / 6]
        text = f"{name} {value_text(row.metric, share)}"
        text = text if near else word("off_the_scale", baseline=text)
        axis.annotate(text, (0, 1), xytext=(0, 2 + 12 * line), va="bottom", **ABOVE)
    least, most = limits_of(row.metric)
    axis.set_ylim(max(least, min(bounds)), min(most, max(bounds)))


def _in_sweep(row: SummaryRow, sweep: Sweep, selection: str) -> bool:
    here = (row.dataset, row.model, row.selection)
    return here == (sweep.dataset, sweep.model, selection) and row.recipe in sweep.values


def _sweep_axis(axis: Axes, sweep: Sweep) -> tuple[dict[str, float], float]:
    """Positions of the recipes on the x axis, and the room of each; sets ticks at the swept values.

    A learning rate is placed by its logarithm, another number by itself, anything else in order. Of points,
    values that lie apart have a tick.
    """
    values = list(sweep.values.values())
    places = _places(sweep, values)
    span = (max(places) - min(places)) or 1.0
    ticks = dict(zip(places, map(short_number, values), strict=True))  # recipes of two series share a place
    shown = _apart(ticks, span / MOST_TICKS) if sweep.points else list(ticks)
    axis.set_xticks(shown, [ticks[place] for place in shown])
    axis.xaxis.set_minor_locator(NullLocator())
    gaps = np.diff(sorted(places))
    room = min(WIDEST * span, *(gap for gap in gaps if gap > 0), span)
    axis.set_xlim(min(places) - 0.6 * room, max(places) + 0.6 * room)
    return dict(zip(sweep.values, places, strict=True)), room


def _places(sweep: Sweep, values: Sequence[Any]) -> list[float]:
    """Where the values of a sweep are on the x axis."""
    if not all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
        # values of points repeat
        order = list(dict.fromkeys(map(repr, values))) if sweep.points else None
        return [float(order.index(repr(value)) if order else at) for at, value in enumerate(values)]
    if sweep.key == "learning_rate":
        return [float(np.log10(value)) for value in values]
    return [float(value) for value in values]


def _apart(places: Iterable[float], least: float) -> list[float]:
    """Some of the places, none nearer to the one below it than `least`."""
    shown: list[float] = []
    for place in sorted(places):
        if not shown or place - shown[-1] >= least:
            shown.append(place)
    return shown
