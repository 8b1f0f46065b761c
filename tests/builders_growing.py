"""Experiments that grow until a question is decided, for tests."""

from typing import Any

from builders_rows import run_row, summary_row

from seedbed.analysis.experiment import Experiment
from seedbed.analysis.verdicts import direction

LOOKS = [3, 5, 10]


def growing(**row: Any) -> Experiment:
    """Pretrained against random with 5 seeds a side on 400 texts; `row` has columns of contrasts.csv."""
    told = {
        "family": "init", "dataset": "reviews", "model": "small", "dataset_b": "reviews", "model_b": "small",
        "metric": "accuracy", "test_set": "all", "selection": "equal", "recipe_a": "lab", "recipe_b": "lab",
        "a": "fairseq/pretrained", "b": "fairseq/random", "n_a": 5, "n_b": 5, "delta": 0.03,
        "paired": True,
        "ci_low": -0.01, "ci_high": 0.07, "t_low": -0.01, "t_high": 0.07, "p_value": 0.2, "no_verdict": None,
        "se_seeds": 0.01, "se_examples": 0.01, "look": 2, "looks": 3, "fixed_low": None, "fixed_high": None,
    } | row  # fmt: skip
    told["direction"] = direction(told["ci_low"], told["ci_high"])
    runs = [
        run_row(init=init, init_seed=seed, data_seed=seed, test_examples=400, collapsed=False)
        for init in ("pretrained", "random")
        for seed in range(5)
    ]
    reporting = {
        "statistics": {"confidence": 0.95, "power": 0.8, "difference_of_interest": 0.02},
        "recipes": {"lab": {"family": "lab", "swept": {}, "method": "full", "learning_rate": 1e-5}},
        "grid": {"datasets": ["reviews"], "models": ["small"]},
        "datasets": {"reviews": {"task": "classification"}},
        "until": {"looks": LOOKS},
    }
    return Experiment(runs, [summary_row()], [told], reporting)
