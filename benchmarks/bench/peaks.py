"""What this machine does at most, measured in a process of its own: python peaks.py ASKED

ASKED is JSON: `device` (cpu or cuda), `precision` (a recipe's), `graphs` (whether a launch is that of a CUDA
graph) and `threads`, a list. A line of the output is a JSON list with the peaks for each number of threads,
see `measure`.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import torch

from seedbed.training import hardware

SECONDS = 0.4  # of each measurement, once all is warm
SIDE = {"cpu": 1536, "cuda": 8192}  # of square matrices; on a CPU for one thread
COPIED = {"cpu": 2**28, "cuda": 2**30}  # bytes of a copy, more than caches hold
CALLS = {"cpu": 1, "cuda": 4}  # in a row: waiting for a GPU takes some µs each time


def measure(device: str, precision: str, threads: int, graphs: bool) -> dict[str, float]:
    """Operations of a large square product a second, bytes that a copy reads and writes a second, and seconds
    of a launch (0 on a CPU); of repeated measurements the best.

    Args:
        device: cpu or cuda.
        precision: of a recipe; tf32 is float32 on a CPU.
        threads: that compute on the CPU, all in one process.
        graphs: whether a launch is that of a CUDA graph, else of a kernel.
    """
    hardware.set_up_torch(threads, False, precision)
    side = side_for(device, threads)
    dtype = hardware.AUTOCAST.get(precision, torch.float32)
    a, b = (torch.randn(side, side, device=device).to(dtype) for _ in range(2))
    product = torch.empty_like(a)
    taken = best(lambda: torch.mm(a, b, out=product), device, CALLS[device])
    return {
        "operations": 2 * side**3 / taken,
        "bytes": bandwidth(device),
        "launch": launch(graphs) if device == "cuda" else 0.0,
    }


def side_for(device: str, threads: int) -> int:
    """Rows of the matrices: a thread's part of the product is the same for any number of threads."""
    if device == "cuda":
        return SIDE[device]
    return round(SIDE[device] * threads ** (1 / 3) / 128) * 128


def bandwidth(device: str) -> float:
    """Bytes that a large copy within the device reads and writes a second."""
    size = COPIED[device]
    if device == "cuda":  # other processes may use the GPU
        size = min(size, torch.cuda.mem_get_info()[0] // 8)
    source = torch.ones(size // 4, device=device)
    target = torch.empty_like(source)
    return 2 * 4 * source.numel() / best(lambda: target.copy_(source), device, CALLS[device])


def launch(graphs: bool) -> float:
    """Seconds of launching a kernel on one number, or a graph of it, one after another."""
    number = torch.zeros(1, device="cuda")
    number.add_(1)  # what a first launch does cannot be captured
    if not graphs:
        return best(lambda: number.add_(1), "cuda", 1000)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        number.add_(1)
    return best(graph.replay, "cuda", 1000)


def best(action: Callable[[], object], device: str, calls: int) -> float:
    """The least seconds that a call takes, of repeats of so many calls over SECONDS seconds, two at least."""
    found: list[float] = []
    now = end = 0.0
    while len(found) < 3 or now < end:  # the first only warms up
        begin = time.perf_counter()
        for _ in range(calls):
            action()
        if device == "cuda":
            torch.cuda.synchronize()
        now = time.perf_counter()
        found.append((now - begin) / calls)
        end = end or now + SECONDS
    return min(found[1:])


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    threads = asked.pop("threads")
    print(json.dumps([measure(threads=number, **asked) for number in threads]))
