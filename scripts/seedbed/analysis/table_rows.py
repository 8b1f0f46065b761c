"""Rows of runs.csv and summary.csv with types, and the columns of both tables."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

from seedbed.config.runs import RUN_KEYS
from seedbed.core.rows import TEST_SETS, TypedRow, read_csv, typed_cells, write_table, write_typed
from seedbed.core.run_folder import seed_folder
from seedbed.core.splits import PREDICTED
from seedbed.core.tasks import METRICS, Task, class_of_metric, task_of

LEAKLESS = TEST_SETS["without leaks"]
# columns of runs.csv for each test set, and others, that only some tasks have
TESTS_OF_SOME_TASKS = ("test_groups",)
UNTRAINED_COLUMNS = ("untrained_validation_loss", "not_above_untrained")


def is_measured(column: str) -> bool:
    """Whether a column of runs.csv is of a metric of any task, on any split and test set."""
    split, _, metric = column.removesuffix(LEAKLESS).partition("_")
    return split in PREDICTED and (metric in METRICS or class_of_metric(metric) is not None)


@dataclass(frozen=True, kw_only=True)
class RunRow(TypedRow):
    """A row of runs.csv: one run. None means undefined or unknown.

    As a mapping it has the columns of the table, those of `measured` and `swept` among them.

    Attributes:
        dataset, model, framework, init, recipe, recipe_family, method, init_seed, data_seed: see
            `config.runs.Run`.
        selected_step: the update whose weights are evaluated.
        test_examples: number of test examples.
        test_majority_share: share of the largest class, a fraction; None of answers.
        test_ece: expected calibration error, a fraction; None where a probability is missing.
        test_ece_of_chance: what it would be on average, on as many examples, were the run calibrated.
        test_groups: texts that the test questions are about; None of classes.
        test_examples_without_leaks, test_majority_share_without_leaks, test_ece_without_leaks,
            test_ece_of_chance_without_leaks, test_groups_without_leaks: of the test examples that did not
            leak; None where none or all leaked.
        leaked_test_examples: test examples that stand in another split, too.
        validation_majority_share: share of the largest class, a fraction.
        collapsed: it diverged, has no finite loss, or gives a single class or answer on a split that tells.
        validation_all_same, test_all_same: it does so on this split; None where the split does not tell.
        diverged: the training loss was not finite.
        not_above_majority, not_above_majority_without_leaks: the bound of its main test metric is not better
            than always answering the largest class, or the mean of the training labels.
        unstable: it diverged, or its training loss rises from one epoch to the next.
        train_size: number of training texts, where these are swept.
        first_train_loss, last_train_loss: mean of the first and the last epoch, in nats; of numbers the mean
            squared error.
        untrained_validation_loss: of the untrained model, in nats.
        not_above_untrained: the selected validation loss is not below it; None where nothing is trained.
        trainable_parameters, total_parameters: numbers of parameters.
        updates: number of updates.
        start_up_seconds, train_seconds, evaluate_seconds, write_seconds, total_seconds: seconds by phase.
        samples_per_second, tokens_per_second: speed of training.
        padding_share: share of padding among the tokens of training, a fraction.
        peak_memory_mib: in MiB.
        energy_joules: in joules.
        fused_seeds: runs trained as one batched model with the run, itself among them.
        device: where it ran.
        measured: metrics by column: SPLIT_METRIC, and test_METRIC_without_leaks. Accuracies are fractions,
            losses are in nats, squared errors in the squared unit of the labels; None where a loss is not
            finite, or no example leaked.
        swept: its values of the hyperparameters that any recipe of the experiment sweeps.
    """

    dataset: str
    model: str
    framework: str
    init: str
    recipe: str
    recipe_family: str
    method: str
    init_seed: int
    data_seed: int
    selected_step: int | None = None
    test_examples: int | None = None
    test_majority_share: float | None = None
    test_ece: float | None = None
    test_ece_of_chance: float | None = None
    test_groups: int | None = None
    test_examples_without_leaks: int | None = None
    test_majority_share_without_leaks: float | None = None
    test_ece_without_leaks: float | None = None
    test_ece_of_chance_without_leaks: float | None = None
    test_groups_without_leaks: int | None = None
    leaked_test_examples: int | None = None
    validation_majority_share: float | None = None
    collapsed: bool | None = None
    validation_all_same: bool | None = None
    test_all_same: bool | None = None
    diverged: bool | None = None
    not_above_majority: bool | None = None
    not_above_majority_without_leaks: bool | None = None
    unstable: bool | None = None
    train_size: int | None = None
    first_train_loss: float | None = None
    last_train_loss: float | None = None
    untrained_validation_loss: float | None = None
    not_above_untrained: bool | None = None
    trainable_parameters: int | None = None
    total_parameters: int | None = None
    updates: int | None = None
    start_up_seconds: float | None = None
    train_seconds: float | None = None
    evaluate_seconds: float | None = None
    write_seconds: float | None = None
    total_seconds: float | None = None
    samples_per_second: float | None = None
    tokens_per_second: float | None = None
    padding_share: float | None = None
    peak_memory_mib: float | None = None
    energy_joules: float | None = None
    fused_seeds: int | None = None
    device: str = ""
    measured: Mapping[str, float | None] = field(default_factory=dict)
    swept: Mapping[str, Any] = field(default_factory=dict)

    @property
    def trained_together(self) -> int:
        """How many seeds its time, energy and memory are of."""
        return self.fused_seeds or 1

    @classmethod
    def of(cls, columns: Mapping[str, Any]) -> Self:
        """The row with these columns; what is neither an attribute nor a metric is swept."""
        own = {name: value for name, value in columns.items() if name in _ATTRIBUTES}
        measured = {name: value for name, value in columns.items() if is_measured(name)}
        swept = {name: value for name, value in columns.items() if name not in {*own, *measured}}
        return cls(**own, measured=measured, swept=swept)

    @classmethod
    def read(
        cls, path: str | Path, what: str = "table of runs", needed: Collection[str] = RUN_KEYS
    ) -> list[Self]:
        """The rows of a runs.csv, of any task.

        Args:
            path: the table.
            what: what it should be, for errors.
            needed: columns that it must have. Another attribute that it lacks, as tables of earlier versions
                may, has its default.

        Raises:
            SeedbedError: see `read_csv`; a needed column is missing; a cell is not of its column's type.
        """
        header, rows = read_csv(path, needed, what=what)
        measured = dict.fromkeys(filter(is_measured, header), float | None)
        types = dict.fromkeys(header, Any) | measured | _ATTRIBUTES
        return [cls.of(cells) for cells in typed_cells(types, header, rows, path, what)]

    def value(self, column: str) -> float | None:
        """A metric of a split by its column, such as test_accuracy; None where it is not defined.

        Raises:
            KeyError: the table has no such column.
        """
        return self.measured[column]

    @property
    def cell(self) -> tuple[str, str, str, str, str]:
        """Dataset, model, framework, init and recipe."""
        return self.dataset, self.model, self.framework, self.init, self.recipe

    def is_undefined(self, column: str) -> bool:
        """Whether a metric is missing because a loss is not finite; another missing one is unknown."""
        examined = not column.endswith(LEAKLESS) or self.test_examples_without_leaks is not None
        return self.measured.get(column) is None and self.collapsed is True and examined

    def tested(self, test_set: str) -> "Tested":
        """What is counted of classes on one of TEST_SETS."""
        if test_set == "all":
            return Tested(
                self.test_examples,
                self.test_majority_share,
                self.test_ece,
                self.test_ece_of_chance,
                self.not_above_majority,
            )
        return Tested(
            self.test_examples_without_leaks,
            self.test_majority_share_without_leaks,
            self.test_ece_without_leaks,
            self.test_ece_of_chance_without_leaks,
            self.not_above_majority_without_leaks,
        )

    def all_same(self, split: str) -> bool | None:
        """Whether it gives a single class or answer on validation or test."""
        return self.validation_all_same if split == "validation" else self.test_all_same

    @property
    def seeds(self) -> tuple[int, int]:
        """Init seed and data seed."""
        return self.init_seed, self.data_seed

    @property
    def folder(self) -> str:
        """DATASET/MODEL/FRAMEWORK/INIT/RECIPE/SEED: its folder below runs/."""
        seed = seed_folder(self.init_seed, self.data_seed)
        return "/".join((self.dataset, self.model, self.framework, self.init, self.recipe, seed))

    @cached_property
    def _flat(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in _ATTRIBUTES}
        return own | dict(self.measured) | dict(self.swept)

    def __getitem__(self, column: str) -> Any:
        return self._flat[column]

    def __iter__(self) -> Iterator[str]:
        return iter(self._flat)

    def __len__(self) -> int:
        return len(self._flat)


class Tested(NamedTuple):
    """Columns of a run on one test set, see `RunRow`."""

    examples: int | None
    majority_share: float | None
    ece: float | None
    ece_of_chance: float | None
    not_above_majority: bool | None


# the columns that are attributes, with their types
_ATTRIBUTES = {name: kind for name, kind in RunRow._types().items() if name not in ("measured", "swept")}


def measured_columns(task: Task) -> list[str]:
    """The columns of runs.csv with a task's metrics."""
    return [*_measured_of_all(task), *_measured_without_leaks(task)]


def _measured_of_all(task: Task) -> list[str]:
    return [f"{split}_{metric}" for split in PREDICTED for metric in (*task.metrics, *task.final)]


def _measured_without_leaks(task: Task) -> list[str]:
    return [f"test_{name}{LEAKLESS}" for name in task.counted]


def run_columns(reporting: Mapping[str, Any]) -> list[str]:
    """Columns of runs.csv; the values of every swept hyperparameter stand last, under its own name."""
    task = task_of(reporting)
    of_others = {f"{name}{ending}" for name in TESTS_OF_SOME_TASKS for ending in TEST_SETS.values()}
    of_others -= {f"{name}{ending}" for name in task.test_columns for ending in TEST_SETS.values()}
    of_others |= set() if task.from_untrained else set(UNTRAINED_COLUMNS)
    of_others |= set() if reporting["grid"].get("train_sizes") else {"train_size"}
    before = {
        "test_examples": _measured_of_all(task),
        f"test_examples{LEAKLESS}": _measured_without_leaks(task),
    }
    columns = [
        column for name in _ATTRIBUTES if name not in of_others for column in (*before.get(name, ()), name)
    ]
    return [*columns, *swept_keys(reporting)]


def write_runs(path: str | Path, runs: Iterable[RunRow], reporting: Mapping[str, Any]) -> None:
    """Write a runs.csv.

    Raises:
        KeyError: a run lacks a metric of the task, or a hyperparameter that is swept.
    """
    columns = run_columns(reporting)
    write_table(path, columns, ({name: run[name] for name in columns} for run in runs))


def swept_keys(reporting: Mapping[str, Any]) -> list[str]:
    """Hyperparameters that any recipe of the experiment sweeps."""
    return list(dict.fromkeys(key for recipe in reporting["recipes"].values() for key in recipe["swept"]))


def seed_values(runs: Iterable[RunRow], column: str) -> dict[tuple[int, int], float | None]:
    """A metric of the runs of one summary row, by (init seed, data seed); None if undefined."""
    return {run.seeds: run.value(column) for run in runs}


def value_column(row: Mapping[str, Any]) -> str:
    """The column of runs.csv that a row of summary.csv or contrasts.csv summarises."""
    return f"test_{row['metric']}{TEST_SETS[row['test_set']]}"


@dataclass(frozen=True, kw_only=True)
class SummaryRow(TypedRow):
    """A row of summary.csv: a group of seeds by one metric on one test set. None means undefined or unknown.

    Means, spreads and bounds are in the unit of the metric: accuracies are fractions, losses are in nats.

    Attributes:
        dataset, model, framework, init, recipe, recipe_family: of the runs.
        selection: equal; or best, of a family's recipe that is best on validation.
        method: of the recipe.
        metric: what was measured.
        test_set: all, or without leaks.
        n_seeds, n_collapsed, n_not_above_majority: runs; the last by the main metric.
        mean, sd: over seeds; sd of the sample.
        sd_new_examples: what of the sd would be left on endless test examples.
        ci_low, ci_high, ci_method: the interval over seeds alone, for these test examples, and in words what
            it rests on.
        both_low, both_high: the interval over seeds and test examples, for the recipe as it is.
        median, iqm, min, max: over seeds; iqm is the mean of the middle half.
        mean_without_collapsed, sd_without_collapsed: over the other runs.
        validation_mean, validation_sd: of the same metric on validation.
        binomial_se: standard error from the number of test examples.
        majority_share: of always answering the largest class of test: of accuracy, the share of the class;
            of numbers, of always answering the mean of the training labels.
        bag_of_words: of this baseline, on test.
        validation_best: the best of these seeds' values on validation.
        chosen_share: how often resampled runs choose this recipe of its family, a fraction.
        ece: mean expected calibration error, a fraction.
        ece_of_chance: mean of what it would be were the runs calibrated.
        bag_of_words_features: what the bag is of, where it is not of words.
        bag_of_words_left_out: why the dataset has no bag.
        train_size: number of training texts, where these are swept.
        linear_probe: of this baseline on as many training texts, on test, where sizes are swept; it reads the
            states of the row's checkpoint, whatever the init.
    """

    # written only where a bag is not of words, and where sizes of training are swept
    OPTIONAL: ClassVar[Collection[str]] = (
        "bag_of_words_features", "bag_of_words_left_out", "train_size", "linear_probe",
    )  # fmt: skip

    dataset: str
    model: str
    framework: str
    init: str
    recipe: str
    recipe_family: str
    selection: str = "equal"
    method: str
    metric: str
    test_set: str = "all"
    n_seeds: int
    n_collapsed: int | None = None
    n_not_above_majority: int | None = None
    mean: float | None = None
    sd: float | None = None
    sd_new_examples: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    ci_method: str | None = None
    both_low: float | None = None
    both_high: float | None = None
    median: float | None = None
    iqm: float | None = None
    min: float | None = None
    max: float | None = None
    mean_without_collapsed: float | None = None
    sd_without_collapsed: float | None = None
    validation_mean: float | None = None
    validation_sd: float | None = None
    binomial_se: float | None = None
    majority_share: float | None = None
    bag_of_words: float | None = None
    validation_best: float | None = None
    chosen_share: float | None = None
    ece: float | None = None
    ece_of_chance: float | None = None
    bag_of_words_features: str | None = None
    bag_of_words_left_out: str | None = None
    train_size: int | None = None
    linear_probe: float | None = None

    @property
    def cell(self) -> tuple[str, str, str, str, str]:
        """Dataset, model, framework, init and recipe."""
        return self.dataset, self.model, self.framework, self.init, self.recipe

    @property
    def interval(self) -> tuple[float, float] | None:
        """The interval of the mean over seeds and test examples; without predictions over seeds alone."""
        for low, high in ((self.both_low, self.both_high), (self.ci_low, self.ci_high)):
            if low is not None and high is not None:
                return low, high
        return None


SUMMARY_COLUMNS = tuple(each.name for each in fields(SummaryRow) if each.name not in SummaryRow.OPTIONAL)


def write_summary(path: str | Path, rows: Sequence[SummaryRow]) -> None:
    """Write a summary.csv; of the OPTIONAL columns those that say something."""
    write_typed(path, SUMMARY_COLUMNS, rows)


def read_summary(path: str | Path) -> list[SummaryRow]:
    """The rows of a summary.csv.

    Raises:
        SeedbedError: see `TypedRow.read`.
    """
    return SummaryRow.read(path, "table of scores")
