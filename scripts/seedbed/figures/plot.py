"""The figures of an experiment: what they are called, and how their files are made.

Each figure says in its caption what is shown, in which unit, over how many seeds and with which interval.
Files do not depend on the time they are written.
"""

import contextlib
import multiprocessing
import sys
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from seedbed.core.errors import SeedbedError
from seedbed.core.rows import on_test_set, read_table
from seedbed.core.tasks import task_of
from seedbed.figures.accuracy import test_accuracy, test_accuracy_by_recipe
from seedbed.figures.base import GREY, MAX_ROWS, Data, finish, save, set_style
from seedbed.figures.captions import write_captions
from seedbed.figures.contrasts import contrasts
from seedbed.figures.costs import time_and_memory
from seedbed.figures.curves import learning_curves, test_curves
from seedbed.figures.predictions import calibration, confusion
from seedbed.figures.profiles import expected_validation, performance_profile
from seedbed.figures.scores import test_scores, test_scores_by_recipe

__all__ = ["FIGURES", "GREY", "MAX_ROWS", "TABLES", "Data", "finish", "plot_figures", "save", "set_style"]

TABLES = ("runs", "curves", "summary", "contrasts", "calibration", "confusion", "expected_validation")

FIGURES: dict[str, Callable[[Data], tuple[Figure, str]]] = {
    "learning_curves": learning_curves,
    "test_accuracy": test_accuracy,
    "contrasts": contrasts,
    "performance_profile": performance_profile,
    "calibration": calibration,
    "confusion": confusion,
    "time_and_memory": time_and_memory,
    "test_accuracy_by_recipe": test_accuracy_by_recipe,
    "test_scores": test_scores,
    "test_scores_by_recipe": test_scores_by_recipe,
    "expected_validation": expected_validation,
    "test_curves": test_curves,
}


def plot_figures(
    tables: Mapping[str, str | Path],
    reporting: Mapping[str, Any],
    svg: Sequence[str | Path],
    png: Sequence[str | Path],
    captions: str | Path,
    processes: int = 1,
) -> None:
    """Draw each figure that is asked for, as SVG and as PNG, and write their captions; the stem of its file
    names a figure.

    Args:
        tables: paths of the tables in TABLES.
        reporting: `Plan.reporting()`.
        svg: paths .../NAME.svg.
        png: paths .../NAME.png, of the same names in the same order.
        captions: path of the JSON file with the caption of each figure.
        processes: how many draw at a time.

    Raises:
        SeedbedError: one of them failed.
    """
    data = read_data(tables, reporting)
    set_style(_names(data))
    paths = list(zip(svg, png, strict=True))
    drawn = draw(data, paths) if processes == 1 else _draw_in_processes(data, paths, processes)
    write_captions(captions, {Path(path).stem: drawn[Path(path).stem] for path in svg})


Paths = Sequence[tuple[str | Path, str | Path]]  # of SVG and PNG


def draw(data: Data, paths: Paths) -> dict[str, str]:
    """Draw figures, each as SVG and as PNG; returns their captions by name, which is the stem of a path."""
    captions = {}
    for svg, png in paths:
        name = Path(svg).stem
        figure, captions[name] = FIGURES[name](data)
        save(figure, captions[name], svg, png)
    return captions


def _draw_in_processes(data: Data, paths: Paths, processes: int) -> dict[str, str]:
    """`draw`, by so many processes at a time.

    Forks have the libraries already, whose import takes as long as the drawing. Each has its share from the
    beginning, so that it ends by itself should this process be killed.

    Raises:
        SeedbedError: one of them failed.
    """
    forked = multiprocessing.get_context("fork")
    children, captions = [], {}
    try:
        for first in range(processes):
            received, sent = forked.Pipe(duplex=False)
            child = forked.Process(target=_child, args=(data, paths[first::processes], sent))
            child.start()
            sent.close()  # so that nothing is left to wait for when the child ends
            children.append((child, received))
        for child, received in children:
            with contextlib.suppress(EOFError):  # of a child that failed, which its exit code says
                captions |= received.recv()
            child.join()
    finally:  # when this process is asked to leave, so are they
        for child, _ in children:
            if child.is_alive():
                child.terminate()
                child.join()
    codes = {child.exitcode for child, _ in children} - {0}
    if codes:
        raise SeedbedError(
            "some figures could not be drawn",
            found=f"exit code {', '.join(map(str, sorted(codes)))} of a process that draws",
            hint="the error of the process itself is printed above",
        )
    return captions


def _names(data: Data) -> set[str]:
    """What is drawn of the words of other people: the classes."""
    return {str(row[key]) for row in data.confusion for key in ("label", "prediction")}


def _child(data: Data, paths: Paths, captions: Connection) -> None:
    try:
        captions.send(draw(data, paths))
    except Exception as error:
        sys.excepthook(type(error), error, error.__traceback__)  # where the rule's errors go
        sys.exit(1)


def read_data(tables: Mapping[str, str | Path], reporting: Mapping[str, Any]) -> Data:
    """The tables in TABLES; the summary's and the contrasts' rows on the whole test split alone."""
    read = {name: read_table(tables[name]) for name in TABLES}
    for name in ("summary", "contrasts"):
        read[name] = on_test_set(read[name])
    scores, first = read["summary"], task_of(reporting).reported[0]
    read["summary"] = [row for row in scores if row["metric"] == first]
    return Data(reporting=reporting, scores=scores, **read)
