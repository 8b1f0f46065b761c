"""Plans of seeds and test examples from the tables of made-up experiments, and from accuracies."""

import dataclasses
import shutil
from pathlib import Path

import pandas as pd
import pytest
from synthetic import make_experiment

from seedbed.analysis.assumed_variances import Assumed
from seedbed.analysis.planning import Design, Variances
from seedbed.analysis.seed_plan import (
    NO_PREDICTIONS,
    ONE_SEED,
    UNDEFINED,
    Plans,
    Wanted,
    plan_assumed,
    plan_from,
    plan_rows,
)
from seedbed.analysis.verdicts import COLLAPSE, FEW_SEEDS, NOTHING_LEARNED
from seedbed.core.errors import SeedbedError
from seedbed.report.seed_plan import facts

# tables of small experiments of every kind
EXPERIMENTS = Path(__file__).parents[2] / "golden" / "approved" / "documents"
GIVEN = Assumed((0.8, 0.8), (0.01, 0.01), 1000, True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = make_experiment(tmp_path_factory.mktemp("results"), seeds=[0, 1, 2, 3], frameworks=["fairseq"])
    made.aggregate()
    return made.experiment


def refused(call, *arguments, **more):
    with pytest.raises(SeedbedError) as caught:
        call(*arguments, **more)
    return caught.value


def test_the_variances_are_those_of_the_error_in_the_table_of_contrasts(folder):
    (plan,) = plan_from(folder, Wanted(2)).plans
    table = pd.read_csv(folder / "contrasts.csv")
    (row,) = table[table.test_set == "all"].to_dict("records")
    variances = plan.plan.design.variances
    assert variances.examples == pytest.approx(400 * row["se_examples"] ** 2)
    assert variances.interaction == pytest.approx(4 * 400 * row["se_interaction"] ** 2)
    assert sum(variances.parts(4, 400)) == pytest.approx(row["standard_error"] ** 2)
    assert (plan.examples, plan.seeds, plan.paired, plan.difference) == (400, 4, True, 0.02)


def test_the_rows_are_what_the_simulated_rule_finds_on_each_number_of_examples(folder):
    wanted = Wanted(3, confidence=0.9, power=0.7, seeds=(4, 8), examples=(400, 1600))
    plans = plan_from(folder, wanted)
    rows = plan_rows(plans)
    assert [(row.examples, row.seeds) for row in rows] == [(400, 4), (400, 8), (1600, 4), (1600, 8)]
    for row in rows:
        variances = Variances(row.variance_seeds, row.variance_examples, row.variance_interaction, 1)
        design = Design(variances, row.examples, confidence=0.9, power=0.7)
        assert row.detectable == pytest.approx(design.detectable(row.seeds))
        assert row.detectable_low <= row.detectable <= row.detectable_high
        assert row.seeds_needed == design.seeds_for(0.03)
        assert row.endless == pytest.approx(design.floor)
    # more of both find smaller differences
    assert rows[0].detectable > rows[1].detectable > rows[3].detectable


def test_what_no_number_of_seeds_finds_takes_more_examples():
    plan = plan_assumed(GIVEN, Wanted(2)).plans[0]
    assert plan.plan.seeds_for(0.02)[0] is None
    needed, fewest, most = plan.examples_needed
    assert fewest <= needed == most
    assert plan.plan.on(needed).design.floor <= 0.02 < plan.plan.on(needed - 2).design.floor
    assert (
        plan_assumed(dataclasses.replace(GIVEN, examples=needed + 1), Wanted(2)).plans[0].examples_needed
        is None
    )


def test_crossed_seeds_are_planned_as_independent_ones(tmp_path):
    seeds = {"init": [0, 1, 2], "data": [0, 1, 2]}
    made = make_experiment(tmp_path, seeds=seeds, frameworks=["fairseq"])
    made.aggregate()
    (plan,) = plan_from(made.experiment, Wanted(2)).plans
    assert (plan.seeds, plan.crossed) == (9, True)
    assert "independent seeds a side" in facts(Plans([plan], {}))[0]["groups"][0]["lines"][0]["text"]


def test_a_loss_is_planned_in_its_own_unit():
    plans = plan_from(EXPERIMENTS / "generation", Wanted(0.05), "lora - full").plans
    assert {(plan.metric, plan.difference) for plan in plans} == {("loss", 0.05)}
    accuracy = plan_from(EXPERIMENTS / "generation", Wanted(5), "lora - full", "exact_match").plans
    assert {(plan.metric, plan.difference) for plan in accuracy} == {("exact_match", 0.05)}


def test_a_question_is_named_by_what_tells_it_from_others():
    names = [plan.question for plan in plan_from(EXPERIMENTS / "plain", Wanted(2)).plans]
    assert names == [
        "pretrained - random, fairseq",
        "pretrained - random, transformers",
        "fairseq - transformers, pretrained",
        "fairseq - transformers, random",
    ]
    chosen = plan_from(EXPERIMENTS / "plain", Wanted(2), "Fairseq - ").plans
    assert [plan.question for plan in chosen] == names[2:]
    # of a sweep each side has its best recipe, whatever it is called
    swept = [plan.question for plan in plan_from(EXPERIMENTS / "sweep", Wanted(2)).plans]
    assert swept == names


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("one_seed", ONE_SEED),
        ("two_of_each", FEW_SEEDS),
        ("crossed", FEW_SEEDS),
        ("squared", UNDEFINED),
        ("nothing_learned", NOTHING_LEARNED),
        ("nothing_learned", COLLAPSE),
    ],
)
def test_an_experiment_that_tells_no_variances_is_refused_with_the_reason(name, reason):
    error = refused(plan_from, EXPERIMENTS / name, Wanted(0.02))
    assert error.what == "no difference of this experiment tells its variances"
    assert reason in error.found
    assert "--accuracy 0.8" in error.hint


def test_differences_without_a_plan_are_named_beside_those_with_one():
    plans = plan_from(EXPERIMENTS / "correlated", Wanted(0.05))
    assert [plan.question for plan in plans.plans] == ["pretrained - random, dvd"]
    assert plans.without == {"pretrained - random, books": NOTHING_LEARNED}


def test_an_experiment_without_predictions_is_refused(folder, tmp_path):
    for name in ("runs.csv", "contrasts.csv"):
        shutil.copy(folder / name, tmp_path)
    table = pd.read_csv(folder / "contrasts.csv")
    table[["standard_error", "se_seeds", "se_interaction", "se_examples", "ci_low", "ci_high"]] = None
    table.paired = "true"
    table.to_csv(tmp_path / "contrasts.csv", index=False)
    assert NO_PREDICTIONS in refused(plan_from, tmp_path, Wanted(2)).found


@pytest.mark.parametrize("difference", [0, -2, float("nan"), 101])
def test_a_difference_that_cannot_be_is_refused_with_the_range(folder, difference):
    error = refused(plan_from, folder, Wanted(difference))
    assert (error.where, error.hint) == (
        "--difference",
        "give a number above 0 and at most 100, in points, such as 2",
    )


def test_from_an_accuracy_no_difference_leads_out_of_what_is_possible():
    assert "at most 80" in refused(plan_assumed, GIVEN, Wanted(81)).hint


@pytest.mark.parametrize(
    ("wanted", "option"),
    [
        ({"seeds": (3, 2)}, "--seeds"),
        ({"examples": (1,)}, "--examples"),
        ({"power": 1}, "--power"),
        ({"confidence": 95}, "--confidence"),
    ],
)
def test_numbers_that_no_plan_can_have_are_refused(wanted, option):
    assert refused(Wanted, 2, **wanted).where == option


def test_what_the_experiment_does_not_have_is_named_with_what_it_has(folder, tmp_path):
    assert "has: pretrained - random" in refused(plan_from, folder, Wanted(2), "lora").hint
    assert refused(plan_from, folder, Wanted(2), None, "bleu").hint.endswith(": accuracy")
    assert "no such folder" in str(refused(plan_from, tmp_path / "none", Wanted(2)))
    assert "without this table" in str(refused(plan_from, tmp_path, Wanted(2)))
