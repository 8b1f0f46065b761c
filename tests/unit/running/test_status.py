"""How far an experiment is, from made-up files and real locks."""

import json
import os
import threading
import time
from pathlib import Path

import pytest
from builders_jobs import run_python
from builders_watch import STARTED, Watched

from seedbed.core.errors import SeedbedError
from seedbed.core.files import write_json, write_text
from seedbed.core.run_folder import plan_file
from seedbed.running import claims
from seedbed.running.status import AT_WORK, DONE, FAILED, WAITING, status

ERROR = "2026-01-01 00:00:00,000 ERROR   {}\n"
INFO = "2026-01-01 00:00:00,000 INFO    identity 12\n"
TRACEBACK = "Traceback (most recent call last):\n  File \"x.py\", line 1\nKeyError: 'label'"


@pytest.fixture
def watched(tmp_path):
    """The demo of twelve runs, before its workflow begins."""
    made = Watched(tmp_path)
    yield made
    made.end()


def states(watched: Watched) -> dict[str, str]:
    """The states of the first runs that are not waiting, by their place in the grid."""
    found = status(watched.folder)
    return {place: run.state for place, run in enumerate(found.runs) if run.state != WAITING}


def test_each_run_has_its_state(watched):
    done, working, failed, killed, _, other = watched.runs[:6]
    watched.begin()
    watched.finish(done)
    watched.hold(working)
    log = watched.write_log(failed, INFO + ERROR.format("the loss is not finite\n  where: here"))
    watched.leave_lock(killed)
    watched.write_log(other, ERROR.format(TRACEBACK))
    assert states(watched) == {0: DONE, 1: AT_WORK, 2: FAILED, 3: FAILED, 5: FAILED}
    runs = status(watched.folder).runs
    assert (runs[2].error, runs[2].log) == ("the loss is not finite", log)
    assert (runs[3].error, runs[3].holder.pid) == ("its process has ended without a result", os.getpid())
    assert runs[5].error == "KeyError: 'label'"
    assert runs[1].holder.pid == os.getpid()


def test_what_was_before_the_workflow_counts_only_where_it_is_not_made_again(watched):
    first, second, third, fourth, fifth, sixth = watched.runs[:6]
    for run in (first, second, third):
        watched.finish(run, ago=STARTED + 5)
    watched.begin(to_make={run.folder for run in watched.runs[1:]})
    watched.finish(third)
    watched.write_log(fourth, ERROR.format("of the workflow before"), ago=STARTED + 5)
    watched.leave_lock(fifth, ago=STARTED + 5)
    # a log that a later attempt goes on with
    watched.write_log(sixth, ERROR.format("of the attempt before") + INFO)
    assert states(watched) == {0: DONE, 2: DONE}


def test_a_run_at_work_has_the_newest_update_of_which_there_are_files(watched):
    run = watched.runs[0]
    watched.begin()
    watched.hold(run)
    work = watched.place(run).work
    assert status(watched.folder).runs[0].update is None
    write_text(work / "run" / "metrics.csv", "step,epoch,split\n5,1,validation\n5,1,train\n")
    found = status(watched.folder).runs[0]
    assert (found.update, found.updates) == (5, watched.updates(run))
    write_text(work / "states" / "000002.update-7.abc.state", "")
    assert status(watched.folder).runs[0].update == 7


def test_a_file_that_is_half_written_is_no_error(watched):
    run, done = watched.runs[:2]
    watched.begin()
    watched.hold(run)
    watched.workflow()
    work = watched.place(run).work
    write_text(work / "run" / "metrics.csv", "step,epoch,split\n5,1,validation\n6")
    write_text(watched.place(done).target / "run.json", '{"seconds": {"tot')
    watched.write_log(watched.runs[2], INFO + "2026-01-01 00:0")
    found = status(watched.folder)
    assert [found.runs[0].update, found.runs[1].state, found.runs[2].state] == [6, DONE, WAITING]
    write_text(work / "run" / "metrics.csv", "step,ep")
    assert status(watched.folder).runs[0].update is None


@pytest.mark.parametrize("batches", [{"batches": {"runs": 3}}, {"fused_seeds": True}])
def test_runs_of_a_batch(tmp_path, batches):
    watched = Watched(tmp_path, **batches)
    batch = [run for run in watched.runs if run.batch == watched.runs[0].batch]
    first, second, third = batch[:3]
    watched.begin()
    watched.finish(first, kept=True)
    watched.write_log(second, ERROR.format("too little memory"), place=0)
    watched.write_log(third, ERROR.format("2 of the 3 runs of this batch failed"), place=1)
    runs = {run.name: run for run in status(watched.folder).runs}
    assert runs[first.folder].state == DONE
    if watched.plan.config["fused_seeds"]:  # they share their log, and fail together
        assert runs[third.folder].error == "too little memory"
    else:
        assert runs[third.folder].error == "2 of the 3 runs of this batch failed"
    assert runs[second.folder].error == "too little memory"
    assert sum(run.state == FAILED for run in runs.values()) == len(batch) - 1


def test_errors_of_other_rules_are_told_where_they_are_of_this_workflow(watched):
    watched.begin()
    results = watched.folder.parent
    names = (
        "logs/prepare/reviews_fr.log",
        "demo/logs/aggregate.log",
        "logs/prepare/old.log",
        "logs/slurm/1.log",
    )
    for name in names:
        write_text(results / name, INFO + ERROR.format(f"of {name}\n  where: here"))
    watched.set_time(results / "logs/prepare/old.log", STARTED + 5)
    found = status(watched.folder)
    assert [(one.log, one.error) for one in found.failures] == [
        (results / name, f"of {name}") for name in names[:2]
    ]
    for run in watched.runs:
        watched.finish(run)
    found = status(watched.folder)
    assert (found.has_failed, found.is_finished) == (True, False)


# --- locks ---

OWN = """
from pathlib import Path
from seedbed.running import claims
with claims.claim(Path(sys.argv[1])):
    print("owned", flush=True)
    sys.stdin.readline()
    print(claims._held[Path(sys.argv[1])].is_lost(), flush=True)
    sys.stdin.readline()
"""


def files_of(folder: Path) -> dict[Path, tuple[int, int]]:
    """Time and size of every file."""
    return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in folder.rglob("*")}


def test_another_process_keeps_its_lock_and_nothing_is_written(watched):
    run = watched.runs[0]
    watched.begin()
    other = run_python(OWN, watched.place(run).work)
    assert other.stdout.readline() == "owned\n"
    before = files_of(watched.folder)
    found = status(watched.folder)
    assert files_of(watched.folder) == before
    assert (found.runs[0].state, found.runs[0].holder.pid) == (AT_WORK, other.pid)
    other.stdin.write("\n")
    other.stdin.flush()
    assert other.stdout.readline() == "False\n"
    other.kill()
    other.communicate(timeout=300)
    assert states(watched) == {0: FAILED}


def test_who_begins_runs_while_others_look_gets_them_all(watched):
    watched.begin()
    for run in watched.runs:
        watched.leave_lock(run)  # only a lock that nobody holds is taken by those who look
    ended = threading.Event()

    def look() -> None:
        while not ended.is_set():
            status(watched.folder)

    watchers = [threading.Thread(target=look) for _ in range(2)]
    for watcher in watchers:
        watcher.start()
    try:
        for run in watched.runs * 4:
            with claims.claim(watched.place(run).work):
                pass
    finally:
        ended.set()
        for watcher in watchers:
            watcher.join()
    assert states(watched) == {}


# --- times ---


def test_the_time_left_is_that_of_the_runs_that_have_not_failed(watched):
    watched.begin()
    for run in watched.runs[:4]:
        watched.finish(run, seconds=20 if run.framework == "fairseq" else 40)
    watched.hold(watched.runs[4], ago=5)
    watched.write_log(watched.runs[5], ERROR.format("the loss is not finite"))
    assert status(watched.folder).seconds_left is None  # no workflow works
    watched.workflow()
    left = [20 if run.framework == "fairseq" else 40 for run in watched.runs[4:] if run != watched.runs[5]]
    found = status(watched.folder)
    assert found.seconds_left == pytest.approx((sum(left) - 5) / 2, abs=1)
    assert {times.cell.kind.framework: (times.runs, times.seconds) for times in found.times} == {
        "fairseq": (2, 20), "transformers": (2, 40)
    }  # fmt: skip


def test_seeds_in_one_model_share_its_time(tmp_path):
    watched = Watched(tmp_path, fused_seeds=True, batches={"runs": 3})
    batch = [run for run in watched.runs if run.batch == watched.runs[0].batch]
    others = [run for run in watched.runs if run not in batch]
    watched.begin()
    for run in batch:
        watched.hold(run, ago=30)
    for run in others:
        watched.finish(run, seconds=20)
    watched.workflow()
    # three shares of 20 s, of which the model has worked 30, on a host that trains two at a time
    assert status(watched.folder).seconds_left == pytest.approx((60 - 30) / 2, abs=1)
    watched.end()


def test_on_a_cluster_runs_go_on_as_they_have_ended_so_far(tmp_path):
    watched = Watched(tmp_path, local=False)
    watched.finish(watched.runs[0], ago=STARTED + 5)
    watched.begin()
    watched.workflow()
    assert status(watched.folder).seconds_left is None
    for run in watched.runs[1:5]:
        watched.finish(run)
    assert status(watched.folder).seconds_left == pytest.approx(STARTED * 7 / 4, abs=5)
    watched.end()


def test_the_times_of_the_host_that_trains_count(watched):
    watched.finish(watched.runs[0])
    watched.begin()
    watched.workflow()
    plan = json.loads(plan_file(watched.folder).read_text())
    plan["machine"]["cpus"] += 1
    write_json(plan_file(watched.folder), plan)
    assert status(watched.folder).seconds_left is None


# --- the experiment ---


def test_it_is_finished_when_all_runs_are_done_and_nobody_works(watched):
    watched.begin()
    for run in watched.runs:
        watched.finish(run)
    assert status(watched.folder).is_finished
    watched.workflow()
    assert not status(watched.folder).is_finished


def test_a_stage_of_an_experiment_that_grows(tmp_path):
    until = {"looks": [3, 4], "max_seeds": 4}
    watched = Watched(tmp_path, until=until)
    watched.begin()
    for run in watched.runs:
        watched.finish(run)
    assert (status(watched.folder).planned.stage, status(watched.folder).is_finished) == (1, True)
    write_json(watched.folder / "stages/1.json", {"finished": False})
    found = status(watched.folder)
    assert (found.undecided, found.is_finished) == (True, False)


def test_without_a_plan_it_says_what_to_do(watched):
    with pytest.raises(SeedbedError, match=r"no workflow has planned(.|\n)*hint:  check the folder"):
        status(watched.folder)


@pytest.mark.parametrize("content", ["", "{}", '{"cells": [{}], "runs": []}', "[1]"])
def test_a_damaged_plan_is_refused(watched, content):
    write_text(plan_file(watched.folder), content)
    with pytest.raises(SeedbedError, match=r"is damaged(.|\n)*hint:  start the experiment again"):
        status(watched.folder)


def test_a_thousand_runs_are_read_within_a_second(tmp_path):
    watched = Watched(tmp_path, grid={"seeds": list(range(250))})
    watched.begin()
    for run in watched.runs[:600]:
        watched.finish(run)
    began = time.process_time()
    assert status(watched.folder).count(DONE) == 600
    assert time.process_time() - began < 1
