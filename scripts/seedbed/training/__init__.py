"""Training: what all trainers share, and a trainer for each framework and task.

In: `running.jobs.Job`s. Out: metrics.csv, predictions.csv, run.json and TensorBoard's events of each run.
"""
