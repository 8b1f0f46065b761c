"""
Report: needs the tables of the experiment. Makes its figures, tables for people, summary and report.
"""

from seedbed.figures import registry


rule write_report:
    """Draw the figures, and write tables in per cent and points, the summary, the report and the configuration."""
    input:
        **dict(rules.aggregate.output.items()),
        run_json=PLAN.per_run("run.json"),
        audit=rules.audit.output.table,
        audit_figure=rules.audit.output.svg,
        audit_caption=rules.audit.output.caption,
        parity=PLAN.only("encoder", PLAN.per_pair("parity.json", "fairseq")),
        parameters=PLAN.only("encoder", PLAN.per_model("parameters.csv")),
        trainable=PLAN.trainable_table,
        models=PLAN.per_model("model.json"),
        architectures=PLAN.only(
            "encoder",
            PLAN.per_model("architecture_transformers.txt")
            + PLAN.per_model("architecture_fairseq.txt", "fairseq"),
        ),
        texts=PLAN.per_dataset("test.jsonl"),
    output:
        svg=[figure(name, "svg") for name in registry.names_for(PLAN)],
        png=[figure(name, "png") for name in registry.names_for(PLAN)],
        captions="<experiment>/figures/captions.json",
        summary_csv=table_for_people("summary", "csv"),
        summary_md=table_for_people("summary", "md"),
        summary_tex=table_for_people("summary", "tex"),
        contrasts_csv=table_for_people("contrasts", "csv"),
        contrasts_md=table_for_people("contrasts", "md"),
        contrasts_tex=table_for_people("contrasts", "tex"),
        summary=in_report("<experiment>/summary.md", "summary", "Answer", document="summary"),
        facts="<experiment>/summary.json",  # of scripts/show.py
        report=in_report("<experiment>/report.html", "report", "Answer", document="report"),
        config="<experiment>/config.yaml",
    log:
        "<experiment>/logs/write_report.log",
    benchmark:
        "<experiment>/benchmarks/write_report.tsv"
    conda:
        "../envs/report.yaml"
    threads: 4  # figures at a time
    resources:
        mem_mb=2000,  # 390 MB measured for 1,000 runs; the processes share what is read
        runtime=15,  # minutes; 16 s measured for 1,000 runs on two busy cores
    params:
        reporting=PLAN.reporting(),
        config=canonical(PLAN.config),
        writes_answers=PLAN.task.writes_answers,  # for the captions in Snakemake's report
    script:
        "../scripts/write_report.py"
