"""Results that Seedbed did not train: read, compared and reported as its own.

In: tables of predictions or scores, and result files of other programs. Out: `results.Results`, one for each
dataset (`read`); their comparison, as an experiment whose recipes are the systems (`analysis`); a folder of
tables, figures, summary and report (`output`). Imports only NumPy, SciPy, pandas, pyarrow, PyYAML, Jinja2,
matplotlib, seaborn, and the packages before it, as far as these import no more, since it is also installed
without Snakemake, PyTorch and fairseq.
"""
