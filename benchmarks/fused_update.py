"""Milliseconds of an update of fused runs on a GPU, and the kernels that take them.

    python benchmarks/fused_update.py --tokens FOLDER/train.jsonl [--precision tf32] [--plain] [--kernels 25]

FOLDER holds a dataset's token ids (results/data/DATASET/MODEL/tokens). The model has RoBERTa-small's shape
and random weights; dropout is 0.1. `--plain` leaves Triton's kernels out.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

from seedbed.training import graphs, hardware
from seedbed.training.fused import acceleration
from seedbed.training.fused.batches import Batch, Filled
from seedbed.training.fused.model import Classifier, Dropout, Shape, initial_weights, stack
from seedbed.training.fused.operations import Operations
from seedbed.training.fused.optimizer import StackedAdamW
from seedbed.training.fused.order import orders
from seedbed.training.fused.texts import Texts
from seedbed.training.fused.trainer import FILLED_MULTIPLE, GRAPHED_MULTIPLE

SHAPE = Shape(4, 512, 512, 8, 32000, 256, "gelu", 2)
RECIPE: dict[str, Any] = {
    "random_init_sd": 0.02,
    "head_init": {"distribution": "normal", "sd": 0.02},
    "weight_decay": 0.01,
    "weight_decay_skip": [],
    "adam_betas": [0.9, 0.98],
    "adam_epsilon": 1e-6,
    "clip_norm": 0.0,
    "learning_rate": 1e-5,
    "warmup_ratio": 0.06,
    "schedule": "polynomial",
    "schedule_power": 1.0,
    "end_learning_rate": 0.0,
}
UPDATES, PROFILED = 100, 20


class Updates:
    """Updates of `seeds` runs on batches of 8 texts.

    Args:
        ids: token ids of the training texts.
        seeds: number of runs.
        precision: tf32 or bfloat16.
        plain: whether bfloat16 does without Triton's kernels.
    """

    def __init__(self, ids: list[list[int]], seeds: int, precision: str, plain: bool):
        device = torch.device("cuda")
        weights = stack([initial_weights(SHAPE, seed, RECIPE, None) for seed in range(seeds)], device)
        for tensor in weights.values():
            tensor.requires_grad_(True)
        self.filled = precision == "bfloat16"
        dtype = torch.bfloat16 if self.filled else torch.float32
        made = None
        if self.filled and not plain:
            schedule = acceleration.schedule(10_000, RECIPE, "transformers", device)
            made = acceleration.kernels(weights, schedule, RECIPE, draw=0)
        self.on, tables = made or (Operations(weights, SHAPE.activation, dtype), {})
        self.model = Classifier(SHAPE, self.on, Dropout(0.1, 0.1, 0.0, 0.1))
        self.model.training = True
        self.optimizer = StackedAdamW(weights, RECIPE, "transformers", tables)
        self.graphed = graphs.Graphed(self._step, self.optimizer.dense)
        self.texts, self.done = Texts(ids, device), 0
        streams = [orders("transformers", len(ids), 8, seed) for seed in range(seeds)]
        self.batches = [np.array(rows) for rows in zip(*map(next, streams), strict=True) if len(rows[0]) == 8]

    def _step(self, tensors: graphs.Tensors) -> tuple[torch.Tensor, torch.Tensor]:
        parts = {name: tensor for name, tensor in tensors.items() if name != "labels"}
        logits = self.model.logits(Filled(**parts) if self.filled else Batch(**parts))
        losses = F.cross_entropy(logits.float().flatten(0, 1), tensors["labels"], reduction="sum")
        return losses / 8, logits

    def update(self) -> None:
        """Make one."""
        chosen = self.batches[self.done % len(self.batches)]
        batch: Batch | Filled
        if self.filled:
            batch = self.texts.filled(chosen, None, FILLED_MULTIPLE)
        else:
            batch = self.texts.batch(chosen, None, GRAPHED_MULTIPLE, self.texts.longest)
        self.done += 1
        rows = self.model.rows(batch)
        self.optimizer.prepare(rows, self.done)
        parts = {name: part for name, part in vars(batch).items() if isinstance(part, torch.Tensor)}
        labels = torch.from_numpy(chosen.ravel() % 2).to(batch.ids.device)
        self.graphed(parts | {"labels": labels})
        self.optimizer.step(1e-5, self.done, rows)
        self.on.refresh(self.done)


def measure(updates: Updates) -> float:
    """Milliseconds of an update, after as many that capture the graphs."""
    for _ in range(UPDATES):
        updates.update()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(UPDATES):
        updates.update()
    torch.cuda.synchronize()
    return 1000 * (time.perf_counter() - begin) / UPDATES


def print_kernels(updates: Updates, shown: int) -> None:
    """The kernels of an update that take most of the GPU's time."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(PROFILED):
            updates.update()
        torch.cuda.synchronize()
    rows = sorted(profile.key_averages(), key=lambda row: -row.device_time_total)
    total = sum(row.device_time_total for row in rows)
    print(f"  {total / PROFILED / 1000:.3f} ms of kernels an update")
    for row in rows[:shown]:
        ms, times = row.device_time_total / PROFILED / 1000, row.count / PROFILED
        print(f"  {ms:8.4f} ms {times:6.1f} x {row.device_time_total / total:6.1%}  {row.key[:90]}")


def main() -> None:
    """Measure 3, 6 and 12 runs, or `--seeds`."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokens", type=Path, required=True, help="train.jsonl with token ids")
    parser.add_argument("--seeds", type=int, nargs="+", default=[3, 6, 12], help="numbers of runs")
    parser.add_argument("--precision", choices=["tf32", "bfloat16"], default="bfloat16")
    parser.add_argument("--plain", action="store_true", help="without Triton's kernels")
    parser.add_argument("--kernels", type=int, default=0, help="so many kernels of the last number of runs")
    asked = parser.parse_args()
    ids = [json.loads(line)["ids"] for line in asked.tokens.read_text(encoding="utf-8").splitlines()]
    hardware.set_up_torch(1, False, asked.precision)
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, {asked.precision}", end="")
    print(", without Triton's kernels" if asked.plain else "")
    for seeds in asked.seeds:
        torch.cuda.reset_peak_memory_stats()
        updates = Updates(ids, seeds, asked.precision, asked.plain)
        ms = measure(updates)
        memory = torch.cuda.max_memory_allocated() >> 20
        print(f"{seeds} runs: {ms:.2f} ms an update, {ms / seeds:.3f} ms a run, {memory} MiB", flush=True)
        if asked.kernels and seeds == asked.seeds[-1]:
            print_kernels(updates, asked.kernels)
        updates.graphed.close()
        del updates


if __name__ == "__main__":
    main()
