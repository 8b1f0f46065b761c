"""Rows of runs.csv and summary.csv: read as they were written, or refused with the place of the fault."""

import pytest
from builders_rows import run_row, summary_row

from seedbed.analysis.table_rows import (
    RunRow,
    SummaryRow,
    measured_columns,
    read_summary,
    run_columns,
    seed_values,
    write_runs,
    write_summary,
)
from seedbed.core.errors import SeedbedError
from seedbed.core.tasks import TASKS


def reporting(task="classification", **swept):
    return {
        "grid": {"datasets": ["d"]},
        "datasets": {"d": {"task": task}},
        "recipes": {"lab": {"swept": swept}},
    }


def made_run(task="classification", **columns):
    measured = dict.fromkeys(measured_columns(TASKS[task]), 0.5)
    return RunRow.of({**{key: run_row()[key] for key in run_columns(reporting())[:9]}, **measured, **columns})


@pytest.mark.parametrize("task", TASKS)
def test_runs_are_read_as_they_were_written(tmp_path, task):
    told = reporting(task, learning_rate=[1e-5], epochs=[2])
    runs = [
        made_run(
            task, dataset="2020", test_examples=3, collapsed=False, device="cpu", learning_rate=1e-5, epochs=2
        ),
        made_run(task, init_seed=7, unstable=True, peak_memory_mib=1.5, learning_rate=3e-5, epochs=2),
    ]
    write_runs(tmp_path / "runs.csv", runs, told)
    read = RunRow.read(tmp_path / "runs.csv", needed=run_columns(told))
    assert read == runs
    assert (read[0].dataset, read[0].swept) == ("2020", {"learning_rate": 1e-5, "epochs": 2})
    assert read[1].folder == "reviews/small/fairseq/pretrained/lab/seed7-0"


def test_a_metric_that_the_table_does_not_have_is_an_error_and_not_a_missing_value():
    run = made_run(test_loss=None)
    assert (run.value("test_accuracy"), run.value("test_loss")) == (0.5, None)
    with pytest.raises(KeyError):
        run.value("test_f1")
    with pytest.raises(KeyError):
        run["learning_rate"]
    with pytest.raises(KeyError):
        write_runs("unwritten.csv", [run], reporting("generation"))
    assert seed_values([run, made_run(data_seed=1)], "test_accuracy") == {(0, 0): 0.5, (0, 1): 0.5}


def test_a_missing_value_is_one_not_known_or_that_of_a_loss_that_is_not_finite():
    undefined = made_run(test_loss=None, test_loss_without_leaks=None, collapsed=True)
    assert undefined.is_undefined("test_loss")
    assert not undefined.is_undefined("test_accuracy")
    assert not undefined.is_undefined("test_loss_without_leaks")  # there is no such test set
    assert not made_run(test_loss=None, collapsed=False).is_undefined("test_loss")


def refused(path, needed=()):
    with pytest.raises(SeedbedError, match="not a table of runs") as caught:
        RunRow.read(path, needed=needed)
    return caught.value


def test_a_table_of_an_earlier_version_is_read_where_its_columns_are_not_needed(tmp_path):
    names = ("dataset", "model", "framework", "init", "recipe", "recipe_family", "method")
    path = tmp_path / "runs.csv"
    header = ",".join((*names, "init_seed", "data_seed", "test_accuracy", "collapsed"))
    path.write_text(f"{header}\nd,m,fairseq,random,lab,lab,full,0,0,0.5,false\n")
    (run,) = RunRow.read(path)
    assert (run.value("test_accuracy"), run.collapsed, run.test_all_same) == (0.5, False, None)
    error = refused(path, run_columns(reporting()))
    assert "it lacks selected_step, validation_accuracy, " in error.hint
    assert "test_all_same" in error.hint
    assert "collapsed" not in error.hint
    assert "let Snakemake make it again" in error.hint
    path.write_text(path.read_text().replace("init_seed", "seed"))
    assert "init_seed" in refused(path, run_columns(reporting())).hint


@pytest.mark.parametrize(
    ("column", "cell"), [("init_seed", "0.5"), ("collapsed", "yes"), ("test_loss", "much")]
)
def test_a_cell_of_another_type_is_refused_with_its_place(tmp_path, column, cell):
    path = tmp_path / "runs.csv"
    write_runs(path, [made_run(), made_run(data_seed=1)], reporting())
    lines = [line.split(",") for line in path.read_text().splitlines()]
    lines[2][lines[0].index(column)] = cell
    path.write_text("".join(",".join(line) + "\n" for line in lines))
    error = refused(path)
    assert (error.where, error.found) == (f"{path}, line 3, column {column}", repr(cell))


def test_a_summary_has_columns_of_bags_only_where_these_say_something(tmp_path):
    path = tmp_path / "summary.csv"
    rows = [summary_row(mean=0.5), summary_row(init="random", selection="best", n_collapsed=1)]
    write_summary(path, rows)
    assert not {*SummaryRow.OPTIONAL} & {*path.read_text().splitlines()[0].split(",")}
    assert read_summary(path) == rows
    rows.append(summary_row(dataset="zh", bag_of_words_features="characters"))
    write_summary(path, rows)
    assert "bag_of_words_left_out" not in path.read_text()
    assert read_summary(path) == rows
