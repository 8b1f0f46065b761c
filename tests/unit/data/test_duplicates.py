"""Duplicates: identical and nearly identical texts, inside splits and across them, against counts by hand."""

import itertools
import random
import subprocess
import sys
from pathlib import Path

import pytest

from seedbed.core.errors import SeedbedError
from seedbed.data import duplicates

SCRIPTS = Path(__file__).parents[3] / "scripts"
# ten words, eight 3-grams; with another last word seven of nine are shared, J = 0.778
TEN = "un deux trois quatre cinq six sept huit neuf dix"
OTHER_END = "un deux trois quatre cinq six sept huit neuf onze"


def splits(**texts: list) -> dict:
    """Rows of train, validation and test; a text alone has label 0, a pair is (text, label)."""
    made = {}
    for split in ("train", "validation", "test"):
        pairs = [item if isinstance(item, tuple) else (item, 0) for item in texts.get(split, [])]
        made[split] = [
            {"id": f"{split}-{index}", "text": text, "label": label}
            for index, (text, label) in enumerate(pairs)
        ]
    return made


def found(threshold: float | None = None, **texts: list) -> list[tuple]:
    rows = duplicates.find_duplicates(splits(**texts), threshold)
    assert all(row["split"] == row["example"].split("-")[0] for row in rows)
    assert all(row["with_split"] == row["with_example"].split("-")[0] for row in rows)
    return [tuple(row[key] for key in ("example", "with_example", "kind", "similarity")) for row in rows]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Très bon livre !", "très  BON\tlivre ! ", True),
        ("cœur ﬁn ½", "cœur fin 1\u20442", True),  # NFKC
        ("e\u0301te\u0301 indien", "été indien", True),
        ("Straße", "STRASSE", True),
        ("Très bon livre !", "Très bon livre.", False),
        ("été", "ete", False),
    ],
)
def test_identical_is_what_unicode_case_and_white_space_leave(one, other, same):
    expected = [("train-1", "train-0", "exact", 1.0)] if same else []
    assert found(train=[one, other]) == expected


def test_a_repeated_text_names_the_earlier_one_in_its_split_and_any_in_the_others():
    rows = found(train=["a b", "c d", "a b", "a b"], validation=["c d"], test=["e f", "a b"])
    assert rows == [
        ("train-0", "test-1", "exact", 1.0),
        ("train-1", "validation-0", "exact", 1.0),
        ("train-2", "train-0", "exact", 1.0),
        ("train-2", "test-1", "exact", 1.0),
        ("train-3", "train-0", "exact", 1.0),
        ("train-3", "test-1", "exact", 1.0),
        ("validation-0", "train-1", "exact", 1.0),
        ("test-1", "train-0", "exact", 1.0),
    ]


@pytest.mark.parametrize(
    ("threshold", "expected"),
    [
        (0.77, [("test-0", "train-0", "near", 0.7778)]),
        (7 / 9, [("test-0", "train-0", "near", 0.7778)]),
        (0.78, []),
        (None, []),
    ],
)
def test_near_duplicates_are_those_whose_similarity_reaches_the_threshold(threshold, expected):
    rows = found(threshold, train=[TEN], test=[OTHER_END])
    assert [row for row in rows if row[0] == "test-0"] == expected
    assert len(rows) == 2 * len(expected)  # towards train, and towards test


def test_texts_that_differ_in_punctuation_only_are_near_and_not_exact():
    assert found(0.9, train=["Un très bon livre.", "Un très bon livre !"]) == [
        ("train-1", "train-0", "near", 1.0)
    ]


def test_texts_of_fewer_than_three_words_are_compared_for_identity_only():
    assert found(0.1, train=["bon livre", "bon livre !", "bon livre", "!", "?", "", " "]) == [
        ("train-2", "train-0", "exact", 1.0),
        ("train-6", "train-5", "exact", 1.0),
    ]


def test_an_identical_text_goes_before_a_near_one_and_the_more_similar_before_the_less():
    closer = f"{TEN} onze"  # 8 of 9 with TEN, 7 of 10 with OTHER_END
    rows = found(0.5, train=[OTHER_END, closer, TEN], test=[TEN, f"{TEN}!", closer])
    partner = {row[0]: row[1:] for row in rows if row[0].startswith("test") and "train" in row[1]}
    assert partner == {
        "test-0": ("train-2", "exact", 1.0),
        "test-1": ("train-2", "near", 1.0),
        "test-2": ("train-1", "exact", 1.0),
    }
    without = found(0.5, train=[OTHER_END, closer], test=[TEN])
    assert ("test-0", "train-1", "near", 0.8889) in without


def test_among_equals_a_partner_with_another_label_is_named():
    made = splits(train=[("a b", 0), ("a b", 1)], test=[("a b", 0), ("a b", 1)])
    rows = duplicates.find_duplicates(made, None)
    named = {(row["example"], row["with_split"]): (row["with_example"], row["same_label"]) for row in rows}
    assert named[("test-0", "train")] == ("train-1", False)
    assert named[("test-1", "train")] == ("train-0", False)
    agreeing = duplicates.find_duplicates(splits(train=[("a b", 1)], test=[("a b", 1)]), None)
    assert [row["same_label"] for row in agreeing] == [True, True]


def test_every_training_partner_of_a_test_example_leaks_not_only_the_one_that_the_table_names_for_it():
    train = ["a b", "a b", TEN, OTHER_END, "c d", f"{TEN} onze"]
    made = splits(train=train, validation=["e f"], test=["A b", TEN])
    rows = duplicates.find_duplicates(made, 0.7)
    assert duplicates.leaking_train_examples(rows) == {"train-0", "train-1", "train-2", "train-3", "train-5"}
    assert duplicates.leaked_test_examples(rows) == {"test-0", "test-1"}
    kept = [row for row in made["train"] if row["id"] not in duplicates.leaking_train_examples(rows)]
    assert [row["text"] for row in kept] == ["c d"]
    again = duplicates.find_duplicates({**made, "train": kept}, 0.7)
    assert duplicates.leaked_test_examples(again) == set()


def test_what_stays_inside_a_split_leaks_nothing_and_validation_counts_as_seen():
    rows = duplicates.find_duplicates(splits(train=["a b", "a b"], test=["c d", "c d"]), None)
    assert len(rows) == 2
    assert duplicates.leaking_train_examples(rows) == duplicates.leaked_test_examples(rows) == set()
    rows = duplicates.find_duplicates(splits(train=["a b"], validation=["a b", "c d"], test=["c d"]), None)
    assert duplicates.leaking_train_examples(rows) == {"train-0"}
    assert duplicates.leaked_test_examples(rows) == {"test-0"}


def test_a_drawn_validation_split_keeps_its_ids_of_train():
    made = splits(train=["a b", "c d"], test=["a b", "c d"])
    made["validation"] = [made["train"].pop()]  # train-1
    rows = duplicates.find_duplicates(made, None)
    assert duplicates.leaking_train_examples(rows) == {"train-0"}
    assert duplicates.leaked_test_examples(rows) == {"test-0", "test-1"}


def test_nothing_is_missed_or_listed_wrongly_beside_brute_force():
    draw = random.Random(0)
    words = [f"mot{index}" for index in range(400)]
    texts = []
    for _ in range(60):
        text = draw.choices(words, k=draw.randint(20, 80))
        for changes in (0, 1, 2, 3, 5):
            copy = list(text)
            for _ in range(changes):
                copy[draw.randrange(len(copy))] = draw.choice(words)
            texts.append(" ".join(copy))
    draw.shuffle(texts)
    made = splits(train=texts[:150], validation=texts[150:180], test=texts[180:])
    rows = duplicates.find_duplicates(made, 0.8)
    expected = {}
    examples = [(split, row) for split in made for row in made[split]]
    order = {row["id"]: index for index, (_, row) in enumerate(examples)}
    for (split, one), (other_split, other) in itertools.permutations(examples, 2):
        if split != other_split or order[other["id"]] < order[one["id"]]:
            similarity = jaccard(one["text"], other["text"])
            key = (one["id"], other_split)
            if similarity >= 0.8:
                expected[key] = max(expected.get(key, 0.0), similarity)
    assert len(expected) > 100
    assert {(row["example"], row["with_split"]): row["similarity"] for row in rows} == {
        key: round(value, 4) for key, value in expected.items()
    }


def jaccard(one: str, other: str) -> float:
    sets = []
    for text in (one, other):
        words = text.split()
        sets.append({tuple(words[start : start + 3]) for start in range(len(words) - 2)})
    return len(sets[0] & sets[1]) / len(sets[0] | sets[1])


@pytest.mark.parametrize("threshold", [0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 1.0])
def test_a_pair_at_the_threshold_is_found_with_high_probability(threshold):
    bands, rows = duplicates.choose_bands(threshold)
    assert bands >= 2
    assert bands * rows <= duplicates.PERMUTATIONS
    assert duplicates.found_probability(threshold, bands, rows) >= 0.995


def test_the_probability_is_that_of_one_whole_band_in_agreement():
    assert duplicates.found_probability(0.5, 2, 1) == pytest.approx(0.75)
    assert duplicates.found_probability(0.5, 1, 2) == pytest.approx(0.25)
    assert duplicates.choose_bands(0.01) == (duplicates.PERMUTATIONS, 1)  # the best there is


def test_the_table_is_read_as_it_was_written(tmp_path):
    rows = duplicates.find_duplicates(
        splits(train=[(TEN, 1), ("a b", 0)], test=[(OTHER_END, 0), ("a b", 0)]), 0.5
    )
    assert {row["same_label"] for row in rows} == {True, False}
    duplicates.write_duplicates(tmp_path / "duplicates.csv", rows)
    header, first, *_ = (tmp_path / "duplicates.csv").read_text(encoding="utf-8").splitlines()
    assert header == "split,example,with_split,with_example,kind,similarity,same_label"
    assert first == "train,train-0,test,test-0,near,0.7778,false"
    assert duplicates.read_duplicates(tmp_path / "duplicates.csv") == rows


def change_and_read(folder, old: str, new: str) -> str:
    """What is told of a table in which a text was replaced."""
    path = folder / "duplicates.csv"
    row = dict(zip(duplicates.COLUMNS, ("test", "a", "train", "b", "exact", 1.0, True), strict=True))
    duplicates.write_duplicates(path, [row])
    assert duplicates.read_duplicates(path) == [row]
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    with pytest.raises(SeedbedError) as caught:
        duplicates.read_duplicates(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("with_split", "other", "not a table of duplicates"),
        ("exact,1.0,true\n", "exact", "the file was cut"),
        ("exact,1.0,true\n", "exact\n", "a row of 5 cells, not 7"),
        ("1.0,true", "much,true", "similarity 'much'"),
        ("1.0,true", "nan,true", "similarity 'nan'"),
        ("1.0,true", "1.0,tru", "same_label 'tru'"),
    ],
)
def test_a_table_that_was_cut_or_changed_is_refused(tmp_path, old, new, told):
    assert told in change_and_read(tmp_path, old, new)


def test_an_empty_table_file_is_refused(tmp_path):
    (tmp_path / "duplicates.csv").touch()
    with pytest.raises(SeedbedError, match="an empty file"):
        duplicates.read_duplicates(tmp_path / "duplicates.csv")


def test_importing_the_module_loads_nothing_heavy():
    code = (
        "import sys, seedbed.data.duplicates; print([m for m in ('numpy', 'datasketch') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=SCRIPTS, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
