"""The audit: every check against counts by hand, on texts that have the fault and on texts that do not."""

import csv
import itertools
import logging
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest

from seedbed.core import files
from seedbed.core.errors import SeedbedError
from seedbed.data import audit, boilerplate, duplicates
from seedbed.figures import audit_figure

RECIPES = {
    "long": {"family": "long", "swept": {}, "max_positions": None},
    "short": {"family": "short", "swept": {}, "max_positions": 4},
}
OTHERS = {"validation": ["un", "deux"], "test": ["trois", "quatre"]}
PLAIN = "un mot plein"


def examples(split: str, texts: list[str], labels: list[int] | None = None) -> list[dict[str, Any]]:
    labels = labels or [index % 2 for index in range(len(texts))]
    return [
        {"id": f"{split}-{index}", "text": text, "label": label}
        for index, (text, label) in enumerate(zip(texts, labels, strict=True))
    ]


def dataset(
    train: list[str] | None = None,
    validation: list[str] | None = None,
    test: list[str] | None = None,
    labels: dict[str, list[int]] | None = None,
    threshold: float | None = None,
    **changes: Any,
) -> audit.Dataset:
    """A dataset without tokens; splits that are not given hold four texts of their own."""
    given = {"train": train, "validation": validation, "test": test}
    splits = {
        split: examples(
            split, texts or [f"{n} {PLAIN} {n}, {split}" for n in range(4)], (labels or {}).get(split)
        )
        for split, texts in given.items()
    }
    found = duplicates.find_duplicates(splits, threshold)
    made = audit.Dataset("books", splits, ["bad", "good"], [], found, {}, {})
    return replace(made, **changes)


def cell(made: audit.Dataset, split: str, check: str, model: str = "") -> tuple:
    """(count, share, examples) of the only row of that check."""
    rows = [
        row
        for row in audit.audit_dataset(made)
        if (row["split"], row["check"], row["model"]) == (split, check, model)
    ]
    assert len(rows) == 1, (split, check)
    return rows[0]["count"], rows[0]["share"], rows[0]["examples"]


def told(made: audit.Dataset) -> list[str]:
    return [sentence.removeprefix("books: ") for sentence in audit.warnings(audit.audit_dataset(made))]


# --- texts --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("check", "faulty", "sound"),
    [
        ("empty", ["", " \u00a0 "], [".", "a"]),
        ("empty", ["\u200b", "\u00ad", " \u2060\ufeff", "\u180e"], ["a\u200b", "\u0301"]),
        ("empty", ["\u200e\u202e", "\u3164", "\ufe0f"], ["\u2764\ufe0f", "\u4e2d"]),
        ("under 3 words", ["Bof.", "Très bien !", "!!!"], ["", "un deux trois", "l'été indien"]),
        ("over 10,000 characters", ["a" * 10_001], ["a" * 10_000]),
        ("U+FFFD", ["d\ufffd\ufffdu"], ["déçu ?"]),
        (
            "mojibake",
            ["trÃ¨s dÃ©Ã§u", "lâ€™auteur", "cÅ“ur", "moitiÃ\u00a0", "Â« oui Â»", "ðŸ˜€", "lâ\x80\x99auteur"],
            ["très déçu", "l’auteur", "cœur", "« CAFÉ»", "Âme, pâte, MANHÃ", "Å bo", "😀", "NOËL “PÂTÉ”"],
        ),
        ("control characters left", ["s\x9cur", "a\x00b", "a\x7fb", "a\x1bb"], ["a\tb", "a\nb", "a\u00a0b"]),
        ("not NFC", ["e\u0301te\u0301"], ["été"]),
        (
            "HTML",
            ["bon<br />livre", "<b>bon</b>", "vous &amp; moi", "l&#39;ami", "l&#x27;ami", '<a href="x">'],
            ["a < b > c", "J&J; Dupont & fils", "<s> <pad> </s> <mask>", "&bidule;", "i<b", "<3"],
        ),
    ],
)  # fmt: skip
def test_each_check_of_texts_counts_faulty_ones_and_no_sound_one(check, faulty, sound):
    texts = [*faulty, *sound, PLAIN, PLAIN]
    number, share, ids = cell(dataset(test=texts), "test", check)
    assert number == len(faulty)
    assert share == pytest.approx(len(faulty) / len(texts), abs=1e-6)
    assert ids.split() == [f"test-{index}" for index in range(len(faulty))][:5]
    assert cell(dataset(test=[*sound, PLAIN]), "test", check) == (0, 0.0, "")


def test_a_check_that_finds_nothing_keeps_its_row_in_every_split():
    rows = audit.audit_dataset(dataset())
    for split in ("train", "validation", "test"):
        checks = [row["check"] for row in rows if row["split"] == split]
        assert set(audit.TEXT_CHECKS) < set(checks)
        assert len(checks) == len(set(checks))
    assert all(isinstance(row["count"], int) for row in rows)
    assert told(dataset()) == []


def test_the_longest_texts_are_named_first():
    made = dataset(test=["a" * 10_001, "b" * 20_000, PLAIN])
    assert cell(made, "test", "over 10,000 characters")[2] == "test-1 test-0"


# --- classes and order --------------------------------------------------------------------------------------


def test_classes_are_counted_by_name_and_examples_as_a_share_of_the_dataset():
    made = dataset(labels={"train": [1, 1, 0, 1]})
    assert cell(made, "train", "class: bad") == (1, 0.25, "train-2")
    assert cell(made, "train", "class: good") == (3, 0.75, "train-0 train-1 train-3")
    assert cell(made, "test", "class: bad") == (2, 0.5, "test-0 test-2")
    assert cell(made, "train", "examples")[:2] == (4, 0.333333)


@pytest.mark.parametrize(
    ("labels", "runs", "longest", "grouped"),
    [
        ([1, 1, 1, 0], 2, (3, "train-0 train-2"), 4),
        ([0, 0, 1, 1], 2, (2, "train-0 train-1"), 4),
        ([0, 1, 1, 0], 3, (2, "train-1 train-2"), 0),
        ([0, 1, 0, 1], 4, (1, "train-0"), 0),
        ([1, 1, 1, 1], 1, (4, "train-0 train-3"), 0),
    ],
)
def test_the_order_of_labels(labels, runs, longest, grouped):
    made = dataset(labels={"train": labels})
    assert cell(made, "train", "runs of one label")[:2] == (runs, runs / 4)
    number, ids = longest
    assert cell(made, "train", "longest run of one label") == (number, number / 4, ids)
    assert cell(made, "train", "all of one label first")[:2] == (grouped, grouped / 4)
    assert any("before the next" in sentence for sentence in told(made)) == bool(grouped)


def test_one_example_of_each_class_is_no_order():
    made = dataset(train=["un", "deux"], labels={"train": [0, 1]})
    assert cell(made, "train", "all of one label first")[0] == 0


def test_missing_dominant_and_unequal_classes_are_told():
    made = dataset(labels={"train": [1, 1, 1, 1], "validation": [0, 1, 0, 1], "test": [0, 1, 1, 1]})
    assert told(made) == [
        "no train example of class bad",
        "the splits differ in balance: class bad makes up 0.0% of train, 50.0% of validation and 25.0% of "
        "test",
        "class good makes up 100.0% of train",
        "test lists all examples of one label before the next (Seedbed shuffles the training split; other "
        "code may not)",
    ]


# --- duplicates and leaks -----------------------------------------------------------------------------------

LONG = "un deux trois quatre cinq six sept huit neuf dix"
LEAKY = {
    "train": ["bon livre", "Bon  livre", LONG, "mauvais", f"{LONG} onze", "autre chose"],
    "validation": ["mauvais", "rien de tel"],
    "test": ["BON LIVRE", f"{LONG}!", "tout autre", "mauvais"],
}
LABELS = {"train": [0, 1, 0, 1, 1, 0], "validation": [1, 0], "test": [0, 0, 1, 0]}


def test_duplicates_and_leaks_are_counted_by_kind_and_by_label():
    made = dataset(**LEAKY, labels=LABELS, threshold=0.8)
    # train-1 is train-0 with another label; train-4 has 9 3-grams, 8 of them those of train-2
    assert cell(made, "train", "repeated: exact") == (1, 0.166667, "train-1")
    assert cell(made, "train", "repeated: near") == (1, 0.166667, "train-4")
    assert cell(made, "train", "repeated: with another label") == (2, 0.333333, "train-1 train-4")
    assert cell(made, "validation", "also in train: exact") == (1, 0.5, "validation-0")
    assert cell(made, "validation", "also in train: near") == (0, 0.0, "")
    assert cell(made, "validation", "also in train: with another label") == (0, 0.0, "")
    # those with another label come first; test-0 stands in train under both labels
    assert cell(made, "test", "also in train: exact") == (2, 0.5, "test-0 test-3")
    assert cell(made, "test", "also in train: near") == (1, 0.25, "test-1")
    assert cell(made, "test", "also in train: with another label") == (2, 0.5, "test-0 test-3")
    assert cell(made, "test", "also in validation: exact") == (1, 0.25, "test-3")
    assert cell(made, "test", "repeated: exact") == (0, 0.0, "")
    assert cell(made, "train", "also in validation or test")[:2] == (5, 0.833333)
    assert cell(made, "train", "dropped leaks") == (0, 0.0, "")


def test_leaks_and_repeated_examples_are_told_with_their_share():
    sentences = told(dataset(**LEAKY, labels=LABELS, threshold=0.8))
    assert [sentence for sentence in sentences if "stand" in sentence or "repeat" in sentence] == [
        "3 test examples of 4 (75.0%) also stand in train, among them 1 near-duplicate and 2 with another "
        "label; drop_leaks: true of the dataset takes them out of training",
        "1 validation example of 2 (50.0%) also stands in train; drop_leaks: true of the dataset takes them "
        "out of training",
        "1 test example of 4 (25.0%) also stands in validation, among them 1 with another label",
        "2 train examples of 6 (33.3%) repeat an earlier one of the split, among them 1 near-duplicate and "
        "2 with another label",
    ]


def test_leaks_that_were_left_out_are_counted_as_found_and_told():
    made = dataset(**LEAKY, labels=LABELS, threshold=0.8)
    kept = [row for row in made.splits["train"] if row["id"] == "train-5"]
    dropped = [f"train-{index}" for index in range(5)]
    made = replace(made, splits={**made.splits, "train": kept}, dropped=dropped)
    assert cell(made, "train", "examples")[0] == 1
    assert cell(made, "train", "dropped leaks") == (5, 0.833333, " ".join(dropped))
    assert cell(made, "train", "repeated: exact") == (1, 0.166667, "train-1")
    assert cell(made, "test", "also in train: exact")[0] == 2
    sentence = "5 train examples of 6 (83.3%) that also stand in validation or test were left out of training"
    assert sentence in told(made)


def test_warnings_are_of_their_own_dataset():
    bad = dataset(train=["", "un texte sans histoire", "un autre texte ici", "encore un texte ici"])
    good = replace(dataset(), name="films")
    alone = [*audit.warnings(audit.audit_dataset(bad)), *audit.warnings(audit.audit_dataset(good))]
    assert any(warning.startswith("books: ") for warning in alone)
    assert audit.warnings([*audit.audit_dataset(bad), *audit.audit_dataset(good)]) == alone


def test_mojibake_up_to_the_last_continuation_byte():
    assert audit.has_mojibake("ÿ".encode().decode("latin-1"))


def test_few_repeated_examples_of_one_label_are_no_warning():
    texts = [f"{number} {PLAIN} {number}" for number in range(200)]
    repeated = [*texts, texts[0]]
    made = dataset(train=repeated, labels={"train": [n % 2 for n in range(200)] + [0]})
    assert cell(made, "train", "repeated: exact") == (1, 0.004975, "train-200")
    assert told(made) == []
    made = dataset(train=repeated, labels={"train": [n % 2 for n in range(200)] + [1]})
    assert told(made) == [
        "1 train example of 201 (0.5%) repeats an earlier one of the split, among them 1 with another label"
    ]


# --- tokens -------------------------------------------------------------------------------------------------


def test_lengths_truncation_and_unknown_tokens_by_model():
    rows = [(3, 1, 0), (4, 2, 1), (5, 3, 0), (8, 4, 2)]  # length, pieces kept, unknown pieces
    tokens = [audit.TokenRow(f"test-{index}", *values) for index, values in enumerate(rows)]
    made = dataset(
        tokens={"tiny": {"train": [], "validation": [], "test": tokens}},
        limits={"tiny": {audit.MODEL_LIMIT: 6, "short": 4}},
    )
    assert cell(made, "test", "median length in tokens", "tiny") == (4, None, "")
    assert cell(made, "test", "longest in tokens", "tiny") == (8, None, "test-3")
    assert cell(made, "test", "truncated to 6 tokens (the model)", "tiny") == (1, 0.25, "test-3")
    assert cell(made, "test", "truncated to 4 tokens (short)", "tiny") == (2, 0.5, "test-3 test-2")
    assert cell(made, "test", "unknown tokens", "tiny") == (3, 0.3, "test-1 test-3")
    assert cell(made, "test", "with unknown tokens", "tiny") == (2, 0.5, "test-1 test-3")
    assert cell(made, "train", "truncated to 6 tokens (the model)", "tiny") == (0, 0.0, "")
    assert told(made) == [
        "truncation to 4 tokens (recipe short, tiny) in 2 of 4 test examples (50.0%); the model reads 6: "
        "raise max_positions of the recipe",
        "unknown tokens (tiny) in 2 of 4 test examples (50.0%)",
    ]


def test_limits_are_those_of_recipes_that_cut_shorter_than_the_model():
    swept = {
        f"wide.max_positions={n}": {"family": "wide", "swept": {"max_positions": n}, "max_positions": n}
        for n in (64, 128)
    }
    rates = {
        f"low.learning_rate={n}": {"family": "low", "swept": {"learning_rate": n}, "max_positions": 64}
        for n in (1, 2)
    }
    limits = audit.recipe_limits({**RECIPES, **swept, **rates})
    assert limits == {"wide.max_positions=128": 128, "wide.max_positions=64 and low": 64, "short": 4}


# --- files --------------------------------------------------------------------------------------------------


def write_dataset(folder: Path, made: audit.Dataset, ids: list[int] | None = None) -> dict[str, Path]:
    """The files of a dataset with tokens of the model tiny: four pieces a text, cut to `ids`."""
    for split, rows in made.splits.items():
        files.write_jsonl(folder / f"{split}.jsonl", rows)
        tokens = [
            {"id": row["id"], "label": row["label"], "ids": ids or [0, 7, 3, 8, 9, 2], "length": 6}
            for row in rows
        ]
        files.write_jsonl(folder / "tiny" / "tokens" / f"{split}.jsonl", tokens)
    files.write_json(folder / "labels.json", {"labels": ["0", "1"], "names": list(made.label_names)})
    files.write_json(folder / "splits.json", {"dropped_leaks": list(made.dropped)})
    duplicates.write_duplicates(folder / "duplicates.csv", made.duplicates)
    files.write_json(folder / "model.json", {"max_positions": 5})
    return {"tiny": folder / "model.json"}


def test_what_a_dataset_leaves_out_is_counted(tmp_path):
    models = write_dataset(tmp_path / "books", dataset())
    recorded = {
        "dropped_leaks": [],
        "read": {"train": 30, "test": 4},
        "other_labels": {
            "train": {"number": 10, "commonest": {"5": 10}},
            "test": {"number": 0, "commonest": {}},
        },
        "sample": {"seed": 0, "train": {"size": 4, "of": 20, "ids": ["a", "b", "c", "d"]}},
    }
    files.write_json(tmp_path / "books/splits.json", recorded)
    audit.audit([tmp_path / "books"], models, RECIPES, tmp_path / "data_audit.csv")
    rows = audit.read_audit(tmp_path / "data_audit.csv")
    found = {(row["split"], row["check"]): (row["count"], row["share"]) for row in rows}
    assert found["train", "dropped: another label"] == (10, 0.25)
    assert found["test", "dropped: another label"] == (0, 0.0)
    assert found["train", "left out by the sample"] == (16, 0.8)
    assert ("test", "left out by the sample") not in found
    write_dataset(tmp_path / "books", dataset())
    audit.audit([tmp_path / "books"], models, RECIPES, tmp_path / "plain.csv")
    assert not {row["check"] for row in audit.read_audit(tmp_path / "plain.csv")} & {
        "dropped: another label", "left out by the sample",
    }  # fmt: skip


def test_the_table_is_written_from_the_files_and_what_is_alarming_logged(tmp_path, caplog):
    models = write_dataset(tmp_path / "books", dataset(test=["", PLAIN], dropped=["train-9"]))
    with caplog.at_level(logging.WARNING):
        audit.audit([tmp_path / "books"], models, RECIPES, tmp_path / "data_audit.csv")
    with open(tmp_path / "data_audit.csv", encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert tuple(rows[0]) == audit.COLUMNS
    table = {(row["split"], row["model"], row["check"]): (row["count"], row["share"]) for row in rows}
    assert table["test", "", "empty"] == ("1", "0.5")
    assert table["train", "", "dropped leaks"] == ("1", "0.2")
    assert table["test", "tiny", "unknown tokens"] == ("2", "0.25")
    assert table["test", "tiny", "truncated to 5 tokens (the model)"] == ("2", "1.0")
    assert table["test", "tiny", "truncated to 4 tokens (short)"] == ("2", "1.0")
    assert table["test", "tiny", "longest in tokens"] == ("6", "")
    sentence = "books: nothing but white space or invisible characters in 1 of 2 test examples (50.0%)"
    read = audit.read_audit(tmp_path / "data_audit.csv")
    assert sentence in audit.warnings(read)
    assert [record.getMessage() for record in caplog.records] == audit.warnings(read)
    assert {type(row["share"]) for row in read} == {float, type(None)}
    (cut,) = (row for row in read if (row["split"], row["limited_by"]) == ("test", "short"))
    assert (cut["kind"], cut["limit"], cut["model"]) == ("truncated", 4, "tiny")
    classes = {row["label"] for row in read if row["kind"] == "class"}
    assert {f"class: {name}" for name in classes} == {
        row["check"] for row in read if row["check"].startswith("class: ")
    }


def test_names_that_look_like_checks_are_names():
    """A class or a recipe may be called anything: no name is taken apart."""
    odd = "truncated to 9 tokens (x)"
    limits = {"tiny": {audit.MODEL_LIMIT: 5, "left out, over 3": 4}}
    made = dataset(label_names=[odd, "class: b"], limits=limits)
    long = {
        split: [audit.TokenRow(row["id"], 9, 9, 0) for row in rows] for split, rows in made.splits.items()
    }
    made = replace(made, tokens={"tiny": long})
    told = audit.warnings(audit.audit_dataset(made))
    assert any("truncation to 4 tokens (recipe left out, over 3, tiny)" in sentence for sentence in told)
    assert not any("9 tokens (recipe" in sentence for sentence in told)


def test_a_table_of_an_earlier_version_is_to_be_made_anew(tmp_path):
    path = tmp_path / "data_audit.csv"
    path.write_text("dataset,split,model,check,count,share,examples\nx,test,,empty,1,0.5,\n")
    with pytest.raises(SeedbedError, match="audit of the data") as caught:
        audit.read_audit(path)
    assert "again" in caught.value.hint


def test_tokens_of_other_examples_are_an_error(tmp_path):
    models = write_dataset(tmp_path / "books", dataset())
    path = tmp_path / "books" / "tiny" / "tokens" / "test.jsonl"
    files.write_jsonl(path, files.read_jsonl(path)[1:])
    with pytest.raises(SeedbedError, match=r"test\.jsonl") as caught:
        audit.audit([tmp_path / "books"], models, RECIPES, tmp_path / "data_audit.csv")
    assert "3 rows of tokens for 4 examples" in str(caught.value)
    assert not (tmp_path / "data_audit.csv").exists()


# --- the figure ---------------------------------------------------------------------------------------------


def with_tokens(made: audit.Dataset, *models: str, limit: int = 256) -> audit.Dataset:
    tokens = {
        split: [audit.TokenRow(row["id"], 5 + 40 * number, 3, 0) for number, row in enumerate(rows)]
        for split, rows in made.splits.items()
    }
    limits = {audit.MODEL_LIMIT: limit, "short": 64}
    return replace(made, tokens=dict.fromkeys(models, tokens), limits=dict.fromkeys(models, limits))


SHAPES = {
    "one": lambda: [with_tokens(dataset(), "tiny")],
    "three, one with two models": lambda: [
        with_tokens(dataset(**LEAKY, labels=LABELS, threshold=0.8), "tiny", "small"),
        with_tokens(replace(dataset(), name="reviews", dropped=["train-9"]), "tiny"),
        with_tokens(
            replace(dataset(), name="topics", label_names=[f"topic number {n}" for n in range(14)]), "tiny"
        ),
    ],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_nothing_in_the_figure_is_cut_off_or_covered(shape):
    audit_figure.set_style()
    figure, caption = audit_figure.data_audit(SHAPES[shape]())
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    items = [figure._supxlabel, figure.legends[0]]
    for axis in figure.axes:
        if axis.axison:
            items += [axis._left_title, axis.xaxis.label, axis.yaxis.label, *axis.texts]
            items += [tick.label1 for tick in axis.yaxis.get_major_ticks()]
            low, high = axis.get_xlim()
            ticks = axis.xaxis.get_major_ticks()
            items += [tick.label1 for tick in ticks if low <= tick.get_loc() <= high]
    boxes = [(item, item.get_window_extent(renderer)) for item in items]
    boxes = [(item, box) for item, box in boxes if box.width > 1 and box.height > 1]
    for item, box in boxes:
        assert min(box.x0, box.y0) >= -1, item
        assert box.x1 <= figure.bbox.x1 + 1, item
        assert box.y1 <= figure.bbox.y1 + 1, item
    for (one, box), (other, second) in itertools.combinations(boxes, 2):
        apart = box.x1 <= second.x0 + 1 or second.x1 <= box.x0 + 1
        assert apart or box.y1 <= second.y0 + 1 or second.y1 <= box.y0 + 1, (one, other)
    assert "before truncation" in caption.details
    assert 9 / 72 * 640 / figure.get_figwidth() > 10  # pixels of the smallest letters on a page of 640
    plt.close(figure)


def test_the_figure_shows_the_numbers_of_the_table():
    made = with_tokens(dataset(**LEAKY, labels=LABELS, threshold=0.8), "tiny")
    figure, _ = audit_figure.data_audit([made])
    lengths, classes, repeats = figure.axes
    assert [text.get_text() for text in repeats.texts] == [
        *("2 (33.3%)", "1 (50.0%)", "0", "3 (75.0%)", "1 (25.0%)", "0"),
    ]
    marks = [line.get_xdata()[0] for line in classes.lines if line.get_marker() != "None"]
    assert marks == pytest.approx([50, 50, 75, 50, 50, 25])
    assert {text.get_text() for text in lengths.texts} == {"256", "64"}
    train = lengths.lines[0]
    assert list(train.get_xdata()) == [-math.inf, 5, 45, 85, 125, 165, 205]
    assert train.get_ydata()[-1] == 100
    plt.close(figure)


def test_the_figure_is_always_the_same_file(tmp_path):
    for name in ("a", "b"):
        audit_figure.plot_audit(
            SHAPES["one"](), *(tmp_path / name / f"x.{ending}" for ending in ("svg", "png", "json"))
        )
    for ending in ("svg", "png", "json"):
        assert (tmp_path / f"a/x.{ending}").read_bytes() == (tmp_path / f"b/x.{ending}").read_bytes()
    assert (tmp_path / "a/x.png").read_bytes().startswith(b"\x89PNG")


# --- shared texts -------------------------------------------------------------------------------------------

SCRIPT = '<script>track("**a**");\u200b</script>'
SHOWN = '<script>track("**a**");\\u200b</script>'


def different(number: int) -> str:
    """A text that shares no long string with those of other numbers."""
    return f"{number}a {number}b {number}c {number}d {number}e"


def with_script(numbers: range, every: int) -> list[str]:
    texts = [different(number) for number in numbers]
    return [f"{text} {SCRIPT} {text}" if k % every == 0 else text for k, text in enumerate(texts)]


def test_a_string_that_many_texts_share_is_named_with_its_share_in_splits_and_classes():
    made = dataset(train=with_script(range(100, 140), 2), test=with_script(range(200, 220), 3))
    assert cell(made, "train", f"shared text: {SHOWN}")[:2] == (20, 0.5)
    assert cell(made, "validation", f"shared text: {SHOWN}") == (0, 0.0, "")
    ids = "test-0 test-3 test-6 test-9 test-12"
    assert cell(made, "test", f"shared text: {SHOWN}") == (7, 0.35, ids)
    # every other text of train is of class bad, and each of those has the script
    assert cell(made, "train", f"shared text in class bad: {SHOWN}")[:2] == (20, 1.0)
    assert cell(made, "train", f"shared text in class good: {SHOWN}") == (0, 0.0, "")
    assert told(made)[:1] == [
        f"the same text “{SHOWN}” in 20 of 40 train examples (50.0%) and 7 of 20 test examples (35.0%); it "
        "stands in 75.0% of class bad and 9.4% of class good, so that it gives the label away"
    ]


def test_a_string_of_all_classes_does_not_give_the_label_away():
    texts = [f"{different(number)} Nous utilisons des cookies, cliquez ici." for number in range(100, 140)]
    assert told(dataset(train=texts)) == [
        "the same text “Nous utilisons des cookies, cliquez ici.” in 40 of 40 train examples (100.0%)"
    ]


def test_a_string_of_one_class_is_told_beside_one_of_all():
    texts = [f"Nous utilisons des cookies, cliquez ici. {different(number)}" for number in range(100, 200)]
    texts = [text + " Bien à vous, Jean-Luc Dupont" * (k % 10 == 1) for k, text in enumerate(texts)]
    sentences = told(dataset(train=texts))
    assert len(sentences) == 2
    assert sentences[1].startswith("the same text “Bien à vous, Jean-Luc Dupont” in 10 of 100 train examples")
    assert "18.5% of class good and 0.0% of class bad" in sentences[1]


MONTHS = ("janvier", "février", "mars", "avril", "mai", "juin", "juillet", "août")


@pytest.mark.parametrize(
    ("ending", "string"),
    [
        ("Lire la suite...", "Lire la suite..."),
        ("Date de l'expérience : {n} {month} {year}", "Date de l'expérience :"),
        ("le {n}/{n}/{year} à la suite de votre commande", "à la suite de votre commande"),
    ],
)
def test_a_short_string_or_one_with_a_date_is_told_with_all_its_texts(ending, string):
    texts = [different(number) for number in range(100, 200)]
    for n in range(54):
        texts[n] += " " + ending.format(n=n % 28 + 1, month=MONTHS[n % 8], year=2015 + n % 9)
    made = dataset(train=texts)
    assert cell(made, "train", f"shared text: {string}")[:2] == (54, 0.54)
    assert f"the same text “{string}” in 54 of 100 train examples (54.0%)" in told(made)[0]


def test_a_short_string_of_few_texts_is_left_out():
    texts = [different(number) for number in range(100, 200)]
    texts[:9] = [f"{text} Lire la suite..." for text in texts[:9]]
    assert cell(dataset(train=texts, **OTHERS), "train", "shared text") == (0, 0.0, "")


def test_a_string_of_chinese_characters_without_spaces_is_found():
    texts = [f"{chr(0x4E00 + n) * 9}点击这里查看更多精彩内容{chr(0x6E00 + n) * 9}" for n in range(40)]
    sentence = "the same text “点击这里查看更多精彩内容” in 40 of 40 train examples (100.0%)"
    assert sentence in told(dataset(train=texts))


def test_without_a_shared_string_the_check_keeps_its_row():
    made = dataset(train=[different(number) for number in range(100, 140)], **OTHERS)
    for split in ("train", "validation", "test"):
        assert cell(made, split, "shared text") == (0, 0.0, "")
    assert not [sentence for sentence in told(made) if "same text" in sentence]


def test_few_texts_that_share_a_string_are_no_warning():
    texts = [different(number) for number in range(100, 140)]
    texts[:9] = [f"{text} Nous utilisons des cookies, cliquez ici." for text in texts[:9]]
    made = dataset(train=texts)
    assert cell(made, "train", "shared text: Nous utilisons des cookies, cliquez ici.")[0] == 9
    assert told(made) == []


def test_equal_texts_are_duplicates_and_share_nothing():
    made = dataset(train=["un texte assez long qui est le même"] * 20, **OTHERS)
    assert cell(made, "train", "shared text") == (0, 0.0, "")


def test_of_many_texts_a_sample_is_enough(monkeypatch):
    looked_at = []
    pieces = boilerplate._pieces
    monkeypatch.setattr(boilerplate, "SAMPLED", 2_000)
    monkeypatch.setattr(boilerplate, "_pieces", lambda text, *of: looked_at.append(text) or pieces(text, *of))
    texts = {("train", label): with_script(range(100, 5_100), 4 * label + 2) for label in (0, 1)}
    assert boilerplate.shared_strings(texts) == [SCRIPT]
    assert len(looked_at) < 500


def test_the_figure_counts_texts_that_share_a_string():
    made = dataset(train=with_script(range(100, 140), 2))
    figure, caption = audit_figure.data_audit([made])
    axis = figure.axes[-1]
    names = [tick.get_text() for tick in axis.get_yticklabels()]
    shown = {name: text.get_text() for name, text in zip(names, axis.texts, strict=True)}
    assert shown["train, shared text"] == "20 (50.0%)"
    assert shown["test, shared text"] == "0"
    assert "Shared text: examples that hold the commonest string" in caption.details
    plt.close(figure)


# --- questions ----------------------------------------------------------------------------------------------


def write_questions_dataset(folder: Path, limit: int | None, left_out: int = 0) -> dict[str, Path]:
    """A dataset of questions with tokens of the model tiny, whose positions are 64; the last have none.

    The first question of train also stands in test, with another answer; the answer of train-1 has mojibake.
    """
    texts = {
        split: [(f"question {split} {n} ?", f"réponse {n}", f"un contexte {n}") for n in range(4)]
        for split in ("train", "validation", "test")
    }
    texts["train"][1] = (texts["train"][1][0], "dÃ©Ã§u", texts["train"][1][2])
    texts["test"][3] = (texts["train"][0][0], "une autre", texts["train"][0][2])
    splits = {
        split: [
            {"id": f"{split}-{n}", "text": "gabarit", "question": asked, "answer": answer, "context": context}
            for n, (asked, answer, context) in enumerate(rows)
        ]
        for split, rows in texts.items()
    }
    for split, rows in splits.items():
        files.write_jsonl(folder / f"{split}.jsonl", rows)
        tokens = [
            {
                "id": row["id"],
                "prompt": [7, 3, 8],
                "answer": [9, 2],
                "reference": row["answer"],
                "length": 5 + n,
                "unknown": n % 2,
            }
            for n, row in enumerate(rows[: len(rows) - left_out])
        ]
        files.write_jsonl(folder / "tiny" / "tokens" / f"{split}.jsonl", tokens)
    statistics = {split: {"limit": limit} for split in splits}
    files.write_json(folder / "tiny" / "tokens" / "statistics.json", statistics)
    files.write_json(folder / "splits.json", {"dropped_leaks": []})
    compared = {
        split: [
            {"id": row["id"], "text": row["question"] + row["context"], "label": row["answer"]}
            for row in rows
        ]
        for split, rows in splits.items()
    }
    duplicates.write_duplicates(folder / "duplicates.csv", duplicates.find_duplicates(compared, None))
    files.write_json(folder / "model.json", {"max_positions": 64})
    return {"tiny": folder / "model.json"}


def audit_questions(folder: Path, limit: int | None, left_out: int = 0) -> dict[tuple, tuple]:
    """(count, share, examples) by split, model and check."""
    models = write_questions_dataset(folder / "qa", limit, left_out)
    audit.audit([folder / "qa"], models, {}, folder / "data_audit.csv")
    rows = audit.read_audit(folder / "data_audit.csv")
    assert {tuple(row) for row in rows} == {audit.COLUMNS}
    keys = [(row["split"], row["model"], row["check"]) for row in rows]
    assert len(set(keys)) == len(keys)
    return {key: (row["count"], row["share"], row["examples"]) for key, row in zip(keys, rows, strict=True)}


def test_questions_have_no_classes_and_their_texts_are_checked_without_the_template(tmp_path):
    table = audit_questions(tmp_path, None)
    checks = {check for _, _, check in table}
    assert not [check for check in checks if "class" in check or "label" in check]
    assert table["train", "", "examples"] == (4, round(4 / 12, 6), "")
    assert table["train", "", "mojibake"] == (1, 0.25, "train-1")
    assert table["train", "", "under 3 words"] == (0, 0.0, "")  # the template alone has one
    assert table["test", "", "also in train: exact"] == (1, 0.25, "test-3")
    assert table["test", "", "also in train: with another answer"] == (1, 0.25, "test-3")
    sentence = "qa: 1 test example of 4 (25.0%) also stands in train, among them 1 with another answer; "
    assert audit.warnings(audit.read_audit(tmp_path / "data_audit.csv"))[0].startswith(sentence)


def test_a_question_without_a_visible_answer_is_empty(tmp_path):
    models = write_questions_dataset(tmp_path / "qa", None)
    rows = files.read_jsonl(tmp_path / "qa" / "test.jsonl")
    rows[1]["answer"], rows[2]["question"], rows[3]["context"] = "\u200b", "\u00ad ", "\u2060"
    files.write_jsonl(tmp_path / "qa" / "test.jsonl", rows)
    audit.audit([tmp_path / "qa"], models, {}, tmp_path / "data_audit.csv")
    read = audit.read_audit(tmp_path / "data_audit.csv")
    (found,) = (row for row in read if (row["split"], row["check"]) == ("test", "empty"))
    assert (found["count"], found["examples"]) == (2, "test-1 test-2")


def test_lengths_of_questions_are_those_before_the_context_was_cut(tmp_path):
    table = audit_questions(tmp_path, 6)
    assert table["train", "tiny", "median length in tokens"] == (6, None, "")
    assert table["train", "tiny", "longest in tokens"] == (8, None, "train-3")
    assert table["train", "tiny", "truncated to 6 tokens (the dataset)"] == (2, 0.5, "train-3 train-2")
    assert table["train", "tiny", "left out, over 6 tokens (the dataset)"] == (0, 0.0, "")
    assert table["train", "tiny", "unknown tokens"] == (2, 0.1, "train-1 train-3")
    assert (
        "qa: truncation to 6 tokens (max_tokens of the dataset, tiny) in 2 of 4 train examples (50.0%), "
        "2 of 4 validation examples (50.0%) and 2 of 4 test examples (50.0%)"
    ) in audit.warnings(audit.read_audit(tmp_path / "data_audit.csv"))


def test_questions_that_were_left_out_are_told(tmp_path):
    table = audit_questions(tmp_path, 64, left_out=1)
    assert table["test", "tiny", "left out, over 64 tokens (the model)"] == (1, 0.25, "test-3")
    assert table["test", "", "examples"][0] == 4
    sentence = "qa: left out as longer than 64 tokens (the limit of tiny): 1 of 4 train examples (25.0%)"
    told = audit.warnings(audit.read_audit(tmp_path / "data_audit.csv"))
    assert [line for line in told if line.startswith(sentence)]


def test_without_a_limit_nothing_can_be_too_long(tmp_path):
    checks = {check for _, _, check in audit_questions(tmp_path, None)}
    assert not [check for check in checks if check.startswith(("truncated", "left out"))]


def test_tokens_of_other_questions_are_an_error(tmp_path):
    models = write_questions_dataset(tmp_path / "qa", None)
    path = tmp_path / "qa" / "tiny" / "tokens" / "test.jsonl"
    rows = files.read_jsonl(path)
    files.write_jsonl(path, [{**rows[0], "id": "test-9"}, *rows[1:]])
    with pytest.raises(SeedbedError, match="do not fit the examples"):
        audit.audit([tmp_path / "qa"], models, {}, tmp_path / "data_audit.csv")


def test_the_figure_of_questions_has_no_panel_of_classes(tmp_path):
    models = write_questions_dataset(tmp_path / "qa", 6)
    made = audit.read_dataset(tmp_path / "qa", models, {})
    figure, _ = audit_figure.data_audit([made])
    titles = [axis.get_title(loc="left") for axis in figure.axes]
    assert titles == ["qa, tiny\ntoken lengths", "duplicates and leaks"]


# --- clusters ---


def test_clusters_are_counted_and_those_of_two_splits_are_told():
    clusters = {
        "train": {"Zola": ["train-0", "train-1"], "Sand": ["train-2", "train-3"]},
        "validation": {"Hugo": ["validation-0"], "Dumas": ["validation-1", "validation-2", "validation-3"]},
        "test": {"Sand": ["test-1", "test-3"], "Hugo": ["test-0"], "Colette": ["test-2"]},
    }
    made = dataset(clusters=clusters)
    assert [cell(made, split, "clusters")[:2] for split in clusters] == [(2, None), (2, None), (3, None)]
    assert cell(made, "validation", "largest cluster") == (3, 0.75, "validation-1 validation-2 validation-3")
    assert cell(made, "test", "of a cluster in train") == (2, 0.5, "test-1 test-3")
    assert cell(made, "test", "of a cluster in validation") == (1, 0.25, "test-0")
    assert cell(made, "validation", "of a cluster in train") == (0, 0.0, "")
    sentences = [sentence for sentence in told(made) if "cluster" in sentence]
    assert sentences[0].startswith("2 test examples of 4 (50.0%) share a cluster with train examples")
    assert sentences[1].startswith("1 test example of 4 (25.0%) shares a cluster with validation examples")
    assert len(sentences) == 2


def test_without_clusters_nothing_is_said_of_them():
    assert not [row for row in audit.audit_dataset(dataset()) if "cluster" in row["check"]]
