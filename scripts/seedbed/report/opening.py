"""The opening of an experiment: the answer, what a bag of words reaches, and what to do next, a line each.

Every line is made from contrasts, summary and plans; nothing is claimed that an interval does not carry. The
long reasons stand below, in the sections of the report.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from seedbed.analysis.table_rows import SummaryRow
from seedbed.analysis.verdicts import (
    COLLAPSE,
    FEW_SEEDS,
    FEWEST_SEEDS,
    UNLEARNED,
    direction,
    independent_seeds,
    is_withheld,
    learned_nothing,
    partly_collapsed,
    sound_seeds,
    verdict,
)
from seedbed.core import wording
from seedbed.core.bag_of_words import bag_name
from seedbed.core.known import known
from seedbed.core.rows import Row, grouped
from seedbed.core.wording import Words
from seedbed.core.words import code, framework_name, key_text, level_text, mean_sd
from seedbed.report import method_comparisons, undecided
from seedbed.report.answer import edges, edges_of_methods
from seedbed.report.experiment import (
    Experiment,
    Question,
    favours,
    headline_rows,
    interval,
    questions,
    range_text,
    setting_text,
    where,
)
from seedbed.report.method_comparisons import INITS, UNTRAINED, Comparison, mean_of
from seedbed.report.power import Outcome, outcome
from seedbed.report.undecided import Rate, Unlearned, WithoutCollapsed

WORDS = Words("report/opening")
MAX_GROUPS = 12  # questions with lines of their own; more are counted
MAX_COMPARED = 4  # models and datasets that are compared in words; more are counted
UNCORRECTED = 2  # tests up to which an interval of 95% bounds a difference without a correction
SIDES = {"a": "pretrained", "b": "random"}


@dataclass(frozen=True)
class Line:
    """A line of the opening.

    Attributes:
        kind: answer, collapsed, compared, baseline or next.
        text: inline Markdown.
    """

    kind: str
    text: str

    @property
    def label(self) -> str:
        """What stands before the text."""
        return wording.data("report/titles")["opening"][self.kind]


@dataclass(frozen=True)
class Group:
    """The lines of one question.

    Attributes:
        place: where it is asked, in words; empty where it is the only one.
        lines: the answer first.
    """

    place: str
    lines: Sequence[Line]


@dataclass(frozen=True)
class Opening:
    """What an experiment says first.

    Attributes:
        lead: how many comparisons have which verdict; empty where there is one question.
        groups: one for each question.
        others: lines on what else is compared (models, datasets, frameworks), and on what to do next where
            that is the same for all questions.
    """

    lead: str
    groups: Sequence[Group]
    others: Sequence[Line]


def opening(experiment: Experiment) -> Opening:
    """The opening of an experiment."""
    asked = [*_gains(experiment), *_inits(experiment)]
    others = _others(experiment, led=bool(asked))
    if not asked:
        return Opening("", [Group("", _without_question(experiment))], others)
    if len(asked) == 1:
        return Opening("", [Group("", asked[0].lines())], others)
    groups = [Group(one.place, one.lines()) for one in asked[:MAX_GROUPS]]
    if len(asked) > MAX_GROUPS:
        others = [Line("answer", WORDS.say("left_out", len(asked) - MAX_GROUPS)), *others]
    steps = {line.text for group in groups for line in group.lines if line.kind == "next"}
    if len(steps) == 1:
        groups = [replace(one, lines=[line for line in one.lines if line.kind != "next"]) for one in groups]
        others = [*others, Line("next", steps.pop())]
    return Opening(_lead(experiment, asked), groups, others)


# --- the answer ---------------------------------------------------------------------------------------------


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
    """

    subject: str
    findings: Sequence[Finding]
    own_best: str
    level: str
    interest: float
    uncorrected: int


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

    def lines(self) -> list[Line]:
        """Answer, collapsed runs, other comparisons, bag of words, and what to do next."""
        found = [
            ("answer", [WORDS.say("answer", answer(self))]),
            ("collapsed", _collapsed(self)),
            ("compared", _pairs(self.pairs)),
            ("baseline", _baseline(self.experiment, self.baseline)),
            ("next", [say_step(next_step(self))]),
        ]
        return [Line(kind, text) for kind, texts in found for text in texts]


def _inits(experiment: Experiment) -> list[Asked]:
    """Whether pretraining helps: each question whose inits are compared."""
    return [_of_inits(question) for question in questions(experiment) if question.headline()]


def _of_inits(question: Question) -> Asked:
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


def _gains(experiment: Experiment) -> list[Asked]:
    """What fine-tuning brings over the untrained model: each place where that is asked."""
    if not method_comparisons.leads(experiment):
        return []
    found = method_comparisons.comparisons(experiment)
    places: dict[str, list[Comparison]] = {}
    for one in found:
        places.setdefault(one.place, []).append(one)
    asked = []
    for place, here in places.items():
        gains = [one for one in here if one.method("b") == UNTRAINED]
        if not gains:
            continue
        names = {one.name("a"): one for one in gains}
        asked.append(
            Asked(
                experiment=experiment,
                subject="fine_tuning",
                place=place,
                rows={name: one.row for name, one in names.items()},
                own_best=WORDS.say("recipe") if any(one.row["selection"] == "best" for one in gains) else "",
                edges=edges_of_methods(gains),
                starts={name: _methods(one) for name, one in names.items()},
                perplexities={name: pair for name, one in names.items() if (pair := _perplexities(one))},
                baseline=[],
                pairs=[one for one in here if one.method("b") != UNTRAINED],
            )
        )
    return asked


def _methods(one: Comparison) -> dict[str, str]:
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
                    _difference(name, row, asked.perplexities.get(name)) for name, row in rows.items()
                ],
                unlearned=_unlearned(experiment, rows.values()) if found in UNLEARNED else None,
            )
            for found, rows in by_verdict.items()
        ],
        own_best=asked.own_best,
        level=experiment.level,
        interest=_interest(experiment),
        uncorrected=tests if tests > UNCORRECTED else 0,
    )


def finding(experiment: Experiment, row: Row) -> str:
    """The verdict on a difference, higher where its first side is better; small where its interval lies
    within the difference of interest and no collapsed run has a part in that.

    An interval of level 1 - a within the margin is a test of equivalence at a/2 (Schuirmann 1987), so that
    of two differences one is called small wrongly at a rate of a at most.
    """
    found, bounds = favours(row), interval(row)
    if found != "unclear" or bounds is None:
        return found
    within = -_interest(experiment) < bounds.low and bounds.high < _interest(experiment)
    cells = [undecided.cells(experiment, row, side) for side in "ab"]
    return "small" if within and not any(map(partly_collapsed, cells)) else found


def _interest(experiment: Experiment) -> float:
    return experiment.reporting["statistics"]["difference_of_interest"]


def _difference(name: str, row: Row, perplexities: tuple[float, float] | None = None) -> Difference:
    return Difference(
        name=name,
        metric=row["metric"],
        delta=row["delta"],
        interval=range_text(row) if interval(row) else "",
        seeds_alone=row["ci_low"] is None,
        p_holm=row["p_holm"] if undecided.is_before_holm(row) else None,
        perplexities=perplexities,
    )


def _unlearned(experiment: Experiment, rows: Iterable[Row]) -> Unlearned:
    rows = list(rows)
    return undecided.unlearned(experiment, undecided.runs_behind(experiment, rows), rows[0]["test_set"])


def _lead(experiment: Experiment, asked: Sequence[Asked]) -> str:
    """How many comparisons have which verdict."""
    counts: dict[str, Counter[str]] = {}
    for one in asked:
        counts.setdefault(one.subject, Counter()).update(
            finding(experiment, row) for row in one.rows.values()
        )
    return WORDS.say("lead", counts, _interest(experiment), experiment.metric, experiment.confidence)


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
            named = name if len(asked.rows) > 1 and asked.subject == "pretraining" else ""
            found.append(Collapsed(named, rates, undecided.without(asked.experiment, row)))
    return found


def _trains(experiment: Experiment, row: Row, side: str) -> bool:
    return experiment.reporting["recipes"][row[f"recipe_{side}"]]["method"] != UNTRAINED


def _collapsed(asked: Asked) -> list[str]:
    found = collapsed(asked)
    return [WORDS.say("collapsed", found, asked.experiment.level)] if found else []


# --- a bag of words -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Baseline:
    """A bag of words beside the means over seeds.

    Attributes:
        name: bag of words, or of characters.
        bag: its test accuracy, a fraction.
        rank: above (every mean), below (every mean), between (above those of one start) or mixed.
        better, worse: means by the name of their start that are above the bag, and that are below it.
        below, total: how many means are below the bag, and how many there are.
    """

    name: str
    bag: float
    rank: str
    better: Mapping[str, Sequence[float]]
    worse: Mapping[str, Sequence[float]]
    below: int
    total: int


def baseline(experiment: Experiment, rows: Sequence[SummaryRow]) -> Baseline | None:
    """A bag of words beside some rows of the summary; None without one.

    Args:
        experiment: whose rows these are.
        rows: of one dataset and model.
    """
    if not rows or rows[0].bag_of_words is None:
        return None
    bag = rows[0].bag_of_words
    better: dict[str, list[float]] = {}
    worse: dict[str, list[float]] = {}
    for row in rows:
        mean = known(row.mean)
        (worse if mean < bag else better).setdefault(_start(experiment, row), []).append(mean)
    below, total = sum(map(len, worse.values())), len(rows)
    rank = "above" if below == total else "below" if not below else "mixed"
    if rank == "mixed" and not set(better) & set(worse):
        rank = "between"
    return Baseline(bag_name(rows[0]), bag, rank, better, worse, below, total)


def _start(experiment: Experiment, row: SummaryRow) -> str:
    """What tells a mean from others: where its runs start, or their method."""
    if len(experiment.inits) > 1:
        return WORDS.say("start", INITS[row.init])
    return WORDS.say("method", method_comparisons.method_name(experiment.reporting["recipes"], row.recipe))


def _baseline(experiment: Experiment, rows: Sequence[SummaryRow]) -> list[str]:
    found = baseline(experiment, rows)
    return [WORDS.say("baseline", found)] if found else []


# --- what to do next ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """What to do next.

    Attributes:
        kind: unlearned, undefined, few_seeds, collapse, unlearned_side, edge, care, settings, seeds,
            examples, search, enough, flat, settled, add_init or add_untrained.
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
        return Step("unlearned", _unlearned(experiment, unlearned.values()))
    if having("undefined"):
        return Step("undefined", None)
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
    if open_rows := having("unclear", "flat"):
        return _more(experiment, open_rows, several=len(rows) > 1)
    if settings := [key for one in asked.pairs for key, *_ in method_comparisons.differing_settings(one)]:
        return Step("settings", list(dict.fromkeys(settings)))
    return Step("settled", _open(asked))


def _is_crossed(experiment: Experiment, rows: Iterable[Row]) -> bool:
    runs = undecided.runs_behind(experiment, rows)
    seeds = {(run.init_seed, run.data_seed) for run in runs}
    return independent_seeds(seeds) < len(seeds)


def _few_left(experiment: Experiment, rows: Iterable[Row]) -> bool:
    """Whether too few seeds are left of any difference without collapsed runs."""
    sides = [undecided.cells(experiment, row, side) for row in rows for side in "ab"]
    return min(independent_seeds(sound_seeds(cells)) for cells in sides) < FEWEST_SEEDS


def _unlearned_side(asked: Asked) -> tuple[str, Unlearned] | None:
    """A side of which no run learned anything, by its name."""
    for name, row in asked.rows.items():
        for side in "ab":
            cells = undecided.cells(asked.experiment, row, side)
            runs = [run for of_cell in cells for run in of_cell]
            if learned_nothing(runs, row["test_set"]):
                start = asked.starts[name][side]
                several = len(asked.rows) > 1 and asked.subject == "pretraining"
                who = WORDS.say("of_framework", start, name) if several else start
                return who, undecided.unlearned(asked.experiment, runs, row["test_set"])
    return None


def _care(rows: Mapping[str, Row]) -> list[Difference]:
    """Differences with a verdict that the interval over seeds alone does not share."""
    return [
        _difference(name, {**row, "ci_low": None, "ci_high": None})
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


# --- other comparisons --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Compared:
    """One method, model, dataset or framework against another.

    Attributes:
        kind: method, model, dataset or framework.
        a, b: names of the sides.
        verdict: higher where the first is better, or gains more; of frameworks that of their agreement.
        withheld: why no verdict stands; empty where one may.
        difference: the first minus the second.
        place: where, in words; empty where it needs no name.
        level: of the interval in words; empty where another one of the line names it.
        margin: of frameworks, within which they agree; else 0.
    """

    kind: str
    a: str
    b: str
    verdict: str
    withheld: str
    difference: Difference
    place: str
    level: str
    margin: float = 0.0


def _pairs(pairs: Sequence[Comparison], *, placed: bool = False) -> list[str]:
    """Comparisons of methods that train, in one line; many are counted."""
    if len(pairs) > method_comparisons.MAX_TOLD:
        return [_counted(pairs[0].experiment, "method", [one.row for one in pairs])]
    told = [compared_methods(one, number == 0, placed) for number, one in enumerate(pairs)]
    return [WORDS.say("compared", told)] if told else []


def compared_methods(one: Comparison, first: bool, placed: bool) -> Compared:
    """One method against another; the first of a line names the level, and those of several places theirs."""
    return Compared(
        kind="method",
        a=one.name("a"),
        b=one.name("b"),
        verdict=favours(one.row),
        withheld=verdict(one.row) if is_withheld(one.row) else "",
        difference=_difference("", one.row),
        place=one.place if placed else "",
        level=one.experiment.level if first else "",
    )


def _others(experiment: Experiment, *, led: bool) -> list[Line]:
    """Methods, models and datasets against each other; without another question the frameworks, too."""
    lines: list[str] = []
    costs = _costs(experiment)
    if led and not method_comparisons.leads(experiment):
        lines += _pairs(costs, placed=len({one.place for one in costs}) > 1)
    for family in ("model", "dataset", *([] if led or costs else ["framework"])):
        rows = headline_rows(experiment, family)
        decided = any(_is_decided(row) for row in rows)
        if len(rows) > MAX_COMPARED or (len(rows) > 1 and not decided):
            lines.append(_counted(experiment, family, rows))
        elif rows:
            told = [compared(experiment, row, number == 0) for number, row in enumerate(rows)]
            lines.append(WORDS.say("compared", told))
    return [Line("compared", text) for text in lines]


def _costs(experiment: Experiment) -> list[Comparison]:
    found = method_comparisons.comparisons(experiment)
    return [one for one in found if one.method("b") != UNTRAINED]


def _counted(experiment: Experiment, family: str, rows: Sequence[Row]) -> str:
    return WORDS.say("counted", family, sum(map(_is_decided, rows)), len(rows), experiment.confidence)


def _is_decided(row: Row) -> bool:
    if row["family"] == "framework":
        return agreement(row) == "equivalent"
    return verdict(row) in ("higher", "lower")


def compared(experiment: Experiment, row: Row, first: bool) -> Compared:
    """One model, dataset or framework against another, by a contrast of that family."""
    family, (framework, init) = row["family"], row["a"].split("/")
    by_framework = family == "framework"
    sides = [row[f"{family}{end}"] for end in ("", "_b")] if not by_framework else []
    names = [framework_name(row[side].split("/")[0]) for side in "ab"] if by_framework else map(code, sides)
    a, b = names
    start = INITS.get(init, "")
    several = len(experiment.frameworks) > 1 and not by_framework
    recipe = experiment.reporting["recipes"][row["recipe_a"].split("/")[0]]["family"]
    here = (setting_text if family == "dataset" else where)(experiment, row, recipe)
    return Compared(
        kind=family,
        a=a,
        b=b,
        verdict=agreement(row) if by_framework else favours(row),
        withheld=verdict(row) if is_withheld(row) else "",
        difference=_difference("", row),
        place=WORDS.say("place", here, start, framework if several else ""),
        level=experiment.level if first else "",
        margin=row["margin"] or 0.0 if by_framework else 0.0,
    )


# --- without differences of inits or gains ------------------------------------------------------------------


def _without_question(experiment: Experiment) -> list[Line]:
    """The lines of an experiment that has neither both inits nor an untrained model to compare with."""
    costs, led = _costs(experiment), method_comparisons.leads(experiment)
    rows = [row for row in experiment.summary if row.selection == "equal"]
    unlearned = _nothing_at_all(experiment)
    texts = [WORDS.say("no_run_learned", unlearned)] if unlearned else []
    texts += [] if costs and not led else [_alone(experiment, rows)]
    step = Step("unlearned", unlearned) if unlearned else Step("add_untrained" if led else "add_init", None)
    lines = [Line("answer", text) for text in texts]
    if costs:
        of_costs = _of_costs(costs)
        placed = len({one.place for one in costs}) > 1
        kind = "compared" if lines else "answer"
        lines += [Line(kind, text) for text in _pairs(costs, placed=placed)]
        lines += [Line("collapsed", text) for text in _collapsed(of_costs)]
        step = step if unlearned or led else next_step(of_costs)
    if len({(row.dataset, row.model) for row in rows}) == 1:
        lines += [Line("baseline", text) for text in _baseline(experiment, rows)]
    return [*lines, Line("next", say_step(step))]


def _nothing_at_all(experiment: Experiment) -> Unlearned | None:
    """The runs of the first dataset where no run of the experiment learned anything."""
    runs = [run for run in experiment.runs if run.method != UNTRAINED]
    if not learned_nothing(runs):
        return None
    return undecided.unlearned(experiment, [run for run in runs if run.dataset == runs[0].dataset], "all")


def _alone(experiment: Experiment, rows: Sequence[SummaryRow]) -> str:
    """That one init or method alone cannot answer, with its scores."""
    means = [
        WORDS.say("mean", mean_sd(row.metric, row.mean, row.sd), row.framework, experiment.recipe(row.recipe))
        for row in rows[:MAX_COMPARED]
    ]
    kind = "untrained" if {row.method for row in rows} == {UNTRAINED} else "trained"
    if not method_comparisons.leads(experiment):
        kind = "init"
    init = INITS.get(rows[0].init if rows else "", "")
    return WORDS.say("alone", kind, init, experiment.scored, means, max(0, len(rows) - MAX_COMPARED))


def _of_costs(costs: Sequence[Comparison]) -> Asked:
    """What one method costs against another, as a question."""
    named = {WORDS.say("pair", one.name("a"), one.name("b")): one for one in costs}
    return Asked(
        experiment=costs[0].experiment,
        subject="fine_tuning",
        place=costs[0].place,
        rows={name: one.row for name, one in named.items()},
        own_best="",
        edges=edges_of_methods(costs),
        starts={name: _methods(one) for name, one in named.items()},
        perplexities={},
        baseline=[],
        pairs=costs,
    )
