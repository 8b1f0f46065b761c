"""What the opening and the first table say where sizes of training are swept: what the checkpoint is worth in
labels, and with how many a bag of words does as well."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from seedbed.analysis.label_worth import FEWER, MORE
from seedbed.analysis.sizes import BesideBag, Estimate, Number, Sized, Worth, sized
from seedbed.analysis.table_rows import SummaryRow
from seedbed.core.bag_of_words import bag_name
from seedbed.core.known import known
from seedbed.core.rows import Row
from seedbed.core.wording import Words
from seedbed.core.words import framework_name, metric_name, unit_of, with_unit
from seedbed.report.documents.blocks import Cell, Header, Table
from seedbed.report.experiment import Experiment, questions, where
from seedbed.report.method_comparisons import INITS
from seedbed.report.parts import (
    header,
    mean_cell,
    mean_header,
    number_cell,
    value_cell,
)

WORDS = Words("report/sizes")
MAX_ROWS = 14
SIGNS = {MORE: ">", FEWER: "<"}
DIGITS = 3  # of a number of labels, which is read off a curve


# --- sentences ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Told:
    """A number of labels in words.

    Attributes:
        of: the framework of the runs, empty where there is one; or the init whose score the labels reach.
        number: of labels.
        interval: its bounds in words; empty without any.
        no_verdict: why the number bears no verdict; empty where it does.
    """

    of: str
    number: str
    interval: str
    no_verdict: str


def answer(experiment: Experiment, one: Sized) -> str:
    """What the checkpoint is worth at the size of which a sentence tells, and from which smaller size it is
    ahead of random weights with all labels, with each framework."""
    size = known(one.told_size)
    told = [
        _told(worth[size], framework if len(one.worth) > 1 else "")
        for framework, worth in one.worth.items()
        if size in worth
    ]
    ahead = [
        (ahead_from, framework if len(one.worth) > 1 else "")
        for framework, worth in one.worth.items()
        if (ahead_from := _ahead(worth, one.sizes[-1])) is not None
    ]
    return WORDS.say("worth", size, told, experiment.level, ahead, one.sizes[-1])


def _ahead(worth: Mapping[int, Worth], largest: int) -> int | None:
    """The smallest size with which the checkpoint is ahead of random weights with the largest: the interval
    of its worth lies beyond. None if that takes the largest size."""
    found = (size for size, one in worth.items() if one.low and one.low.bound == MORE and not one.no_verdict)
    size = min(found, default=largest)
    return size if size < largest else None


def _told(found: Estimate, of: str) -> Told:
    bounds = (found.low, found.high)
    told = interval_text(*map(known, bounds)) if all(bounds) else ""
    return Told(of, number_text(found.number), told, found.no_verdict)


def interval_text(low: Number, high: Number) -> str:
    """An interval of numbers of labels: 980 to 1,610."""
    return WORDS.say("interval", number_text(low), number_text(high))


def number_text(number: Number) -> str:
    """A number of labels, or a bound of it: 1,240, more than 1,800."""
    return " ".join(filter(None, (number.bound, _labels(number))))


def _short(number: Number) -> str:
    """The same in a cell: > 1,800."""
    return " ".join(filter(None, (SIGNS.get(number.bound, ""), _labels(number))))


def _labels(number: Number) -> str:
    """A number of labels; of an interpolated one the first digits, of a bound, which is a size, all."""
    labels = number.labels
    return f"{labels:,.0f}" if number.bound else f"{float(f'{labels:.{DIGITS}g}'):,.0f}"


@dataclass(frozen=True)
class Ends:
    """The difference of both inits at the smallest and at the largest size, with one framework.

    Attributes:
        framework: empty where there is one.
        first, last: the number of texts and the difference.
    """

    framework: str
    first: tuple[int, float]
    last: tuple[int, float]


def differences(experiment: Experiment, one: Sized) -> str:
    """The differences of both inits at the smallest and at the largest size; empty where none is known."""
    found = []
    frameworks = list(one.worth)
    for framework in frameworks:
        rows = _differences(experiment, one, framework)
        known_rows = {size: row["delta"] for size, row in rows.items() if row["delta"] is not None}
        if len(known_rows) > 1:
            (first, *_), (*_, last) = known_rows.items(), known_rows.items()
            found.append(Ends(framework if len(frameworks) > 1 else "", first, last))
    return WORDS.say("differences", found, experiment.metric) if found else ""


def _differences(experiment: Experiment, one: Sized, framework: str) -> dict[int, Row]:
    """The contrast of both inits at each size, each side at its best, with a framework."""
    sizes = {row["chosen"]: row["train_size"] for rows in one.curves.values() for row in rows}
    found = {}
    for question in questions(experiment):
        row = question.headline().get(framework)
        if (question.dataset, question.model) == (one.dataset, one.model) and row is not None:
            size = sizes.get(row["recipe_a"])
            if size is not None:
                found[size] = row
    return dict(sorted(found.items()))


@dataclass(frozen=True)
class Lead:
    """From where on the checkpoint is ahead of a bag of words, or behind it, with one framework.

    Attributes:
        framework: empty where there is one, or all say the same.
        side: AHEAD or BEHIND, at the largest size; OPEN where the interval of the start holds all sizes.
        everywhere: whether the interval lies below all sizes.
        start: from how many labels on; None of OPEN.
    """

    framework: str
    side: str
    everywhere: bool = False
    start: Told | None = None


AHEAD, BEHIND, OPEN = "ahead", "behind", "open"


def baseline(experiment: Experiment, one: Sized) -> str:
    """With how many texts a bag of words reaches what both inits have with all, with the first framework; and
    from where on the checkpoint is ahead of it, with each framework. Empty without bags of words."""
    if not one.bags:
        return ""
    frameworks = list(dict.fromkeys(framework for framework, _ in one.bags))
    size = one.sizes[-1]
    needed = [
        _told(beside.worth[size], init)
        for init in reversed(INITS)
        if (beside := one.bags.get((frameworks[0], init))) and size in beside.worth
    ]
    leads = [
        _lead(beside, framework if len(frameworks) > 1 else "")
        for (framework, init), beside in one.bags.items()
        if init == "pretrained" and beside.passes
    ]
    if len({replace(lead, framework="") for lead in leads}) == 1:
        leads = [replace(leads[0], framework="")]
    name = bag_name(next(row for row in experiment.summary if _has_bag(row, one.dataset)))
    framework = frameworks[0] if len(frameworks) > 1 else ""
    return WORDS.say("baseline", name, size, framework, needed, leads, experiment.metric, experiment.level)


def _has_bag(row: SummaryRow, dataset: str) -> bool:
    return row.dataset == dataset and row.bag_of_words is not None


def _lead(beside: BesideBag, framework: str) -> Lead:
    start = beside.passed or known(beside.passes)
    side = BEHIND if beside.passed else AHEAD
    bounds = [end and end.bound for end in (start.low, start.high)]
    if not start.no_verdict and bounds == [FEWER, MORE]:
        return Lead(framework, OPEN)
    everywhere = not start.no_verdict and bounds == [FEWER, FEWER]
    return Lead(framework, side, everywhere, _told(start, ""))


def place(experiment: Experiment, one: Sized) -> str:
    """Where the curves were measured, in as many words as tell it from others."""
    several = len({each.recipe for each in sized(experiment)}) > 1
    return where(experiment, {"dataset": one.dataset, "model": one.model}, one.recipe if several else None)


def collapsed(one: Sized) -> str:
    """How many runs collapsed, and at which sizes; empty where none did."""
    rows = [row for rows in one.curves.values() for row in rows if row["n_collapsed"]]
    if not rows:
        return ""
    sizes = sorted({row["train_size"] for row in rows})
    runs = sum(row["n_seeds"] for rows in one.curves.values() for row in rows)
    return WORDS.say("collapsed", sum(row["n_collapsed"] for row in rows), runs, sizes)


# --- the table ----------------------------------------------------------------------------------------------


def table(experiment: Experiment) -> Table:
    """A row for each size: scores of both inits and of the baselines, and what the checkpoint is worth."""
    lines = [
        _Line(experiment, one, framework, size)
        for one in sized(experiment)
        for framework in dict.fromkeys(of for of, _ in one.curves)
        for size in one.sizes
    ]
    metric = experiment.metric
    baselines = {
        with_unit(header("sizes", name), unit_of(metric).value): name
        for name in ("bag_of_words", "linear_probe")
    }
    interval_of_worth = _worth_interval_header(experiment.level)
    columns: list[tuple[str | Cell, Callable[[_Line], Any]]] = [
        (header("any", "dataset"), lambda line: line.one.dataset),
        (header("any", "model"), lambda line: line.one.model),
        (header("any", "recipe"), lambda line: line.one.recipe),
        (header("any", "framework"), lambda line: framework_name(line.framework)),
    ]
    columns = [column for column in columns if len({column[1](line) for line in lines}) > 1]
    named = len(columns)
    columns += [(header("sizes", "texts"), lambda line: number_cell(line.size))]
    columns += [(mean_header(INITS[init], metric), partial(_mean, init)) for init in experiment.inits]
    columns += [(text, partial(_baseline, name)) for text, name in baselines.items()]
    columns += [
        (header("sizes", "worth"), lambda line: line.worth),
        (interval_of_worth, lambda line: line.worth_interval),
    ]
    kept = [column for column in columns if any(column[1](line) is not None for line in lines)]
    names: Header = [name for name, _ in kept]
    shown = lines[:MAX_ROWS]
    body = [[cell(line) for _, cell in kept] for line in shown]
    # on a narrow screen: the size, the scores and what the checkpoint is worth
    spare = [index for index, (name, _) in enumerate(kept) if name in (*baselines, interval_of_worth)]
    caption = WORDS.say(
        "caption",
        experiment.scored,
        metric_name(metric),
        sorted({row.n_seeds for row in experiment.summary}),
        max(0, len(lines) - MAX_ROWS),
        [name for text, name in baselines.items() if text in names],
    )
    return Table("first", names, body, caption, range(named, len(names)), spare)


def _mean(init: str, line: "_Line") -> Cell | None:
    return line.mean(init)


def _baseline(name: str, line: "_Line") -> Cell | None:
    return line.baseline(name)


def _worth_interval_header(level: str) -> Cell:
    what = header("sizes", "worth")
    return Cell(level, copied=(header("any", "low", what=what), header("any", "high", what=what)))


@dataclass(frozen=True)
class _Line:
    """A row of the table: one size with one framework."""

    experiment: Experiment
    one: Sized
    framework: str
    size: int

    def _row(self, init: str) -> Row | None:
        rows = self.one.curves.get((self.framework, init), ())
        return next((row for row in rows if row["train_size"] == self.size), None)

    def mean(self, init: str) -> Cell | None:
        """The mean of an init over seeds."""
        row = self._row(init)
        return None if row is None else mean_cell(row["mean"], row["sd"], self.experiment.metric)

    def baseline(self, name: str) -> Cell | None:
        """What a baseline on as many texts has, by its column of learning_curves.csv."""
        row = next((row for init in INITS if (row := self._row(init)) is not None), None)
        return None if row is None else value_cell(self.experiment.metric, row.get(name))

    @property
    def _worth(self) -> Worth | None:
        return self.one.worth.get(self.framework, {}).get(self.size)

    @property
    def worth(self) -> Cell | None:
        """The number of labels with which random weights reach the checkpoint's score."""
        worth = self._worth
        return None if worth is None else Cell(_short(worth.number), worth.number.labels)

    @property
    def worth_interval(self) -> Cell | None:
        """Its interval."""
        worth = self._worth
        if worth is None or worth.low is None or worth.high is None:
            return None
        ends = worth.low, worth.high
        copied = (ends[0].labels, ends[1].labels)
        return Cell(WORDS.say("interval", *map(_short, ends)), copied=copied)
