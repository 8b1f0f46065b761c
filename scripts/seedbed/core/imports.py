"""Faster imports of PyTorch and Transformers: without unused packages and garbage collection.

Transformers looks for optional packages with `importlib.util.find_spec`, so only an entry in sys.modules
hides them. This saves 4.8 of 21.6 CPU seconds of a short run (benchmarks/results/speed/README.md).
"""

import contextlib
import gc
import sys
from collections.abc import Iterable, Iterator

# Packages that Transformers and Accelerate import if they are installed, but classifiers never use.
# lomo_optim is not in our environment, but Accelerate would look for it twice per update.
UNUSED = frozenset(
    {"bitsandbytes", "datasets", "lomo_optim", "pandas", "peft", "scipy", "sklearn", "torchvision"}
)


def leave_out(packages: Iterable[str]) -> None:
    """Make packages look uninstalled for the rest of this process; call it before PyTorch is imported."""
    for package in packages:
        sys.modules.setdefault(package, None)


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Import in the block without garbage collection, and exclude all objects from later collections.

    Modules stay as long as the process; collecting among them repeatedly takes a fifth of the import time.
    Call it while no large garbage exists, which would stay, too.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
