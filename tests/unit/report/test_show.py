"""What the terminal shows of an experiment."""

import re
from pathlib import Path

import pytest
from builders_report import aggregate, experiment_of
from synthetic import make_experiment

import show
from seedbed.core.errors import SeedbedError
from seedbed.core.files import write_json, write_rows
from seedbed.core.rows import read_table
from seedbed.report import sections_accuracy, summary
from seedbed.report.documents.blocks import plain_text

ANSWER = [
    "Pretraining helps on reviews: +12.0 points (95% interval over seeds and test examples +8 to +16). More.",
    ["On reviews, the frameworks differ."],
]
CELL = {"dataset": "reviews", "model": "small", "framework": "transformers", "init": "random"}
CELL |= {"metric": "accuracy"}
RATES = {"lab.learning_rate=1e-05": 1e-5, "lab.learning_rate=0.1": 0.1}
RECIPES = {name: {"family": "lab", "swept": {"learning_rate": rate}} for name, rate in RATES.items()}


@pytest.fixture
def folder(tmp_path):
    write_json(tmp_path / "summary.json", {"answer": ANSWER, "recipes": RECIPES})
    slow, fast = RATES
    numbers = {"mean": 0.7, "sd": 0.01, "ci_low": 0.675, "ci_high": 0.725, "n_seeds": 3, "n_collapsed": 1}
    numbers |= {"validation_mean": 0.72, "validation_sd": None, "majority_share": 0.5, "bag_of_words": 0.825}
    rows = [
        {**CELL, "recipe": recipe, "recipe_family": "lab", "selection": selection, "test_set": test_set}
        | numbers
        for recipe, selection in ((slow, "equal"), (fast, "equal"), (fast, "best"))
        for test_set in ("all", "without leaks")
    ]
    write_rows(tmp_path / "summary.csv", list(rows[0]), rows)
    return tmp_path


def test_the_answer_is_plain_and_wrapped(folder):
    printed = show.show(folder, 80).split("\n\n")[0]
    assert printed.startswith("Pretraining helps on reviews: +12.0 points (95% interval over seeds and test")
    assert printed.endswith("\n- On reviews, the frameworks differ.")
    assert max(map(len, printed.splitlines())) <= 80


def test_each_group_of_seeds_has_a_line_on_the_whole_test_split(folder):
    printed = show.show(folder)
    line = r"^Transformers +random +learning rate 1e-5 +70\.0% ± 1\.0% +67\.5% to 72\.5% +3 +1 +72\.0%$"
    assert re.search(line, printed, re.M)
    assert len(re.findall("^Transformers", printed, re.M)) == 2
    assert len(re.findall(r"learning rate 0\.1 \*", printed)) == 1
    assert "To beat on reviews, test: majority class 50.0%, bag of words 82.5%" in printed


@pytest.mark.parametrize(
    ("bag", "column", "value", "told"),
    [
        (0.825, "bag_of_words_features", "characters", "bag of characters 82.5%"),
        (None, "bag_of_words_left_out", "no text", "bag of words –"),
    ],
)
def test_a_bag_that_is_not_of_words_is_called_so(folder, bag, column, value, told):
    rows = [{**row, "bag_of_words": bag, column: value} for row in read_table(folder / "summary.csv")]
    write_rows(folder / "summary.csv", list(rows[0]), rows)
    assert f"majority class 50.0%, {told}" in show.show(folder)


@pytest.mark.parametrize(
    ("swept", "others", "told"),
    [
        ({}, [], "lab.x"),
        ({"learning_rate": 0.0003, "epochs": 5}, [], "learning rate 3e-4, epochs 5"),
        ({"schedule": "linear"}, ["long"], "lab, schedule linear"),
        ({"lora.r": 4, "learning_rate": 0.0003}, [], "lora.r 4, learning rate 3e-4"),
    ],
)
def test_recipes_are_told_by_their_swept_values(swept, others, told):
    row = {**CELL, "recipe": "lab.x", "selection": "equal", "mean": "0.7", "sd": "", "ci_low": ""}
    row |= {"ci_high": "", "n_seeds": "1", "n_collapsed": "0", "validation_mean": "0.7", "validation_sd": ""}
    recipes = {"lab.x": {"family": "lab", "swept": swept}}
    recipes |= {name: {"family": name, "swept": {}} for name in others}
    table = show.score_table([row], recipes, "accuracy", titled=False)
    assert table.splitlines()[2].split("  ")[2] == told


def test_the_answer_and_the_recipes_are_those_of_the_experiment(tmp_path):
    made = make_experiment(
        tmp_path, seeds=[0, 1], frameworks=["fairseq"], recipe={"sweep": {"learning_rate": [1e-5, 1e-4]}}
    )
    aggregate(made)
    found = experiment_of(made)
    summary.write_facts(found, made.experiment / "summary.json")
    printed = show.show(made.experiment, 10_000)
    told = [block.text for block in sections_accuracy.answer_blocks(found)]
    assert printed.split("\n\n")[0] == "\n".join(map(plain_text, told))
    assert "**" in told[0]
    assert "`" in told[0]
    assert "learning rate 1e-4" in printed


def test_the_report_is_named_where_there_is_one(folder):
    assert "Report:" not in show.show(folder)
    (folder / "report.html").touch()
    assert show.show(folder).endswith(
        f"Report:  {folder}/report.html (opens in a browser)\n"
        f"Summary: {folder}/summary.md\nFigures: {folder}/figures"
    )


def test_without_a_summary_it_says_what_to_do(tmp_path, capsys, monkeypatch):
    with pytest.raises(SeedbedError, match="no summary yet"):
        show.show(tmp_path)
    monkeypatch.setattr("sys.argv", ["show.py", str(tmp_path)])
    assert show.main() == 1
    assert "hint:  run it first: make demo" in capsys.readouterr().err


def test_the_folder_is_found_by_the_config_files(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "block.yaml").write_text("experiment: mine # a name\ngrid: {seeds: [0]}\n")
    (tmp_path / "flow.yaml").write_text('{"experiment": "other", "results": "my results"}')
    (tmp_path / "home.yaml").write_text("results: ~/far")
    assert show.folder_of([]) == Path("results/demo")
    assert show.folder_of([tmp_path / "block.yaml"]) == Path("results/mine")
    assert show.folder_of([tmp_path / "block.yaml", tmp_path / "flow.yaml"]) == Path("my results/other")
    assert show.folder_of([tmp_path / "block.yaml", tmp_path / "home.yaml"]) == tmp_path / "far/mine"


def test_what_collapsed_means_is_told_where_a_run_did(folder):
    told = "collapsed: one class, or one answer, throughout validation or test; or a loss not finite"
    assert told in show.show(folder)
    path = folder / "summary.csv"
    path.write_text(path.read_text().replace(",3,1,", ",3,0,"))
    assert told not in show.show(folder)
