"""The config, checked and completed, and the plan made of it.

In: YAML files and overrides. Out: the resolved config, and `Plan`: the runs, batches and targets that the
rules ask for.
"""
