"""How many jobs fit on a GPU, for `gpus.runs_per_gpu: auto`: a bound of the memory of each, from model.json.

A run that finds no memory ends, so the bound is generous. For RoBERTa-small on texts of 256 tokens it is
2,986 MiB; three such runs took 5,198 MiB of an H200 (benchmarks/results/local_gpu/gpus.csv).
"""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_json
from seedbed.core.methods import METHODS, Method
from seedbed.core.tasks import ENCODER
from seedbed.models.parameters import expected_parameters
from seedbed.running import gpus

if TYPE_CHECKING:
    from seedbed.config.plan import Plan
    from seedbed.running.jobs import Job

MOST = 12  # processes on a GPU, the highest number measured: a grid of 12 runs took 54.4 s on an H200
PROCESS = 1024  # MiB of a process besides tensors: CUDA's context and libraries
UNUSED = 0.15  # of what PyTorch's allocator holds, since blocks do not fit each other
# weights, gradients, two moments, the selected weights, and a copy in another precision
COPIES = 6
FROZEN_COPIES = 2  # weights, and a copy in another precision; what is trained is small
MIB = 2**20  # bytes
GIB = 2**10  # MiB
MPS_PIPE = "CUDA_MPS_PIPE_DIRECTORY"  # with this variable CUDA uses NVIDIA's MPS


class Place(NamedTuple):
    """What a job allows on its GPU.

    Attributes:
        limit: number of jobs, itself among them.
        room: GiB for all of them, which others have left; None if the number was given, or nothing is known.
    """

    limit: int
    room: int | None = None


# --- a bound of what a job takes ----------------------------------------------------------------------------


def of_job(jobs: Sequence["Job"], at_once: int = 1) -> float | None:
    """A bound of the GPU memory of a job.

    Args:
        jobs: its runs; fused seeds are there at the same time, others one after another.
        at_once: number of its processes.

    Returns:
        MiB; None for models of generation, which mostly need a GPU alone.
    """
    if jobs[0].task.model != ENCODER:
        return None
    tensors = max(
        _of_run(
            read_json(job.model),
            job.settings,
            job.run["evaluation"]["batch_size"],
            job.method,
            job.task.cuda_graphs and job.run["cuda_graphs"],
        )
        for job in jobs
    )
    together = len(jobs[0].run["fused"]) if jobs[0].trainer.together else 1
    return at_once * _of_process(tensors * together)


def of_plan(plan: "Plan") -> float | None:
    """The smallest bound of a job of the experiment, in MiB; a model that is not made yet counts nothing.

    Returns:
        None for models of generation.
    """
    if plan.task.model != ENCODER:
        return None
    config, found = plan.config, []
    folder = plan.results / "models"
    try:
        models = {name: read_json(folder / name / "model.json") for name in {run.model for run in plan.runs}}
    except (OSError, SeedbedError):
        return float(PROCESS)
    for run in {(run.model, run.recipe): run for run in plan.runs}.values():
        tensors = _of_run(
            models[run.model],
            config["recipes"][run.recipe],
            config["evaluation"]["batch_size"],
            METHODS[run.method],
            plan.task.cuda_graphs and config["cuda_graphs"],
        )
        found.append(_of_process(tensors * plan.together(run)))
    return plan.batching.at_once * min(found)


def _of_process(tensors: float) -> float:
    return PROCESS + tensors * (1 + UNUSED) / MIB


def _of_run(
    model: Mapping[str, Any], settings: Mapping[str, Any], evaluated: int, method: Method, graphs: bool
) -> float:
    """Bytes of the tensors of a run; `evaluated`: texts of a batch in evaluation."""
    if method.reads_states:
        return 0  # a head alone
    lengths = [length for length in (model["max_positions"], settings["max_positions"]) if length]
    length = min(lengths)  # one of them is there: `models.limits` refuses the others
    copies = FROZEN_COPIES if method.freezes else COPIES + graphs
    layer = 4 * length * model["embed_dim"] * _activations(length)
    training = settings["batch_size"] * model["layers"] * layer
    evaluation = evaluated * layer  # without gradients a layer's are freed after the next one's
    # a capture allocates what the passes before it have allocated, and keeps it
    activations = 2 * training + evaluation if graphs else max(training, evaluation)
    return 4 * copies * _parameters(model) + activations


def _activations(length: int) -> float:
    """Numbers that a layer of a Transformer keeps for the backward pass, per token and channel.

    34 + 5 a s / h bytes in 16 bits, so 17 + 2.5 a s / h numbers: Korthikanti et al. 2022, equation 2, for
    attention that keeps its matrices. Heads (h / a channels) have at least 32 here.
    """
    return 17 + 2.5 * length / 32


def _parameters(model: Mapping[str, Any]) -> int:
    """Number of parameters of a model from its model.json."""
    if "parameters" in model:
        return model["parameters"]
    return expected_parameters(
        model["layers"], model["embed_dim"], model["ffn_dim"], model["vocabulary"], model["max_positions"]
    )["total"][1]


# --- how many fit -------------------------------------------------------------------------------------------


def most(device: str, need: float | None, at_once: int = 1) -> int:
    """The number of jobs that fit on a GPU which nobody else uses.

    Args:
        device: its UUID.
        need: MiB of a job; None if it needs a GPU alone.
        at_once: processes of a job.

    Returns:
        1 if the GPU's memory is unknown, or only one process may use it.
    """
    memory = _memory(device)
    if memory is None or need is None:
        return 1
    return _fitting(memory.total, need, at_once)


def place(device: str, need: float | None, there: Sequence[Place], at_once: int = 1) -> Place:
    """What a job may allow that comes to a GPU now.

    Memory that others use is known while no job is there. Later jobs take over the room that the first one
    found.

    Args:
        device: its UUID.
        need: MiB of the job; None if it needs a GPU alone.
        there: what the jobs allow that are there.
        at_once: processes of the job.

    Returns:
        Its place. If the job does not fit, the limit is no higher than the number of jobs there.
    """
    memory = _memory(device)
    if memory is None or need is None:
        return Place(1)
    rooms = [each.room for each in there if each.room is not None]
    room = min(rooms) if rooms else int(memory.free // GIB)
    if there and memory.free < need:  # others have come
        return Place(len(there), room)
    before = 0 if rooms else len(there)  # their numbers were given, and `free` is beside them
    return Place(min(before + _fitting(room * GIB, need, at_once), _most(at_once)), room)


def _fitting(room: float, need: float, at_once: int) -> int:
    return max(1, min(int(room / need), _most(at_once)))


def _most(at_once: int) -> int:
    return max(1, MOST // at_once)


def _memory(device: str) -> gpus.Memory | None:
    """A GPU's memory; None if unknown, or if a second process there would fail."""
    memory = gpus.memory(device)
    if memory is None or (memory.exclusive and not os.environ.get(MPS_PIPE)):
        return None
    return memory
