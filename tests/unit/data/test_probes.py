"""Linear probes: what they predict, how they choose, and what is refused."""

import numpy as np
import pytest
from safetensors.numpy import save_file
from sklearn.linear_model import LogisticRegression

from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_rows
from seedbed.data import probes
from seedbed.data import states as states_file
from seedbed.data.bags import INVERSE_REGULARISATION

SIZES = {"train": 60, "validation": 30, "test": 40}


def made(noise=1.0, width=5, seed=0):
    """Labels of two classes, and states whose first dimension tells them, on a scale of its own."""
    draw = np.random.default_rng(seed)
    labels = {split: draw.integers(0, 2, size).tolist() for split, size in SIZES.items()}
    states = {}
    for split, size in SIZES.items():
        values = draw.normal(0, noise, (size, width)).astype(np.float32)
        values[:, 0] += np.array(labels[split]) * 4 - 2
        states[split] = values * np.float32(0.001) + np.float32(7)
    return states, labels


def test_a_probe_is_scikit_learns_regression_on_standardised_states():
    states, labels = made(noise=3.0)
    mean, sd = states["train"].mean(0), states["train"].std(0)
    scores, predicted = {}, {}
    for c in INVERSE_REGULARISATION:
        model = LogisticRegression(C=c, max_iter=2000).fit((states["train"] - mean) / sd, labels["train"])
        scores[c] = model.score((states["validation"] - mean) / sd, labels["validation"])
        predicted[c] = model.predict((states["test"] - mean) / sd)
    best = max(scores.values())
    found = probes.fit(states, labels)
    assert found.c == min(c for c, score in scores.items() if score == best)
    assert found.accuracies["validation"] == best
    assert found.predictions["test"].tolist() == predicted[found.c].tolist()
    assert found.accuracies["test"] == np.mean(predicted[found.c] == labels["test"])


def test_a_part_of_the_training_examples_will_do_if_it_has_two_classes():
    states, labels = made(noise=0.1)
    few = {**states, "train": states["train"][:20]}, {**labels, "train": labels["train"][:20]}
    assert probes.fit(*few).accuracies["test"] == 1
    with pytest.raises(SeedbedError, match="two classes") as refused:
        probes.fit({**states, "train": states["train"][:1]}, {**labels, "train": [0]})
    assert "1 examples of 1 class" in str(refused.value)


def written(folder, leaked=()):
    states, labels = made(noise=0.1)
    other, _ = made(noise=100.0, seed=1)  # which tell nothing
    path = folder / "pretrained.safetensors"
    stored = {f"{split}.first": values for split, values in states.items()}
    save_file(stored | {f"{split}.mean": values for split, values in other.items()}, path)
    splits = {
        split: [{"id": f"{split}-{place}", "label": label} for place, label in enumerate(labels[split])]
        for split in SIZES
    }
    outputs = folder / "probe.csv", folder / "accuracy.csv"
    probes.write_probes(path, splits, ["negative", "positive"], leaked, *outputs)
    return [read_rows(output) for output in outputs]


def test_the_tables_have_both_kinds_of_states(tmp_path):
    predictions, scores = written(tmp_path, leaked=("test-0", "test-7"))
    assert [row["split"] for row in predictions] == ["validation"] * 30 + ["test"] * 40
    assert all(row["prediction_first"] == row["label"] for row in predictions)
    of_test = [row for row in predictions if row["split"] == "test"]
    right = [row["prediction_mean"] == row["label"] for row in of_test]
    (row,) = (row for row in probes.table([{"dataset": "d"}], [scores]) if row["states"] == "mean")
    assert float(row["test_accuracy"]) == np.mean(right)
    clean = [hit for place, hit in enumerate(right) if place not in (0, 7)]
    assert float(row["test_accuracy_without_leaks"]) == np.mean(clean)
    assert float(row["C"]) in INVERSE_REGULARISATION


def test_states_of_other_texts_are_refused(tmp_path):
    written(tmp_path)
    with pytest.raises(SeedbedError, match="number of states of the split 'test'"):
        states_file.read(tmp_path / "pretrained.safetensors", {**SIZES, "test": 41})
