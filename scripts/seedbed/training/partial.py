"""Methods that train a part of a model's weights: which weights these are, and how many.

- bitfit (Ben Zaken et al. 2022): all biases, those of layer norms among them;
- last_layers: the last k layers of the encoder, and a norm after them;
- head: nothing of the encoder.

All of them train the head, too. A RoBERTa with N layers, width d, feed-forward width f and c outputs of its
head trains

    head           d² + d + dc + c
    bitfit         N(7d + f) + d, and the head
    last_layers    k(4d² + 2df + 9d + f), and the head

since a layer has biases of width d in four projections of attention, the second feed-forward layer and two
norms, and one of width f; the norm of the embeddings has one more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from seedbed.core.errors import SeedbedError
from seedbed.core.recipes import declared
from seedbed.models.auto_classifiers import in_head

# Transformers' classifiers with the layers of the formulas; fairseq's RoBERTa is one, too
ROBERTAS = tuple(f"{name}ForSequenceClassification" for name in ("Roberta", "XLMRoberta", "Camembert"))


class Part(NamedTuple):
    """A group of trained parameters: name, number of modules, formula, and numbers."""

    component: str
    modules: int
    formula: str
    expected: int
    counted: int


class Shape(NamedTuple):
    """Width, feed-forward width and number of the head's outputs of a RoBERTa."""

    width: int
    inner: int
    outputs: int


@dataclass(frozen=True)
class Layout:
    """Where the weights of a model belong, by their names.

    Attributes:
        head: the weights of the head.
        layers: the weights of each layer of the encoder, from the first layer on.
        after: the weights of a norm after the last layer.
        others: the other weights of the encoder.
        shape: what the formulas need; None for a model without formulas.
    """

    head: Sequence[str]
    layers: Sequence[Sequence[str]]
    after: Sequence[str]
    others: Sequence[str]
    shape: Shape | None

    @property
    def biases(self) -> list[str]:
        """The biases of the encoder."""
        names = [name for layer in self.layers for name in layer]
        return [name for name in (*self.others, *names, *self.after) if _is_bias(name)]

    def last(self, count: int) -> list[str]:
        """The weights of the last `count` layers, and of a norm after them."""
        chosen = self.layers[len(self.layers) - count :]
        return [*(name for layer in chosen for name in layer), *self.after]


def layout_of(model: Any) -> Layout:
    """The layout of a classifier of Transformers, without an adapter's wrapper.

    It has no layers if these cannot be told from the other modules.
    """
    base = getattr(model, model.base_model_prefix)
    inside = f"{model.base_model_prefix}."
    prefixes = [f"{inside}{name}." for name in _layers(base, model.config.num_hidden_layers)]
    norms = tuple(
        f"{inside}{name}." for name, module in base.named_children() if type(module).__name__.endswith("Norm")
    )
    is_roberta = type(model).__name__ in ROBERTAS
    config = model.config
    shape = Shape(config.hidden_size, config.intermediate_size, config.num_labels) if is_roberta else None
    names = [name for name, _ in model.named_parameters()]
    head = [name for name in names if in_head(name, model)]
    return sort(names, head, prefixes, norms, shape)


def sort(
    names: Sequence[str],
    head: Sequence[str],
    layers: Sequence[str],
    norms: tuple[str, ...],
    shape: Shape | None,
) -> Layout:
    """The layout of a model with weights of these names.

    Args:
        names: all weights that training may change.
        head: those of the head.
        layers: what the names of each layer's weights begin with.
        norms: what the names of a norm after the last layer begin with.
        shape: as in `Layout`.
    """
    of_head = {*head}
    encoder = [name for name in names if name not in of_head]
    by_layer = [[name for name in encoder if name.startswith(prefix)] for prefix in layers]
    after = [name for name in encoder if name.startswith(norms)] if norms else []
    known = {*after, *(name for layer in by_layer for name in layer)}
    others = [name for name in encoder if name not in known]
    return Layout(head, by_layer, after, others, shape)


def _layers(base: Any, count: int) -> list[str]:
    """Names of the encoder's layers: the elements of its first list of as many modules as it has layers."""
    from torch.nn import ModuleList

    for name, module in base.named_modules():
        if isinstance(module, ModuleList) and len(module) == count:
            return [f"{name}.{index}" for index in range(count)]
    return []


def freeze(model: Any, layout: Layout, settings: Mapping[str, Any], called: str = "the model") -> None:
    """Freeze all weights of the model that the recipe's method does not train.

    Args:
        model: a torch module; a weight that is frozen already stays so.
        layout: where its weights belong.
        settings: `method`, `family` and `last_layers` of the recipe.
        called: the model, for errors.

    Raises:
        SeedbedError: the encoder has fewer layers than the recipe trains, or no known ones, or no biases.
    """
    trained = {*layout.head, *_of_encoder(layout, settings, called)}
    for name, weight in model.named_parameters():
        if name not in trained:
            weight.requires_grad_(False)


def _of_encoder(layout: Layout, settings: Mapping[str, Any], called: str) -> list[str]:
    """Names of the trained weights of the encoder."""
    where = f"config, recipes.{declared(settings)}"
    if settings["method"] == "head":
        return []
    if settings["method"] == "bitfit":
        if not layout.biases:
            raise SeedbedError(
                f"the encoder of {called} has no biases that BitFit could train",
                where=f"{where}.method",
                found="bitfit",
                hint="use the method last_layers or full, or leave the model out of grid.models",
            )
        return layout.biases
    asked, known = settings["last_layers"], len(layout.layers)
    if not known:
        raise SeedbedError(
            f"the layers of {called} cannot be told from its other modules",
            where=f"{where}.method",
            found="last_layers",
            hint="use the method bitfit, head or full with this model",
        )
    if asked > known:
        raise SeedbedError(
            f"the recipe trains more layers than {called} has",
            where=f"{where}.last_layers",
            found=f"{asked}; the encoder has {known}",
            hint=f"give at most {known}, or use the method full",
        )
    return layout.last(asked)


def groups(model: Any, layout: Layout, settings: Mapping[str, Any]) -> list[Part]:
    """The groups of trained parameters of a model of `freeze`: by formula, and as counted.

    Models without formulas have the numbers of elements of the weights that are to be trained.
    """
    sizes = {name: (weight.numel(), weight.requires_grad) for name, weight in model.named_parameters()}

    def part(component: str, modules: int, names: Sequence[str], formula: str, number: int) -> Part:
        counted = sum(size for size, trained in map(sizes.get, names) if trained)
        if layout.shape is None:
            formula, number = "elements of the weights", sum(sizes[name][0] for name in names)
        return Part(component, modules, formula, number, counted)

    d, f, c = layout.shape or (0, 0, 0)
    found = []
    if settings["method"] == "bitfit":
        n = len(layout.layers)
        found.append(
            part("biases", len(layout.biases), layout.biases, f"{n}(7·{d} + {f}) + {d}", n * (7 * d + f) + d)
        )
    if settings["method"] == "last_layers":
        k = settings["last_layers"]
        formula = f"{k}(4·{d}² + 2·{d}·{f} + 9·{d} + {f})"
        number = k * (4 * d * d + 2 * d * f + 9 * d + f)
        component = f"{k} of {len(layout.layers)} layers"
        found.append(part(component, k, layout.last(k), formula, number))
    modules = len({name.rpartition(".")[0] for name in layout.head})
    head = f"{d}² + {d} + {d}·{c} + {c}"
    return [*found, part("head", modules, layout.head, head, d * d + d + d * c + c)]


def _is_bias(name: str) -> bool:
    """Whether a weight is a bias; DeBERTa calls two q_bias and v_bias."""
    last = name.rpartition(".")[2]
    return last == "bias" or last.endswith("_bias")
