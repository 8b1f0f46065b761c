"""Files that are damaged between two steps, and keep their time of change, stop whoever reads them.

Which rule reads which file, Snakemake itself says. Damages that leave a file which can be parsed need no
tests of their own: what is compared is the SHA-256.
"""

import collections
import re
import runpy
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from builders_jobs import damage, make_job
from builders_workflow import ROOT
from harness import Project, failed, succeeded
from snakemake.iocontainers import InputFiles

from seedbed.core.errors import SeedbedError
from seedbed.running import runner

pytestmark = pytest.mark.slow
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "one bit": lambda content: content[:-2] + bytes([content[-2] ^ 1]) + content[-1:],
    "half of it lost": lambda content: content[: len(content) // 2],
    "truncated to zero": lambda content: b"",
}


@pytest.fixture
def readers(finished) -> dict[str, set[str]]:
    """The rules that read each file, by its path from the working directory."""
    plan = succeeded(finished.snakemake("--dry-run", "--forceall")).stdout
    found = collections.defaultdict(set)
    for rule, inputs in re.findall(r"^(?:local)?rule (\w+):\n    input: (.*)$", plan, re.MULTILINE):
        if rule not in ("all", "fetch_source"):  # what these are given are targets, and files of the user
            for path in inputs.split(", "):
                found[path].add(rule)
    return found


@pytest.fixture
def inside(finished, monkeypatch) -> Project:
    """The working directory is that of the finished experiment; what a rule's script sets is set back."""
    monkeypatch.chdir(finished.folder)
    for name in ("stdout", "stderr", "excepthook"):
        monkeypatch.setattr(sys, name, getattr(sys, name))
    return finished


def begin(rule: str, path: str) -> None:
    """Begin the work of a rule that is given a file, and no other."""
    config = {"batches": {"runs": 1}}
    snakemake = SimpleNamespace(rule=rule, input=InputFiles([path]), output=[], log=["log"], config=config)
    script = "finetune" if rule.startswith("finetune_") else rule
    runpy.run_path(str(ROOT / f"scripts/{script}.py"), {"snakemake": snakemake})


def begin_run(framework: str, path: str) -> None:
    """Begin to train a run of which a file was damaged."""
    job = make_job(Path(), model="generated", framework=framework, init="pretrained")
    runner.run([job], "no_such_trainer", {})


def read_by_runs() -> Iterator[tuple[str, str]]:
    """What training reads, as its rules name it and beside that: framework and path."""
    data, model = Path("results/data/books/generated"), Path("results/models/generated")
    binarized = [path for ending in ("bin", "idx") for path in (data / "binarized").rglob(f"*.{ending}")]
    own = {
        "fairseq": [*binarized, *data.rglob("dict.txt"), *model.glob("fairseq/[md]*.*")],
        "transformers": [model / f"huggingface/{name}" for name in ("config.json", "model.safetensors")],
    }
    for framework, paths in own.items():
        for path in (
            *data.glob("tokens/*.jsonl"),
            data.with_name("labels.json"),
            model / "model.json",
            *paths,
        ):
            yield framework, str(path)


def test_whoever_reads_a_file_notices_that_it_is_damaged(inside, readers):
    reads = [(begin, rule, path) for path, rules in readers.items() for rule in rules]
    reads += [(begin_run, framework, path) for framework, path in read_by_runs()]
    silent = []
    damaged = [(read, reader, path, file) for read, reader, path in reads for file in files_of(path)]
    for read, reader, path, file in damaged:
        content = file.read_bytes()
        for name, change in DAMAGES.items():
            damage(file, change(content))
            try:
                with pytest.raises(SeedbedError, match="changed or damaged since its rule") as error:
                    read(reader, path)
                assert str(file) in error.value.where
            except Exception as other:  # shown together, as there are many
                silent.append((reader, str(file), name, repr(other)))
        damage(file, content)
    assert silent == []
    files = {str(file) for *_, file in damaged}
    assert len(files) >= 60
    names = {path.rpartition("/")[2] for path in files}
    assert names >= {
        "train.jsonl",
        "labels.json",
        "model.pt",
        "model.safetensors",
        "tokenizer.json",
        "run.json",
    }


def files_of(path: str) -> list[Path]:
    """A file, or the files of a folder that a rule makes, without those of the workflow itself."""
    folder = Path(path)
    return [each for each in sorted(folder.iterdir()) if each.name[0] != "."] if folder.is_dir() else [folder]


def test_the_command_in_the_message_repairs_it(finished):
    tokens = finished.results / "data/books/generated/tokens/train.jsonl"
    before = tokens.read_bytes()
    shutil.rmtree(finished.run_folder("fairseq"))
    for name in ("report.html", "runs.csv"):  # whose rules ask for the run
        (finished.results / "small" / name).unlink()
    damage(tokens, b"")
    text = failed(finished.snakemake())
    assert f"where: {tokens.relative_to(finished.folder)}, written by rule tokenize_texts" in text
    (remedy,) = set(re.findall(r"^ +--forcerun (\S+)$", text, re.MULTILINE))
    succeeded(finished.snakemake("--forcerun", remedy))
    assert tokens.read_bytes() == before
    assert "adopted: this run was trained before" in finished.log("transformers")
    assert (finished.run_folder("fairseq") / "run.json").exists()
