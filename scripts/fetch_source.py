"""Fetch a source, check it, unpack it and list its files (rule fetch_source)."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from seedbed.core import script
from seedbed.core.files import write_json
from seedbed.running import claims
from seedbed.sources import fetch

if TYPE_CHECKING:
    snakemake: Any

script.start(snakemake)
folder = Path(snakemake.output.manifest).parent
# one at a time, where two workflows share the results, or a killed one left this rule running
with claims.claim(folder.with_name(f".fetching.{folder.name}"), what="this source"):
    fetch.fetch(
        snakemake.wildcards.source,
        snakemake.params.definition,
        folder,
        # not among params: where a copy was found, or is remembered, changes nothing about the data, so a new
        # mirror is no reason to fetch, prepare and train again
        mirror=snakemake.config.get("mirror"),
        lock=Path(snakemake.config.get("lock", "sources.lock.json")).expanduser(),
    )
# the experiment is named for messages only, and not among params, as experiments share the folder
stamp = {"experiment": snakemake.config["experiment"], **snakemake.params.stamp}
write_json(snakemake.output.fingerprint, stamp)
