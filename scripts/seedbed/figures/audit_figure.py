"""The figure of the audit: token lengths, class balance, duplicates and leaks.

Splits keep one colour, line style and marker each in all panels, so that the figure can be read in grey.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

from seedbed.core.splits import SPLITS
from seedbed.core.wording import Words
from seedbed.core.words import percent
from seedbed.data.audit import FEW_TEXTS, MODEL_LIMIT, Dataset, class_counts
from seedbed.data.boilerplate import PIECE, SHORT_PIECE
from seedbed.figures.base import GREY, MAX_ROWS, NAMED_LETTERS, empty_figure, finish, save, set_style
from seedbed.figures.captions import Caption, make_caption, write_captions
from seedbed.figures.fonts import drawable_names
from seedbed.figures.names import shorten_all, word, wrap_names

WORDS = Words("figures/audit_figure")
COLOURS = dict(zip(SPLITS, sns.color_palette("colorblind"), strict=False))
LINES: dict[str, Any] = {"train": "-", "validation": (0, (4, 1.6)), "test": (0, (1, 1))}
MARKERS = {"train": "o", "validation": "s", "test": "D"}
LIMIT: dict[str, Any] = {"color": GREY, "linewidth": 1.2}
KINDS: dict[str, Any] = {
    "exact": {"facecolor": "0.45", "edgecolor": "0.25"},
    "near": {"facecolor": "0.88", "edgecolor": "0.25", "hatch": "////"},
}
SHARED: dict[str, Any] = {"facecolor": "white", "edgecolor": "0.25", "hatch": "..."}
# each split with those before it: an example that repeats one, or also stands in an earlier split
PLACES = [(split, other) for split in SPLITS for other in SPLITS[: SPLITS.index(split) + 1]]
UPPER, LOWER, MORE = 2.1, 2.1, 0.6  # inches of token lengths; of duplicates and leaks; of shared text
CLASSES, CLASS = 0.8, 0.3  # inches of the panel of classes, and of each class
LENGTHS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)
MAX_CLASSES = 10
EXPECTED = 16  # tokens: the axis goes down at least so far that it does not jump with one odd text


def plot_audit(datasets: Sequence[Dataset], svg: str | Path, png: str | Path, captions: str | Path) -> None:
    """Draw the figure as SVG and PNG, and write its caption; equal data give equal files.

    Args:
        datasets: what `seedbed.data.audit.audit` returns.
        svg, png: where the figure goes; the stem of `svg` is its name.
        captions: path of the JSON file with its caption.
    """
    set_style(name for dataset in datasets for name in dataset.label_names)
    figure, caption = data_audit(datasets)
    save(figure, caption, svg, png)
    write_captions(captions, {Path(svg).stem: caption})


def data_audit(datasets: Sequence[Dataset]) -> tuple[Figure, Caption]:
    """The figure and its caption: token lengths (per model), classes and duplicates of each dataset."""
    lines = [(dataset, model) for dataset in datasets for model in dataset.tokens or [""]]
    shown = lines[:MAX_ROWS]
    firsts = [not index or shown[index - 1][0] is not dataset for index, (dataset, _) in enumerate(shown)]
    # a second model of a dataset has other tokens, and the same classes and duplicates
    heights = []
    for (dataset, _), first in zip(shown, firsts, strict=True):
        heights.append(UPPER)
        if first:
            classes = min(MAX_CLASSES, len(dataset.label_names))
            heights += [CLASSES + CLASS * classes] if classes else []
            heights.append(LOWER + MORE * _shares_text(dataset))
    figure = empty_figure(sum(heights) + 1.0)
    axes = iter(figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0])
    names = wrap_names([", ".join(filter(None, (data.name, model))) for data, model in shown], NAMED_LETTERS)
    for (dataset, model), name, first in zip(shown, names, firsts, strict=True):
        lengths = next(axes)
        _draw_lengths(lengths, dataset, model)
        lengths.set_title(f"{name}\n{word('token_lengths')}", pad=18)
        if first:
            if dataset.label_names:
                axis = next(axes)
                _draw_classes(axis, dataset)
                axis.set_title(word("classes"))
            repeats = next(axes)
            _draw_repeats(repeats, dataset)
            repeats.set_title(word("duplicates"))
    caption = _caption(datasets, len(lines) - len(shown))
    return finish(figure, _handles(datasets), caption, legend_rows=2), caption


@dataclass(frozen=True)
class Facts:
    """What the caption tells.

    Attributes:
        labelled: whether examples are labelled texts, not questions.
        classes: whether any dataset has classes.
        shared_text: whether texts share a long string, which has at least `piece` characters, or
            `short_piece` of a script without spaces.
        dropped: examples that are left out of training as leaks.
        largest_classes: how many classes are drawn where there are more; 0 where all are.
        renamed: whether the name of a class cannot be drawn.
        shown, hidden: rows of panels that are drawn at most, and those left out.
    """

    labelled: bool
    classes: bool
    shared_text: bool
    piece: int
    short_piece: int
    dropped: int
    largest_classes: int
    renamed: bool
    shown: int
    hidden: int


def _caption(datasets: Sequence[Dataset], hidden: int) -> Caption:
    many = any(len(dataset.label_names) > MAX_CLASSES for dataset in datasets)
    found = Facts(
        labelled=any(dataset.is_labelled for dataset in datasets),
        classes=any(dataset.label_names for dataset in datasets),
        shared_text=any(map(_shares_text, datasets)),
        piece=PIECE,
        short_piece=SHORT_PIECE,
        dropped=sum(len(dataset.dropped) for dataset in datasets),
        largest_classes=MAX_CLASSES if many else 0,
        renamed=any(drawable_names(dataset.label_names)[1] for dataset in datasets),
        shown=MAX_ROWS,
        hidden=hidden,
    )
    return make_caption(WORDS, "caption", found)


def _shares_text(dataset: Dataset) -> bool:
    """Whether more than a few texts share a long string."""
    return any(sum(map(len, holders.values())) >= FEW_TEXTS for _, holders in dataset.shared[:1])


def _handles(datasets: Sequence[Dataset]) -> list[Any]:
    handles: list[Any] = [Line2D([], [], label=split, **_split_style(split)) for split in SPLITS]
    handles += [Patch(label=word(kind), linewidth=0.8, **style) for kind, style in KINDS.items()]
    if any(map(_shares_text, datasets)):
        handles.append(Patch(label=word("shared_text"), linewidth=0.8, **SHARED))
    return handles


def _split_style(split: str) -> dict[str, Any]:
    return {
        "color": COLOURS[split],
        "linestyle": LINES[split],
        "linewidth": 2,
        "marker": MARKERS[split],
        "markersize": 6,
        "markeredgecolor": "white",
    }


# --- token lengths ------------------------------------------------------------------------------------------


def _draw_lengths(axis: Axes, dataset: Dataset, model: str) -> None:
    """One cumulative distribution per split on a logarithmic axis, and the limits as vertical lines."""
    longest, shortest = 1, EXPECTED
    for split, rows in dataset.tokens.get(model, {}).items():
        lengths = [row.length for row in rows]
        if not lengths:
            continue
        sns.ecdfplot(x=lengths, stat="percent", ax=axis, **{**_split_style(split), "marker": None})
        longest, shortest = max(longest, *lengths), min(shortest, *lengths)
    limits = dataset.limits.get(model, {})
    longest = max([longest, *limits.values()])
    axis.set_xscale("log")
    axis.set_xlim(shortest * 0.9, longest * 1.25)
    axis.xaxis.set_minor_locator(NullLocator())
    inside = _between(LENGTHS, shortest * 0.9, longest * 1.25)
    if len(inside) < 2:  # short questions of one form
        inside = _between(range(5, 1000, 5), shortest * 0.9, longest * 1.25)
    ticks = inside if len(inside) <= 7 else [tick for tick in inside if str(tick)[0] == "1"]
    axis.xaxis.set_major_locator(FixedLocator(ticks))
    axis.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axis.set_ylim(0, 102)
    axis.yaxis.set_major_locator(MaxNLocator(nbins=5))
    axis.set_xlabel(word("tokens"))
    axis.set_ylabel(word("texts"))
    _draw_limits(axis, limits)


def _between(ticks: Iterable[int], low: float, high: float) -> list[int]:
    return [tick for tick in ticks if low <= tick <= high]


def _draw_limits(axis: Axes, limits: Mapping[str, int]) -> None:
    """Draw each limit as a line, with its length above the panel; that of the shorter one to its left."""
    shortest = min(limits.values(), default=0)
    for name, limit in limits.items():
        axis.axvline(limit, linestyle="-" if name == MODEL_LIMIT else ":", **LIMIT)
    for limit in {max(limits.values(), default=0), shortest} - {0}:
        inwards = "right" if limit == shortest and len(limits) > 1 else "center"
        inwards = "left" if inwards == "center" and len(limits) > 1 else inwards
        axis.annotate(
            f"{limit:,}",
            (limit, 1),
            xycoords=("data", "axes fraction"),
            xytext=(0, 3),
            textcoords="offset points",
            ha=inwards,
            va="bottom",
            fontsize=9,
            color=GREY,
        )


# --- classes ------------------------------------------------------------------------------------------------


def _draw_classes(axis: Axes, dataset: Dataset) -> None:
    """One line per class and split, one below the other, with a mark at the class's share of the split."""
    counts = {split: class_counts(rows) for split, rows in dataset.splits.items()}
    labels = range(len(dataset.label_names))
    if len(labels) > MAX_CLASSES:
        labels = sorted(sorted(labels, key=lambda label: -counts["train"][label])[:MAX_CLASSES])
    for place, label in enumerate(labels):
        for offset, split in zip((-0.22, 0, 0.22), SPLITS, strict=True):
            share = 100 * counts[split][label] / max(1, len(dataset.splits[split]))
            axis.plot([0, share], [place + offset] * 2, color=COLOURS[split], linewidth=1.6)
            mark = {**_split_style(split), "linestyle": "none", "markersize": 6 if len(labels) < 5 else 4}
            axis.plot(share, place + offset, **mark, clip_on=False)
    drawn, _ = drawable_names(dataset.label_names)
    names = shorten_all([drawn[label] for label in labels], 16)
    axis.set_yticks(range(len(names)), names)
    axis.set_ylim(len(names) - 0.4, -0.6)
    axis.tick_params(axis="y", length=0)
    axis.set_xlim(left=0)
    axis.xaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 5, 10]))
    axis.set_xlabel(word("examples_of_split"))


# --- duplicates and leaks -----------------------------------------------------------------------------------


def _draw_repeats(axis: Axes, dataset: Dataset) -> None:
    """One bar per pair of splits: identical texts and near-duplicates, with their number and share; where
    many texts share a long string, also one bar per split with how many do."""
    pairs = Counter((row["split"], row["with_split"], row["kind"]) for row in dataset.duplicates)
    widest = max((pairs[*place, "exact"] + pairs[*place, "near"] for place in PLACES), default=0)
    for height, place in enumerate(PLACES):
        start = 0
        for kind, style in KINDS.items():
            axis.barh(height, pairs[*place, kind], left=start, height=0.62, linewidth=0.8, **style)
            start += pairs[*place, kind]
        _number_bar(axis, height, start, dataset.found_in(place[0]))
    names = [
        word("repeated" if split == other else "also_in", split=split, other=other) for split, other in PLACES
    ]
    for height, split in enumerate(SPLITS if _shares_text(dataset) else (), len(PLACES)):
        number = len(dataset.shared[0][1][split])
        axis.barh(height, number, height=0.62, linewidth=0.8, **SHARED)
        _number_bar(axis, height, number, len(dataset.splits[split]))
        names.append(word("shared_text_of", split=split))
        widest = max(widest, number)
    axis.set_yticks(range(len(names)), names)
    axis.set_ylim(len(names) - 0.4, -0.6)
    axis.tick_params(axis="y", length=0)
    axis.set_xlim(0, max(1, widest) * 1.25)  # room for the numbers
    axis.xaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
    axis.set_xlabel(word("examples"))


def _number_bar(axis: Axes, height: float, number: int, of: int) -> None:
    """Write the number of a bar and its share of `of` behind its end."""
    text = f"{number:,} ({percent(number / max(1, of))})" if number else "0"
    offset = {"xytext": (4, 0), "textcoords": "offset points", "va": "center", "fontsize": 9}
    axis.annotate(text, (number, height), color="0.2", **offset)
