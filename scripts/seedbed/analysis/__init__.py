"""Statistics: the tables of an experiment, and of two experiments compared.

In: the run folders. Out: runs.csv, summary.csv, contrasts.csv and the tables behind figures and report.
"""
