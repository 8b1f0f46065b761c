"""At which learning rate of a sweep training becomes unstable: counts of runs by rate, and what they say."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from seedbed.analysis.records import RISE_NATS, RISE_SHARE
from seedbed.analysis.verdicts import learned
from seedbed.core.rows import Row, grouped
from seedbed.core.words import count, framework_name, join, short_number
from seedbed.report import wording
from seedbed.report.documents.blocks import Block, Bullets, Details, Heading, Paragraph, Table
from seedbed.report.experiment import Experiment
from seedbed.report.parts import MAX_LISTED, PLACE, capped, fold

KEY = "learning_rate"
MAX_NAMED = 4  # sweeps without any unstable run that have a sentence each
MAX_OPEN = 16  # rows of a table that is not folded away
# columns of runs.csv that are counted, and their headers; a task has those that its runs know
COUNTED = wording.data("titles")["counted"]
RISE = (
    "the mean training loss of an epoch exceeds that of the epoch before by more than "
    f"{RISE_SHARE:.0%} and by more than {RISE_NATS:g} nats"
)
NOTE = (
    f"Unstable: a run that diverged, or of which {RISE}. A learning rate is called stable if none of its "
    "runs is unstable; so few seeds may miss an instability that is rare. Collapsed: one class, or one "
    "answer, throughout validation or test."
)


@dataclass(frozen=True)
class Sweep:
    """The runs of a swept family on one side, by learning rate in rising order."""

    names: tuple[str, ...]  # dataset, model, family, framework, init
    rates: dict[float, list[Row]]

    @property
    def unstable(self) -> list[float]:
        """The rates at which a run is unstable."""
        return [rate for rate, runs in self.rates.items() if any(run["unstable"] for run in runs)]


def sweeps(experiment: Experiment) -> list[Sweep]:
    """Every family that sweeps the learning rate, by dataset, model, framework and init; none where the runs
    do not tell whether they were stable."""
    recipes = experiment.reporting["recipes"]
    swept = [run for run in experiment.runs if KEY in recipes[run["recipe"]]["swept"]]
    if any(run.get("unstable") is None for run in swept):
        return []
    found = []
    for names, runs in grouped(swept, *PLACE, "recipe_family", "framework", "init").items():
        rates: dict[float, list[Row]] = {}
        for run in sorted(runs, key=lambda run: recipes[run["recipe"]]["swept"][KEY]):
            rates.setdefault(recipes[run["recipe"]]["swept"][KEY], []).append(run)
        if len(rates) > 1:
            found.append(Sweep(names, rates))
    return found


def stability_blocks(experiment: Experiment) -> list[Block]:
    """The sentences and the table, below a heading; empty where no learning rate is swept."""
    found = sweeps(experiment)
    if not found:
        return []
    table = capped(stability_table(found), "learning rates", "runs.csv")
    many = sum(len(sweep.rates) for sweep in found) > MAX_OPEN
    return [
        Heading("At which learning rate training becomes unstable", 3),
        Paragraph(NOTE),
        Bullets(sentences(found)),
        *([Details("Unstable and otherwise failed runs by learning rate", table)] if many else table),
    ]


def sentences(found: Sequence[Sweep]) -> list[str]:
    """One sentence a sweep; of many those without any unstable run share one."""
    stable = [sweep for sweep in found if not sweep.unstable and not failures(sweep)]
    if len(stable) <= MAX_NAMED:
        stable = []
    told = [f"{sentence(sweep, found)}{failures(sweep)}" for sweep in found if sweep not in stable]
    if len(told) > MAX_LISTED:
        told = [*told[:MAX_LISTED], f"{count(len(told) - MAX_LISTED, 'more sweep')} in runs.csv."]
    if stable:
        largest = join([short_number(rate) for rate in sorted({max(sweep.rates) for sweep in stable})])
        others = "the other " if told else ""
        told.append(
            f"No run was unstable in {others}{count(len(stable), 'sweep')} by recipe, framework and init, up "
            f"to the largest learning rate tried, {largest}."
        )
    return told


def sentence(sweep: Sweep, among: Sequence[Sweep]) -> str:
    """At which learning rate instability begins, and the largest stable one; or that none was seen.

    `among` are the sweeps that it has to be told from.
    """
    words = [
        framework_name(name)
        for place, name in enumerate(sweep.names)
        if place == 2 or len({other.names[place] for other in among}) > 1
    ]
    start = f"{', '.join(words)}:"
    unstable, rates = sweep.unstable, list(sweep.rates)
    if not unstable:
        return (
            f"{start} no run was unstable, up to the largest learning rate tried, {short_number(rates[-1])} "
            f"({count(len(sweep.rates[rates[-1]]), 'run')})."
        )
    first = unstable[0]
    runs = sweep.rates[first]
    bad = sum(run["unstable"] for run in runs)
    told = (
        f"{start} instability begins at a learning rate of {short_number(first)}, the smallest tried at "
        f"which any run is unstable ({bad} of {count(len(runs), 'run')})"
    )
    stable = [rate for rate in rates if rate not in unstable]
    if not stable:
        return f"{told}; no learning rate tried was stable."
    below = "" if stable[-1] < first else ", which lies above it: the runs do not tell a clear border"
    return f"{told}; the largest stable one is {short_number(stable[-1])}{below}."


def failures(sweep: Sweep) -> str:
    """From which rate on, up to the largest tried, runs collapsed or learned nothing, stable or not: a
    sentence behind another; empty where none did."""
    failed = {
        rate: sum(bool(run.get("collapsed") or learned(run) is False) for run in runs)
        for rate, runs in sweep.rates.items()
    }
    above = list(itertools.takewhile(lambda rate: failed[rate], reversed(sweep.rates)))
    if not above:
        return ""
    told = ", ".join(
        f"{failed[rate]} of {count(len(sweep.rates[rate]), 'run')} at {short_number(rate)}"
        for rate in reversed(above)
    )
    return f" Runs collapsed or were not {_bar(sweep)} from {short_number(above[-1])} on ({told})."


def _bar(sweep: Sweep) -> str:
    run = next(iter(sweep.rates.values()))[0]
    generates = run.get("not_above_untrained") is not None
    return "better than the untrained model" if generates else "above the majority class"


def stability_table(found: Sequence[Sweep]) -> Table:
    """Counts of runs by learning rate."""
    first = next(iter(found[0].rates.values()))[0]
    columns = [key for key in COUNTED if first.get(key) is not None]
    header = ["dataset", "model", "recipe", "framework", "init", "learning rate", "runs"]
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
    names = [*header, *(COUNTED[key] for key in columns)]
    caption = "Unstable and otherwise failed runs by learning rate. Numbers of runs, over seeds."
    return fold(Table("stability", names, body, caption, right=range(6, len(names))), range(5))
