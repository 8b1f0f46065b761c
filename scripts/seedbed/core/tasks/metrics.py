"""Each metric's direction, unit and name, and the columns of a run's tables."""

from dataclasses import dataclass

# of a run's metrics.csv
METRIC_COLUMNS = ("step", "epoch", "split", "metric", "value", "learning_rate", "seconds")
# of a run's predictions.csv if the task's outputs are answers; one row per example
ANSWER_COLUMNS = (
    "split", "example", "tokens", "loss", "token_accuracy", "exact_match", "f1", "reference", "answer",
)  # fmt: skip
# beside these: examples of one group share a text and are no independent evidence; a file may lack it
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
