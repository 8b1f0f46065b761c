"""An experiment that grows: a stage for each call of the real Snakefile."""

import json

import pytest
from builders import make_fairseq_checkpoint
from builders_workflow import SHAPE, link_repository, small_config, write_lab_dataset
from harness import Project, succeeded

from seedbed.running.status import DONE, status


@pytest.mark.slow
def test_seeds_are_added_until_the_last_look_and_nothing_is_trained_twice(tmp_path):
    inputs = tmp_path / "inputs"
    write_lab_dataset(inputs / "books", {"train": 60, "valid": 30, "test": 80})
    make_fairseq_checkpoint(inputs / "generated", **SHAPE)
    config = small_config(inputs)
    config["grid"] |= {"frameworks": ["transformers"], "seeds": [0]}
    config["recipes"]["quick"] |= {"epochs": 4, "learning_rate": 4e-3, "dropout": 0.0}
    config |= {"until": {"looks": [3, 4], "max_seeds": 4}, "batches": {"runs": 3}}
    config["statistics"] = {"difference_of_interest": 1e-6}  # which no number of seeds finds
    project = Project(link_repository(tmp_path / "work"), config=config)
    first = succeeded(project.snakemake("--cores", "2"))
    assert "Open: 1 question of 1. Run the same command again for 4 seeds" in first.stdout + first.stderr
    between = status(project.results / "small")
    assert (between.planned.stage, between.count(DONE), between.undecided) == (1, 6, True)
    planned = succeeded(project.snakemake("--dry-run"))
    assert "2 of 8 runs to train" in planned.stdout + planned.stderr
    assert "This is stage 2: seeds are added" in planned.stdout + planned.stderr
    runs = project.results / "small" / "runs"
    kept = {path: path.stat().st_ino for path in runs.rglob("predictions.csv")}
    succeeded(project.snakemake("--cores", "2"))
    assert {path: path.stat().st_ino for path in kept} == kept
    assert len(list(runs.rglob("predictions.csv"))) == 8
    first_stage, last = (
        json.loads((project.results / f"small/stages/{number}.json").read_text()) for number in (1, 2)
    )
    assert (first_stage["finished"], last["finished"]) == (False, True)
    rows = project.rows("results/small/contrasts.csv")
    assert {(row["look"], row["looks"]) for row in rows if row["family"] == "init"} == {("2", "2")}
    assert "**Looks:** Not decided at look 2 of 2" in (project.results / "small/summary.md").read_text()
    after = status(project.results / "small")
    assert (after.planned.stage, after.count(DONE), after.is_finished) == (2, 8, True)
    again = succeeded(project.snakemake())
    assert "Nothing to be done" in again.stdout + again.stderr
