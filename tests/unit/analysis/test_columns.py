"""Every column of runs.csv and contrasts.csv, computed anew from the runs' own files.

Plain Python and SciPy, on small made-up experiments: nothing here calls seedbed.analysis but to make the
tables. A column without a computation of its own fails `test_every_column_is_computed_here`.
"""

import csv
import itertools
import json
import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from synthetic import Synthetic, make_experiment, make_generation

from seedbed.analysis.contrasts import CONTRAST_COLUMNS
from seedbed.analysis.table_rows import run_columns
from seedbed.core.files import write_rows
from seedbed.core.rows import Row

CONFIDENCE = 0.95
REPLICATES = 2000
LEAKED = ("test-3", "test-7", "test-8")
GENERATION_GROUP = 3  # questions on one text
COLLAPSED = "books/small/fairseq/random/lab.learning_rate=0.001/seed1"
DIVERGED = "films/small/transformers/random/lab.learning_rate=0.001/seed2"


# --- the experiments ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """The files of a run, as they lie there.

    Attributes:
        folder: dataset/model/framework/init/recipe/seed.
        record: run.json.
        predictions: rows of predictions.csv by split.
        metrics: rows of metrics.csv.
    """

    folder: str
    record: dict[str, Any]
    predictions: dict[str, list[dict[str, str]]]
    metrics: list[dict[str, str]]

    @property
    def clean(self) -> list[dict[str, str]]:
        """Test predictions of examples that did not leak."""
        return [row for row in self.predictions["test"] if row["example"] not in LEAKED]

    @property
    def trains(self) -> bool:
        """Whether its method trains anything."""
        return not self.folder.split("/")[4].startswith("none")


@dataclass(frozen=True)
class Made:
    """A made-up experiment, its tables and the files of its runs, both in the order of the grid."""

    experiment: Synthetic
    tables: dict[str, list[Row]]
    runs: list[Run]


def read(path: Path) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def load(experiment: Synthetic) -> Made:
    experiment.plan.config["statistics"]["replicates"] = REPLICATES
    tables = experiment.aggregate()
    runs = []
    for folder in experiment.folders:
        rows = read(folder / "predictions.csv")
        predictions = {
            split: [row for row in rows if row["split"] == split] for split in ("validation", "test")
        }
        record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        runs.append(Run("/".join(folder.parts[-6:]), record, predictions, read(folder / "metrics.csv")))
    return Made(experiment, tables, runs)


@pytest.fixture(scope="module")
def classes(tmp_path_factory) -> Made:
    """Two datasets, models, frameworks, inits; two recipes; three seeds; a collapsed and a diverged run."""
    return load(
        make_experiment(
            tmp_path_factory.mktemp("classes"),
            datasets=("books", "films"), models=("small", "large"), frameworks=["fairseq", "transformers"],
            recipe={"sweep": {"learning_rate": [1e-4, 1e-3]}}, sizes={"validation": 70, "test": 40},
            accuracy=lambda run: (0.85 if run.init == "pretrained" else 0.55) + 0.1 * (run.model == "large"),
            noise=0.02, leaked=LEAKED, collapsed=[COLLAPSED], diverged=[DIVERGED], seeds=[0, 1, 2],
        )
    )  # fmt: skip


@pytest.fixture(scope="module")
def answers(tmp_path_factory) -> Made:
    """Three methods on questions of which three are about one text; two recipes of full."""
    experiment = make_generation(
        tmp_path_factory.mktemp("answers"),
        methods=("none", "lora", "full"), sweeps={"full": {"learning_rate": [1e-4, 1e-3]}},
        sizes={"validation": 24, "test": 36}, leaked=LEAKED, seeds=[0, 1, 2],
        unstable=["questions/tiny/transformers/pretrained/full.learning_rate=0.001/seed1"],
    )  # fmt: skip
    for folder in experiment.folders:
        rows = [{**row, "group": group_of(row)} for row in read(folder / "predictions.csv")]
        write_rows(folder / "predictions.csv", list(rows[0]), rows)
    return load(experiment)


def group_of(row: Mapping[str, str]) -> str:
    """The text that a question is about."""
    return str(int(row["example"].partition("-")[2]) // GENERATION_GROUP)


# --- runs.csv -----------------------------------------------------------------------------------------------

RunColumn = Callable[[Run], Any]


def is_right(row: Mapping[str, str]) -> bool:
    """Whether a class is predicted, and the right one; logits that are not finite predict none."""
    known = all(value != "" for name, value in row.items() if name.startswith("probability_"))
    return known and row["label"] == row["prediction"]


def share(rows: Sequence[Mapping[str, str]]) -> float:
    return sum(map(is_right, rows)) / len(rows)


def loss(rows: Sequence[Mapping[str, str]]) -> float | None:
    """Mean loss in nats: of classes over examples, of answers over tokens; None where one is not finite."""
    if "answer" in rows[0]:
        if any(row["loss"] == "" for row in rows):
            return None
        return per_token(rows, "loss")
    told = [row[f"probability_{row['label']}"] for row in rows]
    return None if "" in told else statistics.mean(-math.log(float(value)) for value in told)


def per_token(rows: Sequence[Mapping[str, str]], name: str) -> float:
    tokens = [int(row["tokens"]) for row in rows]
    values = [float(row[name]) * count for row, count in zip(rows, tokens, strict=True)]
    return sum(values) / sum(tokens)


def mean_of(rows: Sequence[Mapping[str, str]], name: str) -> float:
    return statistics.mean(float(row[name]) for row in rows)


def perplexity(rows: Sequence[Mapping[str, str]]) -> float | None:
    found = loss(rows)
    return None if found is None else math.exp(found)


METRIC: dict[str, Callable[[Sequence[Mapping[str, str]]], float | None]] = {
    "accuracy": share,
    "loss": loss,
    "perplexity": perplexity,
    "token_accuracy": lambda rows: per_token(rows, "token_accuracy"),
    "exact_match": lambda rows: mean_of(rows, "exact_match"),
    "f1": lambda rows: mean_of(rows, "f1"),
}


def majority(rows: Sequence[Mapping[str, str]]) -> float:
    return Counter(row["label"] for row in rows).most_common(1)[0][1] / len(rows)


def not_above_majority(rows: Sequence[Mapping[str, str]]) -> bool:
    """Whether the one-sided Wilson bound of the accuracy is not above the largest class."""
    right = round(share(rows) * len(rows))
    both_sides = stats.binomtest(right, len(rows)).proportion_ci(2 * CONFIDENCE - 1, method="wilson")
    return not both_sides.low > majority(rows)


def calibration_error(rows: Sequence[Mapping[str, str]]) -> float | None:
    """The mean |accuracy - confidence| of ten bins that hold their upper edges, weighted by examples."""
    bins = calibration_bins(rows)
    gaps = [abs(sum(right for _, right in held) - sum(sure for sure, _ in held)) for held in bins]
    return sum(gaps) / len(rows) if bins else None


def calibration_bins(rows: Sequence[Mapping[str, str]]) -> list[list[tuple[float, bool]]]:
    """Confidence of each prediction and whether it is right, by bin; none where a probability is missing."""
    names = [name for name in rows[0] if name.startswith("probability_")]
    if any(row[name] == "" for row in rows for name in names):
        return []
    bins: dict[int, list[tuple[float, bool]]] = {}
    for row in rows:
        sure = max(float(row[name]) for name in names)
        bins.setdefault(math.ceil(sure * 10) - 1, []).append((sure, is_right(row)))
    return list(bins.values())


def calibration_error_of_chance(rows: Sequence[Mapping[str, str]]) -> float | None:
    """The same on average if each prediction were right with the probability that it claims."""
    bins = calibration_bins(rows)
    gaps = 0.0
    for held in bins:
        ways = np.ones(1)  # of so many right ones
        for sure, _ in held:
            ways = np.append(ways * (1 - sure), 0) + np.append(0, ways * sure)
        gaps += abs(np.arange(len(ways)) - sum(sure for sure, _ in held)) @ ways
    return gaps / len(rows) if bins else None


def all_same(rows: Sequence[Mapping[str, str]]) -> bool:
    return len({row.get("answer", row.get("prediction")) for row in rows}) == 1


def collapsed(run: Run) -> bool:
    splits = run.predictions.values()
    return run.record["diverged"] or any(loss(rows) is None or all_same(rows) for rows in splits)


def train_losses(run: Run) -> list[float | None]:
    rows = [row for row in run.metrics if (row["split"], row["metric"]) == ("train", "loss")]
    values = [float(row["value"]) for row in sorted(rows, key=lambda row: int(row["step"]))]
    return [value if math.isfinite(value) else None for value in values]


def unstable(run: Run) -> bool:
    """Diverged, or a training loss that rose by more than 5% and by more than 0.05 nats."""
    losses = train_losses(run)
    if run.record["diverged"] or None in losses:
        return True
    return any(
        after - before > 0.05 and after > 1.05 * before for before, after in itertools.pairwise(losses)
    )


def untrained_loss(run: Run) -> float:
    (found,) = [
        row["value"]
        for row in run.metrics
        if (row["step"], row["split"], row["metric"]) == ("0", "validation", "loss")
    ]
    return float(found)


def seeds_of(run: Run) -> tuple[int, int]:
    """(init seed, data seed), from the name of the run's folder."""
    numbers = [int(number) for number in run.folder.rpartition("/seed")[2].split("-")]
    return numbers[0], numbers[-1]


def part_of_folder(place: int) -> RunColumn:
    return lambda run: run.folder.split("/")[place]


def told(*keys: str) -> RunColumn:
    """What run.json says."""

    def find(run: Run) -> Any:
        value: Any = run.record
        for key in keys:
            value = value[key]
        return value

    return find


def on(split: str, metric: Callable[[Sequence[Mapping[str, str]]], Any]) -> RunColumn:
    return lambda run: metric(run.clean if split == "clean" else run.predictions[split])


PLACES = ("dataset", "model", "framework", "init", "recipe")
RUN_COLUMNS: dict[str, RunColumn] = {
    **{name: part_of_folder(place) for place, name in enumerate(PLACES)},
    "recipe_family": lambda run: run.folder.split("/")[4].partition(".")[0],
    "method": lambda run: run.record["settings"]["method"],
    "init_seed": lambda run: seeds_of(run)[0],
    "data_seed": lambda run: seeds_of(run)[1],
    "selected_step": told("selected", "step"),
    **{
        f"{split}_{name}": on(split, metric)
        for split in ("validation", "test")
        for name, metric in METRIC.items()
    },
    **{f"test_{name}_without_leaks": on("clean", metric) for name, metric in METRIC.items()},
    "test_examples": on("test", len),
    "test_examples_without_leaks": on("clean", len),
    "test_groups": on("test", lambda rows: len({row["group"] for row in rows})),
    "test_groups_without_leaks": on("clean", lambda rows: len({row["group"] for row in rows})),
    "test_majority_share": on("test", majority),
    "test_majority_share_without_leaks": on("clean", majority),
    "validation_majority_share": on("validation", majority),
    "test_ece": on("test", calibration_error),
    "test_ece_without_leaks": on("clean", calibration_error),
    "test_ece_of_chance": on("test", calibration_error_of_chance),
    "test_ece_of_chance_without_leaks": on("clean", calibration_error_of_chance),
    "leaked_test_examples": lambda run: len(LEAKED),
    "collapsed": collapsed,
    "validation_all_same": on("validation", all_same),
    "test_all_same": on("test", all_same),
    "diverged": told("diverged"),
    "not_above_majority": on("test", not_above_majority),
    "not_above_majority_without_leaks": on("clean", not_above_majority),
    "unstable": unstable,
    "first_train_loss": lambda run: (train_losses(run) or [None])[0],
    "last_train_loss": lambda run: (train_losses(run) or [None])[-1],
    "untrained_validation_loss": untrained_loss,
    "not_above_untrained": lambda run: (
        loss(run.predictions["validation"]) >= untrained_loss(run) if run.trains else None
    ),
    "trainable_parameters": told("parameters", "trainable"),
    "total_parameters": told("parameters", "total"),
    "updates": told("updates"),
    **{
        f"{part}_seconds": told("seconds", part)
        for part in ("start_up", "train", "evaluate", "write", "total")
    },
    "samples_per_second": told("samples_per_second"),
    "tokens_per_second": told("tokens_per_second"),
    "padding_share": told("padding_share"),
    "peak_memory_mib": told("peak_memory_mib"),
    "energy_joules": told("energy_joules"),
    "fused_seeds": lambda run: len(run.record.get("fused_with") or [None]),
    "device": told("device"),
    "learning_rate": told("settings", "learning_rate"),
}
# of classes alone, in a table of generation empty
OF_CLASSES = {
    name
    for name in RUN_COLUMNS
    if "majority" in name or name.startswith("test_ece")
}  # fmt: skip


@pytest.mark.parametrize("task", ["classes", "answers"])
def test_runs_are_what_their_files_say(request, task):
    made = request.getfixturevalue(task)
    rows = made.tables["runs"]
    assert len(rows) == len(made.runs) > 10
    assert {name for name in rows[0] if any(row[name] is not None for row in rows)} >= {
        "test_loss", "updates", "learning_rate",
    }  # fmt: skip
    for row, run in zip(rows, made.runs, strict=True):
        for name, value in row.items():
            if task == "answers" and name in OF_CLASSES:
                assert value is None, (run.folder, name)
                continue
            expected = RUN_COLUMNS[name](run)
            if isinstance(expected, float):
                expected = pytest.approx(expected, rel=1e-6, abs=1e-9)
            assert value == expected, (run.folder, name)


# --- contrasts.csv ------------------------------------------------------------------------------------------

DIRECTIONS = {"accuracy": 1, "loss": -1, "token_accuracy": 1, "exact_match": 1, "f1": 1}
MARGINS = {"pretrained": 0.01, "random": 0.02}


@dataclass(frozen=True)
class Cell:
    """The runs of one dataset, model, framework, init and recipe, one a seed.

    Attributes:
        name: DATASET/MODEL/FRAMEWORK/INIT/RECIPE.
        runs: by (init seed, data seed), in order.
    """

    name: str
    runs: dict[tuple[int, int], Run]

    def scores(self, metric: str, test_set: str, split: str = "test") -> np.ndarray:
        """(seeds, examples or texts): what the metric is the mean of over examples or texts."""
        rows = [
            run.clean if (split, test_set) == ("test", "without leaks") else run.predictions[split]
            for run in self.runs.values()
        ]
        return np.array([scores_of(of_run, metric) for of_run in rows])

    def values(self, metric: str, test_set: str) -> dict[tuple[int, int], float]:
        """The metric of each run."""
        return {
            seed: METRIC[metric](run.clean if test_set == "without leaks" else run.predictions["test"])
            for seed, run in self.runs.items()
        }


def scores_of(rows: Sequence[Mapping[str, str]], metric: str) -> list[float]:
    """The scores of one run: of classes a number an example; of answers, whose metrics are ratios, the ratio
    and what each text adds to it."""
    if "answer" not in rows[0]:
        if metric == "accuracy":
            return [float(is_right(row)) for row in rows]
        return [-math.log(float(row[f"probability_{row['label']}"])) for row in rows]
    ratio = METRIC[metric](rows)
    sums, weights = Counter(), Counter()
    for row in rows:
        weight = int(row["tokens"]) if metric in ("loss", "token_accuracy") else 1
        sums[row["group"]] += float(row[metric]) * weight
        weights[row["group"]] += weight
    mean = sum(weights.values()) / len(weights)
    return [ratio + (sums[group] - ratio * weights[group]) / mean for group in weights]


@dataclass(frozen=True)
class Side:
    """One side of a difference: a cell, or the gain of the first over the second."""

    cells: tuple[Cell, ...]

    def scores(self, metric: str, test_set: str) -> np.ndarray:
        first, *rest = (cell.scores(metric, test_set) for cell in self.cells)
        return first - rest[0] if rest else first

    def values(self, metric: str, test_set: str) -> list[float]:
        first, *rest = (cell.values(metric, test_set) for cell in self.cells)
        return [value - rest[0][seed] if rest else value for seed, value in first.items()]

    @property
    def runs(self) -> list[Run]:
        return [run for cell in self.cells for run in cell.runs.values()]

    @property
    def sound(self) -> list[int]:
        """Which seeds, by their number, are left without collapsed runs."""
        kept = []
        for cell in self.cells:
            fell = [collapsed(run) for run in cell.runs.values()]
            kept.append({seed for seed, is_down in enumerate(fell) if all(fell) or not is_down})
        return sorted(set.intersection(*kept))


class Difference:
    """A row of contrasts.csv from the runs' files. Each method is named after the column that it computes."""

    def __init__(self, row: Row, made: Made, cells: Mapping[str, Cell]):
        self.row = {name: None if value == "" else value for name, value in row.items()}
        self.made, self.all_cells = made, cells
        self.metric, self.test_set = row["metric"], row["test_set"]
        self.a, self.b = self.side("a"), self.side("b")
        self.scores = [side.scores(self.metric, self.test_set) for side in (self.a, self.b)]
        self.values = [side.values(self.metric, self.test_set) for side in (self.a, self.b)]
        self.shared_examples = row["dataset"] == row["dataset_b"]
        self.parts = variances(*self.scores, paired=self.paired(), shared_examples=self.shared_examples)

    def side(self, which: str) -> Side:
        ending = "" if which == "a" else "_b"
        framework, init = self.row[which].split("/")
        inits = ["pretrained", "random"] if init == "gain" else [init]
        recipes = self.row[f"recipe_{which}"].split("/")
        recipes = recipes * len(inits) if len(recipes) < len(inits) else recipes
        place = f"{self.row[f'dataset{ending}']}/{self.row[f'model{ending}']}/{framework}"
        return Side(tuple(self.all_cells[f"{place}/{i}/{r}"] for i, r in zip(inits, recipes, strict=True)))

    # --- the difference and its parts ---

    def paired(self) -> bool:
        """Runs of one seed on one dataset are pairs."""
        return self.shared_examples

    def n_a(self) -> int:
        return len(self.values[0])

    def n_b(self) -> int:
        return len(self.values[1])

    def delta(self) -> float:
        return statistics.mean(self.values[0]) - statistics.mean(self.values[1])

    def error_reduction(self) -> float | None:
        """Errors that a makes less, as a share of those of b."""
        wrong = [1 - statistics.mean(values) for values in self.values]
        if self.metric in ("loss", "f1") or len(self.a.cells) > 1 or wrong[1] < 1e-9:
            return None
        return (wrong[1] - wrong[0]) / wrong[1]

    def standard_error(self) -> float | None:
        return self.parts and math.sqrt(self.parts.whole + self.of_choice())

    def of_choice(self) -> float:
        """What the choice of recipes adds to the variance: read back from the row, as it is drawn there."""
        if self.row["given_low"] is None:
            return 0.0
        added = self.row["standard_error"] ** 2 - self.parts.whole
        assert added >= -1e-6 * self.parts.whole
        return max(added, 0.0)

    def se_seeds(self) -> float | None:
        return self.parts and math.sqrt(self.parts.of_seeds)

    def se_interaction(self) -> float | None:
        return self.parts and math.sqrt(self.parts.interaction)

    def se_examples(self) -> float | None:
        return self.parts and math.sqrt(self.parts.examples)

    # --- over seeds alone ---

    def t_interval(self) -> tuple[float | None, float | None]:
        a, b = self.values
        if self.paired():
            gaps = [x - y for x, y in zip(a, b, strict=True)]
            if max(gaps) - min(gaps) < 1e-12:
                return None, None
            found = stats.ttest_1samp(gaps, 0).confidence_interval(CONFIDENCE)
        else:
            if statistics.stdev(a) + statistics.stdev(b) < 1e-12:
                return None, None
            found = stats.ttest_ind(a, b, equal_var=False).confidence_interval(CONFIDENCE)
        return self.cut(found.low), self.cut(found.high)

    def t_low(self) -> float | None:
        return self.t_interval()[0]

    def t_high(self) -> float | None:
        return self.t_interval()[1]

    def cut(self, value: float) -> float:
        """At what a difference can be: of two fractions 1, of two gains 2; a loss has no bound."""
        most = math.inf if self.metric == "loss" else 2.0 if self.row["a"].endswith("/gain") else 1.0
        return min(max(value, -most), most)

    def seed_correlation(self) -> float | None:
        if not self.varies_in_pairs():
            return None
        return stats.pearsonr(*self.values).statistic

    def pairing_ratio(self) -> float | None:
        """Variance of the differences of pairs, relative to that of two independent groups."""
        if not self.varies_in_pairs():
            return None
        gaps = [x - y for x, y in zip(*self.values, strict=True)]
        return statistics.variance(gaps) / sum(map(statistics.variance, self.values))

    def varies_in_pairs(self) -> bool:
        return self.paired() and all(max(values) - min(values) > 1e-12 for values in self.values)

    def p_exact(self) -> float:
        """Exact: all flips of signs of pairs, or all ways to deal the values into two groups."""
        a, b = self.values
        if self.paired():
            gaps = [x - y for x, y in zip(a, b, strict=True)]
            ways = [
                sum(sign * gap for sign, gap in zip(signs, gaps, strict=True))
                for signs in itertools.product((1, -1), repeat=len(gaps))
            ]
            observed = sum(gaps)
        else:
            pooled = [*a, *b]
            ways = [
                sum(chosen) / len(a) - (sum(pooled) - sum(chosen)) / len(b)
                for chosen in itertools.combinations(pooled, len(a))
            ]
            observed = self.delta()
        return sum(abs(way) >= abs(observed) - 1e-9 for way in ways) / len(ways)

    # --- equivalence ---

    def margin(self) -> float | None:
        return MARGINS[self.row["a"].split("/")[1]] if self.row["family"] == "framework" else None

    def bare_equivalence(self) -> str | None:
        """Whatever else bears on the verdict."""
        if self.row["p_equivalence"] is None:
            return None
        if self.row["p_equivalence_holm"] < 1 - CONFIDENCE:
            return "equivalent"
        return "different" if self.is_decided() else "inconclusive"

    def equivalence(self) -> str | None:
        bare = self.bare_equivalence()
        return "inconclusive" if bare and self.no_verdict() else bare

    # --- verdicts ---

    def direction(self) -> str | None:
        """Where the primary interval lies, if the adjusted p allows a word."""
        if self.parts is None:
            return None
        if self.row["p_holm"] >= 1 - CONFIDENCE:
            return "unclear"
        assert not self.row["ci_low"] <= 0 <= self.row["ci_high"]
        return "higher" if self.row["ci_low"] > 0 else "lower"

    def is_decided(self) -> bool:
        return self.direction() in ("higher", "lower")

    def no_verdict(self) -> str | None:
        """Three seeds a side are no few seeds, so that what is withheld is withheld for what runs learned."""
        trained = [run for run in (*self.a.runs, *self.b.runs) if run.trains]
        if all(learned_nothing(run, self.test_set) for run in trained):
            same = all(all_same(run.predictions["test"]) and not run.record["diverged"] for run in trained)
            return "one class" if same else "nothing learned"
        hangs = self.is_decided() or self.bare_equivalence() in ("equivalent", "different")
        # of three seeds two are left, too few
        return "a collapse" if hangs and self.is_partly_collapsed() else None

    def is_partly_collapsed(self) -> bool:
        fallen = [[collapsed(run) for run in cell.runs.values()] for cell in (*self.a.cells, *self.b.cells)]
        return any(any(fell) and not all(fell) for fell in fallen)

    def sound(self) -> list[list[float]]:
        """The values of both sides without collapsed runs."""
        return [
            [values[seed] for seed in side.sound]
            for values, side in zip(self.values, (self.a, self.b), strict=True)
        ]

    def delta_without_collapsed(self) -> float | None:
        if not self.is_partly_collapsed():
            return None
        a, b = self.sound()
        return statistics.mean(a) - statistics.mean(b)

    # --- how the row was made ---

    def interval(self) -> str:
        return "no spread" if self.parts is None else "over seeds and examples"

    def test(self) -> str:
        return "sign-flip" if self.paired() else "permutation"

    def test_unit(self) -> str:
        return "seeds"

    def test_means(self) -> None:
        """No seeds are crossed here."""

    def is_of_another_choice(self) -> bool:
        """Whether a gain's recipes, tied on validation, are not those that each init chooses for itself: such
        a row has no interval."""
        return self.row["method"].startswith("run.json and predictions.csv choose different recipes")

    def method(self) -> str:
        """All of it in words."""
        best = self.row["selection"] == "best"
        test, choice = f"; exact {self.test()} test over seeds", ""
        if self.parts is None:
            choice = "; recipes chosen on validation, a choice that interval and test do not carry"
            return f"no spread: no interval{test}{choice if best else ''}"
        seeds = "paired seeds" if self.paired() else "the seeds of each side"
        text = f"Multi-Bootstrap of {REPLICATES:,} replicates over {seeds} and test examples, "
        text += f"scaled to the two-way analysis of variance{test}"
        choice = "; recipes chosen on validation anew in every replicate, "
        choice += "a choice that t interval and exact test do not carry"
        return text + (choice if best else "")

    # --- how often and how surely one side is better ---

    def probability_of_improvement(self) -> float:
        sign = DIRECTIONS[self.metric]
        a, b = ([sign * value for value in values] for values in self.values)
        return statistics.mean((x > y) + 0.5 * (x == y) for x in a for y in b)


def learned_nothing(run: Run, test_set: str) -> bool:
    if "answer" in run.predictions["test"][0]:
        return loss(run.predictions["validation"]) >= untrained_loss(run)
    return not_above_majority(run.clean if test_set == "without leaks" else run.predictions["test"])


@dataclass(frozen=True)
class SeedPart:
    """What the seeds of one side, or of both together, add to the variance of a difference.

    Attributes:
        variance: of the means over examples, divided by the number of seeds.
        degrees: of freedom of the variance.
        interaction: of seeds and examples, which the variance holds, too.
    """

    variance: float
    degrees: float
    interaction: float


@dataclass(frozen=True)
class Parts:
    """Variances of a difference over seeds and over examples."""

    seeds: list[SeedPart]
    examples: float

    @property
    def interaction(self) -> float:
        return sum(part.interaction for part in self.seeds)

    @property
    def of_seeds(self) -> float:
        return sum(max(part.variance, part.interaction) for part in self.seeds)

    @property
    def whole(self) -> float:
        return self.of_seeds + self.examples

    def half_width(self, confidence: float, choice: float = 0.0) -> float:
        """Of the interval; `choice` is the variance that the choice of recipes adds."""
        z = stats.norm.ppf((1 + confidence) / 2)
        square = z**2 * (self.examples + self.interaction + choice)
        for part in self.seeds:
            t = stats.t.ppf((1 + confidence) / 2, part.degrees)
            own, half = part.variance - part.interaction / 2, part.interaction / 2
            square += max(0.0, t**2 * own - z**2 * half)
        return math.sqrt(square)


def variances(a: np.ndarray, b: np.ndarray, *, paired: bool, shared_examples: bool) -> Parts | None:
    """The random-effects analysis of tables (seeds, examples), by loops; None without any spread."""
    seeds = []
    for table in [a - b] if paired else [a, b]:
        n, m = table.shape
        over_seeds = statistics.variance(table.mean(axis=1)) / n
        square = 0.0
        for s, x in itertools.product(range(n), range(m)):
            square += (table[s, x] - table[s].mean() - table[:, x].mean() + table.mean()) ** 2
        seeds.append(SeedPart(over_seeds, n - 1, square / ((n - 1) * (m - 1)) / (n * m)))
    if len(a) == len(b) and len(seeds) == 2 and (total := sum(part.variance for part in seeds)):
        degrees = total**2 / sum(part.variance**2 / part.degrees for part in seeds)
        seeds = [SeedPart(total, degrees, sum(part.interaction for part in seeds))]
    columns = [a.mean(axis=0) - b.mean(axis=0)] if shared_examples else [a.mean(axis=0), b.mean(axis=0)]
    examples = sum(statistics.variance(means) / len(means) for means in columns)
    examples -= sum(part.interaction for part in seeds)
    parts = Parts(seeds, max(examples, 0.0))
    return None if parts.whole < 1e-18 else parts


def cells_of(made: Made) -> dict[str, Cell]:
    found: dict[str, dict[tuple[int, int], Run]] = {}
    for run in made.runs:
        found.setdefault(run.folder.rpartition("/")[0], {})[seeds_of(run)] = run
    return {name: Cell(name, runs) for name, runs in found.items()}


def differences(made: Made) -> Iterator[Difference]:
    cells = cells_of(made)
    for row in made.tables["contrasts"]:
        yield Difference(row, made, cells)


COMPUTED = [name for name in vars(Difference) if name in CONTRAST_COLUMNS]


@pytest.mark.filterwarnings("ignore:Precision loss")
@pytest.mark.parametrize("task", ["classes", "answers"])
def test_differences_are_what_the_predictions_say(request, task):
    made = request.getfixturevalue(task)
    seen, others = set(), 0
    for difference in differences(made):
        if difference.is_of_another_choice():
            others += 1
            continue
        for name in COMPUTED:
            expected = getattr(difference, name)()
            if isinstance(expected, float):
                # scores are single precision there
                expected = pytest.approx(expected, rel=2e-4, abs=2e-7)
            assert difference.row[name] == expected, (name, difference.row)
            seen |= {name} if expected is not None else set()
    assert others <= 4
    if task == "classes":
        # each had something to compute; means are those of crossed seeds, below
        assert seen == set(COMPUTED) - {"test_means"}


def test_crossed_seeds_are_tested_over_the_means_of_the_factor_with_fewer_levels(tmp_path):
    seeds = [{"init": init, "data": data} for init in (0, 1) for data in (5, 6, 7)]
    made = load(
        make_experiment(tmp_path, frameworks=["fairseq"], sizes={"validation": 20, "test": 40}, seeds=seeds)
    )
    (row,) = made.tables["contrasts"]
    assert (row["test"], row["test_unit"], row["test_means"]) == ("sign-flip", "init seeds", 2)
    (difference,) = differences(made)
    gaps = [x - y for x, y in zip(*difference.values, strict=True)]
    means = [statistics.mean(gaps[:3]), statistics.mean(gaps[3:])]  # in the order of init seeds
    ways = [abs(first * means[0] + second * means[1]) for first in (1, -1) for second in (1, -1)]
    assert row["p_exact"] == sum(way >= abs(sum(means)) - 1e-9 for way in ways) / 4


# --- which differences there are ----------------------------------------------------------------------------

METHOD_PAIRS = [("lora", "full"), ("full", "none"), ("lora", "none")]
NAMES = (
    "family", "dataset", "model", "dataset_b", "model_b", "metric", "test_set", "contrast", "a", "b",
    "recipe_a", "recipe_b", "selection",
)  # fmt: skip
RECIPES = ["lab.learning_rate=0.0001", "lab.learning_rate=0.001"]


def best_recipe(
    cells: Mapping[str, Cell], place: str, recipes: Sequence[str], metrics: tuple[str, str]
) -> str:
    """The recipe with the best mean validation metric, of equals the one with the lowest loss."""

    def rank(recipe: str) -> tuple[float, ...]:
        runs = cells[f"{place}/{recipe}"].runs.values()
        measured = [[METRIC[name](run.predictions["validation"]) for run in runs] for name in metrics]
        return tuple(
            -math.inf if None in values else DIRECTIONS[name] * round(statistics.mean(values), 9)
            for name, values in zip(metrics, measured, strict=True)
        )

    return max(recipes, key=rank)


def expected_of_classes(cells: Mapping[str, Cell]) -> Iterator[tuple[str, ...]]:
    """The names of all differences of the experiment of classes."""
    axes = (("books", "films"), ("small", "large"), ("fairseq", "transformers"), ("pretrained", "random"))
    datasets, models, frameworks, inits = axes
    for test_set, selected in itertools.product(("all", "without leaks"), [*RECIPES, None]):

        def name(*place: str, selected: str | None = selected) -> str:
            return selected or best_recipe(cells, "/".join(place), RECIPES, ("accuracy", "loss"))

        end = "equal" if selected else "best"
        for d, m, f in itertools.product(datasets, models, frameworks):
            recipes = [name(d, m, f, init) for init in inits]
            sides = (f"{f}/pretrained", f"{f}/random")
            yield "init", d, m, d, m, "accuracy", test_set, "pretrained - random", *sides, *recipes, end
        for d, m, i in itertools.product(datasets, models, inits):
            recipes = [name(d, m, f, i) for f in frameworks]
            sides = (f"fairseq/{i}", f"transformers/{i}")
            yield (
                "framework",
                d,
                m,
                d,
                m,
                "accuracy",
                test_set,
                "fairseq - transformers",
                *sides,
                *recipes,
                end,
            )
        for d, f, i in itertools.product(datasets, frameworks, inits):
            recipes = [name(d, m, f, i) for m in models]
            sides = (f"{f}/{i}", f"{f}/{i}")
            yield (
                "model",
                d,
                "small",
                d,
                "large",
                "accuracy",
                test_set,
                "small - large",
                *sides,
                *recipes,
                end,
            )
        for m, f in itertools.product(models, frameworks):
            recipes = ["/".join(dict.fromkeys(name(d, m, f, i) for i in inits)) for d in datasets]
            sides, words = (f"{f}/gain", f"{f}/gain"), "gain on books - gain on films"
            yield "dataset", "books", m, "films", m, "accuracy", test_set, words, *sides, *recipes, end
        for d, m, f in itertools.product(datasets, models, frameworks) if selected is None else ():
            chosen = "/".join(dict.fromkeys(name(d, m, f, i) for i in inits))
            sides, words = (f"{f}/gain", f"{f}/gain"), "gain at own best - gain at reference"
            yield "recipe", d, m, d, m, "accuracy", test_set, words, *sides, chosen, RECIPES[0], end


def expected_of_answers(cells: Mapping[str, Cell]) -> Iterator[tuple[str, ...]]:
    """The same of answers: equal recipes agree in the learning rate, so that full has none like lora's."""
    place = "questions/tiny/transformers/pretrained"
    full = [f"full.learning_rate={rate}" for rate in ("0.0001", "0.001")]
    best = best_recipe(cells, place, full, ("loss", "token_accuracy"))
    both = ("transformers/pretrained", "transformers/pretrained")
    pairs = [("full", "none", recipe, "none", "equal") for recipe in full]
    pairs += [("lora", "none", "lora", "none", "equal")]
    pairs += [("lora", "full", "lora", best, "best"), ("full", "none", best, "none", "best")]
    metrics = ("loss", "token_accuracy", "exact_match", "f1")
    for test_set, metric, (a, b, *rest) in itertools.product(("all", "without leaks"), metrics, pairs):
        where = ("questions", "tiny", "questions", "tiny")
        yield "method", *where, metric, test_set, f"{a} - {b}", *both, *rest


@pytest.mark.parametrize(
    ("task", "expected"), [("classes", expected_of_classes), ("answers", expected_of_answers)]
)
def test_every_difference_is_there_once(request, task, expected):
    made = request.getfixturevalue(task)
    found = [tuple(row[name] for name in NAMES) for row in made.tables["contrasts"]]
    assert sorted(found) == sorted(expected(cells_of(made)))


# --- p-values of a family -----------------------------------------------------------------------------------


def holm(p_values: Mapping[Any, float]) -> dict[Any, float]:
    """Holm's adjustment (1979): the k-th smallest of n times n - k + 1, not below the one before."""
    adjusted, largest = {}, 0.0
    for place, (name, value) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        largest = max(largest, min(1.0, value * (len(p_values) - place)))
        adjusted[name] = largest
    return adjusted


@pytest.mark.parametrize("task", ["classes", "answers"])
@pytest.mark.parametrize("column", ["p_value", "p_equivalence"])
def test_p_values_are_adjusted_within_a_family(request, task, column):
    """Of the same cells an equal recipe and the own best, which carries the choice, are two tests."""
    made = request.getfixturevalue(task)
    families: dict[tuple[str, ...], list[Row]] = {}
    for row in made.tables["contrasts"]:
        families.setdefault((row["family"], row["metric"], row["test_set"]), []).append(row)
    for rows in families.values():
        tests = {tuple(row[name] for name in NAMES): row[column] for row in rows if row[column] is not None}
        adjusted = holm(tests)
        for row in rows:
            expected = adjusted.get(tuple(row[name] for name in NAMES))
            found = row[f"{'p' if column == 'p_value' else column}_holm"]
            assert found == (None if expected is None else pytest.approx(expected)), row


# --- what is resampled --------------------------------------------------------------------------------------


def counts(size: int, rng: np.random.Generator) -> np.ndarray:
    """How often each of `size` things is drawn, a row for each replicate."""
    return rng.multinomial(size, np.full(size, 1 / size), REPLICATES).astype(float)


class Resampling:
    """Replicates of a difference: seeds, test examples and validation examples drawn anew."""

    def __init__(self, difference: Difference, seeds: Sequence[Sequence[int]] | None = None):
        self.difference, rng = difference, np.random.default_rng(5)
        of_a, of_b = difference.scores
        self.kept = seeds or [range(len(of_a)), range(len(of_b))]
        self.paired = difference.paired() and list(self.kept[0]) == list(self.kept[1])
        self.seeds = [counts(len(kept), rng) / len(kept) for kept in self.kept]
        self.examples = [counts(of.shape[1], rng) / of.shape[1] for of in (of_a, of_b)]
        if self.paired:
            self.seeds[1] = self.seeds[0]
        if difference.shared_examples:
            self.examples[1] = self.examples[0]

    def of_side(self, which: int, scores: np.ndarray) -> np.ndarray:
        """Mean in each replicate of scores (seeds, examples) of a side."""
        kept = scores[list(self.kept[which])]
        return np.einsum("rs,sx,rx->r", self.seeds[which], kept, self.examples[which])

    def fixed(self) -> np.ndarray:
        """Replicates of the difference for the recipes as they were chosen."""
        a, b = self.difference.scores
        return self.of_side(0, a) - self.of_side(1, b)

    def interval(self) -> tuple[float, float]:
        """The percentile interval."""
        return tuple(np.quantile(self.fixed(), [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]))

    def scaled(self, parts: Parts, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """The primary interval: the replicates' deviations with the half width of the variances."""
        replicates, tail = self.fixed(), (1 + confidence) / 2
        scale = parts.half_width(confidence) / stats.norm.ppf(tail) / replicates.std()
        low, high = self.delta() + scale * (np.quantile(replicates, [1 - tail, tail]) - replicates.mean())
        return self.difference.cut(min(low, self.delta())), self.difference.cut(max(high, self.delta()))

    @property
    def step(self) -> float:
        """A mean over seeds and examples that are right or wrong moves in steps."""
        return 1 / self.difference.scores[0].size if self.difference.metric == "accuracy" else 0.0

    def is_near(self, found: Sequence[float], expected: Sequence[float]) -> bool:
        """Whether the bounds of two intervals differ by no more than two sets of random numbers make."""
        width = expected[1] - expected[0]
        return found == pytest.approx(expected, abs=0.08 * width + self.step)

    def delta(self) -> float:
        a, b = (of[list(kept)] for of, kept in zip(self.difference.scores, self.kept, strict=True))
        return a.mean() - b.mean()


def sample(made: Made, **names: str) -> list[Difference]:
    """Differences of each family and metric, the first few; of equal recipes unless told otherwise."""
    chosen: dict[tuple[str, ...], list[Difference]] = {}
    names = {"selection": "equal"} | names
    for difference in differences(made):
        row = difference.row
        if all(row[name] == value for name, value in names.items()) and row["ci_low"] is not None:
            chosen.setdefault((row["family"], row["metric"], row["test_set"]), []).append(difference)
    return [difference for group in chosen.values() for difference in group[:4]]


@pytest.mark.parametrize("task", ["classes", "answers"])
def test_intervals_are_those_of_replicates(request, task):
    """To what other random numbers give: quantiles of 2,000 replicates differ by under 0.3 SD."""
    made = request.getfixturevalue(task)
    found = sample(made)
    assert len(found) >= 12
    for difference in found:
        row, own = difference.row, Resampling(difference)
        within = 0.3 * own.fixed().std() + 2 * own.step
        assert (row["bootstrap_low"], row["bootstrap_high"]) == pytest.approx(own.interval(), abs=within)
        assert own.is_near((row["ci_low"], row["ci_high"]), own.scaled(difference.parts))


@pytest.mark.parametrize("task", ["classes", "answers"])
def test_p_is_the_level_whose_interval_ends_at_zero(request, task):
    made = request.getfixturevalue(task)
    checked = 0
    for difference in sample(made):
        row, own = difference.row, Resampling(difference)
        if 0.01 < row["p_value"] < 0.98:
            low, high = own.scaled(difference.parts, 1 - row["p_value"])
            assert min(abs(low), abs(high)) < 0.12 * (high - low), row
            checked += 1
        elif row["p_value"] <= 0.01:
            low, high = own.scaled(difference.parts, 0.98)
            assert not low <= 0 <= high
    assert checked >= 8
    for row in made.tables["contrasts"]:
        if row["ci_low"] is not None:
            assert (row["p_value"] < 1 - CONFIDENCE) == (not row["ci_low"] <= 0 <= row["ci_high"]), row


def test_equivalence_is_tested_by_the_rule_of_the_interval(classes):
    found = sample(classes, family="framework")
    assert len(found) >= 6
    for difference in found:
        row, own = difference.row, Resampling(difference)
        narrower = own.scaled(difference.parts, 2 * CONFIDENCE - 1)
        assert own.is_near((row["equivalence_low"], row["equivalence_high"]), narrower)
        if abs(row["delta"]) >= row["margin"]:
            assert row["p_equivalence"] == 1
        elif row["p_equivalence"] > 0.01:
            low, high = own.scaled(difference.parts, 1 - 2 * row["p_equivalence"])
            within = 0.15 * (high - low) + own.step
            assert max(-low, high) == pytest.approx(row["margin"], abs=within)


@pytest.mark.parametrize("task", ["classes", "answers"])
def test_the_choice_of_recipes_is_in_the_interval_of_own_bests(request, task):
    """With the recipes given the interval is that of equal recipes; the choice adds to its width."""
    made = request.getfixturevalue(task)
    found = sample(made, selection="best")
    assert len(found) >= 4
    for difference in found:
        row, own = difference.row, Resampling(difference)
        assert own.is_near((row["given_low"], row["given_high"]), own.scaled(difference.parts))
        width = 2 * difference.parts.half_width(CONFIDENCE, difference.of_choice())
        if width < 1:  # else it may be cut
            assert row["ci_high"] - row["ci_low"] == pytest.approx(width, rel=0.2)
    for row in made.tables["contrasts"]:
        if row["selection"] == "equal":
            assert row["given_low"] is row["given_high"] is None


def test_intervals_without_collapsed_runs_are_those_of_the_runs_that_are_left(classes):
    checked = 0
    for difference in differences(classes):
        row = difference.row
        found = (row["ci_low_without_collapsed"], row["ci_high_without_collapsed"])
        if not difference.is_partly_collapsed():
            assert found == (None, None)
            continue
        own = Resampling(difference, [difference.a.sound, difference.b.sound])
        a, b = (of[list(kept)] for of, kept in zip(difference.scores, own.kept, strict=True))
        parts = variances(a, b, paired=own.paired, shared_examples=difference.shared_examples)
        assert own.is_near(found, own.scaled(parts)), row
        checked += 1
    assert checked >= 8


def violation(a: Sequence[float], b: Sequence[float]) -> float | None:
    """The share of the squared distance of two quantile functions where that of a is below that of b."""
    gaps = [x - y for x, y in zip(np.repeat(np.sort(a), len(b)), np.repeat(np.sort(b), len(a)), strict=True)]
    distance = sum(gap**2 for gap in gaps)
    return sum(gap**2 for gap in gaps if gap < 0) / distance if distance > 0 else None


@pytest.mark.parametrize("task", ["classes", "answers"])
def test_the_bound_of_almost_stochastic_order(request, task):
    made = request.getfixturevalue(task)
    families = Counter((row["family"], row["metric"], row["test_set"]) for row in made.tables["contrasts"])
    rng = np.random.default_rng(6)
    for difference in sample(made, test_set="all"):
        row, sign = difference.row, DIRECTIONS[difference.metric]
        a, b = (sign * np.array(values) for values in difference.values)
        observed = violation(a, b)
        if observed is None:
            assert row["aso_eps_min"] is None
            continue
        drawn = (violation(rng.choice(a, len(a)), rng.choice(b, len(b))) for _ in range(REPLICATES))
        sigma = statistics.stdev(0.5 if ratio is None else ratio for ratio in drawn)
        tests = families[row["family"], row["metric"], row["test_set"]]
        bound = observed + stats.norm.ppf(1 - (1 - CONFIDENCE) / tests) * sigma
        assert row["aso_eps_min"] == pytest.approx(min(max(bound, 0.0), 1.0), abs=0.08), row


# --- no column without a test -------------------------------------------------------------------------------

ELSEWHERE = {
    *NAMES, "p_value", "p_holm", "p_equivalence", "p_equivalence_holm", "bootstrap_low", "bootstrap_high",
    "ci_low", "ci_high", "given_low", "given_high", "equivalence_low", "equivalence_high",
    "ci_low_without_collapsed", "ci_high_without_collapsed", "aso_eps_min",
}  # fmt: skip


def test_every_column_is_computed_here(classes, answers):
    for made in (classes, answers):
        assert set(run_columns(made.experiment.plan.reporting())) <= RUN_COLUMNS.keys()
    assert set(CONTRAST_COLUMNS) == {*COMPUTED, *ELSEWHERE}
