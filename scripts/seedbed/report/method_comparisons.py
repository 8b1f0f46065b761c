"""The methods of an experiment in words: what fine-tuning brings, what an adapter costs and what it saves.

Every sentence is made from contrasts of the family `method` and from the runs behind them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median
from typing import Any

from seedbed.analysis.table_rows import RunRow
from seedbed.analysis.verdicts import UNLEARNED, is_withheld
from seedbed.core import wording
from seedbed.core.known import known
from seedbed.core.methods import ADAPTERS, METHODS
from seedbed.core.rows import Row
from seedbed.core.wording import Words
from seedbed.core.words import (
    code,
    framework_name,
    mean_sd,
)
from seedbed.report import undecided
from seedbed.report.experiment import (
    Experiment,
    deltas,
    difference,
    evidence,
    favours,
    interval,
    range_text,
    verdict,
    where,
    without_interval,
)
from seedbed.report.parts import PLACE
from seedbed.report.power import rests_on

NAMES = {name: method.words for name, method in METHODS.items()}
WORDS = Words("report/method_comparisons")
UNTRAINED = "none"
FLOAT32 = 4  # bytes
MIB = 2**20
MAX_TOLD = 12  # comparisons in sentences; more are counted
# keys of a recipe that say which it is, or that belong to its method; and those of them that adapters share
OF_METHODS = {"family", "swept", "sweep", "method", "quantization", "lora", "frozen_dtype"}
OF_ADAPTERS = {"lora", "frozen_dtype"}
FEW_QUESTIONS, FEW_TEXTS = 30, 10  # fewer in a test set are warned of
SHORTEST = 5  # seconds; of less no relative difference is told, as starting up and noise are much of it
INITS = wording.data("report/titles")["inits"]


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
        several_inits = len(self.experiment.reporting["grid"].get("inits", ())) > 1
        several_frameworks = len({run.framework for run in self.experiment.runs}) > 1
        return WORDS.say(
            "place",
            where(self.experiment, self.row),
            INITS[init] if several_inits else "",
            framework_name(framework) if several_frameworks else "",
        )

    def runs(self, side: str) -> list[RunRow]:
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
    name = NAMES[block["method"]]
    return f"{name} ({code(block['family'])})" if len(alike) > 1 else name


def leads(experiment: Experiment) -> bool:
    """Whether the methods are the question that the answer begins with."""
    return experiment.task.from_untrained


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
    told = [_gains(experiment, here, alone=len(places) == 1) for here in places.values()]
    if len(told) == 1:
        return told
    better = Counter(favours(one.row) for one in gains)["higher"]
    withheld = Counter(verdict(one.row) for one in gains if is_withheld(one.row))
    lead = WORDS.say(
        "gains_in_places", experiment.scored, better, len(gains), experiment.confidence, withheld
    )
    if all(verdict(one.row) in UNLEARNED for one in gains):
        runs = undecided.runs_behind(experiment, [one.row for one in gains])
        lead = WORDS.say("no_run_learned", sum(run.method != UNTRAINED for run in runs))
    more = [WORDS.say("left_out", len(told) - MAX_TOLD)] if len(told) > MAX_TOLD else []
    return [f"**{lead}**", "\n".join(f"- {item}" for item in [*told[:MAX_TOLD], *more])]


def _without_untrained(experiment: Experiment) -> str:
    rows = [row for row in experiment.summary if row.selection == "equal"]
    means = [
        WORDS.say(
            "mean",
            mean_sd(row.metric, row.mean, row.sd),
            experiment.recipe(row.recipe),
            row.dataset,
            row.model,
            row.n_seeds,
        )
        for row in rows[:MAX_TOLD]
    ]
    alone = {row.method for row in experiment.summary} == {UNTRAINED}
    left_out = max(0, len(rows) - MAX_TOLD)
    scores = f"**{WORDS.say('without_gains', alone, experiment.scored, means, left_out)}**"
    return " ".join([*undecided.first_of_all(experiment), scores, *size_sentence(experiment)])


def size_sentence(experiment: Experiment, dataset: str | None = None) -> list[str]:
    """How many test questions each dataset has, or only the named one: 40 test questions on 12 texts."""
    sizes = {name: size_text(run) for name, run in _firsts(experiment).items() if dataset in (None, name)}
    if len(sizes) == 1:
        return [f"{next(iter(sizes.values()))}."]
    shown = dict(list(sizes.items())[:MAX_TOLD])
    return [WORDS.say("sizes", shown, len(sizes) - len(shown))] if sizes else []


def size_text(run: RunRow) -> str:
    """The size of a run's test set: 40 test questions; with its texts where some have several questions."""
    texts, examples = run.test_groups, known(run.test_examples)
    return WORDS.say("size", examples, texts if texts is not None and texts < examples else 0)


def small_test_sets(experiment: Experiment) -> list[str]:
    """The test sets of questions too few to tell much, one sentence a dataset; none of tasks without
    answers."""
    if not experiment.task.writes_answers:
        return []
    return [
        WORDS.say("small_test_set", name, size_text(run))
        for name, run in _firsts(experiment).items()
        if known(run.test_examples) < FEW_QUESTIONS or (run.test_groups or FEW_TEXTS) < FEW_TEXTS
    ]


def _firsts(experiment: Experiment) -> dict[str, RunRow]:
    """A run of each dataset whose number of test examples is known."""
    found: dict[str, RunRow] = {}
    for run in experiment.runs:
        if run.test_examples is not None:
            found.setdefault(run.dataset, run)
    return found


def _gains(experiment: Experiment, gains: Sequence[Comparison], *, alone: bool) -> str:
    """The gains of all methods in one place: by the first metric in bold, then by the answers' metrics; in
    the only place that verdicts are corrected for their number."""
    first = {one.name("a"): one.row for one in gains}
    perplexities = {one.name("a"): perplexity_text(one) for one in gains}
    told = deltas(experiment, first, level=True, more=perplexities)
    lead = WORDS.say("gains", WORDS.say("gain_verdict", gain_verdict(gains)), experiment.scored, told)
    unlearned = [one.row for one in gains if verdict(one.row) in UNLEARNED]
    parts = [f"**{lead}**"]
    if unlearned:
        names = [one.name("a") for one in gains if verdict(one.row) in UNLEARNED]
        place = WORDS.say("place_with", gains[0].place, names)
        no_run, more = undecided.nothing_learned(experiment, unlearned, place)
        parts = [f"**{lead}**", no_run, *more]
        if len(unlearned) == len(gains):
            parts = [f"**{no_run}**", *more, WORDS.say("gains_of_nothing", experiment.scored, told)]
    parts += undecided.before_holm(experiment, first)
    parts += undecided.collapses(experiment, first, wording.data("report/titles")["trained_of_sides"])
    parts += undecided.collapse_decides(experiment, first.values())
    parts += _answer_changes(experiment, gains)
    parts += _open_remark([row for one in gains for row in _answer_rows(experiment, one)])
    if over := rests_on(list(first.values()), names=list(first)):
        parts.append(over)
    parts += undecided.corrected(experiment, list(first.values())) if alone else []
    return " ".join([*parts, *size_sentence(experiment, gains[0].row["dataset"])])


def _answer_changes(experiment: Experiment, gains: Sequence[Comparison]) -> list[str]:
    """The gains by the answers' metrics; why they have no interval once, where it is the same of several."""
    rows = [row for one in gains for row in _answer_rows(experiment, one)]
    open_rows = [row for row in rows if interval(row) is None]
    reasons = {without_interval(row) for row in open_rows}
    once = next(iter(reasons)) if len(reasons) == 1 and len(open_rows) > 1 else None
    changes = {
        metric: deltas(experiment, by_name, level=False, unsaid=once)
        for metric in experiment.task.final
        if (by_name := {one.name("a"): one.rows[metric] for one in gains if metric in one.rows})
    }
    if not changes:
        return []
    return [WORDS.say("answer_changes", changes, once or "", len(open_rows) == len(rows))]


def _answer_rows(experiment: Experiment, one: Comparison) -> list[Row]:
    return [one.rows[metric] for metric in experiment.task.final if metric in one.rows]


def _open_remark(rows: Sequence[Row]) -> list[str]:
    """Said of the differences of answers that have no direction."""
    unclear = sum(verdict(row) == "unclear" for row in rows)
    return [WORDS.say("open_answers", unclear, len(rows))] if unclear else []


@dataclass(frozen=True)
class GainVerdict:
    """What methods bring over the untrained model in one place.

    Attributes:
        place: where, in words.
        scored: by what, in words: test loss.
        methods: names of methods by verdict, which is higher where they are better.
    """

    place: str
    scored: str
    methods: Mapping[str, Sequence[str]]


def gain_verdict(gains: Sequence[Comparison]) -> GainVerdict:
    """What all methods of one place bring."""
    methods: dict[str, list[str]] = {}
    for one in gains:
        methods.setdefault(favours(one.row), []).append(one.name("a"))
    return GainVerdict(gains[0].place, gains[0].experiment.scored, methods)


def perplexity_text(one: Comparison) -> str:
    """perplexity 23.41 to 6.81: from side b to side a, means over seeds; empty where it is not known."""
    means = [mean_of(one.runs(side), "test_perplexity") for side in "ba"]
    if None in means:
        return ""
    return WORDS.say("perplexity", *means)


def mean_of(runs: Sequence[RunRow], column: str) -> float | None:
    """The mean of a column of runs.csv; None where a run does not know it."""
    values = [value for run in runs if (value := run.value(column)) is not None]
    return mean(values) if values and len(values) == len(runs) else None


# --- what an adapter costs and saves ------------------------------------------------------------------------


def cost_sentences(experiment: Experiment) -> list[str]:
    """What a method costs against another that trains, and what it saves; many are counted instead. The
    finding of the first is bold where nothing else leads the answer."""
    found = [one for one in comparisons(experiment) if one.method("b") != UNTRAINED]
    if len(found) > MAX_TOLD:
        decided = sum(verdict(one.row) in ("higher", "lower") for one in found)
        return [WORDS.say("many_costs", decided, len(found), experiment.confidence)]
    leading = not leads(experiment) and not any(row["family"] == "init" for row in experiment.contrasts)
    return [cost_sentence(one, bold=leading and one is found[0]) for one in found]


@dataclass(frozen=True)
class Cost:
    """What a method costs against another that trains.

    Attributes:
        place, scored: where, and by what, in words.
        a, b: names of the methods.
        own_best: whether each is at its own best recipe.
        verdict: of the difference; higher where the first method is better.
        withheld: why it bears no verdict, in words; empty where it may bear one.
        difference, evidence: in words.
        answers: of the answers' metrics name, difference and interval, the last empty without one.
    """

    place: str
    scored: str
    a: str
    b: str
    own_best: bool
    verdict: str
    withheld: str
    difference: str
    evidence: str
    answers: Sequence[tuple[str, str, str]]


def cost(one: Comparison) -> Cost:
    """What the first method of a comparison costs against the second."""
    a, b, experiment = one.name("a"), one.name("b"), one.experiment
    return Cost(
        place=one.place,
        scored=experiment.scored,
        a=a,
        b=b,
        own_best=one.row["selection"] == "best",
        verdict=favours(one.row),
        withheld=undecided.clause(experiment, one.row, WORDS.say("apart", a, b)) or "",
        difference=difference(one.row),
        evidence=evidence(experiment, one.row),
        answers=[
            (metric, difference(row), range_text(row) if interval(row) else "")
            for metric, row in one.rows.items()
            if metric in experiment.task.final
        ],
    )


def cost_sentence(one: Comparison, *, bold: bool = False) -> str:
    """The same in words, with what is odd and what the first method saves; in bold, if asked to."""
    a, b, experiment = one.name("a"), one.name("b"), one.experiment
    rows, told = {a: one.row}, WORDS.say("cost", cost(one))
    lead = [f"**{told}**" if bold else told]
    if bold and verdict(one.row) in UNLEARNED:
        unlearned, more = undecided.nothing_learned(experiment, [one.row], one.place)
        lead = [f"**{unlearned}**", *more, told]
    parts = [
        *lead,
        *_open_remark(_answer_rows(experiment, one)),
        *undecided.before_holm(experiment, rows),
        *_failed_remark(one),
        *undecided.one_sided(experiment, rows, {"a": a, "b": b}),
        *undecided.collapses(experiment, rows, {"a": a, "b": b}),
        *other_settings(one),
        *saving_sentences(one),
    ]
    return " ".join(parts)


def _failed_remark(one: Comparison) -> list[str]:
    """How many runs of each side diverged or collapsed, where any did: a difference to them says less."""
    told = []
    for side in "ab":
        runs = one.runs(side)
        failed = sum(bool(run.diverged or run.collapsed) for run in runs)
        if failed:
            ways = undecided.splits_of_collapses(one.experiment.task, runs)
            told.append(WORDS.say("failed", failed, len(runs), one.name(side), ways))
    return told


def other_settings(one: Comparison) -> list[str]:
    """In what, beside the method, the recipes of both sides differ, as a sentence."""
    settings = differing_settings(one)
    return [WORDS.say("other_settings", settings)] if settings else []


def differing_settings(one: Comparison) -> list[tuple[str, Sequence[Any], Sequence[Any]]]:
    """In what, beside the method, the recipes of both sides differ: key, and values of both.

    What a side chose on validation, out of its own sweep, is no such difference.
    """
    a, b = (one.experiment.reporting["recipes"][one.row[f"recipe_{side}"]] for side in "ab")
    chosen = {*a["swept"], *b["swept"]} if one.row["selection"] == "best" else set()
    left_out = OF_METHODS - OF_ADAPTERS if {a["method"], b["method"]} <= set(ADAPTERS) else OF_METHODS
    a, b = (_flat({key: value for key, value in block.items() if key not in left_out}) for block in (a, b))
    keys = [key for key in a if key in b and key not in chosen and a[key] != b[key]]
    return [(key, _values(a[key]), _values(b[key])) for key in keys]


def _flat(block: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe with the keys of its blocks as a sweep names them: lora.r."""
    flat: dict[str, Any] = {}
    for key, value in block.items():
        inner = value.items() if isinstance(value, Mapping) else ()
        flat |= {f"{key}.{name}": item for name, item in inner} if inner else {key: value}
    return flat


def _values(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else [value]


@dataclass(frozen=True)
class Savings:
    """What the first of two methods saves; values of both sides are medians over runs, None where one is not
    known.

    Attributes:
        a, b: names of the methods.
        trained, totals: parameters that are trained, and all of them.
        adapter: MiB of the first one's file; None without one.
        weights: MiB of all weights in float32, where the second method trains them all; else None.
        memory: peak, in MiB; None if devices differ, as `seconds`.
        seconds: of training.
        long: whether training takes so long that start-up and noise do not matter.
        devices: that the runs were made on.
    """

    a: str
    b: str
    trained: tuple[float, float] | None
    totals: tuple[float, float] | None
    adapter: float | None
    weights: float | None
    memory: tuple[float, float] | None
    seconds: tuple[float, float] | None
    long: bool
    devices: list[str]


def savings(one: Comparison) -> Savings:
    """What the first method saves of parameters to train, of memory and of time."""
    devices = list(dict.fromkeys(run.device for side in "ab" for run in one.runs(side)))
    totals, seconds = _medians(one, "total_parameters"), _medians(one, "train_seconds")
    total = median_of(one.runs("b"), "total_parameters")
    alike = len(devices) == 1
    return Savings(
        a=one.name("a"),
        b=one.name("b"),
        trained=_medians(one, "trainable_parameters") if totals else None,
        totals=totals,
        adapter=one.experiment.adapter_size(one.runs("a")),
        weights=total * FLOAT32 / MIB if total is not None and one.method("b") == "full" else None,
        memory=_medians(one, "peak_memory_mib") if alike else None,
        seconds=seconds if alike else None,
        long=seconds is not None and min(seconds) >= SHORTEST,
        devices=devices,
    )


def saving_sentences(one: Comparison) -> list[str]:
    """The same in sentences; none where nothing is known of both sides."""
    found = savings(one)
    told = (found.trained, found.adapter, found.memory, found.seconds)
    return [] if told == (None,) * len(told) else [WORDS.say("savings", found)]


def _medians(one: Comparison, column: str) -> tuple[float, float] | None:
    a, b = (median_of(one.runs(side), column) for side in "ab")
    return None if a is None or b is None else (a, b)


def median_of(runs: Iterable[RunRow], column: str) -> float | None:
    """The median of a column of runs.csv over the runs that know it; None where none does."""
    values = [run[column] for run in runs if run[column] is not None]
    return median(values) if values else None


# --- runs that went wrong -----------------------------------------------------------------------------------

STATES = ("collapsed", "unstable", "not_above_untrained")  # columns of runs.csv


def state_sentences(experiment: Experiment) -> list[str]:
    """How many runs collapsed, were unstable, or are not better than the untrained model: one item, bold."""
    counts = {state: sum(bool(run[state]) for run in experiment.runs) for state in STATES}
    counts = {state: number for state, number in counts.items() if number}
    ways = undecided.splits_of_collapses(experiment.task, experiment.runs)
    return [WORDS.say("states", counts, len(experiment.runs), ways)] if counts else []
