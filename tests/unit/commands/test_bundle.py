"""`seedbed bundle`, `seedbed verify`, and `seedbed compare` with a bundle."""

import hashlib
import io
import json
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from builders_report import aggregate
from synthetic import edit_csv, make_experiment, make_generation

from seedbed.commands import main
from seedbed.core import files
from seedbed.data import audit
from seedbed.report.provenance import write_config

SIZES = {"validation": 40, "test": 60}
SHARED = "Sent from my telephone, which has no keys for accents"
LEAST = ["--replicates", "200"]
OF_RUN = ("metrics.csv", "predictions.csv", "run.json")


def finish(made, texts: bool = True) -> Path:
    """The folder of a made-up experiment with what its last rules write."""
    aggregate(made)
    for name in ("report.html", "summary.md", "logs/aggregate.log"):
        files.write_text(made.experiment / name, f"{name} of {made.experiment.name}\n")
    config = made.plan.config
    write_config({**config, "report": {**config["report"], "texts": texts}}, made.experiment / "config.yaml")
    return made.experiment


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """An experiment of six runs of Transformers."""
    made = make_experiment(tmp_path_factory.mktemp("finished"), sizes=SIZES, frameworks=["transformers"])
    data = made.plan.results / "data" / "reviews"
    files.write_json(data / "splits.json", {"splits": {}})
    files.write_text(data / "test.jsonl", '{"id": "test-0", "text": "Secret"}\n')
    return finish(made)


@pytest.fixture
def experiment(finished, tmp_path) -> Path:
    """A copy of it, to be changed."""
    return shutil.copytree(finished.parent, tmp_path / "results") / finished.name


@pytest.fixture(scope="module")
def bundle(finished, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("bundle") / "x.tar.gz"
    assert main(["bundle", str(finished), str(path)]) == 0
    return path


def contents(bundle: Path) -> dict[str, bytes]:
    with tarfile.open(bundle) as archive:
        return {member.name: archive.extractfile(member).read() for member in archive}


def repacked(bundle: Path, target: Path, change: Callable[[dict[str, bytes]], None], sums: bool) -> Path:
    """The bundle with changed files; with `sums`, their sums are changed, too."""
    found = contents(bundle)
    change(found)
    if sums:
        del found["SHA256SUMS"]
        lines = [f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in found.items()]
        found["SHA256SUMS"] = "".join(lines).encode()
    with tarfile.open(target, "w:gz") as archive:
        for name, content in found.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return target


def refusal(capsys, *arguments) -> str:
    assert main([str(each) for each in arguments]) == 1
    return capsys.readouterr().err


# --- packing ------------------------------------------------------------------------------------------------


def test_a_bundle_holds_what_a_reviewer_needs_and_no_texts(finished, bundle):
    found = contents(bundle)
    name = f"results/{finished.name}"
    for file in ("config.yaml", "runs.csv", "summary.csv", "contrasts.csv", "summary.md", "data_audit.csv"):
        assert found[f"{name}/{file}"] == (finished / file).read_bytes()
    of_runs = sorted(path for path in found if path.startswith(f"{name}/runs/"))
    assert len(of_runs) == 6 * len(OF_RUN)
    assert {Path(path).name for path in of_runs} == set(OF_RUN)
    assert "results/data/reviews/splits.json" in found
    assert "results/models/small/parameters.csv" in found
    assert not [path for path in found if "logs" in path or path.endswith((".jsonl", "report.html"))]
    assert b"Left out, since they quote texts: report.html." in found["README.txt"]


def test_sums_are_those_of_sha256sum(bundle):
    found = contents(bundle)
    sums = dict(line.split("  ")[::-1] for line in found.pop("SHA256SUMS").decode().splitlines())
    assert sums == {name: hashlib.sha256(content).hexdigest() for name, content in found.items()}


def test_the_same_results_give_the_same_bytes(experiment, bundle, tmp_path):
    for path in experiment.rglob("*"):
        path.touch()
    assert main(["bundle", str(experiment), str(tmp_path / "again.tar.gz")]) == 0
    assert (tmp_path / "again.tar.gz").read_bytes() == bundle.read_bytes()


def test_texts_are_packed_on_request(finished, tmp_path):
    path = tmp_path / "x.tar.gz"
    assert main(["bundle", str(finished), str(path), "--texts"]) == 0
    found = contents(path)
    assert found["results/data/reviews/test.jsonl"].endswith(b'"text": "Secret"}\n')
    assert f"results/{finished.name}/report.html" in found
    assert b"share this file only with" in found["README.txt"]


@pytest.mark.parametrize(
    ("share", "quoting"), [(0.02, ["data_audit.csv"]), (0.9, ["data_audit.csv", "summary.md"])]
)
def test_what_quotes_a_string_of_many_texts_is_left_out(experiment, tmp_path, capsys, share, quoting):
    """The summary quotes one that is in so many texts that the audit warns of it."""
    row = {"kind": audit.SHARED, "text": SHARED, "check": f"shared text: {SHARED}", "split": "test"}
    row |= {"dataset": "reviews", "count": f"{400 * share:.0f}", "share": str(share)}
    edit_csv(experiment / "data_audit.csv", lambda rows: rows.append({**dict.fromkeys(rows[0], ""), **row}))
    path = tmp_path / "x.tar.gz"
    assert main(["bundle", str(experiment), str(path)]) == 0
    left_out = capsys.readouterr().out.partition("(--texts): ")[2].splitlines()[0].split(", ")
    assert [name for name in left_out if name != "summary.json"] == ["report.html", *quoting]
    assert not {f"results/{experiment.name}/{name}" for name in left_out} & contents(path).keys()


def test_a_report_without_texts_is_packed(tmp_path):
    made = make_experiment(tmp_path, sizes=SIZES, frameworks=["transformers"], seeds=[0, 1])
    folder = finish(made, texts=False)
    assert main(["bundle", str(folder), str(tmp_path / "x.tar.gz")]) == 0
    assert f"results/{folder.name}/report.html" in contents(tmp_path / "x.tar.gz")


def test_generated_answers_need_consent(tmp_path, capsys):
    folder = finish(make_generation(tmp_path / "results", sizes=SIZES))
    output = tmp_path / "x.tar.gz"
    assert "add --texts" in refusal(capsys, "bundle", folder, output)
    assert main(["bundle", str(folder), str(output), "--texts"]) == 0
    assert main(["verify", str(output)]) == 0
    assert (
        "runs predict with the loss, perplexity, token accuracy, exact match and F1"
        in capsys.readouterr().out
    )


def test_only_the_entries_of_its_sources_are_packed(finished, tmp_path, capsys):
    entry = {"version": None, "file": "a.zip", "sha256": "0" * 64, "bytes": 1, "location": "https://a.org"}
    lock, packed = tmp_path / "lock.json", []
    for name, entries in {"some": {"another": entry}, "all": {"another": entry, "source": entry}}.items():
        files.write_json(lock, entries)
        path = tmp_path / f"{name}.tar.gz"
        assert main(["bundle", str(finished), str(path), "--lock", str(lock)]) == 0
        packed.append(json.loads(contents(path)["sources.lock.json"]))
    assert packed == [{}, {"source": entry}]
    assert capsys.readouterr().out.count(f"Sources without an entry in {lock}: source\n") == 1


@pytest.mark.parametrize("name", ["report.html", "runs.csv", "predictions.csv"])
def test_an_unfinished_experiment_is_refused(experiment, tmp_path, capsys, name):
    next(experiment.rglob(name)).unlink()
    assert name in refusal(capsys, "bundle", experiment, tmp_path / "x.tar.gz")
    assert [*tmp_path.glob("*x.tar.gz*")] == []


def test_runs_at_work_are_refused(experiment, tmp_path, capsys):
    (experiment / "work" / "reviews/small/transformers/random/lab/seed9").mkdir(parents=True)
    assert "unfinished runs: 1" in refusal(capsys, "bundle", experiment, tmp_path / "x.tar.gz")


def test_a_file_that_changed_since_its_rule_wrote_it_is_refused(experiment, tmp_path, capsys):
    from seedbed.core import checksums

    checksums.record("aggregate", [experiment / "summary.csv"])
    edit_csv(experiment / "summary.csv", lambda rows: rows[0].update(mean="0.99"))
    told = refusal(capsys, "bundle", experiment, tmp_path / "x.tar.gz")
    assert "changed or damaged since its rule wrote it" in told


def test_predictions_without_the_metrics_of_the_table_are_refused(experiment, tmp_path, capsys):
    edit_csv(experiment / "runs.csv", lambda rows: rows[0].update(validation_accuracy="0.5"))
    told = refusal(capsys, "bundle", experiment, tmp_path / "x.tar.gz")
    assert "do not have the accuracy on validation" in told


def test_an_output_of_another_ending_is_refused(finished, tmp_path, capsys):
    assert "ends in .tar.gz" in refusal(capsys, "bundle", finished, tmp_path / "x.zip")


# --- reading ------------------------------------------------------------------------------------------------


def test_verify_says_what_agrees(finished, bundle, capsys):
    assert main(["verify", str(bundle)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{bundle}: {len(contents(bundle)) - 1} files have their sums in SHA256SUMS",
        f"{finished.name}: 6 runs predict with the accuracy of runs.csv, on validation and test",
    ]


def predictions_in(found: dict[str, bytes]) -> str:
    return next(name for name in sorted(found) if name.endswith("predictions.csv"))


def test_a_changed_byte_is_found(bundle, tmp_path, capsys):
    def change(found):
        name = predictions_in(found)
        found[name] = found[name].replace(b"positive", b"positivE", 1)

    changed = repacked(bundle, tmp_path / "y.tar.gz", change, sums=False)
    for command in (["verify", changed], ["compare", changed, bundle]):
        told = refusal(capsys, *command)
        assert "not as it was bundled" in told
        assert f"where: {changed}, {predictions_in(contents(bundle))}" in told


def test_a_prediction_that_was_changed_with_its_sum_is_found(bundle, tmp_path, capsys):
    def change(found):
        name = predictions_in(found)
        lines = found[name].decode().splitlines()
        split, example, label, prediction, *rest = lines[1].split(",")
        other = {"negative": "positive", "positive": "negative"}[prediction]
        lines[1] = ",".join([split, example, label, other, *rest[::-1]])
        found[name] = ("\n".join(lines) + "\n").encode()

    changed = repacked(bundle, tmp_path / "y.tar.gz", change, sums=True)
    told = refusal(capsys, "verify", changed)
    assert "do not have the accuracy on validation" in told
    assert f"where: {changed}, {predictions_in(contents(bundle))}" in told


def test_a_file_without_a_sum_is_found(bundle, tmp_path, capsys):
    changed = repacked(
        bundle, tmp_path / "y.tar.gz", lambda found: found.update({"more.csv": b"1\n"}), sums=False
    )
    assert "has no sum" in refusal(capsys, "verify", changed)


@pytest.mark.parametrize("name", ["../outside.csv", "/tmp/seedbed_outside.csv"])
def test_nothing_is_written_outside(bundle, tmp_path, capsys, name):
    changed = repacked(bundle, tmp_path / "y.tar.gz", lambda found: found.update({name: b"1\n"}), sums=True)
    assert "leaves the folder" in refusal(capsys, "verify", changed)
    assert not Path("/tmp/seedbed_outside.csv").exists()


@pytest.mark.parametrize("content", [b"", b"no archive"])
def test_a_file_that_is_no_bundle_is_refused(tmp_path, capsys, content):
    (tmp_path / "y.tar.gz").write_bytes(content)
    assert "y.tar.gz" in refusal(capsys, "verify", tmp_path / "y.tar.gz")


def test_compare_prints_the_same_of_a_bundle_as_of_its_folder(finished, bundle, tmp_path, capsys):
    made = make_experiment(tmp_path, sizes=SIZES, frameworks=["transformers"], noise=0.03)
    other = finish(made).rename(tmp_path / "other")
    said = []
    for one in (finished, bundle):
        assert main(["compare", str(one), str(other), *LEAST]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]


def test_a_bundle_is_not_compared_with_itself(bundle, capsys):
    assert "not compared with itself" in refusal(capsys, "compare", bundle, bundle)
