"""Prepare and save Transformers' models for each method of fine-tuning.

`core.methods` has the properties of methods that need no PyTorch. Packages that only some methods need are
imported where they are used.
"""

from pathlib import Path
from typing import Any

import torch

from seedbed.running.jobs import Job
from seedbed.training import initial_models, partial
from seedbed.training.partial import Part


class Full:
    """All weights are trained.

    Args:
        job: the run.
    """

    def __init__(self, job: Job):
        self.job = job

    def classifier(self) -> torch.nn.Module:
        """The classifier at its initial weights, on the CPU.

        Raises:
            SeedbedError: weights of a pretrained run differ from the checkpoint.
        """
        return initial_models.build_classifier(self.job.weights, self.job.run, self.job.head_size)

    def causal_model(self, device: torch.device) -> torch.nn.Module:
        """The causal model at its initial weights, in float32 on the CPU, or in 4 bits on `device`.

        Raises:
            SeedbedError: weights of a pretrained run differ from the checkpoint.
        """
        return initial_models.build_base(self.job.weights, self.job.run)

    def groups(self, model: Any) -> list[Part]:
        """What the method trains of the model's own weights, if it trains a part of them."""
        return []

    def inner(self, model: Any) -> Any:
        """Transformers' model, without peft's wrapper."""
        return model

    def save(self, model: Any, ready: Path) -> dict[str, Any]:
        """Save an adapter, if any, in the run folder `ready`; returns entries for run.json."""
        return {}

    def write_model(self, folder: Path, model: Any, ready: Path) -> None:
        """Write the whole model, at the selected weights, into an existing folder."""
        from seedbed.training import merging

        merging.write(folder, model, self.job.weights)


class Untrained(Full):
    """Nothing is trained: the initial model is evaluated."""

    def causal_model(self, device: torch.device) -> torch.nn.Module:
        """The model of `Full`, frozen."""
        return super().causal_model(device).requires_grad_(False)


class Partial(Full):
    """A part of the weights of a classifier is trained: see `partial`."""

    def classifier(self) -> torch.nn.Module:
        """As of `Full`, with frozen weights.

        Raises:
            SeedbedError: the model lacks the weights that the method trains.
        """
        model = super().classifier()
        partial.freeze(model, partial.layout_of(model), self.job.settings)
        return model

    def groups(self, model: Any) -> list[Part]:
        """What the method trains."""
        return partial.groups(model, partial.layout_of(model), self.job.settings)

    def write_model(self, folder: Path, model: Any, ready: Path) -> None:
        """Write the whole model, frozen weights among it."""
        from seedbed.training import results

        results.write_weights(folder, model.state_dict())


class Head(Partial):
    """The head is trained on states of the encoder."""

    def write_model(self, folder: Path, model: Any, ready: Path) -> None:
        """Write the initial model with the trained head."""
        whole = self.classifier()
        whole.load_state_dict(model.state_dict(), strict=False)
        super().write_model(folder, whole, ready)


class Adapter(Full):
    """LoRA: an adapter is trained beside frozen weights.

    Its methods raise a SeedbedError if the model lacks modules of the adapter.
    """

    def classifier(self) -> torch.nn.Module:
        """As of `Full`, with a new adapter."""
        return self._adapted(super().classifier())

    def causal_model(self, device: torch.device) -> torch.nn.Module:
        """As of `Full`, with a new adapter."""
        return self._adapted(super().causal_model(device))

    def _adapted(self, model: Any) -> torch.nn.Module:
        from seedbed.training import adapters

        return adapters.apply(model, self.job.settings, self.job.run["init_seed"])

    def inner(self, model: Any) -> Any:
        """The model inside the adapter."""
        return model.get_base_model()

    def save(self, model: Any, ready: Path) -> dict[str, Any]:
        """Save the adapter; returns `base`, the name and the hashes of its model."""
        from seedbed.training import adapters

        return adapters.keep(model, self.job, ready)

    def write_model(self, folder: Path, model: Any, ready: Path) -> None:
        """Write the base with the saved adapter merged into it."""
        from seedbed.training import merging

        merging.write_run(folder, self.job, ready)


class Quantized(Adapter):
    """QLoRA: the frozen weights are stored in 4 bits."""

    def causal_model(self, device: torch.device) -> torch.nn.Module:
        """The model of `Adapter`, in 4 bits.

        Raises:
            SeedbedError: the device does not support 4 bits.
        """
        return self._adapted(initial_models.build_quantized(self.job, device))


TRAINING = {
    "full": Full,
    "bitfit": Partial,
    "last_layers": Partial,
    "head": Head,
    "lora": Adapter,
    "qlora": Quantized,
    "none": Untrained,
}


def of(job: Job) -> Full:
    """The method of a run."""
    return TRAINING[job.method.name](job)
