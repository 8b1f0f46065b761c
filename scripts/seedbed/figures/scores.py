"""Figures of test scores: one panel per metric, one line or mark per method."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from seedbed.analysis.table_rows import SummaryRow
from seedbed.core.rows import grouped
from seedbed.core.wording import Words
from seedbed.core.words import axis_label, key_text, unit_of
from seedbed.figures.accuracy import (
    Sweep,
    draw_groups,
    draw_sweep,
    height_of,
    score_handles,
    sweep_handles,
    sweep_name,
    sweeps_of,
)
from seedbed.figures.base import (
    MAJORITY,
    Data,
    capped,
    empty_figure,
    finish,
    limits_of,
    place_name,
    recipe_groups,
    share_limits,
    state_handles,
)
from seedbed.figures.captions import Caption, make_caption
from seedbed.figures.names import word, wrap_name, wrap_names

ACROSS = 2  # panels beside each other
LABEL_LETTERS = 21  # of a line of the label of an axis
LETTERS_ACROSS = 23  # of a line of a panel's title
MAX_BLOCKS = 4  # of a row of panels for every two metrics
WEAK = "not_above_untrained"  # how the legend calls runs that learned nothing
WORDS = Words("figures/scores")
UNTRAINED = "none"  # the method that trains nothing


def test_scores(data: Data) -> tuple[Figure, Caption]:
    """Test scores of the selected checkpoints by method: every seed, mean and interval."""
    blocks, note = capped(_blocks(data), MAX_BLOCKS)
    metrics = data.task.reported
    rows = {
        metric: grouped(one.summary, "dataset", "model", data.column_key)
        for metric, one in data.by_metric.items()
    }
    groups = {
        (block, metric): recipe_groups(data, rows[metric].get(block, []), block[2])
        for block in blocks
        for metric in metrics
    }
    most = max(map(height_of, groups.values()))
    figure, axes = _grid(len(blocks) * -(-len(metrics) // ACROSS), 0.75 + most)
    states: set[str] = set()
    titles = _titles([_place(data, *block) for block in blocks])
    for axis, (block, metric) in _panels(axes, blocks, metrics):
        states |= draw_groups(axis, data, groups[block, metric])
        low, high = limits_of(metric)
        left, right = axis.get_xlim()
        axis.set_xlim(max(low, left), min(high, right))
        axis.set_xlabel(_label(metric))
        axis.tick_params(axis="y", labelleft=axis in axes[:, 0])
        axis.xaxis.set_major_locator(MaxNLocator(nbins=5))
        axis.set_title(titles[_place(data, *block)])
    caption = make_caption(WORDS, "test_scores", *_told(data), note)
    handles = [*score_handles(data), *state_handles(states, WEAK)]
    return finish(figure, handles, caption), caption


def test_scores_by_recipe(data: Data) -> tuple[Figure, Caption]:
    """Test scores by swept value: one line per method, and the untrained model."""
    found = [(sweep, column) for sweep in sweeps_of(data) for column in data.columns]
    shown, note = capped(found, MAX_BLOCKS)
    metrics = data.task.reported
    figure, axes = _grid(len(shown) * len(metrics), 1.9, across=1)
    by_metric = {metric: one.summary for metric, one in data.by_metric.items()}
    states: set[str] = set()
    titles = _titles([_sweep_place(data, sweep, column) for sweep, column in shown])
    for axis, ((sweep, column), metric) in _panels(axes, shown, metrics):
        states |= draw_sweep(axis, data, sweep, column, by_metric[metric])
        here = [row for row in by_metric[metric] if row[data.column_key] == column]
        _draw_untrained(axis, [row for row in here if (row.dataset, row.model) == sweep.place])
        share_limits([axis], 1, limits_of(metric))
        axis.yaxis.set_major_locator(MaxNLocator(nbins=5))
        axis.set_xlabel(key_text(sweep.key))
        axis.set_ylabel(_label(metric))
        axis.set_title(titles[_sweep_place(data, sweep, column)])
    points = any(sweep.points for sweep, _ in shown)
    caption = make_caption(WORDS, "test_scores_by_recipe", *_told(data), note, points)
    swept = {run.recipe_family for run in data.runs if data.reporting["recipes"][run.recipe]["swept"]}
    handles = [
        *sweep_handles(data, [name for name in data.series if name in swept]),
        *([Line2D([], [], label=word("untrained"), **MAJORITY)] if _has_untrained(data) else []),
        *state_handles(states, WEAK),
    ]
    return finish(figure, handles, caption), caption


def _has_untrained(data: Data) -> bool:
    return any(run.method == UNTRAINED for run in data.runs)


def _draw_untrained(axis: Axes, rows: Sequence[SummaryRow]) -> None:
    """Draw the mean of the untrained model as a line, if it is among the rows of the panel."""
    for row in rows:
        if row.method == UNTRAINED and row.mean is not None:
            axis.axhline(unit_of(row.metric).factor * row.mean, zorder=0, **MAJORITY)
            break


def _blocks(data: Data) -> list[tuple[str, str, str]]:
    """Dataset, model and init (or framework) of each block of panels."""
    return list(grouped(data.summary, "dataset", "model", data.column_key))


def _grid(rows: int, height: float, across: int = ACROSS) -> tuple[Figure, np.ndarray]:
    """Panels, so many across, each of this height in inches."""
    figure = empty_figure(rows * height + 1.2)
    return figure, figure.subplots(rows, across, squeeze=False)


def _label(metric: str) -> str:
    """The label of an axis: name and unit on lines that fit half a figure, and the direction below."""
    return "\n".join(wrap_name(line, LABEL_LETTERS) for line in axis_label("test", metric).split("\n"))


def _panels(
    axes: np.ndarray, blocks: Sequence[Any], metrics: Sequence[str]
) -> Iterable[tuple[Axes, tuple[Any, str]]]:
    """Each panel with its block and metric; unused panels are hidden."""
    across = axes.shape[1]
    each = -(-len(metrics) // across) * across
    for axis in axes.flat:
        axis.set_visible(False)
    for place, block in enumerate(blocks):
        for axis, metric in zip(axes.flat[place * each : (place + 1) * each], metrics, strict=False):
            axis.set_visible(True)
            yield axis, (block, metric)


def _place(data: Data, dataset: str, model: str, column: str) -> str:
    return ", ".join(filter(None, (place_name(data, dataset, model), data.column_name(column))))


def _sweep_place(data: Data, sweep: Sweep, column: str) -> str:
    return ", ".join(filter(None, (sweep_name(data, sweep), data.column_name(column))))


def _titles(names: Sequence[str]) -> dict[str, str]:
    """The titles of blocks by their names; a single block needs none."""
    titles = wrap_names(names, LETTERS_ACROSS) if len(names) > 1 else [""]
    return dict(zip(names, titles, strict=True))


def _told(data: Data) -> tuple[list[str], list[str], str, float | None]:
    """What captions tell: metrics that are losses, and that are shares; seeds; the level of intervals."""
    metrics = data.task.reported
    losses = [metric for metric in metrics if not unit_of(metric).sign]
    shares = [metric for metric in metrics if unit_of(metric).sign]
    return losses, shares, data.seeds, data.level_of_intervals
