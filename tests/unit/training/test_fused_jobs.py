"""Fused seeds, all around their trainer: which runs are a group, who claims them, what a failure tells."""

import json
import logging
import signal
import sys
import types
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from builders import load_config
from builders_jobs import finish, let_end_when_looked_at, make_job, note_of, run_python

from seedbed.config.plan import Plan
from seedbed.config.runs import build_runs
from seedbed.core import interruption
from seedbed.core.errors import SeedbedError
from seedbed.running import batches, claims, jobs, publishing, runner, trainers
from seedbed.running.gpu_slots import FOLDER_VARIABLE
from seedbed.running.gpus import FAKE

ROOT = Path(__file__).parents[3]
SEEDS = [[0, 0], [1, 1], [2, 2]]
BATCH = "books/tiny/transformers/000"


def group(folder: Path, **run) -> list[jobs.Job]:
    """Jobs of three fused seeds of a cell."""
    made = (make_job(folder, seed=seed, fused=SEEDS, **run) for seed, _ in SEEDS)
    return [replace(job, batch=BATCH) for job in made]


def kept(job: jobs.Job) -> bool:
    return publishing.is_result(job.work / "kept", job)


# --- which runs are a group ---


def planned(tmp_path, size: int = 1, **grid) -> Plan:
    config = load_config([ROOT / "config.yaml"]) | {"results": str(tmp_path), "fused_seeds": True}
    config["grid"] |= grid
    return Plan(config | {"batches": {"runs": size}})


def members(plan: Plan) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for run in plan.runs:
        found.setdefault(run.batch, []).append(f"{run.framework} {run.init} {run.recipe} {run.seed}")
    return found


def test_a_batch_is_all_seeds_of_a_recipe_by_the_names_of_other_batches(tmp_path):
    plan = planned(tmp_path, seeds=[0, 1, {"init": 0, "data": 3}])
    assert members(plan) == {
        f"reviews_fr/roberta_tiny_fr/{framework}/000": [
            f"{framework} {init} demo {seed}"
            for seed in ("seed0", "seed1", "seed0-3")
            for init in ("pretrained", "random")
        ]
        for framework in ("fairseq", "transformers")
    }


def test_params_tell_the_group_and_only_where_seeds_are_fused(tmp_path):
    config = load_config([ROOT / "config.yaml"]) | {"results": str(tmp_path)}
    config["grid"]["seeds"] = [0, 2, {"init": 1, "data": 5}]
    names = {"dataset": "reviews_fr", "model": "roberta_tiny_fr", "init": "random", "recipe": "demo"}
    wildcards = SimpleNamespace(**names, seed="seed2", batch="000")
    group = [[init, *seeds] for seeds in ([0, 0], [2, 2], [1, 5]) for init in ("pretrained", "random")]
    alone, fused = Plan(config), Plan(config | {"fused_seeds": True})
    run = fused.fairseq_run(wildcards)
    assert run.pop("fused") == group
    assert run == alone.fairseq_run(wildcards)
    together = fused.fairseq_batch_runs(wildcards)
    assert sorted([one["init"], one["init_seed"], one["data_seed"]] for one in together) == sorted(group)
    assert all(one["fused"] == group for one in together)
    assert (alone.batched, fused.batched) == (False, True)
    assert fused.transformers_batch(wildcards)[0].endswith("roberta_tiny_fr/transformers/000.json")


def test_a_group_asks_for_memory_by_its_seeds_and_for_the_time_of_all(tmp_path):
    plan = planned(tmp_path, seeds=list(range(10)))
    assert plan.batch_memory(None, 1) == 3000 + 19 * 800
    assert plan.batch_memory(None, 2) == 2 * plan.batch_memory(None, 1)
    assert plan.batch_minutes(None, 1) == 20 * 60
    assert planned(tmp_path, 2, seeds=[0, 1, 2]).batch_minutes(None, 1) == 2 * 60
    assert (plan.batch_threads, plan.run_threads) == (1, 1)
    assert (plan.run_memory(None, 1), plan.run_minutes(None, 1)) == (500, 10)


def test_tables_are_made_without_a_word_of_groups(tmp_path):
    plan = planned(tmp_path)
    reporting = plan.aggregation()
    assert "fused_seeds" not in reporting
    assert [run.folder for run in build_runs(reporting)] == [run.folder for run in plan.runs]


@pytest.mark.parametrize("fused", [True, False])
def test_the_rule_of_a_run_adopts_where_seeds_are_fused_and_trains_elsewhere(fused, tmp_path, monkeypatch):
    raw = load_config([ROOT / "config.yaml"]) | {"fused_seeds": fused, "results": str(tmp_path / "results")}
    plan = Plan(raw)
    names = ("dataset", "model", "init", "recipe", "seed")
    place = SimpleNamespace(**{name: getattr(plan.runs[0], name) for name in names})
    batch = getattr(plan, f"{plan.runs[0].framework}_batch")(place)
    assert (plan.batched, len(batch)) == (fused, fused)
    job = make_job(tmp_path)
    snakemake = SimpleNamespace(
        config=raw,
        params=SimpleNamespace(run=job.run),
        output=SimpleNamespace(run_json=str(job.target / "run.json")),
        input=Input(job, batch),
        threads=1,
        resources={},
    )

    def train(jobs, trainer, *more):
        raise RuntimeError(f"trains by {trainer}")

    monkeypatch.setattr(runner, "run", train)
    told = "has left no result" if fused else "trains by seedbed.training.transformers.classifier"
    with pytest.raises((SeedbedError, RuntimeError), match=told):
        runner.from_rule(snakemake)


class Input:
    """Input files of a rule."""

    def __init__(self, job: jobs.Job, batch: list[str]):
        self.tokens, self.weights = [job.tokens / "train.jsonl"], job.weights / "model.safetensors"
        self.model, self.batch, self.labels = job.model, batch, job.labels

    def get(self, name: str):
        return getattr(self, name, None)


# --- in the process that trains ---


@pytest.fixture
def trainer(monkeypatch):
    """A module that trains within no time; `calls` lists the names of the jobs of each call."""
    module = types.ModuleType("group_trainer")
    module.calls, module.fails = [], None

    def train(some):
        module.calls.append([job.name for job in some])
        for job in some:
            if module.fails is not None and job is some[-1]:
                raise module.fails
            finish(job, f"call {len(module.calls)}")
            publishing.publish(job)

    module.train = train
    monkeypatch.setitem(sys.modules, module.__name__, module)
    yield module
    for number in interruption.SIGNALS:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def together(some, **options) -> None:
    runner.run_together(some, "group_trainer", {}, **options)


def test_a_group_is_trained_in_one_call_and_then_adopted(tmp_path, trainer, caplog):
    caplog.set_level(logging.INFO)
    some = group(tmp_path)
    together(some)
    assert trainer.calls == [[job.name for job in some]]
    assert all(map(kept, some))
    assert not any(job.target.exists() for job in some)  # that is what the rules of the runs do
    together(group(tmp_path))
    assert len(trainer.calls) == 1
    assert caplog.text.count("adopted") == 3
    assert all([path.name for path in job.work.iterdir()] == ["kept"] for job in some)


def test_the_trainer_gets_what_has_no_result_in_the_order_of_the_group(tmp_path, trainer):
    some = group(tmp_path)
    together(some)
    publishing.forget(some[0].work)
    publishing.ask_anew(some[2].work)
    together(group(tmp_path))
    assert trainer.calls[1] == [some[0].name, some[2].name]
    assert [note_of(job.work / "kept") for job in some] == ["call 2", "call 1", "call 2"]


def test_runs_of_another_group_are_other_runs(tmp_path, trainer, caplog):
    caplog.set_level(logging.INFO)
    together(group(tmp_path))
    fused = [*SEEDS, [3, 3]]
    more = [replace(make_job(tmp_path, seed=seed, fused=fused), batch=BATCH) for seed, _ in fused]
    together(more)
    assert trainer.calls[1] == [job.name for job in more]
    assert caplog.text.count("not adopted") == 3


def test_all_are_owned_while_they_are_trained_and_free_after_a_failure(tmp_path, trainer):
    some = group(tmp_path)
    owners = []
    train = trainer.train
    trainer.train = lambda rest: (owners.extend(claims.owner(job.work) for job in some), train(rest))
    trainer.fails = ValueError("a fault")
    with pytest.raises(ValueError, match="a fault"):
        together(some)
    assert None not in owners
    assert [claims.owner(job.work) for job in some] == [None] * 3
    assert [kept(job) for job in some] == [True, True, False]
    trainer.fails = None
    together(some)
    assert trainer.calls[1] == [some[2].name]


TWIN = """
import types
from pathlib import Path
from builders_jobs import finish
from seedbed.running import publishing, runner as running
from test_fused_jobs import group
def train(jobs):
    print("training", flush=True)
    sys.stdin.readline()
    for job in jobs:
        finish(job, "the twin's")
        publishing.publish(job)
sys.modules["twin"] = types.ModuleType("twin")
sys.modules["twin"].train = train
running.run_together(group(Path(sys.argv[2])), "twin", {})
"""


def python(code: str, *arguments: object):
    """Start Python with this folder on its path, too."""
    return run_python(f"sys.path.insert(0, sys.argv[1])\n{code}", Path(__file__).parent, *arguments)


def test_a_living_twin_is_waited_for_and_what_it_made_is_adopted(tmp_path, trainer, monkeypatch):
    some = group(tmp_path)
    twin = python(TWIN, tmp_path)
    assert twin.stdout.readline() == "training\n"
    let_end_when_looked_at(twin, monkeypatch)
    together(some)
    assert twin.wait(timeout=300) == 0
    twin.stdout.close()
    assert not trainer.calls
    assert {note_of(job.work / "kept") for job in some} == {"the twin's"}


ANY_ORDER = """
import types
from pathlib import Path
from builders_jobs import finish
from seedbed.running import publishing, runner as running
from test_fused_jobs import group
def train(jobs):
    for job in jobs:
        print(job.name, flush=True)
        finish(job)
        publishing.publish(job)
sys.modules["any_order"] = types.ModuleType("any_order")
sys.modules["any_order"].train = train
jobs = group(Path(sys.argv[2]))
print("ready", flush=True)
sys.stdin.readline()
running.run_together(jobs[::-1] if sys.argv[3] == "back" else jobs, "any_order", {})
"""


OTHER = """
from pathlib import Path
from builders_jobs import finish
from seedbed.running import publishing
from test_fused_jobs import group
for job in group(Path(sys.argv[2])):
    (job.work / "owner.lock").unlink()
    finish(job, "the other's")
    publishing.publish(job)
"""


def test_a_group_that_was_taken_over_takes_the_results_of_the_other(tmp_path, trainer):
    some, calls = group(tmp_path), []

    def train(rest):
        calls.append(len(rest))
        python(OTHER, tmp_path).communicate(timeout=300)
        (rest[0].work / "run" / "metrics.csv").read_text()  # it is gone: the other has published it

    trainer.train = train
    together(some)
    assert calls == [3]
    assert {note_of(job.work / "kept") for job in some} == {"the other's"}


def test_twins_that_list_the_runs_in_other_orders_do_not_wait_for_each_other(tmp_path):
    group(tmp_path)  # whose inputs are made
    twins = [python(ANY_ORDER, tmp_path, way) for way in ("forth", "back", "back")]
    assert [twin.stdout.readline() for twin in twins] == ["ready\n"] * 3
    for twin in twins:
        twin.stdin.write("\n")
        twin.stdin.flush()
    told = [twin.communicate(timeout=300)[0].split() for twin in twins]
    assert [twin.returncode for twin in twins] == [0, 0, 0]
    names = [job.name for job in group(tmp_path)]
    assert sorted(name for one in told for name in one) == names
    assert all(map(kept, group(tmp_path)))


STOPPED = """
import time, types
from pathlib import Path
from seedbed.core import interruption; from seedbed.running import runner as running
from test_fused_jobs import group
def train(jobs):
    print("training", flush=True)
    while True:
        interruption.leave_if_requested()
        time.sleep(0.02)
sys.modules["stopped"] = types.ModuleType("stopped")
sys.modules["stopped"].train = train
running.run_together(group(Path(sys.argv[2])), "stopped", {})
"""


def test_a_group_that_is_asked_to_leave_frees_its_runs(tmp_path):
    process = python(STOPPED, tmp_path)
    assert process.stdout.readline() == "training\n"
    some = group(tmp_path)
    assert all(claims.owner(job.work) for job in some)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=300)
    assert process.returncode == 128 + signal.SIGTERM
    assert not any(claims.owner(job.work) for job in some)


def test_a_slot_of_a_gpu_is_held_for_the_group_and_none_where_all_is_there(tmp_path, trainer, monkeypatch):
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "slots"))
    config = {"gpus": {"devices": [f"{FAKE}7"], "runs_per_gpu": 1}}
    seen = []
    train = trainer.train
    trainer.train = lambda some: (seen.append(runner.gpu_slots.held()), train(some))
    for _ in range(2):
        runner.run_together(group(tmp_path), "group_trainer", config, slot=True)
    assert seen == [f"{FAKE}7"]
    assert runner.gpu_slots.held() is None
    hold = pytest.fail
    monkeypatch.setattr(runner.gpu_slots, "hold", hold)
    runner.run_together(group(tmp_path), "group_trainer", config, slot=True)


def test_a_gpu_without_enough_memory_for_so_many_seeds(tmp_path, trainer):
    trainer.fails = RuntimeError("CUDA error: out of memory")
    with pytest.raises(SeedbedError, match="the GPU has not enough memory") as caught:
        together(group(tmp_path))
    message = str(caught.value)
    for part in ("fewer than 3 seeds", "batches.runs", "other runs", "batch_size 8"):
        assert part in message
    assert "at_once" not in message


# --- in the process of the batch, which starts the one that trains ---

WORKER = """
import json, os, pathlib, signal
from seedbed.core import files; from seedbed.running import publishing
FOLDER = pathlib.Path({folder!r})
def train(jobs):
    with (FOLDER / "calls").open("a") as stream:
        stream.write(json.dumps([job.name for job in jobs]) + "\\n")
    for job in jobs:
        if (FOLDER / "kill").exists():
            os.kill(os.getpid(), signal.SIGKILL)
        if (FOLDER / "fail").exists() and job is jobs[1]:
            raise ValueError("seeds do not stack")
        for name in publishing.CONTENT:
            told = {{"identity": job.identity, "updates": 1, "total_updates": 1, "diverged": False}}
            told["differences"] = []
            files.write_json(job.work / "run" / name, told)
        publishing.publish(job)
"""


@pytest.fixture
def worker(tmp_path, monkeypatch):
    """A trainer that the process of the batch can import; gives the calls that it got."""
    (tmp_path / "group_worker.py").write_text(WORKER.format(folder=str(tmp_path)))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    yield lambda: [json.loads(line) for line in (tmp_path / "calls").read_text().splitlines()]
    interruption.watch()


def train(some, tmp_path, **options) -> None:
    batches.train(some, "group_worker", {}, tmp_path / "logs", **options)


def test_one_process_gets_all_runs_of_a_group_and_one_log_tells_of_them(tmp_path, worker):
    some = group(tmp_path)
    train(some, tmp_path, at_once=1)
    train(some, tmp_path, at_once=1)
    assert worker() == [[job.name for job in some]]
    (log,) = (tmp_path / "logs").iterdir()
    assert log.name == "quick.log"
    assert log.read_text().count("adopted") == 3
    done = tmp_path / "000.json"
    batches.write_results(done, some, tmp_path / "logs")
    told = json.loads(done.read_text())["runs"]
    assert {one["log"] for one in told.values()} == {str(log)}
    runner.adopt([replace(job, batch="") for job in some], done)
    assert all(publishing.is_result(job.target, job) for job in some)


def test_a_group_that_fails_names_every_run_that_has_no_result_once_with_the_error(tmp_path, worker):
    some = group(tmp_path)
    (tmp_path / "fail").touch()
    with pytest.raises(SeedbedError, match="2 of the 3 runs") as error:
        train(some, tmp_path)
    message = str(error.value)
    assert message.count("ValueError: seeds do not stack") == 1
    assert [job.name in message for job in some] == [False, True, True]
    assert str(batches.log_of(some[0], tmp_path / "logs")) in message
    assert "Traceback" in batches.log_of(some[0], tmp_path / "logs").read_text()
    assert worker() == [[job.name for job in some]]  # and not once more with the rest
    (tmp_path / "fail").unlink()
    train(some, tmp_path)
    assert worker()[1:] == [[job.name for job in some[1:]]]


def test_a_group_whose_process_is_killed_says_so_of_all_its_runs(tmp_path, worker):
    some = group(tmp_path)
    (tmp_path / "kill").touch()
    with pytest.raises(SeedbedError, match="3 of the 3 runs") as error:
        train(some, tmp_path)
    assert str(error.value).count("its process was killed by SIGKILL") == 1
    assert all(job.name in str(error.value) for job in some)
    assert len(worker()) == 1


def test_the_rule_of_a_batch_of_fused_seeds_has_the_trainer_of_both_frameworks(tmp_path, monkeypatch):
    some = group(tmp_path)
    called = []
    monkeypatch.setattr(batches, "train", lambda runs, trainer, *rest: called.append(trainer))
    folder = tmp_path / "results/small"
    for framework in ("fairseq", "transformers"):
        for fused in (True, False):
            runs = [{**job.run, "framework": framework} for job in some]
            runs = runs if fused else [
                {key: value for key, value in run.items() if key != "fused"} for run in runs
            ]  # fmt: skip
            done = folder / f"work/batches/books/tiny/{framework}/000.json"
            snakemake = SimpleNamespace(
                output=Output(done),
                params=SimpleNamespace(runs=runs),
                config={"batches": {"runs": 1, "at_once": 1}, "fused_seeds": fused},
                log=[str(tmp_path / "a.log")],
                resources={},
                threads=1,
            )
            batches.from_rule(snakemake)
            assert len(json.loads(done.read_text())["runs"]) == 3
    fused, alone = trainers.FUSED.module, ("fairseq.trainer", "transformers.classifier")
    assert called == [name for own in alone for name in (fused, f"seedbed.training.{own}")]


class Output(list):
    """Output files of a batch's rule."""

    def __init__(self, done: Path):
        super().__init__([str(done)])
        self.done = str(done)
