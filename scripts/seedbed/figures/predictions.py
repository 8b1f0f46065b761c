"""Figures of what the models predict on the test split: how sure they are, and what they mix up."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from seedbed.analysis.rows import Row, grouped
from seedbed.figures.base import (
    CELL,
    COLOURS,
    GREY,
    LINES,
    MARKERS,
    MAX_ROWS,
    PANEL_WIDTH,
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
    shorten,
    swept_values,
    wrap_name,
)
from seedbed.tasks import NO_PREDICTION
from seedbed.words import framework_name

MAX_CLASSES = 20
NUMBERED = 6  # classes up to which a cell has its count, too
SHADED = 12  # classes up to which a cell has its share
FEW = 20  # predictions a seed: a bin of fewer is drawn hollow
DIAGONAL: dict[str, Any] = {"color": GREY, "linestyle": ":", "linewidth": 1.4}
SHADES = sns.color_palette("Blues", as_cmap=True)  # from light to dark, in grey as well
SCALE = (0.0, 0.25, 0.5, 0.75, 1.0)  # of the legend


def _missing(data: Data, lines: Sequence[Line], cells: dict[tuple[Any, ...], list[Row]]) -> str:
    """What the caption says of cells without rows."""
    rows = [row for line in lines for framework in data.frameworks for row in line.rows(framework)]
    empty = {key for row in rows if (key := tuple(row[name] for name in CELL)) not in cells}
    if not empty:
        return ""
    noun = "combination has" if len(empty) == 1 else "combinations have"
    return f" {len(empty)} {noun} no usable predictions, and are left out."


# --- calibration --------------------------------------------------------------------------------------------


def calibration(data: Data) -> tuple[Figure, str]:
    """Accuracy by the probability of the predicted class, and how many predictions have it."""
    lines, note = group_lines(data)
    cells = grouped(data.calibration, *CELL)
    names = [line.name for line in lines for _ in range(2)]
    heights = [height for _ in lines for height in (3.1, 1.2)]
    figure, axes = panels(data, names, heights, titles=[True, False] * len(lines))
    pairs = list(zip(axes[::2], axes[1::2], strict=True))
    few = False
    for line, (curves, counts) in zip(lines, pairs, strict=True):
        for framework, curve, bars in zip(data.frameworks, curves, counts, strict=True):
            rows = line.rows(framework)
            few |= _draw_reliability(curve, rows, cells)
            _draw_counts(bars, data, rows, cells)
            bars.set_xlabel("probability of the predicted class (%)")
        share_limits(counts, 1, (0, 102))
        set_titles(curves, line.name, [line.title(data, name) for name in data.frameworks])
        curves[0].set_ylabel("accuracy (%)")
        counts[0].set_ylabel("predictions\n(%)")
    for pair in range(0, len(axes), 2):
        figure.align_ylabels(axes[pair : pair + 2, 0])
    caption = (
        "Accuracy on the test split in per cent, by the probability that the model gives the class it "
        f"predicts, in bins of 10 points, all seeds together ({data.seeds}); a mark stands at the mean of "
        f"its bin and is the larger the more predictions it holds{_few_text(few)}; no intervals. Dotted: "
        "perfect calibration; "
        "below it the model is too sure. ECE: expected calibration error in points, mean over seeds. "
        f"Bars: share of predictions in each bin.{note}{_missing(data, lines, cells)}"
    )
    handles = [line_handle(look) for look in data.series.values()]
    handles.append(Line2D([], [], label="perfect calibration", **DIAGONAL))
    return finish(figure, handles, caption, legend_rows=1), caption


def _few_text(few: bool) -> str:
    """What the caption says of hollow marks, where there are any."""
    return f", hollow where they are fewer than {FEW} a seed" if few else ""


def _draw_reliability(axis: Axes, rows: Sequence[Row], cells: dict[tuple[Any, ...], list[Row]]) -> bool:
    """A curve for each row of the summary; returns whether a bin holds few predictions."""
    axis.plot([0, 100], [0, 100], zorder=0, **DIAGONAL)
    hollow = False
    for place, row in enumerate(rows):
        bins = cells.get(tuple(row[key] for key in CELL), [])
        if not bins:
            continue
        init = row["init"]
        counts = np.array([found["count"] for found in bins])
        x, y = (100 * np.array([found[key] for found in bins]) for key in ("confidence", "accuracy"))
        axis.plot(x, y, color=COLOURS[init], linestyle=LINES[init], linewidth=2)
        few = counts < FEW * row["n_seeds"]
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
        if row["ece"] is not None:
            text = f"{init}: ECE {100 * row['ece']:.1f}"
            # below the diagonal: few models are so sure and so wrong
            style = {"transform": axis.transAxes, "ha": "right", "fontsize": 9.5, "color": "0.15"}
            axis.text(0.98, 0.03 + 0.1 * (len(rows) - 1 - place), text, **style)
    axis.set_xlim(-2, 102)
    axis.set_ylim(-2, 102)
    axis.tick_params(axis="x", labelbottom=False)
    return hollow


def _draw_counts(
    axis: Axes, data: Data, rows: Sequence[Row], cells: dict[tuple[Any, ...], list[Row]]
) -> None:
    for row in rows:
        bins = cells.get(tuple(row[key] for key in CELL), [])
        total = sum(found["count"] for found in bins)
        place = data.inits.index(row["init"])
        width = 8 / len(data.inits)
        hatch = "" if row["init"] == "pretrained" else "////"
        style = {"color": COLOURS[row["init"]], "edgecolor": "white", "linewidth": 0, "hatch": hatch}
        for found in bins:
            left = 100 * found["bin_low"] + 1 + width * place
            axis.bar(left, 100 * found["count"] / total, width, align="edge", **style)
    axis.set_xlim(-2, 102)
    axis.set_ylim(bottom=0)
    axis.yaxis.set_major_locator(MaxNLocator(nbins=3))


# --- confusion ----------------------------------------------------------------------------------------------


def confusion(data: Data) -> tuple[Figure, str]:
    """What examples of each class are taken for: a panel an init below each other, a column a framework."""
    lines, note = group_lines(data)
    entries = [(line, init) for line in lines for init in data.inits]
    shown, more = capped(entries, MAX_ROWS)
    cells = grouped(data.confusion, *CELL)
    sizes = [_classes(line, cells) for line, _ in shown]
    heights = [PANEL_WIDTH * max(0.55, min(1.05, 0.25 + 0.12 * len(labels))) for labels, _, _ in sizes]
    figure, axes = panels(data, [f"{line.name}, {init}" for line, init in shown], heights)
    for (line, init), (labels, predictions, _), row in zip(shown, sizes, axes, strict=True):
        for framework, axis in zip(data.frameworks, row, strict=True):
            found = [cell for cell in line.rows(framework) if cell["init"] == init]
            rows = cells.get(tuple(found[0][key] for key in CELL), []) if found else []
            _draw_confusion(axis, rows, labels, predictions)
            if axis is not row[0]:
                axis.tick_params(axis="y", labelleft=False)
        titles = [_init_title(data, line, name, init) for name in data.frameworks]
        set_titles(row, f"{line.name}, {init}", titles)
        row[0].set_ylabel("label")
    for axis in axes[-1]:
        axis.set_xlabel("prediction")
    caption = (
        "Share in per cent of the test examples of each class (row) that are taken for each class (column), "
        f"all seeds together ({data.seeds}), with their number where there is room; no intervals."
    )
    if any(hidden for _, _, hidden in sizes):
        caption += f" Of many classes, the {MAX_CLASSES} with most examples."
    if any(NO_PREDICTION in predictions for _, predictions, _ in sizes):
        caption += f" Column {NO_PREDICTION}: the model returned no number."
    caption += note + more + _missing(data, lines, cells)
    handles = [Patch(facecolor=SHADES(share), edgecolor=GREY, label=f"{share:.0%}") for share in SCALE]
    return finish(figure, handles, caption, legend_rows=1), caption


def _init_title(data: Data, line: Line, framework: str, init: str) -> str:
    """The title of a panel that shows one init: its framework and the recipe of that init alone."""
    best = [row for row in line.rows(framework) if row["selection"] == "best" and row["init"] == init]
    if not best:
        return line.title(data, framework)
    kind = line.groups[framework].title.partition(":")[0]  # own best, and the family where there are several
    recipe = wrap_name(f"{kind}: {swept_values(data, best[0]['recipe'])}", TITLE_LETTERS)
    return f"{framework_name(framework)}\n{recipe}"


def _classes(line: Line, cells: dict[tuple[Any, ...], list[Row]]) -> tuple[list[str], list[str], bool]:
    """The labels and the predictions that a row of panels shows, and whether some are left out."""
    keys = [tuple(row[key] for key in CELL) for group in line.groups.values() for row in group.rows]
    rows = [row for key in keys for row in cells.get(key, [])]
    totals = {label: sum(row["count"] for row in found) for (label,), found in grouped(rows, "label").items()}
    largest = sorted(totals, key=lambda label: -totals[label])[:MAX_CLASSES]
    labels = [label for label in totals if label in largest]
    extra = {row["prediction"] for row in rows} - set(totals)
    return labels, [*labels, *sorted(extra & {NO_PREDICTION})], len(totals) > len(labels)


def _draw_confusion(
    axis: Axes, rows: Sequence[Row], labels: Sequence[str], predictions: Sequence[str]
) -> None:
    counts = {(row["label"], row["prediction"]): row["count"] for row in rows}
    totals = {label: sum(row["count"] for row in found) for (label,), found in grouped(rows, "label").items()}
    table = np.array(
        [[counts.get((label, name), 0) for name in predictions] for label in labels], dtype=float
    )
    if not table.size or not rows:
        axis.set_axis_off()
        axis.text(0.5, 0.5, "no predictions", transform=axis.transAxes, ha="center", color=GREY)
        return
    shares = 100 * table / np.array([[max(1, totals.get(label, 0))] for label in labels])
    axis.imshow(shares, cmap=SHADES, vmin=0, vmax=100, aspect="auto")
    if len(predictions) <= SHADED:
        _write_shares(axis, shares, table)
    small = 10 if len(predictions) <= SHADED else 7
    names = [shorten(name, 14) for name in predictions]
    axis.set_xticks(range(len(names)), names, rotation=0 if _fit(names) else 90, fontsize=small)
    axis.set_yticks(range(len(labels)), [shorten(name, 14) for name in labels], fontsize=small)
    axis.tick_params(length=0)
    for side in axis.spines.values():
        side.set_visible(False)


def _write_shares(axis: Axes, shares: np.ndarray, table: np.ndarray) -> None:
    size = 10.5 if table.shape[1] <= NUMBERED else 8
    for (row, column), share in np.ndenumerate(shares):
        text = f"{share:.0f}"
        if table.shape[1] <= NUMBERED:
            text = f"{share:.1f}%\n{table[row, column]:,.0f}"
        colour = readable_on(SHADES(share / 100))
        axis.text(column, row, text, ha="center", va="center", fontsize=size, color=colour)


def readable_on(colour: Sequence[float]) -> str:
    """black or white, whichever has the greater contrast to a colour (red, green, blue, each in [0, 1]).

    Contrast and relative luminance after WCAG 2.2, which takes the colours for sRGB.
    """
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour[:3]]
    luminance = float(np.dot((0.2126, 0.7152, 0.0722), linear))
    return "white" if 1.05 / (luminance + 0.05) > (luminance + 0.05) / 0.05 else "black"


def _fit(names: Sequence[str]) -> bool:
    """Whether names fit side by side below a panel: about 34 letters of this size do."""
    return max(map(len, names)) * len(names) <= 34
