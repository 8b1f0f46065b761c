"""Forward and backward pass of a batch as a CUDA graph: one launch in place of some hundreds.

A GPU is through with the kernels of a small model before Python has launched the next ones. A graph launches
them all at once, but only for tensors of one shape that lie in one place. So batches are filled up to few
shapes, each shape is captured when it is first met, and a batch is copied to where the graph reads it.

On a CPU there are no graphs; what is here takes another `capture` for tests.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from seedbed.core.tasks import TASKS

MULTIPLE = 64  # tokens: lengths are filled up to a multiple of it
WARM_UPS = 3  # passes before a capture, in which libraries choose their kernels and take their memory
Tensors = Mapping[str, torch.Tensor]
Step = Callable[[Tensors], tuple[torch.Tensor, ...]]


def are_used(run: Mapping[str, Any], device: torch.device) -> bool:
    """Whether a run's updates are captured: a classifier's, on a GPU, where the run asks for it.

    Not in float16, whose loss is scaled by a factor that changes from update to update.
    """
    can_be = TASKS[run["task"]].cuda_graphs and run["settings"]["precision"] != "float16"
    return run["cuda_graphs"] and can_be and device.type == "cuda"


def filled_up(length: int, limit: int) -> int:
    """The length that batches of this length are padded to: a multiple, but no more than the limit."""
    return min(-(-length // MULTIPLE) * MULTIPLE, limit)


@dataclass(frozen=True)
class Graph:
    """A captured pass.

    Attributes:
        inputs: where it reads the batch.
        outputs: where it leaves what the step returned.
        replay: runs it.
    """

    inputs: dict[str, torch.Tensor]
    outputs: tuple[torch.Tensor, ...]
    replay: Callable[[], None]


class Graphed:
    """A training step that is captured once for each shape of its batches.

    Args:
        step: maps a batch to the loss, a scalar, and whatever else is wanted of it. It must not look at any
            value: what it does may depend on shapes alone.
        parameters: those that get gradients; the same tensors at every call.
        capture: makes a `Graph` of the step and an example of the batch, and says where gradients lie.
    """

    def __init__(self, step: Step, parameters: Iterable[torch.Tensor], capture: "CudaCapture | None" = None):
        self._parameters = list(parameters)
        self._capture = capture or CudaCapture()
        self._step = step
        self._graphs: dict[tuple[Any, ...], Graph] = {}

    def __call__(self, batch: Tensors) -> tuple[torch.Tensor, ...]:
        """Forward and backward pass; parameters have their gradients afterwards, in place of earlier ones.

        Returns:
            What the step returns, detached. The tensors are the caller's.
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
        """Give back what the graphs hold; the step is captured anew if it is called again."""
        self._capture.close()
        self._graphs.clear()
        for parameter in self._parameters:
            parameter.grad = None


class CudaCapture:
    """Captures on the current GPU. Its graphs share their memory, as only one of them is at work at a time.

    All warm up and are captured on one stream, which no other run uses at the time: a library keeps its
    workspace by stream, and frees it where a graph of the stream is dropped.

    Attributes:
        gradients: where all graphs leave the gradient of each parameter; None for one that the loss does not
            reach.
    """

    def __init__(self) -> None:
        self._pool = torch.cuda.graph_pool_handle()
        self._stream = torch.cuda.Stream()
        self.gradients: list[torch.Tensor | None] = []

    def __call__(self, step: Step, parameters: list[torch.Tensor], batch: Tensors) -> Graph:
        """Capture one pass; neither weights nor random numbers are moved by it."""
        _make_room()
        inputs = {name: tensor.clone() for name, tensor in batch.items()}
        random = torch.cuda.get_rng_state()
        # PyTorch's advice: passes on another stream first, so that nothing of them is a part of the graph
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
                # if each graph left them in a place of its own, there were as many copies as shapes
                leave(parameters, self.gradients)
            finally:
                graph.capture_end()
        for parameter in parameters:
            parameter.grad = None
        return Graph(inputs, outputs, graph.replay)

    def close(self) -> None:
        """Wait for the graphs, which are about to be dropped, and drop the gradients."""
        torch.cuda.synchronize()
        self.gradients = []


def _make_room() -> None:
    """Give back memory that PyTorch keeps unused, if what a pass took may not fit beside it once more.

    A capture takes its memory from its own pool and cannot use free memory elsewhere.
    """
    free, _ = torch.cuda.mem_get_info()
    if free < torch.cuda.memory_reserved():
        torch.cuda.empty_cache()


def pass_through(step: Step, parameters: list[torch.Tensor], inputs: Tensors) -> tuple[torch.Tensor, ...]:
    """Forward and backward pass, into gradients of their own: what a graph would add up to must be new."""
    for parameter in parameters:
        parameter.grad = None
    loss, *others = step(inputs)
    loss.backward()
    return loss.detach(), *(other.detach() for other in others)


def leave(parameters: list[torch.Tensor], gradients: list[torch.Tensor | None]) -> None:
    """Copy the parameters' gradients to `gradients`; the same ones must be None."""
    pairs = [
        (kept, parameter.grad)
        for kept, parameter in zip(gradients, parameters, strict=True)
        if kept is not None or parameter.grad is not None
    ]
    torch._foreach_copy_([kept for kept, _ in pairs], [gradient for _, gradient in pairs])
