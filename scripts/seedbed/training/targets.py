"""The scale on which a head learns numbers: their mean is 0 and their standard deviation 1.

A head begins with outputs near 0, and Adam moves each weight by about the learning rate at an update. So a
head would need long to reach marks around 70 of 100, and a learning rate would mean another thing for each
unit. Predictions and metrics are in the unit of the labels.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np


@dataclass(frozen=True)
class Scale:
    """Mean and standard deviation of the labels of the training split."""

    mean: float
    sd: float

    @classmethod
    def of(cls, about: Mapping[str, Any]) -> Self:
        """The scale that the labels.json of a dataset says."""
        return cls(about["mean"], about["sd"])

    def scaled(self, labels: Any) -> Any:
        """Labels, an array or a tensor, on the scale of the training."""
        return (labels - self.mean) / self.sd

    def restored(self, outputs: np.ndarray) -> np.ndarray:
        """Outputs of the head in the unit of the labels, float64."""
        return self.mean + self.sd * np.asarray(outputs, dtype=np.float64)
