"""How the files of an experiment's figures are made; the figures themselves stand in registry.py.

Files do not depend on the time they are written.
"""

import contextlib
import multiprocessing
import sys
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

from seedbed.core.errors import SeedbedError
from seedbed.figures import registry
from seedbed.figures.base import Data, save, set_style
from seedbed.figures.captions import Caption

FIGURES = {spec.name: spec.function() for spec in registry.FIGURES if spec.rule == registry.RULE}
Paths = Sequence[tuple[str | Path, str | Path]]  # of SVG and PNG
Child = tuple[BaseProcess, Connection]


class Drawing:
    """Figures that are being drawn, by other processes or already.

    Args:
        names: of the figures.
        children: the processes.
        known: captions of the figures that are drawn already.
    """

    def __init__(self, names: Sequence[str], children: Sequence[Child], known: Mapping[str, Caption]):
        self._names, self._children, self._known = names, children, known

    def captions(self) -> dict[str, Caption]:
        """The captions by name, in the order of the figures, whose files need not be there yet.

        Raises:
            SeedbedError: a figure could not be drawn.
        """
        known = dict(self._known)
        for _, received in self._children:
            try:
                known |= received.recv()
            except EOFError:  # of a process that failed, which its exit code says
                self.wait()
        return {name: known[name] for name in self._names}

    def wait(self) -> None:
        """Wait until all files are written.

        Raises:
            SeedbedError: a figure could not be drawn.
        """
        for child, _ in self._children:
            child.join()
        codes = {child.exitcode for child, _ in self._children} - {0}
        if codes:
            raise SeedbedError(
                "some figures could not be drawn",
                found=f"exit code {', '.join(map(str, sorted(codes)))} of a process that draws",
                hint="the error of the process itself is printed above",
            )


@contextlib.contextmanager
def drawing(
    data: Data, svg: Sequence[str | Path], png: Sequence[str | Path], processes: int = 1
) -> Iterator[Drawing]:
    """Draw each figure that is asked for, as SVG and as PNG, while the block does something else; the stem of
    its file names a figure. After the block all files are written.

    Args:
        data: what they are drawn from.
        svg: paths .../NAME.svg.
        png: paths .../NAME.png, of the same names in the same order.
        processes: how many draw at a time; 1: this process does, before the block.

    Raises:
        SeedbedError: a figure could not be drawn.
    """
    set_style(_names(data))
    names, paths = [Path(path).stem for path in svg], list(zip(svg, png, strict=True))
    with _children(data, paths, processes if processes > 1 else 0) as children:
        drawn = Drawing(names, children, {} if children else draw(data, paths))
        yield drawn
        drawn.wait()


def draw(data: Data, paths: Paths) -> dict[str, Caption]:
    """Draw figures, each as SVG and as PNG; returns their captions by name, which is the stem of a path."""
    captions = {}
    for svg, png in paths:
        name = Path(svg).stem
        figure, captions[name] = FIGURES[name](data)
        save(figure, captions[name], svg, png)
    return captions


@contextlib.contextmanager
def _children(data: Data, paths: Paths, processes: int) -> Iterator[list[Child]]:
    """So many processes that draw; those that still work at the end of the block are ended.

    Forks have the libraries already, whose import takes as long as the drawing. Each has its share from the
    beginning, so that it ends by itself should this process be killed.
    """
    forked = multiprocessing.get_context("fork")
    children: list[Child] = []
    try:
        for first in range(processes):
            received, sent = forked.Pipe(duplex=False)
            child = forked.Process(target=_child, args=(data, paths[first::processes], sent))
            child.start()
            sent.close()  # so that nothing is left to wait for when the child ends
            children.append((child, received))
        yield children
    finally:  # when this process is asked to leave, so are they
        for child, _ in children:
            if child.is_alive():
                child.terminate()
                child.join()


def _names(data: Data) -> set[str]:
    """What is drawn of the words of other people: the classes."""
    return {str(row[key]) for row in data.tables.get("confusion", ()) for key in ("label", "prediction")}


def _child(data: Data, paths: Paths, captions: Connection) -> None:
    """Draw figures, tell their captions, and write the files, which takes five times as long as drawing."""
    try:
        drawn = [(*FIGURES[Path(svg).stem](data), svg, png) for svg, png in paths]
        captions.send({Path(svg).stem: caption for _, caption, svg, _ in drawn})
        for one in drawn:
            save(*one)
    except Exception as error:
        sys.excepthook(type(error), error, error.__traceback__)  # where the rule's errors go
        sys.exit(1)
