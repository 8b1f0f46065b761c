"""Linear probes of each size of training: what they train on, what selects them, and their two tables."""

import csv
import random

import numpy as np
import pytest
from safetensors.numpy import save_file
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score
from sklearn.preprocessing import StandardScaler

from seedbed.core.errors import SeedbedError
from seedbed.core.tasks import TASKS
from seedbed.data import probes
from seedbed.data.bags import INVERSE_REGULARISATION
from seedbed.data.baselines_of_sizes import Labels, Sizes
from seedbed.data.probes_of_sizes import COLUMNS, write_probes_of_sizes

NAMES = ("bad", "fair", "good")
NUMBERS = {"train": 60, "validation": 40, "test": 30}
WIDTH = 6


@pytest.fixture(scope="module")
def splits():
    draw = np.random.default_rng(0)
    return {
        split: [{"id": f"{split}-{index}", "label": int(draw.integers(3))} for index in range(number)]
        for split, number in NUMBERS.items()
    }


@pytest.fixture(scope="module")
def states(splits):
    """States whose first dimensions tell the labels, with noise, by kind and split."""
    draw = np.random.default_rng(1)
    found = {}
    for kind, noise in (("first", 1.3), ("mean", 1.1)):
        for split, rows in splits.items():
            values = draw.normal(0, noise, (len(rows), WIDTH)).astype(np.float32)
            values[np.arange(len(rows)), [row["label"] for row in rows]] += 1
            found.setdefault(kind, {})[split] = values * np.float32(0.01) + np.float32(3)
    return found


def made(folder, states, *of_sizes):
    """The tables of probes and predictions, as rows of text."""
    path = folder / "pretrained.safetensors"
    save_file({f"{split}.{kind}": of[split] for kind, of in states.items() for split in of}, path)
    paths = folder / "probes.csv", folder / "predictions.csv"
    write_probes_of_sizes(*paths, path, Sizes(*of_sizes))
    found = []
    for table in paths:
        with open(table, encoding="utf-8", newline="") as stream:
            found.append(list(csv.DictReader(stream)))
    return found


def labels_of(metric=None):
    return Labels(TASKS["classification"].measured_by(metric), NAMES, ("0", "1", "2"))


def shuffled(splits, seed):
    ids = [example["id"] for example in splits["train"]]
    random.Random(seed).shuffle(ids)
    return ids


@pytest.mark.parametrize("metric", [None, "macro_f1"])
def test_validation_chooses_the_states_and_c_of_a_probe_of_the_first_texts(tmp_path, splits, states, metric):
    orders = {seed: shuffled(splits, seed) for seed in (0, 3)}
    told, rows = made(tmp_path, states, splits, orders, [15, 40], labels_of(metric))
    assert tuple(told[0]) == COLUMNS
    assert [(row["train_size"], row["data_seed"]) for row in told] == [
        ("15", "0"), ("15", "3"), ("40", "0"), ("40", "3"), ("60", ""),
    ]  # fmt: skip
    actual = [row["label"] for row in splits["validation"]]
    for row in told:
        ids = set(orders[int(row["data_seed"])][: int(row["train_size"])]) if row["data_seed"] else None
        kept = [ids is None or example["id"] in ids for example in splits["train"]]
        classes = np.array([example["label"] for example in splits["train"]])[kept]
        candidates = []
        for kind in ("first", "mean"):
            scaler = StandardScaler().fit(states[kind]["train"][kept])
            inputs = {split: scaler.transform(values) for split, values in states[kind].items()}
            for c in INVERSE_REGULARISATION:
                model = LogisticRegression(C=c, max_iter=2000).fit(inputs["train"][kept], classes)
                guess = model.predict(inputs["validation"])
                score = f1_score(actual, guess, average="macro") if metric else accuracy_score(actual, guess)
                candidates.append((round(score, 9), kind, c, model, inputs["test"]))
        _, kind, c, model, test = max(candidates, key=lambda one: one[0])  # the first of several
        assert (row["states"], row["setting"], float(row["selected"]), row["left_out"]) == (kind, "C", c, "")
        of = [
            each
            for each in rows
            if (each["train_size"], each["data_seed"], each["split"])
            == (row["train_size"], row["data_seed"], "test")
        ]
        assert [each["prediction"] for each in of] == [NAMES[code] for code in model.predict(test)]
        written = [[float(each[f"probability_{name}"]) for name in NAMES] for each in of]
        assert np.allclose(written, model.predict_proba(test), atol=1e-5)
    assert {row["states"] for row in told} == {"first", "mean"}


def test_the_probe_of_all_texts_is_the_one_of_the_dataset(tmp_path, splits, states):
    told, rows = made(tmp_path, states, splits, {0: shuffled(splits, 0)}, [15], labels_of())
    whole = told[-1]
    classes = {split: [row["label"] for row in of] for split, of in splits.items()}
    found = probes.fit(states[whole["states"]], classes)
    assert float(whole["selected"]) == found.c
    right = [row["prediction"] == row["label"] for row in rows if not row["data_seed"]]
    assert np.mean(right[: NUMBERS["validation"]]) == found.accuracies["validation"]
    assert np.mean(right[NUMBERS["validation"] :]) == found.accuracies["test"]


def test_a_probe_of_one_class_is_left_out_with_its_reason(tmp_path, splits, states):
    order = [row["id"] for row in splits["train"] if row["label"] == 1]
    told, rows = made(tmp_path, states, splits, {0: order}, [2], labels_of())
    assert [row["left_out"] for row in told] == ["all training texts are of one class", ""]
    assert (told[0]["states"], told[0]["selected"]) == ("", "")
    assert {row["train_size"] for row in rows} == {"60"}


def test_states_of_other_texts_are_refused(tmp_path, splits, states):
    fewer = {**splits, "test": splits["test"][:-1]}
    with pytest.raises(SeedbedError, match="number of states of the split 'test'"):
        made(tmp_path, states, fewer, {0: shuffled(splits, 0)}, [15], labels_of())
