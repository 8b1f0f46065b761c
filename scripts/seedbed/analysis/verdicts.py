"""Whether a difference bears a verdict, and if not why: decided here for every text, table and figure.

A verdict is a word such as better, worse, settled or equivalent. The interval of a difference alone does not
bear one where no run behind it learned anything, where a side has fewer than FEWEST_SEEDS seeds, or where it
is a collapsed run that makes the interval leave zero out.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from seedbed.analysis import statistics
from seedbed.analysis.table_rows import RunRow
from seedbed.core.rows import Row
from seedbed.core.seeds import FEWEST_SEEDS, independent_seeds

# why there is no verdict: values of the column no_verdict
NOTHING_LEARNED, ONE_CLASS = "nothing learned", "one class"
FEW_SEEDS, COLLAPSE = "too few seeds", "a collapse"
UNLEARNED = (NOTHING_LEARNED, ONE_CLASS)
WITHHELD = (*UNLEARNED, FEW_SEEDS, COLLAPSE)

Cells = Sequence[Sequence[RunRow]]  # the runs of one side: of one cell, or of both inits of a gain


@dataclass(frozen=True)
class Sound:
    """A difference without the collapsed runs, where a cell has some that collapsed and some that did not.

    Attributes:
        delta: the difference; None where no seed is left.
        low, high: its interval at the level of the primary one; None without one.
        seeds: what is left of the smaller side.
        equivalent: whether it would count as equivalent by itself; None where that is not asked.
    """

    delta: float | None
    low: float | None
    high: float | None
    seeds: int
    equivalent: bool | None = None


def learned(run: RunRow, test_set: str = "all") -> bool | None:
    """Whether a run is above the majority class, or of generation better than the untrained model; None where
    that is not known, and of a run that trains nothing."""
    for not_above in (run.tested(test_set).not_above_majority, run.not_above_untrained):
        if not_above is not None:
            return not not_above
    return None


def learned_nothing(runs: Iterable[RunRow], test_set: str = "all") -> bool:
    """Whether none of some runs learned anything; runs that train nothing do not count, and runs of which it
    is not known may have."""
    told = [learned(run, test_set) for run in runs if run.method != "none"]
    return bool(told) and all(one is False for one in told)


def unlearned(runs: Sequence[RunRow], test_set: str = "all") -> str | None:
    """One of UNLEARNED if none of some runs learned anything, else None."""
    if not learned_nothing(runs, test_set):
        return None
    trained = [run for run in runs if run.method != "none"]
    return ONE_CLASS if all(map(is_one_class, trained)) else NOTHING_LEARNED


def is_one_class(run: RunRow, splits: Sequence[str] = ("test",)) -> bool:
    """Whether a run predicts a single class, or gives a single answer, on each of these splits."""
    return all(run.all_same(split) is True for split in splits) and not run.diverged


def partly_collapsed(cells: Cells) -> bool:
    """Whether some runs of a cell collapsed and some did not."""
    return any(0 < sum(bool(run.collapsed) for run in runs) < len(runs) for runs in cells)


def sound_seeds(cells: Cells) -> list[tuple[int, int]]:
    """The seeds of a side whose runs did not collapse; a cell of which all did keeps them, since that is what
    its recipe does."""
    kept = []
    for runs in cells:
        whole = all(run.collapsed for run in runs)
        kept.append([_seed(run) for run in runs if whole or not run.collapsed])
    return [seed for seed in kept[0] if all(seed in others for others in kept[1:])]


def _seed(run: RunRow) -> tuple[int, int]:
    return run.init_seed, run.data_seed


def direction(low: float | None, high: float | None) -> str | None:
    """higher or lower where an interval leaves zero out, unclear where it holds zero; None without one."""
    if low is None or high is None:
        return None
    if low > 0:
        return "higher"
    return "lower" if high < 0 else "unclear"


def bounds(row: Row) -> tuple[float | None, float | None]:
    """The interval that a difference's verdict rests on: over seeds and test examples; without predictions
    that over seeds alone."""
    if row.get("ci_low") is not None:
        return row["ci_low"], row["ci_high"]
    return row.get("t_low"), row.get("t_high")


def no_verdict(row: Row, a: Cells, b: Cells, sound: Sound | None) -> str | None:
    """Why a difference bears no verdict, one of WITHHELD; None where its interval may speak.

    Args:
        row: the difference: delta, ci_low, ci_high, t_low, t_high; test_set and equivalence where it has
            them.
        a, b: the runs of both sides, rows of runs.csv.
        sound: the difference without collapsed runs; None where no cell is partly collapsed.
    """
    runs = [run for cells in (a, b) for of_cell in cells for run in of_cell]
    if word := unlearned(runs, row.get("test_set", "all")):
        return word
    if row["delta"] is None:
        return None
    # of one seed there is no interval at all, which says more than that they are few
    seeds = min(independent_seeds(_seed(run) for run in cells[0]) for cells in (a, b))
    if 1 < seeds < FEWEST_SEEDS:
        return FEW_SEEDS
    return COLLAPSE if sound is not None and _hangs_on_a_collapse(row, sound) else None


def _hangs_on_a_collapse(row: Row, sound: Sound) -> bool:
    """Whether the verdict would be another, or would rest on too few seeds, without the collapsed runs."""
    found, equivalence = row["direction"], row.get("equivalence")
    if found not in ("higher", "lower") and equivalence not in ("equivalent", "different"):
        return False
    if sound.seeds < FEWEST_SEEDS:
        return True
    if found in ("higher", "lower") and direction(sound.low, sound.high) != found:
        return True
    return equivalence == "equivalent" and not sound.equivalent


def verdict(row: Row) -> str:
    """What a difference's interval says, or why it says nothing.

    One of WITHHELD; undefined where a run has no finite loss; the difference's `direction`; without an
    interval single, or flat where several seeds have no spread.

    Args:
        row: of contrasts.csv.
    """
    if row.get("no_verdict"):
        return row["no_verdict"]
    if row["delta"] is None:
        return "undefined"
    if row["direction"] is None:
        return "single" if min(row["n_a"], row["n_b"]) < 2 else "flat"
    return row["direction"]


def is_withheld(row: Row) -> bool:
    """Whether a difference bears no verdict whatever its interval says."""
    return verdict(row) in WITHHELD


def equivalence_word(row: Row) -> str | None:
    """The verdict of the test of equivalence for a table: equivalent, or no verdict and why; None where
    equivalence was not tested."""
    if row["equivalence"] and is_withheld(row):
        return f"no verdict: {verdict(row)}"
    return row["equivalence"] or None


def needed_accuracy(examples: int, majority: float, confidence: float) -> float | None:
    """The smallest accuracy on so many test examples that is above the majority class by its one-sided Wilson
    bound; None where not even that of a perfect run is."""
    low, high = 0, examples
    if not statistics.wilson_lower(high, examples, confidence) > majority:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        above = statistics.wilson_lower(middle, examples, confidence) > majority
        low, high = (low, middle) if above else (middle, high)
    return high / examples


# --- what is possible ---------------------------------------------------------------------------------------


def cut(columns: Mapping[str, float | None], least: float, most: float) -> dict[str, float | None]:
    """Bounds of intervals cut at what is possible; other values are within it."""
    return {name: None if value is None else min(most, max(least, value)) for name, value in columns.items()}
