"""Detect changed files: each rule records the SHA-256 of its outputs, and rules that read them compare.

The record of a rule is `.sha256/RULE` in the folder of its files, in the format of sha256sum, so anybody can
compare: `cd FOLDER && sha256sum --check .sha256/RULE`. Snakemake does not know the record, which moves with
its folder. Files without a record come from an older version; they are read, and the log says so.

Cost: `PYTHONPATH=scripts python -m seedbed.core.checksums PATH ...` compares files or folders and prints the
seconds. A run of RoBERTa-small (91 MiB) takes 0.06 s to hash its inputs, which its identity needs anyway,
0.001 s to compare and up to 0.01 s to record; aggregating 10,000 runs takes 2 s more.
"""

import functools
import logging
import os
import re
import sys
import time
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from seedbed.core import files
from seedbed.core.errors import SeedbedError
from seedbed.core.printable import Lines, one_line

FOLDER = ".sha256"
LEVELS = 3  # folders above a file that may have its record: models/MODEL for huggingface/config.json
_LINE = re.compile(r"([0-9a-f]{64})  (.+)")
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Written:
    """The record of a file.

    Attributes:
        sha256: in hexadecimal.
        rule: name of the rule that wrote the file.
        output: an output of the same job that Snakemake knows, for --forcerun.
    """

    sha256: str
    rule: str
    output: str


def sha256(path: str | Path) -> str:
    """The SHA-256 of a file, cached until the file is written again."""
    found = os.stat(path)
    # unlike st_mtime, st_ctime cannot be set to an earlier time
    version = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    return _sha256_of_version(str(path), version)


@functools.cache
def _sha256_of_version(path: str, version: tuple[int, ...]) -> str:
    return files.sha256(path)


# --- writing ---


def record(rule: str, paths: Sequence[str | Path]) -> None:
    """Record a job's outputs in their nearest common folder.

    Args:
        rule: the rule's name; only one job of the rule writes into that folder.
        paths: the job's outputs, a file first; a folder stands for all files in it.
    """
    folder = _folder_of(paths)
    written = [file for path in paths for file in _files(Path(path))]
    lines = {file.relative_to(folder).as_posix(): sha256(file) for file in written}
    for below in {parent for name in lines for parent in Path(name).parents}:
        names = {os.path.relpath(name, below) for name in lines}
        for other in _records(folder / below):
            if other != folder / FOLDER / rule:
                _disown(other, names)
    _write_lines(folder / FOLDER / rule, lines)


def forget(rule: str, paths: Sequence[str | Path]) -> None:
    """Remove the record of a rule before it writes its files again, since it may be killed in between."""
    (_folder_of(paths) / FOLDER / rule).unlink(missing_ok=True)


def _folder_of(paths: Sequence[str | Path]) -> Path:
    return Path(os.path.commonpath([Path(path).parent for path in paths]))


def _files(path: Path) -> list[Path]:
    return sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]


def _disown(record_of_other: Path, names: Container[str]) -> None:
    """Remove files from the record of another rule, since the last rule that wrote a file owns it."""
    before = _read_lines(record_of_other) or {}  # a damaged record stays until its own rule replaces it
    left = {name: found for name, found in before.items() if name not in names}
    if not left and before:
        record_of_other.unlink(missing_ok=True)
    elif left != before:
        _write_lines(record_of_other, left)


def _write_lines(path: Path, lines: Mapping[str, str]) -> None:
    files.write_text(path, "".join(f"{found}  {name}\n" for name, found in lines.items()))


# --- comparing ---


def compare(paths: Iterable[str | Path]) -> None:
    """Check that files are unchanged since their rules wrote them; missing files are ignored.

    Args:
        paths: of files; a folder stands for all files in it.

    Raises:
        SeedbedError: a file has changed or is empty, or its record is damaged.
    """
    records: dict[str, dict[str, Written]] = {}
    unknown = []
    for path in _files_at(paths):
        written = _find(path, records)
        if written is None:
            unknown.append(path)
        elif (found := sha256(path)) != written.sha256:
            raise _differs(path, found, written)
        if not os.path.getsize(path):
            raise _is_empty(path, written)
    if unknown:
        _say_once(
            f"not compared, since an older version wrote it without a SHA-256: {unknown[0]}"
            + (f", and {len(unknown) - 1} more files" if unknown[1:] else "")
        )


def _files_at(paths: Iterable[str | Path]) -> Iterator[str]:
    """The files that are there; of a folder all but Snakemake's own."""
    for path in (os.fspath(each) for each in paths):  # for 10,000 runs, pathlib would take most of the time
        if os.path.isfile(path):
            yield path
        elif os.path.isdir(path):
            yield from (str(file) for file in _files(Path(path)) if not file.name.startswith("."))


def changed(folder: Path, names: Iterable[str]) -> list[str]:
    """The files of a folder that differ from its own record; the record itself if it is damaged."""
    try:
        written = _read(folder, str(folder))
    except SeedbedError as error:
        return [error.where]
    return [name for name in names if name in written and sha256(folder / name) != written[name].sha256]


def _find(path: str, records: dict[str, dict[str, Written]]) -> Written | None:
    folder, name = os.path.split(path)
    for _ in range(LEVELS):
        if folder not in records:
            records[folder] = _read(Path(folder), path)
        if name in records[folder]:
            return records[folder][name]
        folder, last = os.path.split(folder)
        name = f"{last}/{name}"
    return None


def _read(folder: Path, wanted: str) -> dict[str, Written]:
    """The records of a folder by the files' relative paths; `wanted` is a file for the error."""
    found: dict[str, Written] = {}
    for place in _records(folder):
        lines = _read_lines(place)
        if lines is None:
            raise SeedbedError(
                "the record of a rule's files is damaged", where=str(place), hint=_remedy(wanted)
            )
        output = str(folder / next(iter(lines), ""))
        found |= {name: Written(digest, place.name, output) for name, digest in lines.items()}
    return found


def _records(folder: Path) -> list[Path]:
    try:
        names = sorted(os.listdir(folder / FOLDER))
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [folder / FOLDER / name for name in names if not name.startswith(".")]  # skip unfinished ones


def _read_lines(place: Path) -> dict[str, str] | None:
    """SHA-256 by path; empty if the record was removed meanwhile, None if it is damaged."""
    try:
        lines = place.read_bytes().decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return {}
    matches = [match for line in lines if (match := _LINE.fullmatch(line))]
    return {match[2]: match[1] for match in matches} if 0 < len(lines) == len(matches) else None


def _differs(path: str, found: str, written: Written) -> SeedbedError:
    return SeedbedError(
        "a file was changed or damaged since its rule wrote it",
        where=f"{path}, written by rule {written.rule}",
        found=f"SHA-256 {found[:12]}…; the rule wrote {written.sha256[:12]}…",
        hint=_remedy(written.output),
    )


def _is_empty(path: str, written: Written | None) -> SeedbedError:
    hint = f"rule {written.rule} wrote it empty: see its log and its inputs" if written else _remedy(path)
    return SeedbedError("an input file is empty", where=path, hint=hint)


def _remedy(output: str) -> str:
    return Lines(
        f"make it again: run the same command with this at its end:\n         --forcerun {one_line(output)}"
    )


@functools.cache
def _say_once(text: str) -> None:
    log.info("%s", text)


def main(paths: Sequence[str]) -> int:
    """Compare files and print the time of hashing alone and of comparing."""
    chosen = [file for path in paths for file in _files(Path(path)) if FOLDER not in file.parts]
    try:
        start = time.perf_counter()
        for path in chosen:
            files.sha256(path)
        hashed = time.perf_counter() - start
        compare(chosen)
        compared = time.perf_counter() - start - hashed
    except (SeedbedError, OSError) as error:
        print(f"ERROR: {error}", file=sys.stderr)
        return 1
    size = sum(path.stat().st_size for path in chosen) / 2**20
    print(f"{len(chosen)} files, {size:.1f} MiB: hashed in {hashed:.3f} s, compared in {compared:.3f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
