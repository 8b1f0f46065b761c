"""
Generation: causal language models, fine-tuned fully, with LoRA or QLoRA, or not at all, on questions and answers;
and, for both tasks, the counts of trainable parameters.

Needs: fetched sources. Makes: the splits of questions, models with their tokenizers, prompts and answers as token ids,
and one run folder per dataset, model, init, recipe and seed, published in one rename. These rules correspond to
rules/prepare.smk, tokenize.smk, checkpoints.smk and finetune.smk for labelled texts. The rules of the two tasks never
match the same file, since their wildcards only match datasets and models of one task.
"""


rule prepare_questions:
    """Check a dataset of questions, draw missing splits, and write all splits with their prompts."""
    input:
        source=PLAN.dataset_source,
    output:
        train="<data>/{dataset}/train.jsonl",
        validation="<data>/{dataset}/validation.jsonl",
        test="<data>/{dataset}/test.jsonl",
        splits="<data>/{dataset}/splits.json",
        duplicates="<data>/{dataset}/duplicates.csv",
        fingerprint="<data>/{dataset}/fingerprint.json",
    log:
        "<logs>/prepare_questions/{dataset}.log",
    benchmark:
        "<benchmarks>/prepare_questions/{dataset}.tsv"
    wildcard_constraints:
        dataset=PLAN.pattern("datasets", "causal"),
    priority: 10  # checks of every dataset and model come before any training
    conda:
        "../envs/data.yaml"
    threads: 1
    resources:
        mem_mb=2000,  # the texts of all splits are in memory at once
        runtime=30,  # minutes, as for labelled texts
    params:
        dataset=PLAN.dataset,
        stamp=PLAN.dataset_stamp,
    script:
        "../scripts/prepare.py"


rule convert_causal_model:
    """Read a causal model in a process without a network, check its files, and write it with its tokenizer."""
    input:
        source=PLAN.model_source,
    output:
        weights="<models>/{model}/huggingface/model.safetensors",
        config="<models>/{model}/huggingface/config.json",
        tokenizer="<models>/{model}/huggingface/tokenizer.json",
        tokenizer_config="<models>/{model}/huggingface/tokenizer_config.json",
        definition="<models>/{model}/model.json",
        fingerprint="<models>/{model}/fingerprint.json",
    log:
        "<logs>/convert_causal_model/{model}.log",
    benchmark:
        "<benchmarks>/convert_causal_model/{model}.tsv"
    wildcard_constraints:
        model=PLAN.pattern("models", "causal"),
    priority: 10  # checks of every dataset and model come before any training
    conda:
        "../envs/transformers.yaml"
    threads: 1
    resources:
        mem_mb=4000,  # the weights as they are in the file: 1.1 GB for BLOOM-560m
        runtime=30,  # minutes
    params:
        model=PLAN.model,
        stamp=PLAN.model_stamp,
    script:
        "../scripts/convert_checkpoint.py"


rule tokenize_prompts:
    """Encode prompts and answers, end each answer, and treat overlong examples."""
    input:
        train="<data>/{dataset}/train.jsonl",
        validation="<data>/{dataset}/validation.jsonl",
        test="<data>/{dataset}/test.jsonl",
        tokenizer="<models>/{model}/huggingface/tokenizer.json",
        tokenizer_config="<models>/{model}/huggingface/tokenizer_config.json",
        definition="<models>/{model}/model.json",
    output:
        train="<data>/{dataset}/{model}/tokens/train.jsonl",
        validation="<data>/{dataset}/{model}/tokens/validation.jsonl",
        test="<data>/{dataset}/{model}/tokens/test.jsonl",
        statistics="<data>/{dataset}/{model}/tokens/statistics.json",
    log:
        "<logs>/tokenize_prompts/{dataset}/{model}.log",
    benchmark:
        "<benchmarks>/tokenize_prompts/{dataset}/{model}.tsv"
    wildcard_constraints:
        dataset=PLAN.pattern("datasets", "causal"),
    priority: 10  # checks of every dataset and model come before any training
    conda:
        "../envs/transformers.yaml"
    threads: 1
    resources:
        mem_mb=2000,  # the texts and ids of a split are in memory at once
        runtime=30,  # minutes
    params:
        dataset=PLAN.dataset,
    script:
        "../scripts/tokenize_prompts.py"


rule count_trainable:
    """Count the trainable parameters of each recipe, and compare them with the closed formula."""
    input:
        models=PLAN.per_model("huggingface/config.json"),
    output:
        table=table("trainable_parameters"),
    log:
        "<experiment>/logs/count_trainable.log",
    benchmark:
        "<experiment>/benchmarks/count_trainable.tsv"
    priority: 10  # checks of every dataset and model come before any training
    conda:
        "../envs/transformers.yaml"
    threads: 1
    resources:
        mem_mb=2000,  # PyTorch and peft; the models are built without weights
        runtime=15,  # minutes
    params:
        task=PLAN.task.name,
        recipes=PLAN.freezing,
        labels=PLAN.head_size,
    script:
        "../scripts/count_trainable.py"
