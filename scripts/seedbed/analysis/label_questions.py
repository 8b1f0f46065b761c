"""Questions for a number of labels: the parts of learning curves that they ask, and what bears a verdict.

The statistics are those of `label_worth`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from seedbed.analysis import bootstrap, verdicts
from seedbed.analysis.bootstrap import Candidate
from seedbed.analysis.contrasts import Sides
from seedbed.analysis.label_worth import Reached
from seedbed.analysis.learning_curves import LearningCurve
from seedbed.analysis.methods import OTHER_CHOICE
from seedbed.analysis.sides import Seed, only_seeds
from seedbed.analysis.table_rows import RunRow
from seedbed.core.known import known
from seedbed.core.seeds import FEWEST_SEEDS, independent_seeds

Points = Sequence[Sequence[Candidate]]


@dataclass(frozen=True)
class Counted:
    """What numbers of labels are computed of: runs by cell, predictions, and the config's `statistics`."""

    by_cell: Mapping[tuple[Any, ...], Sequence[RunRow]]
    sides: Sides
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Part:
    """Some sizes of a curve."""

    curve: LearningCurve
    sizes: tuple[int, ...]
    counted: Counted

    @cached_property
    def runs(self) -> list[Sequence[RunRow]]:
        """The runs of the chosen recipe at each size."""
        return [self.counted.by_cell[self.curve.chosen[size].cell] for size in self.sizes]

    @cached_property
    def points(self) -> Points:
        """The recipes that may be chosen at each size."""
        candidate = self.counted.sides.candidate
        return [
            [candidate(row.cell, row.test_set, row.metric) for row in self.curve.candidates[size]]
            for size in self.sizes
        ]

    @property
    def agrees(self) -> bool:
        """Whether predictions choose the recipes that the losses of runs did."""
        return all(
            self.curve.candidates[size][bootstrap.choice(point)].recipe == self.curve.chosen[size].recipe
            for size, point in zip(self.sizes, self.points, strict=True)
        )

    @property
    def seeds(self) -> int:
        """How many runs each size has, at least."""
        return min(map(len, self.runs))

    @property
    def collapsed(self) -> int:
        """How many of the runs collapsed."""
        return sum(bool(run.collapsed) for runs in self.runs for run in runs)

    def near(self, found: Reached) -> list[Sequence[RunRow]]:
        """The runs at the sizes that an interval spans, and at the next on both sides."""
        low, high = (known(end).outermost for end in (found.low, found.high))
        first = max((size for size in self.sizes if size <= low), default=self.sizes[0])
        last = min((size for size in self.sizes if size >= high), default=self.sizes[-1])
        return [runs for size, runs in zip(self.sizes, self.runs, strict=True) if first <= size <= last]

    def with_seeds(self, seeds: Sequence[Seed]) -> Points:
        """The chosen recipe at each size, with some of its seeds alone."""
        return [
            bootstrap.given(only_seeds(point[bootstrap.choice(point)].test, seeds)) for point in self.points
        ]


@dataclass(frozen=True)
class Question:
    """A question about parts of curves, and its answer.

    Attributes:
        parts: of the curves.
        answer: the number of labels, of the points of each part and of whether the seeds of all are pairs.
        learning: the parts of which a run must have learned something.
    """

    parts: Sequence[Part]
    answer: Callable[[Sequence[Points], bool], Reached]
    learning: Sequence[Part]

    @cached_property
    def found(self) -> Reached:
        """The number of labels."""
        return self.answer([part.points for part in self.parts], self.paired)

    @property
    def paired(self) -> bool:
        """Whether all runs have the same seeds."""
        cells = [runs for part in self.parts for runs in part.runs]
        return len({frozenset(run.seeds for run in runs) for runs in cells}) == 1

    @property
    def no_verdict(self) -> str | None:
        """Why the number bears no verdict: one of verdicts.WITHHELD, or of `methods`; None where it does."""
        runs = [run for part in self.learning for of_size in part.runs for run in of_size]
        if unlearned := verdicts.unlearned(runs, self.parts[0].curve.test_set):
            return unlearned
        if not all(part.agrees for part in self.parts):
            return OTHER_CHOICE
        return self.found.no_interval or (verdicts.COLLAPSE if self._hangs_on_a_collapse else None)

    @property
    def _hangs_on_a_collapse(self) -> bool:
        """Whether the number without collapsed runs lies outside the interval, or rests on too few seeds.

        Only runs at the sizes that decide are left out, with all runs of their seeds."""
        near = [part.near(self.found) for part in self.parts]
        if not any(map(verdicts.partly_collapsed, near)):
            return False
        kept = [verdicts.sound_seeds(cells) for cells in near]
        if min(map(independent_seeds, kept)) < FEWEST_SEEDS:
            return True
        paired = self.paired and len(set(map(frozenset, kept))) == 1
        points = [part.with_seeds(seeds) for part, seeds in zip(self.parts, kept, strict=True)]
        labels = self.answer(points, paired).labels.outermost
        low, high = (known(end).outermost for end in (self.found.low, self.found.high))
        return not low <= labels <= high
