"""What a difference of an experiment says: higher, lower, small, not clear, or why it says nothing."""

from seedbed.analysis.experiment import INITS, Experiment
from seedbed.analysis.table_rows import RunRow
from seedbed.analysis.verdicts import bounds, partly_collapsed, verdict
from seedbed.core.rows import Row
from seedbed.core.tasks import METRICS


def headline_rows(experiment: Experiment, family: str) -> list[Row]:
    """The contrasts of a family at each side's best where recipes are swept, at the only recipe elsewhere."""
    blocks = experiment.reporting["recipes"]
    return [
        row
        for row in experiment.contrasts
        if row["family"] == family
        and (row["selection"] == "best" or len(experiment.recipes(blocks[row["recipe_a"]]["family"])) == 1)
    ]


def favours(row: Row) -> str:
    """The verdict with higher and lower in the sense of better and worse: higher where the first side is the
    better one, be that by more accuracy or by less loss."""
    found = verdict(row)
    if METRICS[row["metric"]].direction > 0:
        return found
    return {"higher": "lower", "lower": "higher"}.get(found, found)


def interest(experiment: Experiment) -> float:
    """The smallest difference of interest, in the unit of the metric."""
    return experiment.reporting["statistics"]["difference_of_interest"]


def finding(experiment: Experiment, row: Row) -> str:
    """The verdict on a difference, higher where its first side is better; small where its interval lies
    within the difference of interest and no collapsed run has a part in that.

    An interval of level 1 - a within the margin is a test of equivalence at a/2 (Schuirmann 1987), so that
    of two differences one is called small wrongly at a rate of a at most.
    """
    found, (low, high) = favours(row), bounds(row)
    if found != "unclear" or low is None or high is None:
        return found
    within = -interest(experiment) < low and high < interest(experiment)
    sides = [cells(experiment, row, side) for side in "ab"]
    return "small" if within and not any(map(partly_collapsed, sides)) else found


def cells(experiment: Experiment, row: Row, side: str) -> list[list[RunRow]]:
    """The runs of side `a` or `b` of a contrast; of a gain those of both inits."""
    framework, init = row[side].split("/")
    if init != "gain":
        return [experiment.side(row, side)]
    recipes = row[f"recipe_{side}"].split("/")
    pairs = zip(INITS, (recipes[0], recipes[-1]), strict=True)
    return [
        experiment.side({**row, side: f"{framework}/{init}", f"recipe_{side}": recipe}, side)
        for init, recipe in pairs
    ]
