"""Make the tables and documents of made-up experiments: python documents.py FOLDER

Each experiment is a folder, and each comparison of two; report.txt holds the words of report.html.
"""

import html.parser
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from unittest import mock

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS.parent / "scripts")]

import builders_report as builders  # noqa: E402
from synthetic import (  # noqa: E402
    LOSS_RATES,
    Synthetic,
    learning_rate_levels,
    loss_level,
    make_experiment,
    make_generation,
)
from synthetic_label_sets import make_label_sets  # noqa: E402
from synthetic_values import make_values  # noqa: E402

from seedbed.analysis import comparison  # noqa: E402
from seedbed.config.runs import Run  # noqa: E402
from seedbed.report import comparison_document, export, sources  # noqa: E402

COMPARED = {"confidence": 0.95, "replicates": 200, "bootstrap_seed": 0}


def plain(folder: Path) -> Synthetic:
    """Three seeds, both frameworks, one recipe."""
    return make_experiment(folder, seeds=[0, 1, 2])


def sweep(folder: Path) -> Synthetic:
    """Three learning rates, a collapsed run, curves of the test split."""
    return make_experiment(
        folder,
        accuracy=learning_rate_levels,
        recipe={"sweep": {"learning_rate": [1e-5, 1e-4, 3e-4]}},
        collapsed=["reviews/small/fairseq/random/lab.learning_rate=1e-05/seed2"],
        test_curves=True,
        seeds=[0, 1, 2],
    )


def two_of_each(folder: Path) -> Synthetic:
    """Two datasets, two models, two seeds, small splits, two leaked examples."""
    return make_experiment(
        folder,
        datasets=("books", "dvd"),
        models=("tiny", "small"),
        seeds=[0, 1],
        sizes={"validation": 20, "test": 80},
        leaked=["test-1", "test-2"],
    )


def one_seed(folder: Path) -> Synthetic:
    """One seed of one framework: nothing has an interval."""
    return make_experiment(folder, seeds=[0], frameworks=["fairseq"])


def generation(folder: Path) -> Synthetic:
    """Answers of a causal model: prompted, with LoRA, with QLoRA, fine-tuned in full."""
    return make_generation(folder, methods=("none", "lora", "qlora", "full"), rates=LOSS_RATES)


def nothing_learned(folder: Path) -> Synthetic:
    """Runs that are not above the majority class on one dataset; on the other a collapse decides."""
    return make_experiment(
        folder,
        accuracy=lambda run: 0.5 if run.dataset == "books" else {"pretrained": 0.95, "random": 0.6}[run.init],
        datasets=("books", "dvd"),
        collapsed=["dvd/small/transformers/random/lab/seed1"],
        seeds=[0, 1, 2],
        frameworks=["transformers"],
    )


def crossed(folder: Path) -> Synthetic:
    """Two init seeds with each of three data seeds, and a run that diverged."""
    return make_experiment(
        folder,
        diverged=["reviews/small/transformers/random/lab/seed1-2"],
        seeds={"init": [0, 1], "data": [0, 1, 2]},
        frameworks=["transformers"],
    )


def adapters(folder: Path) -> Synthetic:
    """Classes with full fine-tuning and with LoRA, from the pretrained init alone."""
    return make_experiment(
        folder,
        recipes={
            "adapter": {"method": "lora", "lora": {"task_type": "SEQ_CLS", "target_modules": ["query"]}}
        },
        inits=["pretrained"],
        seeds=[0, 1, 2],
        frameworks=["transformers"],
    )


def unbalanced(folder: Path) -> Synthetic:
    """A rare class, led by macro-F1: a sweep, leaked examples, a collapsed run and weak ones."""
    levels = {"pretrained": {1e-5: 0.8, 1e-4: 0.9}, "random": {1e-5: 0.72, 1e-4: 0.84}}
    return make_experiment(
        folder,
        metric="macro_f1",
        shares=(0.8, 0.2),
        accuracy=lambda run: levels[run.init][dict(run.swept)["learning_rate"]],
        recipe={"sweep": {"learning_rate": [1e-5, 1e-4]}},
        collapsed=["reviews/small/fairseq/random/lab.learning_rate=1e-05/seed2"],
        leaked=["test-1", "test-2"],
        seeds=[0, 1, 2],
    )


def correlated(folder: Path) -> Synthetic:
    """Three classes, led by Matthews correlation; no run of one dataset tells them apart."""
    return make_experiment(
        folder,
        metric="mcc",
        labels=("bad", "fair", "good"),
        shares=(0.6, 0.3, 0.1),
        accuracy=lambda run: 0.34 if run.dataset == "books" else {"pretrained": 0.9, "random": 0.6}[run.init],
        datasets=("books", "dvd"),
        seeds=[0, 1, 2],
        frameworks=["transformers"],
    )


def numbers(folder: Path) -> Synthetic:
    """Marks, by Pearson correlation: a sweep, leaked examples, a collapsed run and weak ones."""
    return make_values(
        folder,
        correlations={"pretrained": 0.8, "random": 0.1},
        recipe={"sweep": {"learning_rate": [1e-5, 1e-4]}},
        collapsed=["marks/small/fairseq/random/lab.learning_rate=1e-05/seed2"],
        leaked=["test-1", "test-2"],
        seeds=[0, 1, 2],
    )


def squared(folder: Path) -> Synthetic:
    """Marks, led by the mean squared error, with a run that diverged."""
    return make_values(
        folder,
        metric="mse",
        diverged=["marks/small/transformers/random/lab/seed1"],
        seeds=[0, 1, 2],
        frameworks=["transformers"],
    )


def label_sets(folder: Path) -> Synthetic:
    """Sets of labels of two datasets: a sweep, leaks, a collapsed run, one that diverged, and weak ones."""
    return make_label_sets(
        folder,
        levels={"pretrained": 1.5, "random": -0.1},
        datasets=("plots", "news"),
        recipe={"sweep": {"learning_rate": [1e-5, 1e-4]}},
        collapsed=["plots/small/transformers/random/lab.learning_rate=1e-05/seed2"],
        diverged=["news/small/transformers/random/lab.learning_rate=0.0001/seed1"],
        leaked=["test-1", "test-2"],
        seeds=[0, 1, 2],
    )


def train_sizes(folder: Path) -> Synthetic:
    """Sizes of training, each with two learning rates; a run collapsed."""
    sizes = {"train_size=10": 0.1, "train_size=40": 0.05}

    def accuracy(run: Run) -> float:
        level = {"pretrained": 0.84, "random": 0.76}[run.init] - sizes.get(run.recipe_family[4:], 0.0)
        return level - 0.02 * (dict(run.swept)["learning_rate"] == 1e-5)

    return make_experiment(
        folder,
        accuracy=accuracy,
        recipe={"sweep": {"learning_rate": [1e-5, 1e-4]}},
        train_sizes=[10, 40, "all"],
        seeds=[0, 1, 2],
        sizes={"validation": 40, "test": 120},
        collapsed=["reviews/small/fairseq/random/lab.learning_rate=0.0001.train_size=10/seed1"],
    )


EXPERIMENTS: tuple[Callable[[Path], Synthetic], ...] = (
    plain, sweep, two_of_each, one_seed, generation, nothing_learned, crossed, adapters, unbalanced,
    correlated, numbers, squared, label_sets, train_sizes,
)  # fmt: skip


class Words(html.parser.HTMLParser):
    """The words of a page, a line for each block."""

    BLOCKS = frozenset(
        ("p", "li", "h1", "h2", "h3", "h4", "td", "th", "tr", "summary", "figcaption", "dt", "dd", "pre")
    )  # fmt: skip
    HIDDEN = frozenset(["script", "style", "svg"])

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.hidden += tag in self.HIDDEN
        if tag in self.BLOCKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        self.hidden -= tag in self.HIDDEN
        if tag in self.BLOCKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self.hidden:
            self.parts.append(data)


def words(page: str) -> str:
    """What a reader sees of a page."""
    parser = Words()
    parser.feed(page)
    lines = (re.sub(r"\s+", " ", line).strip() for line in "".join(parser.parts).split("\n"))
    return "".join(f"{line}\n" for line in lines if line)


def write(make: Callable[[Path], Synthetic], target: Path) -> None:
    """Write what an experiment's tables and documents say into `target`."""
    made = make(Path("results"))
    builders.write_summary(made)
    tables = made.experiment / "tables"
    written = {
        f"{kind}_{ending}": tables / f"{kind}.{ending}"
        for kind in ("summary", "contrasts")
        for ending in ("csv", "md", "tex")
    }
    export.write_tables(made.outputs["summary"], made.outputs["contrasts"], made.plan.reporting(), written)
    builders.write_report(made)
    for path in sorted(made.experiment.rglob("*")):
        inside = path.relative_to(made.experiment)
        if path.is_file() and inside.parts[0] not in ("runs", "figures"):
            copy = target / inside
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    page = (target / "report.html").read_text(encoding="utf-8")
    (target / "report.txt").write_text(words(page), encoding="utf-8")


def compared_classes() -> comparison.Comparison:
    """Two sweeps of other rates, frameworks and seeds; one run of the second collapsed."""
    options = {"accuracy": learning_rate_levels, "sizes": {"validation": 40, "test": 120}}
    few = {"recipe": {"sweep": {"learning_rate": [1e-5, 1e-4]}}, "seeds": [0, 1, 2], **options}
    more = {"recipe": {"sweep": {"learning_rate": [1e-4, 3e-4]}}, "seeds": [0, 1, 2, 3], **options}
    collapsed = ["reviews/small/fairseq/random/lab.learning_rate=0.0001/seed1"]
    return compared(
        make_experiment(Path("of_a"), **few),
        make_experiment(Path("of_b"), **more, frameworks=["fairseq"], collapsed=collapsed),
    )


def compared_answers() -> comparison.Comparison:
    """LoRA beside LoRA with a lower loss, each from both inits."""
    options = {"methods": ("lora",), "inits": ["pretrained", "random"], "seeds": [0, 1, 2]}
    return compared(
        make_generation(Path("of_a"), **options),
        make_generation(Path("of_b"), loss=lambda run: loss_level(run) - 0.3, **options),
    )


def compared(*sides: Synthetic) -> comparison.Comparison:
    """The comparison of two experiments, in folders a and b."""
    folders = [Path(name) for name in "ab"]
    for made, folder in zip(sides, folders, strict=True):
        builders.aggregate(made)
        made.experiment.rename(folder)
    return comparison.compare_experiments(*folders, COMPARED)


COMPARISONS = (compared_classes, compared_answers)


def main(target: Path) -> None:
    """Make all experiments and comparisons."""
    for make in EXPERIMENTS:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            with mock.patch.object(sources, "git_commit", return_value="0" * 40):
                write(make, target / make.__name__)
            os.chdir("/")
    for compare in COMPARISONS:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            found = compare()
            (target / compare.__name__).mkdir()
            for ending in (".md", ".html"):
                text = comparison_document.render(found, ending)
                (target / compare.__name__ / f"comparison{ending}").write_text(text, encoding="utf-8")
            os.chdir("/")


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
