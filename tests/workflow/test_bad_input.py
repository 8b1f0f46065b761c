"""One fault of a user's in each test: the workflow stops before any fine-tuning, and says what to mend."""

import os
import re
import shutil
import zipfile
from pathlib import Path

import pytest
from builders import make_dictionary, tiered, train_sentencepiece
from builders_workflow import SHAPE, small_config, write_lab_dataset
from harness import failed, succeeded

LABELS = "results/data/books/labels.json"
MODEL = "results/models/generated/model.json"
TOKENS = "results/data/books/generated/tokens/statistics.json"
PARITY = "results/data/books/generated/parity.json"
WEIGHTS = "results/models/generated/huggingface/model.safetensors"


def refusal(project, config, rule: str, output: str, *arguments: str, recipes: int = 1) -> str:
    """Ask for the whole experiment, with what `output` needs made first; `rule` must fail, and cleanly.

    Returns the error, with which the terminal's text ends.
    """
    out = failed(project.snakemake("--prioritize", output, *arguments, config=config))
    runs = 4 * recipes
    assert f"\nsmall: {runs} of {runs} runs to train, 1 at a time\n" in out
    assert_no_run_started(project, out)
    assert not [rule for rule in project.ran() if rule.startswith("finetune_")]
    error = r"^Error in rule (\w+):$.*?^ +output: (.*?)$"
    broken = re.findall(error, project.log_of_snakemake(), re.MULTILINE | re.DOTALL)
    assert [name for name, _ in broken] == [rule], out
    declared = broken[0][1].split(", ")
    assert output in declared
    assert not [path for path in declared if (project.folder / path).exists()]
    known = (".sha256", ".snakemake_timestamp")  # the last is Snakemake's, in folders that a rule makes
    hidden = [path for path in (project.folder / "results").rglob(".*") if path.name not in known]
    assert not hidden, "temporary files were left"
    message = re.search(
        rf"\n\nERROR: ((?:(?!\n\n).)*)\n  log:   results/\S*logs/{rule}/?\S*\.log\n\Z", out, re.DOTALL
    )
    assert message, out
    assert re.search(r"^  where: .+^  hint:  ", message[1], re.MULTILINE | re.DOTALL), message[1]
    return message[1]


def assert_no_run_started(project, out: str) -> None:
    assert not re.search(r"rule finetune_\w+:", out)
    experiment = project.folder / "results/small"
    assert not list(experiment.glob("runs/**/run.json"))
    assert not list(experiment.glob("work/**/*"))


def assert_tells(message: str, parts: list[str]) -> None:
    missing = [part for part in parts if part not in message]
    assert not missing, f"{missing} not in:\n{message}"


def replace_line(path: Path, number: int, line: bytes) -> None:
    """Put `line` in place of line `number`, counted from 1."""
    lines = path.read_bytes().split(b"\n")
    lines[number - 1] = line
    path.write_bytes(b"\n".join(lines))


@pytest.fixture
def passed(prepared, stock):
    """A project that passed the parity gate, and its config: one epoch."""
    return prepared, small_config(stock.folder / "prepared-inputs")


# --- configuration ---


@pytest.mark.parametrize(
    ("block", "key", "nearest"),
    [
        (["recipes", "quick"], "epoch", "epochs"),
        (["grid"], "frameworkss", "frameworks"),
        ([], "experimant", "experiment"),
    ],
)
def test_an_unknown_key(small, block, key, nearest):
    project, config = small
    place = config
    for name in block:
        place = place[name]
    place[key] = 3
    out = failed(project.snakemake("--dry-run", config=config))
    dotted = ".".join([*block, key])
    assert_tells(
        out,
        [
            f"where: config, {dotted} (overlay.yaml, line ",
            "found: 3",
            f"did you mean {nearest!r}? valid keys: ",
        ],
    )
    assert "Traceback" not in out
    assert "common.smk" not in out
    assert_no_run_started(project, out)
    assert not (project.folder / "results").exists()


def test_a_key_that_stands_twice(small, tmp_path):
    project, _ = small
    twice = tmp_path / "twice.yaml"
    twice.write_text("recipes:\n  demo:\n    epochs: 2\n    epochs: 9\n")
    out = failed(project.snakemake("--dry-run", "--configfile", str(twice)))
    assert_tells(out, [f"where: {twice}, line 4", "found: epochs, also on line 3"])
    assert "Traceback" not in out


# --- sources ---


@pytest.mark.parametrize("is_file", [False, True])
def test_a_mirror_that_is_none(small, tmp_path, is_file):
    project, config = small
    mirror = tmp_path / "stranger.zip"
    if is_file:
        mirror.touch()
    config["mirror"] = str(mirror)
    out = failed(project.snakemake(config=config))
    told = "that no pending source is named after" if is_file else "the mirror does not exist"
    assert_tells(out, [told, "where: config, mirror", f"found: {mirror}"])
    assert_no_run_started(project, out)
    assert not list(project.folder.glob("results/sources/**/*"))


def test_a_source_that_exists_nowhere(small, tmp_path):
    project, config = small
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    locations = [str(tmp_path / "gone/books.zip"), (tmp_path / "away/reviews.zip").as_uri()]
    config["sources"]["books"]["locations"] = locations
    config["mirror"] = str(mirror)
    for option in ([], ["--dry-run"]):
        out = failed(project.snakemake(*option, config=config))
        tried = [str(mirror / "books.zip"), str(mirror / "reviews.zip"), *locations]
        where = "config, sources.books.locations (overlay.yaml, line "
        assert_tells(
            out, ["the dataset 'books' needs", where, *(f"- {each}: no such file" for each in tried)]
        )
        assert_tells(out, [f"relative to {project.folder}", "mirror=DIR, a folder with books.zip"])
        assert "Traceback" not in out
        assert not (project.folder / "results").exists()


def test_a_file_that_a_local_source_lacks_is_told_in_a_dry_run(small, tmp_path):
    project, config = small
    (tmp_path / "inputs/books/test.label").rename(tmp_path / "inputs/books/tset.label")
    out = failed(project.snakemake("--dry-run", config=config))
    assert_tells(out, ["the source has no file 'test.label'", "config, datasets.books.files.test ("])
    assert_tells(out, [str(tmp_path / "inputs/books"), "did you mean 'tset.label'?"])


@pytest.mark.slow
def test_what_was_fetched_may_be_gone(passed, tmp_path):
    project, config = passed
    gone = str(tmp_path / "gone")
    for source in ("books", "generated"):
        shutil.copytree(config["sources"][source]["locations"][0], tmp_path / source)
        config["sources"][source]["locations"] = [str(tmp_path / source)]
    succeeded(project.snakemake("--", PARITY, config=config))
    shutil.rmtree(tmp_path / "books")
    done = succeeded(project.snakemake("--", PARITY, config=config))
    assert "Nothing to be done" in done.stdout + done.stderr
    config["sources"]["books"]["locations"] = [gone]  # of which nothing was ever fetched
    assert f"- {gone}: no such file or folder" in failed(project.snakemake("-n", "--", PARITY, config=config))


@pytest.mark.slow
def test_a_recipe_of_longer_inputs_than_the_checkpoint_is_refused_before_any_run(small):
    project, config = small
    config["recipes"]["quick"]["sweep"] = {"max_positions": [24, 4000]}
    message = refusal(project, config, "check_limits", "results/small/limits.json", recipes=2)
    assert_tells(message, ["recipe 'quick.max_positions=4000'", "model 'generated' has positions"])
    assert_tells(message, ["found: 4000", f"give at most {SHAPE['positions']}, or null"])
    # and now that the model is there, in a dry run
    out = failed(project.snakemake("--dry-run", config=config))
    assert_tells(out, ["the model 'generated' has positions", "config, recipes.quick.max_positions"])


@pytest.mark.slow
def test_an_archive_that_is_cut_off(small, tmp_path):
    project, config = small
    archive = tmp_path / "books.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        for path in sorted((tmp_path / "inputs/books").iterdir()):
            opened.write(path, path.name)
    os.truncate(archive, archive.stat().st_size // 2)
    config["sources"]["books"]["locations"] = [str(archive)]
    message = refusal(project, config, "fetch_source", "results/sources/books/manifest.json")
    assert_tells(message, ["config, sources.books", f"- {archive}: the archive is damaged, truncated"])
    assert_tells(message, [f"{archive.stat().st_size:,} bytes", "put books.zip into a folder DIR"])
    assert not list(project.folder.glob("results/sources/books/**/*"))


# --- datasets ---


def drop_the_last_label(books: Path) -> list[str]:
    path = books / "train.label"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    told = ["files/train.review and ", "files/train.label", f"from {books}", "24 texts and 23 labels"]
    return [*told, "find the line that is missing or broken"]


def empty_a_review(books: Path) -> list[str]:
    replace_line(books / "train.review", 5, b"")
    return ["a line is empty", "files/train.review, line 5", str(books), "fill in or delete the line"]


def give_an_undeclared_label(books: Path) -> list[str]:
    replace_line(books / "valid.label", 3, b"2")
    told = ["files/valid.label, line 3", str(books), "found: '2'", "declared labels: 0, 1"]
    return [*told, "correct the file or datasets.books.labels"]


def write_a_review_in_latin_1(books: Path) -> list[str]:
    replace_line(books / "test.review", 4, "Un été déçu.".encode("latin-1"))
    told = ["not UTF-8", "files/test.review, line 4", str(books), r"b'\xe9t\xe9"]
    return [*told, "set encoding: cp1252"]


@pytest.mark.parametrize(
    "spoil",
    tiered(
        [drop_the_last_label, empty_a_review, give_an_undeclared_label, write_a_review_in_latin_1],
        drop_the_last_label,
    ),
)
def test_a_faulty_dataset(small, tmp_path, spoil):
    project, config = small
    told = spoil(tmp_path / "inputs/books")
    assert_tells(refusal(project, config, "prepare", LABELS), told)


# --- checkpoints ---


class Command:
    """What a pickle runs when it is loaded without care."""

    def __init__(self, line: str):
        self.line = line

    def __reduce__(self):
        return os.system, (self.line,)


def cut_the_dictionary(model: Path) -> list[str]:
    path = model / "dict.txt"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-5]))
    told = ["this dict.txt belongs to another checkpoint", "files/dict.txt and ", "files/model.pt"]
    return [*told, "295 words", "300 rows", "take dict.txt from the checkpoint's own archive"]


def take_the_dictionary_of_another_model(model: Path) -> list[str]:
    path = model / "dict.txt"
    words = make_dictionary(train_sentencepiece(SHAPE["vocab"] - 2, "unigram"))
    assert len(words) == len(path.read_bytes().splitlines())
    path.write_text("".join(f"{word} 1\n" for word in words), encoding="utf-8")
    told = ["belong to different models", "files/dict.txt and ", "files/sentencepiece.bpe.model"]
    return [*told, f"of {len(words)} words", "take both files, unaltered, from the checkpoint's own archive"]


def hide_a_command_in_the_checkpoint(model: Path) -> list[str]:
    import torch

    marker = model.parent / "marker"
    torch.save({"model": {}, "args": Command(f"touch '{marker}'")}, model / "model.pt")
    told = [f"asks Python for {os.system.__module__}.system", "refused", "files/model.pt", "nothing was run"]
    return [*told, "download it from its authors"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "spoil",
    [
        cut_the_dictionary,
        take_the_dictionary_of_another_model,
        hide_a_command_in_the_checkpoint,
    ],
)
def test_a_faulty_checkpoint(small, tmp_path, spoil):
    project, config = small
    told = spoil(tmp_path / "inputs/generated")
    assert_tells(refusal(project, config, "convert_checkpoint", MODEL), told)
    assert not (tmp_path / "inputs/marker").exists()


# --- once all files have been read: tokens, parity, and what vanishes later ---


@pytest.mark.slow
def test_too_many_unknown_tokens(passed, tmp_path):
    project, config = passed
    write_lab_dataset(tmp_path / "books")
    for number in range(1, 17, 3):
        text = "这本书很好看,我一口气读完了" if number % 2 else "Ένα πολύ όμορφο βιβλίο"
        replace_line(tmp_path / "books/test.review", number, text.encode())
    config["sources"]["books"]["locations"] = [str(tmp_path / "books")]
    message = refusal(project, config, "tokenize_texts", TOKENS)
    share = re.match(r"([\d.]+)% of the pieces in the split 'test' are unknown, more than 1.0%", message)
    assert share, message
    assert 1 < float(share[1]) < 50
    assert_tells(message, ["results/data/books/test.jsonl, first on line 1: '这本书", " times)"])
    assert_tells(message, ["check the encoding of the texts", "raise checks.max_unknown_share in the config"])


@pytest.mark.slow
def test_frameworks_that_start_from_different_weights(passed):
    import safetensors.torch

    project, config = passed
    path = project.folder / WEIGHTS
    times = path.stat()
    weights = safetensors.torch.load_file(path)
    weights["roberta.encoder.layer.0.output.dense.bias"][0] += 1.0
    safetensors.torch.save_file(weights, path, metadata={"format": "pt"})
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    shutil.rmtree(path.parents[1] / ".sha256")  # as if the conversion had written other weights
    assert (project.folder / PARITY).exists()
    message = refusal(project, config, "check_parity", PARITY, "--forcerun", "check_parity")
    told = re.match(
        r"the hidden states of fairseq and transformers differ by (\S+), more than (\S+)\n", message
    )
    assert told, message
    assert float(told[1]) > 0.01 > float(told[2])
    assert_tells(message, ["'split': ", "'id': ", "where the largest value is", "checks.parity_tolerance"])


@pytest.mark.slow
def test_a_checkpoint_that_vanished_is_made_anew_and_never_done_without(passed):
    from seedbed.core.errors import SeedbedError
    from seedbed.running.jobs import Job
    from seedbed.training.fairseq import trainer

    project, config = passed
    models, books = project.folder / "results/models/generated", project.folder / "results/data/books"
    assert "rule convert_checkpoint:" not in succeeded(project.snakemake("--dry-run", config=config)).stdout
    (models / "fairseq/model.pt").unlink()
    plan = succeeded(project.snakemake("--dry-run", config=config)).stdout
    assert re.search(r"rule convert_checkpoint:.*reason: Missing output files: \S+model\.pt", plan, re.DOTALL)
    # and where Snakemake is bypassed, or the file goes while it runs
    job = Job(
        run={"init": "pretrained"},
        experiment="small",
        tokens=books / "generated/tokens",
        labels=books / "labels.json",
        weights=models / "fairseq",
        model=models / "model.json",
        binarized=books / "generated/binarized",
        target=project.folder / "results/small/runs/one",
        work=project.folder / "results/small/work/one",
        threads=1,
    )
    with pytest.raises(SeedbedError, match="would train from scratch") as caught:
        trainer.train_run(job)
    assert_tells(str(caught.value), [str(models / "fairseq/model.pt"), "--forcerun convert_checkpoint"])
    assert not (project.folder / "results/small").exists()
