"""The opening of an experiment: the answer, what a bag of words reaches, and what to do next, a line each.

Every line is made from contrasts, summary and plans. The long reasons stand in the sections below.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from seedbed.analysis.findings import favours, finding, headline_rows, interest
from seedbed.analysis.sizes import Sized, sized
from seedbed.analysis.table_rows import SummaryRow
from seedbed.analysis.verdicts import is_withheld, learned_nothing, verdict
from seedbed.core import wording
from seedbed.core.bag_of_words import bag_name
from seedbed.core.known import known
from seedbed.core.rows import Row, grouped
from seedbed.core.tasks import METRICS
from seedbed.core.wording import Words
from seedbed.core.words import code, framework_name, mean_sd, size_text
from seedbed.report import looks, method_comparisons, sizes, undecided
from seedbed.report.answer import (
    Asked,
    Difference,
    answer,
    collapsed,
    difference_of,
    of_gains,
    of_inits,
    of_pairs,
    pairs_of,
)
from seedbed.report.experiment import Experiment, setting_text, where
from seedbed.report.method_comparisons import INITS, UNTRAINED, Comparison
from seedbed.report.next_step import Step, agreement, next_step, say_step
from seedbed.report.undecided import Unlearned

WORDS = Words("report/opening")
MAX_GROUPS = 12  # questions with lines of their own; more are counted
MAX_PAIRS = 6  # methods that are compared in words; more are counted
MAX_COMPARED = 4  # models and datasets that are compared in words; more are counted


@dataclass(frozen=True)
class Line:
    """A line of the opening.

    Attributes:
        kind: answer, looks, collapsed, compared, baseline or next; of two experiments also differs, of the
            terminal also warning.
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
    asked = [*of_gains(experiment), *of_inits(experiment)]
    others = _others(experiment, led=bool(asked))
    curves = [one for one in sized(experiment) if one.told_size is not None]
    if curves:
        several = len(curves) > 1
        groups = [
            Group(sizes.place(experiment, one) if several else "", _lines_of_sizes(experiment, one, asked))
            for one in curves[:MAX_GROUPS]
        ]
        return Opening("", groups, others)
    if not asked:
        return Opening("", [Group("", _without_question(experiment))], others)
    if len(asked) == 1:
        return Opening("", [Group("", _lines(asked[0]))], others)
    groups = [Group(one.place, _lines(one)) for one in asked[:MAX_GROUPS]]
    if len(asked) > MAX_GROUPS:
        others = [Line("answer", WORDS.say("left_out", len(asked) - MAX_GROUPS)), *others]
    steps = {line.text for group in groups for line in group.lines if line.kind == "next"}
    if len(steps) == 1:
        groups = [replace(one, lines=[line for line in one.lines if line.kind != "next"]) for one in groups]
        others = [*others, Line("next", steps.pop())]
    return Opening(_lead(experiment, asked), groups, others)


def _lines(asked: Asked) -> list[Line]:
    """Answer, collapsed runs, other comparisons, bag of words, and what to do next."""
    found = [
        ("answer", [answer_text(asked)]),
        ("looks", looks.sentences(asked)),
        ("collapsed", collapsed_texts(asked)),
        ("compared", _pairs(asked.pairs)),
        ("baseline", _baseline(asked.experiment, asked.baseline)),
        ("next", [say_step(next_step(asked))]),
    ]
    return [Line(kind, text) for kind, texts in found for text in texts]


def _lines_of_sizes(experiment: Experiment, one: Sized, asked: Sequence[Asked]) -> list[Line]:
    """What the checkpoint is worth in labels, differences, collapsed runs, and what to do next: as at the
    largest size."""
    found = [
        ("answer", sizes.answer(experiment, one)),
        ("compared", sizes.differences(experiment, one)),
        ("collapsed", sizes.collapsed(one)),
        ("baseline", sizes.baseline(experiment, one)),
    ]
    places = ((each, next(iter(each.rows.values()))) for each in asked)
    here = [each for each, row in places if (row["dataset"], row["model"]) == (one.dataset, one.model)]
    found += [("next", say_step(next_step(each))) for each in here[-1:]]
    return [Line(kind, text) for kind, text in found if text]


def _lead(experiment: Experiment, asked: Sequence[Asked]) -> str:
    """How many comparisons have which verdict."""
    counts: dict[str, Counter[str]] = {}
    for one in asked:
        counts.setdefault(one.subject, Counter()).update(
            finding(experiment, row) for row in one.rows.values()
        )
    return WORDS.say("lead", counts, interest(experiment), experiment.metric, experiment.confidence)


def answer_text(asked: Asked) -> str:
    """The answer to a question, as a sentence."""
    return WORDS.say("answer", answer(asked))


def collapsed_texts(asked: Asked) -> list[str]:
    """How many runs behind a question collapsed, and its differences without them; nothing where none did."""
    found = collapsed(asked)
    return [WORDS.say("collapsed", found, asked.experiment.level)] if found else []


# --- a bag of words -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Baseline:
    """A bag of words beside the means over seeds.

    Attributes:
        size: on how many training texts bag and runs were trained; empty where one bag is beside all means.
        name: bag of words, or of characters.
        metric: by which they are compared.
        bag: what it has on test.
        beats, level, below: starts, or methods, whose means have the bag above their intervals, in one of
            them, and below them in every framework.
    """

    size: str
    name: str
    metric: str
    lower: bool
    bag: float
    beats: Sequence[str]
    level: Sequence[str]
    below: Sequence[str]


def baseline(experiment: Experiment, rows: Sequence[SummaryRow], size: str = "") -> Baseline | None:
    """A bag of words beside the means of some rows of the summary; None without one, or without a mean.

    Args:
        experiment: whose rows these are.
        rows: of one dataset, model and size of training.
        size: of training, in words, where several are told apart.
    """
    rows = [row for row in rows if row.mean is not None]  # undefined where a run has no finite score
    if not rows or rows[0].bag_of_words is None:
        return None
    bag = rows[0].bag_of_words
    by_start: dict[str, set[str]] = {}
    for row in rows:
        by_start.setdefault(_start(experiment, row), set()).add(_beside(bag, row))
    sides = {start: found.pop() if len(found) == 1 else "level" for start, found in by_start.items()}
    named = {side: [start for start, one in sides.items() if one == side] for side in BESIDE}
    lower = METRICS[rows[0].metric].direction < 0
    return Baseline(size, bag_name(rows[0]), rows[0].metric, lower, bag, **named)


BESIDE = ("beats", "level", "below")


def _beside(bag: float, row: SummaryRow) -> str:
    """Where a bag of words lies beside the interval of a mean, or beside a mean without one."""
    low, high = row.interval or (known(row.mean), known(row.mean))
    above = "beats" if METRICS[row.metric].direction > 0 else "below"
    below = "below" if above == "beats" else "beats"
    return above if bag > high else below if bag < low else "level"


def _start(experiment: Experiment, row: SummaryRow) -> str:
    """What tells a mean from others: where its runs start, or their method."""
    if len(experiment.inits) > 1:
        return INITS[row.init]
    return method_comparisons.method_name(experiment.reporting["recipes"], row.recipe)


def _baseline(experiment: Experiment, rows: Sequence[SummaryRow], size: str = "") -> list[str]:
    found = baseline(experiment, rows, size)
    return [WORDS.say("baseline", found)] if found else []


# --- other comparisons --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Compared:
    """One method, model, dataset or framework against another.

    Attributes:
        kind: method, model, dataset or framework.
        a, b: names of the sides.
        verdict: higher where the first is better, or gains more; of frameworks that of their agreement.
        withheld: why no verdict stands; empty where one may.
        difference: the first minus the second; None where it stands in a table below.
        place: where, in words; empty where it needs no name.
        level: of the interval in words; empty where another one of the line names it.
        margin: of frameworks, within which they agree; else 0.
    """

    kind: str
    a: str
    b: str
    verdict: str
    withheld: str
    difference: Difference | None
    place: str
    level: str
    margin: float = 0.0


def _pairs(pairs: Sequence[Comparison]) -> list[str]:
    """Comparisons of methods that train, in one line; many are counted."""
    if len(pairs) > MAX_PAIRS:
        return [_counted(pairs[0].experiment, "method", [one.row for one in pairs])]
    placed = len({one.place for one in pairs}) > 1
    told = [compared_methods(one, number == 0, placed) for number, one in enumerate(pairs)]
    if pairs and method_comparisons.tabled(pairs[0].experiment):
        told = [replace(one, difference=None) for one in told]
    return [WORDS.say("compared", told)] if told else []


def compared_methods(one: Comparison, first: bool, placed: bool) -> Compared:
    """One method against another; the first of a line names the level, and those of several places theirs."""
    return Compared(
        kind="method",
        a=one.name("a"),
        b=one.name("b"),
        verdict=favours(one.row),
        withheld=verdict(one.row) if is_withheld(one.row) else "",
        difference=difference_of("", one.row),
        place=one.place if placed else "",
        level=one.experiment.level if first else "",
    )


def _others(experiment: Experiment, *, led: bool) -> list[Line]:
    """Methods, models and datasets against each other; without another question the frameworks, too."""
    lines: list[str] = []
    pairs = pairs_of(experiment)
    if led and not method_comparisons.leads(experiment):
        lines += _pairs(pairs)
    for family in ("model", "dataset", *([] if led or pairs else ["framework"])):
        rows = headline_rows(experiment, family)
        decided = any(_is_decided(row) for row in rows)
        if len(rows) > MAX_COMPARED or (len(rows) > 1 and not decided):
            lines.append(_counted(experiment, family, rows))
        elif rows:
            told = [compared(experiment, row, number == 0) for number, row in enumerate(rows)]
            lines.append(WORDS.say("compared", told))
    return [Line("compared", text) for text in lines]


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
        difference=difference_of("", row),
        place=WORDS.say("place", here, start, framework if several else ""),
        level=experiment.level if first else "",
        margin=row["margin"] or 0.0 if by_framework else 0.0,
    )


# --- without differences of inits or gains ------------------------------------------------------------------


def _without_question(experiment: Experiment) -> list[Line]:
    """The lines of an experiment that has neither both inits nor an untrained model to compare with."""
    asked, led = of_pairs(experiment), method_comparisons.leads(experiment)
    rows = [row for row in experiment.summary if row.selection == "equal"]
    unlearned = _nothing_at_all(experiment)
    texts = [
        WORDS.say("no_run_learned", found, name if len(unlearned) > 1 else "")
        for name, found in unlearned.items()
    ]
    texts += [] if asked and not led else [_alone(experiment, rows)]
    lines = [Line("answer", text) for text in texts]
    kind = "compared" if lines else "answer"
    lines += [Line(kind, text) for text in _pairs([pair for one in asked for pair in one.pairs])]
    lines += [Line("collapsed", text) for one in asked for text in collapsed_texts(one)]
    if len({(row.dataset, row.model) for row in rows}) == 1:
        for of_size in grouped(rows, "train_size").values():
            size = size_text(experiment.reporting["recipes"], of_size[0].recipe)
            lines += [Line("baseline", text) for text in _baseline(experiment, of_size, size)]
    step = Step("add_untrained" if led else "add_init", None)
    if unlearned:
        step = Step("unlearned", next(iter(unlearned.values())))
    elif asked and not led:
        step = next_step(asked[0])
    return [*lines, Line("next", say_step(step))]


def _nothing_at_all(experiment: Experiment) -> dict[str, Unlearned]:
    """The runs of each dataset, where no run of the experiment learned anything."""
    runs = [run for run in experiment.runs if run.method != UNTRAINED]
    if not learned_nothing(runs):
        return {}
    datasets = grouped(runs, "dataset").items()
    return {name: undecided.unlearned(experiment, of_dataset, "all") for (name,), of_dataset in datasets}


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
