"""What a user asks of results from outside."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from seedbed.core import spelling
from seedbed.core.errors import SeedbedError


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Options of reading; each may be left out.

    Attributes:
        dataset: the dataset to take; of a table without datasets, its name.
        columns: of a table, by role the column that has it.
        metric: the metric, or the column of its scores.
        bounds: least and largest possible score.
        labels: of run_glue.py, a table with the labels of the predicted texts.
        folders: of run_glue.py, where folders name system, seed and dataset, such as {system}/seed{seed}.
    """

    dataset: str | None = None
    columns: Mapping[str, str] | None = None
    metric: str | None = None
    bounds: tuple[float, float] | None = None
    labels: Path | None = None
    folders: str | None = None


def require_known(dataset: str, names: Iterable[str], where: str) -> None:
    """Refuse a dataset that the results do not have.

    Args:
        dataset: what a user names.
        names: the datasets of the results.
        where: their file, for the error.

    Raises:
        SeedbedError: it is none of them.
    """
    known = list(names)
    if dataset not in known:
        raise SeedbedError(
            f"the results have no dataset {dataset!r}",
            where=where,
            found=f"the datasets {', '.join(known)}",
            hint=f"{spelling.nearest(dataset, known)}choose one of them",
        )
