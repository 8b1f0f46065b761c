"""
Encoders from checkpoints of fairseq or Transformers: conversion, parity of both frameworks, parameter counts.

Needs: a fetched source; for parity, the token ids of a dataset. Makes: <models>/{model}/ with a checkpoint
for fairseq, a Hugging Face folder with a fast tokenizer, the model's definition and its parameters; and, in the
folder of dataset and model, the result of the parity gate, which fine-tuning waits for.
"""


rule convert_checkpoint:
    """Read a checkpoint in a process without a network, check its files, and write it for both frameworks."""
    input:
        source=PLAN.model_source,
    output:
        checkpoint="<models>/{model}/fairseq/model.pt",
        dictionary="<models>/{model}/fairseq/dict.txt",
        subwords=directory("<models>/{model}/subwords"),
        weights="<models>/{model}/huggingface/model.safetensors",
        config="<models>/{model}/huggingface/config.json",
        tokenizer="<models>/{model}/huggingface/tokenizer.json",
        tokenizer_config="<models>/{model}/huggingface/tokenizer_config.json",
        definition="<models>/{model}/model.json",
        fingerprint="<models>/{model}/fingerprint.json",
    log:
        "<logs>/convert_checkpoint/{model}.log",
    benchmark:
        "<benchmarks>/convert_checkpoint/{model}.tsv"
    wildcard_constraints:
        model=PLAN.models_in("fairseq", "huggingface"),
    priority: 10  # checks of every dataset and model come before any training
    conda:
        "../envs/fairseq.yaml"
    threads: 1
    resources:
        mem_mb=4000,  # the file and several copies of its weights: 0.65 GB measured for RoBERTa-small
        runtime=30,  # minutes; 10 s measured for 22.8 M parameters
    params:
        model=PLAN.model,
        stamp=PLAN.model_stamp,
    script:
        "../scripts/convert_checkpoint.py"


rule check_parity:
    """Gate: compare token ids on every text, and hidden states of both frameworks on a sample."""
    input:
        texts=expand("<data>/{{dataset}}/{split}.jsonl", split=SPLITS),
        tokens=expand("<data>/{{dataset}}/{{model}}/tokens/{split}.jsonl", split=SPLITS),
        checkpoint=rules.convert_checkpoint.output.checkpoint,
        dictionary=rules.convert_checkpoint.output.dictionary,
        subwords=rules.convert_checkpoint.output.subwords,
        weights=rules.convert_checkpoint.output.weights,
        config=rules.convert_checkpoint.output.config,
        tokenizer=rules.convert_checkpoint.output.tokenizer,
        tokenizer_config=rules.convert_checkpoint.output.tokenizer_config,
        definition=rules.convert_checkpoint.output.definition,
    output:
        parity="<data>/{dataset}/{model}/parity.json",
    log:
        "<logs>/check_parity/{dataset}/{model}.log",
    benchmark:
        "<benchmarks>/check_parity/{dataset}/{model}.tsv"
    wildcard_constraints:
        dataset=PLAN.pattern("datasets", "encoder"),
        model=PLAN.models_in("fairseq", "huggingface"),
    priority: 20  # all training waits for it
    conda:
        "../envs/fairseq.yaml"
    threads: 1
    resources:
        mem_mb=4000,  # both models and a batch of states: 0.9 GB measured for RoBERTa-small
        runtime=30,  # minutes; 32 s measured for 4,000 reviews, hidden states of 200
    params:
        reviews=PLAN.config["checks"]["parity_reviews"],
        tolerance=PLAN.config["checks"]["parity_tolerance"],
    script:
        "../scripts/check_parity.py"


rule count_parameters:
    """Count a model's parameters by component; those of RoBERTa are compared with closed formulas."""
    input:
        weights=rules.convert_checkpoint.output.weights,
        definition=rules.convert_checkpoint.output.definition,
    output:
        table="<models>/{model}/parameters.csv",
    log:
        "<logs>/count_parameters/{model}.log",
    benchmark:
        "<benchmarks>/count_parameters/{model}.tsv"
    wildcard_constraints:
        model=PLAN.pattern("models", "encoder"),
    priority: 10  # checks of every dataset and model come before any training
    conda:
        "../envs/transformers.yaml"
    threads: 1
    resources:
        mem_mb=500,  # only the header of the weights is read
        runtime=10,  # minutes; under 1 s measured
    script:
        "../scripts/count_parameters.py"


rule print_architecture:
    """Write each framework's printout of the classification model."""
    input:
        definition=rules.convert_checkpoint.output.definition,
        dictionary=rules.convert_checkpoint.output.dictionary,
        config=rules.convert_checkpoint.output.config,
    output:
        fairseq="<models>/{model}/architecture_fairseq.txt",
        transformers="<models>/{model}/architecture_transformers.txt",
    log:
        "<logs>/print_architecture/{model}.log",
    benchmark:
        "<benchmarks>/print_architecture/{model}.tsv"
    wildcard_constraints:
        model=PLAN.models_in("fairseq", "huggingface"),
    conda:
        "../envs/fairseq.yaml"
    threads: 1
    resources:
        mem_mb=4000,  # fairseq draws random weights: 0.44 GB measured for RoBERTa-small
        runtime=10,  # minutes; 5 s measured for 22.8 M parameters
    script:
        "../scripts/print_architecture.py"
