"""
Sources: archives, folders or files, fetched from a mirror or from their locations.

Needs: the definitions of sources in resources/sources.csv and the config. Makes: <sources>/{source}/files/ and,
written last, its manifest. An interrupted download leaves <sources>/{source}/.downloads/, from which the next
attempt resumes. Files at local locations are inputs, so that changes are noticed. The lock file is neither input nor
output: it only has the hashes that a download must match.
"""


rule fetch_source:
    """Fetch a source from the first location that works, check it, unpack it and list its files."""
    input:
        local=PLAN.source_files,
    output:
        manifest="<sources>/{source}/manifest.json",
        fingerprint="<sources>/{source}/fingerprint.json",
    log:
        "<logs>/fetch_source/{source}.log",
    benchmark:
        "<benchmarks>/fetch_source/{source}.tsv"
    priority: 10  # checks of every dataset and model come before any training
    # local, since compute nodes of a cluster often have no network
    localrule: True
    conda:
        "../envs/data.yaml"
    threads: 1
    resources:
        mem_mb=1000,  # files are streamed
        runtime=240,  # minutes: 10 GB at 1 MB/s, with a margin for pauses between attempts
    params:
        definition=PLAN.source,
        stamp=PLAN.source_stamp,
    script:
        "../scripts/fetch_source.py"
