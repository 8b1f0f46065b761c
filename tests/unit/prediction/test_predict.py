"""`seedbed predict`: the numbers of each kind of run, what is written, and what is refused."""

import csv
import io
import json
import shutil
import sys

import pytest
import torch
from builders import tiered
from builders_finished import finish, make_results

from seedbed.commands import main
from seedbed.core import files
from seedbed.core.run_folder import RunFolder

FUSED = [["pretrained", 3, 3], ["pretrained", 4, 4]]
# by name: what is made, and how runs are trained on it
KINDS = {
    "Transformers": ({}, {}),
    "fairseq": ({}, {"framework": "fairseq"}),
    "LoRA": ({}, {"method": "lora"}),
    "LoRA of fused seeds": ({}, {"method": "lora", "seeds": (3, 4), "fused": FUSED}),
    "the last layer in fairseq": ({}, {"framework": "fairseq", "method": "last_layers", "last_layers": 1}),
    "the head": ({}, {"method": "head", "states": "pretrained-max24"}),
    "the head in fairseq": ({}, {"framework": "fairseq", "method": "head", "states": "pretrained-max24"}),
    "pairs": ({"pairs": True}, {}),
    "pairs of BERT": ({"pairs": True, "auto": "BERT"}, {}),
    "several labels": ({"task": "multilabel"}, {"task": "multilabel"}),
    "numbers": ({"task": "regression"}, {"task": "regression"}),
    "numbers in fairseq": ({"task": "regression"}, {"task": "regression", "framework": "fairseq"}),
}

AGAIN = {
    "Transformers": {},
    "fairseq": {"framework": "fairseq"},
    "fused seeds": {"seeds": (3, 4), "fused": FUSED},
}


def write_texts(results, path):
    """The test texts as a file of new texts."""
    rows = files.read_jsonl(results / "data/books/test.jsonl")
    columns = [name for name in ("text", "text_pair") if name in rows[0]]
    files.write_rows(path, columns, [{name: row[name] for name in columns} for row in rows])
    return path


def predict(*arguments, code=0):
    assert main(["predict", "--threads", "1", *map(str, arguments)]) == code


def predictions_of(run):
    with open(run / "predictions.csv", encoding="utf-8", newline="") as stream:
        return [row for row in csv.DictReader(stream) if row["split"] == "test"]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Results with a run of each framework; for reading."""
    made = make_results(tmp_path_factory.mktemp("finished"))
    finish(made, seeds=(3, 4))
    finish(made, "fairseq")
    return made


def run_of(results, framework="transformers", seed=3):
    return results / f"small/runs/books/generated/{framework}/pretrained/demo/seed{seed}"


@pytest.mark.parametrize("kind", KINDS)
def test_the_test_set_is_predicted_as_by_the_run(tmp_path, kind):
    made, trained = KINDS[kind]
    results = make_results(tmp_path, **made)
    run = finish(results, **trained)
    out = tmp_path / "out.csv"
    predict("--run", run, write_texts(results, tmp_path / "new.csv"), out)
    found, expected = files.read_rows(out), predictions_of(run)
    assert len(found) == len(expected) == 12
    for row, of_run in zip(found, expected, strict=True):
        numbers = [name for name in of_run if name.startswith("probability_")]
        if "regression" in str(made):
            assert float(row["prediction"]) == pytest.approx(float(of_run["prediction"]), abs=1e-4)
        else:
            assert row["prediction"] == of_run["prediction"]
        # Transformers' numbers are those of the run to the last digit. fairseq's weights are converted, heads
        # were trained on states of other batches, and fused seeds round otherwise.
        tolerance = 1e-5 if any(part in kind for part in ("fairseq", "head", "fused")) else 0
        assert [float(row[name]) for name in numbers] == pytest.approx(
            [float(of_run[name]) for name in numbers], abs=tolerance
        )
    tokens = files.read_jsonl(results / "data/books/generated/tokens/test.jsonl")
    cut = [str(row["length"] > 24).lower() for row in tokens]
    assert [row["cut"] for row in found] == cut
    assert len(set(cut)) == 2


def test_a_cell_gives_the_means_of_its_seeds_and_how_many_agree(results, tmp_path):
    texts = write_texts(results, tmp_path / "new.csv")
    out = tmp_path / "out.jsonl"
    predict("--cell", run_of(results).parent, texts, out)
    seeds = [predictions_of(run_of(results, seed=seed)) for seed in (3, 4)]
    for row, *of_seeds in zip(files.read_jsonl(out), *seeds, strict=True):
        mean = sum(float(one["probability_positive"]) for one in of_seeds) / 2
        assert row["probability_positive"] == pytest.approx(mean, abs=1e-8)
        assert row["prediction"] == ("positive" if mean > 0.5 else "negative")
        agreeing = sum(one["prediction"] == row["prediction"] for one in of_seeds)
        assert row["agreement"] == agreeing / 2
        assert isinstance(row["cut"], bool)


@pytest.mark.parametrize("kind", tiered(AGAIN, "Transformers"))
def test_a_run_without_weights_is_trained_again_and_kept(tmp_path, capsys, kind):
    results = make_results(tmp_path)
    run = finish(results, **AGAIN[kind], keep_model=False)
    texts = write_texts(results, tmp_path / "new.csv")
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    predict("--run", run, texts, tmp_path / "first.csv")
    assert "is trained again" in capsys.readouterr().err
    again = RunFolder.from_path(run).again.target
    assert (again / "predictions.csv").read_bytes() == (run / "predictions.csv").read_bytes()
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before
    predict("--run", run, texts, tmp_path / "second.csv")
    assert capsys.readouterr().err == ""
    assert (tmp_path / "first.csv").read_bytes() == (tmp_path / "second.csv").read_bytes()
    files.write_text(again / "predictions.csv", (run / "predictions.csv").read_text().replace("0.", "0.1"))
    told = refused(capsys, "--run", run, texts, tmp_path / "third.csv")
    assert "changed or damaged" in told
    shutil.rmtree(again / ".sha256")
    told = refused(capsys, "--run", run, texts, tmp_path / "third.csv")
    assert "trained again, the run predicts something else" in told
    assert "on the same device, with the same versions" in told


def test_standard_input_and_the_lines_of_the_texts(results, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"Un livre.\nDeux livres.\n")))
    predict("--run", run_of(results, "fairseq"), "-", tmp_path / "out.jsonl")
    rows = files.read_jsonl(tmp_path / "out.jsonl")
    assert [(row["line"], row["text"]) for row in rows] == [(1, "Un livre."), (2, "Deux livres.")]


# --- refusals -----------------------------------------------------------------------------------------------


@pytest.fixture
def spoiled(results, tmp_path):
    """A copy that a test may change."""
    shutil.copytree(results, tmp_path / "results")
    return tmp_path / "results"


def refused(capsys, *arguments):
    predict(*arguments, code=1)
    printed = capsys.readouterr()
    assert printed.out == ""
    return printed.err


def test_a_wrong_folder_is_told_from_a_run(results, tmp_path, capsys):
    texts, out = write_texts(results, tmp_path / "new.csv"), tmp_path / "out.csv"
    run = run_of(results)
    assert "no folder" in refused(capsys, "--run", tmp_path / "none", texts, out)
    assert "this is a cell" in refused(capsys, "--run", run.parent, texts, out)
    assert "is a run, and a cell is the folder above it" in refused(capsys, "--cell", run, texts, out)
    shutil.copytree(run, tmp_path / "copy")
    assert "not in an experiment's folder" in refused(capsys, "--run", tmp_path / "copy", texts, out)
    assert not out.exists()


def test_nothing_is_overwritten(results, tmp_path, capsys):
    texts = write_texts(results, tmp_path / "new.csv")
    assert "exists already" in refused(capsys, "--run", run_of(results), texts, texts)
    assert ".csv or .jsonl" in refused(capsys, "--run", run_of(results), texts, tmp_path / "out.xlsx")


def test_a_run_that_writes_answers_or_is_too_old_is_refused(spoiled, tmp_path, capsys):
    run = run_of(spoiled)
    shutil.rmtree(run / ".sha256")
    record = files.read_json(run / "run.json")
    files.write_json(run / "run.json", record | {"task": "generation"})
    told = refused(capsys, "--run", run, tmp_path / "new.csv", tmp_path / "out.csv")
    assert "writes answers" in told
    files.write_json(run / "run.json", {"task": "classification"})
    assert "made by an earlier version" in refused(
        capsys, "--run", run, tmp_path / "new.csv", tmp_path / "out.csv"
    )


def test_weights_that_are_not_the_runs_are_refused(spoiled, tmp_path, capsys):
    texts = write_texts(spoiled, tmp_path / "new.csv")
    run, other = run_of(spoiled), run_of(spoiled, seed=4)
    weights = run / "model/model.safetensors"
    shutil.copy(other / "model/model.safetensors", weights)
    assert "changed or damaged" in refused(capsys, "--run", run, texts, tmp_path / "out.csv")
    shutil.rmtree(run / ".sha256")
    told = refused(capsys, "--run", run, texts, tmp_path / "out.csv")
    assert "not predicted as the run predicted it" in told
    assert not (tmp_path / "out.csv").exists()


def test_another_model_or_missing_data_are_refused(spoiled, tmp_path, capsys):
    texts, run = write_texts(spoiled, tmp_path / "new.csv"), run_of(spoiled)
    config = spoiled / "models/generated/huggingface/config.json"
    config.write_text(json.dumps(files.read_json(config) | {"layer_norm_eps": 0.1}))
    told = refused(capsys, "--run", run, texts, tmp_path / "out.csv")
    assert "not those that the run was trained on" in told
    assert "weights/config.json" in told
    (spoiled / "data/books/test.jsonl").unlink()
    told = refused(capsys, "--run", run, texts, tmp_path / "out.csv")
    assert "is missing" in told
    assert "snakemake --cores 1" in told


def test_a_run_of_a_gpu_without_weights_needs_one(spoiled, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    texts, run = write_texts(spoiled, tmp_path / "new.csv"), run_of(spoiled)
    record = files.read_json(run / "run.json") | {"device": "cuda: NVIDIA H200"}
    shutil.rmtree(run / ".sha256")
    files.write_json(run / "run.json", record)
    predict("--run", run, texts, tmp_path / "out.csv")  # its weights were kept
    capsys.readouterr()
    shutil.rmtree(run / "model")
    told = refused(capsys, "--run", run, texts, tmp_path / "other.csv")
    assert "only a GPU would make the same again" in told
    assert "NVIDIA H200" in told


def test_a_fault_of_the_training_is_told_with_its_log(spoiled, tmp_path, capsys):
    texts, run = write_texts(spoiled, tmp_path / "new.csv"), run_of(spoiled)
    shutil.rmtree(run / "model")
    (spoiled / "small/retrained").mkdir()
    (spoiled / "small/retrained/work").write_text("a file in the way")
    told = refused(capsys, "--run", run, texts, tmp_path / "out.csv")
    assert "could not be trained again" in told
    assert "seed3.log" in told


def test_training_again_on_other_texts_is_refused(spoiled, tmp_path, capsys):
    texts, run = write_texts(spoiled, tmp_path / "new.csv"), run_of(spoiled)
    shutil.rmtree(run / "model")
    tokens = spoiled / "data/books/generated/tokens/train.jsonl"
    tokens.write_text(
        tokens.read_text(encoding="utf-8").replace('"label": 1', '"label": 0'), encoding="utf-8"
    )
    told = refused(capsys, "--run", run, texts, tmp_path / "out.csv")
    assert "tokens/train" in told
    assert not RunFolder.from_path(run).again.experiment.exists()
