"""What is known of metrics by their names: their bounds, and whether less is better."""

import math

import numpy as np

from seedbed.core.errors import SeedbedError

UNKNOWN = (-math.inf, math.inf)
SHARES = frozenset(  # between 0 and 1
    {"accuracy", "acc", "acc_norm", "acc_bytes", "correct", "exact_match", "em", "f1", "macro_f1", "micro_f1"}
    | {"f1_weighted", "precision", "recall", "ap"}
)
CORRELATIONS = frozenset({"mcc", "matthews_correlation", "pearson", "spearman", "spearmanr", "pearsonr"})
LESS_IS_BETTER = frozenset(
    {"loss", "nll", "perplexity", "ppl", "word_perplexity", "byte_perplexity", "bits_per_byte"}
    | {"brier_score", "error", "error_rate", "wer", "cer", "ter", "mae", "mse", "rmse"}
)


def bounds_of(metric: str, given: tuple[float, float] | None) -> tuple[float, float]:
    """Least and largest possible value of a metric: as given, or by its name; infinite where unknown.

    Raises:
        SeedbedError: the given bounds are not two numbers, the less before the larger.
    """
    if given is not None:
        low, high = map(float, given)
        if not low < high:  # also of NaN
            raise SeedbedError(
                "the bounds of the scores are not in order",
                where="bounds",
                found=f"{low:g}, {high:g}",
                hint="give the least possible score, then the largest",
            )
        return low, high
    if plain(metric) in SHARES:
        return 0.0, 1.0
    return (-1.0, 1.0) if plain(metric) in CORRELATIONS else UNKNOWN


def require_more_is_better(metric: str, where: str) -> None:
    """Refuse a metric of which less is better, such as a loss.

    Raises:
        SeedbedError: it is one, by its name.
    """
    if plain(metric) in LESS_IS_BETTER:
        raise SeedbedError(
            "less is better of this metric, and systems are compared by scores of which more is better",
            where=where,
            found=metric,
            hint="write the negative values into a column of another name, or choose another metric",
        )


def outside_bounds(values: np.ndarray, bounds: tuple[float, float]) -> int | None:
    """The index of the first value outside the bounds; None if there is none."""
    wrong = (values < bounds[0]) | (values > bounds[1])
    return int(wrong.argmax()) if wrong.any() else None


def plain(metric: str) -> str:
    """A metric's name without capital letters and the split before it (test_mcc: mcc)."""
    name = metric.strip().casefold()
    for split in ("test_", "eval_", "predict_", "val_"):
        name = name.removeprefix(split)
    return name
