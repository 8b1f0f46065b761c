"""What a rule wrote is recorded, and what is read is compared with it, whatever its time says."""

import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from builders_jobs import SCRIPTS, damage, finish, make_job, note_of, remove_outputs

from seedbed.core import checksums, files
from seedbed.core.errors import SeedbedError
from seedbed.running import batches, claims, publishing, runner


@pytest.fixture
def model(tmp_path) -> Path:
    """A folder that a rule has written, with its record in it."""
    folder = tmp_path / "models/m"
    files.write_text(folder / "model.json", "{}\n")
    files.write_text(folder / "huggingface/config.json", '{"layer_norm_eps": 1e-05}\n')
    files.write_text(folder / "huggingface/model.safetensors", "weights\n")
    checksums.record("convert_checkpoint", [folder / "model.json", folder / "huggingface"])
    return folder


# --- records ---


def test_a_record_is_that_of_sha256sum_and_moves_with_its_folder(model, tmp_path):
    moved = Path(shutil.copytree(model.parent, tmp_path / "moved")) / "m"
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", ".sha256/convert_checkpoint"],
        cwd=moved,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [
        "model.json:", "OK", "huggingface/config.json:", "OK", "huggingface/model.safetensors:", "OK",
    ]  # fmt: skip
    checksums.compare(sorted(moved.rglob("*.json")))
    damage(moved / "model.json", b"[]\n")
    with pytest.raises(SeedbedError, match="changed or damaged since its rule wrote it"):
        checksums.compare([moved / "model.json"])


@pytest.mark.parametrize("content", [b'{"layer_norm_eps": 1e-03}\n', b'{"layer_norm_eps"', b""])
def test_a_changed_file_is_told_with_its_rule_both_hashes_and_a_remedy(model, content):
    path = model / "huggingface/config.json"
    before = files.sha256(path)
    checksums.compare([path])
    damage(path, content)  # as many bytes, fewer, none; in the process that has just read it
    with pytest.raises(SeedbedError) as error:
        checksums.compare([model / "model.json", path])
    assert error.value.where == f"{path}, written by rule convert_checkpoint"
    assert f"{files.sha256(path)[:12]}…; the rule wrote {before[:12]}…" in error.value.found
    assert error.value.hint.endswith(f"--forcerun {model / 'model.json'}")  # an output that Snakemake knows


def test_files_of_an_older_version_are_read_and_named_once(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    for name in ("runs.csv", "summary.csv"):
        files.write_text(tmp_path / name, "a,b\n")
    for _ in range(2):
        checksums.compare([tmp_path / "runs.csv", tmp_path / "summary.csv", tmp_path / "missing.csv"])
    (told,) = caplog.messages
    assert f"wrote it without a SHA-256: {tmp_path / 'runs.csv'}, and 1 more files" in told


def test_an_empty_file_is_an_error_also_without_a_record(tmp_path):
    path = tmp_path / "train.jsonl"
    path.touch()
    with pytest.raises(SeedbedError, match="is empty") as error:
        checksums.compare([path])
    assert error.value.hint.endswith(f"--forcerun {path}")
    checksums.record("tokenize_texts", [path])
    with pytest.raises(SeedbedError, match="is empty") as error:
        checksums.compare([path])
    assert "rule tokenize_texts wrote it empty" in error.value.hint


def test_a_file_has_one_author_the_last(tmp_path):
    paths = [tmp_path / name for name in ("train.jsonl", "labels.json")]
    for path in paths:
        files.write_text(path, "first\n")
    checksums.record("prepare", paths)
    files.write_text(paths[0], "second\n")
    checksums.record("prepare_questions", paths[:1])
    checksums.compare(paths)
    assert "train.jsonl" not in (tmp_path / ".sha256/prepare").read_text()
    files.write_text(paths[1], "second\n")
    checksums.record("prepare_questions", paths)
    assert os.listdir(tmp_path / ".sha256") == ["prepare_questions"]


def test_a_record_in_a_folder_below_gives_way_to_a_later_one_above(tmp_path):
    figure, report = tmp_path / "figures/a.svg", tmp_path / "report.html"
    files.write_text(figure, "first\n")
    checksums.record("plot_figures", [figure])
    for path in (figure, report):
        files.write_text(path, "second\n")
    checksums.record("write_report", [report, figure])
    checksums.compare([figure, report])
    assert os.listdir(tmp_path / "figures/.sha256") == []


@pytest.mark.parametrize("content", ["", "no hash  model.json\n"])
def test_a_damaged_record_is_an_error_that_its_rule_mends(model, content):
    record = model / ".sha256/convert_checkpoint"
    record.write_text(content)
    with pytest.raises(SeedbedError, match="the record of a rule's files is damaged") as error:
        checksums.compare([model / "huggingface/config.json"])
    assert error.value.where == str(record)
    checksums.record("convert_checkpoint", [model / "model.json", model / "huggingface"])
    checksums.compare([model / "huggingface/config.json"])


def test_the_benchmark_compares_too(model, capsys):
    assert checksums.main([str(model)]) == 0
    assert capsys.readouterr().out.startswith("3 files, 0.0 MiB: hashed in 0.0")
    damage(model / "model.json", b"[]\n")
    assert checksums.main([str(model)]) == 1


# --- scripts of rules ---

RULE = """
import sys, types
sys.path.insert(0, {scripts!r})
made = ["out/a", "out/b"]
snakemake = types.SimpleNamespace(rule="tokenize_texts", log=["log"], input=["in/a"], output=made)
from seedbed.core import files, script
script.start(snakemake)
for path in snakemake.output:
    files.write_text(path, "made\\n")
{more}
"""


def run_rule(folder: Path, more: str = "") -> subprocess.CompletedProcess:
    code = RULE.format(scripts=str(SCRIPTS), more=more)
    return subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize("end", ["", "script.end()"])
def test_a_rules_script_compares_its_inputs_and_records_its_outputs(tmp_path, end):
    files.write_text(tmp_path / "in/a", "given\n")
    checksums.record("prepare", [tmp_path / "in/a"])
    assert run_rule(tmp_path, end).returncode == 0
    assert (tmp_path / "out/.sha256/tokenize_texts").read_text().split()[1::2] == ["a", "b"]
    shutil.rmtree(tmp_path / "out")
    damage(tmp_path / "in/a", b"other\n")
    done = run_rule(tmp_path)
    assert done.returncode == 1
    assert "in/a, written by rule prepare" in done.stderr
    assert "in/a, written by rule prepare" in (tmp_path / "log").read_text()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "more",
    ["raise ValueError", "import os; os.remove('out/b')", "import os; os.remove('out/b'); script.end()"],
)
def test_a_rule_that_fails_or_cannot_record_records_nothing_and_its_script_fails(tmp_path, more):
    files.write_text(tmp_path / "in/a", "given\n")
    assert run_rule(tmp_path, more).returncode == 1
    assert not (tmp_path / "out/.sha256").exists()


def test_a_rule_that_is_killed_leaves_no_record_of_what_it_wrote_before(tmp_path):
    files.write_text(tmp_path / "in/a", "given\n")
    assert run_rule(tmp_path).returncode == 0
    killed = run_rule(tmp_path, "import os; files.write_text('out/a', 'other'); os.kill(os.getpid(), 9)")
    assert killed.returncode == -9
    checksums.compare([tmp_path / "out/a"])  # Snakemake knows that it is incomplete, and makes it anew


def test_a_forked_process_does_not_record_at_its_end(tmp_path):
    files.write_text(tmp_path / "in/a", "given\n")
    more = "import os\nif os.fork() == 0:\n    files.write_text('out/a', 'half')\n    sys.exit()\nos.wait()\n"
    done = run_rule(tmp_path, more + "assert not os.path.exists('out/.sha256')")
    assert done.returncode == 0, done.stderr


# --- runs ---


def test_a_run_with_a_changed_input_stops_before_its_trainer_is_imported(tmp_path):
    job = make_job(tmp_path)
    identity = job.identity
    checksums.record("tokenize_texts", [job.tokens])
    assert make_job(tmp_path).identity == identity
    damage(job.tokens / "train.jsonl", b"content of train.json\n")
    for train in (
        lambda: runner.run([make_job(tmp_path)], "no_such_trainer", {}),
        lambda: batches.train([make_job(tmp_path)], "no_such_trainer", {}, tmp_path / "logs"),
    ):
        with pytest.raises(SeedbedError, match="changed or damaged since its rule wrote it") as error:
            train()
        assert f"{job.tokens}/train.jsonl, written by rule tokenize_texts" in error.value.where
        assert not job.work.exists()


def test_a_published_run_brings_its_record(tmp_path):
    job = make_job(tmp_path)
    files.write_text(finish(job) / "model/model.safetensors", "weights")
    publishing.publish(job)
    names = ["run.json", "metrics.csv", "model/model.safetensors", "predictions.csv"]
    record = job.target / ".sha256/finetune_transformers"
    assert record.read_text().split()[1::2] == names
    checksums.compare(job.target / name for name in names)
    remove_outputs(job)
    assert publishing.adopt(job)  # from what is kept
    checksums.compare(job.target / name for name in names)
    damage(job.target / "model/model.safetensors", b"weightz")
    with pytest.raises(SeedbedError) as error:
        checksums.compare([job.target / "model/model.safetensors"])
    assert error.value.hint.endswith(f"--forcerun {job.target / 'run.json'}")


def test_a_run_of_an_older_version_is_adopted_without_a_record(tmp_path):
    job = make_job(tmp_path)
    finish(job)
    publishing.publish(job)
    for place in (job.target, job.work / "kept"):
        shutil.rmtree(place / ".sha256")
    assert publishing.adopt(make_job(tmp_path))


def test_a_damaged_result_is_trained_again_and_never_adopted(tmp_path, monkeypatch, caplog):
    job = make_job(tmp_path)
    finish(job, "first")
    publishing.publish(job)
    damage(job.target / "predictions.csv", b"split,examplf\n")  # a hard link: what is kept is the same file

    def train(jobs):
        finish(jobs[0], "second")
        publishing.publish(jobs[0])

    monkeypatch.setattr(runner, "imported", lambda *what: SimpleNamespace(train=train))
    runner.run([make_job(tmp_path)], "trainer", {})
    assert note_of(job.target) == "second"
    assert any("changed or damaged since it was published" in text for text in caplog.messages)


@pytest.mark.parametrize(
    ("told", "method", "published"),
    [
        ({"updates": 0, "total_updates": 0}, "full", False),
        ({"updates": 3}, "full", False),
        ({"updates": 5}, "lora", False),
        ({"updates": 3, "diverged": True}, "full", True),
        ({"updates": 3, "differences": [{"setting": "updates", "done": "1 skipped"}]}, "full", True),
        ({"updates": 0, "total_updates": 0, "diverged": True}, "full", False),
        ({"updates": 0, "total_updates": 0}, "none", True),
    ],
)
def test_a_run_that_trains_is_published_with_the_updates_of_its_plan_or_not_at_all(
    tmp_path, told, method, published
):
    job = make_job(tmp_path, method=method)
    ready = finish(job)
    adapter = ready / "adapter/adapter_model.safetensors"
    files.write_text(adapter, "weights")
    record = files.read_json(ready / "run.json")
    files.write_json(ready / "run.json", record | told)
    with claims.claim(job.work):
        if published:
            publishing.publish(job)
        else:
            with pytest.raises(SeedbedError, match="its number of updates differs from the plan"):
                publishing.publish(job)
    assert job.target.exists() == published
    assert publishing.has_result(job) == published
