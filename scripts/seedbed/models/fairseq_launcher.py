"""Make fairseq 0.12.2 importable on current Python, NumPy and PyTorch, without changing its files.

Call `prepare_import()` before `import fairseq`. Other packages are not affected: torch.load keeps its checks,
and their dataclasses stay unchanged.
"""

import argparse
import dataclasses
import functools
import importlib.machinery
import logging
import warnings
from typing import Any

OLD_PACKAGES = frozenset({"fairseq", "fairseq_cli", "hydra"})
NUMPY_ALIASES = {"float": float, "int": int, "bool": bool, "object": object, "complex": complex, "str": str}


def prepare_import() -> None:
    """Restore features of Python < 3.11, NumPy < 1.24 and PyTorch < 2.6 for fairseq and hydra-core 1.0.

    Calling it again does nothing. It imports torch.
    """
    _allow_dataclass_defaults()
    _restore_find_module()
    _restore_numpy_aliases()
    _allow_namespaces_in_checkpoints()
    _silence()


def _allow_dataclass_defaults() -> None:
    # Python 3.11 refuses unhashable defaults, but fairseq's configuration classes have instances of each
    # other as defaults. So these packages' dataclasses become hashable; torch needs its own to be unhashable.
    if getattr(dataclasses.dataclass, "knows_old_packages", False):
        return
    dataclasses.dataclass = _hashable_in_old_packages(dataclasses.dataclass)


def _hashable_in_old_packages(original: Any) -> Any:
    @functools.wraps(original)
    def dataclass(cls: Any = None, /, **options: Any) -> Any:
        def decorate(decorated: Any) -> Any:
            old = decorated.__module__.partition(".")[0] in OLD_PACKAGES
            return original(decorated, **({"unsafe_hash": True} if old else {}), **options)

        return decorate if cls is None else decorate(cls)

    dataclass.knows_old_packages = True
    return dataclass


def _restore_find_module() -> None:
    # hydra's search for plugins calls find_module, which Python 3.12 removed
    finder = importlib.machinery.FileFinder
    if not hasattr(finder, "find_module"):
        finder.find_module = _find_module


def _find_module(finder: Any, name: str, path: Any = None) -> Any:
    spec = finder.find_spec(name)
    return None if spec is None else spec.loader


def _restore_numpy_aliases() -> None:
    import numpy

    for name, kind in NUMPY_ALIASES.items():
        if name not in vars(numpy):  # hasattr would warn; NumPy 2 has its own `bool`, which stays
            setattr(numpy, name, kind)


def _allow_namespaces_in_checkpoints() -> None:
    # fairseq saves its settings as a Namespace beside the weights; loading one runs no code
    import torch

    torch.serialization.add_safe_globals([argparse.Namespace])


def _silence() -> None:
    # at import, fairseq logs a search for parts that are not used here
    logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.ERROR)
    logging.getLogger("torch.distributed.nn.jit.instantiator").setLevel(logging.WARNING)
    # the compiler's warnings name a module by its path
    module = r"(.*site-packages/)?(fairseq|hydra|omegaconf)\b"
    for kind in (DeprecationWarning, FutureWarning, SyntaxWarning, UserWarning):
        warnings.filterwarnings("ignore", category=kind, module=module)
