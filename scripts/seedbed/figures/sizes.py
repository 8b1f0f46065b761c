"""Test scores by number of training texts, and what the checkpoint is worth in labels."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

from seedbed.analysis.label_worth import FEWER, MORE
from seedbed.analysis.sizes import Number, Sized, Worth, sized
from seedbed.core.rows import Row
from seedbed.core.wording import Words
from seedbed.core.words import axis_label, bounds_of, unit_of
from seedbed.figures.base import (
    BAG,
    GREY,
    LOOKS,
    PROBE,
    Data,
    Look,
    capped,
    finish,
    limits_of,
    line_handle,
    mark,
    panels,
    place_name,
    share_limits,
    state_handles,
    state_of,
)
from seedbed.figures.captions import Caption, make_caption
from seedbed.figures.names import word

WORDS = Words("figures/sizes")
HEIGHT = 2.6  # inches of a panel
APART = 0.14  # of the whole width of panels, in the logarithm of sizes: then the numbers of two do not touch
BASELINES = {"bag_of_words": BAG, "linear_probe": PROBE}  # lines by column of learning_curves.csv
ROOM = 0.04  # of the axis beyond the smallest and the largest size


def scores_by_size(data: Data) -> tuple[Figure, Caption]:
    """Test scores by number of training texts: a line an init, and an arrow to the number of labels with
    which random weights reach a score of the checkpoint."""
    found = sized(data)
    shown, note = capped(found)
    several = len({one.recipe for one in found}) > 1
    names = [
        ", ".join([place_name(data, one.dataset, one.model), *([one.recipe] if several else [])])
        for one in shown
    ]
    figure, axes = panels(data, names, HEIGHT)
    states: set[str] = set()
    for one, line in zip(shown, axes, strict=True):
        for framework, axis in zip(data.columns, line, strict=True):
            states |= _draw_panel(axis, data, one, framework)
        share_limits(line, 1, limits_of(data.metric))
        line[0].set_ylabel(axis_label("test", data.metric))
    for axis in axes[-1]:
        axis.set_xlabel(word("training_texts"))
    told = [one.told_size for one in shown if one.told_size is not None]
    baselines = [
        name
        for name in BASELINES
        if any(_scores(name, rows) for one in shown for rows in one.curves.values())
    ]
    caption = make_caption(
        WORDS, "scores_by_size", data.metric, data.seeds, data.level_of_intervals, bool(told), baselines, note
    )
    handles: list[Any] = [line_handle(LOOKS[init]) for init in data.inits]
    handles += [Line2D([], [], label=word(name), **BASELINES[name]) for name in baselines]
    handles += [*state_handles(states, data.weak), *data.interval_handle]
    return finish(figure, handles, caption, legend_rows=2), caption


def _draw_panel(axis: Axes, data: Data, one: Sized, framework: str) -> set[str]:
    """Draw the curves of a framework, and what a score of the checkpoint is worth; the states of its runs."""
    sizes = one.sizes
    axis.set_xscale("log")
    axis.set_xlim(_ends(sizes))
    axis.xaxis.set_major_locator(FixedLocator(_labelled(sizes, len(data.columns))))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(lambda size, _: f"{size:,.0f}")
    axis.yaxis.set_major_locator(MaxNLocator(nbins=6))
    states: set[str] = set()
    for init in data.inits:
        rows = one.curves.get((framework, init), ())
        states |= _draw_curve(axis, data, rows, LOOKS[init])
    # the same beside every init
    rows = next((rows for (of, _), rows in one.curves.items() if of == framework), ())
    for name, style in BASELINES.items():
        scores = _scores(name, rows)
        heights = [unit_of(data.metric).factor * score for score in scores.values()]
        axis.plot(list(scores), heights, zorder=1, **style)
    worth = one.worth.get(framework, {}).get(one.told_size or 0)
    if worth:
        _draw_worth(axis, worth, sizes, unit_of(data.metric).factor)
    return states


def _ends(sizes: Sequence[int]) -> tuple[float, float]:
    """The ends of the axis."""
    beyond = (sizes[-1] / sizes[0]) ** ROOM
    return sizes[0] / beyond, sizes[-1] * beyond


def _labelled(sizes: Sequence[int], columns: int) -> list[int]:
    """The sizes whose numbers do not touch, the largest among them."""
    apart = (sizes[-1] / sizes[0]) ** (APART * columns)
    shown = [sizes[-1]]
    for size in reversed(sizes):
        if shown[-1] / size >= apart:
            shown.append(size)
    return sorted(shown)


def _scores(baseline: str, rows: Sequence[Row]) -> dict[int, float]:
    """The score of one of BASELINES by size."""
    return {row["train_size"]: row[baseline] for row in rows if row.get(baseline) is not None}


def _draw_curve(axis: Axes, data: Data, rows: Sequence[Row], look: Look) -> set[str]:
    """Draw the mean over seeds with its interval, and every seed; return the states of the runs."""
    factor = unit_of(data.metric).factor
    known = [row for row in rows if row["mean"] is not None]
    states = set()
    for row in rows:
        cell = (row["dataset"], row["model"], row["framework"], row["init"], row["chosen"])
        runs = data.cells.get(cell, [])
        for run in runs:
            value, state = run.value(f"test_{data.metric}"), state_of(data.task, run)
            states.add(state)
            if value is not None:
                style = mark(look, state, of=len(runs)) | {"markersize": 4, "alpha": 0.6, "linestyle": "none"}
                axis.plot(row["train_size"], factor * value, zorder=2, **style)
    sizes = [row["train_size"] for row in known]
    style = {"color": look.colour, "linestyle": look.line, "linewidth": 2.0}
    axis.plot(sizes, [factor * row["mean"] for row in known], zorder=3, **style)
    banded = [row for row in known if row["both_low"] is not None]
    low, high = (np.array([factor * row[end] for row in banded]) for end in ("both_low", "both_high"))
    bounds = [factor * bound for bound in bounds_of(data.metric)]
    axis.fill_between(
        [row["train_size"] for row in banded],
        np.clip(low, *bounds),
        np.clip(high, *bounds),
        color=look.colour,
        alpha=0.18,
        linewidth=0,
    )
    return states


def _draw_worth(axis: Axes, worth: Worth, sizes: Sequence[int], factor: float) -> None:
    """An arrow from the labels of the checkpoint to those of random weights, with the interval as a bar."""
    height = factor * worth.score
    end = _place(worth.number, sizes)
    if worth.low and worth.high:
        bar = [_place(worth.low, sizes), _place(worth.high, sizes)]
        axis.plot(bar, [height, height], color=GREY, linewidth=6, alpha=0.35, solid_capstyle="butt", zorder=1)
    arrow = {"arrowstyle": "-|>", "color": "black", "linewidth": 1.3, "shrinkA": 0, "shrinkB": 0}
    axis.annotate("", (end, height), (worth.size, height), arrowprops=arrow, zorder=4)
    text = word("times", factor=f"{worth.ratio.labels:.2g}", bound=worth.ratio.bound)
    middle = float(np.sqrt(worth.size * end))
    box = {"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.5}
    place = {"textcoords": "offset points", "ha": "center", "va": "top"}
    axis.annotate(text, (middle, height), (0, -5), bbox=box, zorder=5, **place)


def _place(number: Number, sizes: Sequence[int]) -> float:
    """Where a number of labels is drawn; a bound beyond the sizes at the end of the axis."""
    first, last = _ends(sizes)
    return {FEWER: first, MORE: last}.get(number.bound, number.labels)
