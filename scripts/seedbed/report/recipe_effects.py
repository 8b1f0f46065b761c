"""What the choice of recipe does to the difference of the inits, and which lie at an edge of the sweep."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

from seedbed.analysis import statistics
from seedbed.analysis.findings import favours
from seedbed.analysis.verdicts import COLLAPSE, FEW_SEEDS, bounds, is_withheld, verdict
from seedbed.core.rows import Row
from seedbed.core.tasks import METRICS
from seedbed.core.wording import Words
from seedbed.core.words import framework_name
from seedbed.report.experiment import Experiment, Question
from seedbed.report.method_comparisons import INITS, Comparison, method_name

WORDS = Words("report/recipe_effects")
SIDES = {"pretrained": "recipe_a", "random": "recipe_b"}  # where a contrast of inits names their recipes
COUNTED = ("epochs",)  # keys of a recipe that are numbers of something


def recipe_effects(question: Question) -> list[str]:
    """Of a swept question, what the choice of recipe does and which choices lie at an edge of the sweep."""
    told = _effects(question)
    return [*told, *([WORDS.say("edges", found)] if (found := edges(question)) else [])]


def _effects(question: Question) -> list[str]:
    """What becomes of the difference at the equal recipe when each init has its own best one: one sentence
    for all frameworks of which the same is to be said; none of one that has no difference."""
    best = question.contrasts("best")
    pairs = {
        name: (row, best[name])
        for name, row in question.contrasts("equal").items()
        if row["delta"] is not None and best[name]["delta"] is not None
    }
    found: dict[RecipeEffect, list[str]] = {}
    for name, (equal, chosen) in pairs.items():
        found.setdefault(recipe_effect(question, equal, chosen), []).append(name)
    return [
        WORDS.say(
            "recipe_effect",
            [framework_name(name) for name in names],
            effect,
            [] if effect.kind == "same_recipe" else _changes(question, [pairs[name] for name in names]),
        )
        for effect, names in found.items()
    ]


@dataclass(frozen=True)
class RecipeEffect:
    """What becomes of the difference at the equal recipe when each init has its own best one.

    Attributes:
        kind: same recipe (it is the equal one), unclear, gone, or changed.
        amount: how much of the difference is gone: all, most or part.
        change: how the chosen recipes differ from the equal one, in words, where the difference is gone.
    """

    kind: str
    amount: str = ""
    change: str = ""


def recipe_effect(question: Question, equal: Row, best: Row) -> RecipeEffect:
    """The effect in one framework.

    Args:
        question: whose contrasts these are.
        equal, best: at the equal recipe, and at each init's own best one; both with a difference.
    """
    if best["recipe_a"] == best["recipe_b"] == question.reference:
        return RecipeEffect("same_recipe")
    change = _change(question, best)
    found = None if change is None else favours(change)
    # of a change from runs that learned nothing to others, that is what the recipe does
    open_ones = is_withheld(best) or verdict(equal) in (FEW_SEEDS, COLLAPSE)
    if open_ones or found not in ("higher", "lower"):
        return RecipeEffect("unclear")
    if found == "lower" and METRICS[equal["metric"]].direction * equal["delta"] > 0:
        gone = (equal["delta"] - best["delta"]) / equal["delta"]
        amount = "all" if gone >= 1 else "most" if gone > 0.5 else "part"
        return RecipeEffect("gone", amount, _change_of_recipe(question, best))
    return RecipeEffect("changed")


def _changes(question: Question, pairs: Iterable[tuple[Row, Row]]) -> list[str]:
    """The differences at the equal recipe and at the best ones, the interval of the change, and what each
    init gains."""
    experiment = question.experiment
    told: list[str] = []
    for equal, best in pairs:
        change = _change(question, best)
        low, high = (None, None) if change is None else bounds(change)
        ends = None if low is None else (low, high)
        gains = [_gain(experiment, equal, best, side) for side in "ab"]
        level = "" if told else experiment.level
        told.append(WORDS.say("change", equal["metric"], equal["delta"], best["delta"], ends, level, gains))
    return told


def _change(question: Question, best: Row) -> Row | None:
    """The contrast (difference at the best recipes) - (difference at the equal one) in a framework, which
    carries the choice; None without one."""
    place = (question.dataset, question.model, best["a"].split("/")[0], question.reference)
    for row in question.experiment.contrasts:
        here = row["dataset"], row["model"], row["a"].split("/")[0], row["recipe_b"]
        if row["family"] == "recipe" and here == place:
            return row
    return None


def _change_of_recipe(question: Question, best: Row) -> str:
    """How the chosen recipes differ from the equal one: a higher learning rate."""
    changed = {init: _direction(question, best[column]) for init, column in SIDES.items()}
    return WORDS.say("changed_recipe", changed)


def _direction(question: Question, recipe: str) -> str:
    """What a recipe's swept values are, beside those of the equal recipe; empty where they are the same."""
    blocks = question.experiment.reporting["recipes"]
    before, after = blocks[question.reference]["swept"], blocks[recipe]["swept"]
    changes = []
    for key, old in before.items():
        if after[key] != old:
            known = _is_number(old) and _is_number(after[key])
            changes.append((key, "other" if not known else "more" if after[key] > old else "fewer"))
    return WORDS.say("recipe_change", changes, COUNTED)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _gain(experiment: Experiment, equal: Row, best: Row, side: str) -> float:
    index = "ab".index(side)
    before, after = (statistics.mean(experiment.values(row)[index]) for row in (equal, best))
    return (after - before) * METRICS[equal["metric"]].direction


ENDS = ("smallest", "largest")
Edge = tuple[str, str, str, Any]  # who chose it, smallest or largest, and the key and its value


def edges(question: Question) -> list[Edge]:
    """Which inits chose the smallest or largest value that they tried, beyond which nobody looked."""
    swept = question.experiment.reporting["recipes"][question.reference]["swept"]
    return [
        (WORDS.say("who_chose", chose, len(question.contrasts("best"))), word, key, edge)
        for key in swept
        for word in ENDS
        for edge, chose in _at_edge(question, key, word).items()
    ]


def _at_edge(question: Question, key: str, word: str) -> dict[Any, dict[str, list[str]]]:
    """By the value at an edge, the starts that chose it, each with its frameworks."""
    experiment, blocks = question.experiment, question.experiment.reporting["recipes"]
    found: dict[Any, dict[str, list[str]]] = {}
    for (framework, row), (init, column) in itertools.product(
        question.contrasts("best").items(), SIDES.items()
    ):
        place = (question.dataset, question.model, framework, init)
        tried = experiment.tried(question.family, place)
        edge = _ends(blocks[recipe]["swept"][key] for recipe in tried).get(word)
        if edge is not None and blocks[row[column]]["swept"][key] == edge:
            by_start = found.setdefault(edge, {INITS[each]: [] for each in SIDES})
            by_start[INITS[init]].append(framework_name(framework))
    return found


def _ends(swept: Iterable[Any]) -> dict[str, Any]:
    """The smallest and the largest of several swept numbers; none of other values."""
    values = list(swept)
    if len(set(values)) < 2 or not all(map(_is_number, values)):
        return {}
    return dict(zip(ENDS, (min(values), max(values)), strict=True))


def edges_of_methods(comparisons: Sequence[Comparison]) -> list[Edge]:
    """Which methods chose the smallest or largest value that they tried."""
    found: dict[Edge, None] = {}
    for one in comparisons:
        blocks = one.experiment.reporting["recipes"]
        for side in "ab" if one.row["selection"] == "best" else "":
            recipe = one.row[f"recipe_{side}"]
            place = (one.row["dataset"], one.row["model"], *one.row[side].split("/"))
            tried = one.experiment.tried(blocks[recipe]["family"], place)
            for key, value in blocks[recipe]["swept"].items():
                for word, edge in _ends(blocks[other]["swept"][key] for other in tried).items():
                    if value == edge:
                        found[method_name(blocks, recipe), word, key, value] = None
    return list(found)
