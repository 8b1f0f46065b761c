"""Pairs of texts: read from every format, drawn, compared and audited as pairs."""

import io
import json

import pytest
from builders_datasets import define_dataset, write_source
from scipy.sparse import hstack
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_json, read_jsonl, write_json
from seedbed.data import baselines
from seedbed.data.audit import audit_dataset, read_dataset
from seedbed.data.duplicates import find_duplicates, near_groups
from seedbed.data.preparation import prepare as prepare_dataset
from seedbed.data.splitting import draw_split, sample

SPLITS = ("train", "validation", "test")
COLUMNS = {"text": ["premise"], "text_pair": ["hypothesis"], "label": "label"}
PAIRS = [("Il pleut.", "Le sol est mouillé.", 1), ("Il pleut.", "Il fait beau.", 0), ("Oui,\tnon", "Non", 1)]


def as_rows(pairs):
    return [dict(zip(("premise", "hypothesis", "label"), pair, strict=True)) for pair in pairs]


def as_file(form, pairs):
    rows = as_rows(pairs)
    if form == "jsonl":
        return "".join(f"{json.dumps(row)}\n" for row in rows)
    if form == "nested":
        return json.dumps({"items": [{"pair": row, "label": row["label"]} for row in rows]})
    if form == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        stream = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(rows), stream)
        return stream.getvalue()
    if form == "excel":
        import openpyxl

        book, stream = openpyxl.Workbook(), io.BytesIO()
        book.active.append(list(rows[0]))
        for row in rows:
            book.active.append(list(row.values()))
        book.save(stream)
        return stream.getvalue()
    mark = {"csv": ",", "tsv": "\t"}[form]
    lines = [list(rows[0]), *(row.values() for row in rows)]
    cell = '"{}"'.format
    return "".join(f"{mark.join(cell(value) for value in line)}\n" for line in lines)


def prepare(folder, form, train, **changes):
    """Prepare a dataset of pairs, with the same validation and test splits."""
    name = {"nested": "json"}.get(form, form)
    contents = {f"{split}.{name}": as_file(form, train if split == "train" else PAIRS) for split in SPLITS}
    more = {"columns": COLUMNS} | changes
    manifest = write_source(folder / "source", contents)
    prepare_dataset("nli", define_dataset(name, f".{name}", **more), manifest, folder / "out", {})
    return folder / "out"


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "nested", "parquet", "excel"])
def test_every_format_gives_the_same_pairs(tmp_path, form):
    nested = {"text": ["pair.premise"], "text_pair": ["pair.hypothesis"], "label": "label"}
    changes = {"columns": nested, "records": "items"} if form == "nested" else {}
    out = prepare(tmp_path, form, PAIRS, **changes)
    expected = [
        {"id": f"train-{index}", "text": one.replace("\t", " "), "text_pair": other, "label": label}
        for index, (one, other, label) in enumerate(PAIRS)
    ]
    assert read_jsonl(out / "train.jsonl") == expected
    assert list(read_jsonl(out / "train.jsonl")[0]) == ["id", "text", "text_pair", "label"]
    assert (out / "train.text").read_text().splitlines()[0] == "Il pleut.\tLe sol est mouillé."


@pytest.mark.parametrize(
    ("task", "label", "others", "stored"),
    [
        ("regression", lambda index: index / 4, {}, lambda index: index / 4),
        (
            "multilabel",
            lambda index: ["a", "b"][: index + 1],
            {"labels": ["a", "b"], "label_names": ["a", "b"]},
            lambda index: [1, int(index > 0)],
        ),
    ],
)
def test_numbers_and_sets_of_labels_stand_beside_pairs(tmp_path, task, label, others, stored):
    rows = [{**row, "label": label(index)} for index, row in enumerate(as_rows(PAIRS))]
    contents = {f"{split}.jsonl": "".join(f"{json.dumps(row)}\n" for row in rows) for split in SPLITS}
    manifest = write_source(tmp_path / "source", contents)
    definition = define_dataset("jsonl", ".jsonl", task=task, columns=COLUMNS, **others)
    prepare_dataset("nli", definition, manifest, tmp_path / "out", {})
    found = read_jsonl(tmp_path / "out" / "test.jsonl")
    assert [row["text_pair"] for row in found] == [other for _, other, _ in PAIRS]
    assert [row["label"] for row in found] == [stored(index) for index in range(len(PAIRS))]
    assert (tmp_path / "out" / "test.text").read_text().splitlines()[0] == "Il pleut.\tLe sol est mouillé."


def test_a_saved_dataset_has_pairs(tmp_path):
    import datasets

    splits = {split: datasets.Dataset.from_list(as_rows(PAIRS)) for split in SPLITS}
    datasets.DatasetDict(splits).save_to_disk(tmp_path / "source" / "files")
    manifest = write_source(tmp_path / "source", {})
    prepare_dataset("nli", define_dataset("huggingface", columns=COLUMNS), manifest, tmp_path / "out", {})
    assert [row["text_pair"] for row in read_jsonl(tmp_path / "out" / "test.jsonl")] == [
        other for _, other, _ in PAIRS
    ]


def test_two_columns_may_make_a_second_text(tmp_path):
    columns = {"text": ["premise"], "text_pair": ["hypothesis", "premise2"], "label": "label"}
    rows = [{**row, "premise2": "encore"} for row in as_rows(PAIRS)]
    contents = {f"{split}.jsonl": "".join(f"{json.dumps(row)}\n" for row in rows) for split in SPLITS}
    manifest = write_source(tmp_path / "source", contents)
    prepare_dataset("nli", define_dataset("jsonl", ".jsonl", columns=columns), manifest, tmp_path / "out", {})
    assert read_jsonl(tmp_path / "out" / "train.jsonl")[1]["text_pair"] == "Il fait beau. encore"


# --- faults -------------------------------------------------------------------------------------------------


def refused(folder, form, train, **changes):
    with pytest.raises(SeedbedError) as error:
        prepare(folder, form, train, **changes)
    assert not (folder / "out").exists()
    return error.value


HALF = [(one, other if index % 2 else None, label) for index, (one, other, label) in enumerate(PAIRS * 2)]
BLANK = [(one, other or " ", label) for one, other, label in HALF]


@pytest.mark.parametrize(
    ("form", "train", "what", "found", "line"),
    [
        ("jsonl", HALF, "a second text is null (and 2 more like it)", "null in 3 of 6 examples", "line 1"),
        ("parquet", HALF, "a second text is null (and 2 more like it)", "null in 3 of 6 examples", "row 1"),
        ("excel", HALF, "a second text is null (and 2 more like it)", "null in 3 of 6 examples", "row 2"),
        ("csv", BLANK, "a second text is empty (and 2 more like it)", "spaces in 3 of 6 examples", "line 2"),
    ],
)
def test_pairs_without_a_second_text_are_counted(tmp_path, form, train, what, found, line):
    error = refused(tmp_path, form, train)
    assert error.what == what
    assert found in str(error.found)
    assert f"train.{form}, {line}" in error.where
    assert "fill in the text" in error.hint


def test_pairs_without_a_text_may_be_dropped_and_are_counted(tmp_path):
    train = [*HALF, ("\x00", "Non", 0), ("Oui", "Non", "?")]
    out = prepare(tmp_path, "jsonl", train, empty_texts="drop", other_labels="drop")
    assert [row["id"] for row in read_jsonl(out / "train.jsonl")] == ["train-1", "train-3", "train-5"]
    recorded = read_json(out / "splits.json")
    assert recorded["empty_texts"] == {split: {"number": 4 * (split == "train")} for split in SPLITS}
    assert recorded["read"]["train"] == 3
    rows = {row["check"]: row for row in audit_dataset(read_dataset(out, {}, {})) if row["split"] == "train"}
    dropped = rows["dropped: another label"], rows["dropped: no text"]
    assert [(row["count"], row["share"]) for row in dropped] == [(1, 0.125), (4, round(4 / 7, 6))]


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_a_missing_second_column_is_named(tmp_path, form):
    error = refused(tmp_path, form, PAIRS, columns={**COLUMNS, "text_pair": ["hypotheses"]})
    assert "'hypotheses'" in error.what
    assert "did you mean 'hypothesis'" in error.hint
    assert "text_pair: hypothesis" in error.hint


# --- what counts as the same pair ---------------------------------------------------------------------------


def examples(*pairs, label=0):
    return [
        {"id": f"e-{index}", "text": one, "text_pair": other, "label": label}
        for index, (one, other) in enumerate(pairs)
    ]


LONG = "un deux trois quatre cinq six sept huit neuf dix onze douze"


def test_pairs_are_identical_if_both_texts_are():
    rows = examples(("a b", "c"), ("A  B", "c"), ("a", "b c"), ("a b", "d"), ("c", "a b"))
    found = find_duplicates({"train": rows}, None)
    assert [(row["example"], row["with_example"], row["kind"]) for row in found] == [("e-1", "e-0", "exact")]


def test_near_duplicates_are_found_on_both_texts():
    """The last pair shares its first text, which is half of its words."""
    rows = examples(
        (LONG, f"{LONG} fin"), (LONG, f"{LONG} la fin"), (LONG, "rien de tout cela ici, mais autre chose")
    )
    found = find_duplicates({"train": rows}, 0.7)
    assert [(row["example"], row["with_example"], row["kind"]) for row in found] == [("e-1", "e-0", "near")]
    groups = near_groups(rows, 0.7)
    assert groups[0] == groups[1] != groups[2]


def test_the_border_of_a_pair_is_a_word():
    """The same words with another border differ in the 3-grams around it."""
    rows = examples(("un deux trois", "quatre cinq six"), ("un deux trois quatre", "cinq six"))
    (found,) = find_duplicates({"train": rows}, 0.1)
    # un deux trois; cinq six have no 3-gram of their own beyond it: 1 shared of 5 + 5 - 1
    assert found["similarity"] == pytest.approx(1 / 9, abs=1e-4)


def test_near_duplicate_pairs_stay_together_in_a_drawn_split():
    rows = []
    for number in range(40):
        text = " ".join(f"{word}{number}" for word in LONG.split())
        rows += examples((text, f"{text} fin"), (text, f"{text} la fin"), label=number % 2)
    rows = [{**row, "id": f"e-{index}"} for index, row in enumerate(rows)]
    asked = {"size": 0.25, "seed": 0, "together": "near"}
    _, drawn = draw_split("nli", "test", rows, ["no", "yes"], asked, threshold=0.7)
    numbers = [int(row["id"].partition("-")[2]) // 2 for row in drawn]
    assert len(drawn) == 20
    assert all(numbers.count(number) == 2 for number in numbers)


def test_a_sample_depends_on_both_texts():
    first = examples(*((f"texte {number}", "même") for number in range(30)))
    other = [{**row, "text_pair": "autre"} for row in first]
    kept = [[row["id"] for row in sample(rows, 10, 0)] for rows in (first, first, other)]
    assert kept[0] == kept[1] != kept[2]


# --- audit and baseline -------------------------------------------------------------------------------------


def test_the_audit_reads_both_texts(tmp_path):
    odd = [*PAIRS, ("Un texte", "avec <b>balises</b>", 0), ("Bon", "livre", 1)]
    out = prepare(tmp_path, "jsonl", odd)
    for split in SPLITS:
        rows = [
            {"id": row["id"], "label": row["label"], "ids": [0, 9, 2, 2, 3, 9, 2], "length": 11}
            | {"pair": [1, 3, 2, 4, 1]}
            for row in read_jsonl(out / f"{split}.jsonl")
        ]
        path = out / "tiny" / "tokens" / f"{split}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    write_json(tmp_path / "model.json", {"max_positions": 7})
    rows = audit_dataset(read_dataset(out, {"tiny": tmp_path / "model.json"}, {}))
    found = {(row["split"], row["check"]): row for row in rows}
    assert found["train", "HTML"]["examples"] == "train-3"
    assert found["train", "under 3 words"]["examples"] == "train-4"
    assert found["train", "empty"]["count"] == 0
    assert found["test", "also in train: exact"]["count"] == 3
    assert found["train", "median length in tokens"]["count"] == 11
    assert found["train", "truncated to 7 tokens (the model)"]["count"] == 5
    unknown = found["train", "unknown tokens"]  # one of three pieces that stay
    assert (unknown["count"], unknown["share"]) == (5, pytest.approx(1 / 3, abs=1e-6))


def test_the_bag_of_words_has_features_of_each_text():
    """As one text, both classes would have the same words."""
    rows = {
        split: [
            {"id": f"{split}-{index}", "label": index % 2}
            | {"text": f"chat {words[0]}", "text_pair": f"chien {words[1]}"}
            for index in range(30)
            for words in [(f"oui {index}", f"non {index}") if index % 2 else (f"non {index}", f"oui {index}")]
        ]
        for split in SPLITS
    }
    found = {(row["split"], row["metric"]): row["value"] for row in baselines.bag_of_words(rows)}
    assert found["test", "accuracy"] == 1
    blocks = []
    for part in ("text", "text_pair"):
        vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
        vectorizer.fit([row[part] for row in rows["train"]])
        blocks.append({split: vectorizer.transform([row[part] for row in rows[split]]) for split in SPLITS})
    inputs = {split: hstack([block[split] for block in blocks], format="csr") for split in SPLITS}
    labels = {split: [row["label"] for row in rows[split]] for split in SPLITS}
    expected = LogisticRegression(C=found["train", "C"], max_iter=2000).fit(inputs["train"], labels["train"])
    assert found["validation", "accuracy"] == expected.score(inputs["validation"], labels["validation"])
