"""How the files of an experiment's figures are made; the figures themselves stand in registry.py.

Files do not depend on the time they are written.
"""

import contextlib
import multiprocessing
import sys
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from seedbed.core.errors import SeedbedError
from seedbed.figures import registry
from seedbed.figures.base import Data, save, set_style
from seedbed.figures.captions import Caption, write_captions

FIGURES = {spec.name: spec.function() for spec in registry.FIGURES if spec.rule == "plot_figures"}


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
        tables: paths of the tables that these figures are drawn from, by name.
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


def draw(data: Data, paths: Paths) -> dict[str, Caption]:
    """Draw figures, each as SVG and as PNG; returns their captions by name, which is the stem of a path."""
    captions = {}
    for svg, png in paths:
        name = Path(svg).stem
        figure, captions[name] = FIGURES[name](data)
        save(figure, captions[name], svg, png)
    return captions


def _draw_in_processes(data: Data, paths: Paths, processes: int) -> dict[str, Caption]:
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
    return {str(row[key]) for row in data.tables.get("confusion", ()) for key in ("label", "prediction")}


def _child(data: Data, paths: Paths, captions: Connection) -> None:
    try:
        captions.send(draw(data, paths))
    except Exception as error:
        sys.excepthook(type(error), error, error.__traceback__)  # where the rule's errors go
        sys.exit(1)


def read_data(tables: Mapping[str, str | Path], reporting: Mapping[str, Any]) -> Data:
    """What the figures are drawn from.

    Args:
        tables: paths of the tables that there are, by name; those of figures that are not drawn are not
            needed.
        reporting: `Plan.reporting()`.

    Raises:
        SeedbedError: see `Experiment.read`.
    """
    own = [name for name in registry.TABLES if name in tables and name not in (*registry.COMMON, "contrasts")]
    return Data.read(tables, reporting, own)
