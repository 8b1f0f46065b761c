"""profiles/local-gpu with the real Snakefile; stand-ins for devices, so that runs train on the CPU."""

import json
import os
import re
import signal
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import builders_mps
import pytest
import yaml
from builders_mps import slots_folder  # noqa: F401 - a fixture
from builders_workflow import ROOT
from harness import PATIENCE, Project, failed, patiently, succeeded

from seedbed.running import gpu_slots, gpus

PROFILE = ROOT / "profiles" / "local-gpu"
RUNS = [
    f"results/small/runs/books/generated/{framework}/{init}/quick/seed0"
    for framework in ("fairseq", "transformers")
    for init in ("pretrained", "random")
]
# A driver that tells of two GPUs, and of the memory of any, in place of NVML.
DRIVER = """
from types import SimpleNamespace
class NVMLError(Exception): pass
NVMLError_NotFound = NVMLError
def nvmlInit(): pass
def nvmlShutdown(): pass
def nvmlDeviceGetCount(): return 2
def nvmlDeviceGetHandleByIndex(index): return index
def nvmlDeviceGetHandleByUUID(uuid): return uuid
def nvmlDeviceGetMemoryInfo(handle): return SimpleNamespace(total=80 * 2**30, free=80 * 2**30)
def nvmlDeviceGetComputeMode(handle): raise NVMLError("Not Supported")
def nvmlDeviceGetUUID(handle): return f"GPU-{handle}{handle}{handle}"
def nvmlDeviceGetName(handle): return "Test Card"
def nvmlDeviceGetMigMode(handle): raise NVMLError("Not Supported")
"""

LOOKING = """
import os, sys
sys.path.insert(0, "{scripts}")
from seedbed.running import mps
onstart:
    mps.begin(workflow, dict(device="auto", gpus=dict(devices=["fake0"], runs_per_gpu=2, mps=True)), 1)
rule all:
    input: "0.txt", "1.txt"
rule look:
    output: "{{number}}.txt"
    shell: "echo $CUDA_MPS_PIPE_DIRECTORY >> seen.txt; touch {{output}}; "
        + dict(success="", failure="false", SIGTERM="sleep 600")[os.environ["ENDING"]]
"""


@pytest.fixture
def environment(tmp_path, slots_folder):  # noqa: F811
    """Slots of the test's own, a GPU that nobody sees, and a driver that tells of two."""
    (tmp_path / "driver").mkdir()
    (tmp_path / "driver" / "pynvml.py").write_text(DRIVER)
    return {
        gpu_slots.FOLDER_VARIABLE: slots_folder,
        gpus.VISIBLE: "",
        "PYTHONPATH": str(tmp_path / "driver"),
    }


def profiled(project: Project, *arguments: str, targets=RUNS, **options):
    """Run Snakemake with the profile for the files of runs."""
    paths = [f"{run}/run.json" for run in targets]
    return project.snakemake("--profile", str(PROFILE), "--cores", "4", *arguments, "--", *paths, **options)


def provided(project: Project) -> str:
    """How many slots Snakemake says that there are."""
    return re.search(r"Provided resources: gpu_slot=\D*(\d+)", project.log_of_snakemake())[1]


def held(project: Project, run: str) -> tuple[str, datetime, datetime]:
    """The device of a run, and from when to when its process held it, by its log."""
    _, _, path = run.partition("runs/")
    dataset, model, framework, *rest = Path(path).parts
    log = project.folder / "results/small/logs" / f"finetune_{framework}" / dataset / model
    found = {}
    for line in log.joinpath(*rest).with_suffix(".log").read_text(encoding="utf-8").splitlines():
        for event in ("taken", "released"):
            before, mark, slot = line.partition(f"GPU slot {event}: ")
            if mark:
                moment = datetime.strptime(" ".join(before.split()[:2]), "%Y-%m-%d %H:%M:%S,%f")
                found[event] = (slot.partition(",")[0], moment)
    (device, since), (same, until) = found["taken"], found["released"]
    assert device == same
    return device, since, until


@pytest.mark.slow
def test_each_run_has_a_device_of_its_own_and_all_are_used(small, environment):
    project, config = small
    config["gpus"] = {"devices": ["fake0", "fake1"], "runs_per_gpu": 1}
    done = succeeded(profiled(project, config=config, environment=environment))
    assert "small: 4 of 4 runs to train, 2 at a time\n" in done.stderr
    assert provided(project) == "2"
    records = [json.loads((project.folder / run / "run.json").read_text(encoding="utf-8")) for run in RUNS]
    told = [record["hardware"]["gpu_id"] for record in records]
    slots = [held(project, run) for run in RUNS]
    assert [device for device, _, _ in slots] == told
    assert set(told) == {"fake0", "fake1"}
    for device, since, _ in slots:  # whoever held the device when this run took it
        assert sum(other == device and a <= since < b for other, a, b in slots) == 1
    assert any(a[1] < b[1] < a[2] for a in slots for b in slots)  # some did run side by side


@pytest.mark.slow
def test_runs_share_a_gpu_unless_the_config_says_otherwise(small, environment):
    project, config = small
    config["gpus"] = {"devices": ["fake0"]}
    two = ("--resources", "gpu_slot=2")  # hosts of tests may have no memory for two by themselves
    targets = [run for run in RUNS if "/transformers/" in run]
    told = succeeded(profiled(project, *two, targets=targets, config=config, environment=environment)).stderr
    assert "Runs share a GPU without NVIDIA's MPS" in told
    logs = list((project.folder / "results/small/logs/finetune_transformers").glob("*/*/*/*/*.log"))
    slots = [re.search(r"slot taken: (.*?)\n", path.read_text(encoding="utf-8"))[1] for path in logs]
    assert len(slots) == 2
    assert set(slots) <= {f"fake0, {number} of 12" for number in (1, 2)}


@pytest.mark.slow
def test_fused_runs_share_one_slot(small, environment):
    project, config = small
    config |= {"gpus": {"devices": ["fake0", "fake1"], "runs_per_gpu": 1}, "fused_seeds": True}
    config["grid"] |= {"seeds": [0, 1]}
    runs = [run.replace("seed0", seed) for run in RUNS for seed in ("seed0", "seed1")]
    succeeded(profiled(project, targets=runs, config=config, environment=environment))
    assert provided(project) == "2"
    records = [json.loads((project.folder / run / "run.json").read_text(encoding="utf-8")) for run in runs]
    told = [record["hardware"]["gpu_id"] for record in records]
    by_framework = [
        {gpu for gpu, run in zip(told, runs, strict=True) if f"/{framework}/" in run}
        for framework in ("fairseq", "transformers")
    ]
    assert sorted(map(sorted, by_framework)) == [["fake0"], ["fake1"]]
    logs = list((project.folder / "results/small/logs").glob("finetune_*_batch/*/*/*.log"))
    assert [path.read_text(encoding="utf-8").count("GPU slot taken") for path in logs] == [1, 1]


@pytest.mark.parametrize("ending", ["success", "failure", "SIGTERM"])
def test_jobs_that_share_a_gpu_find_an_mps_which_ends_with_their_workflow(tmp_path, environment, ending):
    """A Snakefile of two jobs that only look, and wait, in place of runs."""
    variables = os.environ | environment | builders_mps.install(tmp_path / "bin")
    (tmp_path / "Snakefile").write_text(LOOKING.format(scripts=ROOT / "scripts"), encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-m", "snakemake", "--cores", "2", "--set-resources", "look:gpu_slot=1"],
        cwd=tmp_path, env=variables | {"ENDING": ending}, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    seen = tmp_path / "seen.txt"
    if ending == "SIGTERM":
        for _ in patiently():
            if process.poll() is not None or (seen.exists() and len(seen.read_text().splitlines()) == 2):
                break
        os.killpg(process.pid, signal.SIGTERM)
    assert (process.wait(PATIENCE) == 0) == (ending == "success")
    pipe = Path(environment[gpu_slots.FOLDER_VARIABLE]) / f"mps-{os.geteuid()}" / "pipe"
    assert seen.read_text() == f"{pipe}\n" * 2
    journal = Path(variables[builders_mps.JOURNAL])
    for _ in patiently():
        if (events := [json.loads(line)["event"] for line in journal.read_text().splitlines()])[1:]:
            break
    assert events == ["start", "quit"]


def test_a_workflow_that_insists_on_mps_is_refused_without_it(small, environment, tmp_path):
    project, config = small
    environment |= builders_mps.install(tmp_path / "bin") | {"MPS_FAILS": "Permission denied"}
    config["gpus"] = {"devices": ["fake0"], "runs_per_gpu": 2, "mps": True}
    told = failed(profiled(project, config=config, environment=environment))
    assert "its daemon does not start: Permission denied" in told
    assert "overlay.yaml" in told  # the file of the key, and its line
    assert "Traceback" not in told
    assert not (project.folder / "results").exists()


def test_without_a_gpu_nothing_is_started(small, environment):
    project, config = small
    told = failed(profiled(project, "--resources", "gpu_slot=1", config=config, environment=environment))
    assert "there is none" in told
    assert "gpus.devices: auto" in told
    assert "CUDA_VISIBLE_DEVICES: ''" in told
    assert "GPU-000" in told  # the driver's answer
    assert provided(project) == "1"  # the user's number counts
    assert not (project.folder / "results").exists()


def test_without_a_gpu_a_dry_run_still_shows_the_jobs(small, environment):
    project, config = small
    done = succeeded(profiled(project, "--dry-run", config=config, environment=environment))
    assert "finetune_fairseq" in done.stdout
    assert "gpu_slot=1" in done.stdout


@pytest.mark.parametrize("name", ["gpus", "variable"])
def test_a_device_that_does_not_exist_is_named(small, environment, name):
    project, config = small
    if name == "gpus":
        config["gpus"] = {"devices": [0, 5]}
    else:
        environment[gpus.VISIBLE] = "0,5"
    told = failed(profiled(project, "--dry-run", config=config, environment=environment))
    assert "the GPU '5' does not exist" in told
    assert "GPU-000" in told
    assert "Traceback" not in told


def test_the_profile_names_every_rule_that_trains(small):
    project, config = small
    named = yaml.safe_load((PROFILE / "config.yaml").read_text(encoding="utf-8"))["set-resources"]
    rules = succeeded(project.snakemake("--list-rules", config=config)).stdout.split()
    assert set(named) == {rule for rule in rules if rule.startswith("finetune_")}
    adopts = "0 if input.batch else 1"
    assert all(
        resources == {gpu_slots.RESOURCE: 1 if rule.endswith("_batch") else adopts}
        for rule, resources in named.items()
    )


@pytest.mark.parametrize("kind", [{}, {"batches": {"runs": 2}}, {"fused_seeds": True}])
def test_what_trains_takes_a_slot_and_what_a_batch_has_trained_takes_none(small, environment, kind):
    project, config = small
    config["gpus"] = {"devices": [f"{gpus.FAKE}0"]}
    config |= kind
    told = succeeded(profiled(project, "--dry-run", config=config, environment=environment)).stdout
    jobs = re.findall(r"rule (finetune_\w+):.*?gpu_slot=(\d)", told, flags=re.DOTALL)
    assert {number for name, number in jobs if name.endswith("_batch")} == ({"1"} if kind else set())
    assert {number for name, number in jobs if not name.endswith("_batch")} == {"0" if kind else "1"}
