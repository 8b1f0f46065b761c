"""Training checkpoints: whole or absent, checked when read, written at a pace, never a reason to stop."""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from seedbed.core import files, interruption
from seedbed.training import training_state
from seedbed.training.training_state import TrainingStates

SCRIPTS = Path(__file__).parents[3] / "scripts"


def make_states(folder, identity="a", interval=0.0, max_share=1.0) -> TrainingStates:
    return TrainingStates(folder, identity, interval, max_share)


def make_state(value: int) -> dict:
    return {
        "weights": {"w": torch.full((300,), float(value)), "half": torch.ones(3, dtype=torch.float16)},
        "random": torch.get_rng_state(),
        "rows": [{"step": value, "metric": "loss", "value": float("nan"), "rate": 1e-4}],
        "nothing": None,
        "pair": (1, [True, "é"]),
    }


def value_of(state) -> int:
    return int(state["weights"]["w"][0])


@pytest.fixture
def states(tmp_path):
    return make_states(tmp_path / "states")


def complete(states) -> list[Path]:
    return sorted(states.folder.glob("*.state"))


def test_what_is_saved_is_read_back(states):
    assert states.newest() is None
    state = make_state(7)
    states.save(7, state)
    found = make_states(states.folder).newest()
    assert torch.equal(found["weights"]["w"], state["weights"]["w"])
    assert found["weights"]["half"].dtype == torch.float16
    assert torch.equal(found["random"], state["random"])
    assert found["rows"][0]["step"] == 7
    assert found["pair"] == (1, [True, "é"])
    assert states.written == 1


def test_the_two_newest_are_kept(states):
    for step in (9, 10, 11, 100):
        states.save(step, make_state(step))
    assert [path.name.split(".")[1] for path in complete(states)] == ["update-11", "update-100"]
    assert value_of(states.newest()) == 100


def test_of_two_at_one_update_the_later_is_the_newest(states):
    for value in range(8):
        states.save(5, make_state(value))
        assert value_of(make_states(states.folder).newest()) == value


def damage_cut(path):
    path.write_bytes(path.read_bytes()[:-50])


def damage_flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def damage_empty(path):
    path.write_bytes(b"")


def damage_other(path):
    """A whole file under its right hash that holds something else than a state."""
    torch.save([1], path)
    number = path.name.split(".")[0]
    path.rename(path.with_name(f"{number}.update-2.{files.sha256(path)}.state"))


@pytest.mark.parametrize("damage", [damage_cut, damage_flip, damage_empty, damage_other])
def test_a_damaged_newest_is_set_aside_and_the_one_before_is_taken(states, caplog, damage):
    for step in (1, 2):
        states.save(step, make_state(step))
    damage(complete(states)[-1])
    assert value_of(states.newest()) == 1
    assert "using the one before" in caplog.text
    assert len(complete(states)) == 1
    assert value_of(states.newest()) == 1
    states.save(2, make_state(22))
    assert value_of(states.newest()) == 22


def test_where_all_are_damaged_there_is_none(states):
    for step in (1, 2):
        states.save(step, make_state(step))
    for path in complete(states):
        damage_flip(path)
    assert states.newest() is None


def test_a_pickle_that_would_run_code_is_not_run(states, tmp_path):
    class Evil:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "ran"),))

    states.save(1, make_state(1))
    states.save(2, {"evil": Evil()})
    assert value_of(states.newest()) == 1
    assert not (tmp_path / "ran").exists()


def test_states_of_another_identity_are_removed(states, caplog):
    caplog.set_level("INFO")
    states.save(3, make_state(3))
    assert make_states(states.folder, identity="b").newest() is None
    assert not complete(states)
    assert "other settings, inputs or code" in caplog.text


def test_what_an_interrupted_write_left_is_removed(states):
    states.save(1, make_state(1))
    left = states.folder / "update-2.part"
    left.write_bytes(b"half")
    assert value_of(make_states(states.folder).newest()) == 1
    assert not left.exists()


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
def test_a_failed_write_warns_and_leaves_the_older_states(states, caplog, monkeypatch, call):
    for step in (1, 2):
        states.save(step, make_state(step))

    def fail(*args):
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    with monkeypatch.context() as patch:
        if call == "write":

            class Full:
                def __init__(self, stream):
                    self.stream, self.write = stream, fail

                def __enter__(self):
                    return self

                def __exit__(self, *error):
                    self.stream.close()

            patch.setattr("builtins.open", lambda *args: Full(open_file(*args)))
        else:
            patch.setattr(os, call, fail)
        states.save(3, make_state(3))
    assert "no training checkpoint at update 3" in caplog.text
    assert os.strerror(errno.EDQUOT) in caplog.text
    assert sorted(path.suffix for path in states.folder.iterdir()) == [".state", ".state"]
    assert value_of(states.newest()) == 2
    states.save(4, make_state(4))  # there is room again
    assert value_of(states.newest()) == 4


open_file = open

FULL_DISK = """
import sys
sys.path.insert(0, {scripts!r})
import logging, torch
from pathlib import Path
from seedbed.training.training_state import TrainingStates
logging.basicConfig(stream=sys.stdout)
states = TrainingStates(Path({folder!r}), "a", 0, 1)
small, large = {{"w": torch.zeros(10)}}, {{"w": torch.zeros(10**6)}}
states.save(1, small)
for step in (2, 3):
    states.save(step, large)
print(sorted(path.name.split(".")[0] for path in states.folder.iterdir()), states.newest()["w"].numel())
"""


def test_a_full_disk_stops_no_training(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    program = FULL_DISK.format(scripts=str(SCRIPTS), folder=str(folder / "states"))
    mount = f'mount -t tmpfs -o size=1m none "{folder}" && exec "$0" "$@"'
    unshare = ["unshare", "--mount", "--map-root-user", "sh", "-c"]
    mounts = shutil.which("unshare") and not subprocess.run([*unshare, mount, "true"]).returncode
    if not mounts:
        pytest.skip("this system lets nobody mount a small disk")
    done = subprocess.run([*unshare, mount, sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("No space left on device; training goes on") == 2
    assert done.stdout.endswith("['000001'] 10\n")


class Clock:
    """In place of time.monotonic; each write takes `cost` seconds of it."""

    def __init__(self, monkeypatch):
        self.now, self.cost = 1000.0, 0.0
        monkeypatch.setattr(training_state.time, "monotonic", lambda: self.now)
        original = training_state._write

        def write(*args):
            self.now += self.cost
            return original(*args)

        monkeypatch.setattr(training_state, "_write", write)


def test_a_state_is_due_after_the_interval(tmp_path, monkeypatch):
    clock = Clock(monkeypatch)
    states = make_states(tmp_path, interval=60, max_share=0.02)
    due = []
    for second in range(130):
        clock.now = 1000.0 + second
        if states.due():
            due.append(second)
            states.save(second, make_state(second))
    assert due == [60, 120]


def test_slow_writes_come_less_often(tmp_path, monkeypatch):
    clock = Clock(monkeypatch)
    states = make_states(tmp_path, interval=60, max_share=0.02)
    clock.now += 60
    clock.cost = 3
    states.save(1, make_state(1))
    clock.now += 146.9  # 3 s are 2% of 150 s
    assert not states.due()
    clock.now += 0.2
    assert states.due()
    assert (states.written, states.seconds) == (1, 3)


def test_a_large_state_waits_for_its_first_write_too(tmp_path, monkeypatch):
    clock = Clock(monkeypatch)
    states = make_states(tmp_path, interval=60, max_share=0.02)
    states.expect(3e9)  # 10 s, which are 2% of 500
    clock.now += 489.9
    assert not states.due()
    clock.now += 0.2
    assert states.due()
    clock.cost = 1
    states.save(1, make_state(1))
    states.expect(3e9)  # it is known by now
    clock.now += 60.1
    assert states.due()


def test_a_failing_disk_is_not_tried_at_every_update(tmp_path, monkeypatch):
    clock = Clock(monkeypatch)
    (tmp_path / "file").write_text("in the way")
    states = make_states(tmp_path / "file" / "states", interval=60, max_share=0.02)
    clock.now += 60
    states.save(1, make_state(1))
    assert states.written == 0
    assert not states.due()


def test_a_request_to_leave_makes_one_due(tmp_path, monkeypatch):
    states = make_states(tmp_path, interval=1e9)
    assert not states.due()
    monkeypatch.setattr(interruption, "requested", lambda: "SIGTERM")
    assert states.due()


def test_open_files_do_not_grow(states):
    states.save(1, {})
    before = len(os.listdir("/proc/self/fd"))
    states.save(2, {})
    assert len(os.listdir("/proc/self/fd")) == before
