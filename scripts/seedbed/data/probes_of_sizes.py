"""Linear probes of the checkpoint on as many training texts as the runs of each size."""

from collections.abc import Sequence
from pathlib import Path

from seedbed.core.states import KINDS
from seedbed.data import states as states_file
from seedbed.data.baselines_of_sizes import Candidate, Sizes, Subset, write_baselines
from seedbed.data.probes import models_of

COLUMNS = ("train_size", "data_seed", "states", "setting", "selected", "left_out")


def write_probes_of_sizes(probes: str | Path, predictions: str | Path, path: Path, of: Sizes) -> None:
    """Train the probes of all sizes and data seeds, and of all training texts, and write two tables.

    The main metric on validation selects both the kind of states and C; of equals, the first token's states
    go before the mean over tokens, then the smaller C.

    Args:
        probes: the table of probes, with COLUMNS: `states` is the kind, `setting` is C, and `selected` its
            value.
        predictions: see `write_baselines`.
        path: the file of states (see `core.states`).
        of: what the probes are trained and evaluated on; the task predicts classes.

    Raises:
        SeedbedError: the file is of other texts.
    """
    states = states_file.read(path, {split: len(rows) for split, rows in of.splits.items()})

    def candidates(subset: Subset) -> Sequence[Candidate]:
        labels = [example["label"] for example in subset.examples]
        return [
            Candidate({"states": kind, "selected": c}, model, states[kind])
            for kind in KINDS
            for c, model in models_of(states[kind]["train"][subset.places], labels).items()
        ]

    write_baselines(probes, predictions, of, COLUMNS, {"setting": "C"}, candidates)
