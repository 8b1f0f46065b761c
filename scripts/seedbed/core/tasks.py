"""What each task measures, what selects its checkpoint, and what its tables compare."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

NO_PREDICTION = "none"  # stands in tables in place of a class where a model returned no number
# of a run's metrics.csv
METRIC_COLUMNS = ("step", "epoch", "split", "metric", "value", "learning_rate", "seconds")
# of a run's predictions.csv, where the task is generation; one row an example
ANSWER_COLUMNS = (
    "split", "example", "tokens", "loss", "token_accuracy", "exact_match", "f1", "reference", "answer",
)  # fmt: skip
# beside these: examples of one group share a text and are no independent evidence; a file without it has none
GROUP_COLUMN = "group"
FRACTION, NATS, PERPLEXITY = "fraction", "nats", "perplexity"


@dataclass(frozen=True)
class Metric:
    """A metric's direction (+1 where more is better, -1 where less is), its unit, and its name in words."""

    direction: int
    unit: str
    words: str


METRICS = {
    "accuracy": Metric(+1, FRACTION, "accuracy"),
    "loss": Metric(-1, NATS, "loss"),
    "perplexity": Metric(-1, PERPLEXITY, "perplexity"),
    "token_accuracy": Metric(+1, FRACTION, "token accuracy"),
    "exact_match": Metric(+1, FRACTION, "exact match"),
    "f1": Metric(+1, FRACTION, "F1"),
}


@dataclass(frozen=True)
class Task:
    """A task's metrics; `selection` picks the checkpoint on validation, `tie_break` settles ties.

    Attributes:
        name: as in the config.
        metrics: measured at every evaluation, from the model's outputs.
        selection, tie_break: names of metrics.
        final: measured of the selected checkpoint alone, since it takes long: of generated answers.
        reported: test metrics that tables compare; the first is the one that answers lead with.
    """

    name: str
    metrics: tuple[str, ...]
    selection: str
    tie_break: str
    final: tuple[str, ...]
    reported: tuple[str, ...]

    @property
    def direction(self) -> int:
        """+1 where more of the selection metric is better, -1 where less is."""
        return METRICS[self.selection].direction

    @property
    def tie_break_direction(self) -> int:
        """+1 where more of the tie-break metric is better, -1 where less is."""
        return METRICS[self.tie_break].direction


TASKS = {
    "classification": Task(
        "classification", ("accuracy", "loss"), "accuracy", "loss", final=(), reported=("accuracy",)
    ),
    "generation": Task(
        "generation",
        ("loss", "perplexity", "token_accuracy"),
        "loss",
        "token_accuracy",
        final=("exact_match", "f1"),
        reported=("loss", "token_accuracy", "exact_match", "f1"),
    ),
}


def task_of(reporting: Mapping[str, Any]) -> Task:
    """The task of an experiment, which all datasets of its grid have.

    Args:
        reporting: `Plan.reporting()`, or a resolved config.
    """
    return TASKS[reporting["datasets"][reporting["grid"]["datasets"][0]]["task"]]
