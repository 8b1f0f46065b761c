"""The command on small tables: what it prints and writes, and that nothing is left behind where it fails."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from builders_pages import ROOT

from seedbed.commands import main
from seedbed.core.rows import read_table
from seedbed.outside import drawing

# no package of these is installed beside the command
MISSING = (
    "snakemake", "torch", "fairseq", "transformers", "datasets", "tokenizers", "sentencepiece", "peft",
    "pydantic", "sklearn", "requests", "huggingface_hub", "jsonschema",
)  # fmt: skip
PROGRAM = f"""
import sys
class Uninstalled:
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in {MISSING}:
            raise ModuleNotFoundError(f"No module named {{name!r}}")
sys.meta_path.insert(0, Uninstalled())
sys.path.insert(0, sys.argv[1])
import importlib, pkgutil
for package in ("analysis", "figures", "report", "outside"):
    found = importlib.import_module("seedbed." + package)
    for entry in pkgutil.walk_packages(found.__path__, found.__name__ + "."):
        importlib.import_module(entry.name)
from seedbed.commands import main
sys.exit(main(sys.argv[2:]))
"""
TABLES = {"runs", "summary", "contrasts", "pairs", "churn", "confusion"}  # no example is never right


@pytest.fixture
def table(tmp_path) -> Path:
    """Predictions of two systems, three seeds each, of which `new` is much the better one."""
    rng = np.random.default_rng(0)
    lines = ["system,seed,example,label,prediction"]
    for share, system in ((0.9, "new"), (0.6, "old")):
        for seed in range(3):
            right = rng.random(200) < share
            lines += [
                f"{system},{seed},{place},{'ab'[place % 2]},{'ab'[(place + 1 - right[place]) % 2]}"
                for place in range(200)
            ]
    path = tmp_path / "table.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def analyse(table: Path, *more: str) -> int:
    return main(["analyse", str(table), "--replicates", "200", "--output", str(table.parent / "out"), *more])


def left(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_it_prints_the_answer_and_writes_everything(table, capsys):
    assert analyse(table) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("Answer  new is better than old: +")
    assert len(printed.splitlines()) <= 25
    out = table.parent / "out"
    assert left(table.parent) == {"table.csv", "out"}
    documents = {"analysis.json", "figures", "report.html", "summary.json", "summary.md"}
    assert left(out) == documents | {f"{name}.csv" for name in TABLES}
    figures = {f"{name}.{kind}" for name in ("scores", "contrasts") for kind in ("svg", "png")}
    assert left(out / "figures") == figures
    facts = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    told = facts["groups"][0]["lines"][0]["text"]
    assert told in (out / "summary.md").read_text(encoding="utf-8").replace("`", "")
    page = (out / "report.html").read_text(encoding="utf-8")
    assert told in page.replace("<code>", "").replace("</code>", "")


def test_tables_name_systems_and_have_the_numbers_of_the_files(table):
    assert analyse(table, "--a", "old", "--b", "new") == 0
    runs, summary, contrasts = (
        read_table(table.parent / "out" / f"{name}.csv") for name in ("runs", "summary", "contrasts")
    )
    rows = read_table(table)
    for run in runs:
        own = [row for row in rows if (row["system"], row["seed"]) == (run["system"], run["seed"])]
        assert run["test_accuracy"] == np.mean([row["label"] == row["prediction"] for row in own])
    means = {row["system"]: row["mean"] for row in summary}
    (row,) = contrasts
    assert (row["a"], row["b"], row["metric"]) == ("old", "new", "accuracy")
    assert row["delta"] == pytest.approx(means["old"] - means["new"])
    assert row["direction"] == "lower"


def test_an_analysis_gives_way_to_the_next_one_and_other_files_do_not(table, capsys):
    assert analyse(table) == 0
    assert analyse(table, "--a", "old") == 0
    assert [row["a"] for row in read_table(table.parent / "out" / "contrasts.csv")] == ["old"]
    (table.parent / "out" / "analysis.json").unlink()
    capsys.readouterr()
    assert analyse(table) == 1
    error = capsys.readouterr().err
    assert error.startswith("ERROR: an analysis is written into a folder of its own")
    assert "--output" in error


@pytest.mark.parametrize("wrong", [["--bounds", "1"], ["--columns", "system"], ["--format", "csv"]])
def test_a_wrong_command_line_is_told_apart(table, capsys, wrong):
    with pytest.raises(SystemExit) as caught:
        analyse(table, *wrong)
    assert caught.value.code == 2
    assert "usage: seedbed analyse" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (["--a", "newer"], "no system 'newer'"),
        (["--confidence", "95"], "greater than or equal to the maximum of 1"),
        (["--columns", "system=model"], "no column 'model'"),
    ],
)
def test_refused_input_writes_nothing(table, capsys, wrong, told):
    assert analyse(table, *wrong) == 1
    assert told in capsys.readouterr().err
    assert left(table.parent) == {"table.csv"}


def test_a_file_where_a_folder_is_meant_is_refused_before_anything_is_read(tmp_path, capsys):
    (tmp_path / "out").write_text("mine", encoding="utf-8")
    for output in ("out", "out/below"):
        assert main(["analyse", str(tmp_path / "missing.csv"), "--output", str(tmp_path / output)]) == 1
        assert "is a file" in capsys.readouterr().err
    assert (tmp_path / "out").read_text(encoding="utf-8") == "mine"


def test_an_analysis_that_fails_half_way_leaves_the_earlier_one(table, monkeypatch):
    assert analyse(table) == 0
    before = (table.parent / "out" / "contrasts.csv").read_bytes()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(drawing, "draw", fail)
    assert analyse(table, "--a", "old") == 1
    assert (table.parent / "out" / "contrasts.csv").read_bytes() == before
    assert left(table.parent) == {"table.csv", "out"}


def test_nothing_of_the_workflow_has_to_be_installed(table):
    library = str(ROOT / "scripts")
    command = [sys.executable, "-c", PROGRAM, library, "analyse", table.name, "--replicates", "200"]
    done = subprocess.run(command, cwd=table.parent, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Answer  new is better than old: +")
    assert (table.parent / "analysis" / "report.html").is_file()
