"""Methods that train a part of the weights, and probes, from a checkpoint to tables with the Snakefile."""

import csv
import json

import pytest
from harness import failed, succeeded

METHODS = ("bitfit", "last_layers", "head")


def read(path):
    with open(path, encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def recipes(**more):
    return {name: {"method": name, "epochs": 1, "learning_rate": 1e-3, **more} for name in METHODS}


def test_a_model_with_fewer_layers_is_refused_before_anything_trains(small):
    project, config = small
    config["recipes"] = recipes(last_layers=3)
    config["grid"] |= {"recipes": ["last_layers"], "frameworks": ["transformers"]}
    told = failed(project.snakemake("--", "check_limits", config=config))
    assert "the recipe trains more layers than the model 'generated' has" in told
    assert "config, recipes.last_layers.last_layers" in told
    assert "give at most 2, or use the method full" in told


@pytest.mark.slow
def test_parts_of_the_weights_are_trained_on_shared_states(prepared, reference):
    config = {**reference.config, "experiment": "parts", "recipes": recipes(), "batches": {"runs": 50}}
    config["grid"] = {**config["grid"], "recipes": [*METHODS]}
    succeeded(prepared.snakemake("--cores", "2", "--", "all", "probes", config=config))
    results = prepared.results
    seeds = len(config["grid"]["seeds"])
    states = sorted(path.name for path in (results / "data").rglob("*.safetensors"))
    assert len(states) == 1 + seeds  # of the checkpoint, and of each init seed of random weights
    rows = read(results / "parts/trainable_parameters.csv")
    trained = {(row["recipe"], row["component"]): row for row in rows}
    for path in (results / "parts/runs").rglob("run.json"):
        record = json.loads(path.read_text(encoding="utf-8"))
        expected = int(trained[record["run"]["recipe"], "trainable"]["expected"])
        assert record["parameters"]["trainable"] == expected
    assert {row["method"] for row in read(results / "parts/runs.csv")} == {*METHODS}
    assert [row["states"] for row in read(results / "parts/probes.csv")] == ["first", "mean"]
    summary = (results / "parts/summary.md").read_text(encoding="utf-8")
    assert "BitFit" in summary
    assert "training of the head alone" in summary
