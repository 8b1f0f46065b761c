"""A comparison of two experiments as a document: the answer in words, the differences, the settings."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from seedbed.comparison import INITS, PLACE, Comparison
from seedbed.document import Block, Cell, Heading, Paragraph, Table, code
from seedbed.rows import Row
from seedbed.words import capital, count, join, p_text, percent_sd, points, points_range

MAX_ROWS = 200
# what is resampled together, by (the same seeds, the same examples)
_PAIRS = {(True, True): "seeds and examples", (False, True): "examples", (False, False): "nothing"}


def title(comparison: Comparison) -> str:
    """What the document is about."""
    return f"{code(comparison.a.name)} and {code(comparison.b.name)} side by side"


def answer(comparison: Comparison) -> list[Block]:
    """Which experiment has the higher test accuracy, in how many comparisons."""
    rows = [row for row in comparison.differences if row["selection"] == "equal"]
    a, b = code(comparison.a.name), code(comparison.b.name)
    counts = Counter(map(verdict, rows))
    words = {
        "a": f"{a} has the higher test accuracy",
        "b": f"{b} has the higher test accuracy",
        "unclear": "these runs cannot tell them apart",
        "none": "there is no interval, for want of seeds or of any spread",
    }
    if len(rows) == 1:
        return [Paragraph(f"**{capital(_single(comparison, rows[0], words))}.**")]
    told = [f"in {counts[name]} {words[name]}" for name in words if counts[name]]
    return [Paragraph(f"**Of {len(rows)} comparisons of groups of seeds, {join(told)}.**")]


def _single(comparison: Comparison, row: Row, words: Mapping[str, str]) -> str:
    a, b = code(comparison.a.name), code(comparison.b.name)
    told = f"{words[verdict(row)]}: {a} minus {b} is {points(row['delta'])} points"
    if verdict(row) == "none":
        return told
    interval = points_range(row["ci_low"], row["ci_high"])
    return f"{told} ({level(comparison)} interval {interval} over seeds and test examples)"


def verdict(row: Row) -> str:
    """a or b, the higher one, where the interval leaves zero out; unclear where not; none without one."""
    if row["ci_low"] is None:
        return "none"
    if row["ci_low"] > 0:
        return "a"
    return "b" if row["ci_high"] < 0 else "unclear"


def level(comparison: Comparison) -> str:
    """The level of intervals in words: 95%."""
    return f"{100 * comparison.statistics['confidence']:.4g}%"


def body(comparison: Comparison) -> list[Block]:
    """Everything after the answer."""
    blocks: list[Block] = [Heading("Test accuracy"), difference_table(comparison), *_notes(comparison)]
    if comparison.gains:
        blocks += [Heading("What pretraining gains"), gain_table(comparison)]
    blocks += [Heading("What differs in data, recipes, software and hardware"), *_settings(comparison)]
    alone = _alone(comparison)
    if alone.rows:
        blocks += [Heading("What only one of them has"), alone]
    return blocks


# --- differences --------------------------------------------------------------------------------------------


def difference_table(comparison: Comparison) -> Table:
    """Test accuracy of both experiments and the difference, one row a match."""
    a, b = comparison.a.name, comparison.b.name
    places, shared = _places(comparison.differences, PLACE)
    header = [*places, "recipe"]
    header += [f"{code(a)} (%)", f"{code(b)} (%)", "difference (points)", f"{level(comparison)} interval"]
    header += ["p", "p (Holm)", "seeds", "pairs of"]
    rows = [
        [
            *(code(row[key]) for key in places),
            _recipes(row),
            _accuracy(row["mean_a"], row["sd_a"]),
            _accuracy(row["mean_b"], row["sd_b"]),
            *_difference(row),
        ]
        for row in comparison.differences
    ]
    caption = (
        f"{shared}Mean ± sample sd of test accuracy over seeds, and {code(a)} minus {code(b)}. The interval "
        "is over seeds and test examples: Multi-Bootstrap of "
        f"{comparison.statistics['replicates']:,} replicates, stretched for the number of seeds. p is an "
        "exact permutation test over seeds, adjusted by Holm's method for the rows of this table. Pairs are "
        "resampled together."
    )
    first = len(places) + 1
    return Table("differences", header, rows, caption, right=range(first, first + 6))


def gain_table(comparison: Comparison) -> Table:
    """Pretrained minus random in both experiments, and the difference of these gains."""
    a, b = comparison.a.name, comparison.b.name
    places, shared = _places(comparison.gains, PLACE[:-1])
    header = [*places, "recipe"]
    header += [f"gain in {code(a)} (points)", f"gain in {code(b)} (points)", "difference (points)"]
    header += [f"{level(comparison)} interval", "p", "p (Holm)", "seeds", "pairs of"]
    rows = [
        [
            *(code(row[key]) for key in places),
            _recipes(row),
            *(Cell(points(row[key]), 100 * row[key]) for key in ("mean_a", "mean_b")),
            *_difference(row),
        ]
        for row in comparison.gains
    ]
    caption = (
        f"{shared}Mean over seeds of {INITS[0]} minus {INITS[1]}, and the gain in {code(a)} minus the gain "
        f"in {code(b)}; interval and tests as above."
    )
    first = len(places) + 1
    return Table("gains", header, rows, caption, right=range(first, first + 6))


def _places(rows: Sequence[Row], columns: Sequence[str]) -> tuple[list[str], str]:
    """The columns of a place that differ between rows, and a sentence of those that do not."""
    values = {key: {row[key] for row in rows} for key in columns}
    shared = [f"{key} {code(rows[0][key])}" for key in columns if len(values[key]) == 1]
    told = f"{capital(', '.join(shared))}. " if shared else ""
    return [key for key in columns if len(values[key]) > 1], told


def _recipes(row: Row) -> str:
    if row["recipe_a"] == row["recipe_b"]:
        told = code(row["recipe_a"])
    else:
        told = f"{code(row['recipe_a'])} and {code(row['recipe_b'])}"
    return f"{told} (each side's best on validation)" if row["selection"] == "best" else told


def _accuracy(mean: float, sd: float | None) -> Cell:
    return Cell(percent_sd(mean, sd), 100 * mean)


def _difference(row: Row) -> list[Any]:
    equal = row["n_a"] == row["n_b"]
    return [
        Cell(points(row["delta"]), 100 * row["delta"]),
        points_range(row["ci_low"], row["ci_high"]),
        Cell(p_text(row["p_value"]), row["p_value"]),
        Cell(p_text(row["p_holm"]), row["p_holm"]),
        str(row["n_a"]) if equal else f"{row['n_a']} and {row['n_b']}",
        _PAIRS[row["paired"], row["same_examples"]],
    ]


def _notes(comparison: Comparison) -> list[Block]:
    told = []
    by_position = [match for match in comparison.matches if not match.by_name]
    if by_position:
        pairs = dict.fromkeys((match.recipe_a, match.recipe_b) for match in by_position)
        named = join([f"{code(a)} with {code(b)}" for a, b in pairs])
        told.append(
            f"Recipes of different names were matched where each side has one only: {named}. What differs in "
            "them stands below."
        )
    if not all(row["same_examples"] for row in comparison.differences):
        told.append(
            "Examples that are not the same are resampled apart, as if both were samples of one population; "
            "where they overlap, the interval is too wide rather than too narrow."
        )
    crossed = dict.fromkeys(row["units"] for row in comparison.differences if row["units"] != "seeds")
    if crossed:
        told.append(f"Where init seeds and data seeds are crossed, p is a test over {join(list(crossed))}.")
    if len(comparison.differences) > 1:
        told.append(
            "Verdicts that differ between two rows are no evidence that the rows do: compare their intervals."
        )
    return [Paragraph(text) for text in told]


# --- settings, and what has no answer -----------------------------------------------------------------------


def _settings(comparison: Comparison) -> list[Block]:
    if not comparison.settings:
        return [Paragraph("Nothing that the runs recorded.")]
    rows = [
        [row["where"], code(row["setting"]), code(row["a"]), code(row["b"])] for row in comparison.settings
    ]
    header = ["where", "setting", code(comparison.a.name), code(comparison.b.name)]
    return [_capped("settings", header, rows, "As the runs recorded it; what is equal is left out.")]


def _alone(comparison: Comparison) -> Table:
    sides = ((comparison.a, comparison.only_a), (comparison.b, comparison.only_b))
    rows = [[code(results.name), *map(code, cell)] for results, cells in sides for cell in cells]
    header = ["experiment", *PLACE, "recipe"]
    return _capped("only_one", header, rows, "Groups of seeds that nothing on the other side answers to.")


def _capped(name: str, header: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> Table:
    left_out = len(rows) - MAX_ROWS
    if left_out > 0:
        caption += f" {count(left_out, 'row')} more are left out."
    return Table(name, header, rows[:MAX_ROWS], caption)
