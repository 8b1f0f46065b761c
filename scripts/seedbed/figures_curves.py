"""Learning curves: every seed, their mean and its interval, smoothed where there are many points."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from seedbed import statistics
from seedbed.figures_base import (
    COLOURS,
    GREY,
    LINES,
    MAJORITY,
    MARKERS,
    Data,
    capped,
    finish,
    line_handle,
    panels,
    place_name,
    recipe_groups,
    share_limits,
)
from seedbed.tables import Row, grouped

PANELS = (("train", "accuracy"), ("validation", "accuracy"), ("train", "loss"), ("validation", "loss"))
MAX_PLACES = 4  # of four rows each
MIN_POINTS = 10  # a curve of fewer points is not smoothed: the weight of its start would hide how it rises
MAX_MARKERS = 8  # on a mean
CUT_LOSS = 3  # times the median loss of a row of panels

Place = tuple[str, str, str]  # dataset, model, recipe


def learning_curves(data: Data) -> tuple[Figure, str]:
    """Accuracy and loss of training and validation over updates: a panel a framework."""
    places, note = _main_places(data)
    remark = (
        "Training values are means over an epoch, as the model saw it, with dropout. Validation accuracy "
        f"selects the checkpoint of each run. A loss above {CUT_LOSS} times the median of its row is cut off."
    )
    return _plot_curves(data, places, PANELS, remark + note)


def test_curves(data: Data) -> tuple[Figure, str]:
    """Test accuracy over updates; it selects nothing."""
    rows = [row for row in data.curves if row["split"] == "test"]
    places, note = capped(list(grouped(rows, "dataset", "model", "recipe")))
    return _plot_curves(data, places, [("test", "accuracy")], f"Test curves select nothing.{note}")


test_curves.__test__ = False  # a figure's name, not a test for pytest to collect


def _main_places(data: Data) -> tuple[Sequence[Place], str]:
    """Dataset, model and recipe of every block; of many recipes the first and each side's best."""
    places = list(grouped(data.runs, "dataset", "model", "recipe"))
    if len(places) <= MAX_PLACES:
        return places, ""
    main = {
        (row["dataset"], row["model"], row["recipe"])
        for rows in grouped(data.summary, "dataset", "model").values()
        for framework in data.frameworks
        for group in recipe_groups(data, rows, framework)
        for row in group.rows
    }
    chosen = [place for place in places if place in main]
    note = ""
    if len(chosen) < len(places):
        note = " Of swept recipes, the first and those that are best on validation."
    shown, more = capped(chosen, MAX_PLACES)
    return shown, note + more


def _plot_curves(
    data: Data, places: Sequence[Place], rows: Sequence[tuple[str, str]], remark: str
) -> tuple[Figure, str]:
    cells = grouped(data.curves, "split", "metric", "dataset", "model", "recipe", "framework", "init")
    weights = {split: _weight(data, split) for split, _ in rows}
    names = [place_name(data, *place) for place in places for _ in rows]
    titles = [index == 0 for _ in places for index in range(len(rows))]
    heights = [2.3 if first else 1.9 for first in titles]
    figure, axes = panels(data, names, heights, titles=titles)
    lines = [(place, *row) for place in places for row in rows]
    for (place, split, metric), line in zip(lines, axes, strict=True):
        factor = 100 if metric == "accuracy" else 1
        for framework, axis in zip(data.frameworks, line, strict=True):
            for init in data.inits:
                cell = cells.get((split, metric, *place, framework, init), [])
                _draw_curves(axis, cell, init, data.confidence, weights[split], factor)
            if metric == "accuracy" and split != "train":
                axis.axhline(100 * _majority(data, place[0], split), **MAJORITY)
            axis.set_xlim(left=0)
            axis.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
            axis.yaxis.set_major_locator(MaxNLocator(nbins=5))
        share_limits(line, 1, (-2, 102) if metric == "accuracy" else (0, _highest_loss(line)))
        line[0].set_ylabel(f"{split}\n{metric} ({'%' if metric == 'accuracy' else 'nats'})")
    for axis in axes[-1]:
        axis.set_xlabel("updates")
    for first in range(0, len(lines), len(rows)):
        figure.align_ylabels(axes[first : first + len(rows), 0])
    caption = _caption(data, rows, weights, remark)
    handles = [line_handle(init) for init in data.inits]
    handles += [Line2D([], [], color=GREY, linewidth=0.9, alpha=0.7, label="one seed")]
    handles += [*data.interval_handle, Line2D([], [], label="majority class", **MAJORITY)]
    return finish(figure, handles, caption, legend_rows=1), caption


def _caption(data: Data, rows: Sequence[tuple[str, str]], weights: dict[str, float], remark: str) -> str:
    metrics = list(dict.fromkeys(metric for _, metric in rows))
    splits = " and ".join(weights)
    noun = "splits" if len(weights) > 1 else "split"
    shown = f"Accuracy on the {splits} {noun} in per cent"
    if "loss" in metrics:
        shown = f"Accuracy in per cent and loss in nats an example, on the {splits} {noun}"
    smoothed = [f"{weight:g} on {split}" for split, weight in weights.items() if weight]
    if smoothed:
        means = (
            f"their mean ({data.seeds}), smoothed exponentially as by TensorBoard, weight "
            f"{', '.join(smoothed)}{''.join(f', 0 on {split}' for split in weights if not weights[split])}"
        )
    else:
        means = f"their mean ({data.seeds}), not smoothed (weight 0)"
    return (
        f"{shown}, by number of updates. Thin lines: one seed each; thick lines: {means}, where every seed "
        f"has a value{data.interval('band')}. Dotted: always the majority class. {remark}"
    )


def _weight(data: Data, split: str) -> float:
    """The weight of smoothing that the curves of a split get: none where they have few points."""
    steps = {row["step"] for row in data.curves if row["split"] == split}
    return data.reporting["figures"]["smoothing"] if len(steps) >= MIN_POINTS else 0.0


def smooth(values: Sequence[float], weight: float) -> list[float]:
    """Exponential moving average without the bias of its start, as TensorBoard draws it.

    s_i = w s_(i-1) + (1 - w) x_i from s_0 = 0, divided by 1 - w^i; a value that is no number stays one, and
    is left out of the average. `weight` is in [0, 1); 0 leaves the values as they are.
    """
    average, seen, smoothed = 0.0, 0, []
    for value in values:
        if not np.isfinite(value):
            smoothed.append(value)
            continue
        seen += 1
        average = weight * average + (1 - weight) * value
        smoothed.append(average / (1 - weight**seen))
    return smoothed


def _draw_curves(
    axis: Axes, rows: Sequence[Row], init: str, confidence: float, weight: float, factor: float
) -> None:
    """A thin line a seed; the mean and its band, smoothed, where every seed has a value."""
    seeds = grouped(rows, "init_seed", "data_seed")
    style = {"color": COLOURS[init], "linestyle": LINES[init]}
    by_step: dict[int, list[float]] = {}
    for points in seeds.values():
        points = sorted(points, key=lambda row: row["step"])
        steps = [row["step"] for row in points]
        values = [np.nan if row["value"] is None else factor * row["value"] for row in points]
        # many lines must not hide the mean
        axis.plot(steps, values, linewidth=0.9, alpha=min(0.5, 2.5 / len(seeds)), **style)
        for step, value in zip(steps, smooth(values, weight), strict=True):
            by_step.setdefault(step, []).append(value)
    whole = {
        step: values
        for step, values in sorted(by_step.items())
        if len(values) == len(seeds) and np.isfinite(values).all()
    }
    means = [statistics.mean(values) for values in whole.values()]
    marker = {"marker": MARKERS[init], "markersize": 5, "markeredgecolor": "white", "markeredgewidth": 0.6}
    every = max(1, len(whole) // MAX_MARKERS)
    axis.plot(list(whole), means, linewidth=2.2, zorder=4, markevery=every, **marker, **style)
    # where all seeds are equal there is no interval, and the band is as thin as the line
    bands = [
        statistics.t_interval(values, confidence) or (statistics.mean(values),) * 2
        for values in whole.values()
    ]
    if bands and len(seeds) > 1:
        low, high = np.clip(np.array(bands).T, 0, 100 if factor == 100 else None)
        axis.fill_between(list(whole), low, high, color=COLOURS[init], alpha=0.16, linewidth=0)


def _highest_loss(line: Sequence[Axes]) -> float:
    """Where the axis of losses ends: one run that diverges must not flatten the others."""
    values = np.concatenate([np.asarray(curve.get_ydata(), float) for axis in line for curve in axis.lines])
    finite = values[np.isfinite(values)]
    return CUT_LOSS * float(np.median(finite)) if finite.size else np.inf


def _majority(data: Data, dataset: str, split: str) -> float:
    return next(run[f"{split}_majority_share"] for run in data.runs if run["dataset"] == dataset)
