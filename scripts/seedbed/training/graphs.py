"""Forward and backward pass of a batch as a CUDA graph: one launch instead of some hundreds.

A GPU finishes the kernels of a small model before Python has launched the next ones. A graph launches them
all at once, but only for tensors of one shape at one address. So batches are padded to few shapes, each shape
is captured when it first occurs, and batches are copied to the graph's inputs.

A CPU has no graphs; tests use another `capture`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from seedbed.core.tasks import TASKS

MULTIPLE = 64  # tokens: lengths are padded to a multiple of it
WARM_UPS = 3  # passes before a capture, in which libraries choose their kernels and allocate memory
Tensors = Mapping[str, torch.Tensor]
Step = Callable[[Tensors], tuple[torch.Tensor, ...]]


def are_used(run: Mapping[str, Any], device: torch.device) -> bool:
    """Whether a run's updates are captured: for classifiers on a GPU, if the run asks for it.

    float16 is excluded, since the scale of its loss changes between updates; so is a head on given states,
    which is a handful of kernels.
    """
    can_be = TASKS[run["task"]].cuda_graphs and run["settings"]["precision"] != "float16"
    encodes = "states" not in run
    return run["cuda_graphs"] and can_be and encodes and device.type == "cuda"


def are_packed(run: Mapping[str, Any]) -> bool:
    """Whether captured batches are packed; see `Plan`, which decides it."""
    return bool(run.get("packed"))


def filled_up(length: int, limit: int) -> int:
    """The padded length of a batch: the next multiple of MULTIPLE, but at most the limit."""
    return min(-(-length // MULTIPLE) * MULTIPLE, limit)


@dataclass(frozen=True)
class Graph:
    """A captured pass.

    Attributes:
        inputs: tensors that it reads the batch from.
        outputs: tensors that it writes the step's results to.
        replay: runs it.
    """

    inputs: dict[str, torch.Tensor]
    outputs: tuple[torch.Tensor, ...]
    replay: Callable[[], None]


class Graphed:
    """A training step that is captured once for each shape of its batches.

    Args:
        step: maps a batch to the loss, a scalar, and other results. Its operations may depend on shapes but
            not on values.
        parameters: the parameters with gradients; the same tensors at each call.
        capture: makes a `Graph` from the step and an example of the batch, and stores gradients.
    """

    def __init__(self, step: Step, parameters: Iterable[torch.Tensor], capture: "CudaCapture | None" = None):
        self._parameters = list(parameters)
        self._capture = capture or CudaCapture()
        self._step = step
        self._graphs: dict[tuple[Any, ...], Graph] = {}

    def __call__(self, batch: Tensors) -> tuple[torch.Tensor, ...]:
        """Forward and backward pass; the new gradients of parameters replace earlier ones.

        Returns:
            The step's results, detached, in tensors of the caller's own.
        """
        shape = tuple((name, tuple(tensor.shape), tensor.dtype) for name, tensor in sorted(batch.items()))
        graph = self._graphs.get(shape)
        if graph is None:
            graph = self._graphs[shape] = self._capture(self._step, self._parameters, batch)
        for name, tensor in batch.items():
            graph.inputs[name].copy_(tensor, non_blocking=True)
        graph.replay()
        for parameter, gradient in zip(self._parameters, self._capture.gradients, strict=True):
            parameter.grad = gradient
        return tuple(output.clone() for output in graph.outputs)

    def close(self) -> None:
        """Free the graphs' memory; if the step is called again, it is captured again."""
        self._capture.close()
        self._graphs.clear()
        for parameter in self._parameters:
            parameter.grad = None


class CudaCapture:
    """Captures graphs on the current GPU, which share their memory, since only one runs at a time.

    All warm up and are captured on one stream, used by no other run: libraries keep a workspace for each
    stream, and free it when a graph of the stream is dropped.

    Attributes:
        gradients: tensors for the gradients of the parameters in all graphs; None for a parameter without.
    """

    def __init__(self) -> None:
        self._pool = torch.cuda.graph_pool_handle()
        self._stream = torch.cuda.Stream()
        self.gradients: list[torch.Tensor | None] = []

    def __call__(self, step: Step, parameters: list[torch.Tensor], batch: Tensors) -> Graph:
        """Capture one pass; weights and random numbers stay unchanged."""
        _make_room()
        inputs = {name: tensor.clone() for name, tensor in batch.items()}
        random = torch.cuda.get_rng_state()
        # PyTorch's advice: first passes on another stream, which do not become part of the graph
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            for _ in range(WARM_UPS):
                pass_through(step, parameters, inputs)
        torch.cuda.current_stream().wait_stream(self._stream)
        if not self.gradients:
            found = (parameter.grad for parameter in parameters)
            self.gradients = [None if gradient is None else torch.empty_like(gradient) for gradient in found]
        torch.cuda.set_rng_state(random)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        # what torch.cuda.graph does, but for giving back unused memory, which takes as long as the rest
        with torch.cuda.stream(self._stream):
            # the loader's thread, which pins memory, must not break the capture
            graph.capture_begin(pool=self._pool, capture_error_mode="thread_local")
            try:
                outputs = pass_through(step, parameters, inputs)
                # shared by all graphs, so that there is one copy instead of one per shape
                leave(parameters, self.gradients)
            finally:
                graph.capture_end()
        for parameter in parameters:
            parameter.grad = None
        return Graph(inputs, outputs, graph.replay)

    def close(self) -> None:
        """Wait for the graphs before they are dropped, and drop the gradients."""
        torch.cuda.synchronize()
        self.gradients = []


def _make_room() -> None:
    """Free PyTorch's unused memory if another pass might not fit beside it.

    A capture allocates from its own pool and cannot use free memory elsewhere.
    """
    free, _ = torch.cuda.mem_get_info()
    if free < torch.cuda.memory_reserved():
        torch.cuda.empty_cache()


def pass_through(step: Step, parameters: list[torch.Tensor], inputs: Tensors) -> tuple[torch.Tensor, ...]:
    """Forward and backward pass with new gradients, since a graph must not add to earlier ones."""
    for parameter in parameters:
        parameter.grad = None
    loss, *others = step(inputs)
    loss.backward()
    return loss.detach(), *(other.detach() for other in others)


def leave(parameters: list[torch.Tensor], gradients: list[torch.Tensor | None]) -> None:
    """Copy the parameters' gradients to `gradients`; both must be None for the same parameters."""
    pairs = [
        (kept, parameter.grad)
        for kept, parameter in zip(gradients, parameters, strict=True)
        if kept is not None or parameter.grad is not None
    ]
    torch._foreach_copy_([kept for kept, _ in pairs], [gradient for _, gradient in pairs])
