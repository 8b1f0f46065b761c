"""Whether a range of a sweep has to grow: where in its values each side's choice on validation lies."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seedbed.analysis.experiment import Experiment
from seedbed.config.stages import WIDENING, question_of
from seedbed.core.rows import grouped

EDGES = (0, -1)  # places of the smallest and the largest value
INTERIOR = "interior"  # the choice of each side lies inside, and so do most of its resampled choices
ENDED = "ended"  # a choice lies at an edge, and its side has the most values that it may have
# Share of resampled choices on an edge from which the range grows. If n values are alike on validation, each
# has 1/n of the choices: a sweep on which nothing depends rests at five values instead of going on to `max`.
EDGE_SHARE = 0.25


@dataclass(frozen=True)
class Choice:
    """What a side chose among its values.

    Attributes:
        values: that it tried, rising.
        chosen: the one that is best on validation.
        shares: how often resampled runs choose each, fractions.
    """

    values: Sequence[Any]
    chosen: Any
    shares: Sequence[float]

    def asks(self, edge: int) -> bool:
        """Whether values beyond an edge, one of EDGES, may be better."""
        return bool(self.chosen == self.values[edge]) or self.shares[edge] > EDGE_SHARE

    def preference(self, edge: int) -> tuple[bool, float, float]:
        """By which of its edges a side would rather grow; larger is rather."""
        place = self.values.index(self.chosen)
        steps = place if edge == 0 else len(self.values) - 1 - place
        return self.chosen == self.values[edge], self.shares[edge], -steps


@dataclass(frozen=True)
class RangeStanding:
    """How the range of a question stands.

    Attributes:
        state: widening, interior or ended.
        chosen: the value that each init chose.
        now, following: the values of each init, rising, at this stage and at the next.
    """

    state: str
    chosen: dict[str, Any]
    now: dict[str, list[Any]]
    following: dict[str, list[Any]]


def range_standings(experiment: Experiment) -> dict[str, RangeStanding]:
    """How each range of an experiment stands, by question; none without ranges."""
    ranges = experiment.reporting.get("ranges", {})
    rows = [row for row in experiment.summary if row.recipe_family in ranges]
    found = {}
    for names, members in grouped(rows, "dataset", "model", "framework", "recipe_family").items():
        given = ranges[names[3]]
        sides = grouped(members, "init")
        choices = {init: _choice(experiment, of_init, given["key"]) for (init,), of_init in sides.items()}
        found[question_of(*names)] = range_standing(choices, given["values"], given["max"])
    return found


def _choice(experiment: Experiment, rows: Sequence[Any], key: str) -> Choice:
    recipes = experiment.reporting["recipes"]
    shares: dict[Any, float] = {}
    for row in rows:
        if row.selection == "equal":
            value = recipes[row.recipe]["swept"][key]
            shares[value] = shares.get(value, 0.0) + (row.chosen_share or 0.0)
    (best,) = (row for row in rows if row.selection == "best")
    values = sorted(shares)
    return Choice(values, recipes[best.recipe]["swept"][key], [shares[value] for value in values])


def range_standing(choices: Mapping[str, Choice], possible: Sequence[Any], most: int) -> RangeStanding:
    """How a range stands.

    If a side asks for values beyond an edge of its own, every side gets one value more, so that all have as
    many: a side that does not ask gets it at the edge that is nearest to being chosen, and of two that are
    alike where another side asks.

    Args:
        choices: of each side, by init; all have as many values.
        possible: all values that the range may try, rising.
        most: the most values of a side.
    """
    now = {init: list(choice.values) for init, choice in choices.items()}
    chosen = {init: choice.chosen for init, choice in choices.items()}
    asked = [(choice, edge) for choice in choices.values() for edge in EDGES if choice.asks(edge)]
    if not asked:
        return RangeStanding(INTERIOR, chosen, now, now)
    edges = {edge for choice, edge in asked if _beyond(choice.values, edge, possible)}
    if not edges or any(len(values) >= min(most, len(possible)) for values in now.values()):
        return RangeStanding(ENDED, chosen, now, now)
    following = {init: _grown(choice, possible, edges) for init, choice in choices.items()}
    return RangeStanding(WIDENING, chosen, now, following)


def _beyond(values: Sequence[Any], edge: int, possible: Sequence[Any]) -> list[Any]:
    """The value beyond an edge, in a list; empty where the range ends there."""
    place = possible.index(values[edge]) + (-1 if edge == 0 else 1)
    return [possible[place]] if 0 <= place < len(possible) else []


def _grown(choice: Choice, possible: Sequence[Any], asked: Collection[int]) -> list[Any]:
    """The values of a side with one more; if nothing else decides, at an edge that a side asks for."""
    edges = [edge for edge in EDGES if _beyond(choice.values, edge, possible)]
    edge = max(edges, key=lambda edge: (*choice.preference(edge), edge in asked))
    return sorted([*choice.values, *_beyond(choice.values, edge, possible)])
