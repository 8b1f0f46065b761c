"""The methods of an experiment in words: what fine-tuning brings, what an adapter costs and what it saves.

Every sentence is made from contrasts of the family `method` and from the runs behind them.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median
from typing import Any

from seedbed.analysis.verdicts import COLLAPSE, FEW_SEEDS, NOTHING_LEARNED, ONE_CLASS, UNLEARNED, is_withheld
from seedbed.core.known import known
from seedbed.core.methods import ADAPTERS, METHODS
from seedbed.core.rows import Row
from seedbed.core.words import (
    capital,
    count,
    framework_name,
    join,
    key_text,
    mean_sd,
    metric_name,
    percent,
    short_number,
    value_text,
)
from seedbed.report import undecided, wording
from seedbed.report.experiment import (
    Experiment,
    deltas,
    difference,
    evidence,
    favours,
    interval,
    range_text,
    verdict,
    without_interval,
)
from seedbed.report.parts import PLACE
from seedbed.report.power import rests_on

NAMES = {name: method.words for name, method in METHODS.items()}
UNTRAINED = "none"
FLOAT32 = 4  # bytes
MAX_TOLD = 12  # comparisons in sentences; more are counted
# keys of a recipe that say which it is, or that belong to its method; and those of them that adapters share
OF_METHODS = {"family", "swept", "sweep", "method", "quantization", "lora", "frozen_dtype"}
OF_ADAPTERS = {"lora", "frozen_dtype"}
FEW_QUESTIONS, FEW_TEXTS = 30, 10  # fewer in a test set are warned of
SHORTEST = 5  # seconds; of less no relative difference is told, as starting up and noise are much of it
INITS = wording.data("titles")["inits"]
# what a method may save: a column of runs.csv, the verb, how a value is told
COSTS: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("peak_memory_mib", "peaks at", lambda value: f"{value:,.0f} MiB"),
    ("train_seconds", "trains for", lambda value: f"{value:,.1f} s"),
)


@dataclass(frozen=True)
class Comparison:
    """One method against another, on one dataset with one model, from one init.

    Attributes:
        experiment: by its first metric.
        rows: the contrast of the family `method` by metric, the experiment's first metric first.
    """

    experiment: Experiment
    rows: Mapping[str, Row]

    @property
    def row(self) -> Row:
        """The contrast by the experiment's first metric."""
        return next(iter(self.rows.values()))

    def method(self, side: str) -> str:
        """The method of side a or b."""
        return self.experiment.reporting["recipes"][self.row[f"recipe_{side}"]]["method"]

    def name(self, side: str) -> str:
        """The method of a side in words, with its family of recipes where several have that method."""
        return method_name(self.experiment.reporting["recipes"], self.row[f"recipe_{side}"])

    @property
    def place(self) -> str:
        """Where it was measured, in as many words as tell it from others."""
        framework, init = self.row["a"].split("/")
        words = [self.experiment.where(self.row)]
        grid = self.experiment.reporting["grid"]
        if len(grid.get("inits", ())) > 1:
            words.append(f"from {INITS[init]}")
        if len({run["framework"] for run in self.experiment.runs}) > 1:
            words.append(f"with {framework_name(framework)}")
        return " ".join(words)

    def runs(self, side: str) -> list[Row]:
        """The runs behind a side."""
        return self.experiment.side(self.row, side)


def method_name(recipes: Mapping[str, Mapping[str, Any]], recipe: str) -> str:
    """The method of a recipe in words, with its family where several have that method: LoRA (`small`).

    Args:
        recipes: `recipes` of `Plan.reporting()`.
        recipe: one of them.
    """
    block = recipes[recipe]
    alike = {other["family"] for other in recipes.values() if other["method"] == block["method"]}
    return NAMES[block["method"]] + (f" (`{block['family']}`)" if len(alike) > 1 else "")


def leads(experiment: Experiment) -> bool:
    """Whether the methods are the question that the answer begins with."""
    return experiment.task.name == "generation"


def comparisons(experiment: Experiment) -> list[Comparison]:
    """Every two methods once: each at its best recipe where that is known, else at the first equal one."""
    recipes = experiment.reporting["recipes"]

    def key(row: Row) -> tuple[str, ...]:
        families = (recipes[row[f"recipe_{side}"]]["family"] for side in "ab")
        return (*(row[name] for name in (*PLACE, "a", "b")), *families)

    found: dict[tuple[str, ...], Row] = {}
    for row in experiment.contrasts:
        if row["family"] == "method":
            first = found.setdefault(key(row), row)
            if row["selection"] == "best" and first["selection"] != "best":
                found[key(row)] = row
    return [Comparison(experiment, dict(_by_metric(experiment, row))) for row in found.values()]


def _by_metric(experiment: Experiment, row: Row) -> Iterable[tuple[str, Row]]:
    """The same contrast by every metric."""
    keys = ("family", *PLACE, "a", "b", "recipe_a", "recipe_b", "selection")
    for metric, other in experiment.by_metric.items():
        for candidate in other.contrasts:
            if all(candidate[key] == row[key] for key in keys):
                yield metric, candidate
                break


# --- what fine-tuning brings --------------------------------------------------------------------------------


def gain_paragraphs(experiment: Experiment) -> list[str]:
    """What each method brings over the untrained model; a list, where it is asked in several places."""
    gains = [one for one in comparisons(experiment) if one.method("b") == UNTRAINED]
    if not gains:
        return [_without_untrained(experiment)]
    places: dict[str, list[Comparison]] = {}
    for one in gains:
        places.setdefault(one.place, []).append(one)
    told = [_gains(experiment, here) for here in places.values()]
    if len(told) == 1:
        return told
    better = Counter(favours(one.row) for one in gains)["higher"]
    lead = (
        f"**Fine-tuning improves the {experiment.scored} in {better} of {count(len(gains), 'comparison')} "
        f"with the untrained model, each by its own {experiment.level}{_without_verdict(gains)}.**"
    )
    if all(verdict(one.row) in UNLEARNED for one in gains):
        runs = undecided.runs_behind(experiment, [one.row for one in gains])
        trained = count(sum(run["method"] != UNTRAINED for run in runs), "run")
        lead = f"**No run learned the task: none of the {trained} is better than the untrained model.**"
    more = [f"{len(told) - MAX_TOLD} more in contrasts.csv."] if len(told) > MAX_TOLD else []
    return [lead, "\n".join(f"- {item}" for item in [*told[:MAX_TOLD], *more])]


def _without_verdict(gains: Sequence[Comparison]) -> str:
    """How many comparisons bear no verdict, and why, behind a count of those that do; empty where all may."""
    reasons = Counter(verdict(one.row) for one in gains if is_withheld(one.row))
    if not reasons:
        return ""
    return f"; no verdict in {join([f'{number} ({why})' for why, number in reasons.items()])}"


def _without_untrained(experiment: Experiment) -> str:
    rows = [row for row in experiment.summary if row["selection"] == "equal"]
    told = [
        f"{mean_sd(row['metric'], row['mean'], row['sd'])} ({experiment.recipe(row['recipe'])}, "
        f"`{row['dataset']}`, `{row['model']}`, {count(row['n_seeds'], 'seed')})"
        for row in rows[:MAX_TOLD]
    ]
    more = f" and {len(rows) - MAX_TOLD} more in the tables" if len(rows) > MAX_TOLD else ""
    lead = (
        "Only the untrained model was run (method none), so that nothing tells what fine-tuning brings"
        if {row["method"] for row in experiment.summary} == {UNTRAINED}
        else "Without runs of the untrained model (method none) this experiment cannot say what fine-tuning "
        "brings"
    )
    scores = f"**{lead}; {experiment.scored}, mean ± sd over seeds: {'; '.join(told)}{more}.**"
    return " ".join([*undecided.first_of_all(experiment), scores, *size_sentence(experiment)])


def size_sentence(experiment: Experiment, dataset: str | None = None) -> list[str]:
    """How many test questions each dataset has, or only the named one: 40 test questions on 12 texts."""
    sizes = {name: size_text(run) for name, run in _firsts(experiment).items() if dataset in (None, name)}
    named = [f"`{name}` has {text}" for name, text in list(sizes.items())[:MAX_TOLD]]
    more = f"; {len(sizes) - MAX_TOLD} more datasets" if len(sizes) > MAX_TOLD else ""
    if not sizes:
        return []
    return [f"{next(iter(sizes.values()))}." if len(sizes) == 1 else f"{join(named)}{more}."]


def size_text(run: Row) -> str:
    """The size of a run's test set: 40 test questions; with its texts where some have several questions."""
    told, texts = count(run["test_examples"], "test question"), run.get("test_groups")
    fewer = texts is not None and texts < run["test_examples"]
    return f"{told} on {count(known(texts), 'text')}" if fewer else told


def small_test_sets(experiment: Experiment) -> list[str]:
    """The test sets of questions too few to tell much, one sentence a dataset; none of classification."""
    if experiment.task.name != "generation":
        return []
    return [
        f"`{name}` has only {size_text(run)}: its scores may say little of other questions, and intervals "
        "over so few are rough."
        for name, run in _firsts(experiment).items()
        if run["test_examples"] < FEW_QUESTIONS or (run.get("test_groups") or FEW_TEXTS) < FEW_TEXTS
    ]


def _firsts(experiment: Experiment) -> dict[str, Row]:
    """A run of each dataset whose number of test examples is known."""
    found: dict[str, Row] = {}
    for run in experiment.runs:
        if run.get("test_examples") is not None:
            found.setdefault(run["dataset"], run)
    return found


def _gains(experiment: Experiment, gains: Sequence[Comparison]) -> str:
    """The gains of all methods in one place: by the first metric in bold, then by the answers' metrics."""
    first = {one.name("a"): one.row for one in gains}
    perplexities = {one.name("a"): perplexity_text(one) for one in gains}
    told = deltas(experiment, first, level=True, more=perplexities)
    lead = (
        f"{capital(_gain_verdict(experiment, gains))}: trained minus untrained {experiment.scored} is {told}"
    )
    unlearned = [one.row for one in gains if verdict(one.row) in UNLEARNED]
    parts = [f"**{lead}.**"]
    if unlearned:
        names = [one.name("a") for one in gains if verdict(one.row) in UNLEARNED]
        place = f"{gains[0].place} with {join(names)}"
        no_run, more = undecided.nothing_learned(experiment, unlearned, place)
        parts = [f"**{lead}.**", no_run, *more]
        if len(unlearned) == len(gains):
            parts = [f"**{no_run}**", *more, f"Trained minus untrained {experiment.scored} is {told}."]
    parts += undecided.without_collapsed(experiment, first)
    parts += undecided.collapse_decides(experiment, first.values())
    parts += _answer_changes(experiment, gains)
    parts += _open_remark([row for one in gains for row in _answer_rows(experiment, one)])
    if over := rests_on(experiment, list(first.values()), names=list(first)):
        parts.append(over)
    return " ".join([*parts, *size_sentence(experiment, gains[0].row["dataset"])])


def _answer_changes(experiment: Experiment, gains: Sequence[Comparison]) -> list[str]:
    """The gains by the answers' metrics; why they have no interval once, where it is the same of several."""
    rows = [row for one in gains for row in _answer_rows(experiment, one)]
    open_rows = [row for row in rows if interval(row) is None]
    reasons = {without_interval(row) for row in open_rows}
    once = next(iter(reasons)) if len(reasons) == 1 and len(open_rows) > 1 else None
    told = [
        f"{metric_name(metric)} changes by {deltas(experiment, by_name, level=False, unsaid=once)}"
        for metric in experiment.task.final
        if (by_name := {one.name("a"): one.rows[metric] for one in gains if metric in one.rows})
    ]
    if not told:
        return []
    where = "each with" if len(open_rows) == len(rows) else "where no interval stands:"
    remark = f" ({where} {once})" if once else ""
    return [f"In the answers that the models write, {'; '.join(told)}{remark}."]


def _answer_rows(experiment: Experiment, one: Comparison) -> list[Row]:
    return [one.rows[metric] for metric in experiment.task.final if metric in one.rows]


def _open_remark(rows: Sequence[Row]) -> list[str]:
    """Said of the differences of answers whose intervals hold zero."""
    unclear = sum(verdict(row) == "unclear" for row in rows)
    if not unclear:
        return []
    if unclear == len(rows):
        told = "This interval of answers holds" if unclear == 1 else "These intervals of answers hold"
    else:
        told = f"Of these {len(rows)} intervals of answers {unclear} {'holds' if unclear == 1 else 'hold'}"
    return [f"{told} zero: no difference is settled there."]


def _gain_verdict(experiment: Experiment, gains: Sequence[Comparison]) -> str:
    verdicts = {one.name("a"): favours(one.row) for one in gains}
    place, scored = gains[0].place, experiment.scored
    words = {
        "higher": (f"improves the {scored}", f"improve the {scored}"),
        "lower": (f"makes the {scored} worse", f"make the {scored} worse"),
        "unclear": tuple(
            f"{verb} the {scored} by no more than these runs can tell from zero"
            for verb in ("changes", "change")
        ),
        NOTHING_LEARNED: ("has no run that learned the task", "have no run that learned the task"),
        ONE_CLASS: ("gives one answer in every run", "give one answer in every run"),
        FEW_SEEDS: tuple(
            f"{verb} fewer than three seeds on a side, which cannot tell whether the {scored} changes"
            for verb in ("has", "have")
        ),
        COLLAPSE: tuple(
            f"{runs} collapsed, which decides the difference, so that these runs cannot tell whether the "
            f"{scored} changes"
            for runs in ("has a run that", "have runs that")
        ),
        "single": tuple(
            f"{verb} run with one seed a side, which cannot tell whether the {scored} changes"
            for verb in ("was", "were")
        ),
        "flat": tuple(
            f"{verb} seeds without any spread, which cannot tell whether the {scored} changes"
            for verb in ("has", "have")
        ),
        "undefined": tuple(
            f"{runs} without a finite loss, and so no mean {scored}" for runs in ("has a run", "have runs")
        ),
    }
    if len(set(verdicts.values())) == 1:
        return f"fine-tuning {words[next(iter(verdicts.values()))][0]} {place}"
    by_verdict: dict[str, list[str]] = {}
    for name, found in verdicts.items():
        by_verdict.setdefault(found, []).append(name)
    told = [f"{join(names)} {words[found][len(names) > 1]}" for found, names in by_verdict.items()]
    return f"{place}, {'; '.join(told)}"


def perplexity_text(one: Comparison) -> str:
    """perplexity 23.41 to 6.81: from side b to side a, means over seeds; empty where it is not known."""
    means = [_mean(one.runs(side), "test_perplexity") for side in "ba"]
    if None in means:
        return ""
    return f"perplexity {' to '.join(value_text('perplexity', value) for value in means)}"


def _mean(runs: Sequence[Row], column: str) -> float | None:
    values: list[Any] = [run.get(column) for run in runs]
    return None if not values or None in values else mean(values)


# --- what an adapter costs and saves ------------------------------------------------------------------------


def cost_sentences(experiment: Experiment) -> list[str]:
    """What a method costs against another that trains, and what it saves; many are counted instead. The
    finding of the first is bold where nothing else leads the answer."""
    found = [one for one in comparisons(experiment) if one.method("b") != UNTRAINED]
    if len(found) > MAX_TOLD:
        decided = sum(verdict(one.row) in ("higher", "lower") for one in found)
        return [
            f"One of two methods is better in {decided} of {len(found)} comparisons, each by its own "
            f"interval; in {len(found) - decided} these runs cannot tell."
        ]
    leading = not leads(experiment) and not any(row["family"] == "init" for row in experiment.contrasts)
    return [_cost(experiment, one, bold=leading and one is found[0]) for one in found]


def _cost(experiment: Experiment, one: Comparison, *, bold: bool = False) -> str:
    a, b = one.name("a"), one.name("b")
    rows = {a: one.row}
    unlearned = ""
    more: list[str] = []
    if verdict(one.row) in UNLEARNED:
        unlearned, more = undecided.nothing_learned(experiment, [one.row], one.place)
    finding = undecided.clause(experiment, one.row, f"{a} and {b} apart") or {
        "higher": f"{a} is better than {b}",
        "lower": f"{a} is worse than {b}",
        "undefined": f"a run without a finite loss leaves {a} and {b} without a difference",
    }.get(favours(one.row), f"these runs cannot tell {a} and {b} apart")
    best = ", each at its own best recipe" if one.row["selection"] == "best" else ""
    others = [
        f"{metric_name(metric)} {difference(row)}{_interval(row)}"
        for metric, row in one.rows.items()
        if metric in experiment.task.final
    ]
    told = (
        f"{capital(one.place)}{best}, {finding} by {experiment.scored}: {a} minus {b} is "
        f"{difference(one.row)} ({evidence(experiment, one.row)})"
    )
    told += f"; of the answers, {join(others)}" if others else ""
    first = [f"**{unlearned}**", *more] if bold and unlearned else []
    parts = [
        *first,
        f"**{told}.**" if bold and not unlearned else f"{told}.",
        *_open_remark(_answer_rows(experiment, one)),
        *_failed_remark(one),
        *undecided.one_sided(experiment, rows, {"a": a, "b": b}),
        *undecided.without_collapsed(experiment, rows),
        *other_settings(one),
        *savings(one),
    ]
    return " ".join(parts)


def _failed_remark(one: Comparison) -> list[str]:
    """How many runs of each side diverged or collapsed, where any did: a difference to them says less."""
    told = []
    for side in "ab":
        runs = one.runs(side)
        failed = sum(bool(run.get("diverged") or run.get("collapsed")) for run in runs)
        if failed:
            told.append(
                f"{failed} of {count(len(runs), 'run')} of {one.name(side)} diverged or collapsed and "
                f"{'counts' if failed == 1 else 'count'} here{undecided.splits_of_collapses(runs)}."
            )
    return told


def _interval(row: Row) -> str:
    return "" if interval(row) is None else f" ({range_text(row)})"


def other_settings(one: Comparison) -> list[str]:
    """In what, beside the method, the recipes of both sides differ.

    What a side chose on validation, out of its own sweep, is no such difference.
    """
    a, b = (one.experiment.reporting["recipes"][one.row[f"recipe_{side}"]] for side in "ab")
    chosen = {*a["swept"], *b["swept"]} if one.row["selection"] == "best" else set()
    left_out = OF_METHODS - OF_ADAPTERS if {a["method"], b["method"]} <= set(ADAPTERS) else OF_METHODS
    a, b = (_flat({key: value for key, value in block.items() if key not in left_out}) for block in (a, b))
    keys = [key for key in a if key in b and key not in chosen and a[key] != b[key]]
    if not keys:
        return []
    told = join([f"{_setting(key)} ({_value(a[key])} against {_value(b[key])})" for key in keys])
    return [f"The recipes also differ in {told}, which may be a part of the difference."]


def _flat(block: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe with the keys of its blocks as a sweep names them: lora.r."""
    flat: dict[str, Any] = {}
    for key, value in block.items():
        inner = value.items() if isinstance(value, Mapping) else ()
        flat |= {f"{key}.{name}": item for name, item in inner} if inner else {key: value}
    return flat


def _setting(key: str) -> str:
    return f"`{key}`" if "." in key else key_text(key)


def _value(value: Any) -> str:
    """A setting as text: 1e-5; query, value."""
    items = value if isinstance(value, (list, tuple)) else [value]
    return ", ".join("none" if item is None else short_number(item) for item in items) or "none"


def savings(one: Comparison) -> list[str]:
    """What the first method saves of parameters to train, memory and time: medians over runs, in sentences;
    only what is known of both."""
    a, b = one.name("a"), one.name("b")
    told = []
    trained = [median_of(one.runs(side), "trainable_parameters") for side in "ab"]
    totals = [median_of(one.runs(side), "total_parameters") for side in "ab"]
    if None not in (*trained, *totals):
        numbers = [known(number) for number in trained]
        shares = [percent(number / known(total)) for number, total in zip(numbers, totals, strict=True)]
        amount = f"{numbers[0]:,.0f} parameters ({shares[0]} of the model's)"
        same = numbers[0] == numbers[1]
        other = f"as {b} does" if same else f"where {b} trains {numbers[1]:,.0f} ({shares[1]})"
        told.append(f"trains {amount} {other}")
    adapter = median_of(one.runs("a"), "adapter_mib")
    if adapter is not None:
        told.append(f"keeps an adapter of {adapter:,.2f} MiB{_whole_weights(one, totals[1])}")
    devices = list(dict.fromkeys(run["device"] for side in "ab" for run in one.runs(side)))
    if len(devices) == 1:
        for column, verb, text in COSTS:
            of_a, of_b = (median_of(one.runs(side), column) for side in "ab")
            if of_a is not None and of_b is not None:
                short = column == "train_seconds" and min(of_a, of_b) < SHORTEST
                told.append(f"{verb} {_compared(text, of_a, of_b, relative=not short)}")
    if not told:
        return []
    where = f"Medians over runs, on {devices[0]}." if len(devices) == 1 else _devices_differ(devices)
    return [f"{capital(a)} {join(told)}. {where}"]


def _whole_weights(one: Comparison, total: float | None) -> str:
    """Beside the size of an adapter that of the weights that full fine-tuning changes."""
    if one.method("b") != "full" or total is None:
        return ""
    return f" where all weights take {total * FLOAT32 / 2**20:,.1f} MiB in float32"


def _devices_differ(devices: Sequence[str]) -> str:
    return f"Memory and time are not compared, as devices differ ({'; '.join(devices[:3])})."


def _compared(text: Callable[[float], str], a: float, b: float, *, relative: bool) -> str:
    """900 MiB against 1,500 MiB (40% less); the same 900 MiB."""
    if text(a) == text(b):
        return f"the same {text(a)}"
    share = round(100 * (a - b) / b) if b and relative else 0
    told = f" ({abs(share)}% {'less' if share < 0 else 'more'})" if share else ""
    return f"{text(a)} against {text(b)}{told}"


def median_of(runs: Iterable[Row], column: str) -> float | None:
    """The median of a column of runs.csv over the runs that know it; None where none does."""
    known = [run[column] for run in runs if run.get(column) is not None]
    return median(known) if known else None


# --- runs that went wrong -----------------------------------------------------------------------------------

# by column of runs.csv, what is said of a run
STATES = {
    "collapsed": ("collapsed", "collapsed"),
    "unstable": ("was unstable while training", "were unstable while training"),
    "not_above_untrained": (
        "is not better than the untrained model",
        "are not better than the untrained model",
    ),
}


def state_sentences(experiment: Experiment) -> list[str]:
    """How many runs collapsed, were unstable, or are not better than the untrained model: one item, bold."""
    counts = {state: sum(bool(run.get(state)) for run in experiment.runs) for state in STATES}
    told = [f"{counts[state]} {words[counts[state] > 1]}" for state, words in STATES.items() if counts[state]]
    if not told:
        return []
    total = count(len(experiment.runs), "run")
    how = undecided.splits_of_collapses(experiment.runs)
    return [f"**Of {total}, {join(told)}**{how}: they count in these numbers; see the warnings."]
