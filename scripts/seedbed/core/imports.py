"""Faster imports of PyTorch and Transformers: without packages that no run uses, without garbage collection.

Transformers asks `importlib.util.find_spec` for each, so that only an entry in sys.modules keeps them out; it
saves 4.8 of 21.6 CPU seconds of a short run (benchmarks/results/speed/README.md).
"""

import contextlib
import gc
import sys
from collections.abc import Iterable, Iterator

# Packages that classifiers never use, but that Transformers and Accelerate import if they are installed.
# lomo_optim is not in our environment; Accelerate would look for it twice an update.
UNUSED = frozenset(
    {"bitsandbytes", "datasets", "lomo_optim", "pandas", "peft", "scipy", "sklearn", "torchvision"}
)


def leave_out(packages: Iterable[str]) -> None:
    """Make packages look uninstalled for the rest of this process; call it before PyTorch is imported."""
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
