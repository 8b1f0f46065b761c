"""
Report: needs the tables of the experiment; makes its figures and its summary in words.
"""


rule plot_figures:
    """Draw every figure of the experiment, as SVG and as PNG; one job, since loading takes longest."""
    input:
        runs="<experiment>/runs.csv",
        curves="<experiment>/curves.csv",
        summary="<experiment>/summary.csv",
    output:
        svg=PLAN.figure_files("svg"),
        png=PLAN.figure_files("png"),
    log:
        "<experiment>/logs/plot_figures.log",
    benchmark:
        "<experiment>/benchmarks/plot_figures.tsv"
    conda:
        "../envs/report.yaml"
    threads: 1
    resources:
        mem_mb=1000,  # 280 MB measured for 1,000 runs
        runtime=15,  # minutes; 15 s measured, most of it to load the libraries
    params:
        reporting=PLAN.reporting(),
    script:
        "../scripts/plot_figures.py"


rule write_summary:
    """Write what the experiment found, for a reader who opens nothing else."""
    input:
        runs="<experiment>/runs.csv",
        summary="<experiment>/summary.csv",
        contrasts="<experiment>/contrasts.csv",
        run_json=PLAN.run_files("run.json"),
        audit="<experiment>/data_audit.csv",
        parity=PLAN.per_pair("parity.json"),
        parameters=PLAN.per_model("parameters.csv"),
    output:
        summary="<experiment>/summary.md",
    log:
        "<experiment>/logs/write_summary.log",
    benchmark:
        "<experiment>/benchmarks/write_summary.tsv"
    conda:
        "../envs/report.yaml"
    threads: 1
    resources:
        mem_mb=500,  # 80 MB measured for 1,000 runs
        runtime=15,
    params:
        reporting=PLAN.reporting(),
        figures=[*PLAN.figures(), "data_audit"],
    script:
        "../scripts/write_summary.py"
