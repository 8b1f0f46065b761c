"""The workflow from elsewhere: in another working directory, and as a module of another Snakefile."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from builders_workflow import ROOT
from harness import Project, failed, succeeded

OUTER = """
configfile: "outer.yaml"

rule all:
    input: "done.txt"

onstart:
    print("the outer workflow starts")

module seedbed:
    snakefile: {snakefile!r}
    {arguments}

use rule * from seedbed as seedbed_*

use rule prepare from seedbed as seedbed_prepare with:
    threads: 1

rule done:
    input: {inputs}
    output: "done.txt"
    shell: "ls {folder}/{experiment}/work/workflows > {{output}}"
"""
# cheap to make; their rules read scripts, resources and the module's config
MADE = ("data/reviews_fr/splits.json", "models/roberta_tiny_fr/model.json")
OVERLAY = {"experiment": "inner", "grid": {"seeds": [0], "frameworks": ["transformers"]}}


@pytest.fixture
def elsewhere(tmp_path) -> Path:
    """A working directory of another workflow: its config.yaml is not Seedbed's."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "config.yaml").write_text("samples: [a, b]\n")
    return folder


def outer(folder: Path, arguments: str, results: str, experiment: str) -> None:
    inputs = ", ".join(repr(f"{results}/{path}") for path in MADE)
    (folder / "Snakefile").write_text(
        OUTER.format(
            snakefile=str(ROOT / "Snakefile"),
            arguments=arguments,
            inputs=inputs,
            folder=results,
            experiment=experiment,
        )
    )
    (folder / "outer.yaml").write_text(yaml.safe_dump({"of_the_outer": 1, "seedbed": OVERLAY}))


def snakemake(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "snakemake", "--cores", "1", *arguments]
    environment = {**os.environ, "PYTHONPATH": ""}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment, timeout=1800)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "results", "experiment", "runs"),
    [
        ("", "results", "demo", 12),
        ('config: config["seedbed"]\n    prefix: "text"', "text/results", "inner", 2),
        ('config: config["seedbed"]\n    replace_prefix: {"results/": "moved/"}', "moved", "inner", 2),
    ],
)
def test_a_module_makes_its_files_and_keeps_its_guard(elsewhere, arguments, results, experiment, runs):
    outer(elsewhere, arguments, results, experiment)
    plan = succeeded(snakemake(elsewhere, "seedbed_all", "-n", "-q", "rules")).stdout
    counts = dict(line.split() for line in plan.splitlines() if line.startswith("seedbed_finetune"))
    assert sum(map(int, counts.values())) == runs
    out = succeeded(snakemake(elsewhere))
    assert "the outer workflow starts" in out.stdout
    assert all((elsewhere / results / path).exists() for path in MADE)
    # the file that says that this workflow is at work, while it is
    assert len((elsewhere / "done.txt").read_text().split()) == 1
    assert not (elsewhere / results / experiment / "work").exists()
    assert sorted(path.name for path in elsewhere.iterdir() if path.is_dir() and path.name[0] != ".") == [
        results.split("/")[0]
    ]
    assert "Nothing to be done" in succeeded(snakemake(elsewhere, "-n")).stdout


@pytest.mark.slow
def test_a_module_trains_runs_and_guards_them(prepared):
    """Its rules have other names there: their scripts tell which of them train."""
    folder, run = prepared.folder, prepared.run_folder("transformers") / "run.json"
    outer(folder, 'config: config["seedbed"]', "results", "small")
    text = (folder / "Snakefile").read_text()
    made = ", ".join(repr(f"results/{path}") for path in MADE)
    assert made in text
    (folder / "Snakefile").write_text(text.replace(made, repr(str(run.relative_to(folder)))))
    (folder / "outer.yaml").write_text(yaml.safe_dump({"seedbed": prepared.config}))
    succeeded(snakemake(folder))
    first = run.read_bytes()
    assert not (folder / "results/small/work").exists()
    succeeded(snakemake(folder, "--forcerun", "seedbed_finetune_transformers"))
    assert run.read_bytes() != first
    assert "trained anew" in prepared.log("transformers")
    assert not (folder / "results/small/work").exists()


@pytest.mark.slow
def test_the_outer_workflow_may_make_the_data(elsewhere):
    outer(elsewhere, 'config: config["seedbed"]', "results", "inner")
    overlay = {**OVERLAY, "sources": {"reviews_fr": {"locations": ["made/reviews"]}}}
    (elsewhere / "outer.yaml").write_text(yaml.safe_dump({"seedbed": overlay}))
    copied = f"cp -r {ROOT}/resources/reviews_fr {{output}}"
    rule = f"rule data:\n    output: directory('made/reviews')\n    shell: '{copied}'\n"
    (elsewhere / "Snakefile").write_text((elsewhere / "Snakefile").read_text() + rule)
    succeeded(snakemake(elsewhere, "results/data/reviews_fr/splits.json"))
    assert (elsewhere / "made/reviews/train.csv").exists()


@pytest.mark.slow
def test_a_module_from_a_copy_without_git_prepares_own_data(elsewhere, tmp_path):
    """With a prefix, which moves what is made and not what the config names."""
    copy = tmp_path / "copy"
    for name in ("envs", "resources", "rules", "scripts"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("Snakefile", "config.yaml"):
        shutil.copy(ROOT / name, copy)
    outer(elsewhere, 'config: config["seedbed"]\n    prefix: "text"', "text/results", "mine")
    text = (elsewhere / "Snakefile").read_text().replace(str(ROOT / "Snakefile"), str(copy / "Snakefile"))
    (elsewhere / "Snakefile").write_text(text)
    config = {
        "experiment": "mine",
        "grid": {"datasets": ["opinions"], "frameworks": ["transformers"]},
        "sources": {"opinions": {"locations": ["opinions"]}},
        "datasets": {
            "opinions": {
                "source": "opinions",
                "files": {"train": "train.csv", "validation": None, "test": "test.csv"},
                "labels": ["bad", "good"],
            }
        },
    }
    (elsewhere / "outer.yaml").write_text(yaml.safe_dump({"seedbed": config}))
    (elsewhere / "opinions").mkdir()
    for name, size in {"train": 40, "test": 20}.items():
        rows = "".join(f"opinion {k} of {name},{'bad' if k % 2 else 'good'}\n" for k in range(size))
        (elsewhere / "opinions" / f"{name}.csv").write_text(f"text,label\n{rows}")
    plan = succeeded(snakemake(elsewhere, "seedbed_all", "-n", "-q", "rules")).stdout
    assert "seedbed_finetune_transformers        6" in plan
    prepared = "text/results/data/opinions"
    succeeded(
        snakemake(elsewhere, f"{prepared}/splits.json", "text/results/models/roberta_tiny_fr/model.json")
    )
    assert (elsewhere / prepared / "test.text").read_text().startswith("opinion 0 of test\n")


def test_a_module_whose_results_are_taken_apart_is_refused(elsewhere):
    outer(elsewhere, 'replace_prefix: {"results/demo/": "moved/"}', "results", "demo")
    out = failed(snakemake(elsewhere, "-n"))
    assert "replace_prefix moves only a part of the results" in out
    assert "common.smk" not in out


@pytest.mark.slow
@pytest.mark.parametrize("option", ["", "--directory"])
def test_another_working_directory_needs_no_file_of_the_repository(tmp_path, option):
    folder = tmp_path / "empty"
    folder.mkdir()
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(OVERLAY))
    start, words = (ROOT, ["--directory", str(folder)]) if option else (folder, [])
    words += ["--snakefile", str(ROOT / "Snakefile"), "--configfile", str(tmp_path / "mine.yaml")]
    plan = succeeded(snakemake(start, *words, "-n", "-q", "rules")).stdout
    assert "finetune_transformers        2" in plan
    succeeded(snakemake(start, *words, "--", *(f"results/{path}" for path in MADE)))
    assert all((folder / "results" / path).exists() for path in MADE)


@pytest.mark.slow
def test_resources_of_the_working_directory_go_first(project: Project):
    """What a user put in place of an embedded file is read, and not the workflow's own."""
    (project.folder / "resources").unlink()
    mine = project.folder / "resources/reviews_fr"
    mine.mkdir(parents=True)
    for name, text in (("train", "bien,positive\nmal,negative\n"), ("validation", ""), ("test", "")):
        text = text or "bon,positive\nmauvais,negative\n"
        (mine / f"{name}.csv").write_text(f"text,label\n{text * 2}", encoding="utf-8")
    succeeded(project.snakemake("--", "results/data/reviews_fr/train.text"))
    assert (project.folder / "results/data/reviews_fr/train.text").read_text() == "bien\nmal\nbien\nmal\n"
