"""
Fetches sources: archives, folders or files, from a mirror or from their locations.

Needs: the definitions of sources in the config. Makes: <sources>/{source}/files/ and, written last, its
manifest. Files at local locations are inputs, so that a change of them is noticed.
"""


rule fetch_source:
    """Fetch a source from the first location that works, check it, unpack it and list its files."""
    input:
        local=PLAN.source_files,
    output:
        manifest="<sources>/{source}/manifest.json",
    log:
        "<logs>/fetch_source/{source}.log",
    benchmark:
        "<benchmarks>/fetch_source/{source}.tsv"
    priority: 10  # checks of every dataset and model come before any training
    # compute nodes of a cluster often have no network
    localrule: True
    conda:
        "../envs/data.yaml"
    threads: 1
    resources:
        mem_mb=1000,  # files are streamed
        runtime=60,
    params:
        definition=PLAN.source,
    script:
        "../scripts/fetch_source.py"
