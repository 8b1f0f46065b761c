"""
Binarization: token pieces and labels in fairseq's binary format, numbers to predict as text.

Needs: the pieces of a dataset, its labels and the checkpoint's dictionary. Makes:
<data>/{dataset}/{model}/binarized/, published in one rename after fairseq has read back the right ids.
"""


rule binarize:
    """Run fairseq-preprocess on pieces and labels, and verify its output with fairseq's reader."""
    input:
        pieces=expand("<data>/{{dataset}}/{{model}}/tokens/{split}.pieces", split=SPLITS),
        tokens=expand("<data>/{{dataset}}/{{model}}/tokens/{split}.jsonl", split=SPLITS),
        labels=expand("<data>/{{dataset}}/{split}.label", split=SPLITS),
        classes="<data>/{dataset}/labels.json",
        dictionary="<models>/{model}/fairseq/dict.txt",
    output:
        dictionaries=expand(
            "<data>/{{dataset}}/{{model}}/binarized/{part}/dict.txt", part=["input0", "label"]
        ),
        files=expand(
            "<data>/{{dataset}}/{{model}}/binarized/{part}/{split}.{ending}",
            part=["input0", "label"],
            split=["train", "valid", "test"],
            ending=["bin", "idx"],
        ),
        summary="<data>/{dataset}/{model}/binarized/binarized.json",
    log:
        "<logs>/binarize/{dataset}/{model}.log",
    benchmark:
        "<benchmarks>/binarize/{dataset}/{model}.tsv"
    wildcard_constraints:
        dataset=PLAN.pattern("datasets", "classes"),
        model=PLAN.models_in("fairseq", "huggingface"),
    priority: 10  # checks of every dataset and model come before any training
    conda:
        "../envs/fairseq.yaml"
    threads: 1
    resources:
        mem_mb=2000,  # fairseq and torch take 0.3 GB, the data little
        runtime=30,  # minutes; 9 s measured for 4,000 reviews
    script:
        "../scripts/binarize.py"


use rule binarize as binarize_numbers with:
    output:
        dictionary="<data>/{dataset}/{model}/binarized/input0/dict.txt",
        files=expand(
            "<data>/{{dataset}}/{{model}}/binarized/input0/{split}.{ending}",
            split=["train", "valid", "test"],
            ending=["bin", "idx"],
        ),
        numbers=expand(
            "<data>/{{dataset}}/{{model}}/binarized/label/{split}.label",
            split=["train", "valid", "test"],
        ),
        summary="<data>/{dataset}/{model}/binarized/binarized.json",
    log:
        "<logs>/binarize_numbers/{dataset}/{model}.log",
    benchmark:
        "<benchmarks>/binarize_numbers/{dataset}/{model}.tsv"
    wildcard_constraints:
        dataset=PLAN.pattern("datasets", "values"),
        model=PLAN.models_in("fairseq", "huggingface"),
