"""The answer in words and what the seeds can show: each sentence from the rows that call for it."""

import re

import pytest

from seedbed import statistics
from seedbed.answer import answer
from seedbed.experiment import Experiment, interval, verdict
from seedbed.power import planning, power_sentences, power_table

EMPTY = ("ci_low", "ci_high", "se_seeds", "se_examples", "t_low", "t_high", "margin", "p_equivalence")
PLACE = {"dataset": "reviews", "model": "small"}


def runs_of(values, framework="fairseq", init="pretrained", recipe="lab", seeds=None, **more):
    """One run a value; seeds 0, 1, ... unless they are given."""
    seeds = seeds or [(number, number) for number in range(len(values))]
    return [
        {**PLACE, "framework": framework, "init": init, "recipe": recipe, "collapsed": False}
        | {"init_seed": seed[0], "data_seed": seed[1], "test_accuracy": value}
        | {"test_examples": 400, "leaked_test_examples": 0, **more}
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


def experiment(runs, contrasts, recipes=("lab",), learning_rates=(1e-5, 1e-4, 3e-4), power=0.8, **grid):
    blocks = {
        name: {"family": name.split(".")[0], "swept": {}, "learning_rate": rate, "epochs": 5}
        for name, rate in zip(recipes, learning_rates, strict=False)
    }
    if len(recipes) > 1:
        blocks = {name: block | {"swept": {"learning_rate": 0}} for name, block in blocks.items()}
    cells = dict.fromkeys((run["dataset"], run["model"], run["init"], run["recipe"]) for run in runs)
    summary = [
        {"dataset": dataset, "model": model, "framework": "fairseq", "init": init, "recipe": recipe}
        | {"recipe_family": recipe.split(".")[0], "selection": "equal", "metric": "accuracy"}
        | {"test_set": "all", "mean": 0.7, "sd": 0.01, "n_seeds": 3}
        for dataset, model, init, recipe in cells
    ]
    reporting = {
        "statistics": {"confidence": 0.95, "power": power},
        "recipes": blocks,
        "grid": {"models": ["small"], "datasets": ["reviews"], **grid},
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


def test_the_first_sentence_bears_difference_interval_and_seeds():
    rows = [contrast(0.12, 0.08, 0.16), contrast(0.1, 0.05, 0.15, "transformers", paired=False)]
    assert first(experiment(BOTH, rows)) == (
        "**Pretraining helps on `reviews`: pretrained minus random test accuracy is +12.0 points with "
        "fairseq (95% interval +8.0 to +16.0) and +10.0 points with transformers (+5.0 to +15.0).** The "
        "intervals are over seeds and test examples; 3 seeds a side, paired and 3 seeds a side, unpaired."
    )


def test_a_bound_beside_zero_is_not_printed_as_zero():
    assert "+0.03 to +8.0" in first(experiment(BOTH, [contrast(0.04, 0.0003, 0.08)]))
    assert "−8.0 to −0.04" in first(experiment(BOTH, [contrast(-0.04, -0.08, -0.0004)]))
    assert "0.0 to +8.0" in first(experiment(BOTH, [contrast(0.04, 0.0, 0.08)]))


def test_pretraining_that_hurts():
    assert first(experiment(BOTH, [contrast(-0.1, -0.12, -0.08)])).startswith(
        "**Pretraining hurts on `reviews`: pretrained minus random test accuracy is −10.0 points"
    )


def test_sides_of_different_numbers_of_seeds():
    row = contrast(0.12, 0.08, 0.16, n_b=5, paired=False)
    assert "over seeds and test examples; 3 and 5 seeds, unpaired." in first(experiment(BOTH, [row]))


def test_frameworks_that_differ_in_their_verdict():
    rows = [contrast(0.01, -0.02, 0.04), contrast(0.1, 0.05, 0.15, "transformers")]
    text = first(experiment(BOTH, rows))
    assert text.startswith(
        "**On `reviews`, these runs cannot tell the inits apart with fairseq and pretraining helps with "
        "transformers: "
    )
    assert "no evidence that the frameworks do" in text


def test_one_seed_makes_no_claim():
    found = experiment([*runs_of([0.8]), *runs_of([0.7], init="random")], [contrast(0.1, seeds=1)])
    assert first(found) == (
        "**One seed a side cannot tell the inits apart on `reviews`: pretrained minus random test accuracy "
        "is +10.0 points with fairseq (1 seed a side, no interval).**"
    )
    assert power_sentences(found) == [
        "On `reviews`, fairseq, recipe `lab`: one seed a side says nothing of other seeds, so that no "
        "difference can be detected."
    ]
    assert power_table(found).rows[0][6:] == [None] * 9


def test_runs_that_are_all_the_same_tell_nothing_of_their_error():
    runs = [*runs_of([0.5] * 3, collapsed=True), *runs_of([0.5] * 3, init="random", collapsed=True)]
    found = experiment(runs, [contrast(0.0)])
    text = first(found)
    assert text.startswith("**Seeds without any spread cannot tell the inits apart on `reviews`: ")
    assert "is 0.0 points with fairseq (3 seeds a side, paired, without spread, no interval)" in text
    assert "every seed shows the same difference" in text
    assert "6 of the 6 runs behind these numbers collapsed and count in them" in text
    assert power_sentences(found)[0].endswith("so that seeds tell nothing of its error.")


def test_one_collapsed_run_is_told():
    runs = [*runs_of(PRETRAINED), *runs_of(RANDOM[:2], init="random")]
    runs += runs_of([0.5], init="random", seeds=[(2, 2)], collapsed=True)
    assert "1 of the 6 runs behind these numbers collapsed and counts in them" in first(
        experiment(runs, [contrast(0.15, 0.01, 0.4)])
    )


def test_a_verdict_that_seeds_alone_do_not_bear_asks_for_care():
    fragile = contrast(0.18, 0.01, 0.4, t_low=-0.05, t_high=0.41)
    sound = contrast(0.18, 0.01, 0.4, t_low=0.02, t_high=0.36)
    told = "take the verdict with care: Student's 95% interval over seeds alone holds zero (−5.0 to +41.0)"
    assert told in first(experiment(BOTH, [fragile]))
    assert "with care" not in first(experiment(BOTH, [sound]))


def test_one_init_has_no_contrast():
    (text,) = answer(experiment(runs_of(RANDOM, init="random"), []))
    assert text.startswith("**This experiment has only the random init, so it cannot say whether pretraining")
    assert "70.0% ± 1.0% (fairseq, `reviews`, `small`, `lab`, 3 seeds)" in text


def test_several_questions_are_counted_and_listed():
    names = [f"d{number:02}" for number in range(14)]
    runs = [dict(run, dataset=name) for name in names for run in BOTH]
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
    assert items[0].startswith("- **Pretraining helps on `d00`: ")
    assert items[9].startswith("- **These runs cannot tell the inits apart on `d09`: ")
    assert items[12:] == ["- 2 more in contrasts.csv."]


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


def test_a_sweep_tells_both_differences_and_that_undertraining_made_most_of_the_first():
    text = first(swept([0.80, 0.81, 0.79]))
    assert text.startswith(
        "**These runs cannot tell the inits apart on `reviews` when each init has its own best recipe on "
        "validation: pretrained minus random test accuracy is +4.0 points with fairseq (95% interval −1.0 to "
        "+6.0); at the equal recipe `lab.learning_rate=1e-05` it is +12.0 points with fairseq (+8.0 to "
        "+16.0).** The intervals are over seeds, test examples and the choice of recipe, at the equal recipe "
        "over seeds and test examples; 3 seeds a side, paired."
    )
    # changes of the difference, seed by seed: 0.04 - 0.12, 0.04 - 0.11, 0.04 - 0.13
    low, high = statistics.t_interval([-0.08, -0.07, -0.09], 0.95)
    assert (
        "With fairseq most of the difference at the equal recipe was undertraining of the random init: it "
        f"falls from +12.0 to +4.0 points (95% interval of the change −{-100 * low:.1f} to "
        f"−{-100 * high:.1f}, over seeds alone)."
    ) in text
    assert "the random init gains +13.0 points (`lab.learning_rate=0.0001`), the pretrained one +5.0" in text


def test_a_change_that_may_be_chance_blames_nothing():
    text = first(swept([0.70, 0.78, 0.68]))
    assert "cannot tell whether the difference depends on the recipe" in text
    assert "undertraining" not in text


def test_a_lower_learning_rate_is_not_called_undertraining():
    text = first(swept([0.80, 0.81, 0.79], rates=(1e-3, 1e-5)))
    assert "undertraining" not in text
    assert "most of the difference at the equal recipe was due to that recipe" in text


def test_both_best_at_the_equal_recipe():
    found = swept([0.80, 0.81, 0.79])
    found.contrasts[1] |= {"recipe_a": SWEPT[0], "recipe_b": SWEPT[0]}
    assert "With fairseq both inits do best at that same recipe." in first(found)


def test_a_choice_of_recipe_that_leaves_open_what_seeds_would_settle():
    found = swept([0.60, 0.61, 0.59])
    assert planning(found, found.contrasts[1]) is None  # every seed differs by 24 points
    found.contrasts[1]["se_examples"] = 0.01
    assert planning(found, found.contrasts[1]).needed == 2
    assert "would be settled by these seeds if the recipes were given: their choice leaves it open" in first(
        found
    )


# --- power ---


def unclear(se_examples=None, **options):
    """Differences of pairs 0.02, -0.01, 0.05: mean 0.02, sample sd 0.03."""
    runs = [*runs_of([0.70, 0.70, 0.75]), *runs_of([0.68, 0.71, 0.70], init="random")]
    return experiment(runs, [contrast(0.02, -0.06, 0.1, se_examples=se_examples)], **options)


def test_the_variances_are_those_of_pairs_and_of_examples():
    found = unclear(se_examples=0.015)
    plan = planning(found, found.contrasts[0])
    assert plan.seed_variance == pytest.approx(0.03**2)
    assert plan.example_variance == pytest.approx(0.015**2)
    assert plan.needed == statistics.seeds_needed(
        0.02, plan.seed_variance, 0.05, 0.8, paired=True, example_variance=0.015**2
    )
    assert plan.smallest_p == 0.25


def test_unpaired_sides_pool_their_variances():
    found = unclear()
    found.contrasts[0]["paired"] = False
    plan = planning(found, found.contrasts[0])
    # sample variances of 70, 70, 75 and of 68, 71, 70: 25/3 and 7/3 square points
    assert plan.seed_variance == pytest.approx((25 / 3 + 7 / 3) / 2 / 100**2)
    assert plan.smallest_p == 0.1


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
        "With fairseq, at a power of 80%, a true difference as large as the one seen would take about "
        f"{plan.needed} seeds a side to settle; 3 seeds a side can detect no less than "
        f"{100 * plan.detectable(3):.1f} points. Such numbers rest on a spread estimated from the same few "
        "seeds, and are rough."
    )
    assert told in first(found)


def test_where_no_number_of_seeds_settles_it_test_examples_would():
    found = unclear(se_examples=0.01)
    told = (
        "would not be settled by any number of seeds on these 400 test examples: it would take at least "
        "about 790 of them, and more seeds"
    )
    assert told in first(found)
    (sentence, basis) = power_sentences(found)
    assert told in sentence
    assert "With these 400 test examples no number of seeds detects less than 2.8 points." in sentence
    assert "with a power of 80% at the level of 5%" in basis


def test_leaked_examples_do_not_count_without_leaks():
    found = unclear(se_examples=0.01)
    found.runs[0]["leaked_test_examples"] = 100
    row = found.contrasts[0] | {"test_set": "without leaks", "metric": "accuracy"}
    for run in found.runs:
        run["test_accuracy_without_leaks"] = run["test_accuracy"]
    assert planning(found, row).examples == 300


def test_published_results_without_a_number_of_test_examples_are_planned_by_their_seeds():
    found = unclear()
    for run in found.runs:
        run |= {"test_examples": None, "leaked_test_examples": None}
    plan = planning(found, found.contrasts[0])
    assert (plan.examples, plan.floor, plan.examples_needed) == (None, 0.0, None)
    cells = dict(zip(power_table(found).header, power_table(found).rows[0], strict=True))
    assert cells["test examples"] is None
    assert cells["seeds to settle it"].value == plan.needed


def test_no_difference_at_all_is_settled_by_nothing():
    found = unclear()
    found.contrasts[0]["delta"] = 0.0
    assert planning(found, found.contrasts[0]).needed is None
    assert "would not be settled by any number of seeds, since it is zero" in first(found)


def test_a_power_sentence_tells_what_is_detected_now_and_with_more_seeds():
    found = unclear(se_examples=0.001)
    plan = planning(found, found.contrasts[0])
    now, *more = (f"{100 * plan.detectable(number):.1f}" for number in (3, 5, 10, 25))
    (sentence, _) = power_sentences(found)
    assert sentence.startswith(
        f"On `reviews`, fairseq, recipe `lab`: 3 seeds a side detect a true difference of {now} points or "
        f"more; {more[0]} with 5, {more[1]} with 10 and {more[2]} with 25 seeds. "
    )
    assert sentence.endswith(
        "An exact test over 3 pairs of seeds cannot give a p below 0.25, whatever the difference."
    )


def test_a_settled_difference_is_said_to_be():
    (sentence, _) = power_sentences(experiment(BOTH, [contrast(0.12, 0.08, 0.16)]))
    assert "The difference seen, +12.0 points, is settled: its interval leaves zero out." in sentence


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
    assert cells["smallest exact p"].value == 0.25


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
    assert plan.smallest_p == 0.5  # of two init seeds
    (sentence, basis) = power_sentences(found)
    assert ": 5 independent seeds a side detect a true difference of " in sentence
    assert "crossed seeds of this experiment share theirs" in basis
    cells = dict(zip(power_table(found).header, power_table(found).rows[0], strict=True))
    assert cells["detectable now (points)"] is None
    assert "can detect no less" not in first(found)


# --- frameworks, models, datasets ---


def framework_row(delta, low, high, equivalence, init="pretrained", **more):
    sides = {"a": f"fairseq/{init}", "b": f"transformers/{init}", "family": "framework", "paired": False}
    margin = {"pretrained": 0.01, "random": 0.02}[init]
    return contrast(delta, low, high, equivalence=equivalence, margin=margin, **sides, **more)


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (
            framework_row(0.002, -0.004, 0.008, "equivalent", p_equivalence=0.003),
            "On `reviews`, from the checkpoint, the frameworks are equivalent within 1 point: fairseq minus "
            "transformers test accuracy is +0.2 points (95% interval over seeds and test examples −0.4 to "
            "+0.8, 3 seeds a side, unpaired, p of equivalence 0.003).",
        ),
        (
            framework_row(-0.03, -0.05, -0.01, "different", "random", p_equivalence=0.9),
            "On `reviews`, from random weights, the frameworks differ: fairseq minus transformers test "
            "accuracy is −3.0 points (95% interval over seeds and test examples −5.0 to −1.0, 3 seeds a "
            "side, unpaired, p of equivalence 0.90).",
        ),
        (
            framework_row(0.0, -0.03, 0.03, "inconclusive", "random", p_equivalence=0.2),
            "On `reviews`, from random weights, these runs cannot tell whether the frameworks agree within 2 "
            "points, which is not the same as agreement: fairseq minus transformers test accuracy is 0.0 "
            "points (95% interval over seeds and test examples −3.0 to +3.0, 3 seeds a side, unpaired, p of "
            "equivalence 0.20).",
        ),
        (
            framework_row(0.01, None, None, None, seeds=1),
            "On `reviews`, from the checkpoint, these runs cannot tell whether the frameworks agree within 1 "
            "point, which is not the same as agreement: fairseq minus transformers test accuracy is +1.0 "
            "points (1 seed a side, no interval).",
        ),
    ],
)
def test_the_frameworks_are_equivalent_different_or_neither(row, told):
    assert answer(experiment(BOTH, [contrast(0.1, 0.05, 0.15), row]))[1] == f"- {told}"


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
