"""`seedbed export`: what Transformers alone makes of the folder, the model card, and what is refused."""

import json
import os
import subprocess
import sys

import pytest
import yaml
from builders_finished import finish, make_results, write_tables
from test_predict import FUSED, predictions_of
from transformers import pipeline

from seedbed.commands import main
from seedbed.core import files
from seedbed.core.naming import UNK

# what a user runs, in a Python that cannot import Seedbed
PROGRAM = """
import json, sys
from transformers import pipeline
texts = json.load(sys.stdin)
for folder in sys.argv[1:]:
    classify = pipeline("text-classification", folder, truncation=True)
    print(json.dumps(classify(texts, top_k=None)))
assert not any(name.partition(".")[0] == "seedbed" for name in sys.modules)
try:
    import seedbed
    sys.exit("seedbed can be imported")
except ImportError:
    pass
"""


def export(run, output, code=0):
    assert main(["export", str(run), str(output)]) == code


def finished(folder, made=None, **run):
    """The results, and a run in a finished experiment."""
    results = make_results(folder, **(made or {}))
    done = finish(results, **run)
    write_tables(results)
    return results, done


def texts_of(results):
    rows = files.read_jsonl(results / "data/books/test.jsonl")
    if "text_pair" in rows[0]:
        return [{"text": row["text"], "text_pair": row["text_pair"]} for row in rows]
    return [row["text"] for row in rows]


def test_a_process_without_seedbed_predicts_as_runs_of_both_frameworks_did(tmp_path):
    results, run = finished(tmp_path)
    runs = [run, finish(results, "fairseq")]
    write_tables(results)
    folders = [str(tmp_path / f"exported{number}") for number in range(2)]
    for one, folder in zip(runs, folders, strict=True):
        export(one, folder)
    done = subprocess.run(
        [sys.executable, "-I", "-c", PROGRAM, *folders],
        input=json.dumps(texts_of(results)),
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    for one, line in zip(runs, done.stdout.splitlines(), strict=True):
        for found, row in zip(json.loads(line), predictions_of(one), strict=True):
            assert found[0]["label"] == row["prediction"]
            scores = {f"probability_{each['label']}": each["score"] for each in found}
            assert scores == pytest.approx({name: float(row[name]) for name in scores}, abs=1e-5)


@pytest.mark.parametrize(
    ("made", "run"),
    [
        ({}, {"method": "lora"}),
        ({}, {"method": "lora", "seeds": (3, 4), "fused": FUSED}),
        ({"auto": "BERT", "pairs": True}, {}),
        ({"task": "multilabel"}, {"task": "multilabel"}),
        ({"task": "regression"}, {"task": "regression"}),
        ({"task": "regression", "auto": "DistilBERT"}, {"task": "regression"}),
        ({"unlisted": True}, {}),
    ],
)
def test_every_kind_of_run_gives_its_labels_or_numbers(tmp_path, made, run):
    results, done = finished(tmp_path, made, **run)
    export(done, tmp_path / "exported")
    if "unlisted" in made:
        tokens = files.read_jsonl(results / "data/books/generated/tokens/test.jsonl")
        assert any(UNK in row["ids"] for row in tokens)
        rows = files.read_json(results / "models/generated/model.json")["vocabulary"]
        assert files.read_json(tmp_path / "exported/config.json")["vocab_size"] == rows + 1
    classify = pipeline("text-classification", str(tmp_path / "exported"), truncation=True)
    for found, row in zip(classify(texts_of(results), top_k=None), predictions_of(done), strict=True):
        if made.get("task") == "regression":
            (number,) = found
            assert number["score"] == pytest.approx(float(row["prediction"]), abs=1e-3)
            continue
        names = {name.removeprefix("probability_") for name in row if name.startswith("probability_")}
        assert {one["label"] for one in found} == names
        for one in found:
            assert one["score"] == pytest.approx(float(row[f"probability_{one['label']}"]), abs=1e-5)


def test_the_model_card_has_the_results_of_run_and_experiment(tmp_path):
    _, run = finished(tmp_path, seeds=(3, 4))
    export(run, tmp_path / "exported")
    card = (tmp_path / "exported" / "README.md").read_text(encoding="utf-8")
    _, metadata, body = card.split("---\n", 2)
    assert yaml.safe_load(metadata)["pipeline_tag"] == "text-classification"
    assert "# Fill in: license" in metadata
    accuracy = files.read_json(run / "run.json")["test"]["accuracy"]
    assert f"| accuracy | {100 * accuracy:.1f}% | 71.0% | 64.0% to 78.0% | 70.0% | 66.0% | 50.0% |" in body
    assert "over 2 seeds" in body
    assert "leaves these out" in body
    assert "12 test" in body
    assert "| `learning_rate` | `0.01` |" in body
    assert "no more than 24 tokens are read" in body
    assert str(tmp_path) not in card


def test_an_unfinished_experiment_and_an_existing_folder_are_refused(tmp_path, capsys):
    results, run = finished(tmp_path)
    export(run, tmp_path, code=1)
    assert "exists already" in capsys.readouterr().err
    (results / "small/summary.csv").unlink()
    export(run, tmp_path / "exported", code=1)
    assert "experiment is not finished" in capsys.readouterr().err
    assert not (tmp_path / "exported").exists()


def test_nothing_is_left_where_the_test_set_is_not_predicted(tmp_path, capsys):
    results, run = finished(tmp_path)
    path = results / "data/books/test.jsonl"
    rows = files.read_jsonl(path)
    files.write_jsonl(path, [{**row, "text": "Autre chose."} for row in rows])
    export(run, tmp_path / "exported", code=1)
    assert "not predicted as the run predicted it" in capsys.readouterr().err
    assert not list(tmp_path.glob("*exported*"))
