"""Make the initial models of runs, without an adapter: pretrained or random."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    GenerationConfig,
    PreTrainedModel,
    RobertaConfig,
    RobertaForSequenceClassification,
)

from seedbed.core.errors import SeedbedError
from seedbed.core.naming import fairseq_name
from seedbed.models.auto_classifiers import is_auto
from seedbed.running.jobs import Job
from seedbed.training import initial_encoders, initialisation
from seedbed.training.initial_encoders import head_config
from seedbed.training.initialisation import draw_encoder, draw_head

# keys of Transformers' configs that a recipe's dropouts stand for; each architecture has its own
DROPOUTS = {
    "dropout": (
        "hidden_dropout", "hidden_dropout_prob", "dropout", "resid_pdrop", "embd_pdrop", "resid_dropout",
        "embed_dropout", "residual_dropout", "embedding_dropout",
    ),
    "attention_dropout": ("attention_dropout", "attn_pdrop", "attention_probs_dropout_prob"),
    "activation_dropout": ("activation_dropout", "activation_pdrop"),
    "pooler_dropout": (),
}  # fmt: skip

QUANTIZED_TOLERANCE = 0.05  # of scores, as a share of their norm: in 4 bits layers compute in bfloat16

# Largest error of a matrix in 4 bits, as a share of its norm: of normal weights 0.1 (nf4) or 0.12 (fp4), up
# to 0.6 where they fill few blocks only; of other weights of the same norm 1.4.
QUANTIZATION_ERROR = 0.8


# --- classifiers ---


def build_classifier(weights: Path, run: Mapping[str, Any], classes: int) -> PreTrainedModel:
    """The classifier of a published model at its initial weights.

    For the arguments and errors see `build_roberta`.
    """
    if is_auto(AutoConfig.from_pretrained(weights, local_files_only=True)):
        return initial_encoders.build(weights, run, classes)
    return build_roberta(weights, run, classes)


def build_roberta(weights: Path, run: Mapping[str, Any], classes: int) -> RobertaForSequenceClassification:
    """The classifier of a converted RoBERTa at its initial weights, all of which are trained.

    Args:
        weights: the model's folder in Hugging Face format.
        run: the run's params.
        classes: number of classes.

    Raises:
        SeedbedError: weights of a pretrained run differ from the checkpoint, or are missing there.
    """
    settings = run["settings"]
    config = RobertaConfig.from_pretrained(
        weights,
        **head_config(run, classes),
        hidden_dropout_prob=settings["dropout"],
        attention_probs_dropout_prob=settings["attention_dropout"],
        classifier_dropout=settings["pooler_dropout"],
    )
    if run["init"] == "pretrained":
        model = _load(weights, config)
    else:
        model = RobertaForSequenceClassification(config)
        draw_encoder(model.roberta, run["init_seed"], settings["random_init_sd"], fairseq_name)
    head = model.classifier
    draw_head(head.dense, head.out_proj, run["init_seed"], settings["head_init"])
    # fairseq has no token types: their one row stays the zero it is in the converted checkpoint
    model.roberta.embeddings.token_type_embeddings.weight.requires_grad_(False)
    return model


def _load(weights: Path, config: RobertaConfig) -> RobertaForSequenceClassification:
    from safetensors.torch import load_file

    checkpoint = weights / "model.safetensors"
    with initialisation.without_load_report():
        model, report = RobertaForSequenceClassification.from_pretrained(
            weights,
            config=config,
            dtype=torch.float32,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # found below
        )
    drawn = {*report["missing_keys"], *(key for key, *_ in report["mismatched_keys"])}
    if lost := sorted(name for name in drawn if not name.startswith("classifier.")):
        raise SeedbedError(
            "the checkpoint lacks weights of the model, which would start at random",
            where=str(checkpoint),
            found=", ".join(lost),
            hint="make it anew: snakemake --forcerun convert_checkpoint",
        )
    stored = load_file(checkpoint)
    encoder = {name: tensor for name, tensor in stored.items() if name.startswith("roberta.")}
    initialisation.check_loaded(encoder, model.state_dict(), checkpoint)
    return model


# --- causal models ---


def build_base(weights: Path, run: Mapping[str, Any]) -> PreTrainedModel:
    """The model before training, without an adapter, in float32 on the CPU.

    The architecture draws random weights with its own method and the recipe's standard deviation, from random
    numbers that depend only on the init seed.

    Args:
        weights: the model's folder in Hugging Face format.
        run: the run's params.

    Raises:
        SeedbedError: weights of a pretrained run differ from the checkpoint.
    """
    config = build_config(weights, run["settings"])
    if run["init"] == "random":
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(run["init_seed"])
            model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
        check_architecture(model, str(weights))
        return model
    model = AutoModelForCausalLM.from_pretrained(
        weights, config=config, dtype=torch.float32, local_files_only=True
    )
    _check_loaded(model, weights / "model.safetensors")
    check_architecture(model, str(weights))
    return model


@torch.no_grad()
def check_architecture(model: PreTrainedModel, where: str, tolerance: float = 1e-4) -> None:
    """Check that a model fits the loss and the padded batches of prompts.

    Args:
        model: the model on its device.
        where: its folder, for the message.
        tolerance: largest allowed difference of equal scores, as a share of their norm; float32 rounds to
            1e-6.

    Raises:
        SeedbedError: scores of a token depend on later tokens, which would reveal the answer, or on masked
            padding to the left of a prompt.
    """
    model.eval()
    ids = torch.arange(4, 9, device=model.device)[None] % model.config.vocab_size
    changed = ids.clone()
    changed[0, -1] = (ids[0, -1] + 7) % model.config.vocab_size
    scores = [model(input_ids=each, use_cache=False).logits[:, :-1] for each in (ids, changed)]
    found = "scores that depend on later tokens" if _differ(*scores, tolerance) else ""
    padded = torch.nn.functional.pad(ids, (3, 0), value=1)
    following = [_next_scores(model, each, ids.shape[1]) for each in (ids, padded)]
    if not found and _differ(*following, tolerance):
        found = "scores that depend on masked padding to the left of a prompt"
    if found:
        raise SeedbedError(
            f"a model of the type {model.config.model_type} cannot answer prompts here",
            where=where,
            found=found,
            hint="take one that only sees earlier tokens and masks padding, such as BLOOM, Llama or GPT-2",
        )


def _next_scores(model: PreTrainedModel, ids: torch.Tensor, real: int) -> torch.Tensor:
    """Scores of the next token, with padding before the last `real` tokens."""
    mask = torch.zeros_like(ids)
    mask[:, -real:] = 1
    asked = GenerationConfig(
        max_new_tokens=1, do_sample=False, pad_token_id=1, return_dict_in_generate=True, output_logits=True
    )
    return model.generate(input_ids=ids, attention_mask=mask, generation_config=asked).logits[0]


def _differ(a: torch.Tensor, b: torch.Tensor, tolerance: float) -> bool:
    a, b = a.float(), b.float()
    return bool((a - b).norm() > tolerance * a.norm())


def build_config(weights: Path, settings: Mapping[str, Any]) -> Any:
    """The model's config with the recipe's dropouts and, for random weights, its standard deviation."""
    config = AutoConfig.from_pretrained(weights, local_files_only=True)
    known = config.to_dict()
    for setting, keys in DROPOUTS.items():
        for key in keys:
            if key in known:
                setattr(config, key, settings[setting])
    if "initializer_range" in known:
        config.initializer_range = settings["random_init_sd"]
    return config


def build_quantized(job: Job, device: torch.device) -> PreTrainedModel:
    """The model before training in 4 bits on `device`, without an adapter.

    Raises:
        SeedbedError: see `build_base`; or the device does not support 4 bits.
    """
    from seedbed.training import adapters

    config = build_config(job.weights, job.settings)
    if job.run["init"] == "random":
        job.work.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=job.work) as folder:
            build_base(job.weights, job.run).save_pretrained(folder, max_shard_size="1000GB")
            return adapters.load_quantized(Path(folder), config, job.settings, device)
    model = adapters.load_quantized(job.weights, config, job.settings, device)
    _check_loaded(model, job.weights / "model.safetensors")
    check_architecture(model, str(job.weights), QUANTIZED_TOLERANCE)
    return model


def _check_loaded(model: PreTrainedModel, checkpoint: Path) -> None:
    """Check that all weights are the checkpoint's: a silent start from scratch is an error.

    Raises:
        SeedbedError: a weight is missing in the checkpoint or differs; in 4 bits it may differ a little.
    """
    from safetensors import safe_open

    prefix = f"{model.base_model_prefix}."
    with safe_open(checkpoint, "pt") as stored:
        names = set(stored.keys())
        for name, weight in model.named_parameters():
            # files of the base model alone leave its prefix out
            known = next((each for each in (name, name.removeprefix(prefix)) if each in names), None)
            if known is None:
                raise SeedbedError(
                    "the checkpoint lacks a weight of the model, which would start at random",
                    where=str(checkpoint),
                    found=name,
                    hint="make it anew: snakemake --forcerun convert_causal_model",
                )
            tensor = stored.get_tensor(known)
            if getattr(weight, "quant_state", None) is not None and _is_close(tensor, weight):
                continue
            initialisation.check_loaded({name: tensor}, {name: weight}, checkpoint)


def _is_close(tensor: torch.Tensor, weight: torch.nn.Parameter) -> bool:
    """Whether a weight in 4 bits has the values of the tensor."""
    from seedbed.training import adapters

    tensor = tensor.float()
    found = adapters.dequantized(weight).float().cpu()
    # GPT-2 stores its layers transposed; those in 4 bits are not
    errors = [found - each for each in (tensor, tensor.T) if each.shape == found.shape]
    return any(bool(error.norm() <= QUANTIZATION_ERROR * tensor.norm()) for error in errors)
