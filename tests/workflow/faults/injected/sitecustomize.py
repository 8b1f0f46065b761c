"""Faults inside a training process; Python imports this module where its folder is on PYTHONPATH.

The folder $SEEDBED_FAULTS holds a plan: NUMBER-FRAMEWORK.json, one file for each process that is to train, of
which every such process takes the first. A process that finds its work done already takes none. A fault is a
moment (`at`, `number`) and what then happens (`do`):

    update N    N updates of the run are made (N counts the run, not the process)
    save N      the training checkpoint of N updates is written
    writing N   it is being written: the bytes are, the file has not its name yet
    publishing  the run folder is complete and not published
    published   it is published; the work folder is still there

`before` is done as soon as the process is about to look for checkpoints. Every process writes to
journal.jsonl what happened to it, one line an event.
"""

import importlib.abc
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(os.environ.get("SEEDBED_FAULTS", ""))
TRAINS = re.search(r"finetune(_batch)?\.py$", " ".join(sys.orig_argv)) is not None


def framework():
    """The framework of the rule whose script this process runs."""
    return re.search("fairseq|transformers", sys.modules["__main__"].snakemake.rule)[0]


def note(event, **more):
    """Append a line to the journal; a line is written at once, so that processes do not mix theirs."""
    line = json.dumps({"event": event, "pid": os.getpid(), "framework": framework(), **more}) + "\n"
    handle = os.open(FOLDER / "journal.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(handle, line.encode())
    os.close(handle)


def take():
    """The next fault of this framework, which no other process gets; {} where none is left."""
    for path in sorted(FOLDER.glob(f"*-{framework()}.json")):
        try:
            os.rename(path, taken := path.with_suffix(f".{os.getpid()}"))
        except FileNotFoundError:
            continue
        return json.loads(taken.read_text(encoding="utf-8"))
    return {}


class Fault:
    """What this process is to suffer, and when."""

    def __init__(self, plan):
        self.plan, self.writing = plan, None

    def reached(self, moment, number=0):
        """Do what the plan says of this moment, once; `then` holds what is to follow in the same process."""
        if self.plan.get("at") == moment and number >= self.plan.get("number", 0):
            plan, self.plan = self.plan, self.plan.get("then", {})
            note(f"{plan['do']} at {moment}", number=number)
            ACTIONS[plan["do"]](plan)


def kill(plan):
    """As the kernel kills a process that takes too much memory, or a node that fails: without a word."""
    os.kill(os.getpid(), signal.SIGKILL)


def ask(plan):
    """As a batch system does before it kills."""
    os.kill(os.getpid(), getattr(signal, plan.get("signal", "SIGTERM")))


def hold(plan):
    """Wait until a test has done what it wants to do at this moment, or until a signal asks to leave."""
    from seedbed.core import interruption

    while not (FOLDER / "go_on").exists() and not interruption.requested():
        time.sleep(0.01)


def take_memory(plan):
    """Use more and more memory, and touch it, in a control group that limits it.

    Alone there: until the kernel has freed what a killed process had, any other's next allocation in the
    group would have that one killed, too.
    """
    with open(f"{plan['group']}/cgroup.procs", "w") as group:
        group.write(str(os.getpid()))
    note("allocating")
    blocks = []
    while True:
        blocks.append(b"x" * 2**26)


def shell(plan):
    """Whatever the test wants."""
    subprocess.run(plan["command"], shell=True, check=True, stdin=subprocess.DEVNULL)


def out_of_gpu_memory(plan):
    """As PyTorch says it."""
    import torch

    raise torch.cuda.OutOfMemoryError(
        "CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of 15.77 GiB of which "
        "310.12 MiB is free."
    )


def jump(plan):
    """The wall clock jumps by so many seconds; the monotonic clock does not."""
    now, now_ns = time.time, time.time_ns
    time.time = lambda: now() + plan["seconds"]
    time.time_ns = lambda: now_ns() + int(plan["seconds"] * 1e9)


ACTIONS = {
    "kill": kill, "ask": ask, "hold": hold, "take memory": take_memory, "shell": shell,
    "run out of GPU memory": out_of_gpu_memory, "jump": jump,
}  # fmt: skip


fault = Fault({})


def around(owner, name, before=None, after=None):
    """Wrap a function: `before` and `after` get its arguments."""
    original = getattr(owner, name)

    def wrapped(*args, **kwargs):
        if before:
            before(*args, **kwargs)
        result = original(*args, **kwargs)
        if after:
            after(*args, **kwargs)
        return result

    setattr(owner, name, wrapped)


def in_training_states(module):
    """The moments `save` and `writing`; the process is going to train."""
    global fault
    fault = Fault(take())

    def begin(states, step, state):
        fault.writing = step

    def end(states, step, state):
        fault.writing = None
        fault.reached("save", step)

    def synced(*args):
        if fault.writing is not None:
            fault.reached("writing", fault.writing)

    around(module.TrainingStates, "save", begin, end)
    around(module.os, "fsync", after=synced)
    note("start")
    if "before" in fault.plan:
        shell({"command": fault.plan["before"]})


def in_finetuning(module):
    """The moment `update`; where the run goes on is noted."""

    def reached(progress, step, *args, **kwargs):
        fault.reached("update", step)

    around(module.Progress, "__init__", after=lambda progress, *args: note("begin", step=progress.step))
    around(module.Progress, "after_update", before=reached)


def in_publishing(module):
    """The moments `publishing` and `published`."""
    around(module, "publish", lambda *args, **kwargs: fault.reached("publishing"))
    around(module, "prune", lambda *args, **kwargs: fault.reached("published"))


class Finder(importlib.abc.MetaPathFinder):
    """Runs the functions above right after the modules that they change are imported."""

    CHANGED = {  # noqa: RUF012
        "seedbed.training.training_state": in_training_states,
        "seedbed.training.progress": in_finetuning,
        "seedbed.running.publishing": in_publishing,
    }

    def find_spec(self, name, path, target=None):
        """The module's own spec, whose loader calls the function after the module is executed."""
        change = self.CHANGED.pop(name, None)
        if change is None:
            return None
        spec = importlib.util.find_spec(name)
        around(spec.loader, "exec_module", after=change)
        return spec


if FOLDER.name and TRAINS:
    sys.meta_path.insert(0, Finder())
