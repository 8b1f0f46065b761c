"""Figures of what the models predict on the test split: how sure they are, and what they mix up."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import offset_copy

from seedbed.analysis.table_rows import SummaryRow
from seedbed.core.rows import CELL, Row, grouped
from seedbed.core.tasks import NO_PREDICTION
from seedbed.core.wording import Words
from seedbed.core.words import NOTHING, framework_name
from seedbed.figures.base import (
    COLOURS,
    GREY,
    HALF_LETTERS,
    LINES,
    MARKERS,
    MAX_ROWS,
    NAMED_LETTERS,
    TITLE_LETTERS,
    Data,
    Line,
    capped,
    finish,
    group_lines,
    line_handle,
    panels,
    set_titles,
    share_limits,
    swept_values,
)
from seedbed.figures.captions import Caption, make_caption
from seedbed.figures.fonts import drawable_names
from seedbed.figures.names import columns, fit_names, series_name, shorten_all, word, wrap_names

WORDS = Words("figures/predictions")
MAX_CLASSES = 12
BESIDE = 4  # classes up to which matrices stand beside each other
NAME_LETTERS = 14  # of a class
LETTERS_BELOW = {False: 38, True: 20}  # a panel alone, and one of two beside each other
UPRIGHT = 0.055  # inches of panel for each letter of the longest of names that stand upright below it
LETTER_WIDTH, LINE_HEIGHT = 0.68, 1.25  # of the size of letters: what digits and lines take
# How cells are written: the most classes it is for, the text of a share and a count, and sizes in points.
WAYS: tuple[tuple[int, Callable[[float, float], str], tuple[float, ...]], ...] = (
    (6, lambda share, count: f"{share:.1f}%\n{count:,.0f}", (9,)),
    (MAX_CLASSES + 1, lambda share, _: f"{share:.0f}", (9, 8)),
)
FEW = 20  # predictions a seed: a bin of fewer is drawn hollow
BEFORE_ECE = 54  # points from the right side to the mark before a text
DIAGONAL: dict[str, Any] = {"color": GREY, "linestyle": ":", "linewidth": 1.4}
SHADES = sns.color_palette("Blues", as_cmap=True)  # from light to dark, in grey as well
SHADING: dict[str, Any] = {"cmap": SHADES, "vmin": 0, "vmax": 100, "aspect": "auto"}
SCALE = (0.0, 0.25, 0.5, 0.75, 1.0)  # of the legend


def _missing(data: Data, lines: Sequence[Line], cells: dict[tuple[Any, ...], list[Row]]) -> int:
    """How many cells have no predictions."""
    rows = [row for line in lines for framework in data.frameworks for row in line.rows(framework)]
    return len({key for row in rows if (key := row.cell) not in cells})


# --- calibration --------------------------------------------------------------------------------------------


def calibration(data: Data) -> tuple[Figure, Caption]:
    """Accuracy by the probability of the predicted class, and how many predictions have it."""
    lines, note = group_lines(data)
    cells = grouped(data.tables["calibration"], *CELL)
    names = [line.name for line in lines for _ in range(2)]
    titles = [max(line.title(data, name).count("\n") for name in data.frameworks) for line in lines]
    heights = [height for more in titles for height in (2.0 + 0.17 * more, 0.9)]
    figure, axes = panels(data, names, heights, titles=[True, False] * len(lines))
    pairs = list(zip(axes[::2], axes[1::2], strict=True))
    few = False
    for line, (curves, counts) in zip(lines, pairs, strict=True):
        for framework, curve, bars in zip(data.frameworks, curves, counts, strict=True):
            rows = line.rows(framework)
            few |= _draw_reliability(curve, rows, cells)
            _draw_counts(bars, data, rows, cells)
            bars.set_xlabel(word("probability"))
        share_limits(counts, 1, (0, 102))
        set_titles(curves, line.name, [line.title(data, name) for name in data.frameworks])
        curves[0].set_ylabel(word("accuracy"))
        counts[0].set_ylabel(word("predictions_share"))
    for pair in range(0, len(axes), 2):
        figure.align_ylabels(axes[pair : pair + 2, 0])
    caption = make_caption(
        WORDS, "calibration", data.seeds, FEW if few else 0, _missing(data, lines, cells), note
    )
    handles = [line_handle(look) for look in data.series.values()]
    handles.append(Line2D([], [], label=word("perfect_calibration"), **DIAGONAL))
    return finish(figure, handles, caption, legend_rows=1), caption


def _draw_reliability(
    axis: Axes, rows: Sequence[SummaryRow], cells: dict[tuple[Any, ...], list[Row]]
) -> bool:
    """Draw one curve per summary row; return whether a bin holds few predictions."""
    axis.plot([0, 100], [0, 100], zorder=0, **DIAGONAL)
    hollow = False
    for place, row in enumerate(rows):
        bins = cells.get(row.cell, [])
        if not bins:
            continue
        init = row.init
        counts = np.array([found["count"] for found in bins])
        x, y = (100 * np.array([found[key] for found in bins]) for key in ("confidence", "accuracy"))
        axis.plot(x, y, color=COLOURS[init], linestyle=LINES[init], linewidth=2)
        few = counts < FEW * row.n_seeds
        hollow |= bool(few.any())
        axis.scatter(
            x,
            y,
            s=20 + 180 * counts / counts.sum(),
            color=["white" if small else COLOURS[init] for small in few],
            marker=MARKERS[init],
            edgecolor=[COLOURS[init] if small else "black" for small in few],
            linewidths=np.where(few, 1.6, 1.0),
            zorder=3,
            clip_on=False,
        )
        if row.ece is not None:
            text = word("ece", points=f"{100 * row.ece:.1f}")
            # below the diagonal: few models are so sure and so wrong
            above = 4 + 12 * (len(rows) - 1 - place)  # points
            style = {"textcoords": "offset points", "ha": "right", "fontsize": 9, "color": "0.15"}
            axis.annotate(text, (1, 0), xytext=(-2, above), xycoords="axes fraction", **style)
            before = offset_copy(axis.transAxes, axis.figure, -BEFORE_ECE, above + 3, units="points")
            mark = {"color": COLOURS[init], "marker": MARKERS[init], "markersize": 5}
            axis.plot(1, 0, linestyle="none", transform=before, **mark)
    axis.set_xlim(-2, 102)
    axis.set_ylim(-2, 102)
    axis.tick_params(axis="x", labelbottom=False)
    return hollow


def _draw_counts(
    axis: Axes, data: Data, rows: Sequence[SummaryRow], cells: dict[tuple[Any, ...], list[Row]]
) -> None:
    for row in rows:
        bins = cells.get(row.cell, [])
        total = sum(found["count"] for found in bins)
        place = data.inits.index(row.init)
        width = 8 / len(data.inits)
        hatch = "" if row.init == "pretrained" else "////"
        style = {"color": COLOURS[row.init], "edgecolor": "white", "linewidth": 0, "hatch": hatch}
        for found in bins:
            left = 100 * found["bin_low"] + 1 + width * place
            axis.bar(left, 100 * found["count"] / total, width, align="edge", **style)
    axis.set_xlim(-2, 102)
    axis.set_ylim(bottom=0)
    axis.yaxis.set_major_locator(MaxNLocator(nbins=3))


# --- confusion ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Classes:
    """The classes of a row of panels.

    Attributes:
        labels, predictions: the classes in rows and columns; `predictions` begins with `labels`.
        names: what the panels call `predictions`.
        hidden: whether classes are left out.
        renamed: whether a name cannot be drawn as it is.
    """

    labels: list[str]
    predictions: list[str]
    names: list[str]
    hidden: bool
    renamed: bool


def confusion(data: Data) -> tuple[Figure, Caption]:
    """What examples of each class are taken for: one row of panels per init, one column per framework."""
    lines, note = group_lines(data)
    entries = [(line, init) for line in lines for init in data.inits]
    shown, more = capped(entries, MAX_ROWS)
    cells = grouped(data.tables["confusion"], *CELL)
    sizes = [_classes(line, cells) for line, _ in shown]
    most = max(len(classes.predictions) for classes in sizes)
    beside = len(data.frameworks) > 1 and most <= BESIDE
    heights = [_height(classes, beside=beside) for classes in sizes]
    names = fit_names([f"{series_name(init)}, {line.name}" for line, init in shown], NAMED_LETTERS)
    titles = _init_titles(data, shown, HALF_LETTERS if beside else TITLE_LETTERS)
    # a title of recipes takes more lines than the name of a framework
    most = max(title.count("\n") for title in titles)
    heights = [height + 0.17 * most for height in heights]
    figure, axes = panels(data, names, heights, beside=beside, letters=NAMED_LETTERS)
    drawn = []
    for (line, init), name, classes, row in zip(shown, names, sizes, axes, strict=True):
        for framework, axis in zip(data.frameworks, row, strict=True):
            found = [cell for cell in line.rows(framework) if cell.init == init]
            rows = cells.get(tuple(found[0][key] for key in CELL), []) if found else []
            drawn.append((axis, _draw_confusion(axis, rows, classes, beside=beside)))
            if beside and axis is not row[0]:
                axis.tick_params(axis="y", labelleft=False)
            if not beside:
                axis.set_ylabel(word("label"))
        set_titles(row, name, [titles.pop(0) for _ in data.frameworks], letters=NAMED_LETTERS)
        row[0].set_ylabel(word("label"))
    for axis in axes[-1]:
        axis.set_xlabel(word("prediction"))
    unanswered = any(NO_PREDICTION in classes.predictions for classes in sizes)
    empty = any(total == 0 for rows in cells.values() for total in _totals(rows).values())
    caption = make_caption(
        WORDS,
        "confusion",
        data.seeds,
        shown=MAX_CLASSES if any(classes.hidden for classes in sizes) else 0,
        no_prediction=NO_PREDICTION if unanswered else "",
        renamed=any(classes.renamed for classes in sizes),
        no_examples=NOTHING if empty else "",
        missing=_missing(data, lines, cells),
        note=f"{note} {more}",
    )
    handles = [Patch(facecolor=SHADES(share), edgecolor=GREY, label=f"{share:.0%}") for share in SCALE]
    finish(figure, handles, caption, legend_rows=1)
    figure.canvas.draw()  # what has room in a cell is known once all is laid out
    for axis, table in drawn:
        if table is not None:
            _write_shares(axis, table)
    return figure, caption


def _height(classes: _Classes, *, beside: bool) -> float:
    """Height in inches of a panel, with room for class names that have to stand upright."""
    number = len(classes.labels)
    cells = 0.75 + (0.42 if number <= WAYS[0][0] else 0.24) * number
    names = classes.names
    if not names or _fit(names, beside=beside):
        return cells
    return cells + UPRIGHT * max(map(columns, names))


def _init_titles(data: Data, shown: Sequence[tuple[Line, str]], letters: int) -> list[str]:
    """The titles of all panels, row by row."""
    panels = [(line, name, init) for line, init in shown for name in data.frameworks]
    recipes = wrap_names([_init_recipe(data, *panel) for panel in panels], letters)
    return [
        f"{framework_name(name)}\n{recipe}" if recipe.strip() else line.title(data, name)
        for (line, name, _), recipe in zip(panels, recipes, strict=True)
    ]


def _init_recipe(data: Data, line: Line, framework: str, init: str) -> str:
    """The recipe in the title of a panel, where each init has its own best."""
    best = [row for row in line.rows(framework) if row.selection == "best" and row.init == init]
    if not best:
        return ""
    kind = line.groups[framework].title.partition(":")[0]  # own best, and the family where there are several
    return word("own_best_sides", own_best=kind, values=swept_values(data, best[0].recipe))


def _classes(line: Line, cells: dict[tuple[Any, ...], list[Row]]) -> _Classes:
    """The classes that a row of panels shows."""
    keys = [row.cell for group in line.groups.values() for row in group.rows]
    rows = [row for key in keys for row in cells.get(key, [])]
    totals = _totals(rows)
    largest = sorted(totals, key=lambda label: -totals[label])[:MAX_CLASSES]
    labels = [label for label in totals if label in largest]
    extra = {row["prediction"] for row in rows} - set(totals)
    predictions = [*labels, *sorted(extra & {NO_PREDICTION})]
    drawn, renamed = drawable_names(list(totals))
    by_label = dict(zip(totals, drawn, strict=True))
    names = shorten_all([by_label.get(name, name) for name in predictions], NAME_LETTERS)
    return _Classes(labels, predictions, names, len(totals) > len(labels), renamed)


def _draw_confusion(axis: Axes, rows: Sequence[Row], classes: _Classes, *, beside: bool) -> np.ndarray | None:
    """Draw shares; return the counts behind them, (labels, predictions), or None without predictions.

    By hand: seaborn's heatmap draws the whole figure once per panel (19 in place of 1 s for 24 panels). It
    places labels before the layout is known, so that they overlap, and its texts may have little contrast.
    """
    labels, predictions = classes.labels, classes.predictions
    counts = {(row["label"], row["prediction"]): row["count"] for row in rows}
    totals = _totals(rows)
    table = np.array(
        [[counts.get((label, name), 0) for name in predictions] for label in labels], dtype=float
    )
    if not table.size or not rows:
        axis.set_axis_off()
        axis.text(0.5, 0.5, word("no_predictions"), transform=axis.transAxes, ha="center", color=GREY)
        return None
    axis.imshow(_shares(table, [totals.get(label, 0) for label in labels]), **SHADING)
    names = classes.names
    axis.set_xticks(range(len(names)), names, rotation=0 if _fit(names, beside=beside) else 90)
    axis.set_yticks(range(len(labels)), names[: len(labels)])
    axis.tick_params(length=0)
    for side in axis.spines.values():
        side.set_visible(False)
    return table


def _totals(rows: Sequence[Row]) -> dict[str, int]:
    """Test examples per label, over all seeds."""
    return {label: sum(row["count"] for row in found) for (label,), found in grouped(rows, "label").items()}


def _shares(table: np.ndarray, totals: Sequence[int]) -> np.ndarray:
    """Counts in per cent of the examples of their row; NaN for a class without examples."""
    whole = np.array([[total or np.nan] for total in totals])
    return 100 * table / whole


def _write_shares(axis: Axes, table: np.ndarray) -> None:
    """Write what fits into the cells: share and count, the share alone, or nothing; a dash for a class
    without examples."""
    shares = axis.images[0].get_array().filled(np.nan)
    texts, size = _fitting_texts(axis, shares, table)
    for (row, column), text in texts.items():
        share = shares[row, column]
        colour = "black" if np.isnan(share) else readable_on(SHADES(share / 100))
        axis.text(column, row, text, ha="center", va="center", fontsize=size, color=colour)


def _fitting_texts(
    axis: Axes, shares: np.ndarray, table: np.ndarray
) -> tuple[dict[tuple[int, int], str], float]:
    """The texts of the cells and their size in points: the first of WAYS that fits."""
    box = axis.get_window_extent()
    points = 72 / axis.figure.dpi
    wide, high = box.width * points / shares.shape[1], box.height * points / shares.shape[0]
    for most, write, sizes in WAYS:
        if shares.shape[1] > most:
            continue
        texts = {
            place: NOTHING if np.isnan(share) else write(share, table[place])
            for place, share in np.ndenumerate(shares)
        }
        lines = [line for text in texts.values() for line in text.split("\n")]
        letters, deep = max(map(len, lines)), max(text.count("\n") + 1 for text in texts.values())
        for size in sizes:
            if letters * size * LETTER_WIDTH <= wide and deep * size * LINE_HEIGHT <= high:
                return texts, size
    return {}, 0.0


def readable_on(colour: Sequence[float]) -> str:
    """black or white, whichever has the greater contrast to a colour (red, green, blue, each in [0, 1]).

    Contrast and relative luminance after WCAG 2.2, which takes the colours for sRGB.
    """
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour[:3]]
    luminance = float(np.dot((0.2126, 0.7152, 0.0722), linear))
    return "white" if 1.05 / (luminance + 0.05) > (luminance + 0.05) / 0.05 else "black"


def _fit(names: Sequence[str], *, beside: bool) -> bool:
    """Whether names fit side by side below a panel."""
    return (max(map(columns, names)) + 1) * len(names) <= LETTERS_BELOW[beside]
