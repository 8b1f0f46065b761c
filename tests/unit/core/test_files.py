"""Tables on disk: what a spreadsheet does not run, and what is read back as it was."""

import csv

import pytest

from seedbed.analysis.answers import read_answers
from seedbed.analysis.predictions import read_predictions
from seedbed.core.files import read_rows, write_rows
from seedbed.core.rows import read_csv, read_table, write_table
from seedbed.core.tasks import ANSWER_COLUMNS

FORMULAS = [
    '=cmd|"/C calc"!A0', "+1+1", "-1+1", "- oui", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "-1e5x", "+", "\uff1d1",
    "'=1", "''-x", "-٣",
]  # fmt: skip
HARMLESS = [
    "",
    "l'été",
    "a\rb",
    "a\nb",
    "'oui'",
    "a=b",
    " =1",
    "-0.5",
    "+5",
    "-1e-05",
    "-.5",
    "1-2",
    "(-x)",
    "'",
    "=".join("ab"),
]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t.csv"
    texts = [*FORMULAS, *HARMLESS]
    write_rows(path, ["text", "value"], ({"text": text, "value": -0.5} for text in texts))
    return path, texts


def test_no_cell_begins_as_a_formula_does(table):
    path, _ = table
    with open(path, encoding="utf-8", newline="") as stream:
        cells = [row["text"] for row in csv.DictReader(stream)]
    assert cells == [f"'{text}" for text in FORMULAS] + HARMLESS


def test_every_reader_gives_the_texts_back(table):
    path, texts = table
    assert [row["text"] for row in read_rows(path)] == texts
    assert read_csv(path)[1] == [[text, "-0.5"] for text in texts]
    assert {row["value"] for row in read_table(path)} == {-0.5}


def test_a_table_without_such_a_cell_has_the_bytes_it_always_had(tmp_path):
    write_table(tmp_path / "t.csv", ["label", "x"], [{"label": 'l\'été, "="', "x": -0.5}, {"x": True}])
    assert (tmp_path / "t.csv").read_text() == 'label,x\n"l\'été, ""=""",-0.5\n,true\n'


def test_answers_and_labels_are_read_back(tmp_path):
    texts = [*FORMULAS, *HARMLESS[1:]]
    rows = [
        {
            "split": split, "example": f"{split}-{index}", "tokens": 1, "loss": 1.0, "token_accuracy": 0,
            "exact_match": 0, "f1": 0, "reference": text, "answer": text,
        }
        for split in ("validation", "test")
        for index, text in enumerate(texts)
    ]  # fmt: skip
    write_rows(tmp_path / "predictions.csv", ANSWER_COLUMNS, rows)
    assert list(read_answers(tmp_path / "predictions.csv")["test"].references) == texts
    names = ["=ja", "-1", "l'autre"]
    columns = ["split", "example", "label", "prediction", *(f"probability_{name}" for name in names)]
    rows = [
        {
            "split": split, "example": f"{split}-{name}", "label": name, "prediction": name,
            **{f"probability_{other}": float(other == name) for other in names},
        }
        for split in ("validation", "test")
        for name in names
    ]  # fmt: skip
    write_rows(tmp_path / "predictions.csv", columns, rows)
    found = read_predictions(tmp_path / "predictions.csv", names)["test"]
    assert found.labels.tolist() == [0, 1, 2]
    assert found.correct.all()
