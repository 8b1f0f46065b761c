"""
Subsets: needs the prepared training split of a dataset. Makes the order of its texts that a data seed draws. A run of a
size (grid.train_sizes) trains on the first texts of the order, whatever its framework, model and init.
"""


rule draw_subset:
    """Order the training texts so that each beginning has the classes in proportion."""
    input:
        train="<data>/{dataset}/train.jsonl",
    output:
        order="<data>/{dataset}/subsets/seed{data_seed}.csv",
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
