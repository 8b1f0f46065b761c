"""What the terminal shows of an experiment."""

import re

import pytest
from builders_report import aggregate, read
from synthetic import make_experiment

import show
from seedbed.core.errors import SeedbedError
from seedbed.core.files import write_json
from seedbed.report import summary
from seedbed.report.documents.blocks import plain_text
from seedbed.report.opening import opening

LINES = [
    {
        "label": "Answer",
        "text": "Pretraining helps: +12.0 points (95% interval over seeds alone +8.0 to +16.0).",
    },
    {"label": "Next", "text": "Decided at 95%."},
]
TABLE = {
    "caption": "Test accuracy, mean ± sd over 3 seeds, 400 test texts; majority class 50.0%.",
    "header": ["starts from", "learning rate", "accuracy (%)"],
    "rows": [["the checkpoint", "1e-5", "79.0 ± 1.0"], ["random weights", "3e-4", "67.0"]],
}
FACTS = {"lead": "", "groups": [{"place": "", "lines": LINES}], "others": [], "table": TABLE}


@pytest.fixture
def folder(tmp_path):
    write_json(tmp_path / "summary.json", FACTS)
    return tmp_path


def test_the_lines_stand_behind_their_labels_and_are_wrapped(folder):
    printed = show.show(folder, 60).split("\n\n")[0]
    assert printed == (
        "Answer  Pretraining helps: +12.0 points (95% interval over\n"
        "        seeds alone +8.0 to +16.0).\n"
        "Next    Decided at 95%."
    )


def test_headers_are_as_wide_as_their_columns(folder):
    assert show.show(folder).split("\n\n")[1] == (
        "                learning  accuracy\n"
        "starts from     rate      (%)\n"
        "--------------  --------  ----------\n"
        "the checkpoint  1e-5      79.0 ± 1.0\n"
        "random weights  3e-4      67.0\n"
        "Test accuracy, mean ± sd over 3 seeds, 400 test texts; majority class 50.0%."
    )


@pytest.mark.parametrize(("number", "whole"), [(2, True), (3, True), (6, False)])
def test_of_many_questions_the_answers_stand_alone(folder, number, whole):
    places = [f"on {letter}" for letter in "abcdef"[:number]]
    groups = [{"place": place, "lines": LINES} for place in places]
    write_json(
        folder / "summary.json",
        {**FACTS, "lead": "Pretraining helps.", "groups": groups, "others": LINES[1:]},
    )
    printed = show.show(folder).split("\n\n")[0]
    assert printed.startswith("Pretraining helps.\non a")
    assert printed.count("Pretraining helps: +12.0") == len(places)
    assert printed.count("Decided at 95%.") == (len(places) + 1 if whole else 1)


@pytest.mark.parametrize("frameworks", [["fairseq"], ["fairseq", "transformers"]])
def test_what_is_printed_is_one_screen_of_the_experiment(tmp_path, frameworks):
    made = make_experiment(
        tmp_path, seeds=[0, 1, 2], frameworks=frameworks, recipe={"sweep": {"learning_rate": [1e-5, 1e-4]}}
    )
    aggregate(made)
    found, sources = read(made)
    summary.write_summary(found, sources, made.experiment / "summary.md", made.experiment / "summary.json")
    (made.experiment / "report.html").touch()
    printed = show.show(made.experiment)
    assert len(printed.splitlines()) <= 25
    # the folder of a test has a long name
    assert max(map(len, printed.splitlines()[:-3])) <= 100
    (group,) = opening(found).groups
    words = " ".join(printed.split())
    assert all(f"{line.label} {plain_text(line.text)}" in words for line in group.lines)
    assert not {"`", "*"} & set(printed)  # Markdown is for the files
    assert len(
        re.findall(r"^(?:fairseq|Transformers|the checkpoint|random weights)", printed, re.M)
    ) == 2 * len(frameworks)


@pytest.mark.parametrize("questions", [1, 2, 5, 12])
@pytest.mark.parametrize("rows", [2, 6, 12])
@pytest.mark.parametrize("width", [80, 100])
def test_many_datasets_and_models_fit_on_a_screen_that_counts_what_it_leaves_out(
    folder, questions, rows, width
):
    """Nothing is lost without a word: what is shown and what is counted are all."""
    places = [f"on dataset_{number:02} with model_{number:02}" for number in range(questions)]
    cells = [[f"dataset_{number:02}", "1e-5", f"{number}.0"] for number in range(rows)]
    facts = {
        "lead": "Pretraining helps in 4 of 12 comparisons. Verdicts are at 95% after Holm's correction.",
        "groups": [{"place": place, "lines": LINES} for place in places],
        "others": LINES[1:],
        "table": {**TABLE, "rows": cells},
    }
    write_json(folder / "summary.json", facts)
    (folder / "report.html").touch()
    printed = show.show(folder, width)
    assert len(printed.splitlines()) <= 25
    answers, scores = printed.split("\n\n")[:2]
    for part, begin, all_of_them in ((answers, "on dataset_", questions), (scores, "dataset_", rows)):
        shown = len(re.findall(f"^{begin}", part, re.M))
        left = re.findall(r"^and (\d+) more in summary\.md$", part, re.M)
        assert shown >= 3 or not left
        assert shown + sum(map(int, left)) == all_of_them


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
