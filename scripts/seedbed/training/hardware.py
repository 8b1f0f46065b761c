"""Choose and set up a run's device, describe it, and measure memory and energy."""

import contextlib
import os
import platform
import resource
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from seedbed.core.errors import SeedbedError
from seedbed.running import gpu_slots, gpus, identity

PACKAGES = (
    "snakemake", "torch", "fairseq", "transformers", "accelerate", "tokenizers",
    "sentencepiece", "safetensors", "numpy",
)  # fmt: skip
# dtypes of the recipe's precisions, except float32 and tf32, which need no autocast
AUTOCAST = {"float16": torch.float16, "bfloat16": torch.bfloat16}


def choose_device(wanted: str) -> torch.device:
    """The device for `auto`, `cpu` or `cuda`.

    Raises:
        SeedbedError: `cuda` or this process's GPU slot requires a GPU, and PyTorch finds none.
    """
    if wanted != "cpu" and torch.cuda.is_available():
        return torch.device("cuda")
    given = gpu_slots.held()
    if wanted == "cuda" or (wanted == "auto" and given and not gpus.is_fake(given)):
        raise _no_gpu(given)
    return torch.device("cpu")


def _no_gpu(given: str | None) -> SeedbedError:
    """The error for a missing GPU; the hint depends on PyTorch's build, visible devices and the driver."""
    visible = os.environ.get(gpus.VISIBLE)
    shown = f"PyTorch {torch.__version__}, {gpus.VISIBLE} {'not set' if visible is None else repr(visible)}"
    if torch.version.cuda is None:
        hint = "this PyTorch is built for the CPU: run make install TORCH=cuda, or set device: cpu"
    else:
        hint = (
            f"check that nvidia-smi works, its driver is new enough for CUDA {torch.version.cuda}, and "
            f"{gpus.VISIBLE} names a GPU in its list; or set device: cpu"
        )
    return SeedbedError(
        "a GPU is required, but PyTorch finds none",
        where=f"GPU slot {given}" if given else "config, device: cuda",
        found=shown,
        hint=hint,
    )


def set_up_torch(threads: int, deterministic: bool, precision: str) -> None:
    """Set threads, precision of products and deterministic kernels; call it before the first CUDA call."""
    torch.set_num_threads(threads)
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    # on Hopper its gradients of masked bfloat16 attention are NaN at some lengths (pytorch issue 196678)
    torch.backends.cuda.enable_cudnn_sdp(False)
    if deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)
        # the backward pass of the fused attention kernels adds in a varying order
        torch.backends.cuda.enable_flash_sdp(False)
        torch.backends.cuda.enable_mem_efficient_sdp(False)
        torch.backends.cudnn.benchmark = False


def autocast(device: torch.device, precision: str) -> AbstractContextManager:
    """A context in which products are computed in a recipe's precision."""
    dtype = AUTOCAST.get(precision)
    return torch.autocast(device.type, dtype) if dtype else nullcontext()


def describe_device(device: torch.device) -> str:
    """`cuda: NAME` or `cpu: NAME`."""
    if device.type == "cuda":
        return f"cuda: {torch.cuda.get_device_name(device)}"
    return f"cpu: {_cpu_name()}"


def _cpu_name() -> str:
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as stream:
        for line in stream:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def describe_hardware() -> dict[str, Any]:
    """Facts about the host for run.json, without names of people or places.

    `gpus` are the products visible to this process; `gpu_id` is the UUID of its GPU, or None. With a slot of
    a GPU, `gpu_slots.sharing` is there, too.
    """
    names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return {
        "system": platform.system(),
        "machine": platform.machine(),
        "cpu": _cpu_name(),
        "cpus": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "gpus": names,
        "gpu_id": gpu_slots.held() or _uuid_in_use(),
        "cuda": torch.version.cuda,
        **(gpu_slots.sharing() if names else {}),
    }


def _uuid_in_use() -> str | None:
    if not (torch.cuda.is_available() and torch.cuda.is_initialized()):
        return None
    uuid = getattr(torch.cuda.get_device_properties(torch.cuda.current_device()), "uuid", None)
    return None if uuid is None else f"GPU-{uuid}"


def package_versions(extra: Sequence[str] = ()) -> dict[str, str | None]:
    """Versions of Python and of the packages that numbers depend on; None if not installed.

    `extra` names further packages, which only some runs use.
    """
    return identity.package_versions((*PACKAGES, *extra))


def peak_memory_mib(device: torch.device) -> float:
    """Peak memory: allocated on the GPU, or resident in this process on the CPU; MiB."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def energy_joules(device: torch.device) -> float | None:
    """The GPU's energy counter in joules, or None. It counts the whole device with all its users."""
    if device.type != "cuda":
        return None
    try:
        import pynvml

        pynvml.nvmlInit()
        # by UUID, since the driver's indices ignore CUDA_VISIBLE_DEVICES
        handle = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{torch.cuda.get_device_properties(device).uuid}")
        return pynvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1000
    except Exception:  # no library, no driver, or no counter on this card: the number is optional
        return None
