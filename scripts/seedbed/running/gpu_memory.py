"""How many runs fit on a GPU, for `gpus.runs_per_gpu: auto`: a bound of what a run takes, from model.json.

The bound is generous, since a run that finds no memory ends: measured peaks of RoBERTa-small were 646 MiB
with Transformers and 843 with fairseq, where it is 2,643.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from seedbed.core.files import read_json
from seedbed.core.tasks import ENCODER
from seedbed.models.parameters import expected_parameters
from seedbed.running import gpus

if TYPE_CHECKING:
    from seedbed.running.jobs import Job

# Runs on a GPU: those of two frameworks, two inits and three seeds, whose grid on an H200 took 54.4 s at once
MOST = 12
# MiB of a process besides tensors: CUDA's context, and what PyTorch's allocator keeps
PROCESS = 1024
# weights, their gradients, two moments, and the selected weights or a copy in another precision
COPIES = 5
MIB = 2**20


def of_process(jobs: Sequence["Job"]) -> float | None:
    """A bound of the GPU memory of a process that trains these runs.

    Args:
        jobs: the runs; fused seeds are there at the same time, others one after another.

    Returns:
        MiB; None for models of generation, which mostly need a GPU alone, and for texts of any length.
    """
    needs = [_of_run(job) for job in jobs]
    if not needs or None in needs:
        return None
    known = [need for need in needs if need is not None]
    together = len(jobs[0].run.get("fused", ())) if jobs[0].trainer.together else 1
    return max(known) * together + PROCESS


def _of_run(job: "Job") -> float | None:
    model = read_json(job.model)
    limits = [limit for limit in (model["max_positions"], job.settings.get("max_positions")) if limit]
    if job.task.model != ENCODER or not limits:
        return None
    length = min(limits)
    states = COPIES * 4 * _parameters(model)
    layer = 4 * length * model["embed_dim"] * _activations(length)
    training = job.settings["batch_size"] * model["layers"] * layer
    evaluation = job.run["evaluation"]["batch_size"] * layer  # without gradients a layer frees the one before
    return (states + max(training, evaluation)) / MIB


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


def fitting(device: str, need: float | None, is_empty: bool, at_once: int = 1) -> int:
    """The number of jobs that fit on a GPU.

    Args:
        device: its name, a UUID.
        need: MiB of a process, None if unknown.
        is_empty: whether no job of Seedbed is there, so that what is taken is taken by others.
        at_once: processes of a job.

    Returns:
        1 to MOST; 1 if the memory of the GPU or of the process is unknown.
    """
    memory = gpus.memory(device)
    if memory is None or need is None:
        return 1
    room = memory.free if is_empty else memory.total
    return max(1, min(int(room / need), MOST) // at_once)
