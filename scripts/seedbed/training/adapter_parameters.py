"""The parameters that an adapter trains: counted, expected from a closed formula, and as peft counts them.

LoRA (Hu et al. 2021, section 4.1) leaves a weight W of d_out x d_in as it is and trains B (d_out x r) and
A (r x d_in) beside it, so each adapted layer trains

    r(d_in + d_out)

parameters; an embedding of V rows and width d, r(V + d). Beside them may be trained: biases, and copies of
whole modules (peft's `modules_to_save`, among them the head of a classifier).

QLoRA (Dettmers et al. 2023, section 3) stores the frozen weights in 4 bits. bitsandbytes packs two of them
into a byte, so that the tensor has half as many elements as the model has weights: a naive sum over
`parameters()` makes the model look smaller, and what is trained a larger part of it. Here a 4-bit weight
counts the elements that it stands for.
"""

import contextlib
import copy
import difflib
import math
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from seedbed.core.errors import SeedbedError
from seedbed.core.files import write_rows
from seedbed.core.methods import ADAPTERS
from seedbed.core.tasks import TASKS

COLUMNS = ("model", "recipe", "method", "component", "modules", "formula", "expected", "counted")
ALL_LINEAR = "all-linear"
TRAINABLE, TOTAL = "trainable", "total"
PACKED = "total, packed 4-bit storage counted (wrong)"
BIASES = {"all": "biases of all modules", "lora_only": "biases of the adapted modules"}
# Seedbed trains no token types: their one row stays zero, as in fairseq, which has none
NEVER_TRAINED = "token_type_embeddings.weight"
# peft copies modules of these names if the task is to classify sequences, where there are any
CLASSIFIERS = ("classifier", "score")


class Part(NamedTuple):
    """Parameters that an adapter trains: what, in how many modules, by which formula, how many."""

    component: str
    modules: int
    formula: str
    expected: int


def check_targets(
    model: Any, lora: Mapping[str, Any], where: str, called: str = "the model"
) -> dict[str, list[str]]:
    """Modules that each entry of `target_modules` names; those of "all-linear" as peft resolves it.

    Args:
        model: a causal model or classifier, with or without an adapter.
        lora: a recipe's `lora`: peft's own names.
        where: config key of `lora`, for errors.
        called: the model, for errors.

    Raises:
        SeedbedError: an entry of target_modules or modules_to_save names no module of the model, or one
            that LoRA cannot adapt.
    """
    modules = dict(_plain_modules(model))
    for entry in lora.get("modules_to_save") or ():
        if not any(name.endswith(entry) for name in modules):
            raise _unknown(entry, modules, f"{where}.modules_to_save", called)
    found = _targets(model, lora)
    for entry, names in found.items():
        if not any(_is_named(name, entry) for name in modules):
            raise _unknown(entry, modules, f"{where}.target_modules", called)
        if not names:
            raise SeedbedError(
                f"all modules of {called} with this name are adapted or copied because of another entry",
                where=f"{where}.target_modules",
                found=entry,
                hint="leave the entry out, or the other one, which may be of modules_to_save",
            )
        for name in names:
            if not _is_adaptable(modules[name]):
                raise SeedbedError(
                    f"LoRA adapts linear layers and embeddings alone, and this is another module of {called}",
                    where=f"{where}.target_modules",
                    found=f"{entry}: {name} is a {type(modules[name]).__name__}",
                    hint=f"name some of {_census(modules)}",
                )
    return found


def attach(model: Any, lora: Mapping[str, Any]) -> Any:
    """The model with a new adapter, as peft makes it; the model is changed, `lora` is not.

    Args:
        model: a causal model or classifier without an adapter.
        lora: a recipe's `lora`, which `check_targets` has passed.
    """
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(**copy.deepcopy(dict(lora)), fan_in_fan_out=is_transposed(model, lora))
    with without_deprecation():
        return get_peft_model(model, config)


def is_transposed(model: Any, lora: Mapping[str, Any]) -> bool:
    """What peft calls fan_in_fan_out: adapted layers hold their weights as inputs x outputs, as in GPT-2."""
    from transformers.pytorch_utils import Conv1D

    modules = dict(_plain_modules(model))
    return any(
        isinstance(modules[name], Conv1D) for names in _targets(model, lora).values() for name in names
    )


@contextlib.contextmanager
def without_deprecation() -> Iterator[None]:
    """Without the warning that peft asks Transformers by an old name whether activations are recomputed."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`is_gradient_checkpointing` is deprecated", FutureWarning)
        yield


def describe(model: Any, method: str, lora: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What run.json says of a model's parameters: counted, expected, and as peft counts them.

    `total` counts the elements of the model as it is trained, with its adapter and with the copies that peft
    trains beside the frozen originals; tied weights once, a 4-bit weight the elements that it stands for.

    Args:
        model: a torch module; for lora and qlora, the PeftModel.
        method: of the recipe: full, lora, qlora or none.
        lora: the recipe's `lora`, for lora and qlora.

    Returns:
        "trainable", "total", "expected_trainable", and "peft": {"trainable", "total"} or None without an
        adapter. peft's total alone may differ: see `_packing_error`.

    Raises:
        SeedbedError: count, formula and peft's own count are not the same.
    """
    parts = _parts(model, lora) if method in ADAPTERS else []
    if method in ADAPTERS:
        expected = sum(part.expected for part in parts)
        added = expected - sum(part.expected for part in parts if part.component in BIASES.values())
    else:
        expected = _all_trained(model) if method == "full" else 0
        added = 0
    trainable, total = count(model)
    if method == "none":
        trainable = 0  # no optimizer ever sees them
    _agree(f"parameters that {method} trains", counted=trainable, formula=expected)
    _agree("parameters in all", counted=total, formula=_plain_total(model) + added)
    peft = None
    if method in ADAPTERS:
        peft = dict(zip((TRAINABLE, TOTAL), model.get_nb_trainable_parameters(), strict=True))
        _agree(f"parameters that {method} trains", counted=trainable, peft=peft[TRAINABLE])
        _agree("parameters in all", counted=total + _packing_error(model), peft=peft[TOTAL])
    return {TRAINABLE: trainable, TOTAL: total, "expected_trainable": expected, "peft": peft}


def count(model: Any) -> tuple[int, int]:
    """Elements that are trained, and in all: tied weights once, 4-bit weights as what they stand for."""
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
        labels: number of classes, where the task has any.

    Raises:
        SeedbedError: a target that the model lacks; count, formula and peft's own count are not the same.
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
    """Write trainable_parameters.csv; the arguments are those of `tabulate`."""
    write_rows(output, COLUMNS, tabulate(models, recipes, task, labels))


def _rows(
    folder: str | Path,
    recipe: Mapping[str, Any],
    task: str,
    labels: int | None,
    where: str,
    called: str,
) -> list[dict[str, Any]]:
    method, lora = recipe["method"], recipe.get("lora")
    model = _build(folder, task, labels)
    packed = _packed_total(model)
    rows = []
    if method in ADAPTERS:
        check_targets(model, lora, where, called)
        model = attach(model, lora)
        rows = [
            {**part._asdict(), "counted": _count_part(model, lora, part.component)}
            for part in _parts(model, lora)
        ]
    numbers = describe(model, method, lora)
    formula = {"full": "all weights", "none": "nothing"}.get(method, "sum of the rows above")
    rows.append(_row(TRAINABLE, formula, numbers["expected_trainable"], numbers[TRAINABLE]))
    added = numbers[TOTAL] - _plain_total(model)
    formula = f"{_plain_total(model)} of the model" + (f" + {added} added" if added else "")
    rows.append(_row(TOTAL, formula, numbers[TOTAL], numbers[TOTAL]))
    if method == "qlora":
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


def _build(folder: str | Path, task: str, labels: int | None) -> Any:
    """The model of config.json, whose weights have shapes but no values."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSequenceClassification

    with torch.device("meta"):
        if TASKS[task].writes_answers:
            return AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder, local_files_only=True))
        config = AutoConfig.from_pretrained(folder, local_files_only=True, num_labels=labels)
        model = AutoModelForSequenceClassification.from_config(config)
    for name, weight in model.named_parameters():
        weight.requires_grad_(not name.endswith(NEVER_TRAINED))
    return model


# --- the model as it is without its adapter ---


def _plain_modules(model: Any) -> Iterator[tuple[str, Any]]:
    """Names and modules of the model as if it had no adapter: neither adapter weights nor trained copies."""
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    yield from _walk(base, "")


def _walk(module: Any, name: str) -> Iterator[tuple[str, Any]]:
    # peft keeps the layer that an adapter wraps as base_layer, the module that it copies as original_module
    wrapped = getattr(module, "original_module", None) if hasattr(module, "modules_to_save") else None
    if wrapped is None:
        wrapped = getattr(module, "base_layer", None)
    if wrapped is not None:
        yield from _walk(wrapped, name)
        return
    yield name, module
    for child, inside in module.named_children():
        yield from _walk(inside, f"{name}.{child}" if name else child)


def _plain_weights(model: Any) -> dict[int, tuple[str, Any]]:
    """Each weight of the model without its adapter once, with a name."""
    weights: dict[int, tuple[str, Any]] = {}
    for name, module in _plain_modules(model):
        for weight_name, weight in module.named_parameters(recurse=False):
            weights.setdefault(id(weight), (f"{name}.{weight_name}", weight))
    return weights


def _plain_total(model: Any) -> int:
    return sum(_elements(weight) for _, weight in _plain_weights(model).values())


def _all_trained(model: Any) -> int:
    return sum(
        _elements(weight)
        for name, weight in _plain_weights(model).values()
        if not name.endswith(NEVER_TRAINED)
    )


def _elements(weight: Any) -> int:
    state = getattr(weight, "quant_state", None)  # of a 4-bit weight of bitsandbytes, once it is packed
    return math.prod(state.shape) if state is not None else weight.numel()


def _packing_error(model: Any) -> int:
    """By how much peft's total is off: it doubles the bytes of a 4-bit weight.

    That is one element too many for a weight of an odd number of elements, whose last byte is half empty, and
    several times too many for one that is not packed yet.
    """
    weights = [weight for weight in model.parameters() if type(weight).__name__ == "Params4bit"]
    return sum(weight.numel() * 2 * weight.element_size() - _elements(weight) for weight in weights)


class _Packed(NamedTuple):
    total: int
    quantised: int
    missed: int


def _packed_total(model: Any) -> _Packed:
    """Elements that a naive count finds once the model is in 4 bits; how many are, and how many it misses.

    transformers packs each linear layer but the output layer, which may be tied to the embeddings.
    """
    linear = {f"{name}.weight" for name in _linear_layers(model)}
    sizes = [_elements(weight) for name, weight in _plain_weights(model).values() if name in linear]
    missed = sum(size // 2 for size in sizes)
    return _Packed(_plain_total(model) - missed, sum(sizes), missed)


# --- what LoRA adapts ---


def _targets(model: Any, lora: Mapping[str, Any]) -> dict[str, list[str]]:
    """Names of the modules that each target names, each module under the first target that does."""
    targets = lora["target_modules"]
    saved = _saved_patterns(lora)
    names = [name for name, _ in _plain_modules(model) if not any(re.match(p, name) for p in saved)]
    if isinstance(targets, str) and targets.lower() == ALL_LINEAR:
        linear = set(_linear_layers(model, heads=lora.get("task_type") == "SEQ_CLS"))
        found: dict[str, list[str]] = {}
        for name in names:
            if name in linear:
                found.setdefault(name.rpartition(".")[2], []).append(name)
        return found or {ALL_LINEAR: []}
    left = dict.fromkeys(names)
    found = {}
    for target in [targets] if isinstance(targets, str) else targets:
        found[target] = [name for name in left if _is_named(name, target)]
        for name in found[target]:
            del left[name]
    return found


def _is_named(name: str, target: str) -> bool:
    return name == target or name.endswith(f".{target}")


def _linear_layers(model: Any, heads: bool = False) -> list[str]:
    """Linear layers but the output layer, and with `heads` but a classification head that is one layer."""
    modules = dict(_plain_modules(model))
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    output = base.get_output_embeddings() if hasattr(base, "get_output_embeddings") else None
    left_out = {name for name, module in modules.items() if output is not None and module is output}
    if heads and output is None:
        left_out |= set(CLASSIFIERS)
    return [name for name, module in modules.items() if _is_linear(module) and name not in left_out]


def _saved_patterns(lora: Mapping[str, Any]) -> list[str]:
    """Patterns of modules that peft copies as a whole, and hence does not adapt."""
    return [rf"(^|.*\.){entry}($|\..*)" for entry in _saved(lora)]


def _saved(lora: Mapping[str, Any]) -> list[str]:
    extra = CLASSIFIERS if lora.get("task_type") == "SEQ_CLS" else ()
    return list(dict.fromkeys([*(lora.get("modules_to_save") or ()), *extra]))


def _copied(model: Any, lora: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Modules that peft copies: those whose name ends as an entry does (not inside one already copied)."""
    copied: list[tuple[str, Any]] = []
    for name, module in _plain_modules(model):
        inside = any(name.startswith(f"{outer}.") for outer, _ in copied)
        if not inside and any(name.endswith(entry) for entry in _saved(lora)):
            copied.append((name, module))
    return copied


def _parts(model: Any, lora: Mapping[str, Any]) -> list[Part]:
    """What the adapter trains, by the formula, from the shapes of the model without it."""
    modules = dict(_plain_modules(model))
    r = lora["r"]
    parts = []
    for target, names in _targets(model, lora).items():
        shapes = Counter(_dimensions(modules[name]) for name in names)
        formula = " + ".join(
            f"{f'{number}·' if number > 1 else ''}{r}({a} + {b})" for (a, b), number in shapes.items()
        )
        expected = sum(number * r * (a + b) for (a, b), number in shapes.items())
        parts.append(Part(target, len(names), formula, expected))
    if lora.get("bias", "none") != "none":
        sizes = [_elements(bias) for bias in _trained_biases(model, lora)]
        parts.append(Part(BIASES[lora["bias"]], len(sizes), "elements of the biases", sum(sizes)))
    for name, module in _copied(model, lora):
        size = sum(_elements(weight) for weight in module.parameters())
        parts.append(Part(_copy_of(name), 1, "elements of the module", size))
    return parts


def _copy_of(name: str) -> str:
    return f"trained copy of {name}"


def _trained_biases(model: Any, lora: Mapping[str, Any]) -> list[Any]:
    if lora["bias"] == "all":
        outside = tuple(f"{name}." for name, _ in _copied(model, lora))
        names = [name for name, _ in _plain_modules(model) if not f"{name}.".startswith(outside or "\0")]
    else:
        names = [name for found in _targets(model, lora).values() for name in found]
    modules = dict(_plain_modules(model))
    biases = [getattr(modules[name], "bias", None) for name in names]
    return [bias for bias in biases if hasattr(bias, "numel")]


def _count_part(model: Any, lora: Mapping[str, Any], component: str) -> int:
    """Elements of a part's weights, found in the model that peft made."""
    base = model.get_base_model()
    if component in BIASES.values():
        biases = [weight for name, weight in base.named_parameters() if name.endswith(".bias")]
        copied = {id(weight) for name, weight in base.named_parameters() if ".modules_to_save." in name}
        return sum(bias.numel() for bias in biases if bias.requires_grad and id(bias) not in copied)
    for name, module in base.named_modules():
        if component == _copy_of(name):
            return sum(_elements(weight) for weight in module.modules_to_save.parameters())
    return sum(
        _elements(weight)
        for name in _targets(model, lora)[component]
        for weight_name, weight in base.get_submodule(name).named_parameters()
        if not weight_name.startswith("base_layer.")
    )


def _is_linear(module: Any) -> bool:
    import torch
    from transformers.pytorch_utils import Conv1D

    return isinstance(module, (torch.nn.Linear, Conv1D))


def _is_adaptable(module: Any) -> bool:
    import torch

    return _is_linear(module) or isinstance(module, torch.nn.Embedding)


def _dimensions(module: Any) -> tuple[int, int]:
    """Inputs and outputs of a linear layer, or rows and width of an embedding."""
    if hasattr(module, "num_embeddings"):
        return module.num_embeddings, module.embedding_dim
    if hasattr(module, "in_features"):
        return module.in_features, module.out_features
    return tuple(module.weight.shape)  # Conv1D of GPT-2 keeps its weight transposed: inputs x outputs


# --- errors ---


def _agree(what: str, **numbers: int) -> None:
    if len(set(numbers.values())) > 1:
        raise SeedbedError(
            f"two counts of the {what} differ",
            found=", ".join(f"{name}: {number:,}" for name, number in numbers.items()),
            hint="the adapter is not the recipe's, or a weight is frozen or trained that should not be",
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
    """Names of the layers that can be adapted, with how many there are."""
    names: Sequence[str] = [
        name.rpartition(".")[2] for name, module in modules.items() if _is_adaptable(module)
    ]
    return ", ".join(f"{name} ({number})" for name, number in Counter(names).items())
