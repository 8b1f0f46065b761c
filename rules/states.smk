"""
States of encoders: what the method head is trained on, and what probes read.

Needs: token ids, the model, and the parity gate, by which one computation serves both frameworks. Makes:
<data>/{dataset}/{model}/states/ with a file for each encoder: the pretrained one, and that of each init seed of random
weights; all runs and all experiments share them. Beside it, probes/ with linear probes of these states, which only the
target `probes` asks for: a table of the probes of all datasets and models of the experiment. Where sizes of training
are swept, it also makes probes of as many texts as the runs of each size have; these lie with the experiment.
"""


rule encode_states:
    """Compute the encoder's states of all texts: of the first token, and the mean over tokens."""
    input:
        tokens=expand("<data>/{{dataset}}/{{model}}/tokens/{split}.jsonl", split=SPLITS),
        labels="<data>/{dataset}/labels.json",
        weights="<models>/{model}/huggingface/model.safetensors",
        config="<models>/{model}/huggingface/config.json",
        model="<models>/{model}/model.json",
        parity=ancient(PLAN.parity),  # a gate: no number depends on it
    output:
        states="<data>/{dataset}/{model}/states/{states}.safetensors",
    log:
        "<logs>/encode_states/{dataset}/{model}/{states}.log",
    benchmark:
        "<benchmarks>/encode_states/{dataset}/{model}/{states}.tsv"
    wildcard_constraints:
        dataset=PLAN.pattern("datasets", "encoder"),
        states=PLAN.pattern("states"),
    conda:
        "../envs/transformers.yaml"
    threads: PLAN.config["threads"]
    resources:
        mem_mb=3000,  # as a run
        runtime=60,  # minutes; a pass over the texts on the CPU
    script:
        "../scripts/encode_states.py"


rule probe:
    """Train logistic regression on an encoder's states, the baseline of fine-tuning it."""
    input:
        states=rules.encode_states.output.states,
        train="<data>/{dataset}/train.jsonl",
        validation="<data>/{dataset}/validation.jsonl",
        test="<data>/{dataset}/test.jsonl",
        labels="<data>/{dataset}/labels.json",
        duplicates="<data>/{dataset}/duplicates.csv",
    output:
        predictions="<data>/{dataset}/{model}/probes/{states}.csv",
        accuracy="<data>/{dataset}/{model}/probes/{states}_accuracy.csv",
    log:
        "<logs>/probe/{dataset}/{model}/{states}.log",
    benchmark:
        "<benchmarks>/probe/{dataset}/{model}/{states}.tsv"
    wildcard_constraints:
        dataset=PLAN.pattern("datasets", "classes"),
        states=PLAN.pattern("states"),
    conda:
        "../envs/data.yaml"
    threads: 1
    resources:
        mem_mb=2000,  # the states, 16 MB for 4,000 texts of width 512, and some copies
        runtime=30,  # minutes
    script:
        "../scripts/probe.py"


rule probes_of_sizes:
    """Train linear probes on the texts that runs of each size and data seed train on, and on all."""
    input:
        states=rules.encode_states.output.states,
        train="<data>/{dataset}/train.jsonl",
        validation="<data>/{dataset}/validation.jsonl",
        test="<data>/{dataset}/test.jsonl",
        labels="<data>/{dataset}/labels.json",
        orders=PLAN.subsets_of_dataset,
    output:
        probes="<experiment>/linear_probes/{dataset}/{model}/{states}/probes.csv",
        predictions="<experiment>/linear_probes/{dataset}/{model}/{states}/predictions.csv",
    log:
        "<experiment>/logs/probes_of_sizes/{dataset}/{model}/{states}.log",
    benchmark:
        "<experiment>/benchmarks/probes_of_sizes/{dataset}/{model}/{states}.tsv"
    wildcard_constraints:
        dataset=PLAN.pattern("datasets", "classes"),
        states=PLAN.pattern("states"),
    conda:
        "../envs/data.yaml"
    threads: 1
    resources:
        mem_mb=2000,  # as rule probe
        runtime=60,  # minutes
    params:
        sizes=PLAN.sizes,
        data_seeds=PLAN.data_seeds,
        metric=PLAN.task.selection,
    script:
        "../scripts/probes_of_sizes.py"


rule probes:
    """Gather the accuracies of probes of the pretrained models: snakemake probes."""
    input:
        accuracies=PLAN.probes,
    output:
        table="<experiment>/probes.csv",
    log:
        "<experiment>/logs/probes.log",
    benchmark:
        "<experiment>/benchmarks/probes.tsv"
    # less work than a job of a cluster is worth
    localrule: True
    conda:
        "../envs/data.yaml"
    threads: 1
    resources:
        mem_mb=500,
        runtime=5,  # minutes
    script:
        "../scripts/probes.py"
