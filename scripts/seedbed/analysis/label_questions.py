"""Questions for a number of labels: the parts of learning curves that they ask, and what bears a verdict.

The curves are of runs or of bags of words; the statistics are those of `label_worth`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from seedbed.analysis import bootstrap, verdicts
from seedbed.analysis.baselines_of_sizes import BaselinesOfSizes
from seedbed.analysis.bootstrap import Candidate, Side
from seedbed.analysis.contrasts import Sides
from seedbed.analysis.label_worth import Reached
from seedbed.analysis.learning_curves import LearningCurve
from seedbed.analysis.methods import OTHER_CHOICE
from seedbed.analysis.sides import Seed, only_seeds, seeds_of
from seedbed.analysis.table_rows import RunRow
from seedbed.core.known import known
from seedbed.core.seeds import FEWEST_SEEDS, independent_seeds

BAG_OF_WORDS = "bag_of_words"

Points = Sequence[Sequence[Candidate]]


@dataclass(frozen=True)
class Counted:
    """What numbers of labels are computed of: runs by cell, predictions, and the config's `statistics`."""

    by_cell: Mapping[tuple[Any, ...], Sequence[RunRow]]
    sides: Sides
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Part:
    """Some sizes of a learning curve.

    Attributes:
        label: FRAMEWORK/INIT, or BAG_OF_WORDS.
        model, recipe, method: of the runs; the recipe by its name in the config. None of bags of words.
        names: what tells the curve from all others, for the seed of random numbers.
        sizes: numbers of training texts, the smallest first.
        points: the recipes that may be chosen at each size.
        runs: of the chosen recipe at each size; none of bags of words.
        number: of seeds of each size.
        agrees: whether predictions choose the recipes that the losses of runs did.
    """

    label: str
    model: str | None
    recipe: str | None
    method: str | None
    names: Sequence[str]
    sizes: tuple[int, ...]
    points: Points
    runs: Sequence[Sequence[RunRow]]
    number: int
    agrees: bool

    @property
    def seeds(self) -> set[frozenset[Seed]]:
        """The sets of seeds that its points have."""
        return {frozenset(point[0].test.seeds) for point in self.points}

    @property
    def collapsed(self) -> int:
        """How many of the runs collapsed."""
        return sum(bool(run.collapsed) for runs in self.runs for run in runs)

    def near(self, found: Reached) -> list[Sequence[RunRow]]:
        """The runs at the sizes that an interval spans, and at the next on both sides; bags have none."""
        if not self.runs:
            return []
        low, high = (known(end).outermost for end in (found.low, found.high))
        first = max((size for size in self.sizes if size <= low), default=self.sizes[0])
        last = min((size for size in self.sizes if size >= high), default=self.sizes[-1])
        return [runs for size, runs in zip(self.sizes, self.runs, strict=True) if first <= size <= last]

    def with_seeds(self, seeds: Sequence[Seed]) -> Points:
        """The chosen recipe at each size, with some of its seeds alone."""
        return [
            bootstrap.given(only_seeds(point[bootstrap.choice(point)].test, seeds)) for point in self.points
        ]


def part_of_runs(curve: LearningCurve, sizes: Sequence[int], counted: Counted) -> Part:
    """Some sizes of a curve of runs."""
    candidate = counted.sides.candidate
    points = [
        [candidate(row.cell, row.test_set, row.metric) for row in curve.candidates[size]] for size in sizes
    ]
    runs = [counted.by_cell[curve.chosen[size].cell] for size in sizes]
    chosen = [
        curve.candidates[size][bootstrap.choice(point)] for size, point in zip(sizes, points, strict=True)
    ]
    return Part(
        label=f"{curve.framework}/{curve.init}",
        model=curve.model,
        recipe=curve.recipe,
        method=curve.method,
        names=[curve.dataset, curve.model, curve.framework, curve.init, curve.recipe],
        sizes=tuple(sizes),
        points=points,
        runs=runs,
        number=min(map(len, runs)),
        agrees=[row.recipe for row in chosen] == [curve.chosen[size].recipe for size in sizes],
    )


def part_of_bags(
    bags: BaselinesOfSizes, sizes: Sequence[int], beside: LearningCurve, counted: Counted
) -> Part:
    """Bags of words of some sizes, paired with the runs of a curve: a row has the bag of its run's data seed.

    The setting of a bag, which validation selects, counts as given.
    """
    cell = beside.chosen[beside.sizes[0]].cell
    seeds = seeds_of(counted.by_cell[cell])

    def side(size: int) -> Side:
        outputs = bags.outputs("test", size, seeds)
        return counted.sides.beside(cell, outputs, beside.test_set, beside.metric)

    return Part(
        label=BAG_OF_WORDS,
        model=None,
        recipe=None,
        method=None,
        names=[beside.dataset, BAG_OF_WORDS],
        sizes=tuple(sizes),
        points=[bootstrap.given(side(size)) for size in sizes],
        runs=[],
        number=len({data for _, data in seeds}),
        agrees=True,
    )


@dataclass(frozen=True)
class Question:
    """A question about parts of curves, and its answer.

    Attributes:
        parts: of the curves.
        answer: the number of labels, of the points of each part and of whether the seeds of all are pairs.
        learning: the parts of which a run must have learned something.
        test_set: of all parts.
    """

    parts: Sequence[Part]
    answer: Callable[[Sequence[Points], bool], Reached]
    learning: Sequence[Part]
    test_set: str

    @cached_property
    def found(self) -> Reached:
        """The number of labels."""
        return self.answer([part.points for part in self.parts], self.paired)

    @property
    def paired(self) -> bool:
        """Whether all points have the same seeds."""
        return len(set[frozenset[Seed]]().union(*(part.seeds for part in self.parts))) == 1

    @property
    def no_verdict(self) -> str | None:
        """Why the number bears no verdict: one of verdicts.WITHHELD, or of `methods`; None where it does."""
        runs = [run for part in self.learning for of_size in part.runs for run in of_size]
        if unlearned := verdicts.unlearned(runs, self.test_set):
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
        sound = [verdicts.sound_seeds(cells) if cells else None for cells in near]
        known_seeds = [seeds for seeds in sound if seeds is not None]
        if min(map(independent_seeds, known_seeds)) < FEWEST_SEEDS:
            return True
        # bags of words have no runs, and go with the seeds of those beside them
        kept = [known_seeds[0] if seeds is None else seeds for seeds in sound]
        paired = self.paired and len(set(map(frozenset, kept))) == 1
        points = [part.with_seeds(seeds) for part, seeds in zip(self.parts, kept, strict=True)]
        labels = self.answer(points, paired).labels.outermost
        low, high = (known(end).outermost for end in (self.found.low, self.found.high))
        return not low <= labels <= high
