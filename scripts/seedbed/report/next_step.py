"""What to do next: the most useful action, by the verdicts on a question and the plans of its differences."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seedbed.analysis import findings
from seedbed.analysis.findings import favours, finding, headline_rows
from seedbed.analysis.ranges import range_standings
from seedbed.analysis.stopping import ENDED, FUTILE, OPEN, question_of_row
from seedbed.analysis.verdicts import (
    COLLAPSE,
    FEW_SEEDS,
    UNLEARNED,
    direction,
    is_withheld,
    learned_nothing,
    sound_seeds,
)
from seedbed.config.stages import WIDENING
from seedbed.core.known import known
from seedbed.core.rows import Row
from seedbed.core.seeds import FEWEST_SEEDS, independent_seeds
from seedbed.core.wording import Words
from seedbed.core.words import framework_name, level_text
from seedbed.report import method_comparisons, undecided
from seedbed.report.answer import (
    Asked,
    Difference,
    collapsed,
    difference_of,
    framework_of,
    unlearned_runs,
)
from seedbed.report.experiment import Experiment
from seedbed.report.method_comparisons import INITS
from seedbed.report.power import Outcome, outcome
from seedbed.report.undecided import Unlearned

WORDS = Words("report/opening")


@dataclass(frozen=True)
class Step:
    """What to do next.

    Attributes:
        kind: unlearned, undefined, few_seeds, collapse, unlearned_side, edge, care, settings, seeds,
            examples, search, enough, flat, sweep, settled, add_init or add_untrained; of an experiment that
            grows values, look, futile or last_look.
        about: what its sentence names.
    """

    kind: str
    about: Any


def say_step(step: Step) -> str:
    """The step in words."""
    return WORDS.say("step", step.kind, step.about)


def next_step(asked: Asked) -> Step:
    """The most useful action: what went wrong first, then what may change the answer, then what would find
    a difference, then what remains open."""
    experiment, rows = asked.experiment, asked.rows
    found = {name: finding(experiment, row) for name, row in rows.items()}

    def having(*verdicts: str) -> dict[str, Row]:
        return {name: rows[name] for name, one in found.items() if one in verdicts}

    if unlearned := having(*UNLEARNED):
        return Step("unlearned", unlearned_runs(experiment, unlearned.values()))
    if having("undefined"):
        return Step("undefined", None)
    if step := _next_stage(asked):
        return step
    if few := having("single", FEW_SEEDS):
        return Step("few_seeds", (_is_crossed(experiment, few.values()), FEWEST_SEEDS))
    if having(COLLAPSE):
        return Step("collapse", _few_left(experiment, having(COLLAPSE).values()))
    if having("unclear") and collapsed(asked):
        return Step("collapse", False)
    if side := _unlearned_side(asked):
        return Step("unlearned_side", side)
    if asked.edges:
        return Step("edge", asked.edges)
    if care := _care(having("higher", "lower")):
        return Step("care", (care, experiment.level))
    if step := _after_looks(asked):
        return step
    if open_rows := having("unclear", "flat"):
        return _more(experiment, open_rows, several=len(rows) > 1)
    if settings := [key for one in asked.pairs for key, *_ in method_comparisons.differing_settings(one)]:
        return Step("settings", list(dict.fromkeys(settings)))
    settled = _open(asked)
    rate = _only_rate(asked)
    return Step("settled", settled) if rate is None or settled.opposed else Step("sweep", rate)


def _next_stage(asked: Asked) -> Step | None:
    """The next stage of a growing experiment, if there is one: values of a range, or seeds of a look."""
    if values := _more_values(asked):
        return Step("values", max(values))
    seeds = {now.following for now in asked.standings.values() if now.state == OPEN}
    return Step("look", sorted(map(known, seeds))) if seeds else None


def _more_values(asked: Asked) -> list[int]:
    """How many values a side has at the next stage, for each range that widens."""
    if asked.subject != "pretraining":
        return []
    questions = {question_of_row(asked.experiment, row) for row in asked.rows.values()}
    return [
        len(values)
        for question, now in range_standings(asked.experiment).items()
        if question in questions and now.state == WIDENING
        for values in now.following.values()
    ]


def _after_looks(asked: Asked) -> Step | None:
    """What may decide a question that looks have not: other test texts, or a larger number of seeds."""
    found = asked.standings.values()
    if needed := [known(now.examples) for now in found if now.state == FUTILE]:
        return Step("futile", max(needed))
    return Step("last_look", None) if any(now.state == ENDED for now in found) else None


def _only_rate(asked: Asked) -> float | None:
    """The learning rate of both inits, where no other was tried: a fair comparison tries several."""
    if asked.subject != "pretraining" or asked.own_best:
        return None
    recipes = {row[f"recipe_{side}"] for row in asked.rows.values() for side in "ab"}
    rates = {asked.experiment.reporting["recipes"][name].get("learning_rate") for name in recipes}
    return rates.pop() if len(rates) == 1 else None


def _is_crossed(experiment: Experiment, rows: Iterable[Row]) -> bool:
    runs = undecided.runs_behind(experiment, rows)
    seeds = {(run.init_seed, run.data_seed) for run in runs}
    return independent_seeds(seeds) < len(seeds)


def _few_left(experiment: Experiment, rows: Iterable[Row]) -> bool:
    """Whether too few seeds are left of any difference without collapsed runs."""
    sides = [findings.cells(experiment, row, side) for row in rows for side in "ab"]
    return min(independent_seeds(sound_seeds(cells)) for cells in sides) < FEWEST_SEEDS


def _unlearned_side(asked: Asked) -> tuple[str, Unlearned] | None:
    """A side of which no run learned anything, by its name."""
    for name, row in asked.rows.items():
        for side in "ab":
            cells = findings.cells(asked.experiment, row, side)
            runs = [run for of_cell in cells for run in of_cell]
            if learned_nothing(runs, row["test_set"]):
                start = asked.starts[name][side]
                framework = framework_of(asked, name)
                who = WORDS.say("of_framework", start, framework) if framework else start
                return who, undecided.unlearned(asked.experiment, runs, row["test_set"])
    return None


def _care(rows: Mapping[str, Row]) -> list[Difference]:
    """Differences with a verdict that the interval over seeds alone does not share."""
    return [
        difference_of(name, {**row, "ci_low": None, "ci_high": None})
        for name, row in rows.items()
        if direction(row["t_low"], row["t_high"]) == "unclear"
    ]


@dataclass(frozen=True)
class More:
    """What would find a difference of interest: an outcome with the largest number that any difference needs.

    Attributes:
        outcome: of `power.outcome`.
        names: of the frameworks or methods that it is needed for; empty where there is one difference.
        questions: whether test examples are questions.
    """

    outcome: Outcome
    names: Sequence[str]
    questions: bool


# outcomes, by what a step asks for, the most useful first; and the number that they ask for
_STEPS = {
    "more_examples": "examples",
    "more_seeds": "seeds",
    "too_many_seeds": "search",
    "flat": "flat",
    "enough": "enough",
}


def _more(experiment: Experiment, rows: Mapping[str, Row], *, several: bool) -> Step:
    found = {name: outcome(experiment, row) for name, row in rows.items()}
    for kind, step in _STEPS.items():
        alike = {name: one for name, one in found.items() if one.kind == kind}
        if alike:
            most = max(alike.values(), key=lambda one: (one.needed, one.seeds[0] or 0))
            names = [framework_name(name) for name in alike] if several else []
            return Step(step, More(most, names, experiment.task.writes_answers))
    raise AssertionError(found)


@dataclass(frozen=True)
class Settled:
    """What is settled, and what is not.

    Attributes:
        level: of the verdicts, in words.
        opposed: whether the verdicts of frameworks differ.
        different: from which starts the frameworks differ.
        open: from which starts that is not known; `all_open`: from all of them.
        undecided: pairs of methods that these runs do not tell apart.
    """

    level: str
    opposed: bool
    different: Sequence[str]
    open: Sequence[str]
    all_open: bool
    undecided: Sequence[str]


def _open(asked: Asked) -> Settled:
    experiment = asked.experiment
    first = next(iter(asked.rows.values()))
    frameworks = {}
    if asked.subject == "pretraining":
        keys = ("dataset", "model")
        family = experiment.reporting["recipes"][first["recipe_a"]]["family"]
        frameworks = {
            WORDS.say("start", INITS[row["a"].split("/")[1]]): agreement(row)
            for row in headline_rows(experiment, "framework")
            if all(row[key] == first[key] for key in keys)
            and experiment.reporting["recipes"][row["recipe_a"]]["family"] == family
        }
    return Settled(
        level=level_text(experiment.confidence),
        opposed=len({finding(experiment, row) for row in asked.rows.values()}) > 1,
        different=[start for start, found in frameworks.items() if found == "different"],
        open=[start for start, found in frameworks.items() if found == "inconclusive"],
        all_open=set(frameworks.values()) == {"inconclusive"},
        undecided=[
            WORDS.say("against", one.name("a"), one.name("b"))
            for one in asked.pairs
            if favours(one.row) not in ("higher", "lower")
        ],
    )


def agreement(row: Row) -> str:
    """Whether the frameworks agree within the margin: equivalent, different or inconclusive."""
    return "inconclusive" if is_withheld(row) else row["equivalence"] or "inconclusive"
