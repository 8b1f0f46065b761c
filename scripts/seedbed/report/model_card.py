"""The model card of an exported run: README.md with the metadata that the Hugging Face hub reads.

Its numbers are those of the experiment: of the run, and the means of its cell with their interval. Seedbed
does not know licences and languages, so these are left to fill in.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seedbed.analysis.table_rows import SummaryRow, read_summary
from seedbed.core import checksums, wording
from seedbed.core.errors import SeedbedError
from seedbed.core.methods import METHODS
from seedbed.core.rows import TEST_SETS
from seedbed.core.tasks import LABEL_SETS, VALUES
from seedbed.core.wording import Words, fill
from seedbed.core.words import (
    NOTHING,
    code,
    level_text,
    metric_name,
    percent,
    short_number,
    value_range,
    value_text,
)
from seedbed.data.audit import read_audit
from seedbed.data.audit import warnings as audit_warnings
from seedbed.prediction.finished_runs import FinishedRun
from seedbed.report.documents.blocks import Block, Bullets, Code, Heading, Paragraph, Table
from seedbed.report.documents.markdown import to_markdown
from seedbed.report.parts import literal
from seedbed.report.sections_data import size_text

if TYPE_CHECKING:
    from seedbed.prediction.export import Exported

WORDS = Words("report/model_card")
TEXTS = wording.data("report/model_card")
MOST_LABELS = 20  # that are listed
EVERY, CLEAN = TEST_SETS


@dataclass(frozen=True)
class About:
    """What the model is, for the templates.

    Attributes:
        model, dataset, framework: names.
        method: of fine-tuning, in words.
        is_random: whether the weights were random before training.
        pairs: whether it takes pairs of texts.
        labels: whether it predicts labels; else numbers.
        several_labels: whether any number of labels may apply.
        shown, left_out: the first labels, and the number of others.
        ece: expected calibration error of the run's cell; empty where there is none.
    """

    model: str
    dataset: str
    framework: str
    method: str
    is_random: bool
    pairs: bool
    labels: bool
    several_labels: bool
    shown: Sequence[str]
    left_out: int
    ece: str


@dataclass(frozen=True)
class Origin:
    """Where a model comes from, for the templates: experiment, run, identity, device, versions, commit."""

    experiment: str
    run: str
    identity: str
    device: str
    versions: str
    commit: str


@dataclass(frozen=True)
class Card:
    """What a model card is made from.

    Attributes:
        run: the run.
        name: of the exported folder.
        summary: rows of summary.csv of its cell, not of the best recipe of a family.
        audit: rows of data_audit.csv of its dataset.
    """

    run: FinishedRun
    name: str
    summary: Sequence[SummaryRow]
    audit: Sequence[Mapping[str, Any]]

    def text(self, exported: "Exported") -> str:
        """README.md, with what the export was checked by."""
        return fill(TEXTS["metadata"], metrics=self._metrics) + "\n\n" + to_markdown(self._blocks(exported))

    @property
    def _metrics(self) -> list[str]:
        """The metrics of the run that the summary has, too, in its order."""
        return list(
            dict.fromkeys(row.metric for row in self.summary if row.metric in self.run.record["test"])
        )

    def _blocks(self, exported: "Exported") -> list[Block]:
        about = self._about
        return [
            Heading(code(self.name), 1),
            Paragraph(WORDS.say("lead", about)),
            _heading("use"),
            Code(fill(TEXTS["use"], name=self.name, labels=about.labels)),
            Paragraph(WORDS.say("use", about, exported.longest)),
            _heading("results"),
            self._results,
            Paragraph(WORDS.say("leaks", any(row.test_set != EVERY for row in self.summary))),
            _heading("data"),
            Bullets([size_text(about.dataset, self.audit), *map(literal, audit_warnings(self.audit))]),
            _heading("recipe"),
            _recipe(self.run.record["settings"]),
            _heading("limits"),
            Bullets(WORDS.items("limits", about, exported, exported.longest)),
            _heading("origin"),
            Bullets(WORDS.items("origin", self._origin)),
        ]

    @property
    def _about(self) -> About:
        run, labels = self.run, self.run.labels
        eces = [row.ece for row in self.summary if row.ece is not None and row.test_set == EVERY]
        return About(
            run.place.model,
            run.place.dataset,
            run.place.framework,
            METHODS[run.record["run"]["method"]].words,
            run.place.init == "random",
            run.takes_pairs,
            run.task.outputs != VALUES,
            run.task.outputs == LABEL_SETS,
            [code(label) for label in labels[:MOST_LABELS]],
            max(0, len(labels) - MOST_LABELS),
            percent(eces[0]) if eces else "",
        )

    @property
    def _results(self) -> Table:
        """Each metric of this run and of its cell."""
        words, first = TEXTS["results"], self.summary[0]
        chosen, record = self.run.record["selected"], self.run.record
        level = ""
        if first.interval and first.ci_method:  # "Student t over seeds, 0.95"
            level = level_text(float(first.ci_method.rpartition(", ")[2]))
        caption = WORDS.say(
            "results",
            first.n_seeds,
            len(self.run.test),
            level,
            chosen["epoch"],
            chosen["metric"],
            value_text(chosen["metric"], chosen["value"]),
        )
        rows = [self._row(metric, record["test"][metric]) for metric in self._metrics]
        return Table("results", list(words.values()), rows, caption, right=range(1, len(words)))

    def _row(self, metric: str, value: float) -> list[str]:
        found = {row.test_set: row for row in self.summary if row.metric == metric}
        every, clean = found[EVERY], found.get(CLEAN)
        low, high = every.interval or (None, None)
        return [
            metric_name(metric),
            value_text(metric, value),
            value_text(metric, every.mean),
            value_range(metric, low, high),
            value_text(metric, clean.mean) if clean else NOTHING,
            value_text(metric, every.bag_of_words),
            value_text(metric, every.majority_share),
        ]

    @property
    def _origin(self) -> Origin:
        record = self.run.record
        versions = [f"{name} {version}" for name, version in record["versions"].items() if version]
        return Origin(
            record["experiment"],
            self.run.place.name,
            record["identity"],
            record["device"],
            ", ".join(versions),
            record["git_commit"] or "",
        )


def _heading(key: str) -> Heading:
    return Heading(TEXTS["headings"][key])


def _recipe(settings: Mapping[str, Any]) -> Table:
    words = TEXTS["recipe"]
    rows = [[code(key), code(short_number(value))] for key, value in settings.items()]
    return Table("recipe", [words["setting"], words["value"]], rows)


def read(run: FinishedRun, name: str) -> Card:
    """What the card of a run is made from.

    Args:
        run: the run.
        name: of the exported folder.

    Raises:
        SeedbedError: the experiment is not finished, or does not have the run.
    """
    folder = run.place.experiment
    paths = [folder / "summary.csv", folder / "data_audit.csv"]
    if missing := [path for path in paths if not path.is_file()]:
        raise SeedbedError(
            "the experiment is not finished, and the model card says its results",
            where=str(missing[0]),
            hint="run the experiment to its end with make run",
        )
    checksums.compare(paths)
    cell = (run.place.dataset, run.place.model, run.place.framework, run.place.init, run.place.recipe)
    summary = [row for row in read_summary(paths[0]) if row.cell == cell and row.selection == "equal"]
    if not summary:
        raise SeedbedError(
            "the table of results does not have this run",
            where=str(paths[0]),
            found=f"no row of {run.place.name}",
            hint="run the experiment again, which makes its tables anew",
        )
    audit = [row for row in read_audit(paths[1]) if row["dataset"] == run.place.dataset]
    return Card(run, name, summary, audit)
