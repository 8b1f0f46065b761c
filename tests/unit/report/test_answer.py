"""The answer in words and what the seeds can show: each sentence from the rows that call for it."""

import re

import pytest
from builders_rows import change_runs, changed, run_row, summary_row

from seedbed.analysis import statistics
from seedbed.core import words
from seedbed.report.answer import RecipeEffect, answer, decide, recipe_effect
from seedbed.report.experiment import (
    Experiment,
    equivalence_interval,
    interval,
    narrower_than_over_seeds,
    questions,
    verdict,
)
from seedbed.report.power import Outcome, outcome, planning, power_sentences, power_table, smallest_p

EMPTY = ("ci_low", "ci_high", "standard_error", "se_seeds", "se_examples", "se_examples_upper", "degrees")
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
    return row | more


def experiment(
    runs, contrasts, recipes=("lab",), learning_rates=(1e-5, 1e-4, 3e-4), power=0.8, bag=None, **grid
):
    blocks = {
        name: {"family": name.split(".")[0], "swept": {}, "learning_rate": rate, "epochs": 5}
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
        "statistics": {"confidence": 0.95, "power": power},
        "recipes": blocks,
        "grid": axes,
        "datasets": {name: {"task": "classification"} for name in axes["datasets"]},
    }
    return Experiment(runs, summary, contrasts, reporting)


PRETRAINED, RANDOM = [0.79, 0.80, 0.78], [0.67, 0.69, 0.65]
BOTH = [*runs_of(PRETRAINED), *runs_of(RANDOM, init="random")]


def first(found) -> str:
    return answer(found)[0]


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
    text = first(experiment(BOTH, [row]))
    assert (
        "fairseq (95% interval +8.0 to +16.0).** The intervals are over seeds alone; 3 seeds a side" in text
    )


@pytest.mark.parametrize(
    ("over_seeds", "narrower"),
    [((-0.01, 0.16), True), ((0.09, 0.15), False), ((0.08, 0.16), False), ((None, None), False)],
)
def test_an_interval_that_is_narrower_than_the_one_over_seeds(over_seeds, narrower):
    row = contrast(0.12, 0.08, 0.16, t_low=over_seeds[0], t_high=over_seeds[1])
    assert narrower_than_over_seeds(row) is narrower
    assert not narrower_than_over_seeds(row | {"ci_low": None, "ci_high": None})


def test_the_first_sentence_bears_difference_interval_and_seeds():
    rows = [contrast(0.12, 0.08, 0.16), contrast(0.1, 0.05, 0.15, "transformers", paired=False)]
    runs = [*BOTH, *runs_of(PRETRAINED, "transformers"), *runs_of(RANDOM, "transformers", "random")]
    assert first(experiment(runs, rows)) == (
        "**Pretraining helps on `reviews` at the one recipe tried (learning rate 1e-5): pretrained minus "
        "random test accuracy is +12.0 points with fairseq (95% interval +8.0 to +16.0) and +10.0 points "
        "with Transformers (+5.0 to +15.0).** The intervals are over seeds and test examples; 3 seeds a "
        "side, paired (an exact test over so few cannot give a p below 0.25) and 3 seeds a side, unpaired "
        "(an exact test over so few cannot give a p below 0.10)."
    )


def test_a_bound_beside_zero_is_not_printed_as_zero():
    assert "+0.03 to +8.0" in first(experiment(BOTH, [contrast(0.04, 0.0003, 0.08)]))
    assert "−8.0 to −0.04" in first(experiment(BOTH, [contrast(-0.04, -0.08, -0.0004)]))
    assert "0.0 to +8.0" in first(experiment(BOTH, [contrast(0.04, 0.0, 0.08)]))


def test_pretraining_that_hurts():
    assert first(experiment(BOTH, [contrast(-0.1, -0.12, -0.08)])).startswith(
        "**Pretraining hurts on `reviews` at the one recipe tried (learning rate 1e-5): pretrained minus "
        "random test accuracy is −10.0 points"
    )


def test_sides_of_different_numbers_of_seeds():
    row = contrast(0.12, 0.08, 0.16, n_b=5, paired=False)
    assert "over seeds and test examples; 3 and 5 seeds, unpaired (" in first(experiment(BOTH, [row]))


def test_frameworks_that_differ_in_their_verdict():
    rows = [contrast(0.01, -0.02, 0.04), contrast(0.1, 0.05, 0.15, "transformers")]
    runs = [*BOTH, *runs_of(PRETRAINED, "transformers"), *runs_of(RANDOM, "transformers", "random")]
    text = first(experiment(runs, rows))
    verdict = decide(questions(experiment(runs, rows))[0])
    assert verdict.by_framework == {"fairseq": "unclear", "transformers": "higher"}
    assert text.startswith(
        "**On `reviews` at the one recipe tried (learning rate 1e-5), these runs cannot tell the inits apart "
        "with fairseq and pretraining helps with Transformers: "
    )
    assert "no evidence that the frameworks do" in text


def test_one_seed_makes_no_claim():
    found = experiment([*runs_of([0.8]), *runs_of([0.7], init="random")], [contrast(0.1, seeds=1)])
    assert first(found) == (
        "**One seed a side cannot tell the inits apart on `reviews` at the one recipe tried (learning rate "
        "1e-5): pretrained minus random test accuracy is +10.0 points with fairseq (1 seed a side, no "
        "interval).**"
    )
    assert power_sentences(found) == [
        "On `reviews`: with fairseq one seed a side says nothing of other seeds, so that no difference can "
        "be detected."
    ]
    table = power_table(found)
    assert list(table.header[:2]) == ["framework", "difference (points)"]
    assert table.rows[0][2:] == [None] * 7


def test_runs_that_are_all_the_same_tell_nothing_of_their_error():
    runs = [*runs_of([0.5] * 3, collapsed=True), *runs_of([0.5] * 3, init="random", collapsed=True)]
    found = experiment(runs, [contrast(0.0)])
    text = first(found)
    assert text.startswith("**Seeds without any spread cannot tell the inits apart on `reviews` at")
    assert "is 0.0 points with fairseq (3 seeds a side, paired, without spread, no interval)" in text
    assert "every seed shows the same difference" in text
    assert "6 of the 6 runs behind these numbers collapsed and count in them" in text
    assert power_sentences(found)[0].endswith("so that seeds tell nothing of its error.")


def test_a_verdict_that_seeds_alone_do_not_bear_asks_for_care():
    fragile = contrast(0.18, 0.01, 0.4, t_low=-0.05, t_high=0.41)
    sound = contrast(0.18, 0.01, 0.4, t_low=0.02, t_high=0.36)
    told = "take the verdict with care: Student's 95% interval over seeds alone holds zero (−5.0 to +41.0)"
    assert told in first(experiment(BOTH, [fragile]))
    assert "with care" not in first(experiment(BOTH, [sound]))


def test_one_init_has_no_contrast():
    (text,) = answer(experiment(runs_of(RANDOM, init="random"), []))
    assert text.startswith("**This experiment has only the random init, so it cannot say whether pretraining")
    assert "70.0% ± 1.0% (fairseq, `reviews`, `small`, lab, 3 seeds)" in text


def test_several_questions_are_counted_and_listed():
    names = [f"d{number:02}" for number in range(14)]
    runs = [changed(run, dataset=name) for name in names for run in BOTH]
    rows = [
        contrast(0.1, 0.05 if number < 9 else -0.05, 0.15, dataset=name, dataset_b=name)
        for number, name in enumerate(names)
    ]
    lead, listed = answer(experiment(runs, rows, datasets=names))
    assert lead.startswith(
        "**Pretraining helps in 9 of 14 comparisons and these runs cannot tell the inits apart in 5 of 14 "
        "comparisons: "
    )
    items = listed.split("\n")
    assert items[0].startswith("- **Pretraining helps on `d00` at the one recipe tried (")
    assert items[9].startswith("- **These runs cannot tell the inits apart on `d09` at the one")
    assert items[12:] == ["- 2 more in contrasts.csv."]


@pytest.mark.parametrize(
    ("seeds", "told"),
    [
        # one of 2^3 signs on each end is 0.25, two comparisons make it 0.50
        (3, "With so few seeds an exact test cannot give a p below 0.50 after Holm's correction"),
        # 2 / 2^6 = 0.031, twice that is above 0.05; of seven pairs 2 x 2 / 2^7 is below
        (6, "With so few seeds an exact test cannot give a p below 0.063 after Holm's correction"),
        (7, None),
    ],
)
def test_what_holm_can_give_at_best_is_told_beside_the_count(seeds, told):
    names = ["d1", "d2"]
    runs = [
        changed(run, dataset=name)
        for name in names
        for init in ("pretrained", "random")
        for run in runs_of([0.7] * seeds, init=init)
    ]
    rows = [contrast(0.1, 0.05, 0.15, seeds=seeds, dataset=name, dataset_b=name) for name in names]
    # the same cells once more, as each side's best: one test, not two
    rows.append(rows[0] | {"selection": "best"})
    lead = answer(experiment(runs, rows, datasets=names))[0]
    assert (told in lead) if told else "Holm" not in lead


# --- sweeps ---

SWEPT = ("lab.learning_rate=1e-05", "lab.learning_rate=0.0001")


def swept(random_best, interval_of_best=(-0.01, 0.06), recipes=SWEPT, rates=(1e-5, 1e-4)):
    """Both inits at two recipes; the second is the best of both."""
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
    return experiment(runs, [equal, best], recipes, rates)


def effect_of(found) -> RecipeEffect:
    """What becomes of the difference at the equal recipe."""
    return recipe_effect(questions(found)[0], *found.contrasts)


def test_a_sweep_tells_both_differences_and_with_what_most_of_the_first_is_gone():
    text = first(swept([0.80, 0.81, 0.79]))
    assert text.startswith(
        "**These runs cannot tell the inits apart on `reviews` when each init has its own best recipe on "
        "validation: pretrained minus random test accuracy is +4.0 points with fairseq (95% interval −1.0 to "
        "+6.0); at the equal recipe, learning rate 1e-5, it is +12.0 points with fairseq (+8.0 to +16.0).** "
        "The intervals are over seeds, test examples and the choice of recipe, at the equal recipe over "
        "seeds and test examples; 3 seeds a side, paired (an exact test over so few cannot give a p below "
        "0.25)."
    )
    # changes of the difference, seed by seed: 0.04 - 0.12, 0.04 - 0.11, 0.04 - 0.13
    low, high = statistics.t_interval([-0.08, -0.07, -0.09], 0.95)
    assert (
        "With fairseq most of the difference at the equal recipe is gone with a higher learning rate: from "
        f"+12.0 to +4.0 points (95% interval of the change over seeds alone −{-100 * low:.1f} to "
        f"−{-100 * high:.1f}; pretrained gains +5.0, random +13.0)."
    ) in text


def test_a_change_that_may_be_chance_blames_nothing():
    found = swept([0.70, 0.78, 0.68])
    assert effect_of(found) == RecipeEffect("unclear")
    assert "depends on the recipe: from +12.0 to +12.0 points" in first(found)


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
    assert effect_of(found) == RecipeEffect("gone", "all", "a higher learning rate for the random init")


def test_one_sentence_for_frameworks_of_which_the_same_is_found():
    found = swept([0.80, 0.81, 0.79])
    found.runs.extend([changed(run, framework="transformers") for run in found.runs])
    for row in list(found.contrasts):
        found.contrasts.append(row | {"a": "transformers/pretrained", "b": "transformers/random"})
    text = first(found)
    assert text.count("at the equal recipe is gone") == 1
    assert "With fairseq and Transformers most of the difference" in text
    assert text.count("from +12.0 to +4.0 points") == 2
    assert "With fairseq and Transformers every seed shows the same difference" in text


@pytest.mark.parametrize(
    ("a", "b", "told"),
    [
        (2, 2, "Every side chose the largest learning rate tried, 3e-4: a better one may lie beyond."),
        (1, 2, "The random init chose the largest learning rate tried, 3e-4: a better"),
        (
            0,
            2,
            "The pretrained init chose the smallest learning rate tried, 1e-5; the random init chose the",
        ),
        (1, 1, None),
    ],
)
def test_a_value_at_the_edge_of_its_sweep_is_told(a, b, told):
    recipes, rates = ("lab.1", "lab.2", "lab.3"), (1e-5, 1e-4, 3e-4)
    runs = [
        run
        for init in ("pretrained", "random")
        for recipe in recipes
        for run in runs_of(PRETRAINED if init == "pretrained" else RANDOM, init=init, recipe=recipe)
    ]
    equal = contrast(0.12, 0.08, 0.16, recipe_a=recipes[0], recipe_b=recipes[0])
    best = contrast(0.12, 0.08, 0.16, recipe_a=recipes[a], recipe_b=recipes[b], selection="best")
    text = first(experiment(runs, [equal, best], recipes, rates))
    assert told in text if told else "tried" not in text


def test_where_frameworks_choose_differently_the_edge_is_told_of_the_one_that_chose_it():
    found = swept([0.80, 0.81, 0.79], recipes=("lab.1", "lab.2", "lab.3"), rates=(1e-5, 1e-4, 3e-4))
    found.runs.extend([changed(run, framework="transformers") for run in found.runs])
    sides = {"a": "transformers/pretrained", "b": "transformers/random"}
    equal, best = found.contrasts
    # the middle value with fairseq; with Transformers the smallest, on one side
    found.contrasts.extend([equal | sides, best | sides | {"recipe_b": "lab.1"}])
    assert "The random init with Transformers chose the smallest learning rate tried, 1e-5: a" in first(found)


def test_a_bag_of_words_that_beats_the_answers_means_is_told():
    rows = [contrast(0.12, 0.08, 0.16)]
    assert "A bag of words reaches 84.8%, more than any of these runs' means." in (
        first(experiment(BOTH, rows, bag=0.848))
    )
    assert "bag of words" not in first(experiment(BOTH, rows, bag=0.7))
    found = swept([0.80, 0.81, 0.79])
    # the second recipe, which validation does not choose here, tests higher
    found.summary[:] = [
        changed(row, bag_of_words=0.848, mean=0.86 if row.recipe == SWEPT[1] else 0.7)
        for row in found.summary
    ]
    assert "more than any mean behind these differences; 2 other means of the sweep are not below it." in (
        first(found)
    )


def test_both_best_at_the_equal_recipe():
    found = swept([0.80, 0.81, 0.79])
    found.contrasts[1] |= {"recipe_a": SWEPT[0], "recipe_b": SWEPT[0]}
    assert "With fairseq both inits do best at that same recipe." in first(found)


# --- power ---


def unclear(se_examples=None, **options):
    """Differences of pairs 0.02, -0.01, 0.05: mean 0.02, sample sd 0.03."""
    runs = [*runs_of([0.70, 0.70, 0.75]), *runs_of([0.68, 0.71, 0.70], init="random")]
    return experiment(runs, [contrast(0.02, -0.02, 0.06, **errors(se_examples))], **options)


def errors(se_examples, upper=None, se_seeds=0.03 / 3**0.5, degrees=2.0):
    """The columns of a contrast's standard error; none where that of examples is not known."""
    if se_examples is None:
        return {}
    parts = {"se_seeds": se_seeds, "se_examples": se_examples}
    upper = se_examples if upper is None else upper
    error = (se_seeds**2 + se_examples**2) ** 0.5
    return {**parts, "se_examples_upper": upper, "standard_error": error, "degrees": degrees}


def test_the_variances_are_those_of_pairs_and_of_examples():
    found = unclear(se_examples=0.015)
    plan = planning(found, found.contrasts[0])
    assert plan.seed_variance == pytest.approx(0.03**2)
    assert plan.example_variance == pytest.approx(0.015**2)
    assert plan.needed == statistics.seeds_needed(
        0.02, plan.seed_variance, 0.05, 0.8, paired=True, example_variance=0.015**2
    )
    assert smallest_p(found, found.contrasts[0]) == 0.25


def test_planning_rests_on_the_contrasts_own_error_not_on_that_of_its_runs():
    found = unclear()
    found.contrasts[0] |= errors(0.01, se_seeds=0.02)
    assert planning(found, found.contrasts[0]).seed_variance == pytest.approx(3 * 0.02**2)
    found.contrasts[0]["paired"] = False
    assert planning(found, found.contrasts[0]).seed_variance == pytest.approx(3 * 0.02**2 / 2)


def test_an_estimate_of_zero_does_not_make_the_error_of_examples_zero():
    found = unclear()
    found.contrasts[0] |= errors(0.0, upper=0.012)
    assert planning(found, found.contrasts[0]).example_variance == pytest.approx(0.012**2)
    found.contrasts[0] |= errors(0.01, upper=0.0101)
    assert planning(found, found.contrasts[0]).example_variance == pytest.approx(0.01**2)


def test_what_is_detectable_is_never_within_the_printed_interval():
    found = unclear(se_examples=0.01)
    row = found.contrasts[0]
    before = planning(found, row)
    # three times as wide as t(2 degrees) x 0.02
    half = 3 * statistics.t_quantile(0.95, 2) * 0.02
    row |= {"ci_low": 0.02 - half, "ci_high": 0.02 + half}
    plan = planning(found, row)
    # the whole variance is 9 (0.03^2 / 3 + 0.01^2), of which the test examples keep 0.01^2
    assert plan.seed_variance == pytest.approx(3 * (9 * 0.0004 - 0.0001))
    assert plan.example_variance == before.example_variance
    assert plan.floor == before.floor
    assert plan.examples_needed == before.examples_needed
    assert plan.detectable(3) > half


def test_two_seeds_do_not_detect_what_their_interval_leaves_open():
    runs = [*runs_of([0.70, 0.74]), *runs_of([0.69, 0.71], init="random")]
    row = contrast(0.02, -0.107, 0.147, seeds=2, **errors(0.0, upper=0.012, se_seeds=0.01, degrees=1.0))
    plan = planning(experiment(runs, [row]), row)
    assert plan.detectable(2) == pytest.approx(0.127)
    assert plan.example_variance == pytest.approx(0.012**2, rel=1e-3)
    assert planning(experiment(runs, [row]), row | {"delta": 0.12}).needed == 3


def test_unpaired_sides_pool_their_variances():
    found = unclear()
    found.contrasts[0]["paired"] = False
    plan = planning(found, found.contrasts[0])
    # sample variances of 70, 70, 75 and of 68, 71, 70: 25/3 and 7/3 square points
    assert plan.seed_variance == pytest.approx((25 / 3 + 7 / 3) / 2 / 100**2)
    assert smallest_p(found, found.contrasts[0]) == 0.1


def test_the_floor_of_the_test_examples_is_what_endless_seeds_detect():
    found = unclear(se_examples=0.01)
    plan = planning(found, found.contrasts[0])
    # 1.96 + 0.8416 standard errors
    assert plan.floor == pytest.approx(0.028016, abs=1e-6)
    assert plan.detectable(5_000) == pytest.approx(plan.floor, rel=2e-3)
    assert plan.needed is None
    # (2.8016 / 2)^2 times as many as 400
    assert plan.examples_needed == 785


def test_runs_that_cannot_tell_say_how_many_seeds_could():
    found = unclear()
    plan = planning(found, found.contrasts[0])
    assert plan.needed == statistics.seeds_needed(0.02, 0.0009, 0.05, 0.8, paired=True)
    told = (
        f"With fairseq a true difference as large as the one seen would take about {plan.needed} seeds a side"
    )
    assert told in first(found)
    assert told in power_sentences(found)[0]


def test_where_no_number_of_seeds_settles_it_test_examples_would():
    found = unclear(se_examples=0.01)
    told = (
        "would not be settled by any number of seeds on these 400 test examples: it would take at least "
        "about 790 of them, and more seeds"
    )
    assert told in first(found)
    assert told in power_sentences(found)[0]


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
    assert (plan.examples, plan.floor, plan.examples_needed) == (None, 0.0, None)
    cells = dict(zip(power_table(found).header, power_table(found).rows[0], strict=True))
    assert "test examples" not in cells
    assert "; test examples" not in power_table(found).caption
    assert cells["seeds to settle it"].value == plan.needed


def test_no_difference_at_all_is_settled_by_nothing():
    found = unclear()
    found.contrasts[0]["delta"] = 0.0
    assert planning(found, found.contrasts[0]).needed is None
    assert "would not be settled by any number of seeds, since it is zero" in first(found)


def test_a_power_sentence_tells_what_is_detected_now():
    found = unclear(se_examples=0.001)
    plan = planning(found, found.contrasts[0])
    (sentence,) = power_sentences(found)
    assert sentence == (
        f"On `reviews`: 3 seeds a side detect, with a power of 80%, a true difference of at least "
        f"{100 * plan.detectable(3):.1f} points with fairseq. With fairseq a true difference as large as the "
        f"one seen would take about {plan.needed} seeds a side to settle."
    )


def test_a_settled_difference_is_said_to_be():
    found = experiment(BOTH, [contrast(0.12, 0.08, 0.16)])
    assert outcome(found, found.contrasts[0]) == Outcome("settled")
    assert "settled" not in first(found)
    cells = dict(zip(power_table(found).header, power_table(found).rows[0], strict=True))
    assert cells["seeds to settle it"].text == "settled"
    assert cells["test examples to settle it"] is None


@pytest.mark.parametrize(("delta", "lucky"), [(0.025, True), (0.12, False)])
def test_a_settled_difference_below_the_detectable_one_is_put_down_to_luck(delta, lucky):
    row = contrast(delta, delta - 0.021, delta + 0.021, **errors(0.008, se_seeds=0.004, degrees=4.0))
    found = experiment(BOTH, [row])
    assert (planning(found, row).detectable(3) > delta) is lucky
    assert outcome(found, row) == Outcome("lucky" if lucky else "settled")
    (sentence,) = power_sentences(found)
    told = "with some luck, since a true difference of that size is below the smallest that is detected with"
    assert (told in sentence) is lucky


@pytest.mark.parametrize("paired", [True, False])
def test_crossed_seeds_keep_their_variance_where_the_interval_is_wider(paired):
    seeds = [(init, data) for init in range(2) for data in range(2)]
    runs = runs_of([0.70, 0.70, 0.74, 0.74], seeds=seeds) + runs_of([0.70] * 4, init="random", seeds=seeds)
    row = contrast(0.02, seeds=4, paired=paired, **errors(0.01, se_seeds=0.02, degrees=2.0))
    found = experiment(runs, [row])
    before = planning(found, row)
    half = 2 * statistics.t_quantile(0.95, 2.0) * row["standard_error"]
    plan = planning(found, row | {"ci_low": 0.02 - half, "ci_high": 0.02 + half})
    times = 4 if paired else 2
    whole = before.seed_variance / times + 0.01**2
    assert plan.seed_variance == pytest.approx(times * (4 * whole - 0.01**2))
    assert plan.example_variance == pytest.approx(0.01**2)


def test_the_power_table_is_in_points():
    found = unclear(se_examples=0.01)
    plan = planning(found, found.contrasts[0])
    table = power_table(found)
    (row,) = table.rows
    cells = dict(zip(table.header, row, strict=True))
    assert cells["difference (points)"].text == "+2.0"
    assert cells["difference (points)"].value == pytest.approx(2.0)
    assert cells["detectable with 10 (points)"].value == pytest.approx(100 * plan.detectable(10))
    assert cells["with endless seeds (points)"].value == pytest.approx(2.8016, abs=1e-4)
    assert cells["seeds to settle it"].text == "no number"
    assert cells["test examples to settle it"].text == "> 790"
    assert table.caption.endswith(
        "The row: recipe lab; seeds a side 3; test examples 400; smallest exact p 0.25."
    )
    assert "with a power of 80% at the level of 5%" in table.caption


def test_nothing_to_compare_is_an_empty_table():
    found = experiment(runs_of(RANDOM, init="random"), [])
    assert power_sentences(found) == []
    assert power_table(found).rows == []


def test_crossed_seeds_are_not_counted_as_so_many_independent_ones():
    seeds = [(init, data) for init in range(2) for data in range(2)]
    # an effect of the init seed alone: the differences are 0.00, 0.00, 0.04, 0.04
    runs = runs_of([0.70, 0.70, 0.74, 0.74], seeds=seeds) + runs_of([0.70] * 4, init="random", seeds=seeds)
    found = experiment(runs, [contrast(0.02, -0.1, 0.14, seeds=4)])
    plan = planning(found, found.contrasts[0])
    # the variance of init seeds is that of 0.00 and 0.04; the sample variance of the four runs is less
    assert plan.seed_variance == pytest.approx(0.0008)
    assert smallest_p(found, found.contrasts[0]) == 0.5  # of two init seeds
    (sentence,) = power_sentences(found)
    assert ": 5 independent seeds a side detect, with a power of 80%, a true difference of " in sentence
    assert f"would take about {plan.needed} independent seeds a side to settle" in sentence
    assert "(an exact test over the 2 means of crossed seeds cannot give a p below 0.50)" in first(found)
    assert "crossed seeds of this experiment share theirs" in power_table(found).caption
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


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (
            framework_row(0.002, -0.004, 0.008, "equivalent", tested=(-0.003, 0.007, 0.003)),
            "On `reviews`, from the checkpoint, the frameworks are equivalent within 1 point: fairseq minus "
            "Transformers test accuracy is +0.2 points (90% interval of the equivalence test −0.3 to +0.7, p "
            "after Holm's correction 0.003).",
        ),
        (
            framework_row(-0.03, -0.05, -0.01, "different", "random", tested=(-0.046, -0.014, 0.9)),
            "On `reviews`, from random weights, the frameworks differ: fairseq minus Transformers test "
            "accuracy is −3.0 points (95% interval −5.0 to −1.0; 90% interval of the equivalence test −4.6 "
            "to −1.4, p after Holm's correction 0.90).",
        ),
        (
            framework_row(0.0, -0.03, 0.03, "inconclusive", "random", tested=(-0.025, 0.025, 0.2)),
            "On `reviews`, from random weights, these runs cannot tell whether the frameworks agree within 2 "
            "points, which is not the same as agreement: fairseq minus Transformers test accuracy is 0.0 "
            "points (90% interval of the equivalence test −2.5 to +2.5, p after Holm's correction 0.20).",
        ),
        (
            framework_row(0.01, None, None, None, seeds=1),
            "On `reviews`, from the checkpoint, these runs cannot tell whether the frameworks agree within 1 "
            "point, which is not the same as agreement: fairseq minus Transformers test accuracy is +1.0 "
            "points (1 seed a side, no interval).",
        ),
    ],
)
def test_the_frameworks_are_equivalent_different_or_neither(row, told):
    assert answer(experiment(BOTH, [contrast(0.1, 0.05, 0.15), row]))[1] == f"- {told}"


def test_the_interval_of_the_equivalence_test_is_that_of_the_table():
    bounds = equivalence_interval(framework_row(0.0, -0.03, 0.03, "inconclusive", tested=(-0.025, 0.02, 0.2)))
    assert (bounds.low, bounds.high, bounds.over) == (-0.025, 0.02, "seeds and test examples")
    assert equivalence_interval(framework_row(0.01, None, None, None, seeds=1)) is None


def test_of_a_sweep_equivalence_is_told_of_each_best_and_of_the_equal_recipe_by_name():
    found = swept([0.80, 0.81, 0.79])
    tested = (0.001, 0.007, 0.003)
    for recipe in SWEPT:
        found.contrasts.append(
            framework_row(0.004, 0, 0.008, "equivalent", tested=tested, recipe_a=recipe, recipe_b=recipe)
        )
    recipes = {"recipe_a": SWEPT[1], "recipe_b": SWEPT[1], "selection": "best"}
    found.contrasts.append(
        framework_row(0.002, -0.02, 0.03, "inconclusive", tested=(-0.01, 0.02, 0.3), **recipes)
    )
    assert answer(found)[1] == (
        "- On `reviews`, from the checkpoint, each framework at its own best recipe, these runs cannot tell "
        "whether the frameworks agree within 1 point, which is not the same as agreement: fairseq minus "
        "Transformers test accuracy is +0.2 points (90% interval of the equivalence test −1.0 to +2.0, p "
        "after Holm's correction 0.30); at the equal recipe, learning rate 1e-5, they are equivalent: +0.4 "
        "points (90% interval +0.1 to +0.7, p after Holm's correction 0.003)."
    )


def test_many_comparisons_of_frameworks_are_counted():
    verdicts = ["equivalent", "equivalent", "different", "inconclusive", None]
    rows = [framework_row(0.0, -0.03, 0.03, word) for word in verdicts]
    assert answer(experiment(BOTH, [contrast(0.1, 0.05, 0.15), *rows]))[1] == (
        "- The frameworks are equivalent within the margin in 2 of 5 comparisons and differ in 1; in 2 these "
        "runs cannot tell, which is not the same as agreement."
    )


def model_row(delta, low, high, **more):
    sides = {"family": "model", "model_b": "large", "b": "fairseq/pretrained"}
    return contrast(delta, low, high, **sides, **more)


def dataset_row(delta, low, high, **more):
    sides = {"family": "dataset", "dataset_b": "music", "a": "fairseq/gain", "b": "fairseq/gain"}
    return contrast(delta, low, high, paired=False, **sides, **more)


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (
            model_row(0.03, 0.01, 0.05),
            "`small` is better than `large`: `small` minus `large` test accuracy is",
        ),
        (model_row(-0.03, -0.05, -0.01), "`large` is better than `small`: `small` minus `large` test"),
        (model_row(0.0, -0.05, 0.05), "these runs cannot tell `small` and `large` apart: "),
        (
            dataset_row(0.03, 0.01, 0.05),
            "With fairseq, pretraining gains more on `reviews` than on `music`: ",
        ),
        (dataset_row(-0.03, -0.05, -0.01), "pretraining gains more on `music` than on `reviews`: the gains "),
        (
            dataset_row(0.0, -0.1, 0.1),
            "cannot tell whether pretraining gains more on `reviews` or on `music`",
        ),
    ],
)
def test_models_and_datasets_have_a_sentence_each(row, told):
    assert told in answer(experiment(BOTH, [contrast(0.1, 0.05, 0.15), row]))[1]


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (model_row, "- One of two models is better in 4 of 6 comparisons, each by its own interval; in 2"),
        (dataset_row, "- Pretraining gains more on one of two datasets in 4 of 6 comparisons, each by its"),
    ],
)
def test_many_comparisons_of_models_and_datasets_are_counted(make, told):
    rows = [make(0.03, 0.01, 0.05)] * 3 + [make(-0.03, -0.05, -0.01)] + [make(0.0, -0.05, 0.05)] * 2
    assert answer(experiment(BOTH, [contrast(0.1, 0.05, 0.15), *rows]))[1].startswith(told)


def gains(pairs):
    """Differences of gains of both frameworks: (dataset, dataset_b, one (delta, low, high) a framework)."""
    return [
        dataset_row(*numbers, dataset=a)
        | {"dataset_b": b, "a": f"{framework}/gain", "b": f"{framework}/gain"}
        for a, b, both in pairs
        for framework, numbers in zip(("fairseq", "transformers"), both, strict=True)
    ]


def test_of_many_datasets_those_are_named_of_which_the_frameworks_say_the_same():
    more, less, unclear_gain = (0.03, 0.01, 0.05), (-0.053, -0.09, -0.02), (0.0, -0.05, 0.05)
    rows = gains([("d1", "d2", (less, less)), ("d1", "d3", (more, unclear_gain)), ("d2", "d3", (more, less))])
    listed = answer(experiment(BOTH, [contrast(0.1, 0.05, 0.15), *rows]))[1]
    assert listed.split("\n") == [
        "- Pretraining gains more on one of two datasets in 5 of 6 comparisons, each by its own interval; in "
        "1 these runs cannot tell.",
        "- Pretraining gains more on `d2` than on `d1`: the gain on `d1` minus that on `d2` is −5.3 points "
        "with fairseq (95% interval −9.0 to −2.0) and −5.3 points with Transformers (−9.0 to −2.0).",
    ]


def test_pairs_of_datasets_are_named_up_to_a_few():
    more = (0.03, 0.01, 0.05)
    rows = gains([("d0", f"d{number}", (more, more)) for number in range(1, 7)])
    found = experiment(BOTH, [contrast(0.1, 0.05, 0.15), *rows], models=["small", "large"])
    items = answer(found)[1].split("\n")
    assert len(items) == 6
    assert items[1].startswith("- Pretraining gains more on `d0` than on `d1` with `small`: the gain on `d0`")
    assert items[5] == "- 2 more such pairs in contrasts.csv."


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
    listed = answer(found)[1]
    assert re.findall(r"is \+(\d+\.\d) points|by \+(\d+\.\d) points", listed) == [("3.0", ""), ("", "4.0")]


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
