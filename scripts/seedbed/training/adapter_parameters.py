"""Count the trained parameters of an adapter, and compare them with a closed formula and with peft's count.

LoRA (Hu et al. 2021, section 4.1) freezes a weight W of d_out x d_in and trains B (d_out x r) and A (r x
d_in) beside it, so each adapted layer has

    r(d_in + d_out)

trained parameters, and an embedding of V rows and width d has r(V + d). Biases, and copies of whole modules
(peft's `modules_to_save`, such as the head of a classifier), may be trained, too. The formula takes modules
and widths from peft's layers and r from the recipe.

QLoRA (Dettmers et al. 2023, section 3) stores the frozen weights in 4 bits. bitsandbytes packs two weights
into a byte, so the tensor has half as many elements as the model has weights: in a naive sum over
`parameters()`, the model looks smaller and its trained share larger. Here the unpacked weights are counted.
"""

import contextlib
import copy
import difflib
import math
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from seedbed.core.errors import SeedbedError
from seedbed.core.files import write_rows
from seedbed.core.methods import METHODS
from seedbed.core.tasks import CAUSAL, TASKS
from seedbed.models.auto_classifiers import head_modules, is_auto
from seedbed.training import partial
from seedbed.training.partial import Part

COLUMNS = ("model", "recipe", "method", "component", "modules", "formula", "expected", "counted")
TRAINABLE, TOTAL = "trainable", "total"
PACKED = "total, packed 4-bit storage counted (wrong)"
BIASES = {"all": "biases of all modules", "lora_only": "biases of the adapted modules"}
# Seedbed trains no token types of converted models: their row stays zero, since fairseq has none
NEVER_TRAINED = "token_type_embeddings.weight"
# peft copies modules with these names for the classification of sequences
CLASSIFIERS = ("classifier", "score")
# parts of peft's names of weights: its own, and the model's
ADDED = {
    "lora_A", "lora_B", "lora_embedding_A", "lora_embedding_B", "lora_magnitude_vector", "modules_to_save",
}  # fmt: skip
WRAPPED = ("base_layer", "original_module")


# --- attaching ---


def attach(model: Any, lora: Mapping[str, Any], where: str = "lora", called: str = "the model") -> Any:
    """The model with a new adapter of peft; the model is changed, `lora` is not.

    Args:
        model: a causal model or classifier without an adapter.
        lora: a recipe's `lora`: peft's own names.
        where: config key of `lora`, for errors.
        called: the model, for errors.

    Raises:
        SeedbedError: an entry of target_modules or modules_to_save matches no module of the model, a module
            that LoRA cannot adapt, or only modules of another entry.
    """
    from peft import LoraConfig, get_peft_model

    lora = _with_head(model, lora)
    _check_names(model, lora, where, called)
    config = LoraConfig(**copy.deepcopy(dict(lora)), fan_in_fan_out=is_transposed(model))
    with without_deprecation():
        return get_peft_model(model, config)


def _with_head(model: Any, lora: Mapping[str, Any]) -> Mapping[str, Any]:
    """`lora` with the parts of a classifier's head in `modules_to_save` that peft does not know."""
    if lora.get("task_type") != "SEQ_CLS" or not is_auto(model.config):
        return lora
    own = [name for name in head_modules(model) if name not in CLASSIFIERS]
    saved = list(dict.fromkeys([*(lora.get("modules_to_save") or ()), *own]))
    return {**lora, "modules_to_save": saved or None}


def _check_names(model: Any, lora: Mapping[str, Any], where: str, called: str) -> None:
    """Refuse entries that peft would ignore, or refuse without naming them."""
    from peft.tuners.tuners_utils import check_target_module_exists

    modules = dict(model.named_modules())
    for entry in lora.get("modules_to_save") or ():
        if not any(name.endswith(entry) for name in modules):
            raise _unknown(entry, modules, f"{where}.modules_to_save", called)
    config = _Targets(_entries(lora), _saved(lora))
    taken: set[str] = set()  # layers that an earlier entry names
    for entry in config.target_modules:
        named = [name for name in modules if _is_named(name, entry)]
        if not named:
            raise _unknown(entry, modules, f"{where}.target_modules", called)
        own = [name for name in named if name not in taken and check_target_module_exists(config, name)]
        if not own:
            raise SeedbedError(
                f"another entry already adapts or copies all modules of {called} with this name",
                where=f"{where}.target_modules",
                found=entry,
                hint="remove the entry or the other one, which may be in modules_to_save",
            )
        taken |= {*own}
        for name in own:
            if not _is_adaptable(modules[name]):
                raise SeedbedError(
                    f"LoRA only adapts linear layers and embeddings, and this is another module of {called}",
                    where=f"{where}.target_modules",
                    found=f"{entry}: {name} is a {type(modules[name]).__name__}",
                    hint=f"name some of {_census(modules)}",
                )


class _Targets(NamedTuple):
    """The part of a LoraConfig with which peft decides whether to adapt a module."""

    target_modules: Sequence[str]
    modules_to_save: Sequence[str]


def _entries(lora: Mapping[str, Any]) -> list[str]:
    """The entries of target_modules; empty for a text that peft resolves ("all-linear")."""
    return [] if isinstance(lora["target_modules"], str) else list(lora["target_modules"])


def _saved(lora: Mapping[str, Any]) -> list[str]:
    """Names of the modules that peft copies."""
    heads = CLASSIFIERS if lora.get("task_type") == "SEQ_CLS" else ()
    return [*(lora.get("modules_to_save") or ()), *heads]


def _is_named(name: str, entry: str) -> bool:
    return name == entry or name.endswith(f".{entry}")


def is_transposed(model: Any) -> bool:
    """peft's fan_in_fan_out: whether layers store weights as inputs x outputs, as in GPT-2."""
    from transformers.pytorch_utils import Conv1D

    return any(isinstance(module, Conv1D) for module in model.modules())


@contextlib.contextmanager
def without_deprecation() -> Iterator[None]:
    """Suppress the warning that peft uses an old name of Transformers' gradient checkpointing."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`is_gradient_checkpointing` is deprecated", FutureWarning)
        yield


# --- counting ---


def describe(
    model: Any, method: str, lora: Mapping[str, Any] | None = None, groups: Sequence[Part] = ()
) -> dict[str, Any]:
    """A model's parameters for run.json: counted, expected, and peft's count.

    `total` includes the adapter and the copies that peft trains beside the frozen originals. Tied weights
    count once, 4-bit weights unpacked.

    Args:
        model: a torch module; for lora and qlora, the PeftModel.
        method: of the recipe.
        lora: the recipe's `lora`, for lora and qlora.
        groups: what a method that trains a part of the weights trains (`partial.groups`).

    Returns:
        "trainable", "total", "expected_trainable", and "peft": {"trainable", "total"} or None without an
        adapter. Only peft's total may differ: see `_packing_error`.

    Raises:
        SeedbedError: count, formula and peft's count differ.
    """
    chosen = METHODS[method]
    parts = _parts(model, lora) if chosen.has_adapter else groups
    if chosen.freezes:
        expected = sum(part.expected for part in parts)
    else:
        expected = _all_trained(model) if chosen.trains else 0
    own = sum(part.expected for part in parts if part.component in BIASES.values())
    added = expected - own if chosen.has_adapter else 0
    trainable, total = count(model)
    if not chosen.trains:
        trainable = 0  # no optimizer ever sees them
    _agree(f"parameters that {method} trains", counted=trainable, formula=expected)
    _agree("parameters in all", counted=total, formula=_plain_total(model) + added)
    peft = None
    if chosen.has_adapter:
        peft = dict(zip((TRAINABLE, TOTAL), model.get_nb_trainable_parameters(), strict=True))
        _agree(f"parameters that {method} trains", counted=trainable, peft=peft[TRAINABLE])
        _agree("parameters in all", counted=total + _packing_error(model), peft=peft[TOTAL])
    return {TRAINABLE: trainable, TOTAL: total, "expected_trainable": expected, "peft": peft}


def count(model: Any) -> tuple[int, int]:
    """Numbers of trained and of all elements: tied weights count once, 4-bit weights unpacked."""
    sizes = [(_elements(weight), weight.requires_grad) for weight in model.parameters()]
    return sum(size for size, trained in sizes if trained), sum(size for size, _ in sizes)


def tabulate(
    models: Mapping[str, str | Path],
    recipes: Mapping[str, Mapping[str, Any]],
    task: str,
    labels: int | None = None,
) -> list[dict[str, Any]]:
    """Rows of trainable_parameters.csv: each recipe on each model, without weights (torch's meta device).

    Args:
        models: name -> folder with config.json.
        recipes: name -> resolved recipe.
        task: name of the task.
        labels: number of classes, if the task has any.

    Raises:
        SeedbedError: the model lacks a target, or weights that the method trains; count, formula and peft's
            count differ.
    """
    return [
        {"model": model, "recipe": name, "method": recipe["method"], **row}
        for model, folder in models.items()
        for name, recipe in recipes.items()
        for row in _rows(
            folder, recipe, task, labels, where=f"config, recipes.{name}.lora", called=f"the model {model!r}"
        )
    ]


def write_trainable(
    models: Mapping[str, str | Path],
    recipes: Mapping[str, Mapping[str, Any]],
    task: str,
    labels: int | None,
    output: str | Path,
) -> None:
    """Write trainable_parameters.csv; for the arguments see `tabulate`."""
    write_rows(output, COLUMNS, tabulate(models, recipes, task, labels))


def _rows(
    folder: str | Path,
    recipe: Mapping[str, Any],
    task: str,
    labels: int | None,
    where: str,
    called: str,
) -> list[dict[str, Any]]:
    method, lora = METHODS[recipe["method"]], recipe.get("lora")
    model = without_values(folder, task, labels)
    packed = _packed_total(model) if method.is_quantized else None
    parts: list[Part] = []
    if method.has_adapter:
        model = attach(model, lora, where, called)
        parts = _parts(model, lora)
    elif method.trains_part:
        layout = partial.layout_of(model)
        partial.freeze(model, layout, recipe, called)
        parts = partial.groups(model, layout, recipe)
    rows = [part._asdict() for part in parts]
    numbers = describe(model, method.name, lora, parts)
    formula = "sum of the rows above" if rows else ("all weights" if method.trains else "nothing")
    rows.append(_row(TRAINABLE, formula, numbers["expected_trainable"], numbers[TRAINABLE]))
    added = numbers[TOTAL] - _plain_total(model)
    formula = f"{_plain_total(model)} of the model" + (f" + {added} added" if added else "")
    rows.append(_row(TOTAL, formula, numbers[TOTAL], numbers[TOTAL]))
    if packed:
        formula = f"{numbers[TOTAL]} - {packed.missed} of {packed.quantised} in 4 bits"
        rows.append(_row(PACKED, formula, numbers[TOTAL] - packed.missed, packed.total + added))
    return rows


def _row(component: str, formula: str, expected: int, counted: int) -> dict[str, Any]:
    _agree(component, counted=counted, formula=expected)
    return {
        "component": component,
        "modules": "",
        "formula": formula,
        "expected": expected,
        "counted": counted,
    }


def without_values(folder: str | Path, task: str, labels: int | None) -> Any:
    """The model of config.json, with shapes but no values of weights (torch's meta device)."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSequenceClassification

    with torch.device("meta"):
        if TASKS[task].model == CAUSAL:
            return AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder, local_files_only=True))
        config = AutoConfig.from_pretrained(folder, local_files_only=True, num_labels=labels)
        model = AutoModelForSequenceClassification.from_config(config)
    for name, weight in model.named_parameters():
        weight.requires_grad_(_is_trained(name, model))
    return model


def quantized_layers(model: Any) -> list[str]:
    """Names of the layers that Transformers stores in 4 bits: all linear ones except the output layer."""
    output = model.get_output_embeddings()
    return [name for name, module in model.named_modules() if _is_linear(module) and module is not output]


# --- the model without its adapter ---


def _base(model: Any) -> Any:
    """The model inside peft's wrapper."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def _plain_weights(model: Any) -> dict[str, Any]:
    """The weights of the model without its adapter, each once, by name."""
    weights = {}
    for name, weight in _base(model).named_parameters():
        parts = name.split(".")
        if not ADDED & {*parts}:
            weights[".".join(part for part in parts if part not in WRAPPED)] = weight
    return weights


def _plain_total(model: Any) -> int:
    return sum(map(_elements, _plain_weights(model).values()))


def _all_trained(model: Any) -> int:
    weights = _plain_weights(model).items()
    return sum(_elements(weight) for name, weight in weights if _is_trained(name, model))


def _is_trained(name: str, model: Any) -> bool:
    """Whether full fine-tuning trains a weight."""
    return not name.endswith(NEVER_TRAINED) or is_auto(getattr(_base(model), "config", None))


def _elements(weight: Any) -> int:
    state = getattr(weight, "quant_state", None)  # of a 4-bit weight of bitsandbytes, once it is packed
    return math.prod(state.shape) if state is not None else weight.numel()


def _packing_error(model: Any) -> int:
    """The error of peft's total, which doubles the bytes of a 4-bit weight.

    It is one element for a weight with an odd number of elements, whose last byte is half empty, and more for
    a weight that is not packed yet.
    """
    weights = [weight for weight in model.parameters() if type(weight).__name__ == "Params4bit"]
    return sum(weight.numel() * 2 * weight.element_size() - _elements(weight) for weight in weights)


class _Packed(NamedTuple):
    total: int
    quantised: int
    missed: int


def _packed_total(model: Any) -> _Packed:
    """A naive count of the model's elements in 4 bits, the number of quantised ones, and its shortfall."""
    linear = {f"{name}.weight" for name in quantized_layers(model)}
    # the output layer may be tied to the embeddings, whose name the weight has
    sizes = [_elements(weight) for name, weight in _plain_weights(model).items() if name in linear]
    missed = sum(size // 2 for size in sizes)
    return _Packed(_plain_total(model) - missed, sum(sizes), missed)


# --- adapted layers ---


def adapted_layers(model: Any, lora: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """peft's LoRA layers by the first matching entry of `target_modules`, then by name.

    If peft resolved the entries itself ("all-linear"), the last part of a layer's name counts as its entry.

    Args:
        model: with an adapter.
        lora: the recipe's `lora`.
    """
    from peft.tuners.lora import LoraLayer

    entries = _entries(lora)
    found: dict[str, dict[str, Any]] = {entry: {} for entry in entries}
    for name, module in _base(model).named_modules():
        if isinstance(module, LoraLayer):
            last = name.rpartition(".")[2]
            entry = next((entry for entry in entries if _is_named(name, entry)), last)
            found.setdefault(entry, {})[name] = module
    return found


def _parts(model: Any, lora: Mapping[str, Any]) -> list[Part]:
    """The groups of the adapter's trained parameters."""
    r, found = lora["r"], adapted_layers(model, lora)
    parts = []
    for entry, layers in found.items():
        shapes = Counter((layer.in_features, layer.out_features) for layer in layers.values())
        formula = " + ".join(
            f"{f'{number}·' if number > 1 else ''}{r}({a} + {b})" for (a, b), number in shapes.items()
        )
        expected = sum(number * r * (a + b) for (a, b), number in shapes.items())
        parts.append(Part(entry, len(layers), formula, expected, sum(map(_added, layers.values()))))
    copies = _copies(model)
    if lora.get("bias", "none") != "none":
        every = _biases(model, tuple(f"{name}." for name in copies))
        adapted = [layer.get_base_layer() for layers in found.values() for layer in layers.values()]
        own = (getattr(layer, "bias", None) for layer in adapted)
        wanted = every if lora["bias"] == "all" else [bias for bias in own if bias is not None]
        counted = sum(bias.numel() for bias in every if bias.requires_grad)
        expected = sum(bias.numel() for bias in wanted)
        parts.append(Part(BIASES[lora["bias"]], len(wanted), "elements of the biases", expected, counted))
    for name, copy_of in copies.items():
        expected, counted = (
            sum(map(_elements, module.parameters()))
            for module in (copy_of.original_module, copy_of.modules_to_save)
        )
        parts.append(Part(f"trained copy of {name}", 1, "elements of the module", expected, counted))
    return parts


def _added(layer: Any) -> int:
    """Number of elements of the adapter in one of peft's layers."""
    weights = layer.named_parameters()
    return sum(_elements(weight) for name, weight in weights if not name.startswith("base_layer."))


def _copies(model: Any) -> dict[str, Any]:
    """peft's wrappers of copied modules, by name."""
    from peft.utils import ModulesToSaveWrapper

    modules = _base(model).named_modules()
    return {name: module for name, module in modules if isinstance(module, ModulesToSaveWrapper)}


def _biases(model: Any, outside: tuple[str, ...]) -> list[Any]:
    """Biases of all modules whose names do not begin with one of `outside`."""
    weights = _base(model).named_parameters()
    return [weight for name, weight in weights if name.endswith(".bias") and not name.startswith(outside)]


def _is_linear(module: Any) -> bool:
    import torch
    from transformers.pytorch_utils import Conv1D

    return isinstance(module, (torch.nn.Linear, Conv1D))


def _is_adaptable(module: Any) -> bool:
    import torch

    return _is_linear(module) or isinstance(module, torch.nn.Embedding)


# --- errors ---


def _agree(what: str, **numbers: int) -> None:
    if len(set(numbers.values())) > 1:
        raise SeedbedError(
            f"two counts of the {what} differ",
            found=", ".join(f"{name}: {number:,}" for name, number in numbers.items()),
            hint="the adapter is not the recipe's, or a weight is wrongly frozen or trained",
        )


def _unknown(entry: str, modules: Mapping[str, Any], where: str, called: str) -> SeedbedError:
    names = sorted({name.rpartition(".")[2] for name in modules if name})
    close = difflib.get_close_matches(entry.rpartition(".")[2], names, n=1, cutoff=0.5)
    meant = f"did you mean {close[0]}? " if close else ""
    return SeedbedError(
        f"no module of {called} has this name",
        where=where,
        found=entry,
        hint=f"{meant}There are {_census(modules)}",
    )


def _census(modules: Mapping[str, Any]) -> str:
    """Names of the layers that can be adapted, with their numbers."""
    names: Sequence[str] = [
        name.rpartition(".")[2] for name, module in modules.items() if _is_adaptable(module)
    ]
    return ", ".join(f"{name} ({number})" for name, number in Counter(names).items())
