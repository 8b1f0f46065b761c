"""The progress of a run: its start or resumption, its records, and its training checkpoints."""

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from seedbed.core import interruption
from seedbed.core.errors import SeedbedError
from seedbed.running import claims
from seedbed.running.jobs import Job
from seedbed.training import hardware
from seedbed.training.recording import Recorder
from seedbed.training.schedule import updates_per_epoch
from seedbed.training.training_state import TrainingStates

FORMAT = "format 2"  # of a state; states of other formats are ignored, and their runs begin anew
log = logging.getLogger(__name__)


class Progress:
    """The progress of runs, mostly of one: their records and checkpoints.

    Args:
        recorders: the runs' recorders by name; restored if the runs are resumed.
        states: the training checkpoints.
        works: the runs' work folders.

    Attributes:
        resumed: the trainer's state from `after_update`, with tensors on the CPU; None if the runs start
        anew.
        step: number of updates in that state; 0 if the runs start anew.
    """

    def __init__(self, recorders: Mapping[str, Recorder], states: TrainingStates, works: Sequence[Path]):
        self._recorders, self._states, self._works = recorders, states, works
        self.step, self.resumed = 0, None
        state = states.newest()
        if state is not None and recorders.keys() <= state["recorders"].keys():
            self._resume(state)

    @property
    def recorder(self) -> Recorder:
        """The run's recorder; of several runs, the first one's, whose clock all share."""
        return next(iter(self._recorders.values()))

    def _resume(self, state: dict[str, Any]) -> None:
        self.step, self.resumed = state["step"], state["framework"]
        for name, recorder in self._recorders.items():
            recorder.restore(state["recorders"][name])
            recorder.resumed = [*recorder.resumed, {"step": self.step, "cause": state["cause"]}]
        self._states.written = self.recorder.checkpoints["written"] + 1  # the state that was read is one
        self._states.seconds = self.recorder.checkpoints["seconds"]
        log.info("going on after update %d of %d", self.step, self.recorder.total_updates)

    def after_update(self, step: int, framework_state: Callable[[], dict[str, Any]]) -> None:
        """Write a training checkpoint if one is due, then end if a signal asked for it.

        Call it where the run could be resumed: after each update, also the last of an epoch, and during and
        after evaluation.

        Args:
            step: number of updates made.
            framework_state: returns the trainer's state for `TrainingStates.save`; called only to write it.

        Raises:
            Interrupted: a signal asked the process to end.
            SeedbedError: another process has taken over a run.
        """
        if self._states.due():
            before = self.recorder.clock.switch("write")
            recorded = {name: recorder.state() for name, recorder in self._recorders.items()}
            cause = interruption.requested()
            for work in self._works:
                claims.confirm(work)  # the folder is another's, if this process was thought dead
            state = {"step": step, "cause": cause, "recorders": recorded, "framework": framework_state()}
            self._states.save(step, state)
            for recorder in self._recorders.values():
                recorder.checkpoints = {"written": self._states.written, "seconds": self._states.seconds}
            self.recorder.clock.switch(before)
        interruption.leave_if_requested()


def start(job: Job, examples: int) -> Progress:
    """Start a run, or resume it from a checkpoint in its work folder.

    Its files are in the work folder until they are published. A run that began on a GPU is not resumed
    without one, nor the reverse, since its numbers would be a mixture.

    Args:
        job: the run.
        examples: size of the training split.

    Raises:
        Interrupted: a signal asked the process to end before the run began.
    """
    interruption.leave_if_requested()
    device = hardware.choose_device(job.run["device"])
    total = total_updates(job, examples)
    recorder = Recorder(job.settings, total, job.work / "run", device, job.task, job.about_labels)
    identity = f"{job.identity} {device.type} {FORMAT}"
    states = TrainingStates(job.work / "states", identity, **job.checkpointing)
    return Progress({job.name: recorder}, states, [job.work])


def total_updates(job: Job, examples: int) -> int:
    """Number of updates of a run, the same for all frameworks and inits; 0 if nothing is trained."""
    if not job.method.trains:
        return 0
    return job.settings["epochs"] * updates_per_epoch(examples, job.settings["batch_size"])


def check_updates(found: int, planned: int) -> None:
    """Check a run's number of updates, which is the same for all frameworks and inits of a recipe.

    Raises:
        SeedbedError: the numbers differ.
    """
    if found != planned:
        raise SeedbedError(
            "the framework's number of updates differs from the plan",
            found=f"{found} of {planned}",
            hint="this is a bug of the workflow",
        )
