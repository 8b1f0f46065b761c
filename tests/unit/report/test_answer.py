"""The opening and what the seeds can show: each line from the rows that call for it."""

import pytest
from builders_report import asked
from builders_rows import change_runs, changed, run_row, summary_row

from seedbed.analysis import statistics, verdicts
from seedbed.analysis.contrast_plans import planning
from seedbed.analysis.planning import Design, Plan, Variances
from seedbed.core import words
from seedbed.report.answer import Difference, answer, of_inits
from seedbed.report.experiment import (
    Experiment,
    equivalence_interval,
    interval,
    narrower_than_over_seeds,
    questions,
    range_text,
    verdict,
)
from seedbed.report.grounds import grounds
from seedbed.report.next_step import next_step
from seedbed.report.opening import opening
from seedbed.report.power import Outcome, outcome, power_table
from seedbed.report.recipe_effects import RecipeEffect, recipe_effect, recipe_effects

EMPTY = ("ci_low", "ci_high", "given_low", "given_high", "p_value", "p_holm")
EMPTY += ("standard_error", "se_seeds", "se_interaction", "se_examples")
EMPTY += ("t_low", "t_high", "margin", "p_equivalence", "p_equivalence_holm")
EMPTY += ("equivalence_low", "equivalence_high")
PLACE = {"dataset": "reviews", "model": "small"}


def runs_of(values, framework="fairseq", init="pretrained", recipe="lab", seeds=None, **more):
    """One run a value; seeds 0, 1, ... unless they are given."""
    seeds = seeds or [(number, number) for number in range(len(values))]
    return [
        run_row(
            {**PLACE, "framework": framework, "init": init, "recipe": recipe, "collapsed": False},
            init_seed=seed[0],
            data_seed=seed[1],
            test_accuracy=value,
            **{"test_examples": 400, "leaked_test_examples": 0, **more},
        )
        for seed, value in zip(seeds, values, strict=True)
    ]


def contrast(delta, low=None, high=None, framework="fairseq", seeds=3, **more):
    """A row of contrasts.csv, of pretrained - random unless `more` says otherwise."""
    row = {**PLACE, "dataset_b": "reviews", "model_b": "small", **dict.fromkeys(EMPTY), "family": "init"}
    row |= {
        "metric": "accuracy",
        "test_set": "all",
        "selection": "equal",
        "paired": True,
        "equivalence": None,
    }
    row |= {"recipe_a": "lab", "recipe_b": "lab", "n_a": seeds, "n_b": seeds, "delta": delta}
    row |= {"a": f"{framework}/pretrained", "b": f"{framework}/random", "ci_low": low, "ci_high": high}
    row |= more
    return {"direction": verdicts.direction(*verdicts.bounds(row)), **row}


def experiment(
    runs,
    contrasts,
    recipes=("lab",),
    learning_rates=(1e-5, 1e-4, 3e-4),
    power=0.8,
    interest=0.02,
    bag=None,
    **grid,
):
    blocks = {
        name: {
            "family": name.split(".")[0],
            "swept": {},
            "method": "full",
            "learning_rate": rate,
            "epochs": 5,
        }
        for name, rate in zip(recipes, learning_rates, strict=False)
    }
    if len(recipes) > 1:
        for block in blocks.values():
            block["swept"] = {"learning_rate": block["learning_rate"]}
    cells = dict.fromkeys((run.dataset, run.model, run.init, run.recipe) for run in runs)
    summary = [
        summary_row(
            dataset=dataset, model=model, init=init, recipe=recipe, mean=0.7, sd=0.01, bag_of_words=bag
        )
        for dataset, model, init, recipe in cells
    ]
    axes = {"models": ["small"], "datasets": ["reviews"], **grid}
    reporting = {
        "statistics": {"confidence": 0.95, "power": power, "difference_of_interest": interest},
        "recipes": blocks,
        "grid": axes,
        "datasets": {name: {"task": "classification"} for name in axes["datasets"]},
    }
    return Experiment(runs, summary, contrasts, reporting)


PRETRAINED, RANDOM = [0.79, 0.80, 0.78], [0.67, 0.69, 0.65]
BOTH = [*runs_of(PRETRAINED), *runs_of(RANDOM, init="random")]


def said(found) -> dict[str, list[tuple]]:
    """What templates are asked to word in the opening."""
    return asked(lambda: opening(found))


def told(found) -> dict[str, list[tuple]]:
    """What templates are asked to word in the reasons behind it."""
    return asked(lambda: grounds(found))


def kinds(found) -> list[str]:
    """The lines of the only question."""
    (group,) = opening(found).groups
    return [line.kind for line in group.lines]


def decided(found) -> dict[str, str]:
    """The verdict on the first question, by framework."""
    findings = answer(of_inits(found)[0]).findings
    return {difference.name: one.verdict for one in findings for difference in one.differences}


def step(found) -> str:
    """What to do next about the first question."""
    return next_step(of_inits(found)[0]).kind


# --- the verdict ---


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0.01, 0.02, "higher"), (-0.02, -0.01, "lower"), (-0.01, 0.01, "unclear"), (0.0, 0.1, "unclear")],
)
def test_a_verdict_needs_an_interval_without_zero(low, high, expected):
    assert verdict(contrast(0.0, low, high)) == expected


def test_without_an_interval_there_is_no_verdict():
    assert verdict(contrast(0.1, seeds=1)) == "single"
    assert verdict(contrast(0.0)) == "flat"
    assert interval(contrast(0.0)) is None


def test_without_predictions_the_interval_over_seeds_counts_and_says_so():
    row = contrast(0.12, t_low=0.08, t_high=0.16)
    assert (interval(row).low, interval(row).high, verdict(row)) == (0.08, 0.16, "higher")
    # of no examples and of no choice of recipe
    assert set(told(experiment(BOTH, [row]))["experiment.over"]) == {(False, False)}
    ((found,),) = said(experiment(BOTH, [row]))["opening.answer"]
    assert found.findings[0].differences[0].seeds_alone


@pytest.mark.parametrize(
    ("over_seeds", "narrower"),
    [((-0.01, 0.16), True), ((0.09, 0.15), False), ((0.08, 0.16), False), ((None, None), False)],
)
def test_an_interval_that_is_narrower_than_the_one_over_seeds(over_seeds, narrower):
    row = contrast(0.12, 0.08, 0.16, t_low=over_seeds[0], t_high=over_seeds[1])
    assert narrower_than_over_seeds(row) is narrower
    assert not narrower_than_over_seeds(row | {"ci_low": None, "ci_high": None})


def test_the_answer_has_the_difference_and_the_interval_of_each_framework():
    rows = [contrast(0.12, 0.08, 0.16), contrast(0.1, 0.05, 0.15, "transformers", paired=False)]
    runs = [*BOTH, *runs_of(PRETRAINED, "transformers"), *runs_of(RANDOM, "transformers", "random")]
    found = experiment(runs, rows)
    ((said_of,),) = said(found)["opening.answer"]
    (one,) = said_of.findings
    assert (said_of.subject, said_of.own_best, one.verdict, one.unlearned) == (
        "pretraining",
        "",
        "higher",
        None,
    )
    assert one.differences == [
        Difference("fairseq", "accuracy", 0.12, "+8.0 to +16.0", False, None),
        Difference("transformers", "accuracy", 0.1, "+5.0 to +15.0", False, None),
    ]
    assert kinds(found) == ["answer", "next"]
    assert step(found) == "sweep"
    ((rests,),) = told(found)["power.rests_on"]
    assert (len(rests.overs), len(rests.seeds)) == (1, 2)


@pytest.mark.parametrize(
    ("low", "high", "options", "verdict"),
    [
        (-0.018, 0.019, {}, "small"),
        (-0.02, 0.019, {}, "unclear"),
        (-0.018, 0.019, {"interest": 0.01}, "unclear"),
        (0.001, 0.019, {}, "higher"),
    ],
)
def test_a_difference_is_small_where_its_interval_lies_within_the_difference_of_interest(
    low, high, options, verdict
):
    assert decided(experiment(BOTH, [contrast(0.0, low, high)], **options)) == {"fairseq": verdict}


def test_a_collapsed_run_makes_no_difference_small():
    runs = [*runs_of(PRETRAINED), *runs_of(RANDOM[:2], init="random")]
    runs += runs_of([0.5], init="random", seeds=[(2, 2)], collapsed=True)
    assert decided(experiment(runs, [contrast(0.0, -0.018, 0.019)])) == {"fairseq": "unclear"}


def test_many_small_differences_are_said_not_to_be_corrected():
    names = ["a", "b", "c"]
    runs = [changed(run, dataset=name) for name in names for run in BOTH]
    rows = [
        contrast(0.0, -0.01, 0.01, dataset=name, dataset_b=name, p_value=0.5, p_holm=1.0) for name in names
    ]
    assert {one.uncorrected for (one,) in said(experiment(runs, rows, datasets=names))["opening.answer"]} == {
        3
    }
    assert {one.uncorrected for (one,) in said(experiment(runs[:6], rows[:1]))["opening.answer"]} == {0}


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [(0.0003, 0.08, "+0.03 to +8.0"), (-0.08, -0.0004, "−8.0 to −0.04"), (0.0, 0.08, "0.0 to +8.0")],
)
def test_a_bound_beside_zero_is_not_printed_as_zero(low, high, shown):
    assert range_text(contrast((low + high) / 2, low, high)) == shown


def test_pretraining_that_hurts():
    assert decided(experiment(BOTH, [contrast(-0.1, -0.12, -0.08)])) == {"fairseq": "lower"}


def test_sides_of_different_numbers_of_seeds():
    row = contrast(0.12, 0.08, 0.16, n_b=5, paired=False)
    assert (3, 5, False) in told(experiment(BOTH, [row]))["experiment.seeds"]


def test_frameworks_that_differ_in_their_verdict():
    rows = [contrast(0.01, -0.02, 0.04), contrast(0.1, 0.05, 0.15, "transformers")]
    runs = [*BOTH, *runs_of(PRETRAINED, "transformers"), *runs_of(RANDOM, "transformers", "random")]
    found = experiment(runs, rows)
    assert decided(found) == {"fairseq": "unclear", "transformers": "higher"}
    assert len(answer(of_inits(found)[0]).findings) == 2
    # to find a difference of interest with the open one is what is left to do
    assert step(found) == "seeds"
    rows[0] = contrast(-0.1, -0.15, -0.05)
    opposed = experiment(runs, rows)
    assert decided(opposed) == {"fairseq": "lower", "transformers": "higher"}
    assert next_step(of_inits(opposed)[0]).about.opposed


def test_one_seed_makes_no_claim():
    found = experiment([*runs_of([0.8]), *runs_of([0.7], init="random")], [contrast(0.1, seeds=1)])
    assert decided(found) == {"fairseq": "single"}
    assert (step(found), "power.rests_on" in told(found)) == ("few_seeds", False)
    assert outcome(found, found.contrasts[0]) == Outcome("single")
    table = power_table(found)
    assert table.rows[0][2:] == [None] * 7
    assert "p" not in table.header


def test_runs_that_are_all_the_same_tell_nothing_of_their_error():
    runs = [*runs_of([0.5] * 3, collapsed=True), *runs_of([0.5] * 3, init="random", collapsed=True)]
    found = experiment(runs, [contrast(0.0)])
    assert (decided(found), step(found)) == ({"fairseq": "flat"}, "flat")
    assert kinds(found) == ["answer", "collapsed", "next"]
    calls = told(found)
    ((_, rates, *_),) = calls["undecided.collapse_rates"]
    assert [rate.collapsed for rate in rates] == [3, 3]
    assert calls["power.outcome"] == [(Outcome("flat"), 0.95)]


@pytest.mark.parametrize(
    ("primary", "over_seeds", "decided"),
    [
        ((0.01, 0.4), (-0.05, 0.41), True),
        ((0.01, 0.4), (0.02, 0.36), None),
        # for these test examples alone
        ((-0.02, 0.12), (0.014, 0.088), False),
        ((-0.02, 0.12), (-0.01, 0.088), None),
        ((None, None), (0.014, 0.088), None),
    ],
)
def test_what_seeds_alone_say_otherwise_is_told(primary, over_seeds, decided):
    row = contrast(0.05, *primary, t_low=over_seeds[0], t_high=over_seeds[1])
    found = experiment(BOTH, [row])
    assert told(found).get("grounds.seeds_alone") == (
        None if decided is None else [("fairseq", "95% interval", "accuracy", over_seeds, decided)]
    )
    # a verdict that these few seeds alone do not bear out
    assert (step(found) == "care") is (decided is True)


def test_an_interval_that_holm_overrules_is_told():
    row = contrast(0.05, 0.01, 0.09, p_value=0.03, p_holm=0.06, direction="unclear")
    found = experiment(BOTH, [row, contrast(0.1, 0.05, 0.15, p_value=0.001, recipe_a="other")])
    (one,) = answer(of_inits(found)[0]).findings
    assert (one.verdict, [difference.p_holm for difference in one.differences]) == ("unclear", [0.06])
    assert told(found)["undecided.corrected"] == [(0.95, 2)]


def test_one_init_cannot_answer_and_says_what_is_missing():
    found = experiment(runs_of(RANDOM, init="random"), [])
    calls = said(found)
    ((kind, init, _, means, left_out),) = calls["opening.alone"]
    assert (kind, init, len(means), left_out) == ("init", "random weights", 1, 0)
    assert calls["opening.mean"] == [("70.0% ± 1.0%", "fairseq", "lab")]
    assert calls["opening.step"] == [("add_init", None)]


def test_several_questions_are_counted_and_listed():
    names = [f"d{number:02}" for number in range(14)]
    runs = [changed(run, dataset=name) for name in names for run in BOTH]
    rows = [
        contrast(0.1, 0.05 if number < 9 else -0.05, 0.15, dataset=name, dataset_b=name)
        for number, name in enumerate(names)
    ]
    found = experiment(runs, rows, datasets=names)
    calls = said(found)
    assert calls["opening.lead"][0][0] == {"pretraining": {"higher": 9, "unclear": 5}}
    verdicts = [one.findings[0].verdict for (one,) in calls["opening.answer"]]
    assert verdicts == ["higher"] * 9 + ["unclear"] * 3
    assert calls["opening.left_out"] == [(2,)]
    groups = opening(found).groups
    assert [group.place for group in groups] == [f"on `{name}`" for name in names[:12]]


def test_what_to_do_next_is_said_once_where_it_is_the_same_everywhere():
    runs = [
        changed(run, dataset=name)
        for name in "ab"
        for run in [*runs_of([0.8]), *runs_of([0.7], init="random")]
    ]
    rows = [contrast(0.1, seeds=1, dataset=name, dataset_b=name) for name in "ab"]
    found = opening(experiment(runs, rows, datasets=["a", "b"]))
    assert [[line.kind for line in group.lines] for group in found.groups] == [["answer"], ["answer"]]
    assert [line.kind for line in found.others] == ["next"]


def test_one_test_counts_once_in_the_correction():
    rows = [contrast(0.1, 0.05, 0.15, framework, p_value=0.01) for framework in ("fairseq", "transformers")]
    # the same cells once more, as each side's best
    rows.append(rows[0] | {"selection": "best"})
    runs = [*BOTH, *runs_of(PRETRAINED, "transformers"), *runs_of(RANDOM, "transformers", "random")]
    assert told(experiment(runs, rows))["undecided.corrected"] == [(0.95, 2)]
    assert "undecided.corrected" not in told(experiment(runs, rows[::2]))


def test_collapses_stand_beside_the_difference():
    runs = [*runs_of(PRETRAINED), *runs_of([0.67, 0.69], init="random")]
    runs += runs_of([0.5], init="random", seeds=[(2, 2)], collapsed=True)
    without = {"delta_without_collapsed": 0.11, "ci_low_without_collapsed": None}
    row = contrast(0.17, -0.05, 0.4, **without, ci_high_without_collapsed=None)
    found = experiment(runs, [row])
    assert kinds(found) == ["answer", "collapsed", "next"]
    # before more seeds
    assert step(found) == "collapse"
    (((said_of,), _),) = said(found)["opening.collapsed"]
    assert [(rate.collapsed, rate.runs) for rate in said_of.rates] == [(0, 3), (1, 3)]
    assert (said_of.name, said_of.without.delta) == ("", 0.11)
    calls = told(found)
    ((name, (pretrained, random), *_),) = calls["undecided.collapse_rates"]
    assert (name, pretrained.collapsed, pretrained.runs, random.collapsed, random.runs) == ("", 0, 3, 1, 3)
    # Clopper and Pearson: 1 - 0.025^(1/3) = 0.7076; of one in three 0.0084 to 0.9057; rounded outwards
    assert (pretrained.bounds, random.bounds) == ((0.0, 0.708), (0.008, 0.906))
    assert len(calls["undecided.without_collapsed"]) == 1


# --- sweeps ---

SWEPT = ("lab.learning_rate=1e-05", "lab.learning_rate=0.0001")


def swept(
    random_best, interval_of_best=(-0.01, 0.06), recipes=SWEPT, rates=(1e-5, 1e-4), change=(-0.11, -0.05)
):
    """Both inits at two recipes; the second is the best of both.

    `change` is the interval of the change of the difference with it.
    """
    values = {
        ("pretrained", 0): PRETRAINED, ("random", 0): RANDOM,
        ("pretrained", 1): [0.84, 0.85, 0.83], ("random", 1): random_best,
    }  # fmt: skip
    runs = [
        run
        for (init, which), accuracies in values.items()
        for run in runs_of(accuracies, init=init, recipe=recipes[which])
    ]
    equal = contrast(0.12, 0.08, 0.16, recipe_a=recipes[0], recipe_b=recipes[0])
    delta = 0.84 - statistics.mean(random_best)
    best = contrast(delta, *interval_of_best, recipe_a=recipes[1], recipe_b=recipes[1], selection="best")
    sides = {"a": "fairseq/gain", "b": "fairseq/gain", "recipe_a": recipes[1], "recipe_b": recipes[0]}
    changed = contrast(delta - 0.12, *change, family="recipe", selection="best", **sides)
    return experiment(runs, [equal, best, changed], recipes, rates)


def effects(found) -> dict[str, list[tuple]]:
    """What templates are asked to word of the choice of recipe."""
    return asked(lambda: recipe_effects(questions(found)[0]))


def effect_of(found) -> RecipeEffect:
    """What becomes of the difference at the equal recipe."""
    return recipe_effect(questions(found)[0], *found.contrasts[:2])


def test_a_sweep_answers_at_each_sides_best_and_tells_with_what_most_of_the_difference_is_gone():
    found = swept([0.80, 0.81, 0.79])
    ((said_of,),) = said(found)["opening.answer"]
    assert (said_of.own_best, decided(found)) == ("learning rate", {"fairseq": "unclear"})
    assert said_of.findings[0].differences[0].delta == pytest.approx(0.04)
    assert effect_of(found) == RecipeEffect("gone", "most", "a higher learning rate")
    ((_, equal, best, of_change, _, gains),) = effects(found)["recipe_effects.change"]
    assert (equal, best, *gains) == pytest.approx((0.12, 0.04, 0.05, 0.13))
    assert of_change == (-0.11, -0.05)


def test_a_change_that_may_be_chance_blames_nothing():
    assert effect_of(swept([0.80, 0.81, 0.79], change=(-0.17, 0.01))) == RecipeEffect("unclear")
    found = swept([0.80, 0.81, 0.79])
    # after Holm's correction
    found.contrasts[2]["direction"] = "unclear"
    assert effect_of(found) == RecipeEffect("unclear")
    assert effect_of(swept([0.80, 0.81, 0.79], change=(0.01, 0.1))) == RecipeEffect("changed")


def test_the_recipe_that_a_difference_is_gone_with_is_told_by_what_is_different():
    found = swept([0.80, 0.81, 0.79], rates=(1e-3, 1e-5))
    assert effect_of(found) == RecipeEffect("gone", "most", "a lower learning rate")
    found = swept([0.80, 0.81, 0.79])
    assert effect_of(found) == RecipeEffect("gone", "most", "a higher learning rate")
    for block, epochs in zip(found.reporting["recipes"].values(), (5, 10), strict=True):
        block["swept"] = {"epochs": epochs, "schedule": f"until {epochs}"}
    assert effect_of(found).change == "more epochs and another schedule"


def test_where_one_init_keeps_the_equal_recipe_the_other_is_named():
    found = swept([0.80, 0.81, 0.79])
    found.contrasts[1] |= {"recipe_a": SWEPT[0], "delta": -0.01}
    (changed,) = effects(found)["recipe_effects.changed_recipe"][0]
    assert changed == {"pretrained": "", "random": "a higher learning rate"}
    assert (effect_of(found).kind, effect_of(found).amount) == ("gone", "all")


def test_one_sentence_for_frameworks_of_which_the_same_is_found():
    found = swept([0.80, 0.81, 0.79])
    found.runs.extend([changed(run, framework="transformers") for run in found.runs])
    for row in list(found.contrasts):
        sides = {side: row[side].replace("fairseq", "transformers") for side in "ab"}
        found.contrasts.append(row | sides)
    both = ["fairseq", "Transformers"]
    ((frameworks, effect, changes),) = effects(found)["recipe_effects.recipe_effect"]
    assert (frameworks, effect.kind, len(changes)) == (both, "gone", 2)
    calls = told(found)
    assert [names for names, _ in calls["power.outcome_of"]] == [both]
    assert calls["power.outcome"] == [(Outcome("flat"), 0.95)]


@pytest.mark.parametrize(
    ("a", "b", "edges"),
    [
        (2, 2, [("the checkpoint random weights", "largest", 3e-4)]),
        (1, 2, [("random weights", "largest", 3e-4)]),
        (0, 2, [("the checkpoint", "smallest", 1e-5), ("random weights", "largest", 3e-4)]),
        (1, 1, []),
    ],
)
def test_a_value_at_the_edge_of_its_sweep_is_told(a, b, edges):
    recipes, rates = ("lab.1", "lab.2", "lab.3"), (1e-5, 1e-4, 3e-4)
    runs = [
        run
        for init in ("pretrained", "random")
        for recipe in recipes
        for run in runs_of(PRETRAINED if init == "pretrained" else RANDOM, init=init, recipe=recipe)
    ]
    equal = contrast(0.12, 0.08, 0.16, recipe_a=recipes[0], recipe_b=recipes[0])
    best = contrast(0.12, 0.08, 0.16, recipe_a=recipes[a], recipe_b=recipes[b], selection="best")
    found = experiment(runs, [equal, best], recipes, rates)
    calls = effects(found)
    chose = [
        " ".join(init for init in chose if chose[init])
        for chose, _ in calls.get("recipe_effects.who_chose", [])
    ]
    ((at_edge,),) = calls.get("recipe_effects.edges", [([],)])
    values = [(word, value) for _, word, _, value in at_edge]
    assert list(zip(filter(None, chose), *zip(*values, strict=True), strict=True) if values else []) == edges
    assert step(found) == ("edge" if edges else "settled")


def test_where_frameworks_choose_differently_the_edge_is_told_of_the_one_that_chose_it():
    found = swept([0.80, 0.81, 0.79], recipes=("lab.1", "lab.2", "lab.3"), rates=(1e-5, 1e-4, 3e-4))
    found.runs.extend([changed(run, recipe="lab.3") for run in found.runs if run.recipe == "lab.1"])
    found.runs.extend([changed(run, framework="transformers") for run in found.runs])
    sides = {"a": "transformers/pretrained", "b": "transformers/random"}
    equal, best, _ = found.contrasts
    # the middle value with fairseq; with Transformers the smallest, on one side
    found.contrasts.extend([equal | sides, best | sides | {"recipe_b": "lab.1"}])
    calls = effects(found)
    ((edges,),) = calls["recipe_effects.edges"]
    assert [edge[1:] for edge in edges] == [("smallest", "learning_rate", 1e-5)]
    assert calls["recipe_effects.who_chose"][0] == (
        {"the checkpoint": [], "random weights": ["Transformers"]},
        2,
    )


def test_an_edge_is_that_of_the_values_that_a_side_tried_itself():
    found = swept([0.80, 0.81, 0.79], recipes=("lab.1", "lab.2", "lab.3"), rates=(1e-5, 1e-4, 3e-4))
    # both chose 1e-4, beyond which the checkpoint alone has been trained
    more = [changed(run, recipe="lab.3") for run in found.runs if run.recipe == "lab.1"]
    found.runs.extend([run for run in more if run.init == "pretrained"])
    calls = effects(found)
    assert calls["recipe_effects.who_chose"] == [({"the checkpoint": [], "random weights": ["fairseq"]}, 1)]
    ((edges,),) = calls["recipe_effects.edges"]
    assert [edge[1:] for edge in edges] == [("largest", "learning_rate", 1e-4)]


@pytest.mark.parametrize(
    ("bag", "beats", "level", "below"),
    [
        (0.848, ["the checkpoint", "random weights"], [], []),
        (0.81, ["random weights"], ["the checkpoint"], []),
        (0.75, ["random weights"], [], ["the checkpoint"]),
        (0.65, [], [], ["the checkpoint", "random weights"]),
    ],
)
def test_a_bag_of_words_stands_beside_the_intervals_of_the_means(bag, beats, level, below):
    found = experiment(BOTH, [contrast(0.12, 0.08, 0.16)], bag=bag)
    found.summary[:] = [around({"pretrained": 0.8, "random": 0.7}[row.init], row) for row in found.summary]
    ((said_of,),) = said(found)["opening.baseline"]
    assert (said_of.bag, said_of.beats, said_of.level, said_of.below) == (bag, beats, level, below)
    (group,) = opening(found).groups
    assert [("**" in line.text) for line in group.lines if line.kind == "baseline"] == [len(beats) == 2]


def around(mean, row, **values):
    """The row with this mean, and an interval of two points on each side."""
    return changed(row, mean=mean, both_low=mean - 0.02, both_high=mean + 0.02, **values)


def test_a_bag_of_words_is_level_with_a_start_that_frameworks_place_apart():
    found = experiment(BOTH, [contrast(0.12, 0.08, 0.16)], bag=0.75)
    found.summary[:] = [
        around(mean, row, framework=framework)
        for row, means in zip(found.summary, ((0.8, 0.7), (0.6, 0.65)), strict=True)
        for framework, mean in zip(("fairseq", "transformers"), means, strict=True)
    ]
    ((said_of,),) = said(found)["opening.baseline"]
    assert (said_of.beats, said_of.level) == (["random weights"], ["the checkpoint"])


def test_without_a_bag_of_words_there_is_no_baseline():
    assert "baseline" not in kinds(experiment(BOTH, [contrast(0.12, 0.08, 0.16)]))


def test_both_best_at_the_equal_recipe():
    found = swept([0.80, 0.81, 0.79])
    found.contrasts[1] |= {"recipe_a": SWEPT[0], "recipe_b": SWEPT[0]}
    assert effect_of(found) == RecipeEffect("same_recipe")


# --- power ---


def unclear(se_examples=None, **options):
    """Differences of pairs 0.02, -0.01, 0.05: mean 0.02, sample sd 0.03."""
    runs = [*runs_of([0.70, 0.70, 0.75]), *runs_of([0.68, 0.71, 0.70], init="random")]
    return experiment(runs, [contrast(0.02, -0.02, 0.06, **errors(se_examples))], **options)


def errors(se_examples, se_interaction=0.0, se_choice=0.0):
    """The columns of a contrast's standard error; none where that of examples is not known."""
    if se_examples is None:
        return {}
    se_seeds = 0.03 / 3**0.5
    whole = (se_seeds**2 + se_examples**2 + se_choice**2) ** 0.5
    parts = {"se_seeds": se_seeds, "se_interaction": se_interaction, "se_examples": se_examples}
    return {**parts, "standard_error": whole}


def variances(found) -> Variances:
    return planning(found, found.contrasts[0]).plan.design.variances


def test_the_variances_are_those_of_pairs_examples_and_interaction():
    found = unclear()
    assert variances(found) == Variances(pytest.approx(0.03**2), 0.0, 0.0, 1)
    found.contrasts[0] |= errors(0.015, se_interaction=0.01)
    own = 0.03**2 - 3 * 0.01**2
    assert variances(found) == Variances(
        pytest.approx(own), pytest.approx(400 * 0.015**2), pytest.approx(1200 * 0.01**2), 1
    )


def test_what_the_choice_adds_counts_as_variance_of_seeds():
    found = unclear()
    found.contrasts[0] |= errors(0.015, se_choice=0.02)
    assert variances(found).seeds == pytest.approx(0.03**2 + 3 * 0.02**2)


def test_unpaired_sides_sum_their_variances():
    found = unclear()
    found.contrasts[0]["paired"] = False
    # sample variances of 70, 70, 75 and of 68, 71, 70: 25/3 and 7/3 square points
    assert variances(found) == Variances(pytest.approx((25 / 3 + 7 / 3) / 100**2), 0.0, 0.0, 2)


def test_a_plan_is_for_the_difference_of_interest_not_for_the_one_seen():
    found = unclear(interest=0.05)
    plan = planning(found, found.contrasts[0])
    needed = Plan.estimated(3, Design(variances(found), 400, 0.95, 0.8)).seeds_for(0.05)
    assert plan.needed == needed
    found.contrasts[0]["delta"] = 0.0
    assert planning(found, found.contrasts[0]).needed == needed


def test_the_floor_of_the_test_examples_is_what_endless_seeds_detect():
    found = unclear(se_examples=0.01)
    plan = planning(found, found.contrasts[0])
    # 1.96 + 0.8416 standard errors
    assert plan.plan.design.floor == pytest.approx(0.028016, abs=1e-6)
    assert plan.needed[0] is None
    # (2.8016 / 2)^2 times as many as 400
    assert plan.examples_needed == 785


def test_runs_that_cannot_tell_say_how_many_seeds_could_and_not_to_add_them_one_by_one():
    found = unclear(interest=0.03)
    plan = planning(found, found.contrasts[0])
    calls = told(found)
    assert calls["power.outcome"] == [(Outcome("more_seeds", 0.03, "accuracy", 0.8, plan.needed), 0.95)]
    assert calls["power.plan_ahead"] == [()]
    ((kind, about),) = said(found)["opening.step"]
    assert (kind, about.outcome.seeds, about.names) == ("seeds", plan.needed, [])


def test_where_no_number_of_seeds_finds_it_the_power_of_endless_ones_is_told():
    found = unclear(se_examples=0.01)
    one = outcome(found, found.contrasts[0])
    # no more than the 785 that are needed at least
    assert (one.kind, one.needed, one.examples) == ("more_examples", 780, 400)
    # a normal number above 1.96 - 2
    assert one.endless == pytest.approx(0.516, abs=1e-3)
    assert "power.plan_ahead" not in told(found)
    ((kind, about),) = said(found)["opening.step"]
    assert (kind, about.outcome) == ("examples", one)
    assert "At least 380 more test texts" in opening(found).groups[0].lines[-1].text


def test_leaked_examples_do_not_count_without_leaks():
    found = unclear(se_examples=0.01)
    row = found.contrasts[0] | {"test_set": "without leaks", "metric": "accuracy"}
    change_runs(
        found,
        lambda run: {
            "leaked_test_examples": 100,
            "test_accuracy_without_leaks": run.value("test_accuracy"),
        },
    )
    assert planning(found, row).examples == 300


def test_published_results_without_a_number_of_test_examples_are_planned_by_their_seeds():
    found = unclear()
    change_runs(found, lambda run: {"test_examples": None, "leaked_test_examples": None})
    plan = planning(found, found.contrasts[0])
    assert (plan.examples, plan.plan.design.floor, plan.examples_needed) == (None, 0.0, None)
    cells = dict(zip(power_table(found).header, power_table(found).rows[0], strict=True))
    assert "test examples" not in cells
    assert "; test examples" not in power_table(found).caption
    assert cells["seeds needed"].value == plan.needed[0]


def test_a_power_sentence_tells_what_is_detected_now():
    found = unclear(se_examples=0.001)
    plan = planning(found, found.contrasts[0])
    calls = asked(lambda: grounds(found))
    assert calls["power.size"] == [(plan.plan.detectable(3), "accuracy", "points", "fairseq")]
    assert [values[:3] for values in calls["power.detectable"]] == [(3, False, 0.8)]


def test_seeds_that_would_find_it_are_enough():
    found = unclear(interest=0.5)
    assert outcome(found, found.contrasts[0]).kind == "enough"


def test_a_decided_difference_is_said_to_be():
    found = experiment(BOTH, [contrast(0.12, 0.08, 0.16)])
    assert outcome(found, found.contrasts[0]) == Outcome("decided")
    assert step(found) == "sweep"


def test_the_power_table_is_in_points():
    found = unclear(se_examples=0.01)
    plan = planning(found, found.contrasts[0])
    table = power_table(found)
    (row,) = table.rows
    cells = dict(zip(table.header, row, strict=True))
    assert cells["difference (points)"].text == "+2.0"
    assert cells["difference (points)"].value == pytest.approx(2.0)
    assert cells["detectable with 10 (points)"].value == pytest.approx(100 * plan.plan.design.detectable(10))
    assert cells["with endless seeds (points)"].value == pytest.approx(2.8016, abs=1e-4)
    assert cells["seeds needed"].text == "no number"
    assert cells["test examples needed"].text == "≥ 780"
    assert table.caption.endswith("recipe lab; seeds a side 3; test examples 400.")
    ((_, power, level, *_),) = asked(lambda: power_table(found))["power.caption"]
    assert (power, level) == pytest.approx((0.8, 0.05))


def test_nothing_to_compare_is_an_empty_table():
    found = experiment(runs_of(RANDOM, init="random"), [])
    assert grounds(found) == []
    assert power_table(found).rows == []


def test_crossed_seeds_are_not_counted_as_so_many_independent_ones():
    seeds = [(init, data) for init in range(2) for data in range(2)]
    # an effect of the init seed alone: the differences are 0.00, 0.00, 0.04, 0.04
    runs = runs_of([0.70, 0.70, 0.74, 0.74], seeds=seeds) + runs_of([0.70] * 4, init="random", seeds=seeds)
    found = experiment(runs, [contrast(0.02, -0.1, 0.14, seeds=4)])
    plan = planning(found, found.contrasts[0])
    # the variance of init seeds is that of 0.00 and 0.04; the sample variance of the four runs is less
    assert variances(found).seeds == pytest.approx(0.0008)
    calls = told(found)
    assert [values[:2] for values in calls["power.detectable"]] == [(5, True)]
    ((one, _),) = calls["power.outcome"]
    assert (one.kind, one.seeds, one.crossed) == ("more_seeds", plan.needed, True)
    assert asked(lambda: power_table(found))["power.caption"][0][-1] is True
    cells = dict(zip(power_table(found).header, power_table(found).rows[0], strict=True))
    assert cells["detectable now (points)"] is None


# --- frameworks, models, datasets ---


def framework_row(delta, low, high, equivalence, init="pretrained", tested=(None, None, None), **more):
    """`tested`: the interval of the equivalence test, and its p after Holm's correction."""
    sides = {"a": f"fairseq/{init}", "b": f"transformers/{init}", "family": "framework", "paired": False}
    margin = {"pretrained": 0.01, "random": 0.02}[init]
    columns = ("equivalence_low", "equivalence_high", "p_equivalence_holm")
    sides |= dict(zip(columns, tested, strict=True))
    return contrast(delta, low, high, equivalence=equivalence, margin=margin, **sides, **more)


AGREE = framework_row(0.002, -0.004, 0.008, "equivalent")
OPEN = framework_row(0.0, -0.03, 0.03, "inconclusive")
DIFFER = framework_row(-0.03, -0.05, -0.01, "different", "random")


@pytest.mark.parametrize(
    ("rows", "different", "open_starts", "all_open"),
    [
        ([], [], [], False),
        ([AGREE], [], [], False),
        ([AGREE, DIFFER], ["from random weights"], [], False),
        (
            [framework_row(0.0, -0.03, 0.03, "inconclusive"), DIFFER],
            ["from random weights"],
            ["from the checkpoint"],
            False,
        ),
        ([framework_row(0.01, None, None, None, seeds=1)], [], ["from the checkpoint"], True),
        ([AGREE | {"no_verdict": "a collapse"}], [], ["from the checkpoint"], True),
    ],
)
def test_what_is_settled_names_what_is_open_between_the_frameworks(rows, different, open_starts, all_open):
    found = experiment(BOTH, [contrast(0.1, 0.05, 0.15), *rows])
    del found.reporting["recipes"]["lab"]["learning_rate"]  # else it is the next thing to vary
    kind, about = next_step(of_inits(found)[0]).kind, next_step(of_inits(found)[0]).about
    assert (kind, about.different, about.open, about.all_open) == (
        "settled",
        different,
        open_starts,
        all_open,
    )


def test_without_another_question_the_frameworks_are_compared():
    row = framework_row(0.002, -0.004, 0.008, "equivalent")
    ((((one),),),) = said(experiment(runs_of(PRETRAINED), [row]))["opening.compared"]
    assert (one.kind, one.a, one.b, one.verdict, one.margin) == (
        "framework", "fairseq", "Transformers", "equivalent", 0.01,
    )  # fmt: skip


def test_the_interval_of_the_equivalence_test_is_that_of_the_table():
    bounds = equivalence_interval(framework_row(0.0, -0.03, 0.03, "inconclusive", tested=(-0.025, 0.02, 0.2)))
    assert (bounds.low, bounds.high, bounds.over) == (-0.025, 0.02, "seeds and test examples")
    assert equivalence_interval(framework_row(0.01, None, None, None, seeds=1)) is None


def model_row(delta, low, high, **more):
    sides = {"family": "model", "model_b": "large", "b": "fairseq/pretrained"}
    return contrast(delta, low, high, **sides, **more)


def dataset_row(delta, low, high, **more):
    sides = {"family": "dataset", "dataset_b": "music", "a": "fairseq/gain", "b": "fairseq/gain"}
    return contrast(delta, low, high, paired=False, **sides, **more)


@pytest.mark.parametrize("kind", ["model", "dataset"])
@pytest.mark.parametrize(
    ("delta", "low", "high", "more", "verdict", "withheld"),
    [
        (0.03, 0.01, 0.05, {}, "higher", ""),
        (-0.03, -0.05, -0.01, {}, "lower", ""),
        (0.0, -0.05, 0.05, {}, "unclear", ""),
        (0.03, 0.01, 0.05, {"no_verdict": "a collapse"}, "a collapse", "a collapse"),
    ],
)
def test_models_and_datasets_are_compared_in_a_line(kind, delta, low, high, more, verdict, withheld):
    row = {"model": model_row, "dataset": dataset_row}[kind](delta, low, high, **more)
    found = experiment(BOTH, [contrast(0.1, 0.05, 0.15), row])
    (((one,),),) = said(found)["opening.compared"]
    sides = {"model": ("`small`", "`large`"), "dataset": ("`reviews`", "`music`")}[kind]
    assert (one.kind, one.verdict, one.a, one.b, one.withheld) == (kind, verdict, *sides, withheld)
    assert [line.kind for line in opening(found).others] == ["compared"]


@pytest.mark.parametrize(("make", "family"), [(model_row, "model"), (dataset_row, "dataset")])
def test_many_comparisons_of_models_and_datasets_are_counted(make, family):
    rows = [make(0.03, 0.01, 0.05)] * 3 + [make(-0.03, -0.05, -0.01)] + [make(0.0, -0.05, 0.05)] * 2
    calls = said(experiment(BOTH, [contrast(0.1, 0.05, 0.15), *rows]))
    assert calls["opening.counted"] == [(family, 4, 6, 0.95)]
    # so are a few of which none is decided
    calls = said(experiment(BOTH, [contrast(0.1, 0.05, 0.15), *rows[-2:]]))
    assert calls["opening.counted"] == [(family, 0, 2, 0.95)]


def test_of_swept_models_and_datasets_each_sides_best_counts():
    found = swept([0.80, 0.81, 0.79])
    for make in (model_row, dataset_row):
        found.contrasts.append(make(0.3, 0.2, 0.4, recipe_a=SWEPT[0], recipe_b=SWEPT[0]))
    found.contrasts.append(
        model_row(0.03, 0.01, 0.05, recipe_a=SWEPT[1], recipe_b=SWEPT[1], selection="best")
    )
    # of a gain each init has a recipe of its own
    recipes = {"recipe_a": "/".join(SWEPT), "recipe_b": "/".join(SWEPT), "selection": "best"}
    found.contrasts.append(dataset_row(0.04, 0.01, 0.07, **recipes))
    deltas = [one.difference.delta for (ones,) in said(found)["opening.compared"] for one in ones]
    assert deltas == [0.03, 0.04]


# --- numbers and recipes in words ---


def test_a_recipe_is_told_by_its_swept_values():
    recipes = {
        "lab.1": {"family": "lab", "swept": {"learning_rate": 1e-5, "epochs": 5}},
        "lab.2": {"family": "lab", "swept": {"learning_rate": 0.1, "epochs": 10}},
    }
    assert words.recipe_text(recipes, "lab.1") == "learning rate 1e-5, epochs 5"
    recipes["long"] = {"family": "long", "swept": {}}
    assert words.recipe_text(recipes, "lab.2") == "lab, learning rate 0.1, epochs 10"
    assert words.recipe_text(recipes, "long") == "long"
