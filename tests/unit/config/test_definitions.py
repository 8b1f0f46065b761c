"""Datasets and models: their formats, labels and files."""

import copy
from pathlib import Path

import pytest
from builders_config import CAUSAL, demo_config, questions_config, refusal, refused

from seedbed.config.plan import Plan
from seedbed.config.resolve import resolve_config
from seedbed.core.errors import SeedbedError


@pytest.fixture
def raw(tmp_path):
    return demo_config(tmp_path)


@pytest.fixture
def questions(tmp_path):
    return questions_config(tmp_path)


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


def test_a_model_has_a_sentencepiece_model_or_gpt2s_bpe(raw):
    raw["models"] = {
        "a": {"source": "cls_books", "checkpoint": "in/model.pt", "encoder": "gpt2/encoder.json"},
        "b": {"source": "cls_books", "bpe": "merges.txt"},
        "c": {"source": "cls_books"},
    }
    raw["grid"]["models"] = ["a"]
    models = resolve_config(copy.deepcopy(raw))["models"]
    assert [models["a"][key] for key in ("encoder", "bpe")] == ["gpt2/encoder.json", "in/vocab.bpe"]
    assert [models["b"][key] for key in ("encoder", "bpe")] == ["encoder.json", "merges.txt"]
    assert "sentencepiece" not in models["a"]
    assert not {"encoder", "bpe"} & set(models["c"])  # whose fingerprint stays what it was
    raw["models"]["a"]["sentencepiece"] = "spm.model"
    error = refusal(raw)
    assert error.where == "config, models.a"
    assert error.found == "sentencepiece: spm.model, encoder: gpt2/encoder.json"
    assert error.hint == "give either sentencepiece or encoder and bpe"


@pytest.mark.parametrize(
    ("kind", "key"), [("fairseq", "config"), ("huggingface", "dictionary"), ("huggingface", "bpe")]
)
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
def test_both_texts_of_a_pair_under_one_key_are_refused(raw, columns):
    raw["datasets"]["reviews_fr"]["columns"] = {"text": columns}
    error = refusal(raw)
    assert "seem to be pairs, whose border would be lost" in str(error)
    assert error.where == "config, datasets.reviews_fr.columns.text"
    one, other = columns[-2:]
    assert f"columns: {{text: {one}, text_pair: {other}}}" in error.hint


def with_pairs(raw, text="premise", text_pair="hypothesis", **more):
    """A dataset of pairs; `more` are further keys."""
    raw["datasets"]["reviews_fr"] |= {"columns": {"text": text, "text_pair": text_pair}, **more}
    return raw


def test_a_second_text_stays_in_the_definition_and_null_leaves_it_as_it_was(raw):
    before = Plan(copy.deepcopy(raw)).shared.stamp("datasets", "reviews_fr")
    raw["datasets"]["reviews_fr"].setdefault("columns", {})["text_pair"] = None
    assert Plan(copy.deepcopy(raw)).shared.stamp("datasets", "reviews_fr") == before
    columns = resolve_config(with_pairs(raw, text_pair=["title", "hypothesis"]))["datasets"]["reviews_fr"][
        "columns"
    ]
    assert columns == {"text": ["premise"], "text_pair": ["title", "hypothesis"], "label": "label"}


@pytest.mark.parametrize("form", ["lab", "webis_cls", "folders"])
def test_a_format_without_pairs_is_named(raw, form):
    error = refusal(with_pairs(raw, format=form))
    assert f"the format {form} has no column of second texts" in str(error)
    assert "write" in error.hint
    assert error.where == "config, datasets.reviews_fr.columns.text_pair"


def test_a_column_in_both_texts_is_refused(raw):
    error = refusal(with_pairs(raw, text=["title", "premise"], text_pair="premise"))
    assert "a column of 'reviews_fr' is in both texts of its pairs" in str(error)
    assert error.found == "premise"


def test_a_recipe_leaves_a_token_of_each_text(raw):
    raw["recipes"]["demo"]["max_positions"] = 5
    resolve_config(copy.deepcopy(raw))
    error = refusal(with_pairs(raw))
    assert error.where == "config, recipes.demo.max_positions"
    assert "give at least 6" in error.hint


def test_questions_have_no_pairs(questions):
    questions["datasets"]["asked"]["columns"] = {"text_pair": "context"}
    message = refused(questions)
    assert "unknown configuration key 'text_pair'" in message
    assert "valid keys: question, answer, context" in message


def test_datasets_of_texts_and_of_pairs_have_rules_of_their_own(raw):
    raw["datasets"]["singles"] = copy.deepcopy(raw["datasets"]["reviews_fr"])
    plan = Plan(with_pairs(raw))
    assert [plan.texts_of(number, "classes") for number in (1, 2)] == ["singles", "reviews_fr"]


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


# --- how files are read ---


@pytest.mark.parametrize(
    ("form", "key", "value"),
    [
        ("tsv", "encoding", "utf-8"),
        ("json", "encoding", "UTF-8"),
        ("parquet", "encoding", None),
        ("jsonl", "quoting", "standard"),
        ("excel", "records", None),
        ("csv", "other_labels", "error"),
        ("csv", "empty_texts", "error"),
        ("csv", "absent_classes", "error"),
        ("csv", "sample", {"train": None, "seed": 3}),
        ("csv", "validation_split", {"together": "identical"}),
        ("csv", "test_split", {"size": 0.3}),
    ],
)
def test_what_changes_nothing_stays_out_of_the_definition(raw, form, key, value):
    dataset = raw["datasets"]["reviews_fr"] | {"format": form, "files": {"train": "a", "test": "b"}}
    raw["datasets"]["reviews_fr"] = {
        name: each for name, each in dataset.items() if name not in ("sample", key)
    }
    before = Plan(copy.deepcopy(raw)).shared.stamp("datasets", "reviews_fr")
    raw["datasets"]["reviews_fr"][key] = value
    assert Plan(copy.deepcopy(raw)).shared.stamp("datasets", "reviews_fr") == before


@pytest.mark.parametrize(
    ("form", "key", "value", "remedy"),
    [
        ("parquet", "encoding", "cp1252", "set format: lab or csv or tsv or jsonl or json or folders"),
        ("jsonl", "header", ["text", "label"], "set format: csv or tsv or excel"),
        ("excel", "quoting", "none", "set format: csv or tsv"),
        ("jsonl", "records", "data", "set format: json"),
        ("csv", "sheet", "1", "set format: excel"),
    ],
)
def test_an_option_of_another_format_is_refused(raw, form, key, value, remedy):
    raw["datasets"]["reviews_fr"] |= {"format": form, key: value}
    error = refusal(raw)
    assert f"the format {form} takes no {key}" in str(error)
    assert error.where == f"config, datasets.reviews_fr.{key}"
    assert remedy in error.hint


@pytest.mark.parametrize(
    ("change", "where", "told"),
    [
        ({"encoding": "cp1253x"}, "encoding", "did you mean 'cp125"),
        ({"encoding": "rot13"}, "encoding", "unknown encoding 'rot13'"),
        (
            {"header": ["texte", "label"]},
            "header",
            "did you mean 'texte'? correct the header, or columns.text",
        ),
        ({"sample": {"train": 20.5}}, "sample.train", "a number of examples is not whole"),
    ],
)
def test_options_that_make_no_sense(raw, change, where, told):
    raw["datasets"]["reviews_fr"] |= change
    error = refusal(raw)
    assert error.where == f"config, datasets.reviews_fr.{where}"
    assert told in str(error)


def test_a_drawn_test_split_keeps_near_duplicates_together_unless_told_otherwise(raw):
    dataset = raw["datasets"]["reviews_fr"]
    dataset["files"] = {"train": "all.csv", "validation": None, "test": None}
    asked = [resolve_config(copy.deepcopy(raw))["datasets"]["reviews_fr"]]
    dataset["test_split"] = {"together": "identical"}
    asked.append(resolve_config(copy.deepcopy(raw))["datasets"]["reviews_fr"])
    assert [each["test_split"].get("together") for each in asked] == ["near", None]
    assert [each["validation_split"]["together"] for each in asked] == ["near", "near"]
    dataset["near_duplicates"] = None
    assert "together" not in resolve_config(raw)["datasets"]["reviews_fr"]["validation_split"]


# --- groups of labels ---


def test_groups_keep_their_order_in_the_definition(raw):
    dataset = raw["datasets"]["reviews_fr"]
    dataset["labels"] = {"low": [1, 2.0, "three", 0.5], "high": {"above": 3, "at_most": 5}, "best": 10}
    resolved = Plan(raw).shared.dataset_definition("reviews_fr")
    assert resolved["labels"] == ["low", "high", "best"]
    assert resolved["groups"] == [["1", "2", "three", "0.5"], {"above": 3, "at_most": 5}, ["10"]]
    assert resolved["label_names"] == ["low", "high", "best"]


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        ({"a": [1, 2], "b": [2, 3]}, "2 in a and b"),
        ({"a": [1, 3.5], "b": {"above": 3}}, "3.5 in a and b"),
        ({"a": {"at_most": 3}, "b": {"at_least": 3}}, "3 in a and b"),
        ({"a": {"below": 4}, "b": {"above": 2, "below": 3}}, "numbers from 2 to 3 in a and b"),
        ({"a": {"below": 3}, "b": {"at_least": 3, "at_most": 2}}, "{'at_least': 3, 'at_most': 2}"),
        ({"a": {}, "b": [1]}, "{}"),
        ({"a": [1], False: [2]}, "False"),
    ],
)
def test_groups_that_share_a_label_or_have_none(raw, labels, found):
    raw["datasets"]["reviews_fr"]["labels"] = labels
    error = refusal(raw)
    assert "datasets.reviews_fr.labels" in error.where
    assert str(error.found) == found


@pytest.mark.parametrize(
    "labels",
    [{"a": {"below": 3}, "b": {"at_least": 3}}, {"a": [3, "x"], "b": {"above": 3}, "c": {"below": 3}}],
)
def test_groups_may_share_a_border(raw, labels):
    raw["datasets"]["reviews_fr"]["labels"] = labels
    assert resolve_config(raw)["datasets"]["reviews_fr"]["labels"] == list(labels)


@pytest.mark.parametrize("key", ["labels", "label_names"])
@pytest.mark.parametrize("label", ["a\nb", "a\x1b[31m", "a\u202eb", "a\u2028b", "a\tb", "\x9b"])
def test_labels_are_one_line_without_control_characters(raw, key, label):
    raw["datasets"]["reviews_fr"][key] = [label, "1"]
    message = refused(raw)
    assert f"datasets.reviews_fr.{key}" in message
    assert ascii(label)[1:-1] in message


# --- generation and adapters ---


@pytest.mark.parametrize(
    ("ending", "form"),
    [
        *((each, each) for each in ("csv", "tsv", "jsonl", "json", "parquet")),
        *(("CSV", "csv"), ("ndjson", "jsonl"), ("xlsx", "excel"), ("csv.gz", "csv"), ("json.gz", "json")),
    ],
)
def test_a_missing_format_is_that_of_the_training_file(raw, ending, form):
    dataset = raw["datasets"]["reviews_fr"]
    del dataset["format"]
    dataset["files"]["train"] = f"train.{ending}"
    assert resolve_config(raw)["datasets"]["reviews_fr"]["format"] == form


def test_a_dataset_of_the_hub_has_parquet_files(raw):
    dataset = raw["datasets"]["reviews_fr"]
    del dataset["format"]
    dataset |= {"source": "hub", "files": {"train": "train", "test": "test"}}
    raw["sources"]["hub"] = {"locations": ["hf://datasets/owner/name"]}
    assert resolve_config(raw)["datasets"]["reviews_fr"]["format"] == "parquet"


def test_a_format_that_the_ending_does_not_tell_is_asked_for(raw, questions):
    del raw["datasets"]["reviews_fr"]["format"]
    raw["datasets"]["reviews_fr"]["files"]["train"] = "books/train.txt"
    told = refused(raw)
    assert "the ending of the training file does not tell the format of 'reviews_fr'" in told
    assert "add format (lab, csv, tsv, jsonl, json, parquet, excel, folders, webis_cls, huggingface)" in told
    assert "only files that end in .csv, .tsv, .jsonl, .ndjson, .json, .parquet, .xlsx need none" in told
    del questions["datasets"]["asked"]["format"]
    questions["datasets"]["asked"]["files"]["train"] = "faq.json"
    assert resolve_config(questions)["datasets"]["asked"]["format"] == "json"


def test_a_dataset_of_questions_has_its_own_defaults(questions):
    assert resolve_config(questions)["datasets"]["asked"] == {
        "task": "generation",
        "source": "reviews_fr",
        "format": "jsonl",
        "files": {"train": "questions.jsonl", "validation": None, "test": None},
        "columns": {"question": "question", "answer": "answer", "context": None},
        "template": "Question : {question}\nRéponse :",
        "answer_prefix": " ",
        "validation_split": {"size": 0.1, "seed": 0},
        "test_split": {"size": 0.1, "seed": 0},
        "near_duplicates": None,
        "drop_leaks": False,
        "max_tokens": None,
        "overlong": "error",
        "language": "und",
        "description": "",
    }


def test_numbers_of_a_dataset_of_questions_may_be_text(questions):
    questions["datasets"]["asked"] |= {"max_tokens": "1e2", "test_split": {"size": "5e-2"}}
    dataset = resolve_config(questions)["datasets"]["asked"]
    assert (dataset["max_tokens"], type(dataset["max_tokens"])) == (100, int)
    assert dataset["test_split"] == {"size": 0.05, "seed": 0}


@pytest.mark.parametrize("split", ["validation", "test"])
def test_how_a_split_is_drawn_is_left_out_where_it_is_given(questions, split):
    questions["datasets"]["asked"]["files"][split] = "more.jsonl"
    before = Plan(copy.deepcopy(questions)).shared.stamp("datasets", "asked")
    questions["datasets"]["asked"][f"{split}_split"] = {"size": 0.3, "seed": 7}
    assert f"{split}_split" not in resolve_config(questions)["datasets"]["asked"]
    assert Plan(copy.deepcopy(questions)).shared.stamp("datasets", "asked") == before
    questions["datasets"]["asked"]["files"][split] = None
    assert resolve_config(questions)["datasets"]["asked"][f"{split}_split"] == {"size": 0.3, "seed": 7}


@pytest.mark.parametrize(
    ("change", "where", "told"),
    [
        ({"templat": "x"}, "templat", "did you mean 'template'?"),
        ({"labels": ["a", "b"]}, "labels", "unknown configuration key 'labels'"),
        (
            {"format": "lab"},
            "format",
            "'lab' is not one of ['csv', 'tsv', 'jsonl', 'json', 'parquet', 'excel']",
        ),
        ({"files": {"test": "x"}}, "files", "'train' is a required property"),
        ({"columns": {"reply": "x"}}, "columns.reply", "unknown configuration key 'reply'"),
        ({"max_tokens": 2}, "max_tokens", "2 is less than the minimum of 3"),
        ({"overlong": "truncate"}, "overlong", "['error', 'cut', 'drop']"),
        ({"overlong": "cut"}, "overlong", "only contexts can be cut"),
        ({"near_duplicates": 2}, "near_duplicates", "2 is greater than the maximum of 1"),
        ({"task": "generatoin"}, "task", "did you mean 'generation'?"),
        ({"task": ["generation"]}, "task", "unknown task ['generation']"),
        ({"template": "Réponse :"}, "template", "must name {question}, and nothing else"),
        ({"template": "{question} {answer}"}, "template", "must name {question}, and nothing else"),
        ({"template": "{question!r}"}, "template", "without a format"),
        ({"template": "{question:>80}"}, "template", "without a format"),
        ({"template": "{question} {"}, "template", "the template cannot be read"),
        ({"template": "{context} {question}"}, "template", "columns.context is null"),
        ({"columns": {"context": "text"}}, "template", "columns.context is set"),
    ],
)
def test_a_dataset_of_questions_that_is_none(questions, change, where, told):
    questions["datasets"]["asked"] |= change
    error = refusal(questions)
    assert told in str(error)
    assert error.where == f"config, datasets.asked.{where}"


def test_a_template_may_hold_braces_and_name_the_context(questions):
    questions["datasets"]["asked"] |= {
        "columns": {"context": "text"},
        "template": "{{{context}}} {question} {question}",
        "overlong": "cut",
    }
    dataset = resolve_config(questions)["datasets"]["asked"]
    assert dataset["template"].format(context="A", question="B") == "{A} B B"
    assert dataset["columns"] == {"question": "question", "answer": "answer", "context": "text"}


def test_labelled_texts_know_nothing_of_questions(raw):
    raw["datasets"]["reviews_fr"]["template"] = "{question}"
    assert "unknown configuration key 'template'" in str(refusal(raw))


def test_a_causal_model_has_the_files_of_its_format(questions):
    questions["models"]["deep"] = {**CAUSAL, "checkpoint": "a/b/weights.safetensors", "config": "c.json"}
    models = resolve_config(questions)["models"]
    assert models["bloom"] == {
        "source": "bloom_560m", "format": "causal", "checkpoint": "model.safetensors",
        "config": "config.json", "tokenizer": "tokenizer.json", "description": "",
    }  # fmt: skip
    assert models["deep"]["tokenizer"] == "a/b/tokenizer.json"
    assert models["deep"]["config"] == "c.json"
    assert "tokenizer" not in models["roberta_tiny_fr"]  # whose fingerprint stays what it was


@pytest.mark.parametrize(
    ("kind", "key"), [("causal", "dictionary"), ("causal", "sentencepiece"), ("huggingface", "tokenizer")]
)
def test_a_file_that_a_format_of_models_has_not(questions, kind, key):
    questions["models"]["other"] = {"source": "bloom_560m", "format": kind, key: "x"}
    assert refusal(questions).where == f"config, models.other.{key}"


# --- clusters ---


def with_cluster(raw, **changes):
    raw["datasets"]["reviews_fr"] |= {"format": "csv"} | changes
    raw["datasets"]["reviews_fr"]["columns"] = {"label": "label", "text": "text", "cluster": "author"}
    return raw


def test_a_column_of_clusters_stays_in_the_definition_and_null_leaves_it_as_it_was(raw):
    before = Plan(copy.deepcopy(raw)).shared.stamp("datasets", "reviews_fr")
    raw["datasets"]["reviews_fr"].setdefault("columns", {})["cluster"] = None
    assert Plan(copy.deepcopy(raw)).shared.stamp("datasets", "reviews_fr") == before
    assert "cluster" not in resolve_config(raw)["datasets"]["reviews_fr"]["columns"]
    assert resolve_config(with_cluster(raw))["datasets"]["reviews_fr"]["columns"]["cluster"] == "author"


@pytest.mark.parametrize("form", ["lab", "webis_cls"])
def test_a_format_without_clusters_is_named(raw, form):
    error = refusal(with_cluster(raw, format=form))
    assert f"the format {form} has no column of clusters" in str(error)
    assert "write" in error.hint
    assert error.where == "config, datasets.reviews_fr.columns.cluster"


@pytest.mark.parametrize("column", ["text", "label"])
def test_clusters_are_neither_texts_nor_labels(raw, column):
    raw = with_cluster(raw)
    raw["datasets"]["reviews_fr"]["columns"]["cluster"] = column
    assert "the column of clusters has another meaning, too" in refused(raw)


def test_pairs_may_be_clustered_by_a_text_that_they_share(raw):
    columns = {"text": "premise", "text_pair": "hypothesis", "cluster": "premise"}
    raw["datasets"]["reviews_fr"] |= {"format": "csv", "columns": columns}
    assert resolve_config(copy.deepcopy(raw))["datasets"]["reviews_fr"]["columns"]["cluster"] == "premise"
    columns["cluster"] = "label"
    assert "the column of clusters has another meaning, too" in refused(raw)


def test_questions_may_have_a_column_of_clusters(questions):
    questions["datasets"]["asked"]["columns"] = {"cluster": "topic"}
    assert resolve_config(copy.deepcopy(questions))["datasets"]["asked"]["columns"]["cluster"] == "topic"
    questions["datasets"]["asked"]["columns"] = {"cluster": "answer"}
    assert "the column of clusters has another meaning, too" in refused(questions)


METRICS = [
    ("macro_f1", "macro_f1"),
    ("mcc", "mcc"),
    ("balanced_accuracy", "balanced_accuracy"),
    ({"f1_of": "positive"}, "f1_of_positive"),
]


@pytest.mark.parametrize(("asked", "name"), METRICS)
def test_a_metric_leads_its_experiment_and_stands_in_the_params_of_its_runs(raw, asked, name):
    before = Plan(copy.deepcopy(raw))
    raw["datasets"]["reviews_fr"]["metric"] = asked
    plan = Plan(raw)
    assert (plan.task.selection, plan.task.reported[0], plan.task.metrics[0]) == (name, name, name)
    assert set(plan.task.reported) == {name, "accuracy", "macro_f1", "balanced_accuracy", "mcc"}
    run, earlier = (each._params(each.runs[0]) for each in (plan, before))
    assert run == earlier | {"metric": name}
    # the files of the data are the same, so that experiments share them
    assert plan.shared.definition("datasets", "reviews_fr") == before.shared.definition(
        "datasets", "reviews_fr"
    )


def test_without_a_metric_nothing_of_a_run_is_another(raw):
    before = Plan(copy.deepcopy(raw))
    raw["datasets"]["reviews_fr"]["metric"] = None
    plan = Plan(raw)
    assert plan.reporting() == before.reporting()
    assert [plan._params(run) for run in plan.runs] == [before._params(run) for run in before.runs]


@pytest.mark.parametrize(
    ("asked", "where", "hint"),
    [
        ("pearson", "config, datasets.reviews_fr.metric", "macro_f1"),
        ("macro-f1", "config, datasets.reviews_fr.metric", "did you mean 'macro_f1'"),
        (
            {"f1_of": "2"},
            "config, datasets.reviews_fr.metric.f1_of",
            "give one of its labels: negative, positive",
        ),
        ({"f1": "1"}, "config, datasets.reviews_fr.metric.f1", "f1_of"),
    ],
)
def test_a_metric_that_there_is_not(raw, asked, where, hint):
    raw["datasets"]["reviews_fr"]["metric"] = asked
    error = refusal(raw)
    assert error.where == where
    assert hint in str(error)


def test_a_task_without_choices_has_no_metric(questions):
    questions["datasets"]["asked"]["metric"] = "macro_f1"
    assert refusal(questions).where == "config, datasets.asked.metric"


def test_datasets_of_a_grid_share_their_metric(raw):
    raw["datasets"]["others"] = {**raw["datasets"]["reviews_fr"], "metric": "mcc"}
    raw["grid"]["datasets"] = ["reviews_fr", "others"]
    error = refusal(raw)
    assert error.found == "reviews_fr (none), others (mcc)"


# --- models that Transformers alone trains ---


@pytest.fixture
def encoder(raw):
    raw["models"]["bert"] = {"source": "cls_books", "format": "auto"}
    raw["grid"]["models"] = ["roberta_tiny_fr", "bert"]
    return raw


def test_a_model_of_the_format_auto_leaves_fairseq_out_and_others_as_they_were(encoder):
    before = resolve_config(
        {**copy.deepcopy(encoder), "grid": {**encoder["grid"], "models": ["roberta_tiny_fr"]}}
    )
    plan = Plan(encoder)
    found = {(run.model, run.framework) for run in plan.runs}
    assert found == {
        ("roberta_tiny_fr", "fairseq"), ("roberta_tiny_fr", "transformers"), ("bert", "transformers"),
    }  # fmt: skip
    assert plan.config["grid"]["left_out"] == {"bert": ["fairseq"]}
    assert "left_out" not in before["grid"]
    assert plan.config["models"]["roberta_tiny_fr"] == before["models"]["roberta_tiny_fr"]
    files = {key: plan.config["models"]["bert"][key] for key in ("checkpoint", "config")}
    assert files == {"checkpoint": "model.safetensors", "config": "config.json"}
    assert [Path(path).parts[-2] for path in plan.per_pair("parity.json", "fairseq")] == ["roberta_tiny_fr"]


def test_where_no_model_is_left_for_fairseq_it_is_no_framework_of_the_grid(encoder):
    encoder["grid"]["models"] = ["bert"]
    encoder["recipes"]["demo"]["precision"] = "bfloat16"  # which fairseq would refuse on a GPU
    encoder["device"] = "cuda"
    assert resolve_config(encoder)["grid"]["frameworks"] == ["transformers"]


def test_a_model_without_a_framework_is_refused(encoder):
    encoder["grid"]["frameworks"] = ["fairseq"]
    message = refused(encoder)
    assert "the model 'bert' runs with Transformers only" in message
    assert "add transformers to grid.frameworks" in message


def test_seeds_of_a_model_of_the_format_auto_cannot_be_fused(encoder):
    encoder["fused_seeds"] = True
    message = refused(encoder)
    assert "seeds of the model 'bert' cannot be fused" in message
    assert "fused_seeds to false" in message
