"""The floor of an experiment's work: the operations and bytes that a run needs at least; pure functions.

What is counted, for RoBERTa with N layers of width d and feed-forward width f, whose head reads the first
token of a text:

- Operations of the matrix products of the real tokens, without padding; a multiplication and an addition
  are two. A layer reads n tokens, and the next one asks for the outputs of m of them: all n, or, of the last
  layer, the first alone. It needs 4nd² for keys and values, 4md² for queries and output projection, 4mdf for
  the feed-forward part and 4mnd for attention. The backward pass has two products for each one of the forward
  pass. If m = n and texts are short, this is the known 6 operations a parameter and token (Kaplan et al.
  2020, section 2.1). Embeddings are looked up and need none.
- Bytes between memory and processor. Every weight is read once in the forward and once in the backward pass,
  and its gradient is written once. AdamW (Loshchilov and Hutter 2019) reads gradient, weight and both
  moments, and writes weight and both moments. An embedding row that no training text has needs nothing. Any
  other is updated in every update; its lookup and its gradient count once an epoch, the least possible. Each
  result of a product is written once and read once in the forward pass; in the backward pass it is read once,
  and its gradient is written once. Steps between two products count nothing. Moments, and the weights that
  AdamW reads and writes, have 4 bytes; everything else has the width of the precision.
- One launch an update and evaluated batch.

The bytes are those of a device whose caches keep nothing from one product to the next. If a cache holds the
activations of a small model, less traffic is possible.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seedbed.training.schedule import updates_per_epoch

WIDTHS = {"float32": 4, "tf32": 4, "float16": 2, "bfloat16": 2}  # bytes of a number, by precision
STATE = 6 * 4  # bytes of a parameter that AdamW reads and writes: weight and two moments
COLUMNS = (
    "what", "operations", "weight_bytes", "optimizer_bytes", "activation_bytes", "launches",
    "operations_per_second", "bytes_per_second", "seconds_per_launch", "arithmetic_seconds",
    "traffic_seconds", "launch_seconds", "floor_seconds", "measured_seconds", "share",
)  # fmt: skip


@dataclass(frozen=True)
class Shape:
    """Dimensions of the model, and the number of classes."""

    layers: int
    width: int
    ffn: int
    classes: int


@dataclass(frozen=True)
class Texts:
    """A split as the model reads it.

    Attributes:
        lengths: tokens of each text.
        rows: rows of the embeddings that any text has, of tokens and of positions.
    """

    lengths: tuple[int, ...]
    rows: int


@dataclass(frozen=True)
class Work:
    """What a part of an experiment needs at least; parts are added, and multiplied by a number of runs."""

    operations: int = 0
    weight_bytes: int = 0
    optimizer_bytes: int = 0
    activation_bytes: int = 0
    launches: int = 0

    def __add__(self, other: "Work") -> "Work":
        parts = zip(dataclasses.astuple(self), dataclasses.astuple(other), strict=True)
        return Work(*(one + another for one, another in parts))

    def __mul__(self, number: int) -> "Work":
        return Work(*(number * part for part in dataclasses.astuple(self)))

    @property
    def bytes(self) -> int:
        """Bytes between memory and processor."""
        return self.weight_bytes + self.optimizer_bytes + self.activation_bytes


@dataclass(frozen=True)
class Peaks:
    """What a machine does at most.

    Attributes:
        operations: of matrix products a second.
        bytes: read and written a second.
        launch: seconds of an empty launch; 0 on a CPU.
    """

    operations: float
    bytes: float
    launch: float = 0.0

    def times(self, factor: float) -> "Peaks":
        """The peaks of so many such machines, or of a part of one; a launch takes as long."""
        return Peaks(self.operations * factor, self.bytes * factor, self.launch)


def read_texts(ids: Sequence[Sequence[int]], limit: int) -> Texts:
    """A split's texts from their token ids, cut to `limit` tokens."""
    cut = [text[:limit] for text in ids]
    lengths = tuple(len(text) for text in cut)
    return Texts(lengths, len({token for text in cut for token in text}) + max(lengths))


# --- operations ---


def layer_operations(shape: Shape, tokens: int, asked: int) -> int:
    """Operations of a layer's forward pass on a text; the formula is in the module's docstring.

    Args:
        shape: dimensions.
        tokens: that the layer reads.
        asked: tokens whose outputs are needed.
    """
    d = shape.width
    return 4 * tokens * d * d + 4 * asked * d * d + 4 * asked * d * shape.ffn + 4 * asked * tokens * d


def forward_operations(shape: Shape, tokens: int) -> int:
    """Operations of the forward pass on a text, head included."""
    inner = (shape.layers - 1) * layer_operations(shape, tokens, tokens)
    head = 2 * shape.width * (shape.width + shape.classes)
    return inner + layer_operations(shape, tokens, 1) + head


# --- bytes ---


def parameters(shape: Shape) -> int:
    """Parameters of layers, norms and head: all but those of the embeddings' rows."""
    d, f = shape.width, shape.ffn
    layers = shape.layers * (4 * d * d + 2 * d * f + 9 * d + f)
    return layers + 2 * d + d * d + d + shape.classes * (d + 1)


def activations(shape: Shape, tokens: int) -> int:
    """Numbers that the forward pass on a text hands from a product to the next.

    The embedded tokens; of each layer keys and values of all tokens, and of those whose outputs are needed
    query, attended values, the sum after attention, the inner feed-forward values and the outputs; the head's
    inner values.
    """
    d, asked = shape.width, (shape.layers - 1) * tokens + 1
    return tokens * d + shape.layers * 2 * tokens * d + asked * (4 * d + shape.ffn) + d


# --- parts of a run ---


def training(shape: Shape, texts: Texts, epochs: int, batch_size: int, precision: str) -> Work:
    """All updates of a run.

    Args:
        shape: dimensions.
        texts: the training split.
        epochs: passes over it.
        batch_size: texts of an update; an epoch's last update may have fewer.
        precision: the recipe's, which says the bytes of a number.
    """
    width, inner, rows = WIDTHS[precision], parameters(shape), texts.rows * shape.width
    updates = epochs * updates_per_epoch(len(texts.lengths), batch_size)
    return Work(
        operations=epochs * sum(3 * forward_operations(shape, length) for length in texts.lengths),
        # of a layer, two reads, and a gradient that is written; of an embedding's row one read fewer
        weight_bytes=width * (updates * 3 * inner + epochs * 2 * rows),
        optimizer_bytes=updates * STATE * (inner + rows) + width * (updates * inner + epochs * rows),
        activation_bytes=epochs * 4 * width * sum(activations(shape, length) for length in texts.lengths),
        launches=updates,
    )


def evaluation(shape: Shape, texts: Texts, batch_size: int, precision: str) -> Work:
    """One evaluation of a split: forward passes alone; arguments as of `training`."""
    width, batches = WIDTHS[precision], -(-len(texts.lengths) // batch_size)
    return Work(
        operations=sum(forward_operations(shape, length) for length in texts.lengths),
        weight_bytes=width * (batches * parameters(shape) + texts.rows * shape.width),
        activation_bytes=2 * width * sum(activations(shape, length) for length in texts.lengths),
        launches=batches,
    )


# --- seconds ---


def seconds(work: Work, peaks: Peaks) -> dict[str, float]:
    """Seconds of arithmetic, traffic and launches, and the floor: the larger of the first two."""
    arithmetic, traffic = work.operations / peaks.operations, work.bytes / peaks.bytes
    return {
        "arithmetic_seconds": arithmetic,
        "traffic_seconds": traffic,
        "launch_seconds": work.launches * peaks.launch,
        "floor_seconds": max(arithmetic, traffic),
    }


def row(what: str, work: Work, peaks: Peaks, measured: float | None = None) -> dict[str, Any]:
    """A row of floor.csv.

    Args:
        what: a name.
        work: what is needed.
        peaks: of the machine, or of the part of it that the work may use.
        measured: seconds that the work took; None: it was not timed.
    """
    found = seconds(work, peaks)
    return {
        "what": what,
        **dataclasses.asdict(work),
        "operations_per_second": peaks.operations,
        "bytes_per_second": peaks.bytes,
        "seconds_per_launch": peaks.launch,
        **found,
        "measured_seconds": measured,
        "share": found["floor_seconds"] / measured if measured else None,
    }


def cells(found: Mapping[str, Any]) -> list[float | None]:
    """What people read of a row, in its order: three counts and floor, what was measured; seconds."""
    return [found[name] for name in COLUMNS[COLUMNS.index("arithmetic_seconds") : -1]]
