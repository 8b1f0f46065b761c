"""What reading and analysing results of other programs costs: seconds and memory, each in its own process.

    python benchmarks/outside.py FOLDER [--systems 10] [--seeds 10] [--examples 10000] [--score] [--analyse]

It writes FOLDER/outside.csv and FOLDER/outside.parquet, a row for each system, seed and example with label
and prediction (or with a score of nine digits), reads each of them with one thread, and prints a line a file.
`memory` is the peak less what the imports take; `memory.BYTES_A_ROW` of seedbed.outside comes from it. With
--analyse it also runs `seedbed analyse`, every two systems, with all files, on one thread.
"""

import argparse
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

LIBRARY = Path(__file__).resolve().parents[1] / "scripts"
READ = """
import resource, sys, time
sys.path.insert(0, sys.argv[1])
import pyarrow as pa
from seedbed.outside.read import read_results
pa.set_cpu_count(1)
imported = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
started = time.perf_counter()
(results,) = read_results(sys.argv[2])
seconds = time.perf_counter() - started
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
rows = sum(scores.size for scores in results.scores.values())
used = (peak - imported) * 2**20 / rows
print(f"{sys.argv[2]}: {rows:,} rows, {seconds:.2f} s, peak {peak:.0f} MiB, {used:.0f} bytes a row")
"""

ANALYSE = """
import resource, subprocess, sys, time
started = time.perf_counter()
command = [sys.executable, "-m", "seedbed", "analyse", sys.argv[2], "--output", sys.argv[3]]
environment = {"PYTHONPATH": sys.argv[1], "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
seconds = time.perf_counter() - started
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
print(f"{sys.argv[2]}: analysed in {seconds:.1f} s, peak {peak:.0f} MiB")
"""


def tables(systems: int, seeds: int, examples: int, score: bool):
    """The rows of each system in turn."""
    rng = np.random.default_rng(0)
    names = pa.array([f"example-{number:07d}" for number in range(examples)])
    labels = rng.integers(3, size=examples)
    classes = np.array(["negative", "neutral", "positive"])
    for system in range(systems):
        for seed in range(seeds):
            columns = {
                "system": pa.array([f"system-{system}"] * examples),
                "seed": pa.array(np.full(examples, seed)),
                "example": names,
            }
            if score:
                columns["score"] = pa.array(rng.random(examples).round(9))
            else:
                right = rng.random(examples) < 0.8
                columns["label"] = pa.array(classes[labels])
                columns["prediction"] = pa.array(classes[np.where(right, labels, (labels + 1) % 3)])
            yield pa.table(columns)


def write(folder: Path, systems: int, seeds: int, examples: int, score: bool) -> list[Path]:
    """Write both files, a part at a time."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / "outside.csv", folder / "outside.parquet"]
    writers = []
    for part in tables(systems, seeds, examples, score):
        if not writers:
            writers = [pyarrow.csv.CSVWriter(paths[0], part.schema), pq.ParquetWriter(paths[1], part.schema)]
        for writer in writers:
            writer.write_table(part)
    for writer in writers:
        writer.close()
    return paths


def main() -> None:
    """Write the files, and read each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--systems", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--examples", type=int, default=10_000)
    parser.add_argument("--score", action="store_true", help="a score instead of label and prediction")
    parser.add_argument("--analyse", action="store_true", help="every two systems, too, with all files")
    arguments = parser.parse_args()
    given = (arguments.systems, arguments.seeds, arguments.examples, arguments.score)
    for path in write(arguments.folder, *given):
        subprocess.run([sys.executable, "-c", READ, str(LIBRARY), str(path)], check=True)
        if arguments.analyse:
            output = str(arguments.folder / f"{path.suffix[1:]}_analysis")
            subprocess.run([sys.executable, "-c", ANALYSE, str(LIBRARY), str(path), output], check=True)


if __name__ == "__main__":
    main()
