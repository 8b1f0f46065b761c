"""Looks at an experiment that grows: where each question stands, and what the looks cost, in words."""

from collections.abc import Sequence
from dataclasses import dataclass

from seedbed.analysis.findings import interest
from seedbed.analysis.stopping import Standing
from seedbed.core.known import known
from seedbed.core.rows import Row
from seedbed.core.wording import Words
from seedbed.core.words import framework_name
from seedbed.report.answer import Asked

WORDS = Words("report/looks")


@dataclass(frozen=True)
class Looked:
    """A question at its present look.

    Attributes:
        name: of the framework; empty where there is one, and where all stand alike.
        standing: see `stopping.standing`.
        test_examples: at hand.
    """

    name: str
    standing: Standing
    test_examples: int


@dataclass(frozen=True)
class Looks:
    """The questions of one place.

    Attributes:
        looked: by framework; one where all stand alike.
        widths: how wide the interval of each framework is, relative to that of as many seeds whose number was
            fixed before; of those that have an interval.
        interest: the difference of interest, in the unit of the metric.
        metric: whose difference it is.
        power: with which more test examples would find it.
    """

    looked: Sequence[Looked]
    widths: Sequence[float]
    interest: float
    metric: str
    power: float


def looks(asked: Asked) -> Looks | None:
    """Where the questions of one place stand; None where no seeds are added."""
    experiment, found = asked.experiment, asked.standings
    if not found:
        return None
    alike = len({(now.state, now.seeds, now.examples) for now in found.values()}) == 1
    looked = [
        Looked(
            "" if alike else framework_name(name),
            now,
            known(experiment.side(now.row, "a")[0].test_examples),
        )
        for name, now in found.items()
    ]
    metric = looked[0].standing.row["metric"]
    widths = [width for now in found.values() if (width := _width(now.row)) is not None]
    return Looks(looked[:1] if alike else looked, widths, interest(experiment), metric, experiment.power)


def sentences(asked: Asked) -> list[str]:
    """The same in words."""
    found = looks(asked)
    return [WORDS.say("looks", found)] if found else []


def _width(row: Row) -> float | None:
    if row["ci_low"] is None or row["fixed_low"] is None or row["fixed_high"] == row["fixed_low"]:
        return None
    return (row["ci_high"] - row["ci_low"]) / (row["fixed_high"] - row["fixed_low"])
