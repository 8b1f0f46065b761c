"""The config, checked and completed, and the plan made of it.

In: YAML files and overrides. Out: the resolved config (`resolve`), the run table (`runs`), and what each rule
asks for (`plan`). What users may write is in `settings`.
"""
