"""The methods of an experiment: which are compared, on how many questions, how else their recipes differ."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median
from typing import Any

from seedbed.analysis.table_rows import RunRow
from seedbed.core import wording
from seedbed.core.known import known
from seedbed.core.methods import ADAPTERS, METHODS
from seedbed.core.rows import Row
from seedbed.core.wording import Words
from seedbed.core.words import (
    code,
    framework_name,
)
from seedbed.report.experiment import (
    Experiment,
    where,
)
from seedbed.report.parts import PLACE

NAMES = {name: method.words for name, method in METHODS.items()}
WORDS = Words("report/method_comparisons")
UNTRAINED = "none"
FLOAT32 = 4  # bytes
MIB = 2**20
MAX_TOLD = 12  # comparisons in sentences; more are counted
# keys of a recipe that say which it is, or that belong to its method; and those of them that adapters share
OF_METHODS = {"family", "swept", "sweep", "method", "quantization", "lora", "frozen_dtype", "last_layers"}
OF_ADAPTERS = {"lora", "frozen_dtype"}
FEW_QUESTIONS, FEW_TEXTS = 30, 10  # fewer in a test set are warned of
SHORTEST = 5  # seconds; of less no relative difference is told, as starting up and noise are much of it
INITS = wording.data("report/titles")["inits"]


@dataclass(frozen=True)
class Comparison:
    """One method against another, on one dataset with one model, from one init.

    Attributes:
        experiment: by its first metric.
        row: the contrast of the family `method`, by the experiment's first metric.
    """

    experiment: Experiment
    row: Row

    def method(self, side: str) -> str:
        """The method of side a or b."""
        return self.experiment.reporting["recipes"][self.row[f"recipe_{side}"]]["method"]

    def name(self, side: str) -> str:
        """The method of a side in words, with its family of recipes where several have that method."""
        return method_name(self.experiment.reporting["recipes"], self.row[f"recipe_{side}"])

    @property
    def place(self) -> str:
        """Where it was measured, in as many words as tell it from others."""
        framework, init = self.row["a"].split("/")
        several_inits = len(self.experiment.reporting["grid"].get("inits", ())) > 1
        several_frameworks = len({run.framework for run in self.experiment.runs}) > 1
        return WORDS.say(
            "place",
            where(self.experiment, self.row),
            INITS[init] if several_inits else "",
            framework_name(framework) if several_frameworks else "",
        )

    def runs(self, side: str) -> list[RunRow]:
        """The runs behind a side."""
        return self.experiment.side(self.row, side)


def method_name(recipes: Mapping[str, Mapping[str, Any]], recipe: str) -> str:
    """The method of a recipe in words, with its family where several have that method: LoRA (`small`).

    Args:
        recipes: `recipes` of `Plan.reporting()`.
        recipe: one of them.
    """
    block = recipes[recipe]
    alike = {other["family"] for other in recipes.values() if other["method"] == block["method"]}
    name = NAMES[block["method"]]
    return f"{name} ({code(block['family'])})" if len(alike) > 1 else name


def leads(experiment: Experiment) -> bool:
    """Whether the methods are the question that the answer begins with."""
    return experiment.task.from_untrained


def comparisons(experiment: Experiment) -> list[Comparison]:
    """Every two methods once: each at its best recipe where that is known, else at the first equal one."""
    recipes = experiment.reporting["recipes"]

    def key(row: Row) -> tuple[str, ...]:
        families = (recipes[row[f"recipe_{side}"]]["family"] for side in "ab")
        return (*(row[name] for name in (*PLACE, "a", "b")), *families)

    found: dict[tuple[str, ...], Row] = {}
    for row in experiment.contrasts:
        if row["family"] == "method":
            first = found.setdefault(key(row), row)
            if row["selection"] == "best" and first["selection"] != "best":
                found[key(row)] = row
    return [Comparison(experiment, row) for row in found.values()]


def tabled(experiment: Experiment) -> bool:
    """Whether there are so many comparisons that their differences stand in a table, not in sentences."""
    return len(comparisons(experiment)) > 1


# --- test sets ----------------------------------------------------------------------------------------------


def tested_on(run: RunRow, questions: bool = True) -> str:
    """The size of a run's test set: 40 test questions; with its texts where some have several questions."""
    texts, examples = run.test_groups, known(run.test_examples)
    return WORDS.say("size", examples, texts if texts is not None and texts < examples else 0, questions)


def small_test_sets(experiment: Experiment) -> list[str]:
    """The test sets of questions too few to tell much, one sentence a dataset; none of tasks without
    answers."""
    if not experiment.task.writes_answers:
        return []
    return [
        WORDS.say("small_test_set", name, tested_on(run))
        for name, run in _firsts(experiment).items()
        if known(run.test_examples) < FEW_QUESTIONS or (run.test_groups or FEW_TEXTS) < FEW_TEXTS
    ]


def _firsts(experiment: Experiment) -> dict[str, RunRow]:
    """A run of each dataset whose number of test examples is known."""
    found: dict[str, RunRow] = {}
    for run in experiment.runs:
        if run.test_examples is not None:
            found.setdefault(run.dataset, run)
    return found


# --- how recipes differ -------------------------------------------------------------------------------------


def other_settings(one: Comparison) -> list[str]:
    """In what, beside the method, the recipes of both sides differ, as a sentence."""
    settings = [] if one.method("b") == UNTRAINED else differing_settings(one)
    return [WORDS.say("other_settings", one.name("a"), one.name("b"), settings)] if settings else []


def differing_settings(one: Comparison) -> list[tuple[str, Sequence[Any], Sequence[Any]]]:
    """In what, beside the method, the recipes of both sides differ: key, and values of both.

    What a side chose on validation, out of its own sweep, is no such difference.
    """
    a, b = (one.experiment.reporting["recipes"][one.row[f"recipe_{side}"]] for side in "ab")
    chosen = {*a["swept"], *b["swept"]} if one.row["selection"] == "best" else set()
    left_out = OF_METHODS - OF_ADAPTERS if {a["method"], b["method"]} <= set(ADAPTERS) else OF_METHODS
    a, b = (_flat({key: value for key, value in block.items() if key not in left_out}) for block in (a, b))
    keys = [key for key in a if key in b and key not in chosen and a[key] != b[key]]
    return [(key, _values(a[key]), _values(b[key])) for key in keys]


def _flat(block: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe with the keys of its blocks as a sweep names them: lora.r."""
    flat: dict[str, Any] = {}
    for key, value in block.items():
        inner = value.items() if isinstance(value, Mapping) else ()
        flat |= {f"{key}.{name}": item for name, item in inner} if inner else {key: value}
    return flat


def _values(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else [value]


def median_of(runs: Iterable[RunRow], column: str) -> float | None:
    """The median of a column of runs.csv over the runs that know it; None where none does."""
    values = [run[column] for run in runs if run[column] is not None]
    return median(values) if values else None


def mean_of(runs: Sequence[RunRow], column: str) -> float | None:
    """The mean of a column of runs.csv; None where a run does not know it."""
    values = [value for run in runs if (value := run.value(column)) is not None]
    return mean(values) if values and len(values) == len(runs) else None
