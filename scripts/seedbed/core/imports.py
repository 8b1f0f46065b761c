"""Imports of PyTorch and Transformers in less time: what nobody uses is left out, nothing is collected."""

import contextlib
import gc
import sys
from collections.abc import Iterable, Iterator

# What encoders and their training never use, but Transformers and Accelerate import where it is installed.
# lomo_optim is not in our environment, where Accelerate would look for it twice an update.
UNUSED = frozenset(
    {"bitsandbytes", "datasets", "lomo_optim", "pandas", "peft", "scipy", "sklearn", "torchvision"}
)


def leave_out(packages: Iterable[str]) -> None:
    """Keep this process from importing packages, for good; to be called before PyTorch is imported.

    Whoever asks whether they are installed is told that they are not.
    """
    for package in packages:
        sys.modules.setdefault(package, None)


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """A block that imports: garbage is not collected in it, and what it leaves never looked through.

    Modules stay as long as the process, and looking through them again and again is a fifth of their import.
    Nothing that is to go should be around: it would stay, too.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
