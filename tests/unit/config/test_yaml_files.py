"""Keys that stand twice, labels that YAML changes, and the line of a key."""

from pathlib import Path

import pytest

from seedbed.config.yaml_files import (
    locate,
    refuse_changed_labels,
    refuse_repeated_keys,
    refuse_unreadable,
)
from seedbed.core.errors import SeedbedError

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("text", "line", "found"),
    [
        ("experiment: x\n\tgrid: 3\n", 2, "found character '\\t' that cannot start any token"),
        ("experiment: x\ngrid: {seeds: [0\n", 3, "expected ',' or ']', but got '<stream end>'"),
    ],
)
def test_a_file_that_is_no_yaml_is_refused_with_its_line(tmp_path, text, line, found):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(SeedbedError) as error:
        refuse_unreadable(path)
    assert (error.value.where, error.value.found) == (f"{path}, line {line}", found)


def test_a_file_that_is_not_there_is_refused_with_the_nearest_name():
    with pytest.raises(SeedbedError, match=r"did you mean 'cls_books.yaml'\?"):
        refuse_unreadable(ROOT / "experiments/cls_bokks.yaml")


@pytest.mark.parametrize(
    ("text", "line", "also"),
    [
        ("recipes:\n  demo: {epochs: 2}\nrecipes:\n  demo: {batch_size: 4}\n", 3, "recipes, also on line 1"),
        ("recipes:\n  demo:\n    epochs: 2\n    epochs: 9\n", 4, "epochs, also on line 3"),
        ("x: [{a: 1, b: 2}, {a: 1,\n a: 2}]\n", 2, "a, also on line 1"),
        ('{"experiment": "one",\n "experiment": "two"}', 2, "experiment, also on line 1"),
    ],
)
def test_a_key_that_stands_twice_is_refused(tmp_path, text, line, also):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(SeedbedError, match="is repeated in one block") as error:
        refuse_repeated_keys(path)
    assert error.value.where == f"{path}, line {line}"
    assert error.value.found == also


def test_config_files_without_repeated_keys_pass(tmp_path):
    for path in (ROOT / "config.yaml", *(ROOT / "experiments").glob("*.yaml")):
        refuse_repeated_keys(path)
    (tmp_path / "empty.yaml").touch()
    (tmp_path / "broken.yaml").write_text("a: [1")
    (tmp_path / "odd.yaml").write_text("a: &x [*x, {b: 1}]\n? [c, d]\n: 1\n")
    merged = "one: &a {x: 1}\nother: &b {y: 2}\nboth:\n  <<: *a\n  <<: *b\n"
    (tmp_path / "merged.yaml").write_text(merged)
    refuse_repeated_keys(tmp_path / "merged.yaml")
    for name in ("empty", "broken", "missing", "odd"):  # Snakemake says what is wrong with these
        refuse_repeated_keys(tmp_path / f"{name}.yaml")


LINES = """# mine
datasets:
  d.v2:
    labels: [a, b]
    files:
      train: x.csv
recipes: {r: {epochs: 0}}
"""


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (
            "config, datasets.d.v2.files.train: x.csv",
            "config, datasets.d.v2.files.train ({path}, line 6): x.csv",
        ),
        ("config, recipes.r.epochs", "config, recipes.r.epochs ({path}, line 7)"),
        ("config, datasets.d.v2.labels.1", "config, datasets.d.v2.labels.1 ({path}, line 4)"),
        ("config, datasets.d.v2; more", "config, datasets.d.v2 ({path}, line 3); more"),
        ("config, datasets.d", "config, datasets.d"),
        ("train.csv, line 3", "train.csv, line 3"),
    ],
)
def test_a_key_is_told_with_its_file_and_line(tmp_path, where, expected):
    path, later = tmp_path / "mine.yaml", tmp_path / "later.yaml"
    path.write_text(LINES)
    later.write_text("experiment: x\n")
    assert locate(where, [path, later, tmp_path / "gone.yaml"]) == expected.format(path=path)


@pytest.mark.parametrize(
    ("block", "line", "what", "hint"),
    [
        ("[no, yes]", 3, "reads the label no as true or false", 'labels: ["no", "yes"]'),
        ("[01, 02]", 3, "reads the label 01 as a number", 'labels: ["01", "02"]'),
        ("[1, 010]", 3, "reads the label 010 as a number", 'labels: ["1", "010"]'),
        ("[1_000, 1:30]", 3, "reads the label 1_000 as a number", 'labels: ["1_000", "1:30"]'),
        ("[0.0, 1.0]", 3, "reads the label 0.0 as a number", 'labels: ["0.0", "1.0"]'),
        ("[2024-01-31, later]", 3, "reads the label 2024-01-31 as a date", 'labels: ["2024-01-31", "later"]'),
        ("\n      - some\n      - null", 5, "reads the label null as nothing", 'labels: ["some", "null"]'),
        ("[a, b]\n    label_names: [on, off]", 4, "reads the label on as true", 'label_names: ["on", "off"]'),
    ],
)
def test_labels_that_yaml_changes_are_refused_with_the_quotes_they_need(tmp_path, block, line, what, hint):
    path = tmp_path / "mine.yaml"
    path.write_text(f"datasets:\n  d:\n    labels: {block}\n")
    with pytest.raises(SeedbedError) as error:
        refuse_changed_labels(path)
    assert what in error.value.what
    assert error.value.where == f"{path}, line {line}"
    assert error.value.hint == f"put it into quotes: {hint}"
    key, _, listed = hint.partition(": ")
    path.write_text(f"datasets:\n  d:\n    {key}: {listed}\n")
    refuse_changed_labels(path)


def test_labels_that_yaml_leaves_alone_pass(tmp_path):
    path = tmp_path / "mine.yaml"
    for text in ("labels: [0, 1, -1, 12]", "labels: [a, 'no', \"1.0\", très bon]", "labels: 3", "{}", ""):
        path.write_text(f"datasets:\n  d: {{{text.strip('{}')}}}\n")
        refuse_changed_labels(path)
    for path in (ROOT / "config.yaml", *(ROOT / "experiments").glob("*.yaml")):
        refuse_changed_labels(path)
