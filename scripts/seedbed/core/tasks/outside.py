"""What systems that Seedbed did not train were asked: the same fields as a task, as far as results tell.

Nothing is trained, so no config names these, and `TASKS` does not hold them.
"""

from dataclasses import replace

from seedbed.core.tasks.task import CLASSES, ENCODER, SCORES, Task, Words

OF_CLASSES = Task(
    name="predictions from outside",
    meaning="one of several labels for an example",
    outputs=CLASSES,
    model=ENCODER,
    metrics=("accuracy",),
    loss="",
    selection="accuracy",
    tie_break="accuracy",
    final=(),
    reported=("accuracy",),
    choices=(),
    formats=(),
    rules={},
    methods=(),
    adapter_type="",
    settings=(),
    fuses_seeds=False,
    cuda_graphs=False,
    memory=0,
    memory_settings=(),
    less_memory="",
    packages=(),
    files_read=(),
    counted=("accuracy",),
    test_columns=(),
    from_untrained=False,
    figure_titles={},
    curves=(),
    columns="framework",
    series="recipe_family",
    sections=(),
    files={},
    words=Words(
        question="Which system is better?",
        reference="labels",
        one_output="one class",
        gives_one_output="answer one class",
        collapse="one class is predicted throughout",
        constant="majority class",
        baseline="above the majority class",
        side="system",
        drawn="what a seed draws",
        both_sides="both systems",
    ),
    example="test example",
    told_by="system",
)
OF_SCORES = replace(
    OF_CLASSES, name="scores from outside", meaning="a score for an example", outputs=SCORES
)  # fmt: skip
OUTSIDE = {task.name: task for task in (OF_CLASSES, OF_SCORES)}
