"""How many labels a target takes, of made-up experiments that are known by their folders."""

import csv
import re
import shutil

import numpy as np
import pandas as pd
import pytest
from synthetic import TRAINING, make_experiment, make_generation

import plan_labels as command
from seedbed.analysis.label_plan import ONE_SIZE, plan_labels, target_of
from seedbed.analysis.label_worth import FEWER, MORE
from seedbed.analysis.verdicts import COLLAPSE, FEW_SEEDS, NOTHING_LEARNED
from seedbed.core.errors import SeedbedError
from seedbed.report.label_plan import facts

SIZES = [20, 40, 80, TRAINING]
LEVELS = {"pretrained": [0.62, 0.72, 0.80, 0.85], "random": [0.56, 0.66, 0.72, 0.75]}
SETTINGS = {"replicates": 400}


def size_of(run):
    found = re.search(r"train_size=(\d+)", run.recipe)
    return int(found[1]) if found else TRAINING


def level(run):
    return LEVELS[run.init][SIZES.index(size_of(run))]


def make(folder, **more):
    asked = {
        "accuracy": level, "frameworks": ["transformers"], "seeds": [0, 1, 2], "noise": 0.004,
        "train_sizes": [20, 40, 80, "all"], "sizes": {"validation": 20, "test": 200},
    }  # fmt: skip
    made = make_experiment(folder, **(asked | more))
    made.aggregate()
    return made.experiment


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    return make(tmp_path_factory.mktemp("results"), sizes={"validation": 20, "test": 2000})


def plan(folder, target, metric=None, **settings):
    return {row.init: row for row in plan_labels(folder, target, metric, SETTINGS | settings).rows}


def screen(folder, target):
    found = facts(plan_labels(folder, target, None, SETTINGS), 100)
    return [f"{line['label']}: {line['text']}" for group in found["groups"] for line in group["lines"]]


# --- numbers ------------------------------------------------------------------------------------------------


def test_between_two_sizes_the_number_is_interpolated_in_the_logarithm(experiment):
    runs = pd.read_csv(experiment / "runs.csv")
    found = plan(experiment, "0.70")
    for init, row in found.items():
        means = runs[runs.init == init].groupby("train_size").test_accuracy.mean()
        assert row.labels == pytest.approx(2 ** np.interp(0.70, means, np.log2(SIZES)))
        assert 20 < row.low < row.labels < row.high < TRAINING
        assert (row.labels_bound, row.low_bound, row.high_bound, row.no_verdict) == (None,) * 4
        assert (row.dataset_size, row.smallest, row.largest, row.n_seeds) == (TRAINING, 20, TRAINING, 3)
        assert (row.lacking, row.extrapolated, row.not_extrapolated) == (0, None, None)


def test_the_difference_of_needs_has_the_ends_of_both_intervals_by_bonferroni(experiment):
    found, wide = plan(experiment, "0.70"), plan(experiment, "0.70", confidence=0.975)
    row = found["pretrained"]
    assert row.saved == pytest.approx(found["random"].labels - row.labels)
    assert row.saved_low == pytest.approx(wide["random"].low - wide["pretrained"].high)
    assert row.saved_high == pytest.approx(wide["random"].high - wide["pretrained"].low)
    assert found["random"].saved is None


def test_what_no_size_reaches_is_a_bound_with_the_power_law_apart(experiment):
    found = plan(experiment, "0.76")
    row = found["random"]
    assert (row.labels, row.labels_bound, row.high_bound, row.lacking) == (TRAINING, MORE, MORE, None)
    assert row.extrapolated > TRAINING
    assert row.lacking_extrapolated == pytest.approx(row.extrapolated - TRAINING)
    assert row.extrapolated_low <= row.extrapolated
    saved = found["pretrained"]
    assert (saved.saved, saved.saved_bound) == (pytest.approx(TRAINING - saved.labels), MORE)
    lines = screen(experiment, "0.76")
    (beyond,) = (line for line in lines if line.startswith("Beyond"))
    assert "Not measured: from random weights a power law through all sizes reaches it with" in beyond
    assert f"more than {TRAINING} texts from random weights" in lines[0]


def test_a_power_law_that_cannot_reach_it_says_why(experiment, tmp_path):
    few = make(tmp_path, train_sizes=[20, 80, "all"])
    assert plan(few, "0.95")["random"].not_extrapolated == "a power law needs 4 sizes"
    assert "Beyond: Not measured: from random weights nothing can be said, as a power law needs 4 sizes." in (
        screen(few, "0.95")
    )
    assert screen(few, "0.95")[-1].startswith("Next: Add sizes to grid.train_sizes, so that there are four")


def test_what_the_smallest_size_reaches_is_a_bound(experiment):
    found = plan(experiment, "0.5")
    assert {(row.labels, row.labels_bound, row.lacking) for row in found.values()} == {(20, FEWER, 0)}
    assert found["pretrained"].saved is None
    assert any("Add smaller sizes" in line for line in screen(experiment, "0.5"))


def test_the_dataset_may_have_more_texts_than_were_tried(tmp_path):
    folder = make(tmp_path, train_sizes=[20, 40, 80])
    row = plan(folder, "0.84")["pretrained"]
    assert (row.labels_bound, row.largest, row.dataset_size) == (MORE, 80, TRAINING)
    assert any("Add larger sizes" in line for line in screen(folder, "0.84"))
    shutil.rmtree(tmp_path / "data")
    row = plan(folder, "0.84")["pretrained"]
    assert (row.dataset_size, row.lacking, row.lacking_extrapolated) == (None, None, None)


def test_few_seeds_and_collapses_bear_no_verdict(tmp_path):
    two = plan(make(tmp_path / "two", seeds=[0, 1]), "0.70")["pretrained"]
    assert (two.no_verdict, two.low, two.high, two.saved) == (FEW_SEEDS, None, None, None)
    assert two.labels is not None
    at_40 = "reviews/small/transformers/pretrained/lab.train_size=40/seed1"
    fallen = plan(make(tmp_path / "fallen", collapsed=[at_40]), "0.70")["pretrained"]
    assert (fallen.no_verdict, fallen.n_collapsed, fallen.saved) == (COLLAPSE, 1, None)


def test_runs_that_learned_nothing_bear_no_verdict_and_no_power_law(tmp_path):
    folder = make(tmp_path, accuracy=lambda run: 0.5 if run.init == "random" else level(run))
    assert plan(folder, "0.70")["random"].no_verdict == NOTHING_LEARNED
    lines = screen(folder, "0.70")
    assert "from random weights (no verdict: nothing learned)" in lines[0]
    assert [line for line in lines if line.startswith("Beyond")] == []


def test_another_metric_of_the_experiment_has_curves_of_its_own(tmp_path):
    folder = make(tmp_path, metric="macro_f1", inits=["pretrained"])
    runs = pd.read_csv(folder / "runs.csv")
    row = plan(folder, "0.77", "balanced_accuracy")["pretrained"]
    means = runs.groupby("train_size").test_balanced_accuracy.mean()
    assert row.labels == pytest.approx(2 ** np.interp(0.77, means, np.log2(SIZES)))
    assert plan(folder, "0.77")["pretrained"].metric == "macro_f1"


def test_a_loss_falls_to_its_target_in_nats_and_an_undefined_score_is_none(tmp_path):
    losses = dict(zip([20, 40, TRAINING], [2.0, 1.5, 1.2], strict=True))
    inits = ["pretrained", "random"]
    made = make_generation(
        tmp_path,
        loss=lambda run: losses[size_of(run)],
        methods=("none", "full"),
        inits=inits,
        seeds=[0, 1, 2],
        train_sizes=[20, 40, "all"],
        diverged=[f"questions/tiny/transformers/random/full.train_size={size}/seed0" for size in (20, 40)],
    )
    made.aggregate()
    found = plan(made.experiment, "1.6")
    runs = pd.read_csv(made.experiment / "runs.csv")
    trained = runs[(runs.init == "pretrained") & (runs.method == "full")]
    means = trained.groupby("train_size").test_loss.mean()
    expected = 2 ** np.interp(-1.6, -means, np.log2(list(losses)))
    assert found["pretrained"].labels == pytest.approx(expected)
    assert (found["random"].no_verdict, found["random"].labels) == (ONE_SIZE, None)
    answer = screen(made.experiment, "1.6")[0]
    assert answer.startswith("Answer: A test loss of 1.6 nats takes")
    assert "an unknown number of texts from random weights (scores at fewer than two sizes)" in answer


# --- what is refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "metric", "told"),
    [
        ("85", "accuracy", "from 0 to 1, a fraction: TARGET=0.85"),
        ("85%", "macro_f1", "a fraction: TARGET=0.85"),
        ("0,85", "accuracy", "a fraction: TARGET=0.85"),
        ("-0.1", "accuracy", "give a number from 0 to 1, a fraction"),
        ("high", "accuracy", "give a number from 0 to 1, a fraction"),
        ("nan", "accuracy", "give a number from 0 to 1, a fraction"),
        ("-1", "loss", "give a number of 0 or more, nats"),
        ("inf", "mse", "give a number of 0 or more"),
        ("1.5", "spearman", "give a number from -1 to 1"),
    ],
)
def test_a_target_that_the_metric_cannot_have_is_refused_with_one_that_it_can(text, metric, told):
    with pytest.raises(SeedbedError) as caught:
        target_of(text, metric)
    assert str(caught.value).endswith(told)
    assert f"where: TARGET\n  found: '{text}'" in str(caught.value)


@pytest.mark.parametrize(("text", "metric"), [("0", "accuracy"), ("1", "accuracy"), ("2.5", "loss")])
def test_a_target_is_in_the_unit_of_its_metric(text, metric):
    assert target_of(text, metric) == float(text)


def failed(capsys, *arguments):
    assert command.main(list(map(str, arguments))) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    return printed.err


def test_bad_input_is_refused_and_nothing_is_written(experiment, tmp_path, capsys):
    out = tmp_path / "out.csv"
    assert "hint:  give a number from 0 to 1, a fraction: TARGET=0.85" in failed(
        capsys, experiment, "85", "--output", out
    )
    assert "name one of accuracy; or give its datasets metric: macro_f1" in failed(
        capsys, experiment, "0.8", "--metric", "macro_f1", "--output", out
    )
    assert "name one of accuracy\n" in failed(capsys, experiment, "0.8", "--metric", "bleu")
    assert "statistics.confidence" in failed(capsys, experiment, "0.8", "--confidence", "95")
    assert "no finished experiment" in failed(capsys, tmp_path, "0.8")
    assert "ends in .csv" in failed(capsys, experiment, "0.8", "--output", tmp_path / "out.txt")
    assert list(tmp_path.iterdir()) == []
    out.mkdir()
    assert "found: a folder" in failed(capsys, experiment, "0.8", "--output", out)
    below = experiment / "runs.csv" / "out.csv"
    assert "runs.csv is a file" in failed(capsys, experiment, "0.8", "--output", below)


@pytest.mark.parametrize(
    ("asked", "found"), [({}, "no sizes of training"), ({"train_sizes": [20]}, "20 texts alone")]
)
def test_an_experiment_without_a_learning_curve_is_refused(tmp_path, asked, found):
    folder = make(tmp_path, accuracy=None, train_sizes=asked.get("train_sizes"))
    with pytest.raises(SeedbedError) as caught:
        plan(folder, "0.8")
    assert found in str(caught.value)
    assert "grid.train_sizes: [100, 200, 400, 800, all]" in str(caught.value)


def test_predictions_that_are_not_those_of_the_table_are_refused(tmp_path):
    folder = make(tmp_path, seeds=[0])
    first, second = (
        folder / f"runs/reviews/small/transformers/{init}/lab/seed0" for init in ("pretrained", "random")
    )
    shutil.copyfile(first / "predictions.csv", second / "predictions.csv")
    with pytest.raises(SeedbedError, match="do not have the accuracy of the table of runs"):
        plan(folder, "0.8")


# --- the command --------------------------------------------------------------------------------------------


def test_the_command_prints_sentences_and_a_table_and_writes_the_numbers(experiment, tmp_path, capsys):
    out = tmp_path / "out.csv"
    assert command.main([str(experiment), "0.70", "--replicates", "400", "--output", str(out)]) == 0
    printed = capsys.readouterr().out
    found = plan(experiment, "0.70")
    assert re.search(
        r"A test accuracy of 70% takes \d+ texts from the checkpoint\s+\(95%\s+interval", printed
    )
    assert re.search(r"The checkpoint takes \d+ fewer texts than random weights", printed)
    assert max(map(len, printed.splitlines())) <= 100
    with open(out, encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [(row["init"], float(row["labels"])) for row in rows] == [
        (init, row.labels) for init, row in found.items()
    ]


def test_a_narrow_screen_leaves_out_what_the_sentences_say(experiment):
    found = plan_labels(experiment, "0.76", None, SETTINGS)
    wide, narrow = (facts(found, width)["table"] for width in (100, 40))
    assert wide["header"] == [
        "starts from",
        "texts needed",
        "95% interval",
        "by a power law",
        "more than now",
    ]
    assert narrow["header"] == ["starts from", "texts needed"]
    assert "By a power law" in wide["caption"]
    assert "By a power law" not in narrow["caption"]
