"""The tables of an experiment, from its run folders: aggregation, and the summary by groups of seeds."""

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from seedbed.analysis import (
    bootstrap,
    contrasts,
    diagnostics,
    example_errors,
    label_worth_rows,
    learning_curves,
    sides,
    spread,
    statistics,
    verdicts,
)
from seedbed.analysis.baselines import Baseline, Baselines, baseline_of, read_baseline
from seedbed.analysis.baselines_of_sizes import read_bags, read_probes
from seedbed.analysis.contrasts import CONTRAST_COLUMNS, Sides
from seedbed.analysis.label_sets import CellLabelSets
from seedbed.analysis.majority import majority_value
from seedbed.analysis.outputs import CellOutputs
from seedbed.analysis.predictions import UNDEFINED_LOSS
from seedbed.analysis.runs import Cells, read_runs, write_curves
from seedbed.analysis.table_rows import RunRow, SummaryRow, seed_values, write_runs, write_summary
from seedbed.analysis.values import CellValues
from seedbed.core.known import all_known, known
from seedbed.core.rows import TEST_SETS, grouped, write_table, write_typed
from seedbed.core.run_folder import dataset_of_subset, place_of_probes
from seedbed.core.splits import PREDICTED
from seedbed.core.states import EncoderOfStates
from seedbed.core.subsets import read_order
from seedbed.core.tasks import CLASSES, LABEL_SETS, METRICS, VALUES, Task, task_of
from seedbed.core.words import bounds_of
from seedbed.data.clusters import by_example
from seedbed.data.duplicates import leaked_test_examples, read_duplicates

T = TypeVar("T")
V = TypeVar("V")

# linear probes of an experiment, by dataset, model, name of the states and number of training texts
Probes = dict[tuple[str, str, str, int | None], Baseline]

# means over examples of what is right or wrong
COUNTED = ("accuracy", "exact_match", "subset_accuracy")
# by a task's outputs: what the answer that needs no text has of a metric
CONSTANTS: dict[str, Callable[[Any, str], float]] = {
    CLASSES: majority_value,
    LABEL_SETS: CellLabelSets.constant_value,
    VALUES: CellValues.constant_value,
}


def aggregate(
    folders: Sequence[str | Path],
    bag_of_words: Sequence[str | Path],
    duplicates: Sequence[str | Path],
    reporting: Mapping[str, Any],
    outputs: Mapping[str, str | Path],
    splits: Sequence[str | Path] = (),
    subsets: Sequence[str | Path] = (),
    bags_of_sizes: Sequence[str | Path] = (),
    probes_of_sizes: Sequence[str | Path] = (),
) -> None:
    """Write the tables of an experiment.

    Args:
        folders: the run folders, .../DATASET/MODEL/FRAMEWORK/INIT/RECIPE/SEED.
        bag_of_words: .../DATASET/bag_of_words.csv of each dataset; none of generation.
        duplicates: .../DATASET/duplicates.csv of each dataset.
        reporting: `Plan.reporting()`.
        outputs: paths by table: runs, curves, summary, contrasts and those of `diagnostics.COLUMNS`; of
            classes and sets of labels those of `example_errors.COLUMNS`, too; where sizes of training are
            swept also learning_curves and label_worth.
        splits: .../DATASET/splits.json of each dataset with a column of clusters.
        subsets: .../DATASET/subsets/seedN/order.csv of each dataset, where sizes of training are swept.
        bags_of_sizes: .../bags_of_words/DATASET of each dataset, likewise; none of generation.
        probes_of_sizes: .../linear_probes/DATASET/MODEL/STATES, likewise; none but of classes.

    Raises:
        SeedbedError: runs are missing, contradict their folder or their predictions, or differ in examples; a
            file is cut or holds what it cannot. Then no table has been written.
    """
    leaks = {Path(path).parent.name: leaked_test_examples(read_duplicates(path)) for path in duplicates}
    baselines: Baselines = {
        (dataset, None): read_baseline(path, reporting, dataset)
        for path in bag_of_words
        for dataset in [Path(path).parent.name]
    }
    clusters = {Path(path).parent.name: by_example(path) for path in splits}
    training = {dataset_of_subset(Path(path)): len(read_order(path)) for path in subsets}
    found = read_runs(folders, reporting, leaks, clusters, training)
    bags = {
        Path(folder).name: read_bags(folder, reporting, _first_cell(found.cells, Path(folder).name))
        for folder in bags_of_sizes
    }
    baselines |= {
        (dataset, size): baseline
        for dataset, of_sizes in bags.items()
        for size, baseline in of_sizes.baselines(leaks.get(dataset, ())).items()
    }
    probes: Probes = {}
    for folder in probes_of_sizes:
        dataset, *_ = place = place_of_probes(Path(folder))
        read = read_probes(folder, reporting, _first_cell(found.cells, dataset))
        of_sizes = read.baselines(leaks.get(dataset, ()))
        probes |= {(*place, size): baseline for size, baseline in of_sizes.items()}
    summary = summarise(found.rows, baselines, reporting)
    predicted = contrasts.sides_of(found.rows, reporting, found.cells, leaks)
    summary = _with_choices(summary, contrasts.choice_shares(summary, reporting, predicted))
    summary = [over_seeds_and_examples(row, predicted, reporting["statistics"]) for row in summary]
    summary = [_with_majority(row, predicted) for row in summary]
    summary = _with_bags(summary, baselines)
    summary = [replace(row, linear_probe=_probed(probes, row, reporting)) for row in summary]
    differences = contrasts.contrast(found.rows, summary, reporting, predicted)
    diagnosed = diagnostics.tabulate(found.rows, found.cells["test"], differences, summary, reporting)
    as_classes = diagnostics.with_classes(found.cells["test"])
    of_examples = example_errors.tabulate(found.rows, as_classes, summary, leaks)
    learning = learning_curves.list_curves(summary, reporting)
    worth = label_worth_rows.worth_rows(learning, found.rows, predicted, bags, reporting["statistics"])
    write_runs(outputs["runs"], found.rows, reporting)
    write_curves(outputs["curves"], found.curves)
    write_summary(outputs["summary"], summary)
    write_typed(outputs["contrasts"], CONTRAST_COLUMNS, differences)
    for name, columns in diagnostics.COLUMNS.items():
        write_table(outputs[name], columns, diagnosed[name])
    for name, columns in example_errors.COLUMNS.items():
        if name in outputs:
            write_table(outputs[name], columns, of_examples[name])
    if learning:
        curve_rows = learning_curves.curve_rows(learning)
        write_typed(outputs["learning_curves"], learning_curves.CURVE_COLUMNS, curve_rows)
        write_table(outputs["label_worth"], label_worth_rows.WORTH_COLUMNS, worth)


def _first_cell(cells: Mapping[str, Cells], dataset: str) -> dict[str, CellOutputs]:
    """By split, the outputs of the first cell of a dataset, whose examples all its cells share."""
    first = next(key for key in cells["test"] if key[0] == dataset)
    return {split: cells[split][first] for split in PREDICTED}


def _with_choices(summary: Sequence[SummaryRow], shares: Mapping[tuple[str, ...], float]) -> list[SummaryRow]:
    return [replace(row, chosen_share=shares.get(row.cell)) for row in summary]


def over_seeds_and_examples(row: SummaryRow, predicted: Sides, settings: Mapping[str, Any]) -> SummaryRow:
    """The row with its interval over seeds and test examples, and the seeds' own spread."""
    if row.mean is None:
        return row
    side = predicted.test(row.cell, row.test_set, row.metric)
    seed = sides.named_seed(settings, [*row.cell, row.test_set, row.metric])
    found = bootstrap.describe(side, confidence=settings["confidence"], seed=seed)
    bounds = verdicts.cut({"low": found.low, "high": found.high}, *bounds_of(row.metric))
    own = bootstrap.sd_on_new_examples(side)
    return replace(row, both_low=bounds["low"], both_high=bounds["high"], sd_new_examples=own)


def _with_majority(row: SummaryRow, predicted: Sides) -> SummaryRow:
    """The row with what the answer that needs no text has of a metric that is not its share."""
    outputs = predicted.outputs(row.cell, row.test_set)
    if row.metric == "accuracy" or outputs.task.outputs not in CONSTANTS:
        return row
    return replace(row, majority_share=CONSTANTS[outputs.task.outputs](outputs, row.metric))


def _with_bags(summary: Sequence[SummaryRow], baselines: Baselines) -> list[SummaryRow]:
    """The summary with what it says of bags that are not of words."""
    found = [baseline_of(baselines, row) for row in summary]
    return [
        replace(row, bag_of_words_features=bag.features, bag_of_words_left_out=bag.left_out)
        for row, bag in zip(summary, found, strict=True)
    ]


def _probed(probes: Probes, row: SummaryRow, reporting: Mapping[str, Any]) -> float | None:
    """What the linear probe of a row's model has, which reads texts as long as the row's recipe takes them;
    None without one."""
    states = EncoderOfStates.of_checkpoint(reporting["recipes"][row.recipe]).name
    baseline = probes.get((row.dataset, row.model, states, row.train_size), Baseline())
    return baseline.values.get((row.metric, row.test_set))


# --- summary ------------------------------------------------------------------------------------------------


def summarise(
    runs: Sequence[RunRow],
    baselines: Baselines,
    reporting: Mapping[str, Any],
) -> list[SummaryRow]:
    """One row for each dataset, model, framework, init, recipe and reported metric (`selection` equal); and,
    for each family of swept recipes, one row more that names its best recipe on validation (`selection`
    best). Where test examples leaked, each row again on the others (`test_set` without leaks).

    The best recipe has the best mean over seeds of the task's selection metric on validation; ties go to the
    better mean of the task's tie-break metric (a missing value is the worst), then to the order of the sweep:
    the rule of `bootstrap.best_of`.

    A run without a finite loss has none: no mean, spread or interval over seeds is told of such a cell, whose
    `n_collapsed` counts the run, and `mean_without_collapsed` is that of the others. Median, minimum and
    maximum rank it as the worst, and are empty where that is what they are. Among recipes it is the worst.
    Intervals are cut at what is possible, from 0 to 1 of a share and at 0 of a loss.

    Where sizes of training are swept, the bag of words of a row has as many training texts as its runs.

    Runs that others published may lack every column but their names and their test value: what rests on the
    others is then empty. So is here what rests on predictions: `aggregate` adds it.
    """
    rows: list[SummaryRow] = []
    task = task_of(reporting)
    for cell in grouped(runs, "dataset", "model", "framework", "init").values():
        recipes = {recipe: group for (recipe,), group in grouped(cell, "recipe").items()}
        best = _best_recipes(recipes, task)
        for test_set, metric in itertools.product(TEST_SETS, task.reported):
            if not _all_known(cell, f"test_{metric}{TEST_SETS[test_set]}"):
                continue
            equal = {
                recipe: _summary_row(group, metric, test_set, baseline_of(baselines, group[0]), reporting)
                for recipe, group in recipes.items()
            }
            rows += equal.values()
            rows += [replace(equal[recipe], selection="best") for recipe in best]
    return rows


def _all_known(runs: Sequence[RunRow], column: str) -> bool:
    """Whether every run has a value of a metric, or has none because its loss is not finite."""
    return all(run.measured.get(column) is not None or run.is_undefined(column) for run in runs)


def _known(values: Iterable[T | None]) -> list[T] | None:
    """The values of a column of some runs; None unless every run has one."""
    found = list(values)
    return None if None in found else [known(value) for value in found]


def _of(values: list[T] | None, compute: Callable[[list[T]], V]) -> V | None:
    """What is computed of values; None where they are not known."""
    return None if values is None else compute(values)


def _best_recipes(recipes: Mapping[str, Sequence[RunRow]], task: Task) -> list[str]:
    """The best recipe of each family of several whose validation values are known."""
    families: dict[str, list[str]] = {}
    for recipe, group in recipes.items():
        families.setdefault(group[0].recipe_family, []).append(recipe)
    return [
        members[best_group([recipes[recipe] for recipe in members], task)]
        for members in families.values()
        if len(members) > 1
        and all(_all_known(recipes[recipe], f"validation_{task.selection}") for recipe in members)
    ]


def best_group(groups: Sequence[Sequence[RunRow]], task: Task) -> int:
    """Place of the group of runs that is chosen on validation, by the rule of `summarise`."""
    merits = [[_merit(group, metric) for group in groups] for metric in (task.selection, task.tie_break)]
    # means of the same numbers in another order may differ in the last bits
    return int(bootstrap.best_of(*(np.round(merit, 12)[:, None] for merit in merits))[0])


def _merit(group: Sequence[RunRow], metric: str) -> float:
    """Mean over seeds of a validation metric, larger is better; without a value a run is the worst."""
    values = [run.value(f"validation_{metric}") for run in group]
    direction = METRICS[metric].direction
    return direction * statistics.mean(
        [-direction * UNDEFINED_LOSS if value is None else value for value in values]
    )


def _summary_row(
    group: Sequence[RunRow],
    metric: str,
    test_set: str,
    baseline: Baseline,
    reporting: Mapping[str, Any],
) -> SummaryRow:
    confidence = reporting["statistics"]["confidence"]
    direction = METRICS[metric].direction
    column = f"test_{metric}{TEST_SETS[test_set]}"
    values = _known(run.value(column) for run in group)
    collapsed = _known(run.collapsed for run in group)
    weak = _known(run.tested(test_set).not_above_majority for run in group)
    sound = [] if collapsed is None else [known(run.value(column)) for run in group if not run.collapsed]
    validation = _known(run.measured.get(f"validation_{metric}") for run in group)
    errors = _known(run.tested(test_set).ece for run in group)
    of_chance = _known(run.tested(test_set).ece_of_chance for run in group)
    first, tested = group[0], group[0].tested(test_set)
    average = _of(values, statistics.mean)
    interval, method = (
        (None, "none: a run has no finite loss") if values is None else _interval(group, column, confidence)
    )
    ranked = [-direction * math.inf if (value := run.value(column)) is None else value for run in group]
    bounds = {"low": interval and interval[0], "high": interval and interval[1]}
    possible = verdicts.cut(bounds, *bounds_of(metric))
    return SummaryRow(
        dataset=first.dataset,
        model=first.model,
        framework=first.framework,
        init=first.init,
        recipe=first.recipe,
        recipe_family=first.recipe_family,
        train_size=first.train_size,
        method=first.method,
        metric=metric,
        test_set=test_set,
        n_seeds=len(group),
        n_collapsed=_of(collapsed, sum),
        n_not_above_majority=_of(weak, sum),
        mean=average,
        sd=_of(values, statistics.sample_sd),
        ci_low=possible["low"],
        ci_high=possible["high"],
        ci_method=method,
        median=_finite(float(np.median(ranked))),
        iqm=_of(values, statistics.iqm),
        min=_finite(min(ranked)),
        max=_finite(max(ranked)),
        mean_without_collapsed=statistics.mean(sound) if sound else None,
        sd_without_collapsed=statistics.sample_sd(sound) if sound else None,
        validation_mean=_of(validation, statistics.mean),
        validation_sd=_of(validation, statistics.sample_sd),
        binomial_se=_binomial_se(average, tested.examples, metric),
        majority_share=tested.majority_share if metric == "accuracy" else None,
        bag_of_words=baseline.values.get((metric, test_set)),
        validation_best=_of(validation, max if direction > 0 else min),
        ece=_of(errors, statistics.mean),
        ece_of_chance=_of(of_chance, statistics.mean),
    )


def _binomial_se(average: float | None, examples: int | None, metric: str) -> float | None:
    """Of a metric that counts examples."""
    if average is None or not examples or metric not in COUNTED:
        return None
    return statistics.binomial_se(average, examples)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _interval(
    group: Sequence[RunRow], column: str, confidence: float
) -> tuple[statistics.Bounds | None, str | None]:
    """The t interval of a cell's mean, and in words what it rests on.

    Where init seeds and data seeds are crossed, runs that share one are not independent: see
    `spread.seed_error`.
    """
    values = all_known(seed_values(group, column))
    if sides.over_units(values).means is None:
        interval = statistics.t_interval(list(values.values()), confidence)
        return interval, interval and f"Student t over seeds, {confidence:.4g}"
    error = spread.seed_error(list(values.values()), tuple(values))
    if error is None:
        return None, None
    average = statistics.mean(list(values.values()))
    half = statistics.t_quantile(confidence, error[1]) * error[0]
    method = (
        f"Student t over crossed init and data seeds ({error[1]:.3g} degrees of freedom), {confidence:.4g}"
    )
    return (average - half, average + half), method
