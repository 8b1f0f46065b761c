"""
Limits: needs every model of the grid, and the count of what adapters train; makes a file that says that the models
can do what all recipes and datasets ask of them. All training of the experiment waits for it.
"""


rule check_limits:
    """Refuse what a later run would be refused for, before any run has trained."""
    input:
        models=PLAN.per_model("model.json"),
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
        adapters=PLAN.adapter_recipes(),
        device=PLAN.config["device"],
        task=PLAN.task.name,
        classes=PLAN.classes,
    script:
        "../scripts/check_limits.py"
