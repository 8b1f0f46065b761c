"""
Aggregation: needs the published files of every run and the bag-of-words baseline and the duplicates of every dataset;
makes the tables of the experiment (one row a run, all curves, one row a group of seeds, differences).
"""


rule aggregate:
    """Check all runs of the experiment and gather them into its tables."""
    input:
        run_json=PLAN.run_files("run.json"),
        metrics=PLAN.run_files("metrics.csv"),
        predictions=PLAN.run_files("predictions.csv"),
        bag_of_words=PLAN.per_dataset("bag_of_words.csv"),
        duplicates=PLAN.per_dataset("duplicates.csv"),
    output:
        runs="<experiment>/runs.csv",
        curves="<experiment>/curves.csv",
        summary="<experiment>/summary.csv",
        contrasts="<experiment>/contrasts.csv",
    log:
        "<experiment>/logs/aggregate.log",
    benchmark:
        "<experiment>/benchmarks/aggregate.tsv"
    conda:
        "../envs/report.yaml"
    threads: 1
    resources:
        mem_mb=500,  # 80 MB measured for 1,000 runs
        runtime=15,  # minutes; 10 s measured for 1,000 runs of 2,200 predictions
    params:
        reporting=PLAN.reporting(),
    script:
        "../scripts/aggregate.py"
