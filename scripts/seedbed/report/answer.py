"""The answer of an experiment in words: does pretraining help, and how sure are these runs?

Every sentence is made from the contrasts and the runs; nothing is claimed that an interval does not carry.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

from seedbed.analysis import statistics
from seedbed.analysis.verdicts import (
    COLLAPSE,
    FEW_SEEDS,
    NOTHING_LEARNED,
    ONE_CLASS,
    UNLEARNED,
    bounds,
    direction,
    is_withheld,
)
from seedbed.core import wording
from seedbed.core.bag_of_words import bag_name
from seedbed.core.known import known
from seedbed.core.rows import Row, grouped
from seedbed.core.tasks import METRICS
from seedbed.core.wording import Words
from seedbed.core.words import (
    code,
    framework_name,
    mean_sd,
    swept_text,
)
from seedbed.report import method_comparisons, undecided
from seedbed.report.experiment import (
    Experiment,
    Question,
    deltas,
    difference,
    equivalence_interval,
    equivalence_level,
    evidence,
    favours,
    headline_rows,
    interval,
    possible_range,
    questions,
    setting_text,
    verdict,
    where,
)
from seedbed.report.method_comparisons import Comparison
from seedbed.report.power import outcomes, rests_on

WORDS = Words("report/answer")
# verdicts on pretraining, in the order in which they are counted
VERDICTS = (
    NOTHING_LEARNED, ONE_CLASS, "higher", "lower", "unclear", FEW_SEEDS, COLLAPSE,
    "single", "flat", "undefined",
)  # fmt: skip
MAX_LISTED = 12
MAX_TOLD = 4  # sentences of a family beside the inits; more are counted
SIDES = {"pretrained": "recipe_a", "random": "recipe_b"}  # where a contrast of inits names their recipes
COUNTED = ("epochs",)  # keys of a recipe that are numbers of something


def answer(experiment: Experiment) -> list[str]:
    """The paragraphs that answer the experiment's question, the first sentence with verdict and numbers.

    A paragraph whose lines begin with `- ` is a list: one item a question, where there are several, and one
    for each other comparison (methods, frameworks, models, datasets).
    """
    led = method_comparisons.leads(experiment)
    costs = method_comparisons.cost_sentences(experiment)
    told = (
        [*method_comparisons.gain_paragraphs(experiment), *_of_inits(experiment)]
        if led
        else _of_inits(experiment)
    )
    if not told:
        told = [costs.pop(0)] if costs else [_no_contrast(experiment)]
        if not any(row["family"] in ("init", "method") for row in experiment.contrasts):
            told[0] = " ".join([*undecided.first_of_all(experiment), told[0]])
    told[0] = " ".join([told[0], *undecided.few_seeds(experiment.contrasts)])
    others = [
        *(method_comparisons.state_sentences(experiment) if led else []),
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
        more = [WORDS.say("left_out", len(told) - MAX_LISTED)] if len(told) > MAX_LISTED else []
        return [f"**{_count_verdicts(asked)}**", _listed([*told[:MAX_LISTED], *more])]
    rows = [row for question in asked for row in question.headline().values()]
    return [" ".join([*told, *undecided.corrected(experiment, rows)])] if told else []


def _lead(question: Question) -> list[str]:
    """The bold sentences that a question's answer begins with, and where nothing was learned what to try."""
    rows = question.headline()
    unlearned = [row for row in rows.values() if verdict(row) in UNLEARNED]
    if not unlearned:
        return [f"**{sentence(question)}**"]
    if len(unlearned) == len(rows):
        where = WORDS.say("where", decide(question))
        lead, more = undecided.nothing_learned(question.experiment, unlearned, where)
        found = deltas(question.experiment, rows, level=True)
        return [f"**{lead}**", *more, WORDS.say("says_nothing", question.experiment.scored, found)]
    frameworks = [framework_name(name) for name, row in rows.items() if verdict(row) in UNLEARNED]
    where = WORDS.say("place_with", question.place, frameworks)
    lead, more = undecided.nothing_learned(question.experiment, unlearned, where)
    return [f"**{sentence(question)}**", lead, *more]


def _listed(items: list[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def _no_contrast(experiment: Experiment) -> str:
    inits = list(dict.fromkeys(row.init for row in experiment.summary))
    rows = [row for row in experiment.summary if row.selection == "equal"]
    means = [
        WORDS.say(
            "mean",
            mean_sd(row.metric, row.mean, row.sd),
            row.framework,
            row.dataset,
            row.model,
            experiment.recipe(row.recipe),
            row.n_seeds,
        )
        for row in rows[:MAX_LISTED]
    ]
    return WORDS.say("no_contrast", inits, experiment.scored, means, max(0, len(rows) - MAX_LISTED))


def _count_verdicts(asked: list[Question]) -> str:
    rows = [row for question in asked for row in question.headline().values()]
    experiment = asked[0].experiment
    if all(verdict(row) in UNLEARNED for row in rows):
        runs = undecided.runs_behind(experiment, rows)
        return WORDS.say("no_run_learned", len(runs), experiment.task.words.baseline)
    found = Counter(map(favours, rows))
    counts = {word: found[word] for word in VERDICTS if found[word]}
    same = experiment.task.words.gives_one_output
    return WORDS.say("counts", counts, len(rows), same, experiment.scored, experiment.confidence)


@dataclass(frozen=True)
class Verdict:
    """What the runs say of one question.

    Attributes:
        by_framework: the verdict with each framework: higher where pretraining is better.
        place: where, in words.
        swept: whether each init has its own best recipe.
        only_recipe: whether there is no other recipe than the reference.
        rate: learning rate of the reference recipe.
        same: what runs do that are all the same, in the words of the task.
        scored: what is compared, in words.
        differences: with each framework, in words.
        equal_recipe, equal_differences: the equal recipe of a sweep, and the differences there; else empty.
    """

    by_framework: Mapping[str, str]
    place: str
    swept: bool
    only_recipe: bool
    rate: float
    same: str
    scored: str
    differences: str
    equal_recipe: str
    equal_differences: str


def decide(question: Question) -> Verdict:
    """The verdict on a question, with the differences by each choice of recipe."""
    experiment, rows = question.experiment, question.headline()
    recipes = experiment.reporting["recipes"]
    equal = question.contrasts("equal")
    return Verdict(
        by_framework={framework: favours(row) for framework, row in rows.items()},
        place=question.place,
        swept=question.swept,
        only_recipe=len(recipes) == 1,
        rate=recipes[question.reference]["learning_rate"],
        same=experiment.task.words.gives_one_output,
        scored=experiment.scored,
        differences=deltas(experiment, rows, level=True),
        equal_recipe=question.equal_recipe if question.swept else "",
        equal_differences=deltas(experiment, equal, level=False) if question.swept else "",
    )


def sentence(question: Question) -> str:
    """The verdict on a question in words."""
    return WORDS.say("sentence", decide(question))


def footing(question: Question) -> str:
    """What the first sentence's intervals are over, and how many seeds they rest on; empty without any."""
    equal = question.contrasts("equal") if question.swept else {}
    return rests_on([*question.headline().values(), *equal.values()])


def qualifications(question: Question) -> list[str]:
    """The sentences after the verdict: what its intervals are over, what the recipe did, what a bag of words
    reaches, what is odd, and what would find a difference of interest."""
    rows = question.headline()
    told = [rest] if (rest := footing(question)) else []
    if question.swept:
        told += _recipe_effects(question)
        told += [WORDS.say("edges", found)] if (found := edges(question)) else []
    told += _bag_of_words(question)
    if len({verdict(row) for row in rows.values()}) > 1:
        told.append(WORDS.say("verdicts_differ"))
    open_rows = {name: row for name, row in rows.items() if verdict(row) in ("unclear", "flat")}
    experiment, sides = question.experiment, wording.data("report/titles")["inits_of_sides"]
    return [
        *told,
        *undecided.before_holm(experiment, rows),
        *_seeds_alone(experiment, rows),
        *undecided.one_sided(experiment, rows, sides),
        *(
            undecided.collapses(experiment, rows, sides)
            or undecided.collapse_remark(experiment, list(question.contrasts("equal").values()))
        ),
        *undecided.collapse_decides(experiment, rows.values()),
        *outcomes(experiment, open_rows),
    ]


def _seeds_alone(experiment: Experiment, rows: Mapping[str, Row]) -> list[str]:
    """Where the interval over seeds alone says something else: it holds zero and the verdict stands, as where
    one of few runs stands apart; or it leaves zero out, for these test examples, and the primary does not."""
    told = []
    for framework, row in rows.items():
        alone, primary = (direction(row[f"{name}_low"], row[f"{name}_high"]) for name in ("t", "ci"))
        decided = verdict(row) in ("higher", "lower")
        if (decided and alone == "unclear") or (primary == "unclear" and alone in ("higher", "lower")):
            bounds = row["t_low"], row["t_high"]
            told.append(WORDS.say("seeds_alone", framework, experiment.level, row["metric"], bounds, decided))
    return told


def _bag_of_words(question: Question) -> list[str]:
    """Said where a bag of words beats every mean that the answer is made of."""
    experiment = question.experiment
    place = (question.dataset, question.model, question.family)
    rows = grouped(experiment.summary, "dataset", "model", "recipe_family").get(place, [])
    compared = [row for row in rows if row.selection == "best" or row.recipe == question.reference]
    bag = compared[0].bag_of_words if compared else None
    if bag is None or any(known(row.mean) >= bag for row in compared):
        return []
    above = sum(known(row.mean) >= bag for row in rows if row.selection == "equal")
    return [WORDS.say("bag", bag_name(compared[0]), bag, above)]


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
    found: dict[RecipeEffect, list[str]] = {}
    for name, (equal, chosen) in pairs.items():
        found.setdefault(recipe_effect(question, equal, chosen), []).append(name)
    return [
        WORDS.say(
            "recipe_effect",
            [framework_name(name) for name in names],
            effect,
            [] if effect.kind == "same_recipe" else _changes(question, [pairs[name] for name in names]),
        )
        for effect, names in found.items()
    ]


@dataclass(frozen=True)
class RecipeEffect:
    """What becomes of the difference at the equal recipe when each init has its own best one.

    Attributes:
        kind: same recipe (it is the equal one), unclear, gone, or changed.
        amount: how much of the difference is gone: all, most or part.
        change: how the chosen recipes differ from the equal one, in words, where the difference is gone.
    """

    kind: str
    amount: str = ""
    change: str = ""


def recipe_effect(question: Question, equal: Row, best: Row) -> RecipeEffect:
    """The effect in one framework.

    Args:
        question: whose contrasts these are.
        equal, best: at the equal recipe, and at each init's own best one; both with a difference.
    """
    if best["recipe_a"] == best["recipe_b"] == question.reference:
        return RecipeEffect("same_recipe")
    change = _change(question, best)
    found = None if change is None else favours(change)
    # of a change from runs that learned nothing to others, that is what the recipe does
    open_ones = is_withheld(best) or verdict(equal) in (FEW_SEEDS, COLLAPSE)
    if open_ones or found not in ("higher", "lower"):
        return RecipeEffect("unclear")
    if found == "lower" and METRICS[equal["metric"]].direction * equal["delta"] > 0:
        gone = (equal["delta"] - best["delta"]) / equal["delta"]
        amount = "all" if gone >= 1 else "most" if gone > 0.5 else "part"
        return RecipeEffect("gone", amount, _change_of_recipe(question, best))
    return RecipeEffect("changed")


def _changes(question: Question, pairs: Iterable[tuple[Row, Row]]) -> list[str]:
    """The differences at the equal recipe and at the best ones, the interval of the change, and what each
    init gains."""
    experiment = question.experiment
    told: list[str] = []
    for equal, best in pairs:
        change = _change(question, best)
        low, high = (None, None) if change is None else bounds(change)
        ends = None if low is None else (low, high)
        gains = [_gain(experiment, equal, best, side) for side in "ab"]
        level = "" if told else experiment.level
        told.append(WORDS.say("change", equal["metric"], equal["delta"], best["delta"], ends, level, gains))
    return told


def _change(question: Question, best: Row) -> Row | None:
    """The contrast (difference at the best recipes) - (difference at the equal one) in a framework, which
    carries the choice; None without one."""
    place = (question.dataset, question.model, best["a"].split("/")[0], question.reference)
    for row in question.experiment.contrasts:
        here = row["dataset"], row["model"], row["a"].split("/")[0], row["recipe_b"]
        if row["family"] == "recipe" and here == place:
            return row
    return None


def _change_of_recipe(question: Question, best: Row) -> str:
    """How the chosen recipes differ from the equal one: a higher learning rate."""
    changed = {init: _direction(question, best[column]) for init, column in SIDES.items()}
    return WORDS.say("changed_recipe", changed)


def _direction(question: Question, recipe: str) -> str:
    """What a recipe's swept values are, beside those of the equal recipe; empty where they are the same."""
    blocks = question.experiment.reporting["recipes"]
    before, after = blocks[question.reference]["swept"], blocks[recipe]["swept"]
    changes = []
    for key, old in before.items():
        if after[key] != old:
            known = _is_number(old) and _is_number(after[key])
            changes.append((key, "other" if not known else "more" if after[key] > old else "fewer"))
    return WORDS.say("recipe_change", changes, COUNTED)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _gain(experiment: Experiment, equal: Row, best: Row, side: str) -> float:
    index = "ab".index(side)
    before, after = (statistics.mean(experiment.values(row)[index]) for row in (equal, best))
    return (after - before) * METRICS[equal["metric"]].direction


Edge = tuple[str, str, str, Any]  # who chose it, smallest or largest, and the key and its value


def edges(question: Question) -> list[Edge]:
    """Which inits chose the smallest or largest value of their sweep, beyond which nobody looked."""
    blocks = question.experiment.reporting["recipes"]
    recipes = question.experiment.recipes(question.family)
    found: list[Edge] = []
    for key in blocks[question.reference]["swept"]:
        values = {blocks[recipe]["swept"][key] for recipe in recipes}
        if len(values) < 2 or not all(map(_is_number, values)):
            continue
        for word, edge in (("smallest", min(values)), ("largest", max(values))):
            at_edge = {recipe for recipe in recipes if blocks[recipe]["swept"][key] == edge}
            if who := _who_chose(question, at_edge):
                found.append((who, word, key, edge))
    return found


def edges_of_methods(comparisons: Sequence[Comparison]) -> list[Edge]:
    """Which methods chose the smallest or largest value of their sweep."""
    found: dict[Edge, None] = {}
    for one in comparisons:
        blocks = one.experiment.reporting["recipes"]
        for recipe in (one.row["recipe_a"], one.row["recipe_b"]) if one.row["selection"] == "best" else ():
            name = method_comparisons.method_name(blocks, recipe)
            family = one.experiment.recipes(blocks[recipe]["family"])
            for key, value in blocks[recipe]["swept"].items():
                swept = [blocks[other]["swept"][key] for other in family]
                if len(set(swept)) < 2 or not all(map(_is_number, swept)):
                    continue
                for word, edge in (("smallest", min(swept)), ("largest", max(swept))):
                    if value == edge:
                        found[name, word, key, value] = None
    return list(found)


def _who_chose(question: Question, recipes: Collection[str]) -> str:
    """The starts whose own best is one of these recipes; with the frameworks where not all chose it."""
    best = question.contrasts("best")
    chose = {
        method_comparisons.INITS[init]: [
            framework_name(name) for name, row in best.items() if row[column] in recipes
        ]
        for init, column in SIDES.items()
    }
    return WORDS.say("who_chose", chose, len(best))


# --- frameworks, models, datasets ---------------------------------------------------------------------------


def equivalence_sentences(experiment: Experiment) -> list[str]:
    """Whether the frameworks agree within the margin, one sentence an init: equivalent, different, or
    inconclusive; of swept families each at its best first, then at the equal recipe. Many are counted
    instead."""
    rows = headline_rows(experiment, "framework")
    if len(rows) <= MAX_TOLD:
        return [_equivalence(experiment, row) for row in rows]
    counts = Counter(None if is_withheld(row) else row["equivalence"] for row in rows)
    return [WORDS.say("equivalence_counted", counts["equivalent"], counts["different"], len(rows))]


@dataclass(frozen=True)
class Equivalence:
    """Whether the frameworks agree within the margin.

    Attributes:
        verdict: equivalent, different or inconclusive.
        withheld: why no verdict stands; empty where one may.
        same: what runs do that are all the same, in the words of the task.
        place, start: where, and from which init, in words.
        own_best: whether each framework is at its own best recipe.
        sides: names of the frameworks, the first minus the second.
        margin, one_point: the margin in points, and whether it is a single one.
        scored, difference, evidence: in words.
    """

    verdict: str
    withheld: str
    same: str
    place: str
    start: str
    own_best: bool
    sides: Sequence[str]
    margin: str
    one_point: bool
    scored: str
    difference: str
    evidence: str


def equivalence(experiment: Experiment, row: Row, *, name_test: bool = True) -> Equivalence:
    """Whether the frameworks agree, by a contrast of that family; the evidence names the test if asked to."""
    family = experiment.reporting["recipes"][row["recipe_a"]]["family"]
    return Equivalence(
        verdict=row["equivalence"],
        withheld=_withheld(row),
        same=experiment.task.words.gives_one_output,
        place=where(experiment, row, family),
        start=method_comparisons.INITS[row["a"].split("/")[1]],
        own_best=row["selection"] == "best",
        sides=[framework_name(row[side].split("/")[0]) for side in "ab"],
        margin=f"{100 * row['margin']:.3g}",
        one_point=row["margin"] == 0.01,
        scored=experiment.scored,
        difference=difference(row),
        evidence=_tested(experiment, row, name_test),
    )


def _withheld(row: Row) -> str:
    return verdict(row) if is_withheld(row) else ""


def _equivalence(experiment: Experiment, row: Row) -> str:
    found = equivalence(experiment, row)
    told = WORDS.say("equivalence", found, _at_equal_recipe(experiment, row))
    return f"{told}{_remarks(experiment, row, dict(zip('ab', found.sides, strict=True)))}"


def _remarks(experiment: Experiment, row: Row, names: Mapping[str, str]) -> str:
    """What a verdict beside the inits' has to say of its runs, as sentences behind it."""
    rows = {row["a"].split("/")[0]: row}
    told = [
        *undecided.before_holm(experiment, rows),
        *undecided.one_sided(experiment, rows, names),
        *undecided.collapses(experiment, rows, names),
    ]
    return "".join(f" {sentence}" for sentence in told)


def _tested(experiment: Experiment, row: Row, name_test: bool) -> str:
    """The interval and the p of the equivalence test, for brackets; before them the interval that leaves zero
    out where the frameworks differ."""
    bounds, wide = equivalence_interval(row), interval(row)
    if bounds is None or wide is None:
        return evidence(experiment, row)
    different = row["equivalence"] == "different"
    return WORDS.say(
        "tested",
        f"{experiment.level} {possible_range(row, wide.low, wide.high)}" if different else "",
        equivalence_level(experiment),
        possible_range(row, bounds.low, bounds.high),
        row["p_equivalence_holm"],
        name_test,
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
    swept = swept_text(experiment.reporting["recipes"][reference]["swept"])
    return WORDS.say("equal_recipe", equivalence(experiment, row, name_test=False), swept)


def model_sentences(experiment: Experiment) -> list[str]:
    """Which of two models is better, for each framework and init: at each one's best recipe where recipes are
    swept. Many are counted instead."""
    rows = headline_rows(experiment, "model")
    if len(rows) > MAX_TOLD:
        return [_counted(experiment, rows, WORDS.say("better_model"))]
    return [_model(experiment, row) for row in rows]


@dataclass(frozen=True)
class Sides:
    """One model against another, or the gain of pretraining on one dataset against another.

    Attributes:
        verdict: higher where the first side is the better one, or gains more.
        withheld: why no verdict stands; empty where one may.
        same: what runs do that are all the same, in the words of the task.
        a, b: names of the sides, as code.
        framework, dataset, model, start: where, and from which init in words.
        family: of recipes; empty where it needs no name.
        several_models: whether the model needs a name.
        scored, difference, evidence: in words.
    """

    verdict: str
    withheld: str
    same: str
    a: str
    b: str
    framework: str
    dataset: str
    model: str
    start: str
    family: str
    several_models: bool
    scored: str
    difference: str
    evidence: str


def sides_of(experiment: Experiment, row: Row, by: str, family: str) -> Sides:
    """The sides of a contrast.

    Args:
        experiment: whose contrast it is.
        row: of contrasts.csv.
        by: in what its sides differ: model or dataset.
        family: of its recipes.
    """
    framework, init = row["a"].split("/")
    return Sides(
        verdict=favours(row),
        withheld=_withheld(row),
        same=experiment.task.words.gives_one_output,
        a=code(row[by]),
        b=code(row[f"{by}_b"]),
        framework=framework,
        dataset=row["dataset"],
        model=row["model"],
        start=method_comparisons.INITS.get(init, init),
        family=family if experiment.has_families else "",
        several_models=len(experiment.reporting["grid"]["models"]) > 1,
        scored=experiment.scored,
        difference=difference(row),
        evidence=evidence(experiment, row),
    )


def _model(experiment: Experiment, row: Row) -> str:
    family = experiment.reporting["recipes"][row["recipe_a"]]["family"]
    found = sides_of(experiment, row, "model", family)
    return f"{WORDS.say('model', found)}{_remarks(experiment, row, {'a': found.a, 'b': found.b})}"


def dataset_sentences(experiment: Experiment) -> list[str]:
    """Whether pretraining gains more on one dataset than on another, for each framework and model: at each
    side's best recipes where recipes are swept. Many are counted, and the pairs of datasets named of which
    every framework says the same."""
    rows = headline_rows(experiment, "dataset")
    if len(rows) <= MAX_TOLD:
        return [_dataset(experiment, row) for row in rows]
    told = [_pair_of_datasets(experiment, members) for members in _agreeing_pairs(experiment, rows)]
    more = [WORDS.say("pairs_left_out", len(told) - MAX_TOLD)] if len(told) > MAX_TOLD else []
    return [_counted(experiment, rows, WORDS.say("larger_gain")), *told[:MAX_TOLD], *more]


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
    a, b = code(row["dataset"]), code(row["dataset_b"])
    more, less = (a, b) if favours(row) == "higher" else (b, a)
    setting = setting_text(experiment, row, _gain_family(experiment, row))
    found = deltas(experiment, {row["a"].split("/")[0]: row for row in rows}, level=True)
    return WORDS.say("pair_of_datasets", more, less, f" {setting}" if setting else "", a, b, found)


def _dataset(experiment: Experiment, row: Row) -> str:
    found = sides_of(experiment, row, "dataset", _gain_family(experiment, row))
    return f"{WORDS.say('dataset', found)}{_remarks(experiment, row, {'a': found.a, 'b': found.b})}"


def _counted(experiment: Experiment, rows: list[Row], finding: str) -> str:
    decided = sum(verdict(row) in ("higher", "lower") for row in rows)
    return WORDS.say("counted", finding, decided, len(rows), experiment.confidence)


def _recipes(experiment: Experiment, row: Row) -> list[str]:
    """The recipes of the family of a contrast of single cells, its reference first."""
    return experiment.recipes(experiment.reporting["recipes"][row["recipe_a"]]["family"])
