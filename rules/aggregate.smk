"""
Aggregation: needs the published files of every run, the duplicates of every dataset, its clusters if it has any, its
bag-of-words baseline unless models write answers, and where sizes of training are swept its subsets and, of each size,
bags of words and linear probes. Makes the tables of the experiment: runs, curves, groups of seeds, differences,
diagnostics of predictions and, where sizes of training are swept, learning curves and what they are worth in labels.
"""


rule aggregate:
    """Check all runs of the experiment and gather them in tables."""
    input:
        run_json=PLAN.per_run("run.json"),
        metrics=PLAN.per_run("metrics.csv"),
        predictions=PLAN.per_run("predictions.csv"),
        bag_of_words=PLAN.only("encoder", PLAN.per_dataset("bag_of_words.csv")),
        duplicates=PLAN.per_dataset("duplicates.csv"),
        splits=PLAN.clustered("splits.json"),
        subsets=PLAN.subsets(),
        bags_of_sizes=PLAN.only("encoder", PLAN.bags_of_sizes()),
        probes_of_sizes=PLAN.probes_of_sizes(),
    output:
        **{name: table(name) for name in PLAN.size_tables + PLAN.example_tables},
        runs=table("runs"),
        curves=table("curves"),
        summary=table("summary"),
        contrasts=table("contrasts"),
        pairs=table("pairs"),
        churn=table("churn"),
        never_right=table("never_right"),
        calibration=table("calibration"),
        confusion=table("confusion"),
        variance=table("variance"),
        expected_validation=table("expected_validation"),
    log:
        "<experiment>/logs/aggregate.log",
    benchmark:
        "<experiment>/benchmarks/aggregate.tsv"
    conda:
        "../envs/report.yaml"
    threads: 1
    resources:
        mem_mb=2000,  # 1,250 MB measured for 10,000 runs of 500 predictions, 140 MB for 12 runs
        runtime=15,  # minutes; one measured for 10,000 runs of 500 predictions
    params:
        reporting=PLAN.aggregation(),
    script:
        "../scripts/aggregate.py"
