"""A task as plain data: all differences between tasks.

Code asks for these fields and never for a task's name. Each kind of output (`CLASSES`, `LABEL_SETS`,
`VALUES`, `ANSWERS`) has its own code to train, measure and read it, in a module of each package that a table
by kind of output names; a task with a new kind of output needs such code, too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from seedbed.core.tasks.metrics import METRICS

CLASSES = "classes"  # one of several classes, with a probability for each
LABEL_SETS = "label_sets"  # any number of several labels, with a probability for each
VALUES = "values"  # a number
SCORES = "scores"  # of results from outside: a score for each example, or for each run alone
ANSWERS = "answers"  # a text that the model writes, and the loss of each token of the reference
ENCODER = "encoder"  # models with a head on an encoder; their datasets are labelled texts with a labels.json
CAUSAL = "causal"  # models that write; their datasets are questions


@dataclass(frozen=True)
class Words:
    """The words of a task in summary, report and figures.

    Attributes:
        question: title of the summary.
        reference: the expected outputs, as a plural noun.
        one_output: the output of a collapsed run for all examples, as a noun.
        gives_one_output: the same as a verb in the plural.
        collapse: the same as a sentence without a full stop.
        constant: the answer that needs no text, which runs have to beat; empty where they are held to others.
        baseline: the property of a run that learned something.
        side: the axis of the grid whose sides are compared first: init or method.
        drawn: the object that a seed draws before training.
        both_sides: the sides, in words.
    """

    question: str
    reference: str
    one_output: str
    gives_one_output: str
    collapse: str
    constant: str
    baseline: str
    side: str
    drawn: str
    both_sides: str


@dataclass(frozen=True)
class Task:
    """All differences between one task and others.

    Attributes:
        name: its name in the config.
        meaning: the predicted output, for messages.
        outputs: CLASSES, LABEL_SETS, VALUES or ANSWERS.
        model: ENCODER or CAUSAL.

        metrics: measured at every evaluation, from the model's outputs.
        loss: the one of them that training makes smaller.
        selection, tie_break: the metrics that select the checkpoint on validation, and that break ties.
        final: slow metrics, measured only for the selected checkpoint: of generated answers.
        reported: test metrics that tables compare; the first one is the main metric.
        choices: metrics that a dataset may choose as the main one, beside the F1 of one of its classes.
        chosen_metric: the chosen one; None: the task's own.

        formats: formats of models that the task takes.
        rules: the rule that fine-tunes, by framework; other frameworks cannot train the task.
        methods: methods of recipes that the task takes.
        adapter_type: peft's name of the task.
        settings: keys of recipes that no other task uses.
        fuses_seeds: whether `fused_seeds` can be on.
        cuda_graphs: whether `cuda_graphs` has an effect.
        memory: MiB of a run's process, without GPU memory.
        memory_settings: keys of recipes that a run's memory depends on.
        less_memory: advice for less memory, for messages.
        packages: further packages whose version may change a number.
        files_read: further files of a model's folder that trainers read.

        counted: test metrics that are counted on each test set.
        test_columns: columns of runs.csv for each test set that no other task has.
        from_untrained: whether the model is evaluated before training, as a baseline of its runs.

        figure_titles: titles of figures that differ from those of other tasks.
        curves: panels of the learning curves: (split, metric), from top to bottom.
        columns, series: columns of runs.csv with a column of panels, and with a look, for each value.
        example: what a test set consists of, as a noun.
        told_by: what the recipes of tables are for people: a recipe, or a system of results from outside.
        sections: sections of the report that not every task has.
        files: descriptions in the summary of files that differ from those of other tasks; None for a file
            that the task does not have.
        words: the task's words for people.
    """

    name: str
    meaning: str
    outputs: str
    model: str

    metrics: tuple[str, ...]
    loss: str
    selection: str
    tie_break: str
    final: tuple[str, ...]
    reported: tuple[str, ...]
    choices: tuple[str, ...]

    formats: tuple[str, ...]
    rules: Mapping[str, str] = field(hash=False)
    methods: tuple[str, ...]
    adapter_type: str
    settings: tuple[str, ...]
    fuses_seeds: bool
    cuda_graphs: bool
    memory: int
    memory_settings: tuple[str, ...]
    less_memory: str
    packages: tuple[str, ...]
    files_read: tuple[str, ...]

    counted: tuple[str, ...]
    test_columns: tuple[str, ...]
    from_untrained: bool

    figure_titles: Mapping[str, str] = field(hash=False)
    curves: tuple[tuple[str, str], ...]
    columns: str
    series: str
    sections: tuple[str, ...]
    files: Mapping[str, str | None] = field(hash=False)
    words: Words
    example: str = "test text"
    told_by: str = "recipe"
    chosen_metric: str | None = None

    def measured_by(self, metric: str | None) -> Self:
        """The task with another main metric, which selects the checkpoint; None: the task's own.

        All other choices are measured and reported beside it.
        """
        if metric is None:
            return self
        reported = (metric, *(name for name in self.choices if name != metric))
        renamed = ((split, metric if name == self.selection else name) for split, name in self.curves)
        curves = tuple(dict.fromkeys(renamed))
        return replace(
            self,
            metrics=tuple(dict.fromkeys((*reported, self.tie_break))),
            selection=metric,
            reported=reported,
            counted=reported,
            curves=curves,
            chosen_metric=metric,
        )

    @property
    def kinds(self) -> tuple[str, str]:
        """What rules and files may belong to: its outputs and its models."""
        return self.outputs, self.model

    @property
    def has_labels(self) -> bool:
        """Whether its datasets are labelled texts, with a labels.json and a baseline of counted words."""
        return self.model == ENCODER

    @property
    def is_calibrated(self) -> bool:
        """Whether its outputs have probabilities, which are held to how often they come true."""
        return "calibration" in self.sections

    @property
    def has_one_metric(self) -> bool:
        """Whether tables and figures show a single metric."""
        return len(self.reported) == 1

    @property
    def writes_answers(self) -> bool:
        """Whether models write texts."""
        return self.outputs == ANSWERS

    @property
    def frameworks(self) -> tuple[str, ...]:
        """The frameworks that train it."""
        return tuple(self.rules)

    @property
    def direction(self) -> int:
        """+1 if more of the selection metric is better, -1 if less is."""
        return METRICS[self.selection].direction

    @property
    def tie_break_direction(self) -> int:
        """+1 if more of the tie-break metric is better, -1 if less is."""
        return METRICS[self.tie_break].direction
