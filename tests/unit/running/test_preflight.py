"""What is told before any job runs: sources that are not there, files that they lack, limits of models."""

import shutil
import tarfile
import unicodedata
import zipfile
from pathlib import Path

import pytest
from builders import load_config

from seedbed.config.plan import Plan
from seedbed.core.errors import SeedbedError
from seedbed.core.files import write_json
from seedbed.running import gpus, preflight
from seedbed.sources.locations import ROOT

RUN = ["--cores", "2"]


@pytest.fixture
def raw(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = load_config([ROOT / "config.yaml"]) | {"results": str(tmp_path / "results")}
    config["sources"] = {"forum": {"locations": ["data/forum"]}}
    config["datasets"]["forum"] = {
        "source": "forum", "format": "csv", "files": {"train": "train.csv", "test": "test.csv"},
        "labels": ["a", "b"],
    }  # fmt: skip
    config["grid"]["datasets"] = ["forum"]
    return config


def fill(folder: Path, *names: str) -> Path:
    for name in names or ("train.csv", "test.csv"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("text,label\n")
    return folder


def refused(raw, arguments=RUN) -> SeedbedError:
    with pytest.raises(SeedbedError) as error:
        preflight.check(Plan(raw), arguments)
    return error.value


def passes(raw) -> None:
    preflight.check(Plan(raw), RUN)


def stamp(raw, kind: str, name: str, folder: str) -> Path:
    """Mark something as made by this experiment."""
    path = Path(raw["results"], folder, name, "fingerprint.json")
    write_json(path, {"experiment": raw["experiment"], **Plan(raw).shared.stamp(kind, name)})
    return path.parent


# --- sources ---


@pytest.mark.parametrize("arguments", [RUN, ["-n"], ["--dry-run"]])
def test_a_path_that_does_not_exist_is_told_with_its_key(raw, arguments, tmp_path):
    error = refused(raw, arguments)
    assert error.what == "nothing is at the location of the source 'forum', which the dataset 'forum' needs"
    assert error.where == "config, sources.forum.locations"
    assert "data/forum: no such file or folder" in error.found
    assert f"relative to {tmp_path}" in error.hint
    assert "--config mirror=DIR, a folder with forum" in error.hint
    fill(Path("data/forum"))
    passes(raw)


@pytest.mark.parametrize("option", ["--lint", "--list-rules", "--unlock", "--summary", "--dag"])
def test_command_lines_that_plan_nothing_are_not_asked(raw, option):
    preflight.check(Plan(raw), [*RUN, option])


def test_one_location_that_exists_is_enough_and_urls_are_not_asked(raw):
    locations = raw["sources"]["forum"]["locations"]
    locations.append("https://host.example/forum.zip")
    passes(raw)
    locations[:] = ["data/gone", fill(Path("elsewhere")).absolute().as_uri()]
    passes(raw)


def test_a_model_that_does_not_exist_is_told(raw):
    fill(Path("data/forum"))
    raw["sources"]["mine"] = {"locations": ["models/mine"]}
    raw["models"] = {"mine": {"source": "mine"}}
    raw["grid"]["models"] = ["mine"]
    error = refused(raw)
    assert "the source 'mine', which the model 'mine' needs" in error.what
    assert error.where == "config, sources.mine.locations"


def test_what_was_fetched_or_prepared_may_be_gone(raw):
    made = stamp(raw, "sources", "forum", "sources")
    write_json(made / "manifest.json", {"location": "data/forum", "files": {"train.csv": {}, "test.csv": {}}})
    passes(raw)
    shutil.rmtree(made)
    stamp(raw, "datasets", "forum", "data")
    passes(raw)
    raw["sources"]["forum"]["locations"] = ["data/other"]
    assert "data/other: no such file" in refused(raw).found


def test_a_mirror_counts_and_has_to_exist(raw):
    raw["mirror"] = "mirror"
    assert refused(raw).where == "config, mirror"
    fill(Path("mirror/forum"))
    passes(raw)
    raw["mirror"] = str(fill(Path("other"), "stranger.zip") / "stranger.zip")
    assert "the mirror is a file that no pending source is named after" in refused(raw).what
    for name, kind, folder in (("forum", "datasets", "data"), ("roberta_tiny_fr", "models", "models")):
        stamp(raw, kind, name, folder)
    passes(raw)  # nothing is to be fetched


# --- files ---


def test_a_file_that_a_folder_lacks_is_told_with_the_nearest(raw):
    fill(Path("data/forum"), "trian.csv", "test.csv")
    error = refused(raw)
    assert error.what == "the source has no file 'train.csv'"
    assert error.where.startswith("config, datasets.forum.files.train; ")
    assert "did you mean 'trian.csv'?" in error.hint


@pytest.mark.parametrize("ending", ["zip", "tar"])
def test_a_file_that_an_archive_lacks_is_told(raw, ending):
    fill(Path("packed"), "forum/train.csv", "forum/test.csv")
    shutil.make_archive("forum", ending, "packed")
    raw["sources"]["forum"]["locations"] = [f"forum.{ending}"]
    assert "did you mean 'forum/train.csv'?" in refused(raw).hint
    raw["datasets"]["forum"]["files"] = {"train": "forum/train.csv", "test": "forum/test.csv"}
    passes(raw)
    raw["sources"]["forum"]["include"] = ["*/train.csv"]
    assert "no file 'forum/test.csv'" in refused(raw).what


def test_a_file_that_a_download_lacks_is_told_once_it_was_fetched(raw):
    raw["sources"]["forum"]["locations"] = ["https://host.example/forum.tar.gz"]
    passes(raw)
    made = stamp(raw, "sources", "forum", "sources")
    files = {"forum/train.csv": {}, "forum/test.csv": {}}
    write_json(made / "manifest.json", {"location": "https://host.example/forum.tar.gz", "files": files})
    error = refused(raw)
    assert "source fetched from https://host.example/forum.tar.gz" in error.where
    assert "did you mean 'forum/train.csv'?" in error.hint


def test_what_is_hard_to_know_is_left_to_the_job(raw):
    with tarfile.open("forum.tar.gz", "w:gz") as archive:
        archive.add(fill(Path("packed"), "other.csv"))
    Path("damaged.zip").write_bytes(b"PK\x03\x04 cut off")
    for name in ("forum.tar.gz", "damaged.zip"):
        raw["sources"]["forum"]["locations"] = [name]
        passes(raw)


def test_an_archive_without_its_ending_is_called_one(raw):
    with zipfile.ZipFile("download", "w") as archive:
        archive.writestr("train.csv", "")
        archive.writestr("test.csv", "")
    raw["sources"]["forum"]["locations"] = ["download"]
    hint = refused(raw).hint
    assert "download is an archive without the suffix of one: set kind: archive under sources.forum" in hint
    raw["sources"]["forum"]["kind"] = "archive"
    passes(raw)


def test_names_of_files_may_be_in_either_form_of_unicode(raw):
    fill(Path("data/forum"), unicodedata.normalize("NFD", "entraînement.csv"), "test.csv")
    raw["datasets"]["forum"]["files"]["train"] = unicodedata.normalize("NFC", "entraînement.csv")
    passes(raw)


def test_the_lab_and_saved_datasets_need_their_own_files(raw):
    dataset = raw["datasets"]["forum"]
    fill(Path("data/forum"), "train.review", "train.label", "test.review")
    dataset |= {"format": "lab", "files": {"train": "train", "test": "test"}}
    assert "no file 'test.label'" in refused(raw).what
    dataset |= {"format": "huggingface"}
    assert "no file 'train/state.json'" in refused(raw).what
    fill(Path("data/forum"), "train/state.json", "test/state.json")
    passes(raw)


def test_files_and_kinds_of_models_are_looked_at(raw):
    fill(Path("data/forum"))
    raw["sources"]["mine"] = {"locations": ["models/mine"]}
    raw["models"] = {"mine": {"source": "mine", "format": "huggingface"}}
    raw["grid"]["models"] = ["mine"]
    folder = fill(Path("models/mine"), "model.safetensors", "vocab.txt")
    write_json(folder / "config.json", {"model_type": "bert", "architectures": ["BertForMaskedLM"]})
    assert refused(raw).hint.startswith("set format: auto for the model")
    write_json(folder / "config.json", {"model_type": "t5", "architectures": ["T5ForConditionalGeneration"]})
    assert "the type 't5' in Transformers' format, which is not supported" in refused(raw).what
    write_json(folder / "config.json", {"model_type": "camembert", "architectures": ["CamembertForMaskedLM"]})
    assert "has no file 'sentencepiece.bpe.model'" in refused(raw).what
    fill(folder, "sentencepiece.bpe.model")
    passes(raw)


# --- limits ---


def test_longer_inputs_than_a_model_has_are_told_once_it_is_there(raw):
    fill(Path("data/forum"))
    raw["recipes"]["demo"] |= {"max_positions": 512, "sweep": {}}
    passes(raw)
    write_json(stamp(raw, "models", "roberta_tiny_fr", "models") / "model.json", {"max_positions": 512})
    passes(raw)
    raw["models"]["short"] = {
        **raw["models"]["roberta_tiny_fr"],
        "description": "",
        "dictionary": "./dict.txt",
    }
    raw["models"]["short"]["dictionary"] = "dict.txt"
    raw["grid"]["models"] = ["roberta_tiny_fr", "short"]
    write_json(stamp(raw, "models", "short", "models") / "model.json", {"max_positions": 128})
    error = refused(raw)
    assert error.what == "recipe 'demo' asks for longer inputs than the model 'short' has positions"
    assert error.where == "config, recipes.demo.max_positions"
    assert error.hint == "give at most 128, or null for each model's own limit"
    raw["recipes"]["demo"]["max_positions"] = 128
    passes(raw)


# --- what is said, and targets ---


def test_columns_that_are_joined_are_said_until_they_are(raw):
    fill(Path("data/forum"))
    raw["datasets"]["forum"]["columns"] = {"text": ["title", "message"]}
    (note,) = preflight.check(Plan(raw), ["-n"])
    assert "The texts of forum are made of the columns title, message, joined with a space" in note
    assert "name the second under columns.text_pair" in note
    stamp(raw, "datasets", "forum", "data")
    assert preflight.check(Plan(raw), ["-n"]) == []


def test_a_target_of_a_run_that_is_not_in_the_grid_is_refused(raw):
    fill(Path("data/forum"))
    plan = Plan(raw)
    good, bad = (f"{plan.experiment_folder}/runs/{plan.runs[0].folder}", "seed99/run.json")
    preflight.check(plan, ["-n", "--", f"{good}/run.json"])
    error = refused(raw, ["-n", "--", f"{good.rpartition('/')[0]}/{bad}"])
    assert error.what == "this run is not in the grid of the experiment"
    assert error.where.endswith("seed99")


# --- seeds ---


@pytest.mark.parametrize(
    ("seeds", "told"),
    [
        ([0], "has 1 seed"),
        ([0, 1], "has 2 seeds"),
        ({"init": [0, 1], "data": [0, 1, 2]}, "crosses seeds, with 2 of init or data"),
        ([0, 1, 2], None),
        ({"init": [0, 1, 2], "data": [0, 1, 2]}, None),
    ],
)
def test_too_few_seeds_for_a_verdict_are_told_until_all_runs_are_there(raw, seeds, told):
    fill(Path("data/forum"))
    raw["grid"]["seeds"] = seeds
    notes = preflight.check(Plan(raw), ["--dry-run"])
    assert [note.startswith(f"The grid {told}: no difference will get a verdict") for note in notes] == (
        [True] if told else []
    )
    for path in Plan(raw).run_files("run.json"):
        Path(path).parent.mkdir(parents=True)
        Path(path).touch()
    assert preflight.check(Plan(raw), RUN) == []


# --- models that a framework cannot train ---


@pytest.fixture
def encoder(raw):
    """A model of the format auto with its files."""
    from builders_encoders import make_encoder

    fill(Path("data/forum"))
    make_encoder("models/bert")
    raw["sources"]["bert"] = {"locations": ["models/bert"]}
    raw["models"] = {"bert": {"source": "bert", "format": "auto"}}
    raw["grid"]["models"] = ["bert"]
    return raw


def test_a_framework_that_is_left_out_is_told(encoder):
    notes = [note for note in preflight.check(Plan(encoder), RUN) if "fairseq" in note]
    assert len(notes) == 1
    assert notes[0].startswith("The model bert (format: auto) runs without fairseq")
    encoder["grid"]["frameworks"] = ["transformers"]
    assert not any("fairseq" in note for note in preflight.check(Plan(encoder), RUN))


def test_code_of_a_models_authors_is_refused_before_any_job(encoder):
    path = Path("models/bert/config.json")
    path.write_text(path.read_text(encoding="utf-8").replace("{", '{"auto_map": {"AutoModel": "x.Y"},', 1))
    assert "which is never run" in refused(encoder).what


@pytest.mark.parametrize(("points", "told"), [(8, []), (12, ["12 points are less even than 8 or 16"])])
def test_a_number_of_points_that_is_no_power_of_two_is_told(raw, tmp_path, points, told):
    fill(tmp_path / "data/forum")
    raw["recipes"]["demo"] |= {"points": points, "sweep": {"learning_rate": {"low": 1e-5, "high": 1e-3}}}
    notes = [note for note in preflight.check(Plan(raw), ["-n"]) if "points" in note]
    assert [note.partition(" (recipes.demo.points)")[0] for note in notes] == told


# --- precision --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("device", "there", "fused", "frameworks", "told"),
    [
        ("auto", ["GPU-1"], False, ["fairseq", "transformers"], True),
        ("auto", [], False, ["fairseq", "transformers"], False),
        ("auto", ["GPU-1"], True, ["fairseq", "transformers"], False),
        ("auto", ["GPU-1"], False, ["transformers"], False),
        ("cpu", ["GPU-1"], False, ["fairseq", "transformers"], False),
    ],
)
def test_fairseq_in_bfloat16_is_refused_where_there_is_a_gpu(
    raw, tmp_path, monkeypatch, device, there, fused, frameworks, told
):
    fill(tmp_path / "data/forum")
    monkeypatch.setattr(gpus, "devices", lambda config: there)
    raw |= {"device": device, "fused_seeds": fused}
    raw["grid"]["frameworks"] = frameworks
    raw["recipes"]["demo"]["precision"] = "bfloat16"
    if not told:
        passes(raw)
        return
    error = str(refused(raw))
    for part in ("recipes.demo.precision; device", "which finds the GPU GPU-1", "set device to cpu"):
        assert part in error
