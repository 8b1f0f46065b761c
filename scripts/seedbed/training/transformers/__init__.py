"""Trainers with Transformers' Trainer: classifiers and causal models."""

import logging

from transformers.utils import logging as transformers_logging

# bitsandbytes, which peft imports, warns of faster kernels on a model hub; the Trainer imports peft
logging.getLogger("bitsandbytes.backends.cpu.ops").setLevel(logging.ERROR)


def be_quiet() -> None:
    """Limit Transformers' messages to warnings, without progress bars."""
    transformers_logging.set_verbosity_warning()
    transformers_logging.disable_progress_bar()
