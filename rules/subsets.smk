"""
Subsets: needs the prepared splits of a dataset. Makes the order of its training texts that a data seed draws. A run of
a size (grid.train_sizes) trains on the first texts of the order, whatever its framework, model and init. So do bags of
words, the baselines of each size, and linear probes of the checkpoint (rules/states.smk).
"""


rule draw_subset:
    """Order the training texts so that each beginning has the classes in proportion."""
    input:
        train="<data>/{dataset}/train.jsonl",
    output:
        order="<data>/{dataset}/subsets/seed{data_seed}/order.csv",
    log:
        "<logs>/draw_subset/{dataset}/seed{data_seed}.log",
    benchmark:
        "<benchmarks>/draw_subset/{dataset}/seed{data_seed}.tsv"
    wildcard_constraints:
        data_seed=r"\d+",
    priority: 20  # all training of sizes waits for it
    # less work than a job of a cluster is worth
    localrule: True
    conda:
        "../envs/data.yaml"
    threads: 1
    resources:
        mem_mb=500,  # ids and labels of the training split are in memory
        runtime=10,  # minutes; 1 s measured for 1,800 reviews
    script:
        "../scripts/draw_subset.py"


rule bags_of_sizes:
    """Train bags of words on the texts that runs of each size and data seed train on, and on all."""
    input:
        train="<data>/{dataset}/train.jsonl",
        validation="<data>/{dataset}/validation.jsonl",
        test="<data>/{dataset}/test.jsonl",
        labels="<data>/{dataset}/labels.json",
        orders=PLAN.subsets_of_dataset,
    output:
        bags="<experiment>/bags_of_words/{dataset}/bags.csv",
        predictions="<experiment>/bags_of_words/{dataset}/predictions.csv",
    log:
        "<experiment>/logs/bags_of_sizes/{dataset}.log",
    benchmark:
        "<experiment>/benchmarks/bags_of_sizes/{dataset}.tsv"
    wildcard_constraints:
        dataset=PLAN.pattern("datasets", "encoder"),
    conda:
        "../envs/data.yaml"
    threads: 1
    resources:
        mem_mb=2000,  # 320 MB measured for 4,000 reviews
        runtime=60,  # minutes; 30 s measured for 7 sizes, 5 data seeds and 4,000 reviews
    params:
        sizes=PLAN.sizes,
        data_seeds=PLAN.data_seeds,
        metric=PLAN.task.selection,
    script:
        "../scripts/bags_of_sizes.py"
