"""The answer of an experiment in words: does pretraining help, and how sure are these runs?

Every sentence is made from the contrasts and the runs; nothing is claimed that an interval does not carry.
"""

from collections import Counter
from collections.abc import Mapping

from seedbed import statistics
from seedbed.experiment import (
    Experiment,
    Question,
    difference,
    evidence,
    interval,
    questions,
    seeds_of,
    verdict,
    without_interval,
)
from seedbed.power import Planning, planning, settling
from seedbed.rows import CELL, Row
from seedbed.words import capital, count, join, p_text, percent_sd, points, points_range

VERDICTS = {
    "higher": "pretraining helps",
    "lower": "pretraining hurts",
    "unclear": "these runs cannot tell the inits apart",
    "single": "one seed a side cannot tell the inits apart",
    "flat": "seeds without any spread cannot tell the inits apart",
}
# More of these trains a model for longer or further.
MORE_TRAINING = ("learning_rate", "epochs")
MAX_LISTED = 12
MAX_TOLD = 4  # sentences of a family beside the inits; more are counted
INITS = {"pretrained": "the checkpoint", "random": "random weights"}


def answer(experiment: Experiment) -> list[str]:
    """The paragraphs that answer the experiment's question, the first sentence with verdict and numbers.

    A paragraph whose lines begin with `- ` is a list: one item a question, where there are several, and one
    for each other comparison (frameworks, models, datasets).
    """
    asked = [question for question in questions(experiment) if question.headline()]
    told = [" ".join([f"**{sentence(question)}**", *qualifications(question)]) for question in asked]
    if not told:
        told = [_no_contrast(experiment)]
    elif len(told) > 1:
        more = [f"{len(told) - MAX_LISTED} more in contrasts.csv."] if len(told) > MAX_LISTED else []
        told = [f"**{_count_verdicts(asked)}**", _listed([*told[:MAX_LISTED], *more])]
    others = [
        *equivalence_sentences(experiment),
        *model_sentences(experiment),
        *dataset_sentences(experiment),
    ]
    return [*told, *([_listed(others)] if others else [])]


def _listed(items: list[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def _no_contrast(experiment: Experiment) -> str:
    inits = join(list(dict.fromkeys(row["init"] for row in experiment.summary)))
    rows = [row for row in experiment.summary if row["selection"] == "equal"]
    means = [
        f"{percent_sd(row['mean'], row['sd'])} ({row['framework']}, `{row['dataset']}`, `{row['model']}`, "
        f"`{row['recipe']}`, {count(row['n_seeds'], 'seed')})"
        for row in rows[:MAX_LISTED]
    ]
    more = f" and {len(rows) - MAX_LISTED} more in the tables" if len(rows) > MAX_LISTED else ""
    return (
        f"**This experiment has only the {inits} init, so it cannot say whether pretraining helps; "
        f"test accuracy, mean ± sd over seeds: {'; '.join(means)}{more}.**"
    )


def _count_verdicts(asked: list[Question]) -> str:
    counts = Counter(verdict(row) for question in asked for row in question.headline().values())
    total = sum(counts.values())
    told = [f"{VERDICTS[word]} in {counts[word]} of {total} comparisons" for word in VERDICTS if counts[word]]
    return (
        f"{capital(join(told))}: pretrained minus random test accuracy, on each dataset, in each framework, "
        f"each by its own {asked[0].experiment.level}."
    )


def sentence(question: Question) -> str:
    """The verdict of one question with the difference in each framework; with both choices of recipe."""
    rows = question.headline()
    verdicts = {framework: verdict(row) for framework, row in rows.items()}
    tuned = " when each init has its own best recipe on validation" if question.swept else ""
    if len(set(verdicts.values())) == 1:
        lead = f"{VERDICTS[next(iter(verdicts.values()))]} {question.place}{tuned}"
    else:
        each = join([f"{VERDICTS[word]} with {framework}" for framework, word in verdicts.items()])
        lead = f"{question.place}{tuned}, {each}"
    told = f"{capital(lead)}: pretrained minus random test accuracy is {_deltas(question, rows, level=True)}"
    if question.swept:
        equal = question.contrasts("equal")
        told += f"; at the equal recipe `{question.reference}` it is {_deltas(question, equal, level=False)}"
    return told + "."


def _deltas(question: Question, rows: Mapping[str, Row], *, level: bool) -> str:
    """Difference and interval of each framework; the first names the level, if asked to."""
    told: list[str] = []
    for framework, row in rows.items():
        bounds = interval(row)
        if bounds is None:
            inside = without_interval(row)
        else:
            name = f"{question.experiment.level} " if level and not told else ""
            inside = f"{name}{points_range(bounds.low, bounds.high)}"
        told.append(f"{difference(row)} with {framework} ({inside})")
    return join(told)


def footing(question: Question) -> str:
    """What the first sentence's intervals are over, and how many seeds they rest on; empty without any."""
    equal = question.contrasts("equal") if question.swept else {}
    rows = [row for row in (*question.headline().values(), *equal.values()) if interval(row)]
    if not rows:
        return ""
    over, *others = dict.fromkeys(interval(row).over for row in rows)
    told = f"The intervals are over {over}"
    if others:
        told += f", at the equal recipe over {join(others)}"
    return f"{told}; {join(list(dict.fromkeys(map(seeds_of, rows))))}."


def qualifications(question: Question) -> list[str]:
    """The sentences after the verdict: what its intervals are over, what the recipe did, what would settle
    it, what is odd."""
    rows = question.headline()
    told = [footing(question)] if footing(question) else []
    if question.swept:
        best = question.contrasts("best")
        told += [
            _recipe_effect(question, row, best[name]) for name, row in question.contrasts("equal").items()
        ]
    if len({verdict(row) for row in rows.values()}) > 1:
        told.append("Verdicts that differ are no evidence that the frameworks do; see their contrast below.")
    return [
        *told,
        *_fragile(question.experiment, rows),
        *_settling(question.experiment, rows),
        *_collapse_remark(question),
    ]


def _fragile(experiment: Experiment, rows: Mapping[str, Row]) -> list[str]:
    """Verdicts that Student's interval over seeds does not share, as where one of few runs stands apart."""
    return [
        f"With {framework} take the verdict with care: Student's {experiment.level} over seeds alone holds "
        f"zero ({points_range(row['t_low'], row['t_high'])})."
        for framework, row in rows.items()
        if verdict(row) in ("higher", "lower")
        and row["t_low"] is not None
        and row["t_low"] <= 0 <= row["t_high"]
    ]


def _settling(experiment: Experiment, rows: Mapping[str, Row]) -> list[str]:
    """For each undecided framework: what settles a difference of the size seen, and what n seeds detect."""
    told, rough = [], False
    for framework, row in rows.items():
        plan = planning(experiment, row)
        if verdict(row) == "unclear" and plan is not None:
            rough = True
            told.append(
                f"With {framework}, at a power of {100 * experiment.power:.4g}%, a true difference as large "
                f"as the one seen {settling(row, plan)}{_detected(plan)}."
            )
        elif verdict(row) == "flat":
            told.append(
                f"With {framework} every seed shows the same difference, so that seeds tell nothing of its "
                "error."
            )
    if rough:
        told.append("Such numbers rest on a spread estimated from the same few seeds, and are rough.")
    return told


def _detected(plan: Planning) -> str:
    if plan.crossed:  # not so many independent seeds
        return ""
    smallest = f"{100 * plan.detectable(plan.seeds):.1f} points"
    return f"; {count(plan.seeds, 'seed')} a side can detect no less than {smallest}"


# --- what the recipe did ------------------------------------------------------------------------------------


def _recipe_effect(question: Question, equal: Row, best: Row) -> str:
    """What becomes of the difference at the equal recipe when each init has its own best one."""
    experiment, framework = question.experiment, equal["a"].split("/")[0]
    if best["recipe_a"] == best["recipe_b"] == question.reference:
        return f"With {framework} both inits do best at that same recipe."
    change = f"from {points(equal['delta'])} to {points(best['delta'])} points"
    bounds = _interval_of_change(experiment, equal, best)
    if bounds is None:
        return f"With {framework} the choice of recipe takes the difference {change} (no interval)."
    told = f"{experiment.level} of the change {points_range(*bounds)}, over seeds alone"
    if bounds[0] <= 0 <= bounds[1]:
        return (
            f"With {framework} these runs cannot tell whether the difference depends on the recipe: "
            f"it goes {change} ({told})."
        )
    if bounds[1] < 0 < equal["delta"]:
        cause = _cause(question, equal, best)
        return f"With {framework} {cause}: it falls {change} ({told}). {_gains(experiment, equal, best)}"
    return f"With {framework} the choice of recipe takes the difference {change} ({told})."


def _interval_of_change(experiment: Experiment, equal: Row, best: Row) -> statistics.Bounds | None:
    """Student's t interval, over seeds alone, of (difference at the best recipes) - (difference at the equal
    one), the recipes as they were chosen."""
    seeds = zip(*experiment.values(best), *experiment.values(equal), strict=True)
    changes = [(best_a - best_b) - (equal_a - equal_b) for best_a, best_b, equal_a, equal_b in seeds]
    return statistics.t_interval(changes, experiment.confidence)


def _cause(question: Question, equal: Row, best: Row) -> str:
    gone = (equal["delta"] - best["delta"]) / equal["delta"]
    amount = "all" if gone >= 1 else "most" if gone > 0.5 else "part"
    if undertrained(question, equal, best):
        return f"{amount} of the difference at the equal recipe was undertraining of the random init"
    return f"{amount} of the difference at the equal recipe was due to that recipe"


def undertrained(question: Question, equal: Row, best: Row) -> bool:
    """Whether the random init gains more than the pretrained one from a recipe that trains it for longer or
    with a higher learning rate."""
    blocks = question.experiment.reporting["recipes"]
    before, after = blocks[question.reference], blocks[best["recipe_b"]]
    swept = blocks[question.reference].get("swept", {})
    if any(after[key] != before[key] for key in swept if key not in MORE_TRAINING):
        return False
    more = any(after[key] > before[key] for key in MORE_TRAINING)
    less = any(after[key] < before[key] for key in MORE_TRAINING)
    gains = _gain(question.experiment, equal, best, "a"), _gain(question.experiment, equal, best, "b")
    return more and not less and gains[1] > max(gains[0], 0)


def _gain(experiment: Experiment, equal: Row, best: Row, side: str) -> float:
    index = "ab".index(side)
    return statistics.mean(experiment.values(best)[index]) - statistics.mean(experiment.values(equal)[index])


def _gains(experiment: Experiment, equal: Row, best: Row) -> str:
    pretrained, random = (points(_gain(experiment, equal, best, side)) for side in ("a", "b"))
    return (
        f"From the equal recipe to its own best the random init gains {random} points "
        f"(`{best['recipe_b']}`), the pretrained one {pretrained} (`{best['recipe_a']}`)."
    )


def _collapse_remark(question: Question) -> list[str]:
    rows = [*question.headline().values(), *question.contrasts("equal").values()]
    runs = {
        tuple(str(run[key]) for key in (*CELL, "init_seed", "data_seed")): run
        for row in rows
        for side in ("a", "b")
        for run in question.experiment.side(row, side)
    }
    collapsed = sum(run["collapsed"] for run in runs.values())
    if not collapsed:
        return []
    return [
        f"{collapsed} of the {count(len(runs), 'run')} behind these numbers collapsed and "
        f"{'counts' if collapsed == 1 else 'count'} in them; see the warnings."
    ]


# --- frameworks, models, datasets ---------------------------------------------------------------------------


def equivalence_sentences(experiment: Experiment) -> list[str]:
    """Whether the frameworks agree within the margin, one sentence an init: equivalent, different, or
    inconclusive; of swept families at the reference recipe. Many are counted instead."""
    rows = [
        row
        for row in experiment.contrasts
        if row["family"] == "framework" and row["recipe_a"] == _recipes(experiment, row)[0]
    ]
    if len(rows) <= MAX_TOLD:
        return [_equivalence(experiment, row) for row in rows]
    counts = Counter(row["equivalence"] for row in rows)
    open_ones = len(rows) - counts["equivalent"] - counts["different"]
    return [
        f"The frameworks are equivalent within the margin in {counts['equivalent']} of {len(rows)} "
        f"comparisons and differ in {counts['different']}; in {open_ones} these runs cannot tell, which is "
        "not the same as agreement."
    ]


def _equivalence(experiment: Experiment, row: Row) -> str:
    a, b = (row[side].split("/")[0] for side in ("a", "b"))
    margin = f"{100 * row['margin']:.3g} {'point' if row['margin'] == 0.01 else 'points'}"
    finding = {
        "equivalent": f"the frameworks are equivalent within {margin}",
        "different": "the frameworks differ",
    }.get(
        row["equivalence"],
        f"these runs cannot tell whether the frameworks agree within {margin}, which is not the same as "
        "agreement",
    )
    p_value = "" if row["p_equivalence"] is None else f", p of equivalence {p_text(row['p_equivalence'])}"
    where = f"{experiment.where(row, row['recipe_a'])}, from {INITS[row['a'].split('/')[1]]}"
    return (
        f"{capital(where)}, {finding}: {a} minus {b} test accuracy is {difference(row)} "
        f"({evidence(experiment, row)}{p_value})."
    )


def model_sentences(experiment: Experiment) -> list[str]:
    """Which of two models is better, for each framework and init: at each one's best recipe where recipes are
    swept. Many are counted instead."""
    rows = _headline_rows(experiment, "model")
    if len(rows) > MAX_TOLD:
        return [_counted(rows, "one of two models is better")]
    return [_model(experiment, row) for row in rows]


def _model(experiment: Experiment, row: Row) -> str:
    a, b = f"`{row['model']}`", f"`{row['model_b']}`"
    finding = {"higher": f"{a} is better than {b}", "lower": f"{b} is better than {a}"}.get(
        verdict(row), f"these runs cannot tell {a} and {b} apart"
    )
    framework, init = row["a"].split("/")
    return (
        f"On `{row['dataset']}` with {framework}, from {INITS[init]}, {finding}: {a} minus {b} test accuracy "
        f"is {difference(row)} ({evidence(experiment, row)})."
    )


def dataset_sentences(experiment: Experiment) -> list[str]:
    """Whether pretraining gains more on one dataset than on another, for each framework and model: at each
    side's best recipes where recipes are swept. Many are counted instead."""
    rows = _headline_rows(experiment, "dataset")
    if len(rows) > MAX_TOLD:
        return [_counted(rows, "pretraining gains more on one of two datasets")]
    return [_dataset(experiment, row) for row in rows]


def _dataset(experiment: Experiment, row: Row) -> str:
    a, b = f"`{row['dataset']}`", f"`{row['dataset_b']}`"
    finding = {
        "higher": f"pretraining gains more on {a} than on {b}",
        "lower": f"pretraining gains more on {b} than on {a}",
    }.get(verdict(row), f"these runs cannot tell whether pretraining gains more on {a} or on {b}")
    several = len(experiment.reporting["grid"]["models"]) > 1
    model = f" and `{row['model']}`" if several else ""
    return (
        f"With {row['a'].split('/')[0]}{model}, {finding}: the gains differ by {difference(row)} "
        f"({evidence(experiment, row)})."
    )


def _counted(rows: list[Row], finding: str) -> str:
    decided = sum(verdict(row) in ("higher", "lower") for row in rows)
    return (
        f"{capital(finding)} in {decided} of {len(rows)} comparisons, each by its own interval; in "
        f"{len(rows) - decided} these runs cannot tell."
    )


def _headline_rows(experiment: Experiment, family: str) -> list[Row]:
    """The family's contrasts at each side's best where recipes are swept, at the only recipe elsewhere."""
    return [
        row
        for row in experiment.contrasts
        if row["family"] == family and (row["selection"] == "best" or len(_recipes(experiment, row)) == 1)
    ]


def _recipes(experiment: Experiment, row: Row) -> list[str]:
    """The recipes of the family of a contrast at an equal recipe, its reference first."""
    return experiment.recipes(experiment.reporting["recipes"][row["recipe_a"]]["family"])
