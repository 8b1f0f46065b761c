"""The lab's way with fairseq: python plain_fairseq.py REPORT ARGUMENTS of fairseq-train

`fairseq-train` itself, behind nothing but what lets fairseq be imported on a current Python. Its log lines
tell the phases; the tokens of its training batches are counted as they pass.

    python plain_fairseq.py --cut BINARIZED TARGET LIMIT

makes a copy of binarized data whose texts have at most LIMIT tokens, <s> and </s> among them.
"""

import logging
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from phases import Observer

from seedbed.models.fairseq_launcher import prepare_import

prepare_import()

import torch  # noqa: E402

EVALUATED = re.compile(r"epoch +(\d+) \| .*on '(\w+)' subset \|.* loss ([\d.naif]+) ")
NAMES = {"valid": "validation", "test": "test"}


class LogReader(logging.Handler):
    """Tells the observer what fairseq's log says.

    Attributes:
        right: examples of each batch of the evaluation that were classified right; the log rounds accuracies.
        seen: how many examples they had.
    """

    def __init__(self, observer: Observer):
        super().__init__()
        self.observer, self.right, self.seen = observer, [], 0

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if text.startswith("Start iterating over samples"):
            self.observer.clock.switch("train")
        elif text.startswith("begin validation on"):
            self.observer.clock.switch("evaluate")
            self.right, self.seen = [], 0
        elif match := EVALUATED.match(text):
            epoch, split, loss = match.groups()
            while len(self.observer.epochs) < int(epoch):
                self.observer.epochs.append({})
            accuracy = sum(map(int, self.right)) / self.seen
            values = {"accuracy": accuracy, "loss": float(loss)}
            self.observer.epochs[int(epoch) - 1][NAMES[split]] = values


def train(report: str, arguments: list[str]) -> None:
    """Run `fairseq-train` with these arguments, and write what was observed."""
    observer = Observer()
    import fairseq_cli.train
    from fairseq.tasks.sentence_prediction import SentencePredictionTask

    reader = LogReader(observer)
    logging.getLogger().addHandler(reader)  # fairseq has set up its own by now
    step, valid_step = SentencePredictionTask.train_step, SentencePredictionTask.valid_step

    def train_step(task: Any, sample: Any, *args: Any, **kwargs: Any) -> Any:
        observer.count(
            int(sample["nsentences"]), int(sample["ntokens"]), sample["net_input"]["src_tokens"].numel()
        )
        return step(task, sample, *args, **kwargs)

    def count_evaluated(task: Any, sample: Any, *args: Any, **kwargs: Any) -> Any:
        observer.evaluated += int(sample["nsentences"])
        told = valid_step(task, sample, *args, **kwargs)
        reader.right.append(told[2]["ncorrect"])
        reader.seen += int(sample["nsentences"])
        return told

    SentencePredictionTask.train_step = train_step
    SentencePredictionTask.valid_step = count_evaluated
    # fairseq sets the peak back after every update; the report has that of the whole run
    torch.cuda.reset_peak_memory_stats = lambda device=None: None
    sys.argv = ["fairseq-train", *arguments]
    fairseq_cli.train.cli_main()
    observer.write(report, {"command": sys.argv})


def cut(source: Path, target: Path, limit: int) -> None:
    """Copy binarized data with texts of at most `limit` tokens, of which the last stays </s>."""
    from fairseq.data import data_utils, indexed_dataset

    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    from fairseq.data import Dictionary

    words = len(Dictionary.load(str(source / "input0" / "dict.txt")))
    for split in ("train", "valid", "test"):
        texts = data_utils.load_indexed_dataset(str(source / "input0" / split))
        path = str(target / "input0" / split)
        builder = indexed_dataset.make_builder(f"{path}.bin", impl="mmap", vocab_size=words)
        for index in range(len(texts)):
            ids = texts[index]
            # <s> is put before it later on
            builder.add_item(ids if len(ids) < limit else torch.cat([ids[: limit - 2], ids[-1:]]))
        builder.finalize(f"{path}.idx")


if __name__ == "__main__":
    if sys.argv[1] == "--cut":
        cut(Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
    else:
        train(sys.argv[1], sys.argv[2:])
