"""
Limits: needs every model of the grid, the count of trainable parameters, and where sizes of training are swept the
subsets of every dataset. Makes a file that confirms that all
recipes and datasets are within the models' limits. All training of the experiment waits for it.
"""


rule check_limits:
    """Report before any training what would make a later run fail."""
    input:
        models=PLAN.per_model("model.json"),
        subsets=PLAN.subsets(),  # whose lengths are the numbers of training texts
        trainable=PLAN.trainable_table,  # whose rule refuses adapters of modules that a model lacks
    output:
        limits="<experiment>/limits.json",
    log:
        "<experiment>/logs/check_limits.log",
    benchmark:
        "<experiment>/benchmarks/check_limits.tsv"
    priority: 20  # all training waits for it
    # less work than a job of a cluster is worth
    localrule: True
    conda:
        "../envs/transformers.yaml"
    threads: 1
    resources:
        mem_mb=1000,  # with adapters PyTorch is imported
        runtime=10,  # minutes; under 1 s measured, 10 s with adapters
    params:
        asked=PLAN.asked_of_models(),
        sizes=PLAN.sizes,
        adapters=PLAN.adapter_recipes(),
        device=PLAN.config["device"],
        task=PLAN.task.name,
        classes=PLAN.head_size,
    script:
        "../scripts/check_limits.py"
