"""The published results of five labs: the runs as they printed them, and the tables that must come out."""

import csv
from pathlib import Path

import pytest

from seedbed.analysis import contrasts, diagnostics, tables
from seedbed.analysis.table_rows import RunRow, run_columns, write_summary
from seedbed.config.plan import Plan
from seedbed.core.rows import write_typed

PUBLISHED = Path(__file__).parents[2] / "data" / "published"
# the bound of Almost Stochastic Order is drawn at random; the expected one is of all resamples
TOLERANCES = {"aso_eps_min": 0.02}
NEED_MORE_THAN_TEST_ACCURACY = {
    "summary": "n_collapsed n_not_above_majority mean_without_collapsed sd_without_collapsed validation_mean "
    "validation_sd binomial_se majority_share bag_of_words validation_best chosen_share ece ece_of_chance "
    "sd_new_examples both_low both_high iqm",
    "contrasts": "ci_low ci_high given_low given_high bootstrap_low bootstrap_high standard_error se_seeds "
    "se_interaction se_examples",
}


@pytest.fixture(scope="module")
def reporting():
    config = {
        "experiment": "published",
        "grid": {
            "datasets": ["cls_books_published"],
            "models": ["roberta_small_fr"],
            "recipes": ["A", "B", "C", "D", "E"],
            "seeds": [0, 1, 2],
        },
        "sources": {"labs": {"locations": ["nowhere"]}},
        "datasets": {
            "cls_books_published": {
                "source": "labs",
                "format": "csv",
                "files": {split: f"{split}.csv" for split in ("train", "validation", "test")},
                "labels": ["negative", "positive"],
            }
        },
        "models": {"roberta_small_fr": {"source": "labs"}},
        "recipes": {name: {"epochs": 5} for name in "ABCDE"},
        "statistics": {
            "confidence": 0.95,
            "replicates": 10_000,
            "equivalence_margin": {"pretrained": 0.01, "random": 0.02},
        },
    }
    return Plan(config).reporting()


@pytest.fixture(scope="module")
def made(reporting):
    """The rows that come out, by table."""
    runs = RunRow.read(PUBLISHED / "runs.csv", needed=run_columns(reporting))
    summary = tables.summarise(runs, {}, reporting)
    differences = contrasts.contrast(runs, summary, reporting)
    diagnosed = diagnostics.tabulate(runs, {}, differences, summary, reporting)
    return {"summary": summary, "contrasts": differences, **diagnosed}


@pytest.fixture(scope="module")
def written(made, tmp_path_factory):
    """The cells of summary.csv and contrasts.csv as they are written, by table."""
    folder = tmp_path_factory.mktemp("golden")
    write_summary(folder / "summary.csv", made["summary"])
    write_typed(folder / "contrasts.csv", contrasts.CONTRAST_COLUMNS, made["contrasts"])
    return {name: read_cells(folder / f"{name}.csv") for name in ("summary", "contrasts")}


def read_cells(path):
    with open(path, encoding="utf-8", newline="") as stream:
        return list(csv.reader(stream))


def as_number(text):
    try:
        return float(text)
    except ValueError:
        return text


def test_runs_have_the_columns_of_the_table(reporting):
    assert read_cells(PUBLISHED / "runs.csv")[0] == run_columns(reporting)


@pytest.mark.parametrize("name", ["summary", "contrasts"])
def test_the_expected_table_comes_out(written, name):
    header, *expected = read_cells(PUBLISHED / f"{name}.csv")
    assert written[name][0] == header
    assert len(written[name]) == len(expected) + 1
    for row, wanted in zip(written[name][1:], expected, strict=True):
        for column, cell, value in zip(header, row, wanted, strict=True):
            number = as_number(value)
            if isinstance(number, float):
                number = pytest.approx(number, rel=1e-9, abs=TOLERANCES.get(column, 1e-12))
            assert as_number(cell) == number, (row[:12], column)


@pytest.mark.parametrize("name", ["summary", "contrasts"])
def test_what_needs_more_than_test_accuracies_is_empty_and_not_zero(made, name):
    for row in made[name]:
        assert {row[column] for column in NEED_MORE_THAN_TEST_ACCURACY[name].split()} == {None}


def test_tables_of_predictions_have_no_rows(made):
    assert {name: made[name] for name in diagnostics.COLUMNS} == {name: [] for name in diagnostics.COLUMNS}


def test_what_two_labs_printed_wrong_comes_out_right(made):
    found = {(row["recipe"], row["framework"], row["init"]): row for row in made["summary"]}
    # A printed the mean of one table below another
    means = {key[1:]: round(100 * row["mean"], 2) for key, row in found.items() if key[0] == "A"}
    assert means == {
        ("fairseq", "pretrained"): 79.37,
        ("fairseq", "random"): 66.5,
        ("transformers", "pretrained"): 78.57,
    }
    # B printed 81.1% (± 0.02%): the spread is 2.05 points, a hundred times as much
    spread = found["B", "fairseq", "pretrained"]
    assert (round(100 * spread["mean"], 2), round(100 * spread["sd"], 2)) == (81.13, 2.05)
