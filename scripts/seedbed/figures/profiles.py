"""Figures of distributions: performance profiles over datasets, and the best of a number of settings."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from seedbed.analysis.table_rows import SummaryRow
from seedbed.core.rows import Row, grouped
from seedbed.core.wording import Words
from seedbed.core.words import axis_label, better, bounds_of, unit_of
from seedbed.figures.base import (
    COLOURS,
    GREY,
    LINES,
    LOOKS,
    Data,
    Look,
    capped,
    finish,
    limits_of,
    line_handle,
    panels,
    place_name,
    recipe_groups,
    runs_of,
    share_limits,
)
from seedbed.figures.captions import Caption, make_caption
from seedbed.figures.names import word

WORDS = Words("figures/profiles")
STEPS = 401  # thresholds of a profile
ROOM = 1.0  # points beside the lowest and the highest score


# --- performance profiles -----------------------------------------------------------------------------------


def performance_profile(data: Data) -> tuple[Figure, Caption]:
    """Share of runs with a test score above each threshold, with equal weights of datasets.

    After Agarwal et al. (2021, arXiv:2108.13264), whose profiles these are over tasks.
    """
    lines = _profile_lines(data)
    shown, note = capped(list(lines))
    figure, axes = panels(data, shown, height=2.1)
    factor = unit_of(data.metric).factor
    thresholds = _thresholds([run.value(f"test_{data.metric}") for run in data.runs], data.metric)
    banded = False
    for name, row in zip(shown, axes, strict=True):
        for framework, axis in zip(data.frameworks, row, strict=True):
            for init in data.inits:
                values = list(lines[name].get((framework, init), {}).values())
                if values:
                    banded |= _draw_profile(axis, data, values, init, thresholds)
            axis.set_ylim(-2, 102)
            axis.set_xlim(factor * thresholds[0], factor * thresholds[-1])
            axis.xaxis.set_major_locator(MaxNLocator(nbins=4))
        row[0].set_ylabel(word("runs_above"))
    for axis in axes[-1]:
        axis.set_xlabel(axis_label("test", data.metric))
    sets = len({run.dataset for run in data.runs})
    level = data.confidence if banded else None
    caption = make_caption(WORDS, "performance_profile", data.metric, sets, data.seeds, level, note)
    looks = (LOOKS[init] for init in data.inits)
    handles: list[Any] = [
        Line2D([], [], linewidth=2.2, color=look.colour, linestyle=look.line, label=look.label)
        for look in looks
    ]
    if banded:
        handles.append(Patch(color=GREY, alpha=0.25, linewidth=0, label=data.level))
    return finish(figure, handles, caption, legend_rows=1), caption


Scores = dict[str, list[float]]  # by dataset


def _profile_lines(data: Data) -> dict[str, dict[tuple[str, str], Scores]]:
    """Scores by row of panels (model and kind of recipe), then by framework and init."""
    lines: dict[str, dict[tuple[str, str], Scores]] = {}
    for (dataset, model), rows in grouped(data.summary, "dataset", "model").items():
        for framework in data.frameworks:
            for group in recipe_groups(data, rows, framework):
                for row in group.rows:
                    name = ", ".join(filter(None, (model, _kind(data, group.title, row))))
                    sides = lines.setdefault(name, {}).setdefault((framework, row.init), {})
                    sides[dataset] = [run.value(f"test_{data.metric}") for run in runs_of(data, row)]
    return lines


def _kind(data: Data, title: str, row: SummaryRow) -> str:
    """The recipes of a row of panels; the best one may differ between datasets."""
    return word("own_best_in", family=row.recipe_family) if row.selection == "best" else title


def _thresholds(values: Sequence[float], metric: str) -> np.ndarray:
    least, most = bounds_of(metric)
    low, high = max(least, min(values) - ROOM / 100), min(most, max(values) + ROOM / 100)
    return np.linspace(low, high, STEPS)


def profile(values: Sequence[Sequence[float]], thresholds: np.ndarray) -> np.ndarray:
    """Share of values above each threshold, averaged over groups (datasets): (thresholds,)."""
    return np.mean([(np.array(group)[:, None] > thresholds).mean(axis=0) for group in values], axis=0)


def profile_band(
    values: Sequence[Sequence[float]], thresholds: np.ndarray, confidence: float, replicates: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Pointwise percentile interval of `profile`, the values of each group resampled with replacement.

    Returns:
        Lower and upper bounds, (thresholds,) each.
    """
    draw = np.random.default_rng(seed)
    total = np.zeros((replicates, len(thresholds)), dtype=np.float32)
    for group in values:
        above = (np.array(group)[:, None] > thresholds).astype(np.float32)
        weights = draw.multinomial(len(group), [1 / len(group)] * len(group), size=replicates)
        total += weights.astype(np.float32) @ above / len(group)
    tail = (1 - confidence) / 2
    low, high = np.quantile(total / len(values), (tail, 1 - tail), axis=0)
    return low, high


def _draw_profile(
    axis: Axes, data: Data, values: Sequence[Sequence[float]], init: str, thresholds: np.ndarray
) -> bool:
    """Draw the profile of one side, and its band if there are seeds to resample; return whether there are."""
    x = unit_of(data.metric).factor * thresholds
    style = {"color": COLOURS[init], "linestyle": LINES[init], "linewidth": 2.2}
    axis.plot(x, 100 * profile(values, thresholds), drawstyle="steps-post", **style)
    if min(map(len, values)) < 2:
        return False
    settings = data.reporting["statistics"]
    bounds = profile_band(
        values, thresholds, settings["confidence"], settings["replicates"], settings["bootstrap_seed"]
    )
    low, high = (100 * bound for bound in bounds)
    axis.fill_between(x, low, high, step="post", color=COLOURS[init], alpha=0.2, linewidth=0)
    return True


# --- expected validation ------------------------------------------------------------------------------------


def expected_validation(data: Data) -> tuple[Figure, Caption]:
    """Expected best validation score by the number of settings tried: one line per init or method.

    After Tang et al. (2020, arXiv:2004.13990).
    """
    # the family is named where it is no series
    keys = ("dataset", "model", *(() if data.series_key == "recipe_family" else ("recipe_family",)))
    metric = data.task.selection
    places = grouped(data.tables["expected_validation"], *keys)
    shown, note = capped(list(places))
    names = [", ".join([place_name(data, *place[:2]), *place[2:]]) for place in shown]
    figure, axes = panels(data, names, height=2.1)
    for place, row in zip(shown, axes, strict=True):
        cells = grouped(places[place], data.column_key, data.series_key)
        for column, axis in zip(data.columns, row, strict=True):
            for name, look in data.series.items():
                _draw_expected(axis, cells.get((column, name), []), look, metric)
            axis.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
        share_limits(row, 1, limits_of(metric))
        row[0].set_ylabel(f"{word('expected_best')}\n{axis_label(word('validation'), metric)}")
    for axis in axes[-1]:
        axis.set_xlabel(word("settings_tried"))
    in_per_cent = bool(unit_of(metric).sign)
    caption = make_caption(
        WORDS, "expected_validation", metric, in_per_cent, better(metric), data.seeds, note
    )
    known = {row[data.series_key] for row in data.tables["expected_validation"]}
    handles = [line_handle(look) for name, look in data.series.items() if name in known]
    handles.append(Patch(color=GREY, alpha=0.25, linewidth=0, label=word("one_sd")))
    return finish(figure, handles, caption, legend_rows=1), caption


def _draw_expected(axis: Axes, rows: Sequence[Row], look: Look, metric: str) -> None:
    factor = unit_of(metric).factor
    rows = sorted(rows, key=lambda row: row["settings"])
    x = [row["settings"] for row in rows]
    y = np.array([factor * row["expected"] for row in rows])
    spread = np.array([factor * (row["sd"] or 0.0) for row in rows])
    style = {"color": look.colour, "linestyle": look.line, "linewidth": 2.2}
    axis.plot(x, y, marker=look.marker, markersize=5, **style)
    low, high = np.clip([y - spread, y + spread], *(factor * bound for bound in bounds_of(metric)))
    axis.fill_between(x, low, high, color=look.colour, alpha=0.18, linewidth=0)
