"""The launcher makes fairseq importable, and touches nothing else. Each test runs in a Python of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[3] / "scripts"
PREPARE = """
import importlib.machinery
from seedbed.models.fairseq_launcher import prepare_import
"""


def run(code: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", PREPARE + code],
        env={"PYTHONPATH": str(SCRIPTS), "OMP_NUM_THREADS": "1", "HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_fairseq_imports_in_silence_and_twice_is_as_once():
    done = run("""
prepare_import()
import dataclasses
once = dataclasses.dataclass
prepare_import()
assert dataclasses.dataclass is once
import fairseq, fairseq_cli.train, fairseq_cli.preprocess
from fairseq.models.roberta import RobertaModel
print(fairseq.__version__)
""")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "0.12.2\n"
    assert done.stderr == ""


@pytest.mark.slow
def test_a_checkpoint_with_args_loads_as_on_python_3_12(tmp_path):
    """hydra's search for plugins, which old checkpoints start, calls find_module, gone in Python 3.12."""
    done = run(f"""
if hasattr(importlib.machinery.FileFinder, "find_module"):
    del importlib.machinery.FileFinder.find_module
prepare_import()
import argparse, torch
history = [{{"criterion_name": "c", "optimizer_name": "o", "lr_scheduler_state": {{}}, "num_updates": 0}}]
args = argparse.Namespace(arch="roberta", task="masked_lm", criterion="masked_lm", optimizer="adam", data="")
state = {{"args": args, "model": {{}}, "optimizer_history": history}}
state["extra_state"] = {{"train_iterator": None}}
torch.save(state, "{tmp_path}/model.pt")
from fairseq.checkpoint_utils import load_checkpoint_to_cpu
from hydra.core.plugins import Plugins
print(load_checkpoint_to_cpu("{tmp_path}/model.pt")["cfg"].model.arch, len(Plugins.instance().discover()) > 3)
""")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "roberta True\n"


def test_only_old_packages_get_hashable_dataclasses():
    done = run("""
prepare_import()
import dataclasses
@dataclasses.dataclass
class Ours:
    x: int = 0
try:
    hash(Ours())
except TypeError:
    print("unhashable")
def make(module):
    return type("Made", (), {"__module__": module, "__annotations__": {"x": int}, "x": 0})
hash(dataclasses.dataclass(make("fairseq.dataclass.configs"))())
hash(dataclasses.dataclass(frozen=True)(make("hydra.conf"))())
assert dataclasses.dataclass()(make("fairseq_like")).__hash__ is None
""")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "unhashable\n"


def test_numpy_has_its_old_aliases_and_keeps_its_own_names():
    done = run("""
import numpy
bool_ = numpy.bool
prepare_import()
assert numpy.bool is bool_
assert (numpy.float, numpy.int, numpy.object) == (float, int, object)
print(numpy.float("inf"))
""")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "inf\n"


@pytest.mark.parametrize("name", ["posix.system", "builtins.eval"])
def test_loading_still_refuses_code(tmp_path, name):
    module, function = name.split(".")
    done = run(f"""
prepare_import()
import argparse, {module}, torch
class Harmful:
    def __reduce__(self):
        return {module}.{function}, ("1",)
torch.save({{"a": argparse.Namespace(x=1)}}, "{tmp_path}/good.pt")
print(torch.load("{tmp_path}/good.pt")["a"].x)
torch.save({{"a": Harmful()}}, "{tmp_path}/bad.pt")
try:
    torch.load("{tmp_path}/bad.pt")
except Exception as error:
    print(type(error).__name__)
""")
    assert done.stdout == "1\nUnpicklingError\n", done.stderr
