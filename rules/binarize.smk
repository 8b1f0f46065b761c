"""
Binarization: token pieces and labels in fairseq's binary format, numbers to predict as text.

Needs: the pieces of a dataset, its labels and the checkpoint's dictionary. Makes:
<data>/{dataset}/{model}/binarized/, published in one rename after fairseq has read back the right ids. The second
texts of pairs have a folder of their own, input1.
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
        **binarized_files("input0"),
    log:
        "<logs>/binarize/{dataset}/{model}.log",
    benchmark:
        "<benchmarks>/binarize/{dataset}/{model}.tsv"
    wildcard_constraints:
        dataset=PLAN.texts_of(1, "classes"),
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


use rule binarize as binarize_pairs with:
    output:
        **binarized_files("input0", "input1"),
    log:
        "<logs>/binarize_pairs/{dataset}/{model}.log",
    benchmark:
        "<benchmarks>/binarize_pairs/{dataset}/{model}.tsv"
    wildcard_constraints:
        dataset=PLAN.texts_of(2, "classes"),
        model=PLAN.models_in("fairseq", "huggingface"),


use rule binarize as binarize_numbers with:
    output:
        **binarized_files("input0", numbers=True),
    log:
        "<logs>/binarize_numbers/{dataset}/{model}.log",
    benchmark:
        "<benchmarks>/binarize_numbers/{dataset}/{model}.tsv"
    wildcard_constraints:
        dataset=PLAN.texts_of(1, "values"),
        model=PLAN.models_in("fairseq", "huggingface"),


use rule binarize as binarize_numbers_of_pairs with:
    output:
        **binarized_files("input0", "input1", numbers=True),
    log:
        "<logs>/binarize_numbers_of_pairs/{dataset}/{model}.log",
    benchmark:
        "<benchmarks>/binarize_numbers_of_pairs/{dataset}/{model}.tsv"
    wildcard_constraints:
        dataset=PLAN.texts_of(2, "values"),
        model=PLAN.models_in("fairseq", "huggingface"),
