"""What figures share: the tables, style, panels, legends, captions, and how a figure becomes files.

The task says what has a column of panels and what is a series: frameworks and inits where models choose
classes, inits and families of recipes (methods) where they write answers. Colours are seaborn's colour-blind
palette; each series has its own line style and marker as well, so that figures can be read in grey. Names
from the configuration are drawn literally: `$` and `_` are no mathematics.
"""

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
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
from matplotlib.transforms import Bbox

from seedbed.analysis.experiment import INITS, Experiment
from seedbed.analysis.table_rows import RunRow, SummaryRow
from seedbed.core.files import atomic_open
from seedbed.core.rows import grouped
from seedbed.core.tasks import ANSWERS, CLASSES, LABEL_SETS, SCORES, VALUES, Task
from seedbed.core.wording import Words
from seedbed.core.words import bounds_of, count, key_text, short_number, swept_text, unit_of
from seedbed.figures.captions import Caption
from seedbed.figures.fonts import use_fonts_for
from seedbed.figures.names import fit_names, series_name, shorten_all, word, wrap_name, wrap_names

PALETTE = sns.color_palette("colorblind")
STROKES: tuple[Any, ...] = ("-", (0, (4, 1.6)), (0, (6, 1.5, 1.2, 1.5)), (0, (1.2, 1.2)), (0, (8, 2)))
LEGEND_LETTERS = 40  # of a name in a legend
SHAPES = ("o", "s", "D", "^", "v", "P", "h")


@dataclass(frozen=True)
class Look:
    """How a series is drawn; `label` is its name in a legend, shortened if too long."""

    name: str
    label: str
    colour: Any
    line: Any
    marker: str


def make_looks(names: Sequence[str]) -> dict[str, Look]:
    """A look for each init or family; without colour, as many can be distinguished as there are shapes."""
    labels = shorten_all(list(map(series_name, names)), LEGEND_LETTERS)
    return {
        name: Look(
            name,
            label,
            PALETTE[place % len(PALETTE)],
            STROKES[place % len(STROKES)],
            SHAPES[place % len(SHAPES)],
        )
        for place, (name, label) in enumerate(zip(names, labels, strict=True))
    }


LOOKS = make_looks(INITS)
COLOURS = {name: look.colour for name, look in LOOKS.items()}
LINES = {name: look.line for name, look in LOOKS.items()}
MARKERS = {name: look.marker for name, look in LOOKS.items()}
GREY = "0.35"
MAJORITY: dict[str, Any] = {"color": GREY, "linestyle": ":", "linewidth": 1.4}
STROKE: dict[str, Any] = {"marker": "|", "markersize": 13, "markeredgewidth": 2.2, "color": "black"}
BAG: dict[str, Any] = {"color": GREY, "linestyle": (0, (6, 2, 1, 2)), "linewidth": 1.2}
PROBE: dict[str, Any] = {"color": GREY, "linestyle": (0, (3, 2)), "linewidth": 1.2}
# Inches. A phone of 375 pixels shows figures 330 pixels wide: letters of 9 points are 9 pixels high there.
WIDTH = 4.6
PANEL_WIDTH = 3.3  # of a panel with names beside it
MAX_ROWS = 12
DPI = 200
LETTERS, SMALL_LETTERS = 11.0, 14.4  # of a title and of a caption, on an inch
ROW_LETTERS = int(LETTERS * WIDTH) - 6  # of a line above panels with numbers beside them
NAMED_LETTERS = 37  # of a line above panels with names beside them
TITLE_LETTERS, HALF_LETTERS = 46, 18  # of a line of the title of a panel, and of one of two beside each other
WORDS = Words("figures/base")
# by a task's outputs: the label of runs that learned nothing
WEAK = {
    CLASSES: "not_above_majority",
    LABEL_SETS: "not_above_constant",
    VALUES: "not_better_than_mean",
    ANSWERS: "not_above_untrained",
    SCORES: "",  # nothing tells which runs these are
}
CROWD = 20  # seeds beyond which marks would hide each other


@dataclass(frozen=True)
class Data(Experiment):
    """The experiment that figures are drawn from, on the whole test split, and what its axes of the grid look
    like; `tables` holds those that only some figures are drawn from.
    """

    @property
    def generates(self) -> bool:
        """Whether the models write answers."""
        return self.task.writes_answers

    @property
    def weak(self) -> str:
        """The label of runs that learned nothing, in data/labels.yaml."""
        return WEAK[self.task.outputs]

    @property
    def column_key(self) -> str:
        """The column of the tables with one column of panels per value."""
        return self.task.columns

    @property
    def series_key(self) -> str:
        """The column of the tables with one look per value."""
        return self.task.series

    @property
    def columns(self) -> list[str]:
        """The frameworks or inits that have a column of panels each."""
        return self.inits if self.column_key == "init" else self.frameworks

    @cached_property
    def series(self) -> dict[str, Look]:
        """The series by name, in the order of the grid."""
        if self.series_key == "init":
            return {init: LOOKS[init] for init in self.inits}
        return make_looks(list(dict.fromkeys(run.recipe_family for run in self.runs)))

    def look(self, row: RunRow | SummaryRow) -> Look:
        """How a run or a row of the summary is drawn."""
        return self.series[row[self.series_key]]

    def column_name(self, column: str) -> str:
        """A column of panels in words: Transformers; or, of several inits, from the checkpoint."""
        named = self.column_key == "framework" or len(self.columns) > 1
        return series_name(column) if named else ""

    @cached_property
    def seeds(self) -> str:
        """n = 3 seeds"""
        sizes = sorted({row.n_seeds for row in self.summary})
        text = count(sizes[0], "seed")
        if len(sizes) > 1:
            text = word("seeds_from_to", low=sizes[0], high=sizes[-1])
        return word("seeds", seeds=text).replace(" ", "\N{NO-BREAK SPACE}")

    @property
    def level_of_intervals(self) -> float | None:
        """The level of the intervals of means; None where one seed gives none."""
        return self.confidence if any(row.interval is not None for row in self.summary) else None

    @property
    def interval_handle(self) -> list[Patch]:
        """The legend entry of intervals, if there are any."""
        if self.level_of_intervals is None:
            return []
        return [Patch(color=GREY, alpha=0.25, linewidth=0, label=self.level)]


# --- style and files ----------------------------------------------------------------------------------------


def set_style(names: Iterable[str] = ()) -> None:
    """The style that all figures share, with fonts for these names."""
    sns.set_theme(style="ticks")
    use_fonts_for(names)
    small, normal = 9, 10
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
            # a class may be called $5 or p$_1$
            "text.parse_math": False,
        }
    )


def save(figure: Figure, caption: Caption, svg: str | Path, png: str | Path) -> None:
    """Write a figure as SVG and PNG, atomically, and close it; equal numbers give equal files.

    The PNG shows the caption without its details. The SVG has both in its metadata only: the report prints
    them as text.
    """
    _settle(figure)
    text = {"Title": Path(svg).stem, "Description": str(caption)}
    # neither the date nor the version of a library
    with atomic_open(png, "wb") as stream:
        figure.savefig(stream, format="png", dpi=DPI, metadata={"Software": None, **text})
    drawn = figure._supxlabel
    above = round(drawn.get_window_extent().y1 / figure.dpi, 2)
    drawn.set_visible(False)
    page = Bbox([[0, above], figure.get_size_inches()])
    with atomic_open(svg, "wb") as stream:
        figure.savefig(stream, format="svg", bbox_inches=page, metadata={"Date": None, **text})
    plt.close(figure)


def _settle(figure: Figure) -> None:
    """Lay out once and round the positions: their last digits vary, and ids in the SVG depend on them."""
    figure.draw_without_rendering()
    figure.set_layout_engine(None)  # else saving would draw once more
    for axis in figure.axes:
        axis.set_position(np.round(axis.get_position().bounds, 6))


# --- panels, legends, captions ------------------------------------------------------------------------------


def empty_figure(height: float) -> Figure:
    """A figure of this height in inches, whose layout keeps titles, labels and panels from overlapping."""
    figure = plt.figure(figsize=(WIDTH, height), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.06)
    return figure


def panels(
    data: Data,
    rows: Sequence[str],
    height: float | Sequence[float],
    pad: float = 6,
    titles: Sequence[bool] | None = None,
    *,
    beside: bool = True,
    letters: int = ROW_LETTERS,
) -> tuple[Figure, np.ndarray]:
    """A grid of panels with titles, (rows, columns): one column per framework or init, one row per name.

    Args:
        data: whose `columns` are the columns.
        rows: name of each row.
        height: inches of every row, or of each.
        pad: points between title and panel.
        titles: whether each row has a title; by default all.
        beside: whether the panels of a row stand beside each other; else each has the whole width.
        letters: of a line of the name of a row.
    """
    columns = len(data.columns)
    heights = [height] * len(rows) if isinstance(height, (int, float)) else list(height)
    titled = titles or [True] * len(rows)
    names = wrap_names(rows, letters)
    lines = sum(name.count("\n") for name, shown in zip(names, titled, strict=True) if shown)
    if beside:
        figure = empty_figure(sum(heights) + 0.17 * lines + 1.2)
        axes = figure.subplots(len(rows), columns, squeeze=False, height_ratios=heights)
    else:
        heights = [height for height in heights for _ in range(columns)]
        figure = empty_figure(sum(heights) + 0.17 * lines + 1.2)
        axes = figure.subplots(len(rows) * columns, 1, squeeze=False, height_ratios=heights)
        axes = axes.reshape(len(rows), columns)
    for name, shown, line in zip(rows, titled, axes, strict=True):
        if shown:
            most = HALF_LETTERS if beside and columns > 1 else TITLE_LETTERS
            below = [wrap_name(data.column_name(name), most).strip() for name in data.columns]
            set_titles(line, name, below, pad, letters)
    return figure, axes


def set_titles(
    line: Sequence[Axes], name: str, below: Sequence[str], pad: float = 6, letters: int = ROW_LETTERS
) -> None:
    """Titles of a row of panels, without overlaps: `name` above the first, below it one line per panel."""
    most = max(text.count("\n") for text in below)
    name = wrap_name(name, letters)
    for index, (axis, text) in enumerate(zip(line, below, strict=True)):
        lines = most - text.count("\n") + 1
        titled = name + "\n" * lines + text if text else name
        axis.set_title(titled if index == 0 else text, pad=pad)


def share_limits(line: Sequence[Axes], dimension: int, bounds: tuple[float, float] = (-2, 102)) -> None:
    """One axis for all panels of a row, at most as wide as `bounds` (0 and 100%, with some room)."""
    limits = [axis.get_ylim() if dimension else axis.get_xlim() for axis in line]
    low, high = min(limit[0] for limit in limits), max(limit[1] for limit in limits)
    for axis in line:
        (axis.set_ylim if dimension else axis.set_xlim)(max(bounds[0], low), min(bounds[1], high))


def limits_of(metric: str) -> tuple[float, float]:
    """The widest axis of a metric: what is possible, of shares and correlations with some room."""
    least, most = bounds_of(metric)
    if most == np.inf:
        return least, most
    room, factor = 0.02 * (most - least), unit_of(metric).factor
    return factor * (least - room), factor * (most + room)


def line_handle(look: Look) -> Line2D:
    """The legend entry of the mean of a series."""
    style = {"color": look.colour, "linestyle": look.line, "marker": look.marker}
    return Line2D([], [], linewidth=2.2, markersize=5, label=look.label, **style)


def finish(figure: Figure, handles: Sequence[Any], caption: Caption, legend_rows: int = 2) -> Figure:
    """Add the legend above, in this many rows or more if needed, and the caption below."""
    width = figure.get_figwidth()
    for columns in range(-(-len(handles) // legend_rows), 0, -1):
        style = {"ncols": columns, "columnspacing": 1.2, "handlelength": 2.2, "handletextpad": 0.6}
        legend = figure.legend(handles=handles, loc="outside upper left", **style)
        if legend.get_window_extent().width <= 0.98 * width * figure.dpi or columns == 1:
            break
        legend.remove()
    wrapped = textwrap.fill(caption.text, int(SMALL_LETTERS * width))
    figure.supxlabel(wrapped, x=0.012, ha="left", fontsize=9, color="0.2", linespacing=1.25)
    return figure


def give_room(figure: Figure, panels: Sequence[Axes], height: float) -> None:
    """Make a finished figure taller where legend, labels and caption leave its panels too little height.

    Args:
        figure: with its legend and caption.
        panels: above each other.
        height: inches that they need together.
    """
    figure.draw_without_rendering()
    whole = figure.get_figheight()
    left = sum(panel.get_position().height for panel in panels) * whole
    figure.set_figheight(whole + max(0.0, height - left))


def capped(rows: Sequence[Any], limit: int = MAX_ROWS) -> tuple[Sequence[Any], str]:
    """At most `limit` rows, and a sentence for the caption if some are left out."""
    if len(rows) <= limit:
        return rows, ""
    return rows[:limit], WORDS.say("capped", limit, len(rows))


# --- names of what is shown ---------------------------------------------------------------------------------


def values_of(data: Data, column: str) -> set[str]:
    """The values of a column of the runs."""
    return {run[column] for run in data.runs}


def place_name(data: Data, dataset: str, model: str) -> str:
    """Dataset and model; only the one that varies, unless both or neither do."""
    parts = {"dataset": dataset, "model": model}
    varying = [key for key in parts if len(values_of(data, key)) > 1]
    return ", ".join(parts[key] for key in varying or parts)


def swept_values(data: Data, recipe: str) -> str:
    """The swept values of a recipe: learning rate 1e-5."""
    return swept_text(data.reporting["recipes"][recipe]["swept"])


def sides_text(data: Data, recipes: Sequence[str]) -> str:
    """Swept values of the recipes of two sides: learning rate 1e-5 (both), or learning rate 1e-5 / 3e-5."""
    texts = [swept_values(data, recipe) for recipe in recipes]
    if len(set(texts)) == 1:
        return word("same_of_both", values=texts[0])
    swept = [data.reporting["recipes"][recipe]["swept"] for recipe in recipes]
    if any(len(values) > 1 for values in swept):
        return " / ".join(texts)
    (key,) = swept[0]
    return f"{key_text(key)} {' / '.join(short_number(values[key]) for values in swept)}"


@dataclass(frozen=True)
class Group:
    """Summary rows of one column of panels, one per series, under a common title."""

    title: str
    rows: list[SummaryRow]


def recipe_groups(data: Data, rows: Sequence[SummaryRow], column: str) -> list[Group]:
    """One group per recipe; for a swept family, one of its equal recipe and one of each init's best.

    Where families are the series, all stand in one group; where any is swept, in a second one at its best.
    `rows` are the summary's of one dataset, model and metric; the order of groups is the same in all columns.
    """
    groups = []
    here = [row for row in rows if row[data.column_key] == column]
    if data.series_key == "recipe_family":
        return _groups_of_families(data, here)
    several = len({row.recipe_family for row in rows}) > 1
    for (family,), members in grouped(here, "recipe_family").items():
        best = [row for row in members if row.selection == "best"]
        first = data.reference(family)
        equal = [row for row in members if row.selection == "equal" and row.recipe == first]
        name = f"{family}, " if several else ""
        if best:
            at_equal = word("equal_recipe", values=swept_values(data, first))
            at_best = word("own_best_of", values=_chosen_text(data, best))
            groups += [Group(f"{name}{at_equal}", equal), Group(f"{name}{at_best}", best)]
        else:
            groups.append(Group(family if several else "", equal))
    return groups


def _groups_of_families(data: Data, rows: Sequence[SummaryRow]) -> list[Group]:
    first, best = [], []
    for (family,), members in grouped(rows, "recipe_family").items():
        reference = data.reference(family)
        equal = next(row for row in members if row.selection == "equal" and row.recipe == reference)
        chosen = [row for row in members if row.selection == "best"]
        first.append(equal)
        best.append(chosen[0] if chosen else equal)
    if first == best:
        return [Group("", first)]
    return [
        Group(word("methods_at_own_best"), best),
        Group(word("equal_of_sweeps" if "ranges" in data.reporting else "first_of_sweeps"), first),
    ]


def _chosen_text(data: Data, best: Sequence[SummaryRow]) -> str:
    """The swept values with which each init is best on validation."""
    recipes = {row.init: row.recipe for row in best}
    if len(recipes) > 1:
        return sides_text(data, list(recipes.values()))
    return swept_values(data, *recipes.values())


@dataclass(frozen=True)
class Line:
    """A row of panels: one group of summary rows per column."""

    dataset: str
    name: str
    groups: dict[str, Group]

    def rows(self, column: str) -> list[SummaryRow]:
        """The summary rows of a panel, one per series."""
        return self.groups[column].rows if column in self.groups else []

    def title(self, data: Data, column: str) -> str:
        """The title of a panel: its column, and the recipes of its series."""
        group = self.groups.get(column)
        letters = HALF_LETTERS if len(data.columns) > 1 else TITLE_LETTERS
        recipes = wrap_name(group.title, letters) if group and group.title else ""
        named = wrap_name(data.column_name(column), letters).strip()
        return "\n".join(filter(None, (named, recipes)))


def group_lines(data: Data, limit: int = MAX_ROWS) -> tuple[Sequence[Line], str]:
    """One row of panels per dataset, model and group of recipes; and a note for the caption."""
    lines = []
    for (dataset, model), rows in grouped(data.summary, "dataset", "model").items():
        groups = {name: recipe_groups(data, rows, name) for name in data.columns}
        for index in range(max(map(len, groups.values()))):
            here = {name: found[index] for name, found in groups.items() if index < len(found)}
            lines.append(Line(dataset, place_name(data, dataset, model), here))
    shown, note = capped(lines, limit)
    shown = _told_apart(shown, HALF_LETTERS if len(data.columns) > 1 else TITLE_LETTERS)
    swept = any(row.selection == "best" for row in data.summary)
    return shown, " ".join(
        filter(None, (WORDS.say("swept", "ranges" in data.reporting) if swept else "", note))
    )


def _told_apart(lines: Sequence[Line], letters: int) -> list[Line]:
    """The lines with titles that differ although they are shortened, those of panels to so many letters."""
    names = fit_names([line.name for line in lines], ROW_LETTERS)
    titles = [group.title for line in lines for group in line.groups.values()]
    fitting = dict(zip(titles, fit_names(titles, letters), strict=True))
    return [
        replace(
            line,
            name=name,
            groups={key: replace(group, title=fitting[group.title]) for key, group in line.groups.items()},
        )
        for line, name in zip(lines, names, strict=True)
    ]


# --- seeds --------------------------------------------------------------------------------------------------


def runs_of(data: Data, row: SummaryRow) -> list[RunRow]:
    """The runs behind a row of the summary."""
    return data.group(row)


def state_of(task: Task, run: RunRow) -> str:
    """collapsed; weak: not above the majority class, or not better than untrained; unstable, of a task that
    generates; or sound."""
    if run.collapsed:
        return "collapsed"
    if run.not_above_majority or run.not_above_untrained:
        return "weak"
    return "unstable" if run.unstable and task.from_untrained else "sound"


def mark(look: Look, state: str, of: int = 1) -> dict[str, Any]:
    """How a seed is drawn: filled; hollow where weak; a cross where collapsed; a triangle to the right
    where unstable.

    Marks are smaller, translucent and without an edge where they are one `of` many.
    """
    if state == "collapsed":
        return {"marker": "X", "markersize": 7.5, "color": look.colour, "markeredgecolor": "black"}
    if state == "unstable":
        return {"marker": ">", "markersize": 8, "color": look.colour, "markeredgecolor": "black"}
    fill, edge = ("white", look.colour) if state == "weak" else (look.colour, "white")
    crowded = of > CROWD
    return {
        "marker": look.marker,
        "markersize": 3.5 if crowded else 5.5,
        "markerfacecolor": fill,
        "markeredgecolor": edge,
        "markeredgewidth": 1.3 if state == "weak" else 0.0 if crowded else 0.6,
        "alpha": 0.5 if crowded else 1.0,
    }


def state_handles(states: set[str], weak: str = "not_above_majority") -> list[Line2D]:
    """The legend entries of the states that occur; `weak` names the label of runs that learned nothing."""
    handles = []
    grey = {"linestyle": "none", "color": "0.6", "markeredgecolor": "black"}
    marks = {
        "weak": (weak, {"marker": "o", "markerfacecolor": "white", "markersize": 5}),
        "unstable": ("unstable", {"marker": ">", "markersize": 8}),
        "collapsed": ("collapsed", {"marker": "X", "markersize": 7.5}),
    }
    for state, (name, style) in marks.items():
        if state in states:
            handles.append(Line2D([], [], label=word(name), **style, **grey))
    return handles
