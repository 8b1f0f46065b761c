"""
Seedbed: does pretraining help on this task, and how sure are we?

sources -> prepared splits -> tokens -> binarized data -> runs -> tables -> figures and report

An experiment has one task: classification (rules/prepare.smk to finetune.smk) or generation (rules/lora.smk).
"""

from snakemake.utils import min_version

min_version("9.14")


report: "resources/report/workflow.rst"


include: "rules/common.smk"
include: "rules/download.smk"
include: "rules/prepare.smk"
include: "rules/tokenize.smk"
include: "rules/binarize.smk"
include: "rules/checkpoints.smk"
include: "rules/encoders.smk"
include: "rules/subsets.smk"
include: "rules/limits.smk"
include: "rules/states.smk"
include: "rules/finetune.smk"
include: "rules/lora.smk"
include: "rules/audit.smk"
include: "rules/aggregate.smk"
include: "rules/report.smk"


if PLAN.decision:

    include: "rules/decide.smk"


rule all:
    """All results of the experiment's config."""
    input:
        lost=PLAN.lost_files,
        results=rules.aggregate.output,
        audit=rules.audit.output,
        report=rules.write_report.output,
        decision=PLAN.decision,
