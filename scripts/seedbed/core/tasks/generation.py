"""An answer to a question, written by a causal model."""

from seedbed.core.tasks.task import ANSWERS, CAUSAL, Task, Words

TASK = Task(
    name="generation",
    meaning="an answer to a question",
    outputs=ANSWERS,
    model=CAUSAL,
    metrics=("loss", "perplexity", "token_accuracy"),
    loss="loss",
    selection="loss",
    tie_break="token_accuracy",
    final=("exact_match", "f1"),
    reported=("loss", "token_accuracy", "exact_match", "f1"),
    choices=(),
    formats=("causal",),
    rules={"transformers": "finetune_causal"},
    methods=("full", "lora", "qlora", "none"),
    adapter_type="CAUSAL_LM",
    settings=("loss_on", "gradient_checkpointing"),
    fuses_seeds=False,
    cuda_graphs=False,
    # BLOOM-560m takes 2.2 GB in float32, and PyTorch for a GPU 1.5; training all weights on the CPU takes
    # four times as much, which the third attempt gives
    memory=4000,
    memory_settings=("method", "batch_size", "gradient_checkpointing", "precision", "frozen_dtype"),
    less_memory="make batch_size, evaluation.batch_size or the dataset's max_tokens smaller,\n"
    "         set gradient_checkpointing: true, or train an adapter: with method qlora the frozen\n"
    "         weights take 4 bits each",
    packages=("tokenizers",),
    files_read=("tokenizer.json",),
    counted=("loss", "perplexity", "token_accuracy", "exact_match", "f1"),
    test_columns=("test_groups",),
    from_untrained=True,
    figure_titles={
        "data_audit": "The data: token lengths, duplicates and leaks",
        "expected_validation": "Expected best validation loss, by the number of settings tried",
        "learning_curves": "Loss and token accuracy while training, from the untrained model on",
        "test_curves": "Test loss while training (it selects nothing)",
        "time_and_memory": "Time, memory and trained parameters of the runs",
    },
    curves=(("train", "loss"), ("validation", "loss"), ("validation", "token_accuracy")),
    columns="init",
    series="recipe_family",
    sections=("answers",),
    files={
        **dict.fromkeys(("churn.csv", "never_right.csv", "calibration.csv", "confusion.csv")),
        **dict.fromkeys(("example_errors.csv", "example_gains.csv")),
        "report.html": "the same, and answers side by side, as one page that opens offline",
        "runs/": "answers, metrics and description of every run; `tensorboard --logdir` reads it",
    },
    words=Words(
        question="What does fine-tuning bring?",
        reference="reference answers",
        one_output="one answer",
        gives_one_output="give one answer",
        collapse="the answers to all questions are the same",
        constant="",
        baseline="better than the untrained model",
        side="method",
        drawn="what an adapter starts from",
        both_sides="all methods",
    ),
    example="test question",
)  # fmt: skip
