"""Jobs and finished runs that cost nothing: plain files, no PyTorch."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from seedbed.core import files, locks
from seedbed.running.jobs import Job, job_of_run

SCRIPTS = Path(__file__).parents[1] / "scripts"


def make_job(folder: Path, seed: int = 0, **run: Any) -> Job:
    """A Transformers job in results/small below `folder`; its inputs are made where they are missing."""
    params = {
        "dataset": "books", "model": "tiny", "framework": "transformers", "init": "random", "recipe": "quick",
        "init_seed": seed, "data_seed": seed, "keep_model": False, "device": "cpu", "cuda_graphs": False,
        "task": "classification", "method": "full",
        "settings": {
            "family": "quick", "batch_size": 8, "max_positions": None, "precision": "float32",
            "learning_rate": 1e-3,
        },
        **run,
    }  # fmt: skip
    job = job_of_run(params, folder / "results/small", 1, {"interval": 60, "max_share": 0.02})
    inputs = [*(job.tokens / f"{split}.jsonl" for split in ("train", "validation", "test"))]
    inputs += [job.model, job.weights / "model.safetensors", job.weights / "config.json"]
    for path in inputs + [job.labels] * (job.labels is not None):
        if not path.exists():
            files.write_text(path, f"content of {path.name}\n")
    return job


def finish(job: Job, note: str = "") -> Path:
    """The finished run folder of a job, ready to be published; `note` tells two of them apart."""
    ready = job.work / "run"
    files.write_text(ready / "metrics.csv", "step,epoch\n")
    files.write_text(ready / "predictions.csv", "split,example\n")
    files.write_text(ready / "tensorboard" / "events.out.tfevents.1", "events")
    told = {"updates": 4, "total_updates": 4, "diverged": False, "differences": []}
    files.write_json(ready / "run.json", {"identity": job.identity, "note": note, **told})
    return ready


def note_of(folder: Path) -> str:
    """What `finish` wrote down."""
    return files.read_json(folder / "run.json")["note"]


def damage(path: Path, content: bytes) -> None:
    """Write another content in place; the file's time of change stays."""
    times = path.stat()
    with open(path, "r+b") as stream:
        stream.truncate(0)
        stream.write(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def remove_outputs(job: Job) -> None:
    """Delete what a job's rule declares, one by one, as Snakemake does before it starts the job."""
    for name in ("metrics.csv", "predictions.csv", "run.json"):
        (job.target / name).unlink()
    for path in (job.target / "tensorboard").iterdir():
        path.unlink()
    (job.target / "tensorboard").rmdir()


def run_python(code: str, *arguments: object, **options: Any) -> subprocess.Popen:
    """Start Python with the library on its path, and with pipes of text."""
    head = f"import sys; sys.path[:0] = [{str(SCRIPTS)!r}, {str(Path(__file__).parent)!r}]\n"
    return subprocess.Popen(
        [sys.executable, "-c", head + code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        **options,
    )


def let_end_when_looked_at(twin: subprocess.Popen, monkeypatch: Any) -> None:
    """Write a line to a process, which waits for it, when this one first looks whose a run is."""
    look = locks.holder

    def holder(path: Path) -> Any:
        if not twin.stdin.closed:
            twin.stdin.write("\n")
            twin.stdin.close()
        return look(path)

    monkeypatch.setattr(locks, "holder", holder)
