"""What a run ran on: the device that was asked for, or an error that says what to do."""

from types import SimpleNamespace

import pytest
import torch

from seedbed.core import waiting
from seedbed.core.errors import SeedbedError
from seedbed.running import gpu_memory, gpu_slots
from seedbed.training import hardware, stopwatch


@pytest.fixture
def pytorch(monkeypatch):
    """A PyTorch that is built for a version of CUDA or not, and sees GPUs or not."""
    monkeypatch.delenv(gpu_slots.HELD, raising=False)

    def make(cuda="13.0", sees=False):
        monkeypatch.setattr(torch.version, "cuda", cuda)
        monkeypatch.setattr(torch.cuda, "is_available", lambda: sees)

    return make


@pytest.mark.parametrize(
    ("wanted", "sees", "expected"),
    [
        ("auto", False, "cpu"),
        ("auto", True, "cuda"),
        ("cuda", True, "cuda"),
        ("cpu", True, "cpu"),
        ("cpu", False, "cpu"),
    ],
)
def test_the_device_is_the_one_asked_for(pytorch, wanted, sees, expected):
    pytorch(sees=sees)
    assert hardware.choose_device(wanted).type == expected


def test_cuda_without_a_gpu_is_an_error_for_people(pytorch, monkeypatch):
    pytorch()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    with pytest.raises(SeedbedError, match="PyTorch finds none") as caught:
        hardware.choose_device("cuda")
    assert "device: cuda" in caught.value.where
    assert "CUDA_VISIBLE_DEVICES '7'" in caught.value.found
    assert "nvidia-smi" in caught.value.hint
    assert "13.0" in caught.value.hint


def test_a_build_for_the_cpu_is_named(pytorch):
    pytorch(cuda=None)
    with pytest.raises(SeedbedError) as caught:
        hardware.choose_device("cuda")
    assert "TORCH=cuda" in caught.value.hint


def test_a_run_with_a_gpu_slot_does_not_train_on_the_cpu_in_silence(pytorch, monkeypatch):
    pytorch()
    monkeypatch.setenv(gpu_slots.HELD, "GPU-1111")
    with pytest.raises(SeedbedError) as caught:
        hardware.choose_device("auto")
    assert "GPU-1111" in caught.value.where
    assert hardware.choose_device("cpu").type == "cpu"  # asked for in so many words
    monkeypatch.setenv(gpu_slots.HELD, "fake0")
    assert hardware.choose_device("auto").type == "cpu"


def test_the_record_names_the_device_that_was_given(pytorch, monkeypatch):
    pytorch()
    alone = hardware.describe_hardware()
    assert alone["gpu_id"] is None
    monkeypatch.setenv(gpu_slots.HELD, "GPU-1111")
    monkeypatch.setenv(gpu_slots.PROCESSES, "3")
    without = hardware.describe_hardware()
    assert without["gpu_id"] == "GPU-1111"
    assert not {"processes_on_gpu", "mps"} & (alone.keys() | without.keys())  # nothing trains on it


def test_the_record_says_who_was_on_the_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: "Test Card")
    monkeypatch.setenv(gpu_slots.HELD, "GPU-1111")
    monkeypatch.setenv(gpu_slots.PROCESSES, "3")
    monkeypatch.setenv(gpu_memory.MPS_PIPE, "/pipe")
    shared = hardware.describe_hardware()
    assert [shared[key] for key in ("gpu_id", "processes_on_gpu", "mps")] == ["GPU-1111", 3, True]


def test_the_record_names_the_device_in_use_where_none_was_given(pytorch, monkeypatch):
    pytorch(sees=True)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: "Test Card")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: SimpleNamespace(uuid="22-33"))
    found = hardware.describe_hardware()
    assert found["gpus"] == ["Test Card"]
    assert found["gpu_id"] == "GPU-22-33"


def test_waiting_for_others_is_no_part_of_a_run_that_follows(monkeypatch):
    monkeypatch.setattr(stopwatch.Stopwatch, "_process_is_new", True)
    monkeypatch.setattr(stopwatch, "process_age", lambda: 1000.0)
    monkeypatch.setattr(waiting, "_seconds", 600.0)
    with waiting.counted():
        pass
    clock = stopwatch.Stopwatch("start_up")
    clock.switch("train")
    assert 400 <= clock.seconds["start_up"] < 700
    later = stopwatch.Stopwatch("start_up")
    later.switch("train")
    assert later.seconds["start_up"] < 300


@pytest.mark.parametrize("framework", ["fairseq", "transformers", "fused"])
def test_tf32_is_set_for_its_runs_alone(tmp_path, framework):
    """PyTorch keeps the setting for the whole process, in which a batch trains runs of several recipes."""
    from builders_stops import outcome
    from builders_training import make_fairseq_job, make_job, make_run

    make = make_fairseq_job if framework == "fairseq" else make_job
    if framework == "fairseq":
        from seedbed.training.fairseq import trainer
    elif framework == "transformers":
        from seedbed.training.transformers import classifier as trainer
    else:
        from seedbed.training.fused import trainer
    name = "transformers" if framework == "fused" else framework
    found = []
    for precision in ("float32", "tf32", "float32"):
        run = make_run(name, precision=precision, fused=[["random", 3, 3]])
        job = make(tmp_path, run, f"{precision}{len(found)}")
        trainer.train([job])
        assert torch.backends.cuda.matmul.allow_tf32 == (precision == "tf32")
        found.append(outcome(job))
    assert found[0] == found[1] == found[2]  # a CPU has float32 alone
