"""Fine-tuning of causal language models on prompts and answers, with Transformers' Trainer."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoConfig, AutoModelForCausalLM, GenerationConfig, PreTrainedModel

from seedbed import adapter_parameters, files, finetuning, hardware
from seedbed.errors import SeedbedError
from seedbed.finetuning import Job, Progress
from seedbed.generation import Answered, Limits, Questions, generate_answers
from seedbed.jobs import PREDICTED
from seedbed.transformers_loop import RecipeTrainer, be_quiet, train_and_select

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


def train(jobs: list[Job]) -> None:
    """Train, select, predict and publish the runs of one process, one after another."""
    be_quiet()
    for job in jobs:
        train_run(job)


def train_run(job: Job) -> None:
    """Fine-tune one run, or evaluate the model as it is, and publish its folder."""
    hardware.set_up_torch(job.threads, job.run["deterministic"], job.settings["precision"])
    shape = files.read_json(job.model)
    splits = read_splits(job, shape["max_positions"])
    progress = finetuning.start(job, len(splits["train"].examples))
    recorder, method = progress.recorder, job.run["method"]
    model = build_model(job, recorder.device)
    trainer = CausalTrainer(job, progress, splits, model, shape["pad"])
    # before training, as it may refuse the adapter
    parameters = adapter_parameters.describe(trainer.model, method, job.settings.get("lora"))
    extra = train_and_select(trainer)
    extra |= {"differences": differences(job.settings, model.config), "parameters": parameters}
    if job.has_adapter:
        from seedbed import adapters

        extra |= adapters.keep(trainer.model, job, recorder.ready)
    limits = Limits(
        shape["eos"], shape["pad"], job.run["evaluation"]["max_new_tokens"], shape["max_positions"]
    )

    def answer(prompts: Sequence[Sequence[int]]) -> list[list[int]]:
        return trainer.generate(prompts, limits)

    def keep_model(folder: Path) -> None:
        from seedbed import merging

        merging.write_run(folder, job, trainer.model, recorder.ready)

    predictor = Answered(trainer.predict_split, answer, job.weights / "tokenizer.json")
    finetuning.finish(job, recorder, splits, predictor, extra, keep_model)


# --- inputs ---


def read_splits(job: Job, positions: int | None) -> dict[str, Questions]:
    """Prompts and answers of the three splits.

    Args:
        job: the run.
        positions: longest text of the model in tokens; None: any.

    Raises:
        SeedbedError: an example is longer than that.
    """
    splits = {}
    for name in ("train", *PREDICTED):
        rows = files.read_jsonl(job.tokens / f"{name}.jsonl")
        split = splits[name] = Questions(
            examples=[row["id"] for row in rows],
            prompts=[row["prompt"] for row in rows],
            answers=[row["answer"] for row in rows],
            references=[row["reference"] for row in rows],
            groups=[row["group"] for row in rows],
        )
        for example, length in zip(split.examples, split.lengths, strict=True):
            if positions is not None and length > positions:
                raise SeedbedError(
                    "an example is longer than the model has positions",
                    where=f"{job.tokens / name}.jsonl, {example}",
                    found=f"{length} tokens, of {positions}",
                    hint=f"set max_tokens of the dataset to {positions} or less, or null; overlong says what "
                    "happens to longer examples",
                )
    return splits


# --- the model ---


def build_model(job: Job, device: torch.device) -> torch.nn.Module:
    """The model at its initial weights, with an adapter where the recipe's method is one.

    On the CPU, in float32; weights in 4 bits are on `device`. With the method none all is frozen.

    Raises:
        SeedbedError: a pretrained run whose weights are not the checkpoint's; an adapter of modules that
            the model does not have; 4 bits where they are impossible.
    """
    method = job.run["method"]
    model = _build_quantized(job, device) if method == "qlora" else build_base(job.weights, job.run)
    if not job.has_adapter:
        return model.requires_grad_(method == "full")
    from seedbed import adapters

    return adapters.apply(model, job.settings, job.run["init_seed"])


def build_base(weights: Path, run: Mapping[str, Any]) -> PreTrainedModel:
    """The model before training, without an adapter, in float32 on the CPU.

    Random weights are drawn as the architecture draws its own, with the recipe's standard deviation, from
    random numbers of the init seed alone.

    Args:
        weights: the model's folder in Hugging Face format.
        run: the run's params.

    Raises:
        SeedbedError: a pretrained run whose weights are not the checkpoint's.
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
    """See that a model is what the loss and the batches of prompts rest on.

    Args:
        model: on its device.
        where: its folder, for the message.
        tolerance: largest difference of scores that should be the same, as a share of their norm; float32
            rounds to 1e-6.

    Raises:
        SeedbedError: scores of a token depend on later tokens, which would tell the answer; or on padding to
            the left of a prompt, which is masked.
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
            hint="take one that sees earlier tokens alone and masks padding, such as BLOOM, Llama or GPT-2",
        )


def _next_scores(model: PreTrainedModel, ids: torch.Tensor, real: int) -> torch.Tensor:
    """Scores of what follows, where the last `real` tokens are not padding."""
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


def differences(settings: Mapping[str, Any], config: Any) -> list[dict[str, Any]]:
    """Where the run departs from the recipe: dropouts that the architecture does not have."""
    known = config.to_dict()
    return [
        {"setting": setting, "asked": settings[setting], "done": f"0: {config.model_type} has none"}
        for setting, keys in DROPOUTS.items()
        if settings[setting] > 0 and not any(key in known for key in keys)
    ]


def _build_quantized(job: Job, device: torch.device) -> PreTrainedModel:
    from seedbed import adapters

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
    """Every weight must be the checkpoint's: a silent start from scratch is an error.

    Raises:
        SeedbedError: a weight is missing in the checkpoint or differs; one in 4 bits may differ a little.
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
            finetuning.check_loaded({name: tensor}, {name: weight}, checkpoint)


def _is_close(tensor: torch.Tensor, weight: torch.nn.Parameter) -> bool:
    """Whether a weight in 4 bits stands for the tensor."""
    from seedbed import adapters

    tensor = tensor.float()
    found = adapters.dequantized(weight).float().cpu()
    # GPT-2 stores its layers transposed; those in 4 bits are not
    errors = [found - each for each in (tensor, tensor.T) if each.shape == found.shape]
    return any(bool(error.norm() <= QUANTIZATION_ERROR * tensor.norm()) for error in errors)


# --- training ---


class CausalTrainer(RecipeTrainer):
    """Trains a causal model by the mean negative log-likelihood of its answers' tokens.

    Args:
        job: the run.
        progress: where it stands.
        splits: the three splits.
        model: at its initial weights.
        pad: id of the token that pads; it may be the one that ends answers.
    """

    untrained_first = True
    keeps_all = False

    def __init__(
        self, job: Job, progress: Progress, splits: dict[str, Questions], model: torch.nn.Module, pad: int
    ):
        self._pad = pad
        super().__init__(job, progress, splits, model)

    def examples(self, split: Questions) -> list[tuple[list[int], list[int]]]:
        """Token ids of prompt and answer."""
        return list(zip(split.prompts, split.answers, strict=True))

    def collate(self, batch: Sequence[tuple[list[int], list[int]]]) -> dict[str, Any]:
        """A batch, padded on the right: `input_ids` and two masks by position, of all tokens and of answers.

        `kept` is the number of last positions that hold all answers and the token before each.
        """
        ids = finetuning.pad([[*prompt, *answer] for prompt, answer in batch], self._pad)
        real = finetuning.pad([[1] * (len(prompt) + len(answer)) for prompt, answer in batch], 0)
        answers = finetuning.pad([[0] * len(prompt) + [1] * len(answer) for prompt, answer in batch], 0)
        return {
            "input_ids": ids,
            "attention_mask": real,
            "answer_mask": answers.bool(),
            "answer_tokens": torch.tensor([len(answer) for _, answer in batch]),
            "kept": ids.shape[1] - min(len(prompt) for prompt, _ in batch) + 1,
            "tokens": int(real.sum()),
        }

    def batch_loss(
        self, model: Any, inputs: dict[str, Any]
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Mean nats a token, of the answers or of all tokens; outputs and tokens are of the answers."""
        nats, outputs = token_scores(model, inputs, on_all=self.job.settings["loss_on"] == "all")
        return nats.mean(), outputs, inputs["answer_tokens"]

    def predict_split(self, split: Questions) -> np.ndarray:
        """(examples, 2) float64: nats of each answer, and how many of its tokens are the most probable."""
        self.model.eval()
        examples = self.examples(split)

        def forward(chosen: list[int]) -> torch.Tensor:
            self.save_if_due()
            inputs = self._prepare_inputs(self.collate([examples[index] for index in chosen]))
            with self.precision():
                return token_scores(self.model, inputs)[1]

        size = self.job.run["evaluation"]["batch_size"]
        return finetuning.predict_by_length(forward, split.lengths, size)

    def generate(self, prompts: Sequence[Sequence[int]], limits: Limits) -> list[list[int]]:
        """Token ids of the answers to prompts, with the model's weights as they are."""
        model = self.model.get_base_model() if self.job.has_adapter else self.model
        size = self.job.run["evaluation"]["batch_size"]
        with self.precision():
            return generate_answers(model, prompts, limits, size, self.save_if_due)


def token_scores(
    model: Any, inputs: Mapping[str, Any], on_all: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """What a model makes of the answers of a batch.

    Scores of the vocabulary are only computed where they are needed: from the token before the first answer.

    Args:
        model: a causal model.
        inputs: a batch, as `CausalTrainer.collate` makes it.
        on_all: whether the tokens of the prompts count, too, but for the first of each, which nothing
            predicts.

    Returns:
        Negative log-likelihood of every token that counts, in nats, (tokens,) float32; and outputs,
        (batch, 2) float64: of each answer the sum of its nats, and the number of its tokens that are the most
        probable.
    """
    ids = inputs["input_ids"]
    kept = ids.shape[1] if on_all else inputs["kept"]
    logits = model(
        input_ids=ids, attention_mask=inputs["attention_mask"], use_cache=False, logits_to_keep=kept
    ).logits
    # the last position predicts what follows the batch
    later = slice(ids.shape[1] - kept + 1, None)
    targets, answers = ids[:, later], inputs["answer_mask"][:, later]
    counted = inputs["attention_mask"][:, later].bool() if on_all else answers
    logits, targets = logits[:, :-1][counted], targets[counted]
    nats = torch.nn.functional.cross_entropy(logits.float(), targets, reduction="none")
    grid = torch.zeros(2, *counted.shape, dtype=torch.float64, device=ids.device)
    grid[0][counted] = nats.detach().double()
    grid[1][counted] = (logits.detach().argmax(dim=-1) == targets).double()
    outputs = torch.where(answers, grid, 0.0).sum(dim=-1).T
    return nats, outputs
