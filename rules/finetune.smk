"""
Fine-tuning: one job per dataset, model, framework, init, recipe and seed.

Needs: token ids, the model in the framework's format and, for classifiers, the parity gate. A working job only writes
to <experiment>/work; the run folder is published in one rename. With `batches` or `fused_seeds` in the config, the
rule of a batch trains its runs, and the rule of each run only publishes its result. The rules differ in their inputs;
the params of a run determine its trainer.
"""


rule finetune_transformers:
    """Fine-tune with Transformers' Trainer, select on validation, predict, publish the run folder."""
    input:
        tokens=expand("<data>/{{dataset}}/{{model}}/tokens/{split}.jsonl", split=SPLITS),
        labels="<data>/{dataset}/labels.json",
        weights="<models>/{model}/huggingface/model.safetensors",
        model="<models>/{model}/model.json",
        parity=ancient(PLAN.parity),  # a gate: no number depends on it
        limits=ancient("<experiment>/limits.json"),  # a gate: no number depends on it
        states=PLAN.transformers_states,  # none where the run encodes its texts itself
        batch=ancient(PLAN.transformers_batch),  # none where the run is a job of its own
        subset=PLAN.subset,  # none where a run trains on all texts
    output:
        **run_files("transformers"),
    log:
        "<experiment>/logs/finetune_transformers/{dataset}/{model}/{init}/{recipe}/{seed}.log",
    benchmark:
        "<experiment>/benchmarks/finetune_transformers/{dataset}/{model}/{init}/{recipe}/{seed}.tsv"
    wildcard_constraints:
        dataset=PLAN.pattern("datasets", "encoder"),
    # in batches there is nothing left to train
    localrule: PLAN.batched
    conda:
        "../envs/transformers.yaml"
    threads: PLAN.run_threads
    resources:
        mem_mb=PLAN.run_memory,  # 3,000 an attempt (causal: 4,000); 1.6 GB measured for RoBERTa-small
        runtime=PLAN.run_minutes,  # 60 an attempt; 13 to 16 measured for 1,125 updates on 4 CPU cores
    params:
        run=PLAN.transformers_run,
    script:
        "../scripts/finetune.py"


use rule finetune_transformers as finetune_fairseq with:
    input:
        tokens=expand("<data>/{{dataset}}/{{model}}/tokens/{split}.jsonl", split=SPLITS),
        labels="<data>/{dataset}/labels.json",
        binarized="<data>/{dataset}/{model}/binarized/binarized.json",
        weights="<models>/{model}/fairseq/model.pt",
        model="<models>/{model}/model.json",
        parity=ancient("<data>/{dataset}/{model}/parity.json"),
        limits=ancient("<experiment>/limits.json"),
        states=PLAN.fairseq_states,  # none where the run encodes its texts itself
        batch=ancient(PLAN.fairseq_batch),
        subset=PLAN.subset,
    output:
        **run_files("fairseq"),
    log:
        "<experiment>/logs/finetune_fairseq/{dataset}/{model}/{init}/{recipe}/{seed}.log",
    benchmark:
        "<experiment>/benchmarks/finetune_fairseq/{dataset}/{model}/{init}/{recipe}/{seed}.tsv"
    localrule: PLAN.batched  # `use rule` does not take this over
    conda:
        "../envs/fairseq.yaml"
    params:
        run=PLAN.fairseq_run,


use rule finetune_transformers as finetune_causal with:
    input:
        tokens=expand("<data>/{{dataset}}/{{model}}/tokens/{split}.jsonl", split=SPLITS),
        weights="<models>/{model}/huggingface/model.safetensors",
        tokenizer="<models>/{model}/huggingface/tokenizer.json",
        model="<models>/{model}/model.json",
        limits=ancient("<experiment>/limits.json"),
        batch=ancient(PLAN.transformers_batch),
        subset=PLAN.subset,
    log:
        "<experiment>/logs/finetune_causal/{dataset}/{model}/{init}/{recipe}/{seed}.log",
    benchmark:
        "<experiment>/benchmarks/finetune_causal/{dataset}/{model}/{init}/{recipe}/{seed}.tsv"
    wildcard_constraints:
        dataset=PLAN.pattern("datasets", "causal"),
    localrule: PLAN.batched  # `use rule` does not take this over


rule finetune_transformers_batch:
    """Fine-tune the runs of a batch; the rule of each run publishes its result."""
    input:
        tokens=expand("<data>/{{dataset}}/{{model}}/tokens/{split}.jsonl", split=SPLITS),
        labels="<data>/{dataset}/labels.json",
        weights="<models>/{model}/huggingface/model.safetensors",
        model="<models>/{model}/model.json",
        parity=ancient(PLAN.parity),  # a gate: no number depends on it
        limits=ancient("<experiment>/limits.json"),  # a gate: no number depends on it
        subsets=PLAN.subsets_of_batch("transformers"),
        states=PLAN.transformers_batch_states,
    output:
        done=temp("<experiment>/work/batches/{dataset}/{model}/transformers/{batch}.json"),
    log:
        "<experiment>/logs/finetune_transformers_batch/{dataset}/{model}/{batch}.log",
    benchmark:
        "<experiment>/benchmarks/finetune_transformers_batch/{dataset}/{model}/{batch}.tsv"
    wildcard_constraints:
        dataset=PLAN.pattern("datasets", "encoder"),
    conda:
        "../envs/transformers.yaml"
    threads: PLAN.batch_threads
    resources:
        mem_mb=PLAN.batch_memory,  # that of a run, times the runs at once; 800 for each further fused run
        runtime=PLAN.batch_minutes,  # that of a run, times the runs one after another
    params:
        runs=PLAN.transformers_batch_runs,
    script:
        "../scripts/finetune_batch.py"


use rule finetune_transformers_batch as finetune_fairseq_batch with:
    input:
        tokens=expand("<data>/{{dataset}}/{{model}}/tokens/{split}.jsonl", split=SPLITS),
        labels="<data>/{dataset}/labels.json",
        binarized="<data>/{dataset}/{model}/binarized/binarized.json",
        weights="<models>/{model}/fairseq/model.pt",
        model="<models>/{model}/model.json",
        parity=ancient("<data>/{dataset}/{model}/parity.json"),
        limits=ancient("<experiment>/limits.json"),
        subsets=PLAN.subsets_of_batch("fairseq"),
        states=PLAN.fairseq_batch_states,
    output:
        done=temp("<experiment>/work/batches/{dataset}/{model}/fairseq/{batch}.json"),
    log:
        "<experiment>/logs/finetune_fairseq_batch/{dataset}/{model}/{batch}.log",
    benchmark:
        "<experiment>/benchmarks/finetune_fairseq_batch/{dataset}/{model}/{batch}.tsv"
    conda:
        "../envs/fairseq.yaml"
    params:
        runs=PLAN.fairseq_batch_runs,


use rule finetune_transformers_batch as finetune_causal_batch with:
    input:
        tokens=expand("<data>/{{dataset}}/{{model}}/tokens/{split}.jsonl", split=SPLITS),
        weights="<models>/{model}/huggingface/model.safetensors",
        tokenizer="<models>/{model}/huggingface/tokenizer.json",
        model="<models>/{model}/model.json",
        limits=ancient("<experiment>/limits.json"),
        subsets=PLAN.subsets_of_batch("transformers"),
    log:
        "<experiment>/logs/finetune_causal_batch/{dataset}/{model}/{batch}.log",
    benchmark:
        "<experiment>/benchmarks/finetune_causal_batch/{dataset}/{model}/{batch}.tsv"
    wildcard_constraints:
        dataset=PLAN.pattern("datasets", "causal"),
