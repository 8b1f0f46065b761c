"""The classification model as Transformers prints it, without the checkpoint's weights."""

from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from seedbed.core import imports
from seedbed.core.files import write_text

CLASSES = 2  # of the printed head; a real one has as many as its dataset
NOTE = (
    f"The head is shown with {CLASSES} classes, but a dataset has its own number; "
    "dropout as the framework has it by default, but a recipe sets its own."
)


def write_transformers(model: Path, path: str | Path) -> None:
    """Write Transformers' printout of a model with a classification head.

    Args:
        model: results/models/MODEL; only config.json is read.
        path: the file to write.
    """
    write_text(path, describe(transformers_classifier(model), "transformers"))


def describe(network: Any, framework: str) -> str:
    """A framework's printout of a network, below a line about its version."""
    version = metadata.version(framework)
    return f"# {type(network).__name__} of {framework} {version}. {NOTE}\n{network}\n"


def transformers_classifier(model: Path) -> Any:
    """Transformers' classifier of a model on the meta device, where weights need no memory."""
    from transformers import AutoConfig, AutoModelForSequenceClassification

    folder = model / "huggingface"
    with imports.uncollected():  # from_config imports the architecture's modules
        config = AutoConfig.from_pretrained(folder, num_labels=CLASSES, local_files_only=True)
        with torch.device("meta"):
            return AutoModelForSequenceClassification.from_config(config)
