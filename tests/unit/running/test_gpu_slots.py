"""Slots of GPUs, held by real processes on stand-ins for devices; locks are the kernel's."""

import json
import os
import queue
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

import pytest

from seedbed.core.errors import SeedbedError
from seedbed.running import gpu_memory, gpu_slots, gpus

SCRIPTS = Path(__file__).parents[3] / "scripts"
DEADLINE = 120  # seconds; machines are shared

# Holds a slot until it is told a line; says what it has and what its log says.
HOLDER = """
import json, logging, os, subprocess, sys
from seedbed.running import gpu_memory, gpu_slots, gpus; from seedbed.core import interruption
gpu_slots.POLL = 0.05
if "MEMORY" in os.environ:  # MiB of each GPU, all and free, and of this job
    *told, need = json.loads(os.environ["MEMORY"])
    gpus.memory = lambda device: gpus.Memory(*told)
    gpu_memory.of_job = lambda jobs, at_once: need
logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="log %(message)s")
interruption.watch()
devices, limit, run, extra = json.loads(sys.argv[1])
if "USER_ID" in os.environ:
    os.setgroups([])
    os.setgid(int(os.environ["USER_ID"]))
    os.setuid(int(os.environ["USER_ID"]))
config = {"gpus": {"devices": devices, "runs_per_gpu": limit}}
with gpu_slots.hold(config, run) as device:
    if extra:
        exec(extra)
    print("holds", device, os.environ["CUDA_VISIBLE_DEVICES"], flush=True)
    sys.stdin.readline()
print("left", "CUDA_VISIBLE_DEVICES" in os.environ, flush=True)
"""

# Takes and gives back a slot some times, and tells which it had, and from when to when.
WORKER = """
import json, os, random, sys, time
from seedbed.running import gpu_slots
gpu_slots.POLL = 0.01
config = {"gpus": {"devices": ["fake0", "fake1"], "runs_per_gpu": 2}}
print("ready", flush=True)
sys.stdin.readline()
for _ in range(8):
    with gpu_slots.hold(config) as device:
        since = time.monotonic()
        slot = os.readlink(f"/proc/self/fd/{gpu_slots.descriptors()[0]}")
        time.sleep(random.uniform(0, 0.02))  # the work
        until = time.monotonic()
    print(json.dumps([device, slot, since, until]), flush=True)
"""


@pytest.fixture
def slots(tmp_path, monkeypatch):
    """The folder of the slots; processes that are started here use it."""
    place = tmp_path / "slots"
    monkeypatch.setenv(gpu_slots.FOLDER_VARIABLE, str(place))
    monkeypatch.setenv("PYTHONPATH", str(SCRIPTS))
    for name in (gpus.VISIBLE, gpu_slots.HELD):
        monkeypatch.delenv(name, raising=False)
    return place


class Holder(subprocess.Popen):
    """A process that runs HOLDER; its lines are read as they come."""

    def __init__(self, argument, **options):
        pipe = subprocess.PIPE
        super().__init__(
            [sys.executable, "-c", HOLDER, argument], stdin=pipe, stdout=pipe, text=True, **options
        )
        self.lines = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for text in self.stdout:
            self.lines.put(text.rstrip("\n"))


@pytest.fixture
def start(slots):
    """Start holders; none outlives its test."""
    started = []

    def begin(devices=("fake0",), limit=1, run="", extra="", **options):
        started.append(Holder(json.dumps([list(devices), limit, run, extra]), **options))
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.wait()
        process.stdin.close()


def line(process) -> str:
    """The next line that a process says."""
    return process.lines.get(timeout=DEADLINE)


def holds(process) -> str:
    """The device that a process holds, once it says so."""
    while not (text := line(process)).startswith("holds "):
        assert text.startswith(("log ", "child ", "  fake")), text
    _, device, visible = text.split()
    assert visible == device
    return device


def waits(process) -> None:
    """Wait until a process says that it waits."""
    while "waiting" not in line(process):
        pass


def looks_again(slots, times) -> None:
    """Wait until a waiting process has looked for a free slot some more times: it touches the guard."""
    seen, until = {(slots / "guard").stat().st_mtime_ns}, time.monotonic() + DEADLINE
    while len(seen) <= times:
        assert time.monotonic() < until
        seen.add((slots / "guard").stat().st_mtime_ns)


def let_go(process) -> None:
    """Let a holder end, and wait until it has."""
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.wait(DEADLINE) == 0


def memory(free: int, total: int = 40_960, need: int = 1000) -> dict[str, str]:
    """The environment of a job that finds this memory on each GPU, in MiB."""
    return {**os.environ, "MEMORY": json.dumps([total, free, need])}


# --- who gets what ----------------------------------------------------------------------------------------


def test_twelve_processes_never_share_one_of_four_slots(slots):
    pipe = subprocess.PIPE
    workers = [
        subprocess.Popen([sys.executable, "-c", WORKER], stdin=pipe, stdout=pipe, text=True)
        for _ in range(12)
    ]
    for worker in workers:
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:  # they all begin at once
        worker.stdin.write("\n")
        worker.stdin.flush()
    told = [text for worker in workers for text in worker.communicate(timeout=DEADLINE)[0].splitlines()]
    assert [worker.returncode for worker in workers] == [0] * 12
    held = [json.loads(text) for text in told]
    assert len(held) == 12 * 8
    assert len({slot for _, slot, _, _ in held}) == 4
    by_slot = [pair for pair in combinations(held, 2) if pair[0][1] == pair[1][1]]
    assert not [pair for pair in by_slot if pair[0][2] < pair[1][3] and pair[1][2] < pair[0][3]]
    # at the moment that each was taken, its device had two holders at most
    for device, _, since, _ in held:
        assert sum(other == device and a <= since < b for other, _, a, b in held) <= 2


def test_runs_are_spread_before_they_are_stacked(start):
    devices = ["fake0", "fake1", "fake2"]
    assert [holds(start(devices, limit=2)) for _ in range(6)] == devices * 2


def test_with_auto_as_many_jobs_share_a_gpu_as_fit(start):
    jobs = [start(limit="auto", env=memory(free=3_500)) for _ in range(3)]
    assert [holds(job) for job in jobs] == ["fake0"] * 3
    fourth = start(limit="auto", env=memory(free=3_500))
    waits(fourth)
    let_go(jobs[0])
    assert holds(fourth) == "fake0"


def test_what_others_used_before_the_first_job_is_left_to_them(start):
    first = start(limit="auto", env=memory(free=9_300))
    assert holds(first) == "fake0"
    large = start(limit="auto", env=memory(free=8_300, need=7_000))  # of 9 GiB, two would need 14
    waits(large)
    let_go(first)
    assert holds(large) == "fake0"
    second = start(limit="auto", env=memory(free=2_300))
    waits(second)  # the large one allows one of its size alone


def test_a_large_job_leaves_no_limit_behind(start):
    jobs = [start(limit="auto", env=memory(free=9_300, need=need)) for need in (1_000, 4_000)]
    assert [holds(job) for job in jobs] == ["fake0"] * 2
    third = start(limit="auto", env=memory(free=9_300))
    waits(third)  # the second allows two
    let_go(jobs[1])
    assert holds(third) == "fake0"
    assert [holds(start(limit="auto", env=memory(free=9_300))) for _ in range(4)] == ["fake0"] * 4


def test_a_job_waits_while_others_leave_no_room(start):
    assert holds(start(limit="auto", env=memory(free=9_300))) == "fake0"
    waits(start(limit="auto", env=memory(free=900)))  # somebody else has come


def test_a_job_joins_those_of_a_given_number_if_it_fits_beside_them(start):
    assert holds(start(limit=3)) == "fake0"
    assert holds(start(limit="auto", env=memory(free=1_500))) == "fake0"
    waits(start(limit="auto", env=memory(free=500)))


def test_a_slot_is_free_after_kill_9(start):
    first = start()
    holds(first)
    second = start()
    waits(second)
    first.kill()
    assert holds(second) == "fake0"


def test_a_slot_is_given_back_at_the_end_and_the_environment_with_it(start):
    first = start()
    holds(first)
    let_go(first)
    assert line(first) == "log GPU slot released: fake0, 1 of 1"
    assert line(first) == "left False"
    assert holds(start()) == "fake0"


def test_whoever_waits_says_once_who_holds_and_leaves_on_sigterm(start, slots):
    holder = start(run="results/demo/runs/a/seed0")
    holds(holder)
    waiting = start()
    text = line(waiting)
    assert "waiting" in text
    assert f"process {holder.pid}" in (text := line(waiting))
    assert "results/demo/runs/a/seed0" in text
    looks_again(slots, times=3)
    waiting.send_signal(signal.SIGTERM)
    assert waiting.wait(DEADLINE) == 128 + signal.SIGTERM
    assert line(waiting) == "log leaving: SIGTERM was received"  # and nothing more of the holder
    let_go(holder)


# --- workflows that meet ----------------------------------------------------------------------------------


def test_two_workflows_share_the_slots_of_a_host(start, tmp_path):
    clones = [tmp_path / name for name in ("a", "b")]
    for clone in clones:
        clone.mkdir()
    first = start(["fake0", "fake1"], cwd=clones[0])
    assert holds(first) == "fake0"
    assert holds(start(["fake0", "fake1"], cwd=clones[1])) == "fake1"
    third = start(["fake1", "fake0"], cwd=clones[1])
    waits(third)
    let_go(first)
    assert holds(third) == "fake0"


def test_nobody_joins_a_run_that_wants_its_device_alone(start):
    alone = start(limit=1)
    holds(alone)
    loose = start(limit=3)
    waits(loose)
    let_go(alone)
    assert holds(loose) == "fake0"


def test_a_run_that_wants_a_device_alone_waits_for_all_others(start):
    others = [start(limit=3) for _ in range(2)]
    for other in others:
        holds(other)
    alone = start(limit=1)
    waits(alone)
    let_go(others[0])
    assert holds(start(limit=3)) == "fake0"  # they may go on to share
    assert holds(start(["fake0", "fake1"], limit=1)) == "fake1"


def test_the_strictest_number_of_runs_counts(start):
    holds(start(limit=3))
    holds(start(limit=2))
    third = start(limit=3)  # it would make three, and one of them allows two
    waits(third)


# --- children ---------------------------------------------------------------------------------------------

CHILD = """
import signal
started = {start}
print("child", started, flush=True)
"""
SLEEP = "[sys.executable, '-c', 'import time; time.sleep(600)']"
FORK = "os.fork() or signal.pause()"
PROGRAM = f"subprocess.Popen({SLEEP}, stdout=subprocess.DEVNULL).pid"
WORKING = f"subprocess.Popen({SLEEP}, stdout=subprocess.DEVNULL, pass_fds=gpu_slots.descriptors()).pid"


@pytest.mark.parametrize(("child", "keeps"), [(FORK, True), (PROGRAM, False), (WORKING, True)])
def test_a_living_child_keeps_the_slot_of_a_dead_job_only_where_it_works_on_the_device(start, child, keeps):
    parent = start(extra=CHILD.format(start=child))
    while not (text := line(parent)).startswith("child"):
        pass
    pid = int(text.split()[1])
    try:
        holds(parent)
        parent.kill()
        parent.wait()
        following = start()
        if keeps:
            waits(following)
            os.kill(pid, signal.SIGKILL)
        assert holds(following) == "fake0"
    finally:
        if not keeps:
            os.kill(pid, signal.SIGKILL)


def test_a_process_of_a_holder_uses_its_slot(start, monkeypatch):
    holds(start())
    monkeypatch.setenv(gpu_slots.HELD, "fake0")
    monkeypatch.setenv(gpus.VISIBLE, "fake0")
    assert holds(start(["fake0", "fake1"])) == "fake0"  # though no slot is free


# --- the folder -------------------------------------------------------------------------------------------


def test_all_users_may_use_folder_and_files_whatever_the_umask(start, slots):
    holds(start(umask=0o077))
    assert stat.S_IMODE(slots.stat().st_mode) == 0o1777
    files = sorted(slots.iterdir())
    assert [path.name for path in files] == ["fake0.0of1", "guard"]
    assert [stat.S_IMODE(path.stat().st_mode) for path in files] == [0o666, 0o666]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user")
def test_another_user_shares_the_slots(start, monkeypatch):
    place = Path(tempfile.mkdtemp())
    place.chmod(0o755)
    monkeypatch.setenv(gpu_slots.FOLDER_VARIABLE, str(place / "slots"))
    nobody = {"env": {**os.environ, "USER_ID": "65534"}}
    try:
        first = start(umask=0o077)
        holds(first)
        second = start(**nobody)
        waits(second)
        let_go(first)
        assert holds(second) == "fake0"
        third = start()
        waits(third)
        let_go(second)
        assert holds(third) == "fake0"
    finally:
        shutil.rmtree(place)


def test_a_cleaner_may_remove_what_nobody_holds(start, slots):
    first = start()
    holds(first)
    let_go(first)
    shutil.rmtree(slots)
    assert holds(start()) == "fake0"


@pytest.mark.parametrize(
    "kind", ["file", "dead link", "link in place of a slot", "folder in place of the guard"]
)
def test_what_cannot_be_used_is_named(slots, tmp_path, kind):
    if kind == "file":
        slots.write_text("")
    elif kind == "dead link":
        slots.symlink_to(tmp_path / "file" / "below")
        (tmp_path / "file").write_text("")
    else:
        slots.mkdir()
        if kind == "link in place of a slot":
            (tmp_path / "valuable").write_text("kept")
            (slots / "fake0.0of1").symlink_to(tmp_path / "valuable")
        else:
            (slots / "guard").mkdir()
    with pytest.raises(SeedbedError, match=gpu_slots.FOLDER_VARIABLE), hold(["fake0"]):
        pass
    if kind == "link in place of a slot":
        assert (tmp_path / "valuable").read_text() == "kept"


def test_another_name_of_a_file_is_not_written_to(slots, tmp_path):
    slots.mkdir()
    (tmp_path / "valuable").write_text("kept")
    os.link(tmp_path / "valuable", slots / "fake0.0of1")
    with hold(["fake0"]):
        pass
    assert (tmp_path / "valuable").read_text() == "kept"


# --- in one process ---------------------------------------------------------------------------------------


def hold(devices, limit=1):
    return gpu_slots.hold({"gpus": {"devices": devices, "runs_per_gpu": limit}})


def test_the_environment_is_as_before_afterwards(slots, monkeypatch):
    monkeypatch.setenv(gpus.VISIBLE, "0,1")
    with hold(["fake1"]) as device:
        assert device == gpu_slots.held() == os.environ[gpus.VISIBLE] == "fake1"
    assert gpu_slots.held() is None
    assert os.environ[gpus.VISIBLE] == "0,1"
    assert gpu_slots.descriptors() == []


def test_a_process_that_used_cuda_keeps_its_slot_until_it_ends(slots, monkeypatch):
    cuda = SimpleNamespace(is_initialized=lambda: False)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    with hold(["fake0"]):
        (slot,) = gpu_slots._held
        cuda.is_initialized = lambda: True
    assert gpu_slots.held() is None
    assert gpu_slots.descriptors() == [slot.descriptor]
    gpu_slots._held.clear()
    slot.release()


def test_names_that_are_no_file_names_are_held_too(slots):
    with hold(["MIG-GPU-1111/5/0"]) as device:
        assert device == "MIG-GPU-1111/5/0"
        assert sorted(os.listdir(slots)) == ["MIG-GPU-1111_5_0.0of1", "guard"]


def test_once_cuda_is_initialized_it_is_too_late(slots, monkeypatch):
    cuda = SimpleNamespace(is_initialized=lambda: True)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    with pytest.raises(RuntimeError, match="too late"), hold(["fake0"]):
        pass


def test_without_a_gpu_the_error_says_what_was_looked_at(slots, monkeypatch):
    monkeypatch.setenv(gpus.VISIBLE, "")
    with pytest.raises(SeedbedError) as caught, hold("auto"):
        pass
    assert "gpus.devices: auto" in str(caught.value)
    assert "CUDA_VISIBLE_DEVICES: ''" in str(caught.value)
    assert "NVML" in str(caught.value)
    assert "profile" in caught.value.hint


def test_the_module_is_light():
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import seedbed.running.gpu_slots; print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, SCRIPTS], capture_output=True, text=True, check=True
    )
    assert not {"torch", "numpy", "pandas", "pynvml"} & set(done.stdout.split())


# --- what Snakemake is told -------------------------------------------------------------------------------


def make_workflow(*, asked=True, main=True, nodes=None, given=None, local=True, dry=False, waiting=1):
    """Stands in for Snakemake's workflow, as far as it is asked."""
    resources = {} if given is None else {gpu_slots.RESOURCE: given}
    job = SimpleNamespace(resources={gpu_slots.RESOURCE: 1})
    overwritten = {"finetune_fairseq": {gpu_slots.RESOURCE: 1}} if asked else {}
    return SimpleNamespace(
        is_main_process=main,
        global_resources=resources,
        register_resource=resources.__setitem__,
        resource_settings=SimpleNamespace(
            nodes=nodes, overwrite_resources=overwritten, default_resources=None
        ),
        local_exec=local,
        dryrun=dry,
        touch=False,
        dag=SimpleNamespace(needrun_jobs=lambda: [job] * waiting),
    )


def make_plan(config, at_once=1):
    """What of a plan is looked at; a job takes 3,000 MiB of the host."""
    batching = SimpleNamespace(at_once=at_once)
    return SimpleNamespace(config=config, training_memory=3000, batching=batching)


CONFIG = {"gpus": {"devices": ["fake0", "fake1"], "runs_per_gpu": 3}}
NONE = {"gpus": {"devices": "auto", "runs_per_gpu": 1}}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {gpu_slots.RESOURCE: 6}),
        ({"asked": False}, {}),
        ({"main": False}, {}),
        ({"nodes": 10}, {}),  # a cluster's nodes have their own slots
        ({"given": 1}, {gpu_slots.RESOURCE: 1}),
    ],
)
def test_the_number_of_slots_is_told_where_it_holds(options, expected):
    workflow = make_workflow(**options)
    gpu_slots.register(workflow, make_plan(CONFIG))
    assert workflow.global_resources == expected


@pytest.mark.parametrize(
    ("free", "need", "at_once", "expected"),
    [
        (100_000, 10, 1, gpu_memory.MOST + 1),
        (100_000, 20_000, 1, 4 + 1),
        (100_000, 10, 4, 3 + 1),
        (100_000, None, 1, 2),
        (12_500, 10, 1, 4),  # of the host's memory
        (2_000, 10, 1, 2),
    ],
)
def test_with_auto_there_are_as_many_slots_as_jobs_fit(monkeypatch, free, need, at_once, expected):
    monkeypatch.setattr(gpu_slots, "free_bytes", lambda: free * 2**20)
    memories = {"fake0": gpus.Memory(80_000, 80_000), "fake1": None}
    monkeypatch.setattr(gpus, "memory", memories.get)
    workflow = make_workflow()
    monkeypatch.setattr(gpu_memory, "of_plan", lambda plan: need)
    config = {"gpus": {"devices": list(memories), "runs_per_gpu": "auto"}}
    gpu_slots.register(workflow, make_plan(config, at_once))
    assert workflow.global_resources == {gpu_slots.RESOURCE: expected}


@pytest.mark.parametrize(
    ("options", "stops"),
    [
        ({}, True),
        ({"given": 2}, True),
        ({"asked": False}, False),
        ({"main": False}, False),
        ({"local": False}, False),
        ({"dry": True}, False),
        ({"waiting": 0}, False),
    ],
)
def test_the_workflow_stops_only_where_a_job_would_find_no_gpu(monkeypatch, options, stops):
    monkeypatch.setenv(gpus.VISIBLE, "")
    workflow = make_workflow(**options)
    gpu_slots.register(workflow, make_plan(NONE))
    if stops:
        with pytest.raises(SeedbedError, match="there is none"):
            gpu_slots.check(workflow, NONE)
    else:
        gpu_slots.check(workflow, NONE)
    gpu_slots.check(workflow, CONFIG)
