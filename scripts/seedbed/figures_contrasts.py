"""The forest plot: every contrast with its intervals, a panel a family, beside it the numbers."""

from collections.abc import Sequence
from typing import Any

import seaborn as sns
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator

from seedbed import statistics
from seedbed.figures_base import Data, clean, finish, recipe_text, short_number, values_of
from seedbed.tables import Row, grouped
from seedbed.words import points, points_range

FAMILIES = {
    "init": "Gain of pretraining",
    "framework": "Frameworks",
    "model": "Models",
    "dataset": "Gain of pretraining, between datasets",
}
MAX_CONTRASTS = 16  # of a family
MAX_LETTERS = 46  # of a row's name
EQUAL, BEST = sns.color_palette("colorblind")[2], sns.color_palette("colorblind")[4]  # no colours of inits
STYLES: dict[str, dict[str, Any]] = {
    "equal": {"color": EQUAL, "marker": "o", "markersize": 7},
    "best": {"color": BEST, "marker": "D", "markersize": 7},
}
T_INTERVAL: dict[str, Any] = {"color": "black", "linewidth": 1.1, "marker": "|", "markersize": 5}
WIDTH, ROW = 8.6, 0.4  # inches


def contrasts(data: Data) -> tuple[Figure, str]:
    """Differences in points with both their intervals, grouped by family."""
    families = grouped(data.contrasts, "family")
    # what each side can do at its best comes first
    shown = {
        family: sorted(rows, key=lambda row: row["selection"] != "best")[:MAX_CONTRASTS]
        for (family,), rows in families.items()
    }
    heights = [0.5 + ROW * len(rows) for rows in shown.values()]
    figure, axes = plt.subplots(
        len(shown),
        1,
        figsize=(WIDTH, sum(heights) + 0.55 * len(shown) + 1.7),
        squeeze=False,
        layout="constrained",
        gridspec_kw={"height_ratios": heights},
    )
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.06)
    for (family, rows), axis in zip(shown.items(), axes[:, 0], strict=True):
        _draw_family(axis, data, family, rows)
    caption = _caption(data, [row for rows in shown.values() for row in rows])
    hidden = sum(map(len, families.values())) - sum(map(len, shown.values()))
    if hidden:
        caption += f" The first {MAX_CONTRASTS} of each family; {hidden} more are in the table."
    return finish(figure, _handles(data, shown), caption), caption


def _caption(data: Data, rows: Sequence[Row]) -> str:
    sizes = sorted({size for row in rows for size in (row["n_a"], row["n_b"])})
    seeds = " to ".join(map(str, dict.fromkeys((sizes[0], sizes[-1]))))
    noun = "seed" if sizes[-1] == 1 else "seeds"
    caption = (
        f"Differences of test accuracy in points (n = {seeds} {noun} a side), the first named minus the "
        "second; each family has a scale of its own."
    )
    if any(row["ci_low"] is not None for row in rows):
        caption += (
            f" Thick: {data.level} interval over seeds and test examples (Multi-Bootstrap, stretched for few "
            "seeds), in numbers at the right, cut at what is possible; thin: "
            f"{data.level} t interval over seeds alone. An arrow: the interval goes on beyond the scale."
        )
    without = sum(row["ci_low"] is None for row in rows)
    if without:
        caption += (
            f" Without an interval: {without} of {len(rows)}, for want of seeds, spread or predictions."
        )
    if any(row["selection"] == "best" for row in rows):
        caption += (
            " Best: each side's recipe chosen on validation, and the interval carries the choice; "
            "equal: both sides with the same recipe."
        )
    if any(row["margin"] is not None for row in rows):
        caption += " Shaded: the margin within which frameworks count as equivalent."
    return caption


def _handles(data: Data, shown: dict[str, Sequence[Row]]) -> list[Any]:
    rows = [row for family in shown.values() for row in family]
    selections = [name for name in STYLES if any(row["selection"] == name for row in rows)]
    names = {"equal": "equal recipe", "best": "each side at its best"}
    handles: list[Any] = [
        Line2D([], [], linewidth=5, label=names[name], **_mark(name)) for name in selections
    ]
    if any(row["t_low"] is not None for row in rows):
        handles.append(Line2D([], [], label="t interval over seeds alone", **T_INTERVAL))
    if any(row["margin"] is not None for row in rows):
        handles.append(Patch(label="equivalence margin", **_MARGIN))
    return handles


_MARGIN: dict[str, Any] = {"facecolor": "0.87", "edgecolor": "0.6", "linewidth": 0.6}


def _mark(selection: str) -> dict[str, Any]:
    return {**STYLES[selection], "markeredgecolor": "black", "solid_capstyle": "butt"}


def _draw_family(axis: Axes, data: Data, family: str, rows: Sequence[Row]) -> None:
    names = _row_names(data, family, rows)
    limits = _limits(rows)
    axis.set_xlim(limits)
    for height, row in enumerate(rows):
        if row["margin"] is not None:
            corner, size = (-100 * row["margin"], height - 0.5), (200 * row["margin"], 1)
            axis.add_patch(Rectangle(corner, *size, zorder=0, **_MARGIN))
        style = _mark(row["selection"])
        if row["ci_low"] is not None:
            bar = {"color": style["color"], "linewidth": 5, "solid_capstyle": "butt", "zorder": 2}
            _draw_interval(axis, (row["ci_low"], row["ci_high"]), height, limits, bar)
        if row["t_low"] is not None:
            _draw_interval(axis, (row["t_low"], row["t_high"]), height + 0.27, limits, T_INTERVAL)
        axis.plot(100 * row["delta"], height, linestyle="none", zorder=4, **style)
        axis.text(
            1.035, height, _numbers(row), transform=axis.get_yaxis_transform(), va="center", fontsize=9.5
        )
    axis.axvline(0, color="black", linewidth=1, zorder=1)
    axis.set_ylim(len(rows) - 0.4, -0.6)
    axis.set_yticks(range(len(rows)), names)
    axis.tick_params(axis="y", length=0, pad=9)
    axis.spines["left"].set_visible(False)
    axis.xaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10]))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value)))
    one = {clean(row["contrast"]).replace(" - ", " − ") for row in rows}
    title = FAMILIES.get(family, family)
    axis.set_title(f"{title}: {next(iter(one))}" if len(one) == 1 else title, x=0, fontweight="bold")
    axis.set_xlabel("difference (points)")


def _numbers(row: Row) -> str:
    """The difference and its interval, cut at what a difference (of two differences) can be."""
    if row["ci_low"] is None:
        return points(row["delta"])
    most = 2.0 if row["family"] == "dataset" else 1.0
    interval = points_range(max(row["ci_low"], -most), min(row["ci_high"], most))
    return f"{points(row['delta'])}  ({interval})"


def _limits(rows: Sequence[Row]) -> tuple[float, float]:
    """The scale in points: zero, all differences, and to either side twice the median half of an interval.

    One run that collapsed makes an interval so wide that the others would shrink to dots.
    """
    deltas = [100 * row["delta"] for row in rows]
    halves = [50 * (row["ci_high"] - row["ci_low"]) for row in rows if row["ci_low"] is not None]
    margins = [100 * row["margin"] for row in rows if row["margin"] is not None]
    room = 2 * statistics.median(halves) if halves else 0.0
    room = max([room, 1.2 * max(margins, default=0.0), 0.15 * (max(*deltas, 0.0) - min(*deltas, 0.0)), 0.5])
    return min(*deltas, 0.0) - room, max(*deltas, 0.0) + room


def _draw_interval(
    axis: Axes, bounds: tuple[float, float], height: float, limits: tuple[float, float], style: dict[str, Any]
) -> None:
    """A line from bound to bound (fractions), with an arrow where one lies beyond the scale (points)."""
    low, high = (100 * bound for bound in bounds)
    ends = [max(low, limits[0]), min(high, limits[1])]
    axis.plot(ends, [height] * 2, **style)
    for end, beyond, sign in ((ends[0], low < limits[0], "<"), (ends[1], high > limits[1], ">")):
        if beyond:
            axis.plot(end, height, sign, color=style["color"], markersize=7, clip_on=False, zorder=5)


def _tick(value: float) -> str:
    """+5, 0, −5: as differences are written elsewhere."""
    return "0" if abs(value) < 1e-9 else f"{value:+g}".replace("-", "−")


def _row_names(data: Data, family: str, rows: Sequence[Row]) -> list[str]:
    """What tells the rows of a family apart: contrast, dataset, model, framework, init, recipes."""
    several = {key: len({row[key] for row in rows}) > 1 for key in ("contrast", "dataset", "model")}
    names = []
    for row in rows:
        framework, _, init = row["a"].partition("/")
        parts = [row["contrast"].replace(" - ", " − ")] if several["contrast"] else []
        parts += [row[key] for key in ("dataset", "model") if several[key] and family != key]
        parts += [framework] if family != "framework" else []
        parts += [init] if family in ("framework", "model") else []
        if len(values_of(data, "recipe")) > 1:
            parts.append(_recipes(data, row))
        names.append(_two_lines(", ".join(map(clean, parts)) or clean(row["contrast"])))
    return names


def _two_lines(name: str) -> str:
    """A long name on two lines, cut after those."""
    if len(name) <= MAX_LETTERS:
        return name
    space = name.rfind(" ", 0, MAX_LETTERS) + 1 or MAX_LETTERS
    first, rest = name[:space].rstrip(), name[space:]
    return f"{first}\n{rest if len(rest) <= MAX_LETTERS else rest[: MAX_LETTERS - 1] + '…'}"


def _recipes(data: Data, row: Row) -> str:
    """The recipe of both sides, or `best: 1e-4 | 3e-4` of the sides' own."""
    if row["selection"] == "equal":
        return recipe_text(data, row["recipe_a"])
    swept = [data.reporting["recipes"][row[key]]["swept"] for key in ("recipe_a", "recipe_b")]
    texts = [", ".join(map(short_number, values.values())) for values in swept]
    return f"best: {texts[0]} | {texts[1]}"
