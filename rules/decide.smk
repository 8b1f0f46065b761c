"""
Decide: needs the tables of the experiment, and all else that the stage makes. Says which questions get more seeds, and
which sweeps more values.

It is the last job of a workflow: the next one plans from its output.
"""


rule decide:
    """Decide which questions are open, and which seeds and swept values they have next."""
    input:
        runs=rules.aggregate.output.runs,
        summary=rules.aggregate.output.summary,
        contrasts=rules.aggregate.output.contrasts,
        report=rules.write_report.output,
        audit=rules.audit.output,
    output:
        decision=PLAN.decision[0],
    log:
        "<experiment>/logs/decide.log",
    benchmark:
        "<experiment>/benchmarks/decide.tsv"
    conda:
        "../envs/report.yaml"
    threads: 1
    resources:
        mem_mb=500,  # rows of groups of seeds and of runs
        runtime=15,  # minutes; 2 s measured for 12 runs
    params:
        reporting=PLAN.aggregation(),
    script:
        "../scripts/decide.py"
