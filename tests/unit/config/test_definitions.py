"""Datasets and models: their formats, labels and files."""

import pytest
from builders_config import demo_config, refused

from seedbed.config.plan import Plan
from seedbed.config.resolve import resolve_config
from seedbed.core.errors import SeedbedError


@pytest.fixture
def raw(tmp_path):
    return demo_config(tmp_path)


def test_label_names_must_match_labels(raw):
    raw["datasets"]["reviews_fr"]["label_names"] = ["bad", "good", "so-so"]
    assert "3 names for 2 labels" in refused(raw)


def test_a_model_has_the_files_of_its_format(raw):
    raw["models"] = {
        "a": {"source": "cls_books"},
        "b": {"source": "cls_books", "checkpoint": "deep/er/model.pt", "dictionary": "dict.txt"},
        "c": {"source": "cls_books", "format": "huggingface", "checkpoint": "hf/pytorch_model.bin"},
    }
    raw["grid"]["models"] = ["a"]
    models = resolve_config(raw)["models"]
    files = ("checkpoint", "dictionary", "config", "sentencepiece")
    assert [models["a"][key] for key in files] == ["model.pt", "dict.txt", None, "sentencepiece.bpe.model"]
    assert [models["b"][key] for key in files] == [
        "deep/er/model.pt", "dict.txt", None, "deep/er/sentencepiece.bpe.model",
    ]  # fmt: skip
    assert [models["c"][key] for key in files] == [
        "hf/pytorch_model.bin", None, "hf/config.json", "hf/sentencepiece.bpe.model",
    ]  # fmt: skip


@pytest.mark.parametrize(("kind", "key"), [("fairseq", "config"), ("huggingface", "dictionary")])
def test_a_file_that_the_format_has_not(raw, kind, key):
    name = raw["grid"]["models"][0]
    raw["models"][name] = {"source": "cls_books", "format": kind, key: "x"}
    with pytest.raises(SeedbedError) as error:
        resolve_config(raw)
    assert error.value.where == f"config, models.{name}.{key}"
    assert error.value.found == "x"


@pytest.mark.parametrize("key", ["labels", "label_names"])
@pytest.mark.parametrize("name", ["", "none"])
def test_a_class_may_not_be_called_like_a_missing_prediction(raw, key, name):
    dataset = raw["datasets"]["reviews_fr"]
    dataset.update({"labels": ["0", "1"], "label_names": None} | {key: [name, "good"]})
    message = refused(raw)
    assert f"config, datasets.reviews_fr.{key}" in message
    assert f"found: {name!r}" in message


def test_a_label_called_none_may_have_another_name(raw):
    raw["datasets"]["reviews_fr"] |= {"labels": ["none", "1"], "label_names": ["bad", "good"]}
    assert resolve_config(raw)["datasets"]["reviews_fr"]["labels"] == ["none", "1"]


def test_what_a_dataset_does_not_use_changes_nothing(raw):
    before = Plan(raw).shared.stamp("datasets", "reviews_fr")
    dataset = raw["datasets"]["reviews_fr"]
    dataset |= {"validation_split": {"size": 0.2, "seed": 3}, "neutral_ratings": "drop"}
    assert Plan(raw).shared.stamp("datasets", "reviews_fr") == before
    dataset["files"] = {"train": "train.csv", "test": "test.csv"}
    drawn = Plan(raw).shared.stamp("datasets", "reviews_fr")
    dataset["validation_split"]["seed"] = 4
    assert Plan(raw).shared.stamp("datasets", "reviews_fr") not in (before, drawn)


@pytest.mark.parametrize(
    "columns", [["sentence1", "sentence2"], ["premise", "hypothesis"], ["s1", "s2"], ["text_a", "text_b"],
                ["Question1", "Question2"], ["topic", "sentenceA", "sentenceB"]]
)  # fmt: skip
def test_pairs_of_texts_are_refused(raw, columns):
    raw["datasets"]["reviews_fr"]["columns"] = {"text": columns}
    message = refused(raw)
    assert "seem to be pairs, but Seedbed only takes single texts" in message
    assert "datasets.reviews_fr.columns.text" in message


@pytest.mark.parametrize("columns", [["title", "message"], ["summary", "text"], ["text"], ["data", "extra"]])
def test_texts_of_several_columns_that_are_no_pairs_pass(raw, columns):
    raw["datasets"]["reviews_fr"]["columns"] = {"text": columns}
    assert resolve_config(raw)["datasets"]["reviews_fr"]["columns"]["text"] == columns


def test_a_delimiter_is_for_csv_and_a_comma_changes_no_definition(raw):
    dataset = raw["datasets"]["reviews_fr"]
    del dataset["delimiter"]
    before = Plan(raw).shared.stamp("datasets", "reviews_fr")
    for delimiter in (None, ","):
        dataset["delimiter"] = delimiter
        assert Plan(raw).shared.stamp("datasets", "reviews_fr") == before
    dataset["delimiter"] = ";"
    assert resolve_config(raw)["datasets"]["reviews_fr"]["delimiter"] == ";"
    dataset["format"] = "tsv"
    assert "the format tsv takes no delimiter" in refused(raw)
    dataset["delimiter"] = ";;"
    assert "datasets.reviews_fr.delimiter" in refused(raw)


@pytest.mark.parametrize("key", ["labels", "label_names"])
@pytest.mark.parametrize("label", ["a\nb", "a\x1b[31m", "a\u202eb", "a\u2028b", "a\tb", "\x9b"])
def test_labels_are_one_line_without_control_characters(raw, key, label):
    raw["datasets"]["reviews_fr"][key] = [label, "1"]
    message = refused(raw)
    assert f"datasets.reviews_fr.{key}" in message
    assert ascii(label)[1:-1] in message
