"""Check and complete the config, and plan the experiment.

In: YAML files and overrides. Out: the resolved config (`resolve`), the run table (`runs`), and the params,
inputs and resources of each rule (`plan`). `settings` defines the keys.
"""
