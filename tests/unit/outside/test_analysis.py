"""Which system is better: numbers against SciPy and against Seedbed's own experiments; what is refused."""

import itertools
import re
from collections.abc import Sequence
from pathlib import Path

import builders_report
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from synthetic import Synthetic, make_experiment

from seedbed.analysis.contrasts import Sides, contrast
from seedbed.analysis.differences import Contrast
from seedbed.analysis.table_rows import RunRow, read_summary
from seedbed.core.errors import SeedbedError
from seedbed.core.rows import CELL, grouped
from seedbed.outside.analysis import Analysis, Question, analyse
from seedbed.outside.opening import comparisons, opening, sentence
from seedbed.outside.read import read_results

FEW = {"replicates": 200}
PER_CENT = (0.0, 100.0)


def written(path: Path, table: pd.DataFrame) -> Path:
    table.to_csv(path, index=False)
    return path


def of_values(**values: Sequence[float]) -> pd.DataFrame:
    """A table of values by seed, of each system."""
    rows = [(system, seed, value) for system, own in values.items() for seed, value in enumerate(own)]
    return pd.DataFrame(rows, columns=["system", "seed", "score"])


def of_predictions(systems: Sequence[str], seeds: int, examples: int, seed: int = 0, **more) -> pd.DataFrame:
    """A table of predictions of two classes; the later a system, the better."""
    rng = np.random.default_rng(seed)
    labels, ease = rng.integers(2, size=examples), rng.normal(1, 1, size=examples)
    parts = []
    for (place, system), run in itertools.product(enumerate(systems), range(seeds)):
        right = rng.random(examples) < 1 / (1 + np.exp(-ease - place))
        columns = {"system": system, "seed": run, "example": np.arange(examples), "label": labels}
        parts.append(pd.DataFrame({**columns, "prediction": np.where(right, labels, 1 - labels), **more}))
    return pd.concat(parts)


def analysed(path: Path, table: pd.DataFrame, bounds: tuple[float, float] | None = None, **asked) -> Analysis:
    results = read_results(written(path, table), bounds=bounds)
    return analyse(results, Question(bounds_given=bounds is not None, statistics=FEW, **asked))


# --- over seeds alone ---------------------------------------------------------------------------------------

A, B = (79.5, 78.5, 80.1, 81.2), (78.9, 78.15, 79.0, 78.55)


@pytest.mark.parametrize("paired", [True, False])
def test_without_examples_intervals_and_p_are_students_and_welchs(tmp_path, paired):
    found = analysed(tmp_path / "t.csv", of_values(a=A, b=B), PER_CENT, paired=paired)
    (row,) = found.experiment.contrasts
    test = stats.ttest_rel(A, B) if paired else stats.ttest_ind(A, B, equal_var=False)
    assert row.delta == pytest.approx((np.mean(A) - np.mean(B)) / 100)
    assert (row.t_low, row.t_high) == pytest.approx([end / 100 for end in test.confidence_interval(0.95)])
    assert row.p_value == pytest.approx(test.pvalue)
    assert (row.ci_low, row.paired) == (None, paired)
    assert "over seeds alone" in opening(found).groups[0].lines[0].text


def test_systems_with_other_seeds_are_not_paired(tmp_path):
    found = analysed(tmp_path / "t.csv", of_values(a=A, b=B[:3]), PER_CENT)
    (row,) = found.experiment.contrasts
    test = stats.ttest_ind(A, B[:3], equal_var=False)
    assert (row.t_low, row.t_high) == pytest.approx([end / 100 for end in test.confidence_interval(0.95)])
    assert (row.paired, row.seed_correlation) == (False, None)


def test_every_two_systems_are_corrected_together(tmp_path):
    values = {"a": A, "b": B, "c": (75, 74.5, 76, 75.5)}
    found = analysed(tmp_path / "t.csv", of_values(**values), PER_CENT)
    p_values = [stats.ttest_rel(values[x], values[y]).pvalue for x, y in ("ab", "ac", "bc")]
    rows = found.experiment.contrasts
    assert [row.p_value for row in rows] == pytest.approx(p_values)
    # Holm (1979) by hand: the smallest times 3, the next times 2, the largest times 1, none below one before
    order = np.argsort(p_values)
    expected = np.maximum.accumulate(
        [p_values[place] * times for place, times in zip(order, (3, 2, 1), strict=True)]
    )
    assert [rows[place].p_holm for place in order] == pytest.approx(np.minimum(expected, 1).tolist())
    assert opening(found).lead.startswith(
        "One of two systems is better in 2 of 3 comparisons over seeds alone"
    )


def test_one_seed_has_a_difference_and_no_verdict(tmp_path):
    found = analysed(tmp_path / "t.csv", of_values(a=[79.5], b=[78]), PER_CENT)
    (row,) = found.experiment.contrasts
    assert (row.delta, row.t_low, row.p_value, row.direction) == (pytest.approx(0.015), None, None, None)
    answer, step = opening(found).groups[0].lines
    assert answer.text == "One seed a side cannot tell `a` from `b`: +1.5 points."
    assert "at least 3 seeds" in step.text


# --- over seeds and examples --------------------------------------------------------------------------------


def long_table(made: Synthetic, folder: Path) -> Path:
    """The test predictions of an experiment as one long table, a system for each init."""
    parts = []
    for path in sorted((made.experiment / "runs").rglob("predictions.csv")):
        table = pd.read_csv(path).query("split == 'test'")[["example", "label", "prediction"]]
        init, seed = path.parts[-4], path.parts[-2].removeprefix("seed")
        parts.append(table.assign(dataset="reviews", system=init, seed=seed))
    return written(folder / "long.csv", pd.concat(parts))


def test_the_numbers_are_those_of_an_experiment_with_the_same_draws(tmp_path):
    collapsed = ["reviews/small/transformers/random/lab/seed1"]
    made = make_experiment(tmp_path, frameworks=["transformers"], seeds=[0, 1, 2], collapsed=collapsed)
    builders_report.aggregate(made)
    (results,) = read_results(long_table(made, tmp_path))
    reporting = made.plan.reporting()
    found = analyse([results], Question(a="pretrained", b="random", statistics=reporting["statistics"]))
    runs, summary = RunRow.read(made.outputs["runs"]), read_summary(made.outputs["summary"])
    expected = Contrast.read(made.outputs["contrasts"], "contrasts")
    # seeds are drawn by the names of both sides, which the long table does not know: give it these names
    cells = {next(run.cell for run in runs if run.init == key[-1]): cell for key, cell in found.cells.items()}
    sides = Sides(grouped(runs, *CELL), {"test": cells}, {}, reporting["statistics"])
    assert contrast(runs, summary, reporting, sides) == expected
    (row,), (own,) = found.experiment.contrasts, expected
    assert row.delta == own.delta
    for name in (
        "standard_error",
        "se_seeds",
        "se_examples",
        "t_low",
        "t_high",
        "p_exact",
        "seed_correlation",
    ):
        assert row[name] == own[name], name


def test_the_first_sentence_is_that_of_the_experiments_summary(tmp_path):
    made = make_experiment(tmp_path, frameworks=["fairseq"], seeds=[0, 1, 2])
    told = builders_report.write_summary(made).split("**Answer:** ")[1].split("\n")[0]
    results = read_results(long_table(made, tmp_path))
    asked = {"statistics": made.plan.reporting()["statistics"]}
    (one,) = comparisons(analyse(results, Question(a="pretrained", b="random", **asked)))
    # other draws of seeds move the interval a little, as its replicates are few
    numbers = re.compile(r"[+−][\d.]+")
    assert numbers.sub("N", sentence(one)) == numbers.sub("N", told)
    found, expected = (
        [float(number.replace("−", "-")) for number in numbers.findall(text)]
        for text in (sentence(one), told)
    )
    assert found[0] == expected[0]
    assert found == pytest.approx(expected, abs=0.5)
    (other,) = comparisons(analyse(results, Question(a="random", b="pretrained", **asked)))
    assert sentence(other).startswith(f"`random` is worse than `pretrained`: −{expected[0]} points")


def test_a_clear_difference_names_the_better_system(tmp_path):
    found = analysed(tmp_path / "t.csv", of_predictions(["a/1", "b `x`"], seeds=4, examples=300))
    (row,) = found.experiment.contrasts
    assert row.direction == "lower"
    assert sentence(comparisons(found)[0]).startswith("`a/1` is worse than `` b `x` ``: −")
    assert [len(found.experiment.tables[name]) for name in ("pairs", "churn")] == [4, 2]


def test_examples_of_a_cluster_are_resampled_together(tmp_path):
    first = of_predictions(["a", "b"], seeds=1, examples=200)
    # most of the error is of examples: seeds agree but for one example each
    table = pd.concat([first.assign(seed=seed) for seed in range(3)])
    flipped = table["example"] == 7 * table["seed"] + table["system"].eq("b")
    table["prediction"] ^= flipped.astype(int)
    twice = pd.concat([table, table.assign(example=table["example"] + 200)])
    twice["cluster"] = twice["example"] % 200
    (once,) = analysed(tmp_path / "once.csv", table).experiment.contrasts
    (clustered,) = analysed(tmp_path / "twice.csv", twice).experiment.contrasts
    (unclustered,) = analysed(tmp_path / "plain.csv", twice.drop(columns="cluster")).experiment.contrasts
    assert (clustered.delta, clustered.ci_low, clustered.ci_high) == pytest.approx(
        (once.delta, once.ci_low, once.ci_high), abs=1e-6
    )
    assert unclustered.ci_high - unclustered.ci_low < 0.95 * (once.ci_high - once.ci_low)


def test_scores_are_compared_as_predictions_are(tmp_path):
    table = of_predictions(["a", "b"], seeds=3, examples=200)
    scored = table.assign(score=(table["label"] == table["prediction"]) * 100)
    (row,) = analysed(tmp_path / "a.csv", table).experiment.contrasts
    scores = scored.drop(columns=["label", "prediction"])
    (other,) = analysed(tmp_path / "b.csv", scores, PER_CENT).experiment.contrasts
    assert (other.metric, row.metric) == ("share_of_score", "accuracy")
    assert other.standard_error == pytest.approx(row.standard_error)
    assert (other.t_low, other.p_exact) == pytest.approx((row.t_low, row.p_exact))


def test_the_margin_decides_what_is_no_difference(tmp_path):
    table = of_values(a=[3.41, 3.40, 3.42, 3.41], b=[3.40, 3.41, 3.41, 3.42])
    told = {
        margin: sentence(comparisons(analysed(tmp_path / "t.csv", table, (0, 5), margin=margin))[0])
        for margin in (None, 0.005)
    }
    assert told[None].startswith("No difference beyond 0.100 between `a` and `b`: ")
    assert told[0.005].startswith("Cannot tell yet whether `a` or `b` is better: ")


def test_without_bounds_nothing_is_planned_unless_a_margin_says_for_what(tmp_path):
    table = of_values(a=[3.4, 3.7, 3.2, 3.5], b=[3.5, 3.3, 3.6, 3.3])
    endless = (-np.inf, np.inf)
    steps = [
        opening(analysed(tmp_path / "t.csv", table, endless, margin=margin)).groups[0].lines[-1].text
        for margin in (None, 0.1)
    ]
    assert "--margin" in steps[0]
    assert "to find 0.100 (power 80%)" in steps[1]


# --- several datasets ---------------------------------------------------------------------------------------


def test_comparisons_of_all_datasets_are_one_family(tmp_path):
    parts = [of_predictions(["a", "b"], 3, 100, seed, dataset=f"set {seed}") for seed in range(3)]
    found = analysed(tmp_path / "t.csv", pd.concat(parts))
    rows = found.experiment.contrasts
    assert [row.dataset for row in rows] == ["set 0", "set 1", "set 2"]
    smallest = min(rows, key=lambda row: row.p_value)
    assert smallest.p_holm == pytest.approx(min(1, 3 * smallest.p_value))
    assert "on `set 0`" in " ".join(line.text for group in opening(found).groups for line in group.lines)


def test_a_dataset_without_both_systems_is_left_out(tmp_path):
    x, y = of_values(a=A, b=B).assign(dataset="x"), of_values(b=B, c=A).assign(dataset="y")
    found = analysed(tmp_path / "t.csv", pd.concat([x, y]), PER_CENT, a="a", b="b")
    assert [one.dataset for one in found.results] == ["x"]
    alone = analysed(tmp_path / "t.csv", pd.concat([x, y]), PER_CENT, b="b")
    assert [(row.recipe_a, row.recipe_b) for row in alone.experiment.contrasts] == [("a", "b"), ("c", "b")]


# --- what is refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "what", "hint"),
    [
        ({"a": "A"}, "no system 'A'", "did you mean 'a'"),
        ({"a": "a", "b": "a"}, "not compared with itself", "two systems"),
        ({"margin": 0.0}, "above 0", "smallest difference"),
        ({"margin": float("nan")}, "above 0", "smallest difference"),
    ],
)
def test_a_question_that_cannot_be_answered(tmp_path, asked, what, hint):
    with pytest.raises(SeedbedError) as caught:
        analysed(tmp_path / "t.csv", of_values(a=A, b=B), PER_CENT, **asked)
    assert what in caught.value.what
    assert hint in caught.value.hint


def test_systems_of_two_datasets_are_not_compared(tmp_path):
    x, y = of_values(a=A, b=B).assign(dataset="x"), of_values(c=B, d=A).assign(dataset="y")
    with pytest.raises(SeedbedError, match="no dataset has both"):
        analysed(tmp_path / "t.csv", pd.concat([x, y]), PER_CENT, a="a", b="c")


def test_percentages_that_look_like_fractions_are_refused(tmp_path):
    with pytest.raises(SeedbedError) as caught:
        analysed(tmp_path / "t.csv", of_values(a=A, b=B))
    assert caught.value.found == "a score of 81.2"
    assert "--bounds 0,100" in caught.value.hint
