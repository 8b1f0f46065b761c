"""
Report: needs the tables of the experiment. Makes its figures, tables for people, summary and report.
"""

from seedbed.figures import registry


rule plot_figures:
    """Draw all figures of the experiment as SVG and PNG, in one job, since loading takes long."""
    input:
        **{name: rules.aggregate.output[name] for name in registry.tables_for(PLAN)},
    output:
        svg=[figure(name, "svg") for name in registry.names_for(PLAN)],
        png=[figure(name, "png") for name in registry.names_for(PLAN)],
        captions="<experiment>/figures/captions.json",
    log:
        "<experiment>/logs/plot_figures.log",
    benchmark:
        "<experiment>/benchmarks/plot_figures.tsv"
    conda:
        "../envs/report.yaml"
    threads: 4  # figures at a time
    resources:
        mem_mb=2000,  # 460 MB measured for 1,000 runs, drawn one after another; the processes share what is read
        runtime=15,  # minutes; 25 s measured on a busy core
    params:
        reporting=PLAN.reporting(),
        writes_answers=PLAN.task.writes_answers,  # for the captions in Snakemake's report
    script:
        "../scripts/plot_figures.py"


rule write_tables:
    """Write the summary and the contrasts in per cent and points, as CSV, Markdown and LaTeX."""
    input:
        summary=rules.aggregate.output.summary,
        contrasts=rules.aggregate.output.contrasts,
    output:
        summary_csv=table_for_people("summary", "csv"),
        summary_md=table_for_people("summary", "md"),
        summary_tex=table_for_people("summary", "tex"),
        contrasts_csv=table_for_people("contrasts", "csv"),
        contrasts_md=table_for_people("contrasts", "md"),
        contrasts_tex=table_for_people("contrasts", "tex"),
    log:
        "<experiment>/logs/write_tables.log",
    benchmark:
        "<experiment>/benchmarks/write_tables.tsv"
    conda:
        "../envs/report.yaml"
    threads: 1
    resources:
        mem_mb=500,  # rows of groups of seeds, not of runs
        runtime=15,  # minutes; 2 s measured for 40 runs
    params:
        reporting=PLAN.reporting(),
    script:
        "../scripts/write_tables.py"


rule write_summary:
    """Write the findings of the experiment in plain text."""
    input:
        **{name: rules.aggregate.output[name] for name in PLAN.size_tables},
        runs=rules.aggregate.output.runs,
        summary=rules.aggregate.output.summary,
        contrasts=rules.aggregate.output.contrasts,
        pairs=rules.aggregate.output.pairs,
        churn=rules.aggregate.output.churn,
        never_right=rules.aggregate.output.never_right,
        calibration=rules.aggregate.output.calibration,
        variance=rules.aggregate.output.variance,
        expected_validation=rules.aggregate.output.expected_validation,
        run_json=PLAN.per_run("run.json"),
        audit=rules.audit.output.table,
        parity=PLAN.only("encoder", PLAN.per_pair("parity.json", "fairseq")),
        parameters=PLAN.only("encoder", PLAN.per_model("parameters.csv")),
        trainable=PLAN.trainable_table,
        figures=[*rules.plot_figures.output.svg, rules.audit.output.svg],
        captions=[rules.plot_figures.output.captions, rules.audit.output.caption],
    output:
        summary=in_report("<experiment>/summary.md", "summary", "Answer", document="summary"),
        facts="<experiment>/summary.json",  # of scripts/show.py
    log:
        "<experiment>/logs/write_summary.log",
    benchmark:
        "<experiment>/benchmarks/write_summary.tsv"
    conda:
        "../envs/report.yaml"
    threads: 1
    resources:
        mem_mb=500,  # 270 MB measured for 10,000 runs, 94 MB for 12
        runtime=15,  # minutes; 4 s measured for 10,000 runs
    params:
        reporting=PLAN.reporting(),
    script:
        "../scripts/write_summary.py"


rule write_report:
    """Write the report, one self-contained page, and the configuration of the experiment."""
    input:
        **rules.write_summary.input,
        **{name: rules.aggregate.output[name] for name in PLAN.example_tables},
        models=PLAN.per_model("model.json"),
        architectures=PLAN.only(
            "encoder",
            PLAN.per_model("architecture_transformers.txt")
            + PLAN.per_model("architecture_fairseq.txt", "fairseq"),
        ),
        texts=PLAN.per_dataset("test.jsonl"),
    output:
        report=in_report("<experiment>/report.html", "report", "Answer", document="report"),
        config="<experiment>/config.yaml",
    log:
        "<experiment>/logs/write_report.log",
    benchmark:
        "<experiment>/benchmarks/write_report.tsv"
    conda:
        "../envs/report.yaml"
    threads: 1
    resources:
        mem_mb=1000,  # the page with its figures is in memory at once
        runtime=15,  # minutes; 8 s measured for 10,000 runs
    params:
        reporting=PLAN.reporting(),
        config=canonical(PLAN.config),
    script:
        "../scripts/write_report.py"
