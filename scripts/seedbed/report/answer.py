"""The question of an experiment and its answer: does pretraining help, or what does fine-tuning bring?

Nothing is claimed that an interval does not carry.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from seedbed.analysis.findings import finding, interest
from seedbed.analysis.stopping import Standing, standing
from seedbed.analysis.table_rows import SummaryRow
from seedbed.analysis.verdicts import UNLEARNED
from seedbed.core.rows import Row, grouped
from seedbed.core.wording import Words
from seedbed.core.words import key_text
from seedbed.report import method_comparisons, undecided
from seedbed.report.experiment import Experiment, Question, interval, questions, range_text
from seedbed.report.method_comparisons import INITS, UNTRAINED, Comparison, mean_of
from seedbed.report.recipe_effects import edges, edges_of_methods
from seedbed.report.undecided import Rate, Unlearned, WithoutCollapsed

WORDS = Words("report/opening")
UNCORRECTED = 2  # tests up to which an interval of 95% bounds a difference without a correction
SIDES = {"a": "pretrained", "b": "random"}


@dataclass(frozen=True)
class Difference:
    """A difference in an answer.

    Attributes:
        name: the framework or method that tells it from others.
        metric: whose difference it is.
        delta: as a fraction, or in nats; None where a run has no finite loss.
        interval: bounds in words; empty without any.
        seeds_alone: whether the interval is over seeds alone.
        p_holm: of a difference whose verdict Holm's correction takes away; else None.
        perplexities: before and after fine-tuning; None of other differences.
    """

    name: str
    metric: str
    delta: float | None
    interval: str
    seeds_alone: bool
    p_holm: float | None
    perplexities: tuple[float, float] | None = None


@dataclass(frozen=True)
class Finding:
    """The differences of one question that have the same verdict.

    Attributes:
        verdict: as in contrasts.csv, higher where the first side is better; or small: no difference beyond
            the one of interest.
        differences: by framework or method.
        unlearned: the runs behind them where none learned anything; else None.
    """

    verdict: str
    differences: Sequence[Difference]
    unlearned: Unlearned | None


@dataclass(frozen=True)
class Answer:
    """The answer to one question.

    Attributes:
        subject: pretraining or fine_tuning.
        findings: one for each verdict.
        own_best: what each side chose for itself, in words: learning rate; empty without a sweep.
        level: of the intervals, in words.
        interest: the smallest difference of interest, in the unit of the metric.
        uncorrected: number of tests for which a small difference is not corrected; 0 where none is needed.
        tabled: whether the differences and their intervals stand in a table below.
    """

    subject: str
    findings: Sequence[Finding]
    own_best: str
    level: str
    interest: float
    uncorrected: int
    tabled: bool


@dataclass(frozen=True)
class Asked:
    """A question, and the contrasts that answer it.

    Attributes:
        experiment: whose contrasts these are.
        subject: pretraining or fine_tuning.
        place: where it is asked, in words.
        rows: by framework or method.
        own_best: see `Answer`.
        edges: see `answer.edges`.
        starts: what runs of side a and of side b are called, in words.
        perplexities: by method.
        baseline: rows of the summary that a bag of words is compared with.
        pairs: comparisons of methods that train, in the same place.
    """

    experiment: Experiment
    subject: str
    place: str
    rows: Mapping[str, Row]
    own_best: str
    edges: Sequence[tuple[str, str, str, Any]]
    starts: Mapping[str, Mapping[str, str]]
    perplexities: Mapping[str, tuple[float, float]]
    baseline: Sequence[SummaryRow]
    pairs: Sequence[Comparison]

    @cached_property
    def standings(self) -> dict[str, Standing]:
        """Where each question of inits stands, by framework; empty where no seeds are added."""
        if self.subject != "pretraining":
            return {}
        found = {name: standing(self.experiment, row) for name, row in self.rows.items()}
        return {name: now for name, now in found.items() if now is not None}


def framework_of(asked: Asked, name: str) -> str:
    """The framework of a row where several are told apart; empty where they are methods, or one."""
    return name if asked.subject == "pretraining" and len(asked.rows) > 1 else ""


def of_inits(experiment: Experiment) -> list[Asked]:
    """Whether pretraining helps: each question whose inits are compared."""
    return [_question_of_inits(question) for question in questions(experiment) if question.headline()]


def _question_of_inits(question: Question) -> Asked:
    experiment = question.experiment
    swept = experiment.reporting["recipes"][question.reference]["swept"]
    rows = grouped(experiment.summary, "dataset", "model", "recipe_family")[
        question.dataset, question.model, question.family
    ]
    compared = [row for row in rows if row.selection == "best"] if question.swept else rows
    starts = {side: WORDS.say("start", INITS[init]) for side, init in SIDES.items()}
    return Asked(
        experiment=experiment,
        subject="pretraining",
        place=question.place,
        rows=question.headline(),
        own_best=_chosen(swept) if question.swept else "",
        edges=edges(question) if question.swept else [],
        starts=dict.fromkeys(question.headline(), starts),
        perplexities={},
        baseline=compared,
        pairs=[],
    )


def _chosen(swept: Mapping[str, Any]) -> str:
    return key_text(next(iter(swept))) if len(swept) == 1 else WORDS.say("recipe")


def of_gains(experiment: Experiment) -> list[Asked]:
    """What fine-tuning brings over the untrained model: each place where that is asked."""
    if not method_comparisons.leads(experiment):
        return []
    asked = []
    for here in _by_place(method_comparisons.comparisons(experiment)):
        gains = {one.name("a"): one for one in here if one.method("b") == UNTRAINED}
        if gains:
            asked.append(_question_of_methods(gains, [one for one in here if one.method("b") != UNTRAINED]))
    return asked


def _by_place(comparisons: Iterable[Comparison]) -> list[list[Comparison]]:
    places: dict[str, list[Comparison]] = {}
    for one in comparisons:
        places.setdefault(one.place, []).append(one)
    return list(places.values())


def _question_of_methods(named: Mapping[str, Comparison], pairs: Sequence[Comparison]) -> Asked:
    """What comparisons of methods in one place, by their names, say; `pairs`: see `Asked`."""
    asked = list(named.values())
    over_untrained = {name: one for name, one in named.items() if one.method("b") == UNTRAINED}
    return Asked(
        experiment=asked[0].experiment,
        subject="fine_tuning",
        place=asked[0].place,
        rows={name: one.row for name, one in named.items()},
        own_best=WORDS.say("recipe") if any(one.row["selection"] == "best" for one in asked) else "",
        edges=edges_of_methods(asked),
        starts={name: _names_of_methods(one) for name, one in named.items()},
        perplexities={name: pair for name, one in over_untrained.items() if (pair := _perplexities(one))},
        baseline=[],
        pairs=pairs,
    )


def _names_of_methods(one: Comparison) -> dict[str, str]:
    return {side: WORDS.say("method", one.name(side)) for side in "ab"}


def _perplexities(one: Comparison) -> tuple[float, float] | None:
    before, after = (mean_of(one.runs(side), "test_perplexity") for side in "ba")
    return None if before is None or after is None else (before, after)


def answer(asked: Asked) -> Answer:
    """The answer to a question."""
    experiment = asked.experiment
    by_verdict: dict[str, dict[str, Row]] = {}
    for name, row in asked.rows.items():
        by_verdict.setdefault(finding(experiment, row), {})[name] = row
    tests = undecided.number_of_tests(experiment, {row["family"] for row in asked.rows.values()})
    return Answer(
        subject=asked.subject,
        findings=[
            Finding(
                verdict=found,
                differences=[
                    difference_of(name, row, asked.perplexities.get(name)) for name, row in rows.items()
                ],
                unlearned=unlearned_runs(experiment, rows.values()) if found in UNLEARNED else None,
            )
            for found, rows in by_verdict.items()
        ],
        own_best=asked.own_best,
        level=experiment.level,
        interest=interest(experiment),
        uncorrected=tests if tests > UNCORRECTED else 0,
        tabled=asked.subject == "fine_tuning" and method_comparisons.tabled(experiment),
    )


def difference_of(name: str, row: Row, perplexities: tuple[float, float] | None = None) -> Difference:
    return Difference(
        name=name,
        metric=row["metric"],
        delta=row["delta"],
        interval=range_text(row) if interval(row) else "",
        seeds_alone=row["ci_low"] is None,
        p_holm=row["p_holm"] if undecided.is_before_holm(row) else None,
        perplexities=perplexities,
    )


def unlearned_runs(experiment: Experiment, rows: Iterable[Row]) -> Unlearned:
    rows = list(rows)
    return undecided.unlearned(experiment, undecided.runs_behind(experiment, rows), rows[0]["test_set"])


# --- collapsed runs -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Collapsed:
    """How many runs behind a difference collapsed, and the difference without them.

    Attributes:
        name: the framework or method; empty where there is one.
        rates: of each side that trains.
        without: None where no side has both kinds of runs.
    """

    name: str
    rates: Sequence[Rate]
    without: WithoutCollapsed | None


def collapsed(asked: Asked) -> list[Collapsed]:
    """The differences with collapsed runs."""
    found = []
    for name, row in asked.rows.items():
        sides = [side for side in "ab" if _trains(asked.experiment, row, side)]
        rates = [undecided.rate_of(asked.experiment, row, side, asked.starts[name][side]) for side in sides]
        if any(rate.collapsed for rate in rates):
            without = undecided.without(asked.experiment, row)
            found.append(Collapsed(framework_of(asked, name), rates, without))
    return found


def _trains(experiment: Experiment, row: Row, side: str) -> bool:
    return experiment.reporting["recipes"][row[f"recipe_{side}"]]["method"] != UNTRAINED


def of_pairs(experiment: Experiment) -> list[Asked]:
    """What one method that trains costs against another: each place where both were run."""
    return [
        _question_of_methods({WORDS.say("pair", one.name("a"), one.name("b")): one for one in pairs}, pairs)
        for pairs in _by_place(pairs_of(experiment))
    ]


def pairs_of(experiment: Experiment) -> list[Comparison]:
    """Comparisons of two methods that train."""
    found = method_comparisons.comparisons(experiment)
    return [one for one in found if one.method("b") != UNTRAINED]
