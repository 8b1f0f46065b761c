"""Training: a trainer for each framework and task, and the parts that they share.

In: `running.jobs.Job`s. Out: metrics.csv, predictions.csv, run.json and TensorBoard's events of each run.
"""
