from pathlib import Path

import pytest

from seedbed.core import run_folder
from seedbed.core.run_folder import RunFolder

EXPERIMENT = Path("results/small")
RUN = {
    "dataset": "books", "model": "tiny", "framework": "fairseq", "init": "random", "recipe": "quick",
    "init_seed": 0, "data_seed": 3, "method": "full",
}  # fmt: skip
NAME = "books/tiny/fairseq/random/quick/seed0-3"


def test_layout_of_a_run():
    folder = RunFolder.of_run(EXPERIMENT, RUN)
    assert folder.name == NAME
    assert folder.target == EXPERIMENT / "runs" / NAME
    assert folder.work == EXPERIMENT / "work" / NAME
    assert folder.log("finetune_fairseq") == Path(
        "results/small/logs/finetune_fairseq/books/tiny/random/quick/seed0-3.log"
    )


@pytest.mark.parametrize("root", ["", "/data"])
@pytest.mark.parametrize("below", ["runs", "work"])
def test_a_path_gives_the_run_back(root, below):
    experiment = Path(root) / EXPERIMENT
    assert RunFolder.from_path(experiment / below / NAME) == RunFolder.of_run(experiment, RUN)
    assert run_folder.name_of(experiment / below / NAME) == NAME


def test_a_path_that_is_too_short_is_no_run():
    with pytest.raises(IndexError):
        RunFolder.from_path(Path(NAME))


def test_seed_folder():
    assert run_folder.seed_folder(7, 7) == "seed7"
    assert run_folder.seed_folder(7, 0) == "seed7-0"


def test_a_batch_file_gives_experiment_and_batch_back():
    path = run_folder.batch_file(EXPERIMENT, "books/tiny/fairseq/012")
    assert path == Path("results/small/work/batches/books/tiny/fairseq/012.json")
    assert run_folder.experiment_of_batch(path) == (EXPERIMENT, "books/tiny/fairseq/012")


def test_work_folders_are_those_of_runs(tmp_path):
    work = RunFolder.of_run(tmp_path, RUN).work
    (work / "states").mkdir(parents=True)
    (tmp_path / "work/batches/books/tiny/fairseq").mkdir(parents=True)
    assert run_folder.work_folders(tmp_path) == {work}
