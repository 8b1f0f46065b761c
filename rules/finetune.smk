"""
Fine-tuning: one job per dataset, model, framework, init, recipe and seed.

Needs token ids, the model in the framework's format, and the parity gate. While a job works, everything it
writes lies under <experiment>/work; the run folder is published in one rename.
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
    conda:
        "../envs/fairseq.yaml"
    threads: PLAN.config["threads"]
    resources:
        mem_mb=3000,  # 1.6 GB measured for RoBERTa-small on the CPU
        runtime=60,  # minutes; 16 measured for 1,125 updates on 4 CPU cores
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
    conda:
        "../envs/transformers.yaml"
    threads: PLAN.config["threads"]
    resources:
        mem_mb=3000,  # 1.6 GB measured for RoBERTa-small on the CPU
        runtime=60,  # minutes; 13 measured for 1,125 updates on 4 CPU cores
    params:
        run=PLAN.transformers_run,
    script:
        "../scripts/finetune_transformers.py"
