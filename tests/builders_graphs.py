"""CUDA graphs without a GPU: a stand-in keeps the step that is captured.

It replays it on the tensors that a graph would read, and into those that it would leave.
"""

import numpy as np
import pytest
import torch
from builders_stops import record
from builders_training import make_fairseq_job, make_job, make_run

from seedbed.training import graphs, packing

NO_DROPOUT = dict.fromkeys(("dropout", "attention_dropout", "pooler_dropout"), 0.0)


def trained(folder, framework: str, name: str, **changes):
    """Train a run: its metrics, run.json, and job; `changes` as those of `make_run`."""
    make = make_fairseq_job if framework == "fairseq" else make_job
    if "fused" in changes:
        from seedbed.training.fused import trainer
    elif framework == "fairseq":
        from seedbed.training.fairseq import trainer
    else:
        from seedbed.training.transformers import classifier as trainer
    job = make(folder, make_run(framework, **changes), name)
    trainer.train([job])
    rows = (job.target / "metrics.csv").read_text().splitlines()[1:]
    return np.array([float(row.split(",")[4]) for row in rows]), record(job), job


class StandIn:
    """Captures as the GPU does, for the CPU; counts what it captured."""

    def __init__(self) -> None:
        self.shapes: list[dict] = []
        self.gradients: list[torch.Tensor | None] = []
        self.closed = 0

    def close(self) -> None:
        self.gradients = []
        self.closed += 1

    def __call__(self, step, parameters, batch) -> graphs.Graph:
        self.shapes.append({name: tuple(tensor.shape) for name, tensor in batch.items()})
        inputs = {name: tensor.clone() for name, tensor in batch.items()}
        random = torch.get_rng_state()
        outputs = graphs.pass_through(step, parameters, inputs)
        torch.set_rng_state(random)
        if not self.gradients:
            self.gradients = [parameter.grad for parameter in parameters]

        def replay() -> None:
            again = graphs.pass_through(step, parameters, inputs)
            for kept, new in zip(outputs, again, strict=True):
                kept.copy_(new)
            graphs.leave(parameters, self.gradients)

        return graphs.Graph(inputs, outputs, replay)


@pytest.fixture
def captures(monkeypatch):
    """Runs on the CPU take themselves for runs on a GPU, as far as batches and graphs go."""
    made: list[StandIn] = []

    def capture() -> StandIn:
        made.append(StandIn())
        return made[-1]

    monkeypatch.setattr(graphs, "CudaCapture", capture)
    monkeypatch.setattr(graphs, "are_used", lambda run, device: run["cuda_graphs"])
    monkeypatch.setattr(graphs, "MULTIPLE", 8)
    monkeypatch.setattr(packing, "is_used_on", lambda device: False)
    return made
