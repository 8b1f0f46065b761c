"""
Audit: needs the prepared splits, duplicates and tokens of every dataset and model of the experiment. Makes a table of
oddities and its figure.
"""


rule audit:
    """Count oddities of the data: balance, duplicates, leaks, encodings, order, truncation."""
    input:
        texts=PLAN.per_split(".jsonl"),
        labels=PLAN.only("encoder", PLAN.per_dataset("labels.json")),
        splits=PLAN.per_dataset("splits.json"),
        duplicates=PLAN.per_dataset("duplicates.csv"),
        tokens=PLAN.per_pair_and_split(".jsonl"),
        statistics=PLAN.only("causal", PLAN.per_pair("tokens/statistics.json")),
        models=PLAN.per_model("model.json"),
    output:
        table=table("data_audit"),
        svg=figure("data_audit", "svg"),
        png=figure("data_audit", "png"),
        caption="<experiment>/figures/data_audit_caption.json",
    log:
        "<experiment>/logs/audit.log",
    benchmark:
        "<experiment>/benchmarks/audit.tsv"
    priority: 10  # checks of every dataset and model come before any training
    conda:
        "../envs/report.yaml"
    threads: 1
    resources:
        mem_mb=1000,  # 250 MB measured for 4,000 reviews, most of it the drawing libraries
        runtime=15,  # minutes; 2 s measured for 4,000 reviews
    params:
        recipes=PLAN.recipe_limits(),
        label_names=PLAN.label_names(),
    script:
        "../scripts/audit.py"
