"""The DAG can be looked at without running anything, and looking costs little."""

import os
import re
import subprocess
import sys
from typing import Any

import pytest
from builders_workflow import ROOT
from harness import failed, succeeded


def test_a_dry_run_of_a_fresh_clone_shows_every_stage_and_twelve_runs(project):
    out = succeeded(project.snakemake("--dry-run")).stdout
    for rule in (
        "fetch_source",
        "prepare",
        "tokenize_texts",
        "binarize",
        "convert_checkpoint",
        "check_parity",
    ):
        assert rule in out
    assert out.count("rule finetune_fairseq:") == 6
    assert out.count("rule finetune_transformers:") == 6


@pytest.mark.parametrize("option", ["--dag", "--rulegraph"])
def test_graphs_are_pure_dot(project, option):
    out = succeeded(project.snakemake(option)).stdout
    assert out.startswith("digraph")
    assert out.rstrip().endswith("}")


def test_the_summary_table_is_pure_tsv(project):
    lines = succeeded(project.snakemake("--summary")).stdout.splitlines()
    columns = lines[0].split("\t")
    assert columns[0] == "output_file"
    assert {line.count("\t") for line in lines} == {len(columns) - 1}


def test_lint_is_clean(project):
    done = succeeded(project.snakemake("--lint"))
    assert "Congratulations" in done.stdout + done.stderr


def test_reading_the_snakefile_imports_neither_torch_nor_pandas(project):
    """Every job reads it anew. (Snakemake itself imports pandas, for its Slurm plugin.)"""
    read = [
        sys.executable,
        "-X",
        "importtime",
        "-m",
        "snakemake",
        "-s",
        str(ROOT / "Snakefile"),
        "--list-rules",
    ]
    done = run(read, project)
    lines = (line for line in done.stderr.splitlines() if "import time:" in line)
    imported = {line.rpartition("|")[2].strip() for line in lines}
    ours = sorted(name for name in imported if name.startswith("seedbed."))
    assert {"seedbed.config.plan", "seedbed.running.guard"} <= {*ours}
    folder = str(ROOT / "scripts")
    code = f"import sys; sys.path.insert(0, {folder!r}); import {', '.join(ours)}; print(*sys.modules)"
    loaded = set(run([sys.executable, "-c", code], project).stdout.split())
    assert not loaded & {"torch", "transformers", "fairseq", "numpy", "pandas"}
    assert "torch" not in imported


def run(command: list[str], project) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONPATH": ""}
    done = subprocess.run(command, cwd=project.folder, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    return done


def test_runs_that_only_adopt_what_their_batch_has_trained_are_local_jobs(project):
    """Of every framework and task: an executor would start a job of a cluster for each."""
    overlay = project.folder / "local.smk"
    overlay.write_text(
        f'include: "{ROOT}/Snakefile"\nprint("LOCAL", *sorted(workflow._localrules))\n', encoding="utf-8"
    )
    command = [sys.executable, "-m", "snakemake", "-s", str(overlay), "--list-rules", "--config"]
    for runs, local in ((1, set()), (2, {"finetune_causal", "finetune_fairseq", "finetune_transformers"})):
        out = run([*command, f'batches={{"runs": {runs}}}'], project).stdout
        found = re.search("^LOCAL (.*)$", out, re.M)[1].split()
        assert {name for name in found if name.startswith("finetune")} == local


@pytest.mark.slow
def test_the_paper_scale_experiments_plan_their_runs_from_a_mirror(project, tmp_path):
    experiments = {
        ("cls_books",): 12,
        ("cls_books", "cls_books_lr"): 48,
        ("cls_books", "cls_books_lora"): 18,
        ("cls_all", "flue_cls"): 36,
        ("flue_pawsx",): 12,
        ("flue_xnli",): 12,
        ("lora_bloom",): 12,
        ("lora_bloom", "lora_bloom_lr"): 15,
    }
    (project.folder / "piaf_qa.fr.jsonl").touch()  # which its user brings
    for overlays, runs in experiments.items():
        files = [f"experiments/{name}.yaml" for name in overlays]
        done = succeeded(project.snakemake("--dry-run", "--quiet", "rules", "--configfile", *files))
        counts = dict(line.split()[:2] for line in done.stdout.splitlines() if line.startswith("finetune_"))
        assert sum(map(int, counts.values())) == runs


def asked(methods: list[str], **changes) -> dict[str, Any]:
    """An overlay: an experiment of generation with a recipe for each method; its sources are not there."""
    return {
        "experiment": "asked",
        "grid": {
            "datasets": ["questions"], "models": ["causal"], "recipes": methods,
            "inits": ["pretrained"], "seeds": [0, 1],
        },
        "sources": {name: {"locations": [f"https://nowhere.org/{name}"]} for name in ("questions", "causal")},
        "datasets": {
            "questions": {
                "task": "generation", "source": "questions", "format": "jsonl", "files": {"train": "a.jsonl"},
            }
        },
        "models": {"causal": {"source": "causal", "format": "causal"}},
        "recipes": {method: {"method": method} for method in methods},
        **changes,
    }  # fmt: skip


def jobs(project, config, *arguments: str) -> dict[str, int]:
    """The number of jobs of each rule that a dry-run names."""
    out = succeeded(project.snakemake("--dry-run", "--quiet", "rules", *arguments, config=config)).stdout
    table = out.partition("Job stats:")[2].partition("\n\n")[0]
    counts = (line.split() for line in table.splitlines())
    return {words[0]: int(words[1]) for words in counts if len(words) == 2 and words[1].isdigit()}


ONCE = (
    "check_limits",
    "audit",
    "aggregate",
    "write_report",
    "all",
)


def test_generation_has_its_own_rules_and_shares_those_after_them(project):
    own = {"fetch_source": 2, "prepare_questions": 1, "convert_causal_model": 1, "tokenize_prompts": 1}
    rest = dict.fromkeys(ONCE, 1)
    planned = jobs(project, asked(["none", "lora", "qlora", "full"]))
    assert planned.pop("total") == sum(planned.values())
    assert planned == {**own, **rest, "count_trainable": 1, "finetune_causal": 8}
    planned = jobs(project, asked(["none", "full"]))
    assert planned.pop("total") == sum(planned.values())
    assert planned == {**own, **rest, "finetune_causal": 4}  # and nothing that an adapter would train


def test_runs_of_generation_share_jobs_as_others_do(project):
    planned = jobs(project, asked(["lora", "full"], batches={"runs": 3, "at_once": 2}))
    assert (planned["finetune_causal_batch"], planned["finetune_causal"]) == (2, 4)


def test_an_adapter_of_a_classifier_is_trained_with_transformers_and_counted(project):
    lora = {"task_type": "SEQ_CLS", "target_modules": ["query", "value"]}
    overlay = {"grid": {"recipes": ["demo", "lora"]}, "recipes": {"lora": {"method": "lora", "lora": lora}}}
    planned = jobs(project, overlay)
    counts = {name: count for name, count in planned.items() if name.startswith(("finetune_", "count_"))}
    assert counts == {
        "finetune_fairseq": 6, "finetune_transformers": 12, "count_parameters": 1, "count_trainable": 1,
    }  # fmt: skip


def test_a_grid_of_two_tasks_is_refused(project):
    config = asked(["full"])
    config["grid"]["datasets"].append("reviews_fr")
    told = failed(project.snakemake("--dry-run", config=config))
    assert "the grid has datasets of two tasks" in told
    assert "questions (generation), reviews_fr (classification)" in told
    assert "Traceback" not in told


@pytest.mark.slow
def test_two_thousand_runs_are_planned_within_a_few_hundred_mib(project):
    """The target is 10,000 within 1 GiB (benchmarks/scale.py measures that); memory grows with the runs."""
    many = re.sub(
        r"\bseeds: .*", f"seeds: {list(range(500))}", (ROOT / "config.yaml").read_text(encoding="utf-8")
    )
    (project.folder / "many.yaml").write_text(many, encoding="utf-8")
    command = [sys.executable, "-m", "snakemake", "-s", str(ROOT / "Snakefile"), "--configfile", "many.yaml"]
    # in a process between: a child starts with the peak of the one that it was forked from, here pytest's
    code = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
print("peak", resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)
sys.exit(code)
"""
    done = run([sys.executable, "-c", code, *command, "--dry-run", "--quiet", "rules"], project)
    lines = [line.split() for line in done.stdout.splitlines()]
    counts = {words[0]: words[1] for words in lines if words and words[0].startswith("finetune_")}
    (peak,) = (int(words[1]) for words in lines if words and words[0] == "peak")
    assert sum(map(int, counts.values())) == 2000
    assert peak < 400  # MiB; 244 seen


def test_a_run_that_is_not_in_the_grid_is_refused_by_name(project):
    run = "reviews_fr/roberta_tiny_fr/fairseq/pretrained/demo/seed99"
    out = failed(project.snakemake("--dry-run", "--", f"results/demo/runs/{run}/run.json"))
    assert "this run is not in the grid of the experiment" in out
    assert "seed99" in out
