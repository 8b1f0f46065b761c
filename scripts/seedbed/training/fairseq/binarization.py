"""Binarize token pieces and labels with fairseq-preprocess, and read them back to verify them."""

import contextlib
import logging
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from seedbed.core import imports
from seedbed.core.errors import SeedbedError
from seedbed.core.files import publish_folder, read_json, read_jsonl, write_json, write_text
from seedbed.core.printable import Lines
from seedbed.models.fairseq_launcher import prepare_import

log = logging.getLogger(__name__)

FAIRSEQ_SPLITS = {"train": "train", "validation": "valid", "test": "test"}


def binarize(
    pieces: Mapping[str, str | Path],
    labels: Mapping[str, str | Path],
    tokens: Mapping[str, str | Path],
    dictionary: str | Path,
    classes: str | Path,
    output: str | Path,
) -> dict[str, Any]:
    """Make the folder `output` with input0/, label/ and binarized.json, for fairseq's sentence_prediction.

    The files are made beside `output`, compared with the token ids and labels, and moved in one rename.

    Args:
        pieces: pieces of each split (train, validation, test), separated by spaces.
        labels: class index or number of each example, one per line, of each split.
        tokens: the expected token ids of each split, from tokenize_texts.
        dictionary: the checkpoint's dict.txt.
        classes: labels.json of the dataset; class k of the head is its k-th label. Without labels, those of
            the examples are numbers, which fairseq reads as text.
        output: the folder.

    Returns the content of binarized.json: the number of classes, if there are any; texts and tokens (with
        `</s>`) by split.

    Raises:
        SeedbedError: fairseq reads back other token ids or labels.
    """
    output = Path(output)
    count = len(read_json(classes).get("labels", ()))
    ready = output.with_name(f".{output.name}.part")
    shutil.rmtree(ready, ignore_errors=True)
    ready.mkdir(parents=True)
    try:
        run_preprocess(pieces, dictionary, ready / "input0")
        if count:
            _binarize_classes(labels, count, ready)
        else:
            _copy_numbers(labels, ready / "label")
        of_classes = {"classes": count} if count else {}
        summary = {**of_classes, "splits": check_binarized(ready, tokens, count)}
        write_json(ready / "binarized.json", summary)
        publish_folder(ready, output)
    finally:
        shutil.rmtree(ready, ignore_errors=True)
    log.info("binarized: %s", summary)
    return summary


def _binarize_classes(labels: Mapping[str, str | Path], count: int, ready: Path) -> None:
    label_dictionary = ready / "classes.txt"
    # one symbol a class in the declared order: left alone, fairseq numbers labels by how often they occur
    write_text(label_dictionary, "".join(f"{index} 1\n" for index in range(count)))
    run_preprocess(labels, label_dictionary, ready / "label")
    label_dictionary.unlink()


def _copy_numbers(labels: Mapping[str, str | Path], folder: Path) -> None:
    """fairseq reads numbers to predict as text, from SPLIT.label."""
    folder.mkdir()
    for split, name in FAIRSEQ_SPLITS.items():
        shutil.copyfile(labels[split], folder / f"{name}.label")


def run_preprocess(texts: Mapping[str, str | Path], dictionary: str | Path, folder: Path) -> None:
    """Run fairseq-preprocess --only-source on the splits, with a given dictionary."""
    prepare_import()
    with imports.uncollected():
        from fairseq import options
        from fairseq_cli import preprocess

    arguments = ["--only-source", "--srcdict", str(dictionary), "--destdir", str(folder), "--workers", "1"]
    for split, name in FAIRSEQ_SPLITS.items():
        arguments += [f"--{name}pref", _single_path(texts[split])]
    with _without_log_file(preprocess.logger, folder):
        preprocess.main(options.get_preprocessing_parser().parse_args(arguments))


def _single_path(path: str | Path) -> str:
    if "," in str(path):
        raise SeedbedError(
            "fairseq-preprocess reads a comma in a path as the end of the path",
            where=str(path),
            found=str(path),
            hint="set results in the config to a folder whose path has no comma",
        )
    return str(path)


@contextlib.contextmanager
def _without_log_file(logger: logging.Logger, folder: Path) -> Iterator[None]:
    # fairseq-preprocess adds a log file to its logger at each call, and never closes it
    before = list(logger.handlers)
    try:
        yield
    finally:
        for handler in [handler for handler in logger.handlers if handler not in before]:
            logger.removeHandler(handler)
            handler.close()
        (folder / "preprocess.log").unlink(missing_ok=True)


def check_binarized(
    folder: Path, tokens: Mapping[str, str | Path], classes: int
) -> dict[str, dict[str, int]]:
    """Read input0/ and label/ with fairseq's own loader and compare them with the token ids and labels.

    Args:
        folder: with input0/ and label/.
        tokens: the expected token ids and labels of each split.
        classes: how many there are; 0 where labels are numbers.

    Returns texts and tokens by split.

    Raises:
        SeedbedError: an example differs; the error names the first one.
    """
    counts = {}
    inputs = load_dictionary(folder / "input0")
    for split, name in FAIRSEQ_SPLITS.items():
        rows = read_jsonl(tokens[split])
        read = _read(folder / "input0" / name, inputs)
        # fairseq puts <s> before a text only in training (--init-token 0)
        _compare(split, "token ids", [row["ids"][1:] for row in rows], read, tokens[split])
        expected = [[row["label"]] for row in rows]
        if classes:
            read_classes = _read_classes(folder / "label", name)
            _compare(split, "classes", expected, read_classes, tokens[split])
            _check_classes(split, read_classes, classes, tokens[split])
        else:
            _compare(split, "numbers", expected, _read_numbers(folder / "label", name), tokens[split])
        counts[split] = {"texts": len(rows), "tokens": sum(map(len, read))}
    return counts


def _read_classes(folder: Path, name: str) -> list[list[int]]:
    labels = load_dictionary(folder)
    return [[number - labels.nspecial for number in ids[:-1]] for ids in _read(folder / name, labels)]


def _read_numbers(folder: Path, name: str) -> list[list[float]]:
    """As fairseq's sentence_prediction reads them with --regression-target."""
    lines = (folder / f"{name}.label").read_text(encoding="utf-8").splitlines()
    return [[float(value) for value in line.split()] for line in lines]


def load_dictionary(folder: Path) -> Any:
    """The dictionary of binarized data, as fairseq's sentence_prediction loads it (with `<mask>`)."""
    prepare_import()
    from fairseq.tasks.sentence_prediction import SentencePredictionTask

    return SentencePredictionTask.load_dictionary(str(folder / "dict.txt"))


def _read(prefix: Path, dictionary: Any) -> list[list[int]]:
    from fairseq.data import data_utils

    dataset = data_utils.load_indexed_dataset(str(prefix), dictionary)
    if dataset is None:
        raise SeedbedError("fairseq finds no binarized data", where=f"{prefix}.bin and {prefix}.idx")
    return [dataset[index].tolist() for index in range(len(dataset))]


def _compare(
    split: str, what: str, expected: Sequence[Sequence[Any]], read: Sequence[Sequence[Any]], where: str | Path
) -> None:
    if len(expected) != len(read):
        raise SeedbedError(
            f"fairseq reads back a wrong number of examples in the split {split!r}",
            where=str(where),
            found=f"{what}: {len(read)} examples, expected {len(expected)}",
            hint="remove the folder of the tokens to make it again",
        )
    for line, (wanted, found) in enumerate(zip(expected, read, strict=True), 1):
        if list(wanted) != list(found):
            raise SeedbedError(
                f"fairseq reads back wrong {what} in the split {split!r}",
                where=f"{where}, line {line}",
                found=Lines(f"\n    expected: {list(wanted)}\n    read:     {list(found)}"),
                hint="pieces, labels and token ids are not of the same data: remove the folder of the tokens",
            )


def _check_classes(split: str, read: Sequence[Sequence[int]], classes: int, where: str | Path) -> None:
    for line, (number,) in enumerate(read, 1):
        if not 0 <= number < classes:
            raise SeedbedError(
                f"a label of the split {split!r} is none of the {classes} classes",
                where=f"{where}, line {line}",
                found=number,
                hint="labels in the config must list every value of the label column",
            )
