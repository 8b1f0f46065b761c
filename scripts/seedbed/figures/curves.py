"""Learning curves: every seed, their mean and its interval, smoothed where there are many points."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from seedbed.analysis import statistics
from seedbed.core.rows import CELL, Row, grouped
from seedbed.core.wording import Words
from seedbed.core.words import axis_label, bounds_of, metric_name, unit_of, with_unit
from seedbed.figures.base import (
    GREY,
    MAJORITY,
    Data,
    Look,
    finish,
    group_lines,
    limits_of,
    line_handle,
    panels,
    set_titles,
    share_limits,
)
from seedbed.figures.captions import Caption, make_caption
from seedbed.figures.names import word

WORDS = Words("figures/curves")
UNTRAINED = "none"  # the method that trains nothing
MAX_BLOCKS = 4  # of four rows each
FIRST_HEIGHT, HEIGHT = 1.9, 1.45  # inches of a row of panels: the first has the title
LONG_LABEL = 0.5  # inches more where the label of an axis tells a direction, too
MIN_POINTS = 10  # a curve of fewer points is not smoothed: the weight of its start would hide how it rises
MAX_MARKERS = 8  # on a mean
CUT_LOSS = 3  # times the median loss of a row of panels
START_ROOM = 1.2  # times the loss that curves start from


def learning_curves(data: Data) -> tuple[Figure, Caption]:
    """Metrics of training and validation by number of updates."""
    return _plot_curves(data, data.task.curves)


def test_curves(data: Data) -> tuple[Figure, Caption]:
    """The first metric on test by number of updates; it selects nothing."""
    return _plot_curves(data, [("test", data.metric)])


def _plot_curves(data: Data, rows: Sequence[tuple[str, str]]) -> tuple[Figure, Caption]:
    """One block of panels per group of recipes, with one row per split and metric."""
    blocks, note = group_lines(data, MAX_BLOCKS)
    cells = grouped(data.tables["curves"], "split", "metric", *CELL)
    weights = {split: _weight(data, split) for split, _ in rows}
    first = [index == 0 for _ in blocks for index in range(len(rows))]
    names = [block.name for block in blocks for _ in rows]
    # a label of three lines, of which one is long
    taller = LONG_LABEL if data.generates else 0.0
    heights = [taller + (FIRST_HEIGHT if titled else HEIGHT) for titled in first]
    figure, axes = panels(data, names, heights, titles=first)
    cut = False
    for block, here in zip(blocks, axes.reshape(len(blocks), len(rows), -1), strict=True):
        set_titles(here[0], block.name, [block.title(data, column) for column in data.columns])
        for (split, metric), line in zip(rows, here, strict=True):
            curves = [
                {data.look(row).name: cells.get((split, metric, *(row[key] for key in CELL)), [])
                 for row in block.rows(column)} for column in data.columns
            ]  # fmt: skip
            _draw_line(line, data, curves, metric, weights[split])
            line[0].set_ylabel(_label(data, split, metric))
            if metric == "accuracy" and split != "train":
                for axis in line:
                    axis.axhline(100 * _majority(data, block.dataset, split), **MAJORITY)
            cut |= metric == data.task.loss and _is_cut(curves)
        _share_updates(here)
        figure.align_ylabels(here[:, 0])
    caption = make_caption(WORDS, "caption", _facts(data, rows, weights, cut=cut, note=note))
    handles = [line_handle(look) for name, look in data.series.items() if name not in _untrained(data)]
    handles += [Line2D([], [], color=GREY, linewidth=0.9, alpha=0.7, label=word("one_seed"))]
    handles += data.interval_handle
    if _has_baseline(data, rows):
        label = word("untrained") if data.task.from_untrained else data.task.words.constant
        handles.append(Line2D([], [], label=label, **MAJORITY))
    return finish(figure, handles, caption, legend_rows=1), caption


def _has_baseline(data: Data, rows: Sequence[tuple[str, str]]) -> bool:
    """Whether a panel has a dotted line: the untrained model, or the share of the largest class."""
    if data.task.from_untrained:
        return bool(_untrained(data))
    return any(metric == "accuracy" and split != "train" for split, metric in rows)


def _label(data: Data, split: str, metric: str) -> str:
    """The label of a row of panels: split, metric with unit, and where needed its direction."""
    if data.generates:
        return f"{split}\n{axis_label('', metric)}"
    return f"{split}\n{with_unit(metric_name(metric), unit_of(metric).value)}"


def _untrained(data: Data) -> set[str]:
    """The series that train nothing: they have no curve and are drawn as a baseline."""
    if not data.task.from_untrained:
        return set()
    return {run.recipe_family for run in data.runs if run.method == UNTRAINED}


Curves = Sequence[dict[str, list[Row]]]  # of a row of panels: for each framework, rows of curves.csv by init


def _draw_line(line: Sequence[Axes], data: Data, curves: Curves, metric: str, weight: float) -> None:
    factor = unit_of(metric).factor
    untrained = _untrained(data)
    for axis, by_series in zip(line, curves, strict=True):
        for name, rows in by_series.items():
            if name in untrained:
                for value in _losses(rows)[:1]:
                    axis.axhline(factor * value, zorder=0, **MAJORITY)
            else:
                _draw_curves(axis, rows, data.series[name], data.confidence, weight, metric)
        axis.yaxis.set_major_locator(MaxNLocator(nbins=5))
    share_limits(line, 1, (0, _highest_loss(curves)) if metric == data.task.loss else limits_of(metric))


def _share_updates(block: np.ndarray) -> None:
    """One x axis per column of a block, with numbers below the last panel only."""
    for column in block.T:
        share_limits(column, 0, (0, np.inf))
        for axis in column:
            axis.set_xlim(left=0)
            axis.xaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
            axis.tick_params(axis="x", labelbottom=axis is column[-1])
        column[-1].set_xlabel(word("updates"))


@dataclass(frozen=True)
class Facts:
    """What the caption of curves tells.

    Attributes:
        of_test: whether they are of the test split alone.
        answers, from_untrained, selection: of the task.
        loss, shares: the loss if it is shown, else empty; and the other metrics.
        baseline: whether a dotted line is drawn.
        weights: of the smoothing, by split; 0 where curves have few points.
        fewest_points: what is smoothed has so many.
        asked: whether the configuration asks for smoothing.
        seeds, level: how many seeds there are, and the level of intervals, None without any.
        cut: how many times the median loss of a row is cut off; None where none is.
        note: on what is left out.
    """

    of_test: bool
    answers: bool
    from_untrained: bool
    selection: str
    loss: str
    shares: list[str]
    baseline: bool
    weights: dict[str, float]
    fewest_points: int
    asked: bool
    seeds: str
    level: float | None
    cut: int | None
    note: str


def _facts(
    data: Data, rows: Sequence[tuple[str, str]], weights: dict[str, float], *, cut: bool, note: str
) -> Facts:
    metrics = list(dict.fromkeys(metric for _, metric in rows))
    return Facts(
        of_test=list(weights) == ["test"],
        answers=data.generates,
        from_untrained=data.task.from_untrained,
        selection=data.task.selection,
        loss=data.task.loss if data.task.loss in metrics else "",
        shares=[metric for metric in metrics if metric != data.task.loss],
        baseline=data.task.from_untrained or _has_baseline(data, rows),
        weights=weights,
        fewest_points=MIN_POINTS,
        asked=bool(data.reporting["figures"]["smoothing"]),
        seeds=data.seeds,
        level=data.level_of_intervals,
        cut=CUT_LOSS if cut else None,
        note=note,
    )


def _weight(data: Data, split: str) -> float:
    """The smoothing weight for the curves of a split; 0 if they have few points."""
    steps = {row["step"] for row in data.tables["curves"] if row["split"] == split}
    return data.reporting["figures"]["smoothing"] if len(steps) >= MIN_POINTS else 0.0


def smooth(values: Sequence[float], weight: float) -> list[float]:
    """Debiased exponential moving average, as in TensorBoard.

    s_i = w s_(i-1) + (1 - w) x_i from s_0 = 0, divided by 1 - w^i. Values that are not finite are kept and
    left out of the average. `weight` is in [0, 1); 0 changes nothing.
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
    axis: Axes, rows: Sequence[Row], look: Look, confidence: float, weight: float, metric: str
) -> None:
    """Draw a thin line per seed, and the smoothed mean with its band where every seed has a value.

    By hand: seaborn's lineplot connects the points of a seed around a missing value. For mean and band it
    gives the same pixels in as many lines of code, but takes 1.8 in place of 0.4 s for 32 panels.
    """
    seeds, factor = grouped(rows, "init_seed", "data_seed"), unit_of(metric).factor
    style = {"color": look.colour, "linestyle": look.line}
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
    marker = {"marker": look.marker, "markersize": 5, "markeredgecolor": "white", "markeredgewidth": 0.6}
    every = max(1, len(whole) // MAX_MARKERS)
    axis.plot(list(whole), means, linewidth=2.2, zorder=4, markevery=every, **marker, **style)
    # where all seeds are equal there is no interval, and the band is as thin as the line
    bands = [
        statistics.t_interval(values, confidence) or (statistics.mean(values),) * 2
        for values in whole.values()
    ]
    if bands and len(seeds) > 1:
        least, most = bounds_of(metric)
        low, high = np.clip(np.array(bands).T, factor * least, factor * most)
        axis.fill_between(list(whole), low, high, color=look.colour, alpha=0.16, linewidth=0)


def _highest_loss(curves: Curves) -> float:
    """The upper end of the axis of losses: one run that diverges must not flatten the others.

    At least the loss that the curves of a series start from (median of their first values), with some room.
    """
    losses = _losses([row for by_init in curves for rows in by_init.values() for row in rows])
    if not losses:
        return np.inf
    starts = []
    for rows in (rows for by_init in curves for rows in by_init.values() if rows):
        first = min(row["step"] for row in rows)
        found = _losses([row for row in rows if row["step"] == first])
        starts += [statistics.median(found)] if found else []
    return max(CUT_LOSS * statistics.median(losses), START_ROOM * max(starts, default=0.0))


def _is_cut(curves: Curves) -> bool:
    losses = _losses([row for by_init in curves for rows in by_init.values() for row in rows])
    return max(losses, default=0.0) > _highest_loss(curves)


def _losses(rows: Sequence[Row]) -> list[float]:
    """The finite values of these rows."""
    return [row["value"] for row in rows if row["value"] is not None and np.isfinite(row["value"])]


def _majority(data: Data, dataset: str, split: str) -> float:
    return next(run[f"{split}_majority_share"] for run in data.runs if run.dataset == dataset)
