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

from seedbed.figures_base import (
    BAG,
    COLOURS,
    GREY,
    LINES,
    MAJORITY,
    MARKERS,
    MEAN,
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
    short_number,
    state_handles,
    state_of,
)
from seedbed.tables import Row, grouped

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
            _draw_references(axis, places[place][0])
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
        Line2D([], [], label="mean", linestyle="none", **MEAN),
        *data.interval_handle,
    ]
    return finish(figure, [*handles, *state_handles(states)], caption), caption


test_accuracy.__test__ = False


def _draw_groups(axis: Axes, data: Data, groups: Sequence[Group]) -> set[str]:
    """Draw groups from the top down; returns the states (collapsed, weak) that occur."""
    states: set[str] = set()
    height, ticks, names = 0.0, [], []
    for group in groups:
        for line in textwrap.wrap(group.title, 48):
            style = {
                "fontsize": 9,
                "color": GREY,
                "bbox": {"facecolor": "white", "edgecolor": "none", "pad": 1},
            }
            text = axis.text(0.0, height, line, transform=axis.get_yaxis_transform(), va="center", **style)
            text.set_in_layout(False)
            height += 0.3
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
    axis.plot(100 * row["mean"], height + 0.15, **MEAN)
    heights = height + np.linspace(0.42, 0.75, len(runs)) if len(runs) > 1 else [height + 0.5]
    states = set()
    for run, level in zip(runs, heights, strict=True):
        state = state_of(run)
        axis.plot(
            100 * run["test_accuracy"], level, linestyle="none", zorder=3, **mark(init, state, len(runs))
        )
        states.add(state)
    return states


def _draw_references(axis: Axes, row: Row) -> None:
    axis.axvline(100 * row["majority_share"], zorder=0, **MAJORITY)
    axis.axvline(100 * row["bag_of_words"], zorder=0, **BAG)


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
    figure, axes = panels(data, [_sweep_name(data, sweep) for sweep in shown], height=2.9)
    states: set[str] = set()
    for sweep, line in zip(shown, axes, strict=True):
        for framework, axis in zip(data.frameworks, line, strict=True):
            states |= _draw_sweep(axis, data, sweep, framework)
            axis.set_xlabel(sweep.key.replace("_", " "))
        share_limits(line, 1)
        line[0].set_ylabel("test accuracy (%)")
    handles: list[Any] = [line_handle(init) for init in data.inits]
    handles += [*data.interval_handle, *state_handles(states)]
    star = {
        "marker": "*",
        "markersize": 12,
        "linestyle": "none",
        "color": "white",
        "markeredgecolor": "black",
    }
    handles.append(Line2D([], [], label="best on validation", **star))
    handles += [
        Line2D([], [], label="majority class", **MAJORITY),
        Line2D([], [], label="bag of words", **BAG),
    ]
    caption = (
        "Accuracy on the test split in per cent, by the swept value. Small marks: one seed each; lines: "
        f"their mean ({data.seeds}){data.interval('bars', ', cut at 0 and 100%')}. Star: the recipe with the "
        f"best mean validation accuracy of its line.{note}"
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
    fixed = [f"{key.replace('_', ' ')} {value}" for key, value in sweep.fixed]
    return ", ".join([place_name(data, sweep.dataset, sweep.model), sweep.family, *fixed])


def _draw_sweep(axis: Axes, data: Data, sweep: _Sweep, framework: str) -> set[str]:
    place, step = _sweep_axis(axis, sweep)
    best = {(row["init"], row["recipe"]) for row in data.summary if _in_sweep(row, sweep, framework, "best")}
    states: set[str] = set()
    for side, init in zip((-1, 1), data.inits, strict=False):
        rows = [
            row for row in data.summary if _in_sweep(row, sweep, framework, "equal") and row["init"] == init
        ]
        rows.sort(key=lambda row: place[row["recipe"]])
        states |= _draw_sweep_line(
            axis, data, rows, [place[row["recipe"]] + side * step for row in rows], step * side
        )
        for row in rows:
            if (init, row["recipe"]) in best:
                style = {"color": COLOURS[init], "markeredgecolor": "black"}
                x = place[row["recipe"]] + side * step
                axis.plot(x, 100 * row["mean"], marker="*", markersize=14, zorder=5, **style)
    first = next(row for row in data.summary if row["dataset"] == sweep.dataset)
    axis.axhline(100 * first["majority_share"], zorder=0, **MAJORITY)
    axis.axhline(100 * first["bag_of_words"], zorder=0, **BAG)
    return states


def _in_sweep(row: Row, sweep: _Sweep, framework: str, selection: str) -> bool:
    here = (row["dataset"], row["model"], row["framework"], row["selection"])
    return here == (sweep.dataset, sweep.model, framework, selection) and row["recipe"] in sweep.values


def _draw_sweep_line(
    axis: Axes, data: Data, rows: list[Row], places: list[float], outwards: float
) -> set[str]:
    init = rows[0]["init"]
    style = {"color": COLOURS[init], "linestyle": LINES[init]}
    means = [100 * row["mean"] for row in rows]
    axis.plot(
        places, means, linewidth=2, marker=MARKERS[init], markersize=6, markeredgecolor="black", **style
    )
    states = set()
    for row, place in zip(rows, places, strict=True):
        if row["ci_low"] is not None:
            bounds = np.clip([100 * row["ci_low"], 100 * row["ci_high"]], 0, 100)
            axis.plot(
                [place] * 2, bounds, color=COLOURS[init], linewidth=2.5, alpha=0.5, solid_capstyle="butt"
            )
        runs = runs_of(data, row)
        for run in runs:
            state = state_of(run)
            axis.plot(
                place + 2 * outwards,
                100 * run["test_accuracy"],
                linestyle="none",
                **mark(init, state, len(runs)),
            )
            states.add(state)
    return states


def _sweep_axis(axis: Axes, sweep: _Sweep) -> tuple[dict[str, float], float]:
    """Places of the recipes on the x axis and half the distance between inits; ticks at the swept values.

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
    axis.set_xlim(min(places) - 0.12 * span, max(places) + 0.12 * span)
    return dict(zip(sweep.values, places, strict=True)), 0.021 * span
