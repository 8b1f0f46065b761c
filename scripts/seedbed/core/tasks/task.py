"""A task as plain data: all in which one task differs from another.

Code asks for these fields and never for a task's name. What a model returns for an example is one of a few
kinds (`CLASSES`, `ANSWERS`), for each of which there is code that trains, measures and reads it; a task with
outputs of a new kind needs such code, too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from seedbed.core.tasks.metrics import METRICS

CLASSES = "classes"  # one of several classes, with a probability for each
ANSWERS = "answers"  # a text that the model writes, and the loss of each token of the reference


@dataclass(frozen=True)
class Words:
    """How people speak of a task, in summary, report and figures.

    Attributes:
        question: title of the summary.
        reference: what outputs are held against, as a plural noun.
        one_output: what a collapsed run gives for all examples, as a noun.
        gives_one_output: the same as a verb in the plural.
        collapse: the same as a sentence, without its end.
        baseline: what a run that learned something is.
        side: the axis of the grid whose sides are compared first: init or method.
        drawn: what a seed draws before training.
        both_sides: the sides, in words.
    """

    question: str
    reference: str
    one_output: str
    gives_one_output: str
    collapse: str
    baseline: str
    side: str
    drawn: str
    both_sides: str


@dataclass(frozen=True)
class Task:
    """All in which a task differs from others.

    Attributes:
        name: as in the config.
        meaning: what is predicted, for messages.
        outputs: CLASSES or ANSWERS.

        metrics: measured at every evaluation, from the model's outputs.
        selection, tie_break: the metric that picks the checkpoint on validation, and the one that settles
            ties.
        final: metrics of the selected checkpoint alone, since they take long: of generated answers.
        reported: test metrics that tables compare; the first is the one that answers lead with.

        formats: formats of models that it takes.
        rules: the rule that fine-tunes, by framework; a framework without one does not train the task.
        methods: of recipes.
        adapter_type: what peft calls it.
        settings: keys of recipes that no other task uses.
        fuses_seeds: whether `fused_seeds` can be on.
        cuda_graphs: whether `cuda_graphs` has an effect.
        memory: MiB of a run's process, beside what is on a GPU.
        memory_settings: keys of recipes that a run's memory depends on.
        less_memory: what makes it smaller, for messages.
        packages: packages whose version may change a number, beside those of all runs.
        files_read: files of a model's folder that trainers read, beside those of all runs.

        counted: test metrics that are counted on each test set.
        test_columns: columns of runs.csv for each test set that no other task has.
        from_untrained: whether the model is evaluated before training, and runs are held to that.

        figure_titles: titles of figures that differ from those of other tasks.
        curves: panels of the learning curves: (split, metric), from top to bottom.
        columns, series: the columns of runs.csv that have a column of panels, and a look, for each value.
        sections: sections of the report that not every task has.
        files: descriptions in the summary of files that differ from those of other tasks; None for a file
            that the task does not have.
        words: how people speak of it.
    """

    name: str
    meaning: str
    outputs: str

    metrics: tuple[str, ...]
    selection: str
    tie_break: str
    final: tuple[str, ...]
    reported: tuple[str, ...]

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

    @property
    def has_classes(self) -> bool:
        """Whether models choose one of several classes."""
        return self.outputs == CLASSES

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
        """+1 where more of the selection metric is better, -1 where less is."""
        return METRICS[self.selection].direction

    @property
    def tie_break_direction(self) -> int:
        """+1 where more of the tie-break metric is better, -1 where less is."""
        return METRICS[self.tie_break].direction
