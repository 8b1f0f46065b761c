"""How long the runs that are left will take: for the workflow's terminal, and for `seedbed status`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from seedbed.core.recipes import train_size
from seedbed.running.durations import Durations, Kind, kind_of


class Cell(NamedTuple):
    """Runs that take the same time.

    Attributes:
        kind: what determines the time of an update.
        dataset: its name in the config.
        epochs: passes over the training texts.
        size: number of training texts; None: all of the dataset.
    """

    kind: Kind
    dataset: str
    epochs: int
    size: int | None = None


def cell_of(run: Mapping[str, Any], settings: Mapping[str, Any], together: int = 1) -> Cell:
    """The cell of a run; arguments as in `kind_of`."""
    kind = kind_of(run, settings, together)
    return Cell(kind, run["dataset"], settings["epochs"], train_size(settings))


def seconds_left(
    left: Mapping[Cell, int],
    durations: Durations,
    working: Iterable[tuple[Sequence[Cell], float]],
    at_once: int,
    guess: bool,
) -> float | None:
    """Seconds until all runs are trained on one host; None if that is not known.

    Args:
        left: number of unfinished runs of each cell.
        durations: what is known of finished runs.
        working: for each process that trains, the cells of its unfinished runs and the seconds that it has
            spent on them.
        at_once: number of runs that the host trains at the same time.
        guess: whether runs of an unknown kind are taken to last as long as the others.
    """
    known = {cell: durations.of(*cell) for cell, number in left.items() if number}
    given = [seconds for seconds in known.values() if seconds is not None]
    if not given or (len(given) < len(known) and not guess):
        return None
    usual = sum(given) / len(given)
    expected = {cell: usual if seconds is None else seconds for cell, seconds in known.items()}
    todo = sum(seconds * left[cell] for cell, seconds in expected.items())
    for cells, spent in working:
        todo -= min(sum(expected.get(cell, 0) for cell in cells), spent)
    return todo / min(at_once, sum(left.values()))
