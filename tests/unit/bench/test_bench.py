"""The benchmark of the lab's way beside Seedbed: arithmetic, processes, real runs of the lab's way."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from builders_jobs import run_python
from builders_training import SIZES, make_fairseq_job, make_run
from scipy import stats

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

from bench import ablation, equivalence, processes, scaling, sidebyside, tables, workload
from bench.__main__ import main
from builders_rows import changed, run_row

from seedbed.core import files
from seedbed.core.rows import write_table

pytestmark = pytest.mark.slow  # of benchmarks/, not of the product
SETTINGS = {"confidence": 0.95, "equivalence_margin": {"pretrained": 0.01, "random": 0.02}}


# --- arithmetic ---


def measured(side, framework, train, repeat=0):
    """A run of 10 updates and 20 evaluated examples: 2 s start-up, 4 s evaluation, 1 s for the rest."""
    record = {
        "seconds": {"start_up": 2.0, "train": train, "evaluate": 4.0},
        "updates": 10, "examples_evaluated": 20, "padding_share": 0.25, "peak_memory_mib": 100.0,
        "samples_per_second": 80 / train, "tokens_per_second": 800 / train, "device": "cpu",
    }  # fmt: skip
    names = {"side": side, "framework": framework, "init": "pretrained", "seed": repeat, "repeat": repeat}
    return tables.run_row(record, train + 7.0, train + 6.0, **names)


def test_a_run_s_wall_time_is_its_phases_and_the_rest():
    row = measured("lab", "fairseq", 10.0)
    assert row["wall_seconds"] == 17.0
    assert (row["start_up_seconds"], row["train_seconds"], row["evaluate_seconds"]) == (2.0, 10.0, 4.0)
    assert row["rest_seconds"] == pytest.approx(1.0)
    assert set(row) == set(tables.RUN_COLUMNS)


def test_the_summary_has_medians_spreads_and_how_many_times_better_seedbed_is():
    rows = [measured("lab", "fairseq", train) for train in (10.0, 40.0, 20.0)]
    rows += [measured("seedbed", "fairseq", train) for train in (5.0, 4.0)]
    found = {row["measure"]: row for row in tables.summarise(rows)}
    train = found["train_seconds"]
    assert [train[f"lab_{name}"] for name in ("median", "min", "max", "n")] == [20.0, 10.0, 40.0, 3]
    assert [train[f"seedbed_{name}"] for name in ("median", "min", "max", "n")] == [4.5, 4.0, 5.0, 2]
    assert train["ratio"] == pytest.approx(20 / 4.5)
    speed = found["samples_per_second"]  # more is better: Seedbed's by the lab's
    assert speed["ratio"] == pytest.approx((80 / 4 + 80 / 5) / 2 / 4)
    assert found["padding_share"]["ratio"] is None
    assert {row["framework"] for row in tables.summarise(rows)} == {"fairseq"}


def test_what_each_side_evaluates():
    sizes = {"validation": 200, "test": 2000}
    assert tables.evaluated_examples("lab", "fairseq", 5, sizes) == 11_000
    assert tables.evaluated_examples("lab", "transformers", 5, sizes) == 3_000
    assert tables.evaluated_examples("seedbed", "fairseq", 5, sizes) == 3_200


def test_the_extrapolation_from_a_slice():
    rows = [measured(side, name, train) for side, train in (("lab", 10.0), ("seedbed", 5.0))
            for name in tables.FRAMEWORKS]  # fmt: skip
    sizes = {"train": 400, "validation": 10, "test": 50}
    counts = {"fairseq": 6, "transformers": 6}
    grid = tables.extrapolate(rows, counts, 100, 2, sizes, 2, 3.0, 8.0, 1.0)
    found = {row["quantity"]: row["seconds"] for row in grid}
    # start-up 2, rest 1, an update 1 s (lab) or 0.5, an evaluated example 0.2
    lab = 6 * (2 + 100 + 120 * 0.2 + 1) + 6 * (2 + 100 + 70 * 0.2 + 1)
    seedbed = (12 * (2 + 50 + 80 * 0.2 + 1) + 12 * 3.0) / 2 + 8.0
    assert found["lab, a fairseq run"] == pytest.approx(127)
    assert found["ratio of a fairseq run"] == pytest.approx(127 / 69)
    assert found["lab, grid, one run after another"] == pytest.approx(lab)
    assert found["lab, grid, 2 runs side by side without any loss"] == pytest.approx(lab / 2)
    assert found["seedbed, grid on 2 cores"] == pytest.approx(seedbed)
    assert found["ratio of the grids, both side by side"] == pytest.approx(lab / 2 / seedbed)
    assert found["Snakemake's own share of the grid"] == pytest.approx((12 * 3.0 / 2 + 1.0) / seedbed)
    assert {row["kind"] for row in grid if row["quantity"].startswith(("lab", "ratio"))} == {"extrapolated"}
    assert "100 x an update + 120 x an evaluated example" in tables.grid_table(grid)


def test_three_timed_runs_stand_for_the_grid_of_the_lab_s_way():
    rows = [measured("lab", name, train) for name in tables.FRAMEWORKS for train in (3.0, 3.0, 6.0)]
    grid = tables.whole_grid(rows, {"fairseq": 6, "transformers": 6}, [20.0, 30.0, 22.0], [1.0, 3.0, 1.1], 1)
    found = {row["quantity"]: row for row in grid}
    lab = found["lab, grid, one run after another"]
    assert lab["seconds"] == pytest.approx(2 * 2 * (10 + 10 + 13))
    assert lab["kind"] == "extrapolated"
    assert found["seedbed, grid, Snakemake included"]["seconds"] == 22.0
    assert found["seedbed, grid, Snakemake included"]["kind"] == "measured"
    assert found["ratio of the grids"]["seconds"] == pytest.approx(132 / 22)
    assert found["Snakemake's own share of the grid"]["seconds"] == pytest.approx(0.05)
    rows = tables.whole_grid(rows, {"fairseq": 6, "transformers": 6}, [22.0], [1.0], 2)
    assert rows[0]["quantity"] == "lab, grid, 2 runs at a time"
    assert rows[0]["seconds"] == pytest.approx(66)


def test_tables_for_people():
    rows = [measured(side, "transformers", 2.5, repeat) for side in tables.SIDES for repeat in (0, 1)]
    text = tables.summary_table(tables.summarise(rows))
    assert (
        "| Transformers | run: wall (s) | 9.50 (9.50 to 9.50; n = 2) | 9.50 (9.50 to 9.50; n = 2) | 1.00 |"
        in text
    )
    assert [tables.number(value) for value in (None, 0, 0.1234, 1.234, 12.34, 1234.5)] == [
        "", "0", "0.123", "1.23", "12.3", "1,234",
    ]  # fmt: skip


# --- equivalence ---


def accuracies(framework, init, values):
    """Rows as `equivalence` writes them."""
    names = {"dataset": "d", "model": "m", "framework": framework, "init": init}
    return [{**names, "seed": seed, "test_accuracy": value} for seed, value in enumerate(values)]


def runs_of(framework, init, values):
    """Rows of runs.csv."""
    names = {"dataset": "d", "model": "m", "recipe": "r", "framework": framework, "init": init}
    return [
        run_row(names, init_seed=seed, data_seed=seed, test_accuracy=value)
        for seed, value in enumerate(values)
    ]


CENTRE = [0.790, 0.792, 0.788, 0.791, 0.789, 0.793, 0.787, 0.790, 0.791, 0.789]


def test_equivalence_is_that_of_two_one_sided_welch_tests_with_holm_s_adjustment():
    shifts = {
        ("fairseq", "pretrained"): 0.001,
        ("fairseq", "random"): 0.03,
        ("transformers", "random"): 0.0195,
    }
    lab, runs = [], []
    for key, shift in shifts.items():
        lab += accuracies(*key, CENTRE)
        runs += runs_of(*key, [value + shift + 0.001 * (-1) ** seed for seed, value in enumerate(CENTRE)])
    found = {(row["framework"], row["init"]): row for row in equivalence.compare(lab, runs, SETTINGS)}
    assert {key: row["equivalence"] for key, row in found.items()} == {
        ("fairseq", "pretrained"): "equivalent",
        ("fairseq", "random"): "different",
        (
            "transformers",
            "random",
        ): "different",  # within the margin as it seems, yet not shown to be, nor equal
    }
    p_values = {}
    for key, row in found.items():
        a = [run.value("test_accuracy") for run in runs if (run.framework, run.init) == key]
        margin = SETTINGS["equivalence_margin"][key[1]]
        lower = stats.ttest_ind([x + margin for x in a], CENTRE, equal_var=False, alternative="greater")
        upper = stats.ttest_ind([x - margin for x in a], CENTRE, equal_var=False, alternative="less")
        assert row["p_equivalence"] == pytest.approx(max(lower.pvalue, upper.pvalue), abs=1e-12)
        interval = stats.ttest_ind(a, CENTRE, equal_var=False).confidence_interval(0.9)
        assert (row["equivalence_low"], row["equivalence_high"]) == pytest.approx(
            (interval.low, interval.high)
        )
        p_values[key] = row["p_equivalence"]
    adjusted = dict(zip(sorted(p_values, key=p_values.get), (3, 2, 1), strict=True))
    smallest = min(p_values, key=p_values.get)
    assert found[smallest]["p_equivalence_holm"] == pytest.approx(adjusted[smallest] * p_values[smallest])


def test_equivalence_may_be_inconclusive_or_not_known():
    wide = [0.75, 0.83, 0.79, 0.78, 0.81, 0.79, 0.80, 0.76, 0.82, 0.77]
    lab = accuracies("fairseq", "pretrained", CENTRE) + accuracies("transformers", "pretrained", [0.8])
    runs = runs_of("fairseq", "pretrained", wide) + runs_of("transformers", "pretrained", [0.8])
    rows = equivalence.compare(lab, runs, SETTINGS)
    assert [row["equivalence"] for row in rows] == ["inconclusive", None]
    assert "| fairseq | pretrained | 1 | inconclusive | 79.00 ± 0.18 (n = 10) |" in equivalence.result_table(
        rows
    )
    assert "not known" in equivalence.result_table(rows)


@pytest.mark.parametrize("change", [{"dataset": "other"}, {"framework": "transformers"}, {"init_seed": 10}])
def test_equivalence_of_different_grids_is_refused(change):
    lab, runs = (make("fairseq", "pretrained", CENTRE) for make in (accuracies, runs_of))
    runs[9] = changed(runs[9], **change)
    with pytest.raises(processes.BenchError, match=r"equal grids|several"):
        equivalence.compare(lab, runs, SETTINGS)


def test_a_part_of_the_grid_may_be_compared(tmp_path, capsys):
    lab = accuracies("transformers", "random", CENTRE)
    runs = runs_of("transformers", "random", CENTRE) + runs_of("fairseq", "random", CENTRE)
    told = [{name: row.get(name) for name in equivalence.COLUMNS} for row in lab]
    write_table(tmp_path / "lab.csv", equivalence.COLUMNS, told)
    write_table(tmp_path / "runs.csv", list(runs[0]), runs)
    compared = ["compare", str(tmp_path / "lab.csv"), str(tmp_path / "runs.csv")]
    assert main(compared) == 1
    assert "only Seedbed has" in capsys.readouterr().err
    assert main([*compared, "--frameworks", "transformers"]) == 0
    assert "| Transformers | random | 2 | equivalent |" in capsys.readouterr().out
    assert main([*compared, "--inits", "pretrained"]) == 1
    assert "has no rows of" in capsys.readouterr().err
    assert main(["compare", str(tmp_path / "no.csv"), compared[2]]) == 1
    assert "no.csv" in capsys.readouterr().err


@pytest.mark.parametrize("change", [{"code": "2"}, {"gpus": ["X"]}, {"versions": {"torch": "2"}}, {}])
def test_measurements_of_other_code_or_machines_are_of_something_else(tmp_path, change):
    work = workload.make_workload(tmp_path, [], {}, 1)
    asked = SimpleNamespace(repeats=1, runs=3, slice=[1, 2, 3])
    machine = {
        "cpu": "C",
        "gpus": [],
        "usable_cpus": 2,
        "versions": {"torch": "1"},
        "code": "1",
        "load_before": 1,
    }
    first = sidebyside.measured(work, asked, machine)
    other = sidebyside.measured(work, asked, {**machine, **change, "load_before": 2})
    assert (first == other) == (not change)


def test_measurements_of_other_settings_are_not_gone_on_with(tmp_path):
    path = tmp_path / "slice.json"
    first = sidebyside.Progress(path, False, "these settings")
    assert first.get("a", lambda: 1) == 1
    assert sidebyside.Progress(path, True, "these settings").get("a", lambda: 2) == 1
    with pytest.raises(processes.BenchError, match="other settings"):
        sidebyside.Progress(path, True, "others")
    assert sidebyside.Progress(path, False, "others").get("a", lambda: 2) == 2


def test_the_hash_of_the_code_depends_on_texts_and_names(tmp_path, monkeypatch):
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "one.py").write_text("x = 1\n")
    monkeypatch.setattr(processes, "ROOT", tmp_path)
    codes = [processes.code_of()]
    (tmp_path / "scripts" / "one.py").write_text("x = 2\n")
    codes.append(processes.code_of())
    (tmp_path / "scripts" / "one.py").rename(tmp_path / "scripts" / "two.py")
    codes.append(processes.code_of())
    assert len(set(codes)) == 3


TRAINED = {"dataset": "d", "model": "m", "recipe": {"learning_rate": 1e-5}, "recipe_weights": False}


@pytest.mark.parametrize(
    ("asked", "beside", "told"),
    [
        ({}, True, None),
        ({}, False, None),
        ({"model": "n"}, True, "another model"),
        ({"model": "n"}, False, "another model"),
        ({"recipe": {"learning_rate": 2e-5}}, True, "another recipe"),
        ({"recipe_weights": True}, True, "another recipe_weights"),
    ],
)
def test_runs_of_another_kind_are_not_added_to_a_csv(tmp_path, asked, beside, told):
    names = dict.fromkeys(equivalence.COLUMNS, "")
    rows = [
        {name: value for name, value in (names | row).items() if name in names}
        for row in accuracies("transformers", "random", [0.5, 0.6])
    ]
    path = tmp_path / "lab.csv"
    assert equivalence.kept_rows(path, TRAINED) == []
    write_table(path, equivalence.COLUMNS, rows)
    if beside:  # files from before there was the key do not have it
        files.write_json(tmp_path / "lab.machine.json", {"trained": TRAINED})
    if told is None:
        assert len(equivalence.kept_rows(path, TRAINED | asked)) == 2
        return
    with pytest.raises(processes.BenchError, match=f"{told} than"):
        equivalence.kept_rows(path, TRAINED | asked)


def test_margins_are_those_of_the_experiment(tmp_path):
    config = tmp_path / "one.yaml"
    config.write_text("statistics: {equivalence_margin: {pretrained: 0.02, random: 0.03}}\n")
    found = workload.statistics_of([config])
    assert found["equivalence_margin"] == {"pretrained": 0.02, "random": 0.03}
    assert found["confidence"] == workload.statistics_of([])["confidence"] == 0.95


def test_the_best_validation_epoch_counts():
    def epoch(accuracy, loss, test):
        return {"validation": {"accuracy": accuracy, "loss": loss}, "test": {"accuracy": test, "loss": 1.0}}

    epochs = [epoch(0.7, 0.5, 0.1), epoch(0.8, 0.6, 0.2), epoch(0.8, 0.4, 0.3), epoch(0.8, 0.4, 0.4)]
    assert equivalence.selected(epochs) == {
        "best_epoch": 3, "validation_accuracy": 0.8, "test_accuracy": 0.3,
    }  # fmt: skip


# --- configs ---


def test_settings_are_merged_as_snakemake_merges_configs():
    base = {"recipes": {"lab": {"epochs": 5, "adam_betas": [0.9, 0.98]}}, "gpus": {"runs_per_gpu": 1}}
    changed = workload.merged(base, workload.setting("recipes.lab.adam_betas=[0.9, 0.999]"))
    assert changed["recipes"]["lab"] == {"epochs": 5, "adam_betas": [0.9, 0.999]}
    assert workload.setting("fused_seeds=true") == {"fused_seeds": True}
    with pytest.raises(processes.BenchError, match="KEY=VALUE"):
        workload.setting("fused_seeds")


@pytest.mark.parametrize(
    ("overlay", "told"),
    [
        ({"recipes": {"demo": {"sweep": {"epochs": [1, 2]}}}}, "one each"),
        ({"recipes": {"demo": {"schedule_power": 2.0}}}, "linear schedule"),
        ({"recipes": {"demo": {"epoch": 2}}}, "epoch"),
    ],
)
def test_an_experiment_that_the_lab_s_way_cannot_do_is_an_error(tmp_path, overlay, told):
    with pytest.raises(processes.BenchError, match=told):
        workload.make_workload(tmp_path, [], overlay, 1)


# --- processes ---


@pytest.mark.parametrize(
    ("overlay", "mode", "on_gpu", "told"),
    [
        ({"fused_seeds": True}, "grid", True, "measure --kind fused"),
        ({"evaluation": {"test_curves": True}}, "slice", False, "test_curves"),
        ({"grid": {"seeds": [{"init": 0, "data": 1}]}}, "grid", True, "one number"),
        ({"evaluation": {"test_curves": True}}, "grid", False, None),
        ({}, "slice", True, None),
    ],
)
def test_what_the_tables_would_tell_wrongly_is_refused(tmp_path, overlay, mode, on_gpu, told):
    work = workload.make_workload(tmp_path, [], overlay, 1)
    if told is None:
        sidebyside.check(work, mode, on_gpu)
        return
    with pytest.raises(processes.BenchError, match=told):
        sidebyside.check(work, mode, on_gpu)


def test_a_failing_process_is_an_error_with_the_end_of_its_log(tmp_path):
    log = tmp_path / "log.txt"
    with pytest.raises(processes.BenchError, match=r"exit code 3 .*\n.*log.txt:\nthe reason") as caught:
        processes.run([sys.executable, "-c", "print('the reason'); raise SystemExit(3)"], log)
    assert str(log) in str(caught.value)


SLEEPER = (
    "import subprocess, sys; print(subprocess.Popen(['sleep', '600']).pid, flush=True); sys.stdin.read()"
)


def test_a_signal_ends_all_that_the_benchmark_started(tmp_path):
    code = (
        "import sys; from pathlib import Path; from bench import processes as p; p.end_on_signals(); "
        f"p.run([sys.executable, '-c', {(SLEEPER + '; import time; time.sleep(600)')!r}], Path(sys.argv[1]))"
    )
    log = tmp_path / "log.txt"
    environment = {**os.environ, "PYTHONPATH": str(Path(processes.__file__).parents[1])}
    bench = subprocess.Popen([sys.executable, "-c", code, str(log)], env=environment)
    try:
        pid = _wait_for(lambda: int(log.read_text()) if log.exists() and log.read_text() else None)
        parent = psutil.Process(pid).ppid()
        bench.send_signal(signal.SIGTERM)
        assert bench.wait(300) == 128 + signal.SIGTERM
        assert not [one for one in (pid, parent) if _is_running(one)]
    finally:
        bench.kill()
        bench.wait()


def _wait_for(tell):
    for _ in range(600):
        if (found := tell()) is not None:
            return found
        time.sleep(0.1)
    raise AssertionError("nothing happened within a minute")


def _is_running(pid):
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_one_failure_ends_the_other_processes(tmp_path):
    python = [sys.executable, "-c"]
    jobs = [([*python, "raise SystemExit(1)"], tmp_path / "a"), (["sleep", "600"], tmp_path / "b")]
    begin = time.monotonic()
    with pytest.raises(processes.BenchError, match="exit code 1"):
        processes.run_all(jobs, 2, lambda place, wall: None)
    assert time.monotonic() - begin < 300
    done = []
    processes.run_all(
        [([*python, ""], tmp_path / str(place)) for place in range(3)], 2, lambda *told: done.append(told)
    )
    assert sorted(place for place, _ in done) == [0, 1, 2]


def test_scripts_are_told_from_snakemake_s_own_processes(tmp_path):
    script = tmp_path / ".snakemake" / "scripts" / "tmpab_c1.finetune_fairseq.py"
    script.parent.mkdir(parents=True)
    busy = "import time\nend = time.process_time() + {}\nwhile time.process_time() < end: pass\n"
    script.write_text(busy.format(1.5))
    main = (
        busy.format(1) + "import subprocess, sys\nsubprocess.run([sys.executable, sys.argv[1]], check=True)\n"
    )
    usage = processes.run([sys.executable, "-c", main, str(script)], tmp_path / "log.txt", watch=True)
    watch = usage.snakemake
    ((name, begin, end, cpu),) = watch.scripts
    assert 1 < cpu < 2.5
    assert name == "finetune_fairseq"
    assert 0 < watch.working < end - begin < usage.wall - 0.5
    assert 1 <= watch.own_cpu < usage.cpu - 1
    own = watch.own_seconds(usage.wall, 2)
    assert own == pytest.approx(usage.wall - watch.working + watch.own_cpu_working / 2)


def test_when_a_process_began():
    before = time.time()
    with subprocess.Popen(["sleep", "30"]) as process:
        after = time.time()
        begin = processes.began(psutil.Process(process.pid))
        process.kill()
    assert before - 0.3 < begin < after + 0.3  # the kernel counts hundredths; the clocks are read in turn


def test_seconds_that_several_spans_cover():
    assert processes.covered([(0, 2), (1, 3), (5, 6), (5.5, 5.6)]) == 4
    assert processes.covered([]) == 0


def test_a_run_is_matched_to_its_process(tmp_path):
    """By the order in which both ended; what an earlier call of Snakemake made does not count."""
    work = workload.make_workload(tmp_path, [], {}, 1)
    now = time.time()

    def write(seed: int, seconds: float, written: float) -> None:
        path = work.results / work.experiment / "runs" / f"seed{seed}" / "run.json"
        record = {
            "run": {"framework": "fairseq", "init": "random", "init_seed": seed},
            "seconds": {"start_up": 1.0, "train": seconds - 2.0, "evaluate": 1.0, "total": seconds},
            "updates": 10, "padding_share": 0.0, "peak_memory_mib": 100.0, "samples_per_second": 5.0,
            "tokens_per_second": 50.0, "device": "cpu", "evaluation": {"test_curves": seed == 1},
        }  # fmt: skip
        files.write_json(path, record)
        os.utime(path, (written, written))

    write(0, 30.0, now - 4)
    write(1, 20.0, now - 8)
    write(2, 9.0, now - 100)
    scripts = [
        ("finetune", now - 40, now - 3.5, 31.0),
        ("finetune", now - 40, now - 7.5, 21.0),
    ]
    scripts.append(("bag_of_words", now - 40, now - 20, 5.0))
    usage = processes.Usage(wall=50.0, cpu=60.0, snakemake=processes.Watch(scripts=scripts))
    sizes = {"train": 80, "validation": 10, "test": 20}
    rows = sidebyside._seedbed_rows(work, usage, 0, sizes)
    epochs = work.recipe["epochs"]
    assert [row["seed"] for row in rows] == [1, 0]
    assert [row["wall_seconds"] for row in rows] == pytest.approx([32.5, 36.5])
    assert [row["cpu_seconds"] for row in rows] == [21.0, 31.0]
    told = (epochs + 1) * 10 + 20
    assert [row["examples_evaluated"] for row in rows] == [told + epochs * 20, told]
    (row,) = sidebyside._seedbed_rows(work, usage, 0, sizes, seed=0)
    assert row["seed"] == 0


# --- runs of the lab's way ---


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A prepared workload of generated texts, cut to 9 tokens: 2 epochs at 4 a batch."""
    folder = tmp_path_factory.mktemp("bench")
    make_fairseq_job(folder, make_run("fairseq"))
    inputs, work = folder / "inputs", folder / "work"
    data, models = (work / "results" / name for name in ("data/reviews_fr", "models/roberta_tiny_fr"))
    for target, source in (
        (data / "labels.json", "labels.json"),
        (data / "roberta_tiny_fr" / "tokens", "tokens"),
        (data / "roberta_tiny_fr" / "binarized", "binarized"),
        (models / "model.json", "model.json"),
        (models / "fairseq", "fairseq"),
        (models / "huggingface", "transformers"),
    ):
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(inputs / source)
    recipe = {"epochs": 2, "batch_size": 4, "max_positions": 9}
    made = workload.make_workload(work, [], {"device": "cpu", "recipes": {"demo": recipe}}, 1)
    workload.cut_plain_data(made)
    return made


def lengths(lab, split):
    """Tokens of every text that the runs see."""
    return [min(9, len(row["ids"])) for row in files.read_jsonl(lab.data / "tokens" / f"{split}.jsonl")]


@pytest.mark.parametrize(("framework", "init"), [("fairseq", "pretrained"), ("transformers", "random")])
def test_a_run_of_the_lab_s_way(lab, framework, init):
    reports = []
    workload.run_plain(lab, [(framework, init, 1)], 1, lambda place, report: reports.append(report))
    (report,) = reports
    assert report["updates"] == 10  # 18 examples at 4 a batch, twice
    assert report["examples_evaluated"] == {"fairseq": 36, "transformers": 26}[framework]
    seconds = report["seconds"]
    assert {"start_up", "train", "evaluate", "total"} <= set(seconds)
    assert sum(seconds[name] for name in seconds if name != "total") == pytest.approx(
        seconds["total"], abs=0.01
    )
    assert seconds["total"] <= report["wall_seconds"]
    tokens = 2 * sum(lengths(lab, "train"))
    assert report["tokens_per_second"] * seconds["train"] == pytest.approx(tokens, rel=0.01)
    assert report["samples_per_second"] * seconds["train"] == pytest.approx(2 * SIZES["train"], rel=0.01)
    padded = 2 * SIZES["train"] * 9
    if framework == "transformers":
        assert report["padding_share"] == pytest.approx(1 - tokens / padded)
    else:  # to the longest of a batch
        assert 0 <= report["padding_share"] <= 1 - tokens / padded
    assert len(report["epochs"]) == 2
    for epoch in report["epochs"]:
        right = SIZES["validation"] * epoch["validation"]["accuracy"]
        assert right == pytest.approx(round(right))
    if framework == "fairseq":  # whose log has the same, rounded
        log = (lab.folder / "plain" / f"fairseq_{init}_1" / "log.txt").read_text(encoding="utf-8")
        told = re.findall(r"on 'test' subset .*\| accuracy ([\d.]+)", log)
        found = [100 * epoch["test"]["accuracy"] for epoch in report["epochs"]]
        assert [float(value) for value in told] == pytest.approx(found, abs=0.051)
    assert report["peak_memory_mib"] > 50


def test_every_epoch_has_a_test_accuracy_where_equivalence_asks_for_it(lab):
    reports = []
    cells = [("transformers", "pretrained", 0)]
    workload.run_plain(lab, cells, 2, lambda place, report: reports.append(report), test_every_epoch=True)
    assert [set(epoch) for epoch in reports[0]["epochs"]] == [{"validation", "test"}] * 2
    assert equivalence.selected(reports[0]["epochs"])["best_epoch"] in (1, 2)


def test_the_lab_s_way_may_start_from_the_recipe_s_weights(lab):
    reports = []
    cells = [("transformers", "random", 1)]
    for recipe_weights in (False, True, True):
        workload.run_plain(
            lab, cells, 1, lambda place, report: reports.append(report), recipe_weights=recipe_weights
        )
    own, recipe, again = (report["epochs"][0]["validation"]["loss"] for report in reports)
    assert own != recipe == again


def test_a_run_with_another_number_of_updates_is_an_error(lab, tmp_path):
    files.write_json(tmp_path / "report.json", {"updates": 9, "epochs": [{}, {}]})
    with pytest.raises(processes.BenchError, match=r"\(9, 2\) updates"):
        workload.checked_report(lab, tmp_path / "report.json")


# --- scaling ---


def grid_row(**changed):
    """12 runs on two places in 100 s: of 200 seconds they take 120 to train and 12 to start."""
    row = dict.fromkeys(scaling.COLUMNS, "")
    row |= {
        "mode": "separate", "seeds": 3, "gpus": 1, "runs_per_gpu": 2, "batch_runs": 1, "at_once": 1,
        "batch_size": 8, "precision": "float32", "dataset": "d", "model": "m", "inits": "pretrained random",
        "frameworks": "fairseq transformers", "cores": 2, "device": "cuda: X", "runs": 12, "units": 12,
        "lanes": 2, "wall_seconds": 100.0, "start_up_seconds": 1.0, "train_seconds": 10.0,
        "write_seconds": 0.0, "evaluate_seconds": 0.5, "snakemake_seconds": 3.0, "samples_per_second": 1080.0,
        "peak_memory_mib": 800.0,
    }  # fmt: skip
    return row | changed


@pytest.mark.parametrize(
    ("asked", "threads", "lanes"),
    [
        ({}, 1, 8),
        ({}, 16, 1),  # a run is at work all the same
        ({"gpus": 2, "runs_per_gpu": 3}, 1, 6),
        ({"gpus": 2, "runs_per_gpu": 6}, 1, 8),
        ({"kind": "batches", "at_once": 3}, 1, 6),
        ({"kind": "batches", "at_once": 3, "gpus": 1}, 1, 3),
    ],
)
def test_how_many_runs_may_be_at_work_at_a_time(asked, threads, lanes):
    given = {"kind": "separate", "cores": 8, "gpus": 0, "runs_per_gpu": 1, "at_once": 1, **asked}
    assert scaling._lanes(SimpleNamespace(**given), threads) == lanes


def test_what_the_time_of_a_grid_goes_to():
    assert scaling.limits(grid_row()) == "training 60%, between runs and after them 31%, start-up 6%"
    fused = grid_row(mode="fused", units=4, lanes=1, train_seconds=20.0, start_up_seconds=4.0)
    assert scaling.limits(fused) == "training 80%, start-up 16%, evaluation 2%"


def test_the_page_of_a_csv_of_measurements(tmp_path):
    from seedbed.core.rows import write_table

    rows = [grid_row(), grid_row(seeds=10, runs=40, units=40, wall_seconds=300.0)]
    rows += [
        grid_row(mode="fused", units=4, wall_seconds=60.0),
        grid_row(mode="fused", seeds=10, runs=40, units=4, wall_seconds=90.0, note="a note"),
        grid_row(batch_size=32, wall_seconds=40.0),
    ]
    write_table(tmp_path / "scaling.csv", scaling.COLUMNS, rows)
    command = [
        sys.executable,
        "benchmarks/bench",
        "scaling",
        str(tmp_path / "scaling.csv"),
        str(tmp_path / "page.md"),
    ]
    done = subprocess.run(command, cwd=processes.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    for name in ("scaling_seeds", "scaling_batch_size"):
        assert f"({name}.svg)" in text
        assert (tmp_path / f"{name}.svg").stat().st_size > 5000
        assert (tmp_path / f"{name}.png").exists()
    assert "scaling_gpus" not in text  # one number of GPUs is no curve
    line = next(line for line in text.splitlines() if "a note" in line)
    cells = [cell.strip() for cell in line.split("|")[1:-1]]
    held = ["fairseq, transformers", "pretrained, random", "float32", "cuda: X", "1"]
    assert cells[:7] == ["fused", "10", *held]
    assert cells[10:12] == ["90.0", "2.25"]


def test_a_curve_over_gpus_takes_the_fastest_way_to_use_each_number_of_them(tmp_path, monkeypatch):
    """A host with more GPUs has more cores, and each GPU fewer of the runs."""
    drawn = {}
    monkeypatch.setattr(scaling, "_draw", lambda column, name, lines, *more: drawn.update({column: lines}))
    rows = [
        grid_row(gpus=2, runs_per_gpu=6, cores=32, wall_seconds=28.0),
        grid_row(gpus=1, runs_per_gpu=6, cores=16, wall_seconds=50.0),
        grid_row(gpus=1, runs_per_gpu=12, cores=16, wall_seconds=42.0),
        grid_row(gpus=1, runs_per_gpu=12, cores=16, wall_seconds=9.0, seeds=1),
    ]
    assert [name for name, _ in scaling.draw(rows, tmp_path)] == ["scaling_seeds", "scaling_gpus"]
    (line,) = drawn["gpus"].values()
    assert [(row["gpus"], row["wall_seconds"]) for row in line] == [(1, 42.0), (2, 28.0)]


def test_a_grid_on_some_gpus_takes_the_first_visible_ones(monkeypatch):
    asked = SimpleNamespace(kind="separate", seeds=2, gpus=2, runs_per_gpu=3)
    monkeypatch.setattr(scaling.gpus, "ask_driver", lambda: (None, "no driver"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,1,2")
    assert scaling._overlay(asked)["gpus"] == {"devices": ["3", "1"], "runs_per_gpu": 3}
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert scaling._overlay(asked)["gpus"]["devices"] == [0, 1]


def test_what_a_saving_is_worth_is_a_ratio_of_medians():
    def row(without, cpu):
        seconds = dict.fromkeys(ablation.SHOWN, 2 * cpu)
        return {"framework": "fairseq", "without": without, **seconds, "cpu_seconds": cpu}

    rows = [row("nothing", cpu) for cpu in (10.0, 12.0, 50.0)] + [
        row("packed batches", cpu) for cpu in (30.0, 18.0)
    ]
    lines = ablation.summary(rows).splitlines()
    assert lines[2].startswith("| fairseq | nothing | 12.0 (1.00) | 24.0 (1.00) |")
    assert lines[3].startswith("| fairseq | packed batches | 24.0 (2.00) | 48.0 (2.00) |")


def test_what_can_be_left_out_depends_on_framework_and_device():
    plain = {"cuda_graphs": False, "settings": {"precision": "float32"}}
    fast = {"cuda_graphs": True, "settings": {"precision": "tf32"}}
    assert ablation.savings("fairseq", "cpu", plain)[:2] == ["nothing", "packed batches"]
    short = plain | {"settings": {"precision": "bfloat16"}}
    assert "lower precision" in ablation.savings("fairseq", "cpu", short)
    assert "lower precision" not in ablation.savings("fairseq", "cpu", plain)
    always = ["batches copied meanwhile", "GPU made ready meanwhile", "fewer imports"]
    assert ablation.savings("transformers", "gpu", plain) == ["nothing", *always]
    named = ["nothing", "CUDA graphs", "lower precision", *always]
    assert ablation.savings("transformers", "gpu", fast) == named


@pytest.mark.parametrize(
    ("framework", "without", "padded"),
    [
        ("fairseq", "fused Adam", False),
        ("fairseq", "packed batches", True),
        ("transformers", "packed batches", True),
    ],
)
def test_a_run_without_a_saving(tmp_path, framework, without, padded):
    """Its batches are padded where packing is what it lacks; what else is left out, the next tests say."""
    run = make_run(framework)
    inputs = make_fairseq_job(tmp_path, run).tokens.parent
    data, model = tmp_path / "results/data/generated", tmp_path / "results/models/tiny"
    places = {
        "tokens": data / "tiny/tokens",
        "binarized": data / "tiny/binarized",
        "labels.json": data / "labels.json",
        "fairseq": model / "fairseq",
        "transformers": model / "huggingface",
        "model.json": model / "model.json",
    }
    for source, target in places.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        (inputs / source).rename(target)
    experiment = tmp_path / "results/one"
    request = {"run": run, "experiment": str(experiment), "threads": 1, "without": without}
    request["pace"] = {"interval": 60, "max_share": 0.02}
    files.write_json(tmp_path / "request.json", request)
    script = Path(workload.HERE) / "without.py"
    done = subprocess.run([sys.executable, str(script), str(tmp_path / "request.json")], check=False)
    assert done.returncode == 0
    (path,) = experiment.glob("runs/**/run.json")
    assert (files.read_json(path)["padding_share"] > 0) == padded


FAIRSEQ_PROBE = """
import fairseq.dataclass.utils, torch
from fairseq.optim.adam import FairseqAdamConfig
from omegaconf import OmegaConf
from seedbed.training.fairseq.adam import FusedAdam, SeedbedAdam

def probe():
    settings = {**vars(FairseqAdamConfig()), "lr": [0.1], "tpu": False}
    adam = SeedbedAdam(OmegaConf.create(settings), [torch.nn.Parameter(torch.ones(2))])._optimizer
    return isinstance(adam, FusedAdam), fairseq.dataclass.utils.compose.__module__.startswith("seedbed.")
"""
TRANSFORMERS_PROBE = """
from pathlib import Path
from types import SimpleNamespace
import torch
from builders_training import make_run
from seedbed.training.transformers import base_trainer as transformers_loop

run = make_run("transformers")
job = SimpleNamespace(settings=run["settings"], run=run, work=Path("."))
recorder = SimpleNamespace(device=torch.device("cuda"))

def probe():
    arguments = transformers_loop.training_arguments(job, recorder, "float32")
    return arguments.accelerator_config.non_blocking, running.gpus.wake() is not None
"""


@pytest.mark.parametrize(
    ("framework", "probe", "left_out"),
    [
        ("fairseq", FAIRSEQ_PROBE, ["fused Adam", "settings without Hydra"]),
        ("transformers", TRANSFORMERS_PROBE, ["batches copied meanwhile", "GPU made ready meanwhile"]),
    ],
)
def test_a_saving_is_there_until_it_is_left_out(tmp_path, framework, probe, left_out):
    code = f"""
import importlib, sys
sys.path.insert(0, {str(workload.HERE)!r})
from without import SAVINGS, TRAINERS
from seedbed.running import runner as running
trainer = importlib.import_module(TRAINERS[{framework!r}])
{probe}
print(*probe())
for name in {left_out!r}:
    SAVINGS[name].before()
    SAVINGS[name].how(trainer)
    print(*probe())
"""
    out, _ = run_python(code, cwd=tmp_path).communicate(timeout=300)
    assert out.splitlines() == ["True True", "False True", "False False"]


@pytest.mark.parametrize(("without", "found"), [("nothing", "None 0"), ("fewer imports", "module 1")])
def test_all_is_imported_where_fewer_imports_are_left_out(without, found):
    """pandas, which runs have no use for; and garbage is collected meanwhile."""
    code = f"""
import gc, sys, types
sys.path.insert(0, {str(workload.HERE)!r})
from without import SAVINGS
from seedbed.core import imports; from seedbed.running import runner as running
SAVINGS[{without!r}].before()
running.leave_out_unused([types.SimpleNamespace(run={{"task": "classification", "method": "full"}})])
with imports.uncollected():
    import transformers.trainer
    collected = gc.isenabled()
module = sys.modules["pandas"]
print(getattr(type(module), "__name__", "").replace("NoneType", "None"), int(collected))
"""
    out, _ = run_python(code).communicate(timeout=300)
    assert out.strip() == found
