"""Count a model's parameters by component, and compare RoBERTa's with closed formulas.

N layers, width d, feed-forward width f, V rows of the token embedding (special tokens and `<mask>` included),
T positions. The position embedding has two more rows, since fairseq numbers positions from the id of `<pad>`
plus one. RoBERTa (Liu et al. 2019, with the blocks of Devlin et al. 2019) has

    N(4d² + 2df + 9d + f) + dV + d(T + 2) + 2d

Other architectures (format auto) have no formula here: their components are the architecture's own modules.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_json, write_rows

COLUMNS = ("model", "component", "formula", "expected", "counted")

OUTSIDE = "(not in the total)"
HEAD = f"language-model head {OUTSIDE}"
TOKEN_TYPES = f"token types of transformers, zeros {OUTSIDE}"
LAYER_NUMBER = re.compile(r"\.\d+\.([^.]+).*")  # and the module inside the layer
LAYER = r"roberta\.encoder\.layer\.\d+"
# components, and the names of their weights in huggingface/model.safetensors
COMPONENTS = {
    "token embeddings": r"roberta\.embeddings\.word_embeddings\.weight",
    "position embeddings": r"roberta\.embeddings\.position_embeddings\.weight",
    "embedding layer norm": r"roberta\.embeddings\.LayerNorm\.(weight|bias)",
    "attention": rf"{LAYER}\.attention\.(self\.(query|key|value)|output\.dense)\.(weight|bias)",
    "feed-forward": rf"{LAYER}\.(intermediate|output)\.dense\.(weight|bias)",
    "layer norms": rf"{LAYER}\.(attention\.)?output\.LayerNorm\.(weight|bias)",
    HEAD: r"lm_head\..*",
    TOKEN_TYPES: r"roberta\.embeddings\.token_type_embeddings\.weight",
}


def expected_parameters(
    layers: int, d: int, f: int, vocabulary: int, positions: int
) -> dict[str, tuple[str, int]]:
    """Formula and number of parameters of each component and of the totals."""
    n, v, t = layers, vocabulary, positions
    return {
        "token embeddings": ("dV", d * v),
        "position embeddings": ("d(T + 2)", d * (t + 2)),
        "embedding layer norm": ("2d", 2 * d),
        "attention": ("N(4d² + 4d)", n * (4 * d * d + 4 * d)),
        "feed-forward": ("N(2df + d + f)", n * (2 * d * f + d + f)),
        "layer norms": ("N·4d", n * 4 * d),
        "total": (
            "N(4d² + 2df + 9d + f) + dV + d(T + 2) + 2d",
            n * (4 * d * d + 2 * d * f + 9 * d + f) + d * v + d * (t + 2) + 2 * d,
        ),
        "total without biases and layer norms": (
            "N(4d² + 2df) + dV + d(T + 2)",
            n * (4 * d * d + 2 * d * f) + d * v + d * (t + 2),
        ),
        "total without biases, layer norms and positions": (
            "N(4d² + 2df) + dV",
            n * (4 * d * d + 2 * d * f) + d * v,
        ),
        HEAD: ("d² + 3d + V", d * d + 3 * d + v),
        TOKEN_TYPES: ("d", d),
    }


def count_parameters(path: str | Path) -> dict[str, int]:
    """Numbers of parameters in model.safetensors by component, and totals without any head.

    Raises:
        SeedbedError: a weight belongs to no component.
    """
    sizes = read_sizes(path)
    counted = dict.fromkeys(COMPONENTS, 0)
    for name, size in sizes.items():
        counted[_component(name, path)] += size
    inside = {name: size for name, size in sizes.items() if OUTSIDE not in _component(name, path)}
    matrices = {name: size for name, size in inside.items() if not _is_small(name)}
    counted["total"] = sum(inside.values())
    counted["total without biases and layer norms"] = sum(matrices.values())
    counted["total without biases, layer norms and positions"] = sum(
        size for name, size in matrices.items() if "position_embeddings" not in name
    )
    return counted


def read_sizes(path: str | Path) -> dict[str, int]:
    """Number of elements of each weight, read from the header of a safetensors file."""
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as weights:
        return {name: math.prod(weights.get_slice(name).get_shape()) for name in weights.keys()}  # noqa: SIM118


def _component(name: str, path: str | Path) -> str:
    for component, pattern in COMPONENTS.items():
        if re.fullmatch(pattern, name):
            return component
    raise SeedbedError(
        "a weight belongs to no component of a RoBERTa",
        where=str(path),
        found=name,
        hint="remove the model's folder to convert it again",
    )


def _is_small(name: str) -> bool:
    return name.endswith(".bias") or "LayerNorm" in name


def count_modules(path: str | Path) -> dict[str, int]:
    """Numbers of parameters in an encoder's model.safetensors by its modules, and their total.

    A module of the layers, such as attention, counts for all of them together. A new head is not in the file.
    """
    sizes = read_sizes(path)
    counted: Counter[str] = Counter()
    for name, size in sizes.items():
        counted[
            LAYER_NUMBER.sub(r".N.\1", name) if LAYER_NUMBER.search(name) else name.rpartition(".")[0]
        ] += size
    return {**counted, "total": sum(sizes.values())}


def tabulate(model: str, definition: Mapping[str, Any], path: str | Path) -> list[dict[str, Any]]:
    """Rows of parameters.csv for a model: expected and counted numbers of each component.

    Models of the format auto have no formulas; of them, only the total is expected, from model.json.

    Args:
        model: the model's name.
        definition: content of model.json.
        path: huggingface/model.safetensors.

    Raises:
        SeedbedError: a component has another number of parameters than expected.
    """
    if definition.get("format") == "auto":
        counted = count_modules(path)
        _check("total", counted["total"], definition["parameters"], "model.json: ", path)
        return [
            {"model": model, "component": name, "formula": "", "expected": "", "counted": number}
            for name, number in counted.items()
        ]
    expected = expected_parameters(
        layers=definition["layers"],
        d=definition["embed_dim"],
        f=definition["ffn_dim"],
        vocabulary=definition["vocabulary"],
        positions=definition["max_positions"],
    )
    counted = count_parameters(path)
    for component, (formula, number) in expected.items():
        _check(component, counted[component], number, f"{formula} = ", path)
    return [
        {"model": model, "component": name, "formula": formula, "expected": number, "counted": counted[name]}
        for name, (formula, number) in expected.items()
    ]


def _check(component: str, counted: int, expected: int, origin: str, path: str | Path) -> None:
    if counted != expected:
        raise SeedbedError(
            f"unexpected number of parameters: {component}",
            where=str(path),
            found=f"{counted:,} counted, {origin}{expected:,} expected",
            hint="model.json does not fit the weights: remove the model's folder to convert it again",
        )


def write_parameters(model: str, folder: str | Path, output: str | Path) -> None:
    """Write parameters.csv of the model in `folder`."""
    definition = read_json(Path(folder) / "model.json")
    write_rows(
        output, COLUMNS, tabulate(model, definition, Path(folder) / "huggingface" / "model.safetensors")
    )
