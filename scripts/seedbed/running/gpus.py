"""Find the GPUs of this host that an experiment may use, by UUIDs, which mean the same to all processes."""

import contextlib
import ctypes
import os
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from seedbed.core.errors import SeedbedError

# Prefix of the names of fake devices for tests, which neither the driver nor CUDA knows.
FAKE = "fake"
VISIBLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True)
class Gpu:
    """The driver's description of a GPU.

    Attributes:
        index: its number in nvidia-smi, in the order of the bus.
        uuid: GPU-...
        name: the product.
        parts: UUIDs (MIG-...) of its instances if it is divided, which programs must use then.
    """

    index: int
    uuid: str
    name: str
    parts: tuple[str, ...] = ()

    @property
    def usable(self) -> tuple[str, ...]:
        """The names by which programs can use it."""
        return self.parts or (self.uuid,)


@dataclass(frozen=True)
class Memory:
    """Memory of a GPU, in MiB.

    Attributes:
        total: all of it.
        free: what no process has.
        exclusive: whether only one process may use the GPU at a time (its compute mode).
    """

    total: float
    free: float
    exclusive: bool = False


@dataclass(frozen=True)
class Search:
    """The result of a search for GPUs.

    Attributes:
        devices: names for CUDA_VISIBLE_DEVICES, each once: UUIDs if the driver answered.
        looked_at: a line for each place of the search.
    """

    devices: list[str]
    looked_at: list[str]


def hide() -> None:
    """Let this process and its children see no GPU; before their first call of CUDA."""
    os.environ[VISIBLE] = ""


def wake() -> threading.Thread:
    """Initialise the first visible GPU in a thread, while this one imports.

    Creating the device's primary context, which PyTorch will use, takes about 0.3 s without Python's lock. If
    there is no driver or no GPU, nothing happens, and PyTorch will report it.
    """
    thread = threading.Thread(target=_make_context, name="wake a GPU", daemon=True)
    thread.start()
    return thread


def _make_context() -> None:
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return
    device, context = ctypes.c_int(), ctypes.c_void_p()
    if driver.cuInit(0) == 0 and driver.cuDeviceGet(ctypes.byref(device), 0) == 0:
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)


def is_fake(device: str) -> bool:
    """Whether a device is a fake one for tests."""
    return device.startswith(FAKE)


def devices(config: Mapping[str, Any]) -> list[str]:
    """The devices found by `search`, perhaps none."""
    return search(config).devices


def search(config: Mapping[str, Any]) -> Search:
    """The GPUs of this host: the config's list, else CUDA_VISIBLE_DEVICES, else all GPUs of the driver.

    Numbers are those of nvidia-smi, also in CUDA_VISIBLE_DEVICES, where schedulers use them so; a UUID may be
    abbreviated, as in CUDA. NVML queries the driver; without an answer, names stay unchanged.

    Args:
        config: the experiment's config, of which `gpus.devices` is used.

    Raises:
        SeedbedError: the driver does not know a named device.
    """
    wanted = config.get("gpus", {}).get("devices", "auto")
    visible = os.environ.get(VISIBLE)
    there, answer = ask_driver()
    looked_at = [
        f"config, gpus.devices: {_shown(wanted)}",
        f"{VISIBLE}: {'not set' if visible is None else repr(visible)}",
        f"the driver, through NVML: {answer}",
    ]
    if wanted != "auto":
        names, where = [str(name) for name in wanted], "config, gpus.devices"
    elif visible is not None:
        names, where = _of_variable(visible), f"the variable {VISIBLE}"
    else:
        return Search([name for gpu in there or [] for name in gpu.usable], looked_at)
    if there is not None:
        names = [name for wanted in names for name in _resolve(wanted, there, where)]
    return Search(list(dict.fromkeys(names)), looked_at)


def _of_variable(text: str) -> list[str]:
    """The entries of CUDA_VISIBLE_DEVICES, up to the first that CUDA reads as the end: empty or negative."""
    names: list[str] = []
    for name in (part.strip() for part in text.split(",")):
        if not name or name.startswith("-") or name == "NoDevFiles":  # the last is Slurm's word for none
            break
        names.append(name)
    return names


def _resolve(name: str, there: list[Gpu], where: str) -> tuple[str, ...]:
    """UUIDs of a device with this number, UUID or beginning of a UUID."""
    if is_fake(name):
        return (name,)
    if name.isdecimal():
        chosen = [gpu.usable for gpu in there if gpu.index == int(name)]
    else:
        chosen = [gpu.usable for gpu in there if gpu.uuid.startswith(name)]
        chosen += [(part,) for gpu in there for part in gpu.parts if part.startswith(name)]
    if len(chosen) == 1:
        return chosen[0]
    known = [line for gpu in there for line in _described(gpu)]
    raise SeedbedError(
        f"the GPU {name!r} does not exist" if not chosen else f"the name {name!r} fits several GPUs",
        where=where,
        found="; ".join(known) or "no GPU at all",
        hint="name GPUs by nvidia-smi's numbers or by their UUIDs (nvidia-smi -L)",
    )


def _described(gpu: Gpu) -> list[str]:
    whole = f"{gpu.index}: {gpu.uuid} ({gpu.name})"
    return [whole, *(f"{part}, an instance of {gpu.index}" for part in gpu.parts)]


def _shown(wanted: Any) -> str:
    return wanted if isinstance(wanted, str) else ", ".join(map(str, wanted))


def ask_driver() -> tuple[list[Gpu] | None, str]:
    """All GPUs that the driver lists, in nvidia-smi's order, and its answer in words.

    Returns:
        None instead of the list if the driver does not answer.
    """
    try:
        with _driver() as pynvml:
            found = [_read(pynvml, index) for index in range(pynvml.nvmlDeviceGetCount())]
    except NoDriver as error:
        return None, str(error)
    return found, "; ".join(line for gpu in found for line in _described(gpu)) or "no GPU"


def memory(device: str) -> Memory | None:
    """The memory of a GPU, or of an instance of one.

    Args:
        device: its UUID.

    Returns:
        None for other names, and if the driver does not answer.
    """
    try:
        with _driver() as pynvml:
            handle = pynvml.nvmlDeviceGetHandleByUUID(device)
            found, exclusive = pynvml.nvmlDeviceGetMemoryInfo(handle), _is_exclusive(pynvml, handle)
    except NoDriver:
        return None
    return Memory(found.total / 2**20, found.free / 2**20, exclusive)


def _is_exclusive(pynvml: Any, handle: Any) -> bool:
    try:
        return pynvml.nvmlDeviceGetComputeMode(handle) == pynvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS
    except pynvml.NVMLError:  # an instance of a divided GPU
        return False


class NoDriver(Exception):
    """The driver does not answer; the text is the reason."""


@contextlib.contextmanager
def _driver() -> Iterator[Any]:
    """NVML, for questions in the block.

    Raises:
        NoDriver: NVML is not installed, or has no answer to one.
    """
    try:
        import pynvml
    except ImportError:
        raise NoDriver("not asked, the package nvidia-ml-py is missing") from None
    try:
        pynvml.nvmlInit()
        try:
            yield pynvml
        finally:
            pynvml.nvmlShutdown()
    except pynvml.NVMLError as error:
        raise NoDriver(f"no answer ({error})") from error


def _read(pynvml: Any, index: int) -> Gpu:
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    uuid, name = pynvml.nvmlDeviceGetUUID(handle), pynvml.nvmlDeviceGetName(handle)
    return Gpu(index, uuid, name, tuple(_read_parts(pynvml, handle)))


def _read_parts(pynvml: Any, handle: Any) -> list[str]:
    """UUIDs of the instances of a divided GPU (MIG)."""
    try:
        divided, _ = pynvml.nvmlDeviceGetMigMode(handle)
    except pynvml.NVMLError:  # a card that cannot be divided
        return []
    parts = []
    for number in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(handle) if divided else 0):
        try:
            parts.append(pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, number)))
        except pynvml.NVMLError_NotFound:  # numbers need not follow each other
            continue
    return parts
