"""Figures of final accuracies: every seed, the mean with its interval, and what has to be beaten."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, NullLocator

from seedbed.analysis.rows import Row, grouped
from seedbed.figures.base import (
    BAG,
    COLOURS,
    GREY,
    LINES,
    MAJORITY,
    MARKERS,
    STROKE,
    Data,
    Group,
    capped,
    finish,
    line_handle,
    mark,
    panels,
    place_name,
    recipe_groups,
    runs_of,
    seed_handles,
    share_limits,
    state_handles,
    state_of,
)
from seedbed.words import key_text, short_number

CAPPED: dict[str, Any] = {"color": "black", "linewidth": 1.3, "marker": "_", "markersize": 7}
ABOVE: dict[str, Any] = {
    "xycoords": "axes fraction",
    "textcoords": "offset points",
    "fontsize": 9,
    "color": GREY,
}
# Of the room that a swept value has on its axis: where to either side the mean and the seeds of an init are.
MEAN_PLACE, SEED_PLACES = 0.13, (0.28, 0.44)
WIDEST = 0.3  # room of a value, of the whole axis
NEAR = 0.3  # of the range of the runs: a baseline further away is named, not drawn

# --- final accuracies ---------------------------------------------------------------------------------------


def test_accuracy(data: Data) -> tuple[Figure, str]:
    """Test accuracy of the selected checkpoints: every seed, mean and interval, and what has to be beaten."""
    places = grouped(data.summary, "dataset", "model")
    shown, note = capped(list(places))
    lines = {
        place: max(len(recipe_groups(data, places[place], name)) for name in data.frameworks)
        for place in shown
    }
    height = 0.75 + max(lines.values()) * (0.3 + 0.62 * len(data.inits))
    figure, axes = panels(data, [", ".join(place) for place in shown], height=height, pad=31)
    states: set[str] = set()
    for place, line in zip(shown, axes, strict=True):
        for framework, axis in zip(data.frameworks, line, strict=True):
            groups = recipe_groups(data, places[place], framework)
            states |= _draw_groups(axis, data, groups)
        share_limits(line, 0)
        for axis in line:
            _label_references(axis, places[place][0])
            axis.yaxis.set_tick_params(labelleft=axis is line[0])
    for axis in axes[-1]:
        axis.set_xlabel("test accuracy (%)")
    caption = (
        "Accuracy on the test split in per cent, of the checkpoint that is best on validation. Small marks: "
        f"one seed each; stroke: their mean ({data.seeds}){data.interval('bar', ', cut at 0 and 100%')}. "
        f"Dotted: always the majority class; dash-dotted: bag of words.{note}"
    )
    handles = [
        *seed_handles(data),
        Line2D([], [], label="mean", linestyle="none", **STROKE),
        *data.interval_handle,
    ]
    return finish(figure, [*handles, *state_handles(states)], caption), caption


test_accuracy.__test__ = False


def _draw_groups(axis: Axes, data: Data, groups: Sequence[Group]) -> set[str]:
    """Draw groups from the top down; returns the states (collapsed, weak) that occur.

    The lines of what has to be beaten stop where a group has its title.
    """
    states: set[str] = set()
    height, ticks, names = 0.0, [], []
    for group in groups:
        for line in textwrap.wrap(group.title, 48):
            style = {"fontsize": 9, "color": GREY, "transform": axis.get_yaxis_transform(), "va": "center"}
            axis.text(0.0, height, line, **style).set_in_layout(False)
            height += 0.3
        if group.rows:
            _draw_references(axis, group.rows[0], (height - 0.08, height + len(group.rows)))
        for row in sorted(group.rows, key=lambda row: data.inits.index(row["init"])):
            ticks.append(height + 0.3)
            names.append(row["init"])
            states |= _draw_row(axis, data, row, height)
            height += 1
        height += 0.45
    axis.set_ylim(height - 0.35, -0.35)
    axis.set_yticks(ticks, names)
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)
    axis.xaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 5, 10]))
    return states


def _draw_row(axis: Axes, data: Data, row: Row, height: float) -> set[str]:
    """Mean and interval on top, below them a mark a seed, each on its own line."""
    init = row["init"]
    runs = runs_of(data, row)
    if row["ci_low"] is not None:
        bounds = np.clip([100 * row["ci_low"], 100 * row["ci_high"]], 0, 100)
        axis.plot(
            bounds, [height + 0.15] * 2, color=COLOURS[init], linewidth=9, solid_capstyle="butt", alpha=0.45
        )
    axis.plot(100 * row["mean"], height + 0.15, **STROKE)
    heights = height + np.linspace(0.42, 0.75, len(runs)) if len(runs) > 1 else [height + 0.5]
    states = set()
    for run, level in zip(runs, heights, strict=True):
        state = state_of(run)
        axis.plot(
            100 * run["test_accuracy"], level, linestyle="none", zorder=3, **mark(init, state, len(runs))
        )
        states.add(state)
    return states


def _draw_references(axis: Axes, row: Row, heights: tuple[float, float]) -> None:
    axis.plot([100 * row["majority_share"]] * 2, heights, zorder=0, **MAJORITY)
    axis.plot([100 * row["bag_of_words"]] * 2, heights, zorder=0, **BAG)


def _label_references(axis: Axes, row: Row) -> None:
    """Name the baselines above the panel, each on a line of its own and inwards from its place."""
    low, high = axis.get_xlim()
    for line, (key, name) in enumerate(
        (("majority_share", "majority class"), ("bag_of_words", "bag of words"))
    ):
        value = 100 * row[key]
        inwards = "left" if value < (low + high) / 2 else "right"
        axis.annotate(
            f"{name} {value:.1f}%",
            (value, 1),
            xycoords=("data", "axes fraction"),
            xytext=(0, 3 + 13 * line),
            textcoords="offset points",
            ha=inwards,
            va="bottom",
            fontsize=9,
            color=GREY,
        )


# --- sweeps -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Sweep:
    """One row of the figure of sweeps: recipes of a family that differ in one key alone."""

    dataset: str
    model: str
    family: str
    key: str
    fixed: tuple[tuple[str, Any], ...]
    values: dict[str, Any]  # by recipe


def test_accuracy_by_recipe(data: Data) -> tuple[Figure, str]:
    """Test accuracy over the swept value: a line an init, a panel a framework, a row what else is swept."""
    shown, note = capped(_sweeps(data))
    names = [_sweep_name(data, sweep) for sweep in shown]
    figure, axes = panels(data, names, height=3.9, pad=31)
    states: set[str] = set()
    for sweep, line in zip(shown, axes, strict=True):
        for framework, axis in zip(data.frameworks, line, strict=True):
            states |= _draw_sweep(axis, data, sweep, framework)
            axis.set_xlabel(key_text(sweep.key))
        share_limits(line, 1)
        baselines = next(row for row in data.summary if row["dataset"] == sweep.dataset)
        for axis in line:
            _draw_baselines(axis, baselines)
        line[0].set_ylabel("test accuracy (%)")
    handles: list[Any] = [line_handle(init) for init in data.inits]
    if data.interval_handle:
        bar = {"color": "black", "linestyle": "none", "marker": "|", "markersize": 14, "markeredgewidth": 1.3}
        handles.append(Line2D([], [], label=f"{data.level} interval", **bar))
    star = {"marker": "*", "markersize": 11, "linestyle": "none", "color": "white"}
    handles.append(Line2D([], [], label="best on validation", markeredgecolor="black", **star))
    handles += [
        Line2D([], [], label="majority class", **MAJORITY),
        Line2D([], [], label="bag of words", **BAG),
        *state_handles(states),
    ]
    caption = (
        "Accuracy on the test split in per cent, by the swept value. Small marks: one seed each; lines: "
        f"their mean ({data.seeds}){data.interval('bars', ', cut at 0 and 100%')}. Star: the recipe with the "
        "best mean validation accuracy of its line. What has to be beaten is named above each panel, and "
        f"drawn where it is near the runs.{note}"
    )
    return finish(figure, handles, caption), caption


test_accuracy_by_recipe.__test__ = False


def _sweeps(data: Data) -> list[_Sweep]:
    rows = {}
    for run in data.runs:
        swept = data.reporting["recipes"][run["recipe"]]["swept"]
        if not swept:
            continue
        key = "learning_rate" if "learning_rate" in swept else next(iter(swept))
        fixed = tuple((name, short_number(value)) for name, value in swept.items() if name != key)
        place = (run["dataset"], run["model"], run["recipe_family"], key, fixed)
        rows.setdefault(place, {})[run["recipe"]] = swept[key]
    return [_Sweep(*place, values) for place, values in rows.items()]


def _sweep_name(data: Data, sweep: _Sweep) -> str:
    fixed = [f"{key_text(key)} {value}" for key, value in sweep.fixed]
    return ", ".join([place_name(data, sweep.dataset, sweep.model), sweep.family, *fixed])


def _draw_sweep(axis: Axes, data: Data, sweep: _Sweep, framework: str) -> set[str]:
    places, room = _sweep_axis(axis, sweep)
    best = {(row["init"], row["recipe"]) for row in data.summary if _in_sweep(row, sweep, framework, "best")}
    equal = [row for row in data.summary if _in_sweep(row, sweep, framework, "equal")]
    states: set[str] = set()
    for side, init in zip((-1, 1), data.inits, strict=False):
        rows = sorted((row for row in equal if row["init"] == init), key=lambda row: places[row["recipe"]])
        x = [places[row["recipe"]] + side * MEAN_PLACE * room for row in rows]
        axis.plot(x, [100 * row["mean"] for row in rows], linewidth=2, **_init_style(init))
        for row, place in zip(rows, x, strict=True):
            _draw_mean(axis, row, place, chosen=(init, row["recipe"]) in best)
            beside = [places[row["recipe"]] + side * end * room for end in SEED_PLACES]
            states |= _draw_seeds(axis, data, row, beside)
    return states


def _init_style(init: str) -> dict[str, Any]:
    return {"color": COLOURS[init], "linestyle": LINES[init]}


def _draw_mean(axis: Axes, row: Row, place: float, *, chosen: bool) -> None:
    """The mean, a star where the recipe is the chosen one, and over it the interval."""
    shape = {"marker": "*", "markersize": 13} if chosen else {"marker": MARKERS[row["init"]], "markersize": 6}
    style = {"color": COLOURS[row["init"]], "markeredgecolor": "black", "markeredgewidth": 0.8, "zorder": 4}
    axis.plot(place, 100 * row["mean"], **style, **shape)
    if row["ci_low"] is not None:
        bounds = np.clip([100 * row["ci_low"], 100 * row["ci_high"]], 0, 100)
        axis.plot([place] * 2, bounds, zorder=5, **CAPPED)


def _draw_seeds(axis: Axes, data: Data, row: Row, ends: Sequence[float]) -> set[str]:
    """A mark a seed, side by side; returns their states."""
    runs = runs_of(data, row)
    places = np.linspace(*ends, len(runs)) if len(runs) > 1 else [sum(ends) / 2]
    for run, place in zip(runs, places, strict=True):
        style = mark(row["init"], state_of(run), len(runs))
        axis.plot(place, 100 * run["test_accuracy"], linestyle="none", zorder=3, **style)
    return {state_of(run) for run in runs}


def _draw_baselines(axis: Axes, row: Row) -> None:
    """Name what has to be beaten above the panel, and draw it where that does not squeeze the runs."""
    low, high = axis.get_ylim()
    reach = NEAR * (high - low)
    bounds = [low, high]
    baselines = (("majority class", "majority_share", MAJORITY), ("bag of words", "bag_of_words", BAG))
    for line, (name, key, style) in enumerate(baselines):
        value = 100 * row[key]
        near = low - reach <= value <= high + reach
        if near:
            axis.axhline(value, zorder=0, **style)
            bounds += [value - reach / 6, value + reach / 6]
        text = f"{name} {value:.1f}%{'' if near else ' (off the scale)'}"
        axis.annotate(text, (0, 1), xytext=(0, 3 + 13 * line), va="bottom", **ABOVE)
    axis.set_ylim(max(-2, min(bounds)), min(102, max(bounds)))


def _in_sweep(row: Row, sweep: _Sweep, framework: str, selection: str) -> bool:
    here = (row["dataset"], row["model"], row["framework"], row["selection"])
    return here == (sweep.dataset, sweep.model, framework, selection) and row["recipe"] in sweep.values


def _sweep_axis(axis: Axes, sweep: _Sweep) -> tuple[dict[str, float], float]:
    """Places of the recipes on the x axis and the room that each has; ticks at the swept values.

    A learning rate is placed by its logarithm, another number by itself, anything else in order.
    """
    values = list(sweep.values.values())
    numeric = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
    if numeric and sweep.key == "learning_rate":
        places = [float(np.log10(value)) for value in values]
    else:
        places = (
            [float(value) for value in values] if numeric else [float(index) for index in range(len(values))]
        )
    axis.set_xticks(places, [short_number(value) for value in values])
    axis.xaxis.set_minor_locator(NullLocator())
    span = (max(places) - min(places)) or 1.0
    gaps = np.diff(sorted(places))
    room = min(WIDEST * span, *(gap for gap in gaps if gap > 0), span)
    axis.set_xlim(min(places) - 0.6 * room, max(places) + 0.6 * room)
    return dict(zip(sweep.values, places, strict=True)), room
