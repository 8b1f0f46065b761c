"""A run on its way: where it starts or goes on, what it recorded, and its training checkpoints."""

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

FORMAT = "format 2"  # of a state: one of another format is not read, and its run begins anew
log = logging.getLogger(__name__)


class Progress:
    """Runs on their way, mostly one: what they recorded, and the checkpoints from which they go on.

    Args:
        recorders: record the runs, by their names; restored where the runs go on.
        states: the training checkpoints.
        works: the runs' work folders.

    Attributes:
        resumed: what the trainer gave to `after_update` when the state was written, tensors on the CPU; None
            where the runs start anew.
        step: updates made when the state was written; 0 where the runs start anew.
    """

    def __init__(self, recorders: Mapping[str, Recorder], states: TrainingStates, works: Sequence[Path]):
        self._recorders, self._states, self._works = recorders, states, works
        self.step, self.resumed = 0, None
        state = states.newest()
        if state is not None and recorders.keys() <= state["recorders"].keys():
            self._resume(state)

    @property
    def recorder(self) -> Recorder:
        """That of the run; of several, the first one's, whose clock is that of all."""
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
        """Write a training checkpoint if one is due, then leave if a signal asked for it.

        To be called wherever the run could go on from: after every update, also the last of an epoch, during
        and after its evaluation.

        Args:
            step: updates made.
            framework_state: what the trainer needs to go on from here, as in `TrainingStates.save`; called
                only where a state is written, and not copied.

        Raises:
            Interrupted: a signal asked the process to leave.
            SeedbedError: another process has taken a run over.
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
    """Start a run, or go on with it where a checkpoint of the same run is found in its work folder.

    Its files lie in the work folder until they are published. A run that began on a GPU does not go on
    without one, nor the reverse: its numbers would be those of neither.

    Args:
        job: the run.
        examples: size of the training split.

    Raises:
        Interrupted: a signal asked the process to leave before it began.
    """
    interruption.leave_if_requested()
    device = hardware.choose_device(job.run["device"])
    total = total_updates(job, examples)
    recorder = Recorder(job.settings, total, job.work / "run", device, job.task)
    identity = f"{job.identity} {device.type} {FORMAT}"
    states = TrainingStates(job.work / "states", identity, **job.checkpointing)
    return Progress({job.name: recorder}, states, [job.work])


def total_updates(job: Job, examples: int) -> int:
    """Updates of a run; the same for every framework and init, and none where nothing is trained."""
    if not job.method.trains:
        return 0
    return job.settings["epochs"] * updates_per_epoch(examples, job.settings["batch_size"])


def check_updates(found: int, planned: int) -> None:
    """Every run of a recipe makes the same number of updates, whatever its framework and init.

    Raises:
        SeedbedError: this one does not.
    """
    if found != planned:
        raise SeedbedError(
            "the framework makes another number of updates than planned",
            found=f"{found} of {planned}",
            hint="this is a fault of the workflow",
        )
