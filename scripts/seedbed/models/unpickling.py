"""Convert a pickle to safetensors and plain JSON, without running code that the pickle names.

PyTorch's reader of weights (weights_only) builds tensors and plain values and refuses all other names. The
few other classes in fairseq's settings are replaced by `Record`, which only keeps their state.
"""

import contextlib
import hashlib
import io
import json
import logging
import pickle
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import safetensors.torch
import torch

from seedbed.core.errors import SeedbedError
from seedbed.sources.manifest import another_file

DEEPEST = 50  # levels of settings; omegaconf's containers take two each
ZIP = b"PK\x03\x04"
WEIGHTS, CONTENT = "weights.safetensors", "content.json"
OLDEST_TORCH = (2, 10)  # in older versions, a crafted pickle could bypass weights_only

log = logging.getLogger(__name__)


class Record:
    """A stand-in for a class of the pickle: it keeps an instance's state and runs nothing."""

    def __new__(cls, *_: Any) -> "Record":
        return super().__new__(cls)

    def __init__(self, *_: Any):
        self.state: dict[Any, Any] = {}

    def __setstate__(self, state: Any) -> None:
        self.state = state if isinstance(state, dict) else {}


# settings of fairseq: a Namespace, or omegaconf's containers with their types
STOOD_IN = (
    "argparse.Namespace",
    "omegaconf.dictconfig.DictConfig",
    "omegaconf.listconfig.ListConfig",
    "omegaconf.base.ContainerMetadata",
    "omegaconf.base.Metadata",
    *(f"omegaconf.nodes.{kind}Node" for kind in ("Any", "Integer", "Float", "String", "Boolean", "Enum")),
    "typing.Any",
    *(f"builtins.{kind}" for kind in ("dict", "list", "int", "float", "str", "bool")),
    "collections.defaultdict",
)


def extract(path: str | Path, digest: str, folder: str | Path) -> None:
    """Read a checkpoint and write its weights (weights.safetensors) and settings (content.json) to `folder`.

    A checkpoint of fairseq is a dictionary with the weights under `model` and the settings under `args` or
    `cfg`; a checkpoint of Hugging Face is a dictionary of weights. The keys of content.json are `layout`
    (fairseq or weights), `aliases` (second names of tied weights), `args` and `cfg`.

    Args:
        path: the checkpoint.
        digest: its expected SHA-256.
        folder: the output folder.

    Raises:
        SeedbedError: the file has another SHA-256, is damaged, is no checkpoint, or needs more than weights
            and plain settings.
    """
    content = load_pickle(read_verified(path, digest), path)
    if isinstance(content, dict) and isinstance(content.get("model"), dict):
        weights, layout = content["model"], "fairseq"
    elif isinstance(content, dict) and content and any(map(torch.is_tensor, content.values())):
        weights, layout = content, "weights"
    else:
        raise _no_checkpoint(path, content)
    unique, aliases = _separate(weights, path)
    safetensors.torch.save_file(unique, Path(folder) / WEIGHTS)
    found = {"layout": layout, "aliases": aliases}
    if layout == "fairseq":
        found |= {key: plain(content.get(key)) for key in ("args", "cfg")}
    (Path(folder) / CONTENT).write_text(json.dumps(found), encoding="utf-8")


def read_verified(path: str | Path, digest: str) -> bytes:
    """Read a file and verify its SHA-256.

    Raises:
        SeedbedError: the SHA-256 is not `digest`.
    """
    data = Path(path).read_bytes()
    found = hashlib.sha256(data).hexdigest()
    if found != digest:
        raise another_file(path, digest, found)
    return data


def load_pickle(data: bytes, where: str | Path) -> Any:
    """Load a file of torch.save, in its present or its old layout, without running code.

    The present layout is a zip file. PyTorch's reader ignores its checksums, so they are verified here. The
    old layout has no checksums.

    Raises:
        SeedbedError: the pickle needs more than weights and plain values, or the file is damaged.
    """
    _check_torch()
    is_zip = data.startswith(ZIP)  # PyTorch's own criterion
    if is_zip or zipfile.is_zipfile(io.BytesIO(data)):
        _check_archive(data, where)
    stream = io.BytesIO(data)
    try:
        names = [*STOOD_IN, *_fairseq_names(data)]
        with _allowed([(Record, name) for name in names]):
            content = torch.load(stream, map_location="cpu", weights_only=True)
        if not is_zip:
            _check_end(stream, len(data), where)
        return content
    except SeedbedError:
        raise
    except Exception as error:  # any error that a damaged file can cause in the reader
        raise _refused(where, len(data), error) from None


@contextlib.contextmanager
def _allowed(names: list[Any]) -> Iterator[None]:
    """Allow PyTorch's reader these names for the moment, and none that other code allowed."""
    before = torch.serialization.get_safe_globals()
    torch.serialization.clear_safe_globals()
    torch.serialization.add_safe_globals(names)
    try:
        yield
    finally:
        torch.serialization.clear_safe_globals()
        torch.serialization.add_safe_globals(before)


def _check_torch() -> None:
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if version < OLDEST_TORCH:
        raise SeedbedError(
            "this PyTorch is too old to read an untrusted pickle safely",
            found=torch.__version__,
            hint=f"install PyTorch {'.'.join(map(str, OLDEST_TORCH))} or newer, as make install does",
        )


def _check_archive(data: bytes, where: str | Path) -> None:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
            damaged = archive.testzip()
    except Exception as error:  # any error that a damaged file can cause in the reader
        raise _refused(where, len(data), error) from None
    # another reader, or a scanner, might read the second pickle
    pickles = [name for name in names if name.endswith(".pkl")]
    if len(pickles) > 1 or len(set(names)) < len(names):
        raise SeedbedError(
            "the checkpoint has more than one pickle, unlike any file of torch.save; it was refused",
            where=str(where),
            found=", ".join(pickles[:5]),
            hint="nothing was run, but the file may be harmful: download it from its authors again",
        )
    if damaged is not None:
        raise SeedbedError(
            "the checkpoint is damaged: its own checksum (CRC-32) does not match",
            where=str(where),
            found=f"first in {damaged}",
            hint="download it again; if it was saved with set_crc32_options(False), save it again without",
        )


def _check_end(stream: IO[bytes], size: int, where: str | Path) -> None:
    """Check that a file of the old layout was read to its end; it allows no other check."""
    if stream.tell() != size:
        raise SeedbedError(
            "the checkpoint has bytes after its weights, so it is damaged or made of several files",
            where=str(where),
            found=f"{size - stream.tell():,} of {size:,} bytes",
            hint="download it again",
        )
    log.warning(
        "%s has torch.save's old layout, without checksums: damaged weights would go unnoticed, unless its "
        "source has a sha256 in the config",
        where,
    )


def _fairseq_names(data: bytes) -> list[str]:
    # omegaconf's containers name their original classes, which `Record` replaces, too
    if not zipfile.is_zipfile(io.BytesIO(data)):
        return []
    found = torch.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(data))
    return [name for name in found if name.startswith("fairseq.")]


def _refused(where: str | Path, size: int, error: Exception) -> SeedbedError:
    # PyTorch's reader names the refused class or function
    named = re.search(r"GLOBAL:? (\S+)", str(error)) if isinstance(error, pickle.UnpicklingError) else None
    if named is not None:
        what = named.group(1)
        return SeedbedError(
            f"the checkpoint asks Python for {what}, which no weights need; it was refused",
            where=str(where),
            found=what,
            hint="nothing was run, but the file may be harmful: download it from its authors again",
        )
    if isinstance(error, pickle.UnpicklingError):
        return SeedbedError(
            "the checkpoint has more than weights and plain settings; it was refused",
            where=str(where),
            found=f"{size} bytes that PyTorch's reader of weights does not accept",
            hint="nothing was run, but it may be harmful or damaged: download it from its authors again",
        )
    lines = str(error).splitlines() or [""]
    return SeedbedError(
        "the checkpoint cannot be read",
        where=str(where),
        found=f"{size} bytes; {type(error).__name__}: {lines[0]}",
        hint="the file may be truncated, or not a PyTorch checkpoint: download it again",
    )


def _no_checkpoint(path: str | Path, content: Any) -> SeedbedError:
    names = sorted(map(str, content)) if isinstance(content, dict) else []
    return SeedbedError(
        "this is not a checkpoint of fairseq: it has no weights under the key 'model'",
        where=str(path),
        found=", ".join(names[:20]) or type(content).__name__,
        hint="give the model.pt that fairseq-train wrote, or set format: huggingface for one of Transformers",
    )


def _separate(
    weights: Mapping[Any, Any], where: str | Path
) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """Weights without shared memory, and for each omitted name, the name of the same weight."""
    unique: dict[str, torch.Tensor] = {}
    aliases: dict[str, str] = {}
    seen: dict[Any, str] = {}
    for name, tensor in weights.items():
        if not isinstance(name, str) or not _is_weight(tensor):
            raise SeedbedError(
                "a weight of the checkpoint is not a tensor of numbers",
                where=f"{where}, {name}",
                found=_kind(tensor),
                hint="give the file that fairseq-train or save_pretrained wrote",
            )
        key = (tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype)
        if tensor.numel() and key in seen:
            aliases[name] = seen[key]
            continue
        seen[key] = name
        unique[name] = tensor.detach().clone(memory_format=torch.contiguous_format)
    return unique, aliases


def _kind(value: Any) -> str:
    if not torch.is_tensor(value):
        return type(value).__name__
    return f"{type(value).__name__} of {value.dtype}, {value.layout}, {value.device}, {tuple(value.shape)}"


def _is_weight(value: Any) -> bool:
    return (
        type(value) in (torch.Tensor, torch.nn.Parameter)
        and value.layout is torch.strided
        and value.device.type == "cpu"
        and not value.is_quantized
        and not value.is_complex()
        # with a stride of 0, a few bytes make a tensor of any size
        and value.numel() * value.element_size() <= value.untyped_storage().nbytes()
    )


def plain(value: Any, depth: int = 0) -> Any:
    """Settings as JSON values; anything but numbers, texts and their containers becomes None.

    Raises:
        SeedbedError: the settings are nested too deeply, or contain themselves.
    """
    if depth > DEEPEST:
        raise SeedbedError(
            "the checkpoint's settings are nested too deeply, or contain themselves",
            found=f"more than {DEEPEST} levels",
            hint="fairseq's settings are not: download the checkpoint from its authors again",
        )
    if isinstance(value, (bool, int, float, str)) or value is None:
        return value
    if isinstance(value, (list, tuple)):
        return [plain(item, depth + 1) for item in value]
    if isinstance(value, Mapping):
        return {str(key): plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, Record):
        state = value.state
        # omegaconf keeps a container's content under _content and a node's value under _val
        return plain(state.get("_content", state.get("_val")) if "_metadata" in state else state, depth + 1)
    return None


def read_extracted(folder: str | Path) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """The weights and the content that `extract` wrote to `folder`."""
    weights = safetensors.torch.load_file(Path(folder) / WEIGHTS)
    content = json.loads((Path(folder) / CONTENT).read_text(encoding="utf-8"))
    for name, other in content["aliases"].items():
        weights[name] = weights[other]
    return weights, content
