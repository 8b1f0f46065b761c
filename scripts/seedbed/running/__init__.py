"""Run jobs: the identity of a run, its owner, its GPU, and its publication.

In: the params of a fine-tuning rule. Out: a run folder, moved to its target in one rename.
"""
