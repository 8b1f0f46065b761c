"""What runs cost: seconds by what they are spent on, and memory."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from seedbed.analysis.table_rows import RunRow
from seedbed.core.rows import grouped
from seedbed.core.wording import Words
from seedbed.figures.base import NAMED_LETTERS, STROKE, Data, capped, empty_figure, finish, mark, place_name
from seedbed.figures.captions import Caption, make_caption
from seedbed.figures.names import series_name, word, wrap_names

# what a run's seconds are spent on, from dark to light
PARTS: dict[str, dict[str, Any]] = {
    "start_up": {"facecolor": "0.3"},
    "train": {"facecolor": "0.82"},
    "evaluate": {"facecolor": "0.97", "hatch": "////"},
    "write": {"facecolor": "0.55"},
}
WORDS = Words("figures/costs")
EDGE: dict[str, Any] = {"edgecolor": "0.25", "linewidth": 0.7}
ROW = 0.42  # inches


def time_and_memory(data: Data) -> tuple[Figure, Caption]:
    """Seconds, peak memory and their medians, and trained parameters where methods differ in them: one row of
    panels per dataset and model. Where sizes of training are swept, of the largest."""
    data = _of_largest_size(data)
    places = grouped(data.runs, "dataset", "model")
    shown, note = capped(list(places))
    lines = {place: list(grouped(places[place], *_keys(data))) for place in shown}
    trained = _tells_trained(data)
    parts = 3 if trained else 2
    heights = [0.6 + ROW * len(lines[place]) for place in shown for _ in range(parts)]
    figure = empty_figure(sum(heights) + 1.4)
    axes = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights).reshape(len(shown), parts)
    titles = wrap_names([place_name(data, *place) for place in shown], NAMED_LETTERS)
    for place, title, (seconds, memory, *others) in zip(shown, titles, axes, strict=True):
        rows = grouped(places[place], *_keys(data))
        _draw_seconds(seconds, data, list(rows.values()))
        _draw_memory(memory, data, list(rows.values()))
        for axis in others:
            _draw_trained(axis, list(rows.values()))
        for axis, name in zip((seconds, memory, *others), ("seconds", "memory", "trained"), strict=False):
            axis.set_yticks(range(len(rows)), _line_names(list(rows)))
            axis.set_xlabel(word(name))
        seconds.set_title(title)
    handles: list[Any] = [Patch(label=word(name), **style, **EDGE) for name, style in PARTS.items()]
    handles += [
        Line2D([], [], linestyle="none", label=word("one_run_of", series=look.label), **mark(look, "sound"))
        for look in data.series.values()
    ]
    handles.append(Line2D([], [], label=word("median"), linestyle="none", **STROKE))
    caption = _caption(data, note)
    return finish(figure, handles, caption), caption


def _of_largest_size(data: Data) -> Data:
    largest = {
        dataset: max(run.train_size or 0 for run in runs)
        for (dataset,), runs in grouped(data.runs, "dataset").items()
    }
    return replace(data, runs=[run for run in data.runs if (run.train_size or 0) == largest[run.dataset]])


def _caption(data: Data, note: str) -> Caption:
    swept = any(run.recipe != run.recipe_family for run in data.runs)
    unknown = [name for name, key in (("seconds", "total_seconds"), ("memory", "peak_memory_mib"))
               if any(run[key] is None for run in data.runs)]  # fmt: skip
    devices = list(dict.fromkeys(run.device for run in data.runs if run.device))
    return make_caption(
        WORDS,
        "caption",
        len(data.runs),
        data.seeds,
        swept=swept,
        sized=any(run.train_size for run in data.runs),
        trained=_tells_trained(data),
        fused=any(run.trained_together > 1 for run in data.runs),
        devices=devices,
        unknown=unknown,
        note=note,
    )


def _keys(data: Data) -> list[str]:
    """The columns of runs.csv that make a line of a panel."""
    families = {run.recipe_family for run in data.runs}
    if data.series_key == "recipe_family":
        return [*(["init"] if len(data.inits) > 1 else []), "recipe_family"]
    return ["framework", "init", *(["recipe_family"] if len(families) > 1 else [])]


def _line_names(keys: Sequence[tuple[str, ...]]) -> list[str]:
    return wrap_names([", ".join(map(series_name, key)) for key in keys], 24)


def _tells_trained(data: Data) -> bool:
    """Whether all runs record what they train, and some train another share of the model than others."""
    shares = {_trained_share(run) for run in data.runs}
    return None not in shares and len(shares) > 1


def _trained_share(run: RunRow) -> float | None:
    trained, total = run.trainable_parameters, run.total_parameters
    return None if trained is None or not total else trained / total


def _draw_trained(axis: Axes, lines: Sequence[Sequence[RunRow]]) -> None:
    """One bar per line: the share of trained parameters, with their number in or beside it."""
    for height, runs in enumerate(lines):
        share = 100 * _trained_share(runs[0])
        axis.barh(height, share, height=0.4, facecolor="0.82", **EDGE)
        inside = share > 50
        text = f"{runs[0].trainable_parameters:,}"
        style = {"ha": "right" if inside else "left", "va": "center", "fontsize": 9}
        axis.text(share + (-2 if inside else 2), height, text, **style)
    axis.set_xlim(0, 104)
    _set_lines(axis, len(lines))


def _draw_seconds(axis: Axes, data: Data, lines: Sequence[Sequence[RunRow]]) -> None:
    for height, runs in enumerate(lines):
        start = 0.0
        for part, style in PARTS.items():
            known = [run[f"{part}_seconds"] for run in runs if run[f"{part}_seconds"] is not None]
            middle = float(np.median(known)) if known else 0.0
            axis.barh(height - 0.14, middle, left=start, height=0.4, **style, **EDGE)
            start += middle
        _draw_median(axis, height - 0.14, runs, "total_seconds")
        _draw_runs(axis, data, height + 0.26, runs, "total_seconds")
    _set_limits(axis, len(lines))


def _draw_memory(axis: Axes, data: Data, lines: Sequence[Sequence[RunRow]]) -> None:
    for height, runs in enumerate(lines):
        _draw_median(axis, height - 0.14, runs, "peak_memory_mib")
        _draw_runs(axis, data, height + 0.26, runs, "peak_memory_mib")
    _set_limits(axis, len(lines))


def _draw_median(axis: Axes, height: float, runs: Sequence[RunRow], column: str) -> None:
    known = [run[column] for run in runs if run[column] is not None]
    if known:
        axis.plot(np.median(known), height, **STROKE)


def _draw_runs(axis: Axes, data: Data, height: float, runs: Sequence[RunRow], column: str) -> None:
    """One marker per run, below the median, spread a little so that equal ones show.

    By hand, since the jitter of seaborn's stripplot is random and equal numbers must give equal files.
    """
    known = [run[column] for run in runs if run[column] is not None]
    heights = height + np.linspace(-0.1, 0.1, len(known)) if len(known) > 1 else [height] * len(known)
    axis.plot(known, heights, linestyle="none", zorder=3, **mark(data.look(runs[0]), "sound", len(known)))


def _set_limits(axis: Axes, lines: int) -> None:
    axis.set_xlim(0, 1.04 * axis.get_xlim()[1])  # a mark is as wide as the room beyond the highest value
    _set_lines(axis, lines)


def _set_lines(axis: Axes, lines: int) -> None:
    axis.set_ylim(lines - 0.4, -0.6)
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)
    axis.xaxis.set_major_locator(MaxNLocator(nbins=5))
