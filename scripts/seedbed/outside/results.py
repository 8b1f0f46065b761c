"""What systems scored on one dataset, whichever program trained them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np


@dataclass(frozen=True, kw_only=True)
class Results:
    """What systems scored on the same examples of one dataset, by seed.

    Attributes:
        dataset: its name, for titles and file names; "" where there is one and it has no name.
        systems: names, in the order in which the files have them.
        seeds: by system, the seeds in order (ints; where a file has none: 0).
        examples: ids of the examples, the same of all systems; empty where only values by seed are known.
        metric: accuracy where labels and predictions are known, else as the file calls it.
        scores: by system, (seeds, examples) float32, larger is better; 1 and 0 of right and wrong;
            shape (seeds, 0) without examples.
        values: by system, (seeds,) float64: the mean score, or the value that the file tells where there are
            no examples.
        bounds: least and largest possible score; infinite where unknown.
        labels: (examples,) int32 classes of the reference; None where not known.
        predictions: by system, (seeds, examples) int32; None where not known.
        classes: names of the classes, in sorted order; empty where not known.
        clusters: by example its cluster (int32), None without a column of clusters.
        files: the paths that were read, for the record.
        format: a key of `read.FORMATS`.
        taken: by role (system, seed, example, label, prediction, score, dataset, cluster) the column that was
            taken for it; empty for formats without columns.
        notes: what a reader of the results has to know of how they were read, a sentence each.
    """

    dataset: str
    systems: tuple[str, ...]
    seeds: Mapping[str, tuple[int, ...]]
    examples: tuple[str, ...]
    metric: str
    scores: Mapping[str, np.ndarray]
    values: Mapping[str, np.ndarray]
    bounds: tuple[float, float]
    labels: np.ndarray | None = None
    predictions: Mapping[str, np.ndarray] | None = None
    classes: tuple[str, ...] = ()
    clusters: np.ndarray | None = None
    files: tuple[Path, ...] = ()
    format: str = "table"
    taken: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
