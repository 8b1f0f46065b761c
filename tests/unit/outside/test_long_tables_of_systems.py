"""Long tables: columns, classes, scores, order; the same as pandas reads."""

import gzip

import numpy as np
import pandas as pd
import pytest

from seedbed.outside.read import read_results

ROLES = ["system", "seed", "example", "label", "prediction"]


def random_table(rng: np.random.Generator, systems=3, seeds=4, examples=50, classes=3) -> pd.DataFrame:
    """A shuffled table of every system, seed and example, with names of which sorted order differs."""
    index = pd.MultiIndex.from_product(
        [[f"m{i}" for i in range(systems)], range(seeds), [f"e{i}" for i in range(examples)]], names=ROLES[:3]
    )
    table = index.to_frame(index=False)
    of_example = dict(zip(index.levels[2], rng.integers(classes, size=examples), strict=True))
    table["label"] = table["example"].map(of_example).map("c{}".format)
    table["prediction"] = [f"c{number}" for number in rng.integers(classes, size=len(table))]
    return table.sample(frac=1, random_state=rng).reset_index(drop=True)


def written(path, table: pd.DataFrame):
    if path.suffix == ".parquet":
        table.to_parquet(path)
    else:
        table.to_csv(path, index=False, sep="\t" if ".tsv" in path.name else ",")
    return path


@pytest.mark.parametrize("name", ["table.csv", "table.tsv", "table.csv.gz", "table.parquet"])
def test_a_table_gives_what_pandas_reads(tmp_path, name):
    table = random_table(np.random.default_rng(0))
    (results,) = read_results(written(tmp_path / name, table))
    assert results.systems == tuple(table["system"].unique())
    assert results.examples == tuple(table["example"].unique())
    assert results.classes == ("c0", "c1", "c2")
    assert (results.metric, results.bounds) == ("accuracy", (0, 1))
    labels = table.drop_duplicates("example").set_index("example")["label"]
    np.testing.assert_array_equal(np.array(results.classes)[results.labels], labels[list(results.examples)])
    for system in results.systems:
        own = table[table["system"] == system]
        wide = own.pivot(index="seed", columns="example", values="prediction")[list(results.examples)]
        assert results.seeds[system] == tuple(wide.index)
        np.testing.assert_array_equal(np.array(results.classes)[results.predictions[system]], wide)
        right = wide.eq(labels[list(results.examples)], axis=1)
        np.testing.assert_array_equal(results.scores[system], right)
        np.testing.assert_allclose(results.values[system], right.mean(axis=1), rtol=1e-12)
    assert (results.scores["m0"].dtype, results.predictions["m0"].dtype) == (np.float32, np.int32)


def test_several_files_are_one_table_in_any_format(tmp_path):
    table = random_table(np.random.default_rng(1))
    whole = read_results(written(tmp_path / "whole.csv", table))[0]
    half = len(table) // 2
    files = [written(tmp_path / "a.csv", table[:half]), written(tmp_path / "b.parquet", table[half:])]
    parts = read_results(files)[0]
    assert parts.files == tuple(files)
    assert (parts.systems, parts.examples, parts.seeds) == (whole.systems, whole.examples, whole.seeds)
    for system in whole.systems:
        np.testing.assert_array_equal(parts.predictions[system], whole.predictions[system])


def test_datasets_are_apart(tmp_path):
    one, other = (random_table(np.random.default_rng(seed), examples=n) for seed, n in ((2, 20), (3, 30)))
    table = pd.concat([one.assign(dataset="b"), other.assign(dataset="a")]).sample(frac=1, random_state=0)
    path = written(tmp_path / "both.csv", table)
    both = {results.dataset: results for results in read_results(path)}
    assert {name: len(results.examples) for name, results in both.items()} == {"b": 20, "a": 30}
    (alone,) = read_results(path, dataset="a")
    np.testing.assert_array_equal(alone.scores["m1"], both["a"].scores["m1"])
    for name, part in table.groupby("dataset"):
        own = part[part["system"] == "m0"]
        means = (own["label"] == own["prediction"]).groupby(own["seed"]).mean()
        np.testing.assert_allclose(both[name].values["m0"], means)


@pytest.mark.parametrize(
    ("header", "options", "taken"),
    [
        ("model,doc_id,acc", {}, {"system": "model", "example": "doc_id", "score": "acc"}),
        ("run,idx,exact_match", {}, {"system": "run", "example": "idx", "score": "exact_match"}),
        ("Model,ID,Correct", {}, {"system": "Model", "example": "ID", "score": "Correct"}),
        (
            "system,run,chrf",
            {"columns": {"example": "run"}, "metric": "chrf"},
            {"example": "run", "score": "chrf"},
        ),
        ("who,what,f1", {"columns": {"system": "who", "example": "what", "score": "f1"}}, {"score": "f1"}),
    ],
)
def test_columns_are_recognised_or_named(tmp_path, header, options, taken):
    path = tmp_path / "table.csv"
    path.write_text(header + "\na,0,1\na,1,0\nb,0,0\nb,1,0\n", encoding="utf-8")
    (results,) = read_results(path, **options)
    assert taken.items() <= results.taken.items()
    assert results.metric == taken["score"]
    assert results.values["a"] == 0.5
    assert results.values["b"] == 0
    assert (results.labels, results.predictions, results.classes) == (None, None, ())
    assert results.seeds == {"a": (0,), "b": (0,)}
    assert any("no seeds" in note for note in results.notes)


@pytest.mark.parametrize("words", [("true", "false"), ("True", "False"), ("yes", "no")])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_scores_may_be_true_and_false(tmp_path, words, suffix):
    table = pd.DataFrame(
        {"system": list("aabb"), "id": [0, 1, 0, 1], "correct": [words[i] for i in (0, 1, 1, 1)]}
    )
    (results,) = read_results(written(tmp_path / f"table.{suffix}", table))
    assert results.values["a"] == 0.5
    assert results.values["b"] == 0


def test_parquet_has_types_of_its_own(tmp_path):
    table = pd.DataFrame(
        {
            "system": pd.Categorical(["a", "a", "b", "b"]),
            "seed": [3, 3, 3, 3],
            "example": np.array([7, 8, 7, 8], np.int64),
            "score": [True, False, True, True],
        }
    )
    (results,) = read_results(written(tmp_path / "table.parquet", table))
    assert results.examples == ("7", "8")
    assert results.seeds == {"a": (3,), "b": (3,)}
    assert results.values["b"] == 1


def test_a_metric_takes_its_column_before_labels(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("system,example,label,prediction,f1\na,0,x,x,0.5\nb,0,x,y,0.25\n", encoding="utf-8")
    assert read_results(path)[0].metric == "accuracy"
    assert read_results(path)[0].values["a"] == 1
    (by_f1,) = read_results(path, metric="f1")
    assert (by_f1.metric, by_f1.labels) == ("f1", None)
    assert by_f1.values["a"] == 0.5


def test_clusters_are_numbered_by_example(tmp_path):
    path = tmp_path / "table.csv"
    rows = [
        f"{system},{seed},{example},{example // 2},1"
        for system in "ab"
        for seed in (0, 1)
        for example in range(5)
    ]
    path.write_text("system,seed,example,cluster,score\n" + "\n".join(rows) + "\n", encoding="utf-8")
    assert read_results(path)[0].clusters.tolist() == [0, 0, 1, 1, 2]


def test_cells_may_have_quotes_line_ends_and_delimiters(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(
        '\ufeffsystem,example,label,prediction\na,0,"x, ""y""\nz","x, ""y""\nz"\nb,0,"x, ""y""\nz",w\n'
    )
    (results,) = read_results(path)
    assert results.classes == ("w", 'x, "y"\nz')
    assert results.values["a"] == 1


def test_bounds_are_given_or_known_by_the_metric(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("system,example,bleu\na,0,20\nb,0,30\n", encoding="utf-8")
    assert read_results(path, metric="bleu")[0].bounds == (-np.inf, np.inf)
    assert read_results(path, metric="bleu", bounds=(0, 100))[0].bounds == (0, 100)


def test_a_compressed_file_is_known_by_its_content(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(gzip.compress(b"system;example;score\na;0;1\nb;0;0.5\n"))
    assert read_results(path)[0].values["b"] == 0.5


def test_a_table_without_examples_has_values_by_seed(tmp_path):
    path = tmp_path / "values.csv"
    path.write_text("system,seed,score\nb,1,78.15\na,0,1e-3\nb,0,79\n", encoding="utf-8")
    (found,) = read_results(path, bounds=(0, 100))
    assert (found.systems, found.examples, found.bounds) == (("b", "a"), (), (0, 100))
    assert found.seeds == {"b": (0, 1), "a": (0,)}
    assert {name: values.tolist() for name, values in found.values.items()} == {
        "b": [79, 78.15],
        "a": [0.001],
    }
    assert "no column of examples" in found.notes[0]
