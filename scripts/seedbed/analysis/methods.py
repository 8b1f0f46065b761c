"""How a difference was made, in words: made of the columns of contrasts.csv, and read by people alone."""

from seedbed.analysis.differences import Contrast
from seedbed.analysis.sides import SEEDS
from seedbed.core.rows import Row

# the column `interval`: what the primary interval is, or why there is none
UNDEFINED = "undefined"  # a run has no finite loss
ONE_SEED = "one seed"  # on a side
OVER_SEEDS = "over seeds"  # there are no predictions
OTHER_CHOICE = "other choice"  # predictions choose other recipes than the losses that runs told
NO_SPREAD = "no spread"
OVER_BOTH = "over seeds and examples"  # the Multi-Bootstrap's


def method_text(row: Contrast, replicates: int) -> str:
    """Interval, test and choice of recipes of a difference.

    Args:
        row: with all but this text.
        replicates: of the Multi-Bootstrap.
    """
    if row.interval == UNDEFINED:
        return "a run has no finite loss: no difference, no interval and no test"
    if row.interval == ONE_SEED:
        return f"one seed on a side: no interval and no test{_choice_text(row)}"
    return f"{_interval_text(row, replicates)}; {_test_text(row)}{_choice_text(row)}"


def unit_text(row: Row) -> str:
    """What the exact test of a row ran over: seeds, or the means of 3 init seeds."""
    unit = row["test_unit"]
    return unit if unit == SEEDS else f"the means of {row['test_means']} {unit}"


def is_over_means(row: Row) -> bool:
    """Whether the exact test of a row ran over the means of crossed seeds."""
    return row["test"] is not None and row["test_means"] is not None


def _interval_text(row: Contrast, replicates: int) -> str:
    kind = row.interval
    if kind == OVER_SEEDS:
        return "no predictions: no Multi-Bootstrap, t interval over seeds only"
    if kind == OTHER_CHOICE:
        return "run.json and predictions.csv choose different recipes: no interval that carries the choice"
    if kind == NO_SPREAD:
        return "no spread: no interval"
    seeds = "paired seeds" if row.paired else "the seeds of each side"
    return (
        f"Multi-Bootstrap of {replicates:,} replicates over {seeds} and test examples, scaled to the two-way "
        "analysis of variance"
    )


def _test_text(row: Contrast) -> str:
    if row.test is None:
        return "no exact test"
    return f"exact {row['test']} test over {unit_text(row)}"


def _choice_text(row: Contrast) -> str:
    if row.selection != "best":
        return ""
    if row.interval == OVER_BOTH:
        return (
            "; recipes chosen on validation anew in every replicate, a choice that t interval and exact test "
            "do not carry"
        )
    return "; recipes chosen on validation, a choice that interval and test do not carry"
