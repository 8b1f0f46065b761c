"""At which learning rate of a sweep training becomes unstable: counts of runs by rate, and what they say."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from seedbed.analysis.records import RISE_NATS, RISE_SHARE
from seedbed.analysis.table_rows import RunRow
from seedbed.analysis.verdicts import learned
from seedbed.core import wording
from seedbed.core.rows import grouped
from seedbed.core.tasks import Task
from seedbed.core.wording import Words
from seedbed.core.words import framework_name, short_number
from seedbed.report.documents.blocks import Block, Bullets, Details, Paragraph, Table
from seedbed.report.experiment import Experiment
from seedbed.report.parts import MAX_LISTED, PLACE, capped, fold, headers, heading, heading_text

KEY = "learning_rate"
MAX_NAMED = 4  # sweeps without any unstable run that have a sentence each
MAX_OPEN = 16  # rows of a table that is not folded away
WORDS = Words("report/stability")
# columns of runs.csv that are counted, and their headers; a task has those that its runs know
COUNTED = wording.data("report/titles")["counted"]
OF_OUTPUTS = wording.data("report/titles")["counted_of"]  # by outputs, where they are called otherwise


def rise(task: Task) -> str:
    """The rise of the training loss that makes a run unstable, in words."""
    return WORDS.say("rise", RISE_SHARE, RISE_NATS, task)


@dataclass(frozen=True)
class Sweep:
    """The runs of a swept family on one side, by learning rate in rising order."""

    names: tuple[str, ...]  # dataset, model, family, framework, init
    rates: dict[float, list[RunRow]]

    @property
    def unstable(self) -> list[float]:
        """The rates at which a run is unstable."""
        return [rate for rate, runs in self.rates.items() if any(run.unstable for run in runs)]


def sweeps(experiment: Experiment) -> list[Sweep]:
    """Every family that sweeps the learning rate, by dataset, model, framework and init; none where the runs
    do not tell whether they were stable."""
    recipes = experiment.reporting["recipes"]
    swept = [run for run in experiment.runs if KEY in recipes[run.recipe]["swept"]]
    if any(run.unstable is None for run in swept):
        return []
    found = []
    for names, runs in grouped(swept, *PLACE, "recipe_family", "framework", "init").items():
        rates: dict[float, list[RunRow]] = {}
        for run in sorted(runs, key=lambda run: recipes[run.recipe]["swept"][KEY]):
            rates.setdefault(recipes[run.recipe]["swept"][KEY], []).append(run)
        if len(rates) > 1:
            found.append(Sweep(names, rates))
    return found


def stability_blocks(experiment: Experiment) -> list[Block]:
    """The sentences and the table, below a heading; empty where no learning rate is swept."""
    found = sweeps(experiment)
    if not found:
        return []
    table = capped(stability_table(found, experiment.task), "learning_rates", "runs.csv")
    many = sum(len(sweep.rates) for sweep in found) > MAX_OPEN
    return [
        heading("stability", 3),
        Paragraph(WORDS.say("note", rise(experiment.task), experiment.task)),
        Bullets(sentences(found, experiment.task.words.baseline)),
        *([Details(heading_text("every_rate"), table)] if many else table),
    ]


def sentences(found: Sequence[Sweep], baseline: str) -> list[str]:
    """One sentence a sweep; of many those without any unstable run share one.

    `baseline` says what a run that learned something is: above the majority class.
    """
    onsets = [(sweep, onset(sweep, found)) for sweep in found]
    stable = [sweep for sweep, one in onsets if one.first is None and not one.failed]
    if len(stable) <= MAX_NAMED:
        stable = []
    told = [WORDS.say("sweep", one, baseline) for sweep, one in onsets if sweep not in stable]
    if len(told) > MAX_LISTED:
        told = [*told[:MAX_LISTED], WORDS.say("left_out", len(told) - MAX_LISTED)]
    if stable:
        largest = sorted({max(sweep.rates) for sweep in stable})
        told.append(WORDS.say("stable_sweeps", len(stable), bool(told), largest))
    return told


@dataclass(frozen=True)
class Onset:
    """At which learning rate of a sweep instability begins.

    Attributes:
        names: what tells the sweep from the others: its family, and what else differs.
        largest: the largest rate tried.
        first: the smallest rate at which a run is unstable; None where none is.
        runs, unstable: how many there are at the first such rate, else at the largest one.
        stable: the largest rate at which no run is unstable; None without one.
        failed: (rate, failed runs, runs) of the rates from which on, up to the largest, runs collapsed or
            learned nothing, stable or not.
    """

    names: Sequence[str]
    largest: float
    first: float | None
    runs: int
    unstable: int
    stable: float | None
    failed: Sequence[tuple[float, int, int]]


def onset(sweep: Sweep, among: Sequence[Sweep]) -> Onset:
    """At which learning rate of a sweep instability begins.

    Args:
        sweep: whose runs are looked at.
        among: the sweeps that it has to be told from.
    """
    rates, unstable = list(sweep.rates), sweep.unstable
    first = unstable[0] if unstable else None
    runs = sweep.rates[rates[-1] if first is None else first]
    stable = [rate for rate in rates if rate not in unstable]
    return Onset(
        names=[
            name
            for place, name in enumerate(sweep.names)
            if place == 2 or len({other.names[place] for other in among}) > 1
        ],
        largest=rates[-1],
        first=first,
        runs=len(runs),
        unstable=sum(bool(run.unstable) for run in runs),
        stable=stable[-1] if stable else None,
        failed=failures(sweep),
    )


def failures(sweep: Sweep) -> list[tuple[float, int, int]]:
    """From which rate on, up to the largest tried, runs collapsed or learned nothing, stable or not: rate,
    failed runs and runs of each."""
    counts = [
        (rate, sum(bool(run.collapsed or learned(run) is False) for run in runs), len(runs))
        for rate, runs in sweep.rates.items()
    ]
    return list(itertools.takewhile(lambda count: count[1], reversed(counts)))[::-1]


def stability_table(found: Sequence[Sweep], task: Task) -> Table:
    """Counts of runs by learning rate."""
    titles = COUNTED | OF_OUTPUTS.get(task.outputs, {})
    first = next(iter(found[0].rates.values()))[0]
    columns = [key for key in COUNTED if first[key] is not None]
    keys = ("dataset", "model", "recipe", "framework", "init", "learning_rate", "runs")
    body = [
        [
            *(framework_name(name) for name in sweep.names),
            short_number(rate),
            len(runs),
            *(sum(bool(run[key]) for run in runs) for key in columns),
        ]
        for sweep in found
        for rate, runs in sweep.rates.items()
    ]
    names = [*headers("stability", *keys), *(titles[key] for key in columns)]
    caption = WORDS.say("caption")
    return fold(Table("stability", names, body, caption, right=range(6, len(names))), range(5))
