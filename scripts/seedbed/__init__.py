"""The library behind Seedbed's rules: importable and tested without Snakemake."""

from seedbed.core.printable import guard_records

__version__ = "0.2.0"

guard_records()
