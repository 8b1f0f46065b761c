"""The baselines of each size of training (`data.baselines_of_sizes`), as the outputs of a cell's runs.

So `SideMaker` makes sides of them, and a baseline is compared with runs as these are with each other.
"""

import itertools
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from seedbed.analysis import statistics
from seedbed.analysis.baselines import Baseline
from seedbed.analysis.bootstrap import Seeds
from seedbed.analysis.label_sets import CellLabelSets
from seedbed.analysis.outputs import CellOutputs, first_difference, read_outputs, stack, with_names
from seedbed.analysis.predictions import Groups, split_rows, without_leaks
from seedbed.analysis.values import CellValues
from seedbed.core.errors import SeedbedError
from seedbed.core.known import known
from seedbed.core.rows import ANEW, TypedRow
from seedbed.core.run_folder import place_of_probes
from seedbed.core.splits import PREDICTED
from seedbed.core.tasks import task_of

# a baseline: number of training texts and data seed, which is None of all training texts
Key = tuple[int, int | None]


@dataclass(frozen=True)
class BaselineRow(TypedRow):
    """A baseline of a size and data seed: a row of bags.csv or probes.csv.

    See `data.bags_of_sizes.COLUMNS` and `data.probes_of_sizes.COLUMNS`.
    """

    OPTIONAL: ClassVar[Collection[str]] = ("features",)  # of bags alone

    train_size: int
    data_seed: int | None
    setting: str
    selected: float | None
    left_out: str | None
    features: str | None = None


@dataclass(frozen=True)
class BaselinesOfSizes:
    """The baselines of one kind of a dataset by size of training.

    Attributes:
        name: of the kind, such as bag of words.
        path: the table of baselines.
        features: what bags count, where these are not words.
        left_out: by size, why a baseline of it could not be trained; such a size has no outputs.
        cells: outputs of one baseline each, by split, and by size and data seed.
    """

    name: str
    path: Path
    features: str | None
    left_out: Mapping[int, str]
    cells: Mapping[str, Mapping[Key, CellOutputs]]

    @property
    def sizes(self) -> list[int]:
        """The sizes that have outputs, the smallest first; the last is that of all training texts."""
        return sorted({size for size, _ in self.cells["test"]} - set(self.left_out))

    def of_size(self, split: str, size: int) -> CellOutputs:
        """The outputs of a size with a row for each data seed; of all training texts one row.

        Args:
            split: validation or test.
            size: number of training texts, one of `sizes`.

        Raises:
            SeedbedError: there is no baseline of this size.
        """
        found = [cell for (of, _), cell in self.cells[split].items() if of == size]
        if size in self.left_out or not found:
            raise self._missing(f"{size} training texts")
        return stack(found)

    def outputs(self, split: str, size: int, seeds: Seeds) -> CellOutputs:
        """The outputs of a size with a row for each seed, that of the baseline of its data seed.

        All training texts are the same for every data seed, and so is their baseline. With the seeds of runs,
        the rows make a side that is paired with that of the runs.

        Args:
            split: validation or test.
            size: number of training texts, one of `sizes`.
            seeds: (init seed, data seed) of each row.

        Raises:
            SeedbedError: there is no baseline of this size and of a data seed.
        """
        cells = self.cells[split]
        keys: list[Key] = [(size, data if (size, data) in cells else None) for _, data in seeds]
        for key, (_, data) in zip(keys, seeds, strict=True):
            if size in self.left_out or key not in cells:
                raise self._missing(f"{size} training texts, data seed {data}")
        return stack([cells[key] for key in keys])

    def baseline(self, size: int, leaked: Collection[str] = ()) -> Baseline:
        """What the baselines of a size have on test: the mean over data seeds of each metric.

        Args:
            size: number of training texts.
            leaked: ids of the test examples that are also in train or validation.

        Raises:
            SeedbedError: there is no baseline of this size.
        """
        if size in self.left_out:
            return Baseline(left_out=self.left_out[size])
        test = self.of_size("test", size)
        kept = without_leaks(test.ids, leaked)
        tests = {"all": test} | ({} if kept is None else {"without leaks": test.keep(kept)})
        values = {
            (metric, test_set): statistics.mean([known(value) for value in cell.measured(metric)])
            for test_set, cell in tests.items()
            for metric in cell.task.reported
        }
        return Baseline(values, self.features)

    def baselines(self, leaked: Collection[str] = ()) -> dict[int, Baseline]:
        """`baseline` of each size, also of those without a baseline that was trained."""
        return {size: self.baseline(size, leaked) for size in (*self.sizes, *self.left_out)}

    def _missing(self, found: str) -> SeedbedError:
        return SeedbedError(
            f"there is no {self.name} of a size of training", where=str(self.path), found=found, hint=ANEW
        )


def read_bags(
    folder: str | Path, reporting: Mapping[str, Any], runs: Mapping[str, CellOutputs]
) -> BaselinesOfSizes:
    """The bags of words of a dataset, checked against its runs.

    Args:
        folder: by `run_folder.bags_folder`.
        reporting: `Plan.reporting()`.
        runs: by split, the outputs of a cell of this dataset: its examples, labels and clusters.

    Raises:
        SeedbedError: a file is cut or holds what it cannot, a bag has no predictions, or these are not of the
            examples and labels of the runs.
    """
    folder = Path(folder)
    return _read("bag of words", folder / "bags.csv", folder.name, reporting, runs)


def read_probes(
    folder: str | Path, reporting: Mapping[str, Any], runs: Mapping[str, CellOutputs]
) -> BaselinesOfSizes:
    """The linear probes of a dataset, a model and a longest input, checked as bags of words are.

    Args:
        folder: by `run_folder.probes_folder`.
        reporting, runs: see `read_bags`.

    Raises:
        SeedbedError: see `read_bags`.
    """
    dataset, *_ = place_of_probes(Path(folder))
    return _read("linear probe", Path(folder) / "probes.csv", dataset, reporting, runs)


def _read(
    name: str, path: Path, dataset: str, reporting: Mapping[str, Any], runs: Mapping[str, CellOutputs]
) -> BaselinesOfSizes:
    """The baselines of a table, with the predictions beside it."""
    what = f"table of baselines by size of training ({name})"
    predictions = path.with_name("predictions.csv")
    rows = BaselineRow.read(path, what)
    if not rows:
        raise SeedbedError(f"not a {what}", where=str(path), found="no row", hint=ANEW)
    trained = [(row.train_size, row.data_seed) for row in rows if row.left_out is None]
    read = _read_predictions(predictions, reporting, dataset, runs) if trained else {}
    cells = {
        split: {key: _cell_of(name, read, (*key, split), runs[split], predictions) for key in trained}
        for split in PREDICTED
    }
    left_out = {row.train_size: row.left_out for row in rows if row.left_out is not None}
    return BaselinesOfSizes(name, path, rows[0].features, left_out, cells)


def _read_predictions(
    path: Path, reporting: Mapping[str, Any], dataset: str, runs: Mapping[str, CellOutputs]
) -> dict[Any, CellOutputs]:
    """The outputs of each baseline and split."""
    block = reporting["datasets"][dataset]
    try:
        read = read_outputs(path, task_of(reporting), _document(block, runs["test"]), GROUPS)
    except SeedbedError as error:  # whose remedy is for a run
        raise SeedbedError(error.what, where=error.where, found=error.found, hint=ANEW) from None
    return {key: with_names(outputs, block) for key, outputs in read.items()}


def _document(dataset: Mapping[str, Any], run: CellOutputs) -> dict[str, Any]:
    """What run.json tells the reader of predictions: here the labels, and the constant answers of a run."""
    document: dict[str, Any] = {"label_names": dataset.get("classes", ())}
    if isinstance(run, CellValues):
        document["targets"] = {"mean": run.constant}
    if isinstance(run, CellLabelSets):
        document["constant_answers"] = {
            metric: list(itertools.compress(document["label_names"], answer))
            for metric, answer in run.constants.items()
        }
    return document


def _cell_of(
    name: str, read: Mapping[Any, CellOutputs], key: Any, runs: CellOutputs, path: Path
) -> CellOutputs:
    """The outputs of a baseline, with the examples of the runs."""
    if key not in read:
        raise SeedbedError(f"a {name} has no predictions", where=str(path), found=_told(key), hint=ANEW)
    difference = first_difference(runs, read[key])
    if difference is not None:
        raise SeedbedError(
            f"a {name} was not evaluated on the examples of the runs",
            where=str(path),
            found=f"{_told(key)}, {difference}",
            hint=f"the dataset changed since: {ANEW}",
        )
    return read[key].sharing(runs)


# --- groups of rows -----------------------------------------------------------------------------------------


def _rows(table: pa.Table, path: str | Path) -> dict[Any, np.ndarray]:
    """The rows by size, data seed and split."""
    sizes, seeds = (table[name].to_numpy() for name in ("train_size", "data_seed"))
    found: dict[Any, np.ndarray] = {}
    for split, rows in split_rows(table["split"], path).items():
        keys = np.column_stack([sizes[rows], np.nan_to_num(seeds[rows], nan=ALL)])
        distinct, places = np.unique(keys, axis=0, return_inverse=True)
        for place, (size, seed) in enumerate(distinct.tolist()):
            key = (int(size), None if seed == ALL else int(seed), split)
            found[key] = rows[places.reshape(-1) == place]
    return found


def _told(key: Any) -> str:
    size, seed, split = key
    of_seed = "" if seed is None else f", data seed {seed}"
    return f"{size} training texts{of_seed}, {split}"


def _told_example(key: Any) -> str:
    return f"a {key[2]} example of the baseline of {key[0]} training texts"


ALL = -1.0  # stands for the data seed of all training texts
# numbers, since an empty cell is then a missing one
GROUPS = Groups({"train_size": pa.float64(), "data_seed": pa.float64()}, _rows, _told_example)
