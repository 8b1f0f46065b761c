"""Makes summary.csv and contrasts.csv from runs.csv with SciPy and plain arithmetic, and no code of Seedbed.

`python tests/data/published/expected.py`; the README beside it says what is in the tables.
"""

import csv
import itertools
from pathlib import Path

import numpy as np
from scipy import stats

FOLDER = Path(__file__).parent
CONFIDENCE = 0.95
MARGINS = {"pretrained": 0.01, "random": 0.02}
EXAMPLES = 2000  # of the test split: every published accuracy is a whole number of them
SUMMARY = "dataset,model,framework,init,recipe,recipe_family,selection,method,metric,test_set,n_seeds,"
SUMMARY += "n_collapsed,n_not_above_majority,mean,sd,sd_new_examples,ci_low,ci_high,ci_method,both_low,"
SUMMARY += "both_high,median,iqm,min,max,mean_without_collapsed,sd_without_collapsed,validation_mean,"
SUMMARY += (
    "validation_sd,binomial_se,majority_share,bag_of_words,validation_best,chosen_share,ece,ece_of_chance"
)
CONTRASTS = "family,dataset,model,dataset_b,model_b,metric,test_set,contrast,a,b,recipe_a,recipe_b,"
CONTRASTS += "selection,paired,n_a,n_b,delta,error_reduction,ci_low,ci_high,p_value,p_holm,direction,"
CONTRASTS += "given_low,given_high,bootstrap_low,bootstrap_high,standard_error,se_seeds,se_interaction,"
CONTRASTS += "se_examples,t_low,t_high,seed_correlation,pairing_ratio,p_exact,margin,"
CONTRASTS += "p_equivalence,p_equivalence_holm,equivalence_low,equivalence_high,equivalence,"
CONTRASTS += "probability_of_improvement,aso_eps_min,interval,test,test_unit,test_means,method,no_verdict,"
CONTRASTS += "delta_without_collapsed,ci_low_without_collapsed,ci_high_without_collapsed"


def main():
    cells = read_cells(FOLDER / "runs.csv")
    write(FOLDER / "summary.csv", SUMMARY, [summary_row(*cell) for cell in sorted(cells.items())])
    inits = contrasts(cells, "init", "pretrained", "random")
    frameworks = contrasts(cells, "framework", "fairseq", "transformers")
    rows = [*finish(inits), *finish(frameworks)]
    write(FOLDER / "contrasts.csv", CONTRASTS, rows)


def read_cells(path):
    """Test accuracies in the order of seeds, by (framework, init, recipe)."""
    cells = {}
    with open(path, encoding="utf-8", newline="") as stream:
        for row in sorted(csv.DictReader(stream), key=lambda row: int(row["init_seed"])):
            key = row["framework"], row["init"], row["recipe"]
            cells.setdefault(key, []).append(float(row["test_accuracy"]))
    return {key: np.array(values) for key, values in cells.items()}


def names():
    return {"dataset": "cls_books_published", "model": "roberta_small_fr", "metric": "accuracy"} | {
        "test_set": "all",
        "selection": "equal",
    }


def summary_row(key, values):
    framework, init, recipe = key
    low, high = stats.t.interval(CONFIDENCE, len(values) - 1, values.mean(), stats.sem(values))
    return names() | {
        "framework": framework,
        "init": init,
        "recipe": recipe,
        "recipe_family": recipe,
        "method": "full",
        "n_seeds": len(values),
        "mean": values.mean(),
        "sd": values.std(ddof=1),
        "ci_low": low,
        "ci_high": high,
        "ci_method": "Student t over seeds, 0.95",
        "median": np.median(values),
        "min": values.min(),
        "max": values.max(),
    }


def contrasts(cells, family, first, second):
    """Rows of a family, of which Holm's p, what rests on it and the bound of ASO are missing."""
    rows = []
    for key, a in sorted(cells.items()):
        other = tuple(second if part == first else part for part in key)
        if first in key and other in cells:
            rows.append(contrast_row(family, f"{first} - {second}", key, other, a, cells[other]))
    return rows


def contrast_row(family, contrast, key_a, key_b, a, b):
    test = stats.ttest_rel(a, b)
    interval = test.confidence_interval(CONFIDENCE)
    row = names() | {
        "family": family,
        "contrast": contrast,
        "a": "/".join(key_a[:2]),
        "b": "/".join(key_b[:2]),
        "recipe_a": key_a[2],
        "recipe_b": key_b[2],
        "paired": "true",
        "n_a": len(a),
        "n_b": len(b),
        "delta": a.mean() - b.mean(),
        "error_reduction": 1 - (1 - a.mean()) / (1 - b.mean()),
        "t_low": interval.low,
        "t_high": interval.high,
        "p_value": test.pvalue,
        "seed_correlation": stats.pearsonr(a, b).statistic,
        "pairing_ratio": np.var(a - b, ddof=1) / (np.var(a, ddof=1) + np.var(b, ddof=1)),
        "p_exact": sign_flip_p(a, b),
        "probability_of_improvement": stats.mannwhitneyu(a, b).statistic / (len(a) * len(b)),
        "aso": (a, b),
        "interval": "over seeds",
        "test": "sign-flip",
        "test_unit": "seeds",
        "method": "no predictions: no Multi-Bootstrap, t interval over seeds only; "
        "exact sign-flip test over seeds",
    }
    row |= {"dataset_b": row["dataset"], "model_b": row["model"]}
    return row | (equivalence(key_a[1], a, b) if family == "framework" else {})


def sign_flip_p(a, b):
    gaps = np.rint(a * EXAMPLES) - np.rint(b * EXAMPLES)  # whole numbers, so that ties are exact
    return stats.permutation_test((gaps,), np.mean, permutation_type="samples", n_resamples=np.inf).pvalue


def equivalence(init, a, b):
    """Two one-sided tests."""
    margin = MARGINS[init]
    above = stats.ttest_rel(a + margin, b, alternative="greater").pvalue
    below = stats.ttest_rel(a - margin, b, alternative="less").pvalue
    # both reject at 5% where the 90% interval lies within the margin
    interval = stats.ttest_rel(a, b).confidence_interval(2 * CONFIDENCE - 1)
    return {"margin": margin, "p_equivalence": max(above, below)} | {
        "equivalence_low": interval.low,
        "equivalence_high": interval.high,
    }


def finish(rows):
    """Add what depends on the number of contrasts: Holm's p and the words that it allows, and the bound of
    Almost Stochastic Order."""
    holm(rows, "p_value", "p_holm")
    for row in rows:
        significant = row["p_holm"] < 1 - CONFIDENCE
        row["direction"] = ("higher" if row["delta"] > 0 else "lower") if significant else "unclear"
    if "p_equivalence" in rows[0]:
        holm(rows, "p_equivalence", "p_equivalence_holm")
    for row in rows:
        if "p_equivalence" in row:
            different = "inconclusive" if row["direction"] == "unclear" else "different"
            equivalent = row["p_equivalence_holm"] < 1 - CONFIDENCE
            row["equivalence"] = "equivalent" if equivalent else different
        row["aso_eps_min"] = aso_bound(*row.pop("aso"), 1 - (1 - CONFIDENCE) / len(rows))
    return rows


def holm(rows, column, adjusted):
    largest = 0.0
    for rank, row in enumerate(sorted(rows, key=lambda row: row[column])):
        largest = max(largest, min(1.0, (len(rows) - rank) * row[column]))
        row[adjusted] = largest


def aso_bound(a, b, level):
    """The bound with the exact bootstrap: all resamples of both sides, each as likely as the others."""
    draws = [list(itertools.product(side, repeat=len(side))) for side in (a, b)]
    ratios = [violation(left, right) for left, right in itertools.product(*draws)]
    return float(np.clip(violation(a, b) + stats.norm.ppf(level) * np.std(ratios), 0, 1))


def violation(a, b):
    """Share of the squared Wasserstein distance in which b is above a; both of one size, 1/2 if equal."""
    gaps = np.sort(a) - np.sort(b)
    return (gaps[gaps < 0] ** 2).sum() / (gaps**2).sum() if gaps.any() else 0.5


def write(path, columns, rows):
    with open(path, "w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, columns.split(","), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: f"{v:.12g}" if isinstance(v, float) else v for k, v in row.items()})


if __name__ == "__main__":
    main()
