"""Each metric's direction, unit and name, and the columns of a run's tables."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# of a run's metrics.csv
METRIC_COLUMNS = ("step", "epoch", "split", "metric", "value", "learning_rate", "seconds")
# of a run's predictions.csv if the task's outputs are answers; one row per example
ANSWER_COLUMNS = (
    "split", "example", "tokens", "loss", "token_accuracy", "exact_match", "f1", "reference", "answer",
)  # fmt: skip
# of a run's predictions.csv if the task's outputs are values
VALUE_COLUMNS = ("split", "example", "label", "prediction")
# beside these: examples of one group share a text and are no independent evidence; a file may lack it
GROUP_COLUMN = "group"
FRACTION, NATS, PERPLEXITY, CORRELATION = "fraction", "nats", "perplexity", "correlation"
SQUARES = "squares"  # of the unit of the labels
NUMBER = "number"  # of scores from outside whose bounds are not those of a share
# before the label of a class, in the name of the class's F1
F1_OF = "f1_of_"
# before the name that files from outside give to their scores, by unit; more is better
SCORES_OF = {"share_of_": FRACTION, "number_of_": NUMBER}


@dataclass(frozen=True)
class Metric:
    """A metric's direction (+1 where more is better, -1 where less is), its unit, and its name in words."""

    direction: int
    unit: str
    words: str


class _Metrics(dict[str, Metric]):
    """Metrics by name; the F1 of a class has the class's label in its name, which may be any, and scores from
    outside have the name that their files give them."""

    def __missing__(self, name: str) -> Metric:
        label = class_of_metric(name)
        if label is not None:
            return Metric(+1, FRACTION, f"F1 of {label}")
        for beginning, unit in SCORES_OF.items():
            if name.startswith(beginning):
                return Metric(+1, unit, name.removeprefix(beginning))
        raise KeyError(name)


def class_of_metric(name: str) -> str | None:
    """The label of the class of which a metric is the F1; None for other metrics."""
    return name.removeprefix(F1_OF) if name.startswith(F1_OF) else None


def metric_named(asked: str | Mapping[str, Any]) -> str:
    """The name of a metric of the config: itself, or that of {f1_of: LABEL}."""
    return asked if isinstance(asked, str) else f"{F1_OF}{asked['f1_of']}"


METRICS = _Metrics(
    {
        "accuracy": Metric(+1, FRACTION, "accuracy"),
        "loss": Metric(-1, NATS, "loss"),
        "perplexity": Metric(-1, PERPLEXITY, "perplexity"),
        "token_accuracy": Metric(+1, FRACTION, "token accuracy"),
        "exact_match": Metric(+1, FRACTION, "exact match"),
        "f1": Metric(+1, FRACTION, "F1"),
        "macro_f1": Metric(+1, FRACTION, "macro-F1"),
        "balanced_accuracy": Metric(+1, FRACTION, "balanced accuracy"),
        "mcc": Metric(+1, CORRELATION, "Matthews correlation"),
        "micro_f1": Metric(+1, FRACTION, "micro-F1"),
        "subset_accuracy": Metric(+1, FRACTION, "subset accuracy"),
        "pearson": Metric(+1, CORRELATION, "Pearson correlation"),
        "spearman": Metric(+1, CORRELATION, "Spearman correlation"),
        "mse": Metric(-1, SQUARES, "MSE"),
    }
)
