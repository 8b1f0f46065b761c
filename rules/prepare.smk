"""
Datasets of labelled texts: check the files of a source, write the splits, and train a bag-of-words baseline.

Needs: a fetched source. Makes: <data>/{dataset}/ with the splits as JSON lines and as fairseq's text and
label files, the labels, the origins of the splits, the duplicates, the fingerprint of the definition, and the
accuracy of the baseline.
"""


rule prepare:
    """Check a dataset, draw its validation split if none is given, and write the splits."""
    input:
        source=PLAN.dataset_source,
    output:
        train="<data>/{dataset}/train.jsonl",
        validation="<data>/{dataset}/validation.jsonl",
        test="<data>/{dataset}/test.jsonl",
        train_text="<data>/{dataset}/train.text",
        validation_text="<data>/{dataset}/validation.text",
        test_text="<data>/{dataset}/test.text",
        train_label="<data>/{dataset}/train.label",
        validation_label="<data>/{dataset}/validation.label",
        test_label="<data>/{dataset}/test.label",
        labels="<data>/{dataset}/labels.json",
        splits="<data>/{dataset}/splits.json",
        duplicates="<data>/{dataset}/duplicates.csv",
        fingerprint="<data>/{dataset}/fingerprint.json",
    log:
        "<logs>/prepare/{dataset}.log",
    benchmark:
        "<benchmarks>/prepare/{dataset}.tsv"
    wildcard_constraints:
        dataset=PLAN.pattern("datasets", "encoder"),
    priority: 10  # checks of every dataset and model come before any training
    conda:
        "../envs/data.yaml"
    threads: 1
    resources:
        mem_mb=2000,  # the texts of all splits are in memory at once
        runtime=30,  # minutes; 6 s measured for 4,000 reviews, duplicates among them
    params:
        dataset=PLAN.dataset,
        stamp=PLAN.dataset_stamp,
    script:
        "../scripts/prepare.py"


rule bag_of_words:
    """Train logistic regression on words and word pairs, the baseline of a pretrained model."""
    input:
        train=rules.prepare.output.train,
        validation=rules.prepare.output.validation,
        test=rules.prepare.output.test,
        duplicates=rules.prepare.output.duplicates,
    output:
        table="<data>/{dataset}/bag_of_words.csv",
    log:
        "<logs>/bag_of_words/{dataset}.log",
    benchmark:
        "<benchmarks>/bag_of_words/{dataset}.tsv"
    wildcard_constraints:
        dataset=PLAN.pattern("datasets", "encoder"),
    priority: 10  # checks of every dataset and model come before any training
    conda:
        "../envs/data.yaml"
    threads: 1
    resources:
        mem_mb=2000,  # 260 MB measured for 4,000 reviews, which it holds as a sparse matrix
        runtime=30,  # minutes; 5 s measured for 4,000 reviews
    script:
        "../scripts/bag_of_words.py"
