"""What pretraining bought, text by text; and reports without any text of the data."""

from html import unescape
from pathlib import Path

import pytest
from builders_report import aggregate, asked, experiment_of, write_report
from synthetic import edit_csv, make_experiment, make_generation
from synthetic_label_sets import make_label_sets

from seedbed.core.files import read_jsonl, read_rows
from seedbed.report import sections_examples
from seedbed.report.documents.blocks import Table, cell_text
from seedbed.report.texts import one_line

SIZES = {"validation": 40, "test": 80}
PLACE = {"dataset": "reviews", "model": "small", "recipe_family": "lab"}
GAIN = {**PLACE, "examples": 80, "runs_pretrained": 4, "runs_random": 4, "only_pretrained": 2}
GAIN |= {"only_random": 1, "gained": 3.0, "lost": 1.5, "swapped_pretrained": 1.0, "swapped_random": 1.2}


def error(example, right, probability=(0.5, 0.5), sure=None, leaked=False):
    """A row of example_errors.csv; pairs are of both inits."""
    row = {**PLACE, "example": example, "label": "good", "leaked": leaked, "wrong_confidence_random": None}
    row |= {"wrong_confidence_pretrained": sure, "right_difference": right[0] - right[1]}
    for number, init in enumerate(("pretrained", "random")):
        row |= {f"runs_{init}": 4, f"right_{init}": right[number], f"prediction_{init}": "bad"}
        row |= {f"label_probability_{init}": probability[number]}
    return row


ERRORS = [
    error("sure", (0, 0.25), sure=0.8, leaked=True),
    error("surest", (0, 0.0), sure=0.9),
    error("unsure", (0.25, 0.0), sure=0.99),
    error("bought", (1, 0.25), (0.9, 0.2)),
    error("bought most", (1, 0.0), (0.7, 0.1)),
    error("half", (1, 0.5)),
    error("sold", (0.25, 0.75), (0.2, 0.6)),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    made = make_experiment(
        tmp_path_factory.mktemp("made"), sizes=SIZES, seeds=[0, 1], frameworks=["transformers"]
    )
    aggregate(made)
    return made


def shown(made, errors=ERRORS, gains=(GAIN,), texts=None):
    """The blocks of the section, of these rows."""
    found = experiment_of(made)
    found.tables.update(example_errors=errors, example_gains=gains)
    assert texts is None or set(texts) == sections_examples.shown_examples(found)
    return sections_examples.example_section(found, texts)


def tables(blocks):
    return {block.name: block for block in blocks if isinstance(block, Table)}


def ids(table):
    return [cell_text(row[0]) for row in table.rows]


def test_texts_stand_in_the_table_of_their_kind_the_most_telling_first(made):
    found = tables(shown(made))
    assert {name: ids(table) for name, table in found.items()} == {
        "surely_wrong_1": ["surest", "sure"],
        "only_pretrained_1": ["bought most", "bought"],
        "only_random_1": ["sold"],
    }
    assert list(map(cell_text, found["only_random_1"].rows[0])) == [
        "sold",
        "good",
        "bad",
        "25.0",
        "75.0",
        "20.0",
        "60.0",
    ]
    # a column that is empty throughout is left out
    assert [list(map(cell_text, row)) for row in found["surely_wrong_1"].rows] == [
        ["surest", "good", "bad", "90.0", "0.0", "–"],
        ["sure", "good", "bad", "80.0", "25.0", "yes"],
    ]


def test_ten_texts_of_a_kind_are_shown_and_all_are_counted(made):
    errors = [error(f"t{number}", (1, 0), (0.9, 0.1 + number / 100)) for number in range(30, 0, -1)]
    calls = asked(lambda: shown(made, errors))
    ((kind, _, most, every, *_),) = calls["examples.caption"]
    assert (kind, most, every) == ("only_pretrained", 10, 30)
    (table,) = tables(shown(made, errors)).values()
    assert ids(table) == [f"t{number}" for number in range(1, 11)]


def test_counts_stand_beside_what_seeds_alone_change(made):
    ((gain, never, compared),) = asked(lambda: shown(made))["examples.counts"]
    assert (gain, never, compared) == (GAIN, 2, True)


def test_both_texts_of_a_pair_are_shown_and_copied_whole(made):
    texts = {("reviews", row["example"]): ["un", "deux " * 99] for row in ERRORS[:2]}
    (table,) = tables(shown(made, ERRORS[:2], texts=texts)).values()
    cell = table.rows[0][-1]
    assert cell.value == one_line("un ‖ " + "deux " * 99)
    assert cell_text(cell).startswith("un ‖ deux deux")
    assert cell_text(cell).endswith("…")


def test_of_sizes_of_training_only_the_largest_is_shown(tmp_path):
    made = make_experiment(
        tmp_path, sizes=SIZES, seeds=[0, 1], frameworks=["transformers"], train_sizes=[20, 80]
    )
    aggregate(made)
    calls = asked(lambda: sections_examples.example_section(experiment_of(made), None))
    assert {gain["recipe_family"] for gain, *_ in calls["examples.counts"]} == {"lab.train_size=80"}


def test_sets_of_labels_have_no_probabilities_and_no_sure_ones(tmp_path):
    made = make_label_sets(tmp_path, levels={"pretrained": 1.5, "random": 0.5}, seeds=[0, 1])
    page = write_report(made)
    assert 'id="only_pretrained_1"' in page
    assert 'id="surely_wrong_1"' not in page


# --- reports without texts ----------------------------------------------------------------------------------


def without_texts(made):
    made.plan.config["report"]["texts"] = False
    return unescape(write_report(made))


def told(made):
    """Every text of the test splits as a page would begin to show it, and what runs answered."""
    examples = [example for path in made.plan.per_dataset("test.jsonl") for example in read_jsonl(Path(path))]
    texts = [example[key] for example in examples for key in ("text", "question", "answer") if key in example]
    answers = [row.get("answer") for folder in made.folders for row in read_rows(folder / "predictions.csv")]
    # code has no ` around it on a page
    return {one_line(text).replace("`", "")[:12] for text in [*texts, *filter(None, answers)]}


def is_told(page, texts):
    flat = one_line(page.replace("<code>", "").replace("</code>", ""))
    return {text for text in texts if text in flat}


@pytest.mark.parametrize("make", [make_experiment, make_label_sets, make_generation])
def test_no_text_of_the_data_stands_in_a_report_without_texts(tmp_path, make):
    levels = {"levels": {"pretrained": 0.5, "random": 0.1}} if make is make_label_sets else {}
    made = make(tmp_path, seeds=[0, 1], sizes=SIZES, **levels)
    page = unescape(write_report(made))
    assert is_told(page, told(made))
    hidden = without_texts(made)
    assert is_told(hidden, told(made)) == set()
    assert "as <code>report.texts</code> asks" in hidden


def test_ids_labels_and_counts_stay_without_texts(made):
    page, hidden = unescape(write_report(made)), without_texts(made)
    made.plan.config["report"]["texts"] = True
    rows = read_rows(made.outputs["never_right"])
    assert rows
    for text in (page, hidden):
        assert all(f">{row['example']}<" in text for row in rows)
    for name in ("only_pretrained_1", "surely_wrong_1"):
        assert all(f'id="{name}"' in text for text in (page, hidden))


def test_strings_that_texts_share_are_numbered_in_a_report_without_texts(tmp_path):
    made = make_experiment(tmp_path, sizes=SIZES, frameworks=["fairseq"], seeds=[0])
    shared = "mentions légales"
    rows = [
        {"check": f"shared text: {shared}", "count": 60, "share": 0.75},
        {"check": f"shared text in class positive: {shared}", "count": 60, "share": 1.0, "label": "positive"},
        {"check": f"shared text in class negative: {shared}", "count": 0, "share": 0.0, "label": "negative"},
    ]
    of_text = {"kind": "shared text", "text": shared}
    edit_csv(
        made.experiment / "data_audit.csv",
        lambda found: found.extend({**found[0], **row, **of_text} for row in rows),
    )
    assert f"the same text “{shared}”" in unescape(write_report(made))
    hidden = without_texts(made)
    assert shared not in hidden
    assert "the same text “string 1, left out” in " in hidden
    assert "shared text in class positive: string 1, left out" in hidden
