"""Fetch a source, check it, unpack it and list its files (rule fetch_source)."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from seedbed import script, sources
from seedbed.files import write_json

if TYPE_CHECKING:
    snakemake: Any

script.start(snakemake)
sources.fetch(
    snakemake.wildcards.source,
    snakemake.params.definition,
    Path(snakemake.output.manifest).parent,
    # not among params: where a copy was found, or is remembered, changes nothing about the data, so a new
    # mirror is no reason to fetch, prepare and train again
    mirror=snakemake.config.get("mirror"),
    lock=snakemake.config.get("lock", "sources.lock.json"),
)
# the experiment is named for messages only, and not among params, as experiments share the folder
stamp = {"experiment": snakemake.config["experiment"], **snakemake.params.stamp}
write_json(snakemake.output.fingerprint, stamp)
