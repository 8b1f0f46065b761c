"""The answer of an experiment in words: does pretraining help, and how sure are these runs?

Every sentence is made from the contrasts and the runs; nothing is claimed that an interval does not carry.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from numbers import Real
from typing import Any

from seedbed.analysis import bootstrap, statistics
from seedbed.analysis.sides import SAME_CELLS
from seedbed.analysis.verdicts import COLLAPSE, FEW_SEEDS, NOTHING_LEARNED, ONE_CLASS, UNLEARNED, is_withheld
from seedbed.core.known import all_known
from seedbed.core.rows import Row, grouped, seed_values, value_column
from seedbed.core.tasks import METRICS
from seedbed.core.words import (
    bag_name,
    capital,
    change,
    count,
    difference_bound,
    difference_range,
    difference_text,
    framework_name,
    join,
    key_text,
    mean_sd,
    p_text,
    percent,
    short_number,
    swept_text,
)
from seedbed.report import methods, undecided
from seedbed.report.experiment import (
    Experiment,
    Question,
    deltas,
    difference,
    equivalence_interval,
    equivalence_level,
    evidence,
    favours,
    interval,
    possible_range,
    questions,
    verdict,
)
from seedbed.report.power import outcomes, rests_on, smallest_p

VERDICTS = {
    NOTHING_LEARNED: "no run learned the task",
    ONE_CLASS: "all runs {same}",
    "higher": "pretraining helps",
    "lower": "pretraining hurts",
    "unclear": "these runs cannot tell the inits apart",
    **{why: undecided.CLAUSES[why].format("the inits apart") for why in (FEW_SEEDS, COLLAPSE)},
    "single": "one seed a side cannot tell the inits apart",
    "flat": "seeds without any spread cannot tell the inits apart",
    "undefined": "a run without a finite loss leaves the inits without a difference",
}
MAX_LISTED = 12
MAX_TOLD = 4  # sentences of a family beside the inits; more are counted
SIDES = {"pretrained": "recipe_a", "random": "recipe_b"}  # where a contrast of inits names their recipes
COUNTED = ("epochs",)  # keys of a recipe that are numbers of something


def answer(experiment: Experiment) -> list[str]:
    """The paragraphs that answer the experiment's question, the first sentence with verdict and numbers.

    A paragraph whose lines begin with `- ` is a list: one item a question, where there are several, and one
    for each other comparison (methods, frameworks, models, datasets).
    """
    led = methods.leads(experiment)
    costs = methods.cost_sentences(experiment)
    told = [*methods.gain_paragraphs(experiment), *_of_inits(experiment)] if led else _of_inits(experiment)
    if not told:
        told = [costs.pop(0)] if costs else [_no_contrast(experiment)]
        if not any(row["family"] in ("init", "method") for row in experiment.contrasts):
            told[0] = " ".join([*undecided.first_of_all(experiment), told[0]])
    told[0] = " ".join([told[0], *undecided.few_seeds(experiment.contrasts)])
    others = [
        *(methods.state_sentences(experiment) if led else []),
        *costs,
        *equivalence_sentences(experiment),
        *model_sentences(experiment),
        *dataset_sentences(experiment),
    ]
    return [*told, *([_listed(others)] if others else [])]


def _of_inits(experiment: Experiment) -> list[str]:
    """Whether pretraining helps; nothing where the inits cannot be compared."""
    asked = [question for question in questions(experiment) if question.headline()]
    told = [" ".join([*_lead(question), *qualifications(question)]) for question in asked]
    if len(told) > 1:
        more = [f"{len(told) - MAX_LISTED} more in contrasts.csv."] if len(told) > MAX_LISTED else []
        lead = " ".join([f"**{_count_verdicts(asked)}**", *_family_remark(experiment, asked)])
        told = [lead, _listed([*told[:MAX_LISTED], *more])]
    return told


def _lead(question: Question) -> list[str]:
    """The bold sentences that a question's answer begins with, and where nothing was learned what to try."""
    rows = question.headline()
    unlearned = [row for row in rows.values() if verdict(row) in UNLEARNED]
    if not unlearned:
        return [f"**{sentence(question)}**"]
    where = f"{question.place}{_recipe_remark(question)}"
    if len(unlearned) == len(rows):
        lead, more = undecided.nothing_learned(question.experiment, unlearned, where)
        found = deltas(question.experiment, rows, level=True)
        said = f"Pretrained minus random {question.experiment.scored}, {found}, says nothing of pretraining."
        return [f"**{lead}**", *more, said]
    frameworks = [framework_name(name) for name, row in rows.items() if verdict(row) in UNLEARNED]
    where = f"{question.place} with {join(frameworks)}"
    lead, more = undecided.nothing_learned(question.experiment, unlearned, where)
    return [f"**{sentence(question)}**", lead, *more]


def _listed(items: list[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def _no_contrast(experiment: Experiment) -> str:
    inits = join(list(dict.fromkeys(row["init"] for row in experiment.summary)))
    rows = [row for row in experiment.summary if row["selection"] == "equal"]
    means = [
        f"{mean_sd(row['metric'], row['mean'], row['sd'])} ({framework_name(row['framework'])}, "
        f"`{row['dataset']}`, `{row['model']}`, {experiment.recipe(row['recipe'])}, "
        f"{count(row['n_seeds'], 'seed')})"
        for row in rows[:MAX_LISTED]
    ]
    more = f" and {len(rows) - MAX_LISTED} more in the tables" if len(rows) > MAX_LISTED else ""
    return (
        f"**This experiment has only the {inits} init, so it cannot say whether pretraining helps; "
        f"{experiment.scored}, mean ± sd over seeds: {'; '.join(means)}{more}.**"
    )


def _verdicts(experiment: Experiment) -> dict[str, str]:
    """VERDICTS in the words of the experiment's task."""
    same = undecided.SAME[experiment.task.name]
    return {word: told.format(same=same) for word, told in VERDICTS.items()}


def _count_verdicts(asked: list[Question]) -> str:
    rows = [row for question in asked for row in question.headline().values()]
    counts = Counter(map(favours, rows))
    total = sum(counts.values())
    words = _verdicts(asked[0].experiment)
    told = [f"{words[word]} in {counts[word]} of {total} comparisons" for word in words if counts[word]]
    if all(verdict(row) in UNLEARNED for row in rows):
        runs = undecided.runs_behind(asked[0].experiment, rows)
        bar = (
            "better than the untrained model"
            if methods.leads(asked[0].experiment)
            else "above the majority class"
        )
        return f"No run learned the task: none of the {count(len(runs), 'run')} is {bar} on its dataset."
    return (
        f"{capital(join(told))}: pretrained minus random {asked[0].experiment.scored}, on each dataset, in "
        f"each framework, each by its own {asked[0].experiment.level}."
    )


def _family_remark(experiment: Experiment, asked: list[Question]) -> list[str]:
    """Said where Holm's correction over all differences of the inits cannot reach the level, unless none of
    them bears a verdict.

    Its smallest p is that of the smallest exact p times their number (Holm 1979), a difference at the equal
    recipe and at each side's best counted once where the recipes are the same.
    """
    if all(is_withheld(row) for question in asked for row in question.headline().values()):
        return []
    tests = {
        tuple(row[key] for key in SAME_CELLS): smallest
        for row in experiment.contrasts
        if row["family"] == "init" and (smallest := smallest_p(experiment, row)) is not None
    }
    lowest = min(1.0, len(tests) * min(tests.values(), default=0.0))
    if lowest <= 1 - experiment.confidence:
        return []
    return [
        f"With so few seeds an exact test cannot give a p below {p_text(lowest)} after Holm's correction "
        f"over {count(len(tests), 'difference')} of the inits."
    ]


def sentence(question: Question) -> str:
    """The verdict of one question with the difference in each framework; with both choices of recipe."""
    rows = question.headline()
    verdicts = {framework_name(framework): favours(row) for framework, row in rows.items()}
    place = f"{question.place}{_recipe_remark(question)}"
    words = _verdicts(question.experiment)
    if len(set(verdicts.values())) == 1:
        lead = f"{words[next(iter(verdicts.values()))]} {place}"
    else:
        lead = f"{place}, {join([f'{words[word]} with {name}' for name, word in verdicts.items()])}"
    experiment = question.experiment
    found = deltas(experiment, rows, level=True)
    told = f"{capital(lead)}: pretrained minus random {experiment.scored} is {found}"
    if question.swept:
        equal = question.contrasts("equal")
        told += (
            f"; at the equal recipe, {question.equal_recipe}, it is {deltas(experiment, equal, level=False)}"
        )
    return told + "."


def _recipe_remark(question: Question) -> str:
    """At which recipe the verdict holds."""
    if question.swept:
        return " when each init has its own best recipe on validation"
    recipes = question.experiment.reporting["recipes"]
    rate = f"learning rate {short_number(recipes[question.reference]['learning_rate'])}"
    return f" at the one recipe tried ({rate})" if len(recipes) == 1 else f" ({rate})"


def footing(question: Question) -> str:
    """What the first sentence's intervals are over, how many seeds they rest on, and whether an exact test
    over so few can reach the level; empty without any interval."""
    equal = question.contrasts("equal") if question.swept else {}
    return rests_on(question.experiment, [*question.headline().values(), *equal.values()])


def qualifications(question: Question) -> list[str]:
    """The sentences after the verdict: what its intervals are over, what the recipe did, what a bag of words
    reaches, what would settle it, what is odd."""
    rows = question.headline()
    told = [rest] if (rest := footing(question)) else []
    if question.swept:
        told += [*_recipe_effects(question), *_edges(question)]
    told += _bag_of_words(question)
    if len({verdict(row) for row in rows.values()}) > 1:
        told.append("Verdicts that differ are no evidence that the frameworks do; see their contrast below.")
    open_rows = {name: row for name, row in rows.items() if verdict(row) in ("unclear", "flat")}
    experiment = question.experiment
    return [
        *told,
        *_fragile(experiment, rows),
        *undecided.one_sided(experiment, rows, {"a": "the pretrained init", "b": "the random init"}),
        *outcomes(experiment, open_rows),
        *undecided.collapse_remark(experiment, [*rows.values(), *question.contrasts("equal").values()]),
        *undecided.without_collapsed(experiment, rows),
        *undecided.collapse_decides(experiment, rows.values()),
    ]


def _fragile(experiment: Experiment, rows: Mapping[str, Row]) -> list[str]:
    """Verdicts that Student's interval over seeds does not share, as where one of few runs stands apart."""
    return [
        f"With {framework_name(framework)} take the verdict with care: Student's {experiment.level} over "
        f"seeds alone holds zero ({difference_range(row['metric'], row['t_low'], row['t_high'])})."
        for framework, row in rows.items()
        if verdict(row) in ("higher", "lower")
        and row["t_low"] is not None
        and row["t_low"] <= 0 <= row["t_high"]
    ]


def _bag_of_words(question: Question) -> list[str]:
    """Said where a bag of words beats every mean that the answer is made of."""
    experiment = question.experiment
    place = (question.dataset, question.model, question.family)
    rows = grouped(experiment.summary, "dataset", "model", "recipe_family").get(place, [])
    compared = [row for row in rows if row["selection"] == "best" or row["recipe"] == question.reference]
    bag = compared[0]["bag_of_words"] if compared else None
    if bag is None or any(row["mean"] >= bag for row in compared):
        return []
    name = bag_name(compared[0])
    above = sum(row["mean"] >= bag for row in rows if row["selection"] == "equal")
    if not above:
        return [f"A {name} reaches {percent(bag)}, more than any of these runs' means."]
    return [
        f"A {name} reaches {percent(bag)}, more than any mean behind these differences; "
        f"{count(above, 'other mean')} of the sweep {'is' if above == 1 else 'are'} not below it."
    ]


# --- what the recipe did ------------------------------------------------------------------------------------


def _recipe_effects(question: Question) -> list[str]:
    """What becomes of the difference at the equal recipe when each init has its own best one: one sentence
    for all frameworks of which the same is to be said; none of one that has no difference."""
    best = question.contrasts("best")
    pairs = {
        name: (row, best[name])
        for name, row in question.contrasts("equal").items()
        if row["delta"] is not None and best[name]["delta"] is not None
    }
    told: dict[str, list[str]] = {}
    for name, (equal, chosen) in pairs.items():
        told.setdefault(_finding(question, equal, chosen), []).append(name)
    return [
        f"With {join([framework_name(name) for name in names])} {finding}"
        f"{_changes(question, [pairs[name] for name in names])}."
        for finding, names in told.items()
    ]


def _finding(question: Question, equal: Row, best: Row) -> str:
    """The finding of one framework, without its numbers."""
    if best["recipe_a"] == best["recipe_b"] == question.reference:
        return "both inits do best at that same recipe"
    bounds = _interval_of_change(question.experiment, equal, best)
    # of a change from runs that learned nothing to others, that is what the recipe does
    open_ones = is_withheld(best) or verdict(equal) in (FEW_SEEDS, COLLAPSE)
    if open_ones or bounds is None or bounds[0] <= 0 <= bounds[1]:
        return "these runs cannot tell whether the difference depends on the recipe"
    sign = METRICS[equal["metric"]].direction
    if max(sign * bound for bound in bounds) < 0 < sign * equal["delta"]:
        gone = (equal["delta"] - best["delta"]) / equal["delta"]
        amount = "all" if gone >= 1 else "most" if gone > 0.5 else "part"
        return (
            f"{amount} of the difference at the equal recipe is gone with {_change_of_recipe(question, best)}"
        )
    return "the choice of recipe changes the difference"


def _changes(question: Question, pairs: Iterable[tuple[Row, Row]]) -> str:
    """The numbers of a finding: the differences at the equal recipe and at the best ones, the interval of
    the change, and what each init gains; empty where the recipe is the same."""
    experiment = question.experiment
    told: list[str] = []
    for equal, best in pairs:
        if best["recipe_a"] == best["recipe_b"] == question.reference:
            return ""
        bounds = _interval_of_change(experiment, equal, best)
        name = "" if told else f"{experiment.level} of the change over seeds alone "
        metric = equal["metric"]
        inside = f"{name}{difference_range(metric, *bounds)}" if bounds else "no interval"
        gains = [change(metric, _gain(experiment, equal, best, side)) for side in "ab"]
        told.append(
            f"from {change(metric, equal['delta'])} to {difference_text(metric, best['delta'])} ({inside}; "
            f"pretrained gains {gains[0]}, random {gains[1]})"
        )
    return f": {join(told)}"


def _interval_of_change(experiment: Experiment, equal: Row, best: Row) -> statistics.Bounds | None:
    """Student's t interval, over seeds alone, of (difference at the best recipes) - (difference at the equal
    one), the recipes as they were chosen."""
    sides = [
        all_known(seed_values(experiment.side(row, side), value_column(row)))
        for row in (best, equal)
        for side in "ab"
    ]
    seeds = tuple(sides[0])
    changes = [sides[0][seed] - sides[1][seed] - (sides[2][seed] - sides[3][seed]) for seed in seeds]
    error = bootstrap.seed_error(changes, seeds)
    if error is None:
        return None
    half = statistics.t_quantile(experiment.confidence, error[1]) * error[0]
    change = statistics.mean(changes)
    most = difference_bound(equal["metric"], of_gains=True)
    return max(-most, change - half), min(most, change + half)


def _change_of_recipe(question: Question, best: Row) -> str:
    """How the chosen recipes differ from the equal one: a higher learning rate."""
    sides = {init: _direction(question, best[column]) for init, column in SIDES.items()}
    if len(set(sides.values())) == 1:
        return sides["random"]
    changed = [init for init, words in sides.items() if words]
    if len(changed) == 1:
        return f"{sides[changed[0]]} for the {changed[0]} init"
    return "each init's own best recipe"


def _direction(question: Question, recipe: str) -> str:
    """What a recipe's swept values are, beside those of the equal recipe; empty where they are the same."""
    blocks = question.experiment.reporting["recipes"]
    before, after = blocks[question.reference]["swept"], blocks[recipe]["swept"]
    told = []
    for key, old in before.items():
        if after[key] != old:
            words = ("more", "fewer") if key in COUNTED else ("a higher", "a lower")
            known = _is_number(old) and _is_number(after[key])
            word = (words[0] if after[key] > old else words[1]) if known else "another"
            told.append(f"{word} {key_text(key)}")
    return join(told) if told else ""


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _gain(experiment: Experiment, equal: Row, best: Row, side: str) -> float:
    index = "ab".index(side)
    before, after = (statistics.mean(experiment.values(row)[index]) for row in (equal, best))
    return (after - before) * METRICS[equal["metric"]].direction


def _edges(question: Question) -> list[str]:
    """Which inits chose the smallest or largest value of their sweep, beyond which nobody looked."""
    blocks = question.experiment.reporting["recipes"]
    recipes = question.experiment.recipes(question.family)
    told = []
    for key in blocks[question.reference]["swept"]:
        values = {blocks[recipe]["swept"][key] for recipe in recipes}
        if len(values) < 2 or not all(map(_is_number, values)):
            continue
        for word, edge in (("smallest", min(values)), ("largest", max(values))):
            at_edge = {recipe for recipe in recipes if blocks[recipe]["swept"][key] == edge}
            if who := _who_chose(question, at_edge):
                told.append(f"{who} chose the {word} {key_text(key)} tried, {short_number(edge)}")
    return [f"{capital('; '.join(told))}: a better one may lie beyond."] if told else []


def _who_chose(question: Question, recipes: Collection[str]) -> str:
    """The inits whose own best is one of these recipes; with their frameworks where it is so in some only."""
    best = question.contrasts("best")
    chose = {
        init: [framework_name(name) for name, row in best.items() if row[column] in recipes]
        for init, column in SIDES.items()
    }
    if all(len(frameworks) == len(best) for frameworks in chose.values()):
        return "every side"
    return join(
        [
            f"the {init} init{'' if len(frameworks) == len(best) else f' with {join(frameworks)}'}"
            for init, frameworks in chose.items()
            if frameworks
        ]
    )


# --- frameworks, models, datasets ---------------------------------------------------------------------------


def equivalence_sentences(experiment: Experiment) -> list[str]:
    """Whether the frameworks agree within the margin, one sentence an init: equivalent, different, or
    inconclusive; of swept families each at its best first, then at the equal recipe. Many are counted
    instead."""
    rows = _headline_rows(experiment, "framework")
    if len(rows) <= MAX_TOLD:
        return [_equivalence(experiment, row) for row in rows]
    counts = Counter(None if is_withheld(row) else row["equivalence"] for row in rows)
    open_ones = len(rows) - counts["equivalent"] - counts["different"]
    return [
        f"The frameworks are equivalent within the margin in {counts['equivalent']} of {len(rows)} "
        f"comparisons and differ in {counts['different']}; in {open_ones} these runs cannot tell, which is "
        "not the same as agreement."
    ]


def _equivalence(experiment: Experiment, row: Row) -> str:
    names = [framework_name(row[side].split("/")[0]) for side in "ab"]
    init = row["a"].split("/")[1]
    margin = f"{100 * row['margin']:.3g} {'point' if row['margin'] == 0.01 else 'points'}"
    agree = f"whether the frameworks agree within {margin}"
    finding = undecided.clause(experiment, row, agree) or {
        "equivalent": f"the frameworks are equivalent within {margin}",
        "different": "the frameworks differ",
    }.get(row["equivalence"], f"these runs cannot tell {agree}, which is not the same as agreement")
    family = experiment.reporting["recipes"][row["recipe_a"]]["family"]
    where = f"{experiment.where(row, family)}, from {methods.INITS[init]}"
    if row["selection"] == "best":
        where += ", each framework at its own best recipe"
    return (
        f"{capital(where)}, {finding}: {' minus '.join(names)} {experiment.scored} is {difference(row)} "
        f"({_tested(experiment, row, ' of the equivalence test')}){_at_equal_recipe(experiment, row)}."
        f"{_remarks(experiment, row, dict(zip('ab', names, strict=True)))}"
    )


def _remarks(experiment: Experiment, row: Row, names: Mapping[str, str]) -> str:
    """What a verdict beside the inits' has to say of its runs, as sentences behind it."""
    rows = {row["a"].split("/")[0]: row}
    told = [*undecided.one_sided(experiment, rows, names), *undecided.without_collapsed(experiment, rows)]
    return "".join(f" {sentence}" for sentence in told)


def _tested(experiment: Experiment, row: Row, test: str = "") -> str:
    """The interval and the p of the equivalence test, for brackets; before them the interval that leaves zero
    out where the frameworks differ."""
    bounds, wide = equivalence_interval(row), interval(row)
    if bounds is None or wide is None:
        return evidence(experiment, row)
    told = f"{experiment.level} {possible_range(row, wide.low, wide.high)}; "
    told *= row["equivalence"] == "different"
    return (
        f"{told}{equivalence_level(experiment)}{test} {possible_range(row, bounds.low, bounds.high)}, "
        f"p after Holm's correction {p_text(row['p_equivalence_holm'])}"
    )


def _at_equal_recipe(experiment: Experiment, best: Row) -> str:
    """The same contrast at the equal recipe, beside that of each framework's own best."""
    if best["selection"] != "best":
        return ""
    reference = _recipes(experiment, best)[0]
    keys = ("family", "dataset", "model", "a", "b")
    row = next(
        row
        for row in experiment.contrasts
        if row["selection"] == "equal"
        and row["recipe_a"] == reference
        and all(row[key] == best[key] for key in keys)
    )
    finding = undecided.clause(experiment, row, "whether they agree") or {
        "equivalent": "they are equivalent",
        "different": "they differ",
    }.get(row["equivalence"], "these runs cannot tell")
    swept = swept_text(experiment.reporting["recipes"][reference]["swept"])
    return f"; at the equal recipe, {swept}, {finding}: {difference(row)} ({_tested(experiment, row)})"


def model_sentences(experiment: Experiment) -> list[str]:
    """Which of two models is better, for each framework and init: at each one's best recipe where recipes are
    swept. Many are counted instead."""
    rows = _headline_rows(experiment, "model")
    if len(rows) > MAX_TOLD:
        return [_counted(rows, "one of two models is better")]
    return [_model(experiment, row) for row in rows]


def _model(experiment: Experiment, row: Row) -> str:
    a, b = f"`{row['model']}`", f"`{row['model_b']}`"
    finding = undecided.clause(experiment, row, f"{a} and {b} apart") or {
        "higher": f"{a} is better than {b}",
        "lower": f"{b} is better than {a}",
    }.get(favours(row), f"these runs cannot tell {a} and {b} apart")
    framework, init = row["a"].split("/")
    family = _named_family(experiment, experiment.reporting["recipes"][row["recipe_a"]]["family"])
    where = f"On `{row['dataset']}` with {framework_name(framework)}{family}, from {methods.INITS[init]}"
    return (
        f"{where}, {finding}: {a} minus {b} {experiment.scored} is {difference(row)} "
        f"({evidence(experiment, row)}).{_remarks(experiment, row, {'a': a, 'b': b})}"
    )


def dataset_sentences(experiment: Experiment) -> list[str]:
    """Whether pretraining gains more on one dataset than on another, for each framework and model: at each
    side's best recipes where recipes are swept. Many are counted, and the pairs of datasets named of which
    every framework says the same."""
    rows = _headline_rows(experiment, "dataset")
    if len(rows) <= MAX_TOLD:
        return [_dataset(experiment, row) for row in rows]
    told = [_pair_of_datasets(experiment, members) for members in _agreeing_pairs(experiment, rows)]
    more = (
        [f"{count(len(told) - MAX_TOLD, 'more such pair')} in contrasts.csv."] if len(told) > MAX_TOLD else []
    )
    return [_counted(rows, "pretraining gains more on one of two datasets"), *told[:MAX_TOLD], *more]


def _agreeing_pairs(experiment: Experiment, rows: Iterable[Row]) -> list[list[Row]]:
    """Rows of one pair of datasets, model and family of recipes, where every framework finds the larger gain
    on the same dataset."""
    pairs: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        place = row["dataset"], row["dataset_b"], row["model"], _gain_family(experiment, row)
        pairs.setdefault(place, []).append(row)
    return [members for members in pairs.values() if {*map(verdict, members)} in ({"higher"}, {"lower"})]


def _gain_family(experiment: Experiment, row: Row) -> str:
    """The family of recipes of a difference of gains, whose inits may each have a recipe of their own."""
    return experiment.reporting["recipes"][row["recipe_a"].split("/")[0]]["family"]


def _pair_of_datasets(experiment: Experiment, rows: list[Row]) -> str:
    row = rows[0]
    a, b = f"`{row['dataset']}`", f"`{row['dataset_b']}`"
    more, less = (a, b) if favours(row) == "higher" else (b, a)
    # the place without its dataset
    _, _, setting = experiment.where(row, _gain_family(experiment, row)).partition(f"on {a}")
    found = deltas(experiment, {row["a"].split("/")[0]: row for row in rows}, level=True)
    return (
        f"Pretraining gains more on {more} than on {less}{setting}: the gain on {a} minus that on {b} is "
        f"{found}."
    )


def _dataset(experiment: Experiment, row: Row) -> str:
    a, b = f"`{row['dataset']}`", f"`{row['dataset_b']}`"
    more = f"whether pretraining gains more on {a} or on {b}"
    finding = undecided.clause(experiment, row, more) or {
        "higher": f"pretraining gains more on {a} than on {b}",
        "lower": f"pretraining gains more on {b} than on {a}",
    }.get(favours(row), f"these runs cannot tell {more}")
    several = len(experiment.reporting["grid"]["models"]) > 1
    model = f" and `{row['model']}`" if several else ""
    framework = framework_name(row["a"].split("/")[0])
    family = _named_family(experiment, _gain_family(experiment, row))
    return (
        f"With {framework}{model}{family}, {finding}: the gains differ by {difference(row)} "
        f"({evidence(experiment, row)}).{_remarks(experiment, row, {'a': a, 'b': b})}"
    )


def _named_family(experiment: Experiment, family: str) -> str:
    """Names a family of recipes where there are several."""
    return f" and recipe `{family}`" if experiment.has_families else ""


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
    """The recipes of the family of a contrast of single cells, its reference first."""
    return experiment.recipes(experiment.reporting["recipes"][row["recipe_a"]]["family"])
