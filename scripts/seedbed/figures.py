"""The figures of an experiment: every seed shown, the mean with its interval, and what has to be beaten.

Colours are seaborn's colour-blind palette, and each init has its own line style and marker as well, so that
figures can be read in grey. Each figure says in its caption what is shown, in which unit and over how many
seeds. Files do not depend on the time they are written.
"""

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")  # jobs have no screen

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, NullLocator

from seedbed import statistics
from seedbed.files import atomic_open
from seedbed.tables import Row, grouped, on_test_set, read_table
from seedbed.words import count

COLOURS = dict(zip(("pretrained", "random"), sns.color_palette("colorblind"), strict=False))
LINES: dict[str, Any] = {"pretrained": "-", "random": (0, (4, 1.6))}
MARKERS = {"pretrained": "o", "random": "s"}
GREY = "0.35"
MAJORITY: dict[str, Any] = {"color": GREY, "linestyle": ":", "linewidth": 1.4}
MEAN: dict[str, Any] = {"marker": "|", "markersize": 13, "markeredgewidth": 2.2, "color": "black"}
BAG: dict[str, Any] = {"color": GREY, "linestyle": (0, (6, 2, 1, 2)), "linewidth": 1.2}
# Inches; the text is large enough to be read when a figure is printed at half its width.
PANEL_WIDTH, LEFT_MARGIN, MIN_WIDTH = 3.3, 0.7, 5.2
MAX_ROWS = 12
DPI = 200


@dataclass(frozen=True)
class Data:
    """The tables that figures are drawn from."""

    runs: list[Row]
    curves: list[Row]
    summary: list[Row]
    reporting: Mapping[str, Any]

    @property
    def confidence(self) -> float:
        """Level of intervals."""
        return self.reporting["statistics"]["confidence"]

    @property
    def frameworks(self) -> list[str]:
        """Frameworks of the runs, in the order of the grid: the columns of panels."""
        return list(dict.fromkeys(run["framework"] for run in self.runs))

    @property
    def inits(self) -> list[str]:
        """Inits of the runs."""
        return [init for init in COLOURS if any(run["init"] == init for run in self.runs)]

    @property
    def seeds(self) -> str:
        """n = 3 seeds"""
        sizes = sorted({row["n_seeds"] for row in self.summary})
        text = count(sizes[0], "seed") if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]} seeds"
        return f"n = {text}".replace(" ", "\N{NO-BREAK SPACE}")

    def interval(self, sign: str, more: str = "") -> str:
        """`; SIGN: 95% Student t interval over seeds`, or nothing where one seed gives none."""
        if all(row["ci_low"] is None for row in self.summary):
            return ""
        return f"; {sign}: {100 * self.confidence:.4g}% Student t interval over seeds{more}"

    @property
    def interval_handle(self) -> list[Patch]:
        """The legend's entry of intervals, where there are any."""
        label = f"{100 * self.confidence:.4g}% interval"
        known = any(row["ci_low"] is not None for row in self.summary)
        return [Patch(color=GREY, alpha=0.25, linewidth=0, label=label)] if known else []


def plot_figures(
    tables: Mapping[str, str | Path],
    reporting: Mapping[str, Any],
    svg: Sequence[str | Path],
    png: Sequence[str | Path],
) -> None:
    """Draw each figure that is asked for, as SVG and as PNG; the file's stem names the figure.

    Args:
        tables: paths of runs, curves and summary.
        reporting: `Plan.reporting()`.
        svg: paths .../NAME.svg.
        png: paths .../NAME.png, of the same names in the same order.
    """
    runs, curves, summary = (read_table(tables[name]) for name in ("runs", "curves", "summary"))
    data = Data(runs, curves, on_test_set(summary), reporting)
    set_style()
    for vector, raster in zip(map(Path, svg), map(Path, png), strict=True):
        save(*FIGURES[vector.stem](data), vector, raster)


def set_style() -> None:
    """The style that all figures share."""
    sns.set_theme(style="ticks", font="DejaVu Sans")
    small, normal = 10, 11
    plt.rcParams.update(
        {
            "font.size": normal,
            "axes.labelsize": normal,
            "axes.titlesize": normal,
            "axes.titlelocation": "left",
            "xtick.labelsize": small,
            "ytick.labelsize": small,
            "legend.fontsize": small,
            "legend.frameon": False,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "svg.hashsalt": "seedbed",
        }
    )


def save(figure: Figure, caption: str, svg: str | Path, png: str | Path) -> None:
    """Write a figure as SVG and as PNG, atomically, and close it; the same numbers make the same files."""
    _settle(figure)
    text = {"Title": Path(svg).stem, "Description": caption}
    # neither the date nor the version of a library
    with atomic_open(svg, "wb") as stream:
        figure.savefig(stream, format="svg", metadata={"Date": None, **text})
    with atomic_open(png, "wb") as stream:
        figure.savefig(stream, format="png", dpi=DPI, metadata={"Software": None, **text})
    plt.close(figure)


def _settle(figure: Figure) -> None:
    """Lay out once and round the places: the last digits vary, and ids in the SVG are made of them."""
    figure.canvas.draw()
    figure.set_layout_engine("none")
    for axis in figure.axes:
        axis.set_position(np.round(axis.get_position().bounds, 6))


# --- curves -------------------------------------------------------------------------------------------------


def validation_accuracy(data: Data) -> tuple[Figure, str]:
    """Validation accuracy over updates: a panel a framework, a row a dataset, model and recipe."""
    return _plot_curves(data, "validation", "It selects the checkpoint of each run.")


def test_curves(data: Data) -> tuple[Figure, str]:
    """Test accuracy over updates; it selects nothing."""
    return _plot_curves(data, "test", "Test curves select nothing.")


test_curves.__test__ = False  # a figure's name, not a test for pytest to collect


def _plot_curves(data: Data, split: str, remark: str) -> tuple[Figure, str]:
    wanted = [row for row in data.curves if row["split"] == split and row["metric"] == "accuracy"]
    cells = grouped(wanted, "dataset", "model", "recipe", "framework", "init")
    rows = list(dict.fromkeys(key[:3] for key in cells))
    shown, note = _capped(rows)
    figure, axes = _panels(data, [_row_name(data, row) for row in shown], height=2.3)
    for row, line in zip(shown, axes, strict=True):
        for framework, axis in zip(data.frameworks, line, strict=True):
            for init in data.inits:
                _draw_curves(axis, cells.get((*row, framework, init), []), init, data.confidence)
            axis.axhline(100 * _majority(data, row, split), **MAJORITY)
            axis.set_xlim(left=0)
            axis.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
        _share_limits(line, 1)
        line[0].set_ylabel(f"{split}\naccuracy (%)")
    for axis in axes[-1]:
        axis.set_xlabel("updates")
    handles = [_line_handle(init) for init in data.inits]
    handles += [Line2D([], [], color=GREY, linewidth=0.9, alpha=0.7, label="one seed")]
    handles += [*data.interval_handle, Line2D([], [], label="majority class", **MAJORITY)]
    caption = (
        f"Accuracy on the {split} split in per cent, by number of updates. Thin lines: one seed each; thick "
        f"lines: their mean ({data.seeds}){data.interval('band')}. {remark}{note}"
    )
    return finish(figure, handles, caption, legend_rows=1), caption


def _draw_curves(axis: Axes, rows: Sequence[Row], init: str, confidence: float) -> None:
    """A thin line a seed; the mean and its band where every seed has a value."""
    seeds = grouped(rows, "init_seed", "data_seed")
    style = {"color": COLOURS[init], "linestyle": LINES[init]}
    by_step: dict[int, list[float]] = {}
    for points in seeds.values():
        points = sorted(points, key=lambda row: row["step"])
        values = [np.nan if row["value"] is None else 100 * row["value"] for row in points]
        # many lines must not hide the mean
        axis.plot(
            [row["step"] for row in points], values, linewidth=0.9, alpha=min(0.5, 2.5 / len(seeds)), **style
        )
        for row, value in zip(points, values, strict=True):
            by_step.setdefault(row["step"], []).append(value)
    whole = {
        step: values
        for step, values in sorted(by_step.items())
        if len(values) == len(seeds) and np.isfinite(values).all()
    }
    means = [statistics.mean(values) for values in whole.values()]
    marker = {"marker": MARKERS[init], "markersize": 5, "markeredgecolor": "white", "markeredgewidth": 0.6}
    axis.plot(list(whole), means, linewidth=2.2, zorder=4, **marker, **style)
    # where all seeds are equal there is no interval, and the band is as thin as the line
    bands = [
        statistics.t_interval(values, confidence) or (statistics.mean(values),) * 2
        for values in whole.values()
    ]
    if bands and len(seeds) > 1:
        low, high = np.clip(np.array(bands).T, 0, 100)
        axis.fill_between(list(whole), low, high, color=COLOURS[init], alpha=0.16, linewidth=0)


def _majority(data: Data, row: tuple[str, str, str], split: str) -> float:
    return next(run[f"{split}_majority_share"] for run in data.runs if run["dataset"] == row[0])


def _row_name(data: Data, row: tuple[str, str, str]) -> str:
    """Dataset, model and recipe, of which only those that vary, or all where none does."""
    block = data.reporting["recipes"][row[2]]
    families = {other["family"] for other in data.reporting["recipes"].values()}
    recipe = _swept_text(data, row[2]) if block["swept"] and len(families) == 1 else row[2]
    parts = (*row[:2], recipe)
    return ", ".join([part for index, part in enumerate(parts) if len(_values(data, index)) > 1] or parts)


def _values(data: Data, index: int) -> set[str]:
    return {run[("dataset", "model", "recipe")[index]] for run in data.runs}


def _capped(rows: Sequence[Any]) -> tuple[Sequence[Any], str]:
    """At most MAX_ROWS rows, and what the caption says of the others."""
    if len(rows) <= MAX_ROWS:
        return rows, ""
    return rows[:MAX_ROWS], f" The first {MAX_ROWS} of {len(rows)} rows; the tables hold them all."


# --- final accuracies ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Group:
    """Summary rows of one framework, an init each, that stand together under a title."""

    title: str
    rows: list[Row]


def test_accuracy(data: Data) -> tuple[Figure, str]:
    """Test accuracy of the selected checkpoints: every seed, mean and interval, and what has to be beaten."""
    places = grouped(data.summary, "dataset", "model")
    shown, note = _capped(list(places))
    lines = {
        place: max(len(_groups(data, places[place], name)) for name in data.frameworks) for place in shown
    }
    height = 0.75 + max(lines.values()) * (0.3 + 0.62 * len(data.inits))
    figure, axes = _panels(data, [", ".join(place) for place in shown], height=height, pad=31)
    states: set[str] = set()
    for place, line in zip(shown, axes, strict=True):
        for framework, axis in zip(data.frameworks, line, strict=True):
            groups = _groups(data, places[place], framework)
            states |= _draw_groups(axis, data, groups)
            _draw_references(axis, places[place][0])
        _share_limits(line, 0)
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
        *_seed_handles(data),
        Line2D([], [], label="mean", linestyle="none", **MEAN),
        *data.interval_handle,
    ]
    return finish(figure, [*handles, *_state_handles(states)], caption), caption


test_accuracy.__test__ = False


def _groups(data: Data, rows: Sequence[Row], framework: str) -> list[_Group]:
    """One group for each recipe; for a swept family the first recipe, and each init's own best."""
    groups = []
    here = [row for row in rows if row["framework"] == framework]
    for (family,), members in grouped(here, "recipe_family").items():
        best = [row for row in members if row["selection"] == "best"]
        first = next(name for name, block in data.reporting["recipes"].items() if block["family"] == family)
        equal = [row for row in members if row["selection"] == "equal" and row["recipe"] == first]
        several = len({row["recipe_family"] for row in rows}) > 1
        name = f"{family}, " if several else ""
        if best:
            groups.append(_Group(f"{name}equal recipe: {_swept_text(data, first)}", equal))
            groups.append(_Group(f"{name}own best: {_chosen_text(data, best)}", best))
        else:
            groups.append(_Group(family if several else "", equal))
    return groups


def _swept_text(data: Data, recipe: str) -> str:
    swept = data.reporting["recipes"][recipe]["swept"]
    return ", ".join(f"{key.replace('_', ' ')} {short_number(value)}" for key, value in swept.items())


def _chosen_text(data: Data, best: Sequence[Row]) -> str:
    """The swept values that each init does best with on validation."""
    swept = [(row["init"], data.reporting["recipes"][row["recipe"]]["swept"]) for row in best]
    texts = {init: ", ".join(map(short_number, values.values())) for init, values in swept}
    if len(texts) > 1 and len(set(texts.values())) == 1:
        return f"{next(iter(texts.values()))} (both)"
    return "; ".join(f"{text} ({init})" for init, text in texts.items())


def _draw_groups(axis: Axes, data: Data, groups: Sequence[_Group]) -> set[str]:
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
    runs = _runs_of(data, row)
    if row["ci_low"] is not None:
        bounds = np.clip([100 * row["ci_low"], 100 * row["ci_high"]], 0, 100)
        axis.plot(
            bounds, [height + 0.15] * 2, color=COLOURS[init], linewidth=9, solid_capstyle="butt", alpha=0.45
        )
    axis.plot(100 * row["mean"], height + 0.15, **MEAN)
    heights = height + np.linspace(0.42, 0.75, len(runs)) if len(runs) > 1 else [height + 0.5]
    states = set()
    for run, level in zip(runs, heights, strict=True):
        state = _state(run)
        axis.plot(100 * run["test_accuracy"], level, linestyle="none", **_mark(init, state), zorder=3)
        states.add(state)
    return states


def _runs_of(data: Data, row: Row) -> list[Row]:
    keys = ("dataset", "model", "framework", "init", "recipe")
    return [run for run in data.runs if all(run[key] == row[key] for key in keys)]


def _state(run: Row) -> str:
    return "collapsed" if run["collapsed"] else "weak" if run["not_above_majority"] else "sound"


def _mark(init: str, state: str) -> dict[str, Any]:
    """How a seed is drawn: filled; hollow where not above the majority class; a cross where collapsed."""
    if state == "collapsed":
        return {"marker": "X", "markersize": 7.5, "color": COLOURS[init], "markeredgecolor": "black"}
    fill, edge = ("white", COLOURS[init]) if state == "weak" else (COLOURS[init], "white")
    return {
        "marker": MARKERS[init],
        "markersize": 5.5,
        "markerfacecolor": fill,
        "markeredgecolor": edge,
        "markeredgewidth": 1.3 if state == "weak" else 0.6,
    }


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


def _seed_handles(data: Data) -> list[Line2D]:
    return [
        Line2D([], [], linestyle="none", label=f"{init}, one seed", **_mark(init, "sound"))
        for init in data.inits
    ]


def _state_handles(states: set[str]) -> list[Line2D]:
    handles = []
    grey = {"linestyle": "none", "color": "0.6", "markeredgecolor": "black"}
    if "weak" in states:
        label = "not above majority class"
        handles.append(Line2D([], [], marker="o", markerfacecolor="white", markersize=5, label=label, **grey))
    if "collapsed" in states:
        handles.append(Line2D([], [], marker="X", markersize=7.5, label="collapsed", **grey))
    return handles


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
    shown, note = _capped(_sweeps(data))
    figure, axes = _panels(data, [_sweep_name(data, sweep) for sweep in shown], height=2.9)
    states: set[str] = set()
    for sweep, line in zip(shown, axes, strict=True):
        for framework, axis in zip(data.frameworks, line, strict=True):
            states |= _draw_sweep(axis, data, sweep, framework)
            axis.set_xlabel(sweep.key.replace("_", " "))
        _share_limits(line, 1)
        line[0].set_ylabel("test accuracy (%)")
    handles: list[Any] = [_line_handle(init) for init in data.inits]
    handles += [*data.interval_handle, *_state_handles(states)]
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
    chosen = [
        part for index, part in enumerate((sweep.dataset, sweep.model)) if len(_values(data, index)) > 1
    ]
    fixed = [f"{key.replace('_', ' ')} {value}" for key, value in sweep.fixed]
    return ", ".join([*(chosen or (sweep.dataset, sweep.model)), sweep.family, *fixed])


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
        for run in _runs_of(data, row):
            state = _state(run)
            axis.plot(
                place + 2 * outwards, 100 * run["test_accuracy"], linestyle="none", **_mark(init, state)
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


def short_number(value: Any) -> str:
    """A number as short as it can be: 1e-05 is 1e-5, 0.1 is 0.1; anything else as its text."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if value == 0 or 1e-2 <= abs(value) < 1e5:
        return f"{value:g}"
    digits, exponent = f"{value:e}".split("e")
    return f"{float(digits):g}e{int(exponent)}"


# --- what figures share -------------------------------------------------------------------------------------


def _panels(data: Data, rows: Sequence[str], height: float, pad: float = 6) -> tuple[Figure, np.ndarray]:
    """A grid of panels: a column a framework, a row for each name; titles say which."""
    columns = len(data.frameworks)
    width = max(MIN_WIDTH, LEFT_MARGIN + PANEL_WIDTH * columns)
    figure, axes = plt.subplots(
        len(rows),
        columns,
        figsize=(width, height * len(rows) + 1.5),
        squeeze=False,
        layout="constrained",
    )
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.06)
    for name, line in zip(rows, axes, strict=True):
        for index, (framework, axis) in enumerate(zip(data.frameworks, line, strict=True)):
            axis.set_title(f"{name if index == 0 else ''}\n{framework}", pad=pad)
    return figure, axes


def _share_limits(line: Sequence[Axes], dimension: int) -> None:
    """The same accuracy axis for the panels of a row, with some room, and never beyond 0 and 100%."""
    limits = [axis.get_ylim() if dimension else axis.get_xlim() for axis in line]
    low, high = min(limit[0] for limit in limits), max(limit[1] for limit in limits)
    for axis in line:
        (axis.set_ylim if dimension else axis.set_xlim)(max(-2, low), min(102, high))


def _line_handle(init: str) -> Line2D:
    style = {"color": COLOURS[init], "linestyle": LINES[init], "marker": MARKERS[init]}
    return Line2D([], [], linewidth=2.2, markersize=5, label=init, **style)


def finish(figure: Figure, handles: Sequence[Any], caption: str, legend_rows: int = 2) -> Figure:
    """Legend above, in this many rows or as many more as it needs; caption below."""
    width = figure.get_figwidth()
    for columns in range(-(-len(handles) // legend_rows), 0, -1):
        style = {"ncols": columns, "columnspacing": 1.2, "handlelength": 2.2, "handletextpad": 0.6}
        legend = figure.legend(handles=handles, loc="outside upper left", **style)
        if legend.get_window_extent().width <= 0.98 * width * figure.dpi or columns == 1:
            break
        legend.remove()
    wrapped = textwrap.fill(caption, int(width * 15))
    figure.supxlabel(wrapped, x=0.012, ha="left", fontsize=9, color="0.2", linespacing=1.25)
    return figure


FIGURES: dict[str, Callable[[Data], tuple[Figure, str]]] = {
    "validation_accuracy": validation_accuracy,
    "test_accuracy": test_accuracy,
    "test_accuracy_by_recipe": test_accuracy_by_recipe,
    "test_curves": test_curves,
}
