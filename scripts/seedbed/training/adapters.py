"""Adapters beside frozen weights: LoRA (Hu et al. 2021), and QLoRA (Dettmers et al. 2023, bitsandbytes)."""

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model_state_dict
from transformers import AutoModelForCausalLM, BitsAndBytesConfig, PreTrainedModel

from seedbed.core import files
from seedbed.core.errors import SeedbedError
from seedbed.core.recipes import declared
from seedbed.running.jobs import Job
from seedbed.training import adapter_parameters
from seedbed.training.initialisation import generator

FOLDER = "adapter"  # of a run folder
WEIGHTS, CONFIG = "adapter_model.safetensors", "adapter_config.json"  # peft's names
BASE_FILES = ("model.safetensors", "config.json")
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def apply(model: PreTrainedModel, settings: Mapping[str, Any], init_seed: int) -> PeftModel:
    """The model with a new adapter in float32; the other weights are frozen, in the recipe's `frozen_dtype`.

    peft draws the adapter (A as torch.nn.Linear, B zero) from separate random numbers, which do not depend on
    the construction of the model.

    Args:
        model: at its initial weights, in float32 or 4 bits; it is changed.
        settings: the resolved recipe.
        init_seed: the run's init seed.

    Raises:
        SeedbedError: the recipe's `lora` names modules that the model lacks or that cannot be trained; its
            task_type belongs to another task; or dtypes conflict.
    """
    lora, where = settings["lora"], f"config, recipes.{declared(settings)}"
    _check_task_type(model, lora, f"{where}.lora.task_type")
    check_dtypes(settings, where)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(generator(init_seed, "adapter").initial_seed())
        adapted = adapter_parameters.attach(model, lora, f"{where}.lora")
    frozen = DTYPES[settings["frozen_dtype"]]
    for name, weight in adapted.named_parameters():
        if weight.requires_grad and not weight.is_floating_point():
            raise SeedbedError(
                "weights in 4 bits cannot be trained",
                where=f"{where}.lora.modules_to_save",
                found=name,
                hint="adapt this module by target_modules instead, or use the method lora",
            )
        if weight.is_floating_point():
            weight.data = weight.data.to(torch.float32 if weight.requires_grad else frozen)
    return adapted


def _check_task_type(model: PreTrainedModel, lora: Mapping[str, Any], where: str) -> None:
    expected = "SEQ_CLS" if "SequenceClassification" in type(model).__name__ else "CAUSAL_LM"
    if lora["task_type"] != expected:
        raise SeedbedError(
            "the adapter's task_type does not fit the model",
            where=where,
            found=f"{lora['task_type']}, for a {type(model).__name__}",
            hint=f"give {expected}",
        )


def check_dtypes(settings: Mapping[str, Any], where: str) -> None:
    """Check dtypes: without autocast, weights and inputs must share one; trained weights are in float32.

    Raises:
        SeedbedError: frozen and trained weights would meet in different dtypes.
    """
    lora, frozen = settings["lora"], settings["frozen_dtype"]
    trains_more = lora["modules_to_save"] or lora["bias"] != "none" or lora["task_type"] == "SEQ_CLS"
    if frozen != "float32" and trains_more and settings["precision"] in ("float32", "tf32"):
        raise SeedbedError(
            f"in precision {settings['precision']}, frozen weights of another dtype do not fit trained "
            "modules and biases",
            where=f"{where}.frozen_dtype",
            found=f"{frozen}; lora.bias {lora['bias']}, lora.modules_to_save {lora['modules_to_save']}",
            hint=f"set frozen_dtype: float32, or precision: {frozen}",
        )


# --- 4 bits ---


def check_quantization(device: torch.device, where: str) -> None:
    """Check, by trying it, that bitsandbytes can store weights in 4 bits on the device.

    Raises:
        SeedbedError: bitsandbytes is not installed, or has no kernels for the device.
    """
    problem = "qlora stores weights in 4 bits with bitsandbytes, which "
    try:
        from bitsandbytes import functional
    except Exception as error:  # also if its own libraries fail to load
        raise SeedbedError(
            problem + "cannot be imported",
            where=where,
            found=_first_line(error),
            hint="install it (make install), or use the method lora",
        ) from error
    try:
        weight = torch.ones(64, 64, device=device)
        functional.dequantize_4bit(*functional.quantize_4bit(weight, quant_type="nf4"))
    except Exception as error:
        if device.type == "cuda":
            hint = (
                f"its build for CUDA {torch.version.cuda} is missing or does not fit this GPU: see the "
                "output of python -m bitsandbytes and install a suitable release, or use the method lora"
            )
        else:
            hint = "run it on a GPU (device: cuda), or use the method lora"
        raise SeedbedError(
            problem + f"does not work on this {'GPU' if device.type == 'cuda' else 'CPU'}",
            where=where,
            found=_first_line(error),
            hint=hint,
        ) from error


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


def load_quantized(
    weights: Path, config: Any, settings: Mapping[str, Any], device: torch.device
) -> PreTrainedModel:
    """A causal model on the device, with all linear layers except the output layer in 4 bits.

    Args:
        weights: the model's folder.
        config: the model's config.
        settings: the resolved recipe; other weights are loaded in its `frozen_dtype`.
        device: the device of training.

    Raises:
        SeedbedError: bitsandbytes does not support 4 bits on the device.
    """
    check_quantization(device, f"config, recipes.{declared(settings)}.method: qlora")
    chosen = settings["quantization"]
    quantization = BitsAndBytesConfig(
        load_in_4bit=True, **{**chosen, "bnb_4bit_compute_dtype": DTYPES[chosen["bnb_4bit_compute_dtype"]]}
    )
    model = AutoModelForCausalLM.from_pretrained(
        weights,
        config=config,
        quantization_config=quantization,
        dtype=DTYPES[settings["frozen_dtype"]],
        device_map={"": 0 if device.type == "cuda" else "cpu"},
        local_files_only=True,
    )
    for module in model.modules():
        # On some CPUs the first evaluation would rewrite some weights for a faster kernel, in bfloat16: a
        # resumed run would then train beside other weights.
        if hasattr(module, "support_avx512bf16_for_cpu"):
            module.support_avx512bf16_for_cpu = False
    return model.requires_grad_(False)


def dequantized(weight: torch.nn.Parameter) -> torch.Tensor:
    """The values of a weight in 4 bits; any other weight unchanged."""
    state = getattr(weight, "quant_state", None)
    if state is None:
        return weight.detach()
    from bitsandbytes.functional import dequantize_4bit

    return dequantize_4bit(weight.data, state)


# --- in the run folder ---


def base_name(job: Job) -> str:
    """The base's path relative to the folder of results, without paths of this machine."""
    return f"models/{job.run['model']}/huggingface"


def keep(model: PeftModel, job: Job, ready: Path) -> dict[str, Any]:
    """Save a run's adapter into the run folder.

    Returns:
        An entry for run.json: `base`, the name and the hashes of the adapter's model.
    """
    save(model, ready / FOLDER, base_name(job))
    hashes = {name: files.sha256(job.weights / name) for name in BASE_FILES}
    return {"base": {"name": base_name(job), "sha256": hashes}}


def save(model: PeftModel, folder: Path, base: str) -> None:
    """Write adapter_config.json and adapter_model.safetensors for peft.

    peft's own method would add a model card with paths of this machine.

    Args:
        model: the model with its adapter.
        folder: the folder to create.
        base: the recorded name of the adapter's model.
    """
    from safetensors.torch import save_file

    folder.mkdir(parents=True)
    state = get_peft_model_state_dict(model, save_embedding_layers=False)
    tensors = {name: weight.detach().cpu().contiguous().clone() for name, weight in state.items()}
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})
    files.follow_umask(folder / WEIGHTS)
    config = copy.copy(model.peft_config["default"])
    config.base_model_name_or_path, config.inference_mode = base, True
    config.save_pretrained(folder)
    written = files.read_json(folder / CONFIG)
    for key in ("target_modules", "modules_to_save"):  # peft keeps them as sets, in no fixed order
        if isinstance(written[key], list):
            written[key] = sorted(written[key])
    files.write_text(folder / CONFIG, json.dumps(written, indent=2, sort_keys=True) + "\n")


def load(base: PreTrainedModel, folder: Path) -> PeftModel:
    """The base with an adapter of `save`; `base` is changed."""
    config = LoraConfig.from_pretrained(str(folder))
    # another one if it was trained in 4 bits
    config.fan_in_fan_out = adapter_parameters.is_transposed(base)
    with adapter_parameters.without_deprecation():
        return PeftModel.from_pretrained(base, str(folder), config=config).eval()
