"""Whether tables, documents and the predictions of every trainer are byte for byte those that were approved.

    make golden          compare; exit code 1 where anything differs
    make golden-approve  take what is made now as approved: read the diff before you commit it

`approved/` holds the documents that people read, every branch of their templates, and what the trainers
predict; `hashes.txt`, in sha256sum's format, holds the SHA-256 of everything else. Sums of floats depend on
the instructions that a CPU has. So all is made with those of AVX2, on one thread. With another version of
PyTorch or kind of CPU, tables of numbers are compared within TOLERANCE; on another kind of CPU, the hashes
are not compared.
"""

import csv
import difflib
import hashlib
import math
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).parent
APPROVED, HASHES, MADE_WITH = HERE / "approved", HERE / "hashes.txt", HERE / "made_with.txt"
# approved as text, since people read them; of all else a hash is enough
READ = (
    "summary.md",
    "report.txt",
    "runs.csv",
    "summary.csv",
    "contrasts.csv",
    "contrasts.md",
    "comparison.md",
)
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "MKL_CBWR": "COMPATIBLE",  # the only path of MKL that CPUs of Intel and of AMD share
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "CUDA_VISIBLE_DEVICES": "",
    "MPLBACKEND": "Agg",
}
TOLERANCE = 1e-4
DIFF_LINES = 40


def make(folder: Path) -> None:
    """Make everything: documents/EXPERIMENT/, training/RUN/ and branches/TEMPLATE.txt."""
    processes = {}
    for name in ("documents", "training", "branches"):
        command = [sys.executable, str(HERE / f"{name}.py"), str(folder / name)]
        with open(folder / f"{name}.log", "wb") as log:
            processes[name] = subprocess.Popen(
                command, env={**os.environ, **ENVIRONMENT}, stdout=log, stderr=subprocess.STDOUT
            )
    for name, process in processes.items():
        if process.wait() != 0:
            sys.exit(f"{(folder / f'{name}.log').read_text(encoding='utf-8')}\n{name}.py failed")


def files_of(folder: Path) -> dict[str, Path]:
    """The files that count, by their names below `folder`."""
    made = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix != ".log")
    return {path.relative_to(folder).as_posix(): path for path in made}


def is_text(name: str) -> bool:
    """Whether a file is approved as text."""
    return name.startswith(("training/", "branches/")) or Path(name).name in READ


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def made_with() -> str:
    """What the bytes of predictions depend on, beside the code."""
    return f"{platform.machine()}, PyTorch {metadata.version('torch').partition('+')[0]}\n"


def approve(made: dict[str, Path]) -> None:
    """Take what was made as approved."""
    shutil.rmtree(APPROVED, ignore_errors=True)
    for name, path in made.items():
        if is_text(name):
            (APPROVED / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, APPROVED / name)
    lines = [f"{sha256(path)}  {name}\n" for name, path in made.items() if not is_text(name)]
    HASHES.write_text("".join(lines), encoding="utf-8")
    MADE_WITH.write_text(made_with(), encoding="utf-8")
    print(f"approved: {len(made)} files")


def differences(made: dict[str, Path]) -> list[str]:
    """What differs from what was approved, a text for each file."""
    hashes = dict(line.split("  ")[::-1] for line in HASHES.read_text(encoding="utf-8").splitlines())
    approved = files_of(APPROVED)
    before, now = MADE_WITH.read_text(encoding="utf-8"), made_with()
    as_numbers, same_cpu = before != now, before.split(",")[0] == now.split(",")[0]
    if as_numbers:
        print(f"numbers are compared within {TOLERANCE}: approved with {before}", end="")
    found = [f"{name}: is no longer made" for name in sorted({*hashes, *approved} - {*made})]
    for name, path in made.items():
        if name in approved:
            if as_numbers and path.suffix == ".csv":
                if not close(approved[name], path):
                    found.append(diff(name, approved[name], path))
            elif approved[name].read_bytes() != path.read_bytes():
                found.append(diff(name, approved[name], path))
        elif name not in hashes:
            found.append(f"{name}: is new")
        elif same_cpu and sha256(path) != hashes[name]:
            found.append(f"{name}: SHA-256 differs")
    return found


def close(expected: Path, found: Path) -> bool:
    """Whether two tables hold the same texts, and numbers within TOLERANCE."""
    rows = []
    for path in (expected, found):
        with open(path, encoding="utf-8", newline="") as stream:
            rows.append(list(csv.reader(stream)))
    return [len(row) for row in rows[0]] == [len(row) for row in rows[1]] and all(
        _same(a, b) for left, right in zip(*rows, strict=True) for a, b in zip(left, right, strict=True)
    )


def _same(a: str, b: str) -> bool:
    try:
        return math.isclose(float(a), float(b), rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    except ValueError:
        return a == b


def diff(name: str, expected: Path, found: Path) -> str:
    """The first lines of a unified diff."""
    texts = (path.read_text(encoding="utf-8").splitlines() for path in (expected, found))
    lines = list(difflib.unified_diff(*texts, f"approved/{name}", f"made/{name}", lineterm="", n=0))
    more = [f"... {len(lines) - DIFF_LINES} lines more"] if len(lines) > DIFF_LINES else []
    return "\n".join([*lines[:DIFF_LINES], *more])


def main(action: str) -> int:
    """The exit code of `check` or `approve`."""
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder))
        made = files_of(Path(folder))
        if action == "approve":
            approve(made)
            return 0
        found = differences(made)
    print(*found, sep="\n\n")
    print(f"golden: {len(made)} files, {len(found)} differ")
    return 1 if found else 0


if __name__ == "__main__":
    if sys.argv[1:] not in (["check"], ["approve"]):
        sys.exit(f"{sys.argv[0]}: say check or approve")
    sys.exit(main(sys.argv[1]))
