"""Two runs are the same run if settings, inputs, versions and the meaning of the code are the same."""

import os
import shutil

import pytest
from builders_jobs import make_job, run_python

from seedbed.core.tasks import TASKS
from seedbed.running import identity, trainers


@pytest.fixture
def job(tmp_path):
    return make_job(tmp_path)


def forget():
    """Let the code be read again."""
    identity.training_code.cache_clear()
    identity.numbers_of.cache_clear()


def test_the_identity_is_of_content_not_of_times_and_places(job, tmp_path):
    assert make_job(tmp_path / "elsewhere").identity == job.identity
    for path in tmp_path.rglob("*"):
        os.utime(path, (1e9, 1e9))
    assert make_job(tmp_path).identity == job.identity


def test_the_identity_is_another_one_if_anything_that_counts_differs(job, tmp_path, monkeypatch):
    found = {job.identity}
    found.add(make_job(tmp_path, seed=1).identity)
    found.add(make_job(tmp_path, keep_model=True).identity)
    for path in (job.tokens / "train.jsonl", job.labels, job.model, job.weights / "model.safetensors"):
        before = path.read_bytes()
        path.write_bytes(b"other")
        found.add(make_job(tmp_path).identity)
        path.write_bytes(before)
    monkeypatch.setattr("seedbed.running.identity.package_versions", lambda packages: {"torch": "9"})
    found.add(make_job(tmp_path).identity)
    monkeypatch.undo()
    monkeypatch.setattr("seedbed.running.identity.numbers_of", lambda kind: "changed")
    found.add(make_job(tmp_path).identity)
    assert len(found) == 9


def test_the_identity_depends_on_the_packages_and_the_code_of_the_task_and_method_alone(
    tmp_path, monkeypatch
):
    def identities():
        runs = {"full": {}, "lora": {"method": "lora"}, "causal": {"task": "generation", "method": "none"}}
        runs["qlora"] = {"task": "generation", "method": "qlora"}
        found = {name: make_job(tmp_path, **run).identity for name, run in runs.items()}
        forget()
        return found

    def changed(before):
        return {name for name, identity in identities().items() if identity != before[name]}

    before = identities()
    assert len(set(before.values())) == 4
    installed = identity.metadata.version
    expected = {"peft": {"lora", "qlora"}, "bitsandbytes": {"qlora"}, "tokenizers": {"causal", "qlora"}}
    for package, runs in {**expected, "torch": set(before)}.items():
        other = {package: "0"}
        monkeypatch.setattr(
            identity.metadata, "version", lambda name, o=other: o.get(name) or installed(name)
        )
        assert changed(before) == runs, package
        monkeypatch.undo()
    code = {"training/adapters.py": {"lora", "qlora"}}
    code |= {"training/transformers/causal.py": {"causal", "qlora"}}
    code |= {"training/transformers/classifier.py": {"full", "lora"}, "training/recording.py": set(before)}
    for module, runs in code.items():
        copy = tmp_path / "library"
        shutil.copytree(identity.LIBRARY, copy)
        (copy / module).write_text("OTHER = 1")
        monkeypatch.setattr(identity, "LIBRARY", copy)
        forget()
        assert changed(before) == runs, module
        monkeypatch.undo()
        shutil.rmtree(copy)
    forget()


def test_fused_seeds_have_an_identity_of_their_group_and_of_their_own_code(tmp_path, monkeypatch):
    groups = {"alone": {}, "two": {"fused": [[0, 0], [1, 1]]}, "three": {"fused": [[0, 0], [1, 1], [2, 2]]}}

    def identities():
        forget()
        return {name: make_job(tmp_path, **run).identity for name, run in groups.items()}

    before = identities()
    assert len(set(before.values())) == 3
    fused = {"two", "three"}
    changes = {path: fused for path in trainers.FUSED.code.values() if "fused/" in path}
    changes |= {"training/transformers/base_trainer.py": {"alone"}, "training/progress.py": set(groups)}
    for module, runs in changes.items():
        copy = tmp_path / "library"
        shutil.copytree(identity.LIBRARY, copy)
        (copy / module).write_text("OTHER = 1")
        monkeypatch.setattr(identity, "LIBRARY", copy)
        changed = {name for name, identity in identities().items() if identity != before[name]}
        assert changed == runs, module
        monkeypatch.undo()
        shutil.rmtree(copy)
    forget()


def test_the_tokenizer_counts_where_answers_are_generated(tmp_path):
    runs = ({}, {"task": "generation", "method": "none"})
    before = [make_job(tmp_path, **run).identity for run in runs]
    (make_job(tmp_path).weights / "tokenizer.json").write_text("other")
    after = [make_job(tmp_path, **run).identity for run in runs]
    assert [a == b for a, b in zip(after, before, strict=True)] == [True, False]


def test_every_module_that_a_trainer_imports_counts_or_is_known_not_to():
    """A module that is new must be put on one side or the other."""
    stages = ("core", "config", "data", "models", "running", "sources", "training")
    packages = {"__init__", "training/fairseq/__init__", "training/fused/__init__"}
    packages |= {"training/transformers/__init__", *(f"{stage}/__init__" for stage in stages)}
    neutral = packages | {
        "config/batching", "config/combinations", "config/runs", "config/stages",
        "core/checksums", "core/commits", "core/errors", "core/files", "core/model_formats",
        "core/interruption", "core/locks", "core/memory", "core/paths", "core/printable", "core/rows",
        "core/run_folder", "core/spelling", "core/splits", "core/states", "core/waiting", "core/words",
        "core/tasks/__init__", "core/tasks/task", "core/tasks/outside",
        *(f"core/tasks/{name}" for name in TASKS),
        "models/parameters", "running/claims", "running/gpu_memory", "running/gpu_slots", "running/gpus",
        "running/identity", "running/jobs", "running/publishing", "running/trainers", "sources/archives",
        "sources/locations", "sources/table", "training/differences", "training/events", "training/stopwatch",
    }  # fmt: skip
    of_a_gpu = {"training/fused/kernels", "training/fused/tables"}  # imported where there is Triton
    code = """
import os
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import seedbed.training.fairseq.trainer, seedbed.training.transformers.classifier
import seedbed.training.transformers.causal, seedbed.training.merging
import seedbed.training.fused.trainer
from seedbed.training.fairseq import seedbed_plugin
folder = os.path.dirname(sys.modules["seedbed"].__file__) + "/"
for module in list(sys.modules.values()):
    path = getattr(module, "__file__", None) or ""
    if path.startswith(folder):
        print("MODULE", path.removeprefix(folder).removesuffix(".py"))
"""
    out, _ = run_python(code).communicate(timeout=300)
    imported = {line.split()[1] for line in out.splitlines() if line.startswith("MODULE")}
    counted = {
        path.removesuffix(".py") for kind in identity.KINDS for path in identity.modules_of(kind).values()
    }
    assert imported == (counted | neutral) & imported
    assert counted - of_a_gpu <= imported


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def f(x):\n    return x + 1\n", 'def f(x):\n    """Add one."""\n    return (x + 1)  # for luck\n'),
        ('"""Old."""\nX = 1\n', '"""New."""\n\nX = 1\n'),
        (
            "from seedbed.core import naming; from seedbed.training import schedule\nX = naming.PAD",
            "from seedbed.core import naming\nfrom seedbed.training import schedule\nX = naming.PAD",
        ),
        ("import seedbed.core.naming as n", "import seedbed.core.naming as n"),
    ],
)
def test_what_changes_no_number_is_no_meaning(before, after):
    assert identity.meaning(before) == identity.meaning(after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("X = 1", "X = 2"),
        ("X = 1", "X = 1.0"),
        ("def f(x):\n    return x + 1", "def f(x):\n    return x - 1"),
        ('def f(x):\n    return "a"', 'def f(x):\n    return "b"'),
        ("from seedbed.core.naming import PAD", "from seedbed.core.naming import BOS"),
        ("X = 1\nY = 2", "Y = 2\nX = 1"),
    ],
)
def test_what_may_change_a_number_is_meaning(before, after):
    assert identity.meaning(before) != identity.meaning(after)


@pytest.fixture
def own_library(tmp_path, monkeypatch):
    """A copy of the library and of its list of code, which a test may change."""
    shutil.copytree(identity.LIBRARY, tmp_path / "library")
    shutil.copy(identity.NUMBERS, tmp_path / "numbers.csv")
    monkeypatch.setattr(identity, "LIBRARY", tmp_path / "library")
    monkeypatch.setattr(identity, "NUMBERS", tmp_path / "numbers.csv")
    forget()
    yield tmp_path / "library"
    forget()


def test_a_refactoring_that_is_listed_disowns_no_run(own_library):
    before = {kind: identity.numbers_of(kind) for kind in identity.KINDS}
    (own_library / identity.SHARED["schedule"]).write_text("REFACTORED = True")
    forget()
    assert not any(identity.is_listed(kind) for kind in identity.KINDS)
    assert all(identity.numbers_of(kind) != before[kind] for kind in identity.KINDS)
    identity.list_code("same", "for the test")
    forget()
    assert {kind: identity.numbers_of(kind) for kind in identity.KINDS} == before


def test_new_numbers_make_new_runs_of_the_kinds_that_changed(own_library):
    before = {kind: identity.numbers_of(kind) for kind in identity.KINDS}
    (own_library / trainers.named("fairseq", "classification").code["adam"]).write_text("OTHER = True")
    forget()
    identity.list_code("new", "for the test")
    forget()
    changed = {kind for kind in identity.KINDS if identity.numbers_of(kind) != before[kind]}
    assert changed == {kind for kind in identity.KINDS if kind.startswith("fairseq ")}
    assert {"fairseq classification", "fairseq regression"} < changed < {*identity.KINDS}
    assert all(identity.is_listed(kind) for kind in identity.KINDS)


def test_the_present_code_is_listed():
    """Else users' runs would be trained anew: see the docstring of `seedbed.running.identity`."""
    assert [kind for kind in identity.KINDS if not identity.is_listed(kind)] == []
