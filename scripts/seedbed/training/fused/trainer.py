"""Fused seeds: train all seeds of a recipe, pretrained and random, as one batched model, and record each run.

Each seed has the weights and the order of examples of a separate run, and its own selection; only the
arithmetic is shared. Without dropout, a seed's numbers equal those of a separate run except for rounding.
With dropout, random numbers are drawn for all seeds together, so they are others of the same distribution.
"""

import concurrent.futures
import functools
import hashlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F

from seedbed.core import files, interruption
from seedbed.running.jobs import PREDICTED, Job
from seedbed.training import (
    adapter_parameters,
    differences,
    graphs,
    hardware,
    packing,
    products,
    results,
    token_ids,
)
from seedbed.training.class_weights import class_weights
from seedbed.training.differences import Difference, difference
from seedbed.training.fused import acceleration
from seedbed.training.fused.adapters import Adapters
from seedbed.training.fused.batches import Batch, Filled
from seedbed.training.fused.model import (  # fmt: skip
    Classifier,
    Dropout,
    Shape,
    initial_weights,
    named_for,
    read_checkpoint,
    stack,
    unstack,
)
from seedbed.training.fused.operations import Operations, Weights
from seedbed.training.fused.optimizer import StackedAdamW
from seedbed.training.fused.order import Batches, orders
from seedbed.training.fused.texts import Texts
from seedbed.training.graphs import Graphed, Tensors
from seedbed.training.progress import FORMAT, Progress, total_updates
from seedbed.training.recording import Recorder
from seedbed.training.results import Classified
from seedbed.training.schedule import learning_rate, updates_per_epoch
from seedbed.training.token_ids import Split
from seedbed.training.training_state import TrainingStates

if TYPE_CHECKING:
    from seedbed.training.fused.tables import Table

MULTIPLE = 8  # tokens of a batch are padded to a multiple, so that repeated shapes reuse memory
GRAPHED_MULTIPLE = 256  # the same for CUDA graphs, one for each shape
FILLED_MULTIPLE = 128  # the same in half precision on a GPU
log = logging.getLogger(__name__)


def train(jobs: Sequence[Job]) -> None:
    """Train all seeds of the group that the jobs belong to, and publish the jobs' runs.

    Seeds of the group that have no job here were published before; they are trained again, because the random
    numbers of dropout are drawn for the group as a whole.

    Args:
        jobs: runs of one group (`run["fused"]` lists its seeds), in the order of the group.

    Raises:
        SeedbedError: the checkpoint does not fit the model.
        Interrupted: a signal ended training.
    """
    interruption.leave_if_requested()
    hardware.set_up_torch(jobs[0].threads, jobs[0].run["deterministic"], jobs[0].settings["precision"])
    group = Group(jobs)
    group.train()
    group.publish()


@dataclass
class SeedRun:
    """A run of the group to publish.

    Attributes:
        job: the run.
        recorder: its recorder.
        place: its seed's place in the group.
        ended: the update at which it diverged, after which nothing is recorded.
    """

    job: Job
    recorder: Recorder
    place: int
    ended: int | None = None


class Group:
    """The training of the seeds of a dataset, model, framework and recipe.

    Args:
        jobs: as in `train`.
    """

    def __init__(self, jobs: Sequence[Job]):
        self.jobs, job = list(jobs), jobs[0]
        self.members: list[list[Any]] = job.run["fused"]  # init, init seed and data seed of each
        self.settings, self.framework = job.settings, job.run["framework"]
        self.splits = token_ids.read_splits(job)
        self.device = hardware.choose_device(job.run["device"])
        self.total = total_updates(job, len(self.splits["train"].ids))
        self.runs = [
            SeedRun(
                job,
                Recorder(job.settings, self.total, job.work / "run", self.device, job.task, job.about_labels),
                self.members.index([job.run["init"], job.run["init_seed"], job.run["data_seed"]]),
            )
            for job in self.jobs
        ]
        self.clock = self.runs[0].recorder.clock
        self.texts = {name: Texts(split.ids, self.device) for name, split in self.splits.items()}
        self._class_weights = class_weights(
            self.settings, self.splits["train"].labels, job.head_size, self.device
        )
        self._train_labels = torch.tensor(self.splits["train"].labels, device=self.device)
        self._build()
        self.progress = self._progress()
        self.step = self.progress.step
        if self.progress.resumed is not None:
            self._resume(self.progress.resumed)
            self.progress.resumed = None
        for run in self.runs[1:]:
            run.recorder.clock = self.clock  # one process, one time

    # --- start ---

    def _build(self) -> None:
        job, settings = self.jobs[0], self.settings
        shape = _shape(job)
        self.adapters = Adapters(job, self.members, self.device) if job.method.has_adapter else None
        shared = self.adapters and all(init == "pretrained" for init, *_ in self.members)
        seeds = self._draw(shape, self.members[:1] if shared else self.members)
        self.weights = self.adapters.weights if self.adapters else stack(seeds, self.device)
        for tensor in self.weights.values():
            tensor.requires_grad_(True)
        torch.manual_seed(self._dropout_seed)
        dropout = Dropout(
            hidden=settings["dropout"],
            attention=settings["attention_dropout"],
            # as in separate runs: Transformers' RoBERTa has none
            activation=settings["activation_dropout"] if self.framework == "fairseq" else 0.0,
            pooler=settings["pooler_dropout"],
            adapter=settings["lora"]["lora_dropout"] if self.adapters else 0.0,
        )
        short_products = products.are_used(settings, self.device)
        if short_products:
            products.warn_if_slow()
        all_short = settings["precision"] == "bfloat16" and not short_products
        dtype = torch.bfloat16 if all_short else torch.float32
        self.filled = packing.can_fill(self.device, dtype)
        if self.adapters:
            self.operations = self.adapters.operations(seeds, shape.activation, dtype, short_products)
            tables = {}
        else:
            self.operations, tables = self._operations(shape.activation, dtype, short_products)
        self.model = Classifier(shape, self.operations, dropout)
        self.optimizer = StackedAdamW(self.weights, settings, self.framework, tables)

    def _draw(self, shape: Shape, members: Sequence[Sequence[Any]]) -> list[Weights]:
        """Initial weights of members, of which those from the checkpoint share its tensors."""
        starts = dict.fromkeys(init for init, *_ in members)
        if "pretrained" in starts:
            starts["pretrained"] = read_checkpoint(self.jobs[0].weights, self.framework, shape)

        def draw(member: Sequence[Any]) -> Weights:
            init, seed, _ = member
            return initial_weights(shape, seed, self.settings, starts[init])

        # drawing RoBERTa-small takes 0.15 s a seed
        with concurrent.futures.ThreadPoolExecutor() as threads:
            return list(threads.map(draw, members))

    def _operations(
        self, activation: str, dtype: torch.dtype, short_products: bool
    ) -> "tuple[Operations, dict[str, Table]]":
        """The operations where all weights are trained, and the embedding tables by name."""
        made = None
        if self.filled and activation == acceleration.ACTIVATION:
            schedule = acceleration.schedule(self.total, self.settings, self.framework, self.device)
            made = acceleration.kernels(self.weights, schedule, self.settings, self._dropout_seed % 2**62)
        return made or (Operations(self.weights, activation, dtype, short_products), {})

    @property
    def _dropout_seed(self) -> int:
        """A number of 64 bits, with its sign, from the members' data seeds."""
        seeds = [data_seed for *_, data_seed in self.members]
        digest = hashlib.sha256(repr(seeds).encode()).digest()
        return int.from_bytes(digest[:8], "little", signed=True)

    def _progress(self) -> Progress:
        """The progress of the group, from its newest state if that has all runs to publish."""
        last = self.jobs[-1]  # published last, so its work folder exists until the end
        identity = f"{last.identity} {self.device.type} fused {FORMAT}"
        states = TrainingStates(last.work / "states", identity, **last.checkpointing)
        weights = sum(tensor.nbytes for tensor in self.weights.values())
        states.expect((3 + len(self.runs) / len(self.members)) * weights)  # with two moments and selections
        recorders = {run.job.name: run.recorder for run in self.runs}
        return Progress(recorders, states, [job.work for job in self.jobs])

    def _resume(self, state: dict[str, Any]) -> None:
        """Continue from a result of `_state`."""
        with torch.no_grad():
            for name, tensor in self.weights.items():
                tensor.copy_(state["weights"][name])
        self.optimizer.load_state_dict(state["optimizer"], self.step)
        self.operations.refresh(self.step)
        torch.set_rng_state(state["random"])
        if state["random_gpu"] is not None:
            torch.cuda.set_rng_state(state["random_gpu"], self.device)
        for run in self.runs:
            run.ended = state["ended"][run.job.name]

    # --- training ---

    def train(self) -> None:
        """Make all updates, and evaluate after each epoch."""
        per_epoch = updates_per_epoch(len(self.splits["train"].ids), self.settings["batch_size"])
        done_epochs, done_updates = divmod(self.step, per_epoch)
        self.clock.switch("train")
        if self.step and not done_updates:  # stopped at the end of an epoch, with missing records
            self._evaluate(done_epochs)
        for epoch, batches in self._epochs():
            if epoch <= done_epochs or all(run.ended for run in self.runs):
                continue
            for chosen, sizes in batches[done_updates:]:
                self._update(chosen, sizes)
                self._save_if_due()
            done_updates = 0
            self._evaluate(epoch)
            self._save_if_due()
        if self._graphed:
            self._graphed.close()

    def _epochs(self) -> Iterator[tuple[int, list[tuple[np.ndarray, np.ndarray]]]]:
        """Epochs from 1, and the batches of each (see `aligned`)."""
        size, examples = self.settings["batch_size"], len(self.splits["train"].ids)
        streams: list[Iterator[Batches]] = [
            orders(self.framework, examples, size, data_seed) for *_, data_seed in self.members
        ]
        for epoch in range(1, self.settings["epochs"] + 1):
            yield epoch, aligned([next(stream) for stream in streams])

    def _update(self, chosen: np.ndarray, sizes: np.ndarray) -> None:
        batch = self._batch(chosen, sizes)
        labels = self._train_labels[torch.from_numpy(chosen).to(self.device)]
        shares = (np.arange(chosen.shape[1]) < sizes[:, None]) / sizes[:, None]
        shares = torch.from_numpy(shares).float().to(self.device)
        rate = learning_rate(self.step, self.total, self.settings)
        self.step += 1
        rows = self.model.rows(batch)
        self.optimizer.prepare(rows, self.step)
        self.model.training = True
        _, logits = self._pass_through(batch, labels, shares)
        self.optimizer.step(rate, self.step, rows)
        self.operations.refresh(self.step)
        for run in self._going_on():
            size = sizes[run.place]
            run.recorder.add_batch(logits[run.place, :size], labels[run.place, :size])
            run.recorder.count_tokens(batch.real[run.place], batch.ids.shape[1])

    def _batch(self, chosen: np.ndarray, sizes: np.ndarray) -> Batch | Filled:
        texts = self.texts["train"]
        if self.filled:
            return texts.filled(chosen, sizes, FILLED_MULTIPLE)
        if self._graphed:
            return texts.batch(chosen, sizes, GRAPHED_MULTIPLE, texts.longest)
        return texts.batch(chosen, sizes, MULTIPLE)

    def _pass_through(
        self, batch: Batch | Filled, labels: torch.Tensor, shares: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """Forward and backward pass; the loss and all seeds' logits, detached."""
        tensors = {"labels": labels, "shares": shares}
        if not self._graphed:
            step = functools.partial(self._loss_and_logits, batch)
            return graphs.pass_through(step, self.optimizer.dense, tensors)
        in_batch = {name: part for name, part in vars(batch).items() if isinstance(part, torch.Tensor)}
        return self._graphed(in_batch | tensors)

    @functools.cached_property
    def _graphed(self) -> Graphed | None:
        """The pass as CUDA graphs; None if they are not used."""
        if not graphs.are_used(self.jobs[0].run, self.device):
            return None

        def step(tensors: Tensors) -> tuple[torch.Tensor, torch.Tensor]:
            parts = {name: tensors[name] for name in tensors if name not in ("labels", "shares")}
            return self._loss_and_logits(kind(**parts), tensors)

        kind = Filled if self.filled else Batch
        return Graphed(step, self.optimizer.dense)

    def _loss_and_logits(self, batch: Batch | Filled, tensors: Tensors) -> tuple[torch.Tensor, torch.Tensor]:
        """The sum of all seeds' mean losses, where a seed's gradient is that of its own loss, and logits."""
        logits = self.model.logits(batch)
        labels, shares = tensors["labels"].flatten(), tensors["shares"].flatten()
        losses = F.cross_entropy(
            logits.float().flatten(0, 1), labels, weight=self._class_weights, reduction="none"
        )
        return (losses * shares).sum(), logits

    def _going_on(self) -> list[SeedRun]:
        """The runs that are still recorded, since their seeds have not diverged."""
        return [run for run in self.runs if run.ended is None]

    # --- evaluation ---

    def _evaluate(self, epoch: int) -> None:
        """End an epoch: training metrics, then validation (and test if its curve is requested)."""
        self.optimizer.catch_up(self.step)
        for name in ("train", *self.jobs[0].evaluated):
            left = [run for run in self._going_on() if not run.recorder.holds(name, self.step)]
            if not left:
                continue
            if name == "train":
                for run in left:
                    run.recorder.end_training_epoch(self.step, epoch)
                continue
            self.clock.switch("evaluate")
            logits, labels = self.predict(name), np.asarray(self.splits[name].labels)
            for run in left:
                weights = functools.partial(unstack, self.weights, run.place)
                run.recorder.evaluated(name, logits[run.place], labels, self.step, epoch, weights)
        for run in self._going_on():
            run.recorder.resume_training()
            if run.recorder.diverged:
                run.ended = self.step
                if run.recorder.selected is None:
                    run.recorder.select_last(self.step, epoch, unstack(self.weights, run.place))

    @torch.no_grad()
    def predict(self, name: str) -> np.ndarray:
        """Logits of every example of a split by every seed, (seeds, examples, classes), without dropout."""
        self.model.training = False
        texts = self.texts[name]
        size = self.jobs[0].run["evaluation"]["batch_size"]
        if self.device.type == "cpu":
            size = max(8, size // len(self.members))
        order, parts = [], []
        for chosen in token_ids.batches_by_length(texts.lengths, size):
            self._save_if_due()
            together = np.tile(chosen, (len(self.members), 1))
            batch = texts.filled(together) if self.filled else texts.batch(together, multiple=MULTIPLE)
            parts.append(self.model.logits(batch).float())
            order += chosen
        stacked = torch.cat(parts, dim=1).cpu().numpy()
        logits = np.empty_like(stacked)
        logits[:, order] = stacked
        return logits

    # --- going on after a stop ---

    def _save_if_due(self) -> None:
        """Write the group's state if one is due; end if a signal asked for it."""
        self.progress.after_update(self.step, self._state)

    def _state(self) -> dict[str, Any]:
        on_gpu = self.device.type == "cuda"
        self.optimizer.catch_up(self.step)
        return {
            "weights": {name: tensor.detach() for name, tensor in self.weights.items()},
            "optimizer": self.optimizer.state_dict(),
            "random": torch.get_rng_state(),
            "random_gpu": torch.cuda.get_rng_state(self.device) if on_gpu else None,
            "ended": {run.job.name: run.ended for run in self.runs},
        }

    # --- the end ---

    def publish(self) -> None:
        """Predict with every run's selected weights, and publish the runs one after another."""
        self.clock.switch("evaluate")
        with torch.no_grad():
            for run in self.runs:
                for name, tensor in unstack(self.weights, run.place).items():
                    tensor.copy_(run.recorder.selected.weights[name])
        self.operations.refresh(self.step)
        predicted = {name: self.predict(name) for name in PREDICTED}
        for run in self.runs:
            own = unstack(self.weights, run.place)
            extra = {
                "updates": run.ended or self.step,
                "fused_with": self.members,
                "differences": [*differences_of(self.settings, self.framework), *self._rounding()],
                "parameters": self.adapters.parameters() if self.adapters else self._parameters(own),
            }
            if self.adapters:
                extra |= self.adapters.save(own, run.job, run.recorder.ready)
            outputs = {name: logits[run.place] for name, logits in predicted.items()}
            predictor = _Predicted(run.job, self.splits, outputs)
            results.finish(run.job, run.recorder, self.splits, predictor, extra, self._keeper(run, own))

    def _rounding(self) -> list[Difference]:
        """How tokens in bfloat16 are computed, on which the last digits depend."""
        if self.operations.dtype != torch.bfloat16:
            return []
        by = "by Triton's kernels" if self.optimizer.has_tables else "by PyTorch's operations"
        done = f"tokens and products in bfloat16, {by}; weights and their updates in float32"
        return [difference("precision", "bfloat16", done)]

    def _parameters(self, own: Weights) -> dict[str, Any]:
        """The parameters of a separate run; Transformers' model has a row of token types that stays zero."""
        counted = torch.nn.ModuleDict({"trained": torch.nn.ParameterList(own.values())})
        if self.framework == "transformers":
            counted["token_type_embeddings"] = torch.nn.Embedding(1, self.model.shape.width)
            counted["token_type_embeddings"].requires_grad_(False)
        return adapter_parameters.describe(counted, "full")

    def _keeper(self, run: SeedRun, own: Weights) -> Callable[[Path], None]:
        def keep(folder: Path) -> None:
            named = named_for(self.framework, own, self.model.shape.layers)
            results.write_weights(folder, {name: tensor.clone() for name, tensor in named.items()})

        def merge(folder: Path) -> None:
            from seedbed.training import merging

            merging.write_run(folder, run.job, run.recorder.ready)

        return merge if self.adapters else keep


class _Predicted(Classified):
    """Predictions from logits by split, which were computed for all seeds at once."""

    def __init__(self, job: Job, splits: Mapping[str, Split], outputs: Mapping[str, np.ndarray]):
        by_split = {id(split): outputs[name] for name, split in splits.items() if name in outputs}
        super().__init__(job, lambda split: by_split[id(split)])


def differences_of(settings: Mapping[str, Any], framework: str) -> list[Difference]:
    """Differences of a run that was trained with other seeds as one batched model.

    Its order of examples and its optimizer are the framework's, unlike the model and its random numbers.

    Args:
        settings: a resolved recipe.
        framework: `fairseq` or `transformers`.
    """
    found = {"fairseq": differences.of_fairseq, "transformers": differences.of_transformers}[framework](
        settings
    )
    together = [
        difference(
            "model", framework, "Seedbed's batched RoBERTa, trained for all runs of the recipe at once"
        ),
        difference(
            "dropout", "", "one stream of random numbers for all seeds, seeded once by their data seeds"
        ),
        difference("a seed that diverges", "", "ends with the epoch in which it does"),
    ]
    return [*(item for item in found if item["setting"] != "dropout"), *together]


def aligned(seeds: Sequence[Batches]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Batch k of all seeds together: indices, (seeds, batch size), and each seed's number of examples.

    fairseq shuffles whole batches, so an epoch's smaller batch comes at a different time for each seed. Its
    row is padded with its first example, which does not count.
    """
    together = []
    for rows in zip(*seeds, strict=True):
        longest = max(map(len, rows))
        filled = [[*row, *[row[0]] * (longest - len(row))] for row in rows]
        together.append((np.array(filled), np.array([len(row) for row in rows])))
    return together


def _shape(job: Job) -> Shape:
    model = files.read_json(job.model)
    return Shape(
        layers=model["layers"],
        width=model["embed_dim"],
        ffn=model["ffn_dim"],
        heads=model["attention_heads"],
        rows=model["vocabulary"],
        positions=model["max_positions"],
        activation=model["activation"],
        classes=job.head_size,
    )
