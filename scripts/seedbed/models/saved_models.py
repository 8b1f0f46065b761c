"""Read the weights of a model that save_pretrained wrote, and compare them with its config.json.

Transformers builds the network of config.json on the meta device. No code of the model's authors is run: a
pickle is read in a fork of this process (see `conversion`).
"""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1")  # before Transformers is imported

import torch
import transformers
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from seedbed.core.errors import SeedbedError
from seedbed.core.files import follow_umask
from seedbed.models.conversion import check_layout, no_safetensors, read_weights
from seedbed.models.huggingface_format import read_mapping
from seedbed.models.roberta import check_finite, listed
from seedbed.sources.manifest import another_file

FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
# keys of config.json that are not published: its authors' code, kernels and paths
DROPPED = (
    *("auto_map", "_name_or_path", "task_specific_params", "transformers_weights"),
    *("attn_implementation", "_attn_implementation", "_attn_implementation_internal"),
    *("experts_implementation", "_experts_implementation", "_experts_implementation_internal"),
)


class Fit(NamedTuple):
    """Where weights and network differ: names of weights, and (name, stored shape, expected shape)."""

    missing: list[str]
    unexpected: list[str]
    mismatched: list[tuple[str, Any, Any]]


def requested(request: Mapping[str, Any]) -> tuple[dict[str, Path], dict[str, str], str, Path]:
    """Of a request of `intake.prepare` the paths, the SHA-256 of each file of weights by its path, that of
    `checkpoint`, and the folder to write to."""
    files = {key: Path(path) for key, path in request["files"].items()}
    digests = request.get("shards") or {str(files["checkpoint"]): request["sha256"]}
    return files, digests, request["sha256"], Path(request["folder"])


def refuse_quantized(content: Mapping[str, Any], path: Path, hint: str) -> None:
    """Check the content of config.json for quantized weights.

    Raises:
        SeedbedError: they are quantized.
    """
    if content.get("quantization_config"):
        raise SeedbedError(
            "the weights are stored quantized",
            where=f"{path}, quantization_config",
            found=str(content["quantization_config"])[:200],
            hint=hint,
        )


def gather_weights(digests: Mapping[str, str], target: Path, folder: Path, forked: bool) -> None:
    """Write a model's weights to one safetensors file; a source of one such file is copied.

    The rule must declare its outputs before the names of shards are known, hence one file.

    Raises:
        SeedbedError: a file has changed since it was fetched, is harmful or damaged, or repeats a weight of
            another file.
    """
    paths = [Path(path) for path in digests]
    if len(paths) == 1 and paths[0].suffix == ".safetensors":
        _copy_verified(paths[0], target, digests[str(paths[0])])
        return
    gathered: dict[str, torch.Tensor] = {}
    for path in paths:
        tensors, content = read_weights(path, digests[str(path)], folder, forked)
        check_layout(content, "weights", str(path))
        twice = sorted(set(tensors) & set(gathered))
        if twice:
            raise SeedbedError("a weight is in two files of the model", where=str(path), found=listed(twice))
        gathered |= tensors
    save_file(unshared(gathered), target, metadata={"format": "pt"})
    follow_umask(target)


def _copy_verified(source: Path, target: Path, digest: str) -> None:
    hashed = hashlib.sha256()
    with open(source, "rb") as original, open(target, "wb") as copy:
        while block := original.read(2**24):
            hashed.update(block)
            copy.write(block)
    if hashed.hexdigest() != digest:
        raise another_file(source, digest, hashed.hexdigest())


def unshared(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The tensors without shared memory: in a pickle, tied weights share one storage."""
    seen: set[int] = set()
    found = {}
    for name, tensor in tensors.items():
        place = tensor.data_ptr()
        found[name] = tensor.clone() if place in seen else tensor.contiguous()
        seen.add(place)
    return found


def build(auto: Any, folder: Path, files: Mapping[str, Path]) -> tuple[transformers.PreTrainedModel, Fit]:
    """The network of config.json and model.safetensors in `folder` without values, and where they differ.

    Transformers matches the names: a tied output matrix may be missing, as may the prefix of all names
    (`transformer.` in bigscience/bloom-560m's file), and buffers of old versions are ignored.

    Args:
        auto: Transformers' class of the task, such as AutoModelForCausalLM.
        folder: the folder of both files.
        files: their originals, for messages.

    Raises:
        SeedbedError: the weights cannot be read, or Transformers cannot build the network.
    """
    _check_layers(folder, files)
    network, found = load(auto, folder, files, device_map="meta", dtype="auto")
    keys = (sorted(found[f"{kind}_keys"]) for kind in Fit._fields)
    return network, Fit(*keys)


def load(auto: Any, folder: Path, files: Mapping[str, Path], **options: Any) -> tuple[Any, dict[str, Any]]:
    """The model in `folder` as Transformers loads it with `options`, and its report of names.

    Raises:
        SeedbedError: Transformers cannot build the network.
    """
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        return auto.from_pretrained(
            folder,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # reported
            trust_remote_code=False,
            local_files_only=True,
            use_safetensors=True,
            **options,
        )
    except Exception as error:  # a config from outside can cause any error in Transformers
        raise SeedbedError(
            "Transformers cannot build the network that config.json describes",
            where=f"{files['checkpoint']} and {files['config']}",
            found=f"{type(error).__name__}: {error}"[:300],
            hint="take all files from one model, written by save_pretrained",
        ) from None


def check_fit(fit: Fit, files: Mapping[str, Path]) -> None:
    """Refuse any difference of weights and network.

    Raises:
        SeedbedError: a weight is missing or unexpected, or has another shape.
    """
    where = f"{files['checkpoint']} and {files['config']}"
    if fit.missing or fit.unexpected:
        raise SeedbedError(
            "the weights do not fit the network of config.json",
            where=where,
            found=f"missing: {listed(fit.missing)}; unexpected: {listed(fit.unexpected)}",
            hint="take all files from one model",
        )
    if fit.mismatched:
        name, stored, expected = fit.mismatched[0]
        raise SeedbedError(
            "the shape of a weight differs from config.json",
            where=f"{where}, {name}",
            found=f"{tuple(stored)}, expected {tuple(expected)}",
            hint="take all files from one model",
        )


def _check_layers(folder: Path, files: Mapping[str, Path]) -> None:
    """Check the file's format, and that config.json has no more layers than the file has weights.

    Building the network of an absurd number of layers would fill the memory.
    """
    try:
        with safe_open(folder / "model.safetensors", "pt") as stream:
            count = len(stream.keys())
    except (SafetensorError, OSError) as error:
        raise no_safetensors(files["checkpoint"], error) from None
    content = read_mapping(folder / "config.json")
    for key in ("n_layer", "n_layers", "num_layers", "num_hidden_layers"):
        if isinstance(content.get(key), int) and content[key] > count:
            raise SeedbedError(
                "config.json has more layers than there are weights",
                where=f"{files['config']}, {key}",
                found=f"{content[key]:,} layers, {count:,} weights",
                hint="take all files from one model",
            )


def check_values(
    weights: Path, network: transformers.PreTrainedModel, files: Mapping[str, Path]
) -> list[str]:
    """Check the values of all weights in a file, and return the types of the trained ones.

    Raises:
        SeedbedError: a weight is not finite, or its type cannot be trained.
    """
    where = str(files["checkpoint"])
    names = [name for name, _ in network.named_parameters()]
    types = set()
    with safe_open(weights, "pt") as stream:
        for name in stream.keys():  # noqa: SIM118 (a reader of safetensors is not a mapping)
            tensor = stream.get_tensor(name)
            trained = any(parameter.endswith(name) or name.endswith(parameter) for parameter in names)
            # untrained tensors are masks of old versions, or weights under old names
            if trained and tensor.dtype not in FLOATS:
                raise SeedbedError(
                    "a weight has a type that cannot be trained",
                    where=f"{where}, {name}",
                    found=str(tensor.dtype),
                    hint="take the model's full weights, in 16 or 32 bits",
                )
            if tensor.dtype in FLOATS:
                check_finite(name, tensor, where)
            types |= {str(tensor.dtype).removeprefix("torch.")} if trained else set()
    return sorted(types)
