"""Interpret Snakemake's command line while the Snakefile is read; Snakemake gives its answer only later."""

import re
from collections.abc import Sequence

_SHOWING = re.compile(
    r"-[SDl]|--(unlock|(detailed-)?summary|d3?dag|dag|rulegraph|filegraph|lint|list\S*|report|archive"
    r"|containerize|cleanup-\S+|version|help|print-\S+|export-cwl)(=.*)?"
)
_DRY_RUN = re.compile(r"-[npqrkFfi]*n[npqrkFfi]*|--dry-?run(=.*)?")


def plans_nothing(arguments: Sequence[str]) -> bool:
    """Whether a command line only shows something or cleans up."""
    return any(_SHOWING.fullmatch(word) for word in arguments)


def makes_nothing(arguments: Sequence[str]) -> bool:
    """Whether a command line makes no file, so that it neither holds nor removes Snakemake's lock."""
    return plans_nothing(arguments) or any(_DRY_RUN.fullmatch(word) for word in arguments)
