"""Reading datasets that the library `datasets` saved to disk."""

import json
import logging

import datasets as library
import pyarrow as pa
import pytest
from builders_datasets import SPLITS, define_dataset, write_manifest

from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_json, read_jsonl
from seedbed.data.preparation import prepare as prepare_dataset

GOOD = {"text": ["bon livre", "nul !", "moyen"], "label": [1, 0, 1]}
EXPECTED = [
    {"id": "train-0", "text": "bon livre", "label": 1},
    {"id": "train-1", "text": "nul !", "label": 0},
    {"id": "train-2", "text": "moyen", "label": 1},
]


@pytest.fixture(autouse=True)
def quiet_library():
    library.disable_progress_bars()


def save(tmp_path, train, inside=""):
    """Save a DatasetDict with this training split and good ones beside it; returns its folder."""
    good = library.Dataset.from_dict(GOOD)
    folder = tmp_path / "source/files" / inside
    library.DatasetDict({"train": train, "validation": good, "test": good}).save_to_disk(folder)
    return folder


def read(tmp_path, **changes):
    manifest = write_manifest(tmp_path / "source")
    prepare_dataset("d", define_dataset("huggingface", **changes), manifest, tmp_path / "out", {})
    return read_jsonl(tmp_path / "out/train.jsonl")


def error(tmp_path, **changes):
    with pytest.raises(SeedbedError) as caught:
        read(tmp_path, **changes)
    assert not (tmp_path / "out").exists()
    return str(caught.value)


@pytest.mark.parametrize("inside", ["", "data/reviews"])
def test_dictionary_of_splits(tmp_path, inside):
    save(tmp_path, library.Dataset.from_dict(GOOD), inside)
    prefix = f"{inside}/" if inside else ""
    assert read(tmp_path, files={split: f"{prefix}{split}" for split in SPLITS}) == EXPECTED


def test_one_dataset_a_folder(tmp_path):
    for name in ("one", "two", "three"):
        library.Dataset.from_dict(GOOD).save_to_disk(tmp_path / "source/files" / name)
    assert read(tmp_path, files={"train": "one", "validation": "two", "test": "three"}) == EXPECTED


def class_label(names, values):
    features = library.Features({"text": library.Value("string"), "label": library.ClassLabel(names=names)})
    return library.Dataset.from_dict({"text": GOOD["text"], "label": values}, features=features)


def test_names_of_a_class_label(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    data = class_label(["pos", "neg", "unused"], [0, 1, 0])
    library.DatasetDict(dict.fromkeys(SPLITS, data)).save_to_disk(tmp_path / "source/files")
    assert read(tmp_path, labels=["neg", "pos"]) == EXPECTED
    assert "read the labels as names of the ClassLabel (pos, neg, unused)" in caplog.text


def test_integers_of_a_class_label(tmp_path):
    save(tmp_path, class_label(["neg", "pos"], [1, 0, 1]))
    assert read(tmp_path) == EXPECTED


def test_unlabelled_rows(tmp_path):
    save(tmp_path, class_label(["0", "1"], [1, -1, None]))
    text = error(tmp_path)
    assert "a label is missing" in text
    assert "train, row 3 (from https://host/data.zip)" in text
    save(tmp_path / "again", class_label(["0", "1"], [1, -1, 0]))
    text = error(tmp_path / "again")
    assert "a label is not among the declared ones" in text
    assert "train, row 2 (from https://host/data.zip)" in text
    assert "found: '-1'" in text


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        (["yes", "no", "yes"], ["no", "yes"]),
        ([True, False, True], ["false", "true"]),
        ([1.0, 0.0, 1.0], ["0", "1"]),
        ([2.5, 0.5, 2.5], ["0.5", "2.5"]),
    ],
)
def test_labels_of_other_types(tmp_path, values, labels):
    data = library.Dataset.from_dict({"text": GOOD["text"], "label": values})
    library.DatasetDict(dict.fromkeys(SPLITS, data)).save_to_disk(tmp_path / "source/files")
    assert read(tmp_path, labels=labels) == EXPECTED


def test_text_of_several_columns(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    data = {**GOOD, "title": ["Titre", None, " "], "more": [[1], [2], [3]]}
    data = library.Dataset.from_dict(data)
    library.DatasetDict(dict.fromkeys(SPLITS, data)).save_to_disk(tmp_path / "source/files")
    rows = read(tmp_path, columns={"text": ["title", "text"], "label": "label"})
    assert [row["text"] for row in rows] == ["Titre bon livre", "nul !", "moyen"]
    assert "'title' is empty in 2 of 3 examples" in caplog.text


def test_null_text(tmp_path):
    save(tmp_path, library.Dataset.from_dict({**GOOD, "text": ["a", None, "c"]}))
    text = error(tmp_path)
    assert "a text is null" in text
    assert "train, row 2 (from" in text


def test_selected_rows_and_stored_formats(tmp_path):
    data = library.Dataset.from_dict({"text": ["x", *GOOD["text"]], "label": [False, True, False, True]})
    data = data.select([1, 2, 3]).with_format("numpy")
    library.DatasetDict(dict.fromkeys(SPLITS, data)).save_to_disk(tmp_path / "source/files")
    assert read(tmp_path, labels=["false", "true"]) == EXPECTED


def test_missing_split_names_the_nearest(tmp_path):
    save(tmp_path, library.Dataset.from_dict(GOOD), "reviews")
    text = error(tmp_path, files={"train": "train", "validation": "validation", "test": "test"})
    assert "the source has no file 'train/state.json'" in text
    assert "did you mean 'reviews/train/state.json'?" in text


def test_missing_column(tmp_path):
    save(tmp_path, library.Dataset.from_dict({"texte": GOOD["text"], "label": GOOD["label"]}))
    text = error(tmp_path)
    assert "the dataset has no column 'text'" in text
    assert "columns 'texte', 'label'" in text
    assert "did you mean 'texte'? write columns: {text: texte} in the block of the dataset" in text


@pytest.mark.parametrize(
    ("column", "values", "told"),
    [
        ("text", [1, 2, 3], "column 'text' is not a column of text"),
        ("text", [["a"], ["b"], ["c"]], "column 'text' is not a column of text"),
        ("label", [[1], [0], [1]], "column 'label' is not a column of labels"),
        ("label", [b"a", b"b", b"a"], "column 'label' is not a column of labels"),
    ],
)
def test_columns_of_another_type(tmp_path, column, values, told):
    save(tmp_path, library.Dataset.from_dict({**GOOD, column: values}))
    assert told in error(tmp_path)


def test_images_are_not_decoded(tmp_path):
    features = library.Features({"text": library.Image(), "label": library.Value("int64")})
    data = library.Dataset.from_dict(
        {"text": [{"path": None, "bytes": b"no image"}], "label": [1]}, features=features
    )
    save(tmp_path, data)
    assert "column 'text' is not a column of text" in error(tmp_path)


def test_data_files_outside_the_folder_are_refused(tmp_path):
    folder = save(tmp_path, library.Dataset.from_dict(GOOD))
    state = json.loads((folder / "train/state.json").read_text())
    state["_data_files"] = [{"filename": "../test/data-00000-of-00001.arrow"}]
    (folder / "train/state.json").write_text(json.dumps(state))
    assert "names a data file that is not in its folder" in error(tmp_path)


def damage_arrow(folder):
    path = next(folder.glob("*.arrow"))
    path.write_bytes(path.read_bytes()[:200])


def damage_state(folder):
    (folder / "state.json").write_text('{"_data_files": [')


@pytest.mark.parametrize("damage", [damage_arrow, damage_state])
def test_damaged_folder(tmp_path, damage):
    damage(save(tmp_path, library.Dataset.from_dict(GOOD)) / "train")
    text = error(tmp_path)
    assert "cannot be read as a dataset on disk" in text
    assert "source/files/train (from https://host/data.zip)" in text


@pytest.mark.parametrize("kind", ["tensorflow", "jax", "custom"])
def test_a_format_of_the_state_is_put_aside(tmp_path, kind):
    folder = save(tmp_path, library.Dataset.from_dict(GOOD))
    for path in folder.rglob("state.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"_format_type": kind}))
    assert read(tmp_path) == EXPECTED


def test_a_split_without_data_files(tmp_path):
    folder = save(tmp_path, library.Dataset.from_dict(GOOD))
    path = folder / "train" / "state.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"_data_files": []}))
    assert "has no data files" in error(tmp_path)


def write_stream(path, **columns):
    """An Arrow file as the library writes it."""
    table = pa.table(columns)
    with pa.OSFile(str(path), "wb") as stream, pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)


def change_state(folder, **keys):
    path = folder / "train/state.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | keys))


@pytest.mark.parametrize("key", ["_indices_data_files", "_indices_files"])
def test_rows_that_a_file_of_indices_chooses(tmp_path, caplog, key):
    caplog.set_level(logging.INFO)
    rows = {"text": ["x", "moyen", "y", "bon livre", "nul !"], "label": [0, 1, 0, 1, 0]}
    folder = save(tmp_path, library.Dataset.from_dict(rows))
    write_stream(folder / "train/indices.arrow", indices=pa.array([3, 4, 1], pa.uint64()))
    change_state(folder, **{key: [{"filename": "indices.arrow"}]})
    assert read(tmp_path) == EXPECTED
    assert "its file of indices selects 3 of 5 rows" in caplog.text


def test_a_part_of_a_data_file(tmp_path):
    rows = {"text": ["x", *GOOD["text"], "y"], "label": [0, *GOOD["label"], 0]}
    folder = save(tmp_path, library.Dataset.from_dict(rows))
    change_state(folder, _data_files=[{"filename": "data-00000-of-00001.arrow", "skip": 1, "take": 3}])
    assert read(tmp_path) == EXPECTED


@pytest.mark.parametrize("indices", [[3], [-1], [None]])
def test_indices_beyond_the_rows(tmp_path, indices):
    folder = save(tmp_path, library.Dataset.from_dict(GOOD))
    write_stream(folder / "train/indices.arrow", indices=pa.array(indices, pa.int64()))
    change_state(folder, _indices_data_files=[{"filename": "indices.arrow"}])
    assert f"found: row {indices[0]} of 3" in error(tmp_path)


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"_indices_data_files": [{"filename": "none.arrow"}]}, "a data file that is not in its folder"),
        ({"_indices_data_files": [{"filename": "data-00000-of-00001.arrow"}]}, "doesn't exist"),
        ({"_data_files": [{"filename": "data-00000-of-00001.arrow", "take": 4}]}, "of a file of 3 rows"),
        ({"_data_files": ["data-00000-of-00001.arrow"]}, "a data file that is not in its folder"),
        ({"_rows": {"kept": [1]}}, "found: _rows: "),
        ({"_inplace_history": [{"transforms": [["remove", [], {}]]}]}, "found: _inplace_history: "),
    ],
)
def test_a_state_that_cannot_be_followed_is_refused(tmp_path, keys, told):
    change_state(save(tmp_path, library.Dataset.from_dict(GOOD)), **keys)
    assert told in error(tmp_path)


def test_a_list_of_data_files_that_lacks_one(tmp_path):
    folder = tmp_path / "source/files"
    for split in SPLITS:
        library.Dataset.from_dict(GOOD).save_to_disk(folder / split, num_shards=3)
    assert read(tmp_path) == EXPECTED
    (tmp_path / "out").rename(tmp_path / "before")
    change_state(folder, _data_files=[{"filename": f"data-0000{n}-of-00003.arrow"} for n in (0, 2)])
    assert "found: 2 of 3 data files, not number 1" in error(tmp_path)


def test_code_in_the_folder_is_not_run(tmp_path):
    folder = save(tmp_path, library.Dataset.from_dict(GOOD))
    for name in ("train.py", "files.py", "dataset.py"):
        (folder / "train" / name).write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    assert read(tmp_path) == EXPECTED
    assert not (tmp_path / "ran").exists()


def test_a_folder_with_a_file_that_changed_since_it_was_fetched_is_refused(tmp_path):
    folder = save(tmp_path, library.Dataset.from_dict(GOOD))
    manifest = write_manifest(tmp_path / "source")
    (path,) = folder.glob("validation/*.arrow")
    path.write_bytes(path.read_bytes().replace(b"moyen", b"mozen"))
    with pytest.raises(SeedbedError, match="has changed since it was fetched") as caught:
        prepare_dataset("d", define_dataset("huggingface"), manifest, tmp_path / "out", {})
    assert caught.value.where == str(path)


@pytest.mark.parametrize(("authors", "expected"), [(["a", "b", "a"], "a"), ([7, 8, 7], "7")])
def test_a_column_of_clusters(tmp_path, authors, expected):
    good = library.Dataset.from_dict(GOOD | {"author": authors})
    folder = tmp_path / "source/files"
    library.DatasetDict(dict.fromkeys(SPLITS, good)).save_to_disk(folder)
    columns = {"text": ["text"], "label": "label", "cluster": "author"}
    assert read(tmp_path, columns=columns) == EXPECTED
    found = read_json(tmp_path / "out/splits.json")["clusters"]["train"]
    assert found[expected] == ["train-0", "train-2"]


@pytest.mark.parametrize(
    ("authors", "told"),
    [(["a", None, "b"], "a cluster is empty"), ([[1], [2], [3]], "is not a column of clusters")],
)
def test_what_is_no_column_of_clusters(tmp_path, authors, told):
    good = library.Dataset.from_dict(GOOD | {"author": authors})
    library.DatasetDict(dict.fromkeys(SPLITS, good)).save_to_disk(tmp_path / "source/files")
    assert told in error(tmp_path, columns={"text": ["text"], "label": "label", "cluster": "author"})


def test_a_missing_column_of_clusters(tmp_path):
    save(tmp_path, library.Dataset.from_dict(GOOD))
    text = error(tmp_path, columns={"text": ["text"], "label": "label", "cluster": "author"})
    assert "the dataset has no column 'author'" in text
    assert "columns.cluster" in text
