"""Weights of classes against scikit-learn, and the loss that they make."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.utils.class_weight import compute_class_weight

from seedbed.training.class_weights import class_weights, mean_loss

BALANCED, CPU = {"class_weight": "balanced"}, torch.device("cpu")


def test_balanced_weights_are_those_of_scikit_learn():
    labels = [0] * 7 + [1] * 2 + [3]
    weights = class_weights(BALANCED, labels, 4, CPU).numpy()
    present = [0, 1, 3]
    expected = compute_class_weight("balanced", classes=np.array(present), y=labels)
    np.testing.assert_allclose(weights[present], expected)
    assert weights[2] == 0
    assert weights[labels].mean() == pytest.approx(1.0)


def test_without_the_key_nothing_is_weighted():
    assert class_weights({}, [0, 1], 2, CPU) is None
    logits, labels = torch.tensor([[0.2, 0.1], [0.5, -0.3]]), torch.tensor([0, 1])
    assert mean_loss(logits, labels, None) == F.cross_entropy(logits, labels)


def test_the_losses_of_batches_sum_to_that_of_all_examples_whatever_the_batches():
    rng = np.random.default_rng(0)
    labels = torch.tensor(rng.choice(3, 30, p=(0.7, 0.2, 0.1)))
    logits = torch.tensor(rng.normal(size=(30, 3)), dtype=torch.float32)
    weights = class_weights(BALANCED, labels.tolist(), 3, CPU)
    losses = F.cross_entropy(logits, labels, reduction="none") * weights[labels]
    assert mean_loss(logits, labels, weights).item() == pytest.approx(losses.mean().item(), rel=1e-6)
    parts = [
        mean_loss(logits[start : start + 5], labels[start : start + 5], weights) for start in range(0, 30, 5)
    ]
    assert sum(parts).item() / 6 == pytest.approx(losses.mean().item(), rel=1e-6)
