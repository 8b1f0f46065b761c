"""Reading generated answers into arrays, every fault that it must notice, and scores that are ratios."""

import csv
import dataclasses
from pathlib import Path

import numpy as np
import pytest

from seedbed.analysis.answers import CellAnswers, read_answers
from seedbed.analysis.bootstrap import Draws
from seedbed.analysis.outputs import stack
from seedbed.analysis.predictions import UNDEFINED_LOSS
from seedbed.core.errors import SeedbedError
from seedbed.core.tasks import ANSWER_COLUMNS, GROUP_COLUMN

# split, example, tokens, loss, token_accuracy, exact_match, f1, reference, answer
ROWS = [
    ("validation", "v0", 3, 1.5, 1, 1, 1, "oui", "oui"),
    ("test", "t0", 2, 1.0, 0.5, 0, 0.4, "la Loire", "la Seine"),
    ("test", "t1", 1, 3.0, 0, 0, 0, "non", "la Seine"),
    ("test", "t2", 5, 0.4, 0.8, 1, 1, "en 1789", "en 1789"),
]
LOSS, TOKEN_ACCURACY = (2 * 1.0 + 1 * 3.0 + 5 * 0.4) / 8, (1 + 0 + 4) / 8


def write(folder: Path, rows, columns=ANSWER_COLUMNS) -> Path:
    path = folder / "predictions.csv"
    with open(path, "w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows([columns, *rows])
    return path


def changed(row: int, **cells):
    """ROWS with other cells in one of them."""
    rows = [dict(zip(ANSWER_COLUMNS, values, strict=True)) for values in ROWS]
    rows[row] |= cells
    return [list(values.values()) for values in rows]


def fails(path: Path, *parts: str) -> None:
    with pytest.raises(SeedbedError) as caught:
        read_answers(path)
    for part in (str(path), *parts):
        assert part in str(caught.value)


def random_answers(examples=400, seeds=3) -> CellAnswers:
    """Long answers have other losses than short ones, so that a mean over examples is not one over tokens."""
    draw = np.random.default_rng(1)
    tokens = draw.integers(1, 30, examples)
    loss = draw.gamma(2.0, 0.5, (seeds, examples)) + 20 / (5 + tokens)
    share = draw.binomial(tokens, 0.4, (seeds, examples)) / tokens
    exact = (share == 1).astype(float)
    values = {"loss": loss, "token_accuracy": share, "exact_match": exact, "f1": share}
    names = tuple(map(str, range(examples)))
    return CellAnswers(names, names, tokens, values, np.zeros(seeds, dtype=bool), np.arange(len(names)))


# --- reading ---


def test_arrays_of_a_run(tmp_path):
    found = read_answers(write(tmp_path, ROWS))
    test = found["test"]
    assert test.ids == ("t0", "t1", "t2")
    assert test.references == ("la Loire", "non", "en 1789")
    assert test.tokens.tolist() == [2, 1, 5]
    assert test.values["loss"].tolist() == [[1.0, 3.0, 0.4]]
    assert test.values["f1"].tolist() == [[0.4, 0.0, 1.0]]
    assert test.correct.tolist() == [[False, False, True]]
    assert test.all_same.tolist() == [False]
    assert found["validation"].ids == ("v0",)
    assert found["validation"].all_same.tolist() == [True]


def test_answers_may_hold_what_csv_quotes(tmp_path):
    rows = [*changed(1, answer='a, "b"\nc\r\n', reference="NA"), list(ROWS[1])]
    rows[-1][1:2] = ["t3"]
    rows[-1][-1] = ""
    test = read_answers(write(tmp_path, rows))["test"]
    assert test.ids == ("t0", "t1", "t2", "t3")
    assert test.references[0] == "NA"


def test_columns_are_found_by_name(tmp_path):
    rows = [list(reversed(row)) for row in ROWS]
    test = read_answers(write(tmp_path, rows, tuple(reversed(ANSWER_COLUMNS))))["test"]
    assert test.values["loss"].tolist() == [[1.0, 3.0, 0.4]]


@pytest.mark.parametrize("cell", ["", "nan", "inf"])
def test_a_loss_that_is_not_finite_is_none_and_its_tokens_are_not_right(tmp_path, cell):
    test = read_answers(write(tmp_path, changed(3, loss=cell)))["test"]
    assert np.isnan(test.values["loss"]).tolist() == [[False, False, True]]
    assert test.undefined.tolist() == [True]
    assert test.measured("loss") == test.measured("perplexity") == [None]
    assert test.measured("token_accuracy") == [1 / 8]
    assert test.measured("exact_match") == [1 / 3]


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        ({"token_accuracy": 1.2}, ["a fraction outside [0, 1]", "example 't1'", "token_accuracy", "1.2"]),
        ({"f1": -0.1}, ["a fraction outside [0, 1]", "f1"]),
        ({"f1": ""}, ["a fraction outside [0, 1]", "f1", "no number"]),
        ({"exact_match": 0.5}, ["neither 0 nor 1", "example 't1'"]),
        ({"tokens": 0}, ["below 1", "tokens"]),
        ({"tokens": ""}, ["below 1", "no number"]),
        ({"tokens": 1.5}, ["not whole", "1.5"]),
        ({"loss": -0.5}, ["a loss below 0", "-0.5"]),
        ({"loss": "low"}, ["line 4", "'low' in column loss"]),
        ({"example": "t0"}, ["stands twice", "t0"]),
        ({"split": "train"}, ["a row of the split 'train'"]),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, cells, told):
    fails(write(tmp_path, changed(2, **cells)), *told)


def test_a_cut_file_is_refused(tmp_path):
    path = write(tmp_path, ROWS)
    path.write_bytes(path.read_bytes()[:-4])
    fails(path, "the file was cut")


def test_a_missing_column_cell_or_split_is_refused(tmp_path):
    fails(write(tmp_path, [row[:-1] for row in ROWS], ANSWER_COLUMNS[:-1]), "line 1", "reference")
    fails(write(tmp_path, [*ROWS[:-1], ROWS[-1][:-1]]), "line 5", "a row of 8 cells, not 9")
    fails(write(tmp_path, ROWS[1:]), "no row of the split validation")


# --- metrics and scores ---


def test_metrics_by_hand(tmp_path):
    test = read_answers(write(tmp_path, ROWS))["test"]
    assert test.measured("loss") == pytest.approx([LOSS])
    assert test.measured("perplexity") == pytest.approx([np.exp(LOSS)])
    assert test.measured("token_accuracy") == pytest.approx([TOKEN_ACCURACY])
    assert test.measured("exact_match") == pytest.approx([1 / 3])
    assert test.measured("f1") == pytest.approx([1.4 / 3])


def test_a_perplexity_beyond_every_number_is_none(tmp_path):
    test = read_answers(write(tmp_path, changed(1, loss=5000)))["test"]
    assert test.measured("loss") == [pytest.approx((10_000 + 3 + 2) / 8)]
    assert test.measured("perplexity") == [None]


def test_linearised_ratios_by_hand(tmp_path):
    test = read_answers(write(tmp_path, ROWS))["test"]
    # R + (S_i - R n_i) / mean(n), with sums 2, 3 and 2 of 2, 1 and 5 tokens
    expected = [LOSS + (s - LOSS * n) / (8 / 3) for s, n in ((2, 2), (3, 1), (2, 5))]
    assert test.scores("loss") == pytest.approx(np.array([expected]))
    assert test.scores("exact_match").tolist() == [[0, 0, 1]]


@pytest.mark.parametrize("metric", ["loss", "token_accuracy", "exact_match", "f1"])
def test_the_mean_of_scores_is_the_metric(metric):
    answers = random_answers()
    assert answers.scores(metric).mean(axis=1) == pytest.approx(answers.measured(metric), rel=1e-6)
    if metric in ("loss", "token_accuracy"):  # and not the mean over examples
        assert abs(answers.values[metric].mean() - np.mean(answers.measured(metric))) > 0.001


@pytest.mark.parametrize("metric", ["loss", "token_accuracy"])
def test_resampled_scores_spread_as_the_resampled_ratio_does(metric):
    answers = random_answers(seeds=1)
    examples, replicates = len(answers.ids), 4000
    linearised = Draws(examples, replicates, 0).means(answers.scores(metric))[:, 0]
    drawn = np.random.default_rng(2).integers(0, examples, (replicates, examples))
    sums = answers.values[metric][0] * answers.tokens
    ratios = sums[drawn].sum(axis=1) / answers.tokens[drawn].sum(axis=1)
    assert linearised.std() == pytest.approx(ratios.std(), rel=0.04)
    # scores that ignored how long answers are would spread otherwise
    plain = Draws(examples, replicates, 0).means(answers.values[metric].astype(np.float32))[:, 0]
    assert abs(plain.std() / ratios.std() - 1) > 0.08


def test_questions_on_one_text_are_one_score_by_hand(tmp_path):
    rows = [[*row, group] for row, group in zip(ROWS, ("v", "x", "y", "x"), strict=True)]
    test = read_answers(write(tmp_path, rows, (*ANSWER_COLUMNS, GROUP_COLUMN)))["test"]
    assert test.groups.tolist() == [0, 1, 0]
    # the texts have sums of 4 and 3 nats, and 7 and 1 tokens
    assert test.scores("loss") == pytest.approx(
        np.array([[LOSS + (s - LOSS * n) / 4 for s, n in ((4, 7), (3, 1))]])
    )
    # 1 of 2 and 0 of 1 exact matches
    assert test.scores("exact_match") == pytest.approx(
        np.array([[1 / 3 + (s - n / 3) / 1.5 for s, n in ((1, 2), (0, 1))]])
    )
    alone = test.keep(np.array([True, True, False]))
    assert alone.groups.tolist() == [0, 1]
    assert alone.scores("exact_match").tolist() == [[0, 0]]


@pytest.mark.parametrize("metric", ["loss", "f1"])
def test_texts_are_resampled_whole(metric):
    answers = random_answers(examples=300, seeds=1)
    groups = np.arange(300) // 6
    answers.values[metric][:] += groups % 2  # as good or as bad as the text's other answers
    answers = dataclasses.replace(answers, groups=groups)
    assert answers.scores(metric).shape == (1, 50)
    assert answers.scores(metric).mean() == pytest.approx(answers.measured(metric)[0], rel=1e-6)
    linearised = Draws(50, 4000, 0).means(answers.scores(metric))[:, 0]
    weights = answers.tokens if metric == "loss" else np.ones(300)
    sums, counts = (np.bincount(groups, row) for row in (answers.values[metric][0] * weights, weights))
    drawn = np.random.default_rng(2).integers(0, 50, (4000, 50))
    ratios = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    assert linearised.std() == pytest.approx(ratios.std(), rel=0.05)


def test_an_undefined_loss_is_finite_in_scores_and_spares_the_other_seeds():
    answers = random_answers()
    before = answers.scores("loss")
    answers.values["loss"][1, 7] = np.nan
    after = answers.scores("loss")
    assert (after[1] == UNDEFINED_LOSS).all()
    assert np.array_equal(after[[0, 2]], before[[0, 2]])
    assert np.isfinite(answers.scores("token_accuracy")).all()
    assert answers.undefined.tolist() == [False, True, False]


def test_runs_are_stacked_and_examples_left_out(tmp_path):
    one = read_answers(write(tmp_path, ROWS))["test"]
    other = read_answers(write(tmp_path, changed(1, loss=2.0, answer="non")))["test"]
    both = stack([one, other])
    assert both.values["loss"].dtype == np.float32
    assert both.measured("loss") == pytest.approx([LOSS, LOSS + 2 / 8])
    part = both.keep(np.array([True, False, True]))
    assert (part.ids, part.references, part.tokens.tolist()) == (
        ("t0", "t2"),
        ("la Loire", "en 1789"),
        [2, 5],
    )
    assert part.measured("loss") == pytest.approx([4 / 7, 6 / 7])
    # linearised anew, of the tokens that are left
    assert part.scores("loss").mean(axis=1) == pytest.approx([4 / 7, 6 / 7])


def test_examples_are_the_same_with_the_same_references(tmp_path):
    one = read_answers(write(tmp_path, ROWS))["test"]
    assert one.same_examples(read_answers(write(tmp_path, changed(2, loss=0.1, answer="x")))["test"])
    assert not one.same_examples(read_answers(write(tmp_path, changed(2, reference="si")))["test"])
    assert not one.same_examples(read_answers(write(tmp_path, changed(2, example="t9")))["test"])


@pytest.mark.parametrize(("size", "references", "tells"), [(12, 2, True), (11, 2, False), (30, 1, False)])
def test_one_answer_tells_a_collapse_on_a_dozen_examples_with_several_references(size, references, tells):
    names = tuple(map(str, range(size)))
    given = tuple(str(index % references) for index in range(size))
    assert (
        CellAnswers(names, given, np.ones(size), {}, np.array([True]), np.arange(size)).tells_collapse
        == tells
    )
