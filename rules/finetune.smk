"""
Fine-tuning of classifiers: one job per dataset, model, framework, init, recipe and seed.

Needs token ids, the model in the framework's format, and the parity gate. While a job works, everything it
writes lies under <experiment>/work; the run folder is published in one rename.

With `batches` in the config, several runs share a job: the rule of the batch trains them, and the rule of each
run, which then works on this machine and in a moment, only puts what the batch has made into its place. With
`fused_seeds`, a batch is the seeds of a cell, trained as one batched model.
"""


rule finetune_fairseq:
    """Fine-tune with fairseq-train, select on validation, predict, publish the run folder."""
    input:
        tokens=expand("<data>/{{dataset}}/{{model}}/tokens/{split}.jsonl", split=SPLITS),
        labels="<data>/{dataset}/labels.json",
        binarized="<data>/{dataset}/{model}/binarized/binarized.json",
        weights="<models>/{model}/fairseq/model.pt",
        model="<models>/{model}/model.json",
        parity=ancient("<data>/{dataset}/{model}/parity.json"),  # a gate: no number depends on it
        limits=ancient("<experiment>/limits.json"),  # a gate: no number depends on it
        batch=ancient(PLAN.fairseq_batch),  # none where the run is a job of its own
    output:
        metrics=metrics_of_runs("fairseq"),
        predictions="<experiment>/runs/{dataset}/{model}/fairseq/{init}/{recipe}/{seed}/predictions.csv",
        run_json="<experiment>/runs/{dataset}/{model}/fairseq/{init}/{recipe}/{seed}/run.json",
        events=directory(
            "<experiment>/runs/{dataset}/{model}/fairseq/{init}/{recipe}/{seed}/tensorboard"
        ),
    log:
        "<experiment>/logs/finetune_fairseq/{dataset}/{model}/{init}/{recipe}/{seed}.log",
    benchmark:
        "<experiment>/benchmarks/finetune_fairseq/{dataset}/{model}/{init}/{recipe}/{seed}.tsv"
    wildcard_constraints:
        dataset=PLAN.pattern("datasets", "classification"),
    # in batches there is nothing left to train
    localrule: PLAN.batched
    conda:
        "../envs/fairseq.yaml"
    threads: PLAN.run_threads
    resources:
        mem_mb=PLAN.run_memory,  # 3,000 an attempt; 1.6 GB measured for RoBERTa-small on the CPU
        runtime=PLAN.run_minutes,  # 60 an attempt; 13 to 16 measured for 1,125 updates on 4 CPU cores
    params:
        run=PLAN.fairseq_run,
    script:
        "../scripts/finetune_fairseq.py"


rule finetune_transformers:
    """Fine-tune with Transformers' Trainer, select on validation, predict, publish the run folder."""
    input:
        tokens=expand("<data>/{{dataset}}/{{model}}/tokens/{split}.jsonl", split=SPLITS),
        labels="<data>/{dataset}/labels.json",
        weights="<models>/{model}/huggingface/model.safetensors",
        model="<models>/{model}/model.json",
        parity=ancient("<data>/{dataset}/{model}/parity.json"),  # a gate: no number depends on it
        limits=ancient("<experiment>/limits.json"),  # a gate: no number depends on it
        batch=ancient(PLAN.transformers_batch),  # none where the run is a job of its own
    output:
        metrics=metrics_of_runs("transformers"),
        predictions="<experiment>/runs/{dataset}/{model}/transformers/{init}/{recipe}/{seed}/predictions.csv",
        run_json="<experiment>/runs/{dataset}/{model}/transformers/{init}/{recipe}/{seed}/run.json",
        events=directory(
            "<experiment>/runs/{dataset}/{model}/transformers/{init}/{recipe}/{seed}/tensorboard"
        ),
    log:
        "<experiment>/logs/finetune_transformers/{dataset}/{model}/{init}/{recipe}/{seed}.log",
    benchmark:
        "<experiment>/benchmarks/finetune_transformers/{dataset}/{model}/{init}/{recipe}/{seed}.tsv"
    wildcard_constraints:
        dataset=PLAN.pattern("datasets", "classification"),
    # in batches there is nothing left to train
    localrule: PLAN.batched
    conda:
        "../envs/transformers.yaml"
    threads: PLAN.run_threads
    resources:
        mem_mb=PLAN.run_memory,  # 3,000 an attempt; 1.6 GB measured for RoBERTa-small on the CPU
        runtime=PLAN.run_minutes,  # 60 an attempt; 13 to 16 measured for 1,125 updates on 4 CPU cores
    params:
        run=PLAN.transformers_run,
    script:
        "../scripts/finetune_transformers.py"


rule finetune_fairseq_batch:
    """Fine-tune the runs of a batch with fairseq; the rule of each run puts its result into its place."""
    input:
        tokens=expand("<data>/{{dataset}}/{{model}}/tokens/{split}.jsonl", split=SPLITS),
        labels="<data>/{dataset}/labels.json",
        binarized="<data>/{dataset}/{model}/binarized/binarized.json",
        weights="<models>/{model}/fairseq/model.pt",
        model="<models>/{model}/model.json",
        parity=ancient("<data>/{dataset}/{model}/parity.json"),  # a gate: no number depends on it
        limits=ancient("<experiment>/limits.json"),  # a gate: no number depends on it
    output:
        done=temp("<experiment>/work/batches/{dataset}/{model}/fairseq/{batch}.json"),
    log:
        "<experiment>/logs/finetune_fairseq_batch/{dataset}/{model}/{batch}.log",
    benchmark:
        "<experiment>/benchmarks/finetune_fairseq_batch/{dataset}/{model}/{batch}.tsv"
    wildcard_constraints:
        dataset=PLAN.pattern("datasets", "classification"),
    conda:
        "../envs/fairseq.yaml"
    threads: PLAN.batch_threads
    resources:
        mem_mb=PLAN.batch_memory,  # that of a run, times the runs at once; 800 for each further fused seed
        runtime=PLAN.batch_minutes,  # that of a run, times the runs one after another
    params:
        runs=PLAN.fairseq_batch_runs,
    script:
        "../scripts/finetune_fairseq_batch.py"


rule finetune_transformers_batch:
    """Fine-tune the runs of a batch with Transformers; the rule of each run puts its result into its place."""
    input:
        tokens=expand("<data>/{{dataset}}/{{model}}/tokens/{split}.jsonl", split=SPLITS),
        labels="<data>/{dataset}/labels.json",
        weights="<models>/{model}/huggingface/model.safetensors",
        model="<models>/{model}/model.json",
        parity=ancient("<data>/{dataset}/{model}/parity.json"),  # a gate: no number depends on it
        limits=ancient("<experiment>/limits.json"),  # a gate: no number depends on it
    output:
        done=temp("<experiment>/work/batches/{dataset}/{model}/transformers/{batch}.json"),
    log:
        "<experiment>/logs/finetune_transformers_batch/{dataset}/{model}/{batch}.log",
    benchmark:
        "<experiment>/benchmarks/finetune_transformers_batch/{dataset}/{model}/{batch}.tsv"
    wildcard_constraints:
        dataset=PLAN.pattern("datasets", "classification"),
    conda:
        "../envs/transformers.yaml"
    threads: PLAN.batch_threads
    resources:
        mem_mb=PLAN.batch_memory,  # that of a run, times the runs at once; 800 for each further fused seed
        runtime=PLAN.batch_minutes,  # that of a run, times the runs one after another
    params:
        runs=PLAN.transformers_batch_runs,
    script:
        "../scripts/finetune_transformers_batch.py"
