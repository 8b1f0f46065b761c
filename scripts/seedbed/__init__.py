"""The library behind Seedbed's rules: importable and tested without Snakemake."""

__version__ = "0.1.0"
