"""What each task measures, and what selects its checkpoint."""

from dataclasses import dataclass

NO_PREDICTION = "none"  # stands in tables in place of a class where a model returned no number
# of a run's metrics.csv
METRIC_COLUMNS = ("step", "epoch", "split", "metric", "value", "learning_rate", "seconds")


@dataclass(frozen=True)
class Task:
    """A task's metrics; `selection` picks the checkpoint on validation, `tie_break` settles ties.

    Directions are +1 where more is better and -1 where less is.
    """

    name: str
    metrics: tuple[str, ...]
    selection: str
    direction: int
    tie_break: str
    tie_break_direction: int


TASKS = {
    "classification": Task("classification", ("accuracy", "loss"), "accuracy", +1, "loss", -1),
}
