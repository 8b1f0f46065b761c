"""
Encoders of the format auto, for Transformers alone: conversion, token ids by their own tokenizer, and their printout.

Needs: a fetched source and prepared splits. Makes: <models>/{model}/ with a Hugging Face folder and the model's
definition, and <data>/{dataset}/{model}/tokens/. These rules correspond to those of rules/checkpoints.smk and
rules/tokenize.smk. There is no parity gate, since no second framework trains these models.
"""


rule convert_encoder:
    """Read a model in a process without a network, check its files, and write its weights with its tokenizer."""
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
        "<logs>/convert_encoder/{model}.log",
    benchmark:
        "<benchmarks>/convert_encoder/{model}.tsv"
    wildcard_constraints:
        model=PLAN.models_in("auto"),
    priority: 10  # checks of every dataset and model come before any training
    conda:
        "../envs/transformers.yaml"
    threads: 1
    resources:
        mem_mb=4000,  # several copies of the weights: 1.1 GB measured for 114 M parameters
        runtime=30,  # minutes; 24 s measured for 114 M parameters
    params:
        model=PLAN.model,
        stamp=PLAN.model_stamp,
    script:
        "../scripts/convert_checkpoint.py"


rule tokenize_for_encoder:
    """Encode texts with the model's own tokenizer, and compare the ids with AutoTokenizer's on every text."""
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
        "<logs>/tokenize_for_encoder/{dataset}/{model}.log",
    benchmark:
        "<benchmarks>/tokenize_for_encoder/{dataset}/{model}.tsv"
    wildcard_constraints:
        dataset=PLAN.pattern("datasets", "encoder"),
        model=PLAN.models_in("auto"),
    priority: 10  # checks of every dataset and model come before any training
    conda:
        "../envs/transformers.yaml"
    threads: 1
    resources:
        mem_mb=2000,  # the texts and ids of all splits are in memory at once
        runtime=30,  # minutes; 6 s measured for 1,050 reviews, 3 s of them on the CPU
    script:
        "../scripts/tokenize_for_encoder.py"


rule print_encoder:
    """Write Transformers' printout of the classification model."""
    input:
        definition="<models>/{model}/model.json",
        config="<models>/{model}/huggingface/config.json",
    output:
        transformers="<models>/{model}/architecture_transformers.txt",
    log:
        "<logs>/print_encoder/{model}.log",
    benchmark:
        "<benchmarks>/print_encoder/{model}.tsv"
    wildcard_constraints:
        model=PLAN.models_in("auto"),
    conda:
        "../envs/transformers.yaml"
    threads: 1
    resources:
        mem_mb=2000,  # PyTorch; the model is built without weights
        runtime=10,  # minutes
    script:
        "../scripts/print_encoder.py"
